"""The engine: at each strength screen, solve on a working set, certify on all features, go on.

Each value stops on its own duality gap over all features. The data are touched rarely: columns are read once when they
enter the working set, and the certificate reads only those columns that bounds from past passes leave open
(`certificate`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design import PackedColumns
from ..penalties import RowPenalty, row_norms
from ..screening.rules import NoScreening, Rule
from ..solvers import (
    CoordinateDescent,
    ProximalNewton,
    Solution,
    VariationalNewton,
    WorkingProblem,
    accelerated_proximal_gradient,
)
from ..solvers.accelerated import lipschitz_constant
from .anchors import AnchoredCorrelations
from .problem import Problem
from .sieve import Iterate, Sieve

Array = np.ndarray[Any, Any]

_FEW_FEATURES = 256  # so few features are all taken into the working set at once
_TOUCH_FRACTION = 0.08  # more open bounds than this part of the features: make a full pass
_ROUNDING = 1e-14  # of the target's size
_MAX_ROUNDS = 200  # of growing the working set at one value; a dozen is usual at a cold start
# Operations a second, as orders of magnitude: they only weigh the two solvers' counted work against each other, and
# being constants they keep the choice reproducible.
_COORDINATE_RATE = 2.5e9
_NEWTON_RATE = 4e10
_TRIFLE = 1e7  # operations not worth weighing
_PATIENCE = 100  # epochs after which coordinate descent is weighed against Newton's method

SOLVERS = ("auto", "cd", "newton", "prox-newton", "apgd")


@dataclass
class Point:
    """One value of the path, in sum units; rows are coefficients of the raw columns."""

    lam: float
    features: Array
    rows: Array
    intercept: Array
    objective: float
    dual_gap: float
    n_iter: int
    n_rejected: int
    n_rejected_dynamic: int
    seconds: float
    converged: bool
    residual_norms: Array | None = None  # of each task, where the loss is made of them
    n_rejected_entries: int = 0  # coefficients of the rows solved for, proven zero before the last solve


def make_point(
    problem: Problem,
    columns: Any,
    lam: float,
    features: Array,
    rows: Array,
    nuisance: Array,
    objective: float,
    gap: float,
    goal: float,
    counts: tuple[int, int, int],
    began: float,
) -> Point:
    """A finished value in the units of the raw columns; `counts` are iterations and rows rejected before and during."""
    design, null = problem.design, problem.loss.null.value
    rows = design.original_units(features, rows)
    intercept, extra = problem.intercepts(rows, columns.loadings(columns.places(features)), nuisance)
    if len(design.unpenalised):
        features = np.concatenate([features, design.unpenalised])
        rows = np.vstack([rows, extra])
    # A computed gap of zero is no proof of exactness: never below the rounding of the objective.
    gap = max(gap, 1e-15 * null)
    seconds, converged = time.perf_counter() - began, bool(gap <= max(goal, 1e-15 * null))
    return Point(lam, features, rows, intercept, objective, gap, *counts, seconds, converged)


class Engine:
    """The state that is carried from one strength to the next."""

    solvers: tuple[str, ...] = SOLVERS

    def __init__(
        self,
        problem: Problem,
        rule: Rule,
        solver: str,
        working_set: bool,
        lazy: bool,
        max_iter: int,
        single: bool,
        start: tuple[Array, Array] | None,
    ) -> None:
        self.problem = problem
        self.design = problem.design
        self.loss = problem.loss
        self.working_set = working_set
        self._lazy = lazy
        self.max_iter = max_iter
        self.wrong_rejections = 0
        self.packed = PackedColumns(self.design)
        self._unit = problem.shape.at(1.0)
        products = problem.null_products()
        self.levels = self._unit.gauges(
            products
        )  # lam at which each feature reaches its threshold, an estimate
        self.lam_max = float(np.max(self.levels, initial=0.0))
        self._all_in = self.design.n_features <= _FEW_FEATURES
        self._anchors: AnchoredCorrelations | None = None
        self._sieve: Sieve | None = None
        screens = not isinstance(rule, NoScreening) and not single and self.lam_max > 0.0
        if not self._all_in or screens:
            self._anchors = AnchoredCorrelations(self.design, capacity=5 if self.design.n_tasks > 1 else 16)
            self._anchors.add(self.loss.null.residual, products)
            if screens:
                self._sieve = self._make_sieve(rule, products)
        self.current = self._latest = self._empty_iterate(self.lam_max)
        self._n_zero_entries = 0
        self.previous: Iterate | None = None
        self._guess = start
        self._choose_solvers(solver)
        problem.forget_null_products()

    def _make_sieve(self, rule: Rule, products: Array) -> Sieve:
        assert self._anchors is not None
        return Sieve(self.problem, rule, self.packed, self._anchors, products)

    def _empty_iterate(self, lam: float) -> Iterate:
        """W = 0 at a strength."""
        empty, none = np.empty((0, self.design.n_tasks)), np.empty(0, dtype=np.int64)
        return Iterate(lam, none, empty, self.loss.null, empty, self.lam_max)

    # -- one value ------------------------------------------------------------------------------------------------

    def step(self, lam: float, goal: float) -> Point:
        began = time.perf_counter()
        self._n_zero_entries = 0
        penalty = self.problem.shape.at(lam)
        rejected = np.zeros(self.design.n_features, dtype=bool)
        if self._sieve is not None:
            rejected = self._sieve.before(self.current, lam, penalty)
        n_rejected, n_dynamic = int(np.count_nonzero(rejected)), 0
        if lam >= self.lam_max:
            iterate, gap, iterations = self._null_iterate(lam, penalty)
        else:
            working, rows = self._first_working_set(lam, rejected)
            self._latest = self.current
            iterations, gap, inner, rounds = 0, np.inf, 0.8 * goal, 0
            while True:
                allowed = self._patience(self.max_iter - iterations)
                asked = self._accuracy(lam, inner, gap)
                solved = self._solve(lam, working, rows, penalty, asked, allowed)
                iterations += solved.n_iter
                iterate, gap, violators = self._certify(lam, penalty, working, solved)
                self._latest = iterate
                if gap <= goal or iterations >= self.max_iter:
                    break
                if self._sieve is not None and self._sieve.rule.safe:
                    fresh = self._sieve.during(iterate, penalty) & ~rejected
                    n_dynamic += int(np.count_nonzero(fresh))
                    rejected |= fresh
                    violators = violators[~rejected[violators]]
                elif len(violators):
                    self.wrong_rejections += int(np.count_nonzero(rejected[violators]))
                    rejected[violators] = False  # counted once
                if len(violators):
                    working, rows = self._grow(working, solved.rows, violators)
                    rounds += 1
                    if rounds > _MAX_ROUNDS:
                        break
                    continue
                rows = solved.rows
                if solved.gap <= inner:
                    # Solved as asked, yet the gap over all features is too large: ask for more.
                    inner = min(0.2 * inner, 0.2 * solved.gap) if solved.gap > 0.0 else 0.1 * inner
                    if inner < 1e-17 * self.loss.null.value:
                        break
                elif solved.gap > asked and solved.n_iter < allowed:
                    break  # the solver has reached its limits
        self.previous, self.current = self.current, iterate
        point = self._point(lam, penalty, iterate, gap, goal, iterations, n_rejected, n_dynamic, began)
        point.n_rejected_entries = self._n_zero_entries
        return point

    def _accuracy(self, lam: float, inner: float, gap: float) -> float:
        """How well to solve on the working set, given the last gap over all features."""
        return inner

    def _null_iterate(self, lam: float, penalty: RowPenalty) -> tuple[Iterate, float, int]:
        iterate = self._empty_iterate(lam)
        gap, _ = iterate.gap(self.loss, lam, penalty)
        if self._anchors is not None:
            self._anchors.stand_at(0)
        return iterate, gap, 0

    def _point(
        self,
        lam: float,
        penalty: RowPenalty,
        iterate: Iterate,
        gap: float,
        goal: float,
        iterations: int,
        n_rejected: int,
        n_dynamic: int,
        began: float,
    ) -> Point:
        objective = iterate.at.value + penalty.restrict(iterate.features).value(iterate.rows)
        counts = (iterations, n_rejected, n_dynamic)
        return make_point(
            self.problem,
            self.packed,
            lam,
            iterate.features,
            iterate.rows,
            iterate.at.nuisance,
            objective,
            gap,
            goal,
            counts,
            began,
        )

    # -- working sets ---------------------------------------------------------------------------------------------

    def _first_working_set(self, lam: float, rejected: Array) -> tuple[Array, Array]:
        guessed, guess = self._predict(lam)
        keep = ~rejected[guessed]
        guessed, guess = guessed[keep], guess[keep]
        if self._all_in or not self.working_set:
            chosen = np.flatnonzero(~rejected & (self._unit.group + self._unit.l1 > 0.0))
        else:
            last = self.current.lam
            # Features that would cross their threshold if correlations moved at 0.7 of the largest possible rate.
            level = last - 0.7 * (last - lam)
            chosen = np.flatnonzero((self.levels >= level) & ~rejected)
            room = max(500, 2 * len(self.current.features))
            if len(chosen) > room:
                strongest = np.argpartition(self.levels[chosen], -room)[-room:]
                chosen = np.sort(chosen[strongest])
        working = np.union1d(chosen, guessed)
        rows = np.zeros((len(working), self.design.n_tasks))
        rows[np.searchsorted(working, guessed)] = guess
        return working, rows

    def _predict(self, lam: float) -> tuple[Array, Array]:
        """Start of a value: the secant of the last two solutions, linear in lam.

        The accelerated gradient method starts from the last solution, as it does in the papers it stands for.
        """
        now, before = self.current, self.previous
        if self._guess is not None:
            guess, self._guess = self._guess, None
            return guess
        if before is None or before.lam == now.lam or len(now.features) == 0 or self._solver == "apgd":
            return now.features, now.rows
        theta = (lam - now.lam) / (now.lam - before.lam)
        old = np.zeros_like(now.rows)
        _, here, there = np.intersect1d(now.features, before.features, return_indices=True)
        old[here] = before.rows[there]
        if self._uses_newton:  # only the row norms matter to it
            sizes, old_sizes = row_norms(now.rows), row_norms(old)
            factor = np.maximum(1.0 + theta * (1.0 - old_sizes / sizes), 0.0)
            return now.features, now.rows * factor[:, None]
        rows = now.rows + theta * (now.rows - old)
        if self.problem.shape.positive:
            rows = np.maximum(rows, 0.0)
        rows[np.einsum("ij,ij->i", rows, now.rows) <= 0.0] = 0.0
        if self.problem.shape.has_l1:  # entries leave one by one
            rows[rows * now.rows <= 0.0] = 0.0
        return now.features, rows

    def _grow(self, working: Array, rows: Array, violators: Array) -> tuple[Array, Array]:
        room = max(100, int(np.count_nonzero(rows.any(axis=1))))
        grown = np.union1d(working, violators[:room])
        larger = np.zeros((len(grown), rows.shape[1]))
        larger[np.searchsorted(grown, working)] = rows
        return grown, larger

    # -- solving --------------------------------------------------------------------------------------------------

    def _choose_solvers(self, solver: str) -> None:
        shape, squared = self.problem.shape, self.problem.squared
        if solver == "auto":
            solver = "cd" if squared else "prox-newton"
            plain = not shape.has_l1 and not shape.positive
            self._may_switch = squared and plain
        else:
            self._may_switch = False
        if solver in ("cd", "newton") and not squared:
            raise ValueError(
                f"solver={solver!r} is for the squared loss; use 'prox-newton', 'apgd' or 'auto'"
            )
        if solver == "prox-newton" and squared:
            raise ValueError("solver='prox-newton' is for other losses than the squared one; use 'auto'")
        if solver == "newton" and (shape.has_l1 or shape.positive):
            raise ValueError(
                "solver='newton' is for the group penalty without l1 and positivity; use 'cd' or 'auto'"
            )
        self._solver = solver
        self._coordinate = CoordinateDescent()
        self._newton = VariationalNewton(self.packed) if solver == "newton" else None
        self._prox_newton = ProximalNewton(self.packed) if solver == "prox-newton" else None
        self._costly = self._interrupted = 0
        self._curvature: tuple[Array, float] | None = None

    @property
    def _uses_newton(self) -> bool:
        return self._solver == "newton"

    def _solve(
        self, lam: float, working: Array, rows: Array, penalty: RowPenalty, tol: float, max_iter: int
    ) -> Solution:
        places = self.packed.places(working)
        zero = self._zero_entries(lam, working, penalty)
        if zero is not None:
            rows[zero] = 0.0
        here = WorkingProblem(self.packed, places, penalty.restrict(working), self.loss, zero)
        if self._solver == "newton":
            assert self._newton is not None
            if self._newton.fits(int(np.count_nonzero(rows.any(axis=1)))):
                return self._newton.solve(here, rows, tol, max_iter)
        if self._solver == "prox-newton":
            assert self._prox_newton is not None
            return self._prox_newton.solve(here, rows, tol, max_iter, self.current.at.nuisance)
        if self._solver == "apgd":
            shrink = None
            if self._sieve is not None and self._sieve.rule.safe:
                shrink = self._sieve.shrinker(lam, working, penalty)
            if self._curvature is None or not np.array_equal(self._curvature[0], working):
                self._curvature = (working, lipschitz_constant(self.packed, places))
            return accelerated_proximal_gradient(
                here, rows, tol, max_iter, curvature=self._curvature[1], shrink=shrink
            )
        solved = self._coordinate.solve(here, rows, tol, max_iter)
        if self._may_switch:
            self._weigh(solved)
        return solved

    def _zero_entries(self, lam: float, working: Array, penalty: RowPenalty) -> Array | None:
        """Entries of the working rows that the latest pair proves to be zero at this strength."""
        if self._sieve is None or not self._sieve.rule.safe or not penalty.has_l1 or self._solver == "apgd":
            return None
        entries = self._sieve.zero_entries(self._latest, lam, penalty)
        zero = np.zeros((len(working), self.design.n_tasks), dtype=bool)
        _, here, there = np.intersect1d(
            working, self._latest.features, assume_unique=True, return_indices=True
        )
        zero[here] = entries[there]
        self._n_zero_entries = int(np.count_nonzero(zero))
        return zero if self._n_zero_entries else None

    def _patience(self, remaining: int) -> int:
        """Iterations for one call: coordinate descent is interrupted now and then to weigh it against Newton."""
        return min(remaining, _PATIENCE) if self._may_switch and self._solver == "cd" else remaining

    def _weigh(self, solved: Solution) -> None:
        """Moves to Newton's method for good when coordinate descent costs more twice running, or does not get on."""
        self._interrupted = self._interrupted + 1 if solved.n_iter >= _PATIENCE else 0
        if self._interrupted >= 3:
            self._solver = "newton"
            self._newton = self._newton or VariationalNewton(self.packed)
            return
        if self._coordinate.work < _TRIFLE or self.design.n_tasks == 1:
            return
        if self._newton is None:
            self._newton = VariationalNewton(self.packed)
        support = int(np.count_nonzero(solved.rows.any(axis=1)))
        newton = 1.6 * self._newton.step_work(support) / (_NEWTON_RATE * self.design.n_threads)
        costly = self._coordinate.work / _COORDINATE_RATE > newton
        self._costly = self._costly + 1 if costly else 0
        if self._costly >= 2:
            self._solver = "newton"

    # -- certificate ----------------------------------------------------------------------------------------------

    def _certify(
        self, lam: float, penalty: RowPenalty, working: Array, solved: Solution
    ) -> tuple[Iterate, float, Array]:
        """The gap over all features, and the features that stand in its way, worst first."""
        places = self.packed.places(working)
        live = np.flatnonzero(solved.rows.any(axis=1))
        here = WorkingProblem(self.packed, places, penalty.restrict(working), self.loss)
        at = solved.evaluation
        if at is None:
            self._clear_rounding(working, solved.rows)
            live = np.flatnonzero(solved.rows.any(axis=1))
            at = here.evaluate(solved.rows, self.current.at.nuisance)
        products = solved.products
        if products is None:
            products = self.packed.correlate(at.residual, places)
        augmented = products - penalty.ridge * solved.rows if penalty.ridge else products
        own = here.penalty.gauges(augmented)
        violators = np.empty(0, dtype=np.int64)
        outside = 0.0
        complete = len(working) == int(np.count_nonzero(self._unit.group + self._unit.l1))
        if complete and self._sieve is None:
            self.levels[working] = own * lam
        else:
            outside, violators = self._outside(lam, penalty, working, at.residual)
            self.levels[working] = own * lam
        # The rows of W that are zero add nothing but their gauges.
        inactive = float(np.max(np.delete(own, live), initial=0.0))
        others = max(outside, inactive)
        iterate = Iterate(lam, working[live], solved.rows[live], at, products[live], others * lam)
        gap, _ = iterate.gap(self.loss, lam, penalty)
        return iterate, gap, violators

    def _clear_rounding(self, working: Array, rows: Array) -> None:
        """Rows whose whole effect is below the rounding of the target become zero, before anything is certified.

        Of two equal columns a solver may leave one with a coefficient that is nothing but rounding.
        """
        effects = row_norms(rows) * np.max(self.design.norms()[working], axis=1, initial=0.0)
        rows[effects <= _ROUNDING * np.sqrt(2.0 * self.loss.null.value)] = 0.0

    def _outside(
        self, lam: float, penalty: RowPenalty, working: Array, residual: Array
    ) -> tuple[float, Array]:
        """Largest gauge outside the working set (bounded by 1 where it was not measured), and the violators."""
        assert self._anchors is not None
        estimate, upper = self._anchors.ratios(self._anchors.follow(residual), penalty)
        upper[working] = 0.0
        np.multiply(estimate, lam, out=self.levels)
        touch = np.flatnonzero(upper >= 1.0)
        largest = 1.0 if len(working) < self.design.n_features else 0.0
        if self._lazy and len(touch) == 0:
            return largest, touch
        if not self._lazy or len(touch) > max(64, _TOUCH_FRACTION * self.design.n_features):
            products = self.design.correlate(residual)
            products[self.design.unpenalised] = 0.0
            self._anchors.add(residual, products)
            self._anchors.stand_at(len(self._anchors) - 1)
            gauges = penalty.gauges(products)
            np.multiply(gauges, lam, out=self.levels)
            gauges[working] = 0.0
            touch = np.flatnonzero(gauges > 1.0)
            values = gauges[touch]
            largest = float(np.max(gauges, initial=0.0))
        else:
            values = penalty.restrict(touch).gauges(self.design.correlate(residual, touch))
            self.levels[touch] = values * lam
            largest = max(largest, float(np.max(values)))
        over = values > 1.0
        order = np.argsort(-values[over])
        return largest, touch[over][order]
