"""What every fitted model shares: one way from rows to answers, for linear, graph and online models alike."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit

import tasksieve as ts
from tasksieve.fitted.state import LinearState
from tasksieve.tasks import count_rows

TASKS = ["a", "b", "c"]
REGRESSORS = [
    ts.MultiTaskLasso(alpha=0.05),
    ts.GraphSVR(ts.graph.complete_graph(3), graph_tasks=TASKS),
    ts.OnlineMultiTaskRegressor(alpha=0.05, gamma=20.0, random_state=0),
]
CLASSIFIERS = [
    ts.MultiTaskLogisticRegression(alpha=0.01),
    ts.GraphSVC(ts.graph.complete_graph(3), graph_tasks=TASKS, loss="logistic"),
    ts.OnlineMultiTaskClassifier(alpha=0.01, gamma=5.0, random_state=0),
]


def rows(rng, n=90, d=5):
    X, task = rng.standard_normal((n, d)), np.repeat(TASKS, n // 3)
    return X, X[:, 0] - 0.5 * X[:, 1] + 0.2 * rng.standard_normal(n), task


@pytest.mark.parametrize("model", REGRESSORS + CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_every_form_of_rows_gives_the_same_answer(model, rng):
    X, y, task = rows(rng)
    classifies = model in CLASSIFIERS
    y = np.where(y > 0, "yes", "no") if classifies else y
    model = copy.deepcopy(model).fit(X, y, task=task)
    scores = X @ model.coef_.T + model.intercept_
    own = scores[np.arange(len(X)), np.searchsorted(TASKS, task)]

    def meaning(values):
        return model.classes_[(values > 0).astype(int)] if classifies else values

    def same(found, expected):
        if classifies:
            assert np.array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, atol=1e-12)

    for form in (X, X.tolist(), scipy.sparse.csr_array(X), scipy.sparse.csc_matrix(X), np.asfortranarray(X)):
        same(model.predict(form, task=task), meaning(own))
        same(model.predict(form), meaning(scores))
    parts = [X[task == t] for t in model.tasks_]
    for t, part in enumerate(model.predict(parts)):
        same(part, meaning(parts[t] @ model.coef_[t] + model.intercept_[t]))
    assert model.predict(X[:0], task=task[:0]).shape == (0,)
    if classifies:
        np.testing.assert_allclose(model.decision_function(X, task=task), own, atol=1e-12)
        np.testing.assert_allclose(model.predict_proba(X)[..., 1], expit(scores), atol=1e-12)
        np.testing.assert_allclose(model.predict_proba(parts)[1][:, 1], expit(model.decision_function(parts)[1]))


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_mistakes_are_named_alike(model, rng):
    X, y, task = rows(rng)
    model = copy.deepcopy(model).fit(X, y, task=task)
    name = type(model).__name__
    with pytest.raises(ValueError, match=f"X has 4 features, but {name} is expecting 5 features as input"):
        model.predict(X[:, :4])
    with pytest.raises(ValueError, match=rf"X\[1\] has 4 features, but {name} is expecting 5"):
        model.predict([X, X[:, :4], X])
    with pytest.raises(ValueError, match="list of 2 matrices, but the model has 3 tasks"):
        model.predict([X, X])
    with pytest.raises(ValueError, match="item t belongs to tasks_"):
        model.predict([X, X, X], task=task)
    with pytest.raises(ValueError, match=r"task 'z' in row 2 .*is unknown"):
        model.predict(X[:2], task=["a", "z"])
    with pytest.raises(ValueError, match="has 3 tasks: pass task"):
        model.score(X, y)


def test_a_path_reads_rows_as_models_do(rng):
    X, y, task = rows(rng)
    path = ts.MultiTaskLasso().path(X, y, task=task, alphas=[0.5, 0.05])
    model = ts.MultiTaskLasso(alpha=0.05).fit(X, y, task=task)
    np.testing.assert_allclose(path.predict(X, 1, task=task), model.predict(X, task=task), atol=1e-3)
    wide = np.hstack([X, X])
    with pytest.raises(ValueError, match="X has 10 features, but RegularizationPath is expecting 5"):
        path.predict(wide, 1, task=task)


def test_more_classes_have_one_more_axis(rng):
    X = rng.standard_normal((7, 3))
    coef, intercept = rng.standard_normal((4, 2, 3)), rng.standard_normal((4, 2))
    state = LinearState(coef, intercept, np.array(["a", "b"]), classes=np.array(list("wxyz")))
    scores = state.scores(X, None)
    np.testing.assert_allclose(scores, np.einsum("nd,ktd->ntk", X, coef) + intercept.T)
    own = state.scores(X, list("abababa"))
    np.testing.assert_allclose(own, scores[np.arange(7), [0, 1, 0, 1, 0, 1, 0]])
    np.testing.assert_allclose(state.scores([X, X[:2]], None)[1], scores[:2, 1])
    assert np.array_equal(state.answers(own, list("abababa")), state.classes[np.argmax(own, axis=-1)])
    np.testing.assert_allclose(state.probabilities(scores).sum(axis=-1), 1.0)


def test_pairs_that_differ_and_one_that_is_not_known():
    state = LinearState(
        np.array([[1.0], [-1.0], [1.0]]),
        np.zeros(3),
        np.array(["a", "b", "c"]),
        classes=[np.array(["no", "yes"]), np.array([3, 5]), None],
    )
    X = np.array([[1.0], [-1.0]])
    assert state.answers(state.scores(X, ["a", "b"]), ["a", "b"]).tolist() == ["yes", 5]
    with pytest.raises(ValueError, match=r"task 'c' had no rows of two classes.*its classes are not known"):
        state.answers(state.scores(X, None), None)


def test_online_predicts_tasks_whose_pair_is_known(rng):
    """A third task that has met one class only does not keep the others from answering."""
    X = rng.standard_normal((40, 3))
    model = ts.OnlineMultiTaskClassifier(alpha=0.001, gamma=5.0)
    model.partial_fit(X, np.where(X[:, 0] > 0, "yes", "no"), task=np.repeat("a", 40))
    model.partial_fit(X, np.where(X[:, 0] > 0, "up", "down"), task=np.repeat("b", 40))
    model.partial_fit(X[:1], ["left"], task=["c"])
    assert set(model.predict(X, task=np.repeat("b", 40)).tolist()) == {"up", "down"}
    assert model.decision_function(X).shape == (40, 3)
    with pytest.raises(ValueError, match="its classes are not known"):
        model.predict(X)
    with pytest.raises(ValueError, match="needs a row of its second class"):
        _ = model.classes_


def test_a_copy_of_an_online_model_is_its_own(rng):
    X, y, task = rows(rng)
    model = ts.OnlineMultiTaskClassifier(alpha=0.01, gamma=5.0).partial_fit(X, y > 0, task=task)
    other = copy.copy(model)
    before = model.coef_
    other.partial_fit(X[:1], [True], task=["new"])
    other.learn_one(X[0], False, task="newer")
    assert model.tasks_.tolist() == TASKS
    assert other.tasks_.tolist() == [*TASKS, "new", "newer"]
    np.testing.assert_array_equal(model.coef_, before)
    model.partial_fit(X, y > 0, task=task)
    assert len(model.coef_) == 3


def test_rows_are_counted_without_reading():
    assert count_rows(np.zeros((3, 2))) == 3
    assert count_rows([[1.0], [2.0]]) == 2
    assert count_rows(["ACGT", "ACGA", "ACGG"]) == 3
    assert count_rows([np.zeros((3, 2)), scipy.sparse.csr_array((4, 2)), [[1.0, 2.0]] * 5][:2]) == [3, 4]
