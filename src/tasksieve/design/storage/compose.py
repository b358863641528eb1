"""Storages made of other matrices: side by side, scaled, indicators of categories, products of columns.

They are given as X like any `Storage`; columns that are not there already are computed when they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from .base import ColumnStorage
from .beside import BesideStorage
from .choose import as_storage, gives_columns
from .computed import ComputedStorage
from .own import RowVectors, Storage

Array = np.ndarray[Any, Any]


def _matrix(X: Any, name: str) -> Any:
    """A matrix that `as_storage` knows."""
    if hasattr(X, "filled"):
        raise ValueError(
            f"{name} is a matrix of genotypes, whose missing calls are filled task by task: put covariates beside it "
            "with `with_covariates`, or take the variants that are needed out of it (`take`)."
        )
    if not gives_columns(X) and not sparse.issparse(X):
        X = np.asanyarray(X)
    if len(X.shape) != 2:
        raise ValueError(f"{name} has shape {X.shape}: a matrix of rows x features is needed.")
    return X


class Beside(Storage):
    """The columns of several matrices, side by side: one X without a copy of the parts.

    Parameters
    ----------
    *parts : arrays, memory maps, sparse matrices or storages
        With the same rows.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> both = ts.storages.Beside(X, ts.storages.OneHot(["a", "b", "a"]))
    >>> both.take(np.arange(both.n_features))
    array([[0., 1., 1., 0.],
           [2., 3., 0., 1.],
           [4., 5., 1., 0.]])
    """

    def __init__(self, *parts: Any) -> None:
        if not parts:
            raise ValueError("Beside needs at least one matrix.")
        self._parts = [_matrix(part, f"part {k + 1}") for k, part in enumerate(parts)]
        rows = [part.shape[0] for part in self._parts]
        if len(set(rows)) > 1:
            raise ValueError(f"the parts have {', '.join(map(str, rows))} rows: they must have the same ones.")
        self._columns = BesideStorage([as_storage(part) for part in self._parts])
        self.n_rows, self.n_features = self._columns.n_rows, self._columns.n_features
        self.dtype = np.dtype(np.float64)

    def take(self, features: Array) -> Array:
        return self._columns.take(np.asarray(features))

    def in_task_order(self, row_order: Array | None, offsets: Array) -> ColumnStorage:
        if row_order is None:
            return self._columns
        return BesideStorage([as_storage(part, row_order, offsets) for part in self._parts])


class Computed(Storage):
    """Columns computed from those of a matrix; a subclass says how (`compute`)."""

    def __init__(self, X: Any, n_features: int | None = None) -> None:
        self._matrix = _matrix(X, "X")
        self._columns = as_storage(self._matrix)
        self.n_rows = self._columns.n_rows
        self.n_features = self._columns.n_features if n_features is None else n_features

    def compute(self, columns: ColumnStorage, features: Array) -> Array:
        """Some columns, from those of the matrix with its rows in any order."""
        raise NotImplementedError

    def take(self, features: Array) -> Array:
        return self.compute(self._columns, np.asarray(features))

    def in_task_order(self, row_order: Array | None, offsets: Array) -> ColumnStorage:
        columns = self._columns if row_order is None else as_storage(self._matrix, row_order, offsets)
        return ComputedStorage(columns, self.n_features, self.compute)


class Scaled(Computed):
    """``(X - shifts) * factors``, column by column: standardised columns without a copy of X.

    Coefficients are those of the new columns, and new rows are given in the same form: ``Scaled(X_new, factors,
    shifts)``.

    Parameters
    ----------
    X : array, memory map, sparse matrix or storage
    factors : array of shape (n_features,), optional
        1 by default.
    shifts : array of shape (n_features,), optional
        0 by default.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> X = np.array([[1.0, 10.0], [3.0, 30.0]])
    >>> ts.storages.Scaled(X, factors=1 / X.std(axis=0), shifts=X.mean(axis=0)).take(np.array([0, 1]))
    array([[-1., -1.],
           [ 1.,  1.]])
    """

    def __init__(self, X: Any, factors: Any = None, shifts: Any = None) -> None:
        super().__init__(X)
        self.factors = self._of_features(factors, 1.0, "factors")
        self.shifts = self._of_features(shifts, 0.0, "shifts")

    def _of_features(self, given: Any, default: float, name: str) -> Array:
        values = np.full(self.n_features, default) if given is None else np.array(given, dtype=np.float64)
        if values.shape != (self.n_features,) or not np.isfinite(values).all():
            raise ValueError(f"{name} must be {self.n_features} finite numbers, one for each feature.")
        return values

    def compute(self, columns: ColumnStorage, features: Array) -> Array:
        return np.asarray((columns.take(features) - self.shifts[features]) * self.factors[features])


class OneHot(Storage):
    """Indicator columns of categories, of which only the codes are kept: a column is 1 in the rows of its category.

    Parameters
    ----------
    values : array of shape (n_rows,)
        Strings or numbers.
    categories : array, optional
        Those that have a column, in this order; rows of other categories are 0 everywhere. Leave one out to have a
        reference, and give the `categories` of the training rows for new ones. By default all, sorted.

    Attributes
    ----------
    categories : array
        One for each column.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> indicators = ts.storages.OneHot(["b", "a", "c", "b"], categories=["b", "c"])
    >>> indicators.take(np.array([0, 1]))
    array([[1., 0.],
           [0., 0.],
           [0., 1.],
           [1., 0.]])
    """

    finite = True
    dtype = np.dtype(np.int8)

    def __init__(self, values: Any, categories: Any = None) -> None:
        values = np.asarray(values)
        if values.ndim != 1:
            raise ValueError(f"values has shape {values.shape}: one category for each row is needed.")
        self.categories = np.unique(values) if categories is None else np.asarray(categories)
        known = {category: k for k, category in enumerate(self.categories.tolist())}
        if len(known) < len(self.categories):
            raise ValueError("categories are named twice.")
        self._codes = np.array([known.get(value, -1) for value in values.tolist()], dtype=np.int64)
        self.n_rows, self.n_features = len(values), len(self.categories)

    def take(self, features: Array) -> Array:
        return (self._codes[:, None] == np.asarray(features)).astype(np.float64)

    def products(self, vectors: RowVectors, features: Array | None = None, squares: bool = False) -> Array:
        segments, count = vectors.n_segments, self.n_features + 1
        # the last column of each segment is for rows without a category
        position = np.repeat(np.arange(segments), np.diff(vectors.offsets)) * count + self._codes % count
        sums = [np.bincount(position, values, minlength=segments * count) for values in vectors.values]
        found = np.reshape(sums, (len(vectors), segments, count)).transpose(0, 2, 1)
        return np.asarray(found[:, :-1] if features is None else found[:, features])


class Interactions(Computed):
    """Products of pairs of columns, computed when they are read.

    Parameters
    ----------
    X : array, memory map, sparse matrix or storage
    pairs : array of shape (n_pairs, 2), optional
        Indices of columns. By default all pairs of different columns, (0, 1), (0, 2), ..., (1, 2), ...

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> products = ts.storages.Interactions(X)
    >>> products.take(np.arange(3))
    array([[ 2.,  3.,  6.],
           [20., 24., 30.]])
    >>> products.pairs(np.array([2]))
    array([[1, 2]])
    >>> model = ts.MultiTaskLasso(alpha=0.1).fit(ts.storages.Beside(X, products), [1.0, -1.0])
    >>> model.coef_.shape
    (1, 6)
    """

    def __init__(self, X: Any, pairs: Any = None) -> None:
        columns = _matrix(X, "X").shape[1]
        #: where the pairs of each first column begin, if all are meant
        self._starts = np.cumsum(np.arange(columns, 0, -1) - 1) - (np.arange(columns, 0, -1) - 1)
        self._pairs: Array | None = None
        if pairs is not None:
            self._pairs = np.asarray(pairs)
            if self._pairs.ndim != 2 or self._pairs.shape[1] != 2 or self._pairs.dtype.kind not in "iu":
                raise ValueError("pairs must be an array of whole numbers of shape (n_pairs, 2).")
            if self._pairs.size and not 0 <= int(self._pairs.min()) <= int(self._pairs.max()) < columns:
                raise ValueError(f"pairs names columns that X does not have: it has {columns}, from 0.")
        super().__init__(X, columns * (columns - 1) // 2 if self._pairs is None else len(self._pairs))

    def pairs(self, features: Sequence[int] | Array) -> Array:
        """The two columns of each of some features."""
        chosen = np.asarray(features, dtype=np.int64)
        if self._pairs is not None:
            return self._pairs[chosen]
        first = np.searchsorted(self._starts[:-1], chosen, side="right") - 1
        return np.stack([first, chosen - self._starts[first] + first + 1], axis=1)

    def compute(self, columns: ColumnStorage, features: Array) -> Array:
        used, position = np.unique(self.pairs(features), return_inverse=True)
        taken, (first, second) = columns.take(used), position.reshape(-1, 2).T
        return np.asarray(taken[:, first] * taken[:, second])
