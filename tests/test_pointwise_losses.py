"""Losses of one sample: slopes against differences, conjugates against Fenchel and Young."""

from __future__ import annotations

import numpy as np
import pytest

from tasksieve.losses import pointwise

CLASSES = [
    pointwise.Logistic(),
    pointwise.Hinge(),
    pointwise.Hinge(width=0.3),
    pointwise.SquaredHinge(),
    pointwise.SquaredHinge(factor=1.0),
]
VALUES = [
    pointwise.Squared(),
    pointwise.Squared(factor=1.0),
    pointwise.EpsilonInsensitive(0.2),
    pointwise.EpsilonInsensitive(0.0),
    pointwise.SquaredEpsilonInsensitive(0.2),
    pointwise.SquaredEpsilonInsensitive(0.2, factor=1.0),
]
every = pytest.mark.parametrize("loss", CLASSES + VALUES, ids=repr)


def samples(loss, rng, n=400):
    y = rng.choice([-1.0, 1.0], n) if loss in CLASSES else rng.standard_normal(n)
    return y, 3.0 * rng.standard_normal(n)


@every
def test_slope_is_minus_the_derivative(loss, rng):
    y, z = samples(loss, rng)
    step = 1e-5
    difference = (loss.value(y, z + step) - loss.value(y, z - step)) / (2 * step)
    np.testing.assert_allclose(loss.slope(y, z), -difference, atol=3e-5)


@every
def test_value_is_convex_and_slope_is_as_smooth_as_it_says(loss, rng):
    y, z = samples(loss, rng)
    other = z + rng.standard_normal(len(z))
    drop = -(loss.slope(y, other) - loss.slope(y, z)) * (other - z)
    assert np.all(drop >= -1e-12)
    assert np.all(drop <= loss.smoothness * (other - z) ** 2 + 1e-12)


@every
def test_fenchel_young(loss, rng):
    y, z = samples(loss, rng)
    p = loss.slope(y, z)
    np.testing.assert_allclose(loss.value(y, z) + loss.conjugate(y, p) + p * z, 0.0, atol=1e-12)
    low, high = (np.clip(bound, -4.0, 4.0) for bound in loss.domain(y))
    inside = low + rng.random(len(y)) * (high - low)
    terms = loss.value(y, z) + loss.conjugate(y, inside) + inside * z
    assert np.all(np.isfinite(terms))
    assert np.all(terms >= -1e-12)


@every
def test_conjugate_is_the_supremum(loss, rng):
    y, _ = samples(loss, rng, 20)
    low, high = (np.clip(bound, -2.0, 2.0) for bound in loss.domain(y))
    p = low + (0.05 + 0.9 * rng.random(len(y))) * (high - low)
    grid = np.linspace(-60.0, 60.0, 240_001)
    best = [np.max(-a * grid - loss.value(np.full(len(grid), b), grid)) for a, b in zip(p, y, strict=True)]
    np.testing.assert_allclose(loss.conjugate(y, p), best, atol=5e-4)  # the step of the grid: losses may have kinks


@every
def test_domain_is_where_the_conjugate_is_finite(loss, rng):
    y, _ = samples(loss, rng, 50)
    for bound, outwards in zip(loss.domain(y), (-1.0, 1.0), strict=True):
        closed = np.isfinite(bound)
        assert np.all(np.isfinite(loss.conjugate(y[closed], bound[closed])))
        assert np.all(loss.conjugate(y[closed], bound[closed] + outwards * 1e-9) == np.inf)
        assert np.all(np.isfinite(loss.conjugate(y[~closed], np.full(np.sum(~closed), outwards * 50.0))))


def test_far_predictions_neither_overflow_nor_cancel():
    loss, y = pointwise.Logistic(), np.array([1.0, 1.0, -1.0])
    z = np.array([-1e4, 1e4, 700.0])
    np.testing.assert_array_equal(loss.value(y, z), [1e4, 0.0, 700.0])
    np.testing.assert_array_equal(loss.slope(y, z), [1.0, 0.0, -1.0])
    np.testing.assert_array_equal(loss.conjugate(y, np.array([0.0, 1.0, -1.0])), 0.0)


def test_the_hinge_lies_within_half_a_width_above_its_rounded_form(rng):
    y, z = samples(pointwise.Hinge(), rng)
    apart = pointwise.Hinge().value(y, z) - pointwise.Hinge(0.5).value(y, z)
    assert np.all(apart >= 0.0)
    assert np.max(apart) <= 0.25 + 1e-15
