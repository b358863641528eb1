"""Columns of words as indicators: one of two categories, one of each of more, none of a reference."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasksieve.tables import Encoding, TableError, prepare, prepare_rows, read_table
from tasksieve.tables.categories import Categories
from tasksieve.tables.table import CodedColumn, Column, Table


@pytest.fixture
def frame() -> pd.DataFrame:
    sex = ["M", "F", "M", "M", "F", "M", "M"]
    city = ["Rome", "Oslo", "Bonn", "Rome", "Oslo", "Rome", "Bonn"]
    code = [1, 1, 2, 1, 1, 2, 2]
    return pd.DataFrame({"sex": sex, "city": city, "code": code, "x": np.linspace(0.5, 3.7, 7), "y": 1.5})


def problem_of(frame: pd.DataFrame, folder: Path, **options):
    frame.to_csv(folder / "t.csv", index=False)
    return prepare(read_table(folder / "t.csv"), target=["y"], **options)


def test_two_categories_are_one_indicator_of_the_rarer(frame, tmp_path) -> None:
    found = problem_of(frame, tmp_path, categorical=["code"])
    assert found.encoding.feature_names == ["sex=F", "city=Bonn", "city=Oslo", "city=Rome", "code=2", "x"]
    others = {"code=2": frame.code == 2, "x": frame.x}
    expected = pd.get_dummies(frame[["sex", "city"]], prefix_sep="=").assign(**others)
    np.testing.assert_array_equal(found.X, expected[found.encoding.feature_names].to_numpy(dtype=float))
    assert found.encoding.sources == ["sex", "city", "city", "city", "code", "x"]
    assert found.notes == [
        "columns of two categories become one indicator, of the rarer: 'sex=F' (0: 'M'), 'code=2' (0: '1')",
        "columns of more categories become one indicator for each, no reference: city (3). --reference COLUMN=CATEGORY "
        "leaves one out",
    ]


def test_a_reference_can_be_named(frame, tmp_path) -> None:
    found = problem_of(frame, tmp_path, reference=["sex=F", "city=Oslo"], drop=["code"])
    assert found.encoding.feature_names == ["sex=M", "city=Bonn", "city=Rome", "x"]
    np.testing.assert_array_equal(found.X[:, 0], frame.sex == "M")
    assert found.notes == ["reference categories, which have no indicator: 'sex=F', 'city=Oslo'"]
    every = problem_of(frame, tmp_path, reference=["none"], drop=["code"])
    assert every.encoding.feature_names == ["sex=F", "sex=M", "city=Bonn", "city=Oslo", "city=Rome", "x"]
    assert "sex (2), city (3)" in every.notes[0]


def test_two_that_are_as_frequent() -> None:
    assert Categories.of({"b": 3, "a": 3}) == Categories(("a", "b"), "a")


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("city=Paris", "has no category 'Paris'; it has 'Bonn', 'Oslo', 'Rome'"),
        ("x=1", "column 'x' of .* has no categories; .*--categorical"),
        ("town=Oslo", "COLUMN=CATEGORY, of a feature column; got 'town=Oslo'"),
        ("city", "COLUMN=CATEGORY"),
    ],
)
def test_references_that_are_refused(frame, tmp_path, reference, words) -> None:
    with pytest.raises(TableError, match=words):
        problem_of(frame, tmp_path, reference=[reference])
    with pytest.raises(TableError, match="one reference"):
        problem_of(frame, tmp_path, reference=["sex=F", "sex=M"])


def test_new_rows_are_read_with_the_stored_recipe(frame, tmp_path) -> None:
    """The rarer category of new rows may be another; a recipe of version 0.2 has an indicator of each."""
    encoding = problem_of(frame, tmp_path, drop=["code"]).encoding
    content = json.loads(json.dumps(encoding.to_json()))
    assert content["columns"][0] == ["sex", {"words": ["F", "M"], "reference": "M"}]
    kept = Encoding.from_json(content, encoding.feature_names)
    assert kept.columns == encoding.columns
    (tmp_path / "new.csv").write_text("sex,city,x\nF,Rome,1\nF,Oslo,2\nM,Bonn,3\n")
    X, *_ = prepare_rows(read_table(tmp_path / "new.csv"), kept)
    np.testing.assert_array_equal(X, [[1, 0, 0, 1, 1], [1, 0, 1, 0, 2], [0, 1, 0, 0, 3]])
    older = Encoding.from_json({"columns": [["sex", ["F", "M"]], ["x", None]]}, ["sex=F", "sex=M", "x"])
    X, *_ = prepare_rows(read_table(tmp_path / "new.csv"), older)
    np.testing.assert_array_equal(X, [[1, 0, 1], [1, 0, 2], [0, 1, 3]])
    assert older.to_json() == {"columns": [["sex", ["F", "M"]], ["x", None]]}
    for words, reference in ((["F", 1], "F"), ("F", None), (["F", "M"], "N")):
        with pytest.raises((ValueError, TypeError)):
            Encoding.from_json({"columns": [["sex", {"words": words, "reference": reference}]]}, ["sex=F"])


def test_words_that_were_not_there(frame, tmp_path) -> None:
    encoding = problem_of(frame, tmp_path, features=["sex", "x"]).encoding
    (tmp_path / "new.csv").write_text("sex,x\nF,1\nX,2\nM,3\n")
    with pytest.raises(TableError, match="row 2, column 'sex' is 'X'"):
        prepare_rows(read_table(tmp_path / "new.csv"), encoding)
    X, *_ = prepare_rows(read_table(tmp_path / "new.csv"), encoding, unknown="zero")
    np.testing.assert_array_equal(X[:, 0], [1, 0, 0])


def test_words_known_by_their_codes() -> None:
    """Columns of a chunk, one by one, are those of the matrix; the reference is known, another word is not."""
    coded = CodedColumn(np.array(["M", "F"], dtype=object), np.array([0, 1, 0, 0]))
    table = Table("t", 4, {"sex": coded, "x": Column("number", np.arange(4.0))})
    encoding = Encoding.of(table, ["sex", "x"], [], 100, references={})
    columns = encoding.complete_columns(table)
    assert columns is not None
    np.testing.assert_array_equal(np.column_stack(columns), encoding.matrix(table))
    np.testing.assert_array_equal(columns[0], [0, 1, 0, 0])


def test_codes_that_a_task_lacks_are_no_category(tmp_path) -> None:
    """In files under files, zeros stand for a column of numbers that a file has not."""
    from tasksieve.tables.stack import Wanted, stack

    (tmp_path / "p.csv").write_text("zip,x,y\n1,0.5,1\n2,1.5,2\n2,2.5,3\n")
    (tmp_path / "q.csv").write_text("x,y\n0.5,1\n1.5,2\n")
    tables = [read_table(tmp_path / f"{name}.csv") for name in "pq"]
    found = stack(tables, ["p", "q"], Wanted([("--target", "y")], rule="union"))
    problem = prepare(found.table, target=["y"], categorical=["zip"], features=["zip", "x"])
    assert problem.encoding.feature_names == ["zip=1", "x"]
    np.testing.assert_array_equal(problem.X[:, 0], [1, 0, 0, 0, 0])
