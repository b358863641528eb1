"""A column-major array in memory, or mapped from a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._kernels import kernels
from .base import for_kernels

Array = np.ndarray[Any, Any]


class DenseStorage:
    """Column-major array: one contiguous column holds all tasks' rows, so a pass is one stream through memory.

    Also serves a column-major memory map whose rows are in task order: kernels read the mapped pages themselves.
    """

    reads_once = True
    sparse = False

    def __init__(self, x: Array) -> None:
        if not x.flags.f_contiguous or not for_kernels(x.dtype):
            raise ValueError("DenseStorage needs a Fortran-ordered float64, float32, int8 or uint8 array")
        # A plain view: the kernels know arrays, not their subclasses.
        self.x = x.view(np.ndarray)
        self.n_rows, self.n_features = x.shape
        self.dtype = x.dtype

    def products(
        self, vector: Array, offsets: Array, shared: bool, columns: Array | None, squares: bool, threads: int
    ) -> Array:
        tasks = len(offsets) - 1
        out = np.empty((self.n_features if columns is None else len(columns), tasks))
        if shared and tasks > 1:
            block = vector.reshape(tasks, self.n_rows).T
            kernels.shared_products(self.x, columns, block, squares, threads, out)
        else:
            kernels.segment_products(self.x, columns, vector, offsets, squares, threads, out)
        return out

    def first_products(
        self, weights: Array, vectors: Array, offsets: Array, threads: int
    ) -> tuple[Array, list[Array]]:
        squares = np.empty((self.n_features, len(offsets) - 1))
        products = [np.empty_like(squares) for _ in vectors]
        kernels.first_products(self.x, weights, vectors, offsets, threads, squares, products)
        return squares, products

    def take(self, features: Array) -> Array:
        return np.asarray(self.x[:, features], dtype=np.float64, order="F")
