"""Columns that the solver has requested, packed in memory and kept along the path."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .._kernels import kernels
from .design import Design
from .shard import Centred

Array = np.ndarray[Any, Any]


class ColumnBlock:
    """Packed columns (Fortran order) and the layout of flat vectors with respect to them: where each task starts, and
    whether each uses all rows. `layout` changes when columns have been moved."""

    layout = 0
    least_work = 200_000  # multiplications of about 50 rows a task, for which threads are woken

    def __init__(self, x: Array, offsets: Array, shared: bool, n_threads: int) -> None:
        self._buffer = x
        self.offsets = offsets
        self.shared = shared
        self.n_tasks = len(offsets) - 1
        self.n_threads = n_threads

    @property
    def x(self) -> Array:
        return self._buffer

    def _threads(self, rows: Array) -> int:
        return self.n_threads if rows.size * 50 > self.least_work else 1

    def correlate(self, r: Array, positions: Array) -> Array:
        """``X' r`` on some columns: (len(positions), n_tasks)."""
        out = np.empty((len(positions), self.n_tasks))
        threads = self._threads(out)
        if self.shared:
            block = r.reshape(self.n_tasks, -1).T
            kernels.shared_products(self.x, positions, block, False, threads, out)
        else:
            kernels.segment_products(self.x, positions, r, self.offsets, False, threads, out)
        return out

    def norms_under(self, metric: Array, positions: Array) -> Array | None:
        """Norms of some columns with a factor for the square of each row: (len(positions), n_tasks)."""
        out = np.empty((len(positions), self.n_tasks))
        threads = self._threads(out)
        if self.shared:
            kernels.shared_products(self.x, positions, metric.reshape(self.n_tasks, -1).T, True, threads, out)
        else:
            kernels.segment_products(self.x, positions, metric, self.offsets, True, threads, out)
        return np.sqrt(out, out=out)

    def combine(self, positions: Array, rows: Array) -> Array:
        """``X W`` as a flat vector, for the given rows of W."""
        out = np.empty(int(self.offsets[-1]))
        threads = self._threads(rows)
        kernels.combine(self.x, self.offsets, self.shared, positions, np.ascontiguousarray(rows), threads, out)
        return out

    def combine_many(self, rows: Array) -> Array:
        """``X W`` of all columns for each of some W, (count, columns, tasks): flat vectors, one a row."""
        x, (count, _, n_tasks) = self.x, rows.shape
        if self.shared:
            return (rows.transpose(0, 2, 1).reshape(count * n_tasks, -1) @ x.T).reshape(count, -1)
        out = np.empty((count, len(x)))
        for t, (low, high) in enumerate(pairwise(self.offsets)):
            np.matmul(rows[:, :, t], x[low:high].T, out=out[:, low:high])
        return out

    def correlate_many(self, vectors: Array) -> Array:
        """``X' r`` of all columns for each of some flat vectors, one a row: (count, columns, tasks)."""
        x, count = self.x, len(vectors)
        if self.shared:
            return (vectors.reshape(-1, len(x)) @ x).reshape(count, self.n_tasks, -1).transpose(0, 2, 1)
        out = np.empty((count, x.shape[1], self.n_tasks))
        for t, (low, high) in enumerate(pairwise(self.offsets)):
            out[:, :, t] = vectors[:, low:high] @ x[low:high]
        return out


class PackedColumns(ColumnBlock):
    """A growing cache of columns of ``X~``: each is read from the data once while it stays in use."""

    def __init__(self, design: Design) -> None:
        self.design = design
        rows = design.n_rows if design.uniform else design.n_samples
        self._held = self._room(rows, 64)
        super().__init__(self._held.columns, design.offsets, design.uniform and design.n_tasks > 1, design.n_threads)
        self.features = np.empty(0, dtype=np.int64)
        self._position = np.full(design.n_features, -1, dtype=np.int64)
        self._gram = np.empty((1, 0, 0))  # with room for more columns
        self._known = 0  # columns whose inner products it has
        self._asked: Array | None = None
        self._answered = (0, np.empty(0, dtype=np.int64))

    def _room(self, rows: int, count: int) -> Centred:
        return Centred.empty(rows, count, self.design.n_tasks, len(self.design.nuisance_basis))

    @property
    def x(self) -> Array:
        return self._held.columns[:, : len(self.features)]

    @property
    def squared_norms(self) -> Array:
        return self._held.squares[: len(self.features)]

    def shifts(self, positions: Array) -> Array:
        """What was subtracted from the raw columns: (len(positions), n_tasks)."""
        return np.asarray(self._held.shifts[positions])

    def loadings(self, positions: Array) -> Array:
        """Coefficients of the shifted columns on the nuisance basis: (n_basis, len(positions), n_tasks)."""
        return self._held.loadings.take(positions, axis=1)

    def sizes(self, positions: Array) -> Array:
        """Norms of the shifted columns, before anything was projected out of them: (len(positions), n_tasks)."""
        return np.asarray(self._held.sizes[positions])

    def unread(self, features: Array) -> Array:
        """Those of some features that would have to be read."""
        return features[self._position[features] < 0]

    def positions(self, features: Array) -> Array:
        """Where these features lie in `x`, reading those that are missing; the last answer is kept."""
        if features is self._asked and self.layout == self._answered[0]:
            return self._answered[1]
        found = self._position[features]
        if len(found) and np.minimum.reduce(found) < 0:
            if len(self.features) > max(4096, 4 * len(features)):
                self._keep(features[found >= 0])
            self._append(features[found < 0])
            found = self._position[features]
        self._asked, self._answered = features, (self.layout, found)
        return found

    def _keep(self, features: Array) -> None:
        self._held.put(slice(len(features)), self._held, self._position[features])
        self._position[self.features] = -1
        self.features = features.copy()
        self._position[features] = np.arange(len(features))
        self._known = 0
        self.layout += 1

    def _append(self, features: Array) -> None:
        old, new = len(self.features), len(self.features) + len(features)
        rows, capacity = self._held.columns.shape
        if new > capacity:
            larger = self._room(rows, max(new, 2 * capacity))
            larger.put(slice(old), self._held, slice(old))
            self._held = larger
        self._held.put(slice(old, new), self.design.take(features))
        self._position[features] = np.arange(old, new)
        self.features = np.concatenate([self.features, features])

    def grams(self) -> Array:
        """``X~' X~`` of all packed columns of a uniform design (or a single task), in a matrix with room for more:
        (1, room, room). It grows as columns arrive."""
        known, total = self._known, len(self.features)
        if total > self._gram.shape[1]:
            room = max(total, known + known // 2)
            grown = np.empty((1, room, room))
            grown[0, :known, :known] = self._gram[0, :known, :known]
            self._gram = grown
        if known < total:
            x, gram = self.x, self._gram[0]
            gram[known:total, :total] = x[:, known:].T @ x
            gram[:known, known:total] = gram[known:total, :known].T
            self._known = total
        return self._gram

    def gram(self, positions: Array) -> Array:
        """That of some columns, a copy."""
        return self.grams()[0][np.ix_(positions, positions)]
