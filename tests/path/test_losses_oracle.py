"""Huber, quantile, hinge and Poisson losses against an independent interior-point solver, with every option."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from exact_numbers import wide

import tasksieve as ts
from tasksieve.losses import Huber, Poisson, Quantile, SmoothedHinge, SquaredHinge

cp = pytest.importorskip("cvxpy")

LOSSES = {
    "Huber": Huber(0.8),
    "quantile": Quantile(0.7, 0.4),
    "squared hinge": SquaredHinge(),
    "smoothed hinge": SmoothedHinge(0.5),
    "Poisson": Poisson(),
}
PENALTIES = {"l21": (0.0, 1.0), "l11": (1.0, 0.0), "sparse group": (0.4, 0.8)}
DATA = ("plain", "weights", "unpenalised", "missing labels", "one class", "degenerate", "no intercept")
TASKS, D = 3, 12


def make(loss, kind, rng):
    """X, y, task, and what `fit` and the constructor take beside."""
    task = rng.permutation(np.repeat(np.arange(TASKS), [9, 14, 12]))
    x = rng.standard_normal((len(task), D))
    z = x[:, 0] - 0.7 * x[:, 1] + (task - 1.0) * x[:, 2] + rng.standard_normal(len(task))
    y = {"signs": np.where(z > 0, 1.0, -1.0), "counts": rng.poisson(np.exp(0.6 * z)).astype(float)}.get(loss.labels, z)
    fit, params = {}, {}
    if kind == "weights":
        fit["sample_weight"] = rng.uniform(0.2, 3.0, len(y)) * (rng.random(len(y)) > 0.1)
        params["task_weights"] = {0: 2.0, 2: 0.5}
    if kind == "unpenalised":
        params["feature_weights"] = np.where(np.arange(D) == 4, 0.0, rng.uniform(0.5, 2.0, D))
    if kind == "missing labels":
        y = np.where(rng.random(len(y)) < 0.2, np.nan, y)
    if kind == "one class":
        y[task == 1] = {"signs": 1.0, "counts": 0.0}.get(loss.labels, 2.5)
    if kind == "degenerate":
        x[:, 5], x[:, 6], x[:, 7] = x[:, 0], 0.0, 3.0
        x[:, 8] *= 1e4
        y[task == 2] = y[task == 2][0]
    if kind == "no intercept":
        params["fit_intercept"] = False
    return x, y, task, fit, params


def rows_value(loss, y, z, xp):
    """f(y, z) by its definition; `xp` is cvxpy, or numpy for numbers of forty digits."""
    if isinstance(loss, Poisson):
        return xp.exp(z) - xp.multiply(y, z)
    if isinstance(loss, SquaredHinge):
        short = 1 - xp.multiply(y, z)
        return xp.square(cp.pos(short) if xp is cp else np.maximum(short, 0)) / 2
    if isinstance(loss, Huber):
        r, low, high, mu = y - z, -loss.delta, loss.delta, 1.0
    elif isinstance(loss, Quantile):
        r, low, high, mu = y - z, loss.q - 1, loss.q, loss.smoothing
    else:
        r, low, high, mu = 1 - xp.multiply(y, z), 0.0, 1.0, loss.kappa
    if xp is np:
        p = np.clip(r / mu, low, high)
        return p * r - mu * p * p / 2
    # a linear part and Huber's function of a shifted residual
    middle, half = (low + high) / 2, (high - low) / 2
    return middle * r - mu * middle**2 / 2 + cp.huber(r - mu * middle, mu * half) / (2 * mu)


class Oracle:
    """The public objective, written down once for numbers and once for cvxpy."""

    def __init__(self, loss, penalty, x, y, task, fit, params):
        self.loss, self.x, self.y = loss, x, y
        self.l1, self.group = PENALTIES[penalty]
        s = fit.get("sample_weight", np.ones(len(y))) * np.isfinite(y)
        self.n_bar = s.sum() / TASKS
        self.s = s * np.array([params.get("task_weights", {}).get(t, 1.0) for t in task])
        self.u = params.get("feature_weights", np.ones(D))
        self.parts = [np.flatnonzero((task == t) & (s > 0)) for t in range(TASKS)]
        self.intercept = params.get("fit_intercept", True)

    def value(self, coef, intercept, alpha):
        total = wide(0.0)
        for t, rows in enumerate(self.parts):
            z = wide(self.x[rows]) @ wide(coef[t]) + intercept[t]
            total += self.s[rows] @ rows_value(self.loss, self.y[rows], z, np)
        w = wide(coef)
        norm = self.u @ (self.l1 * np.abs(w).sum(axis=0) + self.group * np.sqrt(np.sum(w * w, axis=0)))
        return float(total / self.n_bar + alpha * norm)

    def solve(self, alpha):
        w, b = cp.Variable((D, TASKS)), cp.Variable(TASKS)
        total = 0
        for t, rows in enumerate(self.parts):
            z = self.x[rows] @ w[:, t] + b[t]
            total = total + self.s[rows] @ rows_value(self.loss, self.y[rows], z, cp)
        norm = self.u @ (self.l1 * cp.sum(cp.abs(w), axis=1) + self.group * cp.norm(w, 2, axis=1))
        held = [b >= -30] if self.intercept else [b == 0]
        problem = cp.Problem(cp.Minimize(total / self.n_bar + alpha * norm), held)
        problem.solve(solver="CLARABEL")
        return w.value.T, b.value


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("name", LOSSES)
def test_solutions_and_gaps(name, penalty, kind):
    rng = np.random.default_rng([list(LOSSES).index(name), list(PENALTIES).index(penalty), DATA.index(kind)])
    loss = LOSSES[name]
    x, y, task, fit, params = make(loss, kind, rng)
    l1, group = PENALTIES[penalty]
    model = ts.MultiTaskRegressor(loss, ts.penalties.SparseGroup(l1, group), tol=1e-9, n_jobs=1, **params)
    oracle = Oracle(loss, penalty, x, y, task, fit, params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about tasks without counts, scales of columns
        model.alpha = float(rng.choice([0.5, 0.15, 0.05])) * model.alpha_max(x, y, task=task, **fit)
        model.fit(x, y, task=task, **fit)
        coef, intercept = oracle.solve(model.alpha)
    own, theirs = oracle.value(model.coef_, model.intercept_, model.alpha), oracle.value(coef, intercept, model.alpha)
    scale = model.null_objective_
    assert model.objective_ == pytest.approx(own, rel=1e-12, abs=1e-12 * scale)
    assert model.dual_gap_ <= 1e-9 * scale
    assert own <= theirs + 1e-7 * scale
    assert model.objective_ - model.dual_gap_ <= theirs + 1e-14 * abs(theirs)
    assert model.n_features_in_ == D


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LOSSES)
def test_screening_changes_nothing_but_work(name):
    """Every rule along a path: what it rejects is zero, and objectives agree within their gaps."""
    rng = np.random.default_rng(7)
    loss = LOSSES[name]
    tasks, rows, d = 3, 25, 400
    x, task = rng.standard_normal((tasks * rows, d)), np.repeat(np.arange(tasks), rows)
    z = x[:, 0] - x[:, 1] + 0.5 * rng.standard_normal(len(x))
    y = {"signs": np.sign(z), "counts": rng.poisson(np.exp(0.6 * z)).astype(float)}.get(loss.labels, z)
    rules = ["auto", "midpoint", "gap", None]
    if name != "Poisson":
        rules.append("dpc")
    found = {}
    for rule in rules:
        model = ts.MultiTaskRegressor(loss, tol=1e-7, screening=rule, n_jobs=1)
        found[rule] = model.path(x, y, task=task, n_alphas=12, eps=0.2)
    plain = found[None]
    for rule, path in found.items():
        both = path.dual_gaps + plain.dual_gaps
        assert np.all(np.abs(path.objectives - plain.objectives) <= both + 1e-15), rule
        assert path.converged.all()
    assert np.all(plain.rejection_ratios == 0.0)
    if name in ("squared hinge", "Poisson"):  # slopes at the end of a box leave little to sequential tests
        assert found["auto"].rejection_ratios[1:].mean() > 0.3
        assert found["midpoint"].rejection_ratios[1:].mean() >= found["gap"].rejection_ratios[1:].mean()


def test_the_cut_ball_holds_the_dual_optimum(rng):
    """Of every clipped loss, from any W: the dual optimum of a long solve, and no larger than the gap-safe sphere."""
    from tasksieve.design import DenseStorage, Design
    from tasksieve.path import Problem, solve_path
    from tasksieve.path.pair import Point, point_gap
    from tasksieve.screening import DualState, rigorous_ball

    offsets = np.array([0, 20, 40])
    checked = 0
    for name, loss in LOSSES.items():
        if name == "Poisson":
            continue
        for ridge in (0.0, 0.3):
            x = np.asfortranarray(rng.standard_normal((40, 30)))
            y = x[:, 0] - x[:, 1] + rng.standard_normal(40)
            design = Design(DenseStorage(x), offsets, n_threads=1)
            y = np.sign(y) if loss.labels == "signs" else y
            problem = Problem(design, y, loss=loss, ridge_ratio=ridge)
            lam = 0.3 * problem.lambda_max()
            penalty, on = problem.penalty.at(lam), problem.loss
            best = solve_path(problem, [lam], tol=1e-11).points[0]
            truth = np.zeros((30, 2))
            truth[best.features] = best.rows

            def image(rows, design=design, x=x):
                z = np.concatenate([x[:20] @ rows[:, 0], x[20:] @ rows[:, 1]])
                return design.project(z)

            optimum = on.evaluate(image(truth)).residual
            for size in (0.0, 1e-4, 1e-2, 0.3, 1.0):
                rows = truth * (1.0 + size * rng.standard_normal(truth.shape))
                at = on.settled(on.evaluate(image(rows)))
                features = np.flatnonzero(rows.any(axis=1))
                products = design.correlate(at.residual)
                gauges = penalty.row_gauges(products)
                point = Point(features, rows[features], at, products[features])
                gap, scale = point_gap(on, penalty, point, gauges)
                cost, rest = on.outliers(at)
                share = on.smoothness
                state = DualState(
                    y=on.target, residual=at.residual, correlations=products, norms=design.norms(), lam=lam,
                    features=features, rows=rows[features], squared=False, smoothness=share, gap=gap, dual_scale=scale,
                    ridge_ratio=share * penalty.ridge / lam, outliers=(share * cost, share * rest),
                    norm=lambda chosen, own, share=share, penalty=penalty: share * penalty.restrict(chosen).value(own),
                )  # fmt: skip
                ball = rigorous_ball(state, lam)
                away = np.linalg.norm(ball.centre(state) - optimum)
                assert away <= ball.radius * (1.0 + 1e-9) + 3e-5 * np.linalg.norm(optimum), (name, ridge, size)
                if not ridge:
                    rounding = 1e-6 * np.linalg.norm(on.target)
                    assert ball.radius <= on.sphere(at, scale, gap).radius / np.sqrt(2.0) + rounding
                    assert ball.radius <= on.ball(at, scale, gap).radius + rounding
                checked += 1
    assert checked == 40
