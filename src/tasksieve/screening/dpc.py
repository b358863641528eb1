"""Balls that hold the dual optimum of a least-squares problem, cut by a half-space (DPC, Wang & Ye 2015).

The dual optimum u* at strength lam is the projection of y on the dual set F. Two facts need no optimality at all:

    (a) u0 in F    =>  <y - u*, u0 - u*> <= 0;
    (b) any W      =>  <XW, u> <= Omega(W) for every u in F        (Omega: the penalty at strength lam, a norm).

Put a = XW, r = y - u0, eps = Omega(W) - <a, u0> >= 0. Adding s >= 0 times (b) to (a) gives, for every s,

    ‖u* - (u0 + y - s a)/2‖² <= 1/4 ‖r - s a‖² + s eps,     best for s = (<r, a> - 2 eps)_+/‖a‖².

With the exact solution at another strength eps = 0, and this is the ball of Wang & Ye's Theorem 5. Their ball fed with
an approximate solution is not safe (`published_ball`: for study); `rigorous_ball` is, for any W and any residual.

The image a is y - residual, so that the centre is a combination of y and the residual: no pass over the data.

A loss that clips its slopes is the squared loss with one more block of unknowns, an outlier q_i in each row at the cost
max(low_i q_i, high_i q_i) (`losses.clipped`): then a = XW + q is y - residual again, and that cost is part of Omega.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..docstrings import described_by
from .state import STRENGTH, Ball, DualState

Array = NDArray[np.float64]

# Rounding of inner products between vectors of sample space, relative to their norms; and that of the squared radius.
_ROUNDING = 1e-14
_RADIUS_ROUNDING = 4e-15
_UNIT = 1.01 * 2.0**-53


@described_by(STRENGTH, returns="Ball")
def rigorous_ball(state: DualState, lam: float) -> Ball:
    """The cut ball at strength lam, from any residual, any W and any norm penalty.

    The residual is scaled into the dual set of the new strength first, by its own polar; so the ridge may be another
    one than the residual was made for.

    Parameters
    ----------
    state : DualState
        Squared loss, with or without outliers. The cut is `state`'s W, or `state.cut` where W = 0.
    """
    scale = state.feasible_scale(lam)
    y_norm = math.sqrt(state.y_square)
    own = state.features.size > 0 or state.outliers is not None
    if own:
        # All inner products follow from those of the image and the residual: r = image + short * residual.
        image, short = state.y - state.residual, 1.0 - scale
        image_square, along = float(image @ image), float(image @ state.residual)
        residual_square = float(state.residual @ state.residual)
        ridge_square = state.quadratic(state.coefficients, lam)
        omega = state.penalty(state.features, state.coefficients, lam)
        if state.outliers is not None:
            omega += state.outliers[0] + state.outliers[1] * y_norm
        r_square = image_square + short * (2.0 * along + short * residual_square)
        r_along = image_square + short * along
        # y - residual carries the rounding of y, not of the (perhaps far smaller) image
        image_rounding = y_norm
        r_ridge = scale
    else:
        r = state.y - scale * state.residual
        r_square = float(r @ r)
        if state.cut is None or not state.cut.features.size:
            return Ball(math.sqrt((0.25 + _RADIUS_ROUNDING) * r_square), y_coef=0.5, residual_coef=0.5 * scale)
        image = state.cut.image
        image_square, along = float(image @ image), float(image @ state.residual)
        ridge_square = state.quadratic(state.cut.rows, lam)
        omega = state.penalty(state.cut.features, state.cut.rows, lam)
        r_along = float(r @ image)
        image_rounding = math.sqrt(image_square)
        r_ridge = 0.0

    # The ridge's blocks of r and a are r_ridge sqrt(ridge) W and sqrt(ridge) W; a graph of tasks has blocks like them.
    a_square = image_square + ridge_square
    eps = max(omega - scale * (along - ridge_square if own else along), 0.0)
    # ‖u*‖ <= ‖y‖, since F holds 0: an error e of the image costs at most ‖e‖ ‖y‖ in (b)
    eps += _ROUNDING * (omega + image_rounding * y_norm)
    gain = r_along + r_ridge * ridge_square - 2.0 * eps
    s = gain / a_square if gain > 0.0 and a_square > 0.0 else 0.0
    if own:  # ‖(1 - s) image + short * residual‖², and what the sums of its terms may be off
        left = 1.0 - s
        square = left * (left * image_square + 2.0 * short * along) + short * short * residual_square
        size = abs(left) * math.sqrt(image_square) + abs(short) * math.sqrt(residual_square)
        square = max(square, 0.0) + (len(image) + 8) * _UNIT * size * size
    else:
        difference = r - s * image
        square = float(difference @ difference)
    square = 0.25 * (square + (r_ridge - s) ** 2 * ridge_square)
    if s > 0.0:
        square += s * eps
    radius = math.sqrt(square + _RADIUS_ROUNDING * (r_square + r_ridge**2 * ridge_square))
    if own:
        return Ball(radius, y_coef=0.5 * (1.0 - s), residual_coef=0.5 * (scale + s))
    return Ball(radius, y_coef=0.5, residual_coef=0.5 * scale, cut_coef=-0.5 * s)


@described_by(STRENGTH, returns="Ball")
def published_ball(state: DualState, lam: float) -> Ball:
    """The ball of Wang & Ye's Theorem 5, which takes the residual for the exact one at `state.lam`.

    With theta0 = residual/lam0, n = y/lam0 - theta0 (at W = 0: the gradient of the active constraint, which is the
    direction of `state.cut`), r = y/lam - theta0 and r_perp = r - <n, r>/‖n‖² n, the ball has the centre
    theta0 + r_perp/2 and the radius ‖r_perp‖/2; here all of it is multiplied by lam. Not safe: an approximate
    residual lies outside the dual set and its n outside the normal cone.

    Parameters
    ----------
    state : DualState
        Squared loss, group penalty only.
    """
    scale = lam / state.lam
    r = state.y - scale * state.residual
    cut = None if state.features.size else state.cut
    image = state.y - state.residual if cut is None else cut.image
    a_square = float(image @ image)
    s = float(r @ image) / a_square if a_square > 0.0 else 0.0
    radius = 0.5 * float(np.linalg.norm(r - s * image))
    if cut is not None:
        return Ball(radius, y_coef=0.5, residual_coef=0.5 * scale, cut_coef=-0.5 * s)
    return Ball(radius, y_coef=0.5 * (1.0 - s), residual_coef=0.5 * (scale + s))
