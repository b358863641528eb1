"""Several tables as one: rows under rows, columns by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasksieve.tables import Table, TableError, prepare, read_table, read_text, wide
from tasksieve.tables.stack import FILE_TASK, Wanted, stack
from tasksieve.tables.wide import WideColumns


def tables(folder: Path, **frames: pd.DataFrame) -> list[Table]:
    found = []
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
        found.append(read_table(folder / f"{name}.csv"))
    return found


def two() -> dict[str, pd.DataFrame]:
    one = pd.DataFrame({"y": [1.5, 2.5], "a": [1, 2], "b": [0.5, 1.5], "w": ["u", "v"], "only": [3.5, 4.5]})
    other = pd.DataFrame({"w": ["v", "v", "u"], "b": [7, 8, 9], "y": [5, 6, 7], "a": [4, 5, 6]})
    return {"one": one, "other": other}


@pytest.fixture(params=["narrow", "wide"])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "wide":
        monkeypatch.setattr(read_text, "WIDE", 0)
        monkeypatch.setattr(wide, "STEP", 2)
        monkeypatch.setattr("tasksieve.tables.stack.STEP", 2)
    return request.param


def test_union(tmp_path: Path, width: str) -> None:
    found = stack(tables(tmp_path, **two()), ["p", "q"], Wanted([("--target", "y")], rule="union"))
    table = found.table
    assert isinstance(table.columns, WideColumns) == (width == "wide")
    assert set(table.columns) == {"y", "a", "b", "w", "only", FILE_TASK}
    np.testing.assert_array_equal(table.columns["only"].values, [3.5, 4.5, 0, 0, 0])
    np.testing.assert_array_equal(table.absent["only"], [False, False, True, True, True])
    assert table.columns["a"].values.dtype == np.int64
    assert table.columns["b"].values.dtype == np.float64
    assert table.columns[FILE_TASK].values.tolist() == ["p", "p", "q", "q", "q"]
    assert found.lacking == {"q": ["only"]}
    assert found.notes == [
        "other.csv lacks 1 of 4 columns, which are no features of its rows (zero there): 'only'"
    ]
    problem = prepare(table, target=["y"], task=FILE_TASK)
    names = problem.encoding.feature_names
    assert sorted(names) == ["a", "b", "only", "w=u"]
    np.testing.assert_array_equal(problem.X[:, names.index("only")], [3.5, 4.5, 0, 0, 0])
    np.testing.assert_array_equal(problem.X[:, names.index("w=u")], [1, 0, 0, 0, 1])
    assert problem.in_file is not None
    assert problem.in_file.tolist() == [0, 1, 0, 1, 2]


def test_words_that_a_task_lacks(tmp_path: Path, width: str) -> None:
    frames = two()
    frames["other"] = frames["other"].drop(columns="w")
    found = stack(tables(tmp_path, **frames), ["p", "q"], Wanted([("--target", "y")], rule="union", drop=["only"]))
    problem = prepare(found.table, target=["y"], task=FILE_TASK, drop=["only"])
    names = problem.encoding.feature_names
    np.testing.assert_array_equal(problem.X[:, names.index("w=v")], [0, 1, 0, 0, 0])
    assert found.lacking == {"q": ["w"]}


def test_columns_of_a_model(tmp_path: Path, width: str) -> None:
    """Of the features of a model a task may lack what it lacked, and what it has by now is not used."""
    wanted = Wanted(features=["a", "b", "only", "w"], fitted=True, lacking={"p": ["a", "w"], "q": ["only"]})
    parts = tables(tmp_path, **two())
    table = stack(parts, ["p", "q"], wanted).table
    np.testing.assert_array_equal(table.columns["a"].values, [0, 0, 4, 5, 6])
    assert table.columns["w"].values.tolist() == [None, None, "v", "v", "u"]
    encoding = prepare(parts[0], target=["y"]).encoding
    X, names = encoding.matrix(table), encoding.feature_names
    np.testing.assert_array_equal(X[:, names.index("w=v")], [0, 0, 1, 1, 0])
    assert encoding.missing(table) == []
    alone = stack(parts[1:], ["q"], wanted).table
    np.testing.assert_array_equal(encoding.matrix(alone)[:, names.index("only")], 0.0)
    with pytest.raises(TableError, match=r"fitted to columns that are not there: other\.csv lacks 'only'"):
        stack(parts, ["p", "r"], Wanted(features=["only"], fitted=True))


def test_kinds_that_differ(tmp_path: Path) -> None:
    one = pd.DataFrame({"y": [1.0, 2.0], "d": pd.to_datetime(["2024-01-01", "2024-01-02"]), "e": [None, None]})
    other = pd.DataFrame({"y": [1.0, 2.0], "d": [3, 4], "e": ["u", "v"]})
    for name, frame in (("one", one), ("other", other)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    parts = [read_table(tmp_path / f"{name}.parquet") for name in ("one", "other")]
    with pytest.raises(TableError, match=r"'d' holds .* dates in one\.parquet; numbers in other\.parquet"):
        stack(parts, None, Wanted([("--target", "y")]))
    table = stack(parts, None, Wanted([("--target", "y")], drop=["d"])).table
    assert table.columns["e"].values.tolist() == [None, None, "u", "v"]
    assert FILE_TASK not in table.columns


def test_messages_know_the_file(tmp_path: Path, width: str) -> None:
    frames = {name: frame.drop(columns="only", errors="ignore") for name, frame in two().items()}
    frames["other"]["b"] = [7.0, np.inf, 9.0]
    table = stack(tables(tmp_path, **frames), None, Wanted([("--target", "y")])).table
    assert table.source == "2 files (one.csv, other.csv)"
    with pytest.raises(TableError, match=r"row 2 of other\.csv, column 'b' is infinite"):
        prepare(table, target=["y"])
