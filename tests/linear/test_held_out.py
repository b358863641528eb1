"""Cross-validation by any score, and predictions out of fold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)

import tasksieve as ts
from tasksieve.fitted.folds import make_folds

FEW = {"alphas": [0.3, 0.1, 0.03], "cv": 3, "fold_tol": 1e-7}


@pytest.fixture
def numbers(rng):
    x, task = rng.standard_normal((60, 6)), np.tile(["b", "a"], 30)
    return x, x[:, 0] * np.where(task == "a", 1.0, -2.0) + 0.3 * rng.standard_normal(60), task


@pytest.fixture
def classes(numbers, rng):
    x, y, task = numbers
    return x, np.array(["low", "mid", "top"])[np.digitize(y, [-0.5, 0.5])], task


def by_hand(kind, x, y, task, metric, response, **options):
    """Scores (T, K, F) and predictions out of fold of the second alpha, by a model for each fold."""
    data = kind(**options)._read(x, y, task, None)
    back = np.argsort(data.order, kind="stable")
    scores, predictions = np.empty((2, 3, 3)), None
    for f, (train, test) in enumerate(make_folds(3, y, data).weights):
        learn, held = train[back] > 0, test[back] > 0
        for k, alpha in enumerate(FEW["alphas"]):
            model = kind(alpha=alpha, tol=1e-7, **options).fit(x[learn], y[learn], task=task[learn])
            found = getattr(model, response)(x[held], task=task[held])
            for t, name in enumerate(("a", "b")):
                scores[t, k, f] = metric(y[held][task[held] == name], found[task[held] == name])
            if alpha == 0.1 and found.dtype.kind == "f":
                predictions = np.full((len(y), *found.shape[1:]), np.nan) if predictions is None else predictions
                predictions[held] = found
    return scores, predictions


def test_scores_of_numbers(numbers):
    x, y, task = numbers
    scores, predictions = by_hand(ts.MultiTaskLasso, x, y, task, r2_score, "predict")
    model = ts.MultiTaskLassoCV(scoring="r2", **FEW).fit(x, y, task=task)
    np.testing.assert_allclose(model.cv_scores_, scores.mean(axis=0), rtol=1e-4)
    assert model.alpha_ == 0.1  # the greatest mean
    assert model.cv_measure == "held-out r2 (greater is better)"
    np.testing.assert_allclose(model.cv_task_scores_, scores[:, 1], rtol=1e-4)
    np.testing.assert_allclose(model.cv_predictions_, predictions, atol=1e-4)
    np.testing.assert_allclose(model.path_scores_, model.cv_scores_)

    def mine(estimator, X, y):
        assert X.shape[1] == 6
        return -mean_absolute_error(y, estimator.predict(np.array(X)))

    errors, _ = by_hand(ts.MultiTaskLasso, x, y, task, mean_absolute_error, "predict")
    for scoring in ("neg_mean_absolute_error", mine, ts.task_scorer(mean_absolute_error, greater_is_better=False)):
        model = ts.MultiTaskLassoCV(scoring=scoring, **FEW).fit(x, y, task=task)
        np.testing.assert_allclose(model.cv_scores_, -errors.mean(axis=0), rtol=1e-4)


def test_the_loss_by_itself(numbers):
    x, y, task = numbers
    model = ts.MultiTaskLassoCV(**FEW).fit(x, y, task=task)
    assert model.alpha_ == 0.1
    np.testing.assert_allclose(model.cv_task_scores_.mean(axis=0), model.cv_scores_[1], rtol=1e-12)
    errors = (model.cv_predictions_ - y) ** 2
    assert errors.mean() == pytest.approx(model.cv_scores_[1].mean(), rel=0.05)
    # every form of the data: the same numbers in the form of y
    parts = [x[task == name] for name in ("a", "b")]
    listed = ts.MultiTaskLassoCV(**FEW).fit(parts, [y[task == name] for name in ("a", "b")])
    for name, part in zip(("a", "b"), listed.cv_predictions_, strict=True):
        np.testing.assert_allclose(part, model.cv_predictions_[task == name], atol=1e-10)
    wide = np.stack([y, 2.0 * y], axis=1)
    wide[4, 1] = np.nan
    shared = ts.MultiTaskLassoCV(**FEW).fit(x, wide)
    assert shared.cv_predictions_.shape == (60, 2)
    assert np.argwhere(np.isnan(shared.cv_predictions_)).tolist() == [[4, 1]]
    calibrated = ts.CalibratedMultiTaskLassoCV(**FEW).fit(x, y, task=task)
    chosen = FEW["alphas"].index(calibrated.alpha_)
    np.testing.assert_allclose(calibrated.cv_task_scores_.mean(axis=0), calibrated.cv_scores_[chosen], rtol=1e-12)


def test_rows_held_out_twice_or_never(numbers):
    x, y, task = numbers
    rows = np.arange(60)
    folds = [(rows[20:], rows[:20]), (rows[10:], rows[:10])]
    model = ts.MultiTaskLassoCV(alphas=[0.1], cv=folds, fold_tol=1e-8).fit(x, y, task=task)
    each = [
        ts.MultiTaskLasso(0.1, tol=1e-8).fit(x[train], y[train], task=task[train]).predict(x, task=task)
        for train, _ in folds
    ]
    np.testing.assert_allclose(model.cv_predictions_[:10], (each[0] + each[1])[:10] / 2, atol=1e-6)
    np.testing.assert_allclose(model.cv_predictions_[10:20], each[0][10:20], atol=1e-6)
    assert np.isnan(model.cv_predictions_[20:]).all()


def test_scores_of_two_classes(numbers):
    x, y, task = numbers
    y = np.where(y > 0, "yes", "no")
    kind = ts.MultiTaskLogisticRegression

    def auc(labels, p):
        return roc_auc_score(labels == "yes", p[:, 1])

    scores, predictions = by_hand(kind, x, y, task, auc, "predict_proba")
    for scoring in ("roc_auc", ts.task_scorer(roc_auc_score, response_method="predict_proba")):
        model = ts.MultiTaskLogisticRegressionCV(scoring=scoring, **FEW).fit(x, y, task=task)
        np.testing.assert_allclose(model.cv_scores_, scores.mean(axis=0), rtol=1e-6)
    if model.alpha_ == 0.1:
        np.testing.assert_allclose(model.cv_predictions_, predictions, atol=1e-3)
    assert model.cv_predictions_.shape == (60, 2)
    one_se = ts.MultiTaskLogisticRegressionCV(scoring="accuracy", selection_rule="1se", **FEW).fit(x, y, task=task)
    mean = one_se.cv_scores_.mean(axis=1)
    error = one_se.cv_scores_[mean.argmax()].std(ddof=1) / np.sqrt(3)
    assert one_se.alpha_ == one_se.alphas_[np.flatnonzero(mean >= mean.max() - error)[0]]


@pytest.mark.slow
def test_scores_of_many_classes(classes):
    x, y, task = classes
    kind = ts.MultiTaskClassifier
    scores, _ = by_hand(kind, x, y, task, accuracy_score, "predict")
    model = ts.MultiTaskClassifierCV(scoring="accuracy", **FEW).fit(x, y, task=task)
    np.testing.assert_allclose(model.cv_scores_, scores.mean(axis=0), rtol=1e-9)
    scores, predictions = by_hand(kind, x, y, task, log_loss, "predict_proba")
    model = ts.MultiTaskClassifierCV(scoring="neg_log_loss", **FEW).fit(x, y, task=task)
    np.testing.assert_allclose(model.cv_scores_, -scores.mean(axis=0), rtol=1e-4)
    own = ts.MultiTaskClassifierCV(**FEW).fit(x, y, task=task)
    np.testing.assert_allclose(own.cv_scores_, scores.mean(axis=0), rtol=1e-4)
    assert own.alpha_ == 0.1
    np.testing.assert_allclose(own.cv_predictions_, predictions, atol=1e-3)
    np.testing.assert_allclose(own.cv_predictions_.sum(axis=1), 1.0)
    # class weights are in the loss and not in the score
    weighted = ts.MultiTaskClassifierCV(scoring="balanced_accuracy", class_weight="balanced", **FEW)
    weighted.fit(x, y, task=task)
    scores, _ = by_hand(kind, x, y, task, balanced_accuracy_score, "predict", class_weight="balanced")
    assert np.abs(weighted.cv_scores_ - scores.mean(axis=0)).max() < 0.1  # weights of folds are those of all rows
    owl = ts.MultinomialOWLCV(scoring="accuracy", **FEW).fit(x, y)
    assert owl.cv_predictions_.shape == (60, 3)
    assert owl.cv_task_scores_.shape == (1, 3)
    apart = np.where(task == "a", y, np.char.add("b ", y))
    different = ts.MultiTaskClassifierCV(scoring="accuracy", **FEW).fit(x, apart, task=task)
    assert [part.shape for part in different.cv_predictions_] == [(30, 3), (30, 3)]


def test_scores_that_are_not_defined(numbers):
    x, y, task = numbers
    rare = np.arange(60) == np.flatnonzero(task == "b")[0]  # the only row of its class in task b: never held out
    y = np.where(task == "a", y > 0, rare).astype(int)
    model = ts.MultiTaskLogisticRegressionCV(scoring="roc_auc", **FEW).fit(x, y, task=task)
    assert np.isnan(model.cv_task_scores_[1]).all()
    chosen = FEW["alphas"].index(model.alpha_)
    np.testing.assert_allclose(model.cv_task_scores_[0].mean(), model.cv_scores_[chosen].mean())
    with pytest.raises(ValueError, match="not defined for the held-out rows of any task"):
        ts.MultiTaskLogisticRegressionCV(scoring="roc_auc", **FEW).fit(x[task == "b"], y[task == "b"])


def test_weights_count_in_scores(numbers, rng):
    x, y, task = numbers
    s = rng.uniform(0.1, 3.0, 60)
    seen = []

    def mine(estimator, X, y, sample_weight=None):
        seen.append(sample_weight)
        return r2_score(y, estimator.predict(X), sample_weight=sample_weight)

    by_name = ts.MultiTaskLassoCV(scoring="r2", **FEW).fit(x, y, task=task, sample_weight=s)
    own = ts.MultiTaskLassoCV(scoring=mine, **FEW).fit(x, y, task=task, sample_weight=s)
    np.testing.assert_allclose(own.cv_scores_, by_name.cv_scores_)
    assert all(weights is not None for weights in seen)
    plain = ts.MultiTaskLassoCV(scoring="r2", **FEW).fit(x, y, task=task)
    assert not np.allclose(plain.cv_scores_, by_name.cv_scores_)


def test_with_early_stopping_and_a_checkpoint(numbers, tmp_path):
    x, y, task = numbers
    options = {"scoring": "r2", "cv": 3, "early_stopping": True, "eps": 1e-4}
    model = ts.MultiTaskLassoCV(**options).fit(x, y, task=task)
    assert np.isfinite(model.cv_scores_[: model.n_scored_]).all()
    few = {"alphas": [0.1, 0.01], "cv": 3}
    with ts.checkpoint(tmp_path):
        first = ts.MultiTaskLassoCV(scoring="r2", **few).fit(x, y, task=task)
        again = ts.MultiTaskLassoCV(scoring="r2", **few).fit(x, y, task=task)
        other = ts.MultiTaskLassoCV(**few).fit(x, y, task=task)
    np.testing.assert_array_equal(first.cv_predictions_, again.cv_predictions_)
    np.testing.assert_array_equal(first.cv_scores_, again.cv_scores_)
    assert not np.allclose(other.cv_scores_, first.cv_scores_)


def test_tall_data_have_predictions_too(rng):
    x, task = rng.standard_normal((60_000, 80)), np.arange(60_000) % 2
    y = x[:, 0] * (1 + task) + rng.standard_normal(60_000)
    model = ts.MultiTaskLassoCV(alphas=[0.2, 0.05], cv=2).fit(x, y, task=task)
    assert model.passes_ <= 2.0  # it was read once for everything but this
    error = np.mean([np.mean((model.cv_predictions_ - y)[task == t] ** 2) for t in (0, 1)])
    assert error == pytest.approx(model.cv_scores_[1].mean(), rel=1e-6)
    np.testing.assert_allclose(model.cv_task_scores_.mean(axis=0), model.cv_scores_[1], rtol=1e-6)
    moments = ts.TaskMoments(n_folds=2)
    moments.add(x[:200], y[:200], task=task[:200])
    model.fit_moments(moments)
    assert not hasattr(model, "cv_predictions_")
    with pytest.raises(ValueError, match="needs rows"):
        model.set_params(scoring="r2").fit_moments(moments)


@pytest.mark.parametrize("scoring", ["no such score", 3])
def test_bad_scoring(numbers, scoring):
    x, y, task = numbers
    with pytest.raises(ValueError, match="'scoring' parameter"):
        ts.MultiTaskLassoCV(scoring=scoring).fit(x, y, task=task)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name",
    # of unlike outcomes there is no score in common
    sorted(n for n in ts.__all__ if n.endswith("CV") and not n.startswith(("Graph", "MultiTaskMixed"))),
)
def test_every_cross_validated_model_takes_a_scorer(numbers, name):
    x, y, task = numbers
    options = {"n_alphas": 3, "eps": 0.2, "cv": 2}
    if name == "MultiTaskGroupLassoCV":
        options["feature_groups"] = np.arange(6) // 2
    classifier = any(word in name for word in ("Class", "Logistic", "Multinomial", "Ordinal"))
    scoring = "accuracy" if classifier else "concordance" if "Cox" in name else "r2"
    if "Cox" in name:
        y = ts.survival(np.exp(-y), np.ones(len(y), dtype=bool))
    else:
        y = np.where(y > 0, 1, 0) if classifier or "Poisson" in name else y
    rows = {} if "Multinomial" in name else {"task": task}
    model = getattr(ts, name)(scoring=scoring, **options).fit(x, y, **rows)
    assert model.cv_measure.endswith("(greater is better)")
    assert model.cv_scores_.max() <= 1.0
    means = model.path_scores_.mean(axis=1)
    assert model.alpha_ == model.path_.alphas[means.argmax()]
    np.testing.assert_allclose(model.cv_task_scores_.mean(axis=0), model.path_scores_[means.argmax()], rtol=1e-12)
    assert model.cv_predictions_.shape[0] == len(y)


@pytest.mark.parametrize("holes", [False, True])
def test_few_held_out_rows_are_scored_as_many_are(holes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products with what is not zero, and with whole coefficients: also where a task holds out no row, and where the
    features of a path are read in several parts."""
    from tasksieve.linear import held_out

    rng = np.random.default_rng(7)
    task = np.repeat([0, 1, 2], [9, 12, 14])
    X = rng.standard_normal((len(task), 40))
    y = X[:, :4].sum(axis=1) + rng.standard_normal(len(task))
    folds = [(np.flatnonzero(~own), np.flatnonzero(own)) for own in (rng.random((3, len(task))) < 0.3)]
    if holes:
        folds = [(train, test[task[test] != k]) for k, (train, test) in enumerate(folds)]
    monkeypatch.setattr(held_out, "PACKED_ENTRIES", 400)
    calls = []
    by_rows = held_out._flat_scores
    monkeypatch.setattr(held_out, "_flat_scores", lambda *given: calls.append(1) or by_rows(*given))
    few = ts.MultiTaskLassoCV(cv=folds, n_alphas=12).fit(X, y, task=task)
    assert len(calls) > len(folds)
    monkeypatch.setattr(held_out, "_FEW_ROWS", 0)
    whole = ts.MultiTaskLassoCV(cv=folds, n_alphas=12).fit(X, y, task=task)
    np.testing.assert_allclose(few.path_scores_, whole.path_scores_, rtol=1e-12)
    np.testing.assert_allclose(few.cv_predictions_, whole.cv_predictions_, rtol=1e-9, atol=1e-12)
