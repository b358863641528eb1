"""What tables that go by in chunks are made of: sizes, columns without a copy, codes of tasks, folds, reading ahead."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tasksieve.fitted.fold_assignment import assign_rows
from tasksieve.tables import chunk_folds
from tasksieve.tables.categories import Categories
from tasksieve.tables.chunk_folds import ChunkFolds
from tasksieve.tables.chunked import prefetched
from tasksieve.tables.encode import Encoding
from tasksieve.tables.frame_columns import from_arrow, from_frame
from tasksieve.tables.frames import counted_size
from tasksieve.tables.table import CodedColumn, Column, Table
from tasksieve.tables.task_codes import TaskCodes


def frame_of(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "single": rng.standard_normal(n).astype(np.float32),
            "double": np.where(np.arange(n) == 7, np.nan, rng.standard_normal(n)),
            "byte": rng.integers(0, 200, n).astype(np.uint8),
            "count": pd.array(rng.integers(0, 9, n), dtype="Int32").astype("Int32"),
            "hole": pd.array([None, *range(n - 1)], dtype="Int64"),
            "flag": rng.uniform(size=n) < 0.5,
            "city": rng.choice(["Rome", "Oslo", "Bonn"], n),
            "gaps": [None if k % 5 == 0 else f"w{k % 3}" for k in range(n)],
            "nothing": pd.array([None] * n, dtype="string"),
            "kind": pd.Categorical(rng.choice(["a", "b"], n), categories=["b", "unused", "a"]),
            "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(n), "D"),
        }
    )


@pytest.mark.parametrize("pieces", [1, 2])
def test_columns_of_arrow_are_those_of_pandas(pieces: int) -> None:
    whole = pa.Table.from_pandas(frame_of(), preserve_index=False)
    cut = len(whole) // pieces
    table = pa.concat_tables([whole.slice(k * cut, cut) for k in range(pieces)])
    expected, found = from_frame(table.to_pandas(ignore_metadata=True), "t"), from_arrow(table, "t")
    chunk = from_frame(frame_of(), "t", coded=True)
    assert found.n_rows == expected.n_rows
    assert list(found.columns) == list(expected.columns)
    assert isinstance(found.columns["city"], CodedColumn)
    assert isinstance(found.columns["kind"], CodedColumn)
    for name, column in expected.columns.items():
        other = found.columns[name]
        assert (other.kind, other.values.dtype) == (column.kind, column.values.dtype), name
        np.testing.assert_array_equal(other.values, column.values, err_msg=name)
        np.testing.assert_array_equal(other.missing, column.missing, err_msg=name)
        if name in ("city", "gaps", "nothing"):
            np.testing.assert_array_equal(chunk.columns[name].values, column.values)
    single = table.column("single").chunk(0).to_numpy()
    if pieces == 1:
        assert np.shares_memory(found.columns["single"].values, single)


def test_complete_columns_are_those_of_the_matrix() -> None:
    table = from_arrow(pa.Table.from_pandas(frame_of(), preserve_index=False), "t")
    names = ["single", "byte", "count", "flag", "city"]
    encoding = Encoding.of(table, names, [], 10)
    columns = encoding.complete_columns(table)
    assert columns is not None
    assert columns[0] is table.columns["single"].values
    np.testing.assert_array_equal(np.stack(columns, axis=1), encoding.matrix(table))
    for name in ("double", "gaps"):  # with holes
        assert Encoding.of(table, [name], [], 10).complete_columns(table) is None
    infinite = Table("t", 2, {"x": Column("number", np.array([1.0, np.inf]))})
    assert Encoding([("x", None)]).complete_columns(infinite) is None
    strange = Table("t", 2, {"city": CodedColumn(np.array(["Rome", "Paris"], dtype=object), np.array([0, 1]))})
    assert Encoding([("city", Categories(("Rome",)))]).complete_columns(strange) is None


def test_sizes_are_told_without_reading(tmp_path: Path) -> None:
    frame = frame_of(3000)[["single", "byte", "city"]]
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    frame.to_feather(tmp_path / "t.arrow")
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert counted_size(str(tmp_path / "t.parquet"), "parquet") == (3000, 3)
    assert counted_size(str(tmp_path / "t.arrow"), "arrow") == (3000, 3)
    found = counted_size(str(tmp_path / "t.csv"), "csv")
    assert found is not None
    assert abs(found[0] - 3000) < 60
    assert found[1] == 3
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    found = counted_size(str(tmp_path / "t.csv.gz"), "csv")
    assert found is not None
    assert 1000 < found[0] < 12_000
    for format in ("csv", "parquet", "arrow"):
        assert counted_size(str(tmp_path / "absent"), format) is None
    assert counted_size(str(tmp_path / "t.csv"), "parquet") is None


def test_codes_of_tasks_stay_the_same() -> None:
    codes = TaskCodes()
    numbers = np.array([30, -2, 30, 7])
    assert codes.codes(Column("number", numbers)).tolist() == [2, 0, 2, 1]
    assert codes.labels == [-2, 7, 30]
    assert codes.codes(Column("number", np.array([7.0, 8.0, np.nan])), np.array([0, 1])).tolist() == [1, 3]
    assert codes.codes(Column("number", np.array([10**15, -2, 8]))).tolist() == [4, 0, 3]
    words = TaskCodes()
    coded = CodedColumn(np.array(["b", "unused", "a"], dtype=object), np.array([2, 0, -1, 0]))
    assert words.codes(coded, np.array([0, 1, 3])).tolist() == [1, 0, 0]
    assert words.labels == ["b", "a"]
    assert words.codes(Column("text", np.array(["a", "c"], dtype=object))).tolist() == [1, 2]


def in_chunks(folds: ChunkFolds, tasks: np.ndarray, live: np.ndarray, rows: int) -> np.ndarray:
    folds.rewind()
    cuts = range(0, len(tasks), rows)
    return np.concatenate([folds.next(tasks[low : low + rows], live[low : low + rows]) for low in cuts])


def test_folds_are_those_of_the_table_in_memory() -> None:
    rng = np.random.default_rng(3)
    tasks, live = rng.integers(4, size=120), rng.uniform(size=120) < 0.8
    tasks[5] = 4  # a task of one row
    live[5] = True
    order = np.argsort(tasks, kind="stable")
    offsets = np.searchsorted(tasks[order], np.arange(6))
    expected = np.empty(120, dtype=np.int64)
    expected[order] = assign_rows(offsets, np.zeros(120, dtype=np.int64), live[order], 3, 7)
    folds = ChunkFolds(np.bincount(tasks[live]), range(5), 3, 7)
    for rows in (7, 50, 120):
        np.testing.assert_array_equal(in_chunks(folds, tasks, live, rows), expected)
    assert expected[5] == -1
    assert folds.empty is None
    assert ChunkFolds([2, 1], [0, 1], 3, 0).empty == 2


def test_folds_that_are_drawn_as_rows_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_folds, "MOST_KEPT", 10)
    rng = np.random.default_rng(3)
    tasks, live = rng.integers(4, size=1200), rng.uniform(size=1200) < 0.8
    tasks[5], live[5] = 4, True
    folds = ChunkFolds(np.bincount(tasks[live]), range(5), 3, 7)
    found = in_chunks(folds, tasks, live, 7)
    for rows in (50, 1200):
        np.testing.assert_array_equal(in_chunks(folds, tasks, live, rows), found)
    assert found[5] == -1
    np.testing.assert_array_equal(found[~live], -1)
    for t in range(4):
        sizes = np.bincount(found[live & (tasks == t)], minlength=3)
        assert sizes.max() - sizes.min() <= 1
    other = ChunkFolds(np.bincount(tasks[live]), range(5), 3, 8)
    assert np.any(in_chunks(other, tasks, live, 7) != found)


def test_reading_ahead_changes_nothing() -> None:
    def items() -> Iterator[int]:
        yield from (1, 2, 3)
        raise OSError("the disk is gone")

    taken = []
    with pytest.raises(OSError, match="disk"):
        for item in prefetched(items()):
            taken.append(item)
    assert taken == [1, 2, 3]
    assert next(prefetched(iter([4, 5]))) == 4
