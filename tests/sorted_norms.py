"""Sorted norms for tests: as a cvxpy expression, and random weights."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from tasksieve.penalties import oscar_weights, slope_weights


def sorted_norm_expression(W, weights):
    """The sorted norm as a sum of weighted sums of the largest row norms."""
    steps = weights - np.append(weights[1:], 0.0)
    norms = cp.norm(W, 2, axis=1)
    return sum(step * cp.sum_largest(norms, k + 1) for k, step in enumerate(steps) if step > 0.0)


def random_weights(rng, count):
    kind = rng.integers(4)
    if kind == 0:
        return oscar_weights(count)
    if kind == 1:
        return slope_weights(count, 0.3)
    if kind == 2:
        return np.ones(count)
    weights = np.sort(rng.random(count))[::-1].copy()
    weights[count // 2 + 1 :] = 0.0
    return weights
