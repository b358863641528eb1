"""No Python in what the command line says: every message of the library, as the command line would say it."""

from __future__ import annotations

import ast
import pickle
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import CommandLine, classification_csv, regression_csv

import tasksieve as ts
from tasksieve.cli import errors, exit_codes
from tasksieve.cli.errors import with_rows
from tasksieve.cli.messages import ARGUMENTS, in_words
from tasksieve.messages import Message, ParameterError, either, estimator_name
from tasksieve.runs.registry import MODELS

PACKAGE = Path(ts.__file__).parent
LIBRARY = (
    "design", "findings", "fitted", "genotypes", "graph", "linear", "losses", "online", "path", "penalties", "proof",
    "screening", "tasks",
)  # fmt: skip

#: files with messages about what no command passes on: lists of matrices, tensors, splitters, tools called from Python
NOT_TYPED = {
    "design/device/matrix.py", "design/storage/compose.py", "findings/gaussian_copies.py", "findings/imputation.py",
    "findings/imputed_halves.py", "findings/knockoffs.py", "fitted/fill_missing.py", "fitted/mean_task.py",
    "fitted/model_selection.py", "fitted/probability_calibration.py",
    "fitted/state.py", "fitted/without_task.py",
    "graph/certified.py", "graph/cross_validation.py", "linear/conformal.py", "linear/transfer.py",
    "online/certify.py", "penalties/dirty.py", "penalties/sorted.py", "screening/gap.py", "screening/standalone.py",
    "screening/state.py", "tasks/named.py", "tasks/task_column.py", "tasks/tensors.py",
}  # fmt: skip
#: how messages of other files begin that are about such
FOR_PYTHON = (
    "7 has sparse columns", "7 is a lazy frame", "7 is a list of tensors", "7 takes one matrix", "7 was saved by",
    "Feature 7 has no group",
    "The halves were followed", "The weight of group", "X: feature 7", "a stream must give", "class_weight ",
    "cv: fold 7: 7 is a mask", "estimator: ", "feature_weights ", "feature_weights: ", "fit_intercept is",
    "fold was given", "graph has 7 rows", "graph_tasks ", "groups was given", "moments have no folds",
    "need=",
    "random_state is", "sample_weight.shape", "scoring=", "screening and warm_start", "solver=", "task: a libsvm file",
    "task_weights has shape", "the model was fitted with", "zero_coefficients",
)  # fmt: skip

#: parameters and arguments that are no English words
NAMES = {
    "Cs", "alphas", "class_weight", "copy_X", "eps", "feature_groups", "feature_weights", "fit_intercept",
    "fold_tol", "graph_strength", "graph_tasks", "hash_features", "intercept_scaling", "l1_ratio", "max_iter",
    "n_alphas", "n_jobs", "n_pairs", "n_splits", "oscar_ratio", "random_state", "sample_weight", "selection_rule",
    "small_tasks", "task_graph", "task_weights", "tol", "warm_start",
}  # fmt: skip


def rendered(node: Any) -> Any:
    """A message with something in its places: 'a_word' where a repr stands, 7 elsewhere."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value)
            if isinstance(part, ast.Constant)
            else "'a_word'"
            if part.conversion == ord("r")
            else "7"
            for part in node.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
    if isinstance(node, ast.BinOp):
        return (rendered(node.left) or "") + (rendered(node.right) or "")
    if isinstance(node, ast.Call):
        name, given = called(node), [rendered(one) or "7" for one in node.args]
        values = {
            one.arg: rendered(one.value) if isinstance(one.value, ast.Call) else None for one in node.keywords
        }
        if name in ("Message", "value_error"):
            return Message(given[0], **{str(key): value or 7 for key, value in values.items()})
        if name == "either":
            return either(*given)
        if name == "ParameterError":
            return ParameterError(given[0], given[1], *given[2:])
    return None


def called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


@cache
def messages() -> list[tuple[str, Any]]:
    found = []
    for part in LIBRARY:
        for file in sorted((PACKAGE / part).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                name = called(node)
                if name in ("ValueError", "warn", "RefusedRow", "ParameterError", "value_error"):
                    argument = node.args[-1] if name == "RefusedRow" else node.args[0]
                    words = rendered(node if name in ("ParameterError", "value_error") else argument)
                    if words:
                        found.append((str(file.relative_to(PACKAGE)), words))
    return found


LASSO_CV = estimator_name(ts.MultiTaskLassoCV())

PYTHON = re.compile(
    r"\b(np|pd|sklearn|pandas|scipy|torch|tasksieve|ts)\.[a-zA-Z]|[a-z]\w*=(?!=)|' parameter|\.\w+\(|"
    r"\b(MultiTask|Calibrated|Multinomial|Graph|Online)[A-Z]\w+|\b[a-z]+_\b|\bValueError\b|\bfor \w+ in\b|"
    + r"|".join(rf"(?<![-\w]){name}(?!\w)" for name in sorted(NAMES))
)


def test_there_are_messages() -> None:
    assert len(messages()) > 450


def test_messages_name_parameters_that_there_are() -> None:
    """A field of a message is a parameter, or its value is given: a typing error must not become a name."""
    kinds = [getattr(ts, name) for name in dir(ts) if hasattr(getattr(ts, name), "_get_param_names")]
    known = {parameter for kind in kinds for parameter in kind._get_param_names()} | set(ARGUMENTS)
    named = {
        part.given[0] for _, words in messages() for part in parts_of(words) if part.method == "parameter"
    }
    assert len(named) > 20
    assert named - known == {"task_geno", "task_maf", "dosages", "unknown_task"}  # of `read_plink`, and `predict`


def parts_of(message: Any) -> list[Any]:
    return [part for part in getattr(message, "_parts", ()) if not isinstance(part, str)]


@pytest.mark.parametrize("part", LIBRARY)
def test_no_message_speaks_python(part: str) -> None:
    left = []
    for position, message in messages():
        if position.startswith(f"{part}/") and position not in NOT_TYPED:
            said = in_words(message)
            found = PYTHON.search(re.sub(r"'[^']*'", "", said))
            if (found or not said.strip(" .")) and not said.startswith(FOR_PYTHON):
                left.append(f"{position}: {found and found[0]!r} in {said!r}")
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
    if hasattr(kind(), "ties"):
        y = ts.survival(np.arange(24), np.arange(24) % 2)
    for parameter in kind._get_param_names():
        with pytest.raises((ValueError, ImportError)) as refused:
            kind(**{parameter: object()}).fit(X, y, task=task)
        assert errors.exit_code(refused.value) == exit_codes.USER_ERROR
        said = capsys.readouterr().err.removeprefix("tasksieve: ").split("; got <object")[0]
        assert not PYTHON.search(re.sub(r"'[^']*'", "", said)), said


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (ParameterError("tol", "must be a number >= 0", -1.0), "--tol must be a number >= 0; got -1.0."),
        (ParameterError("n_jobs", "must be 3", "2"), "--threads must be 3; got '2'."),
        (
            Message("{positive=} cannot have {feature_weights} of 0.", positive=True),
            "--positive cannot have weights of features of 0.",
        ),
        (
            Message("{model}: no {tol=} ({max_iter=}).", model=LASSO_CV, tol=1e-6, max_iter=5),
            "--model lasso: no --tol 1e-06 (--max-iter 5).",
        ),
        (
            Message("{fit_intercept=} and {standardize=}", fit_intercept=False, standardize=True),
            "--no-intercept and --standardize",
        ),
        (Message("class {label!r} is 'tol'", label="max_iter=3"), "class 'max_iter=3' is 'tol'"),
        (Message("No row is left.{how}", how=either(" Use np.ones(3) instead.")), "No row is left."),
        (Message("{groups}: only {n} can be held out", n=2), "--row-groups: only 2 can be held out"),
        (ValueError(Message("{cv=} is too many", cv=5)), "--cv 5 is too many"),
        (Message("{q=}", q=1) + " and " + Message("{tol}"), "--q 1 and --tol"),
        (ValueError("data_1/my_file.bim, line 3: 5 fields"), "data_1/my_file.bim, line 3: 5 fields"),
    ],
)
def test_words(message: Any, said: str) -> None:
    assert in_words(message) == said
    assert in_words(pickle.loads(pickle.dumps(message))) == said  # as it comes from another process


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
def test_the_command_line_speaks_of_options(
    cli: CommandLine, tmp_path: Path, options: list[str], said: str
) -> None:
    table = regression_csv(tmp_path / "t.csv", n=40)
    refused = cli(
        "fit", table, "-y", "y", "-t", "region", *options, "-o", tmp_path / "run", "--no-report", code=None
    )
    assert refused.code in (1, 2)
    assert said in refused.err, refused.err
    assert not PYTHON.search(re.sub(r"'[^']*'", "", refused.err)), refused.err


def test_warnings_speak_of_options(cli: CommandLine, tmp_path: Path) -> None:
    table = classification_csv(tmp_path / "t.csv")
    words = [
        "fit",
        table,
        "-y",
        "state",
        "-t",
        "site",
        "--model",
        "logistic",
        "--alpha",
        "0.001",
        "--max-iter",
        "1",
    ]
    told = cli(*words, "-o", tmp_path / "run", "--no-report", code=3)
    assert "--model logistic did not reach --tol 1e-06 in" in told.err
    assert "raise --max-iter, or --tol if that is enough" in told.err
    assert not PYTHON.search(re.sub(r"'[^']*'", "", told.err)), told.err


def test_folds_and_quantities(cli: CommandLine, tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "table.csv")
    fit = ["fit", table, "--target", "y", "--task", "region", "--out", tmp_path / "run"]
    told = cli(*fit, "--cv", 5000, code=1).err
    assert "--cv 5000 is too many folds for " in told
    assert " rows in 3 tasks" in told
    # each number would be a class of its own: that takes hours
    told = cli(*fit, "--model", "logistic", "--max-categories", 20, code=1).err
    assert "--target: column 'y' of " in told
    assert "Quantities are for --model lasso" in told
