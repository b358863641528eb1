"""Losses of one row in formulas that tensors of a device take: their own methods, so that nothing is imported here.

A loss names its formula (`RowLoss.tensor_formula`). Parameters of a loss are tensors too, ends `low` and `high` of the
slope and `mu`, of losses whose slope is a clipped residual: a record of the work of one such loss serves others.
"""

from __future__ import annotations

from typing import Any


class TensorFormula:
    """Value, slope and curvature of a loss at labels y and predictions z.

    - `name`: By which work on it is told apart from other work.
    - `n_inner`: Newton steps that usually bring coefficients near enough to their best, between two steps in the sizes
      of rows.
    """

    name: str
    n_inner = 3

    def value(self, y: Any, z: Any, low: Any, high: Any, mu: Any) -> Any:
        """f(y, z)."""
        raise NotImplementedError

    def slopes(self, y: Any, z: Any, low: Any, high: Any, mu: Any) -> tuple[Any, Any]:
        """Minus the derivative of f in z, and the second one."""
        raise NotImplementedError


class LogisticFormula(TensorFormula):
    name = "logistic"

    def value(self, y: Any, z: Any, low: Any, high: Any, mu: Any) -> Any:
        margin = -y * z
        return margin.clamp(min=0.0) + (-margin.abs()).exp().log1p()

    def slopes(self, y: Any, z: Any, low: Any, high: Any, mu: Any) -> tuple[Any, Any]:
        p = (-y * z).sigmoid()
        return y * p, p * (1.0 - p)


class PoissonFormula(TensorFormula):
    name = "poisson"

    def value(self, y: Any, z: Any, low: Any, high: Any, mu: Any) -> Any:
        return z.clamp(max=600.0).exp() - y * z

    def slopes(self, y: Any, z: Any, low: Any, high: Any, mu: Any) -> tuple[Any, Any]:
        mean = z.clamp(max=600.0).exp()
        return y - mean, mean


class ClippedFormula(TensorFormula):
    name, n_inner = "clipped", 6

    def value(self, y: Any, z: Any, low: Any, high: Any, mu: Any) -> Any:
        p = ((y - z) / mu).maximum(low).minimum(high)
        return p * (y - z) - 0.5 * mu * p * p

    def slopes(self, y: Any, z: Any, low: Any, high: Any, mu: Any) -> tuple[Any, Any]:
        free = (y - z) / mu
        return free.maximum(low).minimum(high), ((free > low) & (free < high)) / mu


class SquaredFormula(ClippedFormula):
    """The same between infinite ends, where one step is nearly enough."""

    name, n_inner = "squared", 3


LOGISTIC, POISSON, CLIPPED, SQUARED = LogisticFormula(), PoissonFormula(), ClippedFormula(), SquaredFormula()
