"""A problem without some of its features, solved from its solution on: where dual points of a proof of need come from.

Nothing here is part of a proof. A residual that is not quite that of a solution is a dual point all the same, which
proves a little less (`need.py`). Most are found on the inner products of the working features, the same for all that
are left out: exact for the squared loss, of the second-order model at the model's coefficients for smooth ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..design import ColumnBlock, Gauges, PackedColumns
from ..losses.rowwise import RowLossOnData
from ..path.choose import fastest
from ..path.engine import rows_of
from ..path.pair import Pair, Point, merged
from ..path.problem import Problem
from ..solvers import WorkingProblem
from ..solvers.coordinate import CoordinateDescent, descend, gram_matrices
from ..solvers.prox_newton import reweighted
from ..solvers.working import Needs
from .prove import BLOCK

Array = np.ndarray[Any, Any]

_NEAR, _ROOM = 0.8, 100  # gauges of features that may take the place of another, and how many beside twice the model's
_FIRST = 1e-3  # of the objective at W = 0: how well a reduced problem is solved first
_SHARE = 0.1  # of what the features are worth: how well it is solved in the end
_TRIES = 8
_COPY = 0.9  # the least correlation of near copies
_MOST_COPIES = 12
_FEW = 2000  # features that are read for each dual point by itself
_CLOSE = 0.03  # of what leaving features out costs at most: how well the second-order model is solved first
_CLOSER, _EPOCHS = 1e-2, 1000
_KEPT = 0.5  # of what a reduced problem's coefficients lack: a bound of so much is good enough


@dataclass
class Bound:
    """What models without some features lack at least, in public units and in double precision, and the dual point."""

    delta: float
    residual: Array


@dataclass
class _Model:
    """``1/2 ||target - X W||^2`` on the working features: the loss, or its second-order model."""

    columns: ColumnBlock
    plain: ColumnBlock  # the same without the roots
    root: Array  # of the second derivatives
    squares: Array
    target: Array
    sums: tuple[Array, Array, float]
    rows: Array  # those of the coefficients, and what the objective is there
    value: float


class ReducedProblems:
    """Solutions of a problem without some features.

    - `lam`, `features`, `rows`: Strength and coefficients of the model, in the units of the problem.
    """

    def __init__(self, problem: Problem, lam: float, features: Array, rows: Array, max_iter: int) -> None:
        self._problem, self._lam, self._max_iter = problem, lam, max_iter
        self._unit = problem.unit if problem.units is None else np.ldexp(problem.unit, -problem.units.f)
        design, loss = problem.design, problem.loss
        self._penalty = penalty = problem.penalty.at(lam)
        self._strategy = fastest(problem)(problem)
        self._columns = columns = self._strategy.columns
        self.features = penalty.whole(np.setdiff1d(features, design.unpenalised))
        self._rows = design.scaled_units(self.features, rows_of(self.features, features, rows))
        most = 2 * len(self.features) + _ROOM
        few = design.n_features <= most  # all of them take part, and are read at once
        working = penalty.whole(np.flatnonzero(penalty.penalised)) if few else self.features
        columns.positions(working)
        own, positions = penalty.restrict(self.features), columns.positions(self.features)
        at = loss.settled(loss.evaluate(columns.combine(positions, self._rows)))
        self._value = at.value + own.total(self._rows)
        if few:
            products = np.zeros((design.n_features, design.n_tasks))
            products[working] = columns.correlate(at.residual, columns.positions(working))
        else:
            products = design.correlate(at.residual)
        gauges = np.empty(design.n_features)
        for piece in penalty.pieces(BLOCK):
            block = np.arange(design.n_features)[piece]
            gauges[block] = penalty.restrict(block).row_gauges(products[block])
        point = Point(self.features, self._rows, at, products[self.features])
        self._pair = Pair(lam, point, self._value, point, Gauges(gauges))
        if not few:
            near = np.flatnonzero(gauges >= _NEAR)
            near = near[np.argsort(-gauges[near], kind="stable")[:most]]
            working = penalty.whole(merged(self.features, near))
        #: features that may take part
        self.working = working
        outside = np.ones(design.n_features, dtype=bool)
        outside[working] = False
        self._outside = np.flatnonzero(outside)

    @property
    def objective(self) -> float:
        """Of the coefficients, with the best intercepts, in public units."""
        return float((self._value + self._problem.loss.constant) / self._unit)

    def whole(self, features: Array) -> Array:
        """With all of the groups that they are in."""
        return self._penalty.whole(features)

    def units(self) -> list[Array]:
        """What can be left out: each feature of the model, or whole groups where these have one norm."""
        left, found = np.ones(self._problem.design.n_features, dtype=bool), []
        for j in self.features:
            if left[j]:
                found.append(self._penalty.whole(np.array([j])))
                left[found[-1]] = False
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

    @cached_property
    def _model(self) -> _Model | None:
        """None where the loss has no such model of ordinary columns, or the penalty no row updates; and where features
        are so many that they are better read for all dual points at once."""
        design, loss, columns, at = self._problem.design, self._problem.loss, self._columns, self._pair.primal.at
        if design.n_features > _FEW or design.shard.storage.costly_reads:
            return None
        needs = Needs(row_form=True, packed=True, quadratic="none")
        if needs.unmet(loss, self._penalty, isinstance(columns, PackedColumns)) or self._penalty.row_form() is None:
            return None
        positions = columns.positions(self.working)
        if not CoordinateDescent.prefers_gram(columns, len(positions)):
            return None
        rows = rows_of(self.working, self.features, self._rows)
        plain = ColumnBlock(columns.x[:, positions], columns.offsets, columns.shared, columns.n_threads)
        if loss.squared:
            root, right, block = np.ones(design.n_samples), at.residual, plain
            squares = columns.squared_norms[positions]
        elif isinstance(loss, RowLossOnData) and loss.has_slope and loss.curved and at.second is None:
            assert at.curvature is not None
            root = np.sqrt(np.maximum(at.curvature, loss.least_curvature))
            x, squares, right = reweighted(columns, positions, root, at.residual)
            block = ColumnBlock(x, columns.offsets, False, columns.n_threads)
        else:
            return None
        every = np.arange(len(positions))
        target = right + block.combine(every, rows)
        value = 0.5 * float(right @ right) + self._penalty.restrict(self.working).value(rows)
        products = np.ascontiguousarray(block.correlate(target, every).T)
        sums = gram_matrices(block.x, block), products, float(target @ target)
        return _Model(block, plain, root, squares, target, sums, rows, value)

    def bounds(self, without: Sequence[Array]) -> list[Bound | None]:
        """What models without each of some sets of features lack, by the second-order model; None where that says too
        little."""
        model, found = self._model, list[Bound | None]([None] * len(without))
        if model is None or not without:
            return found
        gone = np.array([self._among_working(features) for features in without])
        rows = np.where(gone[:, :, None], 0.0, model.rows)
        lost = np.sum(model.squares * np.square(model.rows), axis=1)
        tols = 0.5 * _CLOSE * (gone @ lost)
        asked = np.flatnonzero(~gone.all(axis=1))
        for _ in range(2):
            if not len(asked):
                break
            for i in asked:
                self._descend(model, np.flatnonzero(~gone[i]), rows[i], tols[i])
            for i, bound in zip(asked, self._bounds(model, gone[asked], rows[asked]), strict=True):
                found[i] = bound
            asked = np.array([i for i in asked if found[i] is None], dtype=np.int64)
            tols *= _CLOSER
        return found

    def _among_working(self, features: Array) -> Array:
        """Which of the working features these are."""
        among = np.zeros(self._problem.design.n_features, dtype=bool)
        among[features] = True
        return among[self.working]

    def _descend(self, model: _Model, kept: Array, rows: Array, tol: float) -> None:
        """Solve the second-order model on some of its columns, from given rows of all of them on."""
        own, part = self._penalty.restrict(self.working[kept]), rows[kept]
        form = own.row_form()
        assert form is not None
        state = np.empty(model.sums[1].size)
        descend(model.columns, kept, model.squares[kept], form, own, part, state, _EPOCHS, tol, model.sums)
        rows[kept] = part

    def _bounds(self, model: _Model, gone: Array, rows: Array) -> list[Bound | None]:
        """The same at given rows of the model's columns, (sets, columns, tasks): all residuals, and their products with
        all columns, in one matrix product a task."""
        loss, penalty = self._problem.loss, self._penalty
        left = model.columns.combine_many(rows)
        np.subtract(model.target, left, out=left)
        halves = 0.5 * np.einsum("ij,ij->i", left, left)
        at = self._pair.primal.at
        if loss.squared:  # labels and columns are projected: so is what is left of them
            points = [replace(at, value=float(half), residual=own) for half, own in zip(halves, left, strict=True)]
            along, duals = rows, left
        else:  # in the dual ball, in which the loss's own residual at these rows is not
            assert isinstance(loss, RowLossOnData)
            points = [loss.settled(replace(at, residual=loss.inside(model.root * own))) for own in left]
            along, duals = model.rows[None], np.array([point.residual for point in points])
        products = model.plain.correlate_many(duals)
        here, others = penalty.restrict(self.working), penalty.restrict(self._outside)
        pulls = np.sum(products * along, axis=(1, 2))
        found = list[Bound | None]()
        for i, point in enumerate(points):
            polar = here.polar(np.where(gone[i], 0.0, here.row_gauges(products[i])))
            if len(self._outside):
                beyond = others.row_gauges(self._problem.design.correlate(point.residual, self._outside))
                polar = max(polar, others.polar(beyond))
            scale = min(1.0, 1.0 / polar) if polar > 0.0 else 1.0
            worth = halves[i] + here.value(rows[i]) - model.value
            delta = point.value - self._value - loss.terms(point, scale) + scale * pulls[i]
            enough = delta >= _KEPT * worth > 0.0
            found.append(Bound(float(delta) / self._unit, point.residual) if enough else None)
        return found

    def copies(self, features: Array) -> Array:
        """Some features with their near copies among the working ones: those that are most alike, over all tasks."""
        found = features
        for j in features:
            share = self._alike(int(np.searchsorted(self.working, j)))
            best = np.argsort(-share, kind="stable")[: _MOST_COPIES + 1]
            found = merged(found, self.working[best[share[best] >= _COPY]])
        return self._penalty.whole(found)

    def _alike(self, at: int) -> Array:
        """Absolute correlations of a working feature with all of them, over all tasks; those of the second-order model,
        where there is one."""
        if self._model is not None:
            alike, squares = self._products
            alike = alike[at]
        else:
            columns, design, working = self._columns, self._problem.design, self.working
            positions = columns.positions(working)
            squares = np.square(design.norms(working)).sum(axis=1)
            column = columns.combine(positions[at : at + 1], np.ones((1, design.n_tasks)))
            alike = np.abs(columns.correlate(column, positions)).sum(axis=1)
        size = np.sqrt(squares * squares[at])
        return np.divide(alike, size, out=np.zeros_like(alike), where=size > 0.0)

    @cached_property
    def _products(self) -> tuple[Array, Array]:
        """Inner products of the model's columns, absolute and over all tasks, and squares."""
        assert self._model is not None
        found = np.abs(self._model.sums[0]).sum(axis=0)
        return found, found.diagonal()
