"""Errors of single coefficients from rows of unequal noise: against matrices, statsmodels, and what is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.linalg import sqrtm
from scipy.sparse import csr_array

import tasksieve as ts
from tasksieve.findings.sandwich import sandwich

Array = np.ndarray[Any, Any]


def members(unit: Array) -> csr_array:
    return csr_array((np.ones(len(unit)), (np.arange(len(unit)), unit)))


def test_one_feature_has_hc2_of_least_squares() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(15) ** 3
    y = 0.7 * x + rng.standard_normal(15) * (1.0 + np.abs(x))
    fit = sm.OLS(y, x).fit(cov_type="HC2")
    for model in (np.zeros(15), 0.3 * x, fit.fittedvalues):  # it makes no difference how far it was shrunk
        a = x[None, :] / (x @ x)
        parts, _ = sandwich(a, y - model, np.ones(15), np.ones(15), None)
        np.testing.assert_allclose(np.sqrt(np.sum(parts**2)), fit.bse[0], rtol=1e-12)


def test_one_feature_has_cr2_of_groups() -> None:
    """Bell and McCaffrey's correction, by square roots of matrices."""
    rng = np.random.default_rng(1)
    unit = rng.permutation(np.arange(24) % 5)
    x, y = rng.standard_normal(24), rng.standard_normal(24)
    rest = y - x * (x @ y) / (x @ x)
    total = 0.0
    for g in range(5):
        own = unit == g
        adjust = np.linalg.inv(np.asarray(sqrtm(np.eye(own.sum()) - np.outer(x[own], x[own]) / (x @ x))))
        total += float(x[own] @ adjust @ rest[own]) ** 2
    parts, _ = sandwich(x[None, :] / (x @ x), y, np.ones(24), np.ones(24), members(unit))
    np.testing.assert_allclose(np.sum(parts**2), total / (x @ x) ** 2, rtol=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
def test_equal_noise_has_an_unbiased_variance_and_its_degrees_of_freedom(grouped: bool) -> None:
    """Squares of the parts are a quadratic form of the noise: its mean and its variance, by the form."""
    rng = np.random.default_rng(2)
    n = 18
    unit = rng.permutation(np.arange(n) % 6)
    member = members(unit) if grouped else None
    weights, curvature = rng.uniform(0.3, 2.0, n), rng.uniform(0.1, 1.0, n)
    metric, x = weights * curvature, rng.standard_normal(n) ** 3
    a = weights * x / (metric @ x**2)
    # a slope has the variance c / s of a working residual of variance 1 / (s c)
    noise = np.diag(np.sqrt(curvature / weights))
    parts = [sandwich(a[None, :], row, curvature, weights, member) for row in noise]
    table = np.array([part[0] for part, _ in parts])
    form = table @ table.T
    np.testing.assert_allclose(np.trace(form), np.sum((a @ noise) ** 2), rtol=1e-12)
    np.testing.assert_allclose(parts[0][1][0], np.trace(form) ** 2 / np.sum(form**2), rtol=1e-12)


def test_degrees_of_freedom_are_all_rows_or_the_few_that_carry_the_feature() -> None:
    def degrees(a: Array) -> float:
        return float(sandwich(a[None, :], np.arange(len(a)) % 3.0, np.ones(len(a)), np.ones(len(a)), None)[1][0])

    assert degrees(np.ones(12)) == pytest.approx(11.0)
    normal = np.random.default_rng(3).standard_normal(100_000)
    assert degrees(normal) == pytest.approx(len(normal) / 3.0, rel=0.03)
    few = np.full(1000, -1e-3)
    few[:4] = 1.0
    assert degrees(few) == pytest.approx(3.0, rel=0.02)


def test_what_one_row_knows_has_no_error() -> None:
    a = np.zeros((2, 6))
    a[0, 2] = 1.0  # one row; the other feature is unknown
    parts, freedom = sandwich(a, np.ones(6), np.ones(6), np.ones(6), None)
    assert np.isnan(parts[0]).any()
    assert np.all(parts[1] == 0.0)
    assert freedom[1] == 5.0


@pytest.mark.slow
def test_rare_features_are_covered() -> None:
    """Five carriers of 60: 90 % intervals, within two and a half errors of the simulation, of either kind."""
    hits: dict[float, list[bool]] = {0.0: [], 1.5: []}
    for k in range(150):
        rng = np.random.default_rng(k)
        x, task = rng.standard_normal((120, 8)), np.repeat([0, 1], 60)
        x[:, 1] = 0.0
        for start in (0, 60):
            x[start + rng.permutation(60)[:5], 1] = 1.0
        for effect, own in hits.items():
            y = 0.8 * x[:, 0] + effect * x[:, 1] + rng.standard_normal(120)
            model = ts.MultiTaskLasso(0.15, standardize=True).fit(x, y, task=task)
            found = ts.debiased_inference(model, x, y, task=task, features=[1], level=0.9)
            own += ((found.lower <= effect) & (effect <= found.upper)).tolist()
    for own in hits.values():
        assert abs(np.mean(own) - 0.9) < 2.5 * np.sqrt(0.09 / len(own))
