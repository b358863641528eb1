"""The squared loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import Design
from .base import DataLoss, Evaluation, Loss

Array = np.ndarray[Any, Any]


class TargetLoss(DataLoss):
    """A loss of ``target - z``, the target freed of what intercepts and unpenalised features explain.

    The same least-squares fit of the nuisance columns minimises it, whatever W is.
    """

    def __init__(self, design: Design, y: Array) -> None:
        super().__init__(design)
        self._y = y
        self.target = _projected_target(design, y)
        self._nuisance = design.nuisance_fit(y)
        self.null = self.evaluate(np.zeros(design.n_samples))

    @property
    def size(self) -> float:
        return float(np.linalg.norm(self.target))

    def _weighted_residual(self, raw: Array) -> Array:
        residual = self._y - raw
        return residual if self.design.root_weights is None else self.design.root_weights * residual


def _projected_target(design: Design, y: Array) -> Array:
    """The labels in the design's geometry: weighted, and freed of what intercepts and unpenalised features explain."""
    weighted = y if design.root_weights is None else design.root_weights * y
    target = design.project(weighted)
    # What is left of a constant target is rounding: it is zero.
    left, whole = design.task_sums(target * target), design.task_sums(weighted * weighted)
    dead = left <= (64.0 * np.finfo(np.float64).eps) ** 2 * whole
    if dead.any():
        target[design.per_sample(dead)] = 0.0
    return target


class Squared(Loss):
    """``1/2 sum_i s_i (y_i - z_i)^2``; conjugate ``v^2/2 + v y``; smoothness 1."""

    label = "squared error"

    def deviance(self, y: Array, z: Array) -> Array:
        return np.square(y - z)

    def on(self, design: Design, y: Array) -> DataLoss:
        return _SquaredOnData(design, y)


class _SquaredOnData(TargetLoss):
    name = "squared"
    smoothness = 1.0
    squared = True

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        residual = self.target - z
        return Evaluation(0.5 * float(residual @ residual), residual, self._nuisance)

    def value_at(self, raw: Array) -> float:
        residual = self._weighted_residual(raw)
        return 0.5 * float(residual @ residual)

    def terms(self, at: Evaluation, scale: float) -> float:
        return (1.0 - scale) ** 2 * at.value

    def best_scale(self, at: Evaluation, product: float, limit: float) -> float:
        if at.value == 0.0:
            return 0.0
        return max(min((2.0 * at.value + product) / (2.0 * at.value), limit), 0.0)
