"""Safe screening for the calibrated model: where the direction of each task's residual can still be.

For *any* W with residuals ``r_t = y_t - X_t w_t`` and a gap G at most ``P(W) - D(u)`` for some feasible u,

    sum_t ||r_t||/2 ||u_t* - r_t/||r_t|| ||^2  <=  P(W) - P*  <=  G,                                        (*)

for every dual optimum u*. Proof: with Omega the penalty (ridge included), ``D(u*) = <u*, y> - Omega*(X'u*)`` and
Fenchel's inequality ``Omega(W) + Omega*(X'u*) >= <X'u*, W>``,

    P(W) - P* = P(W) - D(u*) >= sum_t ( ||r_t|| - <u_t*, r_t> ),

and ``1 - <u, v> >= ||u - v||^2/2`` for ``||u|| <= 1 = ||v||``. So the u_t* lie in an ellipsoid with half-axes
``sqrt(2 G/||r_t||)`` around the directions of the residuals, and row j is zero if ``||X_j'u|| < lam_j`` on all of it:
for an optimal W* the j-th row of ``X'u*`` has norm ``lam_j + ridge ||W_j*||`` or more wherever ``W_j* != 0``.

Nothing but (*) is used: neither a ridge (the published models are strongly convex, this needs no strong convexity),
nor a lower bound on the residuals of the optimum, nor that the pair is anywhere near it. A task that is fitted so well
that (*) says less than ``||u_t*|| <= 1`` is bounded by that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_FLOOR = 1e-14  # of sum_t ||y_t||: a computed gap of 0 is no proof of exactness


@dataclass
class DirectionBall:
    """The set that holds u*.

    ``sum_t ||u_t - centre_t||^2/stretch_t^2 <= radius^2`` over the `bounded` tasks, and the unit ball in the others.

    Attributes
    ----------
    factors : array
        ``centre_t = factors_t r_t``: one over ``||r_t||``, 0 in tasks that are not bounded.
    slack : array
        What must be added to the remainder of each task: 1 where it is not bounded.
    stretch : array
    radius : float
    """

    factors: Array
    slack: Array
    stretch: Array
    radius: float

    @property
    def bounded(self) -> Array:
        return np.asarray(self.slack == 0.0)


def direction_ball(sizes: Array, gap: float, scale: float) -> DirectionBall:
    """The ball of (*).

    Parameters
    ----------
    sizes : array
        ``||r_t||`` of any W.
    gap : float
        At least ``P(W) - P*``.
    scale : float
        ``sum_t ||y_t||``, the objective at W = 0: for the rounding of the gap.
    """
    gap = max(gap, _FLOOR * scale)
    bounded = 2.0 * gap < sizes
    inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=bounded)
    radius = float(np.sqrt(2.0 * gap))
    # Unbounded tasks take no part in the ellipsoid: their half-axis is nothing beside the others'.
    least = np.sqrt(inverse[bounded].min()) if bounded.any() else 1.0
    stretch = np.where(bounded, np.sqrt(inverse), 1e-6 * least)
    return DirectionBall(inverse, np.where(bounded, 0.0, 1.0), stretch, radius)


def zero_rows(
    correlations: Array, norms: Array, strengths: Array, ball: DirectionBall, *, positive: bool = False
) -> Array:
    """Rows that are certainly zero, from correlations of the ball's centre with all features, in plain NumPy.

    The largest norm over the ellipsoid is bounded by that of the centre plus the longest half-axis; the path uses the
    exact maximum (`certificate.AnchoredCorrelations.ratios`).

    Parameters
    ----------
    correlations, norms : arrays of shape (n_features, n_tasks)
    strengths : array
        ``lam_j``.
    """
    centre = np.maximum(correlations, 0.0) if positive else correlations
    reach = ball.radius * np.max(norms * np.where(ball.bounded, ball.stretch, 0.0), axis=1)
    reach = reach + np.linalg.norm(norms * ball.slack, axis=1)
    return np.asarray((np.linalg.norm(centre, axis=1) + reach) * (1.0 + 1e-9) < strengths)
