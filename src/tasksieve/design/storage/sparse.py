"""Compressed sparse columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._kernels import kernels
from .base import LARGE, ColumnStorage, ProductRequest, Reading, kept_type, read_grouped

Array = np.ndarray[Any, Any]


class SparseStorage(ColumnStorage):
    """Compressed sparse columns; products cost the number of stored entries."""

    sparse = True

    def __init__(self, x: Any) -> None:
        self.x = x = x.astype(kept_type(x.dtype), copy=False)
        self.n_rows, self.n_features = x.shape
        self.dtype = x.dtype
        self.costly_reads = x.data.nbytes + x.indices.nbytes >= LARGE

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        return read_grouped(asked, self.n_features, lambda own: self._alike(own, threads))

    def _alike(self, asked: list[ProductRequest], threads: int) -> list[Array]:
        """Products with vectors that cut the rows alike, of the same columns, all with squares or none."""
        x, shared, offsets, columns = self.x, asked[0].shared, asked[0].offsets, asked[0].columns
        tasks, count = len(offsets) - 1, self.n_features if columns is None else len(columns)
        if shared:
            blocks = [a.vector.reshape(tasks, self.n_rows).T for a in asked]
            rows, task_of, owners = np.ascontiguousarray(np.hstack(blocks)), None, tasks * len(asked)
        else:
            rows, owners = np.ascontiguousarray(np.stack([a.vector for a in asked], axis=1)), tasks
            task_of = np.repeat(np.arange(tasks), np.diff(offsets))
        out = np.empty((count, tasks * len(asked)))
        kernels.sparse_products(
            x.data, x.indices, x.indptr, columns, rows, task_of, owners, asked[0].squares, threads, out
        )
        if len(asked) == 1:
            return [out]
        return [np.ascontiguousarray(out[:, m * tasks : (m + 1) * tasks]) for m in range(len(asked))]

    def take(self, features: Array) -> Array:
        return np.asarray(self.x[:, features].toarray(order="F"), dtype=np.float64)
