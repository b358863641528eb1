"""A storage in other units: entries so large or so small that their squares leave the range of double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import BLOCK_BYTES, ColumnStorage, one_by_one
from .dense import DenseStorage

Array = np.ndarray[Any, Any]


class ScaledStorage:
    """``2^-exponent X``: blocks of columns are taken, scaled and multiplied; nothing is kept.

    Parameters
    ----------
    storage : ColumnStorage
    exponent : int
    """

    reads_once = False
    sparse = False

    def __init__(self, storage: ColumnStorage, exponent: int) -> None:
        self._of, self._exponent = storage, exponent
        self.n_rows, self.n_features = storage.n_rows, storage.n_features
        self.dtype = np.dtype(np.float64)

    def take(self, features: Array) -> Array:
        return np.asfortranarray(np.ldexp(self._of.take(features), -self._exponent))

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

    def first_products(
        self, weights: Array, vectors: Array, offsets: Array, threads: int
    ) -> tuple[Array, list[Array]]:
        return one_by_one(self, weights, vectors, offsets, threads)
