"""`watch`: everything that takes long tells how far it is, in one way."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.fitted.progress import Lines, reporter

RNG = np.random.default_rng(0)
X, TASK = RNG.standard_normal((60, 8)), np.tile(["a", "b", "c"], 20)
Y = X[:, 0] * (1.0 + (TASK == "b")) + 0.1 * RNG.standard_normal(60)


def test_a_path_tells_of_each_value():
    heard = []
    with ts.watch(heard.append):
        path = ts.MultiTaskLasso().path(X, Y, task=TASK, n_alphas=4)
    assert [(p.label, p.unit, p.done, p.total) for p in heard] == [
        ("MultiTaskLasso", "value", k + 1, 4) for k in range(4)
    ]
    assert [p.detail for p in heard] == [f"{n} features selected" for n in path.n_selected]
    assert all(a.seconds <= b.seconds for a, b in zip(heard[:-1], heard[1:], strict=True))
    ts.MultiTaskLasso().path(X, Y, task=TASK, n_alphas=4)
    assert len(heard) == 4  # the block is over


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_folds_are_heard_in_their_threads(n_jobs):
    heard, together = [], threading.Lock()

    def hear(progress):
        assert together.acquire(blocking=False), "two threads at the same time"
        heard.append((progress.label, progress.done))
        together.release()

    with ts.watch(hear):
        ts.MultiTaskLassoCV([0.5, 0.1, 0.05], cv=3, n_jobs=n_jobs).fit(X, Y, task=TASK)
    labels = [f"MultiTaskLassoCV, fold {f}" for f in (1, 2, 3)] + ["MultiTaskLassoCV, all rows"]
    assert sorted(heard) == sorted((label, k) for label in labels for k in (1, 2, 3))


def test_all_callbacks_are_called_and_verbose_is_one_of_them(capsys):
    outer, inner = [], []
    with ts.watch(outer.append):
        with ts.watch(inner.append):
            ts.MultiTaskLasso(verbose=1).path(X, Y, task=TASK, alphas=[1.0, 0.1])
        assert outer == inner
        ts.MultiTaskLasso().fit(X, Y, task=TASK)
    assert len(inner) == 2
    assert len(outer) == 3
    assert capsys.readouterr().err == f"{inner[-1]}\n"


def test_the_other_models_report_progress_too():
    heard = []
    with ts.watch(lambda progress: heard.append((progress.label, progress.unit, progress.done, progress.total))):
        ts.GraphSVR(ts.graph.complete_graph(3), solver="dual").fit(X, Y, task=TASK)
        assert heard[0][:2] == ("GraphSVR", "step")
        heard.clear()
        ts.OnlineMultiTaskRegressor(0.1, max_iter=2).fit(X, Y, task=TASK)
        assert heard == [("OnlineMultiTaskRegressor", "pass", k, 2) for k in (1, 2)]
        heard.clear()
        ts.OnlineMultiTaskRegressor(0.1).fit_stream([(X[:40], Y[:40], TASK[:40]), (X[40:], Y[40:], TASK[40:])])
        assert heard == [("OnlineMultiTaskRegressor", "row", n, None) for n in (40, 60)]


def test_what_the_callback_raises_ends_the_fit():
    def stop(progress):
        raise LookupError("enough")

    for n_jobs in (None, 2):
        with pytest.raises(LookupError, match="enough"), ts.watch(stop):
            ts.MultiTaskLassoCV([0.5, 0.1], cv=2, n_jobs=n_jobs).fit(X, Y, task=TASK)
    assert reporter("label", "value") is None  # the callback is removed with its block
    with pytest.raises(TypeError, match="callback"), ts.watch("loud"):
        pass


def test_lines_are_few_but_the_last_is_there(capsys):
    for last, expected in ((True, "work: value 9 of 9, 2 features, 0.0 s\n"), (False, "")):
        line = Lines(every=float("inf"), last=last)
        for k in range(9):
            line(ts.Progress("work", "value", k + 1, 9, "2 features"))
        assert capsys.readouterr().err == expected
    Lines(every=0.0)(ts.Progress("work", "row", 5, seconds=1.25))
    assert capsys.readouterr().err == "work: row 5, 1.2 s\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_the_command_line_shows_it(terminal, monkeypatch, capsys, tmp_path):
    from tasksieve.cli import progress
    from tasksieve.runs import RunFolder

    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "BETWEEN_LINES", 0.0)
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: terminal, raising=False)
    for quiet in (True, False):
        display = progress.Display(quiet, RunFolder(tmp_path))
        for done in (1, 2):
            display.show(ts.Progress("work", "value", done, 2, "7 features selected", 3.0))
            display.show(ts.Progress("stream", "row", 1000 * done, None, "", 4.0))
        display.close()
        shown = capsys.readouterr().err
        assert ("work" in shown) == (not quiet)
        assert ("stream" in shown) == (not quiet)
