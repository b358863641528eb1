"""The logistic loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from ..design import Design
from .base import Loss
from .multinomial import Multinomial
from .rowwise import RowLoss
from .tensor_formulas import LOGISTIC

Array = np.ndarray[Any, Any]

_TINY, _BELOW_ONE = 5e-324, 1.0 - 2.0**-53  # the smallest number above 0, the largest below 1
_MOST_STEPS = 100  # of Newton's method for intercepts; half of them would halve any range to nothing


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
    tensor_formula = LOGISTIC

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "logistic"}

    def with_classes(self) -> Loss:
        return Multinomial()

    def value(self, y: Array, z: Array) -> Array:
        u = y * z
        return np.maximum(-u, 0.0) + np.log1p(np.exp(-np.abs(u)))

    def slope(self, y: Array, z: Array) -> Array:
        return np.asarray(y * expit(-y * z))

    def conjugate(self, y: Array, p: Array) -> Array:
        q = np.clip(y * p, 0.0, 1.0)
        # each logarithm as exact as its argument, and 0 log 0 = 0
        return np.asarray(q * np.log(np.maximum(q, _TINY)) + (1.0 - q) * np.log1p(-np.minimum(q, _BELOW_ONE)))

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.minimum(y, 0.0), np.maximum(y, 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        p = expit(-y * z)
        return np.asarray(p * (1.0 - p))

    def _derivatives(self, y: Array, z: Array) -> tuple[Array, Array, Array] | None:
        """With one exponential."""
        if type(self) is not Logistic:  # one derived from it may have another value or slope
            return None
        u = y * z
        power = np.exp(-np.abs(u))
        sure = 1.0 / (1.0 + power)
        unsure = power * sure
        value = np.maximum(-u, 0.0) + np.log1p(power)
        return value, y * np.where(u > 0.0, unsure, sure), unsure * sure

    def link(self, z: Array) -> Array:
        """Probability of the larger label."""
        return np.asarray(expit(z))

    def intercepts(
        self, y: Array, z: Array, weights: Array, design: Design, guess: Array | None
    ) -> Array | None:
        """Newton's method between bounds: in each task the slopes fall with its intercept."""
        if type(self) is not Logistic:
            return None
        b = np.zeros(design.n_tasks) if guess is None else guess.copy()
        live = self.diverging_intercepts(y, weights, design) == 0.0
        reach = 10.0 + 2.0 * np.maximum.reduceat(np.abs(z), design.offsets[:-1])
        low, high = np.full(design.n_tasks, -np.inf), np.full(design.n_tasks, np.inf)
        for _ in range(_MOST_STEPS):
            p = expit(-y * (z + design.per_sample(b)))
            pulls = weights * p
            gradient, size = design.task_sums(y * pulls), design.task_sums(pulls)
            open_ = live & (np.abs(gradient) > 4e-16 * len(z) ** 0.5 * size)
            if not open_.any():
                break
            rises = gradient > 0.0
            low, high = np.where(rises, b, low), np.where(rises, high, b)
            curvature = design.task_sums(pulls * (1.0 - p))
            new = b + np.clip(gradient / (curvature + 1e-300), -reach, reach)
            within = (new > low) & (new < high)
            if not within.all():
                bounded = np.isfinite(low) & np.isfinite(high)
                new[~within & bounded] = 0.5 * (low + high)[~within & bounded]
            still = open_ & (np.abs(new - b) > 4e-16 * (10.0 + np.abs(b)))
            b = np.where(open_, new, b)
            if not still.any():
                break
        return b

    def diverging_intercepts(self, y: Array, weights: Array, design: Design) -> Array:
        """Tasks with one class only."""
        positive, negative = design.task_sums(weights * (y > 0)), design.task_sums(weights * (y < 0))
        return np.where((positive == 0) | (negative == 0), np.sign(design.task_sums(weights * y)), 0.0)
