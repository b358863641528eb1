"""How steep a problem is on some columns, which columns to use, and how much work a product with them is."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import PackedColumns, SparseColumns
from .working import WorkingProblem

_FEW_COLUMNS = 32  # so few sparse columns take less time, and no room to speak of, as dense ones


def packed_if_few(working: WorkingProblem) -> WorkingProblem:
    """The same, with sparse columns made dense where only a few are left: their products are then BLAS's."""
    if not isinstance(working.columns, SparseColumns) or not 0 < len(working.positions) <= _FEW_COLUMNS:
        return working
    columns = PackedColumns(working.columns.design)
    return WorkingProblem(columns, columns.positions(working.positions), working.penalty, working.loss)


def pass_work(columns: Any, count: int) -> float:
    """Operations of a product with some columns; those of a matrix that all tasks share are done four at a time."""
    return 2.0 * float(columns.offsets[-1]) * max(count, 1) * (0.25 if columns.shared else 1.0)


def estimate_curvature(working: WorkingProblem, iterations: int = 5) -> float:
    """``max_t sigma_max(X_t)^2``, nearly: a few power iterations and a margin; solvers notice if it is low. A graph of
    tasks adds its own, in units of the loss's."""
    coupling = working.penalty.coupling
    more = 0.0 if coupling is None else coupling.steepest / working.loss.smoothness
    if not len(working.positions):
        return 1.0
    columns, tasks = working.columns, working.columns.n_tasks
    # a fixed irregular start: nothing depends on chance, and no symmetry hides the largest direction
    rows = 1.0 + 0.1 * np.cos(np.arange(1.0, len(working.positions) * tasks + 1.0)).reshape(-1, tasks)
    largest = 0.0
    for _ in range(iterations):
        rows = rows / np.maximum(np.sqrt(np.einsum("jt,jt->t", rows, rows)), 1e-300)
        rows = columns.correlate(columns.combine(working.positions, rows), working.positions)
        largest = float(np.sqrt(np.max(np.einsum("jt,jt->t", rows, rows))))
    return (1.1 * largest if largest > 0.0 else 1.0) + more
