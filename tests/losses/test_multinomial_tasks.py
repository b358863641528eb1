"""The multinomial loss of many tasks at the same time is that of one task after another."""

from __future__ import annotations

import numpy as np
import pytest

from tasksieve.design import Design, RepeatedStorage, as_storage
from tasksieve.losses import Multinomial


def loss_of(rng, fit_intercept=True, weighted=True, absent=False):
    lengths, counts = np.array([7, 12, 9, 15]), np.array([3, 2, 4, 3])
    offsets = np.append(0, np.cumsum(lengths))
    storage = RepeatedStorage(as_storage(rng.standard_normal((offsets[-1], 3))), offsets, counts)
    own = rng.uniform(0.2, 2.0, offsets[-1]) * (rng.random(offsets[-1]) < 0.85) if weighted else np.ones(offsets[-1])
    y, s = [], []
    for t, count in enumerate(counts):
        codes = rng.permutation(np.arange(lengths[t]) % (count - (absent and t == 2)))
        y.append(np.eye(count)[codes].T.ravel())
        s.append(np.tile(own[offsets[t] : offsets[t + 1]], count))
    weights = np.concatenate(s) if weighted else None
    blocks = np.append(0, np.cumsum(counts))
    design = Design(storage, storage.offsets, weights=weights, fit_intercept=fit_intercept, blocks=blocks)
    return Multinomial().on(design, np.concatenate(y)), design


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("absent", [True, False])
def test_as_one_task_after_another(rng, fit_intercept, weighted, absent):
    loss, design = loss_of(rng, fit_intercept, weighted, absent)
    together, start = loss._all, None
    assert together is not None
    for size in (0.0, 0.5, 3.0):
        z = design.project(size * rng.standard_normal(design.n_samples))
        found = together.evaluate(z, start, 0.0)
        loss._all = None
        one_by_one = loss.evaluate(z, start)
        loss._all = together
        assert found is not None
        assert found.value == pytest.approx(one_by_one.value, rel=1e-12)
        np.testing.assert_allclose(found.residual, one_by_one.residual, atol=1e-9)
        np.testing.assert_allclose(found.nuisance, one_by_one.nuisance, rtol=1e-7, atol=1e-7)
        live = design.weights is None or np.concatenate([block._weights for block in loss._blocks]) > 0
        np.testing.assert_allclose(found.margin[live], one_by_one.margin[live], atol=1e-9)
        start = found.nuisance
    assert found.nuisance.shape == ((1, 12) if fit_intercept else (0, 12))


def test_where_newton_is_in_trouble_tasks_are_taken_one_by_one(rng):
    loss, design = loss_of(rng)
    z = design.project(5.0 * rng.standard_normal(design.n_samples))
    far = 50.0 * rng.standard_normal((1, design.n_tasks))
    assert loss._all.evaluate(z, far, 0.0) is None
    at = loss.evaluate(z, far)
    assert np.isfinite(at.value)
    settled = loss.settled(at)
    assert np.isfinite(settled.tilt).all()
    # intercepts at their best: no step along one of them leads down
    for k in range(design.n_tasks):
        for step in (-1e-4, 1e-4):
            raw = z * np.divide(1.0, design.root_weights, out=np.zeros_like(z), where=design.root_weights > 0)
            moved = at.nuisance[0] + step * (np.arange(design.n_tasks) == k)
            assert loss.value_at(raw + design.per_sample(moved)) >= at.value - 1e-9 * abs(at.value)
