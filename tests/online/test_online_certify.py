"""From stream to proof: gaps are true, zero rows are zero and needed rows are non-zero at the batch optimum."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import tasksieve as ts


def data(rng, n=120, d=12, Q=3, classes=False):
    X = rng.standard_normal((n, d))
    task = rng.choice(["c", "a", "b"][:Q], n, p=[0.6, 0.25, 0.15])
    W = rng.standard_normal((d, Q)) * (np.arange(d) < 3)[:, None] * 2
    y = (
        np.einsum("ij,ji->i", X, W[:, np.searchsorted(["a", "b", "c"], task)])
        + 0.5 * rng.standard_normal(n)
        + 0.3
    )
    return X, np.where(y > 0, "yes", "no") if classes else y, task


def optimum(model, X, y, task):
    """The problem that `certify` refers to, written down for an interior-point solver."""
    tasks = sorted(set(task))
    W, b = cp.Variable((X.shape[1], len(tasks))), cp.Variable(len(tasks))
    loss = 0
    for q, label in enumerate(tasks):
        rows = task == label
        z = X[rows] @ W[:, q] + (b[q] if model.fit_intercept else 0)
        if y.dtype.kind == "U":
            sign = np.where(y[rows] == "yes", 1.0, -1.0)
        else:
            sign = y[rows]
        if model.loss == "squared":
            loss += cp.sum_squares(z - sign) / (2 * rows.sum())
        elif model.loss == "logistic":
            loss += cp.sum(cp.logistic(-cp.multiply(sign, z))) / rows.sum()
        else:
            loss += cp.sum(cp.pos(1 - cp.multiply(sign, z))) / rows.sum()
    group, l1 = {"l21": (1.0, 0.0), "l11": (0.0, 1.0), "l1+l21": (1.0, model.l1)}[model.penalty]
    penalty = group * cp.sum(cp.norm(W, 2, axis=1)) + l1 * cp.sum(cp.abs(W))
    problem = cp.Problem(cp.Minimize(loss + model.alpha * penalty + model.l2 / 2 * cp.sum_squares(W)))
    problem.solve(solver=cp.CLARABEL)
    return problem.value, W.value


@pytest.mark.sampled(4)
@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
@pytest.mark.parametrize("penalty", ["l21", "l11", "l1+l21"])
def test_certificate_against_the_oracle(penalty, loss, l2, rng):
    X, y, task = data(rng, classes=loss != "squared")
    params = {
        "alpha": 0.12,
        "penalty": penalty,
        "l1": 0.5,
        "gamma": 25.0,
        "l2": l2,
        "max_iter": 60,
        "random_state": 0,
    }
    Model = ts.OnlineMultiTaskRegressor if loss == "squared" else ts.OnlineMultiTaskClassifier
    model = Model(**params, loss=loss).fit(X, y, task=task)
    best, W = optimum(model, X, y, task)
    for weights in ("last", "averaged"):
        found = model.certify(X, y, task=task, weights=weights)
        assert found.objective - found.dual_gap <= best + 1e-6 <= found.objective + 2e-6
        assert found.tasks.tolist() == ["a", "b", "c"]
        if loss == "hinge":
            assert found.zero is None
            assert found.needed is None
            assert found.undecided is None
            assert found.dual_gap < 0.5 * found.null_objective
            continue
        assert np.all(np.abs(W[found.zero]) < 1e-4)
        assert np.all(np.abs(W.T[found.zero_coefficients]) < 1e-4)
        assert np.all(np.linalg.norm(W[found.needed], axis=1) > 1e-4)
        assert not np.any(found.zero & found.needed)
        assert found.relative_gap == found.dual_gap / found.null_objective
    assert loss == "hinge" or found.zero.any() or found.needed.any()


def test_a_good_model_decides_nearly_every_feature(rng):
    X, y, task = data(rng)
    model = ts.OnlineMultiTaskRegressor(0.4, gamma=30.0, max_iter=20_000, average=False, random_state=0).fit(
        X, y, task=task
    )
    found = model.certify(X, y, task=task)
    batch = ts.MultiTaskLasso(0.4, task_weights="balanced", tol=1e-9).fit(X, y, task=task)
    assert found.relative_gap < 5e-3
    assert np.array_equal(found.needed, batch.get_support())
    assert not np.any(found.zero & batch.get_support())
    assert found.undecided.sum() <= 1  # at this gap one feature lies too close to the boundary


def test_bad_requests(rng):
    X, y, task = data(rng)
    model = ts.OnlineMultiTaskRegressor(0.1, gamma=30.0).fit(X, y, task=task)
    with pytest.raises(ValueError, match="unknown"):
        model.certify(X, y, task=np.where(task == "a", "z", task))
    with pytest.raises(ValueError, match="features"):
        model.certify(X[:, :3], y, task=task)
    with pytest.raises(ValueError, match="weights"):
        model.certify(X, y, task=task, weights="best")
    part = task != "a"
    assert model.certify(X[part], y[part], task=task[part], needed=False).tasks.tolist() == ["b", "c"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("online", "batch"),
    [
        (ts.OnlineMultiTaskRegressor(0.1), ts.MultiTaskLasso(0.1)),
        (ts.OnlineMultiTaskRegressor(0.1, l2=0.3), ts.MultiTaskElasticNet(0.4, l1_ratio=0.25)),
        (
            ts.OnlineMultiTaskRegressor(0.1, penalty="l11"),
            ts.MultiTaskSparseGroupLasso(0.1, l1=1.0, group=0.0),
        ),
        (
            ts.OnlineMultiTaskRegressor(0.1, penalty="l1+l21", l1=0.3),
            ts.MultiTaskSparseGroupLasso(0.1, l1=0.3),
        ),
        (ts.OnlineMultiTaskClassifier(0.05), ts.MultiTaskLogisticRegression(0.05)),
        (
            ts.OnlineMultiTaskClassifier(0.05, penalty="l1+l21", l1=0.3),
            ts.MultiTaskSparseGroupLasso(0.05, l1=0.3, loss="logistic"),
        ),
    ],
    ids=str,
)
def test_batch_fit_starts_from_the_stream(online, batch, rng):
    X, y, task = data(rng, classes=isinstance(online, ts.OnlineMultiTaskClassifier))
    online.set_params(gamma=30.0, max_iter=300, random_state=0).fit(X, y, task=task)
    warm = online.batch_model(tol=1e-9)
    assert type(warm) is type(batch)
    certified = online.certify(X, y, task=task, needed=False)
    np.testing.assert_allclose(warm.predict(X, task=task) == online.predict(X, task=task), True)
    warm.fit(X, y, task=task)
    cold = batch.set_params(task_weights="balanced", tol=1e-9).fit(X, y, task=task)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-6)
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-4)
    assert certified.objective - certified.dual_gap <= cold.objective_ + 1e-12 <= certified.objective + 1e-12


def test_no_batch_model_of_the_hinge(rng):
    X, y, task = data(rng, classes=True)
    model = ts.OnlineMultiTaskClassifier(0.1, loss="hinge", gamma=30.0).fit(X, y, task=task)
    with pytest.raises(ValueError, match="hinge"):
        model.batch_model()
