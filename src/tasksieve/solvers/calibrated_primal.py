"""P-SPG, P-SFISTA and P-ADMM: the calibrated model by primal methods (Gong et al. 2014, appendices A and B).

"p-spg" and "p-sfista" smooth the loss (Nesterov): ``h_mu(r) = r^2/(2 mu)`` for ``r <= mu`` and ``r - mu/2`` beyond,

    s_mu(W) = sum_t h_mu(||y_t - X_t w_t||) + ridge/2 ||W||^2,    grad = -X'v + ridge W,    v_t = r_t/max(mu, ||r_t||),

and run SpaRSA or FISTA on ``s_mu + sum_j lam_j ||W_j||``. v is a dual point of the unsmoothed model, so the
certificate is true; smoothing costs at most mu/2 a task, and nothing where ``||r_t|| >= mu``. The papers fix mu; here
it starts at a tenth of the tasks' norms and falls tenfold whenever the smoothed problem is solved better
than it fits the true one.

"p-admm" splits off the residual, ``z = y - XW`` with multiplier u (scaled by rho):

    W = argmin rho/2 ||XW - (y - z + u/rho)||^2 + Omega(W)      (row coordinate descent, warm started),
    z_t = (1 - 1/(rho ||v_t||))_+ v_t,   v = u/rho + y - XW,    u = rho (v - z),

after which ``||u_t|| <= 1`` holds by itself. rho balances the sizes of the two residuals (Boyd et al. 2011, 3.4.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .calibrated import Record
from .calibrated_dual import squared_norm_estimate
from .coordinate import CoordinateDescent
from .first_order import Composite, Smooth, fista, sparsa
from .working import Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_METHODS = {"p-spg": sparsa, "p-sfista": fista}


def smoothed_first_order(
    problem: WorkingProblem, method: str, rows: Array, tol: float, max_iter: int, record: Record | None = None
) -> Solution:
    """Minimise the smoothed model, mu falling, until the gap of the model itself is at most `tol`."""
    loss, penalty = problem.loss, problem.penalty
    record = record or Record(problem, tol)
    shape = penalty.without_ridge()
    sizes = loss.sizes(loss.target)
    mu = 0.1 * float(np.mean(sizes[sizes > 0.0])) if np.any(sizes > 0.0) else 1.0
    norm = squared_norm_estimate(problem)
    run = _METHODS[method]
    record.see(rows, loss.null.residual)
    lowest = 1e-14 * mu
    while not record.done and record.iterations < max_iter:
        smooth = _smoothed(problem, mu)

        def watch(at: Smooth, before: Smooth) -> bool:
            # W is new; the dual point is that of the gradient's point, whose correlations are known
            dual, products, _ = before.more
            image = at.more[2]
            if record.see(at.point, dual, products, image):
                return True
            # P_mu(W) - D_mu(k u), D_mu(u) = D(u) - mu/2 ||u||^2: what smoothing is not to blame for
            last = record.last
            small = np.minimum(last.sizes, mu)  # noqa: B023
            bias = float(np.sum(0.5 * small * (2.0 - small / mu)))  # noqa: B023  (sum of ||r|| - h_mu)
            bias -= 0.5 * mu * last.scale**2 * float(np.sum(loss.task_products(last.dual, last.dual)))  # noqa: B023
            return last.gap - bias <= 0.3 * last.gap and mu > lowest  # noqa: B023

        composite = Composite(smooth, lambda w, eta: shape.proximal(w, 1.0 / eta), shape.value)
        at, count = run(composite, rows, norm / mu + penalty.ridge, watch, max_iter - record.iterations)
        record.iterations += count
        rows, mu = at.point, 0.1 * mu
    return record.solution()


def _smoothed(problem: WorkingProblem, mu: float) -> Any:
    loss, ridge = problem.loss, problem.penalty.ridge

    def smooth(rows: Array) -> Smooth:
        image = problem.image(rows)
        residual = loss.target - image
        sizes = loss.sizes(residual)
        dual = loss.scaled(residual, 1.0 / np.maximum(sizes, mu))
        products = problem.correlate(dual)
        values = np.where(sizes <= mu, sizes * sizes / (2.0 * mu), sizes - 0.5 * mu)
        value = float(values.sum()) + 0.5 * ridge * float(np.vdot(rows, rows))
        return Smooth(rows, value, ridge * rows - products, (dual, products, image))

    return smooth


def alternating_directions(
    problem: WorkingProblem, rows: Array, tol: float, max_iter: int, record: Record | None = None
) -> Solution:
    """P-ADMM until the gap over the working columns is at most `tol`; `max_iter` counts its outer iterations."""
    loss, penalty = problem.loss, problem.penalty
    record = record or Record(problem, tol)
    descent = CoordinateDescent()
    sizes = loss.sizes(loss.target)
    rho = 3.0 / float(np.mean(sizes[sizes > 0.0])) if np.any(sizes > 0.0) else 1.0
    split, dual = loss.target - problem.image(rows), np.zeros_like(loss.target)
    record.see(rows, loss.null.residual)
    while not record.done and record.iterations < max_iter:
        scaled = penalty.times(1.0 / rho)
        scaled.ridge = penalty.ridge / rho
        # The inner problem is in units of P/rho: solved well enough for the gap to go on falling.
        inner = max(1e-3 * min(record.gap, record.last.objective), 1e-3 * tol) / rho
        target = loss.target - split + dual / rho
        rows = descent.minimise(problem.columns, problem.positions, scaled, target, rows.copy(), inner, 200).rows
        image = problem.image(rows)
        v = dual / rho + loss.target - image
        lengths = loss.sizes(v)
        shrink = np.maximum(1.0 - 1.0 / np.maximum(rho * lengths, 1e-300), 0.0)
        before, split = split, loss.scaled(v, shrink)
        dual = rho * (v - split)
        record.iterations += 1
        record.see(rows, dual, image=image)
        primal = float(np.linalg.norm(loss.target - image - split))
        change = rho * float(np.linalg.norm(split - before))
        if primal * rho > 10.0 * change:
            rho *= 2.0
        elif change > 10.0 * primal * rho:
            rho *= 0.5
    return record.solution()
