r"""Features that are certainly zero at one value of a path, from sums over sites.

The dual problem's optimum u* lies in balls that follow from any point W, its residual u and a multiple k u inside the
dual set. All that a ball needs of the rows are the objective, the dual value and u'u, and of a feature its level
||c_j||. With a ridge the residual has a second part, -sqrt(ridge) W, and columns have an entry sqrt(ridge) below: sums
and levels are those of the longer vectors.

A feature is zero if its level is below its strength in all of a ball: k ||c_j|| + length_j radius < lam_j. Levels
arrive rounded up.

The squared loss has a further ball, cut by <XW, u> <= sum_j lam_j ||w_j||, whose centre is no multiple of u
(`screening` uses it). With sites it would double the bytes of levels, for products of each with that at W = 0 must be
asked for, and it rejects little more: from an optimum for another strength the middle ball below has the radius
(1 - k) ||u||/2, that one (1 - k)/2 times the part of u across XW. Measured with 20,000 features: 8.1 MB a site with it,
4.0 MB without.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MARGIN = 1e-9  # of a strength: a level this near to it rejects nothing
FLOOR = 1e-14  # of the null loss: a gap of 0 proves no more than this


def gap_spheres(
    primal: float, dual: float, least_primal: float, best_dual: float, scale: float, apart: float, null: float
) -> list[tuple[float, float]]:
    """Centres, as multiples of the residual, and radii: in the metric where the loss has smoothness 1.

    With P* the optimum, ||r - u*||^2 <= 2 (P(W) - P*) and ||k u - u*||^2 <= 2 (P* - D(k u)): a sphere about each, and
    the ball in the middle that follows from both, ||u* - (r + k u)/2||^2 <= P(W) - D(k u) - ||r - k u||^2/4.

    Parameters
    ----------
    primal, dual : float
        P at this point and D at its multiple k u; the latter -inf where k is not known.
    least_primal, best_dual : float
        The best known of any point.
    apart : float
        A lower bound of ||r - k u||^2.
    null : float
        The null loss, the size that rounding is relative to.
    """
    floor = FLOOR * null
    found = []
    if math.isfinite(best_dual):
        found.append((1.0, math.sqrt(2.0 * (max(primal - best_dual, 0.0) + floor))))
    if math.isfinite(dual):
        found.append((scale, math.sqrt(2.0 * (max(least_primal - dual, 0.0) + floor))))
        gap = max(primal - dual, 0.0)
        found.append((0.5 * (1.0 + scale), math.sqrt(max(gap - 0.25 * apart, 0.0) + floor)))
    return found


def outside_spheres(
    levels: Array, lengths: Array, strengths: Array, spheres: Iterable[tuple[float, float]]
) -> Array:
    """Which features some sphere about a multiple of the residual rejects.

    Soft-thresholded levels are allowed where the multiple is at most 1: ||soft(k c, l1)|| <= k ||soft(c, l1)||, and
    thresholding does not lengthen differences.
    """
    rejected = np.zeros(len(levels), dtype=bool)
    for centre, radius in spheres:
        rejected |= centre * levels + lengths * radius < (1.0 - MARGIN) * strengths
    return rejected
