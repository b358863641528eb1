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
        self.costly_reads, self.sparse = storage.costly_reads, storage.sparse
        if storage.sparse:
            self.x = getattr(storage, "x")  # noqa: B009
        self.meet: Callable[[Request], Any] | None = None
        self.spent = 0.0
        self._lock = threading.Lock()
        self._kept: dict[int, Array] = {}  # oldest first

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
        own, spent, products = self.storage.taken or self.storage.dtype, 0.0, []
        for a in asked:
            assert a.columns is not None
            columns, unread = self._columns(a.columns)
            # as they were: kernels for other types add up in another order
            block = DenseStorage(np.asfortranarray(columns, dtype=own if for_kernels(own) else None))
            products.append(block.products(a.vector, a.offsets, a.shared, None, a.squares, threads))
            spent += unread / max(self.storage.n_features, 1)
        return Reading(products, spent)

    def unread(self, features: Array) -> int:
        return sum(int(j) not in self._kept for j in features)

    def take(self, features: Array) -> Array:
        return self._columns(features)[0]

    def _columns(self, features: Array) -> tuple[Array, int]:
        """Some columns, and how many of them had to be read."""
        n_rows, wanted = self.storage.n_rows, [int(j) for j in features]
        with self._lock:
            missing = list(dict.fromkeys(j for j in wanted if j not in self._kept))
            found = np.empty((n_rows, 0)) if not missing else self.storage.take(np.array(missing, dtype=np.int64))
            self.spent += len(missing) / max(self.storage.n_features, 1)
            if len(missing) == len(wanted):  # nothing of it was known
                out = found
            else:
                positions = {j: k for k, j in enumerate(missing)}
                out = np.empty((n_rows, len(wanted)), order="F")
                for k, j in enumerate(wanted):
                    out[:, k] = found[:, positions[j]] if j in positions else self._kept[j]
            if found.nbytes <= _KEPT_BYTES // 2:
                for k, j in enumerate(missing):
                    self._kept[j] = found[:, k].copy()
                while len(self._kept) * n_rows * 8 > _KEPT_BYTES:
                    del self._kept[next(iter(self._kept))]
        return out, len(missing)
