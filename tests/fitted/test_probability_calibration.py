"""Calibration curves: bins, intervals and recalibration against other programs, class weights against shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit, logit
from sklearn.calibration import calibration_curve
from statsmodels.stats.proportion import proportion_confint

import tasksieve as ts

Array = np.ndarray[Any, Any]


def data(seed: int = 0, sizes: tuple[int, ...] = (150, 250), classes: int = 2) -> tuple[Array, Array, Array]:
    """Rare classes."""
    rng = np.random.default_rng(seed)
    task = rng.permutation(np.repeat(np.array(["u", "v", "w"])[: len(sizes)], sizes))
    X = rng.standard_normal((len(task), 4))
    latent = X[:, 0] - 0.8 * X[:, 1] + np.where(task == "u", -1.0, -1.6) + rng.logistic(size=len(task))
    return X, np.array(["no", "yes", "very"])[np.digitize(latent, [0.0, 1.5][: classes - 1])], task


SMALL: dict[str, Any] = {"n_alphas": 4, "eps": 0.05, "cv": 3}


def test_curves_are_those_of_other_programs() -> None:
    X, y, task = data()
    model = ts.MultiTaskLogisticRegressionCV(**SMALL).fit(X, y, task=task)
    found = ts.probability_calibration(model, X, y, task=task, n_bins=5, level=0.8)
    assert set(found.weighting.tolist()) == {"as fitted"}
    assert set(found.label.tolist()) == {"yes"}
    for t, name in enumerate("uv"):
        own, rows = found.task == name, task == name
        p, hit = model.cv_predictions_[rows, 1], (y[rows] == "yes").astype(float)
        share, mean = calibration_curve(hit, p, n_bins=5, strategy="quantile")
        np.testing.assert_allclose(found.observed[own], share, rtol=1e-12)
        np.testing.assert_allclose(found.predicted[own], mean, rtol=1e-12)
        ends = proportion_confint(
            (share * found.n_rows[own]).round(), found.n_rows[own], 0.2, method="wilson"
        )
        np.testing.assert_allclose([found.lower[own], found.upper[own]], ends, rtol=1e-9, atol=1e-12)
        line = sm.GLM(hit, sm.add_constant(logit(p)), sm.families.Binomial()).fit(cov_type="HC0", tol=1e-12)
        large = sm.GLM(hit, np.ones(len(p)), sm.families.Binomial(), offset=logit(p)).fit(
            cov_type="HC0", tol=1e-12
        )
        lines = found.lines
        np.testing.assert_allclose(
            [lines.slope[t], lines.slope_error[t]], [line.params[1], line.bse[1]], rtol=1e-6
        )
        np.testing.assert_allclose([lines.intercept[t], lines.intercept_error[t]], [large.params[0], large.bse[0]],
                                   rtol=1e-6, atol=1e-9)  # fmt: skip
        np.testing.assert_allclose([lines.expected[t], lines.observed[t]], [p.mean(), hit.mean()], rtol=1e-12)
    assert not found.new_rows
    assert list(found.to_frame().columns)[:4] == ["task", "label", "weighting", "n_rows"]
    assert "u: slope" in repr(found)


@pytest.mark.parametrize("rule", ["balanced", {"yes": 6.0}])
def test_without_features_the_corrected_probability_is_the_share_of_the_training_rows(rule: Any) -> None:
    X, y, task = data()
    model = ts.MultiTaskLogisticRegressionCV(alphas=[1e3], cv=3, class_weight=rule, tol=1e-12).fit(X, y, task=task)
    found = ts.probability_calibration(model, X, y, task=task, n_bins=1)
    for name in "uv":
        rows, own = task == name, (found.task == name) & (found.weighting == "corrected back")
        hit, fold = y[rows] == "yes", model.cv_fold_[rows]
        shares = np.array([hit[fold != f].mean() for f in fold])
        np.testing.assert_allclose(found.predicted[own], shares.mean(), rtol=1e-6)
        fitted = found.predicted[(found.task == name) & (found.weighting == "as fitted")]
        weight = 6.0 if isinstance(rule, dict) else (1.0 - hit.mean()) / hit.mean()
        np.testing.assert_allclose(
            fitted, np.mean(weight * shares / (weight * shares + 1.0 - shares)), rtol=1e-6
        )
    np.testing.assert_allclose(found.observed[::2], found.observed[1::2], rtol=1e-12)


def test_class_weights_move_the_level_and_correcting_moves_it_back() -> None:
    X, y, task = data(sizes=(700, 900))
    model = ts.MultiTaskLogisticRegressionCV(class_weight="balanced", **SMALL).fit(X, y, task=task)
    lines = ts.probability_calibration(model, X, y, task=task).lines
    fitted, back = lines.weighting == "as fitted", lines.weighting == "corrected back"
    shares = np.array([np.mean(y[task == name] == "yes") for name in "uv"])
    np.testing.assert_allclose(lines.intercept[fitted] - lines.intercept[back], logit(shares), rtol=1e-6)
    assert np.all(lines.intercept[fitted] < -5.0 * lines.intercept_error[fitted])
    assert np.all(np.abs(lines.intercept[back]) < 2.5 * lines.intercept_error[back])
    np.testing.assert_allclose(lines.slope[fitted], lines.slope[back], rtol=1e-6)


def test_several_classes_and_tasks_with_classes_of_their_own() -> None:
    X, y, task = data(sizes=(200, 250), classes=3)
    weights = {"very": 4.0, "yes": 2.0}
    model = ts.MultiTaskLogisticRegressionCV(class_weight=weights, **SMALL).fit(X, y, task=task)
    found = ts.probability_calibration(model, X, y, task=task, n_bins=1)
    order = model.classes_.tolist()
    assert order == ["no", "very", "yes"]
    p = model.cv_predictions_ / np.array([1.0, 4.0, 2.0])
    p /= p.sum(axis=1, keepdims=True)
    back = found.weighting == "corrected back"
    expected = [p[task == name, k].mean() for name in "uv" for k in range(3)]
    np.testing.assert_allclose(found.predicted[back].astype(float), expected, rtol=1e-12)
    shares = [np.mean(y[task == name] == label) for name in "uv" for label in order]
    np.testing.assert_allclose(found.observed[back].astype(float), shares, rtol=1e-12)
    own = np.where(task == "u", np.where(y == "no", "a", "b"), y)  # two classes, and three others
    each = ts.MultiTaskClassifierCV(**SMALL).fit(X, own, task=task)
    found = ts.probability_calibration(each, X, own, task=task, n_bins=1)
    assert found.label.tolist() == ["b", "no", "very", "yes"]
    shares = [
        np.mean(own[task == name] == label) for name, label in zip(found.task, found.label, strict=True)
    ]
    np.testing.assert_allclose(found.observed.astype(float), shares, rtol=1e-12)
    np.testing.assert_allclose(found.predicted[0], each.cv_predictions_[0][:, 1].mean(), rtol=1e-12)


def test_new_rows_weights_and_forms() -> None:
    X, y, task = data()
    fresh, labels, names = data(seed=1)
    model = ts.MultiTaskLogisticRegression(0.01, class_weight={"yes": 3.0}).fit(X, y, task=task)
    found = ts.probability_calibration(model, fresh, labels, task=names, new_rows=True, n_bins=1)
    p = model.predict_proba(fresh, task=names)[names == "u", 1]
    np.testing.assert_allclose(
        found.predicted[:2], [p.mean(), np.mean(expit(logit(p) - np.log(3.0)))], rtol=1e-9
    )
    weight = np.random.default_rng(2).integers(0, 2, len(labels)).astype(float)
    some = ts.probability_calibration(model, fresh, labels, task=names, new_rows=True, sample_weight=weight)
    kept = weight > 0.0
    less = ts.probability_calibration(model, fresh[kept], labels[kept], task=names[kept], new_rows=True)
    for name in ("predicted", "observed", "lower"):
        np.testing.assert_allclose(some[name].astype(float), less[name].astype(float), rtol=1e-9)
    np.testing.assert_allclose(some.lines.slope_error, less.lines.slope_error, rtol=1e-9)
    parts = [(fresh[names == name], labels[names == name]) for name in "uv"]
    listed = ts.MultiTaskLogisticRegressionCV(**SMALL).fit(
        [part for part, _ in parts], [own for _, own in parts]
    )
    again = ts.probability_calibration(listed, [part for part, _ in parts], [own for _, own in parts])
    assert again.lines.n_rows.tolist() == [150, 250]
    shared = ts.MultiTaskLogisticRegressionCV(**SMALL).fit(X[:150], np.column_stack([y[:150], y[150:300]]))
    both = ts.probability_calibration(shared, X[:150], np.column_stack([y[:150], y[150:300]]), n_bins=1)
    np.testing.assert_allclose(
        both.observed.astype(float), [np.mean(y[:150] == "yes"), np.mean(y[150:300] == "yes")]
    )
    np.testing.assert_allclose(both.predicted.astype(float), shared.cv_predictions_[..., 1].mean(axis=0))


def test_lines_that_are_not_there() -> None:
    X, y, task = data()
    model = ts.MultiTaskLogisticRegression(1e3).fit(X, y, task=task)
    lines = ts.probability_calibration(model, X, y, task=task, new_rows=True).lines
    assert np.isnan(lines.slope).all()  # probabilities are all alike
    np.testing.assert_allclose(lines.intercept, 0.0, atol=1e-5)
    sure = ts.MultiTaskLogisticRegression(0.01).fit(X, y, task=task)
    apart = np.where(sure.predict_proba(X, task=task)[:, 1] > 0.3, "yes", "no")
    lines = ts.probability_calibration(sure, X, apart, task=task, new_rows=True).lines
    assert np.isnan(lines.slope).all()  # they separate the classes


def test_refusals() -> None:
    X, y, task = data()
    plain = ts.MultiTaskLogisticRegression(0.1, class_weight="balanced").fit(X, y, task=task)
    with pytest.raises(ValueError, match=r"MultiTaskLogisticRegressionCV.*new_rows=True"):
        ts.probability_calibration(plain, X, y, task=task)
    with pytest.raises(ValueError, match=r"class_weight='balanced'.*rows of the fit"):
        ts.probability_calibration(plain, X, y, task=task, new_rows=True)
    model = ts.MultiTaskLogisticRegressionCV(**SMALL).fit(X, y, task=task)
    with pytest.raises(ValueError, match=r"other rows \(399 labels\).*new_rows"):
        ts.probability_calibration(model, X[1:], y[1:], task=task[1:])
    for options in ({"n_bins": 0}, {"level": 1.0}):
        with pytest.raises(ts.ParameterError, match=next(iter(options))):
            ts.probability_calibration(model, X, y, task=task, **options)  # type: ignore[arg-type]
    numbers = ts.MultiTaskLassoCV(**SMALL).fit(X, X[:, 0], task=task)
    with pytest.raises(ts.ParameterError, match="probabilities"):
        ts.probability_calibration(numbers, X, X[:, 0], task=task)
    hinge = ts.MultiTaskClassifierCV("squared_hinge", **SMALL).fit(X, y, task=task)
    with pytest.raises(ts.ParameterError, match="probabilities"):
        ts.probability_calibration(hinge, X, y, task=task)
