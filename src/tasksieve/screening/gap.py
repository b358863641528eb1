"""The gap-safe sphere: the dual optimum lies within sqrt(2 L gap) of any feasible dual point.

The loss has an L-Lipschitz derivative, so the dual objective is 1/L-strongly concave, and

    1/(2L) ‖u - u*‖² <= D(u*) - D(u) <= P(W) - D(u) = gap            (Ndiaye, Fercoq, Gramfort and Salmon 2017).

The ridge's own block of the dual point has L = 1; the norms of `DualState.effective_norms` take both into account, and
the radius below is sqrt(2 gap) in that metric.

The same inequality at W, with r minus the gradient there, is 1/(2L) ‖r - u*‖² <= P(W) - P*. Both added, with u = c r:

    ‖u* - (1 + c)/2 r‖² <= L gap - (1 - c)²/4 ‖r‖²,

the midpoint ball: it lies in the sphere, and its radius is at most 1/sqrt(2) of the sphere's.
"""

from __future__ import annotations

import numpy as np

from ..docstrings import described_by
from .state import STRENGTH, Ball, DualState

# A computed gap of 0 is not a proof of exactness: it is never taken below this part of 1/2 ‖y‖².
_FLOOR = 1e-14


@described_by(STRENGTH, returns="Ball")
def gap_sphere(state: DualState, lam: float) -> Ball:
    """The sphere around the scaled residual at strength lam.

    Parameters
    ----------
    state : DualState
        For the squared loss the gap is computed unless given. For other losses `gap` and `dual_scale` must be
        given for the strength `lam`.
    """
    gap, scale = _gap_and_scale(state, lam)
    return Ball(float(np.sqrt(2.0 * gap)), residual_coef=scale)


@described_by(STRENGTH, returns="Ball")
def midpoint_ball(state: DualState, lam: float) -> Ball:
    """The midpoint ball at strength lam, from a residual that is minus the gradient at W.

    Parameters
    ----------
    state : DualState
        As for `gap_sphere`.
    """
    gap, scale = _gap_and_scale(state, lam)
    residual = float(state.residual @ state.residual) / state.smoothness
    short = 0.25 * (1.0 - scale) ** 2 * (residual + state.ridge(lam) * state.coefficient_square)
    radius = np.sqrt(max(gap - short * (1.0 - _FLOOR * len(state.residual)), _FLOOR * gap))
    return Ball(float(radius), residual_coef=0.5 * (1.0 + scale))


def _gap_and_scale(state: DualState, lam: float) -> tuple[float, float]:
    """The gap at a strength, never less than rounding, and the scale of its dual point."""
    least = _FLOOR * 0.5 * state.y_square
    if state.gap is not None and state.dual_scale is not None:
        known_at = state.lam if state.gap_lam is None else state.gap_lam
        if known_at == lam:
            return max(state.gap, least), state.dual_scale
    if not state.squared:
        raise ValueError(
            f"the gap and dual scale at lam = {lam:g} are needed: this loss does not allow them to be inferred; "
            "use dataclasses.replace(state, gap=..., dual_scale=..., gap_lam=lam)"
        )
    gap, scale = squared_gap(state, lam)
    return max(gap, least), scale


def squared_gap(state: DualState, lam: float) -> tuple[float, float]:
    """Duality gap of W and the best multiple c of its residual u, for the squared loss, at strength lam.

    gap = 1/2 ‖y - XW - c u‖² + Omega(W) - c <u, XW>, a sum of two non-negative terms, ridge parts included.

    Returns
    -------
    gap, scale : float
    """
    scale = state.feasible_scale(lam)
    if not state.features.size:  # u may be any vector here
        difference = state.y - scale * state.residual
        return 0.5 * float(difference @ difference), scale
    omega = state.penalty(state.features, state.coefficients, lam)
    along = float((state.y - state.residual) @ state.residual) - state.ridge(lam) * state.coefficient_square
    gap = 0.5 * (1.0 - scale) ** 2 * state.residual_square(lam) + max(omega - scale * along, 0.0)
    return gap, scale

