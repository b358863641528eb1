"""Batches of problems on a device: lists of features, columns of working sets, and the path solved with the folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_helpers import DEVICES

import tasksieve as ts
from tasksieve.path import device_path


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("room", [5, 4000])
def test_features_that_reach_a_level(room: int, device: str) -> None:
    import torch

    from tasksieve.design.device import lists

    rng = np.random.default_rng(2)
    lengths, group, reach = rng.random((3, 4000)), rng.uniform(0.5, 2.0, 4000), rng.random(4000)
    lost, levels = rng.random(3) * 0.01, np.array([1.2, 1.6, 99.0])
    expected = lengths / group + lost[:, None] * reach
    there = [torch.tensor(array, device=device) for array in (lengths, lost, group, reach, levels)]
    found = lists.reaching(*there, room).cpu().numpy()
    assert found.shape == (3, 3, room + 1)
    for own, numbers, level in zip(found, expected, levels, strict=True):
        reached = np.flatnonzero(numbers >= level)
        assert own[0, 0] == len(reached)
        count = min(len(reached), room)
        features = own[0, 1 : count + 1].astype(int)
        assert len(set(features)) == count
        assert set(features) <= set(reached)
        np.testing.assert_allclose(own[1, 1 : count + 1], numbers[features], rtol=1e-14)
        np.testing.assert_array_equal(own[2, 1 : count + 1], reach[features])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scaled", [0, 1, 3])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_columns_of_working_sets(depth: int, scaled: int, device: str) -> None:
    """Weighted, orthogonal to the basis, scaled; a column past the end of a working set is zero."""
    import torch

    from tasksieve.solvers.batch_newton import BatchNewton

    rng = np.random.default_rng(depth)
    problems, tasks, n, d, width = 2, 3, 20, 30, 64
    x = rng.integers(0, 3, (d, 64)).astype(np.int8)
    root = rng.random((problems, tasks, n))
    root[:, 1, 15:] = 0.0  # a shorter task
    basis = np.linalg.qr(np.stack([root, root * np.arange(n)], axis=-1))[0][..., :depth]
    scale = rng.uniform(0.5, 2.0, (d, scaled)) if scaled else None
    features = rng.integers(0, d + 1, (problems, width))
    on = lambda array: torch.tensor(array, device=device)  # noqa: E731
    rows = np.arange(tasks)[:, None] * n + np.arange(n)
    newton = BatchNewton(
        on(x), on(rows), on(root), on(np.zeros((problems, tasks, n))), on(basis), None if scale is None else on(scale)
    )
    staged = newton.staging(width)
    staged[:] = np.concatenate([features.ravel(), np.ones(2 * problems * width), np.zeros(2 * problems)])
    newton.begin(width)
    found = newton.found.columns.cpu().numpy()
    for p in range(problems):
        for t in range(tasks):
            raw = np.where(features[p] < d, x[np.minimum(features[p], d - 1)][:, rows[t]].T, 0.0)
            column = root[p, t][:, None] * raw
            column = column - basis[p, t] @ (basis[p, t].T @ column)
            if scale is not None:
                column = column / scale[np.minimum(features[p], d - 1), t % scaled]
            np.testing.assert_allclose(found[p, t], column, atol=1e-14)
    lengths = np.linalg.norm(found, axis=2).max(axis=1)
    np.testing.assert_allclose(newton.found.lengths.cpu().numpy(), lengths, atol=1e-14)


@pytest.mark.parametrize("device", DEVICES)
def test_the_path_is_solved_with_the_folds(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    X = rng.binomial(2, 0.3, (90, 300)).astype(np.int8)
    task = np.repeat([0, 1, 2], 30)
    y = X[:, :4] @ rng.standard_normal(4) + rng.standard_normal(90)
    made: list[Any] = []
    batch = device_path._batch
    monkeypatch.setattr(device_path, "_batch", lambda problem: made.append(problem) or batch(problem))
    there = ts.on_device(X, device)
    found = ts.MultiTaskLassoCV(cv=3, n_alphas=15, early_stopping=False, random_state=0).fit(there, y, task=task)
    assert not made  # the path needed no batch of its own
    alone = ts.MultiTaskLasso().path(there, y, task=task, alphas=found.alphas_)
    assert made
    assert found.path_.converged.all()
    assert np.all(found.path_.dual_gaps <= 1e-6 * found.path_.null_objective)
    apart = np.abs(found.path_.objectives - alone.objectives)
    assert np.all(apart <= np.maximum(found.path_.dual_gaps, alone.dual_gaps) + 1e-12 * alone.objectives)
    again = ts.MultiTaskLassoCV(cv=3, n_alphas=15, early_stopping=False, random_state=0).fit(there, y, task=task)
    np.testing.assert_array_equal(again.coef_, found.coef_)  # the same bits, recorded or not


@pytest.mark.parametrize("early", [False, True])
def test_a_path_goes_on_where_the_batch_of_folds_ends(early: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from tasksieve.solvers.batch_newton import BatchNewton

    rng = np.random.default_rng(4)
    X = rng.standard_normal((60, 100))
    task = np.repeat([0, 1], 30)
    y = X[:, 0] + 0.3 * rng.standard_normal(60)
    step, count = BatchNewton.step, [0]

    def some(self: Any, rows: int, again: bool) -> None:
        count[0] += 1
        if count[0] < 15:
            step(self, rows, again)

    monkeypatch.setattr(BatchNewton, "step", some)
    model = ts.MultiTaskLassoCV(cv=3, n_alphas=20, early_stopping=early, random_state=0)
    model.fit(ts.on_device(X, "cpu"), y, task=task)
    assert count[0] > 15
    assert model.path_.converged.all()
    assert len(model.path_.alphas) == model.n_scored_


@pytest.mark.parametrize("flaw", ["gauges", "missing"])
def test_gauges_of_the_device_that_contradict_products_here_are_not_used(
    flaw: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate takes over what the device says of other features: of those in use it is compared."""
    from tasksieve.design.device import lists
    from tasksieve.design.device.shard import DeviceShard

    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 100))
    task = np.repeat([0, 1], 30)
    y = X[:, 0] + 0.3 * rng.standard_normal(60)
    reaching, surveyed, calls = lists.reaching, [0], [0]

    def flawed(*arguments: Any) -> Any:
        calls[0] += 1
        found = reaching(*arguments).clone()
        if flaw == "gauges":
            found[:, 1, 1:] *= 1.0 + 1e-4
        elif calls[0] > 3:  # the first of them are lost, which are in use by then
            count = int(found[0, 0, 0])
            lost = min(3, count)
            found[:, :, 1 : count - lost + 1] = found[:, :, lost + 1 : count + 1].clone()
            found[:, 0, 0] -= lost
        return found

    monkeypatch.setattr(lists, "reaching", flawed)
    survey = DeviceShard.survey

    def counted(self: Any, *arguments: Any) -> None:
        surveyed[0] += 1
        survey(self, *arguments)

    monkeypatch.setattr(DeviceShard, "survey", counted)
    there = ts.on_device(X, "cpu")
    found = ts.MultiTaskLasso().path(there, y, task=task, n_alphas=8)
    here = ts.MultiTaskLasso(tol=1e-10).path(X, y, task=task, alphas=found.alphas)
    assert surveyed[0] > 0
    assert np.all(found.objectives - here.objectives <= found.dual_gaps + 1e-12 * found.objectives)
