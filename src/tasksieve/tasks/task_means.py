"""Means of the observed values of each column, of every task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def observed(X: Array) -> Array:
    """Which entries are numbers, not holes."""
    return ~np.isnan(X) if X.dtype.kind == "f" else np.broadcast_to(True, X.shape)


def task_sums(X: Array, codes: Array, n_tasks: int) -> tuple[Array, Array]:
    """Sums of the observed values (T, d), and how many there are (T, d)."""
    known = observed(X)
    totals, counts = np.zeros((n_tasks, X.shape[1])), np.zeros((n_tasks, X.shape[1]), dtype=np.int64)
    for t in range(n_tasks):
        own = codes == t
        totals[t] = np.sum(X[own], axis=0, dtype=np.float64, where=known[own])
        counts[t] = known[own].sum(axis=0)
    return totals, counts


def fill_holes(X: Array, means: Array, codes: Array) -> Array:
    """X with the means of each row's task (T, d) where it has no number; X itself where nothing is missing."""
    known = observed(X)
    if known.all():
        return X
    filled = X.copy(order="F")
    rows, columns = np.nonzero(~known)
    filled[rows, columns] = means[codes[rows], columns]
    return filled


@dataclass(frozen=True)
class HoledRows:
    """Rows with missing values, in the place of X: findings that learn from some of the rows (halves, folds) fill them
    with means of these alone.

    - `values` (array of shape (n, d)): NaN where a value is missing.
    - `codes` (int array of shape (n,)): Whose mean stands for it: the task of each row, or 0 for all.
    - `absent` (bool array of shape (n, d), or None): Zeros that stand for nothing, of tasks without a column.
    """

    values: Array
    codes: Array
    absent: Array | None = None

    def filled(self, inside: Array | None = None) -> Array:
        """All rows, completed by means of those `inside` (a mask): of the task, or where it has no value there of all
        of them; 0 where none has."""
        some = np.ones(len(self.values), dtype=bool) if inside is None else inside
        n_tasks = int(self.codes.max(initial=0)) + 1
        totals, counts = task_sums(self.values[some], self.codes[some], n_tasks)
        if self.absent is not None:
            counts = counts - task_sums(self.absent[some].astype(np.float64), self.codes[some], n_tasks)[0]
        overall = totals.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
        return fill_holes(self.values, np.where(counts > 0, totals / np.maximum(counts, 1), overall), self.codes)


@dataclass(frozen=True)
class FilledCells:
    """Where values were missing before they were filled: their rows and columns, and all else that `HoledRows` has."""

    rows: Array
    columns: Array
    codes: Array
    absent: Array | None = None

    def holed(self, X: Array) -> HoledRows:
        """The filled rows with their holes."""
        values = np.array(X, dtype=np.float64, order="F")
        values[self.rows, self.columns] = np.nan
        return HoledRows(values, self.codes, self.absent)
