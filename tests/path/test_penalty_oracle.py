"""Penalties beside the sparse group family against cvxpy with Clarabel: every loss, option and awkward column.

For each problem our objective is as good as the oracle's, and the gap, at every accuracy, bounds the distance to it.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.design import Design, as_storage
from tasksieve.path import Problem, solve_path
from tasksieve.penalties import Dirty, Groups, LInf
from tasksieve.proof.prove import prove

cp = pytest.importorskip("cvxpy")

FEATURES, TASKS = 12, 3


def linf(w, u):
    return u @ cp.max(cp.abs(w), axis=1), []


def dirty(w, u, g=TASKS**0.25, l1=1.0):
    part = cp.Variable(w.shape)
    return g * (u @ cp.norm(part, 2, axis=1)) + l1 * (u @ cp.norm(w - part, 1, axis=1)), []


LABELS = [0, 0, 0, 1, 1, 5, 2, 3, 2, 3, 2, 4]  # not all side by side; feature 5 by itself


def groups(w, u, inside=None, mix=0.5):
    total = 0
    for label in np.unique(LABELS):
        own = np.flatnonzero(np.array(LABELS) == label)
        norm = cp.norm(w[own], "fro")
        if inside is not None:
            inner = cp.sum(cp.norm(w[own], 2, axis=1)) if inside == "rows" else cp.sum(cp.abs(w[own]))
            norm = (1.0 - mix) * norm + mix * inner
        total = total + u[own[0]] * np.sqrt(len(own)) * norm
    return total, []


PENALTIES = {
    "linf": (LInf(), linf),
    "dirty": (Dirty(), dirty),
    "dirty, given": (Dirty(1.5, 1.1), lambda w, u: dirty(w, u, 1.5, 1.1)),
    "groups": (Groups(LABELS), groups),
    "groups, rows": (Groups(LABELS, "rows"), lambda w, u: groups(w, u, "rows")),
    "groups, entries": (Groups(LABELS, "entries", mix=0.3), lambda w, u: groups(w, u, "entries", 0.3)),
}
OPTIONS = {
    "plain": {},
    "positive": {"positive": True},
    "ridge": {"ridge": 0.5},
    "feature weights, ridge, positive": {"feature weights": True, "ridge": 0.2, "positive": True},
    "no intercept, shared": {"fit_intercept": False, "shared": True},
    "unpenalised": {"feature weights": True, "free": True},
    "standardised, missing": {"standardize": True, "missing": True},
}


def problem_of(rng, penalty, loss, options):
    """A problem with duplicate and empty columns, and its parts as the oracle needs them."""
    shared = options.get("shared", False)
    rows = 18 if loss == "logistic" else 10
    x = rng.standard_normal((rows if shared else TASKS * rows, FEATURES))
    x[:, 1], x[:, 2] = x[:, 0], 0.0
    x[: rows // 2 if shared else rows, 3] = 0.0  # empty in one task
    w = rng.standard_normal((FEATURES, TASKS)) * (rng.random((FEATURES, 1)) < 0.5)
    offsets = rows * np.arange(TASKS + 1)
    blocks = [x if shared else x[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    y = np.concatenate([block @ w[:, t] for t, block in enumerate(blocks)]) + 0.5 * rng.standard_normal(TASKS * rows)
    y = np.sign(y) if loss == "logistic" else y
    s = rng.uniform(0.3, 2.0, len(y))
    if options.get("missing"):
        s[rng.random(len(y)) < 0.2] = 0.0
    u = rng.uniform(0.4, 2.0, FEATURES) if options.get("feature weights") else np.ones(FEATURES)
    free = np.array([5]) if options.get("free") else np.empty(0, dtype=np.int64)
    u[free] = 0.0
    for own in {tuple(penalty.whole(np.array([j])).tolist()) for j in range(FEATURES)}:
        u[list(own)] = u[own[0]]  # a block has one weight
    design = Design(
        as_storage(x),
        offsets,
        shared=shared,
        weights=s,
        fit_intercept=options.get("fit_intercept", True),
        unpenalised=free,
        standardize=options.get("standardize", False),
        n_threads=1,
    )
    problem = Problem(
        design,
        y,
        loss=loss,
        penalty=penalty,
        feature_weights=u,
        positive=options.get("positive", False),
        fixed_ridge=options.get("ridge", 0.0),
    )
    return problem, blocks, y, s, u


def oracle(norm, loss, options, problem, blocks, y, s, u, lam):
    """The optimal value, and coefficients (features, tasks) in the units of X."""
    w, b = cp.Variable((FEATURES, TASKS)), cp.Variable(TASKS)
    offsets = problem.design.offsets
    total = 0
    for t, block in enumerate(blocks):
        own = slice(offsets[t], offsets[t + 1])
        z = block @ w[:, t] + (b[t] if options.get("fit_intercept", True) else 0.0)
        rows = cp.logistic(-cp.multiply(y[own], z)) if loss == "logistic" else cp.square(y[own] - z) / 2
        total = total + s[own] @ rows
    scale = problem.design.scale
    scaled = w if scale is None else cp.multiply(scale, w)
    value, constraints = norm(scaled, u)
    objective = total + lam * value + options.get("ridge", 0.0) / 2 * cp.sum_squares(scaled)
    if options.get("positive"):
        constraints = [*constraints, w >= 0]
    program = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(program.value), w.value


@pytest.mark.sampled(4)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("name", PENALTIES)
def test_optimum_and_gap(rng, name, loss, options):
    penalty, norm = PENALTIES[name]
    problem, *parts = problem_of(rng, penalty, loss, options)
    null = problem.loss.null.value
    for share in (0.5, 0.08):
        lam = share * problem.lambda_max()
        best, _ = oracle(norm, loss, options, problem, *parts, lam)
        for tol in (1e-2, 1e-5, 1e-9):
            value = solve_path(problem, [lam], tol=tol).points[0]
            assert value.converged
            assert value.dual_gap <= tol * null
            assert value.objective >= best - 1e-7 * null
            assert value.objective - best <= value.dual_gap + 1e-7 * null
    # nothing at the largest strength, something just below it
    at_most = problem.lambda_max()
    above, below = (solve_path(problem, [k * at_most], tol=1e-10).points[0] for k in (1.0, 0.98))
    assert len(above.features) == len(problem.design.unpenalised)
    assert len(below.features) > len(problem.design.unpenalised)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("name", PENALTIES)
def test_screening_is_never_wrong(rng, name, loss):
    """Along a path, with and without screening: the same optimum, and nothing rejected that carries weight."""
    penalty, _ = PENALTIES[name]
    problem, *_ = problem_of(rng, penalty, loss, {})
    lams = problem.lambda_max() * np.geomspace(1.0, 0.05, 7)
    plain = solve_path(problem, lams, tol=1e-10, screening=None, working_set=False)
    for options in ({}, {"screening": "gap"}, {"lazy": False}, {"solver": "apgd"}):
        tol = 1e-7 if options.get("solver") else 1e-10
        screened = solve_path(problem, lams, tol=tol, **options)
        assert screened.wrong_rejections == 0
        for one, two in zip(screened.points, plain.points, strict=True):
            assert abs(one.objective - two.objective) <= one.dual_gap + two.dual_gap
    # safe tests at sloppy models: what they call zero is zero in the accurate one
    for lam, value in zip(lams[1::3], plain.points[1::3], strict=True):
        exact = np.zeros((TASKS, FEATURES))
        exact[:, value.features] = value.rows.T
        for blur in (0.0, 1e-3, 0.1):
            sloppy = exact * (1.0 + blur * rng.standard_normal(exact.shape))
            proof = prove(problem, lam, sloppy, value.intercept)
            assert np.all(np.abs(exact[proof.zero_entries]) < 1e-4 * np.abs(exact).max())
            assert proof.objective - value.objective <= proof.dual_gap + 1e-12 * problem.loss.null.value


@pytest.mark.parametrize("name", PENALTIES)
def test_labels_that_are_not_observed(rng, name):
    """NaN is a label that is not there: the same as without the row."""
    penalty, _ = PENALTIES[name]
    x, task = rng.standard_normal((60, FEATURES)), np.repeat([0, 1, 2], 20)
    y = x[:, 0] - 2.0 * x[:, 4] * (task == 1) + 0.3 * rng.standard_normal(60)
    gone = rng.random(60) < 0.2
    lost = np.where(gone, np.nan, y)
    one = ts.MultiTaskRegressor(penalty=penalty, alpha=0.1, tol=1e-11).fit(x, lost, task=task)
    two = ts.MultiTaskRegressor(penalty=penalty, alpha=0.1, tol=1e-11).fit(x[~gone], y[~gone], task=task[~gone])
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-6)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-10)
