"""Which features are needed: found for every loss and penalty, never falsely, and with their near copies."""

from __future__ import annotations

from inspect import signature
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone

import tasksieve as ts
from tasksieve.checks.estimator_data import rows_for
from tasksieve.checks.registry import ESTIMATORS
from tasksieve.proof.need import Proved

Array = np.ndarray[Any, Any]

QUICK = {"lasso", "elastic net", "multinomial OWL", "group lasso", "any members, square-root"}
SELECTING = [name for name, model in ESTIMATORS.items() if "need" in signature(model.certificate).parameters]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SELECTING])
def test_every_model_proves_what_it_needs(name: str) -> None:
    """None is false: a model fitted without the features, to the same tolerance, is worse by at least delta."""
    rows = rows_for(ESTIMATORS[name], "multinomial" not in name)
    model = clone(ESTIMATORS[name]).fit(rows.X, rows.y, **rows.arguments)
    certificate = model.certificate(rows.X, rows.y, **rows.arguments, need=True)
    verdict = certificate.verify(rows.X, rows.y, **rows.arguments)
    assert verdict, verdict.words
    for features, delta in certificate.needs()[:2]:
        X = np.array(rows.X, dtype=float)
        X[:, features] = 0.0
        reduced = model.certificate(X, rows.y, **rows.arguments)  # its coefficients where these columns are zero
        assert reduced.objectives[0] + reduced.gaps[0] >= certificate.objectives[0] - certificate.gaps[0] + delta


def problem(seed: int, n: int = 40, d: int = 12, tasks: int = 3) -> tuple[list[Array], list[Array]]:
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((n, d)) for _ in range(tasks)]
    for block in X:
        block[:, 1:4] = 0.8 * block[:, :1] + 0.6 * block[:, 1:4]  # correlated columns
    y = [x[:, :3] @ rng.uniform(0.3, 1.5, 3) + 0.5 * rng.standard_normal(n) for x in X]
    return X, y


def optimum(X: list[Array], y: list[Array], alpha: float, without: Any, logistic: bool) -> float:
    d, unit = X[0].shape[1], np.mean([len(v) for v in y])
    W, b = cp.Variable((d, len(X))), cp.Variable(len(X))
    loss = 0.0
    for t, (x, v) in enumerate(zip(X, y, strict=True)):
        z = x @ W[:, t] + b[t]
        loss += cp.sum(cp.logistic(-cp.multiply(2.0 * v - 1.0, z))) if logistic else 0.5 * cp.sum_squares(v - z)
    objective = loss / unit + alpha * cp.sum(cp.norm(W, 2, axis=1))
    stated = cp.Problem(cp.Minimize(objective), [W[int(j)] == 0.0 for j in without])
    stated.solve(solver=cp.CLARABEL)
    return float(stated.value)


@pytest.mark.parametrize("logistic", [False, True])
def test_claims_against_another_solver(logistic: bool) -> None:
    X, y = problem(1)
    y = [(v > 0.0).astype(float) for v in y] if logistic else y
    kind: Any = ts.MultiTaskLogisticRegression if logistic else ts.MultiTaskLasso
    alpha = 0.3 * kind().alpha_max(X, y)
    model = kind(alpha=alpha).fit(X, y)
    certificate = model.certificate(X, y, need=True)
    selected = np.flatnonzero(model.get_support())
    needs = {tuple(features.tolist()): delta for features, delta in certificate.needs()}
    truth = {(int(j),): optimum(X, y, alpha, [j], logistic) - model.objective_ for j in selected}
    for features, delta in needs.items():
        least = truth[features] if features in truth else optimum(X, y, alpha, features, logistic) - model.objective_
        assert 0.0 < delta <= least + 1e-7
        if len(features) == 1:
            assert delta >= 0.5 * least - 1e-5  # and not much less than the truth
    clear = [features for features, least in truth.items() if least > 1e-4]
    assert len(clear) >= 3
    assert set(clear) <= set(needs)


@pytest.mark.parametrize("logistic", [False, True])
def test_clear_claims_need_no_intervals_and_are_nearly_what_the_verifier_proves(
    logistic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = problem(3, n=60)
    y = [(v > 0.0).astype(float) for v in y] if logistic else y
    kind: Any = ts.MultiTaskLogisticRegression if logistic else ts.MultiTaskLasso
    model = kind(alpha=0.3 * kind().alpha_max(X, y), tol=1e-8).fit(X, y)
    read: list[int] = []
    monkeypatch.setattr(Proved, "_deltas", lambda self, solved: read.extend(solved) or [])
    certificate = model.certificate(X, y, need=True)
    assert len(certificate.needs()) >= 3
    assert len(read) <= 1
    for claim in certificate.verify(X, y).needs:
        assert not claim.failures
        assert claim.claimed <= claim.delta <= 1.2 * claim.claimed


@pytest.mark.parametrize("copies", [1, 3])
def test_near_copies_are_tested_together(copies: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 9))
    X[:, 5 : 5 + copies] = X[:, :1] + 1e-4 * rng.standard_normal((80, copies))
    y = 2.0 * X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(80)
    model = ts.MultiTaskLasso(alpha=0.2).fit(X, y)
    needs = {tuple(features.tolist()): delta for features, delta in model.certificate(X, y, need=True).needs()}
    group = (0, *range(5, 5 + copies))
    assert group in needs
    assert (1,) in needs
    alone = [delta for own, delta in needs.items() if len(own) == 1 and own[0] in group]
    assert needs[group] > 100.0 * max(alone, default=0.0)


def test_a_path_has_needs_of_one_value_and_the_model_says_what_is_needed() -> None:
    X, y = problem(2)
    path = ts.MultiTaskLasso().path(X, y, n_alphas=6)
    certificate = path.certificate(X, y, need=3)
    assert certificate.needs(3)
    assert all(not certificate.needs(k) for k in (0, 1, 2, 4, 5))
    assert certificate.verify(X, y).proved
    assert certificate.verify(X, y, value=3).needs
    assert not certificate.verify(X, y, value=2).needs
    single = [int(features[0]) for features, _ in certificate.needs(3) if len(features) == 1]
    assert certificate.proven_nonzero(3)[single].all()
    with pytest.raises(ValueError, match="need=6: the path has 6 values"):
        path.certificate(X, y, need=6)
