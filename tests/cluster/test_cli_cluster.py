"""`tasksieve fit data.zarr --cluster ADDRESS`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import CommandLine
from cluster.examples import stacked

import tasksieve as ts

zarr = pytest.importorskip("zarr")


@pytest.fixture
def store(tmp_path: Path) -> tuple[Path, Any]:
    X, y, task = stacked(31, d=600)
    group = zarr.open_group(tmp_path / "data.zarr", mode="w")
    for name, values, chunks in (("X", X, (len(X), 100)), ("y", y, y.shape), ("task", task, task.shape)):
        group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype)[...] = values
    return tmp_path / "data.zarr", (X, y, task)


def test_fit_on_a_cluster(
    cluster: Any, store: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, (X, y, task) = store
    tasksieve = CommandLine(capsys)
    how = ("--alpha", 0.2, "--as-is", "--no-report", "-o", tmp_path / "run")
    done = tasksieve("fit", file, "--cluster", cluster.scheduler_address, *how)
    assert "everything is in" in done.out
    here = ts.MultiTaskLasso(alpha=0.2).fit(X, y, task=task)
    assert f"{int(here.get_support().sum())} features selected" in done.out
    told = json.loads((tmp_path / "run" / "certificate.json").read_text(encoding="utf-8"))
    assert told["relative_gap"] <= 1e-6
    assert (tmp_path / "run" / "certificate.npz").is_file()
    assert "proved" in tasksieve("verify", tmp_path / "run").out
    rows = (tmp_path / "run" / "coefficients.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) > 1
    assert rows[1].split(",")[1] in {f"x{j}" for j in np.flatnonzero(here.get_support())}


def test_what_is_not_for_it(
    cluster: Any, store: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, _ = store
    tasksieve, out = CommandLine(capsys), tmp_path / "run"
    table = tmp_path / "table.csv"
    table.write_text("a,y\n1,2\n2,3\n", encoding="utf-8")
    assert "Zarr stores" in tasksieve("fit", table, "-y", "y", "--cluster", "tcp://x:1", "-o", out, code=2).err
    assert "--drop" in tasksieve("fit", file, "--drop", "a", "-o", out, code=2).err
    said = tasksieve("fit", file, "--target", "z", "--cluster", cluster.scheduler_address, "-o", out, code=2).err
    assert "no array 'z'" in said
    assert "there is no Zarr store" in tasksieve("fit", tmp_path / "no.zarr", "-o", out, code=2).err
