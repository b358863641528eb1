"""`task` is a keyword, a label, and not the outcome: what every door says to what looks like a mistake."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from public_surface import public_things

import tasksieve as ts

RNG = np.random.default_rng(7)
X, TASK = RNG.standard_normal((60, 5)), np.repeat([0, 1, 2], 20)
Y = X[:, 0] + TASK + 0.1 * RNG.standard_normal(60)
LASSO = ts.MultiTaskLasso(alpha=0.1).fit(X, Y, task=TASK)
GRAPH = np.ones((3, 3)) - np.eye(3)

KEYWORDS = {"task", "sample_weight", "offset", "w"}
FIRST = {"X", "x", "tables", "rows"}  # what rows are called


def doors() -> dict[str, inspect.Signature]:
    """Public functions and methods that take rows and what is said of them."""
    found = {}
    for name, thing in public_things():
        thing = getattr(thing, "fn", thing)  # of `available_if`
        if inspect.isfunction(thing):
            names = set(inspect.signature(thing).parameters)
            if names & FIRST and names & KEYWORDS:
                found[name] = inspect.signature(thing)
    return found


def test_what_is_said_of_rows_goes_by_name() -> None:
    every = doors()
    assert len(every) > 200
    some = {"MultiTaskLasso.fit", "MultiTaskCoxCV.predict_interval", "grade", "TaskMoments.add", "save_problem"}
    assert some <= set(every)
    for name, signature in every.items():
        for key in KEYWORDS & set(signature.parameters):
            assert signature.parameters[key].kind is inspect.Parameter.KEYWORD_ONLY, (name, key)


def test_scikit_learn_s_order_of_a_splitter_stays() -> None:
    assert [*inspect.signature(ts.TaskKFold.split).parameters][:4] == ["self", "X", "y", "groups"]
    folds = ts.TaskKFold(3, shuffle=False)
    for (one, _), (two, _) in zip(folds.split(X, Y, TASK), folds.split(X, task=TASK), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ts.MultiTaskLasso().fit(X, Y, np.ones(60)), r"MultiTaskLasso.fit takes X and y by position.*task="),
        (lambda: ts.MultiTaskLassoCV().fit(X, Y, TASK), "MultiTaskLassoCV.fit takes X and y"),
        (lambda: LASSO.predict(X, TASK), "MultiTaskLasso.predict takes X by position"),
        (lambda: LASSO.score(X, Y, TASK), "MultiTaskLasso.score takes X and y"),
        (lambda: ts.GraphSVR(GRAPH).fit(X, Y, TASK), "GraphSVR.fit takes X and y"),
        (lambda: ts.StabilitySelection(LASSO).fit(X, Y, TASK), "StabilitySelection.fit takes X and y"),
        (lambda: ts.OnlineMultiTaskRegressor().partial_fit(X, Y, TASK), "positional"),
        (lambda: ts.OnlineMultiTaskRegressor().learn_one({"a": 1.0}, 1.0, 2.0), "positional"),
        (lambda: ts.permutation_test(LASSO, X, Y, TASK), "permutation_test takes model, X and y"),
        (lambda: ts.grade(LASSO.coef_, None, X, Y, TASK, alpha=0.1), "positional"),
        (lambda: ts.TaskMoments().add(X, Y, TASK), "positional"),
        (lambda: ts.task_scorer("r2")(LASSO, X, Y, TASK), "positional"),
        (lambda: ts.by_pattern(X, TASK), "positional"),
        (lambda: ts.FillMissing().fit(X, Y, TASK), "positional"),
    ],
)
def test_a_third_argument_is_refused(call: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


DOORS = {
    "fit": lambda task: ts.MultiTaskLasso().fit(X, TASK, task=task),
    "cross-validation": lambda task: ts.MultiTaskLassoCV(n_alphas=3).fit(X, TASK, task=task),
    "survival": lambda task: ts.MultiTaskCox().fit(X, ts.survival(np.exp(Y), TASK > 0), task=task),
    "mixed": lambda task: ts.MultiTaskMixed().fit(X, Y, task=task),
    "online": lambda task: ts.OnlineMultiTaskRegressor().partial_fit(X, TASK, task=task),
    "one row": lambda task: ts.OnlineMultiTaskRegressor().learn_one({"a": 1.0}, 1.0, task=task[0]),
    "graph": lambda task: ts.GraphSVR(GRAPH).fit(X, TASK, task=task),
    "path": lambda task: ts.MultiTaskLasso().path(X, TASK, task=task),
    "largest alpha": lambda task: ts.MultiTaskLasso().alpha_max(X, TASK, task=task),
    "predict": lambda task: LASSO.predict(X, task=task),
    "score": lambda task: LASSO.score(X, Y, task=task),
    "scorer": lambda task: ts.task_scorer("r2")(LASSO, X, Y, task=task),
    "stability": lambda task: ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=2).fit(X, TASK, task=task),
    "permutations": lambda task: ts.permutation_test(ts.MultiTaskLasso(), X, TASK, task=task),
    "comparison": lambda task: ts.compare(ts.MultiTaskLassoCV(n_alphas=3), X, TASK, task=task),
    "halves": lambda task: ts.split_inference(ts.MultiTaskLasso(), X, TASK, task=task),
    "sums": lambda task: ts.TaskMoments().add(X, TASK, task=task),
    "patterns": lambda task: ts.by_pattern(X, task=task),
    "means": lambda task: ts.FillMissing().fit(X, task=task),
    "folds": lambda task: next(ts.TaskKFold(3, shuffle=False).split(X, groups=task)),
    "grading": lambda task: ts.grade(LASSO.coef_, None, X, Y, task=task, alpha=0.1, loss="squared", penalty="l21"),
    "a column": lambda task: ts.MultiTaskLasso(task="outcome").fit(pd.DataFrame(X).assign(outcome=task), TASK),
}


@pytest.mark.parametrize("door", DOORS)
def test_the_outcome_is_no_task(door: str) -> None:
    with pytest.raises(ValueError, match=r"task is -?\d.*is this the outcome"):
        DOORS[door](Y)


def test_what_is_a_label_stays_one() -> None:
    expected = LASSO.coef_
    kinds = [TASK.astype(float), TASK.astype(np.float32), TASK.astype(float).astype(object), TASK / 2.0]
    for task in (*kinds[:3], [str(label) for label in kinds[3]], pd.Series(TASK, dtype="Float64")):
        np.testing.assert_array_equal(ts.MultiTaskLasso(alpha=0.1).fit(X, Y, task=task).coef_, expected)
    for task in (kinds[3], kinds[3].astype(object), np.where(TASK == 1, np.inf, TASK), pd.Series(kinds[3])):
        with pytest.raises(ValueError, match=r"task is (0.5|inf) in row 21 .*is this the outcome"):
            ts.MultiTaskLasso(alpha=0.1).fit(X, Y, task=task)
    with pytest.raises(ValueError, match="task has no label in row 1 "):
        ts.MultiTaskLasso(alpha=0.1).fit(X, Y, task=np.where(TASK == 0, np.nan, TASK))


def told(call: Any) -> list[ts.ManyTasksWarning]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [warning.message for warning in found if isinstance(warning.message, ts.ManyTasksWarning)]


def test_more_tasks_than_half_the_rows_are_told() -> None:
    pairs = np.arange(60) // 2  # 30 tasks of 60 rows
    more = np.where(np.arange(60) == 1, 99, pairs)
    graph = ts.GraphSVR(np.ones((31, 31)) - np.eye(31))
    for model in (ts.MultiTaskLasso(), ts.MultiTaskElasticNetCV(n_alphas=2, cv=2), ts.MultiTaskMixed(), graph):
        warning, *again = told(lambda model=model: model.fit(X, Y, task=more))
        assert (warning.n_tasks, warning.n_rows, again) == (31, 60, [])
        assert "31 labels in 60 rows" in str(warning)
        assert "is it the outcome" in str(warning)
    for quiet in (
        lambda: ts.MultiTaskLasso().fit(X, Y, task=pairs),
        lambda: ts.MultiTaskLasso().fit(X[:2], Y[:2]),
        lambda: ts.MultiTaskLasso().fit([X[:1], X[1:2], X[2:3]], [Y[:1], Y[1:2], Y[2:3]]),
        lambda: ts.MultiTaskLasso().fit(X[:4], np.tile(Y[:4, None], 9)),
        lambda: LASSO.predict(X[::20], task=TASK[::20]),
        lambda: LASSO.score(X[::10], Y[::10], task=TASK[::10]),
        lambda: ts.OnlineMultiTaskRegressor().partial_fit(X[::20], Y[::20], task=TASK[::20]),
        lambda: ts.MultiTaskLasso().fit(ts.by_pattern(np.where(np.eye(60, 5) > 0, np.nan, X), task=TASK), Y),
    ):
        assert told(quiet) == []
    moments = ts.TaskMoments().add(X, Y, task=more)
    assert [w.n_tasks for w in told(lambda: ts.MultiTaskLasso().fit_moments(moments))] == [31]
    rows = ts.by_pattern(np.where(np.eye(60, 5) > 0, np.nan, X), task=more)
    assert [w.n_tasks for w in told(lambda: ts.MultiTaskLasso().fit(rows, Y))] == [31]
