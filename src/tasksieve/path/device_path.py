"""The device solver: where columns lie on a device, one exact pass a value instead of anchors, bounds and screening.

There a pass over all columns costs less than what the engine does with plain vectors over the features at every value.
So nothing of that length is transferred: the device keeps the gauges of its last pass, and returns the few that reach a
level, or that lead by rank where a norm sorts its rows. Working sets are solved by Newton's method on the device, where
there is one for loss and penalty; otherwise, and where that stalls, by the solvers of this process. Everything that a
certificate is made of is the engine's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import Gauges
from ..losses import Evaluation
from ..penalties import RowPenalty
from ..solvers import Solution, VariationalNewton, WorkingProblem
from .choose import choose_strategy
from .engine import Engine, Found, rows_of
from .pair import Pair, merged
from .problem import Problem
from .strategies import CoordinateOrNewton, Strategy

Array = np.ndarray[Any, Any]


def by_passes(problem: Problem) -> bool:
    """Whether the few gauges that a device returns of a pass determine the certificates of a problem."""
    penalty = problem.penalty
    if penalty.thresholds() is None:
        return False
    # a quadratic part would change gauges, and so ranks, after they were sorted
    return penalty.by_threshold or (penalty.sorted_form() is not None and not penalty.curved)


def strategy_of(problem: Problem) -> Strategy:
    """The fastest for working sets of columns on a device."""
    if VariationalNewton.needs.unmet(problem.loss, problem.penalty) is None:
        return DeviceStrategy(problem)
    from ..solvers.device_row_newton import DeviceRowNewton

    if DeviceRowNewton.serves(problem.loss, problem.penalty):
        return DeviceRowStrategy(problem)
    return choose_strategy(problem, "auto")


class DeviceStrategy(CoordinateOrNewton):
    """Newton's method on the device, and what `CoordinateOrNewton` does where that does not serve."""

    def __init__(self, problem: Problem) -> None:
        from ..solvers.device_newton import DeviceNewton

        super().__init__(problem, "auto")
        self._device = DeviceNewton(self.columns, problem.design.shard.storage.device)
        self.only_sizes = True

    def solve(
        self, work: WorkingProblem, rows: Array, tol: float, max_iter: int, now: Pair, before: Pair | None, lam: float
    ) -> Solution:
        if self._device.fits(len(rows)):
            solved = self._device.solve(work, rows, tol, max_iter)
            if solved.gap <= tol:
                return solved
            rows = solved.rows
        self.only_sizes = self._newton is not None
        here = super().solve(work, rows, tol, max_iter, now, before, lam)
        self.only_sizes = True
        return here


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
        # whatever the strength
        self.separable, self.has_entries, self.gauge_error = unit.separable, unit.has_entries, unit.gauge_error
        self.whole, self.ties, self.polar, self.by_row = unit.whole, unit.ties, unit.polar, unit.by_row

    def restrict(self, features: Array) -> RowPenalty:
        return self._unit.restrict(features).at(self._lam)

    def __getattr__(self, name: str) -> Any:
        if self._whole is None:
            self._whole = self._unit.at(self._lam)
        return getattr(self._whole, name)


class DeviceEngine(Engine):
    """`Engine` with a full pass in place of bounds; the gauges of all features stay where the columns are."""

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

    def _penalty_at(self, lam: float) -> Any:
        return _AtStrength(self.problem.penalty, lam)

    @property
    def _shard(self) -> Any:
        return self.design.shard

    def _judge(
        self, step: Any, working: Array, upper: Array, at: Evaluation, errors: Array, found: Found
    ) -> tuple[Pair, float]:
        self._shard.survey(at.residual, self.problem.penalty, errors)
        if step.penalty.separable:  # others are below 1
            listed, gauges = self._shard.reaching(step.lam)
            rest = 1.0
        else:  # so far as ranks decide: no sum over more of them is larger, beside the weights of its ranks
            listed, gauges = self._shard.leading(step.lam)
            rest = 0.0
        gauges = gauges / step.lam
        outside = ~np.isin(listed, working)
        self._beyond = listed[outside][np.argsort(-gauges[outside])]
        if step.penalty.separable:
            listed, gauges = listed[outside], gauges[outside]
        else:  # of those that lead the gauges are to be the ones that were sorted
            kept = ~np.isin(working, listed)
            working, upper = working[kept], upper[kept]
        judged = np.concatenate([working, listed])
        order = np.argsort(judged)
        return found(Gauges(np.concatenate([upper, gauges])[order], judged[order], rest), None)

    def _violators(self, room: int) -> Array:
        return self._beyond[:room]
