"""The engine: at each strength screen, solve on a working set, certify on all features, go on.

One step for every loss and penalty: what differs between models are the answers of the members (`losses`, `penalties`)
and the solver that a strategy chooses. Each value stops on its own duality gap over all features. The data are touched
rarely: columns are read once when they enter the working set, and the certificate reads only those columns that bounds
from past passes leave open (`anchors`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._kernels import kernels
from ..design import Gauges, Judgement, Rejection
from ..losses import Evaluation
from ..penalties import RowPenalty, live_rows, row_norms
from ..screening.rules import Rule
from ..solvers import Solution, WorkingProblem
from ..solvers.working import duality_gap
from .certificate import (
    NOT_FINITE,
    StoredSolution,
    certified_gap,
    certified_point,
    pass_errors,
    product_errors,
    stored_solution,
)
from .pair import Pair, Point, merged
from .problem import Problem
from .sieve import Sieve
from .status import Status
from .strategies import Strategy
from .values import Value

Array = np.ndarray[Any, Any]

_FEW_FEATURES = 256  # so few features are all taken into the working set at once
_TOUCH_FRACTION = 0.08  # more open bounds than this part of the features: make a full pass
_ROUNDING = 1e-14  # of the target's size
_ENOUGH = 0.95  # of the goal: where solving stops, so that what storing the numbers adds still fits
_RESOLVED = 1e-13  # of the objective at W = 0: gaps so small are made of rounding, however many iterations were spent
_MAX_ROUNDS = 200  # of growing the working set at one value; a dozen is usual at a cold start


@dataclass
class _Step:
    """A value on its way: what is requested, and what is counted."""

    lam: float
    penalty: RowPenalty
    goal: float
    next_lam: float | None = None
    passes: float = 0.0
    began: float = field(default_factory=time.perf_counter)
    rejected: int = 0
    dynamic: int = 0
    entries: int = 0
    iterations: int = 0
    steps: list[tuple[int, int, float]] = field(default_factory=list)
    rounds: int = 0
    working: int = 0
    open: int = 0  # features whose bounds could not decide


#: the pair of some gauges and of those that count, and its dual value
Found = Callable[[Gauges, Gauges | None], tuple[Pair, float]]


class Engine:
    """The state that is carried from one strength to the next.

    - `working_set`: False: every row that screening leaves is solved for, as in the papers on screening.
    - `lazy`: False: a full pass over the data at every value, as in the papers.
    - `single`: Only one value will be requested; it is not screened.

    A rule that is not safe is there for study: a single value is screened by it, too, and there are no working sets.
    """

    def __init__(
        self,
        problem: Problem,
        rules: Sequence[Rule],
        strategy: Strategy,
        *,
        working_set: bool = True,
        lazy: bool = True,
        max_iter: int = 10_000,
        single: bool = False,
        start: tuple[Array, Array] | None = None,
    ) -> None:
        self.problem, self.design, self.loss = problem, problem.design, problem.loss
        self.strategy, self.columns = strategy, strategy.columns
        self.max_iter = max_iter
        self.wrong_rejections = 0
        if not all(rule.safe for rule in rules):
            working_set = single = False
        self._lazy, self._single, self._guess = lazy, single, start
        self.lam_max = problem.lambda_max()
        self._n_penalised = int(np.count_nonzero(problem.penalty.penalised))
        few = self.design.n_features <= _FEW_FEATURES
        self._all_in = few or not working_set or strategy.whole
        problem.anchors.restart()
        screens = bool(rules) and self.lam_max > 0.0 and (not single or strategy.screens_single)
        self._bounds_all = not few or screens
        #: the vectors over features; summaries suffice where no feature is queried by itself
        self.ledger = problem.ledger(
            summaries=lazy and self._bounds_all and not self._all_in
        )
        self._sieve = Sieve(problem, rules, self.columns, self.ledger) if screens else None
        self._safe = self._sieve is not None and self._sieve.safe
        self.pair = self._null_pair(self.lam_max)
        self.ledger.stand_at_null(self.lam_max)
        self.previous: Pair | None = None

    def resume(self, value: Value) -> None:
        """Go on from a value found by another solver."""
        features = value.features[self.problem.penalty.penalised[value.features]]
        rows = self.design.scaled_units(features, np.ascontiguousarray(value.rows[: len(features)]))
        step = _Step(value.lam, self.problem.penalty.at(value.lam), 0.0)
        features, rows = _with_whole_blocks(step.penalty, features, rows)
        self.pair, _ = self._certify(step, step.penalty.restrict(features), features, Solution(rows, 0, np.inf))

    # -- one value ------------------------------------------------------------------------------------------------

    def step(self, lam: float, goal: float, next_lam: float | None = None) -> Value:
        """Solve at a strength until the gap over all features is at most `goal`; `next_lam` comes after it."""
        penalty = self._penalty_at(lam)
        step = _Step(lam, penalty, goal, next_lam, self.design.passes)
        if lam >= self.lam_max:
            if self._sieve is not None:
                step.rejected = self._n_penalised
            pair = best = self._null_pair(lam, self._null_bounds(lam, penalty))
            pair.gap, _ = pair.dual_gap(self.loss, penalty, lam)
            self.problem.anchors.stand_at(0)
        else:
            guess = self._predict(lam)
            if self._sieve is not None:
                promising = self.pair.lam, lam, self._room(self.pair)
                step.rejected = self._sieve.before(self.pair, lam, penalty, guess[0], promising)
                predicted = self._predicted_pair(lam)
                if predicted is not None:
                    step.rejected += self._sieve.during(predicted, penalty)
            pair, best = self._solve_value(step, guess)
        self.previous, self.pair = self.pair, pair
        return self._value(best, step)

    def _penalty_at(self, lam: float) -> RowPenalty:
        """That of all features."""
        return self.problem.penalty.at(lam)

    def _solve_value(self, step: _Step, guess: tuple[Array, Array]) -> tuple[Pair, Pair]:
        """The last pair, whose dual point the anchors know, and the best one: the lowest primal point that was seen,
        with the highest dual one."""
        lam, penalty, goal = step.lam, step.penalty, _ENOUGH * step.goal
        working, rows = self._first_working_set(lam, penalty, *guess)
        cold = not len(self.pair.primal.features) and not self._all_in
        pair, gap, best_dual, inner = self.pair, np.inf, -np.inf, 0.8 * goal
        lowest = highest = None
        for _ in range(_MAX_ROUNDS):
            allowed = self.strategy.patience(self.max_iter - step.iterations)
            asked = self.strategy.accuracy(inner, gap, cold)
            own = penalty.restrict(working)
            step.rounds, step.working = step.rounds + 1, len(working)
            solved = self._solve(step, pair, own, working, rows, asked, allowed)
            if solved.alive is not None:
                working, solved = self._without_dropped(working, solved, step)
                own = penalty.restrict(working)
            pair, dual_value = self._certify(step, own, working, solved, best_dual)
            gap = pair.gap
            if not math.isfinite(gap):
                raise ValueError(NOT_FINITE)
            if lowest is None or pair.objective < lowest.objective:
                lowest = pair
            if highest is None or dual_value > best_dual:
                highest, best_dual = pair, dual_value
            if gap <= goal or step.iterations >= self.max_iter:
                break
            rows = solved.rows
            if self._safe:
                assert self._sieve is not None
                step.dynamic += self._sieve.during(pair, penalty, working)
                kept = self.ledger.kept(working)
                working, rows = working[kept], rows[kept]
            elif self._sieve is not None:
                self.wrong_rejections += self.ledger.bring_back()  # counted once
            violators = self._violators(max(100, int(np.count_nonzero(rows.any(axis=1)))))
            if len(violators):
                working, rows = _grown(penalty, working, rows, violators)
                continue
            if solved.gap <= inner:
                # Solved as required, yet the gap over all features is too large: require more.
                inner = min(0.2 * inner, 0.2 * solved.gap) if solved.gap > 0.0 else 0.1 * inner
                if inner < 1e-17 * self.loss.null.value:
                    break
            elif solved.gap > asked and solved.n_iter < allowed:
                break  # the solver has reached its limits
        assert lowest is not None and highest is not None
        if gap <= goal:
            lowest = pair
        elif lowest.objective > self.loss.null.value:  # never worse than W = 0
            lowest = self._null_pair(lam)
        found = min(gap, lowest.objective - best_dual)
        counting = highest.where_it_counts().gauges
        return pair, Pair(lam, lowest.primal, lowest.objective, highest.dual, counting, found)

    def _predicted_pair(self, lam: float) -> Pair | None:
        """The pair that the secant leads to, where a pass a value is allowed: it is nearer than the last one."""
        assert self._sieve is not None
        usable = not self._lazy and self._safe and all(rule.of_loss for rule in self._sieve.rules)
        if not usable or lam >= self.lam_max or self.previous is None or not len(self.pair.primal.features):
            return None
        features, rows = self._predict(lam)
        live = rows.any(axis=1)
        features, rows = _with_whole_blocks(self.problem.penalty, features[live], rows[live])
        positions = self.columns.positions(features)
        at = self.loss.evaluate(self.columns.combine(positions, rows), self.pair.primal.at.nuisance)
        point = Point(features, rows, at, self.columns.correlate(at.residual, positions))
        gauges = self.problem.anchors.remember(at.residual, self.problem.penalty) / lam
        self.ledger.gauges = gauges
        return Pair(lam, point, np.inf, point, Gauges(gauges))

    def _null_pair(self, lam: float, gauges: Gauges | None = None) -> Pair:
        """W = 0 at a strength."""
        empty, none = np.empty((0, self.design.n_tasks)), np.empty(0, dtype=np.int64)
        point = Point(none, empty, self.loss.null, empty)
        gauges = self.ledger.at_null(lam) if gauges is None else gauges
        return Pair(lam, point, self.loss.null.value, point, gauges)

    def _null_bounds(self, lam: float, penalty: RowPenalty) -> Gauges:
        """Upper bounds of the gauges of W = 0, by products of packed columns where those of a pass leave doubts."""
        null = self.loss.null
        near = self.ledger.null_bounds(lam, pass_errors(self.loss, null), _FEW_FEATURES)
        if len(near):
            positions = self.columns.positions(near)
            products = self.columns.correlate(null.residual, positions)
            errors = product_errors(self.loss, self.columns, positions, null)
            self.ledger.correct(near, penalty.restrict(near).upper_gauges(products, errors))
        return self.ledger.standing()

    def _value(self, pair: Pair, step: _Step) -> Value:
        """A finished value in the units of the raw columns, and the certificate of these very numbers."""
        design, point, penalty = self.design, pair.primal, step.penalty
        features = point.features
        positions = self.columns.positions(features)
        own = penalty.restrict(features)
        image = None if design.standardize else point.image
        numbers = stored_solution(self.loss, self.columns, positions, features, point.rows, point.at.nuisance)
        standing = certified_point(self.loss, own, self.columns, positions, numbers, image)
        if standing.objective > self.loss.null.value and len(features):  # what was stored may be worse than W = 0
            null = self._null_pair(pair.lam).primal
            nothing = penalty.restrict(null.features)
            other = stored_solution(self.loss, self.columns, positions[:0], null.features, null.rows, null.at.nuisance)
            found = certified_point(self.loss, nothing, self.columns, positions[:0], other)
            if found.objective < standing.objective:
                point, own, features, positions = null, nothing, null.features, positions[:0]
                numbers, standing = other, found
        known = None
        if point is pair.dual and point.errors is not None:
            known = point.products, point.errors
        everything, gauges, where = pair.whole(penalty, features)
        gap = certified_gap(
            self.loss, everything, self.columns, positions, where, standing, pair.dual.at, gauges, own, known
        )
        goal = max(step.goal, self.loss.least_goal())
        converged = bool(gap <= goal)
        status, limit = (Status.CONVERGED, None) if converged else self._limit(numbers, pair, gap, goal, step)
        norms = self.loss.residual_norms(point.at)
        rows, live = numbers.rows, live_rows(numbers.rows)
        if len(live) < len(rows):  # rows of a block that is not zero
            features, rows = features[live], rows[live]
        if len(design.unpenalised):
            features = np.concatenate([features, design.unpenalised])
            rows = np.vstack([rows, numbers.free])
        return Value(
            pair.lam,
            features,
            rows,
            numbers.intercept,
            standing.objective + self.loss.constant,
            gap,
            step.iterations,
            step.rejected,
            step.dynamic,
            time.perf_counter() - step.began,
            converged,
            step.entries,
            norms,
            penalty.ties(point.features, point.rows),
            step.steps,
            limit,
            status,
            self.strategy.algorithm,
            step.rounds,
            step.working,
            step.open,
            design.passes - step.passes,
            None if norms is None else pair.dual.at.residual,
            numbers.thresholds,
        )

    # -- working sets ---------------------------------------------------------------------------------------------

    def _first_working_set(
        self, lam: float, penalty: RowPenalty, guessed: Array, guess: Array
    ) -> tuple[Array, Array]:
        if self._all_in:
            working = self.ledger.all_left(penalty)
        else:
            chosen = self.ledger.promising(penalty, self.pair.lam, lam, self._room(self.pair))
            working = penalty.whole(merged(chosen, guessed[self.ledger.kept(guessed)]))
        return working, rows_of(working, guessed, guess)

    @staticmethod
    def _room(pair: Pair) -> int:
        """How many features a pair's successor begins with."""
        return max(500, 2 * len(pair.primal.features))

    def _violators(self, room: int) -> Array:
        """Violators outside the working set, worst first."""
        return self.ledger.violators(room)

    def _predict(self, lam: float) -> tuple[Array, Array]:
        """Start of a value: the secant of the last two solutions, linear in lam; published methods start from the last
        solution, as they do in the papers they stand for."""
        if self._guess is not None:
            guess, self._guess = self._guess, None
            return guess
        now, before = self.pair, self.previous
        features, rows = now.primal.features, now.primal.rows
        if before is None or before.lam == now.lam or len(features) == 0 or self.strategy.whole:
            return features, rows
        theta = (lam - now.lam) / (now.lam - before.lam)
        old = rows_of(features, before.primal.features, before.primal.rows)
        if self.strategy.only_sizes:
            sizes, old_sizes = row_norms(rows), row_norms(old)
            factor = np.maximum(1.0 + theta * (1.0 - old_sizes / sizes), 0.0)
            return features, rows * factor[:, None]
        predicted = rows + theta * (rows - old)
        if self.problem.penalty.positive:
            predicted = np.maximum(predicted, 0.0)
        predicted[np.add.reduce(predicted * rows, axis=1) <= 0.0] = 0.0
        if self.problem.penalty.has_entries:  # entries leave one by one
            predicted[predicted * rows <= 0.0] = 0.0
        return features, predicted

    def _without_dropped(self, working: Array, solved: Solution, step: _Step) -> tuple[Array, Solution]:
        """Rows that dynamic screening dropped inside the solver are rejected for good. On a path the next value needs
        all rows; a single one need not look at them again, but where the best dual point used them."""
        dropped = np.ones(len(working), dtype=bool)
        dropped[solved.alive] = False
        self.ledger.drop(working[dropped])
        step.dynamic += int(np.count_nonzero(dropped))
        if not self._single:
            return working, solved
        kept = ~dropped
        if solved.dual_rows is not None:
            kept |= solved.dual_rows.any(axis=1)
            kept = np.isin(working, self.problem.penalty.whole(working[kept]))
        return working[kept], solved.on(kept)

    # -- solving --------------------------------------------------------------------------------------------------

    def _solve(
        self, step: _Step, pair: Pair, own: RowPenalty, working: Array, rows: Array, tol: float, max_iter: int
    ) -> Solution:
        """Solve on a working set, whose penalty is `own`; `pair` is the latest one, of this strength or the last."""
        if not len(working):
            return Solution(rows, 0, 0.0)
        zero = shrink = None
        lam, penalty = step.lam, step.penalty
        if self._sieve is not None and self._safe:
            if self.strategy.whole:
                shrink = self._sieve.shrinker(lam, working, penalty)
                if not step.steps and step.rejected:
                    before, _ = pair.dual_gap(self.loss, penalty, lam)
                    step.steps.append((0, self.design.n_features, before))
            elif penalty.has_entries:
                entries = self._sieve.zero_entries(pair, lam, penalty)
                found = rows_of(working, pair.dual.features, entries) > 0.0
                step.entries = int(np.count_nonzero(found))
                if step.entries:
                    zero = found
                    rows[zero] = 0.0
        nuisance = pair.primal.at.nuisance
        here = WorkingProblem(self.columns, self.columns.positions(working), own, self.loss, zero, nuisance, shrink)
        solved = self.strategy.solve(here, rows, tol, max_iter, self.pair, self.previous, lam)
        step.steps += [(step.iterations + k, left, gap) for k, left, gap in solved.steps]
        step.iterations += solved.n_iter
        return solved

    # -- certificate ----------------------------------------------------------------------------------------------

    def _certify(
        self, step: _Step, own: RowPenalty, working: Array, solved: Solution, best_dual: float = -np.inf
    ) -> tuple[Pair, float]:
        """The pair over all features that are not certainly zero, and its dual value; `best_dual` is the largest dual
        value known at this strength."""
        positions = self.columns.positions(working)
        primal, dual, products, errors = self._points(working, positions, own, solved)
        lam, penalty = step.lam, step.penalty
        primal_penalty = dual_penalty = penalty.restrict(primal.features)
        objective = dual_objective = primal.at.value + primal_penalty.total(primal.rows)
        if dual is not primal:
            dual_penalty = penalty.restrict(dual.features)
            dual_objective = dual.at.value + dual_penalty.total(dual.rows)

        def found(gauges: Gauges, counted: Gauges | None) -> tuple[Pair, float]:
            pair = Pair(lam, primal, objective, dual, gauges, known=counted)
            whole = pair.where_it_counts().whole(penalty, dual.features)
            gap, _ = duality_gap(self.loss, dual_penalty, dual.rows, dual.at, dual.products, whole)
            dual_value = dual_objective - gap
            if dual is not primal:
                gap = max(objective - dual_value, 0.0)
            if best_dual > dual_value:
                gap = min(gap, max(objective - best_dual, 0.0) + 4e-16 * abs(objective))
            pair.gap = gap
            return pair, dual_value

        upper = own.upper_gauges(products, errors)
        return self._judge(step, working, upper, dual.at, pass_errors(self.loss, dual.at), found)

    def _judge(
        self, step: _Step, working: Array, upper: Array, at: Evaluation, errors: Array, found: Found
    ) -> tuple[Pair, float]:
        """The gauges of a dual point: bounds, errors included, and exact but for these where they are known.

        - `upper`: Those of the working set.
        - `at`: Where the dual point comes from.
        - `errors`: What products of a pass may be off.
        """
        ledger, penalty, goal = self.ledger, step.penalty, _ENOUGH * step.goal

        def next_question(rest: float) -> Rejection | None:
            """The request of the next step, if no other gauge turns out to be larger."""
            if not ledger.foresees or step.next_lam is None or self._sieve is None:
                return None
            likely = Gauges(upper, working, rest)
            pair, _ = found(likely, likely)
            if not pair.gap <= goal:
                return None
            promising = pair.lam, step.next_lam, self._room(pair)
            return self._sieve.lookahead(pair, step.next_lam, self._penalty_at(step.next_lam), promising)

        def measure(n_open: int, everything: bool = False) -> None:
            """Gauges of open features as products give them, or of all in a full pass that is remembered where they
            are many."""
            step.open += n_open
            if everything or n_open > max(64, _TOUCH_FRACTION * self.design.n_features):
                if self._sieve is not None:
                    self._sieve.before_reading(at, goal)
                before = self.pair.dual.at.residual if len(self.pair.dual.features) else None
                self.problem.anchors.add(at.residual, before)
                ledger.measure_all(at.residual, penalty, errors, next_question(0.0))
            else:
                ledger.measure(at.residual, penalty, errors)

        followed, note = None, False
        if self._bounds_all:
            assert at.leak is not None
            followed, note = self.problem.anchors.judge(at.residual, at.leak, penalty)
        asked = Judgement(followed, note, penalty, step.lam, working, upper, self._safe, at.residual, errors)
        n_open = ledger.judge(asked, next_question(1.0))
        everything = not self._lazy and self._bounds_all
        if everything or n_open:
            measure(n_open, everything)
        while True:
            pair, dual_value = found(*ledger.settle())
            if pair.gap <= goal or not (n_open := ledger.judge_again()):
                break
            measure(n_open)
        if pair.gap > goal:
            ledger.find_violators()
        return pair, dual_value

    def _points(
        self, working: Array, positions: Array, own: RowPenalty, solved: Solution
    ) -> tuple[Point, Point, Array, Array]:
        """The primal point, the point that gives the dual one, the latter's correlations with the working set, and
        what these may be off."""
        at = solved.evaluation
        if at is None:
            # Of two equal columns a solver may leave one with a coefficient that is nothing but rounding: rows whose
            # whole effect is below the rounding of the target become zero, before anything is certified.
            effect = row_norms(solved.rows) * self.design.longest(working)
            solved.rows[effect <= _ROUNDING * self.loss.size] = 0.0
        live = own.whole(live_rows(solved.rows))
        everywhere = len(live) == len(working)
        features, rows = working if everywhere else working[live], solved.rows[live]
        image = None
        if at is None:
            image = self.columns.combine(positions if everywhere else positions[live], rows)
            at = self.loss.evaluate(image, self.pair.primal.at.nuisance)
        other = solved.dual_rows
        if other is not None and not np.array_equal(other, solved.rows):
            there = own.whole(live_rows(other))
            there_image = self.columns.combine(positions[there], other[there])
            dual_at = self.loss.settled(self.loss.evaluate(there_image, at.nuisance))
            products = self.columns.correlate(dual_at.residual, positions)
            errors = product_errors(self.loss, self.columns, positions, dual_at)
            dual = Point(working[there], other[there], dual_at, products[there], errors=errors[there])
            return Point(features, rows, at, np.empty((0, 0)), image), dual, products, errors
        products = solved.products
        if solved.dual is not None:
            at, products = replace(at, residual=solved.dual), None
        residual, at = at.residual, self.loss.settled(at)
        if products is None or at.residual is not residual:
            products = self.columns.correlate(at.residual, positions)
        errors = product_errors(self.loss, self.columns, positions, at)
        point = Point(features, rows, at, products[live], image, errors[live])
        return point, point, products, errors

    def _limit(
        self, numbers: StoredSolution, pair: Pair, gap: float, goal: float, step: _Step
    ) -> tuple[Status, str | None]:
        """How a value that did not converge ended, and in words what no more iterations would change."""
        design, loss = self.design, self.loss
        explained = np.flatnonzero(loss.explained(pair.dual.at))
        if len(explained):
            what = "unpenalised features separate the classes" if len(design.unpenalised) else "there is one class only"
            return Status.NO_OPTIMUM, f"{what} in task {explained[0]} (of tasks_): there is no finite optimum"
        if pair.gap > goal:
            if step.iterations >= self.max_iter and pair.gap > _RESOLVED * loss.null.value:
                return Status.ITERATIONS, None
            words = f"after {step.iterations} iterations no step makes the gap smaller: choose a larger tol"
            return Status.STALLED, words
        weights = np.ones(design.n_samples) if design.weights is None else design.weights
        steps = np.spacing(np.abs(numbers.intercept))
        lost = 0.125 * design.task_sums(weights) * steps**2 * min(loss.smoothness, 1.0)
        t = int(np.argmax(lost))
        words = "this is what double precision resolves: choose a larger tol"
        if lost[t] > 0.1 * gap:
            words = (
                f"intercept_[{t}] is {numbers.intercept[t]:.1e}, which double precision resolves to {steps[t]:.0e}: "
                f"subtract a constant from {self._offender(numbers, t)}"
            )
        elif len(design.unpenalised) and float(np.min(design.independence)) < 1e-3:
            words = "unpenalised features are nearly collinear: leave one of them out"
        return Status.ROUNDING, words

    def _offender(self, numbers: StoredSolution, t: int) -> str:
        """What makes an intercept large: y, or a feature with a large mean."""
        design = self.design
        shifts = self.columns.shifts(self.columns.positions(numbers.features))[:, t] * numbers.rows[:, t]
        free = design.nuisance_shifts[int(design.fit_intercept) :, t] * numbers.free[:, t]
        pulls = np.concatenate([[self.loss.shift[t]], shifts, free])
        worst = int(np.argmax(np.abs(pulls))) - 1
        if worst < 0:
            return "y"
        return f"feature {np.concatenate([numbers.features, design.unpenalised])[worst]}"


def rows_of(features: Array, known: Array, rows: Array) -> Array:
    """Rows of these features, from those of known ones; zero for others. Both ascend."""
    out = np.empty((len(features), rows.shape[1]))
    kernels.pick_rows(known, np.ascontiguousarray(rows, dtype=np.float64), features, out)
    return out


def _grown(penalty: RowPenalty, working: Array, rows: Array, violators: Array) -> tuple[Array, Array]:
    """The working set with some violators."""
    grown = penalty.whole(merged(working, violators))
    return grown, rows_of(grown, working, rows)


def _with_whole_blocks(penalty: RowPenalty, features: Array, rows: Array) -> tuple[Array, Array]:
    """The same with zero rows for what is missing of their blocks."""
    whole = penalty.whole(features)
    return (features, rows) if len(whole) == len(features) else (whole, rows_of(whole, features, rows))
