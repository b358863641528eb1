"""The problem that a site solves for one of its tasks, without a message:

    phi(s) = min_w  F(X w) + 1/2 sum_j w_j^2/s_j + l1 sum_j |w_j|,        s >= 0, w_j = 0 where s_j = 0,

X and F in the weighted, projected geometry of a design: intercepts and unpenalised coefficients are minimised out of F.
With w = sqrt(s) v it is a ridge problem in v, solved by Newton's method from v = 0: the answer depends on nothing else.
With u = -F'(X w) and c_j = soft(x_j'u, l1):

    w_j = s_j c_j,    dphi/ds_j = -c_j^2/2,    d2phi/ds_j ds_k = c_j c_k x_j'M x_k,    M = L (I + L'X S X'L)^-1 L',

where L L' is the second derivative of F, and S has s_j for the features that are not held at zero by l1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from ..losses import DataLoss, Evaluation

Array = np.ndarray[Any, Any]

_MOST_STEPS = 200  # of Newton's method
_MOST_POLISH = 12  # full steps at the end, each of which must shrink what is left
_NEAR = 1e-13  # of the loss at w = 0: with less to gain, rounding of the objective says nothing about a step
_SHRUNK = 0.25  # of what was left before: less than this is not rounding
_ARMIJO, _HALVINGS = 1e-4, 60
_DEPENDENT = 1e-10  # of a nuisance column: what is left of it beside the others is rounding


@dataclass
class LocalPoint:
    """The minimiser for one task.

    - `w` (array of shape (a,)): Coefficients of the features asked about.
    - `c` (array of shape (a,)): ``w/s`` where s > 0, and ``soft(x'u, l1)`` where s = 0.
    - `at` (Evaluation): The loss there, with a settled dual point as its residual.
    - `image` (array of shape (n,)): ``X w``.
    """

    w: Array
    c: Array
    at: Evaluation
    image: Array


def soft(c: Array, l1: float) -> Array:
    """``sign(c) max(|c| - l1, 0)``."""
    return np.sign(c) * np.maximum(np.abs(c) - l1, 0.0) if l1 else c


class Turned:
    """``L'`` for a loss of one task at a point: what turns columns so that the loss is 1/2 ||.||^2 to second order."""

    def __init__(self, loss: DataLoss, at: Evaluation) -> None:
        design = loss.design
        self._own, between = loss.quadratic_model(at), loss.threshold_model(at)
        self._roots: list[Array] = []
        self._more = 0  # rows of thresholds alone
        self._basis: Array | None = None
        free, border = design.nuisance_basis, None
        if between is not None:
            *self._roots, border = between
            self._more = len(border) - 2 * design.n_samples
        elif loss.squared:
            return  # columns are orthogonal to the nuisance columns already
        elif self._own is None:
            curvature = at.curvature if at.second is None else at.second
            assert curvature is not None
            self._roots = [np.sqrt(np.maximum(curvature, 0.0))]
        if self._own is not None or between is not None:
            free = free[int(design.fit_intercept) :]  # a constant is lost in L', or taken up by thresholds
        nuisance = self._turn(np.asfortranarray(free.T))
        self._basis = _orthonormal(nuisance if border is None else np.hstack([nuisance, border]))

    def _turn(self, x: Array) -> Array:
        if self._own is not None:
            out = np.empty_like(x, order="F")
            self._own.columns(x, np.arange(x.shape[1]), False, out)
            return out
        if not self._roots:
            return x
        return np.vstack([*(root[:, None] * x for root in self._roots), np.zeros((self._more, x.shape[1]))])

    def columns(self, x: Array) -> Array:
        """``L'x`` for columns x."""
        turned = self._turn(x)
        if self._basis is not None and self._basis.shape[1]:
            for _ in range(2):  # twice for columns of which little is left
                turned = turned - self._basis @ (self._basis.T @ turned)
        return turned


def _orthonormal(columns: Array) -> Array:
    """A basis of what columns span; none for those that depend on others, or that have no curvature."""
    sizes = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    live = columns[:, sizes > 0.0] / sizes[sizes > 0.0]
    if not live.shape[1]:
        return live
    left, values, _ = np.linalg.svd(live, full_matrices=False)
    return np.asarray(left[:, values > _DEPENDENT])


class Ridge:
    """``I + G'G``: the second derivative in v, as a p x p or, by Woodbury's formula, an n x n system."""

    def __init__(self, g: Array) -> None:
        n, p = g.shape
        self._g, self._tall = g, p <= n
        whole = g.T @ g if self._tall else g @ g.T
        whole[np.diag_indices(len(whole))] += 1.0
        self._factor = cho_factor(whole, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, right: Array) -> Array:
        if not len(right):
            return right
        if self._tall:
            return np.asarray(cho_solve(self._factor, right, check_finite=False))
        inner = cho_solve(self._factor, self._g @ right, check_finite=False)
        return np.asarray(right - self._g.T @ inner)

    def inverse_products(self, y: Array) -> Array:
        """``Y' (I + G G')^-1 Y``."""
        lower = self._factor[0]
        if not self._tall:
            half = solve_triangular(lower, y, lower=True, check_finite=False)
            return np.asarray(half.T @ half)
        if not self._g.shape[1]:
            return np.asarray(y.T @ y)
        half = solve_triangular(lower, self._g.T @ y, lower=True, check_finite=False)
        return np.asarray(y.T @ y - half.T @ half)


def solve_local(loss: DataLoss, x: Array, s: Array, l1: float = 0.0) -> LocalPoint:
    """The minimiser of one task.

    - `loss`: Of this task alone.
    - `x` (array of shape (n, a), Fortran order): The columns asked about, in the geometry of the loss's design.
    """
    live = np.flatnonzero(s > 0.0)
    root = np.sqrt(s[live])
    b = np.asfortranarray(x[:, live] * root)
    v, at, z = _newton(loss, b, l1 * root)
    at = loss.settled(at)
    c = soft(x.T @ at.residual, l1)
    w = np.zeros(len(s))
    w[live], c[live] = root * v, v / root
    return LocalPoint(w, c, at, z)


def local_hessian(loss: DataLoss, x: Array, s: Array, point: LocalPoint, l1: float = 0.0) -> Array:
    """Second derivatives of phi at s, (a, a)."""
    turned = Turned(loss, point.at).columns(x)
    live = np.flatnonzero((s > 0.0) & ((point.c != 0.0) | (l1 == 0.0)))
    ridge = Ridge(turned[:, live] * np.sqrt(s[live]))
    return np.asarray(ridge.inverse_products(turned) * np.outer(point.c, point.c))


class _Sparse:
    """The entry-wise part ``sum_j strength_j |v_j|``: which coefficients may move, and in which orthant."""

    def __init__(self, strengths: Array) -> None:
        self._strengths = strengths

    def value(self, v: Array) -> float:
        return float(self._strengths @ np.abs(v))

    def gradient(self, v: Array, smooth: Array) -> Array:
        """The subgradient of least size, given the gradient of the smooth part."""
        held = np.sign(smooth) * np.maximum(np.abs(smooth) - self._strengths, 0.0)
        return np.where(v != 0.0, smooth + self._strengths * np.sign(v), held)


def _newton(loss: DataLoss, b: Array, strengths: Array) -> tuple[Array, Evaluation, Array]:
    """(v, the loss there, X w) for ``F(B v) + 1/2 ||v||^2 + sum_j strength_j |v_j|``.

    With strengths, Newton's method on the coefficients that are not zero or that leave zero, each of them in one
    orthant at a time: what would cross to another stays at zero, and the step is shortened until the objective falls.
    """
    sparse = _Sparse(strengths) if strengths.any() else None
    v, z = np.zeros(b.shape[1]), np.zeros(len(b))
    at = loss.evaluate(z)
    scale, value, left, polished = loss.null.value, at.value, np.inf, 0
    ridge: Ridge | None = None
    best = (np.inf, v, at, z)

    def reached(length: float) -> tuple[Array, Array, Evaluation, float]:
        new_v = v + length * step
        if sparse is not None:
            new_v[new_v * orthant < 0.0] = 0.0
        new_z = b @ new_v
        new_at = loss.evaluate(new_z, at.nuisance)
        more = 0.0 if sparse is None else sparse.value(new_v)
        return new_v, new_z, new_at, new_at.value + 0.5 * float(new_v @ new_v) + more

    for _ in range(_MOST_STEPS if b.shape[1] else 0):
        gradient = v - b.T @ at.slope
        if sparse is None:
            if ridge is None or not loss.squared:
                ridge = Ridge(Turned(loss, at).columns(b))
            step = -ridge.solve(gradient)
            gain = -float(gradient @ step)  # twice what a quadratic model has left to gain
        else:
            gradient = sparse.gradient(v, gradient)
            orthant = np.where(v != 0.0, np.sign(v), -np.sign(gradient))
            step, gain = _orthant_step(Turned(loss, at).columns(b), v, gradient, orthant)
        if gain < best[0]:
            best = (gain, v, at, z)
        if gain <= _NEAR * scale:
            if polished == _MOST_POLISH or not _SHRUNK * left > gain > 0.0:
                break
            left, polished = gain, polished + 1
            v, z, at, value = reached(1.0)
            continue
        length = 1.0
        for _ in range(_HALVINGS):
            found = reached(length)
            if found[3] <= value + _ARMIJO * float(gradient @ (found[0] - v)):
                break
            length *= 0.5
        else:
            break
        v, z, at, value = found
    return best[1], best[2], best[3]


def _orthant_step(turned: Array, v: Array, gradient: Array, orthant: Array) -> tuple[Array, float]:
    """Newton's step on the coefficients that may move, and twice what a model of all of them has left to gain. Those
    that would leave zero on the wrong side stay there: without them the step goes downhill."""
    free = np.flatnonzero((v != 0.0) | (gradient != 0.0))
    gain = None
    while True:
        part = -Ridge(turned[:, free]).solve(gradient[free])
        gain = -float(gradient[free] @ part) if gain is None else gain
        wrong = (v[free] == 0.0) & (part * orthant[free] < 0.0)
        if not wrong.any():
            break
        free = free[~wrong]
    step = np.zeros_like(v)
    step[free] = part
    return step, gain
