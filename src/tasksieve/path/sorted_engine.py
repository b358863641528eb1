"""The engine for penalties that sort the rows (Group OWL): screen, solve on a working set, certify, go on.

It differs from `engine` in one thing: dual feasibility is not a matter of each row alone but of cumulative sums of
sorted row norms. So bounds on all row norms (from the anchors, `certificate`) are sorted together with the exact
ones, and only features whose bounds could lift a cumulative sum above its limit are looked at in the data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._kernels import kernels
from ..design import PackedColumns, SparseColumns, SparseStorage
from ..losses import Evaluation
from ..penalties import RowPenalty
from ..penalties.sorted import SortedPenalty, tied_rows
from ..screening.owl import SORTED_TESTS
from ..solvers import SortedSolution, SortedWorking, sorted_accelerated, sorted_stochastic
from ..solvers.working import duality_gap
from .anchors import Anchored, AnchoredCorrelations
from .engine import Point, make_point
from .problem import SortedProblem
from .solve import PathSolution, run_path

Array = np.ndarray[Any, Any]

SORTED_SOLVERS = ("auto", "apgd", "spgd")
SORTED_SCREENING = ("auto", "cumulative", "bao", None)

_FEW_FEATURES = 256  # so few features are all taken into the working set at once
_TOUCH_FRACTION = 0.08  # more open bounds than this part of the features: make a full pass
_MAX_ROUNDS = 200
_CHECK_EVERY = 6  # iterations of the compiled solver between looks at the gap
_GRAM_COLUMNS = 3000  # packed columns beyond which no Gram matrix is kept


@dataclass
class SortedPoint(Point):
    """A value of a Group OWL path.

    `clusters` are the features with tied row norms; `history` what the solver saw, (iteration, rows left, gap).
    """

    clusters: list[Array] = field(default_factory=list)
    history: list[tuple[int, int, float]] = field(default_factory=list)


@dataclass
class DualState:
    """A primal point whose residual serves as the dual point, with bounds on the norms of all its correlations."""

    features: Array
    rows: Array
    at: Evaluation
    products: Array  # correlations of the residual with those features
    sizes: Array  # upper bounds of ||c_j|| for all features, exact where they were measured

    def gap(self, problem: SortedProblem, penalty: SortedPenalty, sizes: Array) -> tuple[float, float]:
        """Duality gap over the features with these sizes, and the scale of the dual point."""
        norm: Any = penalty
        polar = penalty.polar(sizes)
        return duality_gap(problem.loss, norm, self.rows, self.at, self.products, lambda _: np.array([polar]))


class SortedEngine:
    """The state that is carried from one strength to the next."""

    def __init__(
        self,
        problem: SortedProblem,
        screening: str | None,
        solver: str,
        max_iter: int,
        single: bool,
        start: tuple[Array, Array] | None,
    ) -> None:
        self.problem, self.design, self.loss = problem, problem.design, problem.loss
        self.max_iter = max_iter
        self.wrong_rejections = 0
        self._solver = solver
        self._test = SORTED_TESTS.get("cumulative" if screening == "auto" else screening or "")
        self._single = single
        sparse = isinstance(self.design.storage, SparseStorage)
        self.columns: Any = SparseColumns(self.design) if sparse else PackedColumns(self.design)
        self._positive = problem.shape.positive
        ones = np.ones(self.design.n_features)
        self._plain = RowPenalty(ones, np.zeros_like(ones), positive=self._positive, has_l1=False)
        products = problem.null_products()
        unit = problem.penalty(1.0)
        sizes = unit.sizes(products)
        self.lam_max = unit.polar(sizes)
        self._levels = sizes.copy()  # estimates of ||c_j|| at the last dual point
        self._anchors = AnchoredCorrelations(self.design, capacity=5 if self.design.n_tasks > 1 else 16)
        self._anchors.add(self.loss.null.residual, products)
        problem.forget_null_products()
        tasks = self.design.n_tasks
        self._none = np.empty(0, dtype=np.int64)
        self._null = DualState(self._none, np.empty((0, tasks)), self.loss.null, np.empty((0, tasks)), sizes)
        self._state = self._null
        self._now = (self.lam_max, self._none, np.empty((0, tasks)))
        self._before: tuple[float, Array, Array] | None = None
        self._nuisance: Array | None = self.loss.null.nuisance
        self._guess = start
        self._curvature: float | None = None
        self._fista = kernels.SortedFista()
        self._targets: Array | None = None

    # -- one value ------------------------------------------------------------------------------------------------

    def step(self, lam: float, goal: float) -> Point:
        began = time.perf_counter()
        penalty = self.problem.penalty(lam)
        rejected = np.zeros(self.design.n_features, dtype=bool)
        if lam >= self.lam_max:
            if self._test is not None:
                rejected[:] = True
            self._state = self._null
            self._anchors.stand_at(0)
            gap, _ = self._null.gap(self.problem, penalty, self._null.sizes)
            counts = (0, int(np.count_nonzero(rejected)), 0)
            return self._finish(
                lam, penalty, self._none, self._null.rows, self.loss.null, gap, goal, counts, began, []
            )
        if self._test is not None:
            rejected = self._rejects(self._state, penalty)
        n_rejected, n_dynamic, iterations, rounds = int(np.count_nonzero(rejected)), 0, 0, 0
        working, rows = self._first_working_set(lam, penalty, rejected)
        best_dual, inner = -np.inf, 0.8 * goal
        history: list[tuple[int, int, float]] = []
        if n_rejected:
            before, _ = self._state.gap(self.problem, penalty, self._state.sizes)
            history.append((0, self.design.n_features, before))
        while True:
            solved = self._solve(penalty, working, rows, inner, self.max_iter - iterations)
            history += [(iterations + k, left, gap) for k, left, gap in solved.history]
            iterations += max(solved.n_iter, 1)
            n_dynamic += self._note_dropped(working, solved, rejected)
            if self._single:  # on a path the next value wants to know about all rows
                working, solved = solved.without_dropped(working)
            live = np.flatnonzero(solved.rows.any(axis=1))
            at = self._evaluate(working[live], solved.rows[live]) if solved.at is None else solved.at
            self._nuisance = at.nuisance
            objective = at.value + penalty.norm(solved.rows[live])
            state, gap, best_dual, violators = self._certify(
                penalty, working, solved, at, objective, rejected, best_dual, goal
            )
            self._state = state
            if gap <= goal or iterations >= self.max_iter:
                break
            if self._test is not None:
                fresh = self._rejects(state, penalty) & ~rejected
                n_dynamic += int(np.count_nonzero(fresh))
                rejected |= fresh
                violators = violators[~rejected[violators]]
                keep = ~rejected[working]
                working, solved.rows = working[keep], solved.rows[keep]
            if len(violators):
                rounds += 1
                if rounds > _MAX_ROUNDS:
                    break
                working, rows = self._grow(working, solved.rows, violators)
                continue
            rows = solved.rows
            if solved.gap > inner:
                break  # the solver has reached its limits
            inner = min(0.2 * inner, 0.2 * solved.gap) if solved.gap > 0.0 else 0.1 * inner
            if inner < 1e-17 * self.loss.null.value:
                break
        features, found = working[live], solved.rows[live]
        self._before, self._now = self._now, (lam, features, found)
        counts = (iterations, n_rejected, n_dynamic)
        return self._finish(lam, penalty, features, found, at, gap, goal, counts, began, history)

    @staticmethod
    def _note_dropped(working: Array, solved: SortedSolution, rejected: Array) -> int:
        """Rows that dynamic screening dropped inside the solver are rejected for good; returns their number."""
        if solved.alive is None:
            return 0
        dropped = np.ones(len(working), dtype=bool)
        dropped[solved.alive] = False
        rejected[working[dropped]] = True
        return int(np.count_nonzero(dropped))

    def _finish(
        self,
        lam: float,
        penalty: SortedPenalty,
        features: Array,
        rows: Array,
        at: Evaluation,
        gap: float,
        goal: float,
        counts: tuple[int, int, int],
        began: float,
        history: list[tuple[int, int, float]],
    ) -> SortedPoint:
        objective = at.value + penalty.norm(rows)
        point = make_point(
            self.problem, self.columns, lam, features, rows, at.nuisance, objective, gap, goal, counts, began
        )
        clusters = [features[group] for group in tied_rows(rows)]
        return SortedPoint(**vars(point), clusters=clusters, history=history)

    def _evaluate(self, features: Array, rows: Array) -> Evaluation:
        image = self.columns.combine(self.columns.places(features), rows)
        return self.loss.evaluate(image, self._nuisance)

    # -- working sets ---------------------------------------------------------------------------------------------

    def _first_working_set(self, lam: float, penalty: SortedPenalty, rejected: Array) -> tuple[Array, Array]:
        guessed, guess = self._predict(lam)
        keep = ~rejected[guessed]
        guessed, guess = guessed[keep], guess[keep]
        if self._solver != "auto" or self.design.n_features <= _FEW_FEATURES:
            working = np.flatnonzero(~rejected)
        else:
            leading = penalty.leading(np.where(rejected, 0.0, self._levels))
            room = max(500, 2 * len(self._now[1]))
            working = np.union1d(leading[:room], guessed)
            working = working[~rejected[working]]
        rows = np.zeros((len(working), self.design.n_tasks))
        rows[np.searchsorted(working, guessed)] = guess
        return working, rows

    def _predict(self, lam: float) -> tuple[Array, Array]:
        """The secant of the last two solutions; the paper's solvers start from the last one, as they do there."""
        if self._guess is not None:
            guess, self._guess = self._guess, None
            return guess
        last, features, rows = self._now
        if self._before is None or self._solver != "auto" or not len(features) or self._before[0] == last:
            return features, rows
        earlier, old_features, old_rows = self._before
        old = np.zeros_like(rows)
        _, here, there = np.intersect1d(features, old_features, return_indices=True)
        old[here] = old_rows[there]
        ahead = rows + (lam - last) / (last - earlier) * (rows - old)
        if self._positive:
            ahead = np.maximum(ahead, 0.0)
        ahead[np.einsum("ij,ij->i", ahead, rows) <= 0.0] = 0.0
        return features, ahead

    def _grow(self, working: Array, rows: Array, violators: Array) -> tuple[Array, Array]:
        room = max(200, int(np.count_nonzero(rows.any(axis=1))))
        grown = np.union1d(working, violators[:room])
        larger = np.zeros((len(grown), rows.shape[1]))
        larger[np.searchsorted(grown, working)] = rows
        return grown, larger

    # -- solving --------------------------------------------------------------------------------------------------

    def _solve(
        self, penalty: SortedPenalty, working: Array, rows: Array, tol: float, max_iter: int
    ) -> SortedSolution:
        if not len(working):
            return SortedSolution(rows, rows, 0, 0.0, [])
        places = self.columns.places(working)
        here = SortedWorking(self.columns, places, penalty.head(len(places)), self.loss)
        if self._curvature is None:
            self._curvature = here.curvature()
        if self._solver == "auto" and self.problem.squared and isinstance(self.columns, PackedColumns):
            return self._compiled(here, rows, tol, max_iter)
        shrink = None
        if self._solver != "auto" and self._test is not None:
            shrink = self._shrinker(penalty, working)
        if self._solver == "spgd":
            return sorted_stochastic(here, rows, tol, max_iter, curvature=self._curvature, shrink=shrink)
        solved, curvature = sorted_accelerated(
            here,
            rows,
            tol,
            max_iter,
            curvature=self._curvature,
            adaptive=self._solver == "auto",
            shrink=shrink,
            nuisance=self._nuisance,
        )
        # What one value learned about the curvature, the next begins with.
        self._curvature = 1.2 * curvature if self._solver == "auto" else max(self._curvature, curvature)
        return solved

    def _compiled(self, here: SortedWorking, rows: Array, tol: float, max_iter: int) -> SortedSolution:
        """The same method for the squared loss on packed columns, without leaving the kernel."""
        packed, places = self.columns, here.places
        target = self.loss.null.residual
        one_matrix = packed.shared or packed.n_tasks == 1
        count, height = len(places), len(packed.x)
        gram = None
        if one_matrix and count <= height and len(packed.features) <= _GRAM_COLUMNS:
            gram = np.ascontiguousarray(packed.gram(places))
        x = packed.x[:, :0] if gram is not None else np.asfortranarray(packed.x[:, places])
        w = np.ascontiguousarray(rows)
        w = w.copy() if w is rows else w
        dual = np.zeros_like(w)
        products = packed.correlate(target, places)
        assert self._curvature is not None
        work = count * height * packed.n_tasks
        iterations, gap, curvature = self._fista.solve(
            x,
            packed.offsets,
            packed.shared,
            target,
            gram,
            products,
            2.0 * self.loss.null.value,
            here.penalty.weights,
            self._positive,
            w,
            dual,
            tol,
            max_iter,
            _CHECK_EVERY,
            self._curvature,
            packed.n_threads if work > 4_000_000 else 1,
        )
        self._curvature = 1.1 * curvature
        return SortedSolution(w, dual, iterations, gap, [(iterations, count, gap)])

    def _shrinker(self, penalty: SortedPenalty, working: Array) -> Callable[..., Array]:
        """Dynamic screening for a solver that works on all rows not yet rejected."""
        kappa = np.max(self.design.norms(), axis=1)[working]
        alive = np.arange(len(working))
        least_upper = np.full(len(working), np.inf)  # a bound at the optimum stays true: the best one is kept
        test = self._test
        assert test is not None
        targets = None
        if self.problem.squared:
            targets = self.columns.correlate(self.loss.null.residual, self.columns.places(working))

        def shrink(
            rows: Array, at: Evaluation, products: Array, gap: float, scale: float, least: float
        ) -> Array:
            nonlocal alive, least_upper
            here = penalty.head(len(alive))
            radius = np.sqrt(2.0 * self.loss.smoothness * self._floored(gap))
            upper = here.sizes(scale * products) + radius * kappa[alive]
            if targets is not None:
                on_residual, on_target, radius = self._cut_ball(at, rows, products, here, scale)
                centre = on_residual * products + on_target * targets[alive]
                upper = np.minimum(upper, here.sizes(centre) + radius * kappa[alive])
            upper += self.design.rounding * kappa[alive] * np.sqrt(2.0 * self.loss.null.value)
            least_upper = np.minimum(least_upper, upper)
            gone = np.asarray(test(least_upper, here.weights))
            if np.count_nonzero(gone) < least * len(gone):
                return np.zeros_like(gone)
            alive, least_upper = alive[~gone], least_upper[~gone]
            return gone

        return shrink

    # -- screening ------------------------------------------------------------------------------------------------

    def _floored(self, gap: float) -> float:
        """A computed gap of zero is no proof of exactness (mathematics 2.2)."""
        return max(gap, 1e-14 * self.loss.null.value)

    def _cut_ball(
        self, at: Evaluation, rows: Array, products: Array, penalty: SortedPenalty, scale: float
    ) -> tuple[float, float, float]:
        """The ball of mathematics 2.5 for squared loss: its centre in terms of residual and target, its radius.

        u0 = scale r, a = XW = y - r, eps = J(W) - <a, u0>, rho = y - u0; centre (u0 + y - s a)/2.
        """
        y, r = self.loss.null.residual, at.residual
        image = y - r
        length = float(image @ image)
        rho = y - scale * r
        slack = max(penalty.norm(rows) - scale * float(np.vdot(products, rows)), 0.0)
        ahead = max(float(rho @ image) - 2.0 * slack, 0.0)
        s = ahead / length if length > 0.0 else 0.0
        square = float(rho @ rho) - (ahead * ahead / length if length > 0.0 else 0.0)
        radius = 0.5 * np.sqrt(max(square, 0.0) + 4e-15 * float(rho @ rho) + 1e-14 * float(y @ y))
        return 0.5 * (scale + s), 0.5 * (1.0 - s), float(radius)

    def _rejects(self, state: DualState, penalty: SortedPenalty) -> Array:
        """Rows that are zero at this strength, from any pair; no pass over the data."""
        assert self._test is not None
        anchors = self._anchors
        gap, scale = state.gap(self.problem, penalty, state.sizes)
        radius = np.sqrt(2.0 * self.loss.smoothness * self._floored(gap))
        upper = self._bounds(anchors.current.scaled(scale), radius)
        # What was measured is sharper than the anchors know.
        kappa = np.max(self.design.norms(), axis=1)
        upper = np.minimum(upper, scale * state.sizes + (radius + self._rounding()) * kappa)
        if self.problem.squared:
            on_residual, on_target, radius = self._cut_ball(
                state.at, state.rows, state.products, penalty, scale
            )
            centre = anchors.current.scaled(on_residual) + anchors.anchor(0).scaled(on_target)
            upper = np.minimum(upper, self._bounds(centre, radius))
        return np.asarray(self._test(upper, penalty.weights))

    def _rounding(self) -> float:
        return self.design.rounding * float(np.sqrt(2.0 * self.loss.null.value))

    def _bounds(self, centre: Anchored, radius: float) -> Array:
        _, upper = self._anchors.ratios(centre, self._plain, radius=float(radius))
        return upper.copy()

    # -- certificate ----------------------------------------------------------------------------------------------

    def _certify(
        self,
        penalty: SortedPenalty,
        working: Array,
        solved: SortedSolution,
        at: Evaluation,
        objective: float,
        rejected: Array,
        best_dual: float,
        goal: float,
    ) -> tuple[DualState, float, float, Array]:
        """Gap over all features that are not certainly zero, and those that should join the working set."""
        live = np.flatnonzero(solved.dual_rows.any(axis=1))
        features, rows = working[live], solved.dual_rows[live]
        if not np.array_equal(solved.rows, solved.dual_rows):
            at = self._evaluate(features, rows)
        places = self.columns.places(working)
        products = self.columns.correlate(at.residual, places)
        d = self.design.n_features
        known = np.zeros(d, dtype=bool)
        known[working] = True
        if len(working) < d:
            estimate, upper = self._anchors.ratios(self._anchors.follow(at.residual), self._plain)
            self._levels, sizes = estimate.copy(), upper.copy()
        else:
            self._anchors.follow(at.residual)
            sizes = np.empty(d)
        sizes[working] = penalty.sizes(products)
        self._levels[working] = sizes[working]
        state = DualState(features, rows, at, products[live], sizes)
        own = at.value + penalty.norm(rows)
        while True:
            counted = np.where(rejected, 0.0, sizes)
            gap, _ = state.gap(self.problem, penalty, counted)
            dual = max(best_dual, own - gap)
            if objective - dual <= goal:
                break
            open_ = self._open(penalty, counted, known)
            if not len(open_):
                break
            if len(open_) > max(64, _TOUCH_FRACTION * d):
                everything = self.design.correlate(at.residual)
                everything[self.design.unpenalised] = 0.0
                self._anchors.add(at.residual, everything)
                self._anchors.stand_at(len(self._anchors) - 1)
                measured = penalty.sizes(everything)
                sizes[~known] = measured[~known]
                known[:] = True
            else:
                sizes[open_] = penalty.sizes(self.design.correlate(at.residual, open_))
                known[open_] = True
            self._levels[known] = sizes[known]
        violators = self._none
        if objective - dual > goal:
            leading = penalty.leading(np.where(rejected, 0.0, self._levels))
            inside = np.zeros(d, dtype=bool)
            inside[working] = True
            violators = leading[~inside[leading]]
        return state, objective - dual, dual, violators

    @staticmethod
    def _open(penalty: SortedPenalty, sizes: Array, known: Array) -> Array:
        """Features that are only bounded, and could lift a cumulative sum above what the known ones reach."""
        sure = penalty.polar(np.where(known, sizes, 0.0))
        order = np.argsort(-sizes, kind="stable")
        ratios = np.cumsum(sizes[order]) / penalty.totals
        above = np.flatnonzero(ratios > sure * (1.0 + 1e-10))
        if not len(above):
            return order[:0]
        prefix = order[: int(above[-1]) + 1]
        return np.sort(prefix[~known[prefix]])


def solve_sorted_path(
    problem: SortedProblem,
    lams: Sequence[float] | Array,
    *,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    screening: str | None = "auto",
    solver: str = "auto",
    start: tuple[Array, Array] | None = None,
    progress: Callable[[int, int, Point], None] | None = None,
) -> PathSolution:
    """Solve a Group OWL problem at decreasing strengths, each to a certified duality gap.

    Parameters
    ----------
    problem : SortedProblem
    lams : decreasing strengths, in sum units
    tol, max_iter, start, progress
        As in `path.solve_path`.
    screening : {"auto", "cumulative", "bao", None}
        "bao" is the test of Bao et al. (2025, eq. 20), "cumulative" the stronger one of `screening.owl`, and "auto".
    solver : {"auto", "apgd", "spgd"}
        "auto": accelerated proximal gradient on a working set; "apgd" and "spgd": Algorithms 1 and 2 of Bao et al. on
        all rows that screening leaves.
    """
    if solver not in SORTED_SOLVERS:
        raise ValueError(f"solver must be one of {SORTED_SOLVERS}; got {solver!r}")
    if screening not in SORTED_SCREENING:
        raise ValueError(f"screening must be one of {SORTED_SCREENING}; got {screening!r}")

    def start_engine() -> SortedEngine:
        return SortedEngine(problem, screening, solver, max_iter, single=len(lams) == 1, start=start)

    return run_path(problem, start_engine, lams, tol=tol, progress=progress)
