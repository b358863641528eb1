"""All folds at once on a device: gaps of every value recomputed from coefficients alone, and folds that stall."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_helpers import DEVICES

import tasksieve as ts
from tasksieve.linear import row_folds
from tasksieve.path import device_folds

LENGTHS = [17, 24, 31]
CASES: dict[str, dict[str, Any]] = {
    "stacked": {},
    "no intercept": {"fit_intercept": False},
    "ridge": {"model": ts.MultiTaskElasticNetCV, "l1_ratio": 0.6},
    "feature weights": {"feature_weights": np.r_[np.full(30, 0.5), np.full(60, 2.0)]},
    "sample weights": {"weighted": True},
    "shared": {"shared": True},
    "narrow": {"features": 12},
}


def _data(shared: bool, features: int, dtype: str) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(7)
    n = 30 if shared else sum(LENGTHS)
    X = rng.binomial(2, 0.3, (n, features)).astype(dtype)
    if dtype != "int8":
        X += rng.standard_normal(X.shape).astype(dtype)
    W = np.zeros((features, 3))
    W[:6] = rng.standard_normal((6, 3))
    if shared:
        return X, X @ W + 5.0 + rng.standard_normal((n, 3)), None
    task = np.repeat(np.arange(3), LENGTHS)
    return X, np.einsum("ij,ji->i", X.astype(float), W[:, task]) + 5.0 + rng.standard_normal(n), task


@pytest.mark.sampled(8)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["int8", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_gaps_of_folds_are_true(name: str, dtype: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = dict(CASES[name])
    model = options.pop("model", ts.MultiTaskLassoCV)
    shared, weighted = options.pop("shared", False), options.pop("weighted", False)
    X, y, task = _data(shared, options.pop("features", 90), dtype)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(X)) if weighted else None
    seen: list[Any] = []
    began = device_folds.DeviceFolds.__init__

    def keep(self: Any, problem: Any, trainings: Any, ratios: Any, tol: float) -> None:
        began(self, problem, trainings, ratios, tol)
        seen.append((self, problem, trainings))

    monkeypatch.setattr(device_folds.DeviceFolds, "__init__", keep)
    found = model(cv=3, n_alphas=12, fold_tol=1e-5, random_state=0, **options)
    found.fit(ts.on_device(X, device), y, task=task, sample_weight=weights)
    (folds, problem, trainings), = seen
    assert folds.live.all()
    for values, ratio, training in zip(folds.found, folds.ratios[1:], trainings, strict=True):
        assert len(values) == 12
        for value in values:
            gap, null = _gap(X, y, task, np.asarray(training), ratio, value, problem)
            assert gap <= value.dual_gap + 1e-11 * null
            assert value.dual_gap <= 1e-5 * null


def _gap(X: Any, y: Any, task: Any, training: Any, ratio: float, value: Any, problem: Any) -> tuple[float, float]:
    """The duality gap of a fold's coefficients and intercepts in plain NumPy, and the loss of the best constants."""
    X = X.astype(float)
    tasks = 3
    W = np.zeros((X.shape[1], tasks))
    W[value.features] = value.rows
    rows = [np.arange(len(X)) if task is None else np.flatnonzero(task == t) for t in range(tasks)]
    cuts = np.cumsum([0, *map(len, rows)])
    penalty = problem.penalty.with_fixed_ridge(ratio).at(value.lam)
    lam, ridge = penalty.group_form(), float(penalty.ridge)
    intercept = problem.design.fit_intercept
    primal = null = inner = square = 0.0
    products = np.empty((X.shape[1], tasks))
    for t in range(tasks):
        s = training[cuts[t] : cuts[t + 1]]
        labels = y[:, t] if task is None else y[rows[t]]
        x = X[rows[t]]
        residual = labels - x @ W[:, t] - value.intercept[t]
        primal += 0.5 * s @ residual**2
        null += 0.5 * s @ (labels - (np.average(labels, weights=s) if intercept else 0.0)) ** 2
        dual = s * (residual - (np.average(residual, weights=s) if intercept else 0.0))
        products[:, t] = x.T @ dual
        inner += dual @ labels
        square += dual @ np.divide(dual, s, out=np.zeros_like(dual), where=s > 0)
    products -= ridge * W
    primal += lam @ np.linalg.norm(W, axis=1) + 0.5 * ridge * np.sum(W**2)
    square += ridge * np.sum(W**2)
    # the dual point is the residual times a factor: the best one that is feasible
    factor = min(inner / square, 1.0 / np.max(np.linalg.norm(products, axis=1) / lam))
    return primal - factor * inner + 0.5 * factor**2 * square, null


@pytest.mark.parametrize("early", [False, True])
def test_as_folds_one_by_one(early: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, task = _data(False, 90, "int8")
    settings: Any = {"cv": 3, "n_alphas": 8, "fold_tol": 1e-9, "random_state": 0, "early_stopping": early}
    there = ts.on_device(X, "cpu")
    together = ts.MultiTaskLassoCV(**settings).fit(there, y, task=task)
    monkeypatch.setattr(row_folds, "device_folds", lambda *_: None)
    alone = ts.MultiTaskLassoCV(**settings).fit(there, y, task=task)
    assert together.alpha_ == alone.alpha_
    assert np.allclose(together.path_scores_, alone.path_scores_, rtol=1e-5)
    assert together.passes_ < alone.passes_


def test_a_fold_that_stalls_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from tasksieve.solvers.batch_newton import BatchNewton

    X, y, task = _data(False, 90, "float64")
    settings: Any = {"cv": 3, "n_alphas": 10, "fold_tol": 1e-9, "random_state": 0, "early_stopping": False}
    there = ts.on_device(X, "cpu")
    expected = ts.MultiTaskLassoCV(**settings).fit(there, y, task=task)
    step, count = BatchNewton.step, [0]

    def some(self: Any, rows: int, again: bool) -> None:
        count[0] += 1
        if count[0] < 12:
            step(self, rows, again)

    monkeypatch.setattr(BatchNewton, "step", some)
    found = ts.MultiTaskLassoCV(**settings).fit(there, y, task=task)
    assert count[0] > 12
    assert np.allclose(found.path_scores_, expected.path_scores_, rtol=1e-5)


@pytest.mark.parametrize("lengths", [[5], [3, 40, 1], [200, 17]])
def test_digits_are_the_vectors(lengths: list[int]) -> None:
    import torch

    from tasksieve.design.device import digits

    rng = np.random.default_rng(3)
    offsets = np.r_[0, np.cumsum(lengths)]
    vectors = rng.standard_normal((4, offsets[-1])) * 10.0 ** rng.integers(-9, 9, (4, 1))
    vectors[1, : lengths[0]] = 0.0
    planes, units, lost = digits.planes_of(torch.tensor(vectors), offsets, torch.tensor(offsets))
    places = np.array([2.0**21, 2.0**14, 2.0**7, 1.0])
    whole = np.tensordot(places, planes.numpy().astype(float), 1)[:4, : offsets[-1]]
    again = whole * np.repeat(units.numpy(), lengths, axis=0).T[:4]
    assert np.all(np.linalg.norm(again - vectors, axis=1) <= lost.numpy() + 1e-300)
    assert np.all(lost.numpy() <= 1e-7 * np.linalg.norm(vectors, axis=1) * np.sqrt(max(lengths)))
    assert not planes[:, 4:].any()


@pytest.mark.gpu
@pytest.mark.parametrize("lengths", [[50] * 5, [3, 40, 1, 300], [128, 64], [1000]])
def test_lengths_by_digits(lengths: list[int]) -> None:
    import torch

    from tasksieve.design.device.storage import DeviceStorage

    rng = np.random.default_rng(4)
    offsets = np.r_[0, np.cumsum(lengths)]
    X = rng.integers(-128, 128, (offsets[-1], 301)).astype(np.int8)
    vectors = rng.standard_normal((19, offsets[-1]))
    storage = DeviceStorage.of([torch.tensor(X)], None, torch.device("cuda"))
    found, lost = storage.lengths_of(torch.tensor(vectors, device="cuda"), offsets)
    parts = [slice(a, b) for a, b in zip(offsets, offsets[1:], strict=False)]
    products = np.stack([vectors[:, part] @ X[part].astype(float) for part in parts], axis=2)
    longest = np.max([np.linalg.norm(X[part].astype(float), axis=0) for part in parts], axis=0)
    away = np.abs(found.cpu().numpy() - np.linalg.norm(products, axis=2))
    assert np.all(away <= lost.cpu().numpy()[:, None] * longest + 1e-12 * longest)
    assert bool((lost > 0.0).all())
