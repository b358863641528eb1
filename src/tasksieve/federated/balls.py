r"""Features that are certainly zero at one value of a path, from sums over sites.

The dual problem's optimum u* lies in balls that follow from any point W, its residual u and a multiple k u inside the
dual set. All that a ball needs of the rows are the sums y'y, y'u, u'u, and of a feature its level ||c_j|| and its
product with the level of the empty model. With a ridge the residual has a second part, -sqrt(ridge) W, and columns have
an entry sqrt(ridge) below: sums and levels are those of the longer vectors.

A feature is zero if its level is below its strength in all of a ball: ||c_j(centre)|| + length_j radius < lam_j.
Levels arrive rounded up; scalars are known to `slack` (`Sums.slack`), products of levels to `Sums.cross_slack`: what
rounding may have taken from a radius is added to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MARGIN = 1e-9  # of a strength: a level this near to it rejects nothing
_FLOOR = 1e-14  # of the null loss: a gap of 0 proves no more than this


@dataclass(frozen=True)
class Sums:
    """A point and a value of the path, as far as balls go; scalars include the part of the ridge.

    Attributes
    ----------
    label_square, product, square : float
        y'y, y'u, u'u; the first two only for the squared loss.
    penalty : float
        sum_j lam_j ||w_j||.
    scale : float
        k such that k u is in the dual set.
    slack : float
        What the words' units may have added to a scalar or taken from it.
    cross_slack : float
        The same of one product of levels.
    """

    label_square: float
    product: float
    square: float
    penalty: float
    scale: float
    slack: float = 0.0
    cross_slack: float = 0.0


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
    floor = _FLOOR * null
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


def outside_cut_ball(
    squares: Array, cross: Array, null_squares: Array, lengths: Array, strengths: Array, sums: Sums
) -> Array:
    """The same for the squared loss, by the ball that the half space <XW, u> <= sum_j lam_j ||w_j|| cuts from the one
    with the ends y and k u: it needs no gap.

    For any t >= 0 the ball about (k u + y - t a)/2, a = XW = y - u, with

        4 radius^2 = ||y - k u||^2 - 2 t (<y - k u, a> - 2 eps) + t^2 ||a||^2,   eps = sum_j lam_j ||w_j|| - <a, k u>,

    holds u*. The best t is taken; upper bounds of the squares and of eps and a lower bound of the product keep that
    true where sums are rounded.

    Parameters
    ----------
    squares, null_squares : arrays
        Squared levels, of the point and of the empty model.
    cross : array
        sum_t c_jt(u) c_jt(y).
    """
    k, slack = sums.scale, sums.slack
    yy, yu, uu = sums.label_square, sums.product, sums.square
    fit = yy - 2.0 * yu + uu
    away = yy - 2.0 * k * yu + k * k * uu
    eps = max(sums.penalty - k * (yu - uu), 0.0)
    turned = (yy - slack) - (1.0 + k) * (yu + slack) + k * (uu - slack) - 2.0 * eps
    t = turned / fit if turned > 0.0 and fit > 1e-12 * yy else 0.0
    square = 0.25 * (away - 2.0 * t * turned + t * t * fit)
    radius = math.sqrt(max(square, 0.0) + 4e-15 * away)
    own, label = 0.5 * (k + t), 0.5 * (1.0 - t)
    centre = own * own * squares + label * label * null_squares + 2.0 * own * label * cross
    centre += 2.0 * abs(own * label) * sums.cross_slack
    rejected: Array = np.sqrt(np.maximum(centre, 0.0)) + lengths * radius < (1.0 - MARGIN) * strengths
    return rejected
