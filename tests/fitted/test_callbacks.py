"""Callbacks of scikit-learn hear what `watch` hears."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import tasksieve as ts

pytest.importorskip("sklearn.callback")


class Recorder:
    """Keeps the names of tasks that begin and end; asks to stop after some of them."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.events: list[tuple[str, str]] = []
        self.stop_after = stop_after

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name))
        values = [name for kind, name in self.events if kind == "end" and name.startswith("value")]
        return self.stop_after is not None and len(values) >= self.stop_after


@pytest.fixture
def data():
    X, y, task, _ = ts.datasets.make_small_tasks()
    return X, y, task


def test_a_fit_is_a_tree_of_tasks(data):
    X, y, task = data
    heard, watched = Recorder(), []
    model = ts.MultiTaskLassoCV(n_alphas=4, cv=2, early_stopping=False, n_jobs=1).set_callbacks(heard)
    with ts.watch(watched.append):
        model.fit(X, y, task=task)
    assert heard.events[:2] == [("setup", "fit"), ("begin", "fit")]
    assert heard.events[-2:] == [("end", "fit"), ("teardown", "fit")]
    begun = [name for kind, name in heard.events if kind == "begin"]
    ended = [name for kind, name in heard.events if kind == "end"]
    assert sorted(begun) == sorted(ended)
    leaves = [name for name in ended if name.startswith("value ")]
    assert len(leaves) == sum(progress.unit == "value" for progress in watched) > 0
    expected = ts.MultiTaskLassoCV(n_alphas=4, cv=2, early_stopping=False, n_jobs=1).fit(X, y, task=task)
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_clones_and_searches_tell_callbacks_too(data):
    X, y, task = data
    column = np.column_stack([X, np.unique(task, return_inverse=True)[1]])
    heard = Recorder()
    model = clone(ts.MultiTaskLasso(task=-1).set_callbacks(heard))
    GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=ts.TaskKFold(2, shuffle=False, task=-1)).fit(column, y)
    assert [name for kind, name in heard.events if kind == "setup"] == ["fit"] * 5


def test_a_callback_that_asks_to_stop_does_what_ctrl_c_does(data):
    X, y, task = data
    model = ts.MultiTaskLassoCV(n_alphas=20, cv=2, n_jobs=1).set_callbacks(Recorder(stop_after=1))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, task=task)
    assert model._skl_callbacks[0].events[-1] == ("teardown", "fit")


def test_what_is_no_callback_is_refused():
    with pytest.raises(TypeError, match="FitCallback"):
        ts.MultiTaskLasso().set_callbacks(print)


def test_the_progress_bar_of_scikit_learn(data):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    X, y, task = data
    model = ts.MultiTaskLassoCV(n_alphas=5, cv=2).set_callbacks(ProgressBar()).fit(X, y, task=task)
    assert model.alpha_ > 0.0
