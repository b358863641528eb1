"""One storage for several designs that are solved in step: folds, halves and permutations share a reading."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .base import ColumnStorage, ProductRequest, Reading, for_kernels
from .dense import DenseStorage

Array = np.ndarray[Any, Any]

_KEPT_BYTES = 256 << 20  # columns that were read are kept for the next readers

Request = Any  # of products: a sequence of `ProductRequest` and the number of threads


def shared_reading(storage: ColumnStorage, threads: int = 1) -> SharedReading:
    """For designs that are solved in step, as the storage would have it."""
    found: SharedReading = (storage.shared_class or SharedReading)(storage, threads)
    return found


class SharedReading(ColumnStorage):
    """A storage that several designs read (`reader`).

    Passes over all columns are batched (`meet`); columns that were read are cached for a while.

    - `threads`: For readings that several designs wait for: their own threads are idle meanwhile.
    - `meet`: Batches requests: ``meet(request)`` returns the answer of `serve`. None: each is served alone.
    - `spent`: Readings of the data by all of them, in equivalents.
    """

    def __init__(self, storage: ColumnStorage, threads: int = 1) -> None:
        self.storage, self._threads = storage, threads
        self.n_rows, self.n_features, self.dtype = storage.n_rows, storage.n_features, storage.dtype
        self.costly_reads, self.sparse, self.taken = storage.costly_reads, storage.sparse, storage.taken
        if storage.sparse:
            self.x = getattr(storage, "x")  # noqa: B009
        self.meet: Callable[[Request], Any] | None = None
        self.spent = 0.0
        self._lock = threading.Lock()
        # columns that were read, in places that are used in turn, and where each is; -1: nowhere
        self._most_kept = max(_KEPT_BYTES // (8 * max(self.n_rows, 1)), 1)
        self._kept = np.empty((self.n_rows, 0), order="F")
        self._kept_features = np.empty(0, dtype=np.int64)
        self._place = np.full(self.n_features, -1, dtype=np.int64)
        self._next = 0

    def reader(self) -> ColumnStorage:
        """The storage as the designs see it; columns that live elsewhere are not read through here."""
        return self if self.storage.shard_class is None else self.storage

    def serve(self, requests: Sequence[Request]) -> list[Any]:
        """One reading for all requests; each bears its share of the cost."""
        everything = [a for asked, _ in requests for a in asked]
        threads = max(threads for _, threads in requests)
        products, spent = self.storage.read(everything, threads if len(requests) == 1 else max(threads, self._threads))
        self.spent += spent
        answers = []
        for asked, _ in requests:
            answers.append(Reading(products[: len(asked)], spent / len(requests)))
            products = products[len(asked) :]
        return answers

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        if all(a.columns is not None for a in asked):
            # Columns of a sparse matrix are used where they lie, again and again: no reading of the data.
            return self.storage.read(asked, threads) if self.storage.sparse else self._read_some(asked, threads)
        request = asked, threads
        found: Reading = self.serve([request])[0] if self.meet is None else self.meet(request)
        return found

    def _read_some(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        """Products of a few columns, which folds request again and again as they come near their thresholds."""
        own, spent, products = self.taken or self.dtype, 0.0, []
        for a in asked:
            assert a.columns is not None
            columns, unread = self._columns(a.columns)
            # as they were: kernels for other types add up in another order
            block = DenseStorage(np.asfortranarray(columns, dtype=own if for_kernels(own) else None))
            products.append(block.products(a.vector, a.offsets, a.shared, None, a.squares, threads))
            spent += unread / max(self.storage.n_features, 1)
        return Reading(products, spent)

    def unread(self, features: Array) -> int:
        return int(np.count_nonzero(self._place[features] < 0))

    def take(self, features: Array) -> Array:
        return self._columns(features)[0]

    def take_rows(self, features: Array, rows: Array) -> Array:
        return self._columns(features, rows)[0]

    def _columns(self, features: Array, rows: Array | None = None) -> tuple[Array, int]:
        """Some columns, or some of their rows, and how many of them had to be read."""
        with self._lock:
            places = self._place[features]
            unknown = np.flatnonzero(places < 0)
            if not len(unknown):
                return _cut(self._kept, places, rows), 0
            missing, back = np.unique(features[unknown], return_inverse=True)
            found = self.storage.take(missing)
            self.spent += len(missing) / max(self.n_features, 1)
            out = _cut(found, back, rows)
            if len(unknown) < len(features):
                known = np.flatnonzero(places >= 0)
                fresh, out = out, np.empty((len(out), len(features)), order="F")
                out[:, unknown], out[:, known] = fresh, _cut(self._kept, places[known], rows)
            if len(missing) <= self._most_kept // 2 or len(missing) == 1:
                self._keep(missing, found)
        return out, len(missing)

    def _keep(self, features: Array, columns: Array) -> None:
        """Columns come into the next places; those that were there are forgotten."""
        known, end = self._kept.shape[1], self._next + len(features)
        if known < min(end, self._most_kept):
            larger = np.empty((self.n_rows, min(max(end, 2 * known, 64), self._most_kept)), order="F")
            larger[:, :known] = self._kept
            self._kept = larger
            more = np.full(larger.shape[1] - known, -1, dtype=np.int64)
            self._kept_features = np.concatenate([self._kept_features, more])
        places = np.arange(self._next, end) % self._most_kept
        before = self._kept_features[places]
        self._place[before[before >= 0]] = -1
        self._kept[:, places], self._kept_features[places], self._place[features] = columns, features, places
        self._next = end % self._most_kept


def _cut(columns: Array, chosen: Array, rows: Array | None) -> Array:
    """A copy of some columns, or of some of their rows."""
    found = columns.T.take(chosen, axis=0)
    return found.T if rows is None else found.take(rows, axis=1, mode="clip").T
