"""Columns that do not fit into a worker's memory: read again in each pass, a block at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..storage import BesideStorage, DenseStorage
from ..storage.base import ColumnStorage, ProductRequest, Reading, kept_type
from .sources import ColumnSource

Array = np.ndarray[Any, Any]

_BLOCK_BYTES = 128 << 20  # of columns in memory at a time


def held_columns(columns: Array, order: Array | None) -> DenseStorage:
    """Columns as kernels read them, rows in task order."""
    if order is not None:
        columns = columns[order]
    return DenseStorage(np.asfortranarray(columns, dtype=kept_type(columns.dtype)))


class StreamedStorage(BesideStorage):
    """A range of a source's columns, of which a block is in memory while it is worked with; rows in task order."""

    def __init__(self, source: ColumnSource, low: int, high: int, order: Array | None) -> None:
        step = max(1, _BLOCK_BYTES // (kept_type(source.dtype).itemsize * max(source.shape[0], 1)))
        cuts = _cuts([*(edge - low for edge in source.edges if low < edge < high), high - low], step)
        super().__init__([_Block(source, low + a, low + b, order) for a, b in pairwise(cuts)])


class _Block(ColumnStorage):
    """Some of these columns, read whenever they are needed."""

    costly_reads = True

    def __init__(self, source: ColumnSource, low: int, high: int, order: Array | None) -> None:
        self._source, self._low, self._high, self._order = source, low, high, order
        self.n_rows, self.n_features = source.shape[0], high - low
        self.dtype = kept_type(source.dtype)

    def _load(self) -> DenseStorage:
        return held_columns(self._source.read(self._low, self._high), self._order)

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        return self._load().read(asked, threads)

    def take(self, features: Array) -> Array:
        return self._load().take(features)


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
