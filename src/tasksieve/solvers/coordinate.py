"""Block coordinate descent with exact row updates and Anderson acceleration, for the squared loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import PackedColumns
from ..penalties import RowPenalty, live_rows
from .blocks import TurnedColumns, block_descent, descend
from .rotations import Rotations
from .working import Needs, Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_GRAM_BYTES = 64 << 20
_ROOM = 1.5  # packed columns for each one that takes part: beyond that theirs are copied out of the Gram matrix


class CoordinateDescent:
    """One row of W at a time, each solved exactly, or one block of rows (`blocks`), positivity included. An epoch costs
    ``4 N |A|`` operations on the residual, or, on a Gram matrix if that is cheaper, ``2 T |A|`` per *changed* row."""

    name = "cd"
    needs = Needs(losses=("squared",), row_form=True, packed=True, quadratic="graph")

    def __init__(self) -> None:
        #: operations spent on the last problem, for choosing between solvers
        self.work = 0.0
        self._target: Array | None = None
        self._layout = 0
        self._targets = np.empty((0, 0))
        self._rotations: Rotations | None = None
        self._turned: TurnedColumns | None = None

    def solve(self, problem: WorkingProblem, start: Array, tol: float, max_iter: int) -> Solution:
        columns, positions, penalty, target = problem.columns, problem.positions, problem.penalty, problem.loss.target
        return self.minimise(columns, positions, penalty, target, start, tol, max_iter, problem.zero)

    def minimise(
        self,
        packed: PackedColumns,
        positions: Array,
        penalty: RowPenalty,
        target: Array,
        start: Array,
        tol: float,
        max_iter: int,
        zero: Array | None = None,
    ) -> Solution:
        """``1/2 ||target - X W||^2 + Omega(W)`` over some columns; `zero` where W is known to be zero."""
        rows = np.ascontiguousarray(start)
        tasks, count = packed.n_tasks, len(positions)
        squares = packed.squared_norms[positions]
        if zero is not None:
            squares = np.where(zero, 0.0, squares)  # as if those columns were empty
        if penalty.block_form() is not None:
            if self._turned is None or self._turned.layout != packed.layout:
                self._turned = TurnedColumns(packed)
            by_gram, one = self._prefers_gram(packed, count), packed.shared or tasks == 1
            residual = target if by_gram and one else self._residual(packed, positions, target, rows)
            sums = (lambda: (packed.grams(), self._target_products(packed, target))) if one else None
            epochs, gap = block_descent(
                packed, positions, squares, penalty, rows, residual, max_iter, tol, by_gram, self._turned, target, sums
            )
            return Solution(rows, epochs, gap)
        form = penalty.row_form()
        assert form is not None
        coupled: Any = ()
        if penalty.coupling is not None:
            self._rotations = self._rotations or Rotations()
            coupled = self._rotations.of(penalty, squares, positions, packed.layout)
        if self._prefers_gram(packed, count):
            gram, chosen, y_products = self._gram(packed, positions, target)
            known, state = (gram, y_products, float(target @ target)), np.empty(y_products.size)
            epoch = 2.0 * tasks * count * count
        else:
            chosen, known, state = positions, None, self._residual(packed, positions, target, rows)
            epoch = 4.0 * len(target) * count
        epochs, gap = descend(
            packed, chosen, squares, form, penalty, rows, state, max_iter, tol, known, coupled=coupled
        )
        self.work = epochs * epoch
        return Solution(rows, epochs, gap)

    @staticmethod
    def _residual(packed: Any, positions: Array, target: Array, rows: Array) -> Array:
        live = live_rows(rows)
        return target - packed.combine(positions[live], rows[live]) if len(live) else target.copy()

    @staticmethod
    def _prefers_gram(packed: Any, count: int) -> bool:
        if packed.shared or packed.n_tasks == 1:
            return count <= 2 * len(packed.x)
        if packed.n_tasks * count * count * 8 > _GRAM_BYTES:
            return False
        return count <= 0.7 * len(packed.x) / packed.n_tasks

    def _gram(self, packed: Any, positions: Array, target: Array) -> tuple[Array, Array, Array]:
        """A Gram matrix, a matrix for each task where they differ; where the columns lie in it; and their products with
        the target. One matrix for all packed columns serves where most of them take part: no copy is made of it."""
        if packed.shared or packed.n_tasks == 1:
            grams, total = packed.grams(), len(packed.features)
            if total <= _ROOM * len(positions):
                return grams, positions, self._target_products(packed, target)
            grams = np.ascontiguousarray(packed.gram(positions))[None]
        else:
            x = packed.x if len(positions) == len(packed.features) and _in_order(positions) else packed.x[:, positions]
            blocks = [x[a:b].T @ x[a:b] for a, b in zip(packed.offsets[:-1], packed.offsets[1:], strict=True)]
            grams = np.array(blocks)
        y_products = np.ascontiguousarray(packed.correlate(target, positions).T)
        return grams, np.arange(len(positions)), y_products

    def _target_products(self, packed: Any, target: Array) -> Array:
        """Products of all packed columns with the target, (tasks, columns): they come and stay with the columns."""
        known, total = self._targets.shape[1], len(packed.features)
        if self._target is not target or self._layout != packed.layout:
            self._target, self._layout, known = target, packed.layout, 0
        if known < total:
            more = packed.correlate(target, np.arange(known, total)).T
            grown = np.concatenate([self._targets[:, :known], more], axis=1) if known else more
            self._targets = np.ascontiguousarray(grown)
        return self._targets


def _in_order(positions: Array) -> bool:
    return bool((np.diff(positions) == 1).all())
