"""The Group OWL problem on some columns, as its solvers see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..losses import Evaluation, Loss
from ..sorted_norm import SortedPenalty
from .working import duality_gap

Array = np.ndarray[Any, Any]

#: ``shrink(rows, evaluation, products, gap, scale, least)``: which rows a safe test drops for good; none if they are
#: less than this share of the rows
Shrink = Callable[[Array, Evaluation, Array, float, float, float], Array]


@dataclass
class SortedWorking:
    """Columns (packed or sparse), where the rows of W lie in them, the first weights of the norm, the loss."""

    columns: Any
    places: Array
    penalty: SortedPenalty
    loss: Loss

    def image(self, rows: Array) -> Array:
        """``X~ W`` as a flat vector."""
        live = np.flatnonzero(rows.any(axis=1))
        return np.asarray(self.columns.combine(self.places[live], rows[live]))

    def correlate(self, residual: Array) -> Array:
        return np.asarray(self.columns.correlate(residual, self.places))

    def keep(self, mask: Array) -> SortedWorking:
        places = self.places[mask]
        return SortedWorking(self.columns, places, self.penalty.head(len(places)), self.loss)

    def gap(self, rows: Array, at: Evaluation, products: Array) -> tuple[float, float]:
        """Duality gap of this restricted problem, and the scale of its dual point."""
        penalty: Any = self.penalty
        return duality_gap(self.loss, penalty, rows, at, products, self.penalty.gauges)

    def curvature(self, iterations: int = 5) -> float:
        """``max_t sigma_max(X_t)^2``, nearly: a few power iterations and a margin; solvers notice if it is low."""
        if not len(self.places):
            return 1.0
        tasks = self.columns.n_tasks
        # a fixed irregular start: nothing depends on chance, and no symmetry hides the largest direction
        rows = 1.0 + 0.1 * np.cos(np.arange(1.0, len(self.places) * tasks + 1.0)).reshape(-1, tasks)
        largest = 0.0
        for _ in range(iterations):
            rows = rows / np.maximum(np.sqrt(np.einsum("jt,jt->t", rows, rows)), 1e-300)
            rows = self.correlate(self.columns.combine(self.places, rows))
            largest = float(np.sqrt(np.max(np.einsum("jt,jt->t", rows, rows))))
        return 1.1 * largest if largest > 0.0 else 1.0


@dataclass
class SortedSolution:
    """Rows of W, those whose residual is the best dual point seen, and how the solver got there.

    `history` holds what is drawn along the way: (iteration, rows left, gap) at every check.
    """

    rows: Array
    dual_rows: Array
    n_iter: int
    gap: float
    history: list[tuple[int, int, float]]


class BestDual:
    """The largest dual value seen, and the rows that gave it."""

    def __init__(self) -> None:
        self.value = -np.inf
        self.rows: Array | None = None

    def update(self, objective: float, gap: float, rows: Array) -> float:
        """Takes a pair in; returns the gap between `objective` and the best dual value."""
        if objective - gap > self.value:
            self.value, self.rows = objective - gap, rows.copy()
            return gap
        return objective - self.value
