"""What follows the path of a model, in the units of its data: on rows, on sums over them, and from sums to rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ..design import one_blas_thread
from ..design.device.machine import memory_in_words
from ..fitted.path import Scale
from ..fitted.progress import reporter
from ..fitted.scales import warn_norms, warn_scales
from ..path.choose import fastest
from ..path.follow import Pace, PathSolution, Progress, follow
from ..path.policy import Choice, Kind, handed_over
from ..path.problem import Problem
from ..path.values import Value
from ..path.walks import PathWalk
from ..tasks import read_feature_weights
from .units import Units

GIVEN_SUMS = Choice(Kind.SUMS, "only sums over the rows are known")


def alpha_of(largest: float, unit: float) -> float:
    """The alpha of a strength in sum units: rounding must not leave it a hair below the truth."""
    alpha = largest / unit
    while alpha * unit < largest:
        alpha = np.nextafter(alpha, np.inf)
    return float(alpha)


class PathSolver(Protocol):
    """The path of a model on some data, from the largest alpha to the smallest; all numbers in units of the data."""

    @property
    def choice(self) -> Choice | None:
        """Which solver, and why; None before the first value, where it is chosen only then."""

    @property
    def passes(self) -> float:
        """Readings of the data so far."""

    @property
    def null_objective(self) -> float:
        """The objective at W = 0, in sum units."""

    @property
    def scale(self) -> Scale:
        """What columns are divided by, as `_set_scale` of a model takes it."""

    @property
    def history(self) -> Any:
        """What an algorithm for study has kept, or None."""

    @property
    def problem(self) -> Any:
        """What is solved."""

    def alpha_max(self) -> float:
        """The smallest alpha whose solution is zero."""

    def values(self, alphas: np.ndarray) -> Sequence[Value]:
        """The first of the values at the next alphas, as many as are best found together; none where it ends."""

    def warn_scales(self, names: np.ndarray | None) -> None:
        """Of columns in very different units, once a fit."""


def solve_along(
    solver: PathSolver, alphas: np.ndarray, callback: Progress | None = None, pace: Pace | None = None
) -> PathSolution:
    """The values at decreasing alphas, as far as the solver and the pace lead."""
    pace = Pace() if pace is None else pace
    solution = PathSolution(np.nan)
    with one_blas_thread():
        follow(solution, lambda k: solver.values(alphas[k:][: pace.most]), len(alphas), callback, pace)
    solution.null_objective, solution.passes = solver.null_objective, solver.passes
    solution.choice, solution.history = solver.choice, solver.history
    return solution


class RowSolver:
    """On the rows, with the solver that `policy` chooses for a problem in memory or on a device.

    - `model`: With the requested accuracy.
    - `data`: Its rows are those with a positive weight.
    - `problem`: The model's on these rows.
    - `n_values`: That will be requested.
    - `after`: The last value of sums over the rows, from which to continue; its units are those of the data.
    - `by_sums`: False: sums were given up before, and are not tried again.
    - `start`: A first guess, in the units of the problem.
    - `note`: Whether progress reports where the columns are, where that is of interest.
    """

    def __init__(
        self,
        model: Any,
        data: Any,
        problem: Problem,
        n_values: int,
        *,
        after: Value | None = None,
        by_sums: bool = True,
        start: Any = None,
        note: bool = False,
    ) -> None:
        self._model, self._data, self.problem, self._n_values = model, data, problem, n_values
        self._after, self._by_sums, self._start, self._note = after, by_sums, start, note
        self._walk: PathWalk | None = None

    def _begin(self) -> PathWalk:
        model, units, after = self._model, self.problem.units, self._after
        note = self.problem.design.note if self._note else ""
        report = reporter(type(model).__name__, "value", model.verbose) if note else None
        if report is not None:
            report(0, self._n_values, note)
        if after is not None:
            lam = units.inward(np.array([after.lam]))[0]
            after = replace(after, lam=float(lam), rows=units.rows(after.rows))
        return PathWalk(
            self.problem,
            self._n_values,
            max_iter=model.max_iter,
            after=after,
            by_gram=self._by_sums,
            start=self._start,
            **model._engine_options(),
        )

    @property
    def choice(self) -> Choice | None:
        return None if self._walk is None else self._walk.choice

    @property
    def passes(self) -> float:
        return self.problem.design.passes

    @property
    def null_objective(self) -> float:
        return float(np.ldexp(self.problem.loss.null.value, self.problem.units.f))

    @property
    def scale(self) -> Scale:
        return self.problem.design.scale, self.problem.units.x

    @property
    def history(self) -> Any:
        return None if self._walk is None else self._walk.history

    def alpha_max(self) -> float:
        fastest(self.problem)  # a loss that cannot be solved is refused here as well
        largest = self.problem.units.outward(self.problem.lambda_max())
        return alpha_of(largest, self._model._strength() * self._model._unit(self._data))

    def values(self, alphas: np.ndarray) -> Sequence[Value]:
        units = self.problem.units
        lams = self._model._inward(self._data, units, alphas)
        goals = np.full(len(lams), self._model.tol * self.problem.loss.null.value)
        with memory_in_words():
            if self._walk is None:
                self._walk = self._begin()
            return units.values(self._walk.values(lams, goals))

    def warn_scales(self, names: np.ndarray | None) -> None:
        if not self._model.standardize:
            weights = read_feature_weights(self._model.feature_weights, self._data.n_features)
            warn_scales(self.problem.design, self._data.make_storage(), weights, names)


class SumSolver:
    """On sums over the rows: `values` finds none where these lack digits and the rows can be had instead.

    - `model`: With squared loss and a penalty of the sparse group family.
    - `units`: Of the sums.
    - `choice`: Why sums.
    - `readings`: Of the rows.
    - `small`: Whether the columns are indicators or counts, whose scales say nothing.
    """

    history = None

    def __init__(
        self,
        model: Any,
        facts: Any,
        problem: Any,
        units: Units | None = None,
        *,
        choice: Choice = GIVEN_SUMS,
        readings: int = 1,
        small: bool = False,
    ) -> None:
        self.model, self.facts, self.problem, self.choice = model, facts, problem, choice
        self._units = Units() if units is None else units
        self.passes, self._small = float(readings), small

    @property
    def null_objective(self) -> float:
        return float(np.ldexp(self.problem.null_value, self._units.f))

    @property
    def scale(self) -> Scale:
        return self.problem.scale, 0

    def alpha_max(self) -> float:
        largest = self._units.outward(self.problem.lambda_max())
        return alpha_of(largest, self.model._strength() * self.model._unit(self.facts))

    def values(self, alphas: np.ndarray) -> Sequence[Value]:
        model = self.model
        lams = model._inward(self.facts, self._units, alphas)
        goals = np.full(len(lams), model.tol * self.problem.null_value)
        return self._units.values(self.problem.values(lams, goals, model.max_iter))

    def warn_scales(self, names: np.ndarray | None) -> None:
        if self.model.standardize or self._small:
            return
        norms = np.sqrt(self.problem.spread.max(axis=0))
        weights = read_feature_weights(self.model.feature_weights, len(norms))
        counted = np.ones(len(norms), dtype=bool) if weights is None else weights == 1.0
        warn_norms(norms, counted, names)


class SumsThenRows:
    """On sums as far as these lead, then on the rows from their last value on.

    - `rows`: ``rows(after)`` makes the other solver, given the last value of the sums, or None.
    """

    def __init__(self, sums: PathSolver, rows: Callable[[Value | None], PathSolver]) -> None:
        self._sums, self._begin = sums, rows
        self._rows: PathSolver | None = None
        self._last: Value | None = None

    @property
    def _now(self) -> PathSolver:
        return self._sums if self._rows is None else self._rows

    @property
    def choice(self) -> Choice | None:
        chosen = self._sums.choice
        return chosen if self._rows is None or chosen is None else handed_over(chosen)

    @property
    def passes(self) -> float:
        return self._sums.passes + (0.0 if self._rows is None else self._rows.passes)

    @property
    def null_objective(self) -> float:
        return self._now.null_objective

    @property
    def scale(self) -> Scale:
        return self._now.scale

    @property
    def history(self) -> Any:
        return self._now.history

    @property
    def problem(self) -> Any:
        return self._now.problem

    def alpha_max(self) -> float:
        return self._now.alpha_max()

    def values(self, alphas: np.ndarray) -> Sequence[Value]:
        if self._rows is None:
            found = self._sums.values(alphas)
            if len(found):
                self._last = found[-1]
                return found
            self._rows = self._begin(self._last)
        return self._rows.values(alphas)

    def warn_scales(self, names: np.ndarray | None) -> None:
        self._now.warn_scales(names)
