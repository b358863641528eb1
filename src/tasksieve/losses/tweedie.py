r"""The Tweedie loss: amounts that are often exactly 0 and else positive, with the exponential as link.

With ``k = power - 1`` and ``l = 2 - power`` (k + l = 1) the loss is ``A/k + B/l``, ``A = y e^(-kz)``, ``B = e^(lz)``,
and its slope ``A - B``. A dual point p has means a, b >= 0 with ``a - b = p``: any such pair bounds the conjugate from
above, and the best one is that of a prediction, ``a = y e^(-k zeta)``, ``b = e^(l zeta)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from ..design import Design
from .divergence import exp
from .mean_divergence import MeanDivergence, log_ratio, nothing_counted

Array = np.ndarray[Any, Any]

_NEWTON_STEPS = 30  # at most; five are usual
_LARGEST = 1e280  # of a slope in units of its label: beyond it any pair of means will do


@dataclass(frozen=True)
class Tweedie(MeanDivergence):
    r"""The Tweedie loss of amounts that may be 0 (claims, rainfall, sales), with means :math:`e^z`.

    .. math::

        f(y, z) = \frac{y\, e^{(1 - \rho) z}}{\rho - 1} + \frac{e^{(2 - \rho) z}}{2 - \rho}, \qquad y \ge 0,
        \quad 1 < \rho < 2

    The variance is proportional to the power :math:`\rho` of the mean: a sum of a Poisson number of gamma amounts.
    Inside, the loss of a perfect fit is subtracted, which leaves half the deviance; `tol` is relative to half the
    deviance of the empty model. The conjugate is the smallest of
    :math:`\frac{1}{\rho - 1} (a \log(a/y) - a) + \frac{1}{2 - \rho} (b \log b - b)` over :math:`a - b = p`,
    :math:`a, b \ge 0`. The dispersion is a common factor of the loss and is not estimated.

    Parameters
    ----------
    power : float, default=1.5
        :math:`\rho`, between 1 (`Poisson`) and 2 (`Gamma`), both excluded.

    Examples
    --------
    >>> import tasksieve as ts
    >>> loss = ts.losses.Tweedie(power=1.5)
    >>> loss.deviance(4.0, 0.0).round(4), loss.deviance(0.0, 0.0).round(4)
    (np.float64(4.0), np.float64(4.0))
    """

    label = "Tweedie deviance"
    formula = (
        "1/n̄ Σ_t Σ_i (y_i exp((1 − power) (x_i·w_t + b_t))/(power − 1) + exp((2 − power) (x_i·w_t + b_t))/(2 − power))"
    )
    labels = "counts"

    power: float = 1.5

    def __post_init__(self) -> None:
        if not 1.0 < self.power < 2.0:
            raise ValueError(
                f"power must be a number between 1 and 2; got {self.power!r}. Powers 1 and 2 are the losses 'poisson' "
                "and 'gamma'."
            )

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "tweedie", "power": float(self.power)}

    @property
    def _shares(self) -> tuple[float, float]:
        return self.power - 1.0, 2.0 - self.power

    def _log_means(self, y: Array, z: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        k, rest = self._shares
        with np.errstate(divide="ignore"):
            log = np.log(y)
        size = np.abs(z)
        return (log - k * z, np.where(np.isfinite(log), np.abs(log), 0.0) + k * size), (rest * z, rest * size)

    def _dual_means(self, y: Array, p: Array) -> tuple[Array, Array]:
        """The means of the prediction with slope p; with ``a - b = p`` to the last digit of the larger one."""
        k, rest = self._shares
        y, p = np.broadcast_arrays(y, p)
        counted = y > 0.0
        unit = np.where(counted, y, 1.0) ** rest
        with np.errstate(over="ignore"):
            ratio = np.where(counted, p / unit, 0.0)
        up = ratio > 0.0
        w = _matching(np.minimum(np.abs(ratio), _LARGEST), np.where(up, k, rest), np.where(up, rest, k))
        smaller = unit * np.exp(-np.where(up, rest, k) * w)
        above = np.where(up, smaller + p, smaller)
        below = np.where(up, smaller, smaller - p)
        return np.where(counted, above, 0.0), np.where(counted, below, np.maximum(-p, 0.0))

    def _labels_as_means(self, y: Array) -> tuple[Array, Array]:
        perfect = np.asarray(y, dtype=np.float64) ** self._shares[1]
        return perfect, perfect

    def _largest_means(self, y: Array) -> tuple[Array, float]:
        return np.where(y > 0.0, np.inf, 0.0), np.inf

    def slope(self, y: Array, z: Array) -> Array:
        k, rest = self._shares
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.where(y > 0.0, y * np.exp(-k * z), 0.0) - np.exp(rest * z))

    def conjugate(self, y: Array, p: Array) -> Array:
        k, rest = self._shares
        y, p = np.broadcast_arrays(y, p)
        (above, below), perfect = self._dual_means(y, p), self._labels_as_means(y)[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(p > 0.0, (np.log(y) - np.log(above)) / k, np.log(below) / rest)
            counted = -p * score - (above - perfect) / k - (below - perfect) / rest
        nothing = np.where(p <= 0.0, (xlogy(below, below) - below) / rest, np.inf)
        return np.where(y > 0.0, counted, nothing)

    def domain(self, y: Array) -> tuple[float, Array]:
        return -np.inf, np.where(y > 0.0, np.inf, 0.0)

    def constant(self, y: Array) -> Array:
        k, rest = self._shares
        return np.asarray(self._labels_as_means(y)[0] / (k * rest))

    def information(self, y: Array, z: Array) -> Array:
        return exp(self._shares[1] * z)

    def diverging_intercepts(self, y: Array, weights: Array, design: Design) -> Array:
        """Tasks that count nothing; the smaller the power of the mean, the further out their loss vanishes."""
        return nothing_counted(y, weights, design) / self._shares[1]

    def intercepts(self, y: Array, z: Array, weights: Array, design: Design, guess: Array | None) -> Array:
        """``log(sum s A / sum s B)``."""
        (above, _), (below, _) = self._log_means(y, z)
        return log_ratio(design, weights, above, below)


def _matching(size: Array, growing: Array, falling: Array) -> Array:
    """The w >= 0 with ``e^(growing w) - e^(-falling w) = size``, rates that add up to 1: by Newton's method on the
    logarithm of both sides, whose difference is increasing and concave, so that it ends from anywhere."""
    w = np.log1p(growing * size) / growing
    for _ in range(_NEWTON_STEPS):
        small = np.exp(-falling * w)
        off = growing * w - np.log1p(size + np.expm1(-falling * w))
        step = off / (growing + falling * small / (size + small))
        w = np.maximum(w - step, 0.0)
        if np.all(np.abs(step) <= 1e-15 * w):
            break
    return w
