"""Some rows of a storage as a storage: what a half of the rows has to look at, without a copy of X.

Passes over all columns are those of all rows, with zeros where a row is left out, so that designs of other rows share
their readings. Columns that are taken are cut: all that is done with them again and again is done with the rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .base import ColumnStorage, ProductRequest, Reading, for_kernels
from .dense import DenseStorage

Array = np.ndarray[Any, Any]


class SomeRows(ColumnStorage):
    """Rows of a storage, ascending, of which tasks have some each.

    - `offsets` (array of int, shape (T + 1,)): Where each task starts among all rows, `own_offsets` among these.
    """

    def __init__(self, storage: ColumnStorage, rows: Array, offsets: Array, own_offsets: Array) -> None:
        self._of, self._rows, self._offsets, self._own_offsets = storage, rows, offsets, own_offsets
        self.n_rows, self.n_features, self.dtype = len(rows), storage.n_features, storage.dtype
        self.costly_reads, self.taken = storage.costly_reads, storage.taken

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        products: list[Any] = [None] * len(asked)
        everything = [k for k, a in enumerate(asked) if a.columns is None]
        spent = 0.0
        if everything:
            found, spent = self._of.read([self._among_all(asked[k]) for k in everything], threads)
            for k, own in zip(everything, found, strict=True):
                products[k] = own
        for k, a in enumerate(asked):
            if a.columns is None:
                continue
            spent += self.unread(a.columns) / max(self.n_features, 1)
            # as they lie there: kernels for other types add up in another order
            kind = self.taken or self.dtype
            block = DenseStorage(np.asfortranarray(self.take(a.columns), dtype=kind if for_kernels(kind) else None))
            products[k] = block.products(a.vector, a.offsets, a.shared, None, a.squares, threads)
        return Reading(products, spent)

    def _among_all(self, a: ProductRequest) -> ProductRequest:
        """The same request about all rows."""
        n_rows = self._of.n_rows
        if a.shared:
            block = np.zeros((len(a.offsets) - 1, n_rows))
            block[:, self._rows] = a.vector.reshape(len(block), -1)
            return replace(a, vector=block.ravel(), offsets=n_rows * np.arange(len(a.offsets), dtype=np.int64))
        vector = np.zeros(n_rows)
        vector[self._rows] = a.vector
        if len(a.offsets) == 2:
            offsets = np.array([0, n_rows], dtype=np.int64)
        elif np.array_equal(a.offsets, self._own_offsets):
            offsets = self._offsets
        else:  # cut elsewhere than between tasks
            offsets = np.append(self._rows, n_rows)[a.offsets]
            offsets[0], offsets[-1] = 0, n_rows
        return replace(a, vector=vector, offsets=offsets)

    def unread(self, features: Array) -> int:
        return self._of.unread(features)

    def take(self, features: Array) -> Array:
        return self._of.take_rows(features, self._rows)
