"""A storage of your own: columns from wherever you keep them.

Subclass `Storage`, say how many rows and features there are, and give columns (`take`). Give `products` as well where
they can be had for less than reading all columns: inside a database, on another machine. Pass the object as X.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import BLOCK_BYTES, ColumnStorage, ProductRequest, Reading, read_grouped

Array = np.ndarray[Any, Any]


class RowVectors:
    """Vectors over the rows of a storage, cut into segments (tasks).

    Attributes
    ----------
    values : array of shape (k, n_rows)
    offsets : array of int
        Segment t covers rows ``offsets[t]`` to ``offsets[t + 1]``.
    """

    def __init__(self, values: Array, offsets: Array) -> None:
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_segments(self) -> int:
        return len(self.offsets) - 1

    def sums(self, column: Array) -> Array:
        """Products of each vector with a column, segment by segment: (k, n_segments)."""
        if self.n_segments == 1:
            return (self.values @ column)[:, None]
        return np.asarray(np.add.reduceat(self.values * column, self.offsets[:-1], axis=1))


class Storage:
    """Raw columns of X, kept wherever you like; pass it as X to any batch estimator.

    Attributes
    ----------
    n_rows, n_features : int
    dtype : numpy dtype
        Of the numbers as they are kept; for information.
    """

    n_rows: int
    n_features: int
    dtype: Any = np.dtype(np.float64)
    #: whether there can be neither NaN nor infinity, so that columns are not searched for them
    finite: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.n_features

    def take(self, features: Array) -> Array:
        """Some columns.

        Parameters
        ----------
        features : array of int

        Returns
        -------
        array of shape (n_rows, len(features))
        """
        raise NotImplementedError(f"{type(self).__name__} does not define `take`: how to get columns.")

    def products(self, vectors: RowVectors, features: Array | None = None, squares: bool = False) -> Array:
        """Products of columns with vectors, segment by segment.

        Parameters
        ----------
        vectors : RowVectors
        features : array of int, optional
            By default all columns.
        squares : bool
            Of the columns' squared entries.

        Returns
        -------
        array of shape (len(vectors), number of features, vectors.n_segments)
        """
        chosen = np.arange(self.n_features) if features is None else features
        out = np.empty((len(vectors), len(chosen), vectors.n_segments))
        step = max(1, BLOCK_BYTES // (8 * max(self.n_rows, 1)))
        for start in range(0, len(chosen), step):
            block = np.asarray(self.take(chosen[start : start + step]), dtype=np.float64)
            for k, column in enumerate(block.T):
                out[:, start + k] = vectors.sums(column * column if squares else column)
        return out

    def in_task_order(self, row_order: Array | None, offsets: Array) -> ColumnStorage:
        """The columns as shards see them; `row_order` brings the rows into task order, tasks start at `offsets`."""
        return OwnStorage(self, row_order)


class OwnStorage(ColumnStorage):
    """A `Storage` as shards see it, rows in task order."""

    costly_reads = True

    def __init__(self, storage: Storage, row_order: Array | None = None) -> None:
        self._own, self._order = storage, row_order
        self.n_rows, self.n_features = int(storage.n_rows), int(storage.n_features)
        self.dtype = np.dtype(storage.dtype)

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        return read_grouped(asked, self.n_features, self._alike)

    def _alike(self, asked: list[ProductRequest]) -> list[Array]:
        """Products with vectors that cut the rows alike, of the same columns, all with squares or none."""
        shared, offsets, columns, squares = asked[0].shared, asked[0].offsets, asked[0].columns, asked[0].squares
        tasks = len(offsets) - 1
        if not shared and self._order is None:
            vectors = RowVectors(np.stack([a.vector for a in asked]), offsets)
            return list(self._ask(vectors, columns, squares))
        values = np.zeros((len(asked), tasks, self.n_rows))
        for k, a in enumerate(asked):
            if shared:
                values[k] = a.vector.reshape(tasks, self.n_rows)
                if self._order is not None:
                    values[k] = values[k][:, np.argsort(self._order)]
                continue
            assert self._order is not None
            for t in range(tasks):  # rows of a task lie scattered: a vector for each
                own = slice(offsets[t], offsets[t + 1])
                values[k, t, self._order[own]] = a.vector[own]
        flat = RowVectors(values.reshape(-1, self.n_rows), np.array([0, self.n_rows]))
        found = self._ask(flat, columns, squares)[:, :, 0].reshape(len(asked), tasks, -1)
        return [np.ascontiguousarray(part.T) for part in found]

    def _ask(self, vectors: RowVectors, columns: Array | None, squares: bool) -> Array:
        found = np.asarray(self._own.products(vectors, columns, squares), dtype=np.float64)
        count = self.n_features if columns is None else len(columns)
        expected = (len(vectors), count, vectors.n_segments)
        if found.shape != expected:
            raise ValueError(
                f"X: {type(self._own).__name__}.products returned shape {found.shape}, expected {expected}: "
                "vectors x features x segments."
            )
        return found

    def take(self, features: Array) -> Array:
        found = np.asarray(self._own.take(np.asarray(features)), dtype=np.float64, order="F")
        if found.shape != (self.n_rows, len(features)):
            raise ValueError(
                f"X: {type(self._own).__name__}.take returned shape {found.shape}, "
                f"expected {(self.n_rows, len(features))}: rows x requested features."
            )
        return found if self._order is None else np.asfortranarray(found[self._order])
