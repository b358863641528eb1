"""Columns that are computed when they are needed: blocks are taken and multiplied, nothing is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .base import BLOCK_BYTES, ColumnStorage, ProductRequest, empty_products
from .dense import DenseStorage

Array = np.ndarray[Any, Any]


class ComputedStorage(ColumnStorage):
    """Products of the columns that `take` computes from those of another storage.

    - `n_features`: As many as the storage has by default.
    - `compute`: ``compute(storage, features)`` gives the columns; a subclass may have a `take` of its own instead.
    """

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

    def _together(self, asked: list[ProductRequest], threads: int) -> list[Array]:
        columns, products = asked[0].columns, empty_products(asked, self.n_features)
        chosen = np.arange(self.n_features) if columns is None else columns
        of_all = [replace(a, columns=None) for a in asked]
        step = max(1, BLOCK_BYTES // (8 * max(self.n_rows, 1)))
        for low in range(0, len(chosen), step):
            block = DenseStorage(self.take(chosen[low : low + step]))
            for out, part in zip(products, block.read(of_all, threads).products, strict=True):
                out[low : low + step] = part
        return products


class ScaledStorage(ComputedStorage):
    """``2^-exponent X``: entries so large or so small that their squares leave the range of double precision."""

    def __init__(self, storage: ColumnStorage, exponent: int) -> None:
        super().__init__(storage)
        self._exponent = exponent
        #: where the columns live, it is there that they are scaled
        self.shard_class = self.wrapped_shard_class = storage.wrapped_shard_class
        self.inner, self.around = storage, partial(ScaledStorage, exponent=exponent)

    def take(self, features: Array) -> Array:
        return np.asfortranarray(np.ldexp(self._of.take(features), -self._exponent))
