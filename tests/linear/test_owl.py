"""Group OWL: solutions against cvxpy, scikit-learn-like limits, sortedl1; gaps recomputed; screening never wrong."""

from __future__ import annotations

import warnings
from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning
from sorted_norms import random_weights, sorted_norm_expression

import tasksieve as ts
from tasksieve.design import Design, PackedColumns, SparseColumns, as_storage
from tasksieve.path.choose import choose_strategy
from tasksieve.path.engine import Engine
from tasksieve.path.problem import Problem
from tasksieve.path.sieve import Sieve
from tasksieve.path.solve import solve_path
from tasksieve.penalties import Sorted, oscar_weights, slope_weights
from tasksieve.screening.owl import bao_test, cumulative_test
from tasksieve.screening.rules import DPC, GapSafe
from tasksieve.solvers.curvature import estimate_curvature
from tasksieve.solvers.working import WorkingProblem

SOLVERS = ["auto", "apgd", "spgd"]
EXACT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


def degenerate(rng, n, d):
    """Columns with twins, opposites, a zero, a constant and nearly the same direction."""
    X = rng.standard_normal((n, d))
    if d >= 6:
        X[:, 1] = X[:, 0]
        X[:, 2] = -X[:, 0]
        X[:, 3] = 0.0
        X[:, 4] = 1.0
        X[:, 5] = X[:, 0] + 1e-4 * rng.standard_normal(n)
    return X


def regression_problem(seed):
    """Blocks, targets, weights of a small random problem; every third shares its matrix, some have one task."""
    rng = np.random.default_rng(seed)
    tasks, d = (1 if seed % 4 == 0 else int(rng.integers(2, 5))), int(rng.integers(2, 14))
    shared = seed % 3 == 0
    n = int(rng.integers(5, 15))
    make = degenerate if seed % 2 else lambda rng, n, d: rng.standard_normal((n, d))
    first = make(rng, n, d)
    blocks = [first if shared else make(rng, n, d) for _ in range(tasks)]
    truth = rng.standard_normal((d, tasks)) * (rng.random((d, 1)) < 0.4)
    targets = [x @ truth[:, t] + 0.5 * rng.standard_normal(n) + 1.0 for t, x in enumerate(blocks)]
    return rng, blocks, targets, shared


def cvxpy_regression(blocks, targets, weights, *, intercept=True, positive=False):
    d, tasks = blocks[0].shape[1], len(blocks)
    W, b = cp.Variable((d, tasks)), cp.Variable(tasks)
    loss = 0
    for t, (x, y) in enumerate(zip(blocks, targets, strict=True)):
        loss += 0.5 * cp.sum_squares(y - x @ W[:, t] - (b[t] if intercept else 0.0))
    problem = cp.Problem(cp.Minimize(loss + sorted_norm_expression(W, weights)), [W >= 0] if positive else [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL", **EXACT)
    return problem.value


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(64))
def test_regression_against_cvxpy(seed):
    rng, blocks, targets, shared = regression_problem(seed)
    d, n = blocks[0].shape[1], len(targets[0])
    shape = random_weights(rng, d)
    positive, intercept = seed % 5 == 0, seed % 7 != 0
    model = ts.MultiTaskOWL(
        weights=shape, positive=positive, fit_intercept=intercept, tol=1e-9, solver=SOLVERS[seed % 2]
    )
    data = (blocks[0], np.stack(targets, axis=1)) if shared else (blocks, targets)
    largest = model.alpha_max(*data)
    alpha = largest * float(rng.uniform(0.05, 0.8)) if largest > 0 else 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # gaps near rounding
        model.set_params(alpha=alpha).fit(*data)
    truth = cvxpy_regression(blocks, targets, alpha * n * shape, intercept=intercept, positive=positive) / n
    scale = sum(0.5 * np.sum((y - intercept * y.mean()) ** 2) for y in targets) / n
    assert abs(model.objective_ - truth) <= 1e-6 * scale
    assert model.objective_ - truth <= model.dual_gap_ + 1e-8 * scale


def classes_problem(seed):
    rng = np.random.default_rng(1000 + seed)
    n, d, K = int(rng.integers(12, 25)), int(rng.integers(2, 12)), 2 + seed % 3
    X = degenerate(rng, n, d) if seed % 2 else rng.standard_normal((n, d))
    y = np.argmax(X @ rng.standard_normal((d, K)) + rng.standard_normal((n, K)), axis=1)
    y[:K] = np.arange(K)
    return rng, X, y, K


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(60))
def test_multinomial_against_cvxpy(seed):
    rng, X, y, K = classes_problem(seed)
    n, d = X.shape
    shape, intercept = random_weights(rng, d), seed % 3 != 0
    s = rng.integers(0, 3, n).astype(float) if seed % 5 == 0 else np.ones(n)
    s[:K] = 1.0
    model = ts.MultinomialOWL(weights=shape, fit_intercept=intercept, tol=1e-8, solver=SOLVERS[seed % 2])
    given = sparse.csr_array(X) if seed % 4 == 0 else X
    alpha = model.alpha_max(given, y, sample_weight=s) * float(rng.uniform(0.1, 0.8))
    model.set_params(alpha=alpha).fit(given, y, sample_weight=s)
    W, b = cp.Variable((d, K)), cp.Variable((1, K))
    z = X @ W + (np.ones((n, 1)) @ b if intercept else 0.0)
    loss = (
        cp.sum(cp.multiply(s, cp.log_sum_exp(z, axis=1) - cp.sum(cp.multiply(np.eye(K)[y], z), axis=1)))
        / s.sum()
    )
    problem = cp.Problem(cp.Minimize(loss + alpha * sorted_norm_expression(W, shape)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL", **EXACT)
    assert model.objective_ == pytest.approx(problem.value, abs=1e-6)
    assert model.objective_ - problem.value <= model.dual_gap_ + 1e-6
    # and the objective is what it says
    own = X @ model.coef_.T + model.intercept_
    loss = s @ (logsumexp(own, axis=1) - own[np.arange(n), y]) / s.sum()
    penalty = Sorted(alpha * shape).on(np.ones(len(shape)), 2).value(model.coef_.T)
    assert model.objective_ == pytest.approx(loss + penalty, rel=1e-10)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("form", ["shared", "list", "one task", "sparse"])
def test_equal_weights_are_the_multi_task_lasso(solver, form):
    rng = np.random.default_rng(5)
    X, Y = rng.standard_normal((40, 30)), rng.standard_normal((40, 3))
    Y += X[:, :3]
    data = {
        "shared": (X, Y),
        "list": ([X[:20], X[20:]], [Y[:20, 0], Y[20:, 1]]),
        "one task": (X, Y[:, 0]),
        "sparse": (sparse.csc_array(X * (np.abs(X) > 0.8)), Y),
    }[form]
    lasso = ts.MultiTaskLasso(alpha=0.3, tol=1e-10).fit(*data)
    model = ts.MultiTaskOWL(alpha=0.3, weights=np.ones(30), tol=1e-10, solver=solver).fit(*data)
    np.testing.assert_allclose(model.coef_, lasso.coef_, atol=2e-5)
    assert model.objective_ == pytest.approx(lasso.objective_, rel=1e-9)
    assert ts.MultiTaskOWL(weights=np.ones(30)).alpha_max(*data) == pytest.approx(
        lasso.alpha_max(*data), rel=1e-12
    )


@pytest.mark.parametrize("weights", ["oscar", "slope"])
def test_one_task_against_sortedl1(weights):
    sortedl1 = pytest.importorskip("sortedl1")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 300))
    y = X[:, :5].sum(axis=1) + 0.3 * rng.standard_normal(50)
    shape = oscar_weights(300) if weights == "oscar" else slope_weights(300, 0.1)
    model = ts.MultiTaskOWL(weights=weights, fit_intercept=False, tol=1e-9)
    alphas = model.alpha_max(X, y) * np.array([0.5, 0.2, 0.1])
    path = model.path(X, y, alphas=alphas)
    for k, alpha in enumerate(alphas):
        peer = sortedl1.Slope(
            lam=shape, alpha=alpha, fit_intercept=False, centering="none", scaling="none", tol=1e-9
        ).fit(X, y)
        coef = np.ravel(peer.coef_)
        np.testing.assert_allclose(path.coef(k).toarray()[0], coef, atol=1e-4)
        value = 0.5 * np.mean((y - X @ coef) ** 2) + alpha * np.sort(np.abs(coef))[::-1] @ shape
        assert path.objectives[k] <= value + 1e-8


@pytest.mark.parametrize("Model", [ts.MultiTaskOWL, ts.MultinomialOWL])
@pytest.mark.parametrize("weights", ["oscar", "slope"])
def test_alpha_max_is_exact(Model, weights):
    rng = np.random.default_rng(3)
    X = degenerate(rng, 30, 40)
    y = rng.integers(0, 3, 30) if Model is ts.MultinomialOWL else rng.standard_normal((30, 3))
    model = Model(weights=weights, tol=1e-10)
    largest = model.alpha_max(X, y)
    assert not model.set_params(alpha=largest).fit(X, y).get_support().any()
    assert model.set_params(alpha=0.999 * largest).fit(X, y).get_support().any()


# --- screening ---------------------------------------------------------------------------------------------------


def truth_of(problem, lam):
    """Row norms of a solution good to 1e-12, or nearly."""
    point = solve_path(problem, [lam], tol=1e-12, screening=None, max_iter=3_000).points[0]
    norms = np.zeros(problem.design.n_features)
    norms[point.features] = np.linalg.norm(point.rows, axis=1)
    return norms


def random_sorted_problem(seed):
    rng = np.random.default_rng(seed)
    n, d, tasks = int(rng.integers(4, 12)), int(rng.integers(3, 25)), int(rng.integers(1, 4))
    loss = "multinomial" if seed % 4 == 0 else "squared"
    shared = loss == "multinomial" or seed % 2 == 0
    tasks = max(tasks, 2) if loss == "multinomial" else tasks
    X = degenerate(rng, n if shared else n * tasks, d) if seed % 3 else rng.standard_normal((n * tasks, d))
    X = X[: n if shared else n * tasks]
    if loss == "multinomial":
        y = np.eye(tasks)[np.r_[np.arange(tasks), rng.integers(0, tasks, n)][:n]].T.ravel()
    else:
        y = rng.standard_normal(n * tasks) + (np.tile(X[:, 0], tasks) if shared else X[:, 0])
    weights = rng.uniform(0.3, 2.0, n) if seed % 5 == 0 else None
    if weights is not None:
        weights = np.tile(weights, tasks)
    design = Design(
        as_storage(np.asfortranarray(X)),
        n * np.arange(tasks + 1),
        shared=shared and tasks > 1,
        weights=weights,
        fit_intercept=seed % 7 != 0,
    )
    positive = loss == "squared" and seed % 11 == 0
    return rng, Problem(design, y, penalty=Sorted(random_weights(rng, d)), loss=loss, positive=positive)


def rejects(problem, engine, lam, test):
    """Rows that the rules reject at lam from the engine's pair."""
    rules = [GapSafe(), DPC()] if problem.loss.squared else [GapSafe()]
    problem.anchors.follow(engine.pair.dual.at.residual, engine.pair.dual.at.leak)
    sieve = Sieve(problem, rules, engine.columns, engine.ledger)
    sieve.before(engine.pair, lam, problem.penalty.with_test(test).at(lam), np.empty(0, dtype=int), (lam, lam, 1))
    return engine.ledger.rejected


def wrong_rejections(seed):
    """Rows that a test rejects, at pairs of gaps from 0.3 to 1e-8, although they are active."""
    rng, problem = random_sorted_problem(seed)
    lam_max = problem.lambda_max()
    if lam_max <= 1e-10:
        return 0, 0
    lam = lam_max * float(rng.uniform(0.2, 0.95))
    norms = truth_of(problem, lam)
    active = norms > 1e-4 * max(norms.max(), 1e-300)
    wrong = rejected = 0
    for screening in ("bao", "cumulative"):
        for goal in (0.3, 1e-2, 1e-4, 1e-8):
            # the pair of an unfinished solve at this strength, and that of another strength
            for other in (lam, min(1.3 * lam, 0.99 * lam_max)):
                # the pair itself comes from a solve without screening
                engine = Engine(problem, [], choose_strategy(problem, "auto"), max_iter=1000)
                engine.step(other, goal * problem.loss.null.value)
                mask = rejects(problem, engine, lam, screening)
                wrong += int(np.count_nonzero(mask & active))
                rejected += int(np.count_nonzero(mask))
    return wrong, rejected


@pytest.mark.parametrize("count", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_no_active_row_is_ever_rejected(count):
    results = [wrong_rejections(seed) for seed in range(count)]
    assert sum(wrong for wrong, _ in results) == 0
    assert sum(rejected for _, rejected in results) > 50 * count


@pytest.mark.slow
def test_no_active_row_is_ever_rejected_in_two_thousand_problems():
    results = [wrong_rejections(seed) for seed in range(2_000)]
    assert sum(wrong for wrong, _ in results) == 0


@cache
def active_rows(seed):
    """A strength, None where no row is ever active, and the rows that are active at it."""
    rng, problem = random_sorted_problem(seed)
    lam_max = problem.lambda_max()
    if lam_max <= 1e-10:
        return None, None
    lam = lam_max * float(rng.uniform(0.2, 0.95))
    norms = truth_of(problem, lam)
    return lam, np.flatnonzero(norms > 1e-4 * max(norms.max(), 1e-300))


def dropped_on_the_way(seed, screening, solver):
    """Active rows that a solver has lost, and rows that it dropped: best bounds kept, rows out before they are read."""
    lam, active = active_rows(seed)
    if lam is None:
        return 0, 0
    _, problem = random_sorted_problem(seed)
    point = solve_path(
        problem, [lam], tol=1e-9, screening=screening, solver=solver, max_iter=500
    ).points[0]
    return len(np.setdiff1d(active, point.features)), point.n_rejected + point.n_rejected_dynamic


@pytest.mark.parametrize("screening", ["bao", "cumulative"])
def test_no_active_row_is_dropped_on_the_way(screening):
    results = [dropped_on_the_way(seed, screening, "apgd") for seed in range(60)]
    assert sum(lost for lost, _ in results) == 0
    assert sum(dropped for _, dropped in results) > 100


@pytest.mark.parametrize("solver", ["apgd", pytest.param("spgd", marks=pytest.mark.slow)])
@pytest.mark.parametrize("screening", ["bao", "cumulative"])
def test_dynamic_screening_keeps_the_solution(solver, screening):
    for seed in range(1, 30) if solver == "apgd" else range(1, 6):
        _, problem = random_sorted_problem(seed)
        lam = 0.3 * problem.lambda_max()
        if lam <= 1e-10:
            continue
        plain = solve_path(problem, [lam], tol=1e-7, screening=None).points[0]
        point = solve_path(problem, [lam], tol=1e-7, screening=screening, solver=solver).points[0]
        assert abs(point.objective - plain.objective) <= 3e-7 * problem.loss.null.value


@pytest.mark.slow
def test_cumulative_test_finds_nearly_all_inactive_rows_at_convergence():
    found = {"bao": 0, "cumulative": 0}
    inactive = 0
    for seed in range(1, 120):
        _, problem = random_sorted_problem(seed)
        lam = 0.4 * problem.lambda_max()
        if lam <= 1e-10 or problem.penalty.positive or (not problem.loss.squared and seed % 20):
            continue
        engine = Engine(problem, [], choose_strategy(problem, "auto"), max_iter=5_000, single=True)
        point = engine.step(lam, 1e-13 * problem.loss.null.value)
        penalty = problem.penalty.at(lam)
        sizes = engine.pair.gauges * penalty.weights[0]
        # Rows on the boundary can be active in another solution: no safe test may reject them.
        boundary = np.sort(sizes)[::-1]
        slack = 1.0 - np.cumsum(boundary) / np.cumsum(penalty.weights)
        tight = np.flatnonzero(slack < 1e-5)
        last = boundary[tight[-1]] if len(tight) else np.inf
        free = (sizes < last * (1.0 - 1e-4)) if len(tight) else np.ones(len(sizes), dtype=bool)
        free[point.features] = False
        inactive += int(np.count_nonzero(free))
        for name in found:
            found[name] += int(np.count_nonzero(rejects(problem, engine, lam, name) & free))
    assert inactive > 300
    assert found["cumulative"] >= 0.99 * inactive
    assert found["bao"] < found["cumulative"]


def test_papers_second_theorem_fails_and_the_cumulative_test_does_not():
    """Weights (3, 2, 0) and ||m|| = (1, 1, 1): W = 0, yet the paper's threshold, weight 3, is 0."""
    upper, weights = np.full(3, 1.0 + 1e-6), np.array([3.0, 2.0, 0.0])
    assert not bao_test(upper, weights).any()
    assert cumulative_test(upper, weights).all()


def test_cumulative_dominates_bao():
    rng = np.random.default_rng(0)
    for _ in range(500):
        d = int(rng.integers(1, 30))
        upper, weights = rng.random(d) * 2, random_weights(rng, d)
        assert not np.any(bao_test(upper, weights) & ~cumulative_test(upper, weights))


# --- input forms, paths, estimators --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tasks_data():
    rng = np.random.default_rng(7)
    task = rng.permutation(np.repeat(["a", "b", "c"], [15, 25, 10]))
    X = np.round(4 * rng.standard_normal((50, 12)))
    y = X[:, 0] - X[:, 1] + 2.0 + rng.standard_normal(50)
    return X, y, task


@pytest.mark.parametrize("solver", ["auto", "apgd", pytest.param("spgd", marks=pytest.mark.slow)])
def test_every_input_form_gives_the_same_model(tasks_data, solver):
    X, y, task = tasks_data
    options = {"alpha": 0.5, "tol": 1e-8, "solver": solver}
    truth = ts.MultiTaskOWL(**options).fit(X, y, task=task)
    weight = np.where(np.arange(50) == 0, 0.0, 1.0)
    dropped = ts.MultiTaskOWL(**options).fit(X[1:], y[1:], task=task[1:])
    hidden = y.copy()
    hidden[0] = np.nan
    forms = {
        "list": ts.MultiTaskOWL(**options).fit([X[task == t] for t in "abc"], [y[task == t] for t in "abc"]),
        "float32": ts.MultiTaskOWL(**options).fit(X.astype(np.float32), y, task=task),
        "int8": ts.MultiTaskOWL(**options).fit(X.astype(np.int8), y, task=task),
        "csr": ts.MultiTaskOWL(**options).fit(sparse.csr_array(X), y, task=task),
        "csc": ts.MultiTaskOWL(**options).fit(sparse.csc_array(X), y, task=task),
    }
    for name, model in forms.items():
        np.testing.assert_allclose(model.coef_, truth.coef_, atol=1e-3, err_msg=name)
        np.testing.assert_allclose(model.intercept_, truth.intercept_, atol=1e-2, err_msg=name)
        assert model.objective_ == pytest.approx(truth.objective_, rel=1e-7)
    for model in (
        ts.MultiTaskOWL(**options).fit(X, y, task=task, sample_weight=weight),
        ts.MultiTaskOWL(**options).fit(X, hidden, task=task),
        ts.MultiTaskOWL(**options).fit(sparse.csr_array(X), hidden, task=task),
    ):
        assert model.objective_ == pytest.approx(dropped.objective_, rel=1e-7)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_shared_matrix_with_missing_labels_and_scaling(solver, storage):
    rng = np.random.default_rng(0)
    X = np.round(2 * rng.standard_normal((30, 8))) * [1, 2, 3, 4, 1, 1, 1, 0]
    Y = X[:, :2] @ rng.standard_normal((2, 3)) + rng.standard_normal((30, 3))
    Y[3, 0] = Y[7, 2] = np.nan
    given = sparse.csc_array(X) if storage == "sparse" else X
    blocks = [X[~np.isnan(Y[:, t])] for t in range(3)]
    targets = [Y[~np.isnan(Y[:, t]), t] for t in range(3)]
    for options in ({}, {"standardize": True}, {"task_weights": "balanced", "positive": True}):
        model = ts.MultiTaskOWL(alpha=0.2, tol=1e-9, solver=solver, **options).fit(given, Y)
        other = ts.MultiTaskOWL(alpha=0.2, tol=1e-9, **options).fit(blocks, targets)
        assert model.objective_ == pytest.approx(other.objective_, rel=1e-8)
        np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4)


def test_path_is_a_sequence_of_fits(tasks_data):
    X, y, task = tasks_data
    model = ts.MultiTaskOWL(tol=1e-8)
    path = model.path(X, y, task=task, n_alphas=8, eps=0.05)
    assert path.converged.all()
    assert path.n_selected[0] == 0
    for k in (2, 5, 7):
        fit = ts.MultiTaskOWL(alpha=path.alphas[k], tol=1e-8).fit(X, y, task=task)
        assert fit.objective_ == pytest.approx(path.objectives[k], rel=1e-7)
        np.testing.assert_allclose(path.coef(k).toarray(), fit.coef_, atol=1e-3)


def test_wide_path_certifies_over_all_features_with_few_passes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3000))
    Y = X[:, :5] @ rng.standard_normal((5, 4)) + 0.5 * rng.standard_normal((40, 4))
    path = ts.MultiTaskOWL().path(X, Y, n_alphas=20, eps=0.1)
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    null = 0.5 * np.sum(Yc**2) / 40
    for k, alpha in enumerate(path.alphas):
        W = path.coef(k).toarray().T
        penalty = Sorted(alpha * 40 * oscar_weights(3000)).on(np.ones(3000), 4)
        residual = Yc - Xc @ W
        objective = 0.5 * np.sum(residual**2) + penalty.value(W)
        scale = 1.0 / max(penalty.polar(penalty.row_gauges(Xc.T @ residual)), 1.0)
        dual = scale * np.vdot(residual, Yc) - 0.5 * scale**2 * np.sum(residual**2)
        assert objective / 40 == pytest.approx(path.objectives[k], rel=1e-9)
        assert (
            objective - dual
        ) / 40 <= 5e-6 * null  # the plain residual is a weaker dual point than the best seen
        assert path.dual_gaps[k] <= 1e-6 * null
    assert path.passes < 15
    assert np.nanmean(path.rejection_ratios) > 0.3


def test_clusters_are_tied_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 10))
    X[:, 1] = -X[:, 0]
    Y = np.outer(X[:, 0], [2.0, -1.0]) + 0.1 * rng.standard_normal((60, 2))
    model = ts.MultiTaskOWL(alpha=0.5).fit(X, Y)
    norms = np.linalg.norm(model.coef_, axis=0)
    assert sorted(np.concatenate(model.clusters_).tolist()) == np.flatnonzero(norms).tolist()
    for group in model.clusters_:
        np.testing.assert_allclose(norms[group], norms[group[0]], rtol=1e-9)
    assert [0, 1] in [group.tolist() for group in model.clusters_]


def test_cross_validation(tasks_data):
    X, y, task = tasks_data
    model = ts.MultiTaskOWLCV(n_alphas=10, eps=0.05, cv=3, weights="slope").fit(X, y, task=task)
    assert model.cv_scores_.shape == (10, 3)
    assert model.alpha_ in model.alphas_
    fit = ts.MultiTaskOWL(alpha=model.alpha_, weights="slope").fit(X, y, task=task)
    np.testing.assert_allclose(model.coef_, fit.coef_, atol=1e-2)
    assert [len(group) for group in model.clusters_]


def test_multinomial_cross_validation_scores_log_loss():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    y = np.array(["u", "v", "w"])[np.argmax(X[:, :3] + 0.5 * rng.standard_normal((60, 3)), axis=1)]
    rows = np.arange(60)
    folds = [(rows[rows % 2 == 0], rows[rows % 2 == 1]), (rows[rows % 2 == 1], rows[rows % 2 == 0])]
    model = ts.MultinomialOWLCV(n_alphas=6, eps=0.05, cv=folds).fit(X, y)
    for f, (train, test) in enumerate(folds):
        fit = ts.MultinomialOWL(alpha=model.alphas_[3]).fit(X[train], y[train])
        p = fit.predict_proba(X[test])[np.arange(len(test)), np.searchsorted(fit.classes_, y[test])]
        assert model.cv_scores_[3, f] == pytest.approx(-np.mean(np.log(p)), rel=1e-3)
    default = ts.MultinomialOWLCV(n_alphas=5, eps=0.1).fit(sparse.csr_array(X), y)
    assert default.cv_scores_.shape == (5, 5)
    assert default.score(X, y) > 0.6


def test_a_class_missing_from_a_fold_is_no_error():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    y = rng.integers(0, 2, 30)
    y[0] = 2
    rows = np.arange(30)
    folds = [(rows[1:20], np.r_[0, rows[20:]]), (rows[:20], rows[20:])]
    model = ts.MultinomialOWLCV(n_alphas=4, cv=folds).fit(X, y)
    assert np.isfinite(model.cv_scores_).all()
    assert np.isfinite(model.intercept_).all()


@pytest.mark.parametrize("K", [2, 3])
def test_multinomial_predictions(K):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = np.array(["b", "a", "c"])[np.argmax(X[:, :K], axis=1)]
    model = ts.MultinomialOWL(alpha=0.02).fit(X, y)
    scores = X @ model.coef_.T + model.intercept_
    assert model.coef_.shape == (K, 5)
    assert model.classes_.tolist() == ["a", "b", "c"][:K]
    np.testing.assert_allclose(model.predict_proba(X), softmax(scores, axis=1))
    np.testing.assert_array_equal(model.predict(X), model.classes_[np.argmax(scores, axis=1)])
    expected = scores[:, 1] - scores[:, 0] if K == 2 else scores
    np.testing.assert_allclose(model.decision_function(X), expected)
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    assert abs(model.intercept_.sum()) < 1e-8


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda X, y: ts.MultinomialOWL().fit(X, y, task=y), "drop task"),
        (lambda X, y: ts.MultinomialOWL().fit([X, X], [y, y]), "one matrix X"),
        (lambda X, y: ts.MultinomialOWL().fit(X, np.zeros(len(y))), "one class only"),
        (lambda X, y: ts.MultinomialOWL().fit(X, np.stack([y, y], axis=1)), "1-D y"),
        (lambda X, y: ts.MultiTaskOWL(weights=[1, 2, 3]).fit(X, y), "increase from 1"),
        (lambda X, y: ts.MultiTaskOWL(weights=[1, 1]).fit(X, y), "3 features"),
        (lambda X, y: ts.MultiTaskOWL(fdr=0).fit(X, y), "fdr"),
        (lambda X, y: ts.MultiTaskOWL(oscar_ratio=-1).fit(X, y), "oscar_ratio"),
        (lambda X, y: ts.MultiTaskOWL(solver="cd").fit(X, y), "'solver'"),
        (lambda X, y: ts.MultiTaskOWL(screening="dpc").fit(X, y), "'screening'"),
        (lambda X, y: ts.MultiTaskLasso(screening="bao").fit(X, y), "'screening'"),
    ],
)
def test_bad_input_is_named(call, words):
    X, y = np.arange(12.0).reshape(4, 3) ** 2, np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match=words):
        call(X, y)


@pytest.mark.parametrize("solver", SOLVERS)
def test_unfinished_solve_warns_and_its_gap_is_true(solver):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 60)), rng.standard_normal((30, 2))
    truth = ts.MultiTaskOWL(alpha=0.05, tol=1e-9).fit(X, Y)
    with pytest.warns(ConvergenceWarning):
        model = ts.MultiTaskOWL(alpha=0.05, max_iter=3, solver=solver).fit(X, Y)
    assert model.objective_ - truth.objective_ <= model.dual_gap_ + 1e-12


def test_warm_start_and_verbose(capsys):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 60)), rng.standard_normal((30, 2))
    model = ts.MultiTaskOWL(alpha=0.1, warm_start=True, verbose=1).fit(X, Y)
    first = model.n_iter_
    assert "MultiTaskOWL" in capsys.readouterr().err
    assert model.fit(X, Y).n_iter_ < first


# --- what the solvers lean on --------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"standardize": True}])
def test_curvature_is_the_largest_singular_value(storage, options, rng):
    """Power iterations find the largest singular value of the design."""
    x = rng.standard_normal((30, 12)) * (rng.random((30, 12)) < 0.5)
    x[:, 0] *= 5.0
    weights = np.tile(rng.uniform(0.5, 2.0, 30), 4)
    design = Design(
        as_storage(sparse.csc_array(x) if storage == "sparse" else np.asfortranarray(x)),
        30 * np.arange(5), shared=True, weights=weights, n_threads=1, **options,
    )  # fmt: skip
    problem = Problem(design, rng.standard_normal(120), penalty=Sorted(oscar_weights(12)))
    columns = SparseColumns(design) if storage == "sparse" else PackedColumns(design)
    working = WorkingProblem(columns, columns.positions(np.arange(12)), problem.penalty, problem.loss)
    largest = np.linalg.norm(design.take(np.arange(12)).columns[:30], 2) ** 2
    assert estimate_curvature(working, iterations=200) == pytest.approx(1.1 * largest, rel=1e-3)


@pytest.mark.parametrize("intercept", [True, False])
def test_multinomial_gap_is_a_divergence(intercept, rng):
    """What the loss adds to the gap, written out over all classes."""
    x, codes = rng.standard_normal((40, 3)), rng.integers(0, 4, 40)
    weights = np.tile(rng.uniform(0.5, 2.0, 40), 4)
    design = Design(
        as_storage(np.asfortranarray(x)),
        40 * np.arange(5),
        shared=True,
        weights=weights,
        fit_intercept=intercept,
    )
    y = np.eye(4)[codes]
    loss = Problem(design, y.T.ravel(), penalty=Sorted(np.ones(3)), loss="multinomial").loss
    z = 3.0 * rng.standard_normal((4, 40))
    z[:, 0] += 800.0 * np.eye(4)[(codes[0] + 1) % 4]  # the row's own probability underflows
    root = np.sqrt(weights[:40])
    at = loss.evaluate((z * root).ravel())
    scores = z.T + (at.nuisance if intercept else 0.0)
    p = softmax(scores, axis=1)
    np.testing.assert_allclose(at.residual.reshape(4, -1).T, (y - p) * root[:, None], atol=1e-12)
    logs = scores - logsumexp(scores, axis=1, keepdims=True)
    assert at.value == pytest.approx(-weights[:40] @ logs[np.arange(40), codes], rel=1e-12)
    for scale in (0.0, 1e-6, 0.3, 0.99, 1.0 - 1e-9, 1.0):
        mixed = (1.0 - scale) * y + scale * p
        terms = np.where(mixed > 0.0, mixed * (np.log(np.maximum(mixed, 1e-300)) - logs), 0.0)
        assert loss.terms(at, scale) == pytest.approx(
            weights[:40] @ terms.sum(axis=1), rel=1e-9, abs=1e-9
        )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("solver", ["apgd", "spgd"])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_a_single_fit_certified_on_the_rows_left_is_certified_on_all(solver, loss, rng):
    """Rows dropped on the way are out of the certificate: the gap is a bound all the same, and they were counted."""
    n, d, tasks = 60, 80, 3
    x = rng.standard_normal((n, d))
    scores = x[:, :3] @ rng.standard_normal((3, tasks)) + 0.3 * rng.standard_normal((n, tasks))
    y = np.eye(tasks)[np.argmax(scores, axis=1)] if loss == "multinomial" else scores

    def solve(tol, **options):
        design = Design(as_storage(np.asfortranarray(x)), n * np.arange(tasks + 1), shared=True, n_threads=1)
        problem = Problem(design, y.T.ravel(), penalty=Sorted(oscar_weights(d)), loss=loss)
        lam = 0.3 * problem.lambda_max()
        return solve_path(problem, [lam], tol=tol, **options).points[0]

    truth = solve(1e-10, solver="auto", screening=None)
    point = solve(1e-3, solver=solver, screening="cumulative")
    assert point.converged
    assert truth.dual_gap < 0.1 * point.dual_gap
    assert point.objective - point.dual_gap <= truth.objective <= point.objective + truth.dual_gap
    assert 0 < point.n_rejected + point.n_rejected_dynamic <= d - len(truth.features)
    close = solve(1e-7, solver=solver, screening="cumulative")
    assert close.n_rejected + close.n_rejected_dynamic > 0.9 * (d - len(truth.features))
