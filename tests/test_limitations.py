"""The page on limitations says what is so: claims that can be tried are tried, beside the words that make them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import CommandLine, regression_csv
from sklearn.impute import SimpleImputer

import tasksieve as ts
from tasksieve.members import LOSSES
from tasksieve.runs.registry import MODELS

PAGE = " ".join((Path(__file__).parents[1] / "docs" / "limitations.md").read_text(encoding="utf-8").split())
RNG = np.random.default_rng(0)
X, TASK = RNG.standard_normal((60, 6)), np.repeat([0, 1], 30)
y = X[:, 0] + RNG.standard_normal(60)
THREE = np.digitize(y, [-0.5, 0.5])
HOLED = np.where(np.arange(360).reshape(60, 6) == 7, np.nan, X)
FREE = np.array([0.0, 1, 1, 1, 1, 1])
LASSO = ts.MultiTaskLasso(alpha=0.1)


def said(words: str) -> None:
    assert words in PAGE


# the words of the page, what is tried, and the error that says so
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "are refused where nothing says what they mean: `fit` names the first one": (
        lambda: LASSO.fit(HOLED, y, task=TASK), "NaN: row 2"),
    "`predict` of a plain model refuses NaN, too": (lambda: LASSO.fit(X, y).predict(HOLED), "NaN"),
    "**`alpha > 0`**": (lambda: ts.MultiTaskLasso(alpha=0).fit(X, y), "alpha"),
    "**`l1_ratio > 0`**": (lambda: ts.MultiTaskElasticNet(l1_ratio=0).fit(X, y), "l1_ratio"),
    "not a parameter of `MultiTaskSparseGroupLasso`": (lambda: ts.MultiTaskSparseGroupLasso(ridge=1.0), "ridge"),
    "**`feature_weights`** not for Group OWL": (lambda: ts.MultiTaskOWL(feature_weights=FREE), "feature_weights"),
    "equal within a group for groups of features": (
        lambda: ts.MultiTaskRegressor(penalty=ts.penalties.Groups({"a": [0, 1, 2], "b": [3, 4, 5]}),
                                      feature_weights=np.arange(1.0, 7.0)).fit(X, y), "feature_weights"),
    "**`positive`** not for `MultinomialOWL`": (lambda: ts.MultinomialOWL(positive=True), "positive"),
    "without features that are never penalised": (
        lambda: ts.MultiTaskClassifier(feature_weights=FREE).fit(X, THREE), "never penalised"),
    "the online classifier has two for each task": (
        lambda: ts.OnlineMultiTaskClassifier().partial_fit(X, THREE), "binary"),
    "**Overlapping groups** of features": (
        lambda: ts.MultiTaskRegressor(penalty=ts.penalties.Groups({"a": [0, 1, 2], "b": [2, 3, 4, 5]})).fit(X, y),
        "must not overlap"),
    "**A task graph beside a penalty** needs rows for every node": (
        lambda: ts.MultiTaskRegressor(task_graph=ts.graph.complete_graph(3)).fit(X, y, task=TASK),
        "Tasks without rows"),
    "its loss is no sum over rows, so that moments, blocks of rows and streams are not for it": (
        lambda: ts.MultiTaskCox().fit_moments, "fit_moments"),
    "Losses with kinks (pinball, hinge, absolute deviations) allow no safe test": (
        lambda: ts.MultiTaskClassifier("hinge").fit(X, y > 0), "loss"),
    "**Paths and `CV` siblings** not for the online models": (lambda: ts.OnlineMultiTaskRegressor().path, "path"),
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused(words: str) -> None:
    said(words)
    tried, match = REFUSED[words]
    with pytest.raises((ValueError, TypeError, AttributeError), match=match):
        tried()


def test_ways_to_fit_rows_with_missing_values() -> None:
    for words in ("`ts.FillMissing`", "`ts.MultipleImputation`", "`ts.by_pattern`", "NaN in `y` is fine"):
        said(words)
    ts.MultiTaskLasso(alpha=0.1).fit(ts.FillMissing().fit(HOLED, task=TASK).transform(HOLED, task=TASK), y, task=TASK)
    ts.MultiTaskLasso(alpha=0.1).fit(ts.by_pattern(HOLED), y)
    ts.MultipleImputation(ts.MultiTaskLasso(alpha=0.1), SimpleImputer(), m=2).fit(HOLED, y, task=TASK)
    ts.MultiTaskLasso(alpha=0.1).fit(X, np.where(np.arange(60) == 3, np.nan, y), task=TASK)


def test_losses_are_those_that_are_named() -> None:
    """A loss that is new is new on the page."""
    names = {
        "squared": "squared", "square-root": "its root", "huber": "Huber", "log_cosh": "log-cosh",
        "quantile": "smoothed quantile", "expectile": "expectile", "poisson": "Poisson",
        "negative_binomial": "negative binomial", "gamma": "gamma", "tweedie": "Tweedie", "logistic": "logistic",
        "multinomial": "multinomial", "ordinal": "proportional odds", "cox": "Cox's partial likelihood",
        "smoothed_hinge": "smoothed and squared hinge", "squared_hinge": "squared hinge", "hinge": "the hinge",
        "epsilon_insensitive": "epsilon-insensitive", "squared_epsilon_insensitive": "epsilon-insensitive",
    }  # fmt: skip
    assert set(LOSSES) == set(names)
    sentence = PAGE.partition("- **Losses**: ")[2].partition("Of survival")[0]
    assert [word for word in names.values() if word not in sentence] == []


def test_machines_on_a_graph_and_online_models() -> None:
    said("those of the graph machines are not in the command line")
    assert not MODELS["graph-svm"].has_path
    assert hasattr(ts, "GraphSVCCV")
    said("[GPUs](howto/gpu.md) and [clusters](howto/cluster.md) are for the models of the engine")
    for model in (ts.GraphSVC(), ts.GraphSVR(), ts.OnlineMultiTaskRegressor(), ts.OnlineMultiTaskClassifier()):
        assert "device" not in model.get_params()
    assert "device" in LASSO.get_params()
    said("For the hinge loss `certify` gives a gap, but proves no feature zero or needed")
    hinge = ts.OnlineMultiTaskClassifier(loss="hinge", alpha=0.1).partial_fit(X, y > 0, task=TASK)
    found = hinge.certify(X, y > 0, task=TASK)
    assert 0.0 <= found.dual_gap < np.inf
    assert found.zero is None
    assert found.needed is None
    said("`GraphSVC` one against the rest")
    assert ts.GraphSVC().fit(X, THREE).coef_.shape == (3, 1, 6)


def test_what_needs_the_table_in_memory(cli: CommandLine, tmp_path: Path) -> None:
    said("`--row-groups`, `--no-shuffle` and `--date-parts` need a table in memory")
    said("**Tall data** are read once for the squared loss only")
    table = regression_csv(tmp_path / "t.csv")
    words = ["fit", table, "-y", "y", "-x", "[abcd]", "--chunk-rows", 20, "--no-report", "-o", tmp_path / "run"]
    for more in (["--row-groups", "city"], ["--no-shuffle"], ["--date-parts"], ["-m", "huber"]):
        assert "--chunk-rows" in cli(*words, *more, code=2).err


def test_what_streams_do_not_do(cli: CommandLine) -> None:
    said("Streams are judged by their first rows")
    shown = cli("stream", "--help").out
    assert "--keep" in shown
    assert "--id " not in shown
