"""On a cluster as here, given the same cutting into ranges of features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster.examples import paths, same_bits, stacked

import tasksieve as ts

da = pytest.importorskip("dask.array")
zarr = pytest.importorskip("zarr")

MODELS = {
    "lasso": (ts.MultiTaskLasso(), "values"),
    "standardized": (ts.MultiTaskLasso(standardize=True), "values"),
    "elastic net": (ts.MultiTaskElasticNet(l1_ratio=0.7), "values"),
    "sparse group": (ts.MultiTaskSparseGroupLasso(l1=0.4, group=0.6), "values"),
    "groups": (ts.MultiTaskGroupLasso(feature_groups=np.arange(1500) // 7), "values"),
    "owl": (ts.MultiTaskOWL(), "values"),
    "calibrated": (ts.CalibratedMultiTaskLasso(), "values"),
    "huber": (ts.MultiTaskHuber(), "values"),
    "quantile": (ts.MultiTaskQuantile(), "values"),
    "poisson": (ts.MultiTaskPoisson(), "counts"),
    "logistic": (ts.MultiTaskLogisticRegression(), "classes"),
    "largest": (ts.MultiTaskRegressor(penalty="linf"), "values"),
    "dirty": (ts.MultiTaskRegressor(penalty="dirty"), "values"),
    "positive": (ts.MultiTaskLasso(positive=True), "values"),
    "no intercept": (ts.MultiTaskLasso(fit_intercept=False), "values"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MODELS)
def test_every_estimator(client: Any, name: str) -> None:
    model, kind = MODELS[name]
    X, y, task = stacked(kind=kind)
    largest = model.alpha_max(X, y, task=task)
    far, near, fleet = paths(model, da.from_array(X, chunks=(-1, 200)), X, y, task, largest * np.geomspace(1, 0.3, 5))
    assert fleet.n_shards == 4
    assert len(far.points[-1].features) > 0
    same_bits(far, near)


def test_a_ridge_and_a_curved_loss(client: Any) -> None:
    """Rows of which only the largest gauge is known have no distance to the dual ball: no more of them are rejected."""
    X, y, task = stacked(kind="classes")
    model = ts.MultiTaskLogisticRegression(ridge=0.01)
    grid = model.alpha_max(X, y, task=task) * np.geomspace(1, 0.3, 5)
    far, near, _ = paths(model, da.from_array(X, chunks=(-1, 200)), X, y, task, grid)
    for there, here in zip(far.points, near.points, strict=True):
        assert np.array_equal(there.features, here.features)
        assert np.array_equal(there.rows, here.rows)
        assert there.dual_gap == here.dual_gap
        assert there.n_rejected <= here.n_rejected
    assert far.points[-1].n_rejected > 0


def test_norms_under_row_metrics(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are measured in the shards, beside products that the next message asks for."""
    from tasksieve.design.cluster.shard import ClusterShard

    measured: list[np.ndarray] = []
    also_measure = ClusterShard.also_measure

    def noted(shard: Any, metric: np.ndarray) -> None:
        measured.append(metric)
        also_measure(shard, metric)

    monkeypatch.setattr(ClusterShard, "also_measure", noted)
    rng, task = np.random.default_rng(3), np.repeat([0, 1], 60)
    X = rng.standard_normal((120, 1200))
    y = rng.poisson(np.exp(0.5 + rng.standard_normal(120) + 0.4 * X[:, :4].sum(axis=1)))
    model = ts.MultiTaskPoisson()
    grid = model.alpha_max(X, y, task=task) * np.geomspace(1, 0.3, 8)
    far, near, _ = paths(model, da.from_array(X, chunks=(-1, 300)), X, y, task, grid)
    assert measured
    assert near.points[-1].n_rejected > 0
    same_bits(far, near)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_zarr_of_small_numbers(client: Any, tmp_path: Path, dtype: Any) -> None:
    X, y, task = stacked(1)
    X = np.rint(3 * X).astype(dtype)
    store = zarr.create_array(tmp_path / "x.zarr", shape=X.shape, chunks=(len(X), 128), dtype=dtype)
    store[:] = X
    model, grid = ts.MultiTaskLasso(), np.geomspace(1, 0.1, 6)
    given = ts.open_zarr(tmp_path / "x.zarr")
    far, near, _ = paths(model, given, X, y, task, model.alpha_max(X, y, task=task) * grid)
    same_bits(far, near)


def test_the_same_answers_as_from_an_array(client: Any) -> None:
    X, y, task = stacked(2)
    given = da.from_array(X, chunks=(-1, 500))
    here = ts.MultiTaskLasso(alpha=0.2).fit(X, y, task=task)
    there = ts.MultiTaskLasso(alpha=0.2).fit(given, y, task=task)
    np.testing.assert_array_equal(here.get_support(), there.get_support())
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-4)
    assert there.dual_gap_ <= 1e-6 * there.null_objective_
    assert isinstance(there.coef_, np.ndarray)


def test_a_list_of_arrays_is_a_task_each(client: Any) -> None:
    X, y, task = stacked(3)
    parts, labels = [X[task == t] for t in range(4)], [y[task == t] for t in range(4)]
    given = [da.from_array(part, chunks=(-1, 400)) for part in parts]
    there = ts.MultiTaskLasso(alpha=0.2).fit(given, labels)
    here = ts.MultiTaskLasso(alpha=0.2).fit(parts, labels)
    np.testing.assert_array_equal(here.get_support(), there.get_support())
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-4)


def test_one_matrix_for_all_tasks_and_unpenalised_features(client: Any) -> None:
    X, y, _ = stacked(4)
    Y = np.stack([y, np.roll(y, 1)], axis=1)
    weights = np.ones(X.shape[1])
    weights[[3, 900]] = 0.0
    model = ts.MultiTaskLasso(alpha=0.3, feature_weights=weights)
    here, there = model.fit(X, Y).coef_, ts.MultiTaskLasso(alpha=0.3, feature_weights=weights).fit(
        da.from_array(X, chunks=(-1, 300)), Y
    )
    np.testing.assert_allclose(there.coef_, here, atol=1e-4)


def test_blocks_of_rows_are_cut_anew(client: Any) -> None:
    X, y, task = stacked(5)
    with pytest.warns(UserWarning, match="moves 1.2 MB once"):
        there = ts.MultiTaskLasso(alpha=0.2).fit(da.from_array(X, chunks=(30, 1500)), y, task=task)
    np.testing.assert_array_equal(there.get_support(), ts.MultiTaskLasso(alpha=0.2).fit(X, y, task=task).get_support())


def test_nan_is_named(client: Any) -> None:
    X, y, task = stacked(6)
    X[17, 1203] = np.nan
    with pytest.raises(ValueError, match=r"row 18 .*\[:, 1203\]"):
        ts.MultiTaskLasso(alpha=0.2).fit(da.from_array(X, chunks=(-1, 300)), y, task=task)


def test_without_a_client() -> None:
    X, y, task = stacked(7)
    with pytest.raises(RuntimeError, match=r"Client\(\)"):
        ts.MultiTaskLasso(alpha=0.2).fit(da.from_array(X, chunks=(-1, 300)), y, task=task)


def test_what_crosses_does_not_grow_with_the_features(client: Any) -> None:
    """Beside the columns that are taken: there are no vectors over features in what workers say."""
    received, trips, n_values = {}, {}, 25
    for d in (1500, 12_000):
        X, y, task = stacked(8, d=1500)
        X = np.hstack([X, 0.2 * np.random.default_rng(9).standard_normal((len(X), d - 1500))])
        model = ts.MultiTaskLasso()
        data = model._read_with(da.from_array(X, chunks=(-1, 1500)), y, task, None, None)
        traffic = data.make_storage().fleet.traffic
        problem = model._problem(data)
        model._solve(data, problem, model._alpha_max(problem, data) * np.geomspace(1, 0.2, n_values))
        received[d], trips[d] = traffic.received, traffic.trips / n_values
    assert received[12_000] < 1.2 * received[1500]
    assert max(trips.values()) <= 2.0
