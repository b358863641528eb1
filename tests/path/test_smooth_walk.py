"""The compiled walk of smooth losses: against the engine, the judge in forty digits, scikit-learn, and certificates of
values one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import Judge, dense_coefficients, random_case, random_weights
from sklearn.linear_model import LogisticRegression

import tasksieve as ts
from tasksieve.losses import Poisson
from tasksieve.path import smooth_walk
from tasksieve.path.certificate import certified_gap, certified_point, product_errors
from tasksieve.path.certified_block import CertifiedBlock
from tasksieve.path.problem import Problem
from tasksieve.path.solve import solve_path
from tasksieve.penalties import SparseGroup

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no intercept": {"fit_intercept": False},
    "standardize": {"standardize": True},
    "positive": {"positive": True},
    "entries": {"l1": 0.3},
    "independent": {"l1": 1.0, "group": 0.0},
}
FORMS = {"one task": (1, False), "shared": (3, True), "own": (3, False)}
SHARES = np.array([1.2, 1.0, 0.6, 0.3, 0.1, 0.03])


def build(rng, form, weighted=False, **options):
    tasks, shared = FORMS[form]
    case = random_case(rng, tasks=tasks, rows=25, features=20, shared=shared, loss="logistic", noise=2.0, **options)
    case.matrix[:, 4] = 3.0
    case.matrix[:, 8] = case.matrix[:, 1]
    case.matrix[:, 9] += 1e4
    case = case.but(feature_weights=rng.uniform(0.5, 2.0, 20))
    return case.but(weights=random_weights(rng, case)) if weighted else case


def counts_of(rng, case):
    """Counts in place of the labels of a case."""
    return rng.poisson(np.exp(0.4 * case.y)).astype(np.float64)


def poisson_problem(case, y):
    penalty, weights = SparseGroup(case.l1, case.group), case.feature_weights
    return Problem(
        case.design(), y, loss=Poisson(), penalty=penalty, feature_weights=weights, positive=case.positive
    )


@pytest.fixture
def walked(monkeypatch):
    """How many values the walk found, call after call."""
    counts: list[int] = []
    values = smooth_walk.SmoothWalk.values

    def counted(self, *arguments):
        found = values(self, *arguments)
        counts.append(len(found))
        return found

    monkeypatch.setattr(smooth_walk.SmoothWalk, "values", counted)
    return counts


@pytest.mark.sampled(3)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("form", FORMS)
def test_every_option_against_the_engine_and_the_judge(rng, walked, form, options, weighted):
    case = build(rng, form, weighted, **options)
    judge, problem = Judge(case), case.problem()
    lams = problem.lambda_max() * SHARES
    ours = solve_path(problem, lams, tol=1e-8)
    assert walked == [6]
    engine = solve_path(case.problem(), lams, tol=1e-8, solver="prox-newton")
    assert walked == [6]
    for lam, value, other in zip(lams, ours.points, engine.points, strict=True):
        assert value.converged
        w, v = dense_coefficients(case, value), dense_coefficients(case, other)
        truth = judge.objective(lam, w, value.intercept)
        assert abs(truth - value.objective) <= 1e-10 * ours.null_objective
        best = min(truth, judge.objective(lam, v, other.intercept))
        assert truth - best <= value.dual_gap
        assert value.dual_gap <= 1e-8 * ours.null_objective
        # rows that the gap proves to be zero are zero in the other answer, too
        assert value.n_rejected <= np.count_nonzero(~v.any(axis=1))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_counts_against_the_engine(rng, walked, form, fit_intercept):
    case = build(rng, form, fit_intercept=fit_intercept)
    y = counts_of(rng, case)
    problem = poisson_problem(case, y)
    lams = problem.lambda_max() * SHARES
    ours = solve_path(problem, lams, tol=1e-8)
    assert sum(walked) == 6
    engine = solve_path(poisson_problem(case, y), lams, tol=1e-8, solver="prox-newton")
    for value, other in zip(ours.points, engine.points, strict=True):
        assert value.converged
        assert -other.dual_gap <= value.objective - other.objective <= value.dual_gap


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", ["logistic", "poisson"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("form", FORMS)
def test_blocked_certificates_are_those_of_single_values(rng, monkeypatch, form, options, loss):
    """Term by term: as strict, to the last digits, whatever the accuracy of the values."""
    case = build(rng, form, loss == "logistic", **options)
    problem = case.problem() if loss == "logistic" else poisson_problem(case, counts_of(rng, case))
    seen: list[tuple[Any, ...]] = []
    certify = CertifiedBlock.certify

    def kept(self, *arguments):
        found = certify(self, *arguments)
        seen.append((self, arguments, found))
        return found

    monkeypatch.setattr(CertifiedBlock, "certify", kept)
    monkeypatch.setattr(smooth_walk, "_BLOCK", 2 * problem.design.n_samples)  # two values a block
    for tol in (1e-3, 1e-6, 1e-9):
        solve_path(case.problem() if loss == "logistic" else problem, problem.lambda_max() * SHARES, tol=tol)
    assert len(seen) >= 9
    for block, (numbers, penalties, places), (objectives, gaps, _) in seen:
        for own, penalty, place, objective, gap in zip(numbers, penalties, places, objectives, gaps, strict=True):
            data, columns, everything = block._loss, block._columns, block._positions
            few, positions = penalty.restrict(place), everything[place]
            standing = certified_point(data, few, columns, positions, own)
            root = data.design.samples.root
            inside = data.inside(root * data.of.slope(data.rows[0], standing.primal.margin))
            dual = data.settled(data.evaluate(np.zeros(len(root))))
            dual = data.settled(type(dual)(0.0, inside, dual.nuisance, margin=standing.primal.margin))
            products = columns.correlate(dual.residual, everything)
            gauges = penalty.upper_gauges(products, product_errors(data, columns, everything, dual))
            truth = certified_gap(data, penalty, columns, positions, place, standing, dual, gauges, few)
            assert objective == pytest.approx(standing.objective, rel=1e-14)
            floor = 1e-15 * abs(objective)
            assert truth * (1.0 - 1e-6) - floor <= gap <= truth * (1.0 + 1e-6) + floor


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_task_against_scikit_learn(rng, fit_intercept):
    n, d = 120, 12
    X = rng.standard_normal((n, d))
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(0.3 - X[:, 0] + X[:, 1]))).astype(int)
    path = ts.MultiTaskLogisticRegression(fit_intercept=fit_intercept, tol=1e-9).path(X, y, n_alphas=6, eps=0.05)
    for k, alpha in enumerate(path.alphas[1:], 1):
        theirs = LogisticRegression(
            l1_ratio=1.0, solver="saga", C=1.0 / (n * alpha), fit_intercept=fit_intercept, tol=1e-9, max_iter=100_000
        ).fit(X, y)
        np.testing.assert_allclose(path.coef(k).toarray().ravel(), theirs.coef_.ravel(), atol=2e-4)


def test_where_the_walk_ends_the_engine_goes_on(rng, walked, monkeypatch):
    """Too few iterations, no room, a certificate that falls short: the values are the same within their gaps."""
    case = build(rng, "own")
    lams = case.problem().lambda_max() * np.geomspace(1.0, 0.02, 12)
    whole = solve_path(case.problem(), lams, tol=1e-7)
    assert sum(walked) == 12
    for name, less in (("_PATIENCE", 3), ("_ENTRIES", 60), ("_ENOUGH", 1.05)):
        with monkeypatch.context() as patched:
            patched.setattr(smooth_walk, name, less)
            walked.clear()
            parts = solve_path(case.problem(), lams, tol=1e-7)
            assert walked[-1] < 12 or name == "_ENOUGH"
        for one, other in zip(whole.points, parts.points, strict=True):
            assert other.converged
            assert abs(one.objective - other.objective) <= max(one.dual_gap, other.dual_gap)


def test_problems_that_are_none_of_its_own(rng, walked, monkeypatch):
    """Ridges, covariates, one class in a task, single values and options of the engine leave it out."""
    case = build(rng, "own")
    for other in (case.but(ridge_ratio=0.3), build(rng, "own", unpenalised=np.array([2, 7]))):
        weights = np.where(np.isin(np.arange(20), other.unpenalised), 0.0, 1.0)
        other = other.but(feature_weights=weights)
        solve_path(other.problem(), other.problem().lambda_max() * SHARES)
    one_class = case.y.copy()
    one_class[case.rows[0]] = 1.0
    solve_path(case.but(y=one_class).problem(), case.problem().lambda_max() * SHARES[2:])
    solve_path(case.problem(), case.problem().lambda_max() * SHARES[2:3])
    solve_path(case.problem(), case.problem().lambda_max() * SHARES, screening=None)
    monkeypatch.setenv("TASKSIEVE_PATH_SOLVER", "rows")
    solve_path(case.problem(), case.problem().lambda_max() * SHARES)
    assert not walked


def test_an_offset(rng, walked, monkeypatch):
    n, d = 90, 8
    X, offset = rng.standard_normal((n, d)), rng.uniform(-1.0, 1.0, n)
    y = rng.poisson(np.exp(0.5 * X[:, 0] + offset))
    path = ts.MultiTaskPoisson(tol=1e-9).path(X, y, offset=offset, n_alphas=5, eps=0.05)
    assert sum(walked) == 5
    monkeypatch.setenv("TASKSIEVE_PATH_SOLVER", "rows")
    slow = ts.MultiTaskPoisson(tol=1e-9).path(X, y, offset=offset, n_alphas=5, eps=0.05)
    assert sum(walked) == 5
    assert np.all(np.abs(path.objectives - slow.objectives) <= path.dual_gaps + slow.dual_gaps)
