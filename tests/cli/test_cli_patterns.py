"""`--missing patterns`: rows that lack columns, from a fit to its report, predictions and proof."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import CommandLine

from tasksieve.runs import RunFolder, load_model


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


def table(file: Path, n: int = 120, seed: int = 1) -> Path:
    """Two sites; a third of the rows lacks b, c and d, a third lacks a and the arm."""
    rng = np.random.default_rng(seed)
    X, arm, site = rng.standard_normal((n, 5)), rng.choice(["red", "blue"], n), rng.choice(["north", "south"], n)
    y = X[:, 0] - X[:, 2] + (arm == "red") + 0.3 * rng.standard_normal(n)
    lacks = rng.integers(0, 3, n)
    with open(file, "w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["site", "arm", *"abcde", "y"])
        for i in range(n):
            cells = [f"{value:.5f}" for value in X[i]]
            cells = [cells[0], "", "", "", cells[4]] if lacks[i] == 1 else cells
            cells = ["", *cells[1:]] if lacks[i] == 2 else cells
            rows.writerow([site[i], "" if lacks[i] == 2 else arm[i], *cells, f"{y[i]:.5f}"])
    return file


def lines(file: Path) -> list[dict[str, str]]:
    with open(file, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_a_run_of_patterns(cli: CommandLine, tmp_path: Path) -> None:
    data, run = table(tmp_path / "t.csv"), tmp_path / "run"
    refused = cli("fit", data, "-y", "y", "-t", "site", "-o", run, code=None)
    assert refused.code != 0
    assert "--missing patterns fits rows as they are: those that have the same columns are a task" in refused.err
    with open(data, encoding="utf-8") as stream:
        holed = [line for line in stream if ",," in line]
    assert f" in {len(holed)} of 120 rows and 5 column(s): " in refused.err
    said = cli("fit", data, "-y", "y", "-t", "site", "-o", run, "--missing", "patterns", "--stability")
    assert "6 patterns of present columns, each a task of its own: north/1: " in said.err
    model = load_model(RunFolder(run)).estimator
    assert model.tasks_.tolist() == [f"{site}/{k}" for site in ("north", "south") for k in (1, 2, 3)]
    assert not model.coef_[~model.present_].any()
    assert model.patterns_.of.tolist() == ["north"] * 3 + ["south"] * 3
    out = lines(run / "out_of_fold.csv")
    assert len(out) == 120  # every row is used, and held out once
    assert {line["task"] for line in out} == {"north", "south"}
    assert {line["pattern"] for line in out} == set(model.tasks_.tolist())
    assert "R² out of fold of the tasks that the patterns are parts of: " in said.out
    whole = {line["task"]: line for line in lines(run / "cv_quality_by_task.csv") if line["measure"] == "squared error"}
    assert list(whole) == ["north", "south", "all tasks"]
    for site in ("north", "south"):
        own = [line for line in out if line["task"] == site]
        errors = [(float(line["observed"]) - float(line["prediction"])) ** 2 for line in own]
        assert int(whole[site]["rows"]) == len(own)
        np.testing.assert_allclose(float(whole[site]["value"]), np.mean(errors))
    assert model.cv_quality_by_task_.tasks.tolist() == ["north", "south"]
    assert "No missing value was filled in" in (run / "methods.txt").read_text(encoding="utf-8")
    report = (run / "report.html").read_text(encoding="utf-8")
    assert "Patterns of present columns" in report
    assert "All patterns of a task together." in report
    assert "patterns=saved.estimator.patterns_" in report
    assert "Base R only" not in report  # it would not find the patterns
    assert "not measured in" in report
    # the certificate says how the table is read; the verifier finds the holes by itself
    proved = cli("verify", run)
    assert "tasks are patterns of present columns" in proved.out
    header = json.loads(zipfile.ZipFile(run / "certificate.npz").read("header.json"))
    assert header["table"]["task"] == "site"
    text = data.read_text(encoding="utf-8").replace(",,", ",0.0,", 1)
    (tmp_path / "other.csv").write_text(text, encoding="utf-8")
    assert cli("verify", run, "--data", tmp_path / "other.csv", code=None).code != 0

    cli("predict", run, table(tmp_path / "new.csv", 30, seed=2), "-o", tmp_path / "p.csv")
    predicted = lines(tmp_path / "p.csv")
    assert len(predicted) == 30
    assert all(line["pattern"].startswith(line["task"] + "/") for line in predicted)
    told = cli("evaluate", run, tmp_path / "new.csv").out
    assert "north/1" in told
    assert "of the tasks that the patterns are parts of:" in told


def test_rows_of_other_patterns(cli: CommandLine, tmp_path: Path) -> None:
    data, run = table(tmp_path / "t.csv"), tmp_path / "run"
    cli("fit", data, "-y", "y", "-t", "site", "-o", run, "--missing", "patterns", "--no-report", "--alpha", "0.2")
    (tmp_path / "odd.csv").write_text("site,arm,a,b,c,d,e\nnorth,red,1,2,3,4,5\nnorth,red,1,2,3,,5\n", encoding="utf-8")
    refused = cli("predict", run, tmp_path / "odd.csv", code=None)
    assert "rows 2 of task 'north' have 5 of 6 columns in a pattern that was not fitted" in refused.err
    assert "--unseen nearest" in refused.err
    cli("predict", run, tmp_path / "odd.csv", "--unseen", "nearest", "-o", tmp_path / "p.csv")
    assert [line["pattern"] for line in lines(tmp_path / "p.csv")] == ["north/1", "north/3"]
    for words in (["--missing", "mean"], ["--all-tasks"]):
        assert "patterns" in cli("predict", run, tmp_path / "odd.csv", *words, code=None).err
    assert "--pattern-rows: goes with" in cli(
        "fit", data, "-y", "y", "-o", tmp_path / "b", "--missing", "drop", "--pattern-rows", 5, code=None
    ).err
    fit = ("fit", data, "-t", "site", "-o", tmp_path / "b", "--missing", "patterns")
    told = cli(*fit, "-y", "y", "--compare", code=2).err
    assert "does not go with compare" in told
    assert "--missing task-mean fills them in" in told
    several = cli("fit", data, "-o", tmp_path / "b", "--missing", "patterns", "-y", "y", "-y", "e", code=1).err
    assert "fit them one by one, or fill in what is missing (--missing mean)" in several
    unlike = cli(*fit, "-y", "y", "--outcome", "value", code=1).err
    assert "which --outcome does not name; fill in what is missing (--missing task-mean)" in unlike


def test_holes_here_and_there_are_no_patterns(cli: CommandLine, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = ["a,b,c,d,e,f,g,h,i,j,k,l,y"]
    for _ in range(30):
        cells = ["" if rng.random() < 0.3 else f"{rng.standard_normal():.4f}" for _ in range(12)]
        rows.append(",".join([*cells, f"{rng.standard_normal():.4f}"]))
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    said = cli("fit", tmp_path / "t.csv", "-y", "y", "--missing", "patterns", "-o", tmp_path / "run", code=1).err
    assert "for holes here and there use --missing task-mean" in said
    assert "--cv 5 is too many folds for 30 rows in" in said


def test_files_of_other_columns(cli: CommandLine, tmp_path: Path) -> None:
    """A column that a file does not have is one that its rows lack."""
    rng = np.random.default_rng(0)
    for name, columns in (("east", "abc"), ("west", "bd")):
        X = rng.standard_normal((40, len(columns)))
        y = X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(40)
        rows = [",".join([*columns, "y"])]
        rows += [",".join(f"{value:.5f}" for value in [*x, own]) for x, own in zip(X, y, strict=True)]
        rows[5] = "," + rows[5].partition(",")[2]  # and one hole
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    run = tmp_path / "run"
    words = ["--columns", "union", "--missing", "patterns", "--no-report", "--alpha", "0.1", "-q"]
    cli("fit", tmp_path / "east.csv", tmp_path / "west.csv", "-y", "y", "-o", run, *words)
    saved = load_model(RunFolder(run))
    model = saved.estimator
    assert model.tasks_.tolist() == ["east/1", "east/2", "west/1", "west/2"]
    present = dict(zip(saved.feature_names, model.present_.T.tolist(), strict=True))
    assert present == {
        "a": [True, False, False, False], "b": [True, True, True, False], "c": [True, True, False, False],
        "d": [False, False, True, True],
    }  # fmt: skip
    assert not model.coef_[~model.present_].any()
    cli("predict", run, tmp_path / "west.csv", "-o", tmp_path / "p.csv")
    assert {line["pattern"] for line in lines(tmp_path / "p.csv")} == {"west/1", "west/2"}
    cli("verify", run, "-q")
