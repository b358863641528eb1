"""Screening, piece by piece: maxima over balls, polars, the balls themselves, the rules, `screen`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from screening_reference import Batch, dual_state, first_cut, solve

from tasksieve.design import Design, as_storage
from tasksieve.screening import (
    DPC,
    DualState,
    GapSafe,
    Midpoint,
    NoScreening,
    PublishedDPC,
    gap_sphere,
    get_rule,
    midpoint_ball,
    polar,
    published_ball,
    rejects,
    rigorous_ball,
    row_maximum,
    screen,
    squared_gap,
    steepest_row,
    zero_entries,
    zero_rows,
)

PENALTIES = {
    "group": {},
    "ridge": {"ridge_ratio": 0.2},
    "l1": {"l1": True},
    "l1-only": {"l1": True, "group": 0.0},
    "positive": {"positive": True},
    "positive-l1-ridge": {"positive": True, "l1": True, "ridge_ratio": 0.05},
}


def problems(rng, size=30, shape=(3, 6, 12), l1=False, weights=False, **penalty):
    T, n, d = shape
    X = rng.standard_normal((size, T, n, d))
    y = rng.standard_normal((size, T, n))
    strengths = rng.uniform(0.05, 0.8, (size, d)) if l1 else np.zeros((size, d))
    u = rng.uniform(0.5, 2.0, (size, d)) if weights else np.ones((size, d))
    return Batch(X, y, np.ones(size), u, strengths, **penalty)


# --- the largest correlations over a ball -----------------------------------------------------------------------


def ascend(b, a, radius, v, steps=2000):
    """Feasible points of ‖v‖ <= radius reached by the power method, which climbs a convex function. (..., d, T)."""
    for _ in range(steps):
        v = a * (a * v + np.abs(b))
        v *= radius / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-300)
    return ((a * v + np.abs(b)) ** 2).sum(axis=-1)


def ball_cases(rng, kind, d=200):
    T = int(rng.integers(2, 6))
    a, b = rng.uniform(0.1, 1.0, (d, T)), rng.standard_normal((d, T))
    if kind == "ties":
        a[:, 1] = a[:, 0] = 1.0
    elif kind == "hard":  # no correlation at the largest norm: the root may lie at the pole
        a[:, 0] = 1.2
        b[:, 0] = 0.0
    elif kind == "hard-ties":
        a[:, :2] = 1.2
        b[:, :2] = 0.0
    elif kind == "equal":
        a[:] = a[:, :1]
    elif kind == "some-zero":
        a[:, -1] = b[:, -1] = 0.0
    return b, a


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["plain", "ties", "hard", "hard-ties", "equal", "some-zero"])
@pytest.mark.parametrize("radius", [1e-3, 0.3, 1.0, 3.0, 30.0])
def test_row_maximum_is_attained_and_never_exceeded(rng, kind, radius):
    b, a = ball_cases(rng, kind)
    s = row_maximum(b, a, radius)
    starts = np.concatenate([np.eye(a.shape[1])[:, None, :], rng.random((4, 1, a.shape[1]))]) * np.ones(
        (1, len(a), 1)
    )
    found = ascend(
        b, a, radius, radius * (starts + 1e-3) / np.linalg.norm(starts + 1e-3, axis=-1, keepdims=True)
    )
    best = found.max(axis=0)
    assert (best <= s * (1 + 1e-12)).all()
    # The power method is slow where norms nearly tie; that s is exact there too is for the next test.
    assert np.quantile(s / best, 0.8) - 1.0 < 1e-9


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["plain", "ties", "hard", "hard-ties", "equal", "some-zero"])
@pytest.mark.parametrize("radius", [1e-3, 0.3, 1.0, 3.0, 1e3])
def test_row_maximum_is_the_best_of_its_bounds(rng, kind, radius):
    """s = min U(mu) over mu >= kappa², by golden-section search in terms that do not cancel."""
    b, a = ball_cases(rng, kind, d=50)
    kappa = a.max(axis=1, keepdims=True)
    below = (kappa - a) * (kappa + a)

    def bound(delta):
        """U(kappa² + delta)."""
        apart = below + delta
        term = np.divide(a**2 * b**2, apart, out=np.zeros_like(a), where=apart > 0)
        return (kappa**2 + delta)[:, 0] * radius**2 + (b**2 + term).sum(axis=1)

    low = np.zeros_like(kappa)
    high = np.linalg.norm(a * b, axis=1, keepdims=True) / radius
    golden = (np.sqrt(5.0) - 1) / 2
    for _ in range(120):
        left, right = high - golden * (high - low), low + golden * (high - low)
        worse = (bound(left) > bound(right))[:, None]
        low, high = np.where(worse, left, low), np.where(worse, high, right)
    exact = np.minimum(bound(high), bound(low))
    s = row_maximum(b, a, radius)
    np.testing.assert_allclose(s, exact, rtol=1e-12)


def test_row_maximum_at_the_edges(rng):
    b, a = rng.standard_normal((5, 3)), rng.random((5, 3))
    np.testing.assert_allclose(row_maximum(b, a, 0.0), (b**2).sum(axis=1), rtol=1e-14)
    assert (row_maximum(np.zeros((2, 3)), np.zeros((2, 3)), 1.0) == 0.0).all()
    np.testing.assert_allclose(row_maximum(np.zeros((5, 3)), a, 2.0), 4.0 * a.max(axis=1) ** 2, rtol=1e-14)
    shared = np.broadcast_to(a[:, :1], (5, 3))
    np.testing.assert_allclose(row_maximum(b, shared, 0.7), row_maximum(b, shared.copy(), 0.7), rtol=1e-13)
    one = row_maximum(b[:, :1], a[:, :1], 0.7)
    np.testing.assert_allclose(one, (np.abs(b[:, 0]) + 0.7 * a[:, 0]) ** 2, rtol=1e-14)
    with pytest.raises(ValueError, match="shapes"):
        row_maximum(b, a[:, :2], 1.0)


@pytest.mark.parametrize("scale", [1e-120, 1e-8, 1e8, 1e120])
def test_row_maximum_has_no_scale(rng, scale):
    b, a = ball_cases(rng, "plain", d=40)
    for radius in (1e-6, 1.0):
        scaled = row_maximum(scale * b, a, scale * radius) / scale / scale
        np.testing.assert_allclose(scaled, row_maximum(b, a, radius), rtol=1e-12)


@pytest.mark.parametrize("kind", ["plain", "ties", "hard", "equal", "some-zero"])
def test_rejects_decides_as_the_maximum_does(rng, kind):
    b, a = ball_cases(rng, kind, d=400)
    for radius in (0.0, 0.05, 0.5, 5.0):
        root = np.sqrt(row_maximum(b, a, radius))
        for level in (0.1, 0.5, 0.9):
            threshold = np.quantile(root, level)
            expected = root < threshold * (1 - 1e-9)
            np.testing.assert_array_equal(rejects(b, a, radius, threshold), expected)
            errors = rng.uniform(0.0, 0.3, len(b))
            expected = root + errors < threshold * (1 - 1e-9)
            np.testing.assert_array_equal(rejects(b, a, radius, np.full(len(b), threshold), errors), expected)


def test_rejects_on_a_shared_design(rng):
    b, a = ball_cases(rng, "equal")
    view = np.broadcast_to(a[:, :1].copy(), a.shape)
    np.testing.assert_array_equal(rejects(b, view, 0.5, 2.0), rejects(b, a, 0.5, 2.0))


def test_rejects_nothing_without_a_finite_ball_or_a_threshold(rng):
    b, a = ball_cases(rng, "plain", d=20)
    a[0] = 0.0
    assert not rejects(b, a, np.inf, 1e9).any()
    assert not zero_rows(b, a, np.inf, 1e9, 1.0, positive=True).any()
    assert not rejects(b, a, np.nan, 1e9).any()
    assert not rejects(0 * b, 0 * a, 1.0, 0.0).any()
    assert rejects(0 * b, 0 * a, 1.0, 1e-300).all()
    assert not rejects(b, a, 1.0, 1e9, errors=np.full(20, np.inf)).any()


# --- tests of the penalties -------------------------------------------------------------------------------------


def soft(m, tau, positive):
    return np.maximum((m if positive else np.abs(m)) - tau, 0.0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("group", [0.0, 1.0])
def test_zero_rows_and_entries_hold_over_the_ball(rng, positive, group):
    """Points of the ball found by climbing never leave the dual set of a rejected row, errors included."""
    d, T, radius = 1000, 4, 0.6
    m, a = 0.8 * rng.standard_normal((d, T)), rng.uniform(0.0, 1.0, (d, T))
    l1 = rng.uniform(0.0, 1.5, d)
    errors = rng.choice([0.0, 0.2], d)
    rejected = zero_rows(m, a, radius, group, l1, positive, errors)
    entries = zero_entries(m, a, radius, l1, positive, errors)
    assert 0.05 < rejected.mean() < 0.9
    assert entries.any()
    height = m if positive else np.abs(m)
    for _ in range(15):
        v, e = np.abs(rng.standard_normal((2, d, T)))
        for _ in range(50):
            v *= radius / np.linalg.norm(v, axis=1, keepdims=True)
            e *= (errors / np.maximum(np.linalg.norm(e, axis=1), 1e-300))[:, None]
            z = np.maximum(height + a * v + e - l1[:, None], 0.0)
            assert (np.linalg.norm(z, axis=1)[rejected] < group + 1e-12).all()
            assert (z[entries] == 0.0).all()
            v, e = a * z + 1e-12, z + 1e-12


@pytest.mark.parametrize("positive", [False, True])
def test_zero_rows_is_at_least_as_strong_as_the_plain_sphere_tests(rng, positive):
    """‖soft(m, l1)‖ + R kappa < group, or inside the box max|m| + R kappa - l1 < group (mathematics 4)."""
    d, T, radius = 4000, 4, 0.3
    m, a, l1 = rng.standard_normal((d, T)), rng.random((d, T)), rng.uniform(0.0, 1.5, d)
    shrunk = soft(m, l1[:, None], positive)
    reach = radius * a.max(axis=1)
    height = (m if positive else np.abs(m)).max(axis=1)
    plain = np.where(
        shrunk.any(axis=1), np.linalg.norm(shrunk, axis=1) + reach, np.maximum(height + reach - l1, 0.0)
    )
    weak, strong = plain < 1.0 - 1e-6, zero_rows(m, a, radius, 1.0, l1, positive)
    assert not (weak & ~strong).any()
    assert strong.sum() > weak.sum()


def test_zero_rows_leaves_unpenalised_rows_alone(rng):
    group = np.array([1.0, 0.0, 1.0])
    for positive in (False, True):
        mask = zero_rows(-np.full((3, 2), 1e-20), np.full((3, 2), 1e-20), 1.0, group, 0.0, positive)
        np.testing.assert_array_equal(mask, [True, False, True])


# --- the polar --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [0.0, 0.7])
@pytest.mark.parametrize("positive", [False, True])
def test_polar_against_bisection(rng, group, positive):
    for trial in range(40):
        T = int(rng.integers(1, 6))
        M = rng.standard_normal((25, T)) * 10.0 ** rng.uniform(-8, 8)
        l1 = rng.uniform(0.0 if group else 0.1, 1.0, 25) * (trial % 4 > 0 or group == 0.0)
        batch = Batch(
            np.zeros((1, T, 1, 25)), np.zeros((1, T, 1)), np.ones(1), np.ones((1, 25)), l1[None], group
        )
        batch.positive = positive
        exact = batch.polar(M[None])[0]
        assert polar(M, group, l1, positive) == pytest.approx(exact, rel=1e-12)


def test_polar_covers_declared_errors(rng):
    for _ in range(30):
        M, errors = rng.standard_normal((20, 4)), rng.uniform(0.0, 0.5, 20)
        for l1 in (0.0, rng.uniform(0.0, 1.0, 20)):
            q = polar(M, 1.0, l1, errors=errors)
            for _ in range(20):
                noise = rng.standard_normal(M.shape)
                noise *= (errors / np.linalg.norm(noise, axis=1))[:, None]
                assert polar(M + noise, 1.0, l1) <= q * (1 + 1e-12)


def test_polar_ignores_unpenalised_rows():
    M = np.array([[3.0, 4.0], [1e9, 0.0]])
    assert polar(M, np.array([1.0, 0.0])) == 5.0
    assert polar(M, np.zeros(2)) == 0.0
    assert polar(M, np.array([1.0, 0.0]), positive=True) == 5.0


@pytest.mark.parametrize(
    "penalty", [(1.0, 0.0, False), (1.0, 0.3, False), (0.0, 0.3, False), (0.5, 0.3, True)]
)
def test_steepest_row_attains_the_polar(rng, penalty):
    group, l1, positive = penalty
    for _ in range(20):
        M = rng.standard_normal((15, 4))
        features, rows = steepest_row(M, group, l1, positive)
        omega = group * np.linalg.norm(rows) + l1 * np.abs(rows).sum()
        assert (M[features] * rows).sum() == pytest.approx(polar(M, group, l1, positive) * omega, rel=1e-12)
        assert np.linalg.norm(rows) == pytest.approx(1.0)
        assert not positive or (rows >= 0.0).all()
    features, rows = steepest_row(np.zeros((3, 2)), group, l1, positive)
    assert features.shape == (0,)
    assert rows.shape == (0, 2)


# --- the balls --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_balls_hold_the_dual_optimum(rng, penalty, weights):
    """From rough pairs at another strength; with a ridge its block of the dual vector counts in the distance."""
    batch = problems(rng, size=6, weights=weights, **PENALTIES[penalty])
    lam_max = batch.lam_max()
    for ratio0, ratio, tol in ((0.8, 0.6, 1e-1), (0.4, 0.35, 1e-3), (0.3, 0.3, 1e-6), (0.5, 0.6, 1e-2)):
        before, now = batch.at(ratio0 * lam_max), batch.at(ratio * lam_max)
        W0, r0, _ = solve(before, tol, check=1)
        W, r, gaps = solve(now, 1e-13, W0)
        assert gaps.max() <= 1e-13
        for i in range(len(batch)):
            state, lam = dual_state(before, i, W0, r0), float(now.lam[i])
            size = np.linalg.norm(batch.y[i])
            for ball in (rigorous_ball(state, lam), gap_sphere(state, lam)):
                apart = ((ball.centre(state) - r[i].ravel()) ** 2).sum()
                apart += now.ridge[i] * ((ball.residual_coef * W0[i] - W[i]) ** 2).sum()
                assert np.sqrt(apart) <= ball.radius + 1e-6 * size


@pytest.mark.sampled(4)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_cut_ball_is_within_the_gap_radius(rng, penalty):
    """At the same strength: radius <= sqrt(gap) = 1/sqrt(2) of the gap-safe one (mathematics 2.5)."""
    batch = problems(rng, **PENALTIES[penalty])
    batch = batch.at(0.3 * batch.lam_max())
    for tol in (0.3, 1e-2, 1e-5):
        W, r, _ = solve(batch, tol, check=1)
        for i in range(len(batch)):
            state = dual_state(batch, i, W, r)
            if (
                squared_gap(state, state.lam)[0] < 1e-9 * state.y_square
            ):  # where guards against rounding take over
                continue
            ratio = rigorous_ball(state, state.lam).radius / gap_sphere(state, state.lam).radius
            assert ratio <= 0.7072


@pytest.mark.parametrize("penalty", PENALTIES)
def test_squared_gap_is_primal_minus_dual(rng, penalty):
    batch = problems(rng, weights=True, **PENALTIES[penalty])
    batch = batch.at(0.4 * batch.lam_max())
    W, r, _ = solve(batch, 1e-2, check=1)
    for i in range(len(batch)):
        state = dual_state(batch, i, W, r)
        gap, scale = squared_gap(state, state.lam)
        ridge = batch.ridge[i]
        primal = 0.5 * (r[i] ** 2).sum() + batch.penalty(W)[i] + 0.5 * ridge * (W[i] ** 2).sum()
        dual = 0.5 * (batch.y[i] ** 2).sum() - 0.5 * ((batch.y[i] - scale * r[i]) ** 2).sum()
        dual -= 0.5 * ridge * (scale * W[i] ** 2 * scale).sum()
        assert gap == pytest.approx(primal - dual, rel=1e-9, abs=1e-13 * primal)
        # feasible, and no larger multiple is
        M = scale * (batch.correlations(r)[i] - ridge * W[i])
        q = polar(M, *state.strengths(state.lam), batch.positive)
        assert q <= 1.0
        assert q > 1.0 - 1e-9 or scale == pytest.approx(
            (batch.y[i] * r[i]).sum() / ((r[i] ** 2).sum() + ridge * (W[i] ** 2).sum())
        )


def test_an_exact_solution_gives_the_published_ball(rng):
    batch = problems(rng, size=60, weights=True)
    lam_max = batch.lam_max()
    before = batch.at(0.5 * lam_max)
    W, r, _ = solve(before, 1e-15, max_sweeps=3000)
    for i in range(len(batch)):
        state, lam = dual_state(before, i, W, r), 0.45 * float(lam_max[i])
        ours, theirs = rigorous_ball(state, lam), published_ball(state, lam)
        size = np.linalg.norm(batch.y[i])
        assert ours.radius == pytest.approx(theirs.radius, abs=1e-6 * size)
        np.testing.assert_allclose(ours.centre(state), theirs.centre(state), atol=1e-6 * size)
        np.testing.assert_array_equal(DPC().sequential(state, lam), PublishedDPC().sequential(state, lam))


def test_published_ball_is_theorem_5(rng):
    """Word for word in theta = u/lam, for lam0 < lam_max and for lam0 = lam_max."""
    batch = problems(rng, size=20)
    lam_max = batch.lam_max()
    before = batch.at(0.5 * lam_max)
    W, r, _ = solve(before, 1e-6)
    for i in range(len(batch)):
        X, y, lam = batch.X[i], batch.y[i].ravel(), 0.4 * float(lam_max[i])
        for at_max in (False, True):
            lam0 = float(lam_max[i]) if at_max else float(before.lam[i])
            if at_max:
                state = dual_state(batch.at(lam_max), i, 0 * W, batch.y, cut=first_cut(batch, i))
                theta0 = y / lam0
                M = np.einsum("tnd,tn->dt", X, batch.y[i])
                best = np.linalg.norm(M, axis=1).argmax()
                n = (2.0 * (M[best] / lam0)[:, None] * X[:, :, best]).ravel()
            else:
                state = dual_state(before, i, W, r)
                theta0 = r[i].ravel() / lam0
                n = y / lam0 - theta0
            radial = y / lam - theta0
            perp = radial - (n @ radial) / (n @ n) * n
            ball = published_ball(state, lam)
            assert ball.radius == pytest.approx(lam * np.linalg.norm(perp) / 2, rel=1e-10)
            np.testing.assert_allclose(ball.centre(state), lam * (theta0 + perp / 2), rtol=1e-9, atol=1e-9)
            # the centre's correlations come without the data
            expected = np.einsum("tnd,tn->dt", X, ball.centre(state).reshape(batch.y[i].shape))
            np.testing.assert_allclose(ball.correlations(state, lam), expected, rtol=1e-9, atol=1e-9)


def test_published_rule_is_right_about_exact_solutions(rng):
    batch = problems(rng, size=80)
    lam_max = batch.lam_max()
    before, now = batch.at(0.6 * lam_max), batch.at(0.5 * lam_max)
    W0, r0, _ = solve(before, 1e-15, max_sweeps=2000)
    W, _, _ = solve(now, 1e-13)
    rejected = 0
    for i in range(len(batch)):
        mask = PublishedDPC().sequential(dual_state(before, i, W0, r0), float(now.lam[i]))
        assert not W[i][mask].any()
        rejected += mask.sum()
    assert rejected > 0


def test_the_first_value_is_screened_by_a_cut(rng):
    """At lam_max W = 0; the steepest row as a cut rejects more than the ball without one."""
    batch = problems(rng, size=40, shape=(3, 6, 30))
    lam_max = batch.lam_max()
    start, now = batch.at(lam_max), batch.at(0.7 * lam_max)
    W, r, _ = solve(now, 1e-13)
    with_cut = without = 0
    for i in range(len(batch)):
        state = dual_state(start, i, 0 * W, batch.y)
        cut = replace(state, cut=first_cut(batch, i))
        lam = float(now.lam[i])
        ball = rigorous_ball(cut, lam)
        assert np.linalg.norm(ball.centre(cut) - r[i].ravel()) <= ball.radius * (1 + 1e-9)
        mask = DPC().sequential(cut, lam)
        assert not W[i][mask].any()
        with_cut += mask.sum()
        without += DPC().sequential(state, lam).sum()
    assert with_cut > without


def test_a_cut_with_a_ridge(rng):
    batch = problems(rng, size=40, ridge_ratio=0.3)
    lam_max = batch.lam_max()
    start, now = batch.at(lam_max), batch.at(0.8 * lam_max)
    W, r, _ = solve(now, 1e-13)
    for i in range(len(batch)):
        cut = first_cut(batch, i)
        state = dual_state(start, i, 0 * W, batch.y, cut=cut)
        ball = rigorous_ball(state, float(now.lam[i]))
        block = -W[i]
        block[cut.features] -= ball.cut_coef * cut.rows
        apart = ((ball.centre(state) - r[i].ravel()) ** 2).sum() + now.ridge[i] * (block**2).sum()
        assert np.sqrt(apart) <= ball.radius * (1 + 1e-9)


def test_negative_coefficients_are_no_cut_under_positivity(rng):
    batch = problems(rng, size=1, positive=True)
    batch = batch.at(0.5 * batch.lam_max())
    W = -np.ones((1, 12, 3))
    state = dual_state(batch, 0, W, batch.residual(W))
    ball = rigorous_ball(state, state.lam)
    assert np.isfinite(ball.radius)
    assert ball.y_coef == 0.5


def test_degenerate_states(rng):
    """y = 0, an interpolated y, and strengths beyond lam_max."""
    batch = problems(rng, size=1)
    lam_max = float(batch.lam_max()[0])
    zero = np.zeros((1, 12, 3))
    state = dual_state(batch.at([2 * lam_max]), 0, zero, batch.y)
    for rule in (DPC(), GapSafe()):
        assert rule.dynamic(state).all()
        nothing = replace(state, y=0 * state.y, residual=0 * state.y, y_correlations=0 * state.norms)
        assert rule.dynamic(replace(nothing, correlations=0 * state.norms)).all()
        interpolated = replace(state, residual=0 * state.y, correlations=0 * state.norms, lam=0.1 * lam_max)
        assert not rule.dynamic(interpolated).any()


def test_screening_has_no_scale(rng):
    """Powers of two, exactly the same masks."""
    batch = problems(rng, size=20, weights=True)
    before = batch.at(0.5 * batch.lam_max())
    W, r, _ = solve(before, 1e-4)
    for i in range(len(batch)):
        state = dual_state(before, i, W, r)
        for x, y in ((2.0**-25, 2.0**25), (2.0**25, 2.0**-25), (2.0**20, 2.0**20)):
            scaled = replace(
                state,
                y=y * state.y,
                residual=y * state.residual,
                rows=y / x * state.coefficients,
                norms=x * state.norms,
                correlations=x * y * state.correlations,
                y_correlations=x * y * state.y_correlations,
                lam=x * y * state.lam,
            )
            for rule in (DPC(), GapSafe(), PublishedDPC()):
                expected = rule.sequential(state, 0.8 * state.lam)
                np.testing.assert_array_equal(rule.sequential(scaled, 0.8 * scaled.lam), expected)


# --- other losses -----------------------------------------------------------------------------------------------


def logistic_problem(rng, ridge_ratio):
    """One task set, labels ±1; returns X (T, n, d), y, lam, and a function that runs proximal gradient steps."""
    T, n, d = 3, 12, 15
    X, y = rng.standard_normal((T, n, d)), rng.choice([-1.0, 1.0], (T, n))
    correlations = np.einsum("tnd,tn->dt", X, 0.5 * y)
    lam = 0.5 * np.linalg.norm(correlations, axis=1).max()
    ridge = lam * ridge_ratio
    step = 1.0 / (0.25 * max(np.linalg.norm(X[t], 2) ** 2 for t in range(T)) + ridge)

    def descend(W, steps):
        for _ in range(steps):
            u = y / (1.0 + np.exp(y * np.einsum("tnd,dt->tn", X, W)))
            V = W + step * (np.einsum("tnd,tn->dt", X, u) - ridge * W)
            length = np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-300)
            W = np.maximum(1.0 - step * lam / length, 0.0) * V
        return W

    return X, y, lam, descend


def logistic_state(X, y, lam0, lam, W, ridge_ratio):
    """The pair W, u of strength lam0, with its gap at strength lam."""
    z = np.einsum("tnd,dt->tn", X, W)
    u = y / (1.0 + np.exp(y * z))
    M = np.einsum("tnd,tn->dt", X, u)
    ridge = lam * ridge_ratio
    scale = min(1.0, lam / np.linalg.norm(M - ridge * W, axis=1).max()) * (1 - 1e-12)
    p = np.clip(scale * y * u, 1e-300, 1.0)
    dual = -(p * np.log(p) + (1 - p) * np.log1p(-p)).sum() - 0.5 * ridge * (scale * W**2 * scale).sum()
    primal = (
        np.logaddexp(0, -y * z).sum() + lam * np.linalg.norm(W, axis=1).sum() + 0.5 * ridge * (W**2).sum()
    )
    features = np.flatnonzero(W.any(axis=1))
    return DualState(
        y.ravel(),
        u.ravel(),
        M,
        np.linalg.norm(X, axis=1).T,
        lam0,
        features=features,
        rows=W[features],
        ridge_ratio=ridge_ratio,
        squared=False,
        smoothness=0.25,
        gap=primal - dual,
        dual_scale=scale,
        gap_lam=lam,
    )


@pytest.mark.parametrize("ridge_ratio", [0.0, 0.2])
def test_gap_safe_for_the_logistic_loss(rng, ridge_ratio):
    rejected = 0
    for _ in range(4):
        X, y, lam, descend = logistic_problem(rng, ridge_ratio)
        truth = descend(np.zeros((15, 3)), 3000)
        for steps in (3, 30, 200):
            W = descend(np.zeros((15, 3)), steps)
            state = logistic_state(X, y, lam, lam, W, ridge_ratio)
            u = (y / (1.0 + np.exp(y * np.einsum("tnd,dt->tn", X, truth)))).ravel()
            ball = gap_sphere(state, lam)
            apart = ((ball.centre(state) - u) ** 2).sum() / 0.25
            apart += lam * ridge_ratio * ((ball.residual_coef * W - truth) ** 2).sum()
            assert np.sqrt(apart) <= ball.radius + 1e-7
            inner = midpoint_ball(state, lam)
            apart = ((inner.centre(state) - u) ** 2).sum() / 0.25
            apart += lam * ridge_ratio * ((inner.residual_coef * W - truth) ** 2).sum()
            assert np.sqrt(apart) <= inner.radius + 1e-7
            assert inner.radius <= ball.radius / np.sqrt(2.0) * (1.0 + 1e-12)
            masks = []
            for rule in (GapSafe(), Midpoint()):
                masks.append(rule.dynamic(state))
                masks.append(rule.sequential(replace(state, lam=1.1 * lam, gap_lam=lam), lam))
            assert not np.any(masks[0] & ~masks[2])
            for mask in masks:
                assert not truth[mask].any()
                rejected += mask.sum()
    assert rejected > 0


def test_other_losses_must_bring_their_gap(rng):
    X, y, lam, descend = logistic_problem(rng, 0.0)
    state = logistic_state(X, y, lam, lam, descend(np.zeros((15, 3)), 5), 0.0)
    with pytest.raises(ValueError, match="gap and dual scale"):
        GapSafe().sequential(state, 0.9 * lam)
    with pytest.raises(ValueError, match="does not hold"):
        DPC().dynamic(state)


# --- the rules --------------------------------------------------------------------------------------------------


def test_get_rule():
    assert isinstance(get_rule("auto"), DPC)
    assert isinstance(get_rule("auto", l1=0.3), DPC)
    assert isinstance(get_rule("auto", loss="logistic"), Midpoint)
    assert isinstance(get_rule("auto", loss="huber", clipped=True), DPC)
    assert isinstance(get_rule("midpoint"), Midpoint)
    assert isinstance(get_rule("dpc"), DPC)
    assert isinstance(get_rule("dpc-published"), PublishedDPC)
    assert isinstance(get_rule("gap", loss="logistic"), GapSafe)
    assert isinstance(get_rule(None), NoScreening)
    rule = DPC()
    assert get_rule(rule) is rule
    with pytest.raises(ValueError, match="'auto', 'dpc', 'dpc-published', 'midpoint', 'gap', None; got 'edpp'"):
        get_rule("edpp")
    for name in ("dpc", "dpc-published"):
        with pytest.raises(ValueError, match=f"'{name}' holds for the squared.* only, not for 'logistic'"):
            get_rule(name, loss="logistic")
    with pytest.raises(ValueError, match="squared loss only"):
        get_rule("dpc-published", loss="huber", clipped=True)
    for penalty in ({"l1": np.array([0.0, 0.1])}, {"positive": True}, {"ridge_ratio": 0.1}):
        with pytest.raises(ValueError, match="plain group penalty"):
            get_rule("dpc-published", **penalty)


def test_rules_count_and_declare(rng):
    batch = problems(rng, size=1)
    batch = batch.at(0.6 * batch.lam_max())
    W, r, _ = solve(batch, 1e-6)
    state = dual_state(batch, 0, W, r)
    for rule in (DPC(), GapSafe(), PublishedDPC(), NoScreening()):
        counts = [int(rule.sequential(state, ratio * state.lam).sum()) for ratio in (1.0, 0.9, 0.5)]
        dynamic = [int(rule.dynamic(state).sum())]
        assert rule.sequential_counts == counts
        assert rule.dynamic_counts == dynamic
    assert NoScreening().sequential(state, state.lam).dtype == bool
    assert not NoScreening().dynamic(state).any()
    assert [rule.safe for rule in (DPC(), GapSafe(), PublishedDPC(), NoScreening())] == [
        True,
        True,
        False,
        True,
    ]
    assert not PublishedDPC().supports(replace(state, l1=0.1))
    assert not PublishedDPC().supports(replace(state, positive=True))
    assert DPC().supports(replace(state, l1=0.1, positive=True, ridge_ratio=0.1))
    with pytest.raises(ValueError, match="correlations of y"):
        DPC().sequential(replace(state, y_correlations=None), state.lam)


def test_rows_are_tested_in_blocks(rng, monkeypatch):
    """Any size of block gives the same masks; with a ridge the rows of W are found in their blocks."""
    batch = problems(rng, size=5, shape=(3, 6, 25), weights=True, ridge_ratio=0.3)
    batch = batch.at(0.4 * batch.lam_max())
    W, r, _ = solve(batch, 1e-4)
    for i in range(len(batch)):
        state = dual_state(batch, i, W, r)
        state = replace(state, features=state.features[::-1], rows=state.coefficients[::-1])
        masks = []
        for size in (1000, 7, 1):
            monkeypatch.setattr("tasksieve.screening.state._BLOCK", size)
            masks.append(DPC().sequential(state, 0.9 * state.lam))
        assert masks[0].any()
        np.testing.assert_array_equal(masks[0], masks[1])
        np.testing.assert_array_equal(masks[0], masks[2])


def test_dynamic_rules_on_the_rows_that_are_left(rng):
    """A reduced problem has the same solution: what its smaller state rejects is zero in the full one."""
    batch = problems(rng, size=20, shape=(3, 6, 25))
    batch = batch.at(0.4 * batch.lam_max())
    W, r, _ = solve(batch, 1e-3, check=1)
    truth, _, _ = solve(batch, 1e-13)
    for i in range(len(batch)):
        state = dual_state(batch, i, W, r)
        kept = np.flatnonzero(~DPC().dynamic(state))
        used = np.isin(state.features, kept)
        # dropping rejected rows of W changes the residual
        W_kept = W[i].copy()
        W_kept[np.setdiff1d(np.arange(25), kept)] = 0.0
        residual = batch.y[i] - np.einsum("tnd,dt->tn", batch.X[i], W_kept)
        reduced = replace(
            state,
            residual=residual.ravel(),
            correlations=np.einsum("tnd,tn->dt", batch.X[i], residual)[kept],
            y_correlations=state.y_correlations[kept],
            norms=state.norms[kept],
            feature_weights=state.feature_weights[kept],
            l1=state.l1[kept],
            features=np.searchsorted(kept, state.features[used]),
            rows=state.coefficients[used],
        )
        for rule in (DPC(), GapSafe()):
            assert not truth[i][kept[rule.dynamic(reduced)]].any()


# --- screen -----------------------------------------------------------------------------------------------------


def plain_design(X):
    """X (T, n, d) without intercepts."""
    tasks, rows, features = X.shape
    return Design(as_storage(X.reshape(-1, features)), rows * np.arange(tasks + 1), fit_intercept=False)


def test_screen_takes_a_column_of_a_matrix(rng):
    X, y = rng.standard_normal((2, 10, 40)), rng.standard_normal((20, 3))
    design = plain_design(X)
    lam = 0.9 * float(np.linalg.norm(design.correlate(y[:, 1].copy()), axis=1).max())
    found, expected = (screen(design, v, v, lam) for v in (y[:, 1], y[:, 1].copy()))
    assert expected.any()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weights", [False, True])
def test_screen_from_any_vector(rng, weights):
    batch = problems(rng, size=25, shape=(3, 6, 25), weights=weights)
    lam_max = batch.lam_max()
    now = batch.at(0.7 * lam_max)
    W, _, _ = solve(now, 1e-13)
    rough, rough_residual, _ = solve(batch.at(0.8 * lam_max), 1e-3, check=1)
    counts = dict.fromkeys(("y", "random", "residual", "residual+coef", "gap", "gap+coef"), 0)
    for i in range(len(batch)):
        design, y, lam = plain_design(batch.X[i]), batch.y[i].ravel(), float(now.lam[i])
        residual = rough_residual[i].ravel()
        answers = {
            "y": screen(design, y, y, lam, feature_weights=batch.weights[i]),
            "random": screen(design, y, rng.standard_normal(y.size), lam, feature_weights=batch.weights[i]),
            "residual": screen(design, y, residual, lam, feature_weights=batch.weights[i]),
            "residual+coef": screen(
                design, y, 7 * residual, lam, coef=rough[i], feature_weights=batch.weights[i]
            ),
            "gap": screen(design, y, residual, lam, feature_weights=batch.weights[i], rule="gap"),
            "gap+coef": screen(
                design, y, residual, lam, coef=rough[i], feature_weights=batch.weights[i], rule=GapSafe()
            ),
        }
        for name, mask in answers.items():
            assert mask.shape == (25,)
            assert not W[i][mask].any(), name
            counts[name] += mask.sum()
    assert counts["residual+coef"] > counts["residual"] > 0
    assert counts["residual+coef"] > counts["gap+coef"] > counts["gap"]
    assert counts["y"] > 0


def test_screen_agrees_with_the_rules(rng):
    batch = problems(rng, size=10)
    before = batch.at(0.6 * batch.lam_max())
    W, r, _ = solve(before, 1e-13)
    for i in range(len(batch)):
        state, lam = dual_state(before, i, W, r), 0.55 / 0.6 * float(before.lam[i])
        design = plain_design(batch.X[i])
        np.testing.assert_array_equal(
            screen(design, state.y, state.residual, lam, coef=W[i]), DPC().sequential(state, lam)
        )
        np.testing.assert_array_equal(
            screen(design, state.y, state.residual, lam, rule="dpc-published"),
            PublishedDPC().sequential(state, lam),
        )
        np.testing.assert_array_equal(
            screen(design, state.y, state.residual, lam, coef=W[i], rule="gap"),
            GapSafe().sequential(state, lam),
        )
        assert not screen(design, state.y, state.residual, lam, rule=None).any()


def test_screen_with_the_librarys_designs(rng):
    """Intercepts, one matrix per task and one for all; unpenalised features are never rejected."""
    T, n, d = 3, 10, 40
    X, Y = rng.standard_normal((T * n, d)), rng.standard_normal(T * n)
    X[:, 5] += 100.0
    for shared in (False, True):
        rows = X[:n] if shared else X
        for unpenalised in (None, np.array([2])):
            design = Design(as_storage(rows), n * np.arange(T + 1), shared=shared, unpenalised=unpenalised)
            weights = np.ones(d)
            weights[unpenalised if unpenalised is not None else []] = 0.0
            blocks = np.stack([rows[:n] if shared else rows[t * n : (t + 1) * n] for t in range(T)])
            nuisance = [np.ones((T, n, 1))] + ([blocks[..., unpenalised]] if unpenalised is not None else [])
            nuisance = np.concatenate(nuisance, axis=2)
            y = Y.reshape(T, n)
            project = np.stack([np.eye(n) - Z @ np.linalg.pinv(Z) for Z in nuisance])
            keep = weights > 0
            batch = Batch(
                X=(project @ blocks[..., keep])[None],
                y=(project @ y[..., None])[None, ..., 0],
                lam=np.ones(1),
                weights=np.ones((1, keep.sum())),
                l1=np.zeros((1, keep.sum())),
            )
            lam = 0.8 * batch.lam_max()
            W, _, _ = solve(batch.at(lam), 1e-13)
            W0, r0, _ = solve(batch.at(lam / 0.9), 1e-8)
            coef = np.zeros((d, T))
            coef[keep] = W0[0]
            full = np.ones((d, T))
            full[keep] = W[0]
            # y as it is: screen projects it
            mask = screen(design, Y, r0[0].ravel(), float(lam[0]), coef=coef, feature_weights=weights)
            assert mask.sum() > 10
            assert not full[mask].any()


def test_screen_refuses_what_it_cannot_use(rng):
    X = rng.standard_normal((2, 5, 4))
    design, y = plain_design(X), rng.standard_normal(10)
    with pytest.raises(ValueError, match="y must be flat"):
        screen(design, y[:9], y, 1.0)
    with pytest.raises(ValueError, match="dual_point has NaN"):
        screen(design, y, np.full(10, np.nan), 1.0)
    with pytest.raises(ValueError, match="lam must be positive"):
        screen(design, y, y, 0.0)
    with pytest.raises(ValueError, match="coef must have shape"):
        screen(design, y, y, 1.0, coef=np.ones((2, 4)))
    with pytest.raises(ValueError, match="one entry per feature"):
        screen(design, y, y, 1.0, feature_weights=np.ones(3))
    with pytest.raises(ValueError, match="not negative"):
        screen(design, y, y, 1.0, feature_weights=-np.ones(4))
    with pytest.raises(ValueError, match="feature 1 has weight 0"):
        screen(design, y, y, 1.0, feature_weights=np.array([1.0, 0.0, 1.0, 1.0]))
    with pytest.raises(ValueError, match="screening must be one of"):
        screen(design, y, y, 1.0, rule="strong")
