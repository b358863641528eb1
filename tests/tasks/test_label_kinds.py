"""Class labels are of one kind; task and groups are labels, not names of columns."""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tasksieve as ts

X = np.random.default_rng(0).standard_normal((12, 3))
TASK = np.repeat([0, 1], 6)
CLASSIFIERS = [
    ts.MultiTaskLogisticRegression(0.1),
    ts.MultiTaskClassifier(alpha=0.1),
    ts.GraphSVC(),
    ts.OnlineMultiTaskClassifier(),
]


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_mixed_labels_are_refused(model: Any) -> None:
    mixed = ["a", "b"] * 4 + [1, 2] * 2
    words = "y mixes labels of different kinds: 'a' in row 1 (row 1 is the first) is text, 1 in row 9"
    for y in (mixed, np.array(mixed, dtype=object), pd.Series(mixed, dtype=object)):
        with pytest.raises(ValueError, match=re.escape(words)):
            model.fit(X, y, task=TASK)


def test_tasks_with_words_and_with_numbers_are_refused() -> None:
    words = "y mixes labels of different kinds: 'a' in y[0], row 1 (row 1 is the first) is text, 1 in y[1], row 1"
    with pytest.raises(ValueError, match=re.escape(words)):
        ts.MultiTaskLogisticRegression(0.1).fit([X[:6], X[6:]], [["a", "b"] * 3, [1, 2] * 3])


def test_missing_labels_are_of_no_kind() -> None:
    model = ts.MultiTaskLogisticRegression(0.1).fit(X, ["a", "b", float("nan"), None, "a", "b"] * 2, task=TASK)
    assert model.classes_.tolist() == ["a", "b"]


def test_a_stream_of_labels_of_different_kinds() -> None:
    model = ts.OnlineMultiTaskClassifier().partial_fit(X, ["a", "b"] * 6, task=TASK)
    with pytest.raises(ValueError, match="y mixes labels of different kinds: 1 beside 'a'"):
        model.partial_fit(X, [1, 2] * 6, task=TASK + 2)
    model.partial_fit(X, ["a", "b"] * 6, task=TASK)
    assert model.classes_.tolist() == ["a", "b"]


def test_targets_that_are_no_numbers_are_named() -> None:
    y: Any = np.arange(12.0).astype(object)
    y[4] = "many"
    with pytest.raises(ValueError, match=re.escape("y must hold numbers: row 5 (row 1 is the first) is 'many'")):
        ts.MultiTaskLasso().fit(X, y)
    with pytest.raises(ValueError, match="y holds dates"):
        ts.MultiTaskLasso().fit(X, np.array(["2024-01-31"] * 12, dtype="datetime64[D]"))
    with pytest.raises(ValueError, match="y must hold numbers: row 1"):
        ts.MultiTaskLasso().fit(X, [datetime.date(2024, 1, 31)] * 12)


@pytest.mark.parametrize("name", ["task", "groups"])
def test_the_name_of_a_column_is_explained(name: str) -> None:
    given = {"task": TASK, name: "region"}
    with pytest.raises(ValueError, match=re.escape(f"{name}='region' is a word")) as refused:
        ts.MultiTaskLassoCV(cv=2).fit(X, X[:, 0], **given)
    assert f"{name}=frame['region']" in str(refused.value)
    with pytest.raises(ValueError, match=f"{name} must have one label per row of X") as refused:
        ts.MultiTaskLassoCV(cv=2).fit(X, X[:, 0], **{"task": TASK, name: [1, 2]})
    assert {"task": "which task each row", "groups": "held out together"}[name] in str(refused.value)


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_dates_in_x_are_refused_by_column(unit: str) -> None:
    days = np.array(["2024-01-31"] * 12, dtype=f"datetime64[{unit}]")
    frame = pd.DataFrame({"age": X[:, 0], "seen": days})
    mixed = frame.astype(object)
    cases = [(frame, "'seen'"), (frame[["seen"]], "'seen'"), (mixed, "'seen'"), (mixed.to_numpy(), "X[:, 1]")]
    for given, column in cases:
        with pytest.raises(ValueError, match=re.escape(f"X: column {column} holds dates: 2024-01-31")):
            ts.MultiTaskLasso().fit(given, X[:, 0])
    with pytest.raises(TypeError, match=r"X must hold numbers: .* not 'set'"):  # the type that scikit-learn asks for
        ts.MultiTaskLasso().fit(np.array([[set()]] * 12, dtype=object), X[:, 0])
