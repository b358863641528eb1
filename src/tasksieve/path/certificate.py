"""What is certified are the numbers that a model stores: one function computes their objective, for every model.

The engine certifies a pair in the geometry of its design: weighted, centred, scaled columns. What a user holds are
coefficients of raw columns and intercepts. The loss is evaluated once more at the predictions of these, and what they
fall short of the pair's own value belongs to the gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import Design
from .problem import Problem

Array = np.ndarray[Any, Any]


def stored_objective(
    problem: Problem,
    columns: Any,
    lam: float,
    features: Array,
    rows: Array,
    intercept: Array,
    unpenalised: Array,
) -> float:
    """The objective in sum units of coefficients and intercepts as they are stored.

    Parameters
    ----------
    columns : PackedColumns or SparseColumns
    features, rows : arrays
        Penalised features and their coefficients, in the units of the (scaled) columns.
    intercept : array of shape (n_tasks,)
    unpenalised : array of shape (number of unpenalised features, n_tasks)
        Coefficients of the design's unpenalised features.
    """
    scores = stored_scores(problem.design, columns, features, rows, intercept, unpenalised)
    return problem.loss.value_at(scores) + problem.penalty.at(lam).restrict(features).total(rows)


def stored_scores(
    design: Design, columns: Any, features: Array, rows: Array, intercept: Array, unpenalised: Array
) -> Array:
    """``x . w_t + b_t`` in the units of y, flat: packed columns are weighted and freed of their nuisance part."""
    places = columns.places(features)
    scores = columns.combine(places, rows)
    root = design.root_weights
    if root is not None:
        scores = np.divide(scores, root, out=np.zeros_like(scores), where=root > 0)
    raw = design.original_units(features, rows)
    own = [intercept] * int(design.fit_intercept) + list(unpenalised)
    for column, loading, coefficient in zip(
        design.nuisance_columns(), columns.loadings(places), own, strict=True
    ):
        scores = scores + column * design.per_sample(coefficient + np.einsum("jt,jt->t", loading, raw))
    if not design.fit_intercept and intercept.any():
        scores = scores + design.per_sample(intercept)
    return np.asarray(scores)
