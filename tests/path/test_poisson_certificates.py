"""Poisson regression on nasty data: what a model claims, judged in forty digits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from exact_numbers import wide

import tasksieve as ts

TROUBLES = (
    "plain", "columns", "offsets", "weights", "large counts", "rare counts", "copies", "free", "few rows", "rates",
)  # fmt: skip


def make(kind, rng):
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
    return x, y, task, fit, params


def objective(x, y, task, s, u, coef, intercept, alpha):
    live = np.isfinite(y) & (s > 0)
    coef, s = wide(coef), wide(s[live])
    z = np.sum(wide(x[live]) * coef[task[live]], axis=1) + intercept[task[live]]
    value = np.sum(s * (np.exp(z) - y[live] * z))
    norms = np.sqrt(np.sum(np.square(coef), axis=0))
    return value / (s.sum() / 3) + alpha * np.sum(u * norms)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", TROUBLES)
def test_claims_are_true(kind, seed):
    rng = np.random.default_rng([seed, TROUBLES.index(kind)])
    for _ in range(4):
        x, y, task, fit, params = make(kind, rng)
        s, u = fit.get("sample_weight", np.ones(len(y))), params.get("feature_weights", np.ones(8))
        model = ts.MultiTaskPoisson(n_jobs=1, **params)
        claims = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            top = model.alpha_max(x, y, task=task, **fit)
            model.alpha = float(rng.choice([0.5, 0.1, 0.01])) * (top or 1.0)
            for tol in (1e-1, 1e-4, 1e-7, 1e-10):
                model.set_params(tol=tol).fit(x, y, task=task, **fit)
                value = objective(x, y, task, s, u, model.coef_, model.intercept_, model.alpha)
                claims.append((tol, value, model.objective_, model.dual_gap_))
        scale = model.null_objective_
        low = min(value for _, value, _, _ in claims)
        for tol, value, told, gap in claims:
            size = abs(value) + scale
            assert abs(told - value) <= 1e-12 * size + gap * 1e-3, (kind, tol)
            assert value - low <= gap, (kind, tol, float(value - low), gap)
            assert told - gap <= low + 1e-15 * size, (kind, tol)
            assert gap <= max(tol, 1e-8) * scale * (1.0 + 1e-9), (kind, tol, gap / scale)
