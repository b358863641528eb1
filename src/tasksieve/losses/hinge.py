"""The hinge and its square: losses of the margin y z, labels -1 and +1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .rowwise import RowLoss

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Hinge(RowLoss):
    """``max(0, 1 - y z)``, its kink rounded over `width`; conjugate ``width a² / 2 - a``, a = y p in [0, 1].

    With a width the loss is ``h² / (2 width)`` for h = 1 - y z in [0, width] and ``h - width / 2`` beyond: at most
    ``width / 2`` below the hinge, and of smoothness 1 / width.
    """

    label = "hinge loss"
    labels = "signs"
    vanishing = True

    width: float = 0.0

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        return 1.0 / self.width if self.width else np.inf

    def value(self, y: Array, z: Array) -> Array:
        short = np.maximum(1.0 - y * z, 0.0)
        if self.width == 0.0:
            return short
        inner = np.minimum(short, self.width)
        return inner * inner / (2.0 * self.width) + (short - inner)

    def slope(self, y: Array, z: Array) -> Array:
        short = 1.0 - y * z
        return np.asarray(y * (np.clip(short / self.width, 0.0, 1.0) if self.width else short > 0.0))

    def conjugate(self, y: Array, p: Array) -> Array:
        a = y * p
        return np.where((a >= 0.0) & (a <= 1.0), 0.5 * self.width * a * a - a, np.inf)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.minimum(y, 0.0), np.maximum(y, 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        short = 1.0 - y * z
        return np.where((short > 0.0) & (short < self.width), self.smoothness, 0.0)


@dataclass(frozen=True)
class SquaredHinge(RowLoss):
    """``factor max(0, 1 - y z)²``; conjugate ``a² / (4 factor) - a``, a = y p >= 0; smoothness ``2 factor``."""

    label = "squared hinge loss"
    labels = "signs"
    vanishing = True

    factor: float = 0.5

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        return 2.0 * self.factor

    def value(self, y: Array, z: Array) -> Array:
        return np.asarray(self.factor * np.square(np.maximum(1.0 - y * z, 0.0)))

    def slope(self, y: Array, z: Array) -> Array:
        return np.asarray(2.0 * self.factor * y * np.maximum(1.0 - y * z, 0.0))

    def conjugate(self, y: Array, p: Array) -> Array:
        a = y * p
        return np.where(a >= 0.0, a * a / (4.0 * self.factor) - a, np.inf)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.where(y > 0.0, 0.0, -np.inf), np.where(y > 0.0, np.inf, 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        return np.where(y * z < 1.0, self.smoothness, 0.0)
