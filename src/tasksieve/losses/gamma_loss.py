"""The gamma loss: positive numbers whose spread grows with their mean, with the exponential as link."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import xlogy

from ..design import Design
from .mean_divergence import MeanDivergence, log_ratio

Array = np.ndarray[Any, Any]


class Gamma(MeanDivergence):
    r"""The gamma loss of positive numbers (costs, durations, concentrations), with means :math:`e^z`.

    .. math:: f(y, z) = y e^{-z} + z, \qquad y > 0

    Inside, :math:`1 + \log y` is subtracted, so that a perfect fit costs nothing: that is half the deviance
    :math:`2 (y/m - 1 - \log(y/m))`, in which only the ratio of label and mean counts. Objectives are reported with it;
    `tol` is relative to half the deviance of the empty model. Conjugate :math:`M \log M - M - M \log y`,
    M = 1 + p >= 0. The dispersion is a common factor of the loss and is not estimated.

    Examples
    --------
    >>> import tasksieve as ts
    >>> loss = ts.losses.Gamma()
    >>> loss.deviance(2.0, 0.0).round(4), loss.deviance(2000.0, 6.907755278982137).round(4)
    (np.float64(0.6137), np.float64(0.6137))
    """

    label = "gamma deviance"
    formula = "1/n̄ Σ_t Σ_i (y_i exp(−x_i·w_t − b_t) + x_i·w_t + b_t)"
    labels = "positive"

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "gamma"}

    def _log_means(self, y: Array, z: Array) -> tuple[tuple[Array, Array]]:
        log = np.log(y)
        return ((log - z, np.abs(log) + np.abs(z)),)

    def _dual_means(self, y: Array, p: Array) -> tuple[Array]:
        return (np.maximum(1.0 + p, 0.0),)

    def slope(self, y: Array, z: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(np.expm1(np.log(y) - z))

    def conjugate(self, y: Array, p: Array) -> Array:
        mean = 1.0 + p
        inside = np.maximum(mean, 0.0)
        return np.where(mean >= 0.0, xlogy(inside, inside) - p - p * np.log(y), np.inf)

    def domain(self, y: Array) -> tuple[float, float]:
        return -1.0, np.inf

    def constant(self, y: Array) -> Array:
        return np.asarray(1.0 + np.log(y))

    def information(self, y: Array, z: Array) -> Array:
        return np.ones(np.shape(z))

    def intercepts(self, y: Array, z: Array, weights: Array, design: Design, guess: Array | None) -> Array:
        """``log(sum s y e^-z / sum s)``."""
        return log_ratio(design, weights, np.log(y) - z, np.zeros(len(z)))
