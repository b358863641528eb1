"""Losses of one row: slopes against differences, conjugates against Fenchel and Young."""

from __future__ import annotations

import numpy as np
import pytest

from tasksieve.losses.epsilon_insensitive import EpsilonInsensitive, SquaredEpsilonInsensitive
from tasksieve.losses.hinge import Hinge, SquaredHinge
from tasksieve.losses.logistic import Logistic

CLASSES = [
    Logistic(),
    Hinge(),
    Hinge(width=0.3),
    SquaredHinge(),
    SquaredHinge(factor=1.0),
]
VALUES = [
    SquaredEpsilonInsensitive(0.0, factor=1.0),
    EpsilonInsensitive(0.2),
    EpsilonInsensitive(0.0),
    SquaredEpsilonInsensitive(0.2),
    SquaredEpsilonInsensitive(0.2, factor=1.0),
]
every = pytest.mark.parametrize("loss", CLASSES + VALUES, ids=lambda loss: repr(loss).split(" object")[0])


def bounds(loss, y):
    """The domain as arrays."""
    return tuple(np.broadcast_to(bound, y.shape) for bound in loss.domain(y))


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


@pytest.mark.parametrize("loss", [loss for loss in CLASSES + VALUES if np.isfinite(loss.smoothness)], ids=repr)
def test_curvature_is_the_derivative_of_the_slope(loss, rng):
    y, z = samples(loss, rng)
    step = 1e-6
    difference = (loss.slope(y, z - step) - loss.slope(y, z + step)) / (2 * step)
    np.testing.assert_allclose(loss.curvature(y, z), difference, atol=1e-5)


@every
def test_fenchel_young(loss, rng):
    y, z = samples(loss, rng)
    p = loss.slope(y, z)
    np.testing.assert_allclose(loss.value(y, z) + loss.conjugate(y, p) + p * z, 0.0, atol=1e-12)
    low, high = (np.clip(bound, -4.0, 4.0) for bound in bounds(loss, y))
    inside = low + rng.random(len(y)) * (high - low)
    terms = loss.value(y, z) + loss.conjugate(y, inside) + inside * z
    assert np.all(np.isfinite(terms))
    assert np.all(terms >= -1e-12)


@every
def test_conjugate_is_the_supremum(loss, rng):
    y, _ = samples(loss, rng, 20)
    low, high = (np.clip(bound, -2.0, 2.0) for bound in bounds(loss, y))
    p = low + (0.05 + 0.9 * rng.random(len(y))) * (high - low)
    grid = np.linspace(-60.0, 60.0, 240_001)
    best = [np.max(-a * grid - loss.value(np.full(len(grid), b), grid)) for a, b in zip(p, y, strict=True)]
    np.testing.assert_allclose(loss.conjugate(y, p), best, atol=5e-4)  # the step of the grid: losses may have kinks


@every
def test_domain_is_where_the_conjugate_is_finite(loss, rng):
    y, _ = samples(loss, rng, 50)
    for bound, outwards in zip(bounds(loss, y), (-1.0, 1.0), strict=True):
        closed = np.isfinite(bound)
        assert np.all(np.isfinite(loss.conjugate(y[closed], bound[closed])))
        if not isinstance(loss, Logistic):  # which leaves it open what its conjugate says out there
            assert np.all(loss.conjugate(y[closed], bound[closed] + outwards * 1e-9) == np.inf)
        assert np.all(np.isfinite(loss.conjugate(y[~closed], np.full(np.sum(~closed), outwards * 50.0))))


def test_far_predictions_neither_overflow_nor_cancel():
    loss, y = Logistic(), np.array([1.0, 1.0, -1.0])
    z = np.array([-1e4, 1e4, 700.0])
    np.testing.assert_array_equal(loss.value(y, z), [1e4, 0.0, 700.0])
    np.testing.assert_array_equal(loss.slope(y, z), [1.0, 0.0, -1.0])
    np.testing.assert_array_equal(loss.conjugate(y, np.array([0.0, 1.0, -1.0])), 0.0)


def test_the_hinge_lies_within_half_a_width_above_its_rounded_form(rng):
    y, z = samples(Hinge(), rng)
    apart = Hinge().value(y, z) - Hinge(0.5).value(y, z)
    assert np.all(apart >= 0.0)
    assert np.max(apart) <= 0.25 + 1e-15
