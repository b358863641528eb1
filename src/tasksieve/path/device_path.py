"""The device solver: where columns lie on a device, one exact pass a value instead of anchors, bounds and screening.

There a pass over all columns costs less than what the engine does with plain vectors over the features at every value.
So nothing of that length is transferred: the device returns the few features whose gauges reach a level, or that lead
by rank where a norm sorts its rows. For the squared loss and the group norm working sets are made, solved and judged
there (`device_batch`): it is at work on the next value while this process certifies the last one. For other losses and
penalties, and where it stalls, working sets are made here, and solved by Newton's method there or by the solvers of
this process. Everything that a certificate is made of is the engine's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import Gauges
from ..losses import Evaluation, TargetLoss
from ..penalties import RowPenalty, row_norms
from ..solvers import Solution, VariationalNewton, WorkingProblem
from .certificate import pass_errors
from .choose import choose_strategy
from .engine import Engine, Found, rows_of
from .pair import Pair, among, merged
from .problem import Problem
from .solved_there import SolvedThere
from .strategies import CoordinateOrNewton, Strategy
from .values import Value

Array = np.ndarray[Any, Any]

SHARE = 0.9  # of the goal: how well the device solves, so that what certifying adds still fits
_PADDED = 4  # times the samples, at most, that tasks take which are filled up to the longest
_SAME = 1e-12  # of a strength: rounding
_APART = 1e-6  # of a gauge: far more than rounding
_LEAST_WORK = 2_000_000  # for which threads are woken that sleep most of the time
_FEW_STEPS = 100  # so few are left to a solver that counts them one by one


def in_batches(problem: Problem) -> bool:
    """Whether it is one that `device_batch` solves."""
    return VariationalNewton.needs.unmet(problem.loss, problem.penalty) is None


def by_passes(problem: Problem) -> bool:
    """Whether the few gauges that a device returns of a pass determine the certificates of a problem."""
    penalty = problem.penalty
    if penalty.thresholds() is None:
        return False
    # a quadratic part would change gauges, and so ranks, after they were sorted
    return penalty.by_threshold or (penalty.sorted_form() is not None and not penalty.curved)


def strategy_of(problem: Problem) -> Strategy:
    """The fastest for working sets of columns on a device."""
    if in_batches(problem):
        return _Strategy(problem, "auto")
    from ..solvers.device_row_newton import DeviceRowNewton

    if DeviceRowNewton.serves(problem.loss, problem.penalty):
        return DeviceRowStrategy(problem)
    return choose_strategy(problem, "auto")


def _batch(problem: Problem) -> Any:
    """The problem as `device_batch` takes it; None where tasks are too unlike in length."""
    from .device_batch import DeviceBatch

    samples, loss = problem.design.samples, problem.loss
    assert isinstance(loss, TargetLoss)
    if not samples.uniform and samples.n_tasks * samples.depth > _PADDED * samples.n_samples:
        return None
    return DeviceBatch(problem, samples.root[None], loss.target[None], samples.basis[None])


class _Strategy(CoordinateOrNewton):
    """What goes on where the device does not; `there`: it does."""

    there = False

    @property
    def algorithm(self) -> str:
        return "newton" if self.there else super().algorithm


class DeviceRowStrategy(Strategy):
    """Newton's method on the device for losses of rows, and what is fastest here where that does not serve."""

    algorithm = "newton"
    only_sizes = True

    def __init__(self, problem: Problem) -> None:
        from ..solvers.device_row_newton import DeviceRowNewton

        self._here = choose_strategy(problem, "auto")
        super().__init__(problem, self._here.solver)
        self.columns = self._here.columns
        device = problem.design.shard.storage.device
        self._device = DeviceRowNewton(self.columns, device, problem.loss, problem.penalty.has_entries)

    def solve(
        self, work: WorkingProblem, rows: Array, tol: float, max_iter: int, now: Pair, before: Pair | None, lam: float
    ) -> Solution:
        if self._device.fits(len(rows)):
            solved = self._device.solve(work, rows, tol, max_iter)
            if solved.gap <= tol:
                return solved
            rows = solved.rows
        return self._here.solve(work, rows, tol, max_iter, now, before, lam)


class _AtStrength:
    """A penalty at a strength, of which only a few features are used; all else is made on demand, once."""

    def __init__(self, unit: RowPenalty, lam: float) -> None:
        self._unit, self._lam = unit, lam
        self._whole: RowPenalty | None = None
        self._last: tuple[Array, RowPenalty] | None = None  # features, and the penalty of these
        # whatever the strength
        self.separable, self.has_entries, self.gauge_error = unit.separable, unit.has_entries, unit.gauge_error
        self.whole, self.ties, self.polar, self.by_row = unit.whole, unit.ties, unit.polar, unit.by_row

    def restrict(self, features: Array) -> RowPenalty:
        if self._last is None or self._last[0] is not features:
            self._last = features, self._unit.restrict(features).at(self._lam)
        return self._last[1]

    def __getattr__(self, name: str) -> Any:
        if self._whole is None:
            self._whole = self._unit.at(self._lam)
        return getattr(self._whole, name)


def _agree(there: SolvedThere, features: Array, gauges: Array) -> bool:
    """Whether the gauges that a device has listed are those which products here give of some of the features. They are
    bounds of the same numbers: were they apart, something there would be wrong, and a pass is made again."""
    listed, found = there.listed.features, there.listed.gauges
    if not len(listed):
        return bool(np.all(gauges <= (1.0 + _APART) * there.level))
    at = np.minimum(np.searchsorted(listed, features), len(listed) - 1)
    same, below = np.abs(found[at] - gauges) <= _APART * gauges, gauges <= (1.0 + _APART) * there.level
    return bool(np.where(listed[at] == features, same, below).all())


class DeviceEngine(Engine):
    """`Engine` with a full pass in place of bounds; the gauges of all features stay where the columns are."""

    def __init__(self, problem: Problem, **options: Any) -> None:
        super().__init__(problem, (), strategy_of(problem), **options)
        self._by_device = in_batches(problem) and self.lam_max > 0.0 and self.max_iter >= _FEW_STEPS
        self._batch: Any = None
        #: a value that the device is at work on: strength and goal
        self._ahead: tuple[float, float] | None = None
        #: the last value that it has solved, while it is certified
        self._found: SolvedThere | None = None
        self._longest_root = float(np.max(self.design.samples.root))
        self.columns.least_work = _LEAST_WORK

    def resume(self, value: Value) -> None:
        super().resume(value)
        self._by_device = False

    @property
    def _shard(self) -> Any:
        return self.design.shard

    def _penalty_at(self, lam: float) -> Any:
        return _AtStrength(self.problem.penalty, lam)

    # -- on the device --------------------------------------------------------------------------------------------

    def _predict(self, lam: float) -> tuple[Array, Array]:
        if self._by_device and self._guess is None:  # the device has its own guess
            return self.pair.primal.features, self.pair.primal.rows
        return super()._predict(lam)

    def _solve_value(self, step: Any, guess: tuple[Array, Array]) -> tuple[Pair, Pair]:
        if self._by_device:
            assert isinstance(self.strategy, _Strategy)
            self.strategy.there = True
            found = self._there(step, guess)
            if found is not None:
                return found
            self._by_device = self.strategy.there = False
            if len(self.pair.primal.features):  # its successor's working set is made of gauges
                at = self.pair.dual.at
                self._shard.survey(at.residual, self.problem.penalty, pass_errors(self.loss, at))
        return super()._solve_value(step, guess)

    def _there(self, step: Any, guess: tuple[Array, Array]) -> tuple[Pair, Pair] | None:
        """A value as the device solves it, certified here while that goes on with the next one; None where it
        stalls."""
        found = self._solved_before(step.lam)
        if found is None:
            found = self._finished(step, guess)
        if found is None:
            return None
        step.rounds, step.working, step.iterations = found.rounds, found.n_working, found.n_steps
        self._shard.passes += found.n_readings
        self._found = found
        if len(self.columns.unread(found.features)):  # with what may be needed next: a request costs more than columns
            self.columns.positions(merged(found.features, found.listed.features))
        solved = Solution(found.rows, found.n_steps, found.gap, dual=found.residual)
        pair, _ = self._certify(step, step.penalty.restrict(found.features), found.features, solved)
        self._found = None
        return (pair, pair.where_it_counts()) if pair.gap <= step.goal else None

    def _solved_before(self, lam: float) -> SolvedThere | None:
        """A value that was solved with those of folds, at this strength but for rounding."""
        return next((one for one in self.problem.solved_there if abs(one.lam - lam) <= _SAME * lam), None)

    def _finished(self, step: Any, guess: tuple[Array, Array]) -> SolvedThere | None:
        if self._batch is None:
            self._batch = _batch(self.problem)
            if self._batch is None:
                return None
            self._shard.passes += self._batch.passes
        if self._ahead is None:
            self._batch.start_from(guess[0], row_norms(guess[1]))
        if self._ahead != (step.lam, step.goal):
            self._launch(step.lam, step.goal, step.next_lam)
        found = self._batch.finish()
        if found is None:
            return None
        if step.next_lam is not None and step.next_lam < step.lam:
            self._launch(step.next_lam, step.goal, None)
        first: SolvedThere = found.first
        return first

    def _launch(self, lam: float, goal: float, next_lam: float | None) -> None:
        last = float(self._batch.lams[0])
        after = lam * min(lam / last, 1.0) if next_lam is None else min(next_lam, lam)
        ridge = float(self.problem.penalty.restrict(np.empty(0, dtype=np.int64)).at(lam).ridge)
        self._batch.launch(*(np.array([number]) for number in (lam, after, SHARE * goal, ridge)))
        self._ahead = lam, goal

    def _judge(
        self, step: Any, working: Array, upper: Array, at: Evaluation, errors: Array, found: Found
    ) -> tuple[Pair, float]:
        here, separable = self._found, step.penalty.separable
        rest = 1.0 if separable else 0.0
        if here is not None and at.residual is here.residual and _agree(here, working, upper * step.lam):
            # Its gauges are known, the rounding of products included. They are those of raw columns: nuisance columns
            # explain a part of these, and the residual is orthogonal to that but for its leak.
            assert at.leak is not None
            leak = self._longest_root * float(np.linalg.norm(at.leak))
            listed, gauges = here.listed.features, here.listed.gauges + leak * here.listed.reach
            rest = (here.level + leak * here.longest) / step.lam * (1.0 + 1e-15)
        else:
            self._shard.survey(at.residual, self.problem.penalty, errors)
            # others are below 1; or, so far as ranks decide, no sum over more of them is larger, beside the weights of
            # its ranks
            listed, gauges = self._shard.reaching(step.lam) if separable else self._shard.leading(step.lam)
        gauges = gauges / step.lam
        if not separable:  # they lead in the order of ranks
            order = np.argsort(listed)
            listed, gauges = listed[order], gauges[order]
        outside = ~among(listed, working)
        self._beyond = listed[outside], gauges[outside]
        if separable:
            listed, gauges = listed[outside], gauges[outside]
        else:  # of those that lead the gauges are to be the ones that were sorted
            kept = ~among(working, listed)
            working, upper = working[kept], upper[kept]
        judged = np.concatenate([working, listed])
        order = np.argsort(judged)
        return found(Gauges(np.concatenate([upper, gauges])[order], judged[order], rest), None)

    # -- where the solvers of this process go on ------------------------------------------------------------------

    def _first_working_set(
        self, lam: float, penalty: RowPenalty, guessed: Array, guess: Array
    ) -> tuple[Array, Array]:
        if self._all_in:
            working = penalty.penalised.nonzero()[0]
            return working, rows_of(working, guessed, guess)
        last = self.pair.lam
        if self.pair.gauges.judged is None:  # W = 0: its gauges are those of the first pass, which are here
            chosen = penalty.promising(self.ledger.levels, last, lam)
            levels = self.ledger.levels[chosen]
        elif penalty.separable:
            chosen, levels = self._shard.reaching(last - 0.7 * (last - lam))
        else:
            chosen, levels = self._shard.leading(lam)
        room = self._room(self.pair)
        if len(chosen) > room:
            chosen = chosen[np.argpartition(levels, -room)[-room:]]
        working = merged(chosen, guessed)
        return working, rows_of(working, guessed, guess)

    def _violators(self, room: int) -> Array:
        features, gauges = self._beyond
        return features[np.argsort(-gauges)[:room]]
