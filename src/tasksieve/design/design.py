"""A design: shards of features, and the samples they share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from .anchored import Anchored
from .samples import Samples
from .shard import Centred, LocalShard
from .storage import ColumnStorage
from .storage.base import by_part
from .threads import thread_count

Array = np.ndarray[Any, Any]


class Design:
    """One data matrix per task, in weighted and centred form: what the engine sees of X.

    All that is features x tasks lives in the shards; here are vectors over samples, vectors over features, and the
    columns that were requested.

    Parameters
    ----------
    storage : ColumnStorage, or list of storages
        The raw numbers, rows in task order; several storages hold successive ranges of the features.
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
    blocks : array of int, optional
        Where each block of tasks starts, and the number of tasks: those of a block are classes of the same rows. By
        default all tasks are one block.
    """

    def __init__(
        self,
        storage: ColumnStorage | Sequence[ColumnStorage],
        offsets: Array,
        *,
        shared: bool = False,
        weights: Array | None = None,
        fit_intercept: bool = True,
        unpenalised: Array | None = None,
        standardize: bool = False,
        n_threads: int | None = None,
        blocks: Array | None = None,
    ) -> None:
        storages: list[Any] = list(storage) if isinstance(storage, list | tuple) else [storage]
        self.n_threads = thread_count() if n_threads is None else n_threads
        self._starts = np.array([0, *accumulate(part.n_features for part in storages)])
        self.n_features = int(self._starts[-1])
        self.n_rows = storages[0].n_rows
        self.unpenalised = (
            np.empty(0, dtype=np.int64) if unpenalised is None else np.asarray(unpenalised, np.int64)
        )
        columns = np.empty((self.n_rows, len(self.unpenalised)), order="F")
        if len(self.unpenalised):
            for part, own, here in self._cut_over(storages, self.unpenalised):
                columns[:, own] = part.take(here)
        self.samples = Samples(offsets, shared, weights, fit_intercept, columns)
        self.shards = [
            (part.shard_class or LocalShard)(
                part,
                self.samples,
                standardize=standardize,
                unpenalised=self._inside(k, self.unpenalised),
                n_threads=self.n_threads,
            )
            for k, part in enumerate(storages)
        ]
        self.offsets, self.shared = self.samples.offsets, shared
        self.n_tasks, self.n_samples = self.samples.n_tasks, self.samples.n_samples
        self.weights, self.root_weights = weights, self.samples.root_weights
        self.uniform, self.fit_intercept = self.samples.uniform, fit_intercept
        self.task_sums, self.per_sample = self.samples.task_sums, self.samples.per_sample
        self.project, self.nuisance_fit = self.samples.project, self.samples.nuisance_fit
        self.nuisance_columns = self.samples.nuisance_columns
        self.nuisance_shifts, self.means = self.samples.nuisance_shifts, self.samples.means
        self.nuisance_basis, self.n_nuisance = self.samples.basis, self.samples.n_nuisance
        self.nuisance_sizes, self.independence = self.samples.nuisance_sizes, self.samples.independence
        self.coefficients, self.exact_products = self.samples.coefficients, self.samples.exact_products
        self.blocks = np.array([0, self.n_tasks]) if blocks is None else np.asarray(blocks, np.int64)
        self.standardize = standardize
        self._longest: Array | None = None

    # -- which shard ----------------------------------------------------------------------------------------------

    def _inside(self, k: int, features: Array) -> Array:
        """Those of some features that lie in shard k, as it counts them."""
        if len(self._starts) == 2:
            return features
        low, high = self._starts[k], self._starts[k + 1]
        return features[(features >= low) & (features < high)] - low

    def _cut_over(self, parts: Sequence[Any], features: Array) -> list[tuple[Any, Any, Array]]:
        """(part, positions in `features`, features as that part counts them), for parts that are concerned."""
        if len(parts) == 1:
            return [(parts[0], slice(None), features)]
        cut = by_part(self._starts, features)
        return [(part, own, here) for part, (own, here) in zip(parts, cut, strict=True) if len(own)]

    def _gather(self, features: Array, width: int, query: Any) -> Array:
        """``query(shard, features)`` for some features, put together in their order: (len(features), width)."""
        if len(self.shards) == 1:
            return np.asarray(query(self.shards[0], features))
        out = np.empty((len(features), width))
        for shard, own, here in self._cut_over(self.shards, features):
            out[own] = query(shard, here)
        return out

    def _everywhere(self, query: Any) -> Array:
        """``query(shard, its part of a vector over features)``, one after another."""
        if len(self.shards) == 1:
            return np.asarray(query(self.shards[0], None))
        cuts = zip(self._starts[:-1], self._starts[1:], strict=True)
        ranges = [np.arange(low, high) for low, high in cuts]
        return np.concatenate([query(shard, own) for shard, own in zip(self.shards, ranges, strict=True)])

    @staticmethod
    def _of(penalty: Any, features: Array | None) -> Any:
        return penalty if features is None else penalty.restrict(features)

    # -- requests to the shards -----------------------------------------------------------------------------------

    @property
    def passes(self) -> float:
        """Full readings of the data, in equivalents."""
        if len(self.shards) == 1:
            return self.shards[0].passes
        sizes = np.diff(self._starts)
        read = sum(shard.passes * size for shard, size in zip(self.shards, sizes, strict=True))
        return float(read) / max(self.n_features, 1)

    @property
    def rounding(self) -> float:
        """Relative rounding error of a correlation: |error| <= rounding * norm * ||r_t||."""
        return max(shard.rounding for shard in self.shards)

    @property
    def finite(self) -> bool:
        """Whether all norms are finite: not so if X holds NaN, infinity or numbers whose squares overflow."""
        return math.isfinite(self.norm_range()[1])

    def norms(self, features: Array | None = None) -> Array:
        """Norms of the columns of ``X~``, all or some, by tasks."""
        if features is None:
            return self._everywhere(lambda shard, _: shard.norms())
        return self._gather(features, self.n_tasks, lambda shard, here: shard.norms(here))

    def longest(self, features: Array | None = None) -> Array:
        """Largest norm of each feature, or of some, over the tasks."""
        if len(self.shards) == 1:
            return np.asarray(self.shards[0].longest(features))
        if self._longest is None:
            self._longest = self._everywhere(lambda shard, _: shard.longest())
        return self._longest if features is None else self._longest[features]

    def norm_range(self) -> tuple[float, float]:
        """The least and the largest of these."""
        if len(self.shards) == 1:
            return self.shards[0].norm_range()
        least, largest = np.array([shard.norm_range() for shard in self.shards]).T
        return float(np.min(least)), float(np.max(largest))

    def correlate(self, r: Array, features: Array | None = None) -> Array:
        """``<x~_jt, r_t>`` for all features or for some: (n_features or len(features), n_tasks)."""
        if features is None:
            return self._everywhere(lambda shard, _: shard.correlate(r))
        return self._gather(features, self.n_tasks, lambda shard, here: shard.correlate(r, here))

    def touch(self, r: Array, features: Array) -> tuple[Array, Array]:
        """`correlate` and `norms` for some features."""
        return self.correlate(r, features), self.norms(features)

    def remember(self, vector: Array, penalty: Any, errors: Array | None = None) -> Any:
        """A full pass: the vector becomes an anchor of every shard. Returns the gauges of all features, upper bounds
        where products of a column of norm 1 may be off by `errors`, task by task: an array, or what a remote shard
        has instead (`FarGauges`)."""
        if len(self.shards) == 1:
            return self.shards[0].remember(vector, penalty, errors)
        return self._everywhere(lambda shard, own: shard.remember(vector, self._of(penalty, own), errors))

    def error_gauges(self, errors: Array, penalty: Any) -> Array:
        """Gauges of such errors alone, for all features."""
        return self._everywhere(lambda shard, own: shard.error_gauges(errors, self._of(penalty, own)))

    def forget(self, m: int) -> None:
        """Anchor m is not needed any more."""
        for shard in self.shards:
            shard.forget(m)

    def bound(self, vector: Anchored, penalty: Any, **ball: Any) -> tuple[Array, Array]:
        """Estimates and upper bounds of all gauges, from the anchors alone: see `AnchorStore.bound`."""
        if len(self.shards) == 1:
            return self.shards[0].bound(vector, penalty, **ball)
        both = self._everywhere(
            lambda shard, own: np.stack(shard.bound(vector, self._of(penalty, own), **ball), axis=1)
        )
        return both[:, 0].copy(), both[:, 1].copy()

    def ball_bound(
        self, first: Anchored, centre: Anchored, coefs: tuple[float, float], penalty: Any, radius: float
    ) -> Array:
        """The same for a ball on the line from the vector noted last to the first anchor: `AnchorStore.ball_bound`."""
        return self._everywhere(
            lambda shard, own: shard.ball_bound(first, centre, coefs, self._of(penalty, own), radius)
        )

    def take(self, features: Array) -> Centred:
        """Columns of ``X~``, packed, with what they were freed of."""
        if len(self.shards) == 1:
            return self.shards[0].take(features)
        rows = self.n_rows if self.uniform else self.n_samples
        wide = (len(features), self.n_tasks)
        out = Centred(
            np.empty((rows, len(features)), order="F"),
            np.empty(wide),
            np.empty(wide),
            np.empty(wide),
            np.empty((len(self.nuisance_basis), *wide)),
        )
        for shard, own, here in self._cut_over(self.shards, features):
            part = shard.take(here)
            out.columns[:, own], out.loadings[:, own] = part.columns, part.loadings
            out.squares[own], out.shifts[own], out.sizes[own] = part.squares, part.shifts, part.sizes
        return out

    @property
    def scale(self) -> Array | None:
        """What columns were divided by, (n_features, n_tasks); None without `standardize`."""
        if not self.standardize:
            return None
        return self._gather(np.arange(self.n_features), self.n_tasks, lambda shard, here: shard.scale(here))

    def original_units(self, features: Array, rows: Array) -> Array:
        """Coefficients of the raw columns, given those of the scaled ones."""
        if not self.standardize:
            return rows
        return rows / self._gather(features, self.n_tasks, lambda shard, here: shard.scale(here))

    def scaled_units(self, features: Array, rows: Array) -> Array:
        """Coefficients of the scaled columns, given those of the raw ones."""
        if not self.standardize:
            return rows
        return rows * self._gather(features, self.n_tasks, lambda shard, here: shard.scale(here))

    @property
    def note(self) -> str:
        """What a user should know about how the columns are read; empty if there is nothing."""
        return str(getattr(self.shards[0], "note", ""))

    @property
    def sparse(self) -> bool:
        """Whether columns are better used where they lie than packed (`SparseColumns`)."""
        return len(self.shards) == 1 and self.shards[0].storage.sparse and not self.shards[0].has_fragile
