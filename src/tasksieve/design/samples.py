"""What belongs to the samples: tasks, weights, intercepts. Everything here is of the size of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

Array = np.ndarray[Any, Any]


class Samples:
    """The flat sample space of all tasks, and what nuisance columns explain in it.

    With row weights ``s`` (``q = sqrt(s)``) and, in each task, nuisance columns ``Z_t`` (the constant, if there is an
    intercept, and the unpenalised features), ``U_t`` is an orthonormal basis of ``diag(q_t) Z_t``. Vectors over samples
    are flat, task after task (`offsets`); for one matrix shared by all tasks, task ``t`` owns the places
    ``t n .. (t+1) n``.

    Parameters
    ----------
    offsets : array of int, shape (n_tasks + 1,)
        Where each task starts in a flat vector.
    shared : bool
        All tasks use all rows of the data.
    weights : array, optional
        Flat row weights; 0 = the row is absent from that task.
    fit_intercept : bool
    unpenalised : array of shape (rows of the data, k)
        Raw columns that are never penalised.
    """

    def __init__(
        self,
        offsets: Array,
        shared: bool,
        weights: Array | None,
        fit_intercept: bool,
        unpenalised: Array,
    ) -> None:
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.shared = shared
        self.fit_intercept = fit_intercept
        self.n_tasks = len(self.offsets) - 1
        self.n_samples = int(self.offsets[-1])
        self.lengths = self.offsets[1:] - self.offsets[:-1]
        if np.any(self.lengths <= 0):
            raise ValueError("every task needs at least one row (a row may have weight 0)")
        self.weights = weights
        self.root_weights = None if weights is None or np.all(weights == 1.0) else np.sqrt(weights)
        #: every task sees the very same columns, weights included
        self.uniform = shared and self._same_weights_everywhere()
        columns = [np.ones(self.n_samples)] if fit_intercept else []
        #: raw flat nuisance columns ``Z``: the constant, then the unpenalised features
        self.nuisance_columns = columns + [np.tile(c, self.n_tasks) if shared else c for c in unpenalised.T]
        basis, self.solvers = self._nuisance_basis()
        #: ``U``: flat rows, orthonormal within each task (zero where a task has fewer)
        self.basis = np.array(basis).reshape(-1, self.n_samples)

    def task_sums(self, vector: Array) -> Array:
        """Sum of a flat vector over each task."""
        if self.n_tasks == 1:
            return np.asarray([vector.sum()])
        return np.add.reduceat(vector, self.offsets[:-1])

    def per_sample(self, values: Array) -> Array:
        """One value per task, repeated over the task's samples."""
        return np.repeat(values, self.lengths)

    def project(self, vector: Array) -> Array:
        """``(I - U U') vector``: the part of a flat vector that nuisance columns cannot explain."""
        if self.uniform and self.n_tasks > 1:  # the same basis for all tasks: products of small matrices
            block = vector.reshape(self.n_tasks, -1)
            for column in self.basis[:, : block.shape[1]]:
                block = block - np.outer(block @ column, column)
            return block.ravel()
        for column in self.basis:
            vector = vector - column * self.per_sample(self.task_sums(column * vector))
        return vector

    def weighted(self, vector: Array) -> Array:
        """``diag(q) vector``."""
        return vector if self.root_weights is None else self.root_weights * vector

    def nuisance_fit(self, vector: Array) -> Array:
        """Weighted least-squares coefficients of a raw flat vector on the nuisance columns: (n_nuisance, n_tasks)."""
        weighted = self.weighted(vector)
        return np.array([self.task_sums(row * weighted) for row in self.solvers]).reshape(-1, self.n_tasks)

    def _same_weights_everywhere(self) -> bool:
        if self.root_weights is None:
            return True
        rows = self.root_weights.reshape(self.n_tasks, -1)
        return bool(np.all(rows == rows[0]))

    def _nuisance_basis(self) -> tuple[list[Array], list[Array]]:
        """Flat columns ``U``, orthonormal within each task, and the rows of the pseudo-inverse of ``diag(q) Z``.

        Where a task has fewer independent nuisance columns than others, the rest of its basis is zero.
        """
        raw = [self.weighted(column) for column in self.nuisance_columns]
        if not raw:
            return [], []
        if len(raw) == 1:
            squares = self.task_sums(raw[0] * raw[0])
            inverse = np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0)
            return [raw[0] * self.per_sample(np.sqrt(inverse))], [raw[0] * self.per_sample(inverse)]
        basis, solvers = np.zeros((len(raw), self.n_samples)), np.zeros((len(raw), self.n_samples))
        for t in range(self.n_tasks):
            rows = slice(self.offsets[t], self.offsets[t + 1])
            block = np.stack([column[rows] for column in raw], axis=1)
            sizes = np.linalg.norm(block, axis=0)
            live = np.flatnonzero(sizes)
            if len(live) == 0:
                continue
            u, values, vt = linalg.svd(block[:, live] / sizes[live], full_matrices=False)
            rank = int(np.sum(values > 1e-10 * values[0]))
            basis[:rank, rows] = u[:, :rank].T
            solvers[live, rows] = (vt[:rank].T / values[:rank] @ u[:, :rank].T) / sizes[live, None]
        return [column for column in basis if column.any()], list(solvers)
