"""What can be proved about any model on given data: its duality gap, and which coefficients are zero at the optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design import Design, PackedColumns
from ..path.pair import Point, point_gap
from ..path.problem import Problem

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
    """The duality gap of any coefficients (tasks x features) and intercepts, and the safe tests at them.

    The dual point is the residual at the best intercepts, scaled into the dual set over all features; what the
    intercepts fall short of the best ones is part of the gap. Any loss and any penalty. Columns must not be scaled
    (``standardize``).
    """
    design, loss = problem.design, problem.loss
    penalty = problem.penalty.at(lam)
    features = np.setdiff1d(np.flatnonzero(coef.any(axis=0)), design.unpenalised)
    rows = np.ascontiguousarray(coef[:, features].T)
    packed = PackedColumns(design)
    places = packed.places(features)
    at = loss.evaluate(packed.combine(places, rows))
    products = design.correlate(at.residual)
    products[design.unpenalised] = 0.0
    point = Point(features, rows, at, products[features])
    gap, scale = point_gap(loss, penalty, point, penalty.row_gauges(products))
    own = penalty.restrict(features)
    best = at.value + own.total(rows)
    objective = loss.value_at(raw_scores(design, packed, places, rows, coef, intercept)) + own.total(rows)
    ball = loss.ball(at, scale, gap)
    zero = np.zeros((design.n_features, design.n_tasks), dtype=bool)
    if ball is not None:
        if ball.vector is not None:
            centre, size = design.correlate(ball.vector), float(np.linalg.norm(ball.vector))
        else:
            centre, size = ball.residual_coef * products, abs(ball.residual_coef) * float(np.linalg.norm(at.residual))
        upper = np.empty(design.n_features)
        for start in range(0, design.n_features, BLOCK):
            block = np.arange(start, min(start + BLOCK, design.n_features))
            norms, part = design.norms(block), penalty.restrict(block)
            errors = design.rounding * size * norms
            if ball.slack is not None:
                errors = errors + norms * ball.slack
            stretched = norms if ball.stretch is None else norms * ball.stretch
            upper[block] = part.row_reach(centre[block], errors, stretched, ball.radius)
            entries = part.zero_entries(centre[block], errors.max(axis=1), stretched, ball.radius)
            if entries is not None:
                zero[block] = entries
        zero[penalty.inactive(upper)] = True
        zero[design.unpenalised] = False
    gap = loss.floored(gap) + max(objective - best, 0.0)
    return Proof(objective, min(best, objective), gap, np.asarray(zero.all(axis=1)), zero.T)


def raw_scores(
    design: Design,
    packed: PackedColumns,
    places: np.ndarray,
    rows: np.ndarray,
    coef: np.ndarray,
    intercept: np.ndarray,
) -> np.ndarray:
    """``x . w_t + b_t`` in the units of the data, flat, unpenalised features included."""
    scores = raw_image(design, packed, places, rows) + design.per_sample(intercept)
    columns = design.nuisance_columns()[int(design.fit_intercept) :]
    for column, j in zip(columns, design.unpenalised.tolist(), strict=True):
        scores = scores + column * design.per_sample(coef[:, j])
    return scores


def raw_image(design: Any, packed: PackedColumns, places: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """X W in the units of the data: the packed columns are weighted and freed of their nuisance part."""
    image = packed.combine(places, rows)
    if design.root_weights is not None:
        image = np.divide(image, design.root_weights, out=np.zeros_like(image), where=design.root_weights > 0)
    loadings = packed.loadings(places)
    for column, loading in zip(design.nuisance_columns(), loadings, strict=True):
        image = image + column * design.per_sample(np.einsum("jt,jt->t", loading, rows))
    return image
