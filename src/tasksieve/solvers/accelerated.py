"""Accelerated proximal gradient (FISTA with restarts): the kind of solver the screening papers speed up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..design import PackedColumns
from .working import Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_CHECK_EVERY = 10


def lipschitz_constant(packed: PackedColumns, places: Array) -> float:
    """``max_t sigma_max(X_t)^2`` of packed columns, from the smaller Gram matrix of each task."""
    x = packed.x[:, places]
    if packed.shared or packed.n_tasks == 1:
        blocks = [x]
    else:
        blocks = [x[a:b] for a, b in zip(packed.offsets[:-1], packed.offsets[1:], strict=True)]
    largest = 0.0
    for block in blocks:
        small = block @ block.T if block.shape[0] <= block.shape[1] else block.T @ block
        if small.size:
            largest = max(largest, float(np.linalg.eigvalsh(small)[-1]))
    return largest


def accelerated_proximal_gradient(
    problem: WorkingProblem,
    start: Array,
    tol: float,
    max_iter: int,
    *,
    curvature: float | None = None,
    shrink: Callable[[Array, Any, Array, float], Array] | None = None,
) -> Solution:
    """Minimise over the working columns until their duality gap is at most `tol`.

    Parameters
    ----------
    curvature : float, optional
        `lipschitz_constant` of the working columns, where it is known.
    shrink : callable, optional
        ``shrink(rows, evaluation, products, gap)`` returns which rows may be dropped for good (dynamic screening).
        Asked after 10, 20, 40, ... iterations: its cost must stay small beside theirs.
    """
    packed, loss = problem.packed, problem.loss
    places, penalty = problem.places, problem.penalty
    alive = np.arange(len(places))
    if curvature is None:
        curvature = lipschitz_constant(packed, places)
    bound = loss.smoothness * curvature * (1.0 + 1e-10)
    step = 1.0 / bound if bound > 0.0 else 1.0
    rows = start.copy()
    point, momentum = rows.copy(), 1.0
    iterations, gap, ask = 0, np.inf, _CHECK_EVERY
    nuisance = None
    while True:
        if iterations % _CHECK_EVERY == 0 or iterations >= max_iter:
            at = WorkingProblem(packed, places[alive], penalty, loss).evaluate(rows, nuisance)
            products = packed.correlate(at.residual, places[alive])
            gap = WorkingProblem(packed, places[alive], penalty, loss).gap(rows, at, products)
            if gap <= tol or iterations >= max_iter:
                break
            if shrink is not None and iterations >= ask:
                ask = max(2 * ask, _CHECK_EVERY)
                gone = shrink(rows, at, products, gap)
                if gone.any():
                    keep = ~gone
                    alive, rows, point = alive[keep], rows[keep], point[keep]
                    penalty = problem.penalty.restrict(alive)
                    point, momentum = rows.copy(), 1.0
        here = WorkingProblem(packed, places[alive], penalty, loss)
        at = here.evaluate(point, nuisance)
        nuisance = at.nuisance
        gradient = -packed.correlate(at.residual, here.places)
        following = penalty.prox(point - step * gradient, step)
        if float(np.vdot(point - following, following - rows)) > 0.0:
            momentum = 1.0  # the momentum points uphill: start again
            point = following.copy()
        else:
            grown = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            point = following + (momentum - 1.0) / grown * (following - rows)
            momentum = grown
        rows = following
        iterations += 1
    full = np.zeros_like(start)
    full[alive] = rows
    return Solution(full, iterations, gap)
