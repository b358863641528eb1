"""The expectile loss: squares that count more on one side, so that a tail is fitted and not the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design import Design
from .base import UNIT, DataLoss, Evaluation
from .rowwise import RowLoss, RowLossOnData

Array = np.ndarray[Any, Any]

_MOST_STEPS = 100  # of Newton's method: each changes which labels lie above, and few do


@dataclass(frozen=True)
class Expectile(RowLoss):
    r"""Squared errors that count `level` where the label lies above the prediction, 1 - `level` below.

    .. math:: f(y, z) = \tfrac12 w (y - z)^2, \qquad w = \tau \text{ for } y > z, \quad 1 - \tau \text{ for } y < z

    A level of 0.5 is half the squared loss. Conjugate :math:`p^2/(2 w) - p y` with w by the sign of p; smoothness
    :math:`\max(\tau, 1 - \tau)`. Unlike quantiles, expectiles are smooth, and sensitive to how far labels lie outside
    (Newey and Powell 1987).

    Parameters
    ----------
    level : float, default=0.5
        :math:`\tau`, between 0 and 1.

    Examples
    --------
    >>> import tasksieve as ts
    >>> loss = ts.losses.Expectile(level=0.9)
    >>> loss.value(2.0, 0.0).round(2), loss.value(0.0, 2.0).round(2)
    (np.float64(1.8), np.float64(0.2))
    """

    label = "asymmetric squared error"
    formula = "1/(2n̄) Σ_t Σ_i |level − 1(y_i < x_i·w_t + b_t)| (y_i − x_i·w_t − b_t)²"
    estimates = True
    translates = True
    degree = 2

    level: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level must be a number between 0 and 1; got {self.level!r}.")

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        return max(self.level, 1.0 - self.level)

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "expectile", "level": float(self.level)}

    def _side(self, values: Array) -> Array:
        """w by the sign of residuals or slopes."""
        return np.where(np.asarray(values) > 0.0, self.level, 1.0 - self.level)

    def value(self, y: Array, z: Array) -> Array:
        residual = y - z
        return np.asarray(0.5 * self._side(residual) * residual * residual)

    def slope(self, y: Array, z: Array) -> Array:
        residual = y - z
        return np.asarray(self._side(residual) * residual)

    def conjugate(self, y: Array, p: Array) -> Array:
        return np.asarray(0.5 * p * p / self._side(p) - p * y)

    def second(self, y: Array, z: Array) -> Array:
        return self._side(y - z)

    def excess(self, y: Array, z: Array, p: Array) -> tuple[Array, Array]:
        """``(p - p')^2/(2w)`` with p' the slope at z, where both have one sign; else a sum of three positive terms."""
        residual = y - z
        own = self._side(residual) * residual
        w = self._side(np.where(p == 0.0, own, p))
        away, both = p - own, np.abs(p) + np.abs(own)
        apart = np.sign(own) * np.sign(p) < 0.0
        across = 0.5 * own * residual + 0.5 * p * p / w - p * residual
        sizes = np.where(apart, across, (np.abs(away) + 4.0 * UNIT * both) * both / w)
        return np.where(apart, across, 0.5 * away * away / w), sizes

    def deviance(self, y: Array, z: Array) -> Array:
        return 2.0 * self.value(y, z)

    def sizes(self, y: Array) -> Array:
        return np.square(y)

    def best_constant(self, y: Array, weights: Array) -> float:
        """The expectile of the labels."""
        constant = float(np.average(y, weights=weights))
        for _ in range(_MOST_STEPS):
            own = weights * self._side(y - constant)
            step = float(own @ (y - constant) / own.sum())
            if constant + step == constant or abs(step) <= 4.0 * UNIT * float(np.max(np.abs(y), initial=0.0)):
                break
            constant += step
        return constant

    def intercepts(self, y: Array, z: Array, weights: Array, design: Design, guess: Array | None) -> Array:
        """Newton's method on a piecewise linear function that is convex or concave: it ends after a few steps."""
        residual = y - z
        live = design.task_sums(weights) > 0.0
        b = np.zeros(design.n_tasks) if guess is None else guess.copy()
        for _ in range(_MOST_STEPS):
            left = residual - design.per_sample(b)
            own = weights * self._side(left)
            pull, steep, size = design.task_sums(np.stack([own * left, own, own * np.abs(left)]))
            open_ = live & (np.abs(pull) > 4e-16 * (size + steep * np.abs(b)))
            if not open_.any():
                break
            b = b + np.divide(pull, steep, out=np.zeros_like(pull), where=open_)
        return b

    def on(self, design: Design, y: Array, offset: Array | None = None) -> DataLoss:
        return ExpectileOnData(self, design, y, offset)


class ExpectileOnData(RowLossOnData):
    """`Expectile` on data. Every multiple of a dual point is one."""

    of: Expectile

    def best_scale(self, at: Evaluation, product: float, limit: float) -> float:
        """The dual value is a parabola in the scale."""
        p = at.residual * self._inverse_root
        assert at.margin is not None
        square = float(self._weights @ (p * p / self.of._side(p)))
        if square == 0.0:
            return max(min(1.0, limit), 0.0)
        best = (float(self._weights @ (p * (self._y - at.margin))) + product) / square
        return max(min(best, limit), 0.0)
