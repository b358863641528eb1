"""Certificates with all rounding in them: offsets, separation, units, what cannot be reached. Truths are computed here,
in forty digits."""

import warnings

import numpy as np
import pytest
from exact_numbers import wide
from sklearn.exceptions import ConvergenceWarning

import tasksieve as ts
from tasksieve.path import policy


def offset_problem(rng, amplitude, offset=1e12):
    X = rng.standard_normal((40, 20))
    y = offset + amplitude * (2 * X[:, 0] + 0.5 * rng.standard_normal(40))
    return X, y


def exact_objective(model, X, y, alpha, sample_weight=None, weights=1.0):
    """P of the stored numbers for the squared loss of one task, in forty digits."""
    w = wide(model.coef_[0])
    r = wide(y) - wide(X) @ w - model.intercept_[0]
    s = wide(np.ones(len(y)) if sample_weight is None else sample_weight)
    return np.sum(s * r * r) / np.sum(s) / 2 + alpha * np.sum(weights * np.abs(w))


# --- offsets ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("amplitude", "alpha"), [(5e-3, 2.5e-4), (2e-2, 1e-3), (1.0, 5e-2)])
def test_a_large_offset_of_y_hides_nothing(rng, amplitude, alpha):
    X, y = offset_problem(rng, amplitude)
    model = ts.MultiTaskLasso(alpha).fit(X, y)
    plain = ts.MultiTaskLasso(alpha, tol=1e-10).fit(X, y - 1e12)
    np.testing.assert_array_equal(model.get_support(), plain.get_support())
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3 * amplitude)
    truth = float(exact_objective(model, X, y, alpha)) - (plain.objective_ - plain.dual_gap_)
    assert model.dual_gap_ >= truth * (1 - 1e-9) - 1e-16
    assert abs(model.objective_ - float(exact_objective(model, X, y, alpha))) <= 1e-12 * model.objective_


def test_what_an_intercept_cannot_resolve_is_said(rng):
    X, y = offset_problem(rng, 5e-3)
    with pytest.warns(ConvergenceWarning, match=r"certified to .* not to tol=1e-06: intercept_\[0\] .* from y"):
        ts.MultiTaskLasso(2.5e-4).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ts.MultiTaskLasso(2.5e-4).fit(X, y - 1e12)
        ts.MultiTaskLasso(0.1).fit(X, np.full(40, 1e12 / 3))  # constant labels leave nothing to explain


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("mean", [1e8, 1e11, 1e13])
@pytest.mark.parametrize(
    "estimator",
    [ts.MultiTaskLasso(0.1), ts.CalibratedMultiTaskLasso(0.1), ts.MultiTaskLogisticRegression(0.05)],
    ids=lambda model: type(model).__name__,
)
def test_an_unpenalised_time_stamp_keeps_its_slope(rng, mean, estimator):
    steps = np.arange(50.0)
    X = np.column_stack([mean + steps, rng.standard_normal((50, 5))])
    y = 5 * steps + rng.standard_normal(50)
    if isinstance(estimator, ts.MultiTaskLogisticRegression):
        y = np.where(y > 120 + 60 * rng.standard_normal(50), "late", "early")
    estimator.set_params(feature_weights=[0, 1, 1, 1, 1, 1])
    model = estimator.fit(X, y)
    shifted = np.column_stack([steps, X[:, 1:]])
    slope, objective = model.coef_[0, 0], model.objective_
    plain = estimator.fit(shifted, y)
    assert slope == pytest.approx(plain.coef_[0, 0], rel=1e-2)
    assert abs(objective - plain.objective_) <= 1e-4 * plain.objective_


def test_weights_and_offsets_at_alpha_max(rng):
    X, s = rng.standard_normal((40, 8)), rng.uniform(0.1, 10, 40)
    y = 1e6 + X[:, 0] + rng.standard_normal(40)
    alpha = ts.MultiTaskLasso().alpha_max(X, y, sample_weight=s)
    model = ts.MultiTaskLasso(alpha).fit(X, y, sample_weight=s)
    assert not model.coef_.any()
    assert abs(model.objective_ - float(exact_objective(model, X, y, alpha, s))) <= model.dual_gap_
    assert model.dual_gap_ <= 1e-13 * model.objective_


@pytest.mark.parametrize("mean", [1e10, 1e13])
def test_columns_with_large_means(rng, mean):
    """What the stored intercept cannot meet is in the gap."""
    X = rng.standard_normal((40, 8))
    y = X[:, 0] + rng.standard_normal(40)
    far = X + mean * (np.arange(8) < 3)
    near = far - mean * (np.arange(8) < 3)  # exactly what the far columns say
    model, plain = ts.MultiTaskLasso(0.1).fit(far, y), ts.MultiTaskLasso(0.1, tol=1e-12).fit(near, y)
    truth = exact_objective(model, far, y, 0.1) - plain.objective_
    assert model.dual_gap_ >= truth - 1e-15


def test_nearly_collinear_unpenalised_features_are_named(rng):
    X = rng.standard_normal((30, 6))
    X[:, 1] = X[:, 0] * (1 + 1e-12 * rng.standard_normal(30))
    y = X[:, 0] + rng.standard_normal(30)
    with pytest.warns(UserWarning, match="Unpenalised feature 1 is a combination of others in task 0"):
        model = ts.MultiTaskLasso(0.1, feature_weights=[0, 0, 1, 1, 1, 1]).fit(X, y)
    assert model.coef_[0, 1] == 0.0
    dummies = np.column_stack([np.arange(30) % 3 == k for k in range(3)]).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # dummy variables and the intercept: an exact combination, nothing is lost
        ts.MultiTaskLasso(0.1, feature_weights=[0, 0, 0, 1, 1]).fit(np.column_stack([dummies, X[:, 2:4]]), y)


# --- separation ------------------------------------------------------------------------------------------------------


def test_separation_by_unpenalised_features_is_in_the_gap_and_said(rng):
    x = np.linspace(-1, 1, 20)
    X = np.column_stack([x, rng.standard_normal((20, 4))])
    with pytest.warns(ConvergenceWarning, match="unpenalised features separate the classes in task 0"):
        model = ts.MultiTaskLogisticRegression(0.1, feature_weights=[0, 1, 1, 1, 1]).fit(X, np.sign(x))
    assert model.dual_gap_ >= model.objective_ > 0.0  # the infimum is 0


# --- units -----------------------------------------------------------------------------------------------------------

MODELS = {
    "lasso": (ts.MultiTaskLasso, 2, 1),
    "elastic net": (ts.MultiTaskElasticNet, 2, 1),
    "calibrated": (ts.CalibratedMultiTaskLasso, 1, 0),
    "owl": (ts.MultiTaskOWL, 2, 1),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("x", "y", "s"), [(200, 0, 0), (-660, 0, 0), (0, 400, 0), (0, -450, 900), (600, 300, -1000)])
def test_powers_of_two_in_the_units_change_no_bit(rng, monkeypatch, name, x, y, s):
    """X, y and weights multiplied by powers of two: the same numbers up to these powers, gap included."""
    monkeypatch.setattr(policy, "SMALL_BYTES", -1)  # sums of products serve ordinary sizes alone
    kind, power, label = MODELS[name]
    X, Y, weights = rng.standard_normal((30, 6)), rng.standard_normal(30), rng.uniform(0.5, 2.0, 30)
    Y += X[:, 0]
    alpha = 0.3 * kind().alpha_max(X, Y, sample_weight=weights)
    plain = kind(alpha).fit(X, Y, sample_weight=weights)
    # elastic net: the ridge part scales otherwise, so its ratio is left alone by scaling X and y alike
    if name == "elastic net":
        x = y
        if abs(x) > 450:
            pytest.skip("out of range")
    scaled = kind(np.ldexp(alpha, label * y + x)).fit(
        np.ldexp(X, x), np.ldexp(Y, y), sample_weight=np.ldexp(weights, s)
    )
    if name == "calibrated" and y:  # its Newton method has thresholds in units of y
        np.testing.assert_allclose(np.ldexp(scaled.coef_, x - y), plain.coef_, rtol=1e-4)
        assert np.ldexp(scaled.objective_, -y) == pytest.approx(plain.objective_, abs=plain.dual_gap_ + 1e-6)
        return
    np.testing.assert_array_equal(np.ldexp(scaled.coef_, x - y), plain.coef_)
    np.testing.assert_array_equal(np.ldexp(scaled.intercept_, -y), plain.intercept_)
    assert np.ldexp(scaled.objective_, -power * y) == plain.objective_
    assert np.ldexp(scaled.dual_gap_, -power * y) == plain.dual_gap_


def test_logistic_in_other_units(rng):
    X = rng.standard_normal((40, 5))
    y = X[:, 0] + rng.standard_normal(40) > 0
    alpha = 0.3 * ts.MultiTaskLogisticRegression().alpha_max(X, y)
    plain = ts.MultiTaskLogisticRegression(alpha).fit(X, y)
    tiny = ts.MultiTaskLogisticRegression(np.ldexp(alpha, -700)).fit(np.ldexp(X, -700), y)
    np.testing.assert_array_equal(np.ldexp(tiny.coef_, -700), plain.coef_)
    assert tiny.dual_gap_ == plain.dual_gap_


@pytest.mark.parametrize("exponent", [-900, -700, 700, 900])
@pytest.mark.parametrize("estimator", [ts.MultiTaskLasso, ts.MultiTaskLogisticRegression])
def test_unpenalised_features_in_other_units(rng, estimator, exponent):
    X = rng.standard_normal((40, 5))
    y = X[:, 0] + X[:, 1] + rng.standard_normal(40)
    y = y > 0 if estimator is ts.MultiTaskLogisticRegression else y
    options = {"feature_weights": [0, 0, 1, 1, 1]}
    plain = estimator(0.05, **options).fit(X, y)
    other = estimator(np.ldexp(0.05, exponent), **options).fit(np.ldexp(X, exponent), y)
    np.testing.assert_allclose(np.ldexp(other.coef_, exponent), plain.coef_, rtol=1e-6, atol=1e-9)
    assert other.objective_ == pytest.approx(plain.objective_, rel=1e-9)


def test_what_cannot_be_represented_is_refused(rng):
    X, y = rng.standard_normal((20, 4)), rng.standard_normal(20)
    with pytest.raises(ValueError, match=r"y: entries are as large as .* Divide y by a constant"):
        ts.MultiTaskLasso(0.1).fit(X, y * 1e155)
    with pytest.raises(ValueError, match="y: entries"):
        ts.MultiTaskLasso(0.1).fit(X, y * 1e-200)
    with pytest.raises(ValueError, match="X and y: coefficients leave the range"):
        ts.CalibratedMultiTaskLasso(1e-202).fit(X * 1e-200, (X[:, 0] + y) * 1e150)
    mixed = X.copy()
    mixed[:, 1] *= 1e250
    with pytest.raises(ValueError, match="feature 0 are smaller than the largest of X"):
        ts.MultiTaskLasso(0.1).fit(mixed, y)


def test_huge_and_tiny_strengths_and_weights(rng):
    X, y = rng.standard_normal((20, 4)), rng.standard_normal(20)
    model = ts.MultiTaskLasso(1e308).fit(X, y)
    assert not model.coef_.any()
    assert np.isfinite(model.objective_)
    assert model.dual_gap_ <= 1e-12 * model.objective_
    plain = ts.MultiTaskLasso(0.1).fit(X, y)
    for factor in (1e-300, 1e300):
        other = ts.MultiTaskLasso(0.1).fit(X, y, sample_weight=np.full(20, factor))
        np.testing.assert_allclose(other.coef_, plain.coef_, rtol=1e-9)
        assert other.objective_ == pytest.approx(plain.objective_, rel=1e-12)


def test_a_tiny_strength_comes_to_an_end(rng):
    """More features than rows and next to no penalty: an honest gap, whatever it is, and never a hang."""
    X, y = rng.standard_normal((10, 30)), rng.standard_normal(10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ts.MultiTaskLasso(1e-160, max_iter=200).fit(X, y)
    assert 0.0 <= model.objective_ <= model.null_objective_
    assert np.isfinite(model.dual_gap_)


def test_a_warm_start_from_nan_is_none(rng):
    X, y = rng.standard_normal((20, 4)), rng.standard_normal(20)
    model = ts.MultiTaskLasso(0.1, warm_start=True).fit(X, y)
    expected, model.coef_ = model.coef_, np.full_like(model.coef_, np.nan)
    np.testing.assert_allclose(model.fit(X, y).coef_, expected, atol=1e-6)


# --- not converged ---------------------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("max_iter", [1, 2, 3])
@pytest.mark.parametrize(
    "estimator", [ts.MultiTaskLasso, ts.MultiTaskOWL, ts.CalibratedMultiTaskLasso, ts.MultiTaskLogisticRegression]
)
def test_never_worse_than_nothing(rng, estimator, max_iter):
    X = rng.standard_normal((30, 60)) + 3.0 * rng.standard_normal((30, 1))
    y = X[:, 0] + rng.standard_normal(30)
    y = y > 0 if estimator is ts.MultiTaskLogisticRegression else y
    alpha = 1e-3 * estimator().alpha_max(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = estimator(alpha, max_iter=max_iter, tol=1e-12).fit(X, y)
        best = estimator(alpha, tol=1e-8).fit(X, y)
    assert model.objective_ <= model.null_objective_ * (1 + 1e-12)
    assert model.objective_ - model.dual_gap_ <= best.objective_


def test_no_floor_takes_the_place_of_tol(rng):
    X = rng.standard_normal((40, 5))
    y = X[:, 0] + rng.standard_normal(40) > 0
    with pytest.warns(ConvergenceWarning):
        ts.MultiTaskLogisticRegression(0.05, tol=1e-17).fit(X, y)


def test_the_scale_that_defines_the_objective_is_there(rng):
    X = rng.standard_normal((30, 3)) * [1.0, 10.0, 0.1] + [0.0, 1e4, 3.0]
    y = X[:, 0] + 0.1 * X[:, 1] + rng.standard_normal(30)
    model = ts.MultiTaskLasso(0.1, standardize=True).fit(X, y)
    np.testing.assert_allclose(model.scale_[0], X.std(axis=0), rtol=1e-12)
    r = y - model.predict(X)
    assert 0.5 * np.mean(r * r) + 0.1 * np.abs(model.coef_ * model.scale_).sum() == pytest.approx(model.objective_)
    assert not hasattr(model.set_params(standardize=False).fit(X[:, :1], y), "scale_")
