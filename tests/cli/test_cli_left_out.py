"""Tasks, classes and rows that are left out, and what a run says about missing values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from cli_helpers import CommandLine

from tasksieve.runs import RunFolder, load_model

QUICK = ("--no-report", "--alpha", 0.05)


def table_of_sites(path: Path) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    site = np.repeat(["A", "B", "C", "D"], [20, 20, 20, 3])
    frame = pd.DataFrame({"site": site, "a": rng.standard_normal(63), "b": rng.standard_normal(63)})
    frame["ward"] = np.array(["x", "y", "z"])[rng.integers(0, 3, 63)]
    frame["y"] = frame.a + 0.1 * rng.standard_normal(63)
    frame["state"] = np.array(["well", "ill", "lost"])[np.arange(63) % 3]
    frame.to_csv(path, index=False)
    return frame


def test_tasks_left_out(cli: CommandLine, tmp_path: Path) -> None:
    frame = table_of_sites(tmp_path / "t.csv")
    frame.loc[frame.site == "B", "a"] = np.nan  # of a task that is left out: no error
    frame.loc[frame.site == "B", "ward"] = "only here"  # no category
    frame["arm"] = np.where(np.arange(63) % 4 == 0, "old", "new")
    frame.loc[frame.site == "D", "arm"] = "other"  # of two categories that are left one is the reference
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-y", "y", "-t", "site", "--drop", "state", *QUICK)
    cli(*fit, "--exclude-task", "B", "--min-rows", 10, "--out", tmp_path / "run")
    frame[frame.site.isin(["A", "C"])].to_csv(tmp_path / "short.csv", index=False)
    cli("fit", tmp_path / "short.csv", *fit[2:], "--out", tmp_path / "short")
    one, other = (load_model(RunFolder(tmp_path / name)).estimator for name in ("run", "short"))
    assert one.tasks_.tolist() == ["A", "C"]
    names = [load_model(RunFolder(tmp_path / name)).feature_names for name in ("run", "short")]
    assert names[0] == names[1] == ["a", "b", "ward=x", "ward=y", "ward=z", "arm=old"]
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)
    log = (tmp_path / "run" / "log.txt").read_text()
    assert "left out (--exclude-task): task 'B' (20 rows)" in log
    assert "1 task(s) left out, with fewer than 10 rows (--min-rows): 'D' (3)" in log
    assert "does not say which rows were left out" in log
    assert "Of 63 rows of the table 23 were not used." in (tmp_path / "run" / "methods.txt").read_text()
    cli("verify", tmp_path / "run")
    refused = cli(*fit, "--exclude-task", "Z", "--out", tmp_path / "no", code=1).err
    assert "has no task 'Z'; it has 'A', 'B', 'C', 'D'" in refused
    refused = cli(*fit, "--min-rows", 100, "--out", tmp_path / "no", code=1).err
    assert "leave no row" in refused


def test_classes_left_out(cli: CommandLine, tmp_path: Path) -> None:
    table_of_sites(tmp_path / "t.csv")
    fit = ("fit", tmp_path / "t.csv", "-t", "site", "-x", "a", "-x", "b", *QUICK)
    cli(*fit, "-y", "state", "-m", "logistic", "--exclude-class", "lost", "--out", tmp_path / "run")
    assert load_model(RunFolder(tmp_path / "run")).estimator.classes_.tolist() == ["ill", "well"]
    refused = cli(*fit, "-y", "y", "--exclude-class", "lost", "--out", tmp_path / "no", code=1).err
    assert "--exclude-class: is for one target of class labels" in refused


def test_missing_values_and_folds_are_told(cli: CommandLine, tmp_path: Path) -> None:
    frame = table_of_sites(tmp_path / "t.csv")
    frame.loc[[0, 1, 21], "a"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-y", "y", "-t", "site", "--drop", "state", "--min-rows", 5, "--no-report")
    cli(*fit, "--missing", "task-mean", "--cv", 3, "--alphas", 5, "--out", tmp_path / "run")
    counts = pd.read_csv(tmp_path / "run" / "missing_values.csv")
    assert counts[["column", "task", "missing", "rows"]].to_numpy().tolist() == [["a", "A", 2, 20], ["a", "B", 1, 20]]
    assert set(counts.treatment) == {"filled with the column's mean in the task"}
    words = (tmp_path / "run" / "methods.txt").read_text()
    assert "3 values of 1 feature column were missing (at most 2 of 20 values of 'a' in task 'A')" in words
    assert "The certificate is about the completed data." in words
    assert "1 column of categories became indicators, one for each category." in words
    rows = pd.read_csv(tmp_path / "run" / "out_of_fold.csv")
    assert rows.groupby("task").fold.value_counts().min() >= 6
    assert set(rows.fold) == {1, 2, 3}
