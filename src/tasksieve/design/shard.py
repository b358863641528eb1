"""A shard: some features, and everything that is features x tasks about them.

The columns lie in a storage; norms, scales and remembered products (anchors) lie here, beside them, and never cross to
the engine. What crosses: vectors over samples inwards, plain vectors over features and a few packed columns outwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._kernels import kernels
from .anchored import Anchored, AnchorStore
from .samples import Samples
from .storage import Asked, ColumnStorage

Array = np.ndarray[Any, Any]

# Columns whose spread is this much smaller than their size lose digits in products of raw columns: those few are
# shifted and centred explicitly instead. All others lose no more than this factor, which `rounding` has.
FRAGILE_RATIO = 1e3
_EPS = float(np.finfo(np.float64).eps)
#: of a column: so little left by projection is no more than rounding
NOISE = 64.0 * _EPS
_SMALL_PASS = 1_000_000  # products that are done before a second thread has started
_FEW_FEATURES = 1000  # so few that products not yet stored as anchors are no burden
_GAUGED = 4096  # features whose gauges are made together
TAKE_BLOCK = 512  # columns handled at a time where a block of them has to be centred explicitly


@dataclass
class Centred:
    """Columns without their offsets, ``x = shift + scale x^``, and without what nuisance columns explain of them,
    ``q x^ = x~ + U loadings``. Shifts are in the units of the data: stored coefficients meet them there, exactly.

    - `columns` (array, (rows, columns), Fortran order): ``x~``. One matrix per task, or weights that differ between
      tasks: as many rows as samples. Otherwise (`Samples.uniform`) the rows of the one matrix.
    - `squares`, `shifts`, `sizes` (arrays, (columns, tasks), or (columns, 1) where all tasks agree): ``||x~||^2``, the
      shifts, and the norms of ``q x^``.
    - `loadings`: array, (n_basis, columns, tasks or 1)
    """

    columns: Array
    squares: Array
    shifts: Array
    sizes: Array
    loadings: Array


class LocalShard:
    """Features in this process, seen in weighted and centred form,

        X~_t = (I - U_t U_t') diag(q_t) X_t        (`Samples`),

    which is never formed as a whole: the least-squares and the dual problem over penalised coefficients are the
    ordinary ones in ``X~`` (mathematics, section 1).

    - `storage`: The raw numbers, rows in task order.
    - `standardize`: Divide every column, task by task, by its weighted standard deviation.
    - `unpenalised`: Columns of this shard that are nuisance: their products are never requested.
    """

    #: whether a pass is so cheap that one may be made at every value (`path.cheap_passes`)
    cheap_passes = False

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
        self._largest: Array | None = None
        self._fragile = np.empty(0, dtype=np.int64)
        self._anchor_store: AnchorStore | None = None
        self._unshelved: list[Array] = []
        #: relative rounding error of a correlation: |error| <= rounding * norm * ||r_t||
        self.rounding = 0.0

    def basis_loadings(self, features: Array) -> Array:
        """Products of raw weighted columns with the nuisance basis: (n_basis, len(features), n_tasks)."""
        out = np.empty((len(self.samples.basis), len(features), self.samples.n_tasks))
        for b, row in enumerate(self.samples.basis):
            out[b] = self._products(self.samples.weighted(row), features)
        return out

    # -- columns --------------------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Norms, scales, and which columns need care: in one reading of the data, unless they are known."""
        if self._norms is None:
            self._first_pass(None)

    def norms(self, features: Array | None = None) -> Array:
        """Norms of the columns of ``X~``, all or some, by tasks; a broadcast view where all tasks agree."""
        self.measure()
        assert self._norms is not None
        return self._norms if features is None else self._norms[features]

    @property
    def _distinct_norms(self) -> Array:
        norms = self.norms()
        return np.ascontiguousarray(norms[:, :1] if self.samples.uniform else norms)

    def longest(self, features: Array | None = None) -> Array:
        """Largest norm of each feature, or of some, over the tasks."""
        if self._largest is None:
            self._largest = np.maximum.reduce(self._distinct_norms, axis=1)
        return self._largest if features is None else self._largest[features]

    def norm_range(self) -> tuple[float, float]:
        """The least and the largest of these; not numbers if one of them is none."""
        longest = self.longest()
        return float(longest.min(initial=np.inf)), float(longest.max(initial=0.0))

    def touch(self, r: Array, features: Array) -> tuple[Array, Array]:
        """`correlate` and `norms` for some features."""
        return self.correlate(r, features), self.norms(features)

    def correlate(self, r: Array, features: Array | None = None) -> Array:
        """``<x~_jt, r_t>`` for all features or for some: (n_features or len(features), n_tasks)."""
        projected = self.samples.project(r)
        if features is None and self._norms is None:
            out = self._first_pass(projected)
        else:
            self.measure()
            out = self._read([self._asked(self.samples.weighted(projected), features)])[0]
        if len(self._fragile):
            chosen = self._fragile if features is None else np.flatnonzero(np.isin(features, self._fragile))
            for low in range(0, len(chosen), TAKE_BLOCK):
                part = chosen[low : low + TAKE_BLOCK]
                columns = self._centred(part if features is None else features[part]).columns
                out[part] = self._packed_products(columns, projected)
        if self._scale is not None:
            out /= self._scale if features is None else self._scale[features]
        return out

    @property
    def measured(self) -> bool:
        """Whether the norms are known."""
        return self._norms is not None

    @property
    def fragile(self) -> Array:
        """Columns that are much smaller than their offsets."""
        self.measure()
        return self._fragile

    @property
    def has_fragile(self) -> bool:
        """Whether some columns are much smaller than their offsets."""
        self.measure()
        return bool(len(self._fragile))

    def take(self, features: Array) -> Centred:
        """See `Design.take_centred`."""
        self.measure()
        self.passes += self.storage.unread(features) / max(self.n_features, 1)
        found = self._centred(features)
        if not self.standardize:
            return found
        factor = 1.0 / self.scale(features)
        if self.samples.uniform:
            found.columns *= factor[:, 0]
        else:
            for t in range(self.samples.n_tasks):
                found.columns[self.samples.offsets[t] : self.samples.offsets[t + 1]] *= factor[:, t]
        squares, sizes = found.squares * factor**2, found.sizes * factor
        return Centred(found.columns, squares, found.shifts, sizes, found.loadings * factor)

    # -- anchors --------------------------------------------------------------------------------------------------

    def remember(self, vector: Array, penalty: Any, errors: Array | None = None) -> Array:
        """A full pass whose products stay here as an anchor; returns the gauges of all features: `Design.remember`."""
        products = self.correlate(vector)
        products[self.unpenalised] = 0.0
        gauges = self._gauges(products, penalty, errors)
        self._unshelved.append(products)
        if self._anchor_store is not None or self.n_features > _FEW_FEATURES:
            self._anchors()
        return gauges

    def error_gauges(self, errors: Array, penalty: Any) -> Array:
        """See `Design.error_gauges`."""
        return self._gauges(None, penalty, errors)

    def _gauges(self, products: Array | None, penalty: Any, errors: Array | None) -> Array:
        """Gauges of products, none: of the errors alone, a few features at a time: memory of the size of all products
        costs more to get than to fill."""
        norms, out = self.norms(), np.empty(self.n_features)
        everything, pieces = np.arange(self.n_features), penalty.pieces(_GAUGED)
        for piece in pieces:
            own = penalty if len(pieces) == 1 else penalty.restrict(everything[piece])
            if errors is None:
                assert products is not None
                out[piece] = own.row_gauges(products[piece])
            elif products is None:
                out[piece] = own.row_gauges(norms[piece] * errors)
            else:
                out[piece] = own.upper_gauges(products[piece], norms[piece] * errors)
        return out

    def _anchors(self) -> AnchorStore:
        """Remembered products, created on first use: with few features they may never be needed."""
        if self._anchor_store is None:
            self._anchor_store = AnchorStore(self._distinct_norms, self.samples.n_tasks, self.n_threads)
        while self._unshelved:
            self._anchor_store.store(self._unshelved.pop(0))
        return self._anchor_store

    def forget(self, m: int) -> None:
        """Anchor m is not needed any more."""
        self._anchors().drop(m)

    def bound(self, vector: Anchored, penalty: Any, **ball: Any) -> tuple[Array, Array]:
        """See `AnchorStore.bound`."""
        return self._anchors().bound(vector, penalty, **ball)

    def ball_bound(self, *arguments: Any) -> Array:
        """See `AnchorStore.ball_bound`."""
        return self._anchors().ball_bound(*arguments)

    # -- how they are done ----------------------------------------------------------------------------------------

    def _products(self, vector: Array, features: Array | None, squares: bool = False) -> Array:
        count = self.n_features if features is None else len(features)
        threads = self._pass_threads(count)
        return self.storage.products(vector, self.samples.offsets, self.samples.shared, features, squares, threads)

    def _pass_threads(self, count: int) -> int:
        """Threads for a pass over some columns."""
        return self.n_threads if count * self.samples.n_samples > _SMALL_PASS else 1

    def _asked(self, vector: Array, features: Array | None = None, squares: bool = False) -> Asked:
        return Asked(vector, self.samples.offsets, self.samples.shared, features, squares)

    def _read(self, asked: list[Asked]) -> list[Array]:
        """Products for several vectors in one reading, which is counted."""
        columns = asked[0].columns
        threads = self._pass_threads(self.n_features if columns is None else len(columns))
        products, spent = self.storage.read(asked, threads)
        self.passes += spent
        return products

    def _asked_of_one(self, vector: Array, squares: bool = False) -> Asked:
        """Products for the first task of a uniform design, the same for all."""
        n = self.storage.n_rows
        return Asked(np.ascontiguousarray(vector[:n]), np.array([0, n]), False, None, squares)

    def _packed_products(self, columns: Array, vector: Array) -> Array:
        if self.samples.uniform:
            return columns.T @ vector.reshape(self.samples.n_tasks, -1).T
        out = np.empty((columns.shape[1], self.samples.n_tasks))
        for t in range(self.samples.n_tasks):
            rows = slice(self.samples.offsets[t], self.samples.offsets[t + 1])
            out[:, t] = columns[rows].T @ vector[rows]
        return out

    def _centred(self, features: Array) -> Centred:
        """Columns as `Centred` has them, unscaled."""
        samples, raw = self.samples, self.storage.take(features)
        n, count, tasks = self.storage.n_rows, len(features), samples.n_tasks
        root, offsets, shared, basis = samples.root, samples.offsets, samples.shared, samples.basis
        if samples.uniform:  # the first task represents all
            offsets, shared, root, tasks = np.array([0, n]), False, root[:n], 1
            basis = np.ascontiguousarray(basis[:, :n])
        out = np.empty((int(offsets[-1]), count), order="F")
        squares, shifts = np.empty((count, tasks)), np.empty((count, tasks))
        flat = np.empty((len(basis) * count, tasks))
        threads = self.n_threads if raw.size > 100_000 else 1
        kernels.centre(
            raw, offsets, shared, root, basis, samples.fit_intercept, threads, out, squares, shifts, flat
        )
        # What is left of a column that unpenalised features explain is rounding: for a solver it is zero. Certificates
        # bound what is lost by that (`NOISE`).
        loadings = flat.reshape(len(basis), count, tasks)
        whole = squares + np.add.reduce(np.square(loadings), axis=0)
        noise = (squares <= NOISE**2 * whole) & (squares > 0.0)
        if noise.any():
            for k, t in np.argwhere(noise):
                out[offsets[t] : offsets[t + 1], k] = 0.0
                squares[k, t] = 0.0
        sizes = np.sqrt(whole)
        return Centred(out, squares, shifts, sizes, loadings)

    def _first_pass(self, projected: Array | None) -> Array:
        """Measures the columns, and returns raw products with a projected vector if one is given.

        All of it is one reading of the data; a matrix shared by all tasks is measured once for all of them, which costs
        next to nothing.
        """
        samples, root = self.samples, self.samples.root_weights
        weights = np.ones(samples.n_samples) if root is None else np.square(root)
        ask: Any = self._asked_of_one if samples.uniform else lambda vector, squares: self._asked(vector, None, squares)
        asked = [ask(weights, True), *(ask(samples.weighted(column), False) for column in samples.basis)]
        if projected is not None:
            asked.append(self._asked(samples.weighted(projected)))
        # Where X holds NaN or infinity so will its norms: for the caller to see, not to be warned of.
        with np.errstate(invalid="ignore", over="ignore"):
            raw, *loadings = self._read(asked)
            products = None if projected is None else loadings.pop()
            self._measure(raw, loadings, weights)
        return np.empty(0) if products is None else products

    def _measure(self, raw: Array, loadings: list[Array], weights: Array) -> None:
        """Norms, standard deviations, and the list of columns that need care.

        From the columns' squared lengths and their products with the nuisance basis. Norms are upper bounds: what
        rounding can have taken from a difference of squares is added to it.
        """
        squares = raw.copy() if loadings else raw
        spread = squares  # what a standard deviation is made of: only the mean, the first of the basis, is taken off
        if self.standardize and loadings and not self.samples.fit_intercept:
            spread = raw
        elif self.standardize and len(loadings) > 1:
            spread = raw - np.square(loadings[0])
        while loadings:  # each is freed as soon as it is used
            loading = loadings.pop()
            squares -= np.square(loading, out=loading)
        self.rounding = 4.0 * (self.samples.depth + 8) * _EPS
        if len(self.samples.basis):
            lost = self.rounding * raw
            self.rounding *= FRAGILE_RATIO
            low = squares < raw / FRAGILE_RATIO**2
            self._fragile = np.flatnonzero(low.any(axis=1))
            if self.standardize and spread is squares:
                spread = squares.copy()
            squares += lost
            for start in range(0, len(self._fragile), TAKE_BLOCK):
                part = self._fragile[start : start + TAKE_BLOCK]
                found = self._centred(part)
                whole = np.square(found.sizes)
                width = squares.shape[1]
                # Beside unpenalised features little may be left of a column, and that little is rounding.
                squares[part] = np.maximum(found.squares, whole / FRAGILE_RATIO**2)[:, :width]
                if self.standardize:
                    spread[part] = whole[:, :width]
        if self.standardize:
            totals = self.samples.task_sums(weights)
            totals = totals[:1] if self.samples.uniform else totals
            # A task without a single row has no deviations either.
            scale = np.sqrt(np.divide(spread, totals, out=np.zeros_like(spread), where=totals > 0.0))
            scale[scale == 0.0] = 1.0
            squares = squares / np.square(scale)
            self._scale = np.broadcast_to(scale, (self.n_features, self.samples.n_tasks))
        norms = np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares)
        self._norms = np.broadcast_to(norms, (self.n_features, self.samples.n_tasks))

    def scale(self, features: Array) -> Array:
        """What columns were divided by (`standardize`)."""
        self.measure()
        assert self._scale is not None
        return self._scale[features]
