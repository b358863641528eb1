"""Columns in a cluster, as a design is given them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..samples import Samples
from ..storage.base import (
    ColumnStorage,
    ProductRequest,
    Reading,
    asked_by_part,
    empty_products,
    kept_type,
    part_read,
)
from ..storage.together import SharedReading
from .fleet import Asked, Fleet
from .messages import Question, Reply
from .shard import ClusterShard
from .sources import ColumnSource

Array = np.ndarray[Any, Any]


class SharedTrips(SharedReading):
    """For fits in step on columns in a cluster: a message to all workers has the requests of all fits, and one reading
    of a range there serves them."""

    def __init__(self, storage: Any, threads: int = 1) -> None:
        super().__init__(storage, threads)
        storage.shared = self

    def ask(self, request: Asked) -> dict[int, Reply]:
        """The answers of the shards to one fit."""
        found: dict[int, Reply] = self.serve([request])[0] if self.meet is None else self.meet(request)
        return found

    def serve(self, requests: Sequence[Asked]) -> list[dict[int, Reply]]:
        return list(self.storage.fleet.ask(requests))  # type: ignore[attr-defined]


class ClusterStorage(ColumnStorage):
    """Columns of a source, held by the workers of the active client from their first use on, rows in task order."""

    shard_class = ClusterShard
    wrapped_shard_class = ClusterShard
    shared_class = SharedTrips
    costly_reads = True
    #: what the fits of these data share that are solved in step
    shared: SharedTrips | None = None

    def __init__(self, source: ColumnSource, order: Array | None) -> None:
        self._source, self._order = source, order
        self.n_rows, self.n_features = source.shape
        self.dtype = kept_type(source.dtype)
        self._whole: Callable[[Array], Array] | None = None

    def keep_together(self, whole: Callable[[Array], Array]) -> None:
        """``whole(features)``: these and all others that must not be cut apart."""
        if "fleet" in vars(self):
            starts = self.fleet.starts[1:-1]
            if all(len(whole(np.arange(position))) == position for position in starts.tolist()):
                return
            del self.fleet, self._raw
        self._whole = whole

    @cached_property
    def fleet(self) -> Fleet:
        """Who holds the columns."""
        return Fleet(self._source, self._order, self._whole)

    @cached_property
    def _raw(self) -> ClusterShard:
        """A shard without centring or scaling, for raw products and columns."""
        samples = Samples(np.array([0, self.n_rows]), False, None, False, np.empty((self.n_rows, 0)))
        return ClusterShard(self, samples, standardize=False, unpenalised=np.empty(0, dtype=np.int64), n_threads=1)

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        parts = asked_by_part(asked, self.fleet.starts)
        own = {k: ([a for _, _, a in part],) for k, part in enumerate(parts) if part}
        products = empty_products(asked, self.n_features)
        for k, found in self._raw.ask(Question("read_raw", (), own))[0].items():
            for (m, positions, _), answer in zip(parts[k], found, strict=True):
                products[m][positions] = answer
        return Reading(products, part_read(asked, self.n_features))

    def take(self, features: Array) -> Array:
        def ask(missing: Array) -> None:
            self._raw.some("send", (), missing)

        return np.asarray(self.fleet.columns(np.asarray(features), ask), dtype=np.float64, order="F")
