"""Sufficient statistics of the squared loss: sums over rows, about fixed shifts, task by task.

A column of data enters only through its products with other columns, with the labels and with the nuisance columns
(the constant, the unpenalised features). Sums of moments about the same shifts are the moments of all their rows: so
folds add up, and rows may come in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .._kernels import kernels
from .design import Design
from .samples import centred

Array = np.ndarray[Any, Any]

PANEL_ROWS, PANEL_COLUMNS = 64, 8
_SUMS = ("gram", "cross", "labels", "beside", "nuisance", "explained")
_NEAR = 2.0  # means up to so many standard deviations from zero cost no digits worth a copy of the data


@dataclass
class Moments:
    """Products of shifted, weighted columns x, labels y and nuisance columns z.

    - `gram` (array, (matrices, panel cells)): ``X'X``, laid out for the kernels (`panels_to_square`); one matrix for
      all tasks, or one a task.
    - `cross`: ``X'y``.
    - `labels`: ``y'y``.
    - `beside` (array, (matrices, n_nuisance, n_features)): ``Z'X``.
    - `nuisance` (array, (matrices, n_nuisance, n_nuisance)): ``Z'Z``.
    - `explained`: ``Z'y``.
    - `rows`: The most roundings in a row that a sum has seen: terms of its longest block, and one for each block after
      it.
    """

    gram: Array
    cross: Array
    labels: Array
    beside: Array
    nuisance: Array
    explained: Array
    rows: int

    @classmethod
    def zeros(cls, matrices: int, n_tasks: int, n_features: int, n_nuisance: int) -> Moments:
        """Of no rows."""
        return cls(
            np.zeros((matrices, kernels.panel_cells(n_features))),
            np.zeros((n_tasks, n_features)),
            np.zeros(n_tasks),
            np.zeros((matrices, n_nuisance, n_features)),
            np.zeros((matrices, n_nuisance, n_nuisance)),
            np.zeros((n_tasks, n_nuisance)),
            0,
        )

    def empty(self) -> Moments:
        """Of no rows, for the same columns."""
        n_tasks, n_features = self.cross.shape
        return Moments.zeros(len(self.gram), n_tasks, n_features, self.beside.shape[1])

    def add(self, other: Moments) -> None:
        """The rows of another one, about the same shifts."""
        for name in _SUMS:
            mine = getattr(self, name)
            np.add(mine, getattr(other, name), out=mine)
        self._count(other.rows)

    def _count(self, rows: int) -> None:
        """A sum of so many roundings in a row is added."""
        self.rows = max(self.rows, rows) + 1 if self.rows else rows

    def copy(self) -> Moments:
        """One that may be changed."""
        return replace(self, **{name: getattr(self, name).copy() for name in _SUMS})

    def add_rows(self, x: Array, y: Array, z: Array, offsets: Array, n_threads: int) -> None:
        """Rows of shifted, weighted columns (rows, features) in Fortran order, cut into tasks where there are several
        matrices; `y` is (rows, n_tasks) for one matrix and flat otherwise; `z` is (n_nuisance, rows)."""
        kernels.add_grams(x, offsets, n_threads, self.gram)
        kernels.add_products(
            x, np.asfortranarray(y.reshape(len(x), -1)), np.ascontiguousarray(z), offsets, n_threads, self.cross,
            self.labels, self.beside, self.nuisance, self.explained,
        )  # fmt: skip
        self._count(len(x) if len(self.gram) == 1 else int(np.max(np.diff(offsets))))

    def split(self, kept: Array, free: Array, constant: bool, copy: bool = True) -> Moments:
        """Of some columns, others being nuisance; for moments whose only nuisance column is the constant,
        which stays one or is left out. Without `copy` these are not to be used any more."""
        first = int(constant)
        if not len(free):
            return Moments(
                self.gram.copy() if copy else self.gram,
                self.cross.copy() if copy else self.cross,
                self.labels.copy() if copy else self.labels,
                self.beside[:, :first],
                self.nuisance[:, :first, :first],
                self.explained[:, :first],
                self.rows,
            )
        square = panels_to_square(self.gram, self.cross.shape[1])
        beside = np.concatenate([self.beside[:, :first][:, :, kept], square[:, free][:, :, kept]], axis=1)
        nuisance = np.empty((len(square), first + len(free), first + len(free)))
        nuisance[:, :first, :first] = self.nuisance[:, :first, :first]
        nuisance[:, :first, first:] = self.beside[:, :first][:, :, free]
        nuisance[:, first:, :first] = nuisance[:, :first, first:].transpose(0, 2, 1)
        nuisance[:, first:, first:] = square[:, free][:, :, free]
        explained = np.concatenate([self.explained[:, :first], self.cross[:, free]], axis=1)
        cross = np.ascontiguousarray(self.cross[:, kept])
        gram = square_to_panels(square[:, kept][:, :, kept])
        return Moments(gram, cross, self.labels.copy(), beside, nuisance, explained, self.rows)

    def weighted(self, factors: Array) -> Moments:
        """With the rows of each task weighed by a factor; where factors differ, one matrix becomes one a task."""
        own = factors
        parts = [self.gram, self.beside, self.nuisance]
        if len(self.gram) == 1 < len(factors):
            if np.all(factors == factors[0]):
                own = factors[:1]
            else:
                parts = [np.repeat(part, len(factors), axis=0) for part in parts]
        gram, beside, nuisance = (part * own.reshape(-1, *(1,) * (part.ndim - 1)) for part in parts)
        cross, explained = self.cross * factors[:, None], self.explained * factors[:, None]
        return Moments(gram, cross, self.labels * factors, beside, nuisance, explained, self.rows)


def leave_one_out(parts: Sequence[Moments], rest: Moments | None = None) -> Iterator[Moments]:
    """For each part the sum of all others, and of a rest that is in all: never a difference, which would leave of a
    column that is large in one part and small in the others nothing but rounding."""
    after = [parts[-1].empty()]
    for part in reversed(parts[1:]):
        after.append(after[-1].copy())
        after[-1].add(part)
    before = parts[0].empty() if rest is None else rest.copy()
    for part, later in zip(parts, reversed(after), strict=True):
        later.add(before)
        yield later
        before.add(part)


@dataclass
class ShiftedColumns:
    """All penalised columns of a design, packed: less their shifts, times the roots of the weights. The rows are those
    of the one matrix where it serves all tasks alike, or all samples; those of each matrix begin at `offsets`."""

    x: Array
    shifts: Array
    offsets: Array


def shifted_columns(design: Design, features: Array) -> ShiftedColumns:
    """One reading of some columns; where they need neither shifts nor weights, they are used where they lie."""
    shard = design.shard
    samples = design.samples
    shard.passes += len(features) / max(shard.n_features, 1)
    offsets, shared = samples.offsets, samples.shared
    if samples.uniform:  # the first task represents all
        offsets, shared = np.array([0, design.n_rows]), False
    if samples.root_weights is None and not shared and len(features) == shard.n_features:
        lying = _as_they_lie(design, offsets)
        if lying is not None:
            return lying
    raw, root = shard.storage.take(features), samples.root[: int(offsets[-1])]
    x, _, shifts, _ = centred(raw, offsets, shared, root, samples.fit_intercept, design.n_threads)
    return ShiftedColumns(x, np.ascontiguousarray(shifts.T), offsets)


def _as_they_lie(design: Design, offsets: Array) -> ShiftedColumns | None:
    """Columns whose means are small beside their spread, where they lie: shifting them would gain no digit."""
    x = design.shard.storage.doubles()
    if x is None:
        return None
    matrices = len(offsets) - 1
    if design.fit_intercept:
        sums = np.stack([x[low:high].sum(axis=0) for low, high in zip(offsets[:-1], offsets[1:], strict=True)])
        spread = design.norms()[:, :matrices].T
        if design.standardize:
            spread = spread * np.asarray(design.scale)[:, :matrices].T
        if not np.all(np.square(sums) <= _NEAR**2 * np.diff(offsets)[:, None] * np.square(spread)):
            return None
    return ShiftedColumns(x, np.zeros((matrices, x.shape[1])), offsets)


def gather(design: Design, columns: ShiftedColumns, labels: Array) -> Moments:
    """Moments of all rows, given the shifted, weighted labels as a flat vector."""
    matrices, n_tasks = len(columns.offsets) - 1, design.n_tasks
    found = Moments.zeros(matrices, n_tasks, columns.x.shape[1], design.n_nuisance)
    z = design.samples.weighted_nuisance[:, : len(columns.x)]
    y = labels.reshape(n_tasks, -1).T if matrices < n_tasks or n_tasks == 1 else labels
    found.add_rows(columns.x, y, z, columns.offsets, design.n_threads)
    return found


def panels_to_square(panels: Array, n_features: int) -> Array:
    """Gram matrices as (matrices, n_features, n_features), given as blocks of rows cut into panels of columns."""
    across = -(-n_features // PANEL_COLUMNS)
    blocks = panels.reshape(len(panels), -1, across, PANEL_ROWS, PANEL_COLUMNS)
    square = blocks.transpose(0, 1, 3, 2, 4).reshape(len(panels), -1, across * PANEL_COLUMNS)
    return square[:, :n_features, :n_features]


def square_to_panels(square: Array) -> Array:
    """The layout of the kernels for matrices given as (matrices, n_features, n_features)."""
    matrices, count = square.shape[:2]
    tall, across = -(-count // PANEL_ROWS), -(-count // PANEL_COLUMNS)
    whole = np.zeros((matrices, tall * PANEL_ROWS, across * PANEL_COLUMNS))
    whole[:, :count, :count] = square
    blocks = whole.reshape(matrices, tall, PANEL_ROWS, across, PANEL_COLUMNS).transpose(0, 1, 3, 2, 4)
    return blocks.reshape(matrices, -1)


def panel_diagonal(panels: Array, n_features: int) -> Array:
    """Diagonals of such matrices: (matrices, n_features)."""
    return panels[:, _diagonal_cells(n_features)]


@lru_cache(maxsize=8)
def _diagonal_cells(n_features: int) -> Array:
    j = np.arange(n_features)
    panel = j // PANEL_ROWS * -(-n_features // PANEL_COLUMNS) + j // PANEL_COLUMNS
    return (panel * PANEL_ROWS + j % PANEL_ROWS) * PANEL_COLUMNS + j % PANEL_COLUMNS
