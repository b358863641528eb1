"""Accelerated proximal gradient for the sorted norm and the squared loss, without leaving the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._kernels import kernels
from .curvature import estimate_curvature, pass_work
from .working import Needs, Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_CHECK_EVERY = 6  # iterations between looks at the gap
_GRAM_COLUMNS = 3000  # packed columns beyond which no Gram matrix is kept
_SMALL = 4_000_000  # products of an iteration that a second thread is not worth waking for


class SortedFista:
    """`accelerated`, compiled: on the columns, or on a Gram matrix where that is cheaper."""

    name = "sorted-fista"
    needs = Needs(losses=("squared",), sorted_rows=True, packed=True, quadratic="none")

    def __init__(self) -> None:
        self._kernel = kernels.SortedFista()
        self._curvature: float | None = None
        #: the columns of the last problem: where they lay, and they
        self._held: tuple[int, Array, Array] | None = None

    def solve(self, working: WorkingProblem, start: Array, tol: float, max_iter: int) -> Solution:
        packed, positions, target = working.columns, working.positions, working.loss.target
        if self._curvature is None:
            self._curvature = estimate_curvature(working)
        one_matrix = packed.shared or packed.n_tasks == 1
        count, height = len(positions), len(packed.x)
        gram = None
        if one_matrix and count <= height and len(packed.features) <= _GRAM_COLUMNS:
            gram = np.ascontiguousarray(packed.gram(positions))
        x = packed.x[:, :0] if gram is not None else self._columns(packed, positions)
        rows = np.ascontiguousarray(start).copy()
        dual_rows = np.zeros_like(rows)
        work = count * height * packed.n_tasks
        iterations, gap, curvature = self._kernel.solve(
            x, packed.offsets, packed.shared, target, gram, packed.correlate(target, positions),
            2.0 * working.loss.null.value, working.penalty.sorted_form(), working.penalty.positive, rows, dual_rows,
            tol, max_iter, _CHECK_EVERY, self._curvature, packed.n_threads if work > _SMALL else 1,
        )  # fmt: skip
        self._curvature = 1.1 * curvature
        return Solution(rows, iterations, gap, dual_rows=dual_rows, steps=[(iterations, count, gap)])

    @staticmethod
    def step_work(working: WorkingProblem) -> float:
        """Operations of one step."""
        return 2.0 * pass_work(working.columns, len(working.positions))

    def _columns(self, packed: Any, positions: Array) -> Array:
        """Some columns side by side; the last answer is kept, a problem may be solved in several calls."""
        if self._held is None or self._held[0] != packed.layout or not np.array_equal(self._held[1], positions):
            everything = np.array_equal(positions, np.arange(packed.x.shape[1]))
            x = packed.x if everything else np.asfortranarray(packed.x[:, positions])
            self._held = packed.layout, positions, x
        return self._held[2]
