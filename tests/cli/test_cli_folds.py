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
from tasksieve.report.content import ReportContent
from tasksieve.runs import RunFolder

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
    config = read(tmp_path / "one", "config.json")
    assert (config["seed"], config["shuffle"]) == (0, True)
    assert {"seed", "shuffle"} <= set(config["by_default"])
    assert read(tmp_path / "one", "data.json")["cv_folds"] == "3 folds, shuffled within tasks, seed 0"
    assert cross_validation(reports) == "3 folds, shuffled within tasks, seed 0, rule “min”"
    assert "--seed" not in reports[-1].reproduce
    frame = pd.read_csv(table)
    X, y, task = frame[list("abcdef")].to_numpy(), frame.y.to_numpy(), frame.region.to_numpy(str)
    grid = {"n_alphas": 5, "eps": 0.1, "cv": 3, "standardize": True}
    np.testing.assert_array_equal(
        scores(tmp_path / "one"), ts.MultiTaskLassoCV(early_stopping=True, **grid).fit(X, y, task=task).cv_scores_
    )
    cli(*fit, "--seed", 4, "-o", tmp_path / "two")
    other = ts.MultiTaskLassoCV(early_stopping=True, **grid, random_state=4).fit(X, y, task=task)
    np.testing.assert_array_equal(scores(tmp_path / "two"), other.cv_scores_)
    assert "seed 4" in cross_validation(reports)
    assert "--seed 4" in reports[-1].reproduce
    cli(*fit, "--no-shuffle", "-o", tmp_path / "three")
    config = read(tmp_path / "three", "config.json")
    assert config["shuffle"] is False
    assert "seed" not in config
    assert "--no-shuffle" in reports[-1].reproduce
    folds = {"cv": ts.TaskKFold(3, shuffle=False)}
    rows = ts.MultiTaskLassoCV(early_stopping=True, **grid | folds).fit(X, y, task=task)
    np.testing.assert_array_equal(scores(tmp_path / "three"), rows.cv_scores_)
    assert cross_validation(reports).startswith("3 folds of consecutive rows within tasks")
    # a configuration may be changed
    cli("fit", "--config", tmp_path / "three" / "config.json", "--seed", 4, "-o", tmp_path / "four")
    np.testing.assert_array_equal(scores(tmp_path / "four"), other.cv_scores_)
    for name, other_config in (("five", "two"), ("from one", "one")):  # of a seed that was asked, of one by default
        cli("fit", "--config", tmp_path / other_config / "config.json", "--no-shuffle", "-o", tmp_path / name)
        np.testing.assert_array_equal(scores(tmp_path / name), rows.cv_scores_)
        config = read(tmp_path / name, "config.json")
        assert "seed" not in config
        assert not {"seed", "shuffle"} & set(config["by_default"])
    cli(*fit[:-4], "--seed", 4, "-o", tmp_path / "plain")
    cli("fit", "--config", tmp_path / "plain" / "config.json", "--alpha", 0.1, "-o", tmp_path / "six")
    config = read(tmp_path / "six", "config.json")
    assert not {"cv", "seed", "shuffle"} & {*config, *config["by_default"]}
    cli("path", "--config", tmp_path / "two" / "config.json", "-o", tmp_path / "seven")
    config = read(tmp_path / "seven", "config.json")
    assert not {"cv", "seed", "shuffle"} & {*config, *config["by_default"]}
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
    model = ts.MultiTaskLogisticRegressionCV(n_alphas=5, eps=0.1, cv=3, standardize=True, early_stopping=True).fit(
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


@pytest.mark.sampled(3)
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
        (["--row-groups", "region"], 1, "--row-groups: column 'region' is also the task"),
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


@pytest.mark.slow
def test_consecutive_rows_are_those_of_version_0_1(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    """Consecutive rows of each class of each task: with --no-shuffle, and unsaid in configurations of that version."""
    table = classification_csv(tmp_path / "t.csv")
    fit = ("fit", table, "-y", "state", "-t", "site", "-m", "logistic", *FEW)
    cli(*fit, "--no-shuffle", "--as-is", "-o", tmp_path / "now")
    assert cross_validation(reports).startswith("3 folds of consecutive rows within tasks, stratified by class")
    frame = pd.read_csv(table)
    strata = frame.site.astype(str) + frame.state
    folds = list(ts.TaskKFold(3, shuffle=False).split(frame, groups=strata.to_numpy(str)))
    model = ts.MultiTaskLogisticRegressionCV(n_alphas=5, eps=0.1, cv=folds, early_stopping=True).fit(
        frame[list("abcd")].to_numpy(), frame.state.to_numpy(str), task=frame.site.to_numpy()
    )
    np.testing.assert_array_equal(scores(tmp_path / "now"), model.cv_scores_)
    before = ts.MultiTaskLogisticRegressionCV(n_alphas=5, eps=0.1, cv=folds, fold_tol=1e-6).fit(
        frame[list("abcd")].to_numpy(), frame.state.to_numpy(str), task=frame.site.to_numpy()
    )
    # a run that version 0.1 began, interrupted: twice resumed, it stays what it was
    run = tmp_path / "run"
    cli(*fit, "-o", run)
    assert np.any(scores(run) != model.cv_scores_)
    config = read(run, "config.json")
    unsaid = {*config["by_default"], "by_default", "config_format"} - {"missing", "max_categories"}
    old = {key: value for key, value in config.items() if key not in unsaid}
    RunFolder(run).write_json("config.json", old)
    for _ in range(2):
        (run / "manifest.json").unlink()
        cli(*fit, "-o", run, "--resume")
        np.testing.assert_array_equal(scores(run), before.cv_scores_)
        config = read(run, "config.json")
        assert config["shuffle"] is False
        assert "shuffle" in config["by_default"]
        assert "seed" not in config
        assert "--no-shuffle" in reports[-1].reproduce
    refused = cli(*fit, "-o", run, "--resume", "--seed", 0, code=1).err
    assert "--seed (was None, is 0)" in refused


@pytest.mark.slow
def test_a_strength_of_version_0_1_has_no_folds(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "t.csv")
    old = {"model": "lasso", "target": ["y"], "features": ["[a-f]"], "alpha": "0.1", "command": "fit"}
    for name, more in (("fit", {}), ("path", {"command": "path"})):
        config = {key: value for key, value in (old | more).items() if key != "alpha" or name == "fit"}
        (tmp_path / "c.json").write_text(json.dumps(config))
        cli(name, table, "--config", tmp_path / "c.json", "-o", tmp_path / name)
        found = read(tmp_path / name, "config.json")
        assert found["standardize"] is False
        assert not {"cv", "seed", "shuffle"} & {*found, *found["by_default"]}


@pytest.mark.slow
def test_the_path_is_left_early_or_solved_in_full(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((40, 12)), columns=[f"x{j}" for j in range(12)])
    frame["y"], frame["region"] = frame.x0 + 3.0 * rng.standard_normal(40), np.tile(["north", "south"], 20)
    frame.to_csv(table := tmp_path / "t.csv", index=False)
    fit = ("fit", table, "-y", "y", "-t", "region", "--cv", 2, "--alphas", 45)
    cli(*fit, "-o", tmp_path / "early")
    cli(*fit, "--full-path", "--fold-tol", 1e-8, "-o", tmp_path / "full")
    early, full = scores(tmp_path / "early"), scores(tmp_path / "full")
    assert 15 < len(early) < len(full) == 45
    np.testing.assert_allclose(early, full[: len(early)], rtol=0.01)
    assert np.abs(early - full[: len(early)]).max() > 1e-9  # folds at 1e-4, and at 1e-8
    config = json.loads((tmp_path / "full" / "config.json").read_text())
    assert config["early_stopping"] is False
    assert config["fold_tol"] == 1e-8
    cli(*fit[:-1], "1,0.5,0.1", "-o", tmp_path / "given")
    assert len(scores(tmp_path / "given")) == 3
    assert "early_stopping" not in json.loads((tmp_path / "given" / "config.json").read_text())
    for option in ("--full-path", "--early-stopping"):
        found = cli(*fit[:6], "--alpha", 0.1, option, "-o", tmp_path / "one", code=2)
        assert "--cv" in found.err
