"""The engine for the calibrated model: the same loop with its own solvers, its own dual point, its own screening.

The loss is not smooth, so the dual point is not read off the residual: the variational Newton method and the dual
methods deliver it. Everything else (working sets, certificates through anchored correlations, the secant start) is the
engine's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..losses import Evaluation, SquareRoot
from ..penalties import RowPenalty
from ..screening.calibrated import direction_ball
from ..screening.rules import Rule
from ..solvers.calibrated import (
    CalibratedSolution,
    best_multiple,
    correlation_sizes,
    primal_dual,
)
from ..solvers.calibrated_dual import dual_first_order
from ..solvers.calibrated_history import History, Record
from ..solvers.calibrated_newton import CalibratedNewton, ReducedNewton
from ..solvers.calibrated_primal import alternating_directions, smoothed_first_order
from ..solvers.working import Solution, WorkingProblem
from .anchors import Anchored, AnchoredCorrelations
from .engine import Engine, Point
from .problem import Problem
from .sieve import Iterate, Sieve

Array = np.ndarray[Any, Any]

#: the paper's five, for study
PUBLISHED = ("d-pg", "d-fista", "p-spg", "p-sfista", "p-admm")
SOLVERS = ("auto", "newton", *PUBLISHED)

_LOOSE = 0.1  # of the gap over all features: how well a growing working set is solved at a cold start
_REJECT = 1.0 - 1e-9
# Seconds, as orders of magnitude: they only weigh first-order iterations against Newton steps, and being constants they
# keep the choice reproducible.
_PRODUCT_RATE = 2.5e9
_NEWTON_RATE = 2e10
_OVERHEAD = 1.5e-4
_NEWTON_STEPS = 8.0  # that Newton's method takes from a cold start
_LOOK_BACK = 20  # first-order iterations over which their rate is measured
_CONTINUATION = ((5, 1e-3), (12, 1e-3))  # values on the way from lam_max, and their tolerance


@dataclass
class CalibratedIterate(Iterate):
    """`at.residual` is the dual point u, before scaling; `noise` the norms of the residuals."""

    noise: Array = field(default_factory=lambda: np.empty(0))
    residual: Array = field(default_factory=lambda: np.empty(0))
    pair_gap: float = np.inf


class CalibratedSieve(Sieve):
    """Screening by the directions of the residuals (`screening.calibrated`), on all features through the anchors."""

    def __init__(
        self,
        problem: Problem,
        rule: Rule,
        anchors: AnchoredCorrelations,
        lam_max: float,
        predict: Callable[[float], CalibratedIterate | None],
        lazy: bool,
    ) -> None:
        self.rule = rule
        self._predicted, self._lazy = predict, lazy
        self._problem, self._design, self._loss = problem, problem.design, problem.loss
        self._anchors = anchors
        unit = problem.shape.at(1.0)
        self._penalised = unit.group + unit.l1 > 0.0
        self._lam_max = lam_max
        self._reach: float | None = None  # the least max_t ||x_jt||/u_j

    def before(self, last: Iterate, lam: float, penalty: RowPenalty) -> Array:
        """Rows that are zero at a new strength: from the pair of the last one.

        Where a pass a value is allowed (not `lazy`), also from the pair that the secant predicts, which is nearer.
        """
        if lam >= self._lam_max:
            return self._penalised.copy()
        assert isinstance(last, CalibratedIterate)
        pairs = [last]
        guess = None if self._lazy else self._predicted(lam)
        if guess is not None:
            pairs.append(guess)
        mask = np.zeros(self._design.n_features, dtype=bool)
        standing = self._anchors.current
        for pair in pairs:
            if not self._hopeful(pair, penalty):
                continue
            if pair is guess:
                self._measure(pair)
            pair.pair_gap = self._gap(pair, penalty)
            mask |= self._rejects(pair, lam, penalty)
            self._anchors.current = standing
        self.rule.sequential_counts.append(int(np.count_nonzero(mask)))
        return mask

    def _hopeful(self, iterate: CalibratedIterate, penalty: RowPenalty) -> bool:
        """Whether the rule could reject anything if no feature outside the support stood in the way of the gap."""
        loss = self._loss
        own = penalty.restrict(iterate.features)
        gap = self._pair_gap(iterate, own, correlation_sizes(own, iterate.products), own.group)
        ball = direction_ball(iterate.noise, gap, loss.null.value)
        if not ball.bounded.any():
            return False
        if self._reach is None:
            norms = self._design.norms()
            norms = norms[:, 0] if self._design.uniform else norms.max(axis=1)
            unit = self._problem.shape.weights
            self._reach = float(np.min(norms[unit > 0.0] / unit[unit > 0.0], initial=np.inf))
        lam = float(penalty.group[self._penalised][0] / self._problem.shape.weights[self._penalised][0])
        return ball.radius * float(np.min(ball.stretch[ball.bounded])) * self._reach < lam

    def _measure(self, pair: CalibratedIterate) -> None:
        """A full pass: the pair becomes an anchor."""
        products = self._design.correlate(pair.at.residual)
        products[self._design.unpenalised] = 0.0
        self._anchors.add(pair.at.residual, products)
        self._anchors.stand_at(len(self._anchors) - 1)

    def _rejects(self, iterate: Iterate, lam: float, penalty: RowPenalty) -> Array:
        """From the pair's gap at this strength, with the anchors standing at its dual point."""
        assert isinstance(iterate, CalibratedIterate) and isinstance(self._loss, SquareRoot)
        loss, anchors = self._loss, self._anchors
        ball = direction_ball(iterate.noise, iterate.pair_gap, loss.null.value)
        # The centre is the direction of the residual; the anchors know the dual point, nearly a multiple of it.
        dual, centre = iterate.at.residual, loss.scaled(iterate.residual, ball.factors)
        squares = loss.task_products(dual, dual)
        along = loss.task_products(dual, centre)
        factors = np.divide(along, squares, out=np.zeros_like(along), where=squares > 0.0)
        off = loss.sizes(centre - loss.scaled(dual, factors)) * (1.0 + 1e-10)
        now = anchors.current
        extra = off + ball.slack
        vector = Anchored(
            now.coef * factors,
            now.remainder * np.abs(factors) + extra,
            now.spectral * float(np.max(np.abs(factors), initial=0.0)) + float(np.linalg.norm(extra)),
        )
        _, upper = anchors.ratios(vector, penalty, radius=ball.radius, stretch=ball.stretch)
        mask = upper < _REJECT
        mask[iterate.features] = False
        mask[self._design.unpenalised] = False
        return mask

    def _gap(self, iterate: CalibratedIterate, penalty: RowPenalty) -> float:
        """The gap of a pair at another strength; of features outside the support bounds are known."""
        _, upper = self._anchors.ratios(self._anchors.current, penalty)
        sizes = upper * penalty.group
        own = penalty.restrict(iterate.features)
        sizes[iterate.features] = correlation_sizes(own, iterate.products)
        return self._pair_gap(iterate, own, sizes, penalty.group)

    def _pair_gap(self, iterate: CalibratedIterate, own: RowPenalty, sizes: Array, strengths: Array) -> float:
        assert isinstance(self._loss, SquareRoot)
        along = float(iterate.at.residual @ self._loss.target)
        scale = best_multiple(along, sizes, strengths, own.ridge)
        dual = scale * along
        if own.ridge:
            over = np.maximum(scale * sizes - strengths, 0.0)
            dual -= float(over @ over) / (2.0 * own.ridge)
        primal = iterate.at.value + own.value(iterate.rows)
        return max(primal - dual, 1e-14 * primal)


class CalibratedEngine(Engine):
    """`Engine` for ``sum_t ||y_t - X_t w_t||``."""

    solvers = SOLVERS
    loss: SquareRoot

    def _choose_solvers(self, solver: str) -> None:
        self._may_switch = False
        self.history: History | None = None
        self._calibrated: CalibratedNewton | None = None
        self._reduced: tuple[Array, ReducedNewton] | None = None
        newton = not self.problem.shape.positive
        if solver == "newton" and not newton:
            raise ValueError("solver='newton' is for coefficients of any sign; use 'auto'")
        self._hybrid = solver == "auto"
        self._keeps_history = solver in PUBLISHED
        self._solver = "newton" if newton and solver in ("auto", "newton") else solver
        if self._solver == "auto":
            self._solver = "d-pg"
            self._hybrid = False

    def _make_sieve(self, rule: Rule, products: Array) -> Sieve:
        assert self._anchors is not None
        return CalibratedSieve(
            self.problem, rule, self._anchors, self.lam_max, self._predicted_iterate, self._lazy
        )

    def _predicted_iterate(self, lam: float) -> CalibratedIterate | None:
        """The pair that the secant of the last two solutions leads to; None where there is nothing to go by."""
        if self._cold or self.previous is None or self.previous.lam == self.current.lam:
            return None
        features, rows = self._predict(lam)
        live = rows.any(axis=1)
        features, rows = features[live], rows[live]
        places = self.packed.places(features)
        at = self.loss.evaluate(self.packed.combine(places, rows))
        residual = self.loss.target - self.packed.combine(places, rows)
        products = self.packed.correlate(at.residual, places)
        return CalibratedIterate(
            lam, features, rows, at, products, np.inf, self.loss.sizes(residual), residual, np.inf
        )

    def _empty_iterate(self, lam: float) -> CalibratedIterate:
        empty, none = np.empty((0, self.design.n_tasks)), np.empty(0, dtype=np.int64)
        loss = self.loss
        return CalibratedIterate(
            lam, none, empty, loss.null, empty, self.lam_max, loss.sizes(loss.target), loss.target
        )

    def _null_iterate(self, lam: float, penalty: RowPenalty) -> tuple[Iterate, float, int]:
        iterate = self._empty_iterate(lam)
        scale = min(1.0, lam / self.lam_max) if self.lam_max > 0.0 else 1.0
        iterate.pair_gap = (1.0 - scale) * self.loss.null.value
        if self._anchors is not None:
            self._anchors.stand_at(0)
        return iterate, iterate.pair_gap, 0

    def _point(self, lam: float, penalty: RowPenalty, iterate: Iterate, *others: Any) -> Point:
        point = super()._point(lam, penalty, iterate, *others)
        assert isinstance(iterate, CalibratedIterate)
        point.residual_norms = iterate.noise
        return point

    @property
    def _cold(self) -> bool:
        return len(self.current.features) == 0

    def _accuracy(self, lam: float, inner: float, gap: float) -> float:
        if not self._cold or self._all_in or not self.working_set:
            return inner
        return max(inner, _LOOSE * min(gap, 0.3 * self.loss.null.value))

    # -- solving --------------------------------------------------------------------------------------------------

    def _solve(
        self, lam: float, working: Array, rows: Array, penalty: RowPenalty, tol: float, max_iter: int
    ) -> Solution:
        here = WorkingProblem(self.packed, self.packed.places(working), penalty.restrict(working), self.loss)
        if self._solver == "newton" and CalibratedNewton.fits(self.packed, len(working)):
            solved = self._solve_newton(lam, here, rows, tol, max_iter)
        else:
            solved = self._solve_published(here, rows, tol, max_iter)
        return solved

    def _solve_published(
        self, here: WorkingProblem, rows: Array, tol: float, max_iter: int
    ) -> CalibratedSolution:
        """One of the paper's algorithms; its history is that of the last value."""
        self.history = History() if self._keeps_history else None
        record = Record(here, tol, self.history)
        start = self.current
        dual = start.at.residual if len(start.features) else self._null_dual(here)
        if self._solver in ("newton", "d-pg", "d-fista"):  # matrices too large for Newton's method: d-pg
            method = "d-fista" if self._solver == "d-fista" else "d-pg"
            return dual_first_order(here, method, rows, dual, tol, max_iter, record)
        if self._solver in ("p-spg", "p-sfista"):
            return smoothed_first_order(here, self._solver, rows, tol, max_iter, record)
        return alternating_directions(here, rows, tol, max_iter, record)

    def _solve_newton(
        self, lam: float, here: WorkingProblem, rows: Array, tol: float, max_iter: int
    ) -> CalibratedSolution:
        """Newton's method from the predicted point; first-order steps first where nothing is known yet.

        Where it does not get on (a task rescaled by a thousand, no ridge), it comes from larger strengths.
        """
        spent, noise = 0, self._predicted_noise(lam, here, rows)
        if self._hybrid and self._cold and not rows.any():
            record = Record(here, tol, hopeless=self._hopeless(here, tol))
            warm = dual_first_order(here, "d-pg", rows, self._null_dual(here), tol, max_iter, record)
            spent = warm.n_iter
            if warm.gap <= tol:
                return warm
            if warm.gap < 0.5 * self.loss.null.value and warm.noise is not None:
                rows, noise = warm.rows, warm.noise
        newton = self._newton_for(here)
        solved = newton.solve(here, rows, noise, tol, max(max_iter - spent, 1))
        spent += solved.n_iter
        if solved.gap > tol and spent < max_iter:
            solved, spent = self._rescue(lam, here, solved, tol, max_iter, spent)
        solved.n_iter = spent
        return solved

    def _newton_for(self, here: WorkingProblem) -> CalibratedNewton | ReducedNewton:
        """Newton's method on the rows of the data, or on their span where tasks have many more rows than columns."""
        if ReducedNewton.pays(self.packed, len(here.places)):
            if self._reduced is None or not np.array_equal(self._reduced[0], here.places):
                self._reduced = (here.places, ReducedNewton(here))
            return self._reduced[1]
        if self._calibrated is None:
            self._calibrated = CalibratedNewton(self.packed, self.loss)
        return self._calibrated

    def _rescue(
        self,
        lam: float,
        here: WorkingProblem,
        solved: CalibratedSolution,
        tol: float,
        max_iter: int,
        spent: int,
    ) -> tuple[CalibratedSolution, int]:
        newton = self._newton_for(here)
        at_zero = here.penalty.gauges(self.packed.correlate(self.loss.null.residual, here.places))
        largest = float(np.max(at_zero, initial=0.0))
        sizes = self.loss.sizes(self.loss.target)
        for count, loose in _CONTINUATION:
            if largest <= 1.0 or spent >= max_iter:
                break
            rows, noise = np.zeros_like(solved.rows), sizes
            for factor in np.geomspace(largest, 1.0, count + 1)[1:]:
                group = here.penalty.group * factor
                scaled = RowPenalty(group, here.penalty.l1, here.penalty.ridge, here.penalty.positive, False)
                on_the_way = WorkingProblem(here.packed, here.places, scaled, here.loss)
                goal = tol if factor == 1.0 else max(tol, loose * self.loss.null.value)
                found = newton.solve(on_the_way, rows, noise, goal, max(max_iter - spent, 1))
                spent += found.n_iter
                assert found.noise is not None
                rows, noise = found.rows, found.noise
            if found.gap < solved.gap:
                solved = found
            if solved.gap <= tol:
                return solved, spent
        if spent < max_iter:
            assert solved.dual is not None
            allowed = min(max_iter - spent, 2000)
            found = dual_first_order(here, "d-pg", solved.rows, solved.dual, tol, allowed)
            spent += found.n_iter
            if found.gap < solved.gap:
                solved = found
        return solved, spent

    def _null_dual(self, here: WorkingProblem) -> Array:
        """The best multiple of the dual point of W = 0: where the dual methods start."""
        u = self.loss.null.residual
        sizes = correlation_sizes(here.penalty, self.packed.correlate(u, here.places))
        return best_multiple(self.loss.null.value, sizes, here.penalty.group, here.penalty.ridge) * u

    def _hopeless(self, here: WorkingProblem, tol: float) -> Callable[[list[float]], bool]:
        """Whether first-order steps, at their present rate, would cost more than Newton's method from here."""
        count = len(here.places)
        iteration = _OVERHEAD + 4.0 * self.design.n_samples * count / _PRODUCT_RATE
        work = CalibratedNewton.step_work(self.packed, count, min(count, self.design.n_samples) // 2)
        step = _OVERHEAD + work / _NEWTON_RATE
        affordable = _NEWTON_STEPS * step / iteration

        def hopeless(gaps: list[float]) -> bool:
            spent = len(gaps)
            if spent < _LOOK_BACK + 2 or gaps[-1] <= tol:
                return False
            fall = gaps[-1 - _LOOK_BACK] / gaps[-1]
            left = np.inf if fall <= 1.01 else _LOOK_BACK * np.log(gaps[-1] / tol) / np.log(fall)
            return bool(left > affordable or spent > 3.0 * affordable + 50)

        return hopeless

    def _predicted_noise(self, lam: float, here: WorkingProblem, rows: Array) -> Array:
        now, before = self.current, self.previous
        if isinstance(before, CalibratedIterate) and before.lam != now.lam and len(now.features):
            assert isinstance(now, CalibratedIterate)
            theta = (lam - now.lam) / (now.lam - before.lam)
            return np.maximum(now.noise + theta * (now.noise - before.noise), 0.1 * now.noise)
        live = np.flatnonzero(rows.any(axis=1))
        if len(live) == 0:
            return self.loss.sizes(self.loss.target)
        return self.loss.sizes(self.loss.target - self.packed.combine(here.places[live], rows[live]))

    # -- certificate ----------------------------------------------------------------------------------------------

    def _certify(
        self, lam: float, penalty: RowPenalty, working: Array, solved: Solution
    ) -> tuple[Iterate, float, Array]:
        assert isinstance(solved, CalibratedSolution) and solved.dual is not None
        loss = self.loss
        places = self.packed.places(working)
        here = WorkingProblem(self.packed, places, penalty.restrict(working), loss)
        dual = loss.scaled(solved.dual, 1.0 / np.maximum(loss.sizes(solved.dual) * (1.0 + 1e-15), 1.0))
        products = self.packed.correlate(dual, places)
        own = here.penalty.gauges(products)
        violators, outside = np.empty(0, dtype=np.int64), 0.0
        complete = len(working) == int(np.count_nonzero(self._unit.group))
        if not complete or self._sieve is not None:
            outside, violators = self._outside(lam, penalty, working, dual)
        self.levels[working] = own * lam
        beyond = (np.array([outside]), np.ones(1))
        if penalty.ridge:  # what stays below its threshold costs nothing; the others were measured
            beyond = (self.levels[violators] / lam * penalty.group[violators], penalty.group[violators])
        pair = primal_dual(here, solved.rows, dual, products, beyond)
        live = np.flatnonzero(solved.rows.any(axis=1))
        inactive = float(np.max(np.delete(own, live), initial=0.0))
        iterate = CalibratedIterate(
            lam,
            working[live],
            solved.rows[live],
            Evaluation(float(pair.sizes.sum()), dual, loss.null.nuisance),
            products[live],
            max(outside, inactive) * lam,
            pair.sizes,
            pair.residual,
            pair.gap,
        )
        return iterate, pair.gap, violators
