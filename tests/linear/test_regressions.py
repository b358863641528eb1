"""Regressions by other losses than the squared one: predictions, scores, cross-validation, limits, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_pinball_score, d2_tweedie_score, mean_poisson_deviance

import tasksieve as ts

TASK = np.repeat(["a", "b", "c"], [30, 20, 25])


@pytest.fixture
def data(rng):
    x = rng.standard_normal((75, 9))
    z = x[:, 0] - 0.5 * x[:, 1]
    return x, z + 0.3 * rng.standard_normal(75), rng.poisson(np.exp(0.6 * z + 0.4)).astype(float)


def test_huber_with_a_large_delta_is_the_lasso(data):
    x, y, _ = data
    one = ts.MultiTaskHuber(0.1, delta=1e6, tol=1e-11).fit(x, y, task=TASK)
    two = ts.MultiTaskLasso(0.1, tol=1e-11).fit(x, y, task=TASK)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-6)
    np.testing.assert_allclose(one.intercept_, two.intercept_, atol=1e-6)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-10)


def test_the_median_is_huber_in_other_units(data):
    """rho with q = 1/2 is huber_(mu/2)/mu."""
    x, y, _ = data
    mu = 0.3
    one = ts.MultiTaskQuantile(0.1, q=0.5, smoothing=mu, tol=1e-10).fit(x, y, task=TASK)
    two = ts.MultiTaskHuber(0.1 * mu, delta=mu / 2, tol=1e-10).fit(x, y, task=TASK)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-5)
    assert one.objective_ == pytest.approx(two.objective_ / mu, rel=1e-8)


def test_huber_with_a_small_delta_is_near_least_absolute_deviations(data):
    """Its intercepts without features are medians; the objective over delta is the mean absolute deviation."""
    x, y, _ = data
    delta = 1e-4
    alpha = ts.MultiTaskHuber(delta=delta).alpha_max(x, y, task=TASK)
    model = ts.MultiTaskHuber(2.0 * alpha, delta=delta).fit(x, y, task=TASK)
    medians = np.array([np.median(y[t == TASK]) for t in "abc"])
    absolute = np.abs(y - np.repeat(medians, [30, 20, 25])).sum() / 25
    assert model.objective_ / delta == pytest.approx(absolute, abs=1e-3)


def test_quantiles_are_quantiles(data):
    """Without features the intercept is the quantile of the labels, up to the smoothing."""
    x, y, _ = data
    for q in (0.1, 0.5, 0.9):
        model = ts.MultiTaskQuantile(1e3, q=q, smoothing=1e-3).fit(x, y, task=TASK)
        for t, b in zip("abc", model.intercept_, strict=True):
            share = np.mean(y[t == TASK] <= b)
            assert abs(share - q) <= 1.0 / np.sum(t == TASK) + 0.05


def test_poisson_without_a_penalty_is_scikit_learns(data):
    x, _, counts = data
    own = TASK == "a"
    ours = ts.MultiTaskPoisson(1e-9, tol=1e-9).fit(x[own], counts[own])
    theirs = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=10_000).fit(x[own], counts[own])
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.predict(x[own]), theirs.predict(x[own]), rtol=1e-3)


def test_poisson_predicts_rates(data):
    x, _, counts = data
    model = ts.MultiTaskPoisson(0.05).fit(x, counts, task=TASK)
    codes = np.searchsorted(model.tasks_, TASK)
    scores = np.sum(x * model.coef_[codes], axis=1) + model.intercept_[codes]
    np.testing.assert_allclose(model.predict(x, task=TASK), np.exp(scores), rtol=1e-12)
    np.testing.assert_allclose(np.bincount(codes, model.predict(x, task=TASK)), np.bincount(codes, counts), rtol=1e-6)
    value = np.sum(np.exp(scores) - counts * scores) / 25 + 0.05 * np.linalg.norm(model.coef_, axis=0).sum()
    assert model.objective_ == pytest.approx(value, rel=1e-12)
    lists = [x[t == TASK] for t in "abc"]
    several = ts.MultiTaskPoisson(0.05).fit(lists, [counts[t == TASK] for t in "abc"]).predict(lists)
    np.testing.assert_allclose(np.concatenate(several), model.predict(x, task=TASK), rtol=1e-6)


def test_scores(data):
    x, y, counts = data
    parts = [t == TASK for t in "abc"]
    poisson = ts.MultiTaskPoisson(0.05).fit(x, counts, task=TASK)
    rates = poisson.predict(x, task=TASK)
    expected = np.mean([d2_tweedie_score(counts[p], rates[p], power=1) for p in parts])
    assert poisson.score(x, counts, task=TASK) == pytest.approx(expected)
    quantile = ts.MultiTaskQuantile(0.02, q=0.8).fit(x, y, task=TASK)
    found = quantile.predict(x, task=TASK)
    expected = np.mean([d2_pinball_score(y[p], found[p], alpha=0.8) for p in parts])
    assert quantile.score(x, y, task=TASK) == pytest.approx(expected, abs=0.01)  # quantiles of few labels are intervals
    huber = ts.MultiTaskHuber(0.05).fit(x, y, task=TASK)
    found = huber.predict(x, task=TASK)
    ratios = [np.sum((y[p] - found[p]) ** 2) / np.sum((y[p] - y[p].mean()) ** 2) for p in parts]
    assert huber.score(x, y, task=TASK) == pytest.approx(1.0 - np.mean(ratios))


def test_held_out_scores(data):
    """Poisson deviance, Huber's loss, the pinball loss not smoothed; the mean over tasks of one fold."""
    x, y, counts = data
    train = np.arange(75) % 3 > 0
    folds = [(np.flatnonzero(train), np.flatnonzero(~train))]
    parts = [(t == TASK) & ~train for t in "abc"]

    def pinball(a, b):
        return np.mean(np.maximum(0.8 * (a - b), -0.2 * (a - b)))

    def huber(a, b):
        r = np.abs(a - b)
        return np.mean(np.where(r <= 0.5, r**2 / 2, 0.5 * r - 0.125))

    for model, single, labels, score, words in (
        (ts.MultiTaskPoissonCV(), ts.MultiTaskPoisson(), counts, mean_poisson_deviance, "Poisson deviance"),
        (ts.MultiTaskQuantileCV(q=0.8), ts.MultiTaskQuantile(q=0.8), y, pinball, "pinball loss"),
        (ts.MultiTaskHuberCV(delta=0.5), ts.MultiTaskHuber(delta=0.5), y, huber, "Huber loss"),
    ):
        model.set_params(alphas=[0.2, 0.05], cv=folds, fold_tol=1e-8).fit(x, labels, task=TASK)
        for k, alpha in enumerate(model.alphas_):
            single.set_params(alpha=alpha, tol=1e-8).fit(x[train], labels[train], task=TASK[train])
            found = single.predict(x, task=TASK)
            expected = np.mean([score(labels[p], found[p]) for p in parts])
            assert model.cv_scores_[k, 0] == pytest.approx(expected, rel=1e-3)
        assert model.cv_measure == f"held-out {words}"


def test_generic_names_are_the_same_models(data):
    x, y, counts = data
    for name, model, labels in (
        ("huber", ts.MultiTaskHuber(0.1), y),
        ("quantile", ts.MultiTaskQuantile(0.1), y),
        ("poisson", ts.MultiTaskPoisson(0.1), counts),
    ):
        one, two = ts.MultiTaskRegressor(name, alpha=0.1).fit(x, labels, task=TASK), model.fit(x, labels, task=TASK)
        np.testing.assert_array_equal(one.coef_, two.coef_)
        assert one.score(x, labels, task=TASK) == two.score(x, labels, task=TASK)
        np.testing.assert_array_equal(one.predict(x, task=TASK), two.predict(x, task=TASK))


def test_negative_counts_are_refused_by_row_and_task(data):
    x, _, counts = data
    counts = counts.copy()
    counts[40] = -1.0
    with pytest.raises(ValueError, match=r"y: counts must not be negative; row 41 .*of task 'b' is -1"):
        ts.MultiTaskPoisson().fit(x, counts, task=TASK)
    order = np.arange(75)[::-1]
    with pytest.raises(ValueError, match=r"row 35 .*of task 'b' is -1"):
        ts.MultiTaskPoissonCV(n_alphas=3).fit(x[order], counts[order], task=TASK[order])
    with pytest.raises(ValueError, match=r"row 41 .*is -1"):
        ts.MultiTaskRegressor("poisson").path(x, counts)
    with pytest.raises(ValueError, match=r"row 4 .*of task 1 is -2"):
        ts.MultiTaskPoisson().fit(x[:5], np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 1.0], [1.0, -2.0], [1.0, 1.0]]))
    counts[40] = np.nan
    ts.MultiTaskPoisson(0.1).fit(x, counts, task=TASK)


def test_a_task_that_counts_nothing(data):
    """It is named; its rate is practically 0, and the others are what they are without it."""
    x, _, counts = data
    counts = np.where(TASK == "b", 0.0, counts)
    with pytest.warns(UserWarning, match=r"1 task\(s\) count nothing \('b'\)"):
        model = ts.MultiTaskPoisson(0.05, tol=1e-9).fit(x, counts, task=TASK)
    assert model.dual_gap_ <= 1e-9 * model.null_objective_
    assert model.predict(x[TASK == "b"], task=TASK[TASK == "b"]).max() < 1e-11
    assert not model.coef_[1].any()
    others = TASK != "b"
    n_bar = 75 / 3
    alone = ts.MultiTaskPoisson(0.05 * n_bar / (55 / 2), tol=1e-9).fit(x[others], counts[others], task=TASK[others])
    np.testing.assert_allclose(model.coef_[[0, 2]], alone.coef_, atol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ts.MultiTaskPoisson(0.05, fit_intercept=False).fit(x, counts, task=TASK)


@pytest.mark.parametrize("level", [0.0, 3.0])
def test_constant_counts(level, data):
    x, _, _ = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if level == 0.0 else "error", UserWarning)
        model = ts.MultiTaskPoisson(0.1).fit(x, np.full(75, level), task=TASK)
        path = ts.MultiTaskPoisson().path(x, np.full(75, level), task=TASK, n_alphas=3)
        assert ts.MultiTaskPoisson().alpha_max(x, np.full(75, level), task=TASK) == 0.0
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict(x, task=TASK), level, atol=1e-11)
    assert path.converged.all()


def test_large_counts_and_large_offsets(data):
    """Counts of a million, labels far from zero: certified as well as any."""
    x, y, _ = data
    counts = np.random.default_rng(0).poisson(1e6 * np.exp(0.5 * x[:, 0])).astype(float)
    model = ts.MultiTaskPoisson(1e4, tol=1e-8).fit(x, counts, task=TASK)
    assert model.dual_gap_ <= 1e-8 * model.null_objective_
    for make in (ts.MultiTaskHuber, ts.MultiTaskQuantile):
        near, far = (make(0.05, tol=1e-7).fit(x, labels, task=TASK) for labels in (y, y + 1e6))
        np.testing.assert_allclose(near.coef_, far.coef_, atol=1e-3)
        assert far.dual_gap_ <= 1e-7 * far.null_objective_


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (ts.MultiTaskHuber(delta=-1.0), "'delta' parameter must be a number > 0"),
        (ts.MultiTaskQuantile(q=1.0), "q must be a number between 0 and 1"),
        (ts.MultiTaskQuantile(q=2.0), "'q' parameter must be"),
        (ts.MultiTaskQuantile(smoothing=0.0), "'smoothing' parameter must be a number > 0"),
        (ts.MultiTaskPoisson(screening="dpc"), "not for 'poisson'; use 'auto', 'midpoint' or 'gap'"),
        (ts.MultiTaskHuberCV(delta=0.0), "'delta' parameter"),
        (ts.MultiTaskRegressor("hubert"), "'huber', 'quantile', .*'poisson'"),
        (ts.MultiTaskRegressor("tweedie:power=2"), "power must be a number between 1 and 2; got 2.0"),
        (ts.MultiTaskRegressor("tweedie:size=2"), "'size' is no option of tweedie; its options are: power"),
        (ts.MultiTaskRegressor("negative_binomial:size=x"), "size cannot be 'x'"),
        (ts.MultiTaskRegressor("negative_binomial:size=0"), "size must be a positive number"),
        (ts.MultiTaskRegressor("expectile:level=1"), "level must be a number between 0 and 1"),
        (ts.MultiTaskRegressor("tweedie", screening="dpc"), "not for 'tweedie'"),
    ],
    ids=str,
)
def test_parameters_are_checked(model, words, data):
    x, _, counts = data
    with pytest.raises(ValueError, match=words):
        model.path(x, counts, task=TASK, n_alphas=3) if hasattr(model, "path") else model.fit(x, counts, task=TASK)


def test_poisson_with_a_penalty_that_sorts(data):
    """Ranks of one weight are the L2,1 norm; a first-order method agrees with proximal Newton."""
    x, _, counts = data
    one = ts.MultiTaskRegressor("poisson", ts.penalties.Sorted(oscar_ratio=0.0), alpha=0.1, tol=1e-8)
    two = ts.MultiTaskPoisson(0.1, tol=1e-8).fit(x, counts, task=TASK)
    one.fit(x, counts, task=TASK)
    assert one.dual_gap_ <= 1e-8 * one.null_objective_
    assert abs(one.objective_ - two.objective_) <= one.dual_gap_ + two.dual_gap_
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-3)
    far = ts.MultiTaskRegressor("poisson", "owl", alpha=0.05, tol=1e-6).fit(30.0 * x, counts, task=TASK)
    assert far.dual_gap_ <= 1e-6 * far.null_objective_
