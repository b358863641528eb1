"""Findings on tensors are those on arrays: folds, halves, permutations, splits, comparisons, refits, certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_helpers import DEVICES, tensor, untouched

import tasksieve as ts

Data = tuple[Any, Any, Any]


@pytest.fixture
def data(rng: np.random.Generator) -> Data:
    task = rng.permutation(np.repeat(["a", "b", "c"], [26, 31, 33]))
    X = rng.integers(0, 3, (len(task), 50)).astype(np.float64)
    return X, X[:, 0] - 2 * X[:, 7] + 0.5 * rng.standard_normal(len(task)), task


@pytest.fixture(params=DEVICES)
def there(request: Any, data: Data) -> Any:
    return tensor(data[0], "int8", request.param)


OPTIONS: dict[str, Any] = {"n_alphas": 5, "eps": 0.1, "cv": 3}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("early", [False, True])
def test_folds(data: Data, there: Any, early: bool) -> None:
    X, y, task = data
    for model in (ts.MultiTaskLassoCV, ts.MultiTaskSparseGroupLassoCV, ts.MultiTaskHuberCV):
        a = model(early_stopping=early, **OPTIONS).fit(there, y, task=task)
        b = model(early_stopping=early, **OPTIONS).fit(X, y, task=task)
        assert np.allclose(a.cv_scores_, b.cv_scores_, rtol=1e-2, equal_nan=True)
        assert np.array_equal(a.get_support(), b.get_support())
        assert np.allclose(a.cv_predictions_, b.cv_predictions_, atol=0.05)
        assert isinstance(a.cv_predictions_, np.ndarray)
    shared = ts.MultiTaskLassoCV(**OPTIONS).fit(there, np.stack([y, -y], axis=1))
    assert shared.cv_scores_.shape == (5, 3)


def test_splitters_and_cross_validate(data: Data, there: Any) -> None:
    from sklearn.metrics import r2_score
    from sklearn.model_selection import ShuffleSplit, cross_validate

    X, y, task = data
    cv = ShuffleSplit(3, random_state=0)
    a = ts.MultiTaskLassoCV(n_alphas=4, cv=cv).fit(there, tensor(y, device=there.device.type))
    b = ts.MultiTaskLassoCV(n_alphas=4, cv=cv).fit(X, y)
    assert np.allclose(a.cv_scores_, b.cv_scores_, rtol=1e-2)
    train, test = next(iter(ts.TaskKFold(3, shuffle=False).split(there, groups=task)))
    assert len(train) + len(test) == len(y)
    scores = cross_validate(ts.MultiTaskLasso(0.1), there, y, cv=3)["test_score"]
    assert np.allclose(scores, cross_validate(ts.MultiTaskLasso(0.1), X, y, cv=3)["test_score"], atol=1e-4)
    scorer = ts.task_scorer(r2_score)
    model = ts.MultiTaskLasso(0.1).fit(X, y, task=task)
    assert scorer(model, there, y, task=task) == pytest.approx(scorer(model, X, y, task=task))


def test_stability(data: Data, there: Any) -> None:
    X, y, task = data
    a = ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=8).fit(there, y, task=task)
    b = ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=8).fit(X, y, task=task)
    assert np.array_equal(a.get_support(), b.get_support())
    assert np.allclose(a.selection_probabilities_, b.selection_probabilities_, atol=1 / 8)
    assert a.halves_ == b.halves_
    assert a.transform(there).shape == (len(y), int(a.get_support().sum()))


def test_permutations(data: Data, there: Any) -> None:
    X, y, task = data
    a = ts.permutation_test(ts.MultiTaskLasso(), there, y, task=task, n_permutations=19)
    b = ts.permutation_test(ts.MultiTaskLasso(), X, y, task=task, n_permutations=19)
    assert a.pvalue == b.pvalue
    assert np.allclose(a.null, b.null)


def test_splits_refits_and_knockoffs(data: Data, there: Any) -> None:
    X, y, task = data
    model = ts.MultiTaskLasso(0.3)
    a, b = ts.split_inference(model, there, y, task=task), ts.split_inference(model, X, y, task=task)
    assert np.array_equal(a.feature, b.feature)
    assert np.allclose(a.estimate, b.estimate)
    model.fit(there, y, task=task)
    assert np.allclose(ts.refit(model, there, y, task=task).coef_, ts.refit(model, X, y, task=task).coef_)
    knockoffs = ts.KnockoffSelection(ts.MultiTaskLasso(), fdr=0.5)
    found = knockoffs.fit(there[:, :20], y, task=task).W_
    assert np.allclose(found, knockoffs.fit(X[:, :20], y, task=task).W_, atol=1e-3)


@pytest.mark.parametrize("form", ["stacked", "list", "shared"])
def test_comparisons(data: Data, there: Any, form: str) -> None:
    X, y, task = data
    model = ts.MultiTaskLassoCV(n_alphas=3, eps=0.3, cv=3)
    rows: dict[str, Any] = {"y": y, "task": task}
    if form == "list":
        X = [X[task == t] for t in "abc"]
        there = [there[tensor(task == t, "bool", there.device.type)] for t in "abc"]
        rows = {"y": [y[task == t] for t in "abc"]}
    elif form == "shared":
        rows = {"y": np.stack([y, y[::-1]], axis=1)}
    a, b = ts.compare(model, there, **rows, cv=3), ts.compare(model, X, **rows, cv=3)
    for name, found in a.differences.items():
        assert found.overall == pytest.approx(b.differences[name].overall, rel=1e-2, abs=1e-3)


def test_certificates(data: Data, there: Any, tmp_path: Path) -> None:
    X, y, task = data
    model = ts.MultiTaskLasso(0.1).fit(there, y, task=task)
    with untouched(there):
        certificate = model.certificate(there, y, task=task)
    assert certificate.verify(X, y, task=task).proved
    assert certificate.header == model.certificate(X, y, task=task).header  # the digests of the data, too
    path = ts.MultiTaskLasso().path(there, y, task=task, n_alphas=4)
    assert path.certificate(there, y, task=task).verify(X, y, task=task).proved
    grade = ts.grade(model.coef_, model.intercept_, there, y, task=task, alpha=0.1)
    assert not grade.wrong_zero.any()
    assert not grade.wrong_nonzero.any()
    assert -1e-15 <= grade.excess <= model.dual_gap_  # both are as good as rounding lets them be


def test_checkpoints(data: Data, there: Any, tmp_path: Path) -> None:
    _, y, task = data
    with ts.checkpoint(tmp_path):
        first = ts.MultiTaskLassoCV(**OPTIONS).fit(there, y, task=task)
        again = ts.MultiTaskLassoCV(**OPTIONS).fit(there, y, task=task)
    assert np.array_equal(first.cv_scores_, again.cv_scores_)
    assert len(list(tmp_path.iterdir())) >= 3


def test_tall_tensors(rng: np.random.Generator) -> None:
    """Many rows: arrays are summed once, tensors stay on their device; both find the same."""
    X = rng.standard_normal((300_000, 14)).astype(np.float32)
    y = X[:, 0] + rng.standard_normal(len(X))
    a, b = ts.MultiTaskLasso(0.05).fit(tensor(X, "float32"), y), ts.MultiTaskLasso(0.05).fit(X, y)
    assert np.array_equal(a.get_support(), b.get_support())
    assert abs(a.objective_ - b.objective_) <= a.dual_gap_ + b.dual_gap_


def test_debiased_intervals(data: Data, there: Any) -> None:
    X, y, task = data
    model = ts.MultiTaskLasso(0.3).fit(X, y, task=task)
    found = ts.debiased_inference(model, there, y, task=task, features=[0, 7, 9])
    expected = ts.debiased_inference(model, X, y, task=task, features=[0, 7, 9])
    for name in ("estimate", "std_error", "bias_factor", "row_holm"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9)
