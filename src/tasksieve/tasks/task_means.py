"""Means of the observed values of each column, of every task."""

from __future__ import annotations

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
