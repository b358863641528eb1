"""No Python in what the command line says: every message of the library, as the command line would say it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import CommandLine, classification_csv, regression_csv

import tasksieve as ts
from tasksieve.cli import exits
from tasksieve.cli.spoken import spoken, with_rows
from tasksieve.runs.registry import MODELS

PACKAGE = Path(ts.__file__).parent
LIBRARY = (
    "design", "findings", "fitted", "genotypes", "graph", "linear", "losses", "online", "path", "penalties", "proof",
    "screening", "tasks",
)  # fmt: skip

#: parameters and arguments that are no English words
NAMES = {
    "Cs", "alphas", "class_weight", "copy_X", "eps", "feature_groups", "feature_weights", "fit_intercept",
    "fold_tol", "graph_strength", "graph_tasks", "hash_features", "intercept_scaling", "l1_ratio", "max_iter",
    "n_alphas", "n_jobs", "n_pairs", "n_splits", "oscar_ratio", "random_state", "sample_weight", "selection_rule",
    "small_tasks", "task_graph", "task_weights", "tol", "warm_start",
}  # fmt: skip


def rendered(node: Any) -> str | None:
    """A message with something in its places: 'word' where a repr stands, 7 elsewhere."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "'a_word'" if part.conversion == ord("r") else "7"
            for part in node.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
    if isinstance(node, ast.BinOp):
        return (rendered(node.left) or "") + (rendered(node.right) or "")
    return None


@cache
def messages() -> list[tuple[str, str]]:
    found = []
    for part in LIBRARY:
        for file in sorted((PACKAGE / part).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                call = node.exc if isinstance(node, ast.Raise) else node
                if not isinstance(call, ast.Call) or not call.args:
                    continue
                name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
                if name in ("ValueError", "warn", "RefusedRow"):
                    words = rendered(call.args[-1] if name == "RefusedRow" else call.args[0])
                    if words:
                        found.append((f"{file.relative_to(PACKAGE)}:{node.lineno}", words))
    return found


PYTHON = re.compile(
    r"\b(np|pd|sklearn|pandas|scipy|torch|tasksieve|ts)\.[a-zA-Z]|[a-z]\w*=(?!=)|' parameter|\.\w+\(|"
    r"\b(MultiTask|Calibrated|Multinomial|Graph|Online)[A-Z]\w+|\b[a-z]+_\b|\bValueError\b|\bfor \w+ in\b|"
    + r"|".join(rf"(?<![-\w]){name}(?!\w)" for name in sorted(NAMES))
)


def test_there_are_messages() -> None:
    assert len(messages()) > 450


@pytest.mark.parametrize("part", LIBRARY)
def test_no_message_speaks_python(part: str) -> None:
    left = []
    for place, message in messages():
        if place.startswith(f"{part}/"):
            said = spoken(message)
            found = PYTHON.search(re.sub(r"'[^']*'", "", said))
            if found or not said.strip(" ."):
                left.append(f"{place}: {found and found[0]!r} in {said!r}, of {message!r}")
    assert left == []


# What stands behind --model; the CV siblings check the rest by these.
TYPED = [name for kind in MODELS.values() for name in kind.estimators]


@pytest.mark.parametrize("name", [*TYPED, "MultiTaskLassoCV"])
def test_every_parameter_that_is_refused_is_named_as_it_is_typed(name: str, capsys: Any) -> None:
    """Real errors of `fit`, thrown through what handles the errors of a command."""
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((24, 6)), np.repeat([0, 1], 12)
    kind = getattr(ts, name)
    y = np.arange(24) % 2 if hasattr(kind(), "class_weight") else X[:, 0]
    for parameter in kind._get_param_names():
        with pytest.raises((ValueError, ImportError)) as refused:
            kind(**{parameter: object()}).fit(X, y, task)
        assert exits.exit_code(refused.value) == exits.USER_ERROR
        said = capsys.readouterr().err.removeprefix("tasksieve: ").split("; got <object")[0]
        assert not PYTHON.search(re.sub(r"'[^']*'", "", said)), said


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("The 'tol' parameter must be a number >= 0; got -1.0.", "--tol must be a number >= 0; got -1.0."),
        ("The 'n_jobs' parameter must be None or 3; got '2'.", "--threads must be none or 3; got '2'."),
        ("positive=True cannot have feature_weights of 0.", "--positive cannot have weights of features of 0."),
        ("MultiTaskLassoCV: no tol=1e-06 (max_iter=5).", "--model lasso: no --tol 1e-06 (--max-iter 5)."),
        ("fit_intercept=False and standardize=True", "--no-intercept and --standardize"),
        ("class 'max_iter=3' of task 'a_b' is 'tol'", "class 'max_iter=3' of task 'a_b' is 'tol'"),
        ("No row is left. Use np.ones(3) instead.", "No row is left."),
        ("cv=5 is too many folds", "--cv 5 is too many folds"),
        ("groups: only 2 of 3 groups can be held out", "--row-groups: only 2 of 3 groups can be held out"),
        ("data_1/my_file.bim, line 3: 5 fields", "data_1/my_file.bim, line 3: 5 fields"),
    ],
)
def test_words(message: str, said: str) -> None:
    assert spoken(message) == said


def test_tables_say_how_rows_are_counted() -> None:
    counted = " (Row 1 is the first row of data, the header is not counted.)"
    assert with_rows("t.csv: row 3, column 'a' is missing") == "t.csv: row 3, column 'a' is missing" + counted
    assert with_rows("t.csv has no column 'row 3'") == "t.csv has no column 'row 3'"


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tol", "-1"], "--tol must be a number >= 0; got -1.0."),
        (["--alpha", "-2"], "--alpha must be a number > 0; got -2.0."),
        (["--max-iter", "0"], "--max-iter must be an integer >= 1; got 0."),
        (["--screening", "no"], "--screening must be one of 'auto', 'dpc'"),
        (["--model", "elastic-net", "--l1-ratio", "3"], "--l1-ratio must be a number > 0 and <= 1; got 3.0."),
        (["--model", "huber", "--delta", "0"], "--delta must be a number > 0; got 0.0."),
        (["--model", "quantile", "--q", "2"], "--q must be a number > 0 and <= 1; got 2.0."),
        (["--alphas", "-1,2"], "--alphas must be one or more positive numbers."),
        (["--cv", "80"], "--cv 80 is too many folds for"),
    ],
)
def test_the_command_line_speaks_of_options(cli: CommandLine, tmp_path: Path, options: list[str], said: str) -> None:
    table = regression_csv(tmp_path / "t.csv", n=40)
    refused = cli("fit", table, "-y", "y", "-t", "region", *options, "-o", tmp_path / "run", "--no-report", code=None)
    assert refused.code in (1, 2)
    assert said in refused.err, refused.err
    assert not PYTHON.search(re.sub(r"'[^']*'", "", refused.err)), refused.err


def test_warnings_speak_of_options(cli: CommandLine, tmp_path: Path) -> None:
    table = classification_csv(tmp_path / "t.csv")
    words = ["fit", table, "-y", "state", "-t", "site", "--model", "logistic", "--alpha", "0.001", "--max-iter", "1"]
    told = cli(*words, "-o", tmp_path / "run", "--no-report", code=3)
    assert "--model logistic did not reach --tol 1e-06 in" in told.err
    assert "raise --max-iter, or --tol if that is enough" in told.err
    assert not PYTHON.search(re.sub(r"'[^']*'", "", told.err)), told.err


def test_folds_and_quantities(cli: CommandLine, tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "table.csv")
    fit = ["fit", table, "--target", "y", "--task", "region", "--out", tmp_path / "run"]
    told = cli(*fit, "--cv", 5000, code=1).err
    assert "--cv 5000 is too many folds for " in told
    assert " rows in these tasks" in told
    # each number would be a class of its own: that takes hours
    told = cli(*fit, "--model", "logistic", "--max-categories", 20, code=1).err
    assert "--target: column 'y' of " in told
    assert "Quantities are for --model lasso" in told
