"""Nested folds that depend on the seed and the content of rows: not on their order, names of tasks, or form.

What is held out is a *unit*: a row, a whole group, or a row of a matrix that tasks share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..fitted.assess import units_of
from ..fitted.fold_assignment import NEVER, assign_groups
from ..tasks import TaskData
from .canonical import canonical

Array = np.ndarray[Any, Any]


class NestedFolds:
    """Assigns units to folds, any number of times; `unit` is that of each sample, in the order of their content."""

    def __init__(self, data: TaskData, groups: Any, seed: int) -> None:
        self._seed, self._observed = seed, data.weights > 0.0
        own = canonical(data)
        parts = sorted(range(len(own.rows)), key=lambda k: own.seeds[k])  # tasks in an order of their own
        rank = np.full(len(data.y), np.iinfo(np.int64).max)
        seen = 0
        for k in parts:
            for t in range(data.n_tasks) if data.shared else [k]:
                rank[own.rows[k] + (t * data.n_rows if data.shared else 0)] = seen + np.arange(len(own.rows[k]))
            seen += len(own.rows[k])
        self._words = [number for k in parts for number in own.seeds[k]]
        raw = units_of(data, groups)
        names, code = np.unique(raw, return_inverse=True)
        first = np.full(len(names), np.iinfo(np.int64).max)
        np.minimum.at(first, code, rank)
        position = np.empty(len(names), dtype=np.int64)
        position[np.argsort(first, kind="stable")] = np.arange(len(names))
        self.unit, self.n_units = position[code], len(names)
        codes = data.balance_codes
        classes = np.zeros(len(data.y), dtype=np.int64) if codes is None else codes
        task = data.task_of_sample
        if data.shared:
            order = np.arange(data.n_tasks)
        else:
            order = np.empty(data.n_tasks, dtype=np.int64)
            order[parts] = np.arange(data.n_tasks)
        self._strata = order[task] * (int(classes.max()) + 1) + classes
        counts = np.bincount(self.unit[self._observed], minlength=self.n_units)
        self._single = bool(counts.max(initial=0) <= 1)

    def assign(self, chosen: Array, n_folds: int, *key: int) -> Array:
        """The fold of each sample that is chosen, -1 for those never held out: without them a task could not be
        learned. `key` says which assignment it is."""
        inside = np.flatnonzero(chosen & self._observed)
        stream = np.random.default_rng([self._seed, *key, *self._words])
        fold = np.full(len(chosen), NEVER)
        if not len(inside):
            return fold
        if self._single:
            # in the order of units, then shuffled, then by stratum: each stratum is spread evenly over the folds
            rows = inside[np.argsort(self.unit[inside], kind="stable")]
            rows = stream.permutation(rows)
            rows = rows[np.argsort(self._strata[rows], kind="stable")]
            strata = self._strata[rows]
            rows = rows[np.bincount(strata)[strata] > 1]
            fold[rows] = (np.arange(len(rows)) + int(stream.integers(n_folds))) % n_folds
            return fold
        own, code = np.unique(self.unit[inside], return_inverse=True)
        of_unit = np.full(self.n_units, NEVER)
        _, strata = np.unique(self._strata[inside], return_inverse=True)
        of_unit[own] = assign_groups(strata, code, n_folds, int(stream.integers(2**31)))
        fold[chosen] = of_unit[self.unit[chosen]]
        return fold
