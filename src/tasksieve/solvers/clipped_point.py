"""Clipped losses with sharp corners (quantiles with little smoothing): a proximal point method on the dual.

The loss ``max { u (y - z) - mu/2 u^2 : low <= u <= high }`` of a row has a second derivative 1/mu between its corners
and none beyond. Where mu is small quadratic models of it do not reach far, and their minimum is ill-conditioned: about
as many rows lie between the corners as there are coefficients. With ``-(u - v)^2/(2 rho)`` in the maximum it is

    the same loss with labels y + v/rho and the smoothing mu + 1/rho,

but for a constant, and its slope at any z is a dual point of the loss itself. The minimiser gives the next v
(Rockafellar 1976); at a fixed point W and u are optimal for the loss itself, so rho need not grow without end, and the
dual point of one value of a path is the centre of the next. Where rounds do not arrive, as many rows being fitted
exactly as there are, Newton's method on the dual takes over (`DualNewton`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .dual_newton import DualNewton
from .prox_newton import ProximalNewton
from .working import Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_PATIENCE = 100  # epochs on the loss itself, before rounds begin
_ROUND = 200  # epochs of one round
_WIDTH = 1.0  # of the median residual, between the corners of the first round
_INNER, _FALL = 0.3, 0.3  # of the gap: how well a round is solved, and how far it should bring it down
_FACTOR = 4.0  # of 1/rho: less where a round does not, more where it is not solved
_MOST_ROUNDS = 200
_ENOUGH = 1000  # epochs of all rounds, where there is another method
_DEEPER, _DEEPEST = 0.1, 1e-3  # of the gap: how much better rounds are solved where the loss itself is not yet


class ClippedPoint:
    """Proximal Newton on the loss itself while that gets on, else in rounds; Newton's method on the dual where these do
    not arrive."""

    needs = replace(ProximalNewton.needs, clipped=True)

    def __init__(self) -> None:
        self._newton = ProximalNewton()
        self._rounds = ProximalNewton()  # what it learns of the steps is about wider corners
        self._extra: float | None = None  # 1/rho
        self._dual: Array | None = None  # of the last value
        self._second = DualNewton()
        self._stuck = False
        #: that of the last problem
        self.name = ProximalNewton.name

    def solve(
        self, working: WorkingProblem, start: Array, tol: float, max_iter: int, dual: Array | None = None
    ) -> Solution:
        """`dual`: A guess of the dual point."""
        self.name, spent, most = ProximalNewton.name, 0, max_iter
        solved, fits = Solution(start, 0, np.inf), DualNewton.fits(working)
        if fits and self._stuck:
            solved = self._second.solve(working, start, tol, max_iter, dual)
            self.name = self._second.name
        elif self._extra is None:
            solved = self._newton.solve(working, start, tol, min(max_iter, _PATIENCE))
        spent = solved.n_iter
        if solved.gap <= tol or spent >= max_iter:
            return solved
        if fits and not self._stuck:
            most = min(max_iter, _ENOUGH)
        solved = self._in_rounds(working, solved.rows, tol, max(most - spent, 1))
        solved.n_iter += spent
        if solved.gap <= tol or solved.n_iter >= max_iter or most == max_iter:
            return solved
        self._stuck, self.name = True, self._second.name
        found = self._second.solve(working, solved.rows, tol, max_iter - solved.n_iter, solved.dual)
        found.n_iter += solved.n_iter
        return found

    def _in_rounds(self, working: WorkingProblem, rows: Array, tol: float, max_iter: int) -> Solution:
        loss = working.loss
        at = working.evaluate(rows, working.nuisance)
        products = working.correlate(at.residual)
        gap, scale = working.gap(rows, at, products)
        if gap <= tol:
            return Solution(rows, 0, gap, at, products)
        centre, best = scale * at.residual, Solution(rows, 0, gap, dual=at.residual)
        known = self._dual
        if known is not None and len(known) == len(centre):
            other, scale = working.gap(rows, replace(at, residual=known), working.correlate(known))
            if other < gap:
                gap, centre, best = other, scale * known, Solution(rows, 0, other, dual=known)
        extra = loss.wider(at, _WIDTH) if self._extra is None else self._extra
        spent, asked_for, finished = 0, tol, Solution(rows, 0, np.inf)
        for _ in range(_MOST_ROUNDS):
            wide = replace(working, loss=loss.centred_at(centre, extra))
            asked = max(_INNER * gap, 0.1 * asked_for)
            solved = self._rounds.solve(wide, rows, asked, min(max_iter - spent, _ROUND))
            rows, spent = solved.rows, spent + max(solved.n_iter, 1)
            assert solved.evaluation is not None and solved.products is not None
            dual = solved.evaluation.residual
            at = replace(working.evaluate(rows, solved.evaluation.nuisance), residual=dual)
            last, (gap, scale) = gap, working.gap(rows, at, solved.products)
            if gap < best.gap:
                best = Solution(rows, spent, gap, dual=dual)
            if gap <= asked_for or spent >= max_iter:
                finished = self._finished(working, rows, tol)
                spent += finished.n_iter
                if finished.gap <= tol or spent >= max_iter or asked_for <= _DEEPEST * tol:
                    break
                asked_for *= _DEEPER
            centre = scale * dual
            if solved.gap > asked:
                extra *= _FACTOR
            elif gap > _FALL * last:
                extra /= _FACTOR
        self._extra, self._dual = extra, best.dual
        if finished.gap <= tol:
            best = finished
        best.n_iter = spent
        return best

    @staticmethod
    def _finished(working: WorkingProblem, rows: Array, tol: float) -> Solution:
        """Steps on the loss itself, from rows that say which labels lie between the corners: there the second
        derivative is all there is. So the slope at W proves its gap, and needs no other dual point beside it."""
        return ProximalNewton(caution=0.0).solve(working, rows, tol, _PATIENCE)
