"""The data sets of docs/develop/trials.md: the same on every machine, and as awkward as they are said to be."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "trial_data.py"


def test_trial_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("one", "two"):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--out", str(tmp_path / folder), "--columns", "30"])
        runpy.run_path(str(SCRIPT), run_name="__main__")
    found = {str(file.relative_to(tmp_path / "one")): file for file in (tmp_path / "one").rglob("*.csv")}
    assert sorted(found) == [
        "clinic-comma.csv", "clinic.csv", "sorted/diabetes.csv", "wide.csv", "wines-new.csv", "wines/barbera.csv",
        "wines/barolo.csv", "wines/grignolino.csv",
    ]  # fmt: skip
    for name, file in found.items():
        assert file.read_bytes() == (tmp_path / "two" / name).read_bytes()
    header = {name: file.read_text(encoding="utf-8").splitlines()[0].split(",") for name, file in found.items()}
    assert "ash" not in header["wines/grignolino.csv"]
    assert "flavonoids" in header["wines/barbera.csv"]
    assert len(header["wide.csv"]) == 32
    bands = [line.split(",") for line in found["sorted/diabetes.csv"].read_text(encoding="utf-8").splitlines()[1:]]
    assert bands == sorted(bands, key=lambda row: (row[0], float(row[-1])))
