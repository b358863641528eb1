"""Losses that leave residuals of at most epsilon alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .rowwise import RowLoss

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class EpsilonInsensitive(RowLoss):
    """``max(0, |z - y| - epsilon)``; conjugate ``epsilon |p| - p y``, p in [-1, 1]; it has kinks."""

    label = "epsilon-insensitive error"
    translates = True
    smoothness = np.inf

    epsilon: float = 0.1

    def value(self, y: Array, z: Array) -> Array:
        return np.maximum(np.abs(z - y) - self.epsilon, 0.0)

    def slope(self, y: Array, z: Array) -> Array:
        return np.asarray(np.sign(y - z) * (np.abs(z - y) > self.epsilon))

    def conjugate(self, y: Array, p: Array) -> Array:
        return np.where(np.abs(p) <= 1.0, self.epsilon * np.abs(p) - p * y, np.inf)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.full(np.shape(y), -1.0), np.full(np.shape(y), 1.0)

    def certificate_form(self) -> dict[str, Any]:
        epsilon = float(self.epsilon)
        return {"name": "clipped", "mu": 0.0, "epsilon": epsilon, "low": -1.0, "high": 1.0, "labels": "numbers"}


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(RowLoss):
    """``factor max(0, |z - y| - epsilon)²``; conjugate ``p² / (4 factor) + epsilon |p| - p y``; smoothness
    ``2 factor``. With epsilon = 0 it is ``factor (z - y)²``."""

    label = "squared epsilon-insensitive error"
    translates = True

    epsilon: float = 0.1
    factor: float = 0.5

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        return 2.0 * self.factor

    def value(self, y: Array, z: Array) -> Array:
        return np.asarray(self.factor * np.square(np.maximum(np.abs(z - y) - self.epsilon, 0.0)))

    def slope(self, y: Array, z: Array) -> Array:
        over = np.maximum(np.abs(z - y) - self.epsilon, 0.0)
        return np.asarray(2.0 * self.factor * np.sign(y - z) * over)

    def conjugate(self, y: Array, p: Array) -> Array:
        return np.asarray(p * p / (4.0 * self.factor) + self.epsilon * np.abs(p) - p * y)

    def curvature(self, y: Array, z: Array) -> Array:
        return np.where(np.abs(z - y) > self.epsilon, self.smoothness, 0.0)

    def certificate_form(self) -> dict[str, Any]:
        mu, epsilon = 0.5 / float(self.factor), float(self.epsilon)
        return {"name": "clipped", "mu": mu, "epsilon": epsilon, "low": None, "high": None, "labels": "numbers"}
