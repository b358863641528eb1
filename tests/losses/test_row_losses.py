"""Losses of one row: slopes against differences, conjugates against Fenchel and Young."""

from __future__ import annotations

import numpy as np
import pytest
from exact_numbers import wide

from tasksieve.losses import Huber, Logistic, Poisson, Quantile, SmoothedHinge, SquaredHinge
from tasksieve.losses.epsilon_insensitive import EpsilonInsensitive, SquaredEpsilonInsensitive
from tasksieve.losses.hinge import Hinge

CLASSES = [
    Logistic(),
    Hinge(),
    SmoothedHinge(0.3),
    SquaredHinge(),
    SquaredHinge(factor=1.0),
]
VALUES = [
    SquaredEpsilonInsensitive(0.0, factor=1.0),
    EpsilonInsensitive(0.2),
    EpsilonInsensitive(0.0),
    SquaredEpsilonInsensitive(0.2),
    SquaredEpsilonInsensitive(0.2, factor=1.0),
    Huber(0.7),
    Quantile(0.8, 0.3),
]
COUNTS = [Poisson()]
every = pytest.mark.parametrize("loss", CLASSES + VALUES + COUNTS, ids=lambda loss: repr(loss).split(" object")[0])


def bounds(loss, y):
    """The domain as arrays."""
    return tuple(np.broadcast_to(bound, y.shape) for bound in loss.domain(y))


def samples(loss, rng, n=400):
    if loss.labels == "counts":
        return rng.poisson(1.5, n).astype(float), rng.standard_normal(n)
    y = rng.choice([-1.0, 1.0], n) if loss.labels == "signs" else rng.standard_normal(n)
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


CURVED = [Logistic(), SquaredHinge(), SquaredEpsilonInsensitive(0.2), Poisson()]
MAJORISED = [Huber(0.7), Quantile(0.8, 0.3), Quantile(0.2, 2.0), SmoothedHinge(0.3)]


@pytest.mark.parametrize("loss", MAJORISED, ids=repr)
def test_parabolas_of_the_curvature_lie_above_the_loss(loss, rng):
    """Boxes that are not symmetric too: a step of proximal Newton then needs no line search."""
    y, z = samples(loss, rng, 40_000)
    for size in (1e-3, 0.1, 1.0, 10.0):
        move = size * rng.standard_normal(len(z))
        above = loss.value(y, z) - loss.slope(y, z) * move + 0.5 * loss.curvature(y, z) * move**2
        assert np.min(above - loss.value(y, z + move)) >= -1e-14 * (1.0 + size)
    assert np.min(loss.curvature(y, z)) < 0.5 * loss.smoothness


@pytest.mark.parametrize("loss", CURVED, ids=repr)
def test_curvature_is_the_derivative_of_the_slope(loss, rng):
    y, z = samples(loss, rng)
    step = 1e-6
    difference = (loss.slope(y, z - step) - loss.slope(y, z + step)) / (2 * step)
    second = loss.second(y, z)  # None where the curvature is the derivative itself
    np.testing.assert_allclose(loss.curvature(y, z) if second is None else second, difference, atol=1e-5, rtol=1e-6)


@every
def test_fenchel_young(loss, rng):
    y, z = samples(loss, rng)
    p = loss.slope(y, z)
    np.testing.assert_allclose(loss.value(y, z) + loss.conjugate(y, p) + p * z, 0.0, atol=1e-12)
    np.testing.assert_allclose(loss.excess(y, z, p)[0], 0.0, atol=1e-12)
    low, high = (np.clip(bound, -4.0, 4.0) for bound in bounds(loss, y))
    inside = low + rng.random(len(y)) * (high - low)
    terms = loss.value(y, z) + loss.conjugate(y, inside) + inside * z
    assert np.all(np.isfinite(terms))
    assert np.all(terms >= -1e-12)
    np.testing.assert_allclose(loss.excess(y, z, inside)[0], terms, atol=1e-12, rtol=1e-9)


@pytest.mark.sampled(3)
@every
def test_conjugate_is_the_supremum(loss, rng):
    y, _ = samples(loss, rng, 20)
    low, high = (np.clip(bound, -2.0, 2.0) for bound in bounds(loss, y))
    p = low + (0.05 + 0.9 * rng.random(len(y))) * (high - low)
    grid = np.linspace(-60.0, 5.0 if loss.labels == "counts" else 60.0, 240_001)
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
    apart = Hinge().value(y, z) - SmoothedHinge(0.5).value(y, z)
    assert np.all(apart >= 0.0)
    assert np.max(apart) <= 0.25 + 1e-15


def test_the_pinball_loss_lies_above_its_rounded_form(rng):
    y, z = samples(Quantile(), rng)
    for q in (0.1, 0.5, 0.8):
        loss = Quantile(q, 0.2)
        apart = loss.deviance(y, z) - loss.value(y, z)
        assert np.all(apart >= -1e-15)
        assert np.max(apart) <= 0.1 * max(q, 1.0 - q) ** 2 + 1e-15


def test_limits_of_the_clipped_family(rng):
    y, z = rng.standard_normal(500), 3.0 * rng.standard_normal(500)
    np.testing.assert_allclose(Huber(1e6).value(y, z), 0.5 * (y - z) ** 2, rtol=1e-12)
    np.testing.assert_allclose(Huber(1e-9).value(y, z) / 1e-9, np.abs(y - z), atol=1e-9)
    np.testing.assert_allclose(Quantile(0.5, 0.4).value(y, z), Huber(0.2).value(y, z) / 0.4, rtol=1e-12)
    np.testing.assert_allclose(Quantile(0.3, 1e-12).value(y, z), Quantile(0.3, 1.0).deviance(y, z), atol=1e-12)


def test_small_divergences_keep_their_digits():
    """The Poisson loss near a perfect fit, in forty digits."""
    y = np.array([1e-8, 0.3, 1.0, 7.0, 1e6])
    for off in (1e-9, -1e-4, 0.3, -5.0):
        z = np.log(y) + off
        t = wide(z) - np.log(wide(y))
        exact = y * (np.expm1(t) - t)
        lost = 1e-19 * y + np.abs(y * off) * 1e-15 * (1.0 + np.abs(np.log(y)))
        assert np.all(np.abs(Poisson().value(y, z) - exact) <= 1e-13 * np.abs(exact) + 4.0 * lost)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Huber(0.0), "delta"),
        (lambda: Quantile(1.0), "q must"),
        (lambda: Quantile(0.5, 0.0), "smoothing must be a positive number"),
        (lambda: SmoothedHinge(0.0), "kappa"),
    ],
)
def test_parameters_out_of_range(make, words):
    with pytest.raises(ValueError, match=words):
        make()
