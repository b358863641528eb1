r"""The Poisson loss: counts and rates, with the exponential as link.

The loss is not smooth, its derivative grows as fast as itself; yet every gap bounds the dual optimum. Let M be the
means of a feasible dual point (``M = y - u``), m those of the primal point and M* those of the optimum. Fenchel's
inequality gives

    sum_i s_i KL(M_i || M_i*) + sum_i s_i KL(M_i* || m_i)  <=  G,                                             (*)

and with ``KL(a||b) >= (a - b)^2/(2 (a + 2/3 (b - a)_+))`` and ``KL(b||a) >= (a - b)^2/(2 (a + 1/3 (b - a)_+))`` each
half alone says, for ``g = G/s_i``, how large a fitted mean can be at the optimum:

    M_i* <= Q_i = min( M + 2g/3 + sqrt(4g^2/9 + 2gM),  m + g/3 + sqrt(g^2/9 + 2gm) ).

So with ``kappa_i = max(M + 2/3 (Q - M)_+, m + 1/3 (Q - m)_+)`` and the largest of them in each task, ``m_t``, both
halves together are an ellipsoid around the midpoint of the two slopes:

    sum_t ||u* - (r + u)/2||_t^2/m_t  <=  G - sum_t ||r - u||_t^2/(4 m_t).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import xlogy

from ..design import Design
from .base import DataLoss, Evaluation, gamma
from .divergence import divergence, exp, poisson_metric
from .rowwise import RowLoss, RowLossOnData

Array = np.ndarray[Any, Any]


class Poisson(RowLoss):
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
    estimates = True
    labels = "counts"
    smoothness = np.inf
    differentiable = True

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "poisson"}

    def value(self, y: Array, z: Array) -> Array:
        return divergence(y, z)

    def slope(self, y: Array, z: Array) -> Array:
        return np.asarray(y - exp(z))

    def conjugate(self, y: Array, p: Array) -> Array:
        mean = y - p
        inside = np.maximum(mean, 0.0)
        return np.where(mean >= 0.0, (xlogy(inside, inside) - inside) - (xlogy(y, y) - y), np.inf)

    def domain(self, y: Array) -> tuple[float, Array]:
        return -np.inf, y

    def curvature(self, y: Array, z: Array) -> Array:
        return exp(z)

    def constant(self, y: Array) -> Array:
        return np.asarray(y - xlogy(y, y))

    def excess(self, y: Array, z: Array, p: Array) -> tuple[Array, Array]:
        """``KL(M || e^z)``, M = y - p."""
        mean = np.maximum(y - p, 0.0)
        logs = np.abs(np.log(np.maximum(mean, 1e-300))) + np.abs(z)
        return divergence(mean, z), mean * (1.0 + logs) + exp(z)

    def rooms(self, y: Array, p: Array) -> tuple[Array, Array]:
        """Means may go down to zero, and up to twice what they are."""
        mean = np.maximum(y - p, 0.0)
        return mean, mean

    def deviance(self, y: Array, z: Array) -> Array:
        return 2.0 * divergence(y, z)

    def link(self, z: Array) -> Array:
        """The rate."""
        return exp(z)

    def best_constant(self, y: Array, weights: Array) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(np.average(y, weights=weights)))

    def diverging_intercepts(self, y: Array, weights: Array, design: Design) -> Array:
        """Tasks that count nothing."""
        return np.where(design.task_sums(weights * y) == 0.0, -1.0, 0.0)

    def intercepts(self, y: Array, z: Array, weights: Array, design: Design, guess: Array | None) -> Array:
        """``log(sum s y / sum s e^z)``."""
        top = np.maximum.reduceat(np.where(weights > 0.0, z, -np.inf), design.offsets[:-1])
        top = np.where(np.isfinite(top), top, 0.0)
        rates = design.task_sums(weights * np.exp(np.minimum(z - design.per_sample(top), 0.0)))
        counts = design.task_sums(weights * y)
        good = (counts > 0.0) & (rates > 0.0)
        ratio = np.divide(counts, rates, out=np.ones_like(rates), where=good)
        return np.asarray(np.log(ratio) - top)

    def on(self, design: Design, y: Array, offset: Array | None = None) -> DataLoss:
        return PoissonOnData(self, design, y, offset)


class PoissonOnData(RowLossOnData):
    """`Poisson` on data."""

    def __init__(self, loss: Poisson, design: Design, y: Array, offset: Array | None = None) -> None:
        super().__init__(loss, design, y, offset)
        # what sums over rows are made of, for what rounding may take from them
        sizes = np.abs(xlogy(y, y)) + y + 1.0
        self._sizes = float(self._weights @ sizes)
        if self.null.value <= gamma(64) * self._sizes:  # the same in all rows of a task: nothing to explain
            nothing = np.zeros(design.n_samples)
            self.null = self.settled(replace(self.null, residual=nothing, slope=nothing))

    def least_goal(self) -> float:
        """Rounding, and what tasks that count nothing cost at an intercept that is kept finite."""
        if self.null.residual.any():
            return 0.0
        return 8.0 * gamma(64) * self._sizes + 2e-13 * float(self._weights.sum())

    def objective_error(self, at: Evaluation, error: Array) -> float:
        return super().objective_error(at, error) + gamma(16) * self._sizes

    @property
    def size(self) -> float:
        return float(np.sqrt(self._weights.sum()))

    def floored_gap(self, gap: float) -> float:
        return gap + gamma(64) * self._sizes

    def second_order_error(self, at: Evaluation, error: Array) -> float:
        """Along the way from z to a score that is off by d the second derivative is at most ``exp(z + |d|)``."""
        z = at.margin
        assert z is not None
        live = self._weights > 0.0
        off = (self.design.per_sample(error) * self._inverse_root)[live]
        with np.errstate(over="ignore", invalid="ignore"):
            steepest = np.where(off > 0.0, exp(z[live] + off), 0.0)
        moved = float(error @ error)
        return 0.5 * float(np.max(steepest, initial=0.0)) * moved if moved > 0.0 else 0.0

    def metric(self, at: Evaluation, scale: float, gap: float) -> Array:
        """``kappa`` of the module's docstring."""
        assert at.margin is not None
        mean, rate = np.maximum(self._y - scale * at.residual * self._inverse_root, 0.0), exp(at.margin)
        weighted = poisson_metric(self._weights * mean, self._weights * rate, gap)
        return weighted * np.square(self._inverse_root)
