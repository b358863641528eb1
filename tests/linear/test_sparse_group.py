"""Multi-task sparse group Lasso: the oracle, its special cases, screening of rows and entries."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import tasksieve as ts


def data(rng, n=60, d=15, classes=False):
    X = rng.standard_normal((n, d)) + 0.3
    task = np.repeat(["a", "b", "c"], n // 3)
    W = rng.standard_normal((d, 3)) * (np.arange(d) < 4)[:, None] * (rng.random((d, 3)) < 0.7)
    y = np.einsum("ij,ji->i", X, W[:, np.searchsorted(["a", "b", "c"], task)]) + 0.3 * rng.standard_normal(n)
    return X, np.where(y > np.median(y), 1, 0) if classes else y, task


@pytest.mark.sampled(4)
@pytest.mark.parametrize("group", [0.0, 1.0])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("positive", [False, True])
def test_against_the_oracle(loss, group, positive, rng):
    X, y, task = data(rng, classes=loss == "logistic")
    l1 = np.linspace(0.1, 1.0, 15)
    model = ts.MultiTaskSparseGroupLasso(0.05, l1=l1, group=group, loss=loss, positive=positive, tol=1e-9)
    model.fit(X, y, task=task)
    W, b = cp.Variable((15, 3)), cp.Variable(3)
    total = 0
    for q, label in enumerate("abc"):
        rows = task == label
        z = X[rows] @ W[:, q] + b[q]
        sign = np.where(y[rows] > 0, 1.0, -1.0)
        total += (
            cp.sum_squares(z - y[rows]) / 2
            if loss == "squared"
            else cp.sum(cp.logistic(-cp.multiply(sign, z)))
        )
    penalty = group * cp.sum(cp.norm(W, 2, axis=1)) + cp.sum(cp.multiply(l1[:, None], cp.abs(W)))
    constraints = [W >= 0] if positive else []
    problem = cp.Problem(cp.Minimize(total / 20 + 0.05 * penalty), constraints)
    problem.solve(solver=cp.CLARABEL)
    assert model.objective_ == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(model.coef_.T, W.value, atol=2e-4)
    assert model.objective_ - model.dual_gap_ <= problem.value * (1 + 1e-7)
    # the safe tests, at this gap and at a loose one
    for tol in (1e-2, 1e-4, 1e-9):
        rough = ts.MultiTaskSparseGroupLasso(0.05, l1=l1, group=group, loss=loss, positive=positive, tol=tol)
        zero = rough.fit(X, y, task=task).zero_coefficients(X, y, task=task)
        assert np.all(np.abs(W.value.T[zero]) < 1e-4)
    assert zero.sum() > 0.8 * np.count_nonzero(model.coef_ == 0)
    if group and not positive:
        inside = zero & ~zero.all(axis=0)
        assert inside.any()  # entries within rows that are not zero


def test_special_cases(rng):
    X, y, task = data(rng)
    plain = ts.MultiTaskLasso(0.1, tol=1e-9).fit(X, y, task=task)
    same = ts.MultiTaskSparseGroupLasso(0.1, l1=0.0, tol=1e-9).fit(X, y, task=task)
    np.testing.assert_allclose(same.coef_, plain.coef_, atol=1e-6)
    from sklearn.linear_model import Lasso

    single = ts.MultiTaskSparseGroupLasso(0.1, l1=1.0, group=0.0, tol=1e-10).fit(X, y, task=task)
    for q, label in enumerate("abc"):
        rows = task == label
        own = Lasso(0.1, tol=1e-12, max_iter=100_000).fit(X[rows], y[rows])
        np.testing.assert_allclose(single.coef_[q], own.coef_, atol=1e-5)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_path_and_screening_agree(loss, rng):
    X, y, task = data(rng, d=60, classes=loss == "logistic")
    model = ts.MultiTaskSparseGroupLasso(l1=0.3, loss=loss, tol=1e-8)
    top = model.alpha_max(X, y, task=task)
    assert not model.set_params(alpha=top).fit(X, y, task=task).coef_.any()
    assert model.set_params(alpha=0.99 * top).fit(X, y, task=task).coef_.any()
    kinds = (None, "gap", "auto") if loss == "logistic" else (None, "gap", "dpc", "auto")
    paths = [model.set_params(screening=kind).path(X, y, task=task, n_alphas=15, eps=0.1) for kind in kinds]
    for path in paths[1:]:
        for k in range(15):
            np.testing.assert_allclose(path.coef(k).toarray(), paths[0].coef(k).toarray(), atol=1e-4)
        assert path.rejection_ratios[1:3].min() > 0.0
    assert not paths[0].rejection_ratios.any()


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_cross_validation(loss, rng):
    X, y, task = data(rng, n=90, classes=loss == "logistic")
    model = ts.MultiTaskSparseGroupLassoCV(l1=0.2, loss=loss, n_alphas=12, eps=0.05, cv=3).fit(
        X, y, task=task
    )
    direct = ts.MultiTaskSparseGroupLasso(model.alpha_, l1=0.2, loss=loss).fit(X, y, task=task)
    np.testing.assert_allclose(model.coef_, direct.coef_, atol=1e-3)
    assert model.score(X, y, task=task) > 0.7
    assert hasattr(model, "predict_proba") == (loss == "logistic")
    assert model.cv_scores_.shape == (12, 3)


def test_bad_parameters(rng):
    X, y, task = data(rng)
    for params, match in (
        ({"loss": "hinge"}, "loss"),
        ({"group": 0.0, "l1": 0.0}, "group=0"),
        ({"l1": -1.0}, "l1"),
        ({"l1": [0.1, 0.1]}, "2 entries"),
        ({"group": -1.0}, "group"),
    ):
        with pytest.raises(ValueError, match=match):
            ts.MultiTaskSparseGroupLasso(**params).fit(X, y, task=task)
    with pytest.raises(ValueError, match="standardize"):
        fitted = ts.MultiTaskSparseGroupLasso(0.1, standardize=True).fit(X, y, task=task)
        fitted.zero_coefficients(X, y, task=task)
