"""Rows that count several times: the classes of a task see the same rows, which lie in memory once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from .base import ColumnStorage, ProductRequest, Reading

Array = np.ndarray[Any, Any]


class RepeatedStorage(ColumnStorage):
    """Stacked tasks, each of them so many times in a row: task 0, task 0, ..., task 1, task 1, ...

    Products with the copies of a task are products of its rows with several vectors: one reading of the data.

    - `offsets` (array of int, shape (T + 1,)): Where each task starts among its rows.
    - `times` (array of int, shape (T,)): How often each task comes, at least once.
    """

    def __init__(self, storage: ColumnStorage, offsets: Array, times: Array) -> None:
        self._of, self._own_offsets = storage, np.ascontiguousarray(offsets, dtype=np.int64)
        lengths = np.diff(self._own_offsets)
        self.offsets = np.concatenate([[0], np.cumsum(np.repeat(lengths, times))]).astype(np.int64)
        starts = np.repeat(np.repeat(self._own_offsets[:-1], times), np.repeat(lengths, times))
        within = np.arange(self.offsets[-1]) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        self._rows = starts + within  # the row at each position
        first = np.cumsum(times) - times
        #: copy k of those tasks that have so many: their positions, their rows, and where the copy stands
        self._layers = []
        for k in range(int(np.max(times))):
            tasks = np.flatnonzero(times > k)
            copies = first[tasks] + k
            rows = np.concatenate([np.arange(*self._own_offsets[t : t + 2]) for t in tasks])
            positions = np.concatenate([np.arange(*self.offsets[c : c + 2]) for c in copies])
            self._layers.append((tasks, copies, rows, positions))
        self.n_rows, self.n_features = int(self.offsets[-1]), storage.n_features
        self.dtype, self.costly_reads = storage.dtype, storage.costly_reads
        #: where the columns live, it is there that rows are repeated
        self.shard_class = self.wrapped_shard_class = storage.wrapped_shard_class
        self.inner, self.around = storage, partial(RepeatedStorage, offsets=self._own_offsets, times=times)

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        inner: list[ProductRequest] = []
        answers: list[list[int]] = []  # for each vector, which of them serves each copy, or each part
        for a in asked:
            cut = self._by_copies if self._cut_by_copies(a) else self._by_parts
            answers.append(cut(a, inner))
        found, spent = self._of.read(inner, threads)
        products = []
        for a, served in zip(asked, answers, strict=True):
            out = np.empty((self.n_features if a.columns is None else len(a.columns), len(a.offsets) - 1))
            if self._cut_by_copies(a):
                for (tasks, copies, _, _), k in zip(self._layers, served, strict=True):
                    out[:, copies] = found[k][:, tasks]
            else:
                for part, k in enumerate(served):
                    out[:, part] = found[k][:, 0]
            products.append(out)
        return Reading(products, spent)

    def _cut_by_copies(self, a: ProductRequest) -> bool:
        return not a.shared and np.array_equal(a.offsets, self.offsets)

    def _by_copies(self, a: ProductRequest, inner: list[ProductRequest]) -> list[int]:
        """Adds a vector for each layer of copies; weights are the same for all of them: then one serves."""
        served: list[int] = []
        for _, _, rows, positions in self._layers:
            part = np.zeros(self._of.n_rows)
            part[rows] = a.vector[positions]
            known = served and np.array_equal(inner[served[0]].vector[rows], part[rows])
            if not known:
                inner.append(ProductRequest(part, self._own_offsets, False, a.columns, a.squares))
            served.append(served[0] if known else len(inner) - 1)
        return served

    def _by_parts(self, a: ProductRequest, inner: list[ProductRequest]) -> list[int]:
        """Adds a vector for each part of rows that are cut in any other way."""
        served = []
        for start, stop in pairwise(a.offsets.tolist()):
            rows = self._rows if a.shared else self._rows[start:stop]
            part = np.bincount(rows, a.vector[start:stop], minlength=self._of.n_rows)
            inner.append(ProductRequest(part, np.array([0, self._of.n_rows]), False, a.columns, a.squares))
            served.append(len(inner) - 1)
        return served

    def unread(self, features: Array) -> int:
        return self._of.unread(features)

    def take(self, features: Array) -> Array:
        return np.take(self._of.take(features).T, self._rows, axis=1).T
