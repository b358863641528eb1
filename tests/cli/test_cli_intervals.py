"""`tasksieve fit --intervals`: the table of `split_inference` in the run, its report and its methods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine

import tasksieve as ts
from tasksieve.fitted.folds import ShuffledFolds
from tasksieve.report.content import ReportContent
from tasksieve.report.page import render
from tasksieve.report.words import quantity
from tasksieve.runs import RunFolder
from tasksieve.runs.findings import read_intervals

Reports = list[ReportContent]
NAMES = [f"v{j}" for j in range(10)]


def table_csv(file: Path) -> pd.DataFrame:
    """Two sites of 60 rows in 60 families; v3 and v7 matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 10))
    data = pd.DataFrame(X, columns=NAMES)
    data["site"], data["family"] = np.repeat(["a", "b"], 60), np.arange(120) // 2
    data["y"] = X[:, 3] - X[:, 7] + rng.standard_normal(120)
    data["z"] = 2.0 * data.y + rng.standard_normal(120)
    data["well"] = np.where(data.y + rng.standard_normal(120) > 0, "yes", "no")
    data["weight"], data["exposure"] = rng.uniform(0.5, 2.0, 120), rng.uniform(-1.0, 1.0, 120)
    data["calls"] = rng.poisson(np.exp(0.5 * X[:, 3] + data.exposure))
    data.to_csv(file, index=False)
    return data


CASES = {
    "folds, groups, weights": (
        ("-y", "y", "-t", "site", "--cv", 3, "--alphas", 6, "--row-groups", "family", "--weights", "weight"),
        ts.MultiTaskLassoCV(n_alphas=6, cv=ShuffledFolds(3), random_state=0, standardize=True, early_stopping=True),
        {"task": "site", "groups": "family", "sample_weight": "weight"},
        ["y"],
    ),
    "classes": (
        ("-y", "well", "-t", "site", "-m", "logistic", "--alpha", 0.2, "--level", 0.95, "--seed", 3),
        ts.MultiTaskLogisticRegression(alpha=0.2, standardize=True),
        {"task": "site"},
        ["well"],
    ),
    "several targets": (
        ("-y", "y", "-y", "z", "--alpha", 0.3), ts.MultiTaskLasso(alpha=0.3, standardize=True), {}, ["y", "z"],
    ),
    "counts": (
        ("-y", "calls", "-m", "poisson", "--offset", "exposure", "--alpha", 0.05, "--as-is"),
        ts.MultiTaskPoisson(alpha=0.05), {"offset": "exposure"}, ["calls"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_intervals_are_those_of_the_library(cli: CommandLine, reports: Reports, tmp_path: Path, case: str) -> None:
    data, run = table_csv(tmp_path / "t.csv"), tmp_path / "run"
    words, model, columns, targets = CASES[case]
    result = cli("fit", tmp_path / "t.csv", "-x", "v*", *words, "--intervals", "-o", run)
    rows = {name: data[column].to_numpy() for name, column in columns.items()}
    level, seed = (0.95, 3) if "--level" in words else (0.9, 0)
    Y = data[targets[0]] if len(targets) == 1 else data[targets]
    found = ts.split_inference(model, data[NAMES], Y.to_numpy(), **rows, level=level, random_state=seed)
    assert len(found)
    table = pd.read_csv(run / "intervals.csv")
    assert list(table) == found.columns
    assert table.feature.tolist() == found.feature.tolist()
    labels = found.task.tolist() if "task" in columns else [targets[t] for t in found.task.tolist()]
    assert table.task.tolist() == labels
    for name in found.columns[2:]:
        np.testing.assert_array_equal(table[name], found[name], err_msg=name)
    again = read_intervals(RunFolder(run))
    assert again is not None
    assert (again.level, again.halves, again.summary()) == (found.level, found.halves, found.summary())
    np.testing.assert_array_equal(again.upper, found.upper)
    RunFolder(run).verify()
    # what people read
    assert found.summary() in result.out
    methods = (run / "methods.txt").read_text()
    assert "Effects were estimated by data splitting (Cox 1975)" in methods
    assert ("CR2, by groups of rows" if "groups" in columns else "(HC2)") in methods
    assert f"Intervals have a level of {level:.0%}" in methods
    content = reports[-1]
    assert content.trust is not None
    page = render(content)
    assert "How large are the effects?" in page
    assert f"{100 * level:g} % interval" in page
    assert f'<td class="number">{quantity(found.estimate[np.nanargmin(found.row_pvalue)])}</td>' in page
    assert "--intervals" in content.reproduce


def test_nothing_selected_is_said(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table_csv(tmp_path / "t.csv")
    words = ("-y", "y", "-t", "site", "-x", "v*", "--alpha", 100, "--intervals")
    assert "there is nothing to estimate" in cli("fit", tmp_path / "t.csv", *words, "-o", tmp_path / "run").out
    assert (tmp_path / "run" / "intervals.csv").read_text().startswith("feature,task,estimate")
    assert "there is nothing to estimate" in render(reports[-1])


REFUSED: dict[str, tuple[list[Any], int, str]] = {
    "level alone": (["-y", "y", "--level", 0.9], 2, "--level: is for --intervals and --compare"),
    "small tasks alone": (["-y", "y", "--small-tasks", "drop"], 2, "is for --stability and --intervals"),
    "level": (["-y", "y", "--intervals", "--level", 1], 2, "--level: between 0 and 1"),
    "graph": (["-y", "y", "--intervals", "-m", "graph-svm", "--C", 1], 2, "--intervals: --model graph-svm has no path"),
    "chunks": (["-y", "y", "--intervals", "--chunk-rows", 9], 2, "need all rows in memory"),
    "path": (["-y", "y", "--intervals"], 2, "No such option"),
    "quantile": (["-y", "y", "--intervals", "-m", "quantile"], 1, "not of the pinball loss. Take a model with one"),
    "survival": (
        ["--time", "weight", "--event", "calls==1", "--intervals", "--alpha", 0.1],
        1,
        "--intervals: standard errors are known of least squares",
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", REFUSED)
def test_mistakes_are_named_before_the_fit(cli: CommandLine, tmp_path: Path, case: str) -> None:
    table_csv(tmp_path / "t.csv")
    words, code, said = REFUSED[case]
    command = "path" if case == "path" else "fit"
    where = ("-t", "site", "-x", "v*", "-o", tmp_path / "run", "--no-report")
    assert said in cli(command, tmp_path / "t.csv", *words, *where, code=code).err
    assert not (tmp_path / "run" / "model.json").exists()


def test_tasks_too_small_for_their_features(cli: CommandLine, tmp_path: Path) -> None:
    """Known only after the selection: the model is there, and the same command leaves the intervals out."""
    data = table_csv(tmp_path / "t.csv")
    data.iloc[:75].to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "-y", "y", "-t", "site", "-x", "v*", "--alpha", 0.01, "--no-report")
    said = cli(*words, "--intervals", "-o", tmp_path / "run", code=1).err
    assert "task 'b' has 8 for 10 features" in said
    assert "leave such tasks out with --small-tasks 'drop'" in said
    assert (tmp_path / "run" / "model.json").exists()
    cli(*words, "--resume", "-o", tmp_path / "run")
    assert not (tmp_path / "run" / "intervals.csv").exists()
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert {"intervals", "level", "small_tasks"}.isdisjoint(config)
    cli(*words, "--intervals", "--small-tasks", "drop", "-o", tmp_path / "dropped")
    assert set(pd.read_csv(tmp_path / "dropped" / "intervals.csv").task) == {"a"}


def test_debiased_intervals_are_those_of_the_library(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    data, run = table_csv(tmp_path / "t.csv"), tmp_path / "run"
    words = ("-x", "v*", "-y", "y", "-t", "site", "--alpha", 0.3, "--row-groups", "family")
    asked = ("--interval-method", "debiased", "--interval-features", "v7, v0", "--level", 0.95)
    result = cli("fit", tmp_path / "t.csv", *words, "--intervals", *asked, "-o", run)
    assert "p <= 0.05 after Holm's correction for 2 features" in result.out
    model = ts.MultiTaskLasso(alpha=0.3, standardize=True).fit(data[NAMES], data.y, task=data.site)
    rows = {"groups": data.family.to_numpy(), "level": 0.95}
    found = ts.debiased_inference(model, data[NAMES], data.y, task=data.site, features=["v0", "v7"], **rows)
    table = pd.read_csv(run / "intervals.csv")
    assert list(table) == found.columns
    assert table.feature.tolist() == found.feature.tolist()
    for name in found.columns[2:]:
        np.testing.assert_allclose(table[name], found[name], rtol=1e-9, err_msg=name)
    again = read_intervals(RunFolder(run))
    assert again is not None
    assert (again.n_tests, again.errors) == (2, "robust, of groups of rows")
    np.testing.assert_array_equal(again.tolerated_error, table.tolerated_error)
    page = render(reports[-1])
    assert "which no data can prove" in page
    said = (run / "methods.txt").read_text()
    assert "desparsified Lasso" in said
    assert "van de Geer" in said


def test_what_debiased_intervals_refuse(cli: CommandLine, tmp_path: Path) -> None:
    table_csv(tmp_path / "t.csv")
    words = ("fit", tmp_path / "t.csv", "-x", "v*", "-y", "y", "-t", "site", "--alpha", 0.3, "-o", tmp_path / "run")
    debiased = ("--intervals", "--interval-method", "debiased")
    for more, code, said in (
        (debiased[1:], 2, "--interval-method: is for --intervals"),
        (("--intervals", "--interval-features", "all"), 2, "is for --interval-method debiased"),
        ((*debiased, "--interval-features", "w1"), 2, "no feature 'w1'"),
        ((*debiased, "-m", "huber"), 1, "no debiased errors are known of Huber's loss"),
    ):
        assert said in cli(*words, *more, code=code).err
        assert not (tmp_path / "run" / "model.json").exists()
