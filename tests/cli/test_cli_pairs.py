"""How many pairs a concordance is made of, wherever a run says it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from cli_helpers import CommandLine


def cohort(file: Path, n: int = 90) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    time, ward = rng.exponential(np.exp(-X[:, 0])) + 0.01, rng.integers(0, 6, n)
    lines = ["ward,days,dead,a,b,c"]
    for i in range(n):
        lines.append(f"{ward[i]},{time[i]:.4f},{int(rng.random() < 0.8)},{X[i, 0]:.4f},{X[i, 1]:.4f},{X[i, 2]:.4f}")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def columns(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_few_pairs_are_said_and_warned_of(cli: CommandLine, tmp_path: Path) -> None:
    table, run = cohort(tmp_path / "t.csv"), tmp_path / "run"
    said = cli("fit", table, "--time", "days", "--event", "dead", "--strata", "ward", "--cv", 3, "-o", run).out
    [line] = [line for line in said.splitlines() if line.startswith("Concordance is of")]
    rows = columns(run / "out_of_fold.csv")
    def pairs(same: str | None) -> int:
        return sum(
            one["event"] == "1" and float(one["time"]) < float(two["time"]) and one["stratum"] == two["stratum"]
            and (same is None or one[same] == two[same])
            for one in rows for two in rows
        )  # fmt: skip
    across, within = pairs(None), pairs("fold")
    assert within < across < 1000
    assert line == (
        f"Concordance is of {across:,} pairs, over all folds: within folds and strata there are only {within:,}. "
        "Fewer than 1,000: a few rows decide it."
    )
    held_out = {row["measure"]: row["pairs"] for row in columns(run / "cv_quality.csv")}
    assert held_out.pop("concordance") == str(across)
    assert set(held_out.values()) == {""}
    [learnt] = columns(run / "quality.csv")
    assert learnt["pairs"] == str(across)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert page.count(f"Concordance is of {across:,} pairs") >= 2  # beside the tasks, and in the box of warnings
    judged = cli("evaluate", run, table, "-o", tmp_path / "new.csv").out
    assert "pairs" in judged.splitlines()[0]
    assert f"Concordance is of {across:,} pairs. Fewer than 1,000" in judged
    assert columns(tmp_path / "new.csv")[0]["pairs"] == str(across)
