r"""Levels that were not asked for: bounds from points that were asked about before, the anchors.

Let u be the residual at a question's s, v = k u_A a multiple of that at an anchor, and L the loss's smoothness. For any
coefficients w at the sites, Fenchel's inequality (strong, for the conjugate of a smooth loss is strongly convex) gives

    ||u - v||^2 <= 2 L ( phi(s) - D_s(v) ),      D_s(v) = -F*(-v) - 1/2 sum_j s_j ||soft(x_j'v, l1)||^2.

All of this is known from sums that were sent already: of the anchor its dual values and its levels on the features in
use at s. So ||c_j|| <= k ||c_j(A)|| + ||x_j|| ||u - v||, and a feature for which that is below its strength need not be
asked about. Before a question is asked, phi(s) is foretold from second derivatives; afterwards it is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .points import Point

Array = np.ndarray[Any, Any]

_NEAREST = 8  # anchors that bounds are taken from


class Around:
    """What points that were asked about say of another one.

    Parameters
    ----------
    points : sequence of Point
        The anchors. Those that soft-threshold more, or do not know levels of features in use, are left out.
    features : array of int
    s : array of float
    l1, phi : float
        The other point; an upper bound of phi, or what it is expected to be.

    Attributes
    ----------
    anchors : list of (Point, float, float)
        The nearest, with the multiple of their residual and an upper bound of phi - D, nearest first.
    """

    def __init__(self, points: Sequence[Point], features: Array, s: Array, l1: float, phi: float) -> None:
        used = s > 0.0
        features, s = features[used], s[used]
        found = []
        for point in points:
            levels = point.levels_at(features) if point.l1 <= l1 else None
            if levels is not None:
                scale, value = point.multiple(float(s @ np.square(levels)))
                if math.isfinite(value):
                    found.append((point, scale, phi - value))
        found.sort(key=lambda each: (each[2], each[0].number))
        everywhere = [each for each in found[_NEAREST:] if each[0].question.levels is None][:1]
        self.anchors = found[:_NEAREST] + everywhere

    def bounds(self, lengths: Array, slack: float) -> Array:
        """Upper bounds of levels, of all features.

        - `lengths`: Of the columns, times the root of the loss's smoothness.
        - `slack`: What rounding does to phi and to dual values.
        """
        found = np.full(len(lengths), np.inf)
        for point, scale, apart in self.anchors:
            radius = math.sqrt(2.0 * (max(apart, 0.0) + slack))
            looked = point.looked_at()
            found[looked] = np.minimum(found[looked], scale * point.levels + radius * lengths[looked])
        return found

    def guesses(self, base: Point) -> Array:
        """What levels are likely to be: those at a point that a step starts from, and where these are not known, those
        at the nearest anchor where they are."""
        found = np.zeros(len(base.common.weights))
        for point, scale, _ in [*reversed(self.anchors), (base, 1.0, 0.0)]:
            found[point.looked_at()] = scale * point.levels
            found[point.features] = scale * point.inner
        return found
