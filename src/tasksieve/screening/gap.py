"""The gap-safe sphere: the dual optimum lies within sqrt(2 L gap) of any feasible dual point.

The loss has an L-Lipschitz derivative, so the dual objective is 1/L-strongly concave, and

    1/(2L) ‖u - u*‖² <= D(u*) - D(u) <= P(W) - D(u) = gap            (Ndiaye, Fercoq, Gramfort and Salmon 2017).

The ridge's own block of the dual point has L = 1; the norms of `DualState.effective_norms` take both into account, and
the radius below is sqrt(2 gap) in that metric.
"""

from __future__ import annotations

import numpy as np

from .state import Ball, DualState

# A computed gap of 0 is not a proof of exactness: it is never taken below this part of 1/2 ‖y‖².
_FLOOR = 1e-14


def gap_sphere(state: DualState, lam: float) -> Ball:
    """The sphere around the scaled residual at strength lam.

    Parameters
    ----------
    state : DualState
        For the squared loss the gap is computed unless given. For other losses `gap` and `dual_scale` must be
        given for the strength `lam`.
    lam : float
        Strength of the problem to be screened.

    Returns
    -------
    Ball
    """
    if state.gap is not None and state.dual_scale is not None:
        known_at = state.lam if state.gap_lam is None else state.gap_lam
        if known_at == lam:
            return _sphere(state, state.gap, state.dual_scale)
    if not state.squared:
        raise ValueError(
            f"the gap and dual scale at lam = {lam:g} are needed: this loss does not allow them to be inferred; "
            "use dataclasses.replace(state, gap=..., dual_scale=..., gap_lam=lam)"
        )
    return _sphere(state, *squared_gap(state, lam))


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


def _sphere(state: DualState, gap: float, scale: float) -> Ball:
    gap = max(gap, _FLOOR * 0.5 * state.y_square)
    return Ball(float(np.sqrt(2.0 * gap)), residual_coef=scale)
