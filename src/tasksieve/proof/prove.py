"""What can be proved about any model on given data: its duality gap, and which coefficients are zero at the optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design import PackedColumns
from ..path.problem import Problem
from ..screening import DualState, gap_sphere, zero_entries
from ..solvers.working import duality_gap

# Rows tested at a time, so that temporary arrays stay small beside the data.
BLOCK = 4096


@dataclass
class Proof:
    """In sum units: the objective at the model (and with the best intercepts for its coefficients), its gap, rows and
    entries that are zero in every solution."""

    objective: float
    best_objective: float
    dual_gap: float
    zero_rows: np.ndarray
    zero_entries: np.ndarray


def prove(problem: Problem, lam: float, coef: np.ndarray, intercept: np.ndarray) -> Proof:
    """The duality gap of any coefficients (tasks x features) and intercepts, and the gap-safe tests at them.

    The dual point is the residual at the best intercepts, scaled into the dual set over all features; what the
    intercepts fall short of the best ones is part of the gap. Columns must not be scaled (``standardize``).
    """
    design, loss, shape = problem.design, problem.loss, problem.shape
    penalty = shape.at(lam)
    features = np.setdiff1d(np.flatnonzero(coef.any(axis=0)), design.unpenalised)
    rows = np.ascontiguousarray(coef[:, features].T)
    packed = PackedColumns(design)
    places = packed.places(features)
    at = loss.evaluate(packed.combine(places, rows))
    products = design.correlate(at.residual)
    products[design.unpenalised] = 0.0
    own = penalty.restrict(features)
    gauges = penalty.gauges(products)
    gauges[features] = 0.0
    others = float(np.max(gauges, initial=0.0))
    gap, scale = duality_gap(loss, own, rows, at, products[features], own.gauges, others)
    best = at.value + own.value(rows)
    # the loss at the intercepts (and unpenalised coefficients) that the model has
    shift = design.per_sample(intercept)
    for k, j in enumerate(design.unpenalised.tolist()):
        shift = shift + design.nuisance_columns()[k + int(design.fit_intercept)] * design.per_sample(
            coef[:, j]
        )
    raw = raw_image(design, packed, places, rows) + shift
    weights = np.ones(design.n_samples) if design.weights is None else design.weights
    if problem.squared:
        value = 0.5 * float(weights @ (raw - problem.y) ** 2)
    else:
        value = float(weights @ np.logaddexp(0.0, -problem.y * raw))
    objective = value + own.value(rows)
    gap = max(gap, 1e-14 * loss.null.value)

    state = DualState(
        y=loss.null.residual,
        residual=at.residual,
        correlations=products,
        norms=design.norms(),
        lam=lam,
        features=features,
        rows=rows,
        feature_weights=shape.weights,
        l1=shape.l1,
        group=shape.group,
        positive=shape.positive,
        ridge_ratio=shape.ridge_ratio,
        squared=problem.squared,
        smoothness=loss.smoothness,
        rounding=design.rounding,
        gap=gap,
        dual_scale=scale,
        gap_lam=lam,
    )
    ball = gap_sphere(state, lam)
    zero = ball.rejects(state, lam)
    zero[design.unpenalised] = False
    entries = np.repeat(zero[:, None], design.n_tasks, axis=1)
    if shape.has_l1:
        errors = ball.errors(state, lam)
        for start in range(0, len(zero), BLOCK):
            block = slice(start, start + BLOCK)
            entries[block] |= zero_entries(
                ball.correlations(state, lam, block),
                state.effective_norms(lam, block),
                ball.radius,
                penalty.l1[block],
                shape.positive,
                errors[block],
            )
        zero |= entries.all(axis=1)
    return Proof(objective, min(best, objective), gap + max(objective - best, 0.0), zero, entries.T)


def raw_image(design: Any, packed: PackedColumns, places: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """X W in the units of the data: the packed columns are weighted and freed of their nuisance part."""
    image = packed.combine(places, rows)
    if design.root_weights is not None:
        image = np.divide(image, design.root_weights, out=np.zeros_like(image), where=design.root_weights > 0)
    loadings = packed.loadings(places)
    for column, loading in zip(design.nuisance_columns(), loadings, strict=True):
        image = image + column * design.per_sample(np.einsum("jt,jt->t", loading, rows))
    return image
