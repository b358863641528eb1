"""Where the rows of X are: as they were given, until somebody asks for columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ..design import as_storage
from ..design.device.matrix import DeviceMatrix, OnDevice

Array = np.ndarray[Any, Any]


class RowSource:
    """A matrix, or one matrix a task stacked on top of each other, that `read_matrix` has read.

    Parameters
    ----------
    matrix : array, memory map, sparse matrix, matrix on a device, `Storage`, or list of these
    order : array of int, optional
        Permutation that brings the rows into task order.
    offsets : array of int, optional
        Where each task starts then; by default, and where all tasks see all rows, they are one task.
    """

    def __init__(self, matrix: Any, order: Array | None, offsets: Array | None = None) -> None:
        self._matrices = matrix if isinstance(matrix, list) else [matrix]
        self._order, self._offsets = order, offsets

    @cached_property
    def storage(self) -> Any:
        """Columns, rows in task order: a copy where rows have to be moved or columns do not lie together."""
        return as_storage(self._matrices, row_order=self._order, offsets=self._offsets)

    @property
    def stored(self) -> bool:
        """Whether there is a storage already, or rows that only a storage can read."""
        return "storage" in vars(self) or not (self.dense or self.elsewhere)

    @property
    def elsewhere(self) -> bool:
        """Whether the rows are in a cluster."""
        return any(getattr(part, "elsewhere", False) for part in self._matrices)

    def cut(self, features: Array) -> Array:
        """Some columns of dense rows, in task order."""
        parts = [np.asarray(part[:, features], dtype=np.float64) for part in self._matrices]
        out = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return out if self._order is None else out[self._order]

    def columns(self) -> Array:
        """All columns of dense rows, in task order and Fortran order: a copy."""
        rows = self._matrices[0] if len(self._matrices) == 1 else np.concatenate(self._matrices)
        return np.array(rows if self._order is None else rows[self._order], dtype=np.float64, order="F", subok=False)

    @property
    def matrices(self) -> list[Any]:
        """What was given: one matrix, or one a task."""
        return self._matrices

    @property
    def n_features(self) -> int:
        return int(self._matrices[0].shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self._matrices[0].dtype)

    @property
    def dense(self) -> bool:
        """Whether the rows are arrays, in memory or mapped from a file, that blocks of rows can be cut from."""
        return all(isinstance(part, np.ndarray) for part in self._matrices)

    @property
    def streams(self) -> bool:
        """Whether the rows pass through a device, block by block."""
        return any(isinstance(part, OnDevice) and not isinstance(part, DeviceMatrix) for part in self._matrices)

    @property
    def nbytes(self) -> int:
        return sum(int(part.nbytes) for part in self._matrices) if self.dense else 0

    def blocks(self, step: int) -> Iterator[tuple[Array, Array]]:
        """(places in task order, rows) of at most so many rows at a time, in the order of the data; no copies."""
        place = None
        if self._order is not None:
            place = np.empty(len(self._order), dtype=np.int64)
            place[self._order] = np.arange(len(self._order))
        first = 0
        for part in self._matrices:
            rows = part.view(np.ndarray)
            for low in range(0, len(rows), step):
                block = rows[low : low + step]
                here = slice(first + low, first + low + len(block))
                yield np.arange(here.start, here.stop) if place is None else place[here], block
            first += len(rows)
