"""A storage in other units: entries so large or so small that their squares leave the range of double precision."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from .base import BLOCK_BYTES, Asked, ColumnStorage, Reading, part_read, split_asked
from .dense import DenseStorage

Array = np.ndarray[Any, Any]


class ScaledStorage(ColumnStorage):
    """``2^-exponent X``: blocks of columns are taken, scaled and multiplied; nothing is kept.

    Parameters
    ----------
    storage : ColumnStorage
    exponent : int
    """

    sparse = False

    def __init__(self, storage: ColumnStorage, exponent: int) -> None:
        self._of, self._exponent = storage, exponent
        self.n_rows, self.n_features = storage.n_rows, storage.n_features
        self.dtype = np.dtype(np.float64)
        self.dear = storage.dear
        #: where the columns live, it is there that they are scaled
        self.home = self.wrapped_home = getattr(storage, "wrapped_home", None)
        self.inner, self.around = storage, partial(ScaledStorage, exponent=exponent)

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
