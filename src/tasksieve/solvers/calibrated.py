"""What the solvers of the calibrated model share: a primal and a dual point, the gap between them, and the best so far.

    P(W) = sum_t ||y_t - X_t w_t|| + sum_j lam_j ||W_j|| + ridge/2 ||W||_F^2
    D(u) = <u, y> - sum_j (||c_j|| - lam_j)_+^2 / (2 ridge),     ||u_t|| <= 1,   c_jt = <x_jt, u_t>,

without a ridge the sum becomes the constraint ``||c_j|| <= lam_j`` (mathematics, section 5; Gong et al. 2014, eq. 5 and
10, where theta = -u). With ``W >= 0`` the positive part of c takes the place of c.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
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


@dataclass
class History:
    """One entry an iteration: P(W), D(u) of the iterates, their certified gap so far, seconds since the start."""

    objective: list[float] = field(default_factory=list)
    dual: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    def add(self, pair: PrimalDual, gap: float) -> None:
        self.objective.append(pair.objective)
        self.dual.append(pair.dual_value)
        self.gap.append(gap)
        self.seconds.append(time.perf_counter() - self.began)


class Record:
    """The best primal and the best dual point seen: together they are the certificate."""

    def __init__(
        self,
        problem: WorkingProblem,
        tol: float,
        history: History | None = None,
        hopeless: Callable[[list[float]], bool] | None = None,
    ) -> None:
        """`hopeless` is called after each pair with the gaps so far: whether to give up."""
        self._problem, self._tol, self._history, self._hopeless = problem, tol, history, hopeless
        self._gaps: list[float] = []
        self._given_up = False
        self.iterations = 0
        self.last: PrimalDual
        self._primal: PrimalDual | None = None
        self._dual: PrimalDual | None = None

    def see(
        self, rows: Array, dual: Array, products: Array | None = None, image: Array | None = None
    ) -> bool:
        """Takes note of a pair; True when the gap is small enough."""
        self.last = primal_dual(self._problem, rows, dual, products, image=image)
        if self._primal is None or self.last.objective <= self._primal.objective:
            self._primal = self.last
        if self._dual is None or self.last.dual_value >= self._dual.dual_value:
            self._dual = self.last
        if self._history is not None:
            self._history.add(self.last, self.gap)
        if self._hopeless is not None:
            self._gaps.append(self.gap)
            self._given_up = self._hopeless(self._gaps)
        return self.done

    @property
    def gap(self) -> float:
        """Of the best primal and the best dual point."""
        if self._primal is None or self._dual is None:
            return np.inf
        own = min(self._primal.gap, self._dual.gap)  # free of cancellation
        return max(min(own, self._primal.objective - self._dual.dual_value), 0.0)

    @property
    def objective(self) -> float:
        """The lowest so far."""
        return np.inf if self._primal is None else self._primal.objective

    @property
    def done(self) -> bool:
        return self._given_up or self.gap <= self._tol

    def solution(self) -> Solution:
        assert self._primal is not None and self._dual is not None
        best, other = self._primal, self._dual
        if self.last.gap <= self.gap:  # one pair is as good as the best of both
            best = other = self.last
        return Solution(best.rows, self.iterations, self.gap, dual=other.dual, noise=best.sizes)
