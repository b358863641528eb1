"""Newton's method on the duals of proximal points: losses with kinks and sharp corners, any norm, tasks fitted exactly.

A loss of ``r = y - X W - (what is not penalised)`` with a kink has no second derivative where it matters, and one with
sharp corners has one that says little. But the prox of such a loss is simple, as that of a norm is (`prox_derivative`).
The proximal point method on (r, W) (Rockafellar 1976) takes

    min f(r) + sum_t ||r_t - r0_t||^2/(2 tau_t) + Omega(W) + ||W - W0||^2/(2 sigma)

from one centre (r0, W0) to the next, and the dual of each such problem is smooth and concave in u, without bounds:

    r(u) = prox_f(r0 + tau u),    W(u) = prox_Omega(W0 + sigma X'u),    slope: lack = P (y - X W(u) - r(u)),

P the projection off what is not penalised, to which u is orthogonal. Its slope is piecewise smooth, so that a Newton
step solves for what is lacking (semismooth Newton: Qi and Sun 1993; for such duals Li, Sun and Toh 2018, for the
square-root loss Tang, Wang, Sun and Toh 2020), with a search along the step where pieces change. As sigma and tau grow
the centres move faster: a handful of them leads to any precision. u is a dual point, and the gap of the problem itself
decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .dual_system import newton_direction, small_enough
from .prox_derivative import couples_tasks, prox_derivative
from .working import Needs, Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_MOST_ROUNDS, _MOST_STEPS = 60, 40
_INNER = 0.1  # of the gap asked for, or of a tenth of the last: what may be lacking at the end of a round
_GROWTH, _LARGEST = 4.0, 1e4  # of sigma and tau from round to round; the largest to begin with
_EASY, _HARD, _LONG = 3, 8, 15  # steps of a first round: begin with more next time, with less; grow no further
_SEARCH, _FLAT = 10, 0.3  # trials along a step, until the slope along it is this share of what it was
_FLOOR = 1e-3  # of the largest task's: tau of tasks that are nearly fitted
_SHORT = 1e-2  # of the longest: u of tasks about which it says little
_START = 0.3  # of the labels: what the first step may explain


@dataclass
class _Point:
    """u, and what follows from it."""

    u: Array
    pulled: Array  # W0 + sigma X'u
    rows: Array
    residual: Array
    bent: Array
    unit: Array | None
    lack: Array

    @property
    def missing(self) -> float:
        """What the gap may have to do with what is lacking."""
        return float(np.linalg.norm(self.lack)) * float(np.linalg.norm(self.u))


class DualNewton:
    """Rounds of semismooth Newton steps."""

    name = "dual-newton"
    needs = Needs(dual_step=True, derivative=True, packed=True)

    def __init__(self) -> None:
        self._factor = 1.0  # of sigma and tau: with which to begin

    @staticmethod
    def fits(working: WorkingProblem) -> bool:
        """Whether the method is for this problem, and its equations are small enough."""
        unmet = DualNewton.needs.unmet(working.loss, working.penalty, hasattr(working.columns, "x"))
        return unmet is None and small_enough(working.columns.offsets, couples_tasks(working.penalty))

    def solve(
        self, working: WorkingProblem, start: Array, tol: float, max_iter: int, dual: Array | None = None
    ) -> Solution:
        """`dual`: A guess of u."""
        loss = working.loss
        at = working.evaluate(start, working.nuisance)
        gap, scale = working.gap(start, at, working.correlate(at.residual))
        best, u = Solution(start, 0, gap), scale * at.residual
        if dual is not None:
            u = loss.inside(dual)
            other, _ = working.gap(start, replace(at, residual=u), working.correlate(u))
            if other < gap:
                gap, best = other, Solution(start, 0, other, dual=u)
        if gap <= tol:
            return best
        centre, left, labels = start, loss.free_residual(at), loss.free_residual(loss.null)
        unit_sigma, unit_tau = self._units(working, start, left, u, labels)
        factor, first, spent = min(self._factor, _LARGEST), None, 0
        for _ in range(_MOST_ROUNDS):
            asked = _INNER * max(tol, 0.1 * gap)
            round_ = _Round(working, centre, left, labels, factor * unit_sigma, factor * unit_tau)
            point, steps, reached = round_.solve(u, asked, min(max_iter - spent, _MOST_STEPS))
            spent += steps
            at, u = working.evaluate(point.rows, working.nuisance), point.u
            inside = loss.inside(u)
            gap, _ = working.gap(point.rows, replace(at, residual=inside), working.correlate(inside))
            if reached and first is None:
                first = factor * (2.0 if steps <= _EASY else 1.0 if steps <= _HARD else 0.25)
            if gap < best.gap:
                best = Solution(point.rows, spent, gap, dual=inside)
            if best.gap <= tol or spent >= max_iter:
                break
            if not reached:
                factor /= _GROWTH
                continue
            centre, left = point.rows, point.residual
            if steps <= _LONG:
                factor *= _GROWTH
        self._factor = factor if first is None else first
        best.n_iter = max(spent, 1)
        return best

    @staticmethod
    def _units(
        working: WorkingProblem, rows: Array, left: Array, u: Array, labels: Array
    ) -> tuple[float, Array]:
        """Of sigma and of tau in each task: coefficients over correlations, residuals over dual points."""
        norms = working.columns.design.task_norms
        lengths = norms(u)
        longest = float(np.max(lengths, initial=0.0))
        lengths = np.maximum(lengths, _SHORT * longest if longest > 0.0 else 1.0)
        tau = np.maximum(norms(left) / lengths, _FLOOR * float(np.max(norms(labels) / lengths)))
        products = working.correlate(u)
        image = float(np.linalg.norm(working.columns.combine(working.positions, products)))
        sigma = _START * float(np.linalg.norm(labels)) / image if image > 0.0 else 1.0
        live = rows != 0.0
        if live.any():
            own = float(np.linalg.norm(rows)) / max(float(np.linalg.norm(products[live])), 1e-300)
            sigma = max(own, _FLOOR * sigma)
        return sigma, tau


class _Round:
    """One proximal point problem."""

    def __init__(
        self, working: WorkingProblem, centre: Array, left: Array, labels: Array, sigma: float, tau: Array
    ) -> None:
        self._working, self._centre, self._left, self._labels = working, centre, left, labels
        self._sigma, self._tau = sigma, tau
        self._design = working.columns.design
        self._flat_tau = self._design.per_sample(tau)

    def at(self, u: Array) -> _Point:
        working, sigma = self._working, self._sigma
        pulled = self._centre + sigma * working.correlate(u)
        rows = working.penalty.proximal(pulled, sigma)
        residual, bent, unit = working.loss.dual_step(self._left + self._flat_tau * u, self._tau)
        lack = self._design.project(self._labels - working.image(rows) - residual)
        return _Point(u, pulled, rows, residual, bent, unit, lack)

    def solve(self, u: Array, asked: float, max_steps: int) -> tuple[_Point, int, bool]:
        """The point reached, the steps that took, and whether no more is missing than asked for."""
        point = self.at(u)
        for steps in range(max_steps):
            if point.missing <= asked:
                return point, steps, True
            change = self._direction(point)
            if change is None:
                return point, steps, False
            point = self._search(point, change)
        return point, max_steps, point.missing <= asked

    def _direction(self, point: _Point) -> Array | None:
        working, tau = self._working, self._flat_tau
        found = prox_derivative(working.penalty, point.pulled, point.rows, self._sigma)
        w = None if point.unit is None else np.sqrt(tau) * point.unit
        positions = working.positions
        return newton_direction(working.columns, positions, found, self._sigma, tau * point.bent, w, point.lack)

    def _search(self, point: _Point, change: Array) -> _Point:
        """Where the slope along a step is nearly gone: the dual is concave, and its slope known, so that no value is
        needed. A full step that has not gone too far will do."""
        rise = float(point.lack @ change)
        low, at_low, high, at_high = 0.0, rise, 1.0, 0.0
        lower, step = point, 1.0
        for _ in range(_SEARCH):
            candidate = self.at(point.u + step * change)
            slope = float(candidate.lack @ change)
            if abs(slope) <= _FLAT * rise or (slope > 0.0 and step == 1.0):
                return candidate
            if slope > 0.0:
                low, at_low, lower = step, slope, candidate
            else:
                high, at_high = step, slope
            step = low + (high - low) * min(max(at_low / (at_low - at_high), 0.1), 0.9)
        return candidate if lower is point else lower
