"""Which solver works on a working set: rules of counted work, never of a clock, so that the same input gives the same
bytes.

A strategy is one path's: it keeps solvers, their work arrays and what it has learned. The engine asks it how well and
for how long to solve, and from where to start.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import PackedColumns, SparseColumns
from ..solvers import CoordinateDescent, Solution, VariationalNewton, WorkingProblem
from .pair import Pair
from .problem import Problem

Array = np.ndarray[Any, Any]

# Operations a second, as orders of magnitude: they only weigh the two solvers' counted work against each other, and
# being constants they keep the choice reproducible.
_COORDINATE_RATE = 2.5e9
_NEWTON_RATE = 4e10
_TRIFLE = 1e7  # operations not worth weighing
_PATIENCE = 100  # epochs after which coordinate descent is weighed against Newton's method


class Strategy:
    """One solver for all values.

    - `whole`: The solver works on all rows that screening leaves, as its paper says: no working sets, no secant, and
      safe tests on the way.
    - `screens_single`: A single value is screened too, on the way to it.
    - `columns`: Where solvers find their columns.
    """

    #: only the row norms of a start matter
    only_sizes = False
    #: what an algorithm for study has kept of the last value
    history: Any = None

    def __init__(self, problem: Problem, solver: Any, *, whole: bool = False, screens_single: bool = False) -> None:
        self.problem, self.whole, self.screens_single = problem, whole, screens_single or whole
        sparse = problem.design.sparse and not solver.needs.packed and not problem.penalty.separable
        self.columns: Any = SparseColumns(problem.design) if sparse else PackedColumns(problem.design)
        self.solver = solver

    @property
    def algorithm(self) -> str:
        """The algorithm by name."""
        return str(self.solver.name)

    def solve(
        self, work: WorkingProblem, rows: Array, tol: float, max_iter: int, now: Pair, before: Pair | None, lam: float
    ) -> Solution:
        """Solve on a working set; `now` and `before` are the pairs of the last two values."""
        return self.solver.solve(work, rows, tol, max_iter)

    def patience(self, remaining: int) -> int:
        """Iterations for one call."""
        return remaining

    def accuracy(self, inner: float, gap: float, cold: bool) -> float:
        """How well to solve on the working set, given the last gap over all features."""
        return inner


class Predicting(Strategy):
    """A solver that begins with a dual point too: the secant of the last two, or what it has reached at this value."""

    def __init__(self, problem: Problem, solver: Any) -> None:
        super().__init__(problem, solver)
        self._reached: tuple[float, Array] | None = None

    def solve(
        self, work: WorkingProblem, rows: Array, tol: float, max_iter: int, now: Pair, before: Pair | None, lam: float
    ) -> Solution:
        last = now.dual.at.residual
        guess = last
        if self._reached is not None and self._reached[0] == lam:
            guess = self._reached[1]
        elif before is not None and before.lam != now.lam:
            guess = last + (lam - now.lam) / (now.lam - before.lam) * (last - before.dual.at.residual)
        solved: Solution = self.solver.solve(work, rows, tol, max_iter, guess)
        if solved.dual is not None:
            self._reached = lam, solved.dual
        return solved


class CoordinateOrNewton(Strategy):
    """Coordinate descent, and Newton's method in the row norms from where that is less work; or one of them alone."""

    def __init__(self, problem: Problem, solver: str) -> None:
        self._coordinate = CoordinateDescent()
        super().__init__(problem, self._coordinate)
        self._newton: VariationalNewton | None = None
        plain = VariationalNewton.needs.unmet(problem.loss, problem.penalty) is None
        self._may_switch = solver == "auto" and plain
        self._costly = self._interrupted = 0
        if solver == "newton":
            self._switch()

    @property
    def algorithm(self) -> str:
        return VariationalNewton.name if self.only_sizes else CoordinateDescent.name

    def _switch(self) -> None:
        self._newton = self._newton or VariationalNewton(self.columns)
        self.only_sizes, self._may_switch = True, False

    def solve(
        self, work: WorkingProblem, rows: Array, tol: float, max_iter: int, now: Pair, before: Pair | None, lam: float
    ) -> Solution:
        if self.only_sizes:
            assert self._newton is not None
            if self._newton.fits(int(np.count_nonzero(rows.any(axis=1)))):
                return self._newton.solve(work, rows, tol, max_iter)
        solved = self._coordinate.solve(work, rows, tol, max_iter)
        if self._may_switch:
            self._weigh(solved)
        return solved

    def patience(self, remaining: int) -> int:
        """Coordinate descent is interrupted now and then to weigh it against Newton."""
        return min(remaining, _PATIENCE) if self._may_switch else remaining

    def _weigh(self, solved: Solution) -> None:
        """Moves to Newton's method for good when coordinate descent costs more twice running, or does not get on."""
        design = self.problem.design
        self._interrupted = self._interrupted + 1 if solved.n_iter >= _PATIENCE else 0
        if self._interrupted >= 3:
            self._switch()
            return
        if self._coordinate.work < _TRIFLE or design.n_tasks == 1:
            return
        self._newton = self._newton or VariationalNewton(self.columns)
        support = int(np.count_nonzero(solved.rows.any(axis=1)))
        newton = 1.6 * self._newton.step_work(support) / (_NEWTON_RATE * design.n_threads)
        self._costly = self._costly + 1 if self._coordinate.work / _COORDINATE_RATE > newton else 0
        if self._costly >= 2:
            self._switch()
