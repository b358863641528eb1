"""The engine: for each strength, screen, solve on a working set, certify on all features, go on.

Each value of the path stops on its own duality gap over all features. The data are touched rarely: columns are read
once when they enter the working set, and the certificate reads only those columns that bounds from past passes leave
open (`certificate`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .certificate import Anchored, AnchoredCorrelations
from .design import PackedColumns, one_blas_thread
from .losses import Evaluation
from .penalties import RowPenalty, row_norms
from .problem import Problem
from .screening.polar import steepest_row
from .screening.rules import NoScreening, Rule, get_rule
from .screening.state import Cut, DualState
from .solvers import (
    CoordinateDescent,
    ProximalNewton,
    Solution,
    VariationalNewton,
    WorkingProblem,
    accelerated_proximal_gradient,
)
from .solvers.accelerated import lipschitz_constant
from .solvers.working import duality_gap

Array = np.ndarray[Any, Any]

_REJECT = 1.0 - 1e-9  # a bound below this is below 1 whatever rounding did
_FEW_FEATURES = 256  # so few features are all taken into the working set at once
_TOUCH_FRACTION = 0.08  # more open bounds than this part of the features: make a full pass
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


@dataclass
class PathSolution:
    """All values of a path that were finished."""

    null_objective: float
    points: list[Point] = field(default_factory=list)
    passes: float = 0.0
    interrupted: bool = False
    #: rows that an unsafe screening rule rejected and the certificate brought back
    wrong_rejections: int = 0


@dataclass
class _Iterate:
    """A primal point with its residual, and the strength it was made for."""

    lam: float
    features: Array
    rows: Array
    at: Evaluation
    products: Array  # correlations of the residual with the support's features
    others: float  # bound on lam times the gauge of every other feature


def solve_path(
    problem: Problem,
    lams: Sequence[float] | Array,
    *,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    screening: str | Rule | None = "auto",
    solver: str = "auto",
    working_set: bool = True,
    lazy: bool = True,
    tol_scaling: str = "fixed",
    start: tuple[Array, Array] | None = None,
    progress: Callable[[int, int, Point], None] | None = None,
) -> PathSolution:
    """Solve a problem at decreasing strengths, each to a certified duality gap.

    Parameters
    ----------
    problem : Problem
    lams : decreasing strengths, in sum units
    tol : float
        A value is done when its gap is at most `tol` times the objective at W = 0 with the best intercepts.
    max_iter : int
        Inner iterations (epochs or Newton steps) for each value.
    screening : {"auto", "dpc", "dpc-published", "gap", None} or Rule
    solver : {"auto", "cd", "newton", "prox-newton", "apgd"}
        "auto" begins with coordinate descent and moves to the variational Newton method where the counted work
        says so; for other losses than the squared one it is the proximal Newton method.
    working_set : bool
        False: every row that screening leaves is solved for, as in the papers on screening.
    lazy : bool
        False: a full pass over the data at every value, as in the papers; screening then sees exact correlations
        where it otherwise has bounds from past passes, and rejects more.
    tol_scaling : {"fixed", "quadratic"}
        "quadratic" multiplies `tol` by (lam/lam_max)^2, which keeps sequential screening sharp (mathematics 2.6).
    start : (features, rows), optional
        A first guess, in units of the scaled columns.
    progress : callable, optional
        ``progress(k, K, point)`` after each value.

    Returns
    -------
    PathSolution
        After a KeyboardInterrupt: the finished values, marked `interrupted`.
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {SOLVERS}; got {solver!r}")
    if tol_scaling not in ("fixed", "quadratic"):
        raise ValueError(f"tol_scaling must be 'fixed' or 'quadratic'; got {tol_scaling!r}")
    shape = problem.shape
    rule = get_rule(
        screening, loss=problem.loss.name, l1=shape.l1, positive=shape.positive, ridge_ratio=shape.ridge_ratio
    )
    solution = PathSolution(problem.loss.null.value)
    with one_blas_thread():
        engine = _Engine(problem, rule, solver, working_set, lazy, max_iter, single=len(lams) == 1, start=start)
        try:
            for k, lam in enumerate(lams):
                goal = tol * problem.loss.null.value
                if tol_scaling == "quadratic":
                    goal *= min(lam / engine.lam_max, 1.0) ** 2 if engine.lam_max > 0 else 1.0
                goal = max(goal, problem.loss.floor)
                point = engine.step(float(lam), goal)
                solution.points.append(point)
                if progress is not None:
                    progress(k, len(lams), point)
        except KeyboardInterrupt:
            solution.interrupted = True
    solution.passes = problem.design.passes
    solution.wrong_rejections = engine.wrong_rejections
    return solution


class _Engine:
    """The state that is carried from one strength to the next."""

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
        self.rule = rule
        self.working_set = working_set
        self._lazy = lazy
        self.max_iter = max_iter
        self.wrong_rejections = 0
        self.packed = PackedColumns(self.design)
        self._unit = problem.shape.at(1.0)
        products = problem.null_products()
        self.levels = self._unit.gauges(products)  # lam at which each feature reaches its threshold, an estimate
        self.lam_max = float(np.max(self.levels, initial=0.0))
        self._all_in = self.design.n_features <= _FEW_FEATURES
        self._screens = not isinstance(rule, NoScreening) and not single
        self._anchors: AnchoredCorrelations | None = None
        self._expressed: Anchored | None = None
        self._cut: Cut | None = None
        if not self._all_in or self._screens:
            self._anchors = AnchoredCorrelations(self.design, capacity=5 if self.design.n_tasks > 1 else 16)
            self._anchors.add(self.loss.null.residual, products)
            if self._screens and problem.squared and self.lam_max > 0:
                self._prepare_cut(products)
        empty = np.empty((0, self.design.n_tasks))
        none = np.empty(0, dtype=np.int64)
        self.current = _Iterate(self.lam_max, none, empty, self.loss.null, empty, self.lam_max)
        self.previous: _Iterate | None = None
        self._guess = start
        self._choose_solvers(solver)
        problem.forget_null_products()

    # -- one value ------------------------------------------------------------------------------------------------

    def step(self, lam: float, goal: float) -> Point:
        began = time.perf_counter()
        penalty = self.problem.shape.at(lam)
        rejected = self._screen(lam, penalty)
        n_rejected, n_dynamic = int(np.count_nonzero(rejected)), 0
        if lam >= self.lam_max:
            iterate, gap, iterations = self._null_iterate(lam, penalty)
        else:
            working, rows = self._first_working_set(lam, rejected)
            iterations, gap, inner, rounds = 0, np.inf, 0.8 * goal, 0
            while True:
                allowed = self._patience(self.max_iter - iterations)
                solved = self._solve(working, rows, penalty, inner, allowed)
                iterations += solved.n_iter
                iterate, gap, violators = self._certify(lam, penalty, working, solved)
                if gap <= goal or iterations >= self.max_iter:
                    break
                if self._screens and self.rule.safe:
                    fresh = self._screen_now(iterate, gap, penalty) & ~rejected
                    n_dynamic += int(np.count_nonzero(fresh))
                    rejected |= fresh
                    violators = violators[~rejected[violators]]
                elif len(violators):
                    self.wrong_rejections += int(np.count_nonzero(rejected[violators]))
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
                elif solved.n_iter < allowed:
                    break  # the solver has reached its limits
        self.previous, self.current = self.current, iterate
        return self._point(lam, penalty, iterate, gap, goal, iterations, n_rejected, n_dynamic, began)

    def _null_iterate(self, lam: float, penalty: RowPenalty) -> tuple[_Iterate, float, int]:
        empty = np.empty((0, self.design.n_tasks))
        none = np.empty(0, dtype=np.int64)
        iterate = _Iterate(lam, none, empty, self.loss.null, empty, self.lam_max)
        gap, _ = self._gap_at(iterate, lam, penalty)
        self._expressed = None if self._anchors is None else self._anchors.anchor(0)
        return iterate, gap, 0

    def _point(
        self,
        lam: float,
        penalty: RowPenalty,
        iterate: _Iterate,
        gap: float,
        goal: float,
        iterations: int,
        n_rejected: int,
        n_dynamic: int,
        began: float,
    ) -> Point:
        objective = iterate.at.value + penalty.restrict(iterate.features).value(iterate.rows)
        rows = self.design.original_units(iterate.features, iterate.rows)
        loadings = self.packed.loadings(self.packed.places(iterate.features))
        intercept, extra = self.problem.intercepts(rows, loadings, iterate.at.nuisance)
        features = iterate.features
        if len(self.design.unpenalised):
            features = np.concatenate([features, self.design.unpenalised])
            rows = np.vstack([rows, extra])
        # A computed gap of zero is no proof of exactness: never below the rounding of the objective.
        gap = max(gap, 1e-15 * self.loss.null.value)
        return Point(
            lam,
            features,
            rows,
            intercept,
            objective,
            gap,
            iterations,
            n_rejected,
            n_dynamic,
            time.perf_counter() - began,
            bool(gap <= max(goal, 1e-15 * self.loss.null.value)),
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
            self._may_switch = squared and plain and VariationalNewton.fits(self.packed)
        else:
            self._may_switch = False
        if solver in ("cd", "newton") and not squared:
            raise ValueError(f"solver={solver!r} is for the squared loss; use 'prox-newton', 'apgd' or 'auto'")
        if solver == "prox-newton" and squared:
            raise ValueError("solver='prox-newton' is for other losses than the squared one; use 'auto'")
        if solver == "newton" and (shape.has_l1 or shape.positive):
            raise ValueError("solver='newton' is for the group penalty without l1 and positivity; use 'cd' or 'auto'")
        self._solver = solver
        self._coordinate = CoordinateDescent()
        self._newton = VariationalNewton(self.packed) if solver == "newton" else None
        self._prox_newton = ProximalNewton(self.packed) if solver == "prox-newton" else None
        self._costly = self._interrupted = 0
        self._curvature: tuple[Array, float] | None = None

    @property
    def _uses_newton(self) -> bool:
        return self._solver == "newton"

    def _solve(self, working: Array, rows: Array, penalty: RowPenalty, tol: float, max_iter: int) -> Solution:
        places = self.packed.places(working)
        here = WorkingProblem(self.packed, places, penalty.restrict(working), self.loss)
        if self._solver == "newton":
            assert self._newton is not None
            return self._newton.solve(here, rows, tol, max_iter)
        if self._solver == "prox-newton":
            assert self._prox_newton is not None
            return self._prox_newton.solve(here, rows, tol, max_iter, self.current.at.nuisance)
        if self._solver == "apgd":
            shrink = self._shrinker(working, penalty) if self._screens and self.rule.safe else None
            if self._curvature is None or not np.array_equal(self._curvature[0], working):
                self._curvature = (working, lipschitz_constant(self.packed, places))
            return accelerated_proximal_gradient(
                here, rows, tol, max_iter, curvature=self._curvature[1], shrink=shrink
            )
        solved = self._coordinate.solve(here, rows, tol, max_iter)
        if self._may_switch:
            self._weigh(solved)
        return solved

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

    def _shrinker(self, working: Array, penalty: RowPenalty) -> Callable[[Array, Evaluation, Array, float], Array]:
        """Dynamic screening for a solver that works on all surviving rows."""
        alive = np.arange(len(working))
        norms, shape = self.design.norms(), self.problem.shape
        targets = self._target_products(working)

        def shrink(rows: Array, at: Evaluation, products: Array, gap: float) -> Array:
            nonlocal alive
            own = working[alive]
            live = np.flatnonzero(rows.any(axis=1))
            l1 = shape.l1[own] if isinstance(shape.l1, np.ndarray) else shape.l1
            state = DualState(
                y=self._target(),
                residual=at.residual,
                correlations=products,
                y_correlations=targets[alive] if targets is not None else None,
                norms=norms[own],
                lam=self._lam_of(penalty),
                features=live,
                rows=rows[live],
                feature_weights=shape.weights[own],
                l1=l1,
                group=shape.group,
                positive=shape.positive,
                ridge_ratio=shape.ridge_ratio,
                squared=self.problem.squared,
                smoothness=self.loss.smoothness,
                rounding=self.design.rounding,
            )
            if not self.problem.squared:
                here = penalty.restrict(own)
                _, scale = duality_gap(self.loss, here, rows, at, products, here.gauges)
                state = replace(state, gap=gap, dual_scale=scale, gap_lam=state.lam)
            gone = self.rule.dynamic(state)
            gone[live] = False
            alive = alive[~gone]
            return gone

        return shrink

    def _lam_of(self, penalty: RowPenalty) -> float:
        j = int(np.argmax(self._unit.group + self._unit.l1))
        return float((penalty.group[j] + penalty.l1[j]) / (self._unit.group[j] + self._unit.l1[j]))

    def _target(self) -> Array:
        return self.loss.null.residual

    def _target_products(self, working: Array) -> Array | None:
        if not self.problem.squared:
            return None
        return self.packed.correlate(self._target(), self.packed.places(working))

    # -- certificate ----------------------------------------------------------------------------------------------

    def _certify(
        self, lam: float, penalty: RowPenalty, working: Array, solved: Solution
    ) -> tuple[_Iterate, float, Array]:
        """The gap over all features, and the features that stand in its way, worst first."""
        places = self.packed.places(working)
        live = np.flatnonzero(solved.rows.any(axis=1))
        here = WorkingProblem(self.packed, places, penalty.restrict(working), self.loss)
        at = solved.evaluation
        if at is None:
            at = here.evaluate(solved.rows, self.current.at.nuisance)
        products = self.packed.correlate(at.residual, places)
        augmented = products - penalty.ridge * solved.rows if penalty.ridge else products
        own = here.penalty.gauges(augmented)
        violators = np.empty(0, dtype=np.int64)
        outside = 0.0
        complete = len(working) == int(np.count_nonzero(self._unit.group + self._unit.l1))
        if complete and not self._screens:
            self.levels[working] = own * lam
        else:
            outside, violators = self._outside(lam, penalty, working, at.residual)
            self.levels[working] = own * lam
        # The rows of W that are zero add nothing but their gauges.
        inactive = float(np.max(np.delete(own, live), initial=0.0))
        others = max(outside, inactive)
        iterate = _Iterate(lam, working[live], solved.rows[live], at, products[live], others * lam)
        gap, _ = self._gap_at(iterate, lam, penalty)
        return iterate, gap, violators

    def _gap_at(self, iterate: _Iterate, lam: float, penalty: RowPenalty) -> tuple[float, float]:
        own = penalty.restrict(iterate.features)
        others = iterate.others / lam if lam > 0.0 else np.inf
        return duality_gap(self.loss, own, iterate.rows, iterate.at, iterate.products, own.gauges, others)

    def _outside(self, lam: float, penalty: RowPenalty, working: Array, residual: Array) -> tuple[float, Array]:
        """Largest gauge outside the working set (bounded by 1 where it was not measured), and the violators."""
        assert self._anchors is not None
        self._expressed = self._anchors.express(residual)
        estimate, upper = self._anchors.ratios(self._expressed, penalty)
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
            self._expressed = self._anchors.anchor(len(self._anchors) - 1)
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

    # -- screening ------------------------------------------------------------------------------------------------

    def _prepare_cut(self, products: Array) -> None:
        """At W = 0 the feature that pulls hardest stands in for the solution (mathematics 2.5)."""
        features, rows = steepest_row(products, self._unit.group, self._unit.l1, self.problem.shape.positive)
        if len(features) == 0:
            return
        image = self.packed.combine(self.packed.places(features.astype(np.int64)), rows)
        self._cut = Cut(features, rows, image, np.empty((0, self.design.n_tasks)))

    def _state(self, iterate: _Iterate, gap: float, scale: float, lam: float) -> DualState:
        shape = self.problem.shape
        return DualState(
            y=self._target(),
            residual=iterate.at.residual,
            correlations=np.empty((0, self.design.n_tasks)),
            norms=self.design.norms(),
            lam=iterate.lam,
            features=iterate.features,
            rows=iterate.rows,
            feature_weights=shape.weights,
            l1=shape.l1,
            group=shape.group,
            positive=shape.positive,
            ridge_ratio=shape.ridge_ratio,
            squared=self.problem.squared,
            smoothness=self.loss.smoothness,
            gap=gap,
            dual_scale=scale,
            gap_lam=lam,
            cut=self._cut,
        )

    def _screen(self, lam: float, penalty: RowPenalty) -> Array:
        """Rows that are certainly zero at the new strength, from the last pair; no pass over the data."""
        if not self._screens or self.lam_max == 0.0:
            return np.zeros(self.design.n_features, dtype=bool)
        if lam >= self.lam_max:
            return self._unit.group + self._unit.l1 > 0.0
        gap, scale = self._gap_at(self.current, lam, penalty)
        mask = self._ball_rejects(self.current, gap, scale, lam, penalty)
        self.rule.sequential_counts.append(int(np.count_nonzero(mask)))
        return mask

    def _screen_now(self, iterate: _Iterate, gap: float, penalty: RowPenalty) -> Array:
        gap, scale = self._gap_at(iterate, iterate.lam, penalty)
        mask = self._ball_rejects(iterate, gap, scale, iterate.lam, penalty)
        self.rule.dynamic_counts.append(int(np.count_nonzero(mask)))
        return mask

    def _ball_rejects(self, iterate: _Iterate, gap: float, scale: float, lam: float, penalty: RowPenalty) -> Array:
        """The rule's ball, tested on all features through the anchors."""
        anchors = self._anchors
        assert anchors is not None
        ball = self.rule.ball(self._state(iterate, gap, scale, lam), lam)
        if ball is None:
            return np.zeros(self.design.n_features, dtype=bool)
        if self._expressed is None:
            self._expressed = anchors.anchor(0)
        residual, cut_added = self._expressed, False
        if ball.cut_coef and self._cut is not None:
            anchors.add(self._cut.image, self.design.correlate(self._cut.image))
            cut_added = True
            residual = anchors.anchor(0)  # W = 0: the residual is the first anchor
        centre = residual.scaled(ball.residual_coef) + anchors.anchor(0).scaled(ball.y_coef)
        if cut_added:
            centre = centre + anchors.anchor(len(anchors) - 1).scaled(ball.cut_coef)
        root = np.sqrt(self.loss.smoothness)
        _, upper = anchors.ratios(
            centre, penalty, radius=ball.radius * root, ridge=penalty.ridge / self.loss.smoothness
        )
        if cut_added:
            anchors.drop_last()
            self._expressed = None
        mask = upper < _REJECT
        # With a ridge these rows' correlations lack its correction; and rows of the last support rarely go.
        mask[iterate.features] = False
        mask[self.design.unpenalised] = False
        return mask

