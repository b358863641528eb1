"""The logistic loss against forty digits: values, conjugates, derivatives, intercepts."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from tasksieve.design import Design, as_storage
from tasksieve.losses import Logistic
from tasksieve.losses.logistic import expit

LOGISTIC = Logistic()
Z = np.array([-750.0, -40.0, -3.0, -1e-9, 0.0, 1e-300, 0.5, 30.0, 36.7, 700.0, 745.1])


def each(function: Any, *arrays: Any) -> np.ndarray:
    with mpmath.workdps(400):
        return np.array([float(function(*map(mpmath.mpf, map(float, own)))) for own in zip(*arrays, strict=True)])


def test_values_and_derivatives_have_all_their_digits() -> None:
    for sign in (1.0, -1.0):
        y = np.full(len(Z), sign)
        values = each(lambda y, z: mpmath.log1p(mpmath.exp(-y * z)), y, Z)
        slopes = each(lambda y, z: y / (1 + mpmath.exp(y * z)), y, Z)
        curvatures = each(lambda y, z: 1 / ((1 + mpmath.exp(y * z)) * (1 + mpmath.exp(-y * z))), y, Z)
        found = LOGISTIC._derivatives(y, Z)
        assert found is not None
        for own, true in zip(found, (values, slopes, curvatures), strict=True):
            np.testing.assert_allclose(own, true, rtol=2e-15, atol=1e-320)
        np.testing.assert_allclose(LOGISTIC.value(y, Z), values, rtol=1e-15, atol=1e-320)


def test_conjugates_have_all_their_digits() -> None:
    q = np.array([0.0, 5e-324, 1e-300, 1e-17, 1e-10, 0.3, 0.5, 1.0 - 1e-9, 1.0 - 2.0**-53, 1.0])

    def entropy(q: Any) -> Any:
        return sum(part * mpmath.log(part) for part in (q, 1 - q) if part)

    for sign in (1.0, -1.0):
        found = LOGISTIC.conjugate(np.full(len(q), sign), sign * q)
        np.testing.assert_allclose(found, each(entropy, q), rtol=4e-15, atol=1e-320)


def test_intercepts_make_slopes_orthogonal_to_the_constant() -> None:
    """Also where scores are so large that no curvature is left, and of a task with one class none runs away."""
    rng = np.random.default_rng(3)
    sizes = [12, 9, 30, 5]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    design = Design(as_storage(rng.standard_normal((offsets[-1], 2))), offsets)
    y = np.where(rng.random(offsets[-1]) < 0.4, 1.0, -1.0)
    for t in range(3):
        y[offsets[t] : offsets[t] + 2] = 1.0, -1.0
    y[offsets[3] :] = 1.0
    weights = rng.uniform(0.5, 2.0, len(y))
    z = 3.0 * rng.standard_normal(len(y)) + np.repeat([0.0, 500.0, -40.0, 0.0], sizes)
    z[offsets[1] : offsets[1] + 9] += 300.0 * rng.standard_normal(9)
    for guess in (None, np.array([50.0, 0.0, -700.0, 0.0])):
        b = LOGISTIC.intercepts(y, z, weights, design, guess)
        assert b is not None
        assert np.isfinite(b).all()
        p = weights * expit(-y * (z + np.repeat(b, sizes)))
        for t in range(3):
            own = slice(offsets[t], offsets[t + 1])
            resolved = np.spacing(abs(b[t])) * np.sum(p[own] * (1.0 - p[own] / weights[own]))
            assert abs(np.sum((y * p)[own])) <= 4e-14 * np.sum(p[own]) + 4.0 * resolved


def test_a_loss_derived_from_it_is_asked_for_its_own_slopes() -> None:
    class Doubled(Logistic):
        def value(self, y: Any, z: Any) -> Any:
            return 2.0 * super().value(y, z)

    assert Doubled()._derivatives(np.ones(1), np.zeros(1)) is None
