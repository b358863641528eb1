"""``--task`` names a column of labels: measurements are refused, a label for almost every row is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine, regression_csv

from tasksieve.datasets import write_toy_genotypes
from tasksieve.runs import RunFolder, load_model


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = regression_csv(tmp_path / "t.csv")
    frame = pd.read_csv(file)
    frame["pair"], frame["number"] = np.arange(90) // 2, np.arange(90)
    frame["dose"] = np.where(frame.region == "north", 1.0, 2.5)
    frame.to_csv(file, index=False)
    return file


LASSO = ("--alpha", "0.1", "--no-report", "-q")


@pytest.mark.parametrize(
    "words",
    [
        ("fit", *LASSO),
        ("fit", *LASSO, "--chunk-rows", 20),
        ("fit", *LASSO, "--missing", "patterns"),
        ("fit", "--model", "logistic", *LASSO),
        ("stability", "--no-report", "-q"),
        ("compare", "--no-report", "-q"),
    ],
)
@pytest.mark.parametrize(("column", "first"), [("a", r"-?\d+\.\d+"), ("dose", "2.5")])
def test_a_measurement_is_no_task(
    cli: CommandLine, table: Path, tmp_path: Path, words: tuple[Any, ...], column: str, first: str
) -> None:
    target = "city" if "logistic" in words else "y"
    command, *more = words
    told = cli(command, table, "-y", target, "--task", column, "-o", tmp_path / "run", *more, code=1)
    assert f"column '{column}' is" in told.err
    assert "no whole number: is this the outcome (--target)?" in told.err
    assert re.search(rf"row \d+, column '{column}' is {first}", told.err.replace("\n", " "))


def test_a_stream_of_measurements(cli: CommandLine, table: Path, tmp_path: Path) -> None:
    words = ("--features", "[b-f]", "--alpha", 0.1, "--no-report", "-q")
    told = cli("stream", table, "-y", "y", "-t", "a", *words, "-o", tmp_path / "run", code=1)
    assert "column 'a' is 0.12573, no whole number: is this the outcome (--target)?" in told.err


def test_whole_numbers_and_words_are_tasks(cli: CommandLine, table: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(table)
    grade = np.where(frame.region == "north", 1.0, np.where(frame.region == "east", 2.0, np.nan))  # read as floats
    frame.assign(grade=grade).to_csv(table, index=False)
    cli("fit", table, "-y", "y", "--task", "grade", "--missing", "drop", "-o", tmp_path / "run", *LASSO)
    assert load_model(RunFolder(tmp_path / "run")).estimator.tasks_.tolist() == [1, 2]
    frame.assign(dose="dose " + frame.dose.astype(str)).to_csv(table, index=False)
    cli("fit", table, "-y", "y", "--task", "dose", "-o", tmp_path / "other", *LASSO)
    assert load_model(RunFolder(tmp_path / "other")).estimator.tasks_.tolist() == ["dose 1.0", "dose 2.5"]


def test_rows_to_predict(cli: CommandLine, table: Path, tmp_path: Path) -> None:
    cli("fit", table, "-y", "y", "--task", "pair", "-o", tmp_path / "run", *LASSO)
    frame = pd.read_csv(table)
    frame["pair"] = frame["pair"] + 0.25
    frame.to_csv(tmp_path / "new.csv", index=False)
    told = cli("predict", tmp_path / "run", tmp_path / "new.csv", "-o", tmp_path / "p.csv", code=1)
    assert "row 1, column 'pair' is 0.25" in told.err


@pytest.mark.parametrize("chunks", [0, 20])
def test_a_number_of_the_row_is_told(cli: CommandLine, table: Path, tmp_path: Path, chunks: int) -> None:
    words = ("--alpha", "0.1", "--no-report", "--chunk-rows", chunks)
    told = cli("fit", table, "-y", "y", "--task", "number", "-o", tmp_path / "run", *words)
    assert "warning: --task has 90 labels in 90 rows" in " ".join(told.err.split())
    quiet = cli("fit", table, "-y", "y", "--task", "pair", "-o", tmp_path / "other", *words)
    assert "labels in 90 rows" not in quiet.err


def test_a_trait_of_people_is_no_task(cli: CommandLine, tmp_path: Path) -> None:
    prefix = write_toy_genotypes(tmp_path, n_rows=30, n_variants=50)
    words = ("--pheno", f"{prefix}.pheno", "--pheno-name", "trait", "--covar", f"{prefix}.covar", "--task", "bmi")
    covar = Path(f"{prefix}.covar")
    frame = pd.read_csv(covar, sep="\t")
    frame.assign(bmi=20.5 + np.arange(len(frame))).to_csv(covar, sep="\t", index=False)
    told = cli("fit", "--bfile", prefix, *words, *LASSO, "-o", tmp_path / "run", code=None)
    assert told.code != 0
    assert "column 'bmi' is 20.5" in told.err
    assert "is this the outcome" in told.err
