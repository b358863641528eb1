"""Moments of rows that come in blocks: tall data are read once, and never held as a whole.

The rows of a task are shifted by about their means: those of its first block, unless a shift is given. What a bad shift
costs is in the certificate, which measures columns as they were summed; `Gathered.well_centred` says if it matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._kernels import kernels
from .moments import Moments, panel_diagonal, panels_to_square, square_to_panels
from .samples import Samples
from .storage.base import kept_type

Array = np.ndarray[Any, Any]

BLOCK_BYTES = 16 << 20  # of the rows that are shifted and summed at a time
_FIRST_ROWS = 1024  # of the only task: enough to know about where its columns lie
_FAR = 100.0  # squares of columns about their shifts, to squares about their means: digits that the certificate misses


def block_rows(width: int) -> int:
    """How many rows of so many numbers are taken at a time."""
    return max(1, BLOCK_BYTES // (8 * width))


def stable_order(cells: Array, count: int) -> Array:
    """The permutation that sorts numbers below some count; in two bytes they are sorted without comparisons."""
    return np.argsort(cells.astype(np.uint16) if count <= 1 << 16 else cells, kind="stable")


def about(rows: Array) -> Array:
    """About the mean of each column; of a constant column exactly its value."""
    first = rows[:1].astype(np.float64)
    return np.asarray(first[0] + (rows - first).mean(axis=0))


def _columns(rows: Array) -> list[Array]:
    """The columns of a matrix, each in one piece: as they are, where they lie so."""
    kind = kept_type(rows.dtype)
    if rows.dtype == kind and rows.strides[0] == rows.itemsize:
        return list(rows.T)
    return list(np.ascontiguousarray(rows.T, dtype=kind))


class RowSums:
    """Sums over the rows of tasks that have a matrix each, cut into folds.

    - `shift`: False: sums of the columns as they are, for models without intercepts.
    - `shifts`, `label_shifts`: arrays, (n_tasks, n_features), (n_tasks,)
    - `counts` (array of int, (n_tasks, n_folds)): Rows.
    - `largest_block`: The most rows that were copied at a time.
    """

    def __init__(self, n_features: int, n_folds: int = 1, *, shift: bool = True, n_threads: int = 1) -> None:
        self.n_features, self.n_folds, self.shift, self.n_threads = n_features, n_folds, shift, n_threads
        self.shifts, self.label_shifts = np.zeros((0, n_features)), np.zeros(0)
        self.counts = np.zeros((0, n_folds), dtype=np.int64)
        self.largest_block = 0
        self._begun = np.zeros(0, dtype=bool)
        # (task, fold) after (task, fold): products of columns, labels and the constant, all at once
        self._gram = np.zeros((0, kernels.panel_cells(n_features + 2)))
        self._terms = np.zeros(0, dtype=np.int64)

    @property
    def n_tasks(self) -> int:
        return len(self.shifts)

    def grow(self, n_tasks: int) -> None:
        """Make room for so many tasks."""
        more = n_tasks - self.n_tasks
        if more <= 0:
            return

        def longer(array: Array, count: int) -> Array:
            return np.concatenate([array, np.zeros((count, *array.shape[1:]), dtype=array.dtype)])

        self.shifts, self.label_shifts = longer(self.shifts, more), longer(self.label_shifts, more)
        self.counts, self._begun = longer(self.counts, more), longer(self._begun, more)
        self._gram, self._terms = longer(self._gram, more * self.n_folds), longer(self._terms, more * self.n_folds)

    def shift_by(self, shifts: Array, label_shifts: Array) -> None:
        """Shifts for all tasks, known before any row is."""
        self.grow(len(shifts))
        self.shifts[:], self.label_shifts[:], self._begun[:] = shifts, label_shifts, True

    def add(
        self,
        rows: Array | Sequence[Array],
        y: Array,
        tasks: Array,
        folds: Array | None = None,
        weights: Array | None = None,
    ) -> None:
        """Rows in any order, or their columns each on its own, whole numbers or floats, as in a table: copied block by
        block. `tasks` and `folds` are numbers from 0."""
        for part, positions, offsets, own in self._sorted_blocks(tasks, folds, weights):
            here = _columns(rows[part]) if isinstance(rows, np.ndarray) else [column[part] for column in rows]
            block = np.empty((self.n_features + 2, offsets[-1]))
            block[-1] = 1.0
            by_task = np.ascontiguousarray(offsets[:: self.n_folds])
            labels = np.ascontiguousarray(y[part], dtype=np.float64)
            if self.shift and positions is None and self.n_tasks == 1 and not self._begun[0]:
                self._look_ahead([*here, labels])
            known = np.column_stack([self.shifts, self.label_shifts]) if self.shift else None
            kernels.sorted_columns([*here, labels], positions, by_task, known, self.n_threads, block[:-1])
            if self.shift:
                self._begin(block, by_task)
            self._add_sorted(block, offsets, own)

    def _sorted_blocks(
        self, tasks: Array, folds: Array | None, weights: Array | None
    ) -> Iterator[tuple[slice, Array | None, Array, Array | None]]:
        """Blocks of rows, each with the positions in it of those that have weight, sorted by task and fold (None: as
        they are), where each fold of each task begins then, and their weights unless all are 1."""
        if len(tasks):
            self.grow(int(tasks.max()) + 1)
        step = block_rows(self.n_features + 2)
        for low in range(0, len(tasks), step):
            part = slice(low, low + step)
            cells = tasks[part] * self.n_folds + (0 if folds is None else folds[part])
            positions, own = None, None if weights is None else weights[part]
            if own is not None and not np.all(own > 0.0):
                positions = np.flatnonzero(own > 0.0)
                cells, own = cells[positions], own[positions]
            if own is not None and np.all(own == 1.0):
                own = None
            if not np.all(cells[1:] >= cells[:-1]):
                order = stable_order(cells, len(self._terms))
                positions = order if positions is None else positions[order]
                own = None if own is None else own[order]
            if len(cells):
                counts = np.bincount(cells, minlength=len(self._terms))
                yield part, positions, np.concatenate([[0], np.cumsum(counts)]), own

    def _add_sorted(self, block: Array, offsets: Array, weights: Array | None) -> None:
        """Rows sorted by task and fold, shifted: columns, labels and ones."""
        counts = np.diff(offsets)
        self.largest_block = max(self.largest_block, block.shape[1])
        if weights is not None:
            block *= np.sqrt(weights)
        kernels.add_grams(block.T, offsets, self.n_threads, self._gram)
        self.counts += counts.reshape(self.counts.shape)
        live = counts > 0
        self._terms[live] = np.where(
            self._terms[live] > 0, np.maximum(self._terms[live], counts[live]) + 1, counts[live]
        )

    def _look_ahead(self, columns: Sequence[Array]) -> None:
        """Shifts of the only task from its first rows, so that its columns are shifted while they are copied."""
        found = about(np.stack([np.asarray(column[:_FIRST_ROWS], dtype=np.float64) for column in columns]).T)
        found[~np.isfinite(found)] = 0.0
        self.shifts[0], self.label_shifts[0], self._begun[0] = found[:-1], found[-1], True

    def _begin(self, block: Array, offsets: Array) -> None:
        """Shifts of the tasks that come for the first time, subtracted from their rows."""
        d, here = self.n_features, np.flatnonzero(offsets[1:] > offsets[:-1])
        for t in here[~self._begun[here]].tolist():
            own = block[: d + 1, offsets[t] : offsets[t + 1]]
            found = about(own.T)
            found[~np.isfinite(found)] = 0.0
            self.shifts[t], self.label_shifts[t], self._begun[t] = found[:d], found[d], True
            own -= found[:, None]

    def merge(self, other: RowSums) -> None:
        """The rows of another, summed about the same shifts."""
        self._gram += other._gram
        self.counts += other.counts
        both = (self._terms > 0) & (other._terms > 0)
        self._terms = np.maximum(self._terms, other._terms) + both

    def gathered(self, fold: int, tasks: Array | None = None) -> Gathered:
        """What one fold amounts to; tasks in another order where one is given."""
        chosen = np.arange(self.n_tasks) if tasks is None else tasks
        return Gathered(self._moments(fold, chosen), self.shifts[chosen], self.label_shifts[chosen])

    def _moments(self, fold: int, chosen: Array) -> Moments:
        d, cells = self.n_features, chosen * self.n_folds + fold
        square = panels_to_square(self._gram[cells], d + 2)
        return Moments(
            square_to_panels(square[:, :d, :d]),
            np.ascontiguousarray(square[:, d, :d]),
            np.ascontiguousarray(square[:, d, d]),
            np.ascontiguousarray(square[:, d + 1 :, :d]),
            np.ascontiguousarray(square[:, d + 1 :, d + 1 :]),
            np.ascontiguousarray(square[:, d, d + 1 :]),
            int(self._terms[cells].max(initial=0)),
        )

    def take_over(self, tasks: int, parts: list[Moments], shifts: Array, label_shifts: Array, counts: Array) -> None:
        """Rows that were summed as one matrix for all tasks: from now on each has its own."""
        self.shift_by(np.repeat(shifts, tasks, axis=0), label_shifts)
        d = self.n_features
        for fold, part in enumerate(parts):
            square = np.zeros((tasks, d + 2, d + 2))
            square[:, :d, :d] = panels_to_square(part.gram, d)
            square[:, d, :d] = square[:, :d, d] = part.cross
            square[:, d, d] = part.labels
            square[:, d + 1, :d] = square[:, :d, d + 1] = part.beside[:, 0]
            square[:, d + 1, d + 1] = part.nuisance[:, 0, 0]
            square[:, d, d + 1] = square[:, d + 1, d] = part.explained[:, 0]
            cells = np.arange(tasks) * self.n_folds + fold
            self._gram[cells], self._terms[cells] = square_to_panels(square), part.rows
            self.counts[:, fold] = counts[fold]


class SharedSums:
    """Sums over the rows of one matrix that all tasks share, cut into folds; attributes as those of `RowSums`, but
    ``shifts`` is (1, n_features) and ``counts`` (n_folds,)."""

    def __init__(
        self, n_features: int, n_tasks: int, n_folds: int = 1, *, shift: bool = True, n_threads: int = 1
    ) -> None:
        self.n_features, self.n_folds, self.shift, self.n_threads = n_features, n_folds, shift, n_threads
        self.shifts, self.label_shifts = np.zeros((1, n_features)), np.zeros(n_tasks)
        self.counts = np.zeros(n_folds, dtype=np.int64)
        self.largest_block = 0
        self._begun = not shift
        self.parts = [Moments.zeros(1, n_tasks, n_features, 1) for _ in range(n_folds)]

    @property
    def n_tasks(self) -> int:
        return len(self.label_shifts)

    def shift_by(self, shifts: Array, label_shifts: Array) -> None:
        """Shifts, known before any row is."""
        self.shifts[:], self.label_shifts[:], self._begun = shifts, label_shifts, True

    def add(self, rows: Array, y: Array, folds: Array | None = None, weights: Array | None = None) -> None:
        """Rows in any order with their labels, (rows, n_tasks)."""
        step = block_rows(self.n_features + self.n_tasks)
        for low in range(0, len(rows), step):
            part = slice(low, low + step)
            chosen = np.zeros(len(rows[part]), dtype=np.int64) if folds is None else folds[part]
            for fold in np.unique(chosen).tolist():
                own = np.flatnonzero(chosen == fold)
                whole = len(own) == len(chosen)
                x, labels = rows[part] if whole else rows[part][own], y[part] if whole else y[part][own]
                self._add_block(x, labels, fold, None if weights is None else weights[part][own])

    def _add_block(self, rows: Array, y: Array, fold: int, weights: Array | None) -> None:
        self.largest_block = max(self.largest_block, len(rows))
        if not self._begun:
            with np.errstate(over="ignore", invalid="ignore"):
                shifts, labels = about(rows), about(y)
            shifts[~np.isfinite(shifts)] = 0.0
            self.shift_by(shifts, labels)
        x = np.empty(rows.shape, order="F")
        np.subtract(rows, self.shifts[0], out=x)
        labels = y - self.label_shifts
        z = np.ones((1, len(rows)))
        if weights is not None:
            root = np.sqrt(weights)
            x *= root[:, None]
            labels *= root[:, None]
            z *= root
        self.parts[fold].add_rows(x, labels, z, np.array([0, len(rows)]), self.n_threads)
        self.counts[fold] += len(rows)

    def merge(self, other: SharedSums) -> None:
        """The rows of another, summed about the same shifts."""
        self.counts += other.counts
        for part, more in zip(self.parts, other.parts, strict=True):
            part.add(more)

    def gathered(self, fold: int) -> Gathered:
        """What one fold amounts to."""
        return Gathered(self.parts[fold].copy(), self.shifts.copy(), self.label_shifts.copy())


@dataclass
class Gathered:
    """Moments of all features and the constant, the only nuisance column, and the shifts that they are about."""

    moments: Moments
    shifts: Array
    label_shifts: Array

    @property
    def n_features(self) -> int:
        return int(self.shifts.shape[1])

    @property
    def n_tasks(self) -> int:
        return len(self.label_shifts)

    @property
    def totals(self) -> Array:
        """Weights of the rows of each task."""
        found = self.moments.nuisance[:, 0, 0]
        return found if len(found) == self.n_tasks else np.full(self.n_tasks, found[0])

    @property
    def _known(self) -> Array:
        total = self.moments.nuisance[:, 0, 0]
        return np.where(total > 0.0, total, 1.0)

    def weighted(self, factors: Array) -> Gathered:
        """With the rows of each task weighed by a factor."""
        moments = self.moments.weighted(factors)
        shifts = np.broadcast_to(self.shifts, (len(moments.gram), self.n_features))
        return replace(self, moments=moments, shifts=np.ascontiguousarray(shifts))

    def means(self) -> tuple[Array, Array]:
        """Of columns, (matrices, n_features), and of labels, (n_tasks,)."""
        columns = self.shifts + self.moments.beside[:, 0] / self._known[:, None]
        return columns, self.label_shifts + self.moments.explained[:, 0] / self._known

    def squares(self) -> tuple[Array, Array, Array, Array]:
        """Sums of squares of columns and of labels about the shifts, and what the means take from them."""
        moments = self.moments
        columns = np.maximum(panel_diagonal(moments.gram, self.n_features), 0.0)
        known = self._known
        by_means = np.square(moments.beside[:, 0]) / known[:, None]
        return columns, moments.labels, by_means, np.square(moments.explained[:, 0]) / known

    @property
    def well_centred(self) -> bool:
        """Whether the shifts were near enough to the means: not so where the first rows are unlike the others."""
        columns, labels, by_means, by_label_means = self.squares()
        near = 1.0 - 1.0 / _FAR
        return not (
            bool(np.any((by_means > near * columns) & (by_means > 0.0)))
            or bool(np.any((by_label_means > near * labels) & (by_label_means > 0.0)))
        )

    def residual_squares(self, coefs: Array, intercepts: Array) -> tuple[Array, Array]:
        """Weighted sums of squared residuals, (values, n_tasks), at coefficients (values, n_tasks, n_features) and
        intercepts (values, n_tasks), and what rounding may have done to them.

        Large numbers cancel twice: in the intercepts less the shifts, which are therefore summed in twice the
        precision, and in ``y'y - 2 y'Xw + w'X'Xw``, whose error is relative to the sizes of its parts.
        """
        moments, d = self.moments, self.n_features
        values, n_tasks = intercepts.shape
        shifts = np.broadcast_to(self.shifts, (n_tasks, d))
        one = np.concatenate([np.broadcast_to(shifts, coefs.shape), np.ones((values, n_tasks, 2))], axis=2)
        labels = np.broadcast_to(-self.label_shifts[:, None], (values, n_tasks, 1))
        two = np.concatenate([coefs, intercepts[:, :, None], labels], axis=2)
        cuts = np.arange(values * n_tasks + 1) * (d + 2)
        left = Samples.exact_cut(one.ravel(), two.ravel(), cuts).reshape(values, n_tasks)
        gram = panels_to_square(moments.gram, d)
        total, beside = self.totals, np.broadcast_to(moments.beside[:, 0], (n_tasks, d))
        rows = coefs.transpose(1, 2, 0)  # tasks x features x values
        fitted = np.matmul(gram, rows).transpose(2, 0, 1)  # values x tasks x features
        found = moments.labels + np.sum(coefs * (fitted - 2.0 * moments.cross), axis=2) + np.square(left) * total
        found += 2.0 * left * (np.sum(coefs * beside, axis=2) - moments.explained[:, 0])
        columns, label_squares, _, _ = self.squares()
        sizes = np.sum(np.abs(coefs) * np.sqrt(columns), axis=2) + np.sqrt(label_squares)
        sizes += np.abs(left) * np.sqrt(total)
        unsure = 1.01 * 2.0**-53 * (moments.rows + 4.0 * d + 32.0) * np.square(sizes)
        return np.maximum(found, 0.0), unsure


def sums_at_once(x: Array, y: Array, root: Array, offsets: Array, *, shift: bool, n_threads: int) -> Gathered:
    """What rows amount to that are here all together, about their means.

    - `x`, `y` (arrays, (rows, n_features) and (rows, n_tasks), Fortran order): Where there is a matrix for each task, y
      has one column.
    """
    matrices, count = len(offsets) - 1, x.shape[1]
    out_x, out_y = np.empty(x.shape, order="F"), np.empty(y.shape, order="F")
    shifts, label_shifts = np.empty((count, matrices)), np.empty((y.shape[1], matrices))
    moments = Moments.zeros(matrices, label_shifts.size, count, 1)
    none, nothing = np.empty((0, len(x))), np.empty((0, matrices))
    threads = n_threads if x.size > 100_000 else 1
    for raw, out, found in ((x, out_x, shifts), (y, out_y, label_shifts)):
        kernels.centre(raw, offsets, False, root, none, shift, threads, out, np.empty_like(found), found, nothing)
    moments.add_rows(out_x, out_y, root[None, :], offsets, n_threads)  # what is not finite is found in the sums
    return Gathered(moments, np.ascontiguousarray(shifts.T), label_shifts.ravel())
