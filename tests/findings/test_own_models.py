"""Models of single tasks found together are those found one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import tasksieve as ts
from tasksieve.findings.contenders import OWN, Contenders
from tasksieve.findings.own_models import OwnModels
from tasksieve.tasks import read_tasks

SIZES = (25, 30, 41)
D = 5


def rows_of_tasks(rng: np.random.Generator) -> tuple[list[Any], list[Any], list[Any]]:
    """Matrices, scores and folds; in the last task rows count once to three times, and some do not count."""
    matrices = [rng.standard_normal((n, D)) * rng.uniform(0.5, 20.0) for n in SIZES]
    scores = [X @ (rng.standard_normal(D) * (rng.random(D) < 0.6)) / X.std() for X in matrices]
    weights = [np.ones(n) for n in SIZES]
    weights[-1] = rng.integers(0, 4, SIZES[-1]).astype(float)
    return matrices, scores, weights


def contenders(model: Any, X: list[Any], y: list[Any], weights: list[Any]) -> Contenders:
    labels = read_tasks(X, y, None, weights, targets="classes" if y[0].dtype.kind == "i" else "values")
    return Contenders(clone(model), X, y, None, labels, False)


@pytest.mark.parametrize(
    "model",
    [
        ts.MultiTaskLassoCV(n_alphas=9, eps=0.01, fold_tol=1e-8, tol=1e-9),
        ts.MultiTaskLassoCV(alphas=[3.0, 1.0, 0.1, 0.02], fold_tol=1e-8, standardize=True, selection_rule="1se"),
        ts.MultiTaskLogisticRegressionCV(n_alphas=7, eps=0.05, fold_tol=1e-8, tol=1e-9),
        ts.MultiTaskRegressorCV("huber", n_alphas=6, eps=0.05, fold_tol=1e-7, fit_intercept=False),
    ],
    ids=["lasso", "given alphas", "logistic", "huber"],
)
def test_models_found_together_are_those_found_one_by_one(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    X, z, weights = rows_of_tasks(rng)
    y = [own + rng.standard_normal(len(own)) for own in z]
    if "Logistic" in type(model).__name__:
        y = [(own > 0.0).astype(int) for own in y]
    own = contenders(model, X, y, weights)
    fold = np.concatenate([np.arange(n) % 3 for n in SIZES])
    fold[-4:] = -1
    flat = np.concatenate(weights)
    assert own._own_models is not None
    found = own._own_models.fit(flat, fold)
    assert found is not None
    together = own.fit(OWN, flat, fold)
    monkeypatch.setattr(OwnModels, "fit", lambda self, weights, fold: None)
    one_by_one = own.fit(OWN, flat, fold)
    assert np.std(one_by_one["loss"]) > 0.0
    np.testing.assert_allclose(together["loss"], one_by_one["loss"], rtol=2e-3, atol=2e-4)
    np.testing.assert_array_equal(np.isnan(together["judged"]), np.isnan(one_by_one["judged"]))


@pytest.mark.parametrize(
    "model",
    [
        ts.MultiTaskElasticNetCV(),
        ts.MultiTaskLogisticRegressionCV(ridge=0.1),
        ts.MultiTaskLassoCV(early_stopping=True),
        ts.MultiTaskLassoCV(feature_weights=np.ones(D)),
        ts.MultiTaskLassoCV(scoring="r2"),
        ts.MultiTaskOWLCV(),
    ],
    ids=["elastic net", "ridge", "early", "weights", "scoring", "owl"],
)
def test_others_are_found_one_by_one(model: Any) -> None:
    rng = np.random.default_rng(0)
    X, z, weights = rows_of_tasks(rng)
    y = [(own > 0.0).astype(int) for own in z] if "Logistic" in type(model).__name__ else z
    assert contenders(model, X, y, weights)._own_models is None
