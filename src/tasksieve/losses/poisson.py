"""The Poisson loss: counts and rates, with the exponential as link."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import xlogy

from ..design import Design
from .divergence import exp
from .mean_divergence import MeanDivergence, log_ratio, nothing_counted
from .tensor_formulas import POISSON

Array = np.ndarray[Any, Any]


class Poisson(MeanDivergence):
    r"""The Poisson loss of counts or rates, with rates :math:`e^z`.

    .. math:: f(y, z) = e^z - y z

    Inside, :math:`y \log y - y` is added, so that a perfect fit costs nothing: that is half the deviance. Objectives
    are reported without it; `tol` is relative to half the deviance of the empty model. Conjugate
    :math:`M \log M - M`, M = y - p >= 0. Labels need not be integers.

    Examples
    --------
    >>> import tasksieve as ts
    >>> loss = ts.losses.Poisson()
    >>> loss.link(0.0), loss.deviance(2.0, 0.0).round(4)
    (array(1.), np.float64(0.7726))
    """

    label = "Poisson deviance"
    formula = "1/n̄ Σ_t Σ_i (exp(x_i·w_t + b_t) − y_i (x_i·w_t + b_t))"
    labels = "counts"
    tensor_formula = POISSON

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "poisson"}

    def _log_means(self, y: Array, z: Array) -> tuple[tuple[Array, float]]:
        return ((z, 0.0),)

    def _dual_means(self, y: Array, p: Array) -> tuple[Array]:
        return (np.maximum(y - p, 0.0),)

    def slope(self, y: Array, z: Array) -> Array:
        return np.asarray(y - exp(z))

    def conjugate(self, y: Array, p: Array) -> Array:
        mean = y - p
        inside = np.maximum(mean, 0.0)
        return np.where(mean >= 0.0, (xlogy(inside, inside) - inside) - (xlogy(y, y) - y), np.inf)

    def domain(self, y: Array) -> tuple[float, Array]:
        return -np.inf, y

    def constant(self, y: Array) -> Array:
        return np.asarray(y - xlogy(y, y))

    def diverging_intercepts(self, y: Array, weights: Array, design: Design) -> Array:
        """Tasks that count nothing."""
        return nothing_counted(y, weights, design)

    def intercepts(self, y: Array, z: Array, weights: Array, design: Design, guess: Array | None) -> Array:
        """``log(sum s y / sum s e^z)``."""
        with np.errstate(divide="ignore"):
            return log_ratio(design, weights, np.log(y), z)
