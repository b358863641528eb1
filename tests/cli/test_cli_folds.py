"""Folds of the command line: shuffled and seeded, whole groups, consecutive rows if asked; all of it written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine, classification_csv, regression_csv

import tasksieve as ts
from tasksieve.cli.folds import first_folds
from tasksieve.report.content import ReportContent
from tasksieve.runs import RunFolder
from tasksieve.tables import prepare, read_table

Reports = list[ReportContent]
FEW = ("--cv", 3, "--alphas", 5, "--eps", 0.1)


def read(run: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((run / name).read_text()))


def scores(run: Path) -> np.ndarray:
    return pd.read_csv(run / "cv_scores.csv").to_numpy()[:, 1:]


def cross_validation(reports: Reports) -> str:
    return dict(reports[-1].facts)["cross-validation"]


def test_folds_are_shuffled_seeded_and_written_down(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "t.csv")
    fit = ("fit", table, "-y", "y", "-t", "region", "-x", "[a-f]", *FEW)
    cli(*fit, "-o", tmp_path / "one")
    assert read(tmp_path / "one", "config.json") | {"seed": 0, "shuffle": True} == read(tmp_path / "one", "config.json")
    assert read(tmp_path / "one", "data.json")["cv_folds"] == "3 folds, shuffled within tasks, seed 0"
    assert cross_validation(reports) == "3 folds, shuffled within tasks, seed 0, rule “min”"
    assert "--seed 0" in reports[-1].reproduce
    frame = pd.read_csv(table)
    X, y, task = frame[list("abcdef")].to_numpy(), frame.y.to_numpy(), frame.region.to_numpy(str)
    grid = {"n_alphas": 5, "eps": 0.1, "cv": 3}
    np.testing.assert_array_equal(
        scores(tmp_path / "one"), ts.MultiTaskLassoCV(**grid).fit(X, y, task=task).cv_scores_
    )
    cli(*fit, "--seed", 4, "-o", tmp_path / "two")
    other = ts.MultiTaskLassoCV(**grid, random_state=4).fit(X, y, task=task)
    np.testing.assert_array_equal(scores(tmp_path / "two"), other.cv_scores_)
    assert "seed 4" in cross_validation(reports)
    cli(*fit, "--no-shuffle", "-o", tmp_path / "three")
    config = read(tmp_path / "three", "config.json")
    assert config["shuffle"] is False
    assert "seed" not in config
    rows = ts.MultiTaskLassoCV(**grid | {"cv": ts.TaskKFold(3)}).fit(X, y, task=task)
    np.testing.assert_array_equal(scores(tmp_path / "three"), rows.cv_scores_)
    assert cross_validation(reports).startswith("3 folds of consecutive rows within tasks")
    # a configuration may be changed
    cli("fit", "--config", tmp_path / "three" / "config.json", "--seed", 4, "-o", tmp_path / "four")
    np.testing.assert_array_equal(scores(tmp_path / "four"), other.cv_scores_)
    cli("fit", "--config", tmp_path / "two" / "config.json", "--no-shuffle", "-o", tmp_path / "five")
    np.testing.assert_array_equal(scores(tmp_path / "five"), rows.cv_scores_)
    cli(*fit[:-4], "--seed", 4, "-o", tmp_path / "plain")
    cli("fit", "--config", tmp_path / "plain" / "config.json", "--alpha", 0.1, "-o", tmp_path / "six")
    assert not {"cv", "seed", "shuffle"} & read(tmp_path / "six", "config.json").keys()
    said = cli(*fit, "--seed", 5, "-o", tmp_path / "two", "--resume", code=1).err
    assert "--seed (was 4, is 5)" in said


def test_rows_of_several_targets_are_shuffled_too(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    """Where `MultiTaskLassoCV` itself has scikit-learn's folds."""
    table = regression_csv(tmp_path / "t.csv")
    frame = pd.read_csv(table)
    frame.assign(z=-frame.y).to_csv(table, index=False)
    cli("fit", table, "-y", "y", "-y", "z", "-x", "[a-f]", *FEW, "-o", tmp_path / "run")
    assert "shuffled" in cross_validation(reports)


def test_groups_of_rows(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table = classification_csv(tmp_path / "t.csv")
    frame = pd.read_csv(table)
    frame["family"] = [f"f{i // 5}" for i in range(len(frame))]
    frame.to_csv(table, index=False)
    fit = ("fit", table, "-y", "state", "-t", "site", "-m", "logistic", *FEW, "--row-groups", "family")
    cli(*fit, "-o", tmp_path / "run")
    model = ts.MultiTaskLogisticRegressionCV(n_alphas=5, eps=0.1, cv=3).fit(
        frame[list("abcd")].to_numpy(),
        frame.state.to_numpy(str),
        task=frame.site.to_numpy(),
        groups=frame.family.to_numpy(str),
    )
    np.testing.assert_array_equal(scores(tmp_path / "run"), model.cv_scores_)
    assert "family" not in pd.read_csv(tmp_path / "run" / "coefficients.csv").feature.str.cat()
    words = "3 folds of 24 whole groups, stratified by class, shuffled, seed 0 (column “family”)"
    assert cross_validation(reports) == words + ", rule “min”"
    assert "--row-groups family" in reports[-1].reproduce
    assert read(tmp_path / "run", "config.json")["row_groups"] == "family"
    # a row without a group is a row without something that it needs
    frame.loc[7, "family"] = None
    frame.to_csv(table, index=False)
    assert "row 8, column 'family'" in cli(*fit, "-o", tmp_path / "two", code=1).err
    cli(*fit, "-o", tmp_path / "two", "--missing", "drop")
    assert read(tmp_path / "two", "data.json")["rows"] == len(frame) - 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--seed", "1", "--no-shuffle"], 2, "--seed and --no-shuffle"),
        (["--row-groups", "city", "--no-shuffle"], 2, "--row-groups and --no-shuffle"),
        (["--seed", "-1"], 2, "--seed: a whole number"),
        (["--alpha", "1", "--seed", "1"], 2, "--seed: is for --cv"),
        (["--alpha", "1", "--no-shuffle"], 2, "--shuffle: is for --cv"),
        (["--alpha", "1", "--row-groups", "city"], 2, "--row-groups: is for --cv"),
        (["-m", "graph-svm", "--C", "1", "--seed", "1"], 2, "--seed: is for --cv"),
        (["--row-groups", "q"], 1, "no column 'q'"),
        (["--row-groups", "region"], 1, "--row-groups: column 'region' is also something else"),
        (["--row-groups", "city"], 1, "groups has 2 different label(s)"),
    ],
)
def test_mistakes(cli: CommandLine, tmp_path: Path, words: list[str], code: int, said: str) -> None:
    table = regression_csv(tmp_path / "t.csv")
    result = cli("fit", table, "-y", "y", "-t", "region", "-o", tmp_path / "r", *words, "--no-report", code=code)
    assert said in result.err
    assert not (tmp_path / "r").exists()


def test_order_effects_are_told(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "t.csv")
    pd.read_csv(table).sort_values("y").to_csv(table, index=False)
    fit = ("fit", table, "-y", "y", "-x", "[a-f]", *FEW)
    assert "depends on the order of the rows" not in cli(*fit, "-o", tmp_path / "one").err
    assert "depends on the order of the rows" in cli(*fit, "--no-shuffle", "-o", tmp_path / "two").err
    assert any("order of the rows" in warning for warning in reports[-1].warnings)
    assert any("order of the rows" in note for note in read(tmp_path / "two", "data.json")["notes"])


def test_runs_of_version_0_1_keep_their_folds(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    """Their configuration has no word about shuffling: consecutive rows of each class of each task."""
    table, run = classification_csv(tmp_path / "t.csv"), tmp_path / "run"
    fit = ("fit", table, "-y", "state", "-t", "site", "-m", "logistic", *FEW, "-o", run)
    cli(*fit)
    shuffled = scores(run)
    config = read(run, "config.json")
    old = {key: value for key, value in config.items() if key not in ("seed", "shuffle")}
    (run / "manifest.json").unlink()
    RunFolder(run).write_json("config.json", old)
    cli(*fit, "--resume")
    assert read(run, "config.json") == old
    frame = pd.read_csv(table)
    strata = frame.site.astype(str) + frame.state
    folds = list(ts.TaskKFold(3).split(frame, groups=strata.to_numpy(str)))
    model = ts.MultiTaskLogisticRegressionCV(n_alphas=5, eps=0.1, cv=folds).fit(
        frame[list("abcd")].to_numpy(), frame.state.to_numpy(str), task=frame.site.to_numpy()
    )
    np.testing.assert_array_equal(scores(run), model.cv_scores_)
    assert np.any(scores(run) != shuffled)
    problem = prepare(read_table(table), target=["a", "b"], features=["c"])
    assert [test.tolist() for _, test in first_folds(2, problem)] == [list(range(60)), list(range(60, 120))]
