"""Compressed sparse columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._kernels import kernels
from .base import for_kernels, one_by_one

Array = np.ndarray[Any, Any]


class SparseStorage:
    """Compressed sparse columns; products cost the number of stored entries."""

    reads_once = False
    sparse = True

    def __init__(self, x: Any) -> None:
        if not for_kernels(x.data.dtype):
            x = x.astype(np.float64)
        self.x = x
        self.n_rows, self.n_features = x.shape
        self.dtype = x.dtype

    def products(
        self, vector: Array, offsets: Array, shared: bool, columns: Array | None, squares: bool, threads: int
    ) -> Array:
        tasks = len(offsets) - 1
        out = np.empty((self.n_features if columns is None else len(columns), tasks))
        if shared:
            rows = np.ascontiguousarray(vector.reshape(tasks, self.n_rows).T)
            task_of = None
        else:
            rows = vector.reshape(-1, 1)
            task_of = np.repeat(np.arange(tasks), np.diff(offsets))
        x = self.x
        kernels.sparse_products(
            x.data, x.indices, x.indptr, columns, rows, task_of, tasks, squares, threads, out
        )
        return out

    def first_products(
        self, weights: Array, vectors: Array, offsets: Array, threads: int
    ) -> tuple[Array, list[Array]]:
        return one_by_one(self, weights, vectors, offsets, threads)

    def take(self, features: Array) -> Array:
        return np.asarray(self.x[:, features].toarray(order="F"), dtype=np.float64)
