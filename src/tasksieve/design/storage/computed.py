"""Columns that are computed when they are needed: blocks are taken and multiplied, nothing is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .base import BLOCK_BYTES, Asked, ColumnStorage, Reading, part_read, split_asked
from .dense import DenseStorage

Array = np.ndarray[Any, Any]


class ComputedStorage(ColumnStorage):
    """Products of the columns that `take` computes from those of another storage.

    - `n_features`: As many as the storage has by default.
    - `compute`: ``compute(storage, features)`` gives the columns; a subclass may have a `take` of its own instead.
    """

    sparse = False

    def __init__(
        self,
        storage: ColumnStorage,
        n_features: int | None = None,
        compute: Callable[[ColumnStorage, Array], Array] | None = None,
    ) -> None:
        self._of, self._compute = storage, compute
        self.n_rows = storage.n_rows
        self.n_features = storage.n_features if n_features is None else n_features
        self.dtype = np.dtype(np.float64)
        self.costly_reads = storage.costly_reads

    def take(self, features: Array) -> Array:
        assert self._compute is not None
        return np.asarray(self._compute(self._of, features), dtype=np.float64, order="F")

    def products(
        self, vector: Array, offsets: Array, shared: bool, columns: Array | None, squares: bool, threads: int
    ) -> Array:
        chosen = np.arange(self.n_features) if columns is None else columns
        out = np.empty((len(chosen), len(offsets) - 1))
        step = max(1, BLOCK_BYTES // (8 * max(self.n_rows, 1)))
        for low in range(0, len(chosen), step):
            block = DenseStorage(self.take(chosen[low : low + step]))
            out[low : low + step] = block.products(vector, offsets, shared, None, squares, threads)
        return out

    def read(self, asked: Sequence[Asked], threads: int) -> Reading:
        everything, some = split_asked(asked)
        products: list[Any] = [None] * len(asked)
        for k in everything:
            products[k] = np.empty((self.n_features, len(asked[k].offsets) - 1))
        step = max(1, BLOCK_BYTES // (8 * max(self.n_rows, 1)))
        for low in range(0, self.n_features if everything else 0, step):
            block = DenseStorage(self.take(np.arange(low, min(low + step, self.n_features))))
            found = block.read([asked[k] for k in everything], threads).products
            for k, part in zip(everything, found, strict=True):
                products[k][low : low + step] = part
        for k in some:
            a = asked[k]
            products[k] = self.products(a.vector, a.offsets, a.shared, a.columns, a.squares, threads)
        return Reading(products, part_read(asked, self.n_features))
