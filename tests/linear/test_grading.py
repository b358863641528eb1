"""Grading coefficients that any program has produced."""

from __future__ import annotations

from pathlib import Path
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


def test_a_path_is_one_certificate(shared: Any) -> None:
    X, y = shared[0], shared[1][:, 0]
    alphas = [0.1, 0.5, 0.02]  # in any order
    models = [linear_model.Lasso(alpha=alpha, tol=1e-3).fit(X, y) for alpha in alphas]
    coef, intercept = np.array([m.coef_ for m in models]), np.array([m.intercept_ for m in models])
    path = ts.grade(coef, intercept, X, y, alpha=alphas)
    assert len(path) == 3
    assert path.alphas.tolist() == alphas
    assert path.verify(exact=True)
    assert len(path.summary().splitlines()) == 4
    singles = [ts.grade(m.coef_, m.intercept_, X, y, alpha=a) for m, a in zip(models, alphas, strict=True)]
    for k, alone in enumerate(singles):
        assert path.objectives[k] == pytest.approx(alone.objective, rel=1e-12)
        assert path.dual_gaps[k] == pytest.approx(alone.dual_gap, rel=1e-3, abs=1e-9)
        low, high = path[k].excess_bounds
        exact = linear_model.Lasso(alpha=alphas[k], tol=1e-14, max_iter=10**6).fit(X, y)
        best = objective(X, y[:, None], exact.coef_[None], np.array([exact.intercept_]), alphas[k])
        assert low - 1e-12 <= path.objectives[k] - best <= high + 1e-12
        assert high == path.dual_gaps[k]
    assert path.excess_bounds[:, 0].max() > 1e-6
    alone = ts.grade(coef, intercept, X, y, alpha=alphas, solve=False)
    assert alone.excess_bounds[:, 0].tolist() == [0.0, 0.0, 0.0]
    assert (alone.dual_gaps >= path.dual_gaps).all()
    with pytest.raises(ValueError, match="3 strengths"):
        ts.grade(coef[:2], intercept[:2], X, y, alpha=alphas)


def test_polishing_starts_from_what_was_graded(shared: Any) -> None:
    X, Y = shared
    theirs = linear_model.MultiTaskLasso(alpha=0.1, tol=1e-2).fit(X, Y)
    found = ts.grade(theirs, X, Y)
    polished = found.polish(tol=1e-10)
    assert polished.relative_gap < 1e-9 < found.relative_gap
    assert polished.coef.shape == theirs.coef_.shape
    assert polished.processor_time > 0.0
    assert polished.certificate.verify(X, Y)
    np.testing.assert_allclose(polished.model.predict(X), X @ polished.coef.T + polished.intercept)
    again = ts.grade(polished.coef, polished.intercept, X, Y, alpha=0.1)
    assert again.relative_gap < 1e-9
    assert not again.wrong_nonzero.any()
    from_the_end = again.polish()
    assert from_the_end.model.n_iter_ <= polished.model.n_iter_


@pytest.mark.parametrize("form", ["one", "tasks", "shared", "list"])
def test_intercepts_that_are_held(shared: Any, form: str) -> None:
    X, Y = shared
    y, held, task = Y[:, 0], np.array([1.5]), None
    parts = {"a": (X[:25], Y[:25, 0]), "b": (X[25:], Y[25:, 0])}
    if form != "one":
        held = np.array([1.5, 2.5])
    if form == "tasks":
        task = np.repeat(["a", "b"], [25, 15])
    given: Any = {"one": (X, y), "tasks": (X, y), "shared": (X, Y[:, :2])}.get(form)
    if form == "list":
        given = [X for X, _ in parts.values()], [y for _, y in parts.values()]
    coef = np.zeros((len(held), X.shape[1]))
    found = ts.grade(coef, held, *given, task=task, alpha=0.1, fit_intercept="given")
    if form in ("one", "tasks"):
        offsets = 1.5 + np.r_[np.zeros(25), np.full(15, float(form == "tasks"))]
        same = ts.grade(coef, None, *given, task=task, alpha=0.1, fit_intercept=False, offset=offsets)
        assert found.objective == same.objective
    whole = [y] if form == "one" else [Y[:, 0], Y[:, 1]] if form == "shared" else [p[1] for p in parts.values()]
    n_bar = np.mean([len(part) for part in whole])
    squares = sum(np.sum((part - b) ** 2) for part, b in zip(whole, held, strict=True))
    assert found.objective == pytest.approx(squares / 2 / n_bar, rel=1e-12)
    assert found.verify()
    assert np.all(np.atleast_1d(found.polish().model.intercept_) == 0.0)


def test_forged_grades_are_refused(shared: Any) -> None:
    X, Y = shared
    theirs = linear_model.MultiTaskLasso(alpha=0.1).fit(X, Y)
    found = ts.grade(theirs, X, Y)
    assert found.verify()
    assert found.verify(exact=True)
    for name, forge in (
        ("coef", lambda values: values * 1.001),
        ("objective", lambda values: values - 1e-3),
        ("gap", lambda values: 0.0 * values),
        ("dual", lambda values: 0.9 * values),
        ("intercept", lambda values: values + 0.01),
    ):
        arrays = {**found.certificate.arrays, name: forge(found.certificate.arrays[name])}
        forged = type(found.certificate)(found.certificate.header, arrays)
        assert not forged.verify(X, Y), name
        assert not forged.verify(X, Y, exact=True), name
    arrays = {**found.certificate.arrays}
    arrays["open"], arrays["open_start"] = arrays["open"][:0], np.zeros_like(arrays["open_start"])  # all are zero
    assert not type(found.certificate)(found.certificate.header, arrays).verify(X, Y)


def test_files_of_objects_are_not_opened(shared: Any, tmp_path: Path) -> None:
    X, Y = shared
    for name in ("model.pkl", "model.joblib", "model.rds"):
        (tmp_path / name).write_bytes(b"never read")
        for file in (tmp_path / name, str(tmp_path / name)):
            with pytest.raises(ValueError, match="not opened"):
                ts.grade(file, None, X, Y, alpha=0.1)
