"""Which solver works for the calibrated model: a Newton method, first-order steps where nothing is known yet, or one of
the paper's algorithms.

The loss is not smooth, so the dual point is not read off the residual: these solvers deliver it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..losses import TaskNorms
from ..solvers.calibrated import History, Record, best_multiple, correlation_sizes
from ..solvers.calibrated_dual import dual_first_order
from ..solvers.calibrated_newton import CalibratedNewton, ReducedNewton
from ..solvers.calibrated_primal import alternating_directions, smoothed_first_order
from ..solvers.working import Needs, Solution, WorkingProblem
from .pair import Pair
from .problem import Problem
from .strategies import Strategy

Array = np.ndarray[Any, Any]

#: the paper's five, for study
PUBLISHED = ("d-pg", "d-fista", "p-spg", "p-sfista", "p-admm")

_LOOSE = 0.1  # of the gap over all features: how well a growing working set is solved at a cold start
# Seconds, as orders of magnitude: they only weigh first-order iterations against Newton steps, and being constants they
# keep the choice reproducible.
_PRODUCT_RATE = 2.5e9
_NEWTON_RATE = 2e10
_OVERHEAD = 1.5e-4
_NEWTON_STEPS = 8.0  # that Newton's method takes from a cold start
_LOOK_BACK = 20  # first-order iterations over which their rate is measured
_CONTINUATION = ((5, 1e-3), (12, 1e-3))  # values on the way from lam_max, and their tolerance


class Calibrated(Strategy):
    """Solvers for ``sum_t ||y_t - X_t w_t||`` and the group norm: the one that is named, or "auto"."""

    needs = Needs(losses=("square-root",), group=True, packed=True)

    def __init__(self, problem: Problem, solver: str) -> None:
        super().__init__(problem, type(self))
        assert isinstance(problem.loss, TaskNorms)
        self.loss, self.design = problem.loss, problem.design
        self._calibrated: CalibratedNewton | None = None
        self._reduced: tuple[Array, ReducedNewton] | None = None
        newton = not problem.penalty.positive
        if solver == "newton" and not newton:
            raise ValueError("solver='newton' is for coefficients of any sign; use 'auto'")
        self._hybrid = solver == "auto" and newton
        self._keeps_history = solver in PUBLISHED
        self._solver = "newton" if newton and solver in ("auto", "newton") else solver
        if self._solver == "auto":
            self._solver = "d-pg"
        self.only_sizes = self._solver == "newton"

    @property
    def algorithm(self) -> str:
        return self._solver

    def accuracy(self, inner: float, gap: float, cold: bool) -> float:
        return max(inner, _LOOSE * min(gap, 0.3 * self.loss.null.value)) if cold else inner

    def solve(
        self, work: WorkingProblem, rows: Array, tol: float, max_iter: int, now: Pair, before: Pair | None, lam: float
    ) -> Solution:
        if self._solver == "newton" and CalibratedNewton.fits(self.columns, len(work.positions)):
            noise = self._predicted_noise(lam, work, rows, now, before)
            solved = self._solve_newton(work, rows, noise, tol, max_iter, cold=not len(now.primal.features))
        else:
            solved = self._solve_published(work, rows, tol, max_iter, now)
        # into the balls by more than rounding
        assert solved.dual is not None
        lengths = np.maximum(self.loss.sizes(solved.dual) * (1.0 + 1e-15), 1.0)
        solved.dual = self.loss.scaled(solved.dual, 1.0 / lengths)
        return solved

    def _solve_published(
        self, here: WorkingProblem, rows: Array, tol: float, max_iter: int, now: Pair
    ) -> Solution:
        """One of the paper's algorithms; its history is that of the last value."""
        self.history = History() if self._keeps_history else None
        record = Record(here, tol, self.history)
        dual = now.dual.at.residual if len(now.primal.features) else self._null_dual(here)
        if self._solver in ("newton", "d-pg", "d-fista"):  # matrices too large for Newton's method: d-pg
            method = "d-fista" if self._solver == "d-fista" else "d-pg"
            return dual_first_order(here, method, rows, dual, tol, max_iter, record)
        if self._solver in ("p-spg", "p-sfista"):
            return smoothed_first_order(here, self._solver, rows, tol, max_iter, record)
        return alternating_directions(here, rows, tol, max_iter, record)

    def _solve_newton(
        self, here: WorkingProblem, rows: Array, noise: Array, tol: float, max_iter: int, cold: bool
    ) -> Solution:
        """Newton's method from the predicted point; first-order steps first where nothing is known yet. Where it does
        not get on (a task rescaled by a thousand, no ridge), it comes from larger strengths."""
        spent = 0
        if self._hybrid and cold and not rows.any():
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
            solved, spent = self._rescue(here, solved, tol, max_iter, spent)
        solved.n_iter = spent
        return solved

    def _newton_for(self, here: WorkingProblem) -> CalibratedNewton | ReducedNewton:
        """Newton's method on the rows of the data, or on their span where tasks have many more rows than columns."""
        if ReducedNewton.pays(self.columns, len(here.positions)):
            if self._reduced is None or not np.array_equal(self._reduced[0], here.positions):
                self._reduced = (here.positions, ReducedNewton(here))
            return self._reduced[1]
        if self._calibrated is None:
            self._calibrated = CalibratedNewton(self.columns, self.loss)
        return self._calibrated

    def _rescue(
        self,
        here: WorkingProblem,
        solved: Solution,
        tol: float,
        max_iter: int,
        spent: int,
    ) -> tuple[Solution, int]:
        newton = self._newton_for(here)
        at_zero = here.penalty.row_gauges(self.columns.correlate(self.loss.null.residual, here.positions))
        largest = float(np.max(at_zero, initial=0.0))
        sizes = self.loss.sizes(self.loss.target)
        for count, loose in _CONTINUATION:
            if largest <= 1.0 or spent >= max_iter:
                break
            rows, noise = np.zeros_like(solved.rows), sizes
            for factor in np.geomspace(largest, 1.0, count + 1)[1:]:
                on_the_way = WorkingProblem(
                    here.columns, here.positions, here.penalty.times(factor), here.loss
                )
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
        sizes = correlation_sizes(here.penalty, self.columns.correlate(u, here.positions))
        return best_multiple(self.loss.null.value, sizes, here.penalty.group_form(), here.penalty.ridge) * u

    def _hopeless(self, here: WorkingProblem, tol: float) -> Callable[[list[float]], bool]:
        """Whether first-order steps, at their present rate, would cost more than Newton's method from here."""
        count = len(here.positions)
        iteration = _OVERHEAD + 4.0 * self.design.n_samples * count / _PRODUCT_RATE
        work = CalibratedNewton.step_work(self.columns, count, min(count, self.design.n_samples) // 2)
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

    def _predicted_noise(
        self, lam: float, here: WorkingProblem, rows: Array, now: Pair, before: Pair | None
    ) -> Array:
        if before is not None and before.lam != now.lam and len(now.primal.features):
            last, earlier = (self.loss.residual_norms(pair.primal.at) for pair in (now, before))
            theta = (lam - now.lam) / (now.lam - before.lam)
            return np.maximum(last + theta * (last - earlier), 0.1 * last)
        return self.loss.sizes(self.loss.target - here.image(rows))
