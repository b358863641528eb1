"""The examples of the page "On a cluster" that need other machines: what can be checked without them is."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cluster.examples import stacked

zarr = pytest.importorskip("zarr")
pandas = pytest.importorskip("pandas")

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "cluster.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_scripts_are_scripts() -> None:
    scripts, programs = blocks("bash"), blocks("py")
    assert (len(scripts), len(programs)) == (1, 2)
    for script in scripts:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    for program in programs:
        ast.parse(program)


def test_the_job_of_slurm(
    client: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the workers of this machine in place of the nodes."""

    class Jobs:
        def __init__(self, **about: Any) -> None:
            assert about["processes"] == 1

        def __getattr__(self, name: str) -> Any:
            return getattr(cluster, name)

        def scale(self, jobs: int) -> None:
            assert jobs == 2

    fake = ModuleType("dask_jobqueue")
    fake.SLURMCluster = Jobs  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dask_jobqueue", fake)
    monkeypatch.chdir(tmp_path)
    X, y, task = stacked(41, n=15, d=200)
    zarr.create_array(tmp_path / "genotypes.zarr", shape=X.shape, chunks=(len(X), 50), dtype=X.dtype)[:] = X
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "task.npy", task)
    program = blocks("py")[0].replace("16", "2").replace("/scratch/project", str(tmp_path))
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(program, "fit.py", "exec"), names)
    names["client"].close()
    table = pandas.read_csv(tmp_path / "path.csv")
    assert len(table) > 0
    assert (table["dual_gap"] >= 0.0).all()
