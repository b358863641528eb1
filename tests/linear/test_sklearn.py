"""A citizen of scikit-learn: its checks, its drop-in, pipelines, searches, metadata routing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import MultiTaskElasticNet, MultiTaskLasso
from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import tasksieve as ts

# All checks of these in the quick run, some of those of `SOME`; in the slow one variants, and models that differ from
# these by their loss or by the choice of alpha alone.
QUICK = [
    ts.MultiTaskLasso(),
    ts.MultiTaskLogisticRegression(),
    ts.OnlineMultiTaskClassifier(),
    ts.MultiTaskLassoCV(n_alphas=10),
]
SOME = [
    ts.CalibratedMultiTaskLasso(),
    ts.MultiTaskPoisson(alpha=0.1),
    ts.MultiTaskSparseGroupLasso(),
    ts.OnlineMultiTaskRegressor(),
    ts.MultiTaskClassifier(alpha=0.01, penalty="l11", class_weight="balanced"),
    ts.MultiTaskOWL(),
    ts.MultinomialOWL(alpha=0.01),
    ts.MultiTaskOrdinal(alpha=0.01),
]
OTHERS = [
    ts.CalibratedMultiTaskLasso(alpha="universal", l2=0.01),
    ts.CalibratedMultiTaskLassoCV(n_alphas=10, tol=1e-10),  # a check compares zeros to 1e-9
    ts.MultiTaskElasticNet(),
    ts.MultiTaskHuber(),
    ts.MultiTaskQuantile(alpha=0.1),
    ts.MultiTaskHuberCV(n_alphas=5, tol=1e-10),  # a check compares predictions to 1e-7
    ts.MultiTaskPoissonCV(n_alphas=5),
    ts.MultiTaskLogisticRegression(alpha=0.01),  # at its default alpha a classifier of standardised data is constant
    ts.MultiTaskSparseGroupLasso(alpha=0.01, loss="logistic"),
    ts.MultiTaskSparseGroupLassoCV(n_alphas=10),
    ts.MultiTaskSparseGroupLassoCV(n_alphas=5, cv=2, tol=1e-10, loss="logistic"),
    ts.OnlineMultiTaskRegressor(gamma=1e6),
    ts.MultiTaskElasticNetCV(n_alphas=10),
    ts.MultiTaskLogisticRegressionCV(n_alphas=5, cv=2, tol=1e-10),  # a check compares predictions to 1e-7
    ts.MultiTaskClassifierCV(n_alphas=5, cv=2, tol=1e-10),
    ts.MultiTaskOWLCV(n_alphas=5, cv=2, tol=1e-10),  # a check compares predictions to 1e-7
    ts.MultinomialOWLCV(n_alphas=3, eps=0.3, cv=2, tol=1e-3),
    ts.MultiTaskOrdinalCV(n_alphas=4, cv=2, tol=1e-10),
]

# name of the check -> why it cannot pass
ONLINE = "an online model takes a row of weight 2 in one step, and its equal twice in two"
COUNTS = "its labels are negative, which counts are not"
ORDERED = "the score of ordered classes is one number, to be compared with thresholds, not one for each class"
UNIVERSAL = "the universal alpha counts independent rows: a row of weight 2 is one, its equal twice are two"


def expected_failures(estimator):
    names = {}
    if isinstance(estimator, ts.MultiTaskPoisson | ts.MultiTaskPoissonCV):
        names["check_regressor_multioutput"] = COUNTS
    if isinstance(estimator, ts.CalibratedMultiTaskLasso) and estimator.alpha == "universal":
        names["check_sample_weight_equivalence_on_dense_data"] = UNIVERSAL
        names["check_sample_weight_equivalence_on_sparse_data"] = UNIVERSAL
    if isinstance(estimator, ts.MultiTaskOrdinal | ts.MultiTaskOrdinalCV):
        names["check_classifiers_train"] = ORDERED
        names["check_classifiers_classes"] = ORDERED
    if isinstance(estimator, ts.OnlineMultiTaskRegressor | ts.OnlineMultiTaskClassifier):
        names["check_sample_weight_equivalence_on_dense_data"] = ONLINE
        names["check_sample_weight_equivalence_on_sparse_data"] = ONLINE
    return names


@parametrize_with_checks(QUICK, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.sampled(6)
@parametrize_with_checks(SOME, expected_failed_checks=expected_failures)
def test_some_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHERS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks_of_others(estimator, check):
    check(estimator)


# --- drop-in -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (ts.MultiTaskLasso(), MultiTaskLasso()),
        (ts.MultiTaskElasticNet(), MultiTaskElasticNet()),
        (ts.MultiTaskElasticNet(l1_ratio=0.9), MultiTaskElasticNet(l1_ratio=0.9)),
    ],
    ids=str,
)
def test_shared_matrix_equals_scikit_learn(ours, theirs, fit_intercept, alpha, rng):
    X = rng.standard_normal((40, 60)) + 2.0
    Y = X[:, :4] @ rng.standard_normal((4, 5)) + rng.standard_normal((40, 5))
    common = {"alpha": alpha, "fit_intercept": fit_intercept, "selection": "random", "random_state": 0, "copy_X": True}
    one = clone(ours).set_params(tol=1e-12, **common).fit(X, Y)
    other = clone(theirs).set_params(tol=1e-12, max_iter=1_000_000, **common).fit(X, Y)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e-6)
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-5)
    assert one.score(X, Y) == pytest.approx(other.score(X, Y), abs=1e-6)
    assert one.coef_.shape == other.coef_.shape


def test_parameters_of_scikit_learn_are_known():
    for ours, theirs in ((ts.MultiTaskLasso, MultiTaskLasso), (ts.MultiTaskElasticNet, MultiTaskElasticNet)):
        assert set(theirs().get_params()) <= set(ours().get_params())
    for Model in (ts.MultiTaskLassoCV, ts.MultiTaskElasticNetCV):
        assert {"copy_X", "selection", "random_state"} <= set(Model().get_params())


# --- pipelines, searches, routing ------------------------------------------------------------------------------


@pytest.fixture
def data(rng):
    task = rng.permutation(np.repeat(["a", "b", "c"], [30, 40, 20]))
    X = 5 * rng.standard_normal((90, 8)) + 1
    W = np.zeros((3, 8))
    W[:, :2] = [[1, 2], [-1, 1], [2, -2]]
    y = np.einsum("ij,ij->i", X, W[np.searchsorted(["a", "b", "c"], task)]) + rng.standard_normal(90)
    return X, y, task


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def routed(model):
    model.set_fit_request(task=True).set_score_request(task=True)
    return model.set_predict_request(task=True)


@pytest.mark.usefixtures("routing")
def test_grid_search_with_tasks(data):
    X, y, task = data
    search = GridSearchCV(routed(ts.MultiTaskLasso()), {"alpha": [0.05, 50.0]}, cv=ts.TaskKFold(3, shuffle=False))
    search.fit(X, y, task=task)
    assert search.best_params_ == {"alpha": 0.05}
    assert search.best_score_ > 0.9
    assert search.best_estimator_.predict(X, task=task).shape == (90,)
    assert search.score(X, y, task=task) == pytest.approx(search.best_estimator_.score(X, y, task=task))
    by_groups = GridSearchCV(routed(ts.MultiTaskLasso()), {"alpha": [0.05, 50.0]}, cv=ts.TaskKFold(3, shuffle=False))
    by_groups.fit(X, y, task=task, groups=task)
    assert by_groups.best_score_ == search.best_score_
    plain = GridSearchCV(routed(ts.MultiTaskLasso()), {"alpha": [0.05]}, cv=3).fit(X, y, task=task)
    assert plain.best_score_ > 0.9


@pytest.mark.usefixtures("routing")
def test_cross_validate_with_tasks_and_weights(data):
    X, y, task = data
    model = ts.MultiTaskLasso(0.05).set_fit_request(task=True, sample_weight=True)
    model.set_score_request(task=True, sample_weight=True)
    weights = np.linspace(0.5, 2.0, 90)
    params = {"task": task, "sample_weight": weights}
    results = cross_validate(model, X, y, params=params, cv=ts.TaskKFold(3, shuffle=False))
    folds = list(ts.TaskKFold(3, shuffle=False).split(X, groups=task))
    for (train, test), score in zip(folds, results["test_score"], strict=True):
        fitted = clone(model).fit(X[train], y[train], task=task[train], sample_weight=weights[train])
        assert score == pytest.approx(fitted.score(X[test], y[test], task=task[test], sample_weight=weights[test]))


@pytest.mark.usefixtures("routing")
def test_classification_search(data):
    X, y, task = data
    folds = ts.TaskKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(routed(ts.MultiTaskLogisticRegression()), {"alpha": [0.01, 10.0]}, cv=folds)
    search.fit(X, y > 0, task=task)
    assert search.best_params_ == {"alpha": 0.01}


@pytest.mark.usefixtures("routing")
def test_pipeline_routes_the_task(data):
    X, y, task = data
    pipe = make_pipeline(StandardScaler(), routed(ts.MultiTaskLasso(0.1)))
    pipe.fit(X, y, task=task)
    assert pipe.predict(X, task=task).shape == (90,)
    assert pipe.score(X, y, task=task) > 0.9
    search = GridSearchCV(pipe, {"multitasklasso__alpha": [0.1, 100.0]}, cv=ts.TaskKFold(3, shuffle=False))
    search.fit(X, y, task=task)
    assert search.best_params_ == {"multitasklasso__alpha": 0.1}


def test_pipeline_without_routing(data):
    X, y, task = data
    pipe = make_pipeline(StandardScaler(), ts.MultiTaskLasso(0.1))
    pipe.fit(X, y, multitasklasso__task=task)
    assert pipe[-1].tasks_.tolist() == ["a", "b", "c"]
    assert pipe.predict(X).shape == (90, 3)


def test_selection_as_a_step(data):
    X, y, task = data
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)])
    selector = ts.MultiTaskLasso(3.0).set_output(transform="pandas")
    selected = selector.fit(frame, y, task=task).transform(frame)
    assert list(selected.columns) == ["x0", "x1"]
    assert selector.get_feature_names_out().tolist() == ["x0", "x1"]
    pipe = make_pipeline(StandardScaler(), ts.MultiTaskLasso(0.5), ts.MultiTaskLasso(0.01))
    pipe.fit(X, np.stack([y, -y], axis=1))
    assert pipe[-1].n_features_in_ < 8
    assert pipe.predict(X).shape == (90, 2)


# --- scorers -----------------------------------------------------------------------------------------------------


def test_task_scorer(data):
    X, y, task = data
    model = ts.MultiTaskLasso(0.1).fit(X, y, task=task)
    scorer = ts.task_scorer(mean_absolute_error, greater_is_better=False)
    prediction = model.predict(X, task=task)
    expected = -np.mean([mean_absolute_error(y[task == t], prediction[task == t]) for t in "abc"])
    assert scorer(model, X, y, task=task) == pytest.approx(expected)
    parts = [X[task == t] for t in "abc"], [y[task == t] for t in "abc"]
    assert scorer(model, *parts) == pytest.approx(expected)
    weights = np.linspace(0, 1, 90)
    weighted = -np.mean(
        [mean_absolute_error(y[task == t], prediction[task == t], sample_weight=weights[task == t]) for t in "abc"]
    )
    assert scorer(model, X, y, task=task, sample_weight=weights) == pytest.approx(weighted)
    shared = ts.MultiTaskLasso(0.1).fit(X, np.stack([y, 2 * y], axis=1))
    assert scorer(shared, X, np.stack([y, 2 * y], axis=1)) < 0
    single = ts.MultiTaskLasso(0.1).fit(X, y)
    assert scorer(single, X, y) == pytest.approx(-mean_absolute_error(y, single.predict(X)))
    assert "mean_absolute_error" in repr(scorer)
    with pytest.raises(ValueError, match="response_method"):
        ts.task_scorer(mean_absolute_error, response_method="transform")


def test_task_scorer_of_probabilities(data):
    X, y, task = data
    labels = np.where(y > 0, "yes", "no")
    model = ts.MultiTaskLogisticRegression(0.05).fit(X, labels, task=task)
    auc = ts.task_scorer(roc_auc_score, response_method="decision_function")
    same = ts.task_scorer(roc_auc_score, response_method="predict_proba")
    assert auc(model, X, labels, task=task) == same(model, X, labels, task=task) > 0.9
    loss = ts.task_scorer(log_loss, greater_is_better=False, response_method="predict_proba", labels=["no", "yes"])
    assert loss(model, X, labels, task=task) < 0


@pytest.mark.usefixtures("routing")
def test_task_scorer_under_routing(data):
    X, y, task = data
    scorer = ts.task_scorer(mean_absolute_error, greater_is_better=False)
    model = ts.MultiTaskLasso().set_fit_request(task=True)
    search = GridSearchCV(model, {"alpha": [0.05, 50.0]}, scoring=scorer, cv=ts.TaskKFold(3, shuffle=False))
    search.fit(X, y, task=task)
    assert search.best_params_ == {"alpha": 0.05}
    several = cross_validate(
        ts.MultiTaskLasso(0.1).set_fit_request(task=True),
        X,
        y,
        params={"task": task},
        scoring={"mae": scorer, "mae again": ts.task_scorer(mean_absolute_error)},
        cv=ts.TaskKFold(3, shuffle=False),
    )
    np.testing.assert_allclose(several["test_mae"], -several["test_mae again"])
    weighted = ts.task_scorer(mean_absolute_error).set_score_request(task=True, sample_weight=True)
    model = ts.MultiTaskLasso(0.1).set_fit_request(task=True, sample_weight=False)
    params = {"task": task, "sample_weight": np.linspace(0.5, 1, 90)}
    results = cross_validate(model, X, y, params=params, scoring=weighted, cv=ts.TaskKFold(3, shuffle=False))
    assert np.all(results["test_score"] > 0)


def test_cross_validated_estimators_route_too(data):
    X, y, task = data
    with sklearn.config_context(enable_metadata_routing=True):
        model = routed(ts.MultiTaskLassoCV(n_alphas=5))
        results = cross_validate(model, X, y, params={"task": task}, cv=ts.TaskKFold(3, shuffle=False))
    assert np.all(results["test_score"] > 0.9)
