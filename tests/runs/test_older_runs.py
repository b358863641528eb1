"""Runs of version 0.1: they are read, predicted with, reported, and resumed as they were begun.

The folder ``version-0.1`` was written by that version: ``trial.csv``; a finished run and one that was killed after its
first fold, both of ``tasksieve fit trial.csv -y recovery -t site --cv 3 --alphas 8 --threads 1``; a run of ``stream``;
and its own predictions.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine

from tasksieve.runs import RunFolder, load_model

OLD = Path(__file__).parent / "version-0.1"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    shutil.copytree(OLD, tmp_path / "old")
    return tmp_path / "old"


def test_a_finished_run_is_used(cli: CommandLine, reports: list[Any], old: Path) -> None:
    folder = RunFolder(old / "finished")
    folder.verify()
    saved = load_model(folder)
    assert saved.estimator.standardize is False
    assert saved.feature_names == ["number", "ward=general", "ward=surgery", "dose", "income"]
    cli("predict", old / "finished", old / "trial.csv", "-o", old / "p.csv")
    found, expected = pd.read_csv(old / "p.csv"), pd.read_csv(old / "finished.csv")
    assert list(found) == list(expected)
    np.testing.assert_allclose(found.prediction, expected.prediction, rtol=1e-12)
    named = cli("predict", old / "finished", old / "trial.csv", "--id", "number").out.splitlines()
    assert named[0] == "number,task,prediction"
    cli("report", old / "finished")
    assert ("columns standardised while fitting", "no") in list(reports[0].facts)
    assert "standardised within" not in reports[0].asked
    fit = ("fit", old / "trial.csv", "-y", "recovery", "-t", "site", "--cv", 3, "--alphas", 8, "--threads", 1)
    assert "nothing to resume" in cli(*fit, "-o", old / "finished", "--resume").err


def test_an_interrupted_run_goes_on_as_it_was_begun(cli: CommandLine, reports: list[Any], old: Path) -> None:
    """In the units of the table, with the column that looks like an id, by its folds: as the version that began it."""
    fit = ("fit", old / "trial.csv", "-y", "recovery", "-t", "site", "--cv", 3, "--alphas", 8, "--threads", 1)
    result = cli(*fit, "-o", old / "interrupted", "--resume")
    assert "left out" not in result.err
    folder = RunFolder(old / "interrupted")
    folder.verify()
    assert not (folder / "pieces").exists()
    resumed, finished = load_model(folder), load_model(RunFolder(old / "finished"))
    assert resumed.feature_names == finished.feature_names
    assert resumed.estimator.standardize is False
    np.testing.assert_allclose(resumed.estimator.alpha, finished.estimator.alpha, rtol=1e-9)
    np.testing.assert_allclose(resumed.estimator.coef_, finished.estimator.coef_, atol=1e-9)
    one, other = (pd.read_csv(old / name / "cv_scores.csv") for name in ("interrupted", "finished"))
    np.testing.assert_allclose(one, other, rtol=1e-4)
    # what it now says of itself is complete, and can be repeated by this version
    config = folder.read_json("config.json")
    assert config["config_format"] == 3
    assert config["standardize"] is False
    assert config["keep"] == ["*"]
    assert config["shuffle"] is False
    for option in ("--as-is", "--keep '*'", "--no-shuffle", "--reference none"):
        assert option in reports[-1].reproduce
    cli("fit", "--config", old / "finished" / "config.json", old / "trial.csv", "-o", old / "again")
    again = load_model(RunFolder(old / "again")).estimator
    np.testing.assert_allclose(again.coef_, resumed.estimator.coef_, atol=1e-12)


def test_a_resumed_run_must_ask_the_same(cli: CommandLine, reports: list[Any], old: Path) -> None:
    fit = ("fit", old / "trial.csv", "-y", "recovery", "-t", "site", "--cv", 3, "--alphas", 8, "--threads", 1)
    before = json.loads((old / "interrupted" / "config.json").read_text())
    for other, said in (("--standardize", "--standardize (was False, is True)"), ("--positive", "--positive")):
        refused = cli(*fit, "-o", old / "interrupted", "--resume", other, code=1)
        assert said in refused.err
    assert json.loads((old / "interrupted" / "config.json").read_text()) == before


def test_a_stream_is_used(cli: CommandLine, old: Path) -> None:
    RunFolder(old / "stream").verify()
    cli("predict", old / "stream", old / "trial.csv", "-o", old / "p.csv")
    found, expected = pd.read_csv(old / "p.csv"), pd.read_csv(old / "stream.csv")
    np.testing.assert_allclose(found.prediction, expected.prediction, rtol=1e-12)
