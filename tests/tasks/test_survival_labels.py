"""Survival labels: every form is read as the same labels, and what is wrong is refused by name and row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.outcomes import SURVIVAL, encode, read_outcome
from tasksieve.tasks import read_labels
from tasksieve.tasks.named import stack_named

TIME, EVENT = np.array([5.0, 3.0, 8.0, 3.0]), np.array([True, False, True, True])


def test_fields_and_slices() -> None:
    y = ts.survival(TIME, EVENT)
    assert y.dtype.names == ("event", "time")  # as scikit-survival has them
    assert np.array_equal(y[[2, 0]]["time"], [8.0, 5.0])
    more = ts.survival(TIME, EVENT.astype(int), entry=TIME - 1.0, strata=["a", "b", "a", "b"])
    assert more.dtype.names == ("event", "time", "entry", "stratum")
    coded, observed, strata = encode(more)
    assert coded.dtype == SURVIVAL
    assert observed is None
    assert strata is not None
    assert strata.tolist() == ["a", "b"]
    assert coded["stratum"].tolist() == [0, 1, 0, 1]
    assert np.all(encode(y)[0]["entry"] == -np.inf)


@pytest.mark.parametrize("kind", ["columns", "scikit-survival", "named", "tuple", "rows", "swapped fields"])
def test_forms_of_one_outcome(kind: str) -> None:
    fields = [("cens", bool), ("days", np.float64)]
    forms: dict[str, Any] = {
        "columns": np.column_stack([TIME, EVENT]),
        "scikit-survival": np.array(list(zip(EVENT, TIME, strict=True)), dtype=fields),
        "named": np.array(list(zip(TIME, EVENT, strict=True)), dtype=[("time", np.float64), ("event", np.int64)]),
        "tuple": (TIME, EVENT),
        "rows": [[time, int(event)] for time, event in zip(TIME, EVENT, strict=True)],
        "swapped fields": np.array(list(zip(TIME, EVENT, strict=True)), dtype=fields[::-1]),
    }
    assert np.array_equal(read_outcome(forms[kind]), ts.survival(TIME, EVENT))
    labels = read_labels(4, forms[kind], targets="survival")
    assert labels.form == "single"
    assert labels.y.dtype == SURVIVAL
    assert np.array_equal(labels.y["time"], TIME)


def test_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frames = [
        pandas.DataFrame({"months": TIME, "died": EVENT}),
        pandas.DataFrame({"died": EVENT, "months": TIME}),  # scikit-survival's order, told by the type
        pandas.DataFrame({"status": EVENT.astype(int), "time": TIME}),
    ]
    for frame in frames:
        assert np.array_equal(read_outcome(frame), ts.survival(TIME, EVENT))
    whole = pandas.DataFrame({"event": EVENT, "time": TIME, "entry": TIME - 1.0, "stratum": list("abab")})
    assert np.array_equal(read_outcome(whole), ts.survival(TIME, EVENT, TIME - 1.0, list("abab")))
    with pytest.raises(ValueError, match=r"the column 'site' beside event and time"):
        read_outcome(whole.rename(columns={"stratum": "site"}))


def test_forms_of_several_tasks() -> None:
    y = ts.survival(TIME, EVENT)
    stacked = read_labels(4, y, task=["b", "a", "b", "a"], targets="survival")
    assert stacked.tasks.tolist() == ["a", "b"]
    assert stacked.y["time"].tolist() == [3.0, 3.0, 5.0, 8.0]
    listed = read_labels([1, 3], [y[:1], np.column_stack([TIME, EVENT])[1:]], targets="survival")
    assert listed.form == "list"
    assert np.array_equal(listed.y["time"], TIME)
    other = (TIME + 1.0, ~EVENT)
    shared = read_labels(4, [y, other], targets="survival")
    assert shared.form == "shared"
    assert shared.tasks.tolist() == [0, 1]
    assert np.array_equal(shared.y["time"], np.concatenate([TIME, TIME + 1.0]))
    named = read_labels(4, {"relapse": other, "death": y}, targets="survival")
    assert named.tasks.tolist() == ["death", "relapse"]
    assert np.array_equal(named.y, shared.y)
    columns = np.stack([y, ts.survival(*other)], axis=1)
    assert np.array_equal(read_labels(4, columns, targets="survival").y, shared.y)
    X = np.arange(8.0).reshape(4, 2)
    rows = stack_named({"b": (X[:1], y[:1]), "a": (X[1:], (TIME[1:], EVENT[1:]))}, None, None, survival=True)
    assert np.array_equal(rows["y"], y)
    assert rows["task"].tolist() == ["b", "a", "a", "a"]


def test_missing_labels_are_not_observed() -> None:
    y = ts.survival([5.0, np.nan, 8.0, 3.0], [1, 1, None, 0])
    assert np.isnan(y["time"]).tolist() == [False, True, True, False]
    assert not y["event"][1:].any()
    labels = read_labels(4, y, targets="survival")
    assert labels.weights.tolist() == [1.0, 0.0, 0.0, 1.0]
    assert np.isfinite(labels.y["time"]).all()
    masked = np.ma.array(np.column_stack([TIME, EVENT]), mask=np.zeros((4, 2)))
    masked[2, 1] = np.ma.masked
    assert read_labels(4, masked, targets="survival").weights.tolist() == [1.0, 1.0, 0.0, 1.0]
    with pytest.raises(ValueError, match=r"has no rows"):
        read_labels(4, ts.survival(np.full(4, np.nan), EVENT), targets="survival")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([5, 3], [2, 1]), r"as R's survival writes status .2 is an event.: pass event == 2"),
        (([5, -3], [1, 0]), r"time is -3 in row 2"),
        (([5, np.inf], [1, 0]), r"time is inf in row 2"),
        (([5, 3], [1, 3]), r"row 2 .row 1 is the first. is 3. Several kinds of events"),
        (([5, 3], [0.5, 1]), r"is 0.5"),
        (([5, 3], ["dead", "alive"]), r"'dead'. Say which word is an event"),
        (([5, 3], [1, 0, 1]), r"time has 2 entries, event has 3"),
        (([5, 3], [1, 0], [1, 3]), r"entry is 3 in row 2 .row 1 is the first., and time is 3"),
        (([5, 3], [1, 0], [1, np.nan]), r"entry has no value in row 2"),
        (([5, 3], [1, 0], None, ["a", None]), r"strata has no label in row 2"),
        ((np.array(["2020-01-01"], dtype="M8[D]"), [1]), r"time holds dates"),
        ((["5", "three"], [1, 0]), r"time must hold numbers: row 2"),
    ],
)
def test_refused_by_name_and_row(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ts.survival(*arguments)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (TIME, "one number per row; a survival model needs"),
        (np.column_stack([EVENT, TIME]), r"look swapped"),
        (np.column_stack([TIME, TIME, EVENT]), r"ts.survival.time, event, entry=...."),
        (ts.survival(TIME[:3], EVENT[:3]), r"X has 4 rows, y has 3"),
        ({}, "empty dict"),
        ([TIME, EVENT], "y has shape"),  # a list is several outcomes: (time, event) is a tuple
    ],
)
def test_refused_forms(y: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_labels(4, y, targets="survival")


def test_refused_tasks() -> None:
    y = ts.survival(TIME, EVENT)
    with pytest.raises(ValueError, match=r"task was given with a y of 2 outcomes"):
        read_labels(4, [y, y], task=[0, 0, 1, 1], targets="survival")
    with pytest.raises(ValueError, match=r"y must be a list of 2 outcomes"):
        read_labels([2, 2], y, targets="survival")
    with pytest.raises(ValueError, match=r"has strata, y.1. has none"):
        read_labels([4, 4], [ts.survival(TIME, EVENT, strata=[1, 2, 1, 2]), y], targets="survival")
