"""Factors of the second derivative of Cox's loss: compiled kernels against their twins."""

from __future__ import annotations

import numpy as np
import pytest
from cox_reference import draw

from tasksieve._kernels import kernels, reference
from tasksieve.losses.risk_sets import risk_sets


@pytest.mark.parametrize("seed", range(12))
def test_factor_and_columns(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 40))
    y, s = draw(rng, 2 * n, strata=1 + seed % 3), rng.uniform(0.3, 2.0, 2 * n) * (rng.random(2 * n) > 0.1)
    y["event"][[0, n]], s[[0, n]] = True, 1.0
    (sets,) = risk_sets(y, s, np.array([0, n, 2 * n]), seed % 2 == 0)
    at = sets.at(rng.standard_normal(len(sets.rows)))
    residual = sets.events - at.mean
    x = np.asfortranarray(rng.standard_normal((2 * n, 5)))
    columns, scale, found = np.array([3, 0, 4]), rng.uniform(0.5, 2.0, len(sets.rows)), []
    for module in (kernels, reference):
        parts = np.empty((4, len(sets.rows)))
        module.risk_factor(sets.starts, at.weights, sets.tie, at.mean, *sets.curvatures(at), residual, *parts)
        out, squares = np.zeros((2 * n, 3), order="F"), np.empty((3, 2))
        module.risk_columns(
            sets.starts, at.weights, sets.tie, sets.task_of_block, *parts[:3], x, columns, sets.rows, sets.rows, scale,
            2, out, squares,
        )  # fmt: skip
        found.append((parts, out, squares))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7 * np.abs(theirs).max())
    np.testing.assert_allclose(found[0][1][:, 0] @ found[0][1][:, 0], found[0][2][0].sum(), rtol=1e-12)


def test_divergences(rng):
    x, y = rng.exponential(1.0, 50), rng.exponential(1.0, 50)
    x[:5], y[3:8] = 0.0, 1e-300
    y[8:12] = x[8:12] * (1.0 + 1e-9 * rng.standard_normal(4))
    for logs in (None, np.log(y)):
        ours, theirs = kernels.divergence_sums(x, y, logs), reference.divergence_sums(x, y, logs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)
    with pytest.raises(ValueError, match="an entry a row"):
        kernels.divergence_sums(x, y[1:], None)


def test_arrays_of_other_lengths_are_refused():
    (sets,) = risk_sets(draw(np.random.default_rng(0), 20), np.ones(20), np.array([0, 20]), True)
    at = sets.at(np.zeros(len(sets.rows)))
    near, far = sets.curvatures(at)
    parts = np.empty((4, len(sets.rows)))
    with pytest.raises(ValueError, match="an entry a row"):
        kernels.risk_factor(sets.starts, at.weights, sets.tie, at.mean, near, far, at.mean[:-1], *parts)
