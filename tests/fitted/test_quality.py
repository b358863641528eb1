"""Quality on held-out rows: values against scikit-learn, standard errors against the jackknife."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, d2_tweedie_score, log_loss, r2_score, roc_auc_score

import tasksieve as ts
from tasksieve.fitted.assess import Cells, HeldOutRows, Ranked, assess, auc, widening
from tasksieve.fitted.measures import ACCURACY, R2
from tasksieve.tasks import read_labels

FEW = {"alphas": [0.3, 0.1, 0.03], "cv": 3}


@pytest.fixture
def numbers(rng):
    x, task = rng.standard_normal((90, 6)), np.tile(["b", "a", "c"], 30)
    return x, x[:, 0] * np.where(task == "a", 1.0, -2.0) + 0.5 * rng.standard_normal(90), task


def jackknife(metric, n):
    """Standard error from leaving out one unit at a time."""
    each = np.array([metric(np.delete(np.arange(n), i)) for i in range(n)])
    return np.sqrt((n - 1) / n * np.sum((each - each.mean()) ** 2))


def test_numbers(numbers):
    x, y, task = numbers
    model = ts.MultiTaskLassoCV(**FEW).fit(x, y, task=task)
    found = model.cv_quality_
    assert found.tasks.tolist() == ["a", "b", "c"]
    assert found.measures == ("R²", "squared error")
    own = [(y[task == t], model.cv_predictions_[task == t]) for t in "abc"]
    np.testing.assert_allclose(found.values[:, 0], [r2_score(*pair) for pair in own])
    np.testing.assert_allclose(found.values[:, 1], [np.mean((a - b) ** 2) for a, b in own])
    np.testing.assert_allclose(found.overall, found.values.mean(axis=0))
    for t, (a, b) in enumerate(own):
        error = jackknife(lambda rows, a=a, b=b: r2_score(a[rows], b[rows]), 30)
        np.testing.assert_allclose(found.errors[t, 0], found.widening * error, rtol=0.2)
        np.testing.assert_allclose(found.errors[t, 1], found.widening * np.std((a - b) ** 2, ddof=1) / np.sqrt(30))
    np.testing.assert_allclose(found.overall_errors, np.sqrt(np.sum(found.errors**2, axis=0)) / 3)
    np.testing.assert_allclose(found.widening, np.sqrt(1 + 3 / 2))
    assert found.n_rows.tolist() == found.n_units.tolist() == [30, 30, 30]
    assert found.n_tried == 3
    assert found.optimistic
    assert "optimistic: alpha was tuned on these rows, among 3 models" in found.note
    assert "ts.compare" in found.note
    assert model.cv_folds_ in repr(found)
    once = ts.MultiTaskLassoCV(alphas=[0.1], cv=3).fit(x, y, task=task).cv_quality_
    assert not once.optimistic
    assert "nothing was chosen" in once.note


def test_counts_and_norms(numbers, rng):
    x, _, task = numbers
    y = rng.poisson(np.exp(0.4 * x[:, 0]))
    model = ts.MultiTaskPoissonCV(**FEW).fit(x, y, task=task)
    assert model.cv_quality_.measures == ("D²", "Poisson deviance")
    own = [d2_tweedie_score(y[task == t], model.cv_predictions_[task == t], power=1) for t in "abc"]
    np.testing.assert_allclose(model.cv_quality_.values[:, 0], own)
    rooted = ts.CalibratedMultiTaskLassoCV(alphas=[0.3], cv=3).fit(x, x[:, 0] + y, task=task)
    errors = (rooted.cv_predictions_ - x[:, 0] - y) ** 2
    np.testing.assert_allclose(rooted.cv_quality_.values[:, 1], [np.sqrt(errors[task == t].mean()) for t in "abc"])


def fold_of_row(model, x, label, task, weights):
    """By fitting each fold's model again: predictions tell which of them has held out a row."""
    fold = np.full(len(label), -1)
    for f, (train, test) in enumerate(SPLITS):
        alone = ts.MultiTaskClassifier(alpha=model.alpha_, tol=1e-8)
        alone.fit(x[train], label[train], task=task[train], sample_weight=weights[train])
        np.testing.assert_allclose(
            alone.predict_proba(x[test], task=task[test]), model.cv_predictions_[test], atol=2e-3
        )
        fold[test] = f
    return fold


def pairs_in_order(label, p, weights, fold):
    """The share of the pairs of two rows of a fold, one of the class and one not, that are in order; by definition."""
    areas = []
    for k, name in enumerate(np.unique(label)):
        won = total = 0.0
        for f in np.unique(fold):
            for i in np.flatnonzero((fold == f) & (label == name)):
                for j in np.flatnonzero((fold == f) & (label != name)):
                    pair = weights[i] * weights[j]
                    won += pair * (0.5 * (p[i, k] == p[j, k]) + (p[i, k] > p[j, k]))
                    total += pair
        areas.append(won / total)
    return np.mean(areas)  # of two classes both are the same


SPLITS = [(np.flatnonzero(np.arange(90) // 3 % 3 != f), np.flatnonzero(np.arange(90) // 3 % 3 == f)) for f in range(3)]


@pytest.mark.parametrize("several", [False, True])
def test_classes(numbers, several):
    x, y, task = numbers
    cuts = np.quantile(y, [1 / 3, 2 / 3] if several else [0.5])
    label = np.array(["low", "mid", "top"])[np.digitize(y, cuts)]
    weights = np.where(x[:, 1] > 0, 2.0, 1.0)
    options = {"alphas": [0.1, 0.03], "cv": SPLITS, "fold_tol": 1e-8}
    model = ts.MultiTaskClassifierCV(**options).fit(x, label, task=task, sample_weight=weights)
    found, p = model.cv_quality_, model.cv_predictions_
    assert found.measures[:2] == ("accuracy", "AUC")
    for t, name in enumerate("abc"):
        own = task == name
        told = {"sample_weight": weights[own]}
        guess = model.classes_[p[own].argmax(axis=1)]
        area = pairs_in_order(label[own], p[own], weights[own], fold_of_row(model, x, label, task, weights)[own])
        expected = [accuracy_score(label[own], guess, **told), area, log_loss(label[own], p[own], **told)]
        np.testing.assert_allclose(found.values[t], expected, rtol=1e-6)


def test_area_under_the_curve_has_the_error_of_the_jackknife(rng):
    label = rng.integers(0, 2, 80)
    score = np.round(label + rng.standard_normal(80), 1)  # ties
    cells = Cells(np.zeros(80, dtype=int), np.ones(80), np.arange(80), 1)
    part = auc(cells, label, Ranked(np.arange(80), np.zeros(80, dtype=int), score[:, None]))
    np.testing.assert_allclose(part.values, roc_auc_score(label, score))
    error = jackknife(lambda rows: roc_auc_score(label[rows], score[rows]), 80)
    np.testing.assert_allclose(cells.errors(part.changes)[0], error, rtol=0.02)
    # in folds: the areas of the folds, weighted by their pairs
    fold = np.repeat(np.arange(4), 20)
    score = score + 10.0 * fold  # models of different folds have different scales

    def area(rows):
        own = [rows[fold[rows] == f] for f in range(4)]
        pairs = [np.count_nonzero(label[part]) * np.count_nonzero(label[part] == 0) for part in own]
        return np.average([roc_auc_score(label[part], score[part]) for part in own], weights=pairs)

    apart = auc(cells, label, Ranked(np.arange(80), fold, score[:, None]))
    np.testing.assert_allclose(apart.values, area(np.arange(80)))
    np.testing.assert_allclose(cells.errors(apart.changes)[0], jackknife(area, 80), rtol=0.03)
    # a fold of one class is left out, and counted
    label[fold == 2] = 1
    fewer = auc(cells, label, Ranked(np.arange(80), fold, score[:, None]))
    kept = np.flatnonzero(fold != 2)
    only = Cells(np.zeros(60, dtype=int), np.ones(60), np.arange(60), 1)
    without = auc(only, label[kept], Ranked(np.arange(60), fold[kept], score[kept, None]))
    assert fewer.one_class_folds.tolist() == [1]
    assert without.one_class_folds.tolist() == [0]
    np.testing.assert_allclose(fewer.values, without.values)
    np.testing.assert_allclose(fewer.changes[kept], without.changes, atol=1e-15)
    assert not fewer.changes[fold == 2].any()
    # a row that two models have judged has a part in the pairs of both
    twice = Ranked(np.tile(np.arange(80), 2), np.repeat([0, 1], 80), np.concatenate([score, -score])[:, None])
    half = auc(cells, label, twice)
    np.testing.assert_allclose(half.values, 0.5)
    np.testing.assert_allclose(half.changes, 0.0, atol=1e-15)


def test_units(numbers):
    x, y, task = numbers
    family = np.arange(90) // 6
    found = ts.MultiTaskLassoCV(**FEW).fit(x, y, task=task, groups=family)
    squares = (found.cv_predictions_ - y) ** 2
    apart = squares - np.array([squares[task == t].mean() for t in task])
    quality = found.cv_quality_
    assert quality.unit == "groups"
    assert quality.n_all_units == 15
    assert quality.n_units.tolist() == [15] * 3
    sums = np.bincount(family, weights=apart / 30)
    error = np.sqrt(15 / 14 * np.sum(sums**2)) / 3
    np.testing.assert_allclose(quality.overall_errors[1], error * quality.widening)
    # rows of a shared matrix are one unit for all tasks: targets that are the same have the error of one of them
    Y = np.stack([y, y], axis=1)
    twice = ts.MultiTaskLassoCV(**FEW).fit(x, Y).cv_quality_
    assert twice.n_all_units == 90
    np.testing.assert_allclose(twice.overall_errors, twice.errors[0])


def test_widening():
    def folds(*held):
        tests = [np.isin(np.arange(20), part) for part in held]
        return widening(tests, [~part for part in tests])

    one = folds(*np.arange(20).reshape(5, 4))
    np.testing.assert_allclose(one, np.sqrt(1 + 5 / 4))
    # folds made once more hold out the same rows: there is less to widen, but never nothing
    twice = folds(*np.arange(20).reshape(5, 4), *np.arange(20).reshape(4, 5).T)
    np.testing.assert_allclose(twice, np.sqrt(1 / 2 + 5 / 4))
    np.testing.assert_allclose(folds(np.arange(5)), np.sqrt(1 + 5 / 15))


def test_rows_that_count_and_rows_that_do_not(numbers):
    x, y, task = numbers
    some = np.where(np.arange(90) < 6, np.nan, y)
    constant = np.where(task == "c", 1.0, some)
    quality = ts.MultiTaskLassoCV(**FEW).fit(x, constant, task=task).cv_quality_
    assert quality.n_rows.tolist() == [28, 28, 30]
    assert np.isnan(quality.values[2, 0])
    assert np.isfinite(quality.overall).all()
    np.testing.assert_allclose(quality.overall[0], quality.values[:2, 0].mean())
    # a row held out twice counts once, with the mean of its losses
    labels = read_labels(4, np.array([1.0, 2.0, 3.0, 5.0]), None)
    rows = HeldOutRows(4, R2)
    for loss in (1.0, 3.0):
        rows.add(np.array([0, 1]), np.full(2, loss), np.full(2, loss))
    rows.add(np.array([2]), np.ones(1), np.ones(1))
    told = assess(labels, rows, weights=labels.weights, loss="squared error", units=np.arange(4))
    assert told.n_rows.tolist() == [3]
    np.testing.assert_allclose(told.values[0, 1], 5 / 3)
    one = HeldOutRows(4, ACCURACY, np.array([0, 0, 0, 1]))
    one.add(np.array([0]), np.ones(1), np.ones(1), np.zeros((1, 1)))
    told = assess(labels, one, weights=labels.weights, loss="loss", units=np.arange(4))
    assert told.one_class_folds.tolist() == [1]
    assert "AUC leaves out 1 fold whose held-out rows are of one class" in told.note
    assert told.values[0, 0] == 1.0
    assert np.isnan(told.values[0, 1])
    assert np.isnan(told.errors).all()


def test_frames_and_intervals(numbers):
    pytest.importorskip("pandas")
    x, y, task = numbers
    quality = ts.MultiTaskLassoCV(**FEW).fit(x, y, task=task).cv_quality_
    frame = quality.to_frame(level=0.95)
    assert frame["task"].tolist() == ["a", "a", "b", "b", "c", "c", "all tasks", "all tasks"]
    assert frame["rows"].tolist()[-1] == 90
    low, high = quality.intervals(0.95)
    np.testing.assert_allclose(frame["low"], low.ravel())
    assert np.all(quality.intervals(0.5)[0] > low)
    assert np.all(high > frame["value"].to_numpy().reshape(4, 2))
    with pytest.raises(ValueError, match="level must be between"):
        quality.to_frame(level=95)


@pytest.mark.parametrize("form", ["stacked", "shared"])
def test_from_moments(numbers, form):
    x, y, task = numbers
    fold = np.arange(90) // 3 % 3
    given = {"y": y, "task": task} if form == "stacked" else {"y": np.stack([y, x[:, 1] + y], axis=1)}
    moments = ts.TaskMoments(n_folds=3).add(x, **given, fold=fold)
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    exact = {"alphas": [0.3, 0.1], "fold_tol": 1e-10}
    one = ts.MultiTaskLassoCV(**exact).fit_moments(moments).cv_quality_
    other = ts.MultiTaskLassoCV(cv=splits, **exact).fit(x, **given).cv_quality_
    np.testing.assert_allclose(one.values, other.values, rtol=1e-6)
    np.testing.assert_allclose(one.null_values, other.null_values, rtol=1e-6)
    assert one.widening == other.widening
    assert one.measures == other.measures
    assert one.n_rows.tolist() == other.n_rows.tolist()
    assert (one.unit, one.n_units.tolist(), one.n_tried) == ("folds", [3] * len(one.tasks), 2)
    assert np.all(one.errors > 0)


@pytest.mark.parametrize("kind", ["numbers", "two", "three"])
def test_graph_machines(numbers, kind):
    x, y, task = numbers
    # another order than the labels have
    options = {"Cs": 3, "cv": 3, "graph": np.ones((3, 3)) - np.eye(3), "graph_tasks": ["c", "a", "b"]}
    if kind == "numbers":
        model = ts.GraphSVRCV(**options).fit(x, y, task=task)
        own = [r2_score(y[task == t], model.cv_predictions_[task == t]) for t in "cab"]
        np.testing.assert_allclose(model.cv_quality_.values[:, 0], own)
        assert model.cv_quality_.measures == ("R²", "epsilon-insensitive loss")
    else:
        label = np.digitize(y, np.quantile(y, [0.5] if kind == "two" else [1 / 3, 2 / 3]))
        model = ts.GraphSVCCV(**options).fit(x, label, task=task)
        p = model.cv_predictions_
        guess = p > 0 if kind == "two" else p.argmax(axis=1)
        own = [accuracy_score(label[task == t], guess[task == t]) for t in "cab"]
        np.testing.assert_allclose(model.cv_quality_.values[:, 0], own)
    assert model.cv_quality_.tasks.tolist() == ["c", "a", "b"] == model.tasks_.tolist()
    assert model.cv_quality_.n_tried == 9
