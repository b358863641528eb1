"""Poisson, gamma, Tweedie, negative binomial regression on nasty data: what a model claims, judged in forty digits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from exact_numbers import wide

import tasksieve as ts

LOSSES = {
    "poisson": ts.losses.Poisson(),
    "gamma": ts.losses.Gamma(),
    "tweedie": ts.losses.Tweedie(1.5),
    "negative binomial": ts.losses.NegativeBinomial(0.8),
}
TROUBLES = (
    "plain", "columns", "offsets", "weights", "large counts", "rare counts", "copies", "free", "few rows", "rates",
)  # fmt: skip


def make(kind, rng, loss):
    task = rng.integers(0, 3, 40) if kind != "few rows" else np.array([0, 0, 1, 1, 1, 2, 2])
    task[:3] = [0, 1, 2]
    n, d = len(task), 8
    x = rng.standard_normal((n, d))
    z = 0.7 * x[:, 0] - 0.5 * x[:, 1]
    y = rng.poisson(np.exp(z + (10.0 if kind == "large counts" else -2.0 if kind == "rare counts" else 0.5)))
    y = y.astype(float)
    fit, params = {}, {"fit_intercept": bool(rng.random() < 0.8)}
    if kind == "columns":
        x *= 10.0 ** rng.uniform(-3, 3, d)
    if kind == "offsets":
        x += 1e3 * rng.standard_normal(d)
        params["fit_intercept"] = True
    if kind == "weights":
        fit["sample_weight"] = 10.0 ** rng.uniform(-5, 2, n) * (rng.random(n) < 0.9)
    if kind == "copies":
        x[:, 5], x[:, 6], x[:, 7] = x[:, 0], 1.0, 0.0
    if kind == "free":
        params["feature_weights"] = np.where(np.arange(d) == 3, 0.0, 1.0)
    if kind == "rates":
        y = np.exp(z + 0.3 * rng.standard_normal(n))
        y[rng.random(n) < 0.1] = np.nan
    if loss.labels == "positive":
        y = np.where(np.isfinite(y), (y + 0.1) * np.exp(rng.standard_normal(n)), np.nan)
    return x, y, task, fit, params


def row_values(loss, y, z):
    """As the documentation has them."""
    if isinstance(loss, ts.losses.Gamma):
        return y * np.exp(-z) + z
    if isinstance(loss, ts.losses.Tweedie):
        return 2 * y * np.exp(-z / 2) + 2 * np.exp(z / 2)
    if isinstance(loss, ts.losses.NegativeBinomial):
        size = wide(loss.size)
        return (y + size) * np.log(1 + np.exp(z) / size) - y * z
    return np.exp(z) - y * z


def objective(loss, x, y, task, s, u, coef, intercept, alpha):
    live = np.isfinite(y) & (s > 0)
    coef, s = wide(coef), wide(s[live])
    z = np.sum(wide(x[live]) * coef[task[live]], axis=1) + intercept[task[live]]
    value = np.sum(s * row_values(loss, wide(y[live]), z))
    norms = np.sqrt(np.sum(np.square(coef), axis=0))
    return value / (s.sum() / 3) + alpha * np.sum(u * norms)


def also_slow(values, quick):
    return [value if value == quick else pytest.param(value, marks=pytest.mark.slow) for value in values]


@pytest.mark.parametrize("seed", also_slow((0, 1, 2), 0))
@pytest.mark.parametrize("kind", TROUBLES)
@pytest.mark.parametrize("name", also_slow(LOSSES, "poisson"))
def test_claims_are_true(name, kind, seed):
    judge(name, kind, np.random.default_rng([seed, TROUBLES.index(kind)]), 4)


@pytest.mark.parametrize("kind", ["columns", "weights", "large counts", "rare counts", "free"])
@pytest.mark.parametrize("name", ["gamma", "tweedie", "negative binomial"])
def test_claims_of_one_problem_are_true(name, kind):
    judge(name, kind, np.random.default_rng([3, TROUBLES.index(kind)]), 1)


def judge(name, kind, rng, problems):
    loss = LOSSES[name]
    for _ in range(problems):
        x, y, task, fit, params = make(kind, rng, loss)
        s, u = fit.get("sample_weight", np.ones(len(y))), params.get("feature_weights", np.ones(8))
        model = ts.MultiTaskRegressor(loss, n_jobs=1, **params)
        claims = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            top = model.alpha_max(x, y, task=task, **fit)
            model.alpha = float(rng.choice([0.5, 0.1, 0.01])) * (top or 1.0)
            for tol in (1e-1, 1e-4, 1e-7, 1e-10):
                model.set_params(tol=tol).fit(x, y, task=task, **fit)
                value = objective(loss, x, y, task, s, u, model.coef_, model.intercept_, model.alpha)
                claims.append((tol, value, model.objective_, model.dual_gap_))
        scale = model.null_objective_
        low = min(value for _, value, _, _ in claims)
        for tol, value, told, gap in claims:
            size = abs(value) + scale
            assert abs(told - value) <= 1e-12 * size + gap * 1e-3, (kind, tol)
            assert value - low <= gap, (kind, tol, float(value - low), gap)
            assert told - gap <= low + 1e-15 * size, (kind, tol)
            assert gap <= max(tol, 1e-8) * scale * (1.0 + 1e-9), (kind, tol, gap / scale)
