"""The square-root loss of the calibrated model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import Design
from .base import Evaluation
from .squared import projected_target

Array = np.ndarray[Any, Any]


class SquareRoot:
    """``sum_t ||y_t - z_t||``, the calibrated loss: a norm for each task, so that tasks may differ in noise.

    Conjugate ``<v, y>`` where every ``||v_t|| <= 1``. Minus the gradient is the *direction* of each task's residual;
    where a task is fitted exactly any vector of the unit ball is, and zero stands for them here. The scale of
    y_t cancels in the direction: that is why the right amount of shrinkage does not depend on the noise.
    """

    name = "square-root"
    smoothness = np.inf
    floor = 0.0

    def __init__(self, design: Design, y: Array) -> None:
        self._design = design
        self.target = projected_target(design, y)
        self.null = self.evaluate(np.zeros(design.n_samples))

    def sizes(self, vector: Array) -> Array:
        """The norm of a flat vector in each task."""
        return np.sqrt(self._design.task_sums(vector * vector))

    def task_products(self, first: Array, second: Array) -> Array:
        """Inner product of two flat vectors in each task."""
        return self._design.task_sums(first * second)

    def scaled(self, vector: Array, factors: Array) -> Array:
        """A flat vector, each task multiplied by its factor."""
        return vector * self._design.per_sample(factors)

    def project(self, vector: Array) -> Array:
        """The part of a flat vector that intercepts and unpenalised features cannot explain."""
        return self._design.project(vector)

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        residual = self.target - z
        sizes = self.sizes(residual)
        inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)
        return Evaluation(
            float(sizes.sum()), self.scaled(residual, inverse), np.empty((0, self._design.n_tasks))
        )

    def gap_terms(self, at: Evaluation, scale: float) -> float:
        return (1.0 - scale) * at.value

    def best_scale(self, at: Evaluation, product: float, limit: float) -> float:
        return max(min(1.0, limit), 0.0)
