"""What follows the path of a model, in the units of its data: on rows, on sums over them, and from sums to rows.

A path solver has `values`, the values at the next alphas, and beside them what a path keeps: `alpha_max`, the
`null_objective` in sum units, `passes` (readings of the data so far), `choice` (which solver, and why), `scale` (what
columns are divided by, as ``_set_scale`` of a model takes it), and the `history` of an algorithm for study.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from ..design import one_blas_thread
from ..fitted.path import Scale
from ..fitted.progress import reporter
from ..fitted.scales import warn_norms, warn_scales
from ..losses.base import null_value
from ..path.choose import fastest
from ..path.follow import Pace, PathSolution, Progress, follow
from ..path.policy import Choice, Kind, handed_over
from ..path.problem import Problem
from ..path.values import Value
from ..path.walks import PathWalk
from ..tasks import read_feature_weights
from .units import Units

PathSolver: TypeAlias = "RowSolver | SumSolver | SumsThenRows"

GIVEN_SUMS = Choice(Kind.SUMS, "only sums over the rows are known")


def alpha_of(largest: float, unit: float) -> float:
    """The alpha of a strength in sum units: rounding must not leave it a hair below the truth."""
    alpha = largest / unit
    while alpha * unit < largest:
        alpha = np.nextafter(alpha, np.inf)
    return float(alpha)


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


@contextmanager
def memory_in_words() -> Iterator[None]:
    """torch's out-of-memory error as a MemoryError that says what to do."""
    try:
        yield
    except RuntimeError as error:
        refuse_memory(error)
        raise


def refuse_memory(error: RuntimeError) -> None:
    """Raise a MemoryError in words for torch's out-of-memory error; nothing for others."""
    if type(error).__name__ != "OutOfMemoryError":
        return
    words = str(error).split(" Of the allocated memory", maxsplit=1)[0].split(" See documentation", maxsplit=1)[0]
    raise MemoryError(
        f"A fit on a device needs more memory than is free there ({words}). Free some; or pass X as a NumPy array "
        "to tasksieve.on_device with a smaller max_bytes: it then streams through the device, and what is kept of "
        "its features is kept by this process."
    ) from error


class _OneSolver:
    """Strengths, accuracies and values of a model between the units of its data and those of a problem."""

    def __init__(self, model: Any, facts: Any, problem: Any, units: Units) -> None:
        self.model, self.facts, self.problem, self._units = model, facts, problem, units

    @property
    def _null_value(self) -> float:
        return float(self.problem.null_value)

    @property
    def null_objective(self) -> float:
        return float(np.ldexp(self._null_value, self._units.f))

    def alpha_max(self) -> float:
        """The smallest alpha whose solution is zero."""
        largest = self._units.outward(self.problem.lambda_max())
        return alpha_of(largest, self.model._norm_share() * self.model._unit(self.facts))

    def values(self, alphas: np.ndarray) -> Sequence[Value]:
        """The first of the values at the next alphas, as many as are best found together; none where it ends."""
        lams = self.strengths(alphas)
        return self.outward(self._solve(lams, np.full(len(lams), self.goal)))

    def strengths(self, alphas: np.ndarray) -> np.ndarray:
        """Those of some alphas, in the units of the problem."""
        return np.asarray(self.model._inward(self.facts, self._units, alphas))

    @property
    def goal(self) -> float:
        """The gap of a value that is solved, in the units of the problem."""
        return float(self.model.tol * self._null_value)

    def outward(self, values: Sequence[Value]) -> Sequence[Value]:
        """Values of the problem in the units of the data."""
        found: Sequence[Value] = self._units.values(values)
        return found

    def _solve(self, lams: np.ndarray, goals: np.ndarray) -> Sequence[Value]:
        return self.problem.values(lams, goals, self.model.max_iter)

    @property
    def _feature_weights(self) -> np.ndarray | None:
        return read_feature_weights(self.model.feature_weights, self.facts.n_features)


class RowSolver(_OneSolver):
    """On the rows, with the solver that `policy` chooses for a problem in memory or on a device.

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
        super().__init__(model, data, problem, problem.units)
        self._n_values, self._after, self._by_sums, self._start, self._note = n_values, after, by_sums, start, note
        self._walk: PathWalk | None = None

    def _begin(self, lams: np.ndarray) -> PathWalk:
        model, units, after = self.model, self._units, self._after
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
            least=float(lams.min()),
            max_iter=model.max_iter,
            after=after,
            by_gram=self._by_sums,
            start=self._start,
            **model._engine_options(),
        )

    @property
    def _null_value(self) -> float:
        return float(null_value(self.problem.loss))

    @property
    def choice(self) -> Choice | None:
        """None before the first value."""
        return None if self._walk is None else self._walk.choice

    @property
    def passes(self) -> float:
        return float(self.problem.design.passes)

    @property
    def scale(self) -> Scale:
        return self.problem.design.scale, self._units.x

    @property
    def history(self) -> Any:
        return None if self._walk is None else self._walk.history

    def alpha_max(self) -> float:
        fastest(self.problem)  # a loss that cannot be solved is refused here as well
        return super().alpha_max()

    def _solve(self, lams: np.ndarray, goals: np.ndarray) -> Sequence[Value]:
        try:  # once for each value: without the ceremony of `memory_in_words`
            if self._walk is None:
                self._walk = self._begin(lams)
            return self._walk.values(lams, goals)
        except RuntimeError as error:
            refuse_memory(error)
            raise

    def warn_scales(self, names: np.ndarray | None) -> None:
        """Warn of columns in very different units, once a fit."""
        if not self.model.standardize:
            warn_scales(self.problem.design, self.facts.make_storage(), self._feature_weights, names)


class SumSolver(_OneSolver):
    """On sums over the rows: `values` finds none where these lack digits and the rows can be had instead. Columns that
    are `small` are indicators or counts, whose scales say nothing."""

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
        super().__init__(model, facts, problem, Units() if units is None else units)
        self.choice, self.passes, self._small = choice, float(readings), small

    @property
    def scale(self) -> Scale:
        return self.problem.scale, 0

    def warn_scales(self, names: np.ndarray | None) -> None:
        if not self.model.standardize and not self._small:
            warn_norms(np.sqrt(self.problem.spread.max(axis=0)), self._feature_weights, names)


class SumsThenRows:
    """On sums as far as these lead, then on the rows from their last value on; the one in use answers all else."""

    def __init__(self, sums: SumSolver, rows: Callable[[Value | None], RowSolver]) -> None:
        self._sums, self._begin = sums, rows
        self._rows: RowSolver | None = None
        self._found: Sequence[Value] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows or self._sums, name)

    @property
    def choice(self) -> Choice:
        return self._sums.choice if self._rows is None else handed_over(self._sums.choice)

    @property
    def passes(self) -> float:
        return self._sums.passes + (0.0 if self._rows is None else self._rows.passes)

    def values(self, alphas: np.ndarray) -> Sequence[Value]:
        if self._rows is None:
            found = self._sums.values(alphas)
            if len(found):
                self._found = found
                return found
            self._rows = self._begin(self._found[-1] if len(self._found) else None)
        return self._rows.values(alphas)
