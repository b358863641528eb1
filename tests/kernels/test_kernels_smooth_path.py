"""The path of smooth losses against its NumPy twin."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_helpers import needs_kernels

from tasksieve._kernels import kernels, reference

SHAPES = {"one task": (1, False), "shared": (3, True), "own": (3, False)}


def problem(rng, tasks, shared, loss, intercept, l1, offset, rows=40, features=9):
    root = np.where(rng.random(rows * tasks) < 0.1, 0.0, rng.uniform(0.5, 1.5, rows * tasks))
    if shared:
        root = np.tile(root[:rows], tasks)
    offsets = rows * np.arange(tasks + 1)
    x = rng.standard_normal((rows if shared else rows * tasks, features))
    x[:, 3] = x[:, 2]
    for t in range(1 if shared else tasks):
        part = slice(0, rows) if shared else slice(offsets[t], offsets[t + 1])
        q = root[:rows] if shared else root[part]
        x[part] = q[:, None] * (x[part] - (q**2 @ x[part] / (q @ q) if intercept else 0.0))
    z = rng.standard_normal(rows * tasks) + (np.tile(x[:, 0], tasks) if shared else x[:, 0])
    y = np.where(z > 0.0, 1.0, -1.0) if loss == 0 else rng.poisson(np.exp(0.5 * z)).astype(float)
    group, lasso = rng.uniform(0.5, 2.0, features), np.full(features, l1)
    known = rng.uniform(-0.5, 0.5, rows * tasks) if offset else None
    return np.asfortranarray(x), offsets, shared, root, y, known, intercept, loss, group, lasso


@needs_kernels
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1", [0.0, 0.3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_against_the_twin(rng, shape, loss, intercept, l1, positive):
    given = problem(rng, *SHAPES[shape], loss, intercept, l1, offset=positive)
    lams, goals = np.array([20.0, 5.0, 2.0, 1.0]), np.full(4, 1e-9)
    found = []
    for module in (kernels, reference):
        path = module.SmoothPath(*given, positive, 100)
        stop, facts, features, rows, levels = path.advance(lams, goals, 5000, 1e12)
        assert stop == 0
        assert facts.shape == (4, 4)
        assert np.all(facts[0] <= goals)
        places = np.repeat(np.arange(4), facts[3].astype(int))
        dense = np.zeros((4, given[0].shape[1], len(given[1]) - 1))
        dense[places, features] = rows
        assert positive <= bool(np.all(rows >= 0.0))
        dense[:, 2] += dense[:, 3]  # copies of each other may share
        dense[:, 3] = 0.0
        found.append((np.einsum("kjt,ij->kti", dense, given[0]), levels))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-3)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-3)


@needs_kernels
def test_why_it_stops(rng):
    given = problem(rng, 2, False, 0, True, 0.0, offset=False)
    lams, goals = np.array([20.0, 5.0, 1.0, 0.5]), np.full(4, 1e-7)
    whole = kernels.SmoothPath(*given, False, 100).advance(lams, goals, 5000, 1e12)
    assert whole[0] == 0
    path = kernels.SmoothPath(*given, False, 100)
    parts, done = [], 0
    while done < 4:
        found = path.advance(lams[done:], goals[done:], 5000, 1.0)
        parts.append(found)
        done += len(found[4])
    assert [found[0] for found in parts] == [1, 1, 1, 0]
    np.testing.assert_array_equal(np.vstack([found[3] for found in parts]), whole[3])  # the same bytes
    assert kernels.SmoothPath(*given, False, 2).advance(lams, goals, 5000, 1e12)[0] == 2  # no room
    assert kernels.SmoothPath(*given, False, 100).advance(lams, goals, 3, 1e12)[0] == 3  # no epochs left
    for spoilt in (lams[:0], -lams):
        with pytest.raises(ValueError, match=r"goal|positive"):
            kernels.SmoothPath(*given, False, 100).advance(spoilt, goals, 100, 1.0)
    with pytest.raises(ValueError, match="label"):
        kernels.SmoothPath(*given[:4], given[4][:-1].copy(), *given[5:], False, 100)
    with pytest.raises(ValueError, match="loss"):
        kernels.SmoothPath(*given[:7], 2, *given[8:], False, 100)
