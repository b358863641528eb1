"""Stochastic proximal gradient with variance reduction for Group OWL (Bao et al. 2025, Algorithm 2, corrected)."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy import sparse

from .._kernels import kernels
from ..design import SparseColumns
from ..losses import Evaluation
from .best_dual import BestDual
from .curvature import estimate_curvature
from .working import Needs, Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_SEED = 20250403  # batches are drawn anew from here in every solve: the same input gives the same bytes


class _RowsOfColumns:
    """The working columns by rows: dense row-major, or compressed sparse rows with their centre."""

    def __init__(self, working: WorkingProblem) -> None:
        columns, positions = working.columns, working.positions
        design = columns.design
        tasks = columns.n_tasks
        self.multinomial = working.loss.name == "multinomial"
        self.task_of: Array | None = None
        self.root: Array | None = None
        self.dense: Array | None = None
        self.data = self.indices = self.indptr = self.centre = None
        one_matrix = tasks == 1 or design.uniform
        if isinstance(columns, SparseColumns) and one_matrix:
            block = columns.block(positions)
            scale = design.original_units(positions, np.ones((len(positions), tasks)))[:, 0]
            rows = (block @ sparse.diags_array(scale)).tocsr()
            self.data = np.ascontiguousarray(rows.data, dtype=np.float64)
            self.indices = np.ascontiguousarray(rows.indices, dtype=np.int32)
            self.indptr = np.ascontiguousarray(rows.indptr, dtype=np.int64)
            if design.n_nuisance:
                self.centre = np.ascontiguousarray(design.coefficients(columns.loadings(positions))[0, :, 0])
            self.root = None if design.root_weights is None else design.root_weights[: design.n_rows].copy()
            self.n = rows.shape[0]
            squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
            if self.centre is not None:
                squares = squares - 2.0 * (rows @ self.centre) + float(self.centre @ self.centre)
            self.squares = squares if self.root is None else squares * np.square(self.root)
        else:
            if isinstance(columns, SparseColumns):
                raw = design.take(positions).columns
            else:
                whole = np.array_equal(positions, np.arange(columns.x.shape[1]))
                raw = columns.x if whole else columns.x[:, positions]
            self.dense = np.ascontiguousarray(raw)
            self.n = len(self.dense)
            if not one_matrix:
                self.task_of = np.repeat(np.arange(tasks), np.diff(columns.offsets))
            elif self.multinomial and design.root_weights is not None:
                self.root = design.root_weights[: self.n].copy()
            self.squares = np.einsum("ij,ij->i", self.dense, self.dense)
        self.tasks = tasks

    def keep(self, mask: Array, working: WorkingProblem) -> _RowsOfColumns:
        """The same rows on fewer columns."""
        if self.dense is None:
            return _RowsOfColumns(working)
        smaller = copy(self)
        smaller.dense = np.take(self.dense, np.flatnonzero(mask), axis=1)  # several times faster than a mask
        smaller.squares = np.einsum("ij,ij->i", smaller.dense, smaller.dense)
        return smaller

    def by_rows(self, flat: Array) -> Array:
        """A flat vector as the kernel reads predictions."""
        if self.task_of is not None:
            return flat.reshape(-1, 1)
        return np.ascontiguousarray(flat.reshape(self.tasks, -1).T)


class StochasticGradient:
    """Prox-SVRG on the rows of the data; for the sorted norm with the squared or the multinomial loss.

    Each epoch, an iteration here, begins with the gradient over all rows, which also gives the gap and the screening
    test, and takes n/l steps along ``v = (n/l) (grad F_I(W) - grad F_I(W_ref)) + grad F(W_ref)``. A step that raises
    the objective is halved.
    """

    name = "spgd"
    needs = Needs(sorted_rows=True, losses=("squared", "multinomial"), quadratic="none")

    def __init__(self) -> None:
        self._curvature: float | None = None

    def solve(self, working: WorkingProblem, start: Array, tol: float, max_iter: int) -> Solution:
        if self._curvature is None:
            self._curvature = estimate_curvature(working)
        curvature = self._curvature
        shrink = working.shrink
        loss = working.loss
        alive = np.arange(len(working.positions))
        rows = np.ascontiguousarray(start.copy())
        kernel = kernels.SortedSvrg()
        random = np.random.default_rng(_SEED)
        matrix = _RowsOfColumns(working)
        size, step = _batch(matrix, loss.smoothness, curvature)
        caution, measured = 1.0, len(alive)
        intercept = loss.name == "multinomial" and working.columns.design.fit_intercept
        best = BestDual(start)
        epochs, gap, nuisance = 0, np.inf, None
        last_rows, last_objective, last_nuisance = rows.copy(), np.inf, None

        def look() -> tuple[Array, Evaluation, float]:
            """The image of the rows, the loss there and the objective."""
            image = working.image(rows)
            at = loss.evaluate(image, nuisance)
            return image, at, at.value + working.penalty.value(rows)

        while True:
            image, at, objective = look()
            if not objective <= last_objective + 1e-3 * abs(last_objective - best.value):
                caution *= 0.5
                rows, nuisance, last_objective = last_rows.copy(), last_nuisance, np.inf
                epochs += 1
                if epochs < max_iter and caution > 1e-12:
                    continue
                image, at, objective = look()
            nuisance = at.nuisance
            products = working.correlate(at.residual)
            pair_gap, scale = working.gap(rows, at, products)
            gap = best.update(epochs, alive, rows, objective, pair_gap)
            if (gap <= tol and epochs > 0) or epochs >= max_iter:
                break
            if shrink is not None:
                # The rows of X are cut anew for a smaller set: not for a few columns.
                gone = shrink(rows, at, products, pair_gap, scale, 0.1)
                if gone.any():
                    moved = rows[gone].any()
                    alive, rows, products = alive[~gone], np.ascontiguousarray(rows[~gone]), products[~gone]
                    working = working.keep(~gone)
                    matrix = matrix.keep(~gone, working)
                    if moved:
                        image, at, objective = look()
                        products = working.correlate(at.residual)
                    if 2 * len(alive) <= measured:  # fewer columns are less steep: longer steps
                        measured = len(alive)
                        curvature = min(curvature, estimate_curvature(working))
                    size, step = _batch(matrix, loss.smoothness, curvature)
            last_rows, last_objective, last_nuisance = rows.copy(), objective, nuisance
            steps = max(1, matrix.n // size)
            batches = random.permutation(matrix.n)[: steps * size].reshape(steps, size)
            b = at.nuisance[0].copy() if intercept else np.zeros(matrix.tasks)
            # intercepts are minimised out at the reference: no gradient there
            kernel.epoch(
                matrix.dense, matrix.data, matrix.indices, matrix.indptr, matrix.centre, matrix.task_of,
                matrix.multinomial, matrix.root, working.penalty.sorted_form(), working.penalty.positive, intercept,
                rows, b, matrix.by_rows(image), np.ascontiguousarray(-products), b.copy(), np.zeros(matrix.tasks),
                batches, caution * step,
            )  # fmt: skip
            if intercept:
                nuisance = b[None, :]
            epochs += 1
        return best.solution(epochs, alive, rows, gap, shrink is not None, at)


def _batch(matrix: _RowsOfColumns, smoothness: float, curvature: float) -> tuple[int, float]:
    """Rows in a batch, and the step: 1 / (2 n L(l)) with L(l) the expected smoothness of batches of l rows."""
    n = matrix.n
    extra = 1.0 if matrix.multinomial else 0.0  # the constant that carries intercepts
    largest = smoothness * (float(np.max(matrix.squares, initial=0.0)) + extra)
    whole = smoothness * (curvature + extra * n)
    if largest <= 0.0 or n == 1:
        return 1, 1.0 / max(whole, 1e-300)
    size = int(np.clip(np.ceil(n * largest / whole), 8, 256))
    size = min(size, n)
    total = n * (size - 1) / (size * (n - 1)) * whole + n * (n - size) / (size * (n - 1)) * largest
    return size, 1.0 / (2.0 * total)
