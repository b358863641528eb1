"""Scorers of scikit-learn on held-out rows of several tasks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import accuracy_score, log_loss, r2_score

import tasksieve as ts
from tasksieve.fitted.held_out import mean_score, one_task, read_scorer


def parts(X, y, task, weights=None):
    return {
        t: (X[task == t], y[task == t], None if weights is None else weights[task == t])
        for t in np.unique(task).tolist()
    }


def test_numbers(rng):
    X, task = rng.standard_normal((60, 4)), np.repeat([0, 1], 30)
    y = X[:, 0] * (1 + task) + 0.1 * rng.standard_normal(60)
    model = ts.MultiTaskLasso(0.1).fit(X, y, task=task)
    predicted = model.predict(X, task=task)
    expected = np.mean([r2_score(y[task == t], predicted[task == t]) for t in (0, 1)])
    assert is_regressor(one_task(model, 0))
    assert mean_score(read_scorer("r2"), model, parts(X, y, task)) == pytest.approx(expected)
    weights = rng.uniform(size=60)
    weighted = [r2_score(y[task == t], predicted[task == t], sample_weight=weights[task == t]) for t in (0, 1)]
    assert mean_score(read_scorer("r2"), model, parts(X, y, task, weights)) == pytest.approx(np.mean(weighted))


def test_classes_and_their_pairs(rng):
    X, task = rng.standard_normal((80, 4)), np.repeat([0, 1], 40)
    y = np.where(task == 0, np.where(X[:, 0] > 0, "a", "b"), np.where(X[:, 1] > 0, "c", "d"))
    model = ts.MultiTaskLogisticRegression(0.01).fit(X, y, task=task)
    assert is_classifier(one_task(model, 1))
    assert one_task(model, 1).classes_.tolist() == ["c", "d"]
    found = mean_score(read_scorer("accuracy"), model, parts(X, y, task))
    predicted = model.predict(X, task=task)
    assert found == pytest.approx(np.mean([accuracy_score(y[task == t], predicted[task == t]) for t in (0, 1)]))
    p = model.predict_proba(X, task=task)
    expected = -np.mean([log_loss(y[task == t], p[task == t]) for t in (0, 1)])
    assert mean_score(read_scorer("neg_log_loss"), model, parts(X, y, task)) == pytest.approx(expected)


def test_tasks_without_a_score_are_left_out(rng):
    X, task = rng.standard_normal((40, 3)), np.repeat([0, 1], 20)
    model = ts.MultiTaskLasso(0.1).fit(X, X[:, 0], task=task)

    def scorer(estimator, rows, y):
        return float("nan") if rows[0, 0] == X[0, 0] else 0.5

    every = parts(X, X[:, 0], task)
    assert mean_score(scorer, model, every) == 0.5
    assert np.isnan(mean_score(scorer, model, {0: every[0]}))


def test_what_is_no_scorer():
    with pytest.raises(ValueError, match="'scoring' parameter"):
        read_scorer(3)
    with pytest.raises(ValueError, match="nonsense"):
        read_scorer("nonsense")
