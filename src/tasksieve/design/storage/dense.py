"""A column-major array in memory, or mapped from a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._kernels import kernels
from .base import BLOCK_BYTES, LARGE, ColumnStorage, ProductRequest, alike, empty_products, for_kernels

Array = np.ndarray[Any, Any]

_CHUNK = 256  # columns that one thread of a kernel takes at a time


class DenseStorage(ColumnStorage):
    """Column-major array: one contiguous column holds all tasks' rows, so a pass is one stream through memory. Or such
    a memory map whose rows are in task order: kernels read the mapped pages themselves."""

    def __init__(self, x: Array) -> None:
        if not x.flags.f_contiguous or not for_kernels(x.dtype):
            raise ValueError("DenseStorage needs a Fortran-ordered float64, float32, int8 or uint8 array")
        self.costly_reads = isinstance(x, np.memmap) or x.nbytes >= LARGE
        # A plain view: the kernels know arrays, not their subclasses.
        self.x = x.view(np.ndarray)
        self.n_rows, self.n_features = x.shape
        self.dtype = x.dtype

    def part(self, features: slice) -> DenseStorage:
        return DenseStorage(self.x[:, features])

    def doubles(self) -> Array | None:
        return self.x if self.dtype == np.float64 else None

    def _together(self, asked: list[ProductRequest], threads: int) -> list[Array]:
        products = empty_products(asked, self.n_features)
        if len(asked) == 1:
            self._alone(asked[0], threads, products[0])
            return products
        groups: dict[Any, list[int]] = {}
        for k in sorted(range(len(asked)), key=lambda k: not asked[k].squares):
            groups.setdefault(alike(asked[k]), []).append(k)
        # Where they cut the rows in different ways, a block of columns serves all before the next is read.
        step = self.n_features
        if len(groups) > 1:
            fitting = BLOCK_BYTES // (8 * self.x.itemsize * max(self.n_rows, 1))
            step = _CHUNK * max(threads, fitting // _CHUNK)
        for low in range(0, self.n_features, max(step, 1)):
            columns = slice(low, low + step)
            for group in groups.values():
                self._alike([asked[k] for k in group], columns, threads, [products[k][columns] for k in group])
        return products

    def _alone(self, a: ProductRequest, threads: int, out: Array) -> None:
        if a.shared and len(a.offsets) > 2:
            block = a.vector.reshape(-1, self.n_rows).T
            kernels.shared_products(self.x, a.columns, block, a.squares, threads, out)
        else:
            kernels.segment_products(self.x, a.columns, a.vector, a.offsets, a.squares, threads, out)

    def _alike(self, asked: list[ProductRequest], columns: slice, threads: int, out: list[Array]) -> None:
        """Products of neighbouring columns with vectors that cut the rows alike, squares first."""
        x, squares, offsets = self.x[:, columns], sum(a.squares for a in asked), asked[0].offsets
        tasks = len(offsets) - 1
        if not asked[0].shared or tasks == 1:
            kernels.many_products(x, [a.vector for a in asked], squares, offsets, threads, out)
            return
        for squared in (True, False):  # one wide block of vectors each
            own = [k for k, a in enumerate(asked) if a.squares == squared]
            if own:
                block = np.concatenate([asked[k].vector for k in own]).reshape(-1, self.n_rows).T
                wide = np.empty((x.shape[1], block.shape[1]))
                kernels.shared_products(x, None, block, squared, threads, wide)
                for m, k in enumerate(own):
                    out[k][...] = wide[:, m * tasks : (m + 1) * tasks]

    def take(self, features: Array) -> Array:
        return np.asarray(self.x[:, features], dtype=np.float64, order="F")
