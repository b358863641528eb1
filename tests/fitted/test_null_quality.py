"""The null model beside every measure: fitted to the training rows of each fold, recomputed by other libraries."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, QuantileRegressor
from sklearn.metrics import accuracy_score, d2_tweedie_score, log_loss, r2_score, roc_auc_score

import tasksieve as ts

FOLD = np.arange(120) // 3 % 4
SPLITS = [(np.flatnonzero(f != FOLD), np.flatnonzero(f == FOLD)) for f in range(4)]
TASKS = np.tile(["b", "a", "c"], 40)
WEIGHTS = np.r_[0.0, 1.0, 0.0, 1.0, 1.0, 1.0]  # features 0 and 2 are covariates
OPTIONS = {"alphas": [0.3, 0.1], "cv": SPLITS}


@pytest.fixture
def rows(rng):
    x = 1.0 + rng.standard_normal((120, 6))
    return x, x[:, 0] * np.where(TASKS == "a", 1.0, -2.0) + 0.7 * x[:, 1] + 0.5 * rng.standard_normal(120)


def within_tasks(y, *shares):
    """Quantiles of the tasks a, b and c, for each row that of its task."""
    found = np.empty((len(shares), 120))
    for level, own in zip(found, shares, strict=True):
        for name, share in zip("abc", own, strict=True):
            level[name == TASKS] = np.quantile(y[name == TASKS], share)
    return found


def out_of_fold(model, x, y, answer, **given):
    """Answers of a model of scikit-learn for each task alone, learned from the other folds."""
    found = None
    for name in "abc":
        for f in range(4):
            train, test = (np.flatnonzero((name == TASKS) & own) for own in (f != FOLD, f == FOLD))
            own = {key: values[train] for key, values in given.items()}
            told = getattr(model.fit(x[train], y[train], **own), answer)(x[test])
            found = np.zeros((120, *told.shape[1:])) if found is None else found
            found[test] = told
    return found


@pytest.mark.parametrize("covariates", [False, True])
def test_numbers(rows, covariates):
    x, y = rows
    s = np.where(x[:, 3] > 1, 2.0, 1.0)
    given = {"feature_weights": WEIGHTS} if covariates else {}
    found = ts.MultiTaskLassoCV(**OPTIONS, **given).fit(x, y, task=TASKS, sample_weight=s).cv_quality_
    own = x[:, [0, 2]] if covariates else np.zeros((120, 1))
    guess = out_of_fold(LinearRegression(), own, y, "predict", sample_weight=s)
    for t, name in enumerate("abc"):
        here = name == TASKS
        expected = [
            r2_score(y[here], guess[here], sample_weight=s[here]),
            np.average((y - guess)[here] ** 2, weights=s[here]),
        ]
        np.testing.assert_allclose(found.null_values[t], expected, rtol=1e-9)
    np.testing.assert_allclose(found.null_overall, found.null_values.mean(axis=0))
    np.testing.assert_array_equal(found.increments, found.values - found.null_values)
    np.testing.assert_allclose(found.overall_increments, found.overall - found.null_overall)
    assert found.null_covariates == (2 if covariates else 0)
    assert ("2 covariates" if covariates else "intercepts only") in repr(found)
    if not covariates:
        assert np.all(found.null_values[:, 0] <= 0)  # no model knows the mean of rows that it has not seen


def test_standard_errors_are_of_paired_differences(rows):
    x, y = rows
    model = ts.MultiTaskLassoCV(**OPTIONS, feature_weights=WEIGHTS).fit(x, y, task=TASKS)
    found = model.cv_quality_
    guess = out_of_fold(LinearRegression(), x[:, [0, 2]], y, "predict")
    gain = (y - model.cv_predictions_) ** 2 - (y - guess) ** 2
    for t, name in enumerate("abc"):
        here = name == TASKS
        np.testing.assert_allclose(
            found.increment_errors[t, 1], found.widening * np.std(gain[here], ddof=1) / np.sqrt(40)
        )

        def increment(left, here=here):
            own = np.delete(np.flatnonzero(here), left)
            return r2_score(y[own], model.cv_predictions_[own]) - r2_score(y[own], guess[own])

        each = np.array([increment(i) for i in range(40)])
        error = np.sqrt(39 / 40 * np.sum((each - each.mean()) ** 2))
        np.testing.assert_allclose(found.increment_errors[t, 0], found.widening * error, rtol=0.1)
    np.testing.assert_allclose(
        found.overall_increment_errors, np.sqrt(np.sum(found.increment_errors**2, axis=0)) / 3
    )


@pytest.mark.parametrize("covariates", [False, True])
def test_two_classes(rows, covariates):
    x, y = rows
    label = np.where(y > within_tasks(y, [0.4, 0.8, 0.5])[0], "yes", "no")
    given = {"feature_weights": WEIGHTS} if covariates else {}
    model = ts.MultiTaskLogisticRegressionCV(**OPTIONS, **given).fit(x, label, task=TASKS)
    found = model.cv_quality_
    plain = DummyClassifier(strategy="prior")
    if covariates:
        plain = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)
    p = out_of_fold(plain, x[:, [0, 2]], label, "predict_proba")
    for t, name in enumerate("abc"):
        here = name == TASKS
        guess = np.where(p[here, 1] > 0.5, "yes", "no")
        areas, pairs = [], []
        for f in range(4):
            own = here & (f == FOLD)
            n = np.count_nonzero(label[own] == "yes")
            pairs.append(n * (np.count_nonzero(own) - n))
            areas.append(roc_auc_score(label[own], p[own, 1]) if pairs[-1] else 0.0)
        area = np.average(areas, weights=pairs)
        expected = [accuracy_score(label[here], guess), area, log_loss(label[here], p[here])]
        np.testing.assert_allclose(found.null_values[t], expected, rtol=1e-5)
        assert found.one_class_folds[t] == np.count_nonzero(np.equal(pairs, 0))
    if not covariates:
        np.testing.assert_array_equal(found.null_values[:, 1], 0.5)
        np.testing.assert_array_equal(found.null_errors[:, 1], 0.0)


@pytest.mark.parametrize("stratified", [False, True])
def test_a_model_without_features_has_an_area_of_one_half(stratified, rng):
    """Its scores are the frequencies of the training rows, which are lower where more of a class is held out."""
    x, label = np.zeros((200, 3)), rng.integers(0, 2, 200)
    cv = 5 if stratified else [(np.flatnonzero(f != FIFTH), np.flatnonzero(f == FIFTH)) for f in range(5)]
    found = ts.MultiTaskLogisticRegressionCV(alphas=[1.0], cv=cv).fit(x, label).cv_quality_
    assert found.overall[1] == 0.5
    assert found.null_overall[1] == 0.5


FIFTH = np.arange(200) % 5


def test_several_classes(rows):
    x, y = rows
    label = np.sum(y > within_tasks(y, [0.3, 0.5, 0.4], [0.7, 0.8, 0.6]), axis=0)
    found = ts.MultiTaskClassifierCV(**OPTIONS).fit(x, label, task=TASKS).cv_quality_
    p = out_of_fold(DummyClassifier(strategy="prior"), x, label, "predict_proba")
    for t, name in enumerate("abc"):
        here = name == TASKS
        expected = [accuracy_score(label[here], p[here].argmax(axis=1)), 0.5, log_loss(label[here], p[here])]
        np.testing.assert_allclose(found.null_values[t], expected, rtol=1e-6)


def test_counts_and_quantiles(rows, rng):
    x, y = rows
    count = rng.poisson(np.exp(0.4 * x[:, 0] - 0.3 * x[:, 1]))
    found = ts.MultiTaskPoissonCV(**OPTIONS, feature_weights=WEIGHTS).fit(x, count, task=TASKS).cv_quality_
    rate = out_of_fold(PoissonRegressor(alpha=0, tol=1e-10, max_iter=10_000), x[:, [0, 2]], count, "predict")
    own = [d2_tweedie_score(count[t == TASKS], rate[t == TASKS], power=1) for t in "abc"]
    np.testing.assert_allclose(found.null_values[:, 0], own, rtol=1e-5)
    smooth = {"q": 0.3, "smoothing": 0.02}
    found = ts.MultiTaskQuantileCV(**OPTIONS, **smooth, feature_weights=WEIGHTS).fit(x, y, task=TASKS).cv_quality_
    guess = out_of_fold(QuantileRegressor(quantile=0.3, alpha=0), x[:, [0, 2]], y, "predict")
    pinball = np.maximum(0.3 * (y - guess), -0.7 * (y - guess))
    np.testing.assert_allclose(found.null_values[:, 1], [pinball[t == TASKS].mean() for t in "abc"], rtol=2e-2)


def test_offsets_units_and_no_intercept(rows):
    x, y = rows
    known = 3.0 * x[:, 4]
    far = ts.MultiTaskLassoCV(**OPTIONS, feature_weights=WEIGHTS).fit(x, y + known, task=TASKS, offset=known)
    near = ts.MultiTaskLassoCV(**OPTIONS, feature_weights=WEIGHTS).fit(x, y, task=TASKS)
    np.testing.assert_allclose(far.cv_quality_.null_values[:, 1], near.cv_quality_.null_values[:, 1])
    large = ts.MultiTaskLassoCV(alphas=[1e-60, 5e-61], cv=SPLITS, feature_weights=WEIGHTS)
    large.fit(np.ldexp(x, -400), np.ldexp(y, 200), task=TASKS)
    np.testing.assert_allclose(large.cv_quality_.null_values[:, 0], near.cv_quality_.null_values[:, 0])
    none = ts.MultiTaskLassoCV(**OPTIONS, fit_intercept=False).fit(x, y, task=TASKS).cv_quality_
    np.testing.assert_allclose(none.null_values[:, 1], [np.mean(y[t == TASKS] ** 2) for t in "abc"])


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_machines_on_a_graph(rows, kind):
    """Without features: the machine on a matrix of zeros."""
    x, y = rows
    options = {"cv": SPLITS, "Cs": [0.01, 0.1], "graph": np.ones((3, 3)) - np.eye(3), "fold_tol": 1e-8}
    label = y if kind == "numbers" else np.where(y > 0, "yes", "no")
    model = (ts.GraphSVRCV if kind == "numbers" else ts.GraphSVCCV)(**options).fit(x, label, task=TASKS)
    alone = type(model)(**{**options, "Cs": [model.C_], "graph_strengths": [model.graph_strength_]})
    alone.fit(np.zeros((120, 2)), label, task=TASKS)
    np.testing.assert_allclose(model.cv_quality_.null_values, alone.cv_quality_.values, rtol=1e-5)
    assert model.cv_quality_.caveat == "optimistic: C was tuned on these rows"
    of_row = np.empty(120)
    for f, (_, test) in enumerate(SPLITS, start=1):
        of_row[test] = f
    np.testing.assert_array_equal(model.cv_fold_, of_row)
    best = model.cv_scores_.mean(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(model.cv_compared_["C"], model.Cs_[best])
    np.testing.assert_array_equal(model.cv_compared_["graph_strength"], [0.1, 1.0, 10.0])


def test_frames(rows):
    pytest.importorskip("pandas")
    x, y = rows
    found = ts.MultiTaskLassoCV(**OPTIONS).fit(x, y, task=TASKS).cv_quality_
    frame = found.to_frame()
    beyond = ["increment", "increment_error", "increment_low", "increment_high"]
    assert frame.columns.tolist()[-6:] == ["null_value", "null_error", *beyond]
    low, high = found.increment_intervals()
    np.testing.assert_allclose(low[-1] + high[-1], 2.0 * found.overall_increments)
    np.testing.assert_array_equal(frame["increment_high"].to_numpy()[6:], high[-1])
    narrower = found.increment_intervals(0.5)
    assert np.all(narrower[1] - narrower[0] < high - low)
    with pytest.raises(ValueError, match="level must be between"):
        found.increment_intervals(1.0)
    np.testing.assert_array_equal(frame["null_value"].to_numpy()[:6].reshape(3, 2), found.null_values)
    np.testing.assert_array_equal(frame["increment"].to_numpy()[6:], found.overall_increments)
