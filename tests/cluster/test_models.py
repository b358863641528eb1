"""What is done with models on a cluster: prediction, scores, cross-validation, stability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cluster.examples import stacked

import tasksieve as ts

da = pytest.importorskip("dask.array")


def lazy(X: Any, rows: int = 40) -> Any:
    return da.from_array(X, chunks=(rows, 500))


def test_predictions_are_lazy(client: Any) -> None:
    X, y, task = stacked(21)
    model = ts.MultiTaskLasso(alpha=0.2).fit(X, y, task=task)
    found = model.predict(lazy(X), task=task)
    assert isinstance(found, da.Array)
    np.testing.assert_allclose(found.compute(), model.predict(X, task=task), rtol=1e-12)
    np.testing.assert_allclose(model.predict(lazy(X)).compute(), model.predict(X), rtol=1e-12)
    np.testing.assert_allclose(model.score(lazy(X), y, task=task), model.score(X, y, task=task))
    parts = [X[task == t] for t in range(4)]
    for here, there in zip(model.predict(parts), model.predict([lazy(part) for part in parts]), strict=True):
        np.testing.assert_allclose(there.compute(), here, rtol=1e-12)
    with pytest.raises(ValueError, match="1499 features"):
        model.predict(lazy(X[:, :-1]), task=task)


def test_labels_of_words_are_lazy(client: Any) -> None:
    X, y, task = stacked(22, kind="classes")
    words = np.array(["no", "yes"])[y]
    model = ts.MultiTaskLogisticRegression(alpha=0.02).fit(X, words, task=task)
    found = model.predict(lazy(X), task=task)
    assert isinstance(found, da.Array)
    np.testing.assert_array_equal(found.compute(), model.predict(X, task=task))
    np.testing.assert_allclose(model.predict_proba(lazy(X)).compute(), model.predict_proba(X), rtol=1e-12)
    assert model.score(lazy(X), words, task=task) == model.score(X, words, task=task)


def test_counts_offsets_and_classes(client: Any) -> None:
    X, y, task = stacked(23, kind="counts")
    model = ts.MultiTaskPoisson(alpha=0.3).fit(X, y, task=task, offset=0.1)
    here = model.predict(X, task=task, offset=0.1)
    np.testing.assert_allclose(model.predict(lazy(X), task=task, offset=0.1).compute(), here, rtol=1e-12)
    several = ts.MultinomialOWL(alpha=0.3).fit(X[:, :100], np.minimum(y, 2))
    np.testing.assert_array_equal(several.predict(lazy(X[:, :100])).compute(), several.predict(X[:, :100]))


@pytest.mark.parametrize("early_stopping", [False, True])
def test_cross_validation(client: Any, early_stopping: bool) -> None:
    X, y, task = stacked(24, d=800)
    options = {"cv": 3, "n_alphas": 8, "eps": 0.1, "early_stopping": early_stopping}
    here = ts.MultiTaskLassoCV(**options).fit(X, y, task=task)
    there = ts.MultiTaskLassoCV(**options).fit(da.from_array(X, chunks=(-1, 200)), y, task=task)
    assert there.alpha_ == pytest.approx(here.alpha_)
    np.testing.assert_allclose(there.cv_scores_, here.cv_scores_, rtol=1e-2)
    np.testing.assert_array_equal(there.get_support(), here.get_support())
    assert there.passes_ > 0


@pytest.mark.slow
def test_stability(client: Any) -> None:
    X, y, task = stacked(25, d=600)
    options = {"n_pairs": 3, "q": 4, "assumption": "none"}
    here = ts.StabilitySelection(ts.MultiTaskLasso(), **options).fit(X, y, task=task)
    there = ts.StabilitySelection(ts.MultiTaskLasso(), **options).fit(da.from_array(X, chunks=(-1, 200)), y, task=task)
    np.testing.assert_array_equal(there.selection_probabilities_, here.selection_probabilities_)
    np.testing.assert_array_equal(there.get_support(), here.get_support())


@pytest.mark.slow
def test_compare(client: Any) -> None:
    X, y, task = stacked(26, n_tasks=2, n=18, d=40)
    model = ts.MultiTaskLassoCV(cv=2, n_alphas=2, eps=0.3)
    here = ts.compare(model, X, y, task=task, cv=3, pooled=False).to_frame()
    there = ts.compare(model, da.from_array(X, chunks=(-1, 20)), y, task=task, cv=3, pooled=False).to_frame()
    for name in ("loss_shared", "loss_own", "loss_mean"):
        np.testing.assert_allclose(there[name], here[name], rtol=1e-2)
