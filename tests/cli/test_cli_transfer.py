"""`tasksieve transfer`: a new task from a run, without the rows of the old tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine

import tasksieve as ts

EFFECTS = np.array([1.0, -1.0, 0.8, 0.6])


def rows(n: int, seed: int, classes: bool = False, effects: Any = EFFECTS) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 10))
    y = X[:, :4] @ effects + 0.6 * rng.standard_normal(n)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(10)])
    return table.assign(y=np.where(y > 0, "yes", "no") if classes else y, hospital=f"h{seed}")


@pytest.fixture
def run(cli: CommandLine, tmp_path: Path) -> Path:
    pd.concat([rows(40, k) for k in range(4)]).to_csv(tmp_path / "old.csv", index=False)
    cli("fit", tmp_path / "old.csv", "-y", "y", "-t", "hospital", "-o", tmp_path / "run", "--no-report", "-q")
    return tmp_path / "run"


def test_a_new_task_is_a_run_of_its_own(cli: CommandLine, run: Path, tmp_path: Path) -> None:
    few = rows(24, 9)
    few.to_csv(tmp_path / "few.csv", index=False)
    told = cli("transfer", run, tmp_path / "few.csv", "--name", "h9", "--cv", 3, "-o", tmp_path / "new")
    assert "task h9: 24 rows" in told.out
    assert "the old tasks help" in told.out
    facts = json.loads((tmp_path / "new" / "transfer.json").read_text())
    assert facts["how"] != "alone"
    assert facts["gain"] > 0.0
    assert [one["how"] for one in facts["tried"]].count("alone") == 1
    # what Python finds from the same model
    old, feats = pd.read_csv(tmp_path / "old.csv"), [f"x{j}" for j in range(10)]
    path = ts.MultiTaskLassoCV(cv=5, standardize=True).fit(old[feats], old.y, task=old.hospital)
    same = ts.MultiTaskLassoCV(cv=5, standardize=True, random_state=0, alphas=[path.alpha_])
    same.fit(old[feats], old.y, task=old.hospital)
    same.set_params(alphas=None, cv=3)
    found = same.fit_new_task(few[feats], few.y, name="h9")
    assert (found.how, str(found.strength)) == (facts["how"], str(facts["strength"]))
    cli("predict", tmp_path / "new", tmp_path / "few.csv", "-o", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv").prediction
    np.testing.assert_allclose(predicted, found.predict(few[feats]), atol=1e-3)
    page = (tmp_path / "new" / "report.html").read_text()
    assert "How the new task was fitted" in page
    assert "difference to coefficients c" in page
    assert "difference to coefficients c" in cli("inspect", tmp_path / "new").out
    assert "R²" in cli("evaluate", tmp_path / "new", tmp_path / "few.csv").out
    for column in ("y", "hospital"):  # rows to predict need neither
        few = few.drop(columns=column)
    few.to_csv(tmp_path / "plain.csv", index=False)
    cli("predict", tmp_path / "new", tmp_path / "plain.csv", "-o", tmp_path / "q.csv")
    pd.testing.assert_series_equal(pd.read_csv(tmp_path / "q.csv").prediction, predicted)


@pytest.mark.slow
def test_harmful_old_tasks_are_left_and_that_is_said(cli: CommandLine, run: Path, tmp_path: Path) -> None:
    table = rows(40, 9)
    mirrored = {f"x{j}": f"x{9 - j}" for j in range(10)}  # features of its own
    table.rename(columns=mirrored).to_csv(tmp_path / "few.csv", index=False)
    told = cli(
        "transfer",
        run,
        tmp_path / "few.csv",
        "--name",
        "h9",
        "-o",
        tmp_path / "new",
        "--cv",
        3,
        "--no-report",
    )
    facts = json.loads((tmp_path / "new" / "transfer.json").read_text())
    assert facts["how"] == "alone"
    assert facts["reason"] in told.out
    forced = ("--cv", 3, "--how", "offset", "--overwrite", "--no-report")
    told = cli("transfer", run, tmp_path / "few.csv", "--name", "h9", "-o", tmp_path / "new", *forced)
    assert "the old tasks do harm" in told.err


@pytest.mark.slow
def test_classes_weights_groups_and_missing_rows(cli: CommandLine, tmp_path: Path) -> None:
    pd.concat([rows(50, k, classes=True) for k in range(3)]).to_csv(tmp_path / "old.csv", index=False)
    fit = ("-y", "y", "-t", "hospital", "-m", "logistic", "--alpha", 0.05, "--no-report", "-q")
    cli("fit", tmp_path / "old.csv", *fit, "-o", tmp_path / "run")
    few = rows(40, 9, classes=True).assign(w=1.0, person=np.arange(40) // 2)
    few.loc[3, "x1"] = np.nan
    few.to_csv(tmp_path / "few.csv", index=False)
    more = ("--weights", "w", "--row-groups", "person", "--missing", "drop", "--no-report", "--cv", 3)
    told = cli(
        "transfer", tmp_path / "run", tmp_path / "few.csv", "--name", "h9", "-o", tmp_path / "new", *more
    )
    assert "39 rows" in told.out
    chances = cli(
        "predict", tmp_path / "new", tmp_path / "few.csv", "--probabilities", "--missing", "drop"
    ).out
    assert chances.splitlines()[0] == "prediction,probability of no,probability of yes"


def test_refusals(cli: CommandLine, run: Path, tmp_path: Path) -> None:
    few = rows(24, 9)
    few.to_csv(tmp_path / "few.csv", index=False)
    new = ("-o", tmp_path / "new", "--no-report", "--cv", 2, "--how", "weights")
    asked = ("transfer", run, tmp_path / "few.csv", *new)
    assert "one of the old tasks" in cli(*asked, "--name", "h2", code=1).err
    assert not (tmp_path / "new").exists()
    few.drop(columns="x3").to_csv(tmp_path / "less.csv", index=False)
    assert "x3" in cli("transfer", run, tmp_path / "less.csv", *new, "--name", "a", code=1).err
    assert "'z'" in cli(*asked, "--name", "a", "-y", "z", code=1).err
    cli(*asked, "--name", "a")
    assert "--overwrite" in cli(*asked, "--name", "a", code=1).err
    shared = rows(40, 1).drop(columns="hospital").assign(z=lambda t: t.y)
    shared.to_csv(tmp_path / "shared.csv", index=False)
    fit = ("-y", "y", "-y", "z", "--alpha", 0.1, "--no-report", "-q")
    cli("fit", tmp_path / "shared.csv", *fit, "-o", tmp_path / "two")
    told = cli(
        "transfer", tmp_path / "two", tmp_path / "few.csv", "--name", "a", "-o", tmp_path / "b", code=2
    )
    assert "targets of the same rows" in told.err
