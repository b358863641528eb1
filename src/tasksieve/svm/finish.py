"""From a solver's answer to the numbers that a model stores, with their certificate.

The end of a fit costs one more pass over the rows (`certify_stored`). Where the solver has not reached its goal, a few
passes more find the best multiple of the best point that it has seen: W = 0 is among them, so that no model is worse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .certificate import (
    StoredCertificate,
    certify_stored,
    dual_sizes,
    is_measured,
    rebuilt_distance,
    stored_penalty,
)
from .problem import GraphProblem, Solution
from .row_terms import feasible
from .solver import solve

HALVINGS = 200  # the smallest multiple that is tried: overshooting is by powers of the conditioning of X
SECTIONS = 40
GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


def solve_and_certify(problem: GraphProblem, *, tol: float, max_iter: int, **how: Any) -> Solution:
    """`solve`, then certify what is stored: ``objective`` and ``gap`` are those of ``w`` and ``intercept``. The
    certified gap alone decides ``converged``; where only rounding prevents it, ``limited_by_rounding`` is True."""
    found = solve(problem, tol=tol, max_iter=max_iter, **how)
    if found.solver == "none":
        found.intercept = np.zeros(problem.n_tasks)
        return found
    goal = tol * found.null
    met = found.converged
    certificate = _stored(problem, found)
    if met and goal < certificate.dual_gap <= found.gap + 0.5 * goal and found.n_iter < max_iter:
        # so close to the goal that a little rounding is too much: a little further
        again = solve(problem, tol=0.4 * tol, max_iter=max_iter, **{**how, "start": found.beta})
        again.n_iter, again.visits = again.n_iter + found.n_iter, again.visits + found.visits
        found, certificate = again, _stored(problem, again)
    found.objective, found.gap = certificate.objective, certificate.dual_gap
    found.converged = found.gap <= goal
    found.limited_by_rounding = met and not found.converged
    return found


def _stored(problem: GraphProblem, found: Solution) -> StoredCertificate:
    """Certify a solution; where it has not converged, the best that can be made of it takes its place."""
    found.beta = feasible(problem.loss, problem.y, problem.c, found.beta)
    distance: float | None = None
    if not is_measured(problem):
        sizes = dual_sizes(problem, found.beta)
        length = found.length if problem.dtype == np.float32 else sizes
        penalty = problem.penalty(found.w)
        distance = rebuilt_distance(problem, sizes, length, penalty)
    if not found.converged:
        distance = _best_multiple(problem, found, distance)
    found.intercept = _intercepts(problem, found.w)
    certificate = certify_stored(problem, found.w, found.intercept, found.beta, distance)
    if not found.converged and certificate.objective > found.null:  # by the rounding of what is stored
        if distance is not None:
            distance += np.sqrt(2.0 * stored_penalty(problem, found.w, found.intercept)) * (1.0 + 1e-9)
        found.w[...] = 0.0
        found.intercept = _intercepts(problem, found.w)
        certificate = certify_stored(problem, found.w, found.intercept, found.beta, distance)
    return certificate


def _intercepts(problem: GraphProblem, w: np.ndarray) -> np.ndarray:
    if not problem.bias > 0:
        return np.zeros(problem.n_tasks)
    return np.asarray(problem.bias * w[:, -1].astype(np.float64))


def _best_multiple(problem: GraphProblem, found: Solution, distance: float | None) -> float | None:
    """Shrink W (the lowest seen) and beta to the multiples with the lowest primal and the highest dual objective; gives
    the distance of W from M V(beta) for tables that are not measured."""
    c, y = problem.c, problem.y
    with np.errstate(all="ignore"):
        energy = problem.penalty(found.w)
        if distance is None:
            v = problem.combine(found.beta)
            energy = 0.5 * float(np.vdot(v, problem.similarity @ v))
            if found.seen is not None and found.seen[0] < found.objective:
                found.w = found.seen[1]
        penalty, scores = problem.penalty(found.w), problem.scores(found.w)
        slopes = np.divide(found.beta, c, out=np.zeros_like(c), where=c > 0)

        def primal(part: float) -> float:
            return part * part * penalty + float(c @ problem.row_loss.value(y, part * scores))

        def minus_dual(part: float) -> float:
            conjugates = problem.row_loss.conjugate(y, part * slopes)
            return part * part * energy + float(c[c > 0] @ conjugates[c > 0])

        shrink, shrink_dual = _lowest_part(primal, problem.null), _lowest_part(minus_dual, 0.0)
        found.w = np.zeros_like(found.w) if shrink == 0.0 else (shrink * found.w).astype(problem.dtype)
        found.beta = np.zeros_like(found.beta) if shrink_dual == 0.0 else shrink_dual * found.beta
        found.beta = feasible(problem.loss, y, c, found.beta)
        if distance is None or (shrink == 0.0 and shrink_dual == 0.0):
            return None if distance is None else 0.0
        # W = M V before; both are rounded once more by the factors
        return 2.0 * distance + abs(shrink - shrink_dual) * float(np.sqrt(2.0 * energy)) * (1.0 + 1e-9)


def _lowest_part(value: Callable[[float], float], at_zero: float) -> float:
    """About the minimiser in [0, 1] of a convex function that may be flat, huge or NaN at 1."""
    best, least = 0.0, at_zero
    part = 1.0
    for _ in range(HALVINGS):
        now = value(part)
        if now < least:
            best, least = part, now
        elif best > 0.0:
            break
        part *= 0.5
    if best == 0.0:
        return 0.0
    low, high = 0.5 * best, min(2.0 * best, 1.0)
    for _ in range(SECTIONS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        if value(left) <= value(right):
            high = right
        else:
            low = left
    middle = 0.5 * (low + high)
    return middle if value(middle) < least else best
