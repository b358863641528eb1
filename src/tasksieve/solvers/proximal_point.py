"""The square-root loss with any penalty, also where tasks are fitted exactly: a proximal point method on the dual.

The loss ``sum_t ||y_t - z_t|| = max { <u, y - z> : ||u_t|| <= 1 }`` has a kink where a task is fitted, and there its
dual point is not the direction of the residual. With ``-||u_t - v_t||^2/(2 rho_t)`` in the maximum it is smooth,

    F(z) = max_u <u, y - z> - sum_t ||u_t - v_t||^2/(2 rho_t),     u_t(z) = P(v_t + rho_t (y_t - z_t)),

P the projection on the unit ball, and u(z) is a dual point whatever z is. The minimiser of ``F(XW) + Omega(W)`` gives
the next v = u (Rockafellar 1976: the augmented Lagrangian of ``y = XW + r``); at a fixed point W and u are optimal for
the loss itself, fitted tasks having ``||u_t|| < 1``. Every problem on the way is one for the solvers of smooth losses.

Where the equations of `DualNewton` are small, it takes the place of these rounds: it needs no smooth problems.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..losses import DataLoss, Evaluation, TaskNorms
from .accelerated import Accelerated
from .dual_newton import DualNewton
from .fixed_point import best_polished
from .prox_newton import ProximalNewton
from .working import Needs, Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_FIRST_WEIGHT = 3.0  # rho_t ||y_t||, of the largest task
_GROWTH, _LEAST_WEIGHT, _MOST_WEIGHT = 4.0, 1e-7, 1e7  # where a round does not bring the gap down to this share of it
_FALL = 0.1
_INNER = 0.1  # of the gap: how well a smooth problem is solved
_PATIENCE = 200  # iterations on one of them before Newton's method on its fixed points is tried
_MOST_ROUNDS = 100
_NEARLY = 1e-2  # of its labels' norm: what is left of a task that may be fitted exactly


class Proximal(DataLoss):
    """F above."""

    name = "proximal square-root"
    differentiable = True
    least_curvature = 0.0

    def __init__(self, of: TaskNorms, centre: Array, weights: Array) -> None:
        super().__init__(of.design)
        self._of, self._centre, self._weights = of, centre, weights
        self.target = of.target
        self.smoothness = float(weights.max())
        self.null = self.evaluate(np.zeros_like(of.target))

    def _pulled(self, residual: Array) -> Array:
        return self._centre + self._of.scaled(residual, self._weights)

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        of, residual = self._of, self.target - z
        pulled = self._pulled(residual)
        shrink = 1.0 / np.maximum(of.sizes(pulled), 1.0)
        dual = of.scaled(pulled, shrink)
        away = np.square(of.sizes(dual - self._centre)) / (2.0 * self._weights)
        value = float(np.sum(of.task_products(dual, residual) - away))
        # the projection is a contraction by this where it projects: a parabola above the loss
        steep = self.design.per_sample(self._weights * shrink)
        return Evaluation(value, dual, of.null.nuisance, steep, margin=residual)

    def terms(self, at: Evaluation, scale: float) -> float:
        """``((1-c)^2 ||u||^2/2 + (1-c) <u, w - u>)/rho`` with w before its projection: nothing cancels."""
        of, dual = self._of, at.residual
        assert at.margin is not None
        outside = of.task_products(dual, self._pulled(at.margin) - dual)
        square = of.task_products(dual, dual)
        found = (0.5 * (1.0 - scale) ** 2 * square + (1.0 - scale) * np.maximum(outside, 0.0)) / self._weights
        return float(np.sum(found))


class ProximalPoint:
    """Steps on the loss itself as long as these are enough, or no task is about to be fitted exactly. Then Newton's
    method on the dual, or rounds of smooth problems, each with the last one's dual point at its centre."""

    needs = Needs(losses=("square-root",), smooth=True, quadratic="graph")

    def __init__(self) -> None:
        self._newton, self._second = ProximalNewton(), DualNewton()
        self._stuck = False  # steps on the loss itself were not enough once
        #: that of the last problem
        self.name = "proximal-point"

    def solve(
        self, working: WorkingProblem, start: Array, tol: float, max_iter: int, dual: Array | None = None
    ) -> Solution:
        """`dual`: A guess of the dual point."""
        solved, spent, fits = Solution(start, 0, np.inf), 0, DualNewton.fits(working)
        self.name = "proximal-point"
        while spent < max_iter // 2 and not (fits and self._stuck):
            solved = self._smooth_steps(working, solved.rows, tol, min(_PATIENCE, max_iter - spent))
            spent += solved.n_iter
            if solved.gap <= tol:
                solved.n_iter = spent
                return solved
            self._stuck = True
            if solved.n_iter < _PATIENCE or self._nearly_fitted(working, solved.rows):
                break
        if fits:
            solved = self._second.solve(working, solved.rows, tol, max(max_iter - spent, 1), dual)
            self.name, spent = self._second.name, spent + solved.n_iter
            if solved.gap <= tol or spent >= max_iter:
                solved.n_iter = spent
                return solved
            self.name = "proximal-point"
        found = self._rounds(working, solved.rows, tol, max(max_iter - spent, 1))
        found.n_iter += spent
        return found

    @staticmethod
    def _nearly_fitted(working: WorkingProblem, rows: Array) -> bool:
        loss = working.loss
        sizes, left = loss.sizes(loss.target), loss.sizes(loss.target - working.image(rows))
        return bool(np.any(left <= _NEARLY * sizes))

    def _rounds(self, working: WorkingProblem, start: Array, tol: float, max_iter: int) -> Solution:
        loss = working.loss
        # one weight for all tasks, however their labels differ in size: steps along the slope have one length for all
        largest = float(np.max(loss.sizes(loss.target), initial=0.0))
        unit = np.full(loss.design.n_tasks, 1.0 / largest if largest > 0.0 else 1.0)
        weight, rows, spent = _FIRST_WEIGHT, start, 0
        at = working.evaluate(rows, working.nuisance)
        gap, scale = working.gap(rows, at, working.correlate(at.residual))
        centre = scale * at.residual  # a feasible one: from others the smooth problems lead far away
        best, asked = Solution(rows, 0, gap, dual=centre), 0.1 * min(gap, loss.null.value)
        for _ in range(_MOST_ROUNDS):
            smooth = replace(working, loss=Proximal(loss, centre, weight * unit))
            rows, more, reached = self._inner(smooth, rows, asked, max_iter - spent)
            spent += more
            image = working.image(rows)
            at, u = loss.evaluate(image, working.nuisance), smooth.loss.evaluate(image).residual
            last, (gap, scale) = gap, working.gap(rows, replace(at, residual=u), working.correlate(u))
            if gap < best.gap:
                best = Solution(rows.copy(), spent, gap, dual=u)
            if best.gap <= tol or spent >= max_iter:
                break
            if reached:
                centre = scale * u
                weight = min(_GROWTH * weight, _MOST_WEIGHT) if gap > _FALL * last else weight
            else:  # too stiff: the same centre again
                weight = max(weight / _GROWTH, _LEAST_WEIGHT)
            asked = max(_INNER * min(gap, last), 0.1 * tol)
        best.n_iter = spent
        return best

    def _smooth_steps(self, problem: WorkingProblem, rows: Array, tol: float, max_iter: int) -> Solution:
        if ProximalNewton.needs.unmet(problem.loss, problem.penalty, hasattr(problem.columns, "x")) is None:
            return self._newton.solve(problem, rows, tol, max_iter)
        return Accelerated(adaptive=True).solve(problem, rows, tol, max_iter)

    def _inner(self, smooth: WorkingProblem, rows: Array, tol: float, max_iter: int) -> tuple[Array, int, bool]:
        """A smooth problem, from some rows on; the iterations that took, and whether it was solved to `tol`."""
        solved = self._smooth_steps(smooth, rows, tol, max(min(max_iter, _PATIENCE), 1))
        if solved.gap <= tol:
            return solved.rows, solved.n_iter, True
        nearer, more = best_polished(smooth, solved)
        return nearer.rows, solved.n_iter + more, nearer.gap <= tol
