"""Losses, penalties, groups, graphs and offsets from the command line: the model of Python, and its predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine, regression_csv

import tasksieve as ts
from tasksieve.report.content import ReportContent
from tasksieve.runs import RunFolder, load_model

Reports = list[ReportContent]
FEATURES = list("abcdef")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = regression_csv(tmp_path / "t.csv")
    frame, rng = pd.read_csv(file), np.random.default_rng(1)
    frame["hours"] = rng.uniform(0.5, 2.0, len(frame)).round(3)
    frame["log_hours"] = np.log(frame.hours)
    frame["events"] = rng.poisson(frame.hours * np.exp(0.5 * frame.a))
    frame["days"] = rng.gamma(2.0, np.exp(0.5 * frame.a))
    frame["grade"] = np.array(["low", "mid", "high"])[np.digitize(frame.a, [-0.5, 0.5])]
    frame.to_csv(file, index=False)
    return file


def arrays(table: Path, target: str = "y") -> tuple[np.ndarray, np.ndarray, np.ndarray, pd.DataFrame]:
    frame = pd.read_csv(table)
    return frame[FEATURES].to_numpy(), frame[target].to_numpy(), frame.region.to_numpy(str), frame


def fit(cli: CommandLine, table: Path, out: Path, *more: Any, target: str = "y") -> Any:
    cli("fit", table, "-y", target, "-t", "region", "-x", "[a-f]", "-o", out, *more)
    return load_model(RunFolder(out)).estimator


def test_strengths_of_a_graph_are_compared(cli: CommandLine, reports: Reports, table: Path, tmp_path: Path) -> None:
    X, y, task, _ = arrays(table)
    words = ("--penalty", "l21", "--task-graph", "chain", "--alphas", 5, "--full-path", "--graph-strength", "0,0.3,30")
    said = cli("fit", table, "-y", "y", "-t", "region", "-x", "[a-f]", "-o", tmp_path / "run", *words)
    found = load_model(RunFolder(tmp_path / "run")).estimator
    expected = ts.MultiTaskRegressorCV(
        task_graph="chain", graph_strength=[0.0, 0.3, 30.0], n_alphas=5, standardize=True
    ).fit(X, y, task=task)
    assert found.graph_strength == expected.graph_strength_
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert f"--graph-strength {expected.graph_strength_:g} (of 0, 0.3, 30)" in said.out
    content = reports[-1]
    assert content.tables[0].title == "Values of graph_strength that were compared"
    assert [row[0] for row in content.tables[0].rows] == ["0", "0.3", "30"]
    assert f"graph_strength = {expected.graph_strength_:g} (among 0, 0.3, 30)" in content.methods
    config = tmp_path / "run" / "config.json"
    old = json.loads(config.read_text())
    assert old["graph_strength"] == "0,0.3,30"
    other = tmp_path / "old.json"  # version 0.2 wrote a number
    other.write_text(json.dumps({**old, "graph_strength": 0.3}))
    cli("fit", "--config", other, "-o", tmp_path / "again", "--alphas", 3)
    assert load_model(RunFolder(tmp_path / "again")).estimator.graph_strength == 0.3
    words = ("-y", "y", "-t", "region", "--penalty", "l21", "--task-graph", "chain", "--graph-strength", "0.1,1")
    refused = cli("fit", table, *words, "-o", tmp_path / "none", "--alpha", 0.1, code=2)
    assert "--graph-strength: several values are for --cv to choose from" in refused.err
    words = ("-y", "y", "-t", "region", "-m", "graph-svm", "--graph", "complete", "--graph-strength", "0.1,1")
    refused = cli("fit", table, *words, "-o", tmp_path / "none", code=2)
    assert "--graph-strength: one number with --model graph-svm, a run for each value" in refused.err


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("words", "model"),
    [
        (("--loss", "huber", "--penalty", "dirty"), ts.MultiTaskRegressor("huber", "dirty", alpha=0.1)),
        (("--penalty", "linf", "--ridge", 0.2), ts.MultiTaskRegressor(penalty="linf", alpha=0.1, ridge=0.2)),
        (("--model", "huber", "--delta", 0.7), ts.MultiTaskHuber(alpha=0.1, delta=0.7)),
        (("-m", "quantile", "--q", 0.8, "--smoothing", 0.3), ts.MultiTaskQuantile(alpha=0.1, q=0.8, smoothing=0.3)),
        (
            ("--penalty", "l21", "--task-graph", "chain", "--graph-strength", 2),
            ts.MultiTaskRegressor(alpha=0.1, task_graph="chain", graph_strength=2.0),
        ),
        (
            ("--penalty", "l11", "--task-graph", "complete"),
            ts.MultiTaskRegressor(penalty="l11", alpha=0.1, task_graph=ts.graph.complete_graph(3)),
        ),
    ],
)
def test_members(
    cli: CommandLine, reports: Reports, table: Path, tmp_path: Path, words: tuple[Any, ...], model: Any
) -> None:
    X, y, task, _ = arrays(table)
    found = fit(cli, table, tmp_path / "run", *words, "--alpha", 0.1)
    expected = model.set_params(standardize=True).fit(X, y, task=task)
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.coef_.any()
    cli("predict", tmp_path / "run", table, "-o", tmp_path / "p.csv")
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv").prediction, expected.predict(X, task=task))


def test_members_are_cross_validated(cli: CommandLine, reports: Reports, table: Path, tmp_path: Path) -> None:
    words = ("--loss", "huber", "--penalty", "linf", "--cv", 3, "--alphas", 5, "--eps", 0.1)
    found = fit(cli, table, tmp_path / "run", *words)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["model"] == "any"
    X, y, task, _ = arrays(table)
    expected = ts.MultiTaskRegressorCV(
        "huber", "linf", cv=3, n_alphas=5, eps=0.1, standardize=True, early_stopping=True
    ).fit(X, y, task=task)
    assert found.alpha == expected.alpha_


def test_rates_with_an_offset(cli: CommandLine, reports: Reports, table: Path, tmp_path: Path) -> None:
    words = ("-m", "poisson", "--offset", "log_hours", "--alpha", 0.05)
    found = fit(cli, table, tmp_path / "run", *words, target="events")
    X, y, task, frame = arrays(table, "events")
    offset = frame.log_hours.to_numpy()
    expected = ts.MultiTaskPoisson(alpha=0.05, standardize=True).fit(X, y, task=task, offset=offset)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    cli("predict", tmp_path / "run", table, "-o", tmp_path / "p.csv")
    rates = expected.predict(X, task=task, offset=offset)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv").prediction, rates)
    frame.drop(columns="log_hours").to_csv(tmp_path / "without.csv", index=False)
    assert "log_hours" in cli("predict", tmp_path / "run", tmp_path / "without.csv", code=1).err
    frame.loc[4, "log_hours"] = np.inf
    frame.to_csv(tmp_path / "bad.csv", index=False)
    refused = cli("fit", tmp_path / "bad.csv", "-y", "events", "-x", "a", *words, "-o", tmp_path / "no", code=1)
    assert "row 5" in refused.err
    assert "log_hours" in refused.err


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("loss", "target"),
    [
        ("gamma", "days"),
        ("tweedie:power=1.3", "events"),
        ("negative_binomial:size=2.5", "events"),
        ("expectile:level=0.9", "y"),
        ("log_cosh", "y"),
    ],
)
def test_losses_with_options(
    cli: CommandLine, reports: Reports, table: Path, tmp_path: Path, loss: str, target: str
) -> None:
    """The model of Python; options of the loss are kept with the run, stated in its words, and used by predictions."""
    words = ("--loss", loss, "--alpha", 0.03, *(("--offset", "log_hours") if target == "events" else ()))
    found = fit(cli, table, tmp_path / "run", *words, target=target)
    X, y, task, frame = arrays(table, target)
    rows = {"offset": frame.log_hours.to_numpy()} if target == "events" else {}
    expected = ts.MultiTaskRegressor(ts.losses.as_loss(loss), alpha=0.03, standardize=True).fit(X, y, task=task, **rows)
    assert found.loss == loss
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.coef_.any()
    cli("predict", tmp_path / "run", table, "-o", tmp_path / "p.csv")
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv").prediction, expected.predict(X, task=task, **rows))
    option = loss.partition(":")[2]
    assert option.replace("=", " = ") in (tmp_path / "run" / "methods.txt").read_text(encoding="utf-8")
    assert cli("verify", tmp_path / "run").out.startswith("proved")


def test_losses_that_are_refused(cli: CommandLine, table: Path, tmp_path: Path) -> None:
    words = ("fit", table, "-t", "region", "-x", "[a-f]", "--alpha", 0.1, "-o", tmp_path / "no")
    wrong = cli(*words, "-y", "events", "--loss", "gamma", code=1).err
    assert "must be positive" in wrong
    assert "tweedie" in wrong
    for loss, said in (
        ("tweedie:power=3", "power must be a number between 1 and 2"),
        ("negative_binomial:theta=1", "its options are: size"),
        ("cosh", "'log_cosh', 'poisson', 'negative_binomial', 'gamma', 'tweedie'"),
    ):
        assert said in cli(*words, "-y", "events", "--loss", loss, code=1).err


def test_groups_of_features(cli: CommandLine, reports: Reports, table: Path, tmp_path: Path) -> None:
    groups = tmp_path / "groups.csv"
    groups.write_text("feature,group\na,one\nb,one\nc,two\nd,two\ncity,town\n")
    words = ("-m", "group-lasso", "--feature-groups", groups, "--alpha", 0.2, "-x", "city", "--reference", "none")
    found = fit(cli, table, tmp_path / "run", *words)
    assert [str(label) for label in found.feature_groups] == [
        "one", "one", "two", "two", "e (alone)", "f (alone)", "town", "town",
    ]  # fmt: skip
    selected = np.flatnonzero(found.coef_.any(axis=0)).tolist()
    assert {0, 1} <= set(selected)
    assert {6, 7} <= set(selected) or not {6, 7} & set(selected)
    cli("predict", tmp_path / "run", table, "-o", tmp_path / "p.csv")
    assert len(pd.read_csv(tmp_path / "p.csv")) == len(pd.read_csv(table))
    words = ("-m", "group-lasso", "--feature-groups", "column", "--alpha", 0.2, "-x", "city", "--reference", "none")
    by_column = fit(cli, table, tmp_path / "column", *words)
    assert [str(label) for label in by_column.feature_groups][-2:] == ["city", "city"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("feature,group\na,one\na,two\n", "must not overlap"),
        ("feature,group\nzebra,one\n", "'zebra'"),
        ("name,group\na,one\n", "needs the columns feature and group"),
        ("feature,group\na,\n", "row 1"),
    ],
)
def test_groups_that_are_none(cli: CommandLine, table: Path, tmp_path: Path, content: str, message: str) -> None:
    groups = tmp_path / "groups.csv"
    groups.write_text(content)
    words = ("-y", "y", "-x", "[a-f]", "-m", "group-lasso", "--alpha", 0.2, "-o", tmp_path / "run")
    assert message in cli("fit", table, *words, "--feature-groups", groups, code=1).err


def test_graph_of_tasks_from_a_file(cli: CommandLine, reports: Reports, table: Path, tmp_path: Path) -> None:
    graph = tmp_path / "graph.csv"
    graph.write_text("from,to,weight\nsouth,north,2\nnorth,east,1\n")
    words = ("--penalty", "l21", "--task-graph", graph, "--alpha", 0.1)
    found = fit(cli, table, tmp_path / "run", *words)
    X, y, task, _ = arrays(table)
    weights = np.array([[0, 1, 0], [1, 0, 2], [0, 2, 0]])  # east, north, south
    expected = ts.MultiTaskRegressor(alpha=0.1, task_graph=weights, standardize=True).fit(X, y, task=task)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    graph.write_text("from,to\nsouth,north\nnorth,mars\n")
    refused = cli("fit", table, "-y", "y", "-t", "region", *words, "-o", tmp_path / "no", code=1)
    assert "'mars'" in refused.err


def test_three_classes(cli: CommandLine, reports: Reports, table: Path, tmp_path: Path) -> None:
    found = fit(cli, table, tmp_path / "run", "-m", "logistic", "--alpha", 0.05, target="grade")
    X, y, task, _ = arrays(table, "grade")
    expected = ts.MultiTaskLogisticRegression(alpha=0.05, standardize=True).fit(X, y, task=task)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    cli("predict", tmp_path / "run", table, "--probabilities", "-o", tmp_path / "p.csv")
    frame = pd.read_csv(tmp_path / "p.csv")
    assert list(frame.columns) == [
        "task", "prediction", "probability of high", "probability of low", "probability of mid",
    ]  # fmt: skip
    np.testing.assert_allclose(frame.iloc[:, 2:], expected.predict_proba(X, task=task))


def test_options_that_belong_elsewhere(cli: CommandLine, table: Path, tmp_path: Path) -> None:
    fit = ("fit", table, "-y", "y", "-o", tmp_path / "run", "--alpha", 0.1)
    assert "--penalty" in cli(*fit, "-m", "lasso", "--penalty", "linf", code=2).err
    assert "--feature-groups" in cli(*fit, "-m", "group-lasso", code=2).err
    assert "--task-graph" in cli(*fit, "-m", "lasso", "--task-graph", "chain", code=2).err
    assert not (tmp_path / "run").exists()
