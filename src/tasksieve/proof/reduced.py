"""A problem without some of its features, solved from its solution on: where dual points of a proof of need come from.

Nothing here is part of a proof. A residual that is not quite that of a solution is a dual point all the same, which
proves a little less (`need.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..design import Gauges
from ..path.choose import fastest
from ..path.engine import rows_of
from ..path.pair import Pair, Point, merged
from ..path.problem import Problem
from ..solvers import WorkingProblem
from .prove import BLOCK

Array = np.ndarray[Any, Any]

_NEAR, _ROOM = 0.8, 100  # gauges of features that may take the place of another, and how many beside twice the model's
_FIRST = 1e-3  # of the objective at W = 0: how well a reduced problem is solved first
_SHARE = 0.1  # of what the features are worth: how well it is solved in the end
_TRIES = 8
_COPY = 0.9  # the least correlation of near copies
_MOST_COPIES = 12


class ReducedProblems:
    """Solutions of a problem without some features.

    - `lam`, `features`, `rows`: Strength and coefficients of the model, in the units of the problem.
    """

    def __init__(self, problem: Problem, lam: float, features: Array, rows: Array, max_iter: int) -> None:
        self._problem, self._lam, self._max_iter = problem, lam, max_iter
        design, loss = problem.design, problem.loss
        self._penalty = penalty = problem.penalty.at(lam)
        self._strategy = fastest(problem)(problem)
        self._columns = columns = self._strategy.columns
        self.features = penalty.whole(np.setdiff1d(features, design.unpenalised))
        self._rows = design.scaled_units(self.features, rows_of(self.features, features, rows))
        own, positions = penalty.restrict(self.features), columns.positions(self.features)
        at = loss.settled(loss.evaluate(columns.combine(positions, self._rows)))
        self._value = at.value + own.total(self._rows)
        products = design.correlate(at.residual)
        gauges = np.empty(design.n_features)
        for piece in penalty.pieces(BLOCK):
            block = np.arange(design.n_features)[piece]
            gauges[block] = penalty.restrict(block).row_gauges(products[block])
        point = Point(self.features, self._rows, at, products[self.features])
        self._pair = Pair(lam, point, self._value, point, Gauges(gauges))
        near = np.flatnonzero(gauges >= _NEAR)
        near = near[np.argsort(-gauges[near], kind="stable")[: 2 * len(self.features) + _ROOM]]
        #: features that may take part
        self.working = penalty.whole(merged(self.features, near))

    def whole(self, features: Array) -> Array:
        """With all of the groups that they are in."""
        return self._penalty.whole(features)

    def units(self) -> list[Array]:
        """What can be left out: each feature of the model, or whole groups where these have one norm."""
        left, found = np.ones(len(self.features), dtype=bool), []
        for i, j in enumerate(self.features):
            if left[i]:
                found.append(self._penalty.whole(np.array([j])))
                left[np.isin(self.features, found[-1])] = False
        return found

    def residual(self, without: Array, working: Array) -> Array | None:
        """The dual point of the problem on the working features without some; None where a model without them is as
        good as this one."""
        loss, columns, strategy = self._problem.loss, self._columns, self._strategy
        kept = np.setdiff1d(working, without)
        if not len(kept):
            return loss.null.residual if loss.null.value > self._value else None
        own, rows = self._penalty.restrict(kept), rows_of(kept, self.features, self._rows)
        tol = _FIRST * loss.null.value
        for _ in range(_TRIES):
            positions = columns.positions(kept)
            here = WorkingProblem(columns, positions, own, loss, None, self._pair.primal.at.nuisance, None)
            solved = strategy.solve(here, rows, tol, strategy.patience(self._max_iter), self._pair, None, self._lam)
            at, rows = solved.evaluation, solved.rows
            if at is None:
                at = loss.evaluate(columns.combine(positions, rows), self._pair.primal.at.nuisance)
            worth = at.value + own.total(rows) - self._value
            if not worth > 0.0:
                return None
            if solved.gap <= _SHARE * worth or solved.gap > tol:  # done, or no solver does better
                break
            tol = 0.5 * _SHARE * worth
        assert at is not None
        if solved.dual_rows is not None:
            at = loss.evaluate(columns.combine(positions, solved.dual_rows), at.nuisance)
        if solved.dual is not None:
            at = replace(at, residual=solved.dual)
        return loss.settled(at).residual

    def copies(self, features: Array) -> Array:
        """Some features with their near copies among the working ones: those that are most alike, over all tasks."""
        columns, design, working = self._columns, self._problem.design, self.working
        positions = columns.positions(working)
        squares = np.square(design.norms(working)).sum(axis=1)
        found = features
        for j in features:
            at = int(np.searchsorted(working, j))
            column = columns.combine(positions[at : at + 1], np.ones((1, design.n_tasks)))
            alike = np.abs(columns.correlate(column, positions)).sum(axis=1)
            size = np.sqrt(squares * squares[at])
            share = np.divide(alike, size, out=np.zeros_like(alike), where=size > 0.0)
            best = np.argsort(-share, kind="stable")[: _MOST_COPIES + 1]
            found = merged(found, working[best[share[best] >= _COPY]])
        return self._penalty.whole(found)
