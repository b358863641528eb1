"""Grading coefficients that any program has produced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import linear_model

import tasksieve as ts


@pytest.fixture(scope="module")
def shared() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 30)) + 0.8 * rng.standard_normal((40, 1))
    return X, X[:, :3] @ rng.standard_normal((3, 3)) + 0.3 * rng.standard_normal((40, 3)) + 2.0


def objective(X: np.ndarray, Y: np.ndarray, coef: np.ndarray, intercept: np.ndarray, alpha: float) -> float:
    left = Y - X @ coef.T - intercept
    return float(0.5 * np.sum(left**2) / len(Y) + alpha * np.linalg.norm(coef, axis=0).sum())


@pytest.mark.filterwarnings("error")
def test_scikit_learn_at_its_default_tolerance(shared: Any) -> None:
    X, Y = shared
    theirs = linear_model.MultiTaskLasso(alpha=0.1).fit(X, Y)
    found = ts.grade(theirs.coef_, theirs.intercept_, X, Y, alpha=0.1)
    ours = ts.MultiTaskLasso(0.1, tol=1e-12).fit(X, Y)
    assert found.objective == pytest.approx(objective(X, Y, theirs.coef_, theirs.intercept_, 0.1), rel=1e-12)
    assert found.best_objective == pytest.approx(ours.objective_, rel=1e-8)
    assert 0.0 < found.excess <= found.dual_gap < 1e-3
    assert found.relative_gap == pytest.approx(found.dual_gap / ours.null_objective_, rel=1e-9)
    assert not (found.proven_zero & ours.get_support()).any()
    assert not (found.proven_nonzero & ~ours.get_support()).any()
    assert found.proven_zero.sum() + found.proven_nonzero.sum() > 20
    assert found.certificate.verify(X, Y)


def test_without_a_solution_of_our_own(shared: Any) -> None:
    X, Y = shared
    theirs = linear_model.MultiTaskLasso(alpha=0.1).fit(X, Y)
    alone = ts.grade(theirs.coef_, theirs.intercept_, X, Y, alpha=0.1, solve=False)
    both = ts.grade(theirs.coef_, theirs.intercept_, X, Y, alpha=0.1)
    assert alone.excess is alone.best_objective is None
    assert both.dual_gap <= alone.dual_gap
    assert "our solution" not in alone.summary()
    assert "our solution is lower by" in both.summary()


def test_wrong_zeros_and_wrong_features_are_named(shared: Any) -> None:
    X, Y = shared
    ours = ts.MultiTaskLasso(0.2, tol=1e-12).fit(X, Y)
    support = np.flatnonzero(ours.get_support())
    outside = np.flatnonzero(~ours.get_support())
    coef = ours.coef_.copy()
    strongest = support[np.argmax(np.linalg.norm(coef[:, support], axis=0))]
    coef[:, strongest], coef[:, outside[0]] = 0.0, 0.1
    found = ts.grade(coef, ours.intercept_, X, Y, alpha=0.2)
    assert np.flatnonzero(found.wrong_zero).tolist() == [strongest]
    assert np.flatnonzero(found.wrong_nonzero).tolist() == [outside[0]]
    assert f"provably wrong ({outside[0]})" in found.summary()
    right = ts.grade(ours.coef_, ours.intercept_, X, Y, alpha=0.2)
    assert not right.wrong_zero.any()
    assert not right.wrong_nonzero.any()
    assert right.dual_gap < 1e-9


def glmnet_lasso(X: np.ndarray, y: np.ndarray, alpha: float, thresh: float = 1e-7) -> tuple[np.ndarray, float]:
    """Coordinate descent with glmnet's rule: until no coefficient changes the fit by more than thresh of the null
    deviance."""
    n = len(y)
    x, residual, w = X - X.mean(axis=0), y - y.mean(), np.zeros(X.shape[1])
    squares, null = (x * x).sum(axis=0) / n, residual @ residual / n
    while True:
        largest = 0.0
        for j in range(len(w)):
            old, pull = w[j], x[:, j] @ residual / n + squares[j] * w[j]
            w[j] = np.sign(pull) * max(abs(pull) - alpha, 0.0) / squares[j]
            residual -= x[:, j] * (w[j] - old)
            largest = max(largest, squares[j] * (w[j] - old) ** 2)
        if largest < thresh * null:
            return w, y.mean() - X.mean(axis=0) @ w


def test_an_answer_in_the_manner_of_glmnet(shared: Any) -> None:
    X, y = shared[0], shared[1][:, 0]
    w, b = glmnet_lasso(X, y, 0.05)
    found = ts.grade(w, b, X, y, alpha=0.05)
    assert 0.0 < found.excess <= found.dual_gap < 1e-3
    assert found.proven_zero.any()


def test_other_losses_and_penalties(shared: Any) -> None:
    X, Y = shared
    labels = (Y[:, 0] > np.median(Y[:, 0])).astype(int)
    theirs = linear_model.LogisticRegression(l1_ratio=1.0, solver="saga", C=1.0, tol=1e-3, max_iter=3000).fit(X, labels)
    found = ts.grade(
        theirs.coef_[0], theirs.intercept_[0], X, labels, loss="logistic", penalty="l11", alpha=1.0 / len(X)
    )
    assert 0.0 < found.excess <= found.dual_gap < 0.1
    model = ts.MultiTaskRegressor("huber", "linf", alpha=0.1, ridge=0.1, tol=1e-9).fit(X, Y)
    same = ts.grade(model.coef_, model.intercept_, X, Y, loss="huber", penalty="linf", alpha=0.1, ridge=0.1)
    assert same.dual_gap < 1e-6
    classes = np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.7]))
    model = ts.MultiTaskClassifier(alpha=0.05, tol=1e-9).fit(X, classes)
    same = ts.grade(model.coef_, model.intercept_, X, classes, loss="logistic", alpha=0.05)
    assert same.objective == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"coef": np.zeros((2, 30))}, r"coef has shape \(2, 30\).*\(3, 30\)"),
        ({"intercept": np.zeros(2)}, "intercept has 2 entries"),
        ({"coef": np.full((3, 30), np.nan)}, r"coef\[0, 0\] is nan"),
        ({"intercept": [0.0, np.inf, 0.0]}, r"intercept\[1\]"),
        ({"alpha": -1.0}, "alpha"),
        ({"fit_intercept": False}, "intercept must be 0"),
        ({"positive": True, "coef": -np.ones((3, 30))}, "positive=True"),
        ({"loss": "nothing"}, "loss"),
        ({"class_weight": "balanced"}, "class_weight"),
    ],
    ids=str,
)
def test_bad_input(shared: Any, change: dict[str, Any], words: str) -> None:
    X, Y = shared
    given = {"coef": np.zeros((3, 30)), "intercept": np.ones(3), "alpha": 0.1, **change}
    with pytest.raises(ValueError, match=words):
        ts.grade(given.pop("coef"), given.pop("intercept"), X, Y, **given)
