"""Very wide tables: read as narrow ones are, into one matrix, in little memory."""

from __future__ import annotations

import bz2
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasksieve.tables import (
    Encoding,
    Table,
    TableError,
    prepare,
    prepare_rows,
    read_table,
    read_text,
    wide,
    wide_arrow,
)
from tasksieve.tables.wide import PlainColumns, WideColumns

# One column of cells per trouble.
CELLS = {
    "real": ["0.1", "-2.5e-3", "1e300", "7"],
    "whole": ["1", "-2", "+3", "0"],
    "huge": ["9007199254740993", "1", "2", "3"],
    "holes": ["1", "", "NA", "4"],
    "nothing": ["", "", "NaN", "null"],
    "words": ["north", "1", "south", ""],
    "truths": ["True", "False", "True", "True"],
    "under": ["1_000", "2", "3", "4"],
    "spaces": [" 1", "2 ", "3", "4"],
    "quoted": ['"1.5"', "2", '"a, b"', "3"],
    "lines": ['"a\nb"', "c", "d", '"say ""so"""'],
    "infinite": ["inf", "-inf", "1", "2"],
    "day": ["2024-01-31", "2024-02-01", "2024-02-02", "2024-02-03"],
    "digits": ["0.1000000000000000055511151231257827", "1.7976931348623157e308", "5e-324", "0.30000000000000004"],
}


def text(columns: dict[str, list[str]], separator: str = ",", end: str = "\n") -> str:
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    return end.join(separator.join(row) for row in rows) + end


def as_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is a wide one."""
    monkeypatch.setattr(read_text, "WIDE", 0)
    monkeypatch.setattr(wide_arrow, "WIDE", 0)
    monkeypatch.setattr(wide, "STEP", 3)


def assert_same(one: Table, other: Table) -> None:
    assert list(one.columns) == list(other.columns)
    assert one.n_rows == other.n_rows
    for name in one.columns:
        own, known = one.columns[name], other.columns[name]
        assert own.kind == known.kind, name
        assert own.values.dtype == known.values.dtype, name
        np.testing.assert_array_equal(own.values, known.values, err_msg=name)
        np.testing.assert_array_equal(own.missing, known.missing)


@pytest.mark.parametrize("piece", [1, 20, 1 << 16])
def test_wide_and_narrow_files_are_read_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    table = tmp_path / "table.csv"
    numbers = {f"x{j}": [repr(j / 7.0 + k) for k in range(4)] for j in range(30)}
    table.write_text(text(CELLS | numbers), encoding="utf-8")
    narrow = read_table(table)
    as_wide(monkeypatch)
    monkeypatch.setattr("tasksieve.tables.wide_csv.PIECE", piece)
    found = read_table(table)
    assert isinstance(found.columns, WideColumns)
    assert {"words", "truths", "under", "lines", "day", "huge"} <= set(found.columns.others)
    assert not {"real", "whole", "holes", "nothing", "digits", "infinite"} & set(found.columns.others)
    assert_same(found, narrow)


@pytest.mark.parametrize(
    ("name", "separator", "end", "start"),
    [("a.tsv", "\t", "\n", ""), ("a.csv", ",", "\r\n", "\ufeff"), ("a.csv", ",", "\r", ""), ("a.csv", ",", "\n\n", "")],
)
def test_other_signs_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, separator: str, end: str, start: str
) -> None:
    columns = {f"x{j}": [str(j + 0.5), "", str(j)] for j in range(9)} | {"word": ["a", "b", "é"]}
    table = tmp_path / name
    table.write_bytes((start + text(columns, separator, end)).encode())
    narrow = read_table(table)
    as_wide(monkeypatch)
    assert_same(read_table(table), narrow)


def test_packed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = text({f"x{j}": ["1.5", "2.5"] for j in range(5)} | {"w": ["a", "b"]}).encode()
    for name, packed in (("a.csv.gz", gzip.compress(content)), ("a.csv.bz2", bz2.compress(content))):
        (tmp_path / name).write_bytes(packed)
        narrow = read_table(tmp_path / name)
        with monkeypatch.context() as patch:
            as_wide(patch)
            assert_same(read_table(tmp_path / name), narrow)


def test_rows_that_are_too_long_or_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_wide(monkeypatch)
    table = tmp_path / "a.csv"
    table.write_text("a,b,c\n1,2,3\n1,2,3,4\n")
    with pytest.raises(TableError, match=r"row 2 has more fields than the header has names \(3\)"):
        read_table(table)
    table.write_text("a,b,c\n1,2,3\n4\n")
    found = read_table(table)
    np.testing.assert_array_equal(found.columns["c"].values, [3.0, np.nan])


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_files_of_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((6, 12)), columns=[f"x{j}" for j in range(12)])
    frame["single"] = np.arange(6, dtype=np.float32) / 3
    frame["whole"] = np.arange(6)
    frame["small"] = np.arange(6, dtype=np.int8)
    frame["huge"] = 2**60 + np.arange(6)
    frame["holes"] = pd.array([1, None, 3, 4, 5, 6], dtype="Int64")
    frame["word"] = list("abcabc")
    frame["truth"] = [True, False] * 3
    frame["day"] = pd.date_range("2024-01-01", periods=6)
    table = tmp_path / f"a.{format}"
    getattr(frame, "to_parquet" if format == "parquet" else "to_feather")(table)
    narrow = read_table(table)
    as_wide(monkeypatch)
    monkeypatch.setattr(wide_arrow, "AT_ONCE", 5)
    found = read_table(table)
    assert isinstance(found.columns, WideColumns)
    for name in narrow.columns:
        own, known = found.columns[name], narrow.columns[name]
        assert own.kind == known.kind
        np.testing.assert_array_equal(own.values, known.values, err_msg=name)
    with pytest.raises(TableError, match="beyond 2\\^53"):
        prepare(found, target=["x0"], drop=["day"], missing="mean")
    X = prepare(found, target=["x0"], drop=["day", "huge"], missing="mean").X
    with monkeypatch.context() as patch:
        patch.setattr(read_text, "WIDE", 10**6)
        patch.setattr(wide_arrow, "WIDE", 10**6)
        known = prepare(read_table(table), target=["x0"], drop=["day", "huge"], missing="mean")
        np.testing.assert_array_equal(X, known.X)


def test_small_whole_numbers_stay_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_wide(monkeypatch)
    frame = pd.DataFrame(np.arange(24, dtype=np.int8).reshape(4, 6) % 3, columns=list("abcdef"))
    frame.insert(0, "y", ["u", "v", "u", "v"])
    frame.to_parquet(tmp_path / "a.parquet")
    X = prepare(read_table(tmp_path / "a.parquet"), target=["y"], classes=True).X
    assert X.dtype == np.int8
    np.testing.assert_array_equal(X, frame.iloc[:, 1:].to_numpy())


def problem_of(table: Path, **words: Any) -> Any:
    return prepare(read_table(table), target=["y"], **words)


@pytest.mark.parametrize(
    "words",
    [
        {"missing": "mean"},
        {"missing": "drop"},
        {"missing": "mean", "features": ["x1*", "w"]},
        {"missing": "mean", "drop": ["x3"], "categorical": ["code"]},
        {"missing": "mean", "date_parts": True},
        {"missing": "mean", "keep": ["id"], "task": "w"},
    ],
)
def test_problems_are_those_of_narrow_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: dict[str, Any]
) -> None:
    rng, n = np.random.default_rng(0), 30
    frame = pd.DataFrame(rng.standard_normal((n, 12)).round(3), columns=[f"x{j}" for j in range(12)])
    frame.loc[3, "x4"] = np.nan
    frame["code"] = rng.integers(0, 3, n)
    frame["id"] = np.arange(n) + 100
    frame["when"] = 20240101 + np.arange(n)
    frame["w"] = rng.choice(["a", "b"], n)
    frame["y"] = rng.standard_normal(n)
    frame.to_csv(tmp_path / "a.csv", index=False)
    narrow = problem_of(tmp_path / "a.csv", **words)
    as_wide(monkeypatch)
    found = problem_of(tmp_path / "a.csv", **words)
    assert found.notes == narrow.notes
    assert found.encoding.feature_names == narrow.encoding.feature_names
    np.testing.assert_array_equal(found.X, narrow.X)
    assert found.X.dtype == narrow.X.dtype
    new = read_table(tmp_path / "a.csv")
    X, *_ = prepare_rows(new, narrow.encoding, missing=words["missing"], fill=found.fill)
    np.testing.assert_array_equal(X, narrow.X)


def test_words_about_wide_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_wide(monkeypatch)
    columns = {"y": ["1.5", "2.5"], "a": ["0.5", ""], "b": ["inf", "1"]}
    (tmp_path / "a.csv").write_text(text(columns))
    with pytest.raises(TableError, match="row 2, column 'a'"):
        problem_of(tmp_path / "a.csv")
    with pytest.raises(TableError, match="row 1, column 'b' is infinite"):
        problem_of(tmp_path / "a.csv", missing="mean")
    with pytest.raises(TableError, match="has no column 'z'"):
        problem_of(tmp_path / "a.csv", features=["z"])
    encoding = Encoding([("a", None), ("z", None)])
    with pytest.raises(TableError, match="has no column 'z'"):
        encoding.matrix(read_table(tmp_path / "a.csv"))


def test_plain_columns_are_pairs() -> None:
    plain = PlainColumns(["a", "b"])
    assert plain == [("a", None), ("b", None)]
    assert plain[1:] == [("b", None)]
    encoding = Encoding(plain)
    again = Encoding.from_json(json.loads(json.dumps(encoding.to_json())), ["a", "b"])
    assert again.feature_names == encoding.feature_names == ["a", "b"]


MEASURED = """
import sys
from pathlib import Path
from tasksieve.tables import prepare, read_table

def peak():
    return 1024 * next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

def read(table):
    return prepare(read_table(table), target=["y"], task="task")

read(sys.argv[1])  # whatever is loaded on first use
before = peak()
X = read(sys.argv[2]).X
print(peak() - before, X.shape[0], X.shape[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.slow
def test_memory_is_a_few_times_the_numbers(tmp_path: Path) -> None:
    rng, d, n = np.random.default_rng(0), 60_000, 15
    for name, width in (("small.csv", 3), ("wide.csv", d)):
        with (tmp_path / name).open("w") as file:
            file.write(",".join(["task", "y", *(f"x{j}" for j in range(width))]) + "\n")
            for row in range(n):
                numbers = ",".join(map(repr, rng.standard_normal(width + 1).tolist()))
                file.write(f"{'abc'[row % 3]},{numbers}\n")
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "small.csv"), str(tmp_path / "wide.csv")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    beyond, rows, columns = map(int, run.stdout.split())
    assert (rows, columns) == (n, d)
    assert beyond <= 3 * 8 * n * d + (8 << 20), f"{beyond / 1e6:.0f} MB for {8 * n * d / 1e6:.0f} MB of numbers"
