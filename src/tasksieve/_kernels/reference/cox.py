"""Cox's partial likelihood with nested risk sets, as `cox.hpp` says."""

from __future__ import annotations

import math

import numpy as np

_LEAST = 1e-9  # of a mean: what is left of a pivot


def _factor(starts, weights, tie, diagonal, below, beside):
    """``L`` as a matrix, in the order of the rows."""
    n = len(weights)
    matrix = np.zeros((n, n))
    for low, high in zip(starts[:-1], starts[1:], strict=True):
        for j in range(low, high):
            later = np.arange(j + 1, high)
            same = (tie[later] == tie[j]) & (tie[j] > 0)
            matrix[j, j] = diagonal[j]
            matrix[later, j] = -weights[later] * np.where(same, beside[j], below[j])
    return matrix


def risk_factor(starts, weights, tie, mean, near, far, residual, diagonal, below, beside, right):
    """The Cholesky factor of the second derivative, entry by entry from its definition, and ``L right = residual``."""
    for low, high in zip(starts[:-1], starts[1:], strict=True):
        for j in range(low, high):
            before = np.arange(low, j)
            same = (tie[before] == tie[j]) & (tie[j] > 0)
            # what rows before have in the column of this one, and in that of any row outside its ties
            own, other = np.where(same, beside[before], below[before]), below[before]
            held = near[j] + float(own @ own)
            diagonal[j] = math.sqrt(max(mean[j] - weights[j] ** 2 * held, _LEAST * mean[j]))
            beside[j] = weights[j] * held / diagonal[j]
            below[j] = weights[j] * (far[j] + float(own @ other)) / diagonal[j]
            right[j] = (residual[j] + weights[j] * float(own @ right[before])) / diagonal[j]


def risk_columns(
    starts, weights, tie, task, diagonal, below, beside, x, columns, source, row, scale, threads, out, squares
):
    """``L'x`` of columns, and the squared norms of what was written, by task."""
    found = _factor(starts, weights, tie, diagonal, below, beside).T @ (scale[:, None] * x[source][:, columns])
    out[row] = found
    found = out[row].astype(np.float64)
    squares[:] = 0.0
    for b, (low, high) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
        squares[:, task[b]] += np.sum(np.square(found[low:high]), axis=0)


def divergence_sums(x, y, log_y):
    """Sums of ``KL(x || y)``, of ``|y - x| + x |t|`` and of ``2 x (1 + |t|) + y`` with t = log(y/x)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = np.where(x > 0.0, (np.log(y) if log_y is None else log_y) - np.log(x), 0.0)
        found = np.where(np.abs(t) < 1.0, x * (np.expm1(t) - t), (y - x) - x * t)
    t, found = np.abs(t), np.maximum(np.where(x > 0.0, found, y), 0.0)
    first, second = np.abs(y - x) + x * t, 2.0 * x * (1.0 + t) + y
    return float(found.sum()), float(first.sum()), float(second.sum())
