"""A whole path of a small problem whose loss is smooth: one compiled call for many values, one certificate for all.

The compiled walk (`smooth_path.cpp`) is Newton's method with the penalty kept, on packed columns. Its models are
Gram matrices under the second derivatives of the loss, made anew only where the last one leaves too much of the gap.
What is stored is then certified, all values of a block together (`certified_block`). Where the walk does not get on, or
a certificate falls short of its goal, it ends, and the engine goes on from its last value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._kernels import kernels
from ..design import PackedColumns
from ..losses.logistic import Logistic
from ..losses.poisson import Poisson
from ..losses.rowwise import RowLossOnData
from ..penalties.sparse_group import SparseGroup, is_sparse_group
from .certificate import stored_solution
from .certified_block import CertifiedBlock
from .policy import smooth_walk_pays
from .problem import Problem
from .values import Value, Values

Array = np.ndarray[Any, Any]

_KINDS = {Logistic: 0, Poisson: 1}  # as the kernel knows them
_DONE, _PAUSED = 0, 1  # why the kernel returns, unless the walk is at its end
_ENOUGH = 0.95  # of the goal: what storing the numbers adds still fits
_BUDGET = 5e8  # multiplications in one call: between calls there is time for progress and interrupts
_BLOCK = 1 << 17  # numbers of an array with a row a value: more of them leave the processor's cache
_ENTRIES = 1 << 21  # of the Gram matrices of features in play
_PATIENCE = 1000  # epochs at one value, after which the engine has better means


class SmoothWalk:
    """Strengths one after the other, on packed columns."""

    def __init__(self, problem: Problem, loss: RowLossOnData, penalty: SparseGroup) -> None:
        design = problem.design
        self._loss, self._design = loss, design
        self._features = np.flatnonzero(penalty.penalised)
        self._penalty = penalty.restrict(self._features)
        self._columns = PackedColumns(design)
        self._positions = self._columns.positions(self._features)
        self._block = CertifiedBlock(loss, self._columns, self._features)
        self._ended = False
        labels, _, offset = loss.rows
        room = int((_ENTRIES / design.n_tasks) ** 0.5)
        self._path = kernels.SmoothPath(
            self._columns.x, design.offsets, self._columns.shared, design.samples.root, labels, offset,
            design.fit_intercept, _KINDS[type(loss.of)], self._penalty.group, self._penalty.l1, penalty.positive, room,
        )  # fmt: skip

    def values(self, lams: Array, goals: Array, max_iter: int) -> Sequence[Value]:
        """The first of these strengths, as many as one call solves; none where the walk has come to its end."""
        if self._ended:
            return []
        lams, goals = np.ascontiguousarray(lams, dtype=np.float64), np.asarray(goals, dtype=np.float64)[: len(lams)]
        found = self._path.advance(lams, _ENOUGH * goals, min(max_iter, _PATIENCE), _BUDGET)
        stop, (_, seconds, epochs, counts), positions, rows, levels = found
        self._ended = stop not in (_DONE, _PAUSED)
        count = len(levels)
        if not count:
            return []
        ends = counts.astype(np.int64).cumsum()
        places = np.split(positions, ends[:-1])
        parts = zip(places, np.split(rows, ends[:-1]), levels, strict=True)
        loss, design = self._loss, self._design
        numbers = [
            stored_solution(
                loss, self._columns, self._positions[place], self._features[place], own,
                level[None] if design.fit_intercept else np.empty((0, design.n_tasks)),
            )
            for place, own, level in parts
        ]  # fmt: skip
        penalties = [self._penalty.at(float(lam)) for lam in lams[:count]]
        step = max(1, _BLOCK // design.n_samples)
        blocks = [slice(first, first + step) for first in range(0, count, step)]
        found = [self._block.certify(numbers[own], penalties[own], places[own]) for own in blocks]
        objective, gaps, rejected = (np.concatenate(column) for column in zip(*found, strict=True))
        reached = gaps <= goals[:count]
        values = Values(
            {
                "lam": lams[:count],
                "objective": objective + loss.constant,
                "dual_gap": gaps,
                "n_iter": epochs.astype(np.int64),
                "n_rejected": rejected,
                "n_working": len(self._features) - rejected,
                "seconds": seconds,
                "converged": reached,
                "algorithm": np.full(count, "prox-newton"),
            },
            ends,
            self._features[positions],
            np.concatenate([own.rows for own in numbers]),
            np.array([own.intercept for own in numbers]),
            np.empty(0, dtype=np.int64),
            np.empty((count, 0, design.n_tasks)),
        )
        if reached.all():
            return values
        self._ended = True  # numbers as they are stored fall short of the goal
        return values.first(int(np.argmin(reached)))


def smooth_walk(problem: Problem) -> SmoothWalk | None:
    """The walk along a problem's path; None where it is no such problem, or none so small."""
    design, loss, penalty = problem.design, problem.loss, problem.penalty
    if not isinstance(loss, RowLossOnData) or type(loss.of) not in _KINDS or not is_sparse_group(penalty):
        return None
    if penalty.curved or design.n_nuisance != int(design.fit_intercept) or loss.diverges or design.sparse:
        return None
    storage = design.shard.storage
    if storage.shard_class is not None or storage.sparse or not problem.lambda_max() > 0.0:
        return None
    rows = design.n_rows if design.uniform else design.n_samples
    features = design.n_features - len(design.unpenalised)
    if not smooth_walk_pays(rows, design.n_samples, features) or not design.finite:
        return None
    return SmoothWalk(problem, loss, penalty)
