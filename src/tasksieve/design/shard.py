"""A shard: some features, and everything that is features x tasks about them.

The columns lie in a storage; norms, scales and remembered products (anchors) lie here, beside them, and never cross to
the engine. What crosses: vectors over samples inwards, plain vectors over features and a few packed columns outwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._kernels import kernels
from .anchored import Anchored, AnchorShelf
from .samples import Samples
from .storage import ColumnStorage, DenseStorage

Array = np.ndarray[Any, Any]

# Columns whose spread is this much smaller than their size lose digits in products of raw columns: those few are
# centred explicitly instead.
_FRAGILE_RATIO = 1e3
_SMALL_PASS = 1_000_000  # products that are done before a second thread has started
_TAKE_BLOCK = 512  # columns handled at a time where a block of them has to be centred explicitly


class LocalShard:
    """Features in this process, seen in weighted and centred form,

        X~_t = (I - U_t U_t') diag(q_t) X_t        (`Samples`),

    which is never formed as a whole: the least-squares and the dual problem over penalised coefficients are the
    ordinary ones in ``X~`` (mathematics, section 1).

    Parameters
    ----------
    storage : ColumnStorage
        The raw numbers, rows in task order.
    samples : Samples
    standardize : bool
        Divide every column, task by task, by its weighted standard deviation.
    unpenalised : array of int
        Columns of this shard that are nuisance: their products are never asked for.
    n_threads : int
    """

    def __init__(
        self, storage: ColumnStorage, samples: Samples, *, standardize: bool, unpenalised: Array, n_threads: int
    ) -> None:
        self.storage = storage
        self.samples = samples
        self.n_features = storage.n_features
        self.n_threads = n_threads
        self.standardize = standardize
        self.unpenalised = unpenalised
        #: full readings of this shard's data, in equivalents
        self.passes = 0.0
        self._scale: Array | None = None
        self._norms: Array | None = None
        self._dead: tuple[Array, Array] | None = None
        self._fragile = np.empty(0, dtype=np.int64)
        self._shelf: AnchorShelf | None = None
        #: relative rounding error of a correlation: |error| <= rounding * norm * ||r_t||
        self.rounding = 0.0

    def nuisance_loadings(self, features: Array) -> Array:
        """Coefficients of raw columns on the nuisance columns: (n_nuisance, len(features), n_tasks)."""
        out = np.empty((len(self.samples.solvers), len(features), self.samples.n_tasks))
        for z, row in enumerate(self.samples.solvers):
            out[z] = self._products(self.samples.weighted(row), features)
        return out

    # -- columns --------------------------------------------------------------------------------------------------

    def norms(self, features: Array | None = None) -> Array:
        """Norms of the columns of ``X~``, all or some, by tasks; a broadcast view where all tasks agree."""
        if self._norms is None:
            self._first_pass(None)
        assert self._norms is not None
        return self._norms if features is None else self._norms[features]

    @property
    def _distinct_norms(self) -> Array:
        norms = self.norms()
        return np.ascontiguousarray(norms[:, :1] if self.samples.uniform else norms)

    def longest(self) -> Array:
        """Largest norm of each feature over the tasks."""
        return np.max(self._distinct_norms, axis=1)

    @property
    def finite(self) -> bool:
        """Whether all norms are finite: not so if X holds NaN, infinity or numbers whose squares overflow."""
        return bool(np.isfinite(kernels.largest_magnitude(self._distinct_norms, self.n_threads)))

    def correlate(self, r: Array, features: Array | None = None) -> Array:
        """``<x~_jt, r_t>`` for all features or for some: (n_features or len(features), n_tasks)."""
        projected = self.samples.project(r)
        if features is None and self._norms is None:
            out = self._first_pass(projected)
        else:
            self.norms()
            self.passes += 1.0 if features is None else len(features) / max(self.n_features, 1)
            out = self._products(self.samples.weighted(projected), features)
        if len(self._fragile):
            chosen = self._fragile if features is None else np.flatnonzero(np.isin(features, self._fragile))
            for low in range(0, len(chosen), _TAKE_BLOCK):
                part = chosen[low : low + _TAKE_BLOCK]
                columns = self._centred(part if features is None else features[part])
                out[part] = self._packed_products(columns, projected)
        self._rescale(out, features)
        return out

    def take_with_loadings(self, features: Array) -> tuple[Array, Array]:
        """See `Design.take_with_loadings`."""
        self.norms()
        self.passes += len(features) / max(self.n_features, 1)
        columns, loadings = self._centred_with_loadings(features)
        if self._scale is None and self._dead is None:
            return columns, loadings
        factor = np.ones((len(features), self.samples.n_tasks))
        self._rescale(factor, features)
        if self.samples.uniform:
            columns *= factor[:, 0]
            return columns, loadings
        for t in range(self.samples.n_tasks):
            columns[self.samples.offsets[t] : self.samples.offsets[t + 1]] *= factor[:, t]
        return columns, loadings

    # -- anchors --------------------------------------------------------------------------------------------------

    def remember(self, vector: Array, penalty: Any) -> Array:
        """A full pass whose products stay here as an anchor; returns the exact gauges of all features."""
        products = self.correlate(vector)
        products[self.unpenalised] = 0.0
        if self._shelf is None:
            self._shelf = AnchorShelf(self._distinct_norms, self.samples.n_tasks, self.n_threads)
        self._shelf.store(products)
        return np.asarray(penalty.row_gauges(products))

    def forget(self, m: int) -> None:
        """Anchor m is not needed any more."""
        assert self._shelf is not None
        self._shelf.drop(m)

    def bound(self, vector: Anchored, penalty: Any, **ball: Any) -> tuple[Array, Array]:
        """See `AnchorShelf.bound`."""
        assert self._shelf is not None
        return self._shelf.bound(vector, penalty, **ball)

    def ball_bound(self, *arguments: Any) -> Array:
        """See `AnchorShelf.ball_bound`."""
        assert self._shelf is not None
        return self._shelf.ball_bound(*arguments)

    # -- how they are done ----------------------------------------------------------------------------------------

    def _products(self, vector: Array, features: Array | None, squares: bool = False) -> Array:
        count = self.n_features if features is None else len(features)
        threads = self._pass_threads(count)
        return self.storage.products(vector, self.samples.offsets, self.samples.shared, features, squares, threads)

    def _pass_threads(self, count: int) -> int:
        """Threads for a pass over some columns."""
        return self.n_threads if count * self.samples.n_samples > _SMALL_PASS else 1

    def _one_task_products(self, vector: Array, squares: bool = False) -> Array:
        """Products for the first task of a uniform design, which stand for all."""
        offsets = np.array([0, self.storage.n_rows])
        return self.storage.products(
            np.ascontiguousarray(vector[: self.storage.n_rows]), offsets, False, None, squares, self.n_threads
        )

    def _packed_products(self, columns: Array, vector: Array) -> Array:
        if self.samples.uniform:
            return columns.T @ vector.reshape(self.samples.n_tasks, -1).T
        out = np.empty((columns.shape[1], self.samples.n_tasks))
        for t in range(self.samples.n_tasks):
            rows = slice(self.samples.offsets[t], self.samples.offsets[t + 1])
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
        if self.samples.uniform:  # the first task stands for all
            n = self.storage.n_rows
            samples, offsets, shared, width = slice(0, n), np.array([0, n]), False, 1
        else:
            samples, offsets, shared = slice(None), self.samples.offsets, self.samples.shared
            width = self.samples.n_tasks
        columns = DenseStorage(raw)
        loadings = np.empty((len(self.samples.solvers), len(features), self.samples.n_tasks))
        for z, row in enumerate(self.samples.solvers):
            vector = np.ascontiguousarray(self.samples.weighted(row)[samples])
            loadings[z] = columns.products(vector, offsets, shared, None, False, 1)
        weights = np.ones(self.samples.n_samples) if self.samples.root_weights is None else self.samples.root_weights
        out = np.empty((int(offsets[-1]), len(features)), order="F")
        squares = np.empty((len(features), width))
        kernels.reweight(
            raw,
            offsets,
            shared,
            np.arange(len(features)),
            np.ascontiguousarray(weights[samples]),
            np.ascontiguousarray(self.samples.basis[:, samples]),
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
        root = self.samples.root_weights
        weights = np.ones(self.samples.n_samples) if root is None else np.square(root)
        vectors = [*self.samples.basis] if projected is None else [*self.samples.basis, projected]
        # Where X holds NaN or infinity so will its norms: for the caller to see, not to be warned of.
        with np.errstate(invalid="ignore", over="ignore"):
            if self.samples.shared or not vectors:
                measure = (
                    self._one_task_products if self.samples.uniform else lambda v, s=False: self._products(v, None, s)
                )
                raw = measure(weights, True)
                loadings = [measure(self.samples.weighted(column)) for column in self.samples.basis]
                self.passes += 1.0 + len(loadings)
                products = None
                if projected is not None:
                    products = self._products(self.samples.weighted(projected), None)
                    self.passes += 1.0
            else:
                weighted = np.stack([self.samples.weighted(vector) for vector in vectors])
                threads = self._pass_threads(self.n_features)
                raw, everything = self.storage.first_products(weights, weighted, self.samples.offsets, threads)
                self.passes += 1.0 if self.storage.reads_once else 1.0 + len(vectors)
                loadings = everything[: len(self.samples.basis)]
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
        longest = int(np.max(np.diff(self.samples.offsets))) if not self.samples.shared else self.storage.n_rows
        self.rounding = 4.0 * (longest + 8) * np.finfo(np.float64).eps
        if len(self.samples.basis):
            self.rounding *= _FRAGILE_RATIO
            low = squares < raw / _FRAGILE_RATIO**2
            self._fragile = np.flatnonzero(low.any(axis=1))
            for start in range(0, len(self._fragile), _TAKE_BLOCK):
                part = self._fragile[start : start + _TAKE_BLOCK]
                columns = self._centred(part)
                if self.samples.uniform:
                    squares[part] = np.sum(columns * columns, axis=0)[:, None]
                else:
                    squares[part] = np.add.reduceat(columns * columns, self.samples.offsets[:-1], axis=0).T
            # What is left of a constant column is rounding: it is zero.
            negligible = (64.0 * np.finfo(np.float64).eps) ** 2
            dead = squares[self._fragile] <= negligible * raw[self._fragile]
            if dead.any():
                squares[self._fragile] = np.where(dead, 0.0, squares[self._fragile])
                rows = dead.any(axis=1)
                mask = np.broadcast_to(dead[rows], (int(rows.sum()), self.samples.n_tasks))
                self._dead = (self._fragile[rows], mask)
        norms = np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares)
        if self.standardize:
            totals = np.sqrt(self.samples.task_sums(weights))
            totals = totals[:1] if self.samples.uniform else totals
            # A task without a single row has no deviations either.
            scale = np.divide(norms, totals, out=np.zeros_like(norms), where=totals > 0.0)
            scale[scale == 0.0] = 1.0
            norms = norms / scale
            self._scale = np.broadcast_to(scale, (self.n_features, self.samples.n_tasks))
        self._norms = np.broadcast_to(norms, (self.n_features, self.samples.n_tasks))

    def scale(self, features: Array) -> Array:
        """What columns were divided by (`standardize`)."""
        self.norms()
        assert self._scale is not None
        return self._scale[features]
