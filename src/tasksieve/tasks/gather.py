"""Moments of data in memory or in a memory map: one reading in blocks of rows, nothing of the size of X is copied."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design.sums import Gathered, RowSums, SharedSums, block_rows
from .data import TaskData

Array = np.ndarray[Any, Any]


def gather_rows(data: TaskData, shift: bool, n_threads: int) -> tuple[Gathered, int]:
    """What the rows amount to, under the sample weights alone, and how often they were read: once more, with the means
    found, where the first rows are unlike the others."""
    found = _read(data, shift, n_threads, None)
    if not shift or found.well_centred:
        return found, 1
    return _read(data, shift, n_threads, found.means()), 2


def one_matrix(data: TaskData) -> bool:
    """Whether all tasks see the very same rows: one Gram matrix serves them all."""
    if not data.shared or data.n_tasks == 1:
        return False
    weights = data.weights.reshape(data.n_tasks, -1)
    return all(np.array_equal(own, weights[0]) for own in weights[1:])


def _read(data: TaskData, shift: bool, n_threads: int, known: tuple[Array, Array] | None) -> Gathered:
    step, source = block_rows(data.n_features + 2), data.source
    assert source is not None
    plain = bool(np.all(data.weights == 1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        if one_matrix(data):
            shared = SharedSums(data.n_features, data.n_tasks, shift=shift, n_threads=n_threads)
            if known is not None:
                shared.shift_by(*known)
            labels = data.y.reshape(data.n_tasks, -1).T
            for places, rows in source.blocks(step):
                chosen = slice(places[0], places[-1] + 1)
                shared.add(rows, labels[chosen], None, None if plain else data.weights[chosen])
            return shared.gathered(0)
        sums = RowSums(data.n_features, shift=shift, n_threads=n_threads)
        sums.grow(data.n_tasks)
        if known is not None:
            sums.shift_by(*known)
        for places, rows in source.blocks(step):
            if data.shared:
                for t in range(data.n_tasks):
                    flat = t * data.n_rows + places
                    sums.add(rows, data.y[flat], np.full(len(flat), t), None, data.weights[flat])
                continue
            tasks = np.searchsorted(data.offsets, places, side="right") - 1
            sums.add(rows, data.y[places], tasks, None, None if plain else data.weights[places])
        return sums.gathered(0)
