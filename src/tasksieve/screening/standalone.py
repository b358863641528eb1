"""Screening on its own: a design, the targets and any dual candidate in, a mask of useless features out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .polar import polar, steepest_row
from .rules import DPC, GapSafe, Midpoint, PublishedDPC, Rule, get_rule
from .state import Cut, DualState

Array = NDArray[np.float64]


def screen(
    design: Any,
    y: ArrayLike,
    dual_point: ArrayLike,
    lam: float,
    *,
    coef: ArrayLike | None = None,
    feature_weights: ArrayLike | None = None,
    rule: str | Rule | None = "auto",
) -> NDArray[np.bool_]:
    """Features that cannot matter: their rows are zero in every solution of

        min_W 1/2 sum_t ‖y_t - X_t w_t‖² + lam sum_j feature_weights_j ‖W_j‖₂.

    Nothing has to be optimal or feasible. The better the dual candidate (the residual of a good W, at this `lam` or at
    one nearby), the more is rejected. Costs two or three passes over the data.

    Parameters
    ----------
    design : Design
        One matrix per task, or one for all; see `tasksieve.design.Design`.
    y : array of shape (N,)
        Targets, flat, task after task; multiplied by the square roots of the weights if the design is weighted.
    dual_point : array of shape (N,)
        Any vector, in the same place; it is scaled into the dual set here. Usually a residual y - XW; y itself will do.
    lam : float
        Strength of the penalty in the units above: alpha times the mean number of rows per task.
    coef : array of shape (d, T), optional
        Any coefficients W, best those of `dual_point`. By default the one row that pulls hardest on the dual point.
    feature_weights : array of shape (d,), optional
        Weights of the features in the penalty, 1 by default. A weight of 0 needs a design that was made so
        (``unpenalised``); such features are never rejected.
    rule : {"auto", "dpc", "gap", "dpc-published", None} or Rule
        "auto" and "dpc": the rigorous cut ball. "dpc-published" takes the dual point for an exact solution and is
        not safe.

    Returns
    -------
    boolean array of shape (d,)
        True where the feature cannot matter.

    Examples
    --------
    >>> import numpy as np
    >>> from tasksieve.design import Design, as_storage
    >>> from tasksieve.screening import screen
    >>> rng = np.random.default_rng(0)
    >>> X, offsets = rng.standard_normal((60, 1000)), np.array([0, 20, 40, 60])
    >>> y = X[:, :5].sum(axis=1)  # three tasks of 20 rows; the first five of 1000 features matter
    >>> design = Design(as_storage(X), offsets, fit_intercept=False)
    >>> lam_max = np.linalg.norm(design.correlate(y), axis=1).max()
    >>> useless = screen(design, y, y, 0.6 * lam_max)  # nothing solved yet: y is the residual of W = 0
    >>> int(useless.sum()), useless[:5]
    (815, array([False, False, False, False, False]))
    >>> int(screen(design, y, y, 0.6 * lam_max, rule="gap").sum())
    6
    """
    y, v = _flat(design, y, "y"), _flat(design, dual_point, "dual_point")
    if not lam > 0.0:
        raise ValueError(f"lam must be positive; got {lam!r}")
    v_correlations = design.correlate(v)
    y_correlations = v_correlations if np.array_equal(v, y) else design.correlate(y)
    state = DualState(y, v, v_correlations, design.norms(), float(lam), y_correlations, rounding=design.rounding)
    if feature_weights is not None:
        state = replace(state, feature_weights=_checked_weights(design, feature_weights))
    chosen = get_rule(rule)
    if isinstance(chosen, Midpoint):
        raise ValueError("rule='midpoint' needs the residual of a W: here, where any vector will do, use 'dpc'.")
    if isinstance(chosen, GapSafe):
        state = _with_gap(design, state, coef)
    elif isinstance(chosen, PublishedDPC):
        # the strength at which the dual point would be optimal; its own image is the cut
        lam0 = polar(v_correlations, *state.strengths(1.0))
        if lam0 == 0.0:
            return np.zeros(design.n_features, dtype=bool)
        state = replace(state, lam=lam0)
        if np.linalg.norm(y - v) <= 1e-9 * np.linalg.norm(y):
            state = replace(state, cut=_cut(design, state, None))
    elif isinstance(chosen, DPC):
        state = replace(state, cut=_cut(design, state, coef))
    return chosen.sequential(state, float(lam))


def _flat(design: Any, vector: ArrayLike, name: str) -> Array:
    vector = np.ascontiguousarray(vector, dtype=np.float64)
    if vector.shape != (design.n_samples,):
        raise ValueError(
            f"{name} must be flat with the design's {design.n_samples} samples; got shape {vector.shape}"
        )
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} has NaN or infinite entries")
    return np.asarray(design.project(vector))


def _checked_weights(design: Any, weights: ArrayLike) -> Array:
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (design.n_features,):
        raise ValueError(
            f"feature_weights must have one entry per feature ({design.n_features}); got shape {weights.shape}"
        )
    if not np.isfinite(weights).all() or (weights < 0.0).any():
        raise ValueError("feature_weights must be finite and not negative")
    free = np.setdiff1d(np.flatnonzero(weights == 0.0), design.unpenalised)
    if free.size:
        raise ValueError(f"feature {free[0]} has weight 0: name it in the design's `unpenalised` as well")
    return weights


def _primal(design: Any, state: DualState, coef: ArrayLike | None) -> tuple[NDArray[np.intp], Array, Array]:
    """Non-zero penalised rows of the coefficients, and their image XW."""
    shape = state.norms.shape
    full = np.zeros(shape) if coef is None else np.asarray(coef, dtype=np.float64)
    if full.shape != shape:
        raise ValueError(f"coef must have shape {shape}, a row per feature; got {full.shape}")
    used = full.any(axis=1)
    if state.feature_weights is not None:
        used &= state.feature_weights > 0.0
    features = np.flatnonzero(used)
    return features, full[features], _image(design, features, full[features])


def _image(design: Any, features: NDArray[np.intp], rows: Array) -> Array:
    """XW as a flat vector."""
    columns = design.take(features).columns
    if len(columns) != design.n_samples:  # one matrix for all tasks
        return np.asarray((columns @ rows).ravel(order="F"))
    tasks = zip(design.offsets[:-1], design.offsets[1:], rows.T, strict=True)
    return np.concatenate([columns[start:stop] @ w for start, stop, w in tasks])


def _cut(design: Any, state: DualState, coef: ArrayLike | None) -> Cut:
    features, rows, image = _primal(design, state, coef)
    if features.size == 0:
        sign = np.copysign(1.0, state.y @ state.residual)
        features, rows = steepest_row(sign * state.correlations, *state.strengths(1.0))
        image = _image(design, features, rows)
    return Cut(features, rows, image, design.correlate(image))


def _with_gap(design: Any, state: DualState, coef: ArrayLike | None) -> DualState:
    """gap = 1/2 ‖y - XW - u‖² + Omega(W) - <u, XW>, for any W and any feasible u."""
    features, rows, image = _primal(design, state, coef)
    scale = state.feasible_scale(state.lam)
    u = scale * state.residual
    difference = state.y - image - u
    linear = state.penalty(features, rows, state.lam) - float(u @ image)
    return replace(state, gap=0.5 * float(difference @ difference) + max(linear, 0.0), dual_scale=scale)
