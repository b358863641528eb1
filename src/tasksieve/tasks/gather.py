"""Moments of data in memory or in a memory map: one reading in blocks of rows, nothing of the size of X is copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design.moments import leave_one_out
from ..design.sums import Gathered, RowSums, SharedSums, block_rows, sums_at_once
from .cluster_sums import sums_in_cluster
from .data import TaskData

Array = np.ndarray[Any, Any]


def gather_rows(data: TaskData, shift: bool, n_threads: int) -> tuple[Gathered, int]:
    """What the rows amount to, under the sample weights alone, and how often they were read: once more, with the means
    found, where the first rows are unlike the others."""
    [found] = _read(data, shift, n_threads, None, None, 1)
    if not shift or found.well_centred:
        return found, 1
    return _read(data, shift, n_threads, found.means(), None, 1)[0], 2


def gather_at_once(data: TaskData, shift: bool, n_threads: int) -> Gathered:
    """The same for rows that are few enough to be copied: those of one matrix for all tasks, or of one a task."""
    source, n_tasks = data.source, data.n_tasks
    assert source is not None
    x, alike = source.columns(), data.shared or n_tasks == 1
    y = np.array(data.y.reshape(n_tasks if alike else 1, -1).T, order="F")
    offsets = np.array([0, len(x)]) if alike else data.offsets
    weights = data.weights[: len(x)]
    root = np.ones(len(x)) if (weights == 1.0).all() else np.sqrt(weights)
    return sums_at_once(x, y, root, offsets, shift=shift, n_threads=n_threads)


@dataclass
class GatheredFolds:
    """What all rows amount to, and for each fold the training rows and those held out.

    - `folds`: list of (Gathered, Gathered)
    - `readings`: Of the rows.
    """

    whole: Gathered
    folds: list[tuple[Gathered, Gathered]]
    readings: int = 1

    @classmethod
    def of(cls, parts: list[Gathered], readings: int = 1) -> GatheredFolds:
        """Given the parts of all folds and, last, that of the rows that none holds out."""
        *held, never = parts
        whole = Gathered(never.moments.copy(), never.shifts, never.label_shifts)
        for part in held:
            whole.moments.add(part.moments)
        left = leave_one_out([part.moments for part in held], never.moments)
        pairs = [
            (Gathered(others, part.shifts, part.label_shifts), part) for part, others in zip(held, left, strict=True)
        ]
        return cls(whole, pairs, readings)


def gather_folds(data: TaskData, fold: Array, n_folds: int, shift: bool, n_threads: int) -> GatheredFolds:
    """The same for folds, given that of each sample: `n_folds` for those that none holds out."""
    found = GatheredFolds.of(_read(data, shift, n_threads, None, fold, n_folds + 1))
    if not shift or found.whole.well_centred:
        return found
    return GatheredFolds.of(_read(data, shift, n_threads, found.whole.means(), fold, n_folds + 1), 2)


def one_matrix(data: TaskData) -> bool:
    """Whether all tasks see the very same rows: one Gram matrix serves them all."""
    if not data.shared or data.n_tasks == 1:
        return False
    return _alike(data.weights, data.n_tasks)


def _read(
    data: TaskData,
    shift: bool,
    n_threads: int,
    known: tuple[Array, Array] | None,
    fold: Array | None,
    n_cells: int,
) -> list[Gathered]:
    """The parts of the folds, or of all rows."""
    step, source = block_rows(data.n_features + 2), data.source
    assert source is not None
    if source.location == "cluster":
        alike = one_matrix(data) and (fold is None or _alike(fold, data.n_tasks))
        return sums_in_cluster(data, shift, known, fold, n_cells, alike)
    plain = bool(np.all(data.weights == 1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        if one_matrix(data) and (fold is None or _alike(fold, data.n_tasks)):
            shared = SharedSums(data.n_features, data.n_tasks, n_cells, shift=shift, n_threads=n_threads)
            if known is not None:
                shared.shift_by(known[0][0], known[1])
            labels = data.y.reshape(data.n_tasks, -1).T
            for positions, rows in source.blocks(step):
                chosen = slice(positions[0], positions[-1] + 1)
                own = None if fold is None else fold[chosen]
                shared.add(rows, labels[chosen], own, None if plain else data.weights[chosen])
            return [shared.gathered(cell) for cell in range(n_cells)]
        sums = RowSums(data.n_features, n_cells, shift=shift, n_threads=n_threads)
        sums.grow(data.n_tasks)
        if known is not None:
            sums.shift_by(*known)
        for positions, rows in source.blocks(step):
            if data.shared:
                for t in range(data.n_tasks):
                    flat = t * data.n_rows + positions
                    own = None if fold is None else fold[flat]
                    sums.add(rows, data.y[flat], np.full(len(flat), t), own, data.weights[flat])
                continue
            tasks = np.searchsorted(data.offsets, positions, side="right") - 1
            own = None if fold is None else fold[positions]
            sums.add(rows, data.y[positions], tasks, own, None if plain else data.weights[positions])
        return [sums.gathered(cell) for cell in range(n_cells)]


def _alike(fold: Array, n_tasks: int) -> bool:
    """Whether the rows of a shared matrix have the same fold, or the same weight, in all tasks."""
    by_task = fold.reshape(n_tasks, -1)
    return all(np.array_equal(own, by_task[0]) for own in by_task[1:])
