"""The calibrated model against an interior-point solver, its certificate, its algorithms, its noise and tuning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import tasksieve as ts
from tasksieve.design import Design, as_storage
from tasksieve.path.calibrated import PUBLISHED
from tasksieve.path.problem import Problem
from tasksieve.path.solve import solve_path

KINDS = ("plain", "interpolated", "zero y", "duplicates", "one task", "rescaled", "zero column", "one row")
N_PROBLEMS = 96


def make(seed):
    """A small problem of each kind in turn, ridges in turn, other options at random."""
    rng = np.random.default_rng(seed)
    kind, l2 = KINDS[seed % len(KINDS)], (0.0, 0.02, 1.0)[seed // len(KINDS) % 3]
    tasks = 1 if kind == "one task" else int(rng.integers(2, 5))
    d = int(rng.integers(5, 14))
    shared = bool(rng.random() < 0.3) and kind != "one row"
    rows = [12] * tasks if shared else rng.integers(5, 14, tasks).tolist()
    if kind == "one row":
        rows[0] = 1
    matrix = rng.standard_normal((rows[0], d))
    X = [matrix if shared else rng.standard_normal((n, d)) for n in rows]
    W = rng.standard_normal((d, tasks)) * (rng.random((d, 1)) < 0.4)
    noise = np.zeros(tasks) if kind == "interpolated" else 10.0 ** rng.uniform(-1.5, 1, tasks)
    y = [x @ W[:, t] + noise[t] * rng.standard_normal(len(x)) for t, x in enumerate(X)]
    fraction = float(rng.choice([0.7, 0.3, 0.1, 0.02]))
    if kind == "zero y":
        y[0] = np.zeros(len(y[0]))
    if kind == "duplicates":
        for x in X[:1] if shared else X:
            x[:, 1], x[:, 2] = x[:, 0], -x[:, 0]
    if kind == "zero column":
        for x in X[:1] if shared else X:
            x[:, 0] = 0.0
    if kind == "rescaled":
        y = [v * s for v, s in zip(y, rng.choice([1e-3, 1.0, 1e3], tasks), strict=True)]
    options = {"fit_intercept": bool(rng.random() < 0.5), "positive": bool(rng.random() < 0.15)}
    if rng.random() < 0.3:
        options["feature_weights"] = rng.uniform(0.3, 2.0, d)
        if not options["positive"] and rng.random() < 0.5 and min(rows) > 4:
            options["feature_weights"][:1] = 0.0
    if rng.random() < 0.3:
        options["task_weights"] = rng.uniform(0.5, 2.0, tasks)
    weights = [rng.uniform(0.3, 2.0, n) if rng.random() < 0.5 else np.ones(n) for n in rows]
    for v in y:
        if len(v) > 6 and rng.random() < 0.3:
            v[1] = np.nan
    return X, y, weights, fraction, l2, shared, options


def fit(model, X, y, weights, shared):
    if shared:
        return model.fit(X[0], np.stack(y, axis=1), sample_weight=np.stack(weights, axis=1))
    return model.fit(X, y, sample_weight=weights)


def alpha_max(model, X, y, weights, shared):
    if shared:
        return model.alpha_max(X[0], np.stack(y, axis=1), sample_weight=np.stack(weights, axis=1))
    return model.alpha_max(X, y, sample_weight=weights)


def parts(X, y, weights, options):
    """Observed rows of each task, n_bar, feature and task weights."""
    seen = [~np.isnan(v) for v in y]
    n_bar = sum(s[k].sum() for s, k in zip(weights, seen, strict=True)) / len(X)
    u = np.asarray(options.get("feature_weights", np.ones(X[0].shape[1])))
    v = np.asarray(options.get("task_weights", np.ones(len(X))))
    data = [(x[k], t[k], np.sqrt(s[k])) for x, t, s, k in zip(X, y, weights, seen, strict=True)]
    return data, n_bar, u, v


def objective(X, y, weights, options, alpha, l2, W, b):
    """As it is written, from raw data."""
    data, n_bar, u, v = parts(X, y, weights, options)
    value = sum(v[t] * np.linalg.norm(q * (x @ W[:, t] + b[t] - z)) for t, (x, z, q) in enumerate(data))
    return (
        value / np.sqrt(n_bar)
        + alpha * np.sum(u * np.linalg.norm(W, axis=1))
        + l2 / 2 * np.sum(W[u > 0] ** 2)
    )


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(N_PROBLEMS))
def test_interior_point_oracle(seed):
    cp = pytest.importorskip("cvxpy")
    X, y, weights, fraction, l2, shared, options = make(seed)
    alpha = fraction * alpha_max(ts.CalibratedMultiTaskLasso(l2=l2, **options), X, y, weights, shared)
    if alpha == 0.0:
        alpha = 0.1
    patience = {"max_iter": 2000} if options["positive"] else {}
    model = ts.CalibratedMultiTaskLasso(alpha, l2=l2, tol=1e-8, **patience, **options)
    with warnings.catch_warnings():
        if options["positive"]:  # projected gradients: may stop short, but say so
            warnings.simplefilter("ignore", ConvergenceWarning)
        else:
            warnings.simplefilter("error")
        fit(model, X, y, weights, shared)
    data, n_bar, u, v = parts(X, y, weights, options)
    scale = max(
        objective(X, y, weights, options, alpha, l2, np.zeros_like(model.coef_.T), model.intercept_), 1e-3
    )
    ours = objective(X, y, weights, options, alpha, l2, model.coef_.T, model.intercept_)
    assert ours == pytest.approx(model.objective_, abs=1e-9 * scale)

    W = cp.Variable((X[0].shape[1], len(X)))
    b = cp.Variable(len(X)) if options["fit_intercept"] else np.zeros(len(X))
    loss = sum(
        v[t] * cp.norm(cp.multiply(q, x @ W[:, t] + b[t] - z)) for t, (x, z, q) in enumerate(data)
    ) / np.sqrt(n_bar)
    penalty = alpha * cp.sum(cp.multiply(u, cp.norm(W, axis=1))) + l2 / 2 * cp.sum_squares(
        W[np.flatnonzero(u > 0)]
    )
    program = cp.Problem(cp.Minimize(loss + penalty), [W >= 0] if options["positive"] else [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tighter than it can always be
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert program.status in ("optimal", "optimal_inaccurate")
    oracle = objective(
        X, y, weights, options, alpha, l2, W.value, b.value if options["fit_intercept"] else np.asarray(b)
    )
    tol = 1e-6 if not options["positive"] else max(1e-6, 1.001 * model.dual_gap_ / scale)
    assert ours <= oracle + tol * scale
    assert ours - model.dual_gap_ <= oracle + 1e-9 * scale  # the gap is no lie
    assert options["positive"] or model.dual_gap_ <= 1.01e-8 * scale
    residual = [
        np.linalg.norm(q * (x @ model.coef_[t] + model.intercept_[t] - z)) / np.linalg.norm(q)
        for t, (x, z, q) in enumerate(data)
    ]
    np.testing.assert_allclose(model.noise_, residual, atol=1e-9 * scale)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning")  # of twelve digits the last
def test_one_task_is_the_square_root_lasso():
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 60))
    y = X[:, :3] @ [2.0, -1.0, 0.5] + rng.standard_normal(40)
    model = ts.CalibratedMultiTaskLasso(0.3, fit_intercept=False, tol=1e-10).fit(X, y)
    w = cp.Variable(60)
    cp.Problem(cp.Minimize(cp.norm(y - X @ w) / np.sqrt(40) + 0.3 * cp.norm1(w))).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    np.testing.assert_allclose(model.coef_[0], w.value, atol=1e-6)
    # its defining property: the scale of y cancels
    scaled = ts.CalibratedMultiTaskLasso(0.3, fit_intercept=False, tol=1e-10).fit(X, 1e5 * y)
    np.testing.assert_allclose(scaled.coef_, 1e5 * model.coef_, rtol=1e-5, atol=1e-2)


# --- the screening rule ----------------------------------------------------------------------------------------------


def small_problem(rng):
    kind = rng.integers(6)
    tasks, d = int(rng.integers(1, 5)), int(rng.integers(4, 16))
    rows = rng.integers(1 if kind == 1 else 3, 12, tasks)
    offsets = np.concatenate([[0], np.cumsum(rows)])
    x = np.asfortranarray(rng.standard_normal((offsets[-1], d)))
    if kind == 2:
        x[:, 1] = x[:, 0]
    if kind == 3:
        x[:, 0] = 0.0
    W = rng.standard_normal((d, tasks)) * (rng.random((d, 1)) < 0.3)
    spans = list(zip(offsets[:-1], offsets[1:], strict=True))
    y = np.concatenate([x[a:b] @ W[:, t] for t, (a, b) in enumerate(spans)])
    y += (0.0 if kind == 4 else 10.0 ** rng.uniform(-2, 1)) * rng.standard_normal(len(y))
    if kind == 5:
        y *= np.repeat(10.0 ** rng.integers(-3, 4, tasks), rows)
    ridge = float(rng.choice([0.0, 0.0, 0.01, 1.0]))
    return Problem(
        Design(as_storage(x), offsets, fit_intercept=False), y, loss="square-root", fixed_ridge=ridge
    ), x


@pytest.mark.parametrize(("count", "seed"), [(50, 1), pytest.param(1050, 0, marks=pytest.mark.slow)])
def test_no_safe_rule_rejects_an_active_row(count, seed):
    """Over 1,000 problems (most of them in the slow run) and pairs of every quality: no row of the optimum is lost."""

    rng = np.random.default_rng(seed)
    rejected = inactive = problems = 0
    for _ in range(count):
        problem, x = small_problem(rng)
        lam = problem.lambda_max() * float(rng.uniform(0.03, 0.95))
        if lam == 0.0:
            continue
        problems += 1
        loss, design = problem.loss, problem.design
        penalty = problem.penalty.at(lam)
        exact = solve_path(problem, [lam], tol=1e-11).points[0]
        best = exact.objective - exact.dual_gap
        # a pair of any quality: the optimum, blurred
        blur = 10.0 ** rng.uniform(-6, 0.3)
        W = np.zeros((design.n_features, design.n_tasks))
        W[exact.features] = exact.rows
        W = W * (1.0 + blur * rng.standard_normal(W.shape)) * (rng.random() < 0.9)
        spans = list(zip(design.offsets[:-1], design.offsets[1:], strict=True))
        residual = loss.target - np.concatenate([x[a:b] @ W[:, t] for t, (a, b) in enumerate(spans)])
        at = loss.evaluate(loss.target - residual)
        gap = at.value + penalty.total(W) - best  # the tightest gap any dual point could certify
        ball = loss.ball(at, 1.0, gap)
        mask = np.zeros(design.n_features, dtype=bool)
        if ball is not None:
            norms = design.norms()
            centre = design.correlate(ball.vector)
            mask = penalty.inactive(
                penalty.row_reach(centre, norms * ball.slack, norms * ball.stretch, ball.radius)
            )
        size = np.zeros(design.n_features)
        size[exact.features] = np.linalg.norm(exact.rows, axis=1)
        assert not np.any(mask & (size > 1e-5 * size.max(initial=0.0)))
        rejected += mask.sum()
        inactive += np.sum(size == 0.0)
    assert problems >= 0.95 * count
    assert rejected > 0.3 * inactive  # the rule is not merely silent


@pytest.mark.sampled(4)
@pytest.mark.parametrize("l2", [0.0, 0.02])
@pytest.mark.parametrize("lazy", [True, False])
def test_screening_along_a_path_changes_nothing_but_work(l2, lazy):
    rng = np.random.default_rng(3)
    for shared in (False, True):
        n, T, d = 30, 3, 400
        X = rng.standard_normal((n if shared else n * T, d))
        W = np.zeros((d, T))
        W[:5] = rng.standard_normal((5, T))
        blocks = [X if shared else X[t * n : (t + 1) * n] for t in range(T)]
        y = np.concatenate([x @ W[:, t] + 0.5 * rng.standard_normal(n) for t, x in enumerate(blocks)])
        points = []
        for rule in ("auto", None):
            design = Design(as_storage(np.asfortranarray(X)), n * np.arange(T + 1), shared=shared)
            problem = Problem(design, y, loss="square-root", fixed_ridge=l2)
            lams = problem.lambda_max() * np.geomspace(1, 0.3, 30)
            points.append(solve_path(problem, lams, tol=1e-9, screening=rule, lazy=lazy).points)
        assert all(p.converged for way in points for p in way)
        for a, b in zip(*points, strict=True):
            assert abs(a.objective - b.objective) <= 1.1e-9 * points[0][0].objective
            assert a.n_rejected + len(a.features) <= d
        assert sum(p.n_rejected for p in points[0][1:]) > 100  # beyond the trivial value lam_max


# --- the paper's algorithms ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paper_like():
    rng = np.random.default_rng(1)
    X = [np.sqrt(0.5) * (rng.standard_normal((20, 30)) + rng.standard_normal((20, 1))) for _ in range(4)]
    W = rng.uniform(-10, 10, (30, 4)) * (np.arange(30)[:, None] < 3)
    y = [x @ W[:, t] + 2.0**-t * rng.standard_normal(20) for t, x in enumerate(X)]
    return X, y


@pytest.mark.sampled(4)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.01])
@pytest.mark.parametrize("solver", PUBLISHED)
def test_the_algorithms_for_study_reach_the_optimum(solver, l2, positive, paper_like):
    X, y = paper_like
    options = {"l2": l2, "positive": positive}
    alpha = 0.3 * ts.CalibratedMultiTaskLasso(**options).alpha_max(X, y)
    best = ts.CalibratedMultiTaskLasso(alpha, tol=1e-9 if not positive else 1e-6, **options).fit(X, y)
    model = ts.CalibratedMultiTaskLasso(alpha, solver=solver, tol=1e-4, max_iter=20_000, **options).fit(X, y)
    null = float(np.sum([np.linalg.norm(v - v.mean()) for v in y])) / np.sqrt(20)
    assert model.dual_gap_ <= 1e-4 * null
    assert best.objective_ - best.dual_gap_ <= model.objective_ + 1e-12
    assert model.objective_ - model.dual_gap_ <= best.objective_ + 1e-12
    history = model.history_
    assert set(history) == {"objective", "dual", "gap", "seconds"}
    assert len({len(values) for values in history.values()}) == 1
    assert len(history["gap"]) >= 3
    # weak duality at every iterate; time and certificate move one way
    assert history["objective"].min() >= best.objective_ - best.dual_gap_ - 1e-9
    assert history["dual"].max() <= best.objective_ + 1e-9
    assert np.all(np.diff(history["seconds"]) >= 0)
    assert np.all(np.diff(history["gap"]) <= 1e-12)
    assert history["gap"][-1] == pytest.approx(model.dual_gap_, rel=1e-3, abs=1e-7 * null)


def test_auto_has_no_history(paper_like):
    model = ts.CalibratedMultiTaskLasso(0.1, solver="d-pg", tol=1e-3).fit(*paper_like)
    assert hasattr(model, "history_")
    model.set_params(solver="auto").fit(*paper_like)
    assert not hasattr(model, "history_")


# --- the hard regime -------------------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("l2", [0.0, 1e-3])
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e-3])
def test_tasks_fitted_exactly_and_rescaled(l2, scale, seed):
    """More features than rows, hardly any penalty, one task's y in other units: every value is certified."""
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((12, 60)) for _ in range(4)]
    y = [x[:, :4] @ rng.standard_normal(4) + 0.1 * rng.standard_normal(12) for x in X]
    y[0] = y[0] * scale
    model = ts.CalibratedMultiTaskLasso(l2=l2)
    path = model.path(X, y, n_alphas=12, eps=1e-3)
    assert path.converged.all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cold = ts.CalibratedMultiTaskLasso(float(path.alphas[-1]), l2=l2).fit(X, y)
    assert abs(cold.objective_ - path.objectives[-1]) <= 2e-6 * path.null_objective
    if l2 == 0.0:
        assert np.all(cold.noise_ < 1e-3 * np.array([v.std() for v in y]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_tall_tasks_are_solved_in_their_span(l2, shared, monkeypatch):
    """Many more rows than columns: the same optimum as on the rows themselves."""
    from tasksieve.solvers.calibrated_newton import ReducedNewton

    rng = np.random.default_rng(6)
    X = [rng.standard_normal((70, 12)) for _ in range(3)]
    if shared:
        X = [X[0]] * 3
    y = [x[:, :3] @ rng.standard_normal(3) + 4.0**t * rng.standard_normal(70) for t, x in enumerate(X)]
    y[1] = X[1] @ rng.standard_normal(12)  # no noise: fitted exactly when alpha is small
    made = []
    original = ReducedNewton.__init__
    monkeypatch.setattr(ReducedNewton, "__init__", lambda self, problem: (made.append(1), original(self, problem))[1])
    data = (X[0], np.stack(y, axis=1)) if shared else (X, y)
    model = ts.CalibratedMultiTaskLasso(l2=l2, tol=1e-10)
    paths = [model.path(*data, n_alphas=8, eps=0.01)]
    assert made
    monkeypatch.setattr(ReducedNewton, "_RATIO", np.inf)
    paths.append(model.path(*data, n_alphas=8, eps=0.01))
    assert all(path.converged.all() for path in paths)
    np.testing.assert_allclose(paths[0].objectives, paths[1].objectives, rtol=1e-9)


# --- tuning ----------------------------------------------------------------------------------------------------------


def test_universal_alpha_does_not_look_at_y():
    rng = np.random.default_rng(2)
    X, task = rng.standard_normal((90, 30)), np.repeat([0, 1, 2], 30)
    y = rng.standard_normal(90)
    model = ts.CalibratedMultiTaskLasso("universal")
    first = model.universal_alpha(X, y, task=task)
    assert first == model.universal_alpha(X, 1e4 * y + 7, task=task)
    assert model.fit(X, y, task=task).alpha_ == first


@pytest.mark.parametrize("tasks", [1, 3, 20])
def test_universal_alpha_keeps_pure_noise_out(tasks):
    """Noise of any size in each task selects nothing, in at least 95 % of the cases, and alpha is not far too large."""
    rng = np.random.default_rng(tasks)
    X = [rng.standard_normal((25, 80)) * rng.uniform(0.5, 2.0, 80) for _ in range(tasks)]
    tops, universal = [], None
    for _ in range(100):
        y = [10.0 ** rng.uniform(-3, 3) * rng.standard_normal(25) for _ in X]
        model = ts.CalibratedMultiTaskLasso("universal")
        universal = universal or model.universal_alpha(X, y)
        tops.append(model.alpha_max(X, y))
    assert np.mean(np.array(tops) > universal) <= 0.08
    assert universal <= 1.5 * np.median(tops)


def test_cross_validation_over_two_parameters():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((30, 15)) for _ in range(3)]
    y = [x[:, 0] * 2 + rng.standard_normal(30) for x in X]
    model = ts.CalibratedMultiTaskLassoCV(l2=[0.0, 0.1], n_alphas=8, eps=0.05, cv=3).fit(X, y)
    assert model.cv_scores_.shape == (2, 8, 3)
    assert model.l2_ in (0.0, 0.1)
    alone = ts.CalibratedMultiTaskLassoCV(l2=model.l2_, n_alphas=8, eps=0.05, cv=3).fit(X, y)
    assert alone.alpha_ == model.alpha_
    np.testing.assert_allclose(alone.noise_, model.noise_)
    np.testing.assert_allclose(alone.coef_, model.coef_)


def test_cross_validation_scores_are_root_mean_squared_errors():
    rng = np.random.default_rng(4)
    X, task = rng.standard_normal((60, 8)), np.repeat([0, 1, 2], 20)
    y = X[:, 0] * [1.0, 2.0, 3.0][0] + np.where(task == 0, 5.0, 0.1) * rng.standard_normal(60)
    grid = [0.5, 0.2, 0.05]
    folds = list(ts.TaskKFold(3, shuffle=False).split(X, groups=task))
    model = ts.CalibratedMultiTaskLassoCV(
        grid, cv=ts.TaskKFold(3, shuffle=False), l2=0.01, task_weights="balanced", tol=1e-10, fold_tol=1e-10
    )
    model.fit(X, y, task=task)
    for k, alpha in enumerate(grid):
        for f, (train, test) in enumerate(folds):
            alone = ts.CalibratedMultiTaskLasso(alpha, l2=0.01, task_weights="balanced", tol=1e-10)
            alone.fit(X[train], y[train], task=task[train])
            squares = (y[test] - alone.predict(X[test], task=task[test])) ** 2
            roots = [np.sqrt(squares[task[test] == t].mean()) for t in range(3)]
            assert model.cv_scores_[k, f] == pytest.approx(np.mean(roots), rel=1e-5)
    assert model.alpha_ == grid[int(np.argmin(model.cv_scores_.mean(axis=1)))]


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": "best"}, "alpha.*universal"),
        ({"alpha": 0.0}, "alpha"),
        ({"l2": -1.0}, "l2"),
        ({"l2": np.nan}, "l2"),
        ({"solver": "newton-cg"}, "solver.*d-pg"),
        ({"screening": "dpc"}, "squared loss"),
        ({"screening": "bao"}, "screening"),
    ],
)
def test_bad_parameters_are_named(options, words, paper_like):
    with pytest.raises(ValueError, match=words):
        ts.CalibratedMultiTaskLasso(**options).fit(*paper_like)


def test_an_empty_list_of_ridges_is_refused(paper_like):
    with pytest.raises(ValueError, match="'l2' parameter is an empty list"):
        ts.CalibratedMultiTaskLassoCV(l2=[]).fit(*paper_like)
