"""The Gram way against the engine on residuals, and its certificates against forty digits."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import Judge, dense_coefficients, every_storage, random_case, random_weights

import tasksieve as ts
from tasksieve.design.moments import Moments, panel_diagonal, panels_to_square
from tasksieve.path import gram, policy
from tasksieve.path.solve import solve_path

OPTIONS = {
    "plain": {},
    "no intercept": {"fit_intercept": False},
    "standardize": {"standardize": True},
    "unpenalised": {"unpenalised": np.array([2, 7])},
    "unpenalised, no intercept": {"unpenalised": np.array([2, 7]), "fit_intercept": False},
    "positive": {"positive": True},
    "ridge": {"ridge_ratio": 0.7},
    "a little ridge": {"ridge_ratio": 0.05},
    "entries": {"l1": 0.3},
    "independent": {"l1": 1.0, "group": 0.0},
    "everything": {"standardize": True, "unpenalised": np.array([0, 3]), "ridge_ratio": 0.2, "l1": 0.2},
}
FORMS = {"one task": (1, False), "shared": (3, True), "own": (3, False)}


def build(rng, form, weighted=False, **options):
    tasks, shared = FORMS[form]
    case = random_case(rng, tasks=tasks, rows=25, features=20, shared=shared, **options)
    case.matrix[:, 4] = 3.0
    case.matrix[:, 8] = case.matrix[:, 1]
    case.matrix[:, 9] += 1e4
    case = case.but(feature_weights=np.where(np.isin(np.arange(20), case.unpenalised), 0.0, rng.uniform(0.5, 2.0, 20)))
    return case.but(weights=random_weights(rng, case)) if weighted else case


def walked(monkeypatch):
    """How many values the Gram way found, path after path."""
    counts: list[int] = []
    begin, values = gram.gram_walk, gram.GramWalk.values

    def begun(problem):
        counts.append(0)
        return begin(problem)

    def counted(self, *arguments):
        found = values(self, *arguments)
        counts[-1] += len(found)
        return found

    monkeypatch.setattr(gram, "gram_walk", begun)
    monkeypatch.setattr(gram.GramWalk, "values", counted)
    return counts


@pytest.mark.sampled(3)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("form", FORMS)
def test_every_option_against_the_engine_and_the_judge(rng, monkeypatch, form, options, weighted):
    case = build(rng, form, weighted, **options)
    counts, judge = walked(monkeypatch), Judge(case)
    problem = case.problem()
    lams = problem.lambda_max() * np.array([1.2, 1.0, 0.6, 0.3, 0.1, 0.02])
    ours = solve_path(problem, lams, tol=1e-8)
    assert counts == [6]
    engine = solve_path(case.problem(), lams, tol=1e-8, solver="cd")
    assert counts == [6]
    for lam, value, other in zip(lams, ours.points, engine.points, strict=True):
        assert value.converged
        w, v = dense_coefficients(case, value), dense_coefficients(case, other)
        np.testing.assert_allclose(w, v, atol=2e-3 * np.abs(v).max(initial=1.0))
        truth = judge.objective(lam, w, value.intercept)
        assert abs(truth - value.objective) <= 1e-10 * ours.null_objective
        best = min(truth, judge.objective(lam, v, other.intercept))
        assert truth - best <= value.dual_gap
        assert judge.gap(lam, w, value.intercept) <= value.dual_gap * (1 + 1e-6) + 1e-14 * ours.null_objective
        assert value.dual_gap <= 1e-8 * ours.null_objective
        # what was rejected before the value was solved is zero in it
        penalised = np.setdiff1d(np.arange(20), case.unpenalised)
        assert value.n_rejected <= np.count_nonzero(~v[penalised].any(axis=1))


def test_every_storage(rng, tmp_path, monkeypatch):
    case = random_case(rng, tasks=3, rows=20, features=11, kind="integers")
    counts = walked(monkeypatch)
    truth = solve_path(case.problem(), [40.0, 10.0, 3.0], solver="cd")
    for name, storage in every_storage(case, tmp_path, rng).items():
        found = solve_path(case.problem(storage=storage), [40.0, 10.0, 3.0])
        for value, other in zip(found.points, truth.points, strict=True):
            w, v = dense_coefficients(case, value), dense_coefficients(case, other)
            np.testing.assert_allclose(w, v, atol=1e-2, err_msg=name)
    assert counts
    assert all(count == 3 for count in counts)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e9, 1e12])
def test_offsets_of_columns_cost_no_digits(rng, monkeypatch, offset):
    case = random_case(rng, tasks=2, rows=30, features=12, shared=True)
    case.matrix[:] = np.round(case.matrix * 2**10) / 2**10 + np.where(np.arange(12) % 3 == 0, offset, 0.0)
    counts, judge = walked(monkeypatch), Judge(case)
    problem = case.problem()
    lams = problem.lambda_max() * np.array([0.5, 0.1, 0.01])
    found = solve_path(problem, lams, tol=1e-7)
    for lam, value in zip(lams, found.points, strict=True):
        w = dense_coefficients(case, value)
        assert judge.gap(lam, w, value.intercept) <= value.dual_gap * (1 + 1e-6)
        assert value.dual_gap <= 1e-7 * found.null_objective or value.limit
    if offset <= 1e6:
        assert counts == [3]


def test_nearly_collinear_columns(rng, monkeypatch):
    """AR(0.999), and copies of columns: the gap is reached, and true."""
    case = random_case(rng, tasks=3, rows=60, features=30, shared=True)
    for j in range(1, 30):
        case.matrix[:, j] = 0.999 * case.matrix[:, j - 1] + np.sqrt(1 - 0.999**2) * case.matrix[:, j]
    case.matrix[:, 20:] = case.matrix[:, :10]
    counts, judge = walked(monkeypatch), Judge(case)
    problem = case.problem()
    lams = problem.lambda_max() * np.geomspace(1, 1e-3, 10)
    found = solve_path(problem, lams)
    assert counts[0] >= 3  # Newton's method may take over where sweeps are many
    for lam, value in zip(lams, found.points, strict=True):
        w = dense_coefficients(case, value)
        assert judge.gap(lam, w, value.intercept) <= value.dual_gap * (1 + 1e-9) <= 1.1e-6 * found.null_objective


def test_the_engine_goes_on_where_the_walk_ends(rng, monkeypatch):
    """More features in play than the rows can bear, or a goal that the statistics cannot prove."""
    X, Y = rng.standard_normal((30, 300)), rng.standard_normal((30, 4))
    counts = walked(monkeypatch)
    monkeypatch.setattr(policy, "LEAST_FEATURES_IN_PLAY", 40)
    monkeypatch.setattr(policy, "WIDEST", 100)
    monkeypatch.setattr(policy, "FEATURES_IN_PLAY", 1.0)
    path = ts.MultiTaskLasso().path(X, Y, n_alphas=15)
    assert 0 < counts[0] < 15
    assert path.converged.all()
    assert len(path.alphas) == 15
    engine = ts.MultiTaskLasso(screening="gap").path(X, Y, alphas=path.alphas)
    for k in range(15):
        np.testing.assert_allclose(path.coef(k).toarray(), engine.coef(k).toarray(), atol=2e-2)
    tight = ts.MultiTaskLasso(tol=1e-12).path(X[:, :16], Y, n_alphas=5, eps=0.1)
    assert counts[1] < 5
    assert tight.converged.all()


def test_the_gram_way_is_asked_for_by_nothing_but_auto(rng, monkeypatch):
    X, Y = rng.standard_normal((30, 10)), rng.standard_normal((30, 2))
    counts = walked(monkeypatch)
    ts.MultiTaskLasso(screening="dpc").path(X, Y, n_alphas=3)
    ts.MultiTaskOWL().path(X, Y, n_alphas=3)
    ts.CalibratedMultiTaskLasso().path(X, Y, n_alphas=3)
    model = ts.MultiTaskLasso(0.1, warm_start=True).fit(X, Y)
    assert counts == []  # so small a fit is the engine's
    monkeypatch.setattr(policy, "LEAST_WORK", 0.0)
    model = ts.MultiTaskLasso(0.1, warm_start=True).fit(X, Y)
    assert counts == [1]
    model.fit(X, Y)  # from the last solution: the engine's
    assert counts == [1]
    ts.MultiTaskLasso().path(rng.standard_normal((5, 4000)), rng.standard_normal((5, 2)), n_alphas=3)
    assert counts == [1]


def test_progress_and_interrupts(rng, monkeypatch):
    X, Y = rng.standard_normal((60, 40)), rng.standard_normal((60, 3))
    monkeypatch.setattr(gram, "_BUDGET", 1.0)
    seen = []

    def interrupt(k, n_values, value):
        seen.append(k)
        if k == 6:
            raise KeyboardInterrupt

    model = ts.MultiTaskLasso()
    monkeypatch.setattr(model, "_progress", lambda label=None: interrupt)
    with pytest.warns(UserWarning, match="interrupted: 7 of 20"):
        path = model.path(X, Y, n_alphas=20)
    assert seen == list(range(7))
    assert path.interrupted
    assert len(path.alphas) == 7


def test_moments_of_blocks_add_up(rng):
    x, y, z = np.asfortranarray(rng.standard_normal((30, 70))), rng.standard_normal(30), rng.standard_normal((2, 30))
    offsets = np.array([0, 13, 30])
    whole = Moments.zeros(2, 2, 70, 2)
    whole.add_rows(x, y, z, offsets, 1)
    parts = Moments.zeros(2, 2, 70, 2)
    for rows in (np.arange(0, 30, 2), np.arange(1, 30, 2)):
        part = Moments.zeros(2, 2, 70, 2)
        cut = np.searchsorted(rows, offsets)
        part.add_rows(np.asfortranarray(x[rows]), y[rows], np.ascontiguousarray(z[:, rows]), cut, 1)
        parts.add(part)
    for name in ("gram", "cross", "labels", "beside", "nuisance", "explained"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-13)
    square = panels_to_square(whole.gram, 70)
    for t in range(2):
        part = x[offsets[t] : offsets[t + 1]]
        np.testing.assert_allclose(square[t], part.T @ part, atol=1e-13)
    np.testing.assert_array_equal(panel_diagonal(whole.gram, 70), np.einsum("mjj->mj", square))
    assert (whole.rows, parts.rows) == (17, 10)  # roundings in a row: the longer of two sums, and their addition
