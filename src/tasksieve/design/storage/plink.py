"""Genotypes at 2 bits a call, as PLINK 1 keeps them in a .bed file: four calls a byte, one variant after another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._kernels import kernels
from .base import LARGE, ColumnStorage, ProductRequest

Array = np.ndarray[Any, Any]

_COUNTED = 1 << 22  # counts made at a time while looking for missing calls
_MANY = 4  # more vectors than this over all rows are worth decoding a column for


class PlinkStorage(ColumnStorage):
    """Counts of each variant's first allele: 0, 1, 2; a missing call is the mean of its task's called rows.

    The mean over a task ``t`` of the data set, not over the rows that a fold or a weight leaves:

        x_ij = m_jt,  m_jt = mean of x_kj over the rows k of task t with a call,

    without decoding. Where a task has no call at all, m_jt is the mean over all rows; where no row has one it is 0.

    - `packed` (uint8 array of shape (variants, bytes), C order): In memory or mapped from a file: (n_rows + 3) / 4
      bytes of each variant, rows in task order.
    - `offsets` (array of int, shape (T + 1,)): Where each task starts.
    - `columns`: The features, in their order: which variants they are. By default all.
    - `threads`: For the one reading that looks for missing calls.
    """

    dtype = np.dtype(np.int8)

    def __init__(
        self, packed: Array, n_rows: int, offsets: Array, columns: Array | None = None, threads: int = 1
    ) -> None:
        self.costly_reads = isinstance(packed, np.memmap) or packed.nbytes >= LARGE
        self.packed = packed.view(np.ndarray)
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self._columns = None if columns is None else np.ascontiguousarray(columns, dtype=np.int64)
        self.n_rows, self.n_features = n_rows, len(packed) if columns is None else len(columns)
        self._hole_of, self._means = self._find_holes(threads)
        if self._hole_of is not None:
            self.taken = np.dtype(np.float64)

    @property
    def nbytes(self) -> int:
        """Bytes in memory or in the file, and fill values of missing calls."""
        return int(self.packed.nbytes + self._means.nbytes + (0 if self._hole_of is None else self._hole_of.nbytes))

    def _find_holes(self, threads: int) -> tuple[Array | None, Array]:
        """For each variant its row in a table of means, or -1; and that table, a column a task."""
        tasks, found = len(self.offsets) - 1, []
        hole_of = np.full(len(self.packed), -1, dtype=np.int64)
        step, total = max(1, _COUNTED // (3 * max(tasks, 1))), 0
        for low in range(0, self.n_features, step):
            own = self._positions(np.arange(low, min(low + step, self.n_features)))
            counts = self._counts(own, threads)
            holes = np.flatnonzero(counts[:, :, 2].any(axis=1))
            hole_of[own[holes]] = total + np.arange(len(holes))
            total += len(holes)
            found.append(self._mean(counts[holes]))
        means = np.concatenate(found) if total else np.empty((0, tasks))
        return (hole_of if total else None), np.ascontiguousarray(means)

    def _positions(self, features: Array) -> Array:
        return np.ascontiguousarray(features if self._columns is None else self._columns[features], dtype=np.int64)

    def _counts(self, positions: Array, threads: int) -> Array:
        out = np.empty((len(positions), len(self.offsets) - 1, 3), dtype=np.int32)
        kernels.genotype_counts(self.packed, self.n_rows, positions, self.offsets, threads, out)
        return out

    def _mean(self, counts: Array) -> Array:
        copies = 2.0 * counts[:, :, 0] + counts[:, :, 1]
        called = np.diff(self.offsets) - counts[:, :, 2]
        overall, rows = copies.sum(axis=1), called.sum(axis=1)
        mean = np.divide(overall, rows, out=np.zeros(len(counts)), where=rows > 0)
        return np.divide(copies, called, out=np.repeat(mean[:, None], counts.shape[1], axis=1), where=called > 0)

    def counts(self, features: Array, threads: int = 1) -> Array:
        """Calls of 2 copies, of 1 copy, and missing ones: (features, tasks, 3)."""
        return self._counts(self._positions(features), threads)

    def fills(self, features: Array) -> Array:
        """Fill values of missing calls, used or not: (features, tasks)."""
        return self._mean(self.counts(features))

    def _together(self, asked: list[ProductRequest], threads: int) -> list[Array]:
        """Products of the same columns with several vectors, in one reading but for very many."""
        columns = asked[0].columns
        positions = self._columns if columns is None else self._positions(columns)
        count = self.n_features if columns is None else len(columns)
        wide = [a.shared and len(a.offsets) - 1 > _MANY and len(self.offsets) == 2 for a in asked]
        vectors: list[tuple[bool, int, Array]] = []  # with squares, whose, over all rows
        for k, a in enumerate(asked):
            if not wide[k]:
                vectors += [(a.squares, k, vector) for vector in self._cut(a)]
        order = sorted(range(len(vectors)), key=lambda m: not vectors[m][0])
        found = [np.empty((count, len(self.offsets) - 1)) for _ in vectors]
        if vectors:
            kernels.genotype_products(
                self.packed, self.n_rows, self._hole_of, self._means, positions,
                [vectors[m][2] for m in order], sum(squares for squares, _, _ in vectors), self.offsets, threads,
                [found[m] for m in order],
            )  # fmt: skip
        answers = []
        for k, a in enumerate(asked):
            own = [found[m] for m, (_, whose, _) in enumerate(vectors) if whose == k]
            answers.append(self._wide(a, positions, count, threads) if wide[k] else self._joined(a, own))
        return answers

    def _wide(self, a: ProductRequest, positions: Array | None, count: int, threads: int) -> Array:
        out = np.empty((count, len(a.offsets) - 1))
        kernels.genotype_shared_products(
            self.packed, self.n_rows, self._hole_of, self._means, positions,
            a.vector.reshape(-1, self.n_rows).T, a.squares, threads, out,
        )  # fmt: skip
        return out

    def _whole_tasks(self, offsets: Array) -> bool:
        """Whether parts are tasks, or several tasks each."""
        return bool(np.isin(offsets, self.offsets).all())

    def _cut(self, a: ProductRequest) -> list[Array]:
        """Vectors over all rows whose products, task by task, add up to what is requested."""
        parts = zip(a.offsets[:-1].tolist(), a.offsets[1:].tolist(), strict=True)
        if a.shared:
            return [a.vector[start:stop] for start, stop in parts]
        if np.array_equal(a.offsets, self.offsets) or self._whole_tasks(a.offsets):
            return [a.vector]
        vectors = []
        for start, stop in parts:
            vector = np.zeros(self.n_rows)
            vector[start:stop] = a.vector[start:stop]
            vectors.append(vector)
        return vectors

    def _joined(self, a: ProductRequest, found: list[Array]) -> Array:
        if not a.shared and np.array_equal(a.offsets, self.offsets):
            return found[0]
        if a.shared or not self._whole_tasks(a.offsets):
            return np.stack([own.sum(axis=1) for own in found], axis=1)
        firsts = np.searchsorted(self.offsets, a.offsets)
        parts = zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True)
        return np.stack([found[0][:, start:stop].sum(axis=1) for start, stop in parts], axis=1)

    def take(self, features: Array) -> Array:
        out = np.empty((self.n_rows, len(features)), order="F")
        kernels.genotype_columns(
            self.packed, self.n_rows, self._hole_of, self._means, self._positions(features), self.offsets, 1, out
        )
        return out
