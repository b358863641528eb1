"""scikit-learn's problems: its tightest answers are optimal in our words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from foreign_cases import Rows, same
from sklearn import linear_model, svm
from sklearn.base import clone

import tasksieve as ts

ROWS = Rows()
CLOSE = {"tol": 1e-14, "max_iter": 1_000_000}
NEWTON = {"tol": 1e-11, "max_iter": 1_000_000}

LEAST_SQUARES = [
    linear_model.Lasso(alpha=0.1, **CLOSE),
    linear_model.Lasso(alpha=0.1, positive=True, fit_intercept=False, **CLOSE),
    linear_model.ElasticNet(alpha=0.1, l1_ratio=0.3, **CLOSE),
    linear_model.LassoLars(alpha=0.1),
    linear_model.MultiTaskLasso(alpha=0.1, **CLOSE),
    linear_model.MultiTaskElasticNet(alpha=0.1, l1_ratio=0.3, **CLOSE),
    linear_model.ElasticNetCV(l1_ratio=[0.3, 0.9], cv=3, **CLOSE),
]
CLASSIFIERS = [
    linear_model.LogisticRegression(C=0.3, l1_ratio=0.6, solver="saga", **NEWTON),
    linear_model.LogisticRegression(C=0.3, l1_ratio=1, solver="liblinear", intercept_scaling=2.0, **NEWTON),
    linear_model.LogisticRegression(C=0.3, l1_ratio=1, solver="liblinear", class_weight={0: 1, 1: 3}, **NEWTON),
    linear_model.LogisticRegression(C=0.3, l1_ratio=1, solver="saga", class_weight="balanced", **NEWTON),
    svm.LinearSVC(penalty="l1", dual=False, C=0.3, tol=1e-8, max_iter=1_000_000),
]


@pytest.mark.parametrize("model", LEAST_SQUARES, ids=str)
def test_least_squares(model: Any) -> None:
    several = type(model).__name__.startswith("MultiTask")
    y = ROWS.Y if several else ROWS.y
    found = ts.grade(clone(model).fit(ROWS.X, y), ROWS.X, y)
    same(found)
    if type(model).__name__ == "Lasso":
        weighted = clone(model).fit(ROWS.X, y, sample_weight=ROWS.weights)
        same(ts.grade(weighted, ROWS.X, y, sample_weight=ROWS.weights))


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_two_classes(model: Any) -> None:
    found = ts.grade(clone(model).fit(ROWS.X, ROWS.two), ROWS.X, ROWS.two)
    same(found)
    assert found.verify()


def test_several_classes() -> None:
    model = linear_model.LogisticRegression(C=0.3, l1_ratio=1, solver="saga", **NEWTON).fit(ROWS.X, ROWS.three)
    found = ts.grade(model, ROWS.X, ROWS.three)
    same(found)
    polished = found.polish()
    assert polished.coef.shape == model.coef_.shape
    np.testing.assert_allclose(polished.coef, model.coef_, atol=1e-4)


def test_stochastic_gradients_have_the_objective_of_their_documentation() -> None:
    r = ROWS
    coef, intercept = np.linspace(-0.2, 0.3, r.d), 0.4
    z, sign = r.X @ coef + intercept, 2 * r.two - 1
    penalty = 0.05 * (0.15 * np.abs(coef).sum() + 0.85 / 2 * coef @ coef)
    beyond = np.maximum(np.abs(r.y - z) - 0.1, 0.0)
    inside = np.minimum(np.abs(r.y - z), 0.1)
    for name, loss, y, factor, value in (
        ("SGDClassifier", "log_loss", r.two, 1.0, np.mean(np.log1p(np.exp(-sign * z)))),
        ("SGDClassifier", "squared_hinge", r.two, 2.0, np.mean(np.maximum(0.0, 1.0 - sign * z) ** 2)),
        ("SGDRegressor", "huber", r.y, 1.0, np.mean(inside**2 / 2 + 0.1 * beyond)),
    ):
        parameters = {"estimator": name, "loss": loss, "penalty": "elasticnet", "alpha": 0.05}
        found = ts.grade(coef, intercept, r.X, y, problem="sklearn", parameters=parameters, solve=False)
        assert factor * found.objective == pytest.approx(value + penalty, rel=1e-12)


def test_what_is_another_problem_is_refused() -> None:
    for parameters, y, words in (
        ({"estimator": "PoissonRegressor", "alpha": 1.0}, ROWS.three, "a ridge alone"),
        ({"estimator": "QuantileRegressor"}, ROWS.y, "not smooth"),
        (
            {"estimator": "LogisticRegression", "penalty": "l1", "solver": "liblinear"},
            ROWS.three,
            "one against",
        ),
        ({"estimator": "LogisticRegression"}, ROWS.two, "ridge alone"),
        ({"estimator": "Lasso", "alphas_of_mine": 1}, ROWS.y, "not known"),
        ({"estimator": "Tree"}, ROWS.y, "estimator must be one of"),
        ({"estimator": "Lasso", "positive": "yes"}, ROWS.y, "positive must be True or False"),
    ):
        with pytest.raises(ValueError, match=words):
            ts.grade(np.zeros(ROWS.d), 0.0, ROWS.X, y, problem="sklearn", parameters=parameters)
    with pytest.raises(ValueError, match="not fitted"):
        ts.grade(linear_model.Lasso(), ROWS.X, ROWS.y)
    with pytest.raises(ValueError, match="problem must be one of"):
        ts.grade(np.zeros(ROWS.d), 0.0, ROWS.X, ROWS.y, problem="SPSS", parameters={})
    with pytest.raises(ValueError, match="its own loss, penalty, strength"):
        ts.grade(np.zeros(ROWS.d), 0.0, ROWS.X, ROWS.y, problem="sklearn", parameters={}, loss="huber")
