"""What the solvers of the calibrated model share: a primal and a dual point, and the gap between them.

    P(W) = sum_t ||y_t - X_t w_t|| + sum_j lam_j ||W_j|| + ridge/2 ||W||_F^2
    D(u) = <u, y> - sum_j (||c_j|| - lam_j)_+^2 / (2 ridge),     ||u_t|| <= 1,   c_jt = <x_jt, u_t>,

without a ridge the sum becomes the constraint ``||c_j|| <= lam_j`` (mathematics, section 5; Gong et al. 2014, eq. 5 and
10, where theta = -u). With ``W >= 0`` the positive part of c takes the place of c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..penalties import row_norms
from .working import Solution, WorkingProblem

Array = np.ndarray[Any, Any]


@dataclass
class PrimalDual:
    """A primal point, a dual point, and the gap between them over the columns at hand.

    - `rows`: W.
    - `residual`, `sizes`: ``y - XW``, flat, recomputed from W; and its norm in each task.
    - `dual`, `products`: u with ``||u_t|| <= 1``, flat, and its correlations c with the columns. The dual point is
      `scale` times these.
    """

    rows: Array
    residual: Array
    sizes: Array
    dual: Array
    products: Array
    scale: float
    objective: float
    gap: float

    @property
    def dual_value(self) -> float:
        return self.objective - self.gap


@dataclass
class CalibratedSolution(Solution):
    """Rows of W, the dual point that belongs to them, and the noise."""

    noise: Array | None = None  # sigma_t of the variational Newton method


def correlation_sizes(penalty: Any, products: Array) -> Array:
    """``||c_j||``, of the positive part where W must be positive."""
    return row_norms(np.maximum(products, 0.0) if penalty.positive else products)


def shrunk_rows(penalty: Any, products: Array, curvature: float) -> Array:
    """``W(u)``: the minimiser of ``sum_j lam_j ||W_j|| + curvature/2 ||W||^2 - <c, W>``."""
    products = np.maximum(products, 0.0) if penalty.positive else products
    sizes = row_norms(products)
    ratio = np.divide(penalty.group_form(), sizes, out=np.ones_like(sizes), where=sizes > 0.0)
    return np.asarray(products * (np.maximum(1.0 - ratio, 0.0) / curvature)[:, None])


def best_multiple(along: float, sizes: Array, strengths: Array, ridge: float) -> float:
    """The k in [0, 1] with the largest ``D(k u)``, where ``along = <u, y>`` and ``sizes`` are the ``||c_j||``."""
    if along <= 0.0:
        return 0.0
    if ridge == 0.0:
        positive = strengths > 0.0
        polar = float(np.max(sizes[positive] / strengths[positive], initial=0.0))
        # Shrunk by more than rounding can have added to the sizes: the scaled point is feasible.
        return 1.0 if polar <= 1.0 - 1e-12 else 1.0 / (polar * (1.0 + 1e-12))
    # The slope of D in k is decreasing and concave: Newton's method from the right end never overshoots.
    k = 1.0
    for _ in range(100):
        over = k * sizes > strengths
        square = float(sizes[over] @ sizes[over])
        slope = along * ridge - k * square + float(strengths[over] @ sizes[over])
        if slope >= 0.0 or square == 0.0:
            break
        k = max(k + slope / square, 0.0)
    return k


def row_gaps(penalty: Any, sizes: Array, inner: Array, row_sizes: Array, scale: float) -> float:
    """What the penalty adds to the gap: the Fenchel-Young excess of every row, each >= 0."""
    excess = penalty.group_form() * row_sizes - scale * inner
    if penalty.ridge:
        over = np.maximum(scale * sizes - penalty.group_form(), 0.0)
        excess = excess + 0.5 * penalty.ridge * (row_sizes * row_sizes) + over * over / (2.0 * penalty.ridge)
    return float(np.sum(np.maximum(excess, 0.0)))


def primal_dual(
    problem: WorkingProblem,
    rows: Array,
    dual: Array,
    products: Array | None = None,
    image: Array | None = None,
) -> PrimalDual:
    """The pair (W, u) with its gap: ``y - XW`` is computed afresh, any `dual` is brought into the balls and scaled."""
    loss, penalty = problem.loss, problem.penalty
    if products is None:
        products = problem.correlate(dual)
    lengths = loss.sizes(dual)
    if np.any(lengths > 1.0):
        shrink = 1.0 / np.maximum(lengths * (1.0 + 1e-15), 1.0)
        dual, products = loss.scaled(dual, shrink), products * shrink
    residual = loss.target - (problem.image(rows) if image is None else image)
    sizes = loss.sizes(residual)
    correlations = correlation_sizes(penalty, products)
    scale = best_multiple(float(dual @ loss.target), correlations, penalty.group_form(), penalty.ridge)
    row_sizes = row_norms(rows)
    inner = np.einsum("jt,jt->j", products, rows)
    # ||r_t|| - k <u_t, r_t> >= 0: written so that nothing cancels where u is the direction of r
    loss_gap = float(np.sum(np.maximum(sizes - scale * loss.task_products(dual, residual), 0.0)))
    gap = loss_gap + row_gaps(penalty, correlations, inner, row_sizes, scale)
    squares = float((row_sizes * row_sizes).sum())
    objective = float(sizes.sum() + penalty.group_form() @ row_sizes + 0.5 * penalty.ridge * squares)
    return PrimalDual(rows, residual, sizes, dual, products, scale, objective, gap)
