"""``tasksieve fit`` on tall tables: in chunks by itself, in memory that does not grow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_helpers import CommandLine, regression_csv

from tasksieve.path import policy
from tasksieve.tables import chunk_folds

FEW = ("-y", "y", "-t", "region", "--alpha", 0.1, "--no-report")


@pytest.fixture
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "TALL_TABLE_CELLS", 1000)


def config_of(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "config.json").read_text()))


def written(folder: Path, format: str) -> Path:
    table = regression_csv(folder / "t.csv", 240)
    if format == "parquet":
        pd.read_csv(table).to_parquet(folder / "t.parquet", index=False)
    elif format == "arrow":
        pd.read_csv(table).to_feather(folder / "t.arrow")
    return folder / f"t.{format}"


@pytest.mark.parametrize("format", ["csv", "parquet", "arrow"])
def test_tall_tables_go_by_in_chunks(cli: CommandLine, tmp_path: Path, low_limit: None, format: str) -> None:
    said = cli("fit", written(tmp_path, format), *FEW, "-o", tmp_path / "run").err
    [line] = [line for line in said.splitlines() if "rows x 9 columns are tall" in line]
    assert "240 rows" in line or format == "csv"
    assert "no certificate.npz" in line
    assert "--chunk-rows 0" in line
    config = config_of(tmp_path / "run")
    assert config["chunk_rows"] >= 240
    assert "chunk_rows" in config["by_default"]
    assert not (tmp_path / "run" / "certificate.npz").exists()
    assert json.loads((tmp_path / "run" / "certificate.json").read_text())["converged"]


def test_tables_that_are_not_tall_are_read_as_a_whole(cli: CommandLine, tmp_path: Path, low_limit: None) -> None:
    table = written(tmp_path, "csv")
    cli("fit", table, *FEW, "--chunk-rows", 0, "-o", tmp_path / "asked", "-q")
    cli("fit", table, *FEW, "--save-problem", tmp_path / "problem.npz", "-o", tmp_path / "saved", "-q")
    assert (tmp_path / "problem.npz").is_file()
    # a task for every four rows: their Gram matrices would be more than the rows
    frame = pd.read_csv(table)
    frame["region"] = np.arange(240) // 4
    frame.to_csv(table, index=False)
    cli("fit", table, *FEW, "-o", tmp_path / "tasks", "-q")
    wide = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 60))).rename(columns=lambda j: f"x{j}")
    wide.assign(y=wide["x0"]).to_csv(tmp_path / "wide.csv", index=False)
    cli("fit", tmp_path / "wide.csv", "-y", "y", "--alpha", 0.1, "--no-report", "-o", tmp_path / "wide", "-q")
    for name in ("asked", "saved", "tasks", "wide"):
        assert not config_of(tmp_path / name).get("chunk_rows"), name
        assert (tmp_path / name / "certificate.npz").is_file(), name


def test_a_configuration_of_a_tall_table_serves_others(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How a table is read is decided for each, unless an option says it; a resumed run reads it as before."""
    table = written(tmp_path, "csv")
    with monkeypatch.context() as low:
        low.setattr(policy, "TALL_TABLE_CELLS", 1000)
        cli("fit", table, *FEW, "-o", tmp_path / "tall", "-q")
    rows = config_of(tmp_path / "tall")["chunk_rows"]
    config = ("--config", tmp_path / "tall" / "config.json")
    cli("fit", table, *config, "-o", tmp_path / "small", "-q", "--no-report")
    assert "chunk_rows" not in config_of(tmp_path / "small")
    cli("fit", table, *config, "--model", "calibrated", "-o", tmp_path / "other", "-q", "--no-report")
    (tmp_path / "tall" / "manifest.json").unlink()
    cli("fit", table, *FEW, "-o", tmp_path / "tall", "-q", "--resume")
    assert config_of(tmp_path / "tall")["chunk_rows"] == rows
    assert not (tmp_path / "tall" / "certificate.npz").exists()


def write_tall(file: Path, n_rows: int, words: bool) -> None:
    """Groups of 20,000 rows."""
    rng = np.random.default_rng(0)
    writer = None
    for _ in range(0, n_rows, 20_000):
        X = rng.standard_normal((8, 20_000), dtype=np.float32)
        site = rng.integers(10, size=20_000)
        columns = {f"x{j}": X[j] for j in range(8)}
        columns |= {"site": np.array([f"site {k}" for k in range(10)])[site] if words else site.astype(np.int16)}
        chunk = pa.table(columns | {"y": X[0] * site + X[1]})
        writer = writer or pq.ParquetWriter(file, chunk.schema, compression="none", use_dictionary=words)
        writer.write_table(chunk)
    assert writer is not None
    writer.close()


PEAK = """
import sys
from tasksieve.cli.app import app
options = "-y y -t site --alphas 5 --no-report --threads 1 --chunk-rows 20000 -q -o"
for file in sys.argv[1:]:
    try:
        app(["fit", file, *options.split(), file + "-run"])
    except SystemExit as end:
        assert not end.code, end.code
    print([line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="needs Linux")
@pytest.mark.slow
def test_memory_does_not_grow_with_rows(tmp_path: Path) -> None:
    """Twenty times the rows: 30 MB more in each file. (Readers that keep what they have read need 70 MB more.)"""
    tables = []
    for words, n in ((False, 40_000), (True, 40_000), (False, 800_000), (True, 800_000)):
        tables.append(str(tmp_path / f"{n}-{words}.parquet"))
        write_tall(Path(tables[-1]), n, words)
    assert Path(tables[2]).stat().st_size > 24e6
    done = subprocess.run([sys.executable, "-c", PEAK, *tables], check=True, capture_output=True, text=True)
    peaks = [1024 * int(line) for line in done.stdout.split()]
    assert peaks[3] - peaks[1] < 20e6, peaks


@pytest.mark.parametrize(
    "error", [pa.ArrowMemoryError("malloc of size 8 failed"), pd.errors.ParserError("C error: out of memory")]
)
def test_too_little_memory_is_said(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Not that the file is broken; and what to do."""

    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(pq, "read_table", fails)
    said = cli("fit", written(tmp_path, "parquet"), *FEW, "-o", tmp_path / "run", code=1).err
    assert "not enough memory" in said
    assert "--chunk-rows" in said
    assert "cannot be read as" not in said


def test_folds_of_very_many_rows_are_drawn_as_they_come(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is kept of a row; how the rows are cut into chunks does not matter."""
    monkeypatch.setattr(chunk_folds, "MOST_KEPT", 100)
    table = written(tmp_path, "parquet")
    scores = []
    for rows in (37, 240):
        run = tmp_path / str(rows)
        cli("fit", table, *FEW[:4], "--chunk-rows", rows, "--alphas", 5, "--cv", 3, "-o", run, "-q", "--no-report")
        assert json.loads((run / "data.json").read_text())["cv_folds"] == (
            "3 folds, assigned within tasks as rows came, seed 0"
        )
        scores.append(pd.read_csv(run / "cv_scores.csv"))
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-3)
