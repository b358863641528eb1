"""Block coordinate descent with exact row updates and Anderson acceleration, for the squared loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._kernels import kernels
from ..design import PackedColumns
from ..penalties import SparseGroup
from .needs import Needs
from .working import Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_GRAM_BYTES = 64 << 20


class CoordinateDescent:
    """One row of W at a time, each solved exactly: all penalties of the family, positivity included.

    Works on the residual, or on a Gram matrix where that is cheaper: an epoch costs ``4 N |A|`` operations on the
    residual and ``2 T |A|`` per *changed* row with a Gram matrix.
    """

    name = "cd"
    needs = Needs(losses=("squared",), thresholds=True, packed=True)

    def __init__(self) -> None:
        #: operations spent on the last problem, for choosing between solvers
        self.work = 0.0

    def solve(self, problem: WorkingProblem, start: Array, tol: float, max_iter: int) -> Solution:
        return self.minimise(
            problem.columns,
            problem.places,
            problem.penalty,
            problem.loss.target,
            start,
            tol,
            max_iter,
            problem.zero,
        )

    def minimise(
        self,
        packed: PackedColumns,
        places: Array,
        penalty: SparseGroup,
        target: Array,
        start: Array,
        tol: float,
        max_iter: int,
        zero: Array | None = None,
    ) -> Solution:
        """``1/2 ||target - X W||^2 + Omega(W)`` over some columns; `zero` where W is known to be zero."""
        rows = np.ascontiguousarray(start)
        tasks, count = packed.n_tasks, len(places)
        squares = packed.squared_norms[places]
        if zero is not None:
            squares = np.where(zero, 0.0, squares)  # as if those columns were empty
        common = (
            packed.x,
            packed.offsets,
            packed.shared,
            places,
            squares,
            penalty.group,
            penalty.l1,
            penalty.ridge,
            penalty.positive,
        )
        one_matrix = packed.shared or tasks == 1
        samples = len(target)
        if self._prefers_gram(packed, count, one_matrix):
            gram = self._gram(packed, places, one_matrix)
            y_products = np.ascontiguousarray(packed.correlate(target, places).T)
            if rows.any():
                fitted = np.matmul(gram, rows.T[:, :, None])[:, :, 0] if not one_matrix else rows.T @ gram
                state = y_products - fitted
            else:
                state = y_products.copy()
            epochs, gap, _ = kernels.coordinate_descent(
                *common,
                rows,
                state.ravel(),
                max_iter,
                tol,
                gram.ravel(),
                y_products.ravel(),
                float(target @ target),
            )
            self.work = epochs * 2.0 * tasks * count * count
            return Solution(rows, epochs, gap)
        live = np.flatnonzero(rows.any(axis=1))
        residual = target - packed.combine(places[live], rows[live]) if len(live) else target.copy()
        epochs, gap, _ = kernels.coordinate_descent(*common, rows, residual, max_iter, tol, None, None, 0.0)
        self.work = epochs * 4.0 * samples * count
        return Solution(rows, epochs, gap)

    @staticmethod
    def _prefers_gram(packed: Any, count: int, one_matrix: bool) -> bool:
        mean_rows = len(packed.x) if one_matrix else len(packed.x) / packed.n_tasks
        matrices = 1 if one_matrix else packed.n_tasks
        if matrices * count * count * 8 > _GRAM_BYTES and not one_matrix:
            return False
        return bool(count <= (2.0 if one_matrix else 0.7) * mean_rows)

    @staticmethod
    def _gram(packed: Any, places: Array, one_matrix: bool) -> Array:
        if one_matrix:
            return np.asarray(packed.gram(places))
        x = packed.x[:, places]
        blocks = [x[a:b].T @ x[a:b] for a, b in zip(packed.offsets[:-1], packed.offsets[1:], strict=True)]
        return np.stack(blocks)
