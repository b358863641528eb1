"""Newton's method on the fixed points of a proximal gradient step, where first-order steps crawl: small problems, any
smooth loss, any penalty with a prox.

A solution is a fixed point of ``S(W) = prox(W - grad/L, 1/L)``, which is piecewise smooth. Its derivative is taken by
differences, a column for each coefficient of a live row, so nothing is needed of loss and penalty but the slope and the
prox. Where the pieces have settled (the rows that are zero, the ties, the saturated labels) a few steps end at the
precision of the numbers, however ill-conditioned the problem is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .curvature import estimate_curvature
from .working import Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_MOST_UNKNOWNS = 400  # coefficients of live rows: beyond that the differences cost more than they save
_DIFFERENCE = 1e-7  # of the size of the coefficients
_CUTOFF = 1e-11  # relative: directions in which the step does not move are left alone
_LEAST_FALL = 0.5  # of the distance from a fixed point: a step that gains less is the last
_MOST_STEPS = 20


class FixedPoint:
    """The map of a problem, and how far from a fixed point rows are."""

    def __init__(self, working: WorkingProblem, bound: float) -> None:
        self._working, self._bound = working, bound
        self._nuisance = working.nuisance
        self.evaluations = 0

    def step(self, rows: Array) -> tuple[Array, float]:
        """``S(W)``, and the objective at W."""
        working = self._working
        at = working.loss.evaluate(working.image(rows), self._nuisance)
        self._nuisance = at.nuisance
        slopes = working.correlate(at.residual)
        coupling = working.penalty.coupling
        if coupling is not None:
            slopes = slopes - coupling.pull(rows)
        self.evaluations += 1
        following = working.penalty.proximal(rows + slopes / self._bound, 1.0 / self._bound)
        return following, at.value + working.penalty.total(rows)

    def newton(self, rows: Array, moved: Array) -> Array | None:
        """A Newton step from rows, given ``S(W)``; None where there are too many unknowns."""
        live = np.flatnonzero(rows.any(axis=1) | moved.any(axis=1))
        tasks = rows.shape[1]
        count = len(live) * tasks
        if not 0 < count <= _MOST_UNKNOWNS:
            return None
        size = _DIFFERENCE * max(float(np.max(np.abs(rows), initial=0.0)), float(np.max(np.abs(moved))))
        matrix = np.eye(count)
        for k in range(count):
            shifted = rows.copy()
            shifted[live[k // tasks], k % tasks] += size
            matrix[:, k] -= ((self.step(shifted)[0] - moved)[live] / size).ravel()
        right = (moved - rows)[live].ravel()
        if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
            return None
        found = np.zeros_like(rows)
        found[live] = np.linalg.lstsq(matrix, right, rcond=_CUTOFF)[0].reshape(len(live), tasks)
        return rows + found


def best_polished(working: WorkingProblem, solved: Solution) -> tuple[Solution, int]:
    """A solution, or the one that `polished` makes of it if its gap is smaller; and what that took in steps."""
    steep = working.loss.smoothness
    if not math.isfinite(steep):
        at = working.evaluate(solved.rows, working.nuisance)
        steep = float(np.max(at.curvature)) if at.curvature is not None else 1.0
    nearer = polished(working, solved.rows, steep * estimate_curvature(working))
    if nearer is None:
        return solved, 0
    at = working.evaluate(nearer[0], working.nuisance)
    gap, _ = working.gap(nearer[0], at, working.correlate(at.residual))
    return (Solution(nearer[0], solved.n_iter, gap) if gap < solved.gap else solved), nearer[1]


def polished(working: WorkingProblem, rows: Array, bound: float) -> tuple[Array, int] | None:
    """Rows nearer to a fixed point of a step of length 1/`bound`, and what that took in steps; None if it stalls."""
    if not 0 < np.count_nonzero(rows.any(axis=1)) * rows.shape[1] <= _MOST_UNKNOWNS:
        return None
    found = FixedPoint(working, bound)
    moved, value = found.step(rows)
    away, gained = float(np.linalg.norm(moved - rows)), False
    for _ in range(_MOST_STEPS):
        candidate = found.newton(rows, moved) if away > 0.0 else None
        if candidate is None:
            break
        candidate = found.step(candidate)[0]  # the prox puts zeros and ties where they belong
        following, total = found.step(candidate)
        distance = float(np.linalg.norm(following - candidate))
        if not (distance <= _LEAST_FALL * away and total <= value + 1e-12 * abs(value)):
            break
        rows, moved, away, value, gained = candidate, following, distance, total, True
    return (moved, found.evaluations) if gained else None
