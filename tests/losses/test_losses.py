"""Losses in the weighted, projected geometry: values, gradients, conjugates and smoothness from their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import random_case, random_weights
from scipy.optimize import minimize

from tasksieve.losses import Logistic, Squared

OPTIONS = {
    "plain": {"fit_intercept": False},
    "intercept": {},
    "weights": {"weighted": True},
    "unpenalised": {"unpenalised": np.array([1, 4]), "weighted": True},
    "unpenalised alone": {"fit_intercept": False, "unpenalised": np.array([1, 4])},
    "shared": {"shared": True, "weighted": True},
}


def build(rng, loss, weighted=False, **options):
    case = random_case(rng, tasks=3, rows=15, features=6, loss=loss, noise=1.0, **options)
    if weighted:
        case = case.but(weights=random_weights(rng, case))
    design = case.design()
    return case, design, (Squared if loss == "squared" else Logistic)().on(design, case.y)


def fitted(rng, design, size=1.0):
    """A point z~ = X~ W that the loss may be asked about: orthogonal to the nuisance columns, 0 on absent rows."""
    z = size * rng.standard_normal(design.n_samples)
    if design.root_weights is not None:
        z[design.root_weights == 0] = 0.0
    return design.project(z)


def explicit(case, z, t, coefficients):
    """The loss of one task at the raw prediction z/q + Z b."""
    rows = case.rows[t]
    q = np.sqrt(case.s[rows])
    raw = np.divide(z[rows], q, out=np.zeros_like(q), where=q > 0)
    raw = raw + case.nuisance(t).astype(float) @ coefficients
    if case.loss == "squared":
        return 0.5 * case.s[rows] @ (case.y[rows] - raw) ** 2
    return case.s[rows] @ np.logaddexp(0.0, -case.y[rows] * raw)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_value_is_the_minimum_over_intercepts_and_unpenalised_coefficients(rng, loss, options):
    case, design, f = build(rng, loss, **options)
    z = fitted(rng, design)
    at = f.evaluate(z)
    total = 0.0
    for t in range(case.n_tasks):
        k = case.nuisance(t).shape[1]
        if k == 0:
            total += explicit(case, z, t, np.zeros(0))
            continue
        best = minimize(
            lambda b, t=t: explicit(case, z, t, b), np.zeros(k), method="BFGS", options={"gtol": 1e-9}
        )
        total += best.fun
        if loss == "logistic":  # the unpenalised columns are shifted, and the intercept takes that up
            found = at.nuisance[:, t].copy()
            if design.fit_intercept:
                found[0] -= design.nuisance_shifts[:, t] @ found
            np.testing.assert_allclose(found, best.x, atol=1e-5)
    assert at.value == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_residual_is_minus_the_gradient_and_orthogonal_to_the_nuisance_columns(rng, loss, options):
    case, design, f = build(rng, loss, **options)
    z = fitted(rng, design)
    at = f.evaluate(z)
    q = np.sqrt(case.s)
    for t, rows in enumerate(case.rows):
        nuisance = q[rows][:, None] * case.nuisance(t).astype(float)
        np.testing.assert_allclose(nuisance.T @ at.residual[rows], 0.0, atol=1e-11)
    for _ in range(5):
        direction = fitted(rng, design)
        h = 1e-5
        slope = (f.evaluate(z + h * direction).value - f.evaluate(z - h * direction).value) / (2 * h)
        assert slope == pytest.approx(-at.residual @ direction, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_gradients_move_at_most_as_fast_as_the_smoothness_says(rng, loss, options):
    _, design, f = build(rng, loss, **options)
    for size in (1e-3, 1.0, 10.0):
        a, b = fitted(rng, design, size), fitted(rng, design, size)
        moved = np.linalg.norm(f.evaluate(a).residual - f.evaluate(b).residual)
        assert moved <= f.smoothness * np.linalg.norm(a - b) * (1 + 1e-9)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_gap_terms_are_the_fenchel_gap(rng, loss, options):
    """F(z) + F*(-u) + <u, z> with u = c r: from the conjugates as written in the mathematics, and 0 at c = 1."""
    case, design, f = build(rng, loss, **options)
    z = fitted(rng, design)
    at = f.evaluate(z)
    assert f.terms(at, 1.0) == pytest.approx(0.0, abs=1e-12 * at.value)
    for c in (0.0, 0.2, 0.7, 1.0):
        u = c * at.residual  # the dual point in this geometry
        if loss == "squared":
            conjugate = 0.5 * u @ u - u @ design.project(np.sqrt(case.s) * case.y)
        else:
            q = np.sqrt(case.s)
            p = np.clip(np.divide(u * case.y, q, out=np.zeros_like(q), where=q > 0), 0.0, 1.0)
            inner = (p > 0) & (p < 1)
            entropy = p[inner] * np.log(p[inner]) + (1 - p[inner]) * np.log(1 - p[inner])
            conjugate = case.s[inner] @ entropy
        gap = at.value + conjugate + u @ z
        assert f.terms(at, c) == pytest.approx(gap, rel=1e-8, abs=1e-10 * at.value)
        assert f.terms(at, c) >= 0.0


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_best_scale(rng, loss):
    """No other multiple of the residual within the limit has a larger dual value."""
    _, design, f = build(rng, loss)
    z = fitted(rng, design, 0.3)
    at = f.evaluate(z)
    product = float(at.residual @ z)
    for limit in (0.0, 0.4, 1.0, 1.5, np.inf):
        best = f.best_scale(at, product, limit)
        assert 0.0 <= best <= limit
        if loss == "squared":  # the dual value is -terms + c <r, z> + constant
            values = [-f.terms(at, c) + c * product for c in np.linspace(0, min(limit, 3.0), 101)]
            assert -f.terms(at, best) + best * product >= max(values) - 1e-12 * at.value
        else:
            assert best == min(limit, 1.0)


def test_curvature_is_the_second_derivative(rng):
    _, design, f = build(rng, "logistic", fit_intercept=False, weighted=True)
    z = fitted(rng, design)
    at = f.evaluate(z)
    live = np.flatnonzero(design.root_weights > 0)
    for i in live[::4]:
        step = np.zeros_like(z)
        step[i] = 1e-4
        change = f.evaluate(z + step).residual[i] - f.evaluate(z - step).residual[i]
        assert at.curvature[i] == pytest.approx(-change / 2e-4, rel=1e-5)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_null_evaluation(rng, loss):
    _, design, f = build(rng, loss, weighted=True)
    at = f.evaluate(np.zeros(design.n_samples))
    assert f.null.value == at.value
    np.testing.assert_array_equal(f.null.residual, at.residual)


@pytest.mark.parametrize("size", [1e-8, 30.0, 300.0, 1e3])
def test_logistic_intercepts_far_from_zero(rng, size):
    """Fits so large that most rows are classified beyond doubt; a start far away changes nothing."""
    _, design, f = build(rng, "logistic", unpenalised=np.array([1]))
    z = fitted(rng, design, size)
    at = f.evaluate(z)
    assert np.isfinite(at.value)
    again = f.evaluate(z, start=at.nuisance)
    assert again.value == pytest.approx(at.value, rel=1e-12)
    far = f.evaluate(z, start=at.nuisance + 20.0 * rng.standard_normal(at.nuisance.shape))
    assert far.value == pytest.approx(at.value, rel=1e-9)
    for sums in (design.task_sums(at.residual), design.task_sums(at.residual * design.nuisance_columns[1])):
        np.testing.assert_allclose(sums, 0.0, atol=1e-10 * max(1.0, size / 100))


@pytest.mark.parametrize("change", ["units", "far from zero", "small", "dependent"])
def test_logistic_does_not_mind_the_units_of_unpenalised_features(rng, change):
    """Without the exact minimum over them the duality gap would bound nothing."""
    case = random_case(
        rng, tasks=3, rows=15, features=6, loss="logistic", noise=1.0, unpenalised=np.array([1, 2])
    )
    z = fitted(rng, case.design())
    expected = Logistic().on(case.design(), case.y).evaluate(z)
    x = case.matrix.copy()
    if change == "units":
        x[:, 1] *= 1e9
    elif change == "far from zero":
        x[:, 1] = 1e3 * (x[:, 1] + 1e3)  # a year, say, among columns around zero
    elif change == "small":
        x[:, 1] *= 1e-9
    else:
        x[:, 3], x[:, 4] = x[:, 1], 5.0
        case = case.but(unpenalised=np.array([1, 2, 3, 4]))
    case = case.but(matrix=x)
    at = Logistic().on(case.design(), case.y).evaluate(z)
    assert at.value == pytest.approx(expected.value, rel=1e-11)
    np.testing.assert_allclose(at.residual, expected.residual, atol=1e-7)
    for t, rows in enumerate(case.rows):
        nuisance = case.nuisance(t).astype(float)
        size = np.linalg.norm(nuisance, axis=0) * np.linalg.norm(at.residual[rows])
        assert np.all(np.abs(nuisance.T @ at.residual[rows]) <= 1e-12 * size)
        assert explicit(case, z, t, at.nuisance[:, t]) == pytest.approx(
            explicit(case, z, t, np.linalg.lstsq(nuisance, nuisance @ at.nuisance[:, t], rcond=None)[0]),
            rel=1e-6,
        )


def test_a_task_with_one_class(rng):
    """Its intercept has no finite optimum: a large one is taken, and the task does not pull on the coefficients."""
    case = random_case(rng, tasks=3, rows=10, features=5, loss="logistic")
    y = case.y.copy()
    y[case.rows[1]] = 1.0
    case = case.but(y=y)
    design = case.design()
    f = Logistic().on(design, y)
    z = fitted(rng, design, 3.0)
    at = f.evaluate(z)
    assert np.isfinite(at.nuisance).all()
    assert at.nuisance[0, 1] > 10.0
    assert not at.residual[case.rows[1]].any()
    assert explicit(case, z, 1, at.nuisance[:, 1]) < 1e-10
    assert f.terms(at, 1.0) < 1e-10
    # without an intercept one class is an ordinary task
    plain = Logistic().on(case.but(fit_intercept=False).design(), y)
    assert plain.null.residual[case.rows[1]].all()


def test_a_task_without_labels(rng):
    for loss in ("squared", "logistic"):
        case = random_case(rng, tasks=3, rows=10, features=5, loss=loss)
        case = case.but(weights=random_weights(rng, case, task_missing=True))
        f = (Squared if loss == "squared" else Logistic)().on(case.design(), case.y)
        at = f.evaluate(fitted(rng, case.design()))
        assert np.isfinite(at.value)
        assert np.isfinite(at.nuisance).all()
        assert not at.residual[case.rows[-1]].any()
