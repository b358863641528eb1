"""A design: features in a shard, and the samples they share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .samples import Samples
from .shard import Centred, LocalShard
from .storage import BesideStorage, ColumnStorage
from .threads import thread_count

Array = np.ndarray[Any, Any]


class Design:
    """One data matrix per task, in weighted and centred form: what the engine sees of X.

    All that is features x tasks lives in the shard; here are vectors over samples, vectors over features, and the
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
        self.n_threads = thread_count() if n_threads is None else n_threads
        whole: Any = BesideStorage(storage) if isinstance(storage, list | tuple) else storage
        self.n_rows, self.n_features = whole.n_rows, whole.n_features
        self.unpenalised = np.asarray([] if unpenalised is None else unpenalised, dtype=np.int64)
        columns = whole.take(self.unpenalised) if len(self.unpenalised) else np.empty((self.n_rows, 0))
        self.samples = Samples(offsets, shared, weights, fit_intercept, columns)
        self.shard: Any = (whole.shard_class or LocalShard)(
            whole,
            self.samples,
            standardize=standardize,
            unpenalised=self.unpenalised,
            n_threads=self.n_threads,
        )
        self._set_samples(self.samples)
        self.blocks = np.array([0, self.n_tasks]) if blocks is None else np.asarray(blocks, np.int64)
        self.standardize = standardize

    def _set_samples(self, samples: Samples) -> None:
        """What is asked of the samples is asked of the design."""
        self.samples = samples
        self.offsets, self.shared = samples.offsets, samples.shared
        self.n_tasks, self.n_samples = samples.n_tasks, samples.n_samples
        self.weights, self.root_weights = samples.weights, samples.root_weights
        self.uniform, self.fit_intercept = samples.uniform, samples.fit_intercept
        self.task_sums, self.task_norms, self.per_sample = samples.task_sums, samples.task_norms, samples.per_sample
        self.project, self.nuisance_fit = samples.project, samples.nuisance_fit
        self.nuisance_columns = samples.nuisance_columns
        self.nuisance_shifts, self.means = samples.nuisance_shifts, samples.means
        self.nuisance_basis, self.n_nuisance = samples.basis, samples.n_nuisance
        self.nuisance_sizes, self.independence = samples.nuisance_sizes, samples.independence
        self.coefficients, self.exact_products = samples.coefficients, samples.exact_products

    @property
    def passes(self) -> float:
        """Full readings of the data, in equivalents."""
        return float(self.shard.passes)

    @property
    def rounding(self) -> float:
        """Relative rounding error of a correlation: |error| <= rounding * norm * ||r_t||."""
        return float(self.shard.rounding)

    @property
    def finite(self) -> bool:
        """Whether all norms are finite: not so if X holds NaN, infinity or numbers whose squares overflow."""
        return math.isfinite(self.norm_range()[1])

    def norms(self, features: Array | None = None) -> Array:
        """Norms of the columns of ``X~``, all or some, by tasks."""
        return np.asarray(self.shard.norms(features))

    def longest(self, features: Array | None = None) -> Array:
        """Largest norm of each feature, or of some, over the tasks."""
        return np.asarray(self.shard.longest(features))

    def norm_range(self) -> tuple[float, float]:
        """The least and the largest of these."""
        least, largest = self.shard.norm_range()
        return least, largest

    def correlate(self, r: Array, features: Array | None = None) -> Array:
        """``<x~_jt, r_t>`` for all features or for some: (n_features or len(features), n_tasks)."""
        return np.asarray(self.shard.correlate(r, features))

    def take(self, features: Array) -> Centred:
        """Columns of ``X~``, packed, with what they were freed of."""
        found: Centred = self.shard.take(features)
        return found

    @property
    def scale(self) -> Array | None:
        """What columns were divided by, (n_features, n_tasks); None without `standardize`."""
        return np.asarray(self.shard.scale(np.arange(self.n_features))) if self.standardize else None

    def original_units(self, features: Array, rows: Array) -> Array:
        """Coefficients of the raw columns, given those of the scaled ones."""
        return rows / self.shard.scale(features) if self.standardize else rows

    def scaled_units(self, features: Array, rows: Array) -> Array:
        """Coefficients of the scaled columns, given those of the raw ones."""
        return rows * self.shard.scale(features) if self.standardize else rows

    @property
    def note(self) -> str:
        """What a user should know about how the columns are read; empty if there is nothing."""
        return str(getattr(self.shard, "note", ""))

    @property
    def sparse(self) -> bool:
        """Whether columns are better used where they lie than packed (`SparseColumns`)."""
        return bool(self.shard.storage.sparse and not self.shard.has_fragile)
