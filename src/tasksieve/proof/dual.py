"""The dual point that belongs to coefficients: one number for each row, as the certificate's format lists them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import PackedColumns
from ..path.problem import Problem

Array = np.ndarray[Any, Any]


class DualPoints:
    """Dual points of coefficients on the data of a problem, for the rows that the format lists: minus the slopes of the
    loss at the best intercepts."""

    def __init__(self, problem: Problem, labels: Any, kept: Array) -> None:
        self._problem, self._columns = problem, PackedColumns(problem.design)
        counts = np.ones(labels.n_tasks, dtype=np.int64) if labels.class_counts is None else labels.class_counts
        spans = list(labels.per_task())
        self._kept = np.concatenate([np.tile(kept[part], count) for part, count in zip(spans, counts, strict=True)])
        self._every, self._all = bool(self._kept.all()), labels.shared

    def of(self, lam: float, features: Array, rows: Array) -> Array:
        """Coefficients and strength in the units of the problem; the point in those of the data."""
        problem, columns = self._problem, self._columns
        design, loss = problem.design, problem.loss
        penalty = problem.penalty.at(lam)
        selected = penalty.whole(np.setdiff1d(features, design.unpenalised))
        own = np.zeros((len(selected), design.n_tasks))
        known = np.isin(selected, features)
        own[known] = rows[np.searchsorted(features, selected[known])]
        positions = columns.positions(selected)
        image = columns.combine(positions, design.scaled_units(selected, own))
        return self.listed(loss.settled(loss.evaluate(image)).residual)

    def listed(self, residual: Array) -> Array:
        """A dual point of the solver, in its units, as the format lists it; or several, one a row."""
        problem = self._problem
        root, units = problem.design.samples.root_weights, problem.units
        found = residual
        if root is not None:
            found = np.divide(residual, root, out=np.zeros_like(residual), where=root > 0.0)
        found = found if units is None else np.ldexp(found, units.f - units.y)
        if self._every:
            return found
        return np.where(self._kept, found, 0.0) if self._all else found[..., self._kept]
