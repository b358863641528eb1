"""X as it was given: one `Source` for each kind of matrix, and the rows of all tasks made of them.

The kind of X is found once, by the classes that have registered themselves: arrays, sparse matrices and storages in
`matrix.py`, tensors and what `on_device` makes in `tensors.py`, dask and Zarr arrays in `cluster.py`. Another kind is a
module with a class, `register` above it, and a line that imports it in `tasks/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from .. import verify
from ..design import as_storage
from ..messages import either, value_error
from ..row_names import cell_name, row_name
from .readable import StoredMatrix

Array = np.ndarray[Any, Any]
_Kind = TypeVar("_Kind", bound="type[Source]")

_KINDS: list[type[Source]] = []


class Source:
    """One matrix. The class answers about X as it was given, before anything is read; an instance has read it.

    - `matrix` (as storages take it): Made by `read`.
    - `location` ({"memory", "file", "device", "cluster"}): Where the numbers are.
    - `dense`: Whether it is an array, in memory or mapped from a file, of which blocks of rows can be read.
    - `by_columns`: Whether it is a `Storage`, which gives columns and nothing else.
    - `searched`: Whether NaN and infinity are looked for when X is read. Elsewhere the norms of the columns show them.
    """

    location: str = "memory"
    dense: bool = False
    by_columns: bool = False
    searched: bool = True
    #: whether it accepts what may be of a kind of its own
    general: bool = False
    #: whether the numbers pass through a device, block by block
    streams: bool = False
    #: names of the columns of a data frame, for messages
    names: Sequence[Any] | None = None

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        #: whether a fit searches for NaN only when columns are measured, however few there are
        self.searched_late = not self.searched

    @classmethod
    def accepts(cls, X: Any) -> bool:
        """Whether X, as it was given or as `read` has made it, is of this kind; found without importing anything."""
        raise NotImplementedError

    @classmethod
    def read(cls, X: Any, name: str) -> Source:
        """X in one of the kept types, a copy only if it must be; `name` is what to call it in messages."""
        return cls(X)

    @classmethod
    def take_rows(cls, X: Any, rows: Array) -> Any:
        """Some rows, in the kind of X."""
        from sklearn.utils import _safe_indexing

        if not hasattr(X, "__getitem__"):
            raise ValueError(
                f"X: {type(X).__name__} gives no rows by their numbers, which the models of single tasks need. Pass an "
                "array, a sparse matrix, a data frame or a memory map."
            )
        return _safe_indexing(X, rows)

    @classmethod
    def to_host(cls, X: Any) -> Any:
        """X in this process's memory."""
        return X

    @classmethod
    def like(cls, X: Any, answer: Any) -> Any:
        """An answer about rows of X, an array, in the kind of X."""
        return answer

    def readable(self) -> verify.Matrix:
        """As a verifier reads it."""
        if hasattr(self.matrix, "readable"):
            found: verify.Matrix = self.matrix.readable()
            return found
        return StoredMatrix(self.matrix) if self.by_columns else verify.Matrix(self.matrix)

    def take_columns(self, features: Array) -> Any:
        """Some columns: an array, or a sparse matrix."""
        return np.asarray(self.matrix.take(features)) if self.by_columns else self.matrix[:, features]

    @property
    def shape(self) -> tuple[int, int]:
        rows, features = self.matrix.shape
        return int(rows), int(features)

    @property
    def nbytes(self) -> int:
        """Of the numbers, where rows can be read in blocks; 0 otherwise."""
        return int(self.matrix.nbytes) if self.dense or self.location == "cluster" else 0

    @property
    def n_row_blocks(self) -> int:
        """Into how many blocks of rows it is cut where it lies; 0 if rows are whole nowhere."""
        return 0

    @property
    def finite(self) -> bool:
        """Whether there can be neither NaN nor infinity."""
        return bool(getattr(self.matrix, "finite", False))

    def first_not_finite(self) -> tuple[int, int, float] | None:
        """Row, feature and value of the first NaN or infinity, or None."""
        raise NotImplementedError

    def refuse_not_finite(self, name: str) -> None:
        """Raise a ValueError that names the first NaN or infinity, if there is one."""
        found = self.first_not_finite()
        if found is None:
            return
        row, feature, value = found
        kind = "NaN or infinity" if not self.searched else "NaN" if np.isnan(value) else "infinity (inf)"
        raise value_error(
            "{matrix} contains {kind}: {position}. Impute it{how} or drop the row{more}.",
            matrix=either(f"Input {name}", "The table"),
            kind=kind,
            position=either(
                cell_name(row, feature, name)
                if self.names is None
                else f"{row_name(row)}, column {self.names[feature]!r}",
                f"{row_name(row)}, feature number {feature + 1}",
            ),
            how=either(" (ts.FillMissing, ts.MultipleImputation)" if self.searched else ""),
            more=either(
                "; ts.by_pattern(X, task=task) fits rows that lack columns as they are" if np.isnan(value) else ""
            ),
        )


def register(kind: _Kind) -> _Kind:
    """Add a kind of matrices. General kinds are tried after the others, in the order in which they were added."""
    _KINDS.insert(len(_KINDS) if kind.general else 0, kind)
    return kind


def kind_of(X: Any) -> type[Source]:
    """The kind of one matrix."""
    if type(X) is np.ndarray:  # what most people have: no other kind need be asked
        return _KINDS[-1]
    return next(kind for kind in _KINDS if kind.accepts(X))


def is_task_list(X: Any) -> bool:
    """Whether X is a list of tasks: a list (or tuple) whose items are 2-D. A list of rows is one matrix."""
    if not isinstance(X, list | tuple) or not X:
        return False
    first = X[0]
    shape = getattr(first, "shape", None)
    if shape is not None:
        return len(shape) == 2
    return isinstance(first, list | tuple) and bool(first) and isinstance(first[0], list | tuple | np.ndarray)


def first_matrix(X: Any) -> Any:
    """X, or the first of a list of tasks: what represents all where only their kind, or their columns, matter."""
    return X[0] if is_task_list(X) else X


def count_rows(X: Any) -> Any:
    """The number of rows of X, or a list of such numbers for a list of tasks; X is not read."""
    if is_task_list(X):
        return [count_rows(item) for item in X]
    return X.shape[0] if hasattr(X, "shape") else len(X)


class RowSource:
    """The rows of all tasks: one matrix, or one a task stacked on top of each other. `order` brings the rows into task
    order, and `offsets` are where each task starts then: by default, and where all see all rows, they are one task."""

    def __init__(self, parts: Sequence[Source], order: Array | None, offsets: Array | None = None) -> None:
        self.parts = list(parts)
        self._order, self._offsets = order, offsets
        self._storage: Any = None

    def make_storage(self) -> Any:
        """Columns, rows in task order: a copy where rows have to be moved or columns do not lie together, made once."""
        if self._storage is None:
            self._storage = as_storage(self.matrices, row_order=self._order, offsets=self._offsets)
        return self._storage

    @property
    def stored(self) -> bool:
        """Whether there is a storage already, or rows that only a storage can read."""
        return self._storage is not None or not (self.dense or self.location == "cluster")

    @property
    def matrices(self) -> list[Any]:
        """What was given, in kept types: one matrix, or one a task."""
        return [part.matrix for part in self.parts]

    @property
    def location(self) -> str:
        """Where the rows are."""
        locations = [part.location for part in self.parts]
        return "cluster" if "cluster" in locations else locations[0]

    @property
    def streams(self) -> bool:
        """Whether some pass through a device, block by block."""
        return any(part.streams for part in self.parts)

    @property
    def n_features(self) -> int:
        return self.parts[0].shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.parts[0].matrix.dtype)

    @property
    def dense(self) -> bool:
        """Whether all rows are arrays that blocks can be read of."""
        return all(part.dense for part in self.parts)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    @property
    def n_row_blocks(self) -> tuple[int, ...]:
        """Of each matrix in a cluster."""
        return tuple(part.n_row_blocks for part in self.parts) if self.location == "cluster" else ()

    def cut(self, features: Array) -> Array:
        """Some columns of dense rows, in task order."""
        parts = [np.asarray(part[:, features], dtype=np.float64) for part in self.matrices]
        out = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return out if self._order is None else out[self._order]

    def columns(self) -> Array:
        """All columns of dense rows, in task order and Fortran order: as they lie, or a copy."""
        rows = self.matrices[0] if len(self.parts) == 1 else np.concatenate(self.matrices)
        found = np.asarray(rows if self._order is None else rows[self._order], dtype=np.float64, order="F")
        return found.view(np.ndarray)

    def blocks(self, step: int) -> Iterator[tuple[Array, Array]]:
        """(positions in task order, rows) of at most so many rows at a time, in the order of the data; no copies."""
        position = None
        if self._order is not None:
            position = np.empty(len(self._order), dtype=np.int64)
            position[self._order] = np.arange(len(self._order))
        first = 0
        for part in self.matrices:
            rows = part.view(np.ndarray)
            for low in range(0, len(rows), step):
                block = rows[low : low + step]
                here = slice(first + low, first + low + len(block))
                yield np.arange(here.start, here.stop) if position is None else position[here], block
            first += len(rows)
