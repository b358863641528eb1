"""Tasks, weights, intercepts and scaling on top of a storage."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from .._kernels import kernels
from .storage import DenseStorage, Storage
from .threads import thread_count

Array = np.ndarray[Any, Any]

# Columns whose spread is this much smaller than their size lose digits in products of raw columns: those few are
# centred explicitly instead.
_FRAGILE_RATIO = 1e3
_SMALL_PASS = 1_000_000  # products that are done before a second thread has started
_TAKE_BLOCK = 512  # columns handled at a time where a block of them has to be centred explicitly


class Design:
    """One data matrix per task, seen through three verbs in weighted and centred form.

    With row weights ``s`` (``q = sqrt(s)``) and, in each task, nuisance columns ``Z_t`` (the constant, if there is an
    intercept, and the unpenalised features), the design stands for

        X~_t = (I - U_t U_t') diag(q_t) X_t,        U_t an orthonormal basis of diag(q_t) Z_t,

    which is never formed as a whole: the least-squares and the dual problem over penalised coefficients are the
    ordinary ones in ``X~`` (mathematics, section 1). Vectors over samples are flat, task after task (`offsets`); for
    one matrix shared by all tasks, task ``t`` owns the places ``t n .. (t+1) n``.

    Parameters
    ----------
    storage : Storage
        The raw numbers, rows in task order.
    offsets : array of int, shape (n_tasks + 1,)
        Where each task starts in a flat vector.
    shared : bool
        All tasks use all rows of the storage.
    weights : array, optional
        Flat row weights; 0 = the row is absent from that task.
    fit_intercept, unpenalised : bool, array of int
        What is projected out of every column.
    standardize : bool
        Divide every column, task by task, by its weighted standard deviation.
    n_threads : int, optional
        Threads of a pass; by default all available.
    """

    def __init__(
        self,
        storage: Storage,
        offsets: Array,
        *,
        shared: bool = False,
        weights: Array | None = None,
        fit_intercept: bool = True,
        unpenalised: Array | None = None,
        standardize: bool = False,
        n_threads: int | None = None,
    ) -> None:
        self.storage = storage
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.shared = shared
        self.n_features = storage.n_features
        self.n_tasks = len(self.offsets) - 1
        self.n_samples = int(self.offsets[-1])
        self._lengths = self.offsets[1:] - self.offsets[:-1]
        if np.any(self._lengths <= 0):
            raise ValueError("every task needs at least one row (a row may have weight 0)")
        self.n_threads = thread_count() if n_threads is None else n_threads
        self.passes = 0.0
        self.fit_intercept = fit_intercept
        self.unpenalised = (
            np.empty(0, dtype=np.int64) if unpenalised is None else np.asarray(unpenalised, np.int64)
        )
        self.weights = weights
        self.root_weights = None if weights is None or np.all(weights == 1.0) else np.sqrt(weights)
        #: every task sees the very same columns, weights included
        self.uniform = shared and self._same_weights_everywhere()
        basis, self._solvers = self._nuisance_basis()
        self._basis = np.array(basis).reshape(-1, self.n_samples)
        self.standardize = standardize
        self._scale: Array | None = None
        self._norms: Array | None = None
        self._dead: tuple[Array, Array] | None = None
        self._fragile = np.empty(0, dtype=np.int64)
        #: relative rounding error of a correlation: |error| <= rounding * norm * ||r_t||
        self.rounding = 0.0

    @property
    def n_nuisance(self) -> int:
        """Nuisance columns: the constant, and the unpenalised features."""
        return len(self._solvers)

    # -- sample space ---------------------------------------------------------------------------------------------

    def task_sums(self, vector: Array) -> Array:
        """Sum of a flat vector over each task."""
        if self.n_tasks == 1:
            return np.asarray([vector.sum()])
        return np.add.reduceat(vector, self.offsets[:-1])

    def per_sample(self, values: Array) -> Array:
        """One value per task, repeated over the task's samples."""
        return np.repeat(values, self._lengths)

    def project(self, vector: Array) -> Array:
        """``(I - U U') vector``: the part of a flat vector that nuisance columns cannot explain."""
        if self.uniform and self.n_tasks > 1:  # the same basis for all tasks: products of small matrices
            block = vector.reshape(self.n_tasks, -1)
            for column in self._basis[:, : block.shape[1]]:
                block = block - np.outer(block @ column, column)
            return block.ravel()
        for column in self._basis:
            vector = vector - column * self.per_sample(self.task_sums(column * vector))
        return vector

    def nuisance_columns(self) -> list[Array]:
        """Raw flat nuisance columns ``Z``: the constant, then the unpenalised features."""
        columns = [np.ones(self.n_samples)] if self.fit_intercept else []
        if len(self.unpenalised):
            block = self.storage.take(self.unpenalised)
            columns += [np.tile(c, self.n_tasks) if self.shared else c for c in block.T]
        return columns

    def _same_weights_everywhere(self) -> bool:
        if self.root_weights is None:
            return True
        rows = self.root_weights.reshape(self.n_tasks, -1)
        return bool(np.all(rows == rows[0]))

    def _weighted(self, vector: Array) -> Array:
        return vector if self.root_weights is None else self.root_weights * vector

    def _nuisance_basis(self) -> tuple[list[Array], list[Array]]:
        """Flat columns ``U``, orthonormal within each task, and the rows of the pseudo-inverse of ``diag(q) Z``.

        Where a task has fewer independent nuisance columns than others, the rest of its basis is zero.
        """
        raw = [self._weighted(column) for column in self.nuisance_columns()]
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

    @property
    def nuisance_basis(self) -> Array:
        """``U``: flat rows, orthonormal within each task (zero where a task has fewer)."""
        return self._basis

    def nuisance_fit(self, vector: Array) -> Array:
        """Weighted least-squares coefficients of a raw flat vector on the nuisance columns: (n_nuisance, n_tasks)."""
        weighted = self._weighted(vector)
        return np.array([self.task_sums(row * weighted) for row in self._solvers]).reshape(-1, self.n_tasks)

    def nuisance_loadings(self, features: Array) -> Array:
        """The same coefficients for raw columns of the storage: (n_nuisance, len(features), n_tasks)."""
        out = np.empty((len(self._solvers), len(features), self.n_tasks))
        for z, row in enumerate(self._solvers):
            out[z] = self._products(self._weighted(row), features)
        return out

    # -- the three verbs ------------------------------------------------------------------------------------------

    def norms(self) -> Array:
        """Norms of the columns of ``X~``, (n_features, n_tasks); a broadcast view where all tasks agree."""
        if self._norms is None:
            self._first_pass(None)
        assert self._norms is not None
        return self._norms

    @property
    def finite(self) -> bool:
        """Whether all norms are finite: not so if X holds NaN, infinity or numbers whose squares overflow."""
        norms = self.norms()
        if norms.strides[1] == 0:  # a view of one column
            norms = norms[:, :1]
        return bool(np.isfinite(kernels.largest_magnitude(np.ascontiguousarray(norms), self.n_threads)))

    def correlate(self, r: Array, features: Array | None = None) -> Array:
        """``<x~_jt, r_t>`` for all features or for some: (n_features or len(features), n_tasks)."""
        projected = self.project(r)
        if features is None and self._norms is None:
            out = self._first_pass(projected)
        else:
            self.norms()
            self.passes += 1.0 if features is None else len(features) / max(self.n_features, 1)
            out = self._products(self._weighted(projected), features)
        if len(self._fragile):
            chosen = self._fragile if features is None else np.flatnonzero(np.isin(features, self._fragile))
            for low in range(0, len(chosen), _TAKE_BLOCK):
                part = chosen[low : low + _TAKE_BLOCK]
                columns = self._centred(part if features is None else features[part])
                out[part] = self._packed_products(columns, projected)
        self._rescale(out, features)
        return out

    def take(self, features: Array) -> Array:
        """Columns of ``X~``, packed: (rows, len(features)) in Fortran order.

        One matrix per task, or weights that differ between tasks: as many rows as samples. Otherwise (`uniform`) the
        rows of the one matrix.
        """
        return self.take_with_loadings(features)[0]

    def take_with_loadings(self, features: Array) -> tuple[Array, Array]:
        """`take`, and the raw columns' coefficients on the nuisance columns: (n_nuisance, len(features), n_tasks).

        The loadings turn coefficients into intercepts without another look at the data.
        """
        self.norms()
        columns, loadings = self._centred_with_loadings(features)
        if self._scale is None and self._dead is None:
            return columns, loadings
        factor = np.ones((len(features), self.n_tasks))
        self._rescale(factor, features)
        if self.uniform:
            columns *= factor[:, 0]
            return columns, loadings
        for t in range(self.n_tasks):
            columns[self.offsets[t] : self.offsets[t + 1]] *= factor[:, t]
        return columns, loadings

    # -- how they are done ----------------------------------------------------------------------------------------

    def _products(self, vector: Array, features: Array | None, squares: bool = False) -> Array:
        count = self.n_features if features is None else len(features)
        threads = self._pass_threads(count)
        return self.storage.products(vector, self.offsets, self.shared, features, squares, threads)

    def _pass_threads(self, count: int) -> int:
        """Threads for a pass over some columns."""
        return self.n_threads if count * self.n_samples > _SMALL_PASS else 1

    def _one_task_products(self, vector: Array, squares: bool = False) -> Array:
        """Products for the first task of a uniform design, which stand for all."""
        offsets = np.array([0, self.storage.n_rows])
        return self.storage.products(
            np.ascontiguousarray(vector[: self.storage.n_rows]), offsets, False, None, squares, self.n_threads
        )

    def _packed_products(self, columns: Array, vector: Array) -> Array:
        if self.uniform:
            return columns.T @ vector.reshape(self.n_tasks, -1).T
        out = np.empty((columns.shape[1], self.n_tasks))
        for t in range(self.n_tasks):
            rows = slice(self.offsets[t], self.offsets[t + 1])
            out[:, t] = columns[rows].T @ vector[rows]
        return out

    def _rescale(self, values: Array, features: Array | None) -> None:
        """Divides by the standard deviations and clears what belongs to constant columns, in place."""
        if self._scale is not None:
            values /= self._scale if features is None else self._scale[features]
        if self._dead is not None:
            rows, mask = self._dead
            if features is None:
                values[rows] = np.where(mask, 0.0, values[rows])
            else:
                place = np.searchsorted(rows, features)
                place[place == len(rows)] = 0
                hit = np.flatnonzero(rows[place] == features)
                values[hit] = np.where(mask[place[hit]], 0.0, values[hit])

    def _centred(self, features: Array) -> Array:
        return self._centred_with_loadings(features)[0]

    def _centred_with_loadings(self, features: Array) -> tuple[Array, Array]:
        """``(I - U U') diag(q) X`` on some columns, unscaled, and their nuisance coefficients."""
        raw = self.storage.take(features)
        if self.uniform:  # the first task stands for all
            n = self.storage.n_rows
            samples, offsets, shared, width = slice(0, n), np.array([0, n]), False, 1
        else:
            samples, offsets, shared, width = slice(None), self.offsets, self.shared, self.n_tasks
        columns = DenseStorage(raw)
        loadings = np.empty((len(self._solvers), len(features), self.n_tasks))
        for z, row in enumerate(self._solvers):
            vector = np.ascontiguousarray(self._weighted(row)[samples])
            loadings[z] = columns.products(vector, offsets, shared, None, False, 1)
        weights = np.ones(self.n_samples) if self.root_weights is None else self.root_weights
        out = np.empty((int(offsets[-1]), len(features)), order="F")
        squares = np.empty((len(features), width))
        kernels.reweight(
            raw,
            offsets,
            shared,
            np.arange(len(features)),
            np.ascontiguousarray(weights[samples]),
            np.ascontiguousarray(self._basis[:, samples]),
            self.n_threads if raw.size > 100_000 else 1,
            out,
            squares,
        )
        return out, loadings

    def _first_pass(self, projected: Array | None) -> Array:
        """Measures the columns, and returns raw products with a projected vector if one is given.

        All of it is one reading of the data where rows are stacked; a matrix shared by all tasks is measured once for
        all of them, which costs next to nothing.
        """
        weights = np.ones(self.n_samples) if self.root_weights is None else np.square(self.root_weights)
        vectors = [*self._basis] if projected is None else [*self._basis, projected]
        # Where X holds NaN or infinity so will its norms: for the caller to see, not to be warned of.
        with np.errstate(invalid="ignore", over="ignore"):
            if self.shared or not vectors:
                measure = (
                    self._one_task_products if self.uniform else lambda v, s=False: self._products(v, None, s)
                )
                raw = measure(weights, True)
                loadings = [measure(self._weighted(column)) for column in self._basis]
                self.passes += 1.0 + len(loadings)
                products = None
                if projected is not None:
                    products = self._products(self._weighted(projected), None)
                    self.passes += 1.0
            else:
                weighted = np.stack([self._weighted(vector) for vector in vectors])
                threads = self._pass_threads(self.n_features)
                raw, everything = self.storage.first_products(weights, weighted, self.offsets, threads)
                self.passes += 1.0 if self.storage.reads_once else 1.0 + len(vectors)
                loadings = everything[: len(self._basis)]
                products = None if projected is None else everything[-1]
                del everything
            self._measure(raw, loadings, weights)
        return np.empty(0) if products is None else products

    def _measure(self, raw: Array, loadings: list[Array], weights: Array) -> None:
        """Norms, standard deviations, and the list of columns that need care.

        From the columns' squared lengths and their products with the nuisance basis.
        """
        squares = raw.copy() if loadings else raw
        while loadings:  # each is freed as soon as it is used
            loading = loadings.pop()
            squares -= np.square(loading, out=loading)
        longest = int(np.max(np.diff(self.offsets))) if not self.shared else self.storage.n_rows
        self.rounding = 4.0 * (longest + 8) * np.finfo(np.float64).eps
        if len(self._basis):
            self.rounding *= _FRAGILE_RATIO
            low = squares < raw / _FRAGILE_RATIO**2
            self._fragile = np.flatnonzero(low.any(axis=1))
            for start in range(0, len(self._fragile), _TAKE_BLOCK):
                part = self._fragile[start : start + _TAKE_BLOCK]
                columns = self._centred(part)
                if self.uniform:
                    squares[part] = np.sum(columns * columns, axis=0)[:, None]
                else:
                    squares[part] = np.add.reduceat(columns * columns, self.offsets[:-1], axis=0).T
            # What is left of a constant column is rounding: it is zero.
            negligible = (64.0 * np.finfo(np.float64).eps) ** 2
            dead = squares[self._fragile] <= negligible * raw[self._fragile]
            if dead.any():
                squares[self._fragile] = np.where(dead, 0.0, squares[self._fragile])
                rows = dead.any(axis=1)
                mask = np.broadcast_to(dead[rows], (int(rows.sum()), self.n_tasks))
                self._dead = (self._fragile[rows], mask)
        norms = np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares)
        if self.standardize:
            totals = np.sqrt(self.task_sums(weights))
            totals = totals[:1] if self.uniform else totals
            # A task without a single row has no deviations either.
            scale = np.divide(norms, totals, out=np.zeros_like(norms), where=totals > 0.0)
            scale[scale == 0.0] = 1.0
            norms = norms / scale
            self._scale = np.broadcast_to(scale, (self.n_features, self.n_tasks))
        self._norms = np.broadcast_to(norms, (self.n_features, self.n_tasks))

    def original_units(self, features: Array, rows: Array) -> Array:
        """Coefficients of the raw columns, given those of the scaled ones."""
        if self._scale is None:
            return rows
        return np.asarray(rows / self._scale[features])
