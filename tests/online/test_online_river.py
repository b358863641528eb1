"""river's protocol: single rows, growing and hashed names, and the real river's pipelines, metrics and evaluation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.feature_extraction import FeatureHasher

import tasksieve as ts


def stream(rng, n=300, d=6):
    X = rng.standard_normal((n, d))
    task = rng.choice(["a", "b"], n)
    y = X[:, 0] * np.where(task == "a", 2.0, -1.0) + 0.1 * rng.standard_normal(n)
    return X, y, task


@pytest.mark.parametrize("missing", ["per-task", "importance", "rounds"])
def test_single_rows_equal_chunks(missing, rng):
    X, y, task = stream(rng)
    params = {"alpha": 0.05, "gamma": 15.0, "missing": missing}
    chunk = ts.OnlineMultiTaskRegressor(**params).partial_fit(X, y, task=task)
    arrays, dicts = ts.OnlineMultiTaskRegressor(**params), ts.OnlineMultiTaskRegressor(**params)
    for x, value, t in zip(X, y, task, strict=True):
        arrays.learn_one(x, value, task=t)
        dicts.learn_one({f"x{j}": v for j, v in enumerate(x)}, value, task=t)
    assert np.array_equal(arrays.coef_, chunk.coef_)
    np.testing.assert_allclose(dicts.coef_, chunk.coef_, atol=1e-12)
    assert dicts.feature_index_ == {f"x{j}": j for j in range(6)}
    for i in range(5):
        expected = chunk.predict(X[i : i + 1], task=task[i : i + 1])[0]
        assert arrays.predict_one(X[i], task=task[i]) == pytest.approx(expected, abs=1e-12)
        named = {f"x{j}": v for j, v in enumerate(X[i])} | {"never seen": 5.0}
        assert dicts.predict_one(named, task=task[i]) == pytest.approx(expected, abs=1e-12)


def test_features_grow(rng):
    X, y, task = stream(rng)
    X[:100, 3:] = 0.0
    rows = [{f"x{j}": v for j, v in enumerate(x) if v != 0.0} for x in X]
    model = ts.OnlineMultiTaskRegressor(0.05, gamma=15.0)
    for x, value, t in zip(rows[:100], y, task, strict=False):
        model.learn_one(x, value, task=t)
    assert model.coef_.shape == (2, 3)
    for x, value, t in zip(rows[100:], y[100:], task[100:], strict=True):
        model.learn_one(x, value, task=t)
    assert model.coef_.shape == (2, 6)
    matrix = ts.OnlineMultiTaskRegressor(0.05, gamma=15.0).partial_fit(
        scipy.sparse.csr_array(X), y, task=task
    )
    np.testing.assert_allclose(model.coef_, matrix.coef_, atol=1e-12)


def test_hashed_names_are_those_of_the_hasher(rng):
    X, y, task = stream(rng)
    rows = [{f"x{j}": float(v) for j, v in enumerate(x)} for x in X]
    hashed = FeatureHasher(32).transform(rows)
    expected = ts.OnlineMultiTaskRegressor(0.05, gamma=15.0).partial_fit(hashed, y, task=task)
    model = ts.OnlineMultiTaskRegressor(0.05, gamma=15.0, hash_features=32)
    for x, value, t in zip(rows, y, task, strict=True):
        model.learn_one(x, value, task=t)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-12)
    assert model.predict_one(rows[0], task="a") == pytest.approx(
        float(expected.predict(hashed[:1], task=["a"])[0]), abs=1e-12
    )
    model.learn_one({"colour": "red"}, 1.0, task="a")  # a word is a feature of its own


def test_nothing_learned_yet():
    assert ts.OnlineMultiTaskRegressor().predict_one({"a": 1.0}) == 0.0
    assert ts.OnlineMultiTaskClassifier().predict_one({"a": 1.0}) is None
    model = ts.OnlineMultiTaskRegressor()
    model.learn_one({"a": 1.0}, 1.0, task="u")
    assert model.predict_one({"a": 1.0}, task="v") == 0.0
    with pytest.raises(ValueError, match="NaN"):
        model.learn_one({"a": float("nan")}, 1.0, task="u")
    with pytest.raises(ValueError, match="pass task"):
        model.learn_one({"a": 1.0}, 1.0)
    before = model.coef_.copy()
    model.learn_one({"a": 1.0}, float("nan"), task="u")
    model.learn_one({"a": 1.0}, 1.0, task="u", w=0.0)
    assert np.array_equal(before, model.coef_)


def test_classes_arrive_one_by_one(rng):
    X, y, task = stream(rng)
    labels = np.where(y > 0, "yes", "no")
    chunk = ts.OnlineMultiTaskClassifier(0.05, gamma=10.0).partial_fit(X, labels, task=task)
    model = ts.OnlineMultiTaskClassifier(0.05, gamma=10.0)
    for x, label, t in zip(X, labels.tolist(), task.tolist(), strict=True):
        model.learn_one(x, label, task=t)
    np.testing.assert_allclose(model.coef_, chunk.coef_, atol=1e-12)
    expected = chunk.predict_proba(X[:1], task=task[:1])[0]
    found = model.predict_proba_one(X[0], task=task[0])
    assert found == {"no": pytest.approx(expected[0]), "yes": pytest.approx(expected[1])}
    assert model.predict_one(X[0], task=task[0]) == chunk.predict(X[:1], task=task[:1])[0]
    assert not hasattr(ts.OnlineMultiTaskClassifier(loss="hinge"), "predict_proba_one")


# --- the real river ---------------------------------------------------------------------------------------------------


def test_in_a_river_pipeline_with_routed_tasks(rng):
    pytest.importorskip("river")
    from river import metrics, preprocessing

    X, y, task = stream(rng, 600)
    model = preprocessing.StandardScaler() | ts.OnlineMultiTaskRegressor(0.05, gamma=10.0)
    metric = metrics.R2()
    for i, (x, value, t) in enumerate(zip(X, y, task, strict=True)):
        row = {f"x{j}": v for j, v in enumerate(x)}
        if i >= 300:
            metric.update(value, model.predict_one(row, task=t))
        model.learn_one(row, value, task=t)
    assert metric.get() > 0.8


def test_river_evaluates_it(rng):
    pytest.importorskip("river")
    from river import base, compose, evaluate, metrics, preprocessing

    X, y, task = stream(rng, 800)
    regressor = ts.OnlineMultiTaskRegressor(0.05, gamma=10.0, task_feature="task")
    assert isinstance(regressor, base.Regressor)
    rows = [
        ({f"x{j}": v for j, v in enumerate(x)} | {"task": t}, v) for x, v, t in zip(X, y, task, strict=True)
    ]
    scaled = compose.Select(*[f"x{j}" for j in range(6)]) | preprocessing.StandardScaler()
    pipeline = (scaled + compose.Select("task")) | regressor
    assert evaluate.progressive_val_score(rows, pipeline, metrics.R2()).get() > 0.6
    classifier = ts.OnlineMultiTaskClassifier(0.02, gamma=5.0, task_feature="task")
    assert isinstance(classifier, base.Classifier)
    labelled = [(x, bool(v > 0)) for x, v in rows]
    assert evaluate.progressive_val_score(labelled, classifier, metrics.Accuracy()).get() > 0.8
    assert evaluate.progressive_val_score(labelled, classifier, metrics.ROCAUC()).get() > 0.8
