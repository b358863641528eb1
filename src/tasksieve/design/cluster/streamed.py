"""Columns that do not fit into a worker's memory: read again in each pass, a block at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..storage import DenseStorage
from ..storage.base import Asked, ColumnStorage, Reading, empty_products, for_kernels, part_read, split_asked
from .sources import ColumnSource

Array = np.ndarray[Any, Any]

_BLOCK_BYTES = 128 << 20  # of columns in memory at a time


class StreamedStorage(ColumnStorage):
    """A range of a source's columns, of which a block is in memory while it is worked with.

    - `low`, `high`: The range.
    - `order`: Permutation that brings the rows into task order.
    """

    costly_reads = True
    sparse = False

    def __init__(self, source: ColumnSource, low: int, high: int, order: Array | None) -> None:
        self._source, self._low, self._order = source, low, order
        self.n_rows, self.n_features = source.shape[0], high - low
        self.dtype = source.dtype if for_kernels(source.dtype) else np.dtype(np.float64)
        step = max(1, _BLOCK_BYTES // (self.dtype.itemsize * max(self.n_rows, 1)))
        inside = [edge - low for edge in source.edges if low < edge < high]
        self._cuts = _cuts([*inside, self.n_features], step)

    def _block(self, k: int) -> DenseStorage:
        low, high = self._cuts[k], self._cuts[k + 1]
        rows = self._source.read(self._low + low, self._low + high)
        if self._order is not None:
            rows = rows[self._order]
        return DenseStorage(np.asfortranarray(rows, dtype=self.dtype))

    def read(self, asked: Sequence[Asked], threads: int) -> Reading:
        everything, some = split_asked(asked)
        products = empty_products(asked, self.n_features)
        for k, (low, high) in enumerate(zip(self._cuts[:-1], self._cuts[1:], strict=True)):
            chosen = [(m, np.asarray(asked[m].columns)) for m in some]
            wanted = [(m, np.flatnonzero((columns >= low) & (columns < high))) for m, columns in chosen]
            wanted = [(m, positions) for m, positions in wanted if len(positions)]
            if not everything and not wanted:
                continue
            block = self._block(k)
            if everything:
                found = block.read([asked[m] for m in everything], threads).products
                for m, part in zip(everything, found, strict=True):
                    products[m][low:high] = part
            for m, positions in wanted:
                a = asked[m]
                here = np.asarray(a.columns)[positions] - low
                products[m][positions] = block.products(a.vector, a.offsets, a.shared, here, a.squares, threads)
        return Reading(products, part_read(asked, self.n_features))

    def take(self, features: Array) -> Array:
        out = np.empty((self.n_rows, len(features)), order="F")
        for k, (low, high) in enumerate(zip(self._cuts[:-1], self._cuts[1:], strict=True)):
            positions = np.flatnonzero((features >= low) & (features < high))
            if len(positions):
                out[:, positions] = self._block(k).take(features[positions] - low)
        return out


def _cuts(edges: Sequence[int], step: int) -> list[int]:
    """Where blocks of at most `step` columns begin: whole blocks of the source as far as they fit, else parts."""
    cuts, last = [0], 0
    for edge in edges:
        if edge - cuts[-1] > step and last > cuts[-1]:
            cuts.append(last)
        while edge - cuts[-1] > step:
            cuts.append(cuts[-1] + step)
        last = edge
    return [*cuts, edges[-1]] if cuts[-1] < edges[-1] else cuts
