"""The log-cosh loss: squared for small residuals, linear for large ones, without a corner between."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import xlogy

from .divergence import divergence
from .rowwise import RowLoss

Array = np.ndarray[Any, Any]


class LogCosh(RowLoss):
    r"""The logarithm of the hyperbolic cosine of residuals: labels that went wrong do not decide.

    .. math:: f(y, z) = \log \cosh(y - z)

    About half the square of small residuals and the size of large ones, less log 2; the residual is in the units of y,
    and 1 is where the one becomes the other. Conjugate
    :math:`\tfrac12 [(1 + p) \log(1 + p) + (1 - p) \log(1 - p)] - p y` for :math:`|p| \le 1`; smoothness 1.

    Examples
    --------
    >>> import tasksieve as ts
    >>> loss = ts.losses.LogCosh()
    >>> loss.value(0.01, 0.0).round(9), loss.value(1000.0, 0.0).round(3)
    (np.float64(4.9999e-05), np.float64(999.307))
    """

    label = "log-cosh loss"
    formula = "1/n̄ Σ_t Σ_i log cosh(y_i − x_i·w_t − b_t)"
    estimates = True
    translates = True

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "log_cosh"}

    def value(self, y: Array, z: Array) -> Array:
        size = np.abs(np.asarray(y - z))
        near = np.log1p(2.0 * np.square(np.sinh(0.5 * np.minimum(size, 1.0))))
        return np.where(size < 1.0, near, size + (np.log1p(np.exp(-2.0 * size)) - np.log(2.0)))[()]

    def slope(self, y: Array, z: Array) -> Array:
        return np.asarray(np.tanh(y - z))

    def conjugate(self, y: Array, p: Array) -> Array:
        above, below = 1.0 + p, 1.0 - p
        inside = (above >= 0.0) & (below >= 0.0)
        above, below = np.maximum(above, 0.0), np.maximum(below, 0.0)
        return np.where(inside, 0.5 * (xlogy(above, above) + xlogy(below, below)) - p * y, np.inf)

    def domain(self, y: Array) -> tuple[float, float]:
        return -1.0, 1.0

    def curvature(self, y: Array, z: Array) -> Array:
        """``tanh(r)/r``, of a parabola that touches the loss at z and lies above it: log cosh is concave in r²."""
        size = np.abs(np.asarray(y - z))
        return np.where(size > 1e-5, np.tanh(size) / np.maximum(size, 1e-5), 1.0)

    def second(self, y: Array, z: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / np.square(np.cosh(y - z)))

    def excess(self, y: Array, z: Array, p: Array) -> tuple[Array, Array]:
        """With d how far the residual is from the one of slope p: ``log(cosh d + p sinh d) - p d``, less its part of
        first order, where both are small; else the divergence of (1 + p)/2 from the share that the residual has."""
        r = np.asarray(y - z)
        small = (np.abs(p) <= 0.5) & (np.abs(r) <= 1.0)
        inner, own = np.where(small, p, 0.0), np.where(small, r, 0.0)
        matching = np.arctanh(inner)
        d = own - matching
        bent = 2.0 * np.square(np.sinh(0.5 * d)) + inner * (np.sinh(d) - d)
        x = inner * d + bent
        near = np.maximum(bent - (x - np.log1p(x)), 0.0)
        near_sizes = np.abs(d) * (np.abs(own) + np.abs(matching) + np.abs(inner)) + bent
        far, far_sizes = np.zeros_like(near), np.zeros_like(near)
        for share, log in (
            (0.5 * (1.0 + p), -np.logaddexp(0.0, -2.0 * r)),
            (0.5 * (1.0 - p), -np.logaddexp(0.0, 2.0 * r)),
        ):
            share = np.maximum(share, 0.0)
            logs = 1.0 + np.abs(np.log(np.maximum(share, 1e-300))) + np.abs(log)
            far, far_sizes = far + divergence(share, log), far_sizes + share * logs + np.exp(log)
        return np.where(small, near, far), np.where(small, near_sizes, far_sizes)
