r"""Losses of one sample, element by element: what online learning and the machines on a graph share.

A loss is a convex function :math:`f(y, z)` of a prediction z. Its *slope* is :math:`p = -\partial f / \partial z`, the
size and the direction in which the sample pulls its prediction, and its conjugate is taken at -p:

.. math:: f^*(-p) = \sup_z\ (-p z - f(y, z)), \qquad f(y, z) + f^*(-p) + p z \ge 0,

with equality where p is the slope at z (Fenchel and Young). A sum of such terms over samples is what a loss adds to a
duality gap: no digit is lost in a difference. Arrays come in, arrays of the same shape go out. Labels of the
classification losses are -1 and +1; `factor` is the number in front of a square, because conventions differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import expit, xlogy

Array = np.ndarray[Any, Any]


class Pointwise(Protocol):
    """What a loss of one sample answers."""

    def value(self, y: Array, z: Array | float) -> Array:
        """f(y, z)."""
        ...

    def slope(self, y: Array, z: Array | float) -> Array:
        """Minus the derivative in z; at a kink one of the possible values."""
        ...

    def conjugate(self, y: Array, p: Array) -> Array:
        """f*(-p); infinite outside the domain."""
        ...

    def domain(self, y: Array) -> tuple[Array, Array]:
        """The interval (lowest, highest) of p in which the conjugate is finite."""
        ...

    @property
    def smoothness(self) -> float:
        """Upper bound on the second derivative; infinite where there is a kink."""
        ...


def _inside(p: Array, domain: tuple[Array, Array], value: Array) -> Array:
    low, high = domain
    return np.where((p >= low) & (p <= high), value, np.inf)


def _line(y: Array) -> tuple[Array, Array]:
    return np.full(np.shape(y), -np.inf), np.full(np.shape(y), np.inf)


def _towards(y: Array, longest: float) -> tuple[Array, Array]:
    """The domain of a loss of the margin y z: ``a = y p`` is in [0, longest]."""
    return np.where(np.asarray(y) > 0, 0.0, -longest), np.where(np.asarray(y) > 0, longest, 0.0)


@dataclass(frozen=True)
class Squared:
    """``factor (z - y)²``; conjugate ``p² / (4 factor) - p y``; smoothness ``2 factor``."""

    factor: float = 0.5

    def value(self, y: Array, z: Array | float) -> Array:
        return np.asarray(self.factor * np.square(z - y))

    def slope(self, y: Array, z: Array | float) -> Array:
        return np.asarray(2.0 * self.factor * (y - z))

    def conjugate(self, y: Array, p: Array) -> Array:
        return np.asarray(p * p / (4.0 * self.factor) - p * y)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return _line(y)

    @property
    def smoothness(self) -> float:
        return 2.0 * self.factor


@dataclass(frozen=True)
class Logistic:
    """``log(1 + exp(-y z))``; conjugate ``a log a + (1 - a) log(1 - a)``, a = y p in [0, 1]; smoothness 1/4."""

    smoothness: float = 0.25

    def value(self, y: Array, z: Array | float) -> Array:
        return np.asarray(np.logaddexp(0.0, -y * z))

    def slope(self, y: Array, z: Array | float) -> Array:
        return np.asarray(y * expit(-y * z))

    def conjugate(self, y: Array, p: Array) -> Array:
        a = np.clip(y * p, 0.0, 1.0)
        return _inside(p, self.domain(y), xlogy(a, a) + xlogy(1.0 - a, 1.0 - a))

    def domain(self, y: Array) -> tuple[Array, Array]:
        return _towards(y, 1.0)


@dataclass(frozen=True)
class Hinge:
    """``max(0, 1 - y z)``, its kink rounded over `width`; conjugate ``width a² / 2 - a``, a = y p in [0, 1].

    With a width the loss is ``h² / (2 width)`` for h = 1 - y z in [0, width] and ``h - width / 2`` beyond: at most
    ``width / 2`` below the hinge, and of smoothness 1 / width.
    """

    width: float = 0.0

    def value(self, y: Array, z: Array | float) -> Array:
        short = np.maximum(1.0 - y * z, 0.0)
        if self.width == 0.0:
            return short
        inner = np.minimum(short, self.width)
        return inner * inner / (2.0 * self.width) + (short - inner)

    def slope(self, y: Array, z: Array | float) -> Array:
        short = 1.0 - y * z
        return np.asarray(y * (np.clip(short / self.width, 0.0, 1.0) if self.width else short > 0.0))

    def conjugate(self, y: Array, p: Array) -> Array:
        a = y * p
        return _inside(p, self.domain(y), 0.5 * self.width * a * a - a)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return _towards(y, 1.0)

    @property
    def smoothness(self) -> float:
        return 1.0 / self.width if self.width else np.inf


@dataclass(frozen=True)
class SquaredHinge:
    """``factor max(0, 1 - y z)²``; conjugate ``a² / (4 factor) - a``, a = y p >= 0; smoothness ``2 factor``."""

    factor: float = 0.5

    def value(self, y: Array, z: Array | float) -> Array:
        return np.asarray(self.factor * np.square(np.maximum(1.0 - y * z, 0.0)))

    def slope(self, y: Array, z: Array | float) -> Array:
        return np.asarray(2.0 * self.factor * y * np.maximum(1.0 - y * z, 0.0))

    def conjugate(self, y: Array, p: Array) -> Array:
        a = y * p
        return _inside(p, self.domain(y), a * a / (4.0 * self.factor) - a)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return _towards(y, np.inf)

    @property
    def smoothness(self) -> float:
        return 2.0 * self.factor


@dataclass(frozen=True)
class EpsilonInsensitive:
    """``max(0, |z - y| - epsilon)``; conjugate ``epsilon |p| - p y``, p in [-1, 1]; it has kinks."""

    epsilon: float = 0.1

    def value(self, y: Array, z: Array | float) -> Array:
        return np.maximum(np.abs(z - y) - self.epsilon, 0.0)

    def slope(self, y: Array, z: Array | float) -> Array:
        return np.asarray(np.sign(y - z) * (np.abs(z - y) > self.epsilon))

    def conjugate(self, y: Array, p: Array) -> Array:
        return _inside(p, self.domain(y), self.epsilon * np.abs(p) - p * y)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.full(np.shape(y), -1.0), np.full(np.shape(y), 1.0)

    @property
    def smoothness(self) -> float:
        return np.inf


@dataclass(frozen=True)
class SquaredEpsilonInsensitive:
    """``factor max(0, |z - y| - epsilon)²``; conjugate ``p² / (4 factor) + epsilon |p| - p y``; smoothness
    ``2 factor``."""

    epsilon: float = 0.1
    factor: float = 0.5

    def value(self, y: Array, z: Array | float) -> Array:
        return np.asarray(self.factor * np.square(np.maximum(np.abs(z - y) - self.epsilon, 0.0)))

    def slope(self, y: Array, z: Array | float) -> Array:
        over = np.maximum(np.abs(z - y) - self.epsilon, 0.0)
        return np.asarray(2.0 * self.factor * np.sign(y - z) * over)

    def conjugate(self, y: Array, p: Array) -> Array:
        return np.asarray(p * p / (4.0 * self.factor) + self.epsilon * np.abs(p) - p * y)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return _line(y)

    @property
    def smoothness(self) -> float:
        return 2.0 * self.factor
