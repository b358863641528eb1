"""Divergences of means, ``KL(a || b) = a log(a/b) - a + b``, and the row metric that a gap made of them gives."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def exp(z: Array) -> Array:
    """``e^z``, infinite where it leaves the range."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(z))


def remainder(t: Array) -> Array:
    """``e^t - 1 - t``, by its series near 0, where the difference has no digits."""
    small = np.abs(t) < 0.1
    if not small.any():
        return np.asarray(np.expm1(t) - t)
    near = np.where(small, t, 0.0)
    series = np.ones_like(near)
    for k in range(10, 2, -1):
        series = 1.0 + near / k * series
    return np.where(small, 0.5 * near * near * series, np.expm1(t) - t)


def relative_divergence(x: Array) -> Array:
    """``KL(a || b)/b`` for ``a = (1 + x) b``: ``(1 + x) log(1 + x) - x``, by its series near 0."""
    small = np.abs(x) < 0.02
    near = np.where(small, x, 0.0)
    series = np.zeros_like(near)
    for k in range(11, 1, -1):
        series = 1.0 / (k * (k - 1)) - near * series
    found = near * near * series
    if small.all():
        return np.asarray(found)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(small, found, (1.0 + x) * np.log1p(x) - x)


def divergence(mean: Array, z: Array) -> Array:
    """``KL(M || e^z)`` in a way that cancels little: ``M (e^t - 1 - t)`` with ``t = z - log M``."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t, power = z - np.log(mean), np.exp(z)
        near = mean * remainder(t)
        far = (power - mean) - mean * t
        found = np.where(np.abs(t) < 1.0, near, far)
        return np.where(mean > 0.0, np.maximum(found, 0.0), power)


def poisson_metric(dual: Array, primal: Array, gap: float, most: Array | float = np.inf) -> Array:
    """By row: kappa such that ``sum KL(M || M*) + sum KL(M* || m) <= G`` puts M* into an ellipsoid,

        sum_i (M* - (M + m)/2)_i^2/kappa_i  <=  G - 1/4 sum_i (M - m)_i^2/kappa_i.

    Each half alone bounds every M*, so that kappa shrinks to the means with the gap. All of it in weighted units.

    Parameters
    ----------
    dual, primal : arrays
        M, of a feasible dual point, and m, of the primal point.
    gap : float
        G.
    most : array, optional
        What no M* exceeds.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.minimum(
            dual + 2.0 * gap / 3.0 + np.sqrt(4.0 * gap * gap / 9.0 + 2.0 * gap * dual),
            primal + gap / 3.0 + np.sqrt(gap * gap / 9.0 + 2.0 * gap * primal),
        )
        largest = np.minimum(largest, most)
        above, below = np.maximum(largest - dual, 0.0), np.maximum(largest - primal, 0.0)
        return np.maximum(dual + 2.0 / 3.0 * above, primal + below / 3.0)
