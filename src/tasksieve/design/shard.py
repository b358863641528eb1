"""A shard: some features, and everything that is features x tasks about them.

The columns lie in a storage; norms, scales and remembered products (anchors) lie here, beside them, and never cross to
the engine. What crosses: vectors over samples inwards, plain vectors over features and a few packed columns outwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .anchored import Anchored, AnchorStore, plain_thresholds
from .row_metric import POINT, Cover, MetricRequest, Region
from .samples import Samples, centred
from .storage import ColumnStorage, ProductRequest

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
_PART = 1 << 20  # products of a full pass that are made at a time, where columns lie so that they can be
_ALL = slice(None)
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

    @classmethod
    def empty(cls, rows: int, count: int, tasks: int, n_basis: int) -> Centred:
        squares, shifts, sizes = (np.empty((count, tasks)) for _ in range(3))
        return cls(np.empty((rows, count), order="F"), squares, shifts, sizes, np.empty((n_basis, count, tasks)))

    def put(self, at: Any, part: Centred, of: Any = _ALL) -> None:
        """Some columns of another one here."""
        self.columns[:, at], self.loadings[:, at] = part.columns[:, of], part.loadings[:, of]
        self.squares[at], self.shifts[at], self.sizes[at] = part.squares[of], part.shifts[of], part.sizes[of]

    def divided(self, scale: Array, samples: Samples) -> Centred:
        """The columns divided by their scales, (columns, tasks), in their place."""
        factor = 1.0 / scale
        if samples.uniform:
            self.columns *= factor[:, 0]
        else:
            for t in range(samples.n_tasks):
                self.columns[samples.offsets[t] : samples.offsets[t + 1]] *= factor[:, t]
        squares, sizes = self.squares * factor**2, self.sizes * factor
        return Centred(self.columns, squares, self.shifts, sizes, self.loadings * factor)


def centred_columns(raw: Array, samples: Samples, n_threads: int) -> Centred:
    """Raw columns as `Centred` has them, unscaled."""
    n, root, offsets, shared, basis = len(raw), samples.root, samples.offsets, samples.shared, samples.basis
    if samples.uniform:  # the first task represents all
        offsets, shared, root = np.array([0, n]), False, root[:n]
        basis = np.ascontiguousarray(basis[:, :n])
    out, squares, shifts, loadings = centred(raw, offsets, shared, root, samples.fit_intercept, n_threads, basis)
    # What is left of a column that unpenalised features explain is rounding: for a solver it is zero. Certificates
    # bound what is lost by that (`NOISE`).
    whole = squares + np.add.reduce(np.square(loadings), axis=0)
    noise = (squares <= NOISE**2 * whole) & (squares > 0.0)
    if noise.any():
        for k, t in np.argwhere(noise):
            out[offsets[t] : offsets[t + 1], k] = 0.0
            squares[k, t] = 0.0
    return Centred(out, squares, shifts, np.sqrt(whole), loadings)


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
    #: whether bounds are made by combinations of anchors that are the same in all tasks, where these suffice
    joint_bounds = True

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
        # beside the columns, features x tasks, or features x 1 where all tasks agree
        self._scale: Any = None
        self._norms: Any = None
        self._largest: Array | None = None
        self._fragile = np.empty(0, dtype=np.int64)
        self._anchor_store: Any = None
        self._unshelved: list[Any] = []
        self._beside: Array | None = None  # another vector for the next full pass
        # a row metric whose norms the next reading of all columns is to measure; what a reading has found for one
        self._wanted_metric: Array | None = None
        self._metric_products: tuple[MetricRequest, list[Any]] | None = None
        #: relative rounding error of a correlation: |error| <= rounding * norm * ||r_t||
        self.rounding = 0.0

    def basis_loadings(self, features: Array) -> Array:
        """Products of raw weighted columns with the nuisance basis: (n_basis, len(features), n_tasks)."""
        out = np.empty((len(self.samples.basis), len(features), self.samples.n_tasks))
        for b, row in enumerate(self.samples.basis):
            out[b] = self._here(self._read([self._asked(self.samples.weighted(row), features)], counted=False)[0])
        return out

    # -- columns --------------------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Norms, scales, and which columns need care: in one reading of the data, unless they are known."""
        if not self.measured:
            self._first_pass(None)

    def norms(self, features: Array | None = None) -> Array:
        """Norms of the columns of ``X~``, all or some, by tasks; a broadcast view where all tasks agree."""
        self.measure()
        return self._by_task(self._norms, features)

    def scale(self, features: Array) -> Array:
        """What columns were divided by (`standardize`)."""
        self.measure()
        return self._by_task(self._scale, features)

    def _by_task(self, found: Any, features: Array | None) -> Array:
        chosen = self._here(found if features is None else found[self._there(features)])
        tasks = self.samples.n_tasks
        own = features is not None and chosen.shape[1] == tasks
        return chosen if own else np.broadcast_to(chosen, (len(chosen), tasks))

    def longest(self, features: Array | None = None) -> Array:
        """Largest norm of each feature, or of some, over the tasks."""
        if self._largest is None:
            self.measure()
            self._largest = self._here(self._widest())
        return self._largest if features is None else self._largest[features]

    def _widest(self) -> Any:
        return np.maximum.reduce(self._norms, axis=1)

    def norm_range(self) -> tuple[float, float]:
        """The least and the largest of these; not numbers if one of them is none."""
        longest = self.longest()
        return float(longest.min(initial=np.inf)), float(longest.max(initial=0.0))

    def touch(self, r: Array, features: Array) -> tuple[Array, Array]:
        """`correlate` and `norms` for some features."""
        return self.correlate(r, features), self.norms(features)

    def correlate(self, r: Array, features: Array | None = None) -> Array:
        """``<x~_jt, r_t>`` for all features or for some: (n_features or len(features), n_tasks)."""
        return self._here(self._correlations([r], features)[0])

    def _correlations(self, vectors: list[Array], features: Array | None = None) -> list[Any]:
        """The same, beside the columns, for several vectors in one reading."""
        projected = [self.samples.project(r) for r in vectors]
        if features is None and not self.measured and len(vectors) == 1:
            found = [self._first_pass(projected[0])]
        else:
            self.measure()
            read = self._read_all if features is None else self._read
            found = read([self._asked(self.samples.weighted(r), features) for r in projected])
        if len(self._fragile):
            chosen = self._fragile if features is None else np.flatnonzero(np.isin(features, self._fragile))
            for low in range(0, len(chosen), TAKE_BLOCK):
                part = chosen[low : low + TAKE_BLOCK]
                columns = self._centred(part if features is None else features[part]).columns
                for out, r in zip(found, projected, strict=True):
                    out[self._there(part)] = self._there(self._packed_products(columns, r))
        if self._scale is not None:
            for out in found:
                out /= self._scale if features is None else self._scale[self._there(features)]
        return found

    @property
    def measured(self) -> bool:
        """Whether the norms are known."""
        return self._norms is not None

    @property
    def has_fragile(self) -> bool:
        """Whether some columns are much smaller than their offsets."""
        self.measure()
        return bool(len(self._fragile))

    def take(self, features: Array) -> Centred:
        """Columns of ``X~``, packed, with what they were freed of."""
        self.measure()
        self.passes += self.storage.unread(features) / max(self.n_features, 1)
        found = self._centred(features)
        return found.divided(self.scale(features), self.samples) if self.standardize else found

    # -- anchors --------------------------------------------------------------------------------------------------

    def remember(self, vector: Array, penalty: Any, errors: Array | None = None) -> Array:
        """A full pass whose products stay here as an anchor; returns the gauges of all features, upper bounds where
        products of a column of norm 1 may be off by `errors`, task by task."""
        beside, self._beside = self._beside, None
        vectors = [vector] if beside is None else [vector, beside]
        if self._anchor_store is not None and self._parts and plain_thresholds(penalty) is not None:
            return self._remember_in_parts(vectors, penalty, errors)
        products, *more = self._penalised_correlations(vectors)
        gauges = self._here(self._gauges(products, penalty, errors))
        self._unshelved += [*more, products]
        if self._anchor_store is not None or self.n_features > _FEW_FEATURES:
            self._anchors()
        return gauges

    def _remember_in_parts(self, vectors: list[Array], penalty: Any, errors: Array | None) -> Array:
        """The same without an array of all products, which is larger than an anchor."""
        gauges, store = np.empty(self.n_features), self._anchors()
        lengths = [float(np.max(self.samples.task_norms(self.samples.project(r)))) for r in vectors]
        puts = [store.store_in_parts(length) for length in reversed(lengths)]
        for rows, own in self._parts:
            found = own._penalised_correlations(vectors)
            here = penalty.restrict(np.arange(rows.start, rows.stop))
            gauges[rows] = own._gauges(found[0], here, errors)
            for put, products in zip(puts, reversed(found), strict=True):
                put(rows, products)
        self.passes += 1.0
        return gauges

    @cached_property
    def _parts(self) -> list[tuple[slice, LocalShard]]:
        """This shard as several, one after the other, where what is features x tasks would be large."""
        width = max(_PART // max(self.samples.n_tasks, 1), 1)
        if self.n_features <= 2 * width or self.storage.part(slice(0, 1)) is None:
            return []
        found = []
        for low in range(0, self.n_features, width):
            rows = slice(low, min(low + width, self.n_features))
            free = self.unpenalised[(self.unpenalised >= rows.start) & (self.unpenalised < rows.stop)] - low
            stored = self.storage.part(rows)
            assert stored is not None
            part = LocalShard(
                stored,
                self.samples,
                standardize=self.standardize,
                unpenalised=free,
                n_threads=self.n_threads,
            )
            found.append((rows, part))
        return found

    def also_remember(self, vector: Array) -> None:
        """The next full pass makes another anchor, which comes before its own."""
        self._beside = vector

    def _penalised_correlations(self, vectors: list[Array]) -> list[Any]:
        """Those of all features; 0 for unpenalised ones, whose correlations are never used."""
        found = self._correlations(vectors)
        for products in found:
            if len(self.unpenalised):
                products[self._there(self.unpenalised)] = 0.0
        return found

    def error_gauges(self, errors: Array, penalty: Any) -> Array:
        """Gauges of such errors alone, for all features."""
        self.measure()
        return self._here(self._gauges(None, penalty, errors))

    def _gauges(self, products: Any, penalty: Any, errors: Array | None) -> Any:
        """Gauges of products, none: of the errors alone, a few features at a time: memory of the size of all products
        costs more to get than to fill."""
        out = np.empty(self.n_features)
        everything, pieces = np.arange(self.n_features), penalty.pieces(_GAUGED)
        for piece in pieces:
            own = penalty if len(pieces) == 1 else penalty.restrict(everything[piece])
            index = piece if isinstance(piece, slice) else self._there(piece)
            off = None if errors is None else self._here(self._norms[index]) * errors
            if products is None or off is None:
                out[piece] = own.row_gauges(off if products is None else self._here(products[index]))
            else:
                out[piece] = own.upper_gauges(self._here(products[index]), off)
        return self._there(out)

    def _anchors(self) -> Any:
        """Remembered products, created on first use: with few features they may never be needed."""
        if self._anchor_store is None:
            self._anchor_store = self._new_anchor_store()
        while self._unshelved:
            self._anchor_store.store(self._unshelved.pop(0))
        if self._metric_products is not None:
            (request, found), self._metric_products = self._metric_products, None
            self._anchor_store.keep_metric(*request.squares(found, self._norms, self._scale, self._there))
        return self._anchor_store

    def _new_anchor_store(self) -> Any:
        return AnchorStore(self._norms, self.samples.n_tasks, self.n_threads)

    def also_measure(self, metric: Array) -> None:
        """The next reading of all columns measures their norms under a row metric, too (`row_metric`), which `bound`
        uses from then on."""
        self._wanted_metric = metric

    def metric_norms(self, cover: Cover) -> Array:
        """Norms of all columns under row metrics that the measured one covers: upper bounds in single precision."""
        return self._here(self._anchors().metric_norms(cover))

    def forget(self, m: int) -> None:
        """Anchor m is not needed any more."""
        self._anchors().drop(m)

    def bound(
        self, vector: Anchored, penalty: Any, region: Region = POINT, note: bool = False
    ) -> tuple[Array, Array]:
        """See `AnchorStore.bound`."""
        estimate, upper = self._anchors().bound(vector, penalty, region, note)
        return estimate, upper

    def ball_bound(self, *arguments: Any) -> Array:
        """See `AnchorStore.ball_bound`."""
        return np.asarray(self._anchors().ball_bound(*arguments))

    # -- where the columns are: other machines have their own ---------------------------------------------------------

    def _there(self, array: Array) -> Any:
        """An array beside the columns."""
        return array

    def _here(self, found: Any) -> Array:
        """What was found there, as an array."""
        return np.asarray(found)

    def _rooted(self, squares: Any) -> Any:
        """Roots of numbers that rounding may have made negative, in their place."""
        return np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares)

    def _read(self, asked: list[ProductRequest], counted: bool = True) -> list[Any]:
        """Products for several vectors in one reading, beside the columns."""
        columns = asked[0].columns
        count = self.n_features if columns is None else len(columns)
        # a second thread is not worth waking for a small pass
        threads = self.n_threads if count * self.samples.n_samples > _SMALL_PASS else 1
        products, spent = self.storage.read(asked, threads)
        self.passes += spent if counted else 0.0
        return products

    # -- how they are done ----------------------------------------------------------------------------------------

    def _asked(self, vector: Array, features: Array | None = None, squares: bool = False) -> ProductRequest:
        return ProductRequest(vector, self.samples.offsets, self.samples.shared, features, squares)

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
        return centred_columns(self.storage.take(features), self.samples, self.n_threads)

    def _first_pass(self, projected: Array | None) -> Any:
        """Measures the columns, and returns raw products with a projected vector if one is given, in one reading of the
        data. A matrix shared by all tasks is measured once for all of them."""
        if self._parts and self._wanted_metric is None:
            return self._first_pass_in_parts(projected)
        samples, root = self.samples, self.samples.root_weights
        weights = np.ones(samples.n_samples) if root is None else np.square(root)
        asked = [self._asked(weights, squares=True), *(self._asked(samples.weighted(row)) for row in samples.basis)]
        if samples.uniform:  # the first task represents all
            n = self.storage.n_rows
            asked = [ProductRequest(a.vector[:n], np.array([0, n]), squares=a.squares) for a in asked]
        if projected is not None:
            asked.append(self._asked(samples.weighted(projected)))
        # Where X holds NaN or infinity so will its norms: for the caller to see, not to be warned of.
        with np.errstate(invalid="ignore", over="ignore"):
            raw, *loadings = self._read_all(asked)
            products = None if projected is None else loadings.pop()
            self._measure(raw, loadings, weights)
        return products

    def _first_pass_in_parts(self, projected: Array | None) -> Any:
        products = None if projected is None else np.empty((self.n_features, self.samples.n_tasks))
        for rows, own in self._parts:
            found = own._first_pass(projected)
            if products is not None:
                products[rows] = found
            if self._norms is None:
                self._norms = np.empty((self.n_features, own._norms.shape[1]))
                self._scale = np.empty_like(self._norms) if self.standardize else None
            self._norms[rows] = own._norms
            own._norms = self._norms[rows]
            if self.standardize:
                self._scale[rows] = own._scale
                own._scale = self._scale[rows]
        self._fragile = np.concatenate([rows.start + own._fragile for rows, own in self._parts])
        self.rounding = self._parts[0][1].rounding
        self.passes += 1.0
        return products

    def _read_all(self, asked: list[ProductRequest]) -> list[Any]:
        """Products of all columns; the same reading serves a row metric that is wanted."""
        metric, self._wanted_metric = self._wanted_metric, None
        if metric is None:
            return self._read(asked)
        request = MetricRequest(self.samples, metric, self._pass_rounding)
        found = self._read([*asked, *request.products()])
        self._metric_products = request, found[len(asked) :]
        return found[: len(asked)]

    @property
    def _pass_rounding(self) -> float:
        """Relative rounding error of the products of one reading."""
        return 4.0 * (self.samples.depth + 8) * _EPS

    def _measure(self, raw: Any, loadings: list[Any], weights: Array) -> None:
        """Norms, standard deviations, and the list of columns that need care, from the columns' squared lengths and
        their products with the nuisance basis. What rounding can have taken of a difference is added to the norms."""
        samples = self.samples
        squares = raw * 1.0 if loadings else raw  # a copy
        spread = squares  # what a standard deviation is made of: only the mean, the first of the basis, is taken off
        if self.standardize and loadings and not samples.fit_intercept:
            spread = raw
        elif self.standardize and len(loadings) > 1:
            spread = raw - loadings[0] * loadings[0]
        while loadings:  # each is freed as soon as it is used
            loading = loadings.pop()
            loading *= loading
            squares -= loading
        self.rounding = self._pass_rounding
        if len(samples.basis):
            lost = self.rounding * raw
            self.rounding *= FRAGILE_RATIO
            low = squares < raw / FRAGILE_RATIO**2
            self._fragile = np.flatnonzero(self._here(low.any(axis=1)))
            if self.standardize and spread is squares:
                spread = squares * 1.0
            squares += lost
            for start in range(0, len(self._fragile), TAKE_BLOCK):
                part = self._fragile[start : start + TAKE_BLOCK]
                found, positions, width = self._centred(part), self._there(part), squares.shape[1]
                whole = np.square(found.sizes)
                # Beside unpenalised features little may be left of a column, and that little is rounding.
                squares[positions] = self._there(np.maximum(found.squares, whole / FRAGILE_RATIO**2)[:, :width])
                if self.standardize:
                    spread[positions] = self._there(whole[:, :width])
        if self.standardize:
            totals = samples.task_sums(weights)[: squares.shape[1]]
            # A task without a single row has no deviations either.
            self._scale = self._rooted(spread / self._there(np.where(totals > 0.0, totals, 1.0)))
            self._scale[self._scale == 0.0] = 1.0
            squares = squares / (self._scale * self._scale)
        self._norms = self._rooted(squares)
