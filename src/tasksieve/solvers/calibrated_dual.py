"""D-PG and D-FISTA: the dual of the calibrated model by first-order methods (Gong et al. 2014, section 3.1).

With a ridge the dual is smooth on a product of unit balls:

    max_u  D(u) = <u, y> - sum_j (||c_j(u)|| - lam_j)_+^2/(2 ridge),     ||u_t|| <= 1,
    grad D(u) = y - X W(u),     W_j(u) = (1 - lam_j/||c_j||)_+ c_j/ridge,

and the gap ``P(W(u)) - D(u)`` is free at every iterate. "d-pg" is SpaRSA, "d-fista" is FISTA on it. They start from
the best multiple of ``y_t/||y_t||``: the paper's random start lies outside the balls, where D is no bound.

Without a ridge: the proximal point method on W (mathematics, section 5). ``rho/2 ||W - W_k||^2`` takes the ridge's
place, its dual has ``c + rho W_k`` in place of c, and ``W_{k+1} = W(u)``; the certificate is the problem's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .calibrated import Record, correlation_sizes, shrunk_rows
from .first_order import Composite, Smooth, fista, sparsa
from .working import Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_METHODS = {"d-pg": sparsa, "d-fista": fista}
_PROXIMAL = 0.15  # of lam_max ||x|| / ||y_t||: the proximal weight where there is no ridge
_INNER = 0.1  # of the gap: how well a proximal problem is solved, better where that does not bring the gap down


def dual_first_order(
    problem: WorkingProblem,
    method: str,
    rows: Array,
    dual: Array,
    tol: float,
    max_iter: int,
    record: Record | None = None,
) -> Solution:
    """Maximise the dual until the gap over the working columns is at most `tol`; `record` keeps the best pair. The rows
    to start from matter without a ridge only."""
    loss, penalty = problem.loss, problem.penalty
    record = record or Record(problem, tol)
    run = _METHODS[method]

    def ball(u: Array, _: float = 1.0) -> Array:
        return np.asarray(loss.scaled(u, 1.0 / np.maximum(loss.sizes(u), 1.0)))

    def see(at: Smooth, _: Smooth | None = None) -> bool:
        rows, products, image = at.more
        return record.see(rows, at.point, products, image)

    dual = ball(dual)
    curvature = penalty.ridge or proximal_weight(problem)
    bound = squared_norm_estimate(problem) / curvature
    if penalty.ridge:
        smooth = _negative_dual(problem, curvature, None)
        see(smooth(dual))
        if not record.done:
            _, count = run(Composite(smooth, ball, lambda u: 0.0), dual, bound, see, max_iter)
            record.iterations += count
        return record.solution()
    centre, accuracy = rows, _INNER
    record.see(rows, dual)
    while not record.done and record.iterations < max_iter:
        smooth, before = _negative_dual(problem, curvature, centre), record.objective

        def solved(at: Smooth, _: Smooth) -> bool:
            if see(at):
                return True
            # the proximal problem's own gap: P_k(W) - D_k(u)
            moved = at.more[0] - centre  # noqa: B023
            value = record.last.objective + 0.5 * curvature * float(np.vdot(moved, moved)) + at.value
            return value <= accuracy * max(record.gap, tol)  # noqa: B023

        composite, left = Composite(smooth, ball, lambda u: 0.0), max_iter - record.iterations
        at, count = run(composite, dual, bound, solved, left)
        record.iterations += count
        # W has arrived, but u has not: its error counts squared in the proximal problem, in full in the certificate.
        arrived = before - record.objective < 1e-3 * record.gap
        accuracy = max(0.1 * accuracy, 1e-3) if arrived else min(3.0 * accuracy, _INNER)
        centre, dual = at.more[0], at.point
    return record.solution()


def _negative_dual(problem: WorkingProblem, curvature: float, centre: Array | None) -> Any:
    loss, penalty = problem.loss, problem.penalty
    constant = 0.0 if centre is None else 0.5 * curvature * float(np.vdot(centre, centre))

    def smooth(u: Array) -> Smooth:
        products = problem.correlate(u)
        pulled = products if centre is None else products + curvature * centre
        over = np.maximum(correlation_sizes(penalty, pulled) - penalty.group_form(), 0.0)
        rows = shrunk_rows(penalty, pulled, curvature)
        image = problem.image(rows)
        value = float(over @ over) / (2.0 * curvature) - float(u @ loss.target) - constant
        return Smooth(u, value, image - loss.target, (rows, products, image))

    return smooth


def squared_norm_estimate(problem: WorkingProblem) -> float:
    """``max_t sigma_max(X_t)^2`` from below, by three steps of the power method: a scale for step lengths."""
    loss = problem.loss
    v = loss.target + 1e-3 * (1.0 + np.abs(loss.target).max()) * np.cos(np.arange(len(loss.target)))
    largest = 0.0
    for _ in range(3):
        sizes = loss.sizes(v)
        v = loss.scaled(v, np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0.0))
        v = problem.columns.combine(problem.positions, problem.correlate(v))
        largest = float(np.max(loss.sizes(v), initial=0.0))
    return largest if largest > 0.0 else 1.0


def proximal_weight(problem: WorkingProblem) -> float:
    """A weight for ``||W - W_k||^2/2`` that has the units of the problem."""
    loss = problem.loss
    at_zero = correlation_sizes(problem.penalty, problem.correlate(loss.null.residual))
    length = float(np.sqrt(np.max(problem.columns.squared_norms[problem.positions], initial=0.0)))
    sizes = loss.sizes(loss.target)
    typical = float(np.mean(sizes[sizes > 0.0])) if np.any(sizes > 0.0) else 1.0
    weight = _PROXIMAL * float(np.max(at_zero, initial=0.0)) * length / typical
    return weight if weight > 0.0 else 1.0
