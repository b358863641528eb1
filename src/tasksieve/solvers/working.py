"""What a solver is given, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design import PackedColumns
from ..losses import Evaluation, Loss
from ..penalties import RowPenalty

Array = np.ndarray[Any, Any]


@dataclass
class WorkingProblem:
    """The problem on a few packed columns.

    Attributes
    ----------
    packed : PackedColumns
    places : array of int
        The columns of `packed` that take part.
    penalty : RowPenalty
        One entry for each of them.
    loss : Loss
    zero : boolean array, a row for each of them and a column for each task, optional
        Coefficients that are known to be zero: a solver may leave them out.
    """

    packed: PackedColumns
    places: Array
    penalty: RowPenalty
    loss: Loss
    zero: Array | None = None

    def evaluate(self, rows: Array, nuisance: Array | None = None) -> Evaluation:
        """The loss at ``X~ W``."""
        live = np.flatnonzero(rows.any(axis=1))
        z = self.packed.combine(self.places[live], rows[live])
        return self.loss.evaluate(z, nuisance)

    def gap(self, rows: Array, at: Evaluation, products: Array) -> float:
        """Duality gap of this restricted problem at W, given the correlations of its residual."""
        gap, _ = duality_gap(self.loss, self.penalty, rows, at, products, self.penalty.gauges)
        return gap


@dataclass
class Solution:
    """Rows of W for the working columns, and how the solver got there."""

    rows: Array
    n_iter: int
    gap: float
    evaluation: Evaluation | None = None
    products: Array | None = None  # correlations of the evaluation's residual with the working columns


def duality_gap(
    loss: Loss,
    penalty: RowPenalty,
    rows: Array,
    at: Evaluation,
    products: Array,
    gauges: Any,
    others: float = 0.0,
) -> tuple[float, float]:
    """Duality gap at W with the best multiple of its residual as the dual point.

    The ridge is one more block of squared loss with residual ``-sqrt(ridge) W``: scaled with the rest, it subtracts
    ``ridge W`` from the correlations and adds its own non-negative term (mathematics, sections 2.2 and 4).

    Parameters
    ----------
    products : array
        Correlations of the residual with the rows' features.
    gauges : callable
        Dual gauges of such correlations.
    others : float
        Largest gauge among features that are not in `rows`.

    Returns
    -------
    gap, scale
    """
    ridge = penalty.ridge
    augmented = products - ridge * rows if ridge else products
    weight_squares = float(np.vdot(rows, rows)) if ridge else 0.0
    inner = float(np.vdot(augmented, rows))
    polar = max(float(np.max(gauges(augmented), initial=0.0)), others)
    # Shrunk by more than rounding can have added to the gauges: the scaled point is feasible.
    limit = 1.0 / (polar * (1.0 + 1e-12)) if polar > 0.0 else np.inf
    if ridge:
        limit = min(limit, 1.0)
    scale = loss.best_scale(at, inner, limit)
    ridge_term = 0.5 * ridge * (1.0 - scale) ** 2 * weight_squares
    gap = loss.gap_terms(at, scale) + ridge_term + max(penalty.norm(rows) - scale * inner, 0.0)
    return gap, scale
