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
    narrow = np.zeros((2 * n, 3), dtype=np.float32, order="F")
    for module in (kernels, reference):
        parts = np.empty((4, len(sets.rows)))
        module.risk_factor(sets.starts, at.weights, sets.tie, at.mean, *sets.curvatures(at), residual, *parts)
        out, squares = np.zeros((2 * n, 3), order="F"), np.empty((3, 2))
        module.risk_columns(
            sets.starts, at.weights, sets.tie, sets.task_of_block, *parts[:3], x, columns, sets.rows, sets.rows, scale,
            2, out, squares,
        )  # fmt: skip
        found.append((parts, out, squares))
        module.risk_columns(
            sets.starts, at.weights, sets.tie, sets.task_of_block, *parts[:3], x, columns, sets.rows, sets.rows, scale,
            2, narrow, squares := np.empty((3, 2)),
        )  # fmt: skip
        np.testing.assert_allclose(narrow, out, rtol=1e-6)
        written = np.add.reduceat(np.square(narrow, dtype=np.float64), [0, n], axis=0).T
        np.testing.assert_allclose(squares, written, rtol=1e-12)
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7 * np.abs(theirs).max())
    np.testing.assert_allclose(found[0][1][:, 0] @ found[0][1][:, 0], found[0][2][0].sum(), rtol=1e-12)


@pytest.mark.parametrize("efron", [True, False])
def test_columns_of_a_long_block(rng, efron):
    """More rows than are worked on at a time, with deaths tied across the cuts, against the second derivative."""
    n = 1200
    y = draw(rng, n)
    y["time"] = np.ceil(10.0 * y["time"])  # few times, many ties
    (sets,) = risk_sets(y, np.ones(n), np.array([0, n]), efron)
    at = sets.at(0.3 * rng.standard_normal(len(sets.rows)))
    x = np.asfortranarray(rng.standard_normal((n, 11)))
    parts = np.empty((4, len(sets.rows)))
    kernels.risk_factor(
        sets.starts, at.weights, sets.tie, at.mean, *sets.curvatures(at), sets.events - at.mean, *parts
    )
    out, squares = np.zeros((n, 11), order="F"), np.empty((11, 1))
    kernels.risk_columns(
        sets.starts, at.weights, sets.tie, sets.task_of_block, *parts[:3], x, np.arange(11), sets.rows, sets.rows,
        np.ones(len(sets.rows)), 1, out, squares,
    )  # fmt: skip
    hessian, _ = sets.hessian_of(at, np.ascontiguousarray(x[sets.rows].T), 1)
    np.testing.assert_allclose(out.T @ out, hessian[0], rtol=1e-6, atol=1e-6 * np.abs(hessian).max())
    np.testing.assert_allclose(squares[:, 0], np.sum(np.square(out), axis=0), rtol=1e-12)


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
