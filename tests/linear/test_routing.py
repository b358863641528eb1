"""Tasks and weights through scikit-learn's tools, with metadata routing and without: each beside fits by hand."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import tasksieve as ts

Array = np.ndarray[Any, Any]
ALPHAS = [0.05, 0.5, 5.0]


@pytest.fixture(scope="module")
def rows() -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(11)
    task = rng.permutation(np.repeat(["a", "b", "c"], [30, 40, 20]))
    x = 3.0 * rng.standard_normal((90, 6)) + 1.0
    coef = {"a": [1.0, 2.0], "b": [-1.0, 1.0], "c": [2.0, -2.0]}
    y = np.array([own @ coef[t] for own, t in zip(x[:, :2], task, strict=True)]) + rng.standard_normal(90)
    return x, y, task, rng.uniform(0.2, 3.0, 90)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


FOLDS = KFold(3, shuffle=True, random_state=0)


def asking(model: Any) -> Any:
    """The model with requests for tasks and weights."""
    model.set_fit_request(task=True, sample_weight=True).set_score_request(task=True, sample_weight=True)
    return model.set_predict_request(task=True)


def by_hand(model: Any, rows: tuple[Array, ...], folds: Any = FOLDS) -> tuple[list[float], Array]:
    """Held-out scores with tasks and weights, and held-out predictions, fold by fold."""
    x, y, task, w = rows
    scores, predicted = [], np.empty(len(y))
    for train, test in folds.split(x, groups=task if isinstance(folds, ts.TaskKFold) else None):
        fitted = clone(model).fit(x[train], y[train], task=task[train], sample_weight=w[train])
        scores.append(fitted.score(x[test], y[test], task=task[test], sample_weight=w[test]))
        predicted[test] = fitted.predict(x[test], task=task[test])
    return scores, predicted


class Scaled:
    """`StandardScaler` and a model, by hand."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, x: Array, y: Array, **given: Any) -> Scaled:
        self.scaler = StandardScaler().fit(x)
        self.fitted = clone(self.model).fit(self.scaler.transform(x), y, **given)
        return self

    def __sklearn_clone__(self) -> Scaled:
        return Scaled(self.model)

    def predict(self, x: Array, **given: Any) -> Array:
        return self.fitted.predict(self.scaler.transform(x), **given)

    def score(self, x: Array, y: Array, **given: Any) -> float:
        return self.fitted.score(self.scaler.transform(x), y, **given)


MODELS = [
    ts.MultiTaskLasso(0.1, tol=1e-10),
    ts.MultiTaskElasticNetCV(n_alphas=4, eps=0.1, cv=3, tol=1e-10),
    ts.GraphSVR(np.ones((3, 3)) - np.eye(3), graph_tasks=["a", "b", "c"], loss="squared", tol=1e-8),
    ts.OnlineMultiTaskRegressor(0.01, gamma=50.0, max_iter=2, random_state=0),
]


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_cross_validate_with_routing(rows: tuple[Array, ...], model: Any) -> None:
    x, y, task, w = rows
    params = {"task": task, "sample_weight": w}
    found = cross_validate(asking(clone(model)), x, y, params=params, cv=FOLDS)
    expected = by_hand(model, rows)[0]
    np.testing.assert_allclose(found["test_score"], expected, rtol=1e-9)
    bare, _ = by_hand(model, (x, y, task, np.ones(len(y))))
    assert not np.allclose(expected, bare)  # weights count
    folds = ts.TaskKFold(3, shuffle=False)
    within = cross_validate(asking(clone(model)), x, y, params=params, cv=folds)
    np.testing.assert_allclose(within["test_score"], by_hand(model, rows, folds)[0], rtol=1e-9)


@pytest.mark.usefixtures("routing")
def test_a_request_that_is_not_made_is_told(rows: tuple[Array, ...]) -> None:
    x, y, task, _ = rows
    with pytest.raises(ValueError, match="set_fit_request"):
        cross_validate(ts.MultiTaskLasso(0.1), x, y, params={"task": task}, cv=FOLDS)


@pytest.mark.usefixtures("routing")
def test_grid_search_with_routing(rows: tuple[Array, ...]) -> None:
    x, y, task, w = rows
    search = GridSearchCV(asking(ts.MultiTaskLasso(tol=1e-10)), {"alpha": ALPHAS}, cv=FOLDS)
    search.fit(x, y, task=task, sample_weight=w)
    means = [np.mean(by_hand(ts.MultiTaskLasso(alpha, tol=1e-10), rows)[0]) for alpha in ALPHAS]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means, rtol=1e-9)
    assert search.best_params_ == {"alpha": ALPHAS[int(np.argmax(means))]}
    again = ts.MultiTaskLasso(search.best_params_["alpha"], tol=1e-10).fit(x, y, task=task, sample_weight=w)
    np.testing.assert_array_equal(search.best_estimator_.coef_, again.coef_)
    np.testing.assert_array_equal(search.predict(x), again.predict(x))
    np.testing.assert_array_equal(search.best_estimator_.predict(x, task=task), again.predict(x, task=task))
    score = again.score(x, y, task=task, sample_weight=w)
    assert search.score(x, y, task=task, sample_weight=w) == pytest.approx(score)
    scorer = ts.task_scorer("neg_mean_absolute_error").set_score_request(task=True, sample_weight=True)
    search = GridSearchCV(asking(ts.MultiTaskLasso(0.1, tol=1e-10)), {"alpha": [0.1]}, cv=FOLDS, scoring=scorer)
    search.fit(x, y, task=task, sample_weight=w)
    expected = []
    for train, test in FOLDS.split(x):
        fitted = ts.MultiTaskLasso(0.1, tol=1e-10).fit(x[train], y[train], task=task[train], sample_weight=w[train])
        off = np.abs(y[test] - fitted.predict(x[test], task=task[test]))
        expected.append(-np.mean([np.average(off[task[test] == t], weights=w[test][task[test] == t]) for t in "abc"]))
    assert search.best_score_ == pytest.approx(np.mean(expected), rel=1e-9)


@pytest.mark.usefixtures("routing")
def test_pipelines_with_routing(rows: tuple[Array, ...]) -> None:
    x, y, task, w = rows
    model = ts.MultiTaskLasso(0.1, tol=1e-10)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipe = make_pipeline(scaler, asking(clone(model))).fit(x, y, task=task, sample_weight=w)
    hand = Scaled(model).fit(x, y, task=task, sample_weight=w)
    np.testing.assert_array_equal(pipe.predict(x, task=task), hand.predict(x, task=task))
    assert pipe.predict(x, task=task).shape == (90,)
    score = pipe.score(x, y, task=task, sample_weight=w)
    assert score == pytest.approx(hand.score(x, y, task=task, sample_weight=w))
    found = cross_validate(pipe, x, y, params={"task": task, "sample_weight": w}, cv=FOLDS)
    np.testing.assert_allclose(found["test_score"], by_hand(Scaled(model), rows)[0], rtol=1e-9)
    holed = np.where(np.random.default_rng(0).random(x.shape) < 0.1, np.nan, x)
    filling = ts.FillMissing().set_fit_request(task=True).set_transform_request(task=True)
    whole = make_pipeline(filling, asking(clone(model))).fit(holed, y, task=task, sample_weight=w)
    filled = ts.FillMissing().fit_transform(holed, task=task)
    again = model.fit(filled, y, task=task, sample_weight=w)
    np.testing.assert_array_equal(whole.predict(holed, task=task), again.predict(filled, task=task))


def test_pipelines_without_routing(rows: tuple[Array, ...]) -> None:
    x, y, task, w = rows
    model = ts.MultiTaskLasso(0.1, tol=1e-10)
    pipe = Pipeline([("scaler", StandardScaler()), ("model", clone(model))])
    pipe.fit(x, y, model__task=task, model__sample_weight=w)
    hand = Scaled(model).fit(x, y, task=task, sample_weight=w)
    np.testing.assert_array_equal(pipe[-1].coef_, hand.fitted.coef_)
    np.testing.assert_array_equal(pipe.predict(x, task=task), hand.predict(x, task=task))


def test_a_column_of_tasks_needs_no_routing(rows: tuple[Array, ...]) -> None:
    """Weights go to `fit` as parameters of it, tasks are where the table has them: `score` and `predict` know both."""
    x, y, task, w = rows
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(6)]).assign(site=task)
    model = ts.MultiTaskLasso(0.1, tol=1e-10)
    knows = clone(model).set_params(task="site")
    found = cross_val_predict(knows, frame, y, params={"sample_weight": w}, cv=FOLDS)
    np.testing.assert_array_equal(found, by_hand(model, rows)[1])
    scores = cross_validate(knows, frame, y, params={"sample_weight": w}, cv=FOLDS)["test_score"]
    expected = []
    for train, test in FOLDS.split(x):
        fitted = clone(model).fit(x[train], y[train], task=task[train], sample_weight=w[train])
        expected.append(fitted.score(x[test], y[test], task=task[test]))  # weights reach `fit` alone
    np.testing.assert_allclose(scores, expected, rtol=1e-9)
    search = GridSearchCV(knows, {"alpha": ALPHAS}, cv=FOLDS).fit(frame, y, sample_weight=w)
    again = clone(model).set_params(**search.best_params_).fit(x, y, task=task, sample_weight=w)
    np.testing.assert_array_equal(search.predict(frame), again.predict(x, task=task))


def test_without_routing_scores_ask_for_the_tasks(rows: tuple[Array, ...]) -> None:
    x, y, task, w = rows
    params = {"task": task, "sample_weight": w}
    with pytest.raises(ValueError, match="The model has 3 tasks: pass task"):
        cross_validate(ts.MultiTaskLasso(0.1), x, y, params=params, cv=FOLDS, error_score="raise")
    with pytest.raises(ValueError, match="The model has 3 tasks: pass task"):
        GridSearchCV(ts.MultiTaskLasso(), {"alpha": ALPHAS}, cv=FOLDS, error_score="raise").fit(x, y, **params)


@pytest.mark.parametrize("routed", [False, True])
@pytest.mark.parametrize("piped", [False, True])
def test_predictions_of_all_tasks_are_told(rows: tuple[Array, ...], routed: bool, piped: bool) -> None:
    """scikit-learn hands nothing to what predicts, whatever was requested."""
    x, y, task, _ = rows
    model = ts.MultiTaskLasso(0.1, tol=1e-10)
    with sklearn.config_context(enable_metadata_routing=routed):
        if routed:
            model = model.set_fit_request(task=True).set_predict_request(task=True)
        name = "multitasklasso__task" if piped and not routed else "task"
        tool = make_pipeline(StandardScaler(), model) if piped else model
        with pytest.warns(UserWarning, match="gives task to fit and not to what predicts"):
            found = cross_val_predict(tool, x, y, params={name: task}, cv=FOLDS)
    own = found[np.arange(90), np.searchsorted(["a", "b", "c"], task)]
    by = Scaled(ts.MultiTaskLasso(0.1, tol=1e-10)) if piped else ts.MultiTaskLasso(0.1, tol=1e-10)
    np.testing.assert_allclose(own, by_hand(by, (x, y, task, np.ones(90)))[1], rtol=1e-9)


def test_predictions_of_several_targets_are_not(rows: tuple[Array, ...]) -> None:
    x, y, task, _ = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cross_val_predict(ts.MultiTaskLasso(0.1), x, np.stack([y, -y], axis=1), cv=FOLDS).shape == (90, 2)
        model = ts.MultiTaskLasso(0.1).fit(x, y, task=task)
        assert model.predict(x).shape == (90, 3)
