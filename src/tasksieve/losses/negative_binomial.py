"""The negative binomial loss of known size: counts that vary more than Poisson's, with the exponential as link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from ..design import Design
from .base import check_positive
from .mean_divergence import MeanDivergence, nothing_counted

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class NegativeBinomial(MeanDivergence):
    r"""The negative binomial loss of counts with means :math:`m = e^z` and variances :math:`m + m^2/\vartheta`.

    .. math:: f(y, z) = (y + \vartheta) \log(1 + e^z/\vartheta) - y z, \qquad y \ge 0

    The size is part of the model and is not estimated. It is the logistic loss with the soft label
    :math:`y/(y + \vartheta)`, the weight :math:`y + \vartheta` and the margin :math:`z - \log \vartheta`. Inside, the
    loss of a perfect fit is subtracted, which leaves half the deviance; `tol` is relative to half the deviance of the
    empty model. Conjugate :math:`M \log M + N \log N - p \log \vartheta` up to a constant of y, with
    :math:`M = y - p \ge 0`, :math:`N = \vartheta + p \ge 0`.

    Parameters
    ----------
    size : float, default=1.0
        :math:`\vartheta > 0`, R's ``theta`` (`MASS::negative.binomial`) and statsmodels' ``1/alpha``. The larger it is,
        the nearer the loss is to Poisson's.

    Examples
    --------
    >>> import tasksieve as ts
    >>> loss = ts.losses.NegativeBinomial(size=2.0)
    >>> loss.deviance(3.0, 0.0).round(4)  # 2 (3 log 3 - 5 log(5/3))
    np.float64(1.4834)
    """

    label = "negative binomial deviance"
    formula = "1/n̄ Σ_t Σ_i ((y_i + size) log(1 + exp(x_i·w_t + b_t)/size) − y_i (x_i·w_t + b_t))"
    labels = "counts"

    size: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self.size, "size")

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "negative_binomial", "size": float(self.size)}

    @property
    def _shares(self) -> tuple[float, float]:
        return 1.0, 1.0

    def _margin(self, z: Array) -> Array:
        return np.asarray(z - np.log(self.size))

    def _log_means(self, y: Array, z: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """What y and the size are at a perfect fit: shares of their sum."""
        t, total = self._margin(z), np.log(y + self.size)
        made_of = np.abs(z) + np.abs(np.log(self.size)) + np.abs(total)
        return (total - np.logaddexp(0.0, -t), made_of), (total - np.logaddexp(0.0, t), made_of)

    def _dual_means(self, y: Array, p: Array) -> tuple[Array, Array]:
        total = y + self.size
        return np.clip(y - p, 0.0, total), np.clip(self.size + p, 0.0, total)

    def _largest_means(self, y: Array) -> tuple[Array, Array]:
        return y + self.size, y + self.size

    def _largest_curvature(self, y: Array) -> Array:
        return np.asarray(0.25 * (y + self.size))

    def _together(self, means: Sequence[Array]) -> Array:
        """One mean falls by what the other gains."""
        first, second = np.broadcast_arrays(*means)
        least, most = np.minimum(first, second), np.maximum(first, second)
        share = np.divide(most, least + most, out=np.ones_like(most), where=np.isfinite(most) & (most > 0.0))
        return np.asarray(least * share)

    def slope(self, y: Array, z: Array) -> Array:
        """``size (y - m)/(size + m)``, by shares of which none cancels."""
        t = self._margin(z)
        return np.asarray(y * expit(-t) - self.size * expit(t))

    def conjugate(self, y: Array, p: Array) -> Array:
        first, second = y - p, self.size + p
        inside = (first >= 0.0) & (second >= 0.0)
        first, second = np.maximum(first, 0.0), np.maximum(second, 0.0)
        perfect = xlogy(y, y) + xlogy(self.size, self.size)
        return np.where(inside, xlogy(first, first) + xlogy(second, second) - perfect - p * np.log(self.size), np.inf)

    def domain(self, y: Array) -> tuple[float, Array]:
        return -self.size, y

    def constant(self, y: Array) -> Array:
        return np.asarray((y + self.size) * np.log1p(y / self.size) - xlogy(y, y))

    def information(self, y: Array, z: Array) -> Array:
        return np.asarray(self.size * expit(self._margin(z)))

    def diverging_intercepts(self, y: Array, weights: Array, design: Design) -> Array:
        """Tasks that count nothing."""
        return nothing_counted(y, weights, design)
