"""No methods paragraph, report or printed summary has a hole: a type or None where a word should be, braces, nan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine
from holes import holes, page_holes
from sklearn.base import clone

import tasksieve as ts
from tasksieve.checks.estimator_data import rows_for
from tasksieve.checks.registry import ESTIMATORS
from tasksieve.checks.registry import LOSSES as LOSS_OBJECTS
from tasksieve.checks.registry import PENALTIES as PENALTY_OBJECTS
from tasksieve.fitted.shown import certificate_rows
from tasksieve.members import LOSSES, PENALTIES
from tasksieve.report import content_from_model, render
from tasksieve.report.methods import model_words, objective_words
from tasksieve.runs.registry import MODELS


@pytest.mark.parametrize(
    "text",
    [
        "with losses f_t (list of words), v_t", "the loss (dict)", "R² was nan", "alpha = None", "a {penalty} penalty",
        "the <tasksieve.losses.Huber object at 0x7f>", "two  spaces", "empty ()", "It minimises .", "was chosen..",
    ],
)  # fmt: skip
def test_holes_are_found(text: str) -> None:
    assert holes(text)


def test_sound_words_have_none() -> None:
    assert not holes("None of 6 features is used (x1, x2, ...): f_t (squared of a; huber (delta = 1.35) of b), W_jᵀ.")


def fitted(name: str) -> Iterator[tuple[Any, Any]]:
    model = ESTIMATORS[name]
    several = "tasks" not in getattr(model, "_skip_checks", {})
    for many in (True, False) if several else (False,):
        if not many and getattr(model, "graph", None) is not None:
            continue  # a graph of three tasks
        if not many and isinstance(getattr(model, "losses", None), list):
            continue  # a loss for each of three
        if not many and isinstance(model, ts.OnlineMultiTaskClassifier):
            continue  # one task has three classes
        rows = rows_for(model, many)
        yield clone(model).fit(rows.X, rows.y, **rows.arguments), rows


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(name: str) -> None:
    for model, rows in fitted(name):
        content = content_from_model(model, rows.X, rows.y, **rows.arguments, n_alphas=3)
        for words in (content.methods, content.asked, content.answered, *content.warnings, *content.citations):
            assert not holes(words), name
        assert not page_holes(render(content)), name
        shown = ". ".join(f"{what}: {value}" for what, value in certificate_rows(model))
        assert not holes(shown), name


@pytest.mark.parametrize("loss", [*LOSSES.offered(), *LOSS_OBJECTS.values()], ids=str)
def test_losses(loss: Any) -> None:
    for penalty in (*PENALTIES.offered(), *PENALTY_OBJECTS.values()):
        params = {"loss": loss, "penalty": penalty, "ridge": 0.5, "task_graph": "chain", "graph_strength": 2.0}
        assert not holes(model_words("MultiTaskRegressor", params))
        assert not holes(objective_words("MultiTaskRegressor", params))
    for losses in (loss, [loss, "squared"], {"a": loss, "b": "cox", "c": loss}):
        said = objective_words("MultiTaskMixed", {"losses": losses, "penalty": "l21", "ridge": 0.5})
        assert not holes(said)
        assert "ridge/2" in said


def test_a_mixed_model_names_the_loss_of_each_task() -> None:
    """In whatever form the losses are given."""
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((40, 3)), rng.standard_normal(40)
    y = {"pressure": X[:, 0] + z, "diabetes": np.where(X[:, 0] + z > 0, "yes", "no")}
    objects, said = {"diabetes": ts.losses.Logistic(), "pressure": ts.losses.Huber(0.5)}, []
    for losses in (["huber:delta=0.5", "logistic"], objects):
        content = content_from_model(ts.MultiTaskMixed(losses, alpha=0.1).fit(X, y), X, y, n_alphas=0)
        said.append(content.methods)
    assert "with losses f_t (huber (delta = 0.5) of pressure; logistic of diabetes)" in said[0]
    assert "with losses f_t (logistic of diabetes; huber (delta = 0.5) of pressure)" in said[1]


TABLE = {
    "cox": ["--time", "days", "--event", "died"],
    "ordinal": ["-y", "pain", "--categories", "none,mild,severe"],
    "poisson": ["-y", "visits"],
    "mixed": ["--outcome", "y=value", "--outcome", "diabetes=binary", "--outcome", "visits=count", "--outcome",
              "pain=ordered", "--outcome", "death=survival", "--time", "death=days", "--event", "death=died",
              "--categories", "pain=none,mild,severe"],
    "logistic": ["-y", "diabetes"],
    "multinomial-owl": ["-y", "pain"],
    "group-lasso": ["-y", "y", "--feature-groups", "groups.csv"],
}  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    z = X[:, 0] + rng.logistic(0.0, 0.4, 80)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)]).assign(
        site=np.repeat(["a", "b"], 40),
        y=np.round(3 * z, 2),
        diabetes=np.where(z > 0, "yes", "no"),
        visits=rng.poisson(np.exp(0.5 * z)),
        pain=np.array(["none", "mild", "severe"])[np.digitize(z, [-0.6, 0.6])],
        days=np.round(50 * np.exp(-z) + 0.1, 1),
        died=rng.choice([0, 1], 80),
    )
    frame.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "groups.csv").write_text("feature,group\nx0,g\nx1,g\nx2,h\nx3,h\n")
    return tmp_path / "table.csv"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [pytest.param(k, marks=() if k == "mixed" else pytest.mark.slow) for k in MODELS])
def test_runs(cli: CommandLine, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """What a fit prints, writes and reports, of every model of the command line."""
    monkeypatch.chdir(tmp_path)
    words: list[Any] = [*TABLE.get(kind, ["-y", "y"]), "--model", kind, "-x", "x*"]
    words += [] if kind in ("mixed", "multinomial-owl") else ["-t", "site"]
    words += [] if kind == "graph-svm" else ["--cv", 3, "--alphas", 6, "--eps", 0.1]
    cli("fit", table, *words, "-o", "run")  # which looks for holes in what every run of the tests prints and leaves
    paragraph = (tmp_path / "run" / "methods.txt").read_text(encoding="utf-8")
    assert "tasksieve" in paragraph
    if kind == "mixed":
        assert "(squared of y; logistic of diabetes; poisson of visits; ordinal of pain; cox of death)" in paragraph
