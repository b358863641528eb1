"""The logistic loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from ..design import Design
from .base import Loss
from .multinomial import Multinomial
from .rowwise import RowLoss

Array = np.ndarray[Any, Any]


class Logistic(RowLoss):
    """``log(1 + exp(-y z))`` with labels +-1; smoothness 1/4.

    Conjugate at ``-p``: ``q log q + (1 - q) log(1 - q)`` with ``q = y p`` in [0, 1].
    """

    label = "logistic loss"
    formula = "1/n̄ Σ_t Σ_i log(1 + exp(−y_i (x_i·w_t + b_t)))"
    estimates = True
    labels = "signs"
    smoothness = 0.25
    vanishing = True
    probabilities = True

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "logistic"}

    def with_classes(self) -> Loss:
        return Multinomial()

    def value(self, y: Array, z: Array) -> Array:
        return np.logaddexp(0.0, -y * z)

    def slope(self, y: Array, z: Array) -> Array:
        return np.asarray(y * expit(-y * z))

    def conjugate(self, y: Array, p: Array) -> Array:
        q = y * p
        rest = np.maximum(1.0 - q, 0.0)
        return np.asarray(xlogy(q, q) + xlogy(rest, rest))

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.minimum(y, 0.0), np.maximum(y, 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        p = expit(-y * z)
        return np.asarray(p * (1.0 - p))

    def link(self, z: Array) -> Array:
        """Probability of the larger label."""
        return np.asarray(expit(z))

    def diverging_intercepts(self, y: Array, weights: Array, design: Design) -> Array:
        """Tasks with one class only."""
        positive, negative = design.task_sums(weights * (y > 0)), design.task_sums(weights * (y < 0))
        return np.where((positive == 0) | (negative == 0), np.sign(design.task_sums(weights * y)), 0.0)
