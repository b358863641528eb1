"""Ratios whose estimate is in its own error, against the t test of the fit that has the feature, too."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from tasksieve.findings.studentised import half_width, two_sided


@pytest.mark.parametrize("seed", range(5))
def test_a_feature_left_out_has_the_t_test_of_the_fit_with_it(seed: int) -> None:
    """Residuals of a fit without a feature, and the part of its column that is orthogonal to the fit's: exactly the
    added-variable test."""
    rng = np.random.default_rng(seed)
    n, k = 14, 4
    x, z = rng.standard_normal((n, k)), rng.standard_normal(n)
    y = x @ rng.standard_normal(k) + 0.7 * z + rng.standard_normal(n)
    basis = np.linalg.qr(x)[0]
    p, a = (v - basis @ (basis.T @ v) for v in (y, z))
    ratio = (a @ p) / np.sqrt((a @ a) * (p @ p) / (n - k))
    whole = sm.OLS(y, np.column_stack([x, z])).fit()
    freedom, yes = np.array([float(n - k)]), np.array([True])
    np.testing.assert_allclose(two_sided(np.array([ratio]), freedom, yes), whole.pvalues[-1], rtol=1e-9)
    assert two_sided(np.array([ratio]), freedom, ~yes)[0] != pytest.approx(whole.pvalues[-1], rel=1e-3)


@pytest.mark.parametrize("internal", [True, False])
@pytest.mark.parametrize("freedom", [1.0, 1.5, 3.0, 40.0, 1e6])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_end_where_the_test_does(internal: bool, freedom: float, level: float) -> None:
    nu, own = np.array([freedom]), np.array([internal])
    width = half_width(level, nu, own)
    np.testing.assert_allclose(two_sided(width, nu, own), 1.0 - level, rtol=1e-6)
    if internal and freedom > 1.0:
        assert width[0] < np.sqrt(freedom)  # no larger ratio exists


def test_what_cannot_be() -> None:
    """A ratio at its largest possible value, by rounding above it; a task without residuals."""
    nu, own = np.full(3, 4.0), np.ones(3, dtype=bool)
    found = two_sided(np.array([2.0, 2.0 + 1e-15, np.nan]), nu, own)
    assert found[0] == found[1] == 0.0
    assert np.isnan(found[2])
