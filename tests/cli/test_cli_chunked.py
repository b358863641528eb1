"""``tasksieve fit --chunk-rows``: the model of the same table in memory, from rows that go by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine, regression_csv

from tasksieve.cli import chunked_source
from tasksieve.report.content import ReportContent
from tasksieve.tables.chunked import ChunkedTable

Reports = list[ReportContent]
FEW = ("--cv", 3, "--alphas", 8, "--eps", 0.05, "--tol", "1e-9", "--fold-tol", "1e-9")


def table_of(file: Path, format: str, n: int = 240) -> Path:
    """Words, whole numbers, an id, a date, weights, and a few labels more."""
    table = regression_csv(file / "t.csv", n)
    frame = pd.read_csv(table)
    rng = np.random.default_rng(1)
    frame["age"] = rng.integers(20, 80, n)
    frame["row_id"] = rng.permutation(n) + 7
    frame["day"] = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    frame["w"] = rng.uniform(0.5, 2.0, n).round(3)
    frame.loc[::17, "w"] = 0.0
    if format == "csv":
        frame.to_csv(table, index=False)
        return table
    if format == "parquet":
        frame.to_parquet(file / "t.parquet", index=False)
    else:
        frame.to_feather(file / "t.arrow")
    return file / f"t.{format}"


def both(cli: CommandLine, folder: Path, *words: Any, rows: int = 37) -> tuple[Path, Path]:
    """The same fit of a whole table and of chunks."""
    cli(*words, "--chunk-rows", 0, "-o", folder / "whole", "--no-report", "-q")
    cli(*words, "--chunk-rows", rows, "-o", folder / "chunks", "--no-report", "-q")
    return folder / "whole", folder / "chunks"


def read(run: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((run / name).read_text()))


def assert_same(whole: Path, chunks: Path) -> None:
    one, other = read(whole, "data.json"), read(chunks, "data.json")
    for key in ("name", "sha256", "table_rows", "rows", "features", "tasks", "notes", "cv_folds", "cv_measure"):
        assert one.get(key) == other.get(key), key
    for name, close in (("coefficients.csv", 1e-3), ("intercepts.csv", 1e-3), ("quality.csv", 1e-4)):
        left, right = pd.read_csv(whole / name), pd.read_csv(chunks / name)
        numbers = left.select_dtypes("float").columns
        assert left.drop(columns=numbers).equals(right.drop(columns=numbers)), name
        np.testing.assert_allclose(left[numbers], right[numbers], atol=close)
    if (whole / "cv_scores.csv").is_file():
        left, right = pd.read_csv(whole / "cv_scores.csv"), pd.read_csv(chunks / "cv_scores.csv")
        np.testing.assert_allclose(left, right, rtol=1e-4)
    proofs = read(whole, "certificate.json"), read(chunks, "certificate.json")
    np.testing.assert_allclose(proofs[0]["null_objective"], proofs[1]["null_objective"], rtol=1e-9)
    assert proofs[1]["converged"]
    assert abs(proofs[0]["objective"] - proofs[1]["objective"]) <= proofs[0]["dual_gap"] + proofs[1]["dual_gap"]


@pytest.mark.parametrize("format", ["csv", "parquet", "arrow"])
def test_same_model_as_in_memory(cli: CommandLine, tmp_path: Path, format: str) -> None:
    table = table_of(tmp_path, format)
    whole, chunks = both(cli, tmp_path, "fit", table, "-y", "y", "-t", "region", *FEW)
    assert_same(whole, chunks)
    notes = read(chunks, "data.json")["notes"]
    assert any("'row_id' is left out" in note for note in notes)
    assert any("dates" in note for note in notes)
    assert read(chunks, "config.json")["chunk_rows"] == 37
    cli("predict", chunks, table, "-o", tmp_path / "one.csv", "-q")
    cli("predict", whole, table, "-o", tmp_path / "two.csv", "-q")
    one, two = pd.read_csv(tmp_path / "one.csv"), pd.read_csv(tmp_path / "two.csv")
    np.testing.assert_allclose(one.iloc[:, -1], two.iloc[:, -1], atol=5e-3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "words",
    [
        ("--weights", "w", "--task-weights", "balanced", "--seed", 3),
        ("--alpha", 0.3, "--model", "elastic-net", "--as-is"),
        ("--alpha", 0.05, "--model", "sparse-group", "--l1", 0.5, "--no-intercept"),
        ("--categorical", "age", "-x", "a", "-x", "age", "-x", "city"),
    ],
    ids=["weights", "elastic-net", "sparse-group", "categorical"],
)
def test_options(cli: CommandLine, tmp_path: Path, words: tuple[Any, ...]) -> None:
    table = table_of(tmp_path, "csv")
    few = () if "--alpha" in words else FEW
    assert_same(*both(cli, tmp_path, "fit", table, "-y", "y", "-t", "region", *few, *words, "--drop", "day"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("missing", ["drop", "mean"])
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_missing_values(cli: CommandLine, tmp_path: Path, missing: str, format: str) -> None:
    frame = pd.read_csv(table_of(tmp_path, "csv"))
    rng = np.random.default_rng(2)
    for name in ("a", "c", "city", "age", "y", "region"):
        frame.loc[rng.choice(240, 9, replace=False), name] = None
    table = tmp_path / f"holes.{format}"
    frame.to_csv(table, index=False) if format == "csv" else frame.to_parquet(table, index=False)
    words = ("fit", table, "-y", "y", "-t", "region", "--drop", "day", "--missing", missing, *FEW)
    whole, chunks = both(cli, tmp_path, *words)
    assert_same(whole, chunks)
    refused = ("fit", table, "-y", "y", "-t", "region", "--drop", "day", "-o", tmp_path / "no", "--no-report")
    assert "missing value" in cli(*refused, "--chunk-rows", 50, code=None).err
    complete = frame.assign(y=1.0, region="east")
    complete.to_parquet(tmp_path / "features.parquet", index=False)
    first = int(np.flatnonzero(frame["a"].isna())[0]) + 1
    refused = ("fit", tmp_path / "features.parquet", "-y", "y", "-x", "a", "-x", "b", "-o", tmp_path / "no")
    assert f"row {first}, column 'a'" in cli(*refused, "--no-report", "--chunk-rows", 50, code=None).err


def test_several_targets(cli: CommandLine, tmp_path: Path) -> None:
    frame = pd.read_csv(table_of(tmp_path, "csv")).drop(columns=["day", "region", "city", "row_id"])
    frame["z"] = frame["y"] * 0.5 + frame["b"]
    frame.to_csv(tmp_path / "full.csv", index=False)
    frame.loc[5:30, "z"] = None
    frame.loc[100:110, ["y", "z"]] = None
    frame.to_csv(tmp_path / "holes.csv", index=False)
    for name in ("full", "holes"):
        words = ("fit", tmp_path / f"{name}.csv", "-y", "y", "-y", "z", *FEW)
        assert_same(*both(cli, tmp_path / name, *words))


def test_one_task_and_a_path(cli: CommandLine, tmp_path: Path) -> None:
    table = table_of(tmp_path, "parquet")
    assert_same(*both(cli, tmp_path / "a", "fit", table, "-y", "y", "--drop", "region", *FEW))
    whole, chunks = both(cli, tmp_path / "b", "path", table, "-y", "y", "-t", "region", "--alphas", 6)
    left, right = pd.read_csv(whole / "path.csv"), pd.read_csv(chunks / "path.csv")
    np.testing.assert_allclose(left["alphas"], right["alphas"], rtol=1e-9)
    assert left["n_selected"].tolist() == right["n_selected"].tolist()


def test_columns_that_change_their_mind(cli: CommandLine, tmp_path: Path) -> None:
    """Words in the last chunk only: the whole column, and the labels of the tasks, are words in all of them."""
    frame = pd.read_csv(table_of(tmp_path, "csv")).drop(columns=["day", "row_id"])
    frame["code"] = np.where(np.arange(240) < 100, frame["age"] % 3, 0).astype(object)
    frame.loc[100:, "code"] = np.where(frame.loc[100:, "age"] % 2 == 0, "x", "y")
    frame["site"] = np.r_[np.tile([1, 2], 60), np.tile(["2", "k"], 60)]
    frame.to_csv(tmp_path / "mixed.csv", index=False)
    assert_same(*both(cli, tmp_path, "fit", tmp_path / "mixed.csv", "-y", "y", "-t", "site", *FEW))


def test_report_summary_and_resume(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table = table_of(tmp_path, "csv")
    words = ("fit", table, "-y", "y", "-t", "region", *FEW, "--chunk-rows", 50, "-o", tmp_path / "run")
    said = cli(*words)
    assert "240 rows, 3 tasks" in said.out
    whole = cli(*words[:-4], "--chunk-rows", 0, "-o", tmp_path / "whole")
    strongest = [line for line in whole.out.splitlines() if line.startswith("strongest")]
    assert strongest[0] in said.out.splitlines()
    cli(*words, "--overwrite")
    assert "--chunk-rows 50" in reports[-1].reproduce
    assert "seed 0" in dict(reports[-1].facts)["cross-validation"]
    before = (tmp_path / "run" / "coefficients.csv").read_bytes()
    assert "nothing to resume" in cli(*words, "--resume").err
    (tmp_path / "run" / "manifest.json").unlink()
    cli(*words, "--resume")
    assert (tmp_path / "run" / "coefficients.csv").read_bytes() == before
    assert "--resume" in cli(*words[:-4], "--chunk-rows", 60, *words[-2:], "--resume", code=None).err
    frame = pd.read_csv(table)
    frame.iloc[:-1].to_csv(table, index=False)
    (tmp_path / "run" / "manifest.json").unlink()
    assert "has changed" in cli(*words, "--resume", code=None).err


def test_what_needs_all_rows_says_so(cli: CommandLine, tmp_path: Path) -> None:
    table = table_of(tmp_path, "csv")
    out = ("-o", tmp_path / "run", "--chunk-rows", 50)
    said = cli("fit", table, "-y", "y", "--model", "calibrated", *out, code=2).err
    assert "calibrated needs all rows" in said
    assert "lasso, elastic-net, sparse-group" in said
    assert "logistic needs all rows" in cli("fit", table, "-y", "city", "--model", "logistic", *out, code=2).err
    said = cli("fit", table, "-y", "y", "--model", "sparse-group", "--loss", "logistic", *out, code=2).err
    assert "--loss logistic needs all rows" in said
    assert "--row-groups" in cli("fit", table, "-y", "y", "--row-groups", "city", *out, code=2).err
    assert "--no-shuffle" in cli("fit", table, "-y", "y", "--no-shuffle", *out, code=2).err
    assert "--date-parts" in cli("fit", table, "-y", "y", "--date-parts", *out, code=2).err
    assert "--screening" in cli("fit", table, "-y", "y", "--screening", "gap", *out, code=2).err
    np.savez(tmp_path / "t.npz", X=np.eye(5), y=np.arange(5.0))
    assert "npz" in cli("fit", tmp_path / "t.npz", "-y", "y", *out, code=2).err
    assert "at least 1" in cli("fit", table, "-y", "y", "-o", tmp_path / "run", "--chunk-rows", -1, code=2).err
    assert "too many folds" in cli("fit", table, "-y", "y", "--cv", 250, *out, code=None).err


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_tables_larger_than_memory_go_by(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    table = table_of(tmp_path, format)
    words = ("fit", table, "-y", "y", "-t", "region", *FEW, "-q", "--no-report")
    cli(*words, "-o", tmp_path / "small")
    assert "chunk_rows" not in read(tmp_path / "small", "config.json")
    monkeypatch.setattr(chunked_source, "free_memory", lambda: 1000.0)
    cli(*words, "-o", tmp_path / "large")
    config = read(tmp_path / "large", "config.json")
    assert config["chunk_rows"] > 240
    assert "chunk_rows" in config["by_default"]
    assert_same(tmp_path / "small", tmp_path / "large")
    # other losses go on as they did
    cli("fit", table, "-y", "y", "--model", "calibrated", "--alpha", 0.5, "-o", tmp_path / "c", "-q", "--no-report")


def test_no_more_rows_than_asked_are_alive(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the number of rows: chunks of the file, and blocks of the sums."""
    seen: list[tuple[int, int, int]] = []
    whole = ChunkedTable.problem

    def problem(self: ChunkedTable, **options: Any) -> Any:
        found = whole(self, **options)
        seen.append((self.largest_chunk, found.moments.largest_block, self.readings))
        return found

    monkeypatch.setattr(ChunkedTable, "problem", problem)
    for n in (240, 960):
        table = table_of(tmp_path, "csv", n)
        cli("fit", table, "-y", "y", "-t", "region", *FEW, "--chunk-rows", 40, "-o", tmp_path / str(n), "-q")
    assert seen == [(40, 40, 2), (40, 40, 2)]
