"""Rows are counted from 1 in every message, columns without a name are X[:, j]."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import tasksieve as ts
from tasksieve.row_names import cell_name, row_name

X = np.arange(24.0).reshape(8, 3) % 5
Y = np.arange(8.0)
TASK = np.repeat([0, 1], 4)


def test_words() -> None:
    assert row_name(0) == "row 1 (row 1 is the first)"
    assert cell_name(np.int64(4), np.int64(2), "X[1]") == "row 5 (row 1 is the first), column X[1][:, 2]"


def with_nan(row: int, column: int) -> np.ndarray:
    wrong = X.copy()
    wrong[row, column] = np.nan
    return wrong


@pytest.mark.parametrize(
    ("X", "y", "task", "weights", "words"),
    [
        (with_nan(4, 1), Y, TASK, None, "Input X contains NaN: row 5 (row 1 is the first), column X[:, 1]"),
        (scipy.sparse.csr_array(with_nan(4, 1)), Y, TASK, None, "row 5 (row 1 is the first), column X[:, 1]"),
        (X, np.where(Y == 4, np.inf, Y), TASK, None, "Input y contains infinity (inf): row 5 (row 1 is the first)"),
        (X, Y, TASK, np.where(Y == 4, -1, 1), "got -1.0 in row 5 (row 1 is the first)"),
        (X, Y, np.where(Y == 4, np.nan, TASK), None, "task has no label in row 5 (row 1 is the first)"),
        (X, Y, TASK[::-1].astype(float) * np.where(Y == 4, np.nan, 1), None, "in row 5 (row 1 is the first)"),
        ([X, with_nan(4, 1)], [Y, Y], None, None, "X[1] contains NaN: row 5 (row 1 is the first), column X[1][:, 1]"),
        ([X, X], [Y, np.where(Y == 4, np.inf, Y)], None, None, "y[1], row 5 (row 1 is the first)"),
        (X, np.where(np.eye(8) * (Y == 4), np.inf, 0), None, None, "row 5 (row 1 is the first), task 4"),
        (X, np.ma.array(X[:, 0]), np.ma.array(TASK, mask=Y == 4), None, "task is masked in row 5 (row 1 is the first)"),
    ],
)
def test_rows_are_counted_from_one(X: object, y: object, task: object, weights: object, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        ts.MultiTaskLasso().fit(X, y, task=task, sample_weight=weights)


def test_columns_that_have_names_are_called_by_them() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(with_nan(4, 1), columns=["age", "dose", "bmi"])
    with pytest.raises(ValueError, match=re.escape("NaN: row 5 (row 1 is the first), column 'dose'")):
        ts.MultiTaskLasso().fit(frame, Y, task=TASK)


def test_rows_of_other_arguments() -> None:
    model = ts.MultiTaskLasso(alpha=0.1).fit(X, Y, task=TASK)
    with pytest.raises(ValueError, match=re.escape("task 7 in row 5 (row 1 is the first) is unknown")):
        model.predict(X, task=np.where(Y == 4, 7, TASK))
    with pytest.raises(ValueError, match=re.escape("offset is nan in row 5 (row 1 is the first)")):
        ts.MultiTaskLasso().fit(X, Y, task=TASK, offset=np.where(Y == 4, np.nan, 0.0))
    with pytest.raises(ValueError, match=re.escape("row 5 (row 1 is the first) of task 1 is -1")):
        ts.MultiTaskPoisson().fit(X, np.where(Y == 4, -1, Y), task=TASK)
    with pytest.raises(ValueError, match="row 1 has 4 letters, row 2 has 3"):
        ts.WeightedDegreeHasher(2).fit_transform(["ACGT", "ACG"])
    graph = np.zeros((2, 2))
    graph[0, 1] = graph[1, 0] = -1.0
    with pytest.raises(ValueError, match=r"negative weight -1 in row 1, column 2 \(counted from 1\)"):
        ts.GraphSVR(graph=graph).fit(X, Y, task=TASK)


def test_a_row_that_cannot_be_learned_is_named_as_it_was_given() -> None:
    wrong = X.copy()
    wrong[4] = 1e200
    for shuffle in (False, True):
        model = ts.OnlineMultiTaskRegressor(gamma=1.0, shuffle=shuffle, random_state=3)
        with pytest.raises(ValueError, match=re.escape("Row 5 (row 1 is the first) was not learned")):
            model.fit(wrong, Y, task=TASK)
    with pytest.raises(ValueError, match=re.escape("Row 5 (row 1 is the first) was not learned")):
        ts.OnlineMultiTaskRegressor(gamma=1.0).partial_fit(wrong, Y, task=TASK)


def test_no_message_counts_rows_by_itself() -> None:
    """An index may not be written into a message without `positions` (tables count with `row_number`, from 1, too)."""
    package = Path(ts.__file__).parent
    counted = re.compile(r"row_number|\+ 1|^rows:,$|^shown$|^number$|_refusal")
    found = []
    for file in package.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for inside in re.findall(r"\b[Rr]ow \{([^{}]*)\}", text):
            if not counted.search(inside) and "start=1" not in text:
                found.append(f"{file.name}: {inside}")
    assert found == []
