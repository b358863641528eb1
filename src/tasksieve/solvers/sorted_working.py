"""The Group OWL problem on some columns, as its solvers see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design import ColumnBlock, PackedColumns, SparseColumns
from ..losses import Evaluation, Loss
from ..penalties.sorted import SortedPenalty
from .working import duality_gap

Array = np.ndarray[Any, Any]

_FEW_COLUMNS = 32  # so few sparse columns take less time, and no room to speak of, as dense ones

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

    def packed(self) -> SortedWorking:
        """The same, with sparse columns made dense where only a few are left: their products are then BLAS's."""
        if not isinstance(self.columns, SparseColumns) or not 0 < len(self.places) <= _FEW_COLUMNS:
            return self
        columns = PackedColumns(self.columns.design)
        return SortedWorking(columns, columns.places(self.places), self.penalty, self.loss)

    def gap(self, rows: Array, at: Evaluation, products: Array) -> tuple[float, float]:
        """Duality gap of this restricted problem, and the scale of its dual point."""
        penalty: Any = self.penalty
        return duality_gap(self.loss, penalty, rows, at, products, self.penalty.gauges)

    def curvature(self, iterations: int = 5) -> float:
        """``max_t sigma_max(X_t)^2``, nearly: a few power iterations and a margin; solvers notice if it is low."""
        if not len(self.places):
            return 1.0
        multiply, correlate, width = self._one_task() or (self.columns.combine, self.columns.correlate, None)
        tasks = self.columns.n_tasks if width is None else width
        # a fixed irregular start: nothing depends on chance, and no symmetry hides the largest direction
        rows = 1.0 + 0.1 * np.cos(np.arange(1.0, len(self.places) * tasks + 1.0)).reshape(-1, tasks)
        largest = 0.0
        for _ in range(iterations):
            rows = rows / np.maximum(np.sqrt(np.einsum("jt,jt->t", rows, rows)), 1e-300)
            rows = correlate(multiply(self.places, rows), self.places)
            largest = float(np.sqrt(np.max(np.einsum("jt,jt->t", rows, rows))))
        return 1.1 * largest if largest > 0.0 else 1.0

    def _one_task(
        self,
    ) -> tuple[Callable[[Array, Array], Array], Callable[[Array, Array], Array], int] | None:
        """Both products for the first task alone, where it stands for all (one matrix, the same weights)."""
        columns, design = self.columns, self.columns.design
        if self.columns.n_tasks == 1 or not design.uniform:
            return None
        n = design.storage.n_rows
        if isinstance(columns, PackedColumns):
            block = ColumnBlock(columns.x, np.array([0, n]), False, columns.n_threads)
            return block.combine, block.correlate, 1
        # Sparse columns: raw products, with the weights, the centring and the scale applied to the vectors.
        x = columns.block(self.places)
        root = 1.0 if design.root_weights is None else design.root_weights[:n]
        basis = design.nuisance_basis[:, :n]
        factor = design.original_units(self.places, np.ones((len(self.places), columns.n_tasks)))[:, :1]

        def multiply(_: Array, rows: Array) -> Array:
            flat = root * (x @ (factor * rows)).ravel()
            return np.asarray(flat - (flat @ basis.T) @ basis)

        def correlate(r: Array, _: Array) -> Array:
            return np.asarray(factor * (x.T @ (root * (r - (r @ basis.T) @ basis)))[:, None])

        return multiply, correlate, 1


@dataclass
class SortedSolution:
    """Rows of W, those whose residual is the best dual point seen, and how the solver got there.

    `history` holds what is drawn along the way: (iteration, rows left, gap) at every check; `alive` the rows that
    dynamic screening left, where there was any; `at` the loss at `rows`, if the solver has it.
    """

    rows: Array
    dual_rows: Array
    n_iter: int
    gap: float
    history: list[tuple[int, int, float]]
    alive: Array | None = None
    at: Evaluation | None = None

    def without_dropped(self, working: Array) -> tuple[Array, SortedSolution]:
        """The features left and the solution on them; dropped ones stay only where the best dual point used them."""
        if self.alive is None:
            return working, self
        keep = np.array(self.dual_rows.any(axis=1), dtype=bool)
        keep[self.alive] = True
        return working[keep], SortedSolution(
            self.rows[keep], self.dual_rows[keep], self.n_iter, self.gap, self.history, at=self.at
        )


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
