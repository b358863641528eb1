"""Folds of the rows of tasks, chunk after chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..design.sums import stable_order
from ..fitted.fold_assignment import NEVER, assign_task_rows
from ..tasks.fold_assigner import FoldAssigner

Array = np.ndarray[Any, Any]

# Rows whose folds are assigned in advance, as for a table in memory: a byte each. Of more rows folds are drawn as
# they come, and nothing is kept.
MOST_KEPT = 1 << 23


class ChunkFolds:
    """The folds in which rows are held out. Observed rows of each task and its position in the order of the labels are,
    with the seed, all that a task's folds depend on."""

    def __init__(self, counts: Sequence[int], positions: Sequence[int], n_folds: int, seed: int) -> None:
        self._counts = np.asarray(counts, dtype=np.int64)
        self.n_folds = n_folds
        self._kept = int(self._counts.sum()) <= MOST_KEPT
        self._gone = np.zeros(len(self._counts), dtype=np.int64)
        self._assigners: list[FoldAssigner] = []
        if self._kept:
            tasks = zip(counts, positions, strict=True)
            own = [assign_task_rows(int(count), position, n_folds, seed) for count, position in tasks]
            self._folds = np.concatenate(own) if own else np.empty(0, dtype=np.int8)
            self._starts = np.cumsum(self._counts) - self._counts
            self.words = f"{n_folds} folds, shuffled within tasks, seed {seed}"
        else:
            self._seeds = [[seed, position] for position in positions]
            self.words = f"{n_folds} folds, assigned within tasks as rows came, seed {seed}"
        self.rewind()

    def rewind(self) -> None:
        """Rows come from the beginning again."""
        self._gone[:] = 0
        if not self._kept:
            self._assigners = [FoldAssigner(self.n_folds, seed) for seed in self._seeds]

    @property
    def empty(self) -> int | None:
        """The first fold that holds out no row."""
        if not self._kept:
            return None  # every task of so many rows has one in each
        used = np.bincount(self._folds[self._folds != NEVER], minlength=self.n_folds) > 0
        return None if used.all() else int(np.argmin(used))

    def next(self, tasks: Array, live: Array) -> Array:
        """Of the next rows, given their tasks; those that are not `live` are in no fold and count for nothing."""
        found = np.full(len(tasks), NEVER, dtype=np.int64)
        rows = np.flatnonzero(live)
        own = tasks[rows]
        order = stable_order(own, len(self._counts))
        counts = np.bincount(own, minlength=len(self._counts))
        if self._kept:
            first = np.cumsum(counts) - counts
            at = np.arange(len(own)) + np.repeat(self._starts + self._gone - first, counts)
            assigned = self._folds[at].astype(np.int64)
        else:
            here = np.flatnonzero(counts)
            parts = [self._assigners[t].next(int(counts[t])) for t in here.tolist()]
            assigned = np.concatenate(parts) if parts else found[:0]
            assigned[np.repeat(self._counts[here] < 2, counts[here])] = NEVER  # there would be no training rows
        self._gone += counts
        found[rows[order]] = assigned
        return found
