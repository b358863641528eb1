"""``tasksieve grade``: what can be proved about the coefficients of any program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..linear.graded import Grade, GradePath
from ..linear.grading import grade
from ..losses import Cox, as_loss
from ..row_names import label_word
from ..tables import SurvivalColumns, Table, TableError, TableProblem, prepare, read_table
from ..tables.encode import as_words
from ..tables.table import UNNAMED
from .commands import GRADE
from .exit_codes import OK, UsageError, say
from .files import check_files, expand_tables, read_content, task_column
from .foreign_words import read_parameters
from .in_json import in_json
from .members import check_members
from .options import Asked, given_of, refuse
from .outcomes import SURVIVAL, read_survival
from .progress import working
from .source import named
from .table_source import PREPARED

#: files of objects: reading them may run what is in them
OBJECTS = (
    ".pkl", ".pickle", ".joblib", ".dill", ".rds", ".rda", ".rdata", ".jld", ".jld2", ".jls", ".mat", ".pt", ".pth",
)  # fmt: skip
INTERCEPTS = ("(intercept)", "intercept", "(Intercept)", "Intercept")


def run_grade(asked: Asked) -> int:
    """Read both tables, grade, and print the result.

    Coefficients are a table with columns feature, coefficient and, of several tasks, task; or feature and a column for
    each task. A feature called "(Intercept)" is the intercept.
    """
    for file in filter(None, (asked.coefficients, asked.intercepts)):
        if Path(file).suffix.lower() in OBJECTS:
            raise UsageError(
                f"{file}: files of objects are not opened, since reading them may run what is in them; write the "
                "coefficients as CSV (R: write.csv(as.matrix(coef(fit)), ...), Python: pandas.Series(...).to_csv)"
            )
    options = given_of(asked, GRADE, "param")
    if asked.loss in ("ordinal", "mixed"):
        what = "thresholds beside its coefficients" if asked.loss == "ordinal" else "a loss and a weight for each task"
        raise UsageError(f"--loss: {asked.loss} has {what}, for which there is no table; grade in Python takes them")
    survival = _survival(asked)
    if survival:
        options["loss"] = Cox(asked.ties)
    check_members(options, *(["penalty"] if survival else ["loss", "penalty"]))
    if asked.problem is not None:
        options = _foreign(asked, options)
    elif asked.parameters:
        raise UsageError("--parameter: is for --problem")
    elif asked.alpha is None:
        raise UsageError("--alpha: name the strength of the penalty (or --problem and --parameter)")
    with working("reading", asked.quiet):
        table = read_named_rows(asked.coefficients)
        problem = _read(asked, survival, as_words(table.columns["feature"]) if "feature" in table.columns else [])
        labels, names = _row_labels(problem), problem.encoding.feature_names
        values = path_columns(table, labels)
        coef, constants = read_coefficients(table, labels, names) if not values else read_path(table, values, names)
        if asked.intercepts is not None:
            constants = _read_intercepts(read_table(asked.intercepts), labels)
    if asked.problem is not None and len(labels) == 1 and not values:
        coef, constants = coef[0], constants[0]
    with working("grading", asked.quiet):
        found: Any = grade(coef, constants, problem.X, problem.y, **problem.row_arguments(groups=False), **options)
    if asked.certificate is not None:
        if found.certificate.header["n_features"] == len(names):
            found.certificate.header["features"] = list(names)
        found.certificate.save(asked.certificate)
    known = np.array(names, dtype=object)
    if isinstance(found, GradePath):
        content: dict[str, Any] = {"values": [_content(replace(one, feature_names=known)) for one in found]}
    else:
        found = replace(found, feature_names=known)
        content = _content(found)
    print(in_json(content) if asked.json else found.summary())
    return OK


def _foreign(asked: Asked, options: dict[str, Any]) -> dict[str, Any]:
    """What `grade` is given of the problem of another program."""
    ours = ("alpha", "ridge", "standardize", "positive", "task")
    for key in ours:
        if getattr(asked, key, None):
            raise UsageError(f"--{key}: --problem has its own words; give them as --parameter")
    if asked.penalty != "l21" or asked.loss not in ("squared", "cox") or not asked.fit_intercept:
        raise UsageError("--problem: loss, penalty and intercept are said in its own words, as --parameter")
    return {
        "problem": asked.problem,
        "parameters": read_parameters(asked.parameters or []),
        "solve": options["solve"],
    }


def _content(found: Grade) -> dict[str, Any]:
    """A grade for programs: its numbers, and features by name."""
    names: Any = found.feature_names
    numbers = ("objective", "dual_gap", "relative_gap", "best_objective", "excess")
    sets = {
        "selected": found.selected,
        "selected_and_needed": found.selected & found.proven_nonzero,
        "wrong_nonzero": found.wrong_nonzero,
        "wrong_zero": found.wrong_zero,
    }
    features = {key: [str(name) for name in names[which]] for key, which in sets.items()}
    counts = {"features": len(names), "proven_zero": int(found.proven_zero.sum())}
    return {**{name: getattr(found, name) for name in numbers}, **counts, **features, "words": found.summary()}


def _survival(asked: Asked) -> dict[str, SurvivalColumns]:
    """The columns of survival outcomes; none unless the loss is Cox's."""
    given = {key: getattr(asked, key) for key in SURVIVAL}
    if asked.loss != "cox":
        refuse((key for key, words in given.items() if words), "is for --loss cox")
        if not asked.target:
            raise UsageError("--target: name the column that is predicted")
        return {}
    if asked.target:
        raise UsageError("--target: --loss cox has --time and --event in its place")
    return read_survival(given, None)


def _read(asked: Asked, survival: dict[str, SurvivalColumns], graded: Iterable[str | None]) -> TableProblem:
    """The data, with the features that coefficients are of, whatever they look like."""
    given = given_of(asked, GRADE, "config")
    config = {key: value for key, value in given.items() if value is not None and value != []}
    config.pop("skip", None)
    config["table"] = expand_tables(asked.table, skip=asked.skip)
    if survival:
        config |= {"model": "cox", "target": list(survival)}
    check_files(config)
    config |= {"keep": [name for name in graded if name is not None], "ids": "names"}
    content = read_content(config)
    config["keep"] = [name for name in config["keep"] if name in content.table.columns]
    classes = not survival and as_loss(asked.loss).of_classes()
    labels: dict[str, Any] = {"survival": survival, "classes": classes}
    problem = prepare(content.table, task=task_column(config), **labels, **named(config, *PREPARED))
    for note in [*content.notes, *problem.notes]:
        say(f"note: {note}")
    return problem


def _row_labels(problem: TableProblem) -> list[str]:
    """What the rows of coefficients are called."""
    if problem.task is None and len(problem.targets) > 1:
        return list(problem.targets)
    return [str(label) for label in problem.tasks.tolist()]


def path_columns(table: Table, labels: list[str]) -> list[str]:
    """The columns of a path of one task, s0, s1, ... as R writes them; none where the table is another."""
    if len(labels) != 1 or "coefficient" in table.columns:
        return []
    numbers = [name for name in table.columns if name != "feature"]
    return numbers if len(numbers) > 1 else []


def read_named_rows(file: str) -> Table:
    """A table whose first column may have no name, as R and pandas write row names: these are the features."""
    table = read_table(file)
    if UNNAMED not in table.columns:
        return table
    names = {name: "feature" if name == UNNAMED else name for name in table.columns}
    return replace(table, columns={names[name]: column for name, column in table.columns.items()})


def read_path(table: Table, values: list[str], names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (K, d) and intercepts (K,) of columns that are values of a path, in their order."""
    coef, constants = np.zeros((len(values), len(names))), np.zeros(len(values))
    position = {name: j for j, name in enumerate(names)}
    for k, column in enumerate(values):
        seen = set()
        for feature, value in zip(_words(table, "feature"), _numbers(table, column), strict=True):
            if feature in seen:
                raise TableError(f"{table.source}: feature {feature!r} is there twice")
            seen.add(feature)
            if feature in INTERCEPTS:
                constants[k] = value
            elif feature in position:
                coef[k, position[feature]] = value
            else:
                raise TableError(f"{table.source}: feature {feature!r} is not in the data")
    return coef, constants


def read_coefficients(table: Table, labels: list[str], names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (tasks, features) and intercepts of a table; what it does not list is 0."""
    coef, constants = np.zeros((len(labels), len(names))), np.zeros(len(labels))
    features = _words(table, "feature")
    position, task_place = (
        {name: j for j, name in enumerate(names)},
        {name: t for t, name in enumerate(labels)},
    )
    entries: Iterable[tuple[str, str, float]]
    if "coefficient" in table.columns:
        tasks = _words(table, "task") if "task" in table.columns else [labels[0]] * len(features)
        if "task" not in table.columns and len(labels) > 1:
            raise TableError(f"{table.source}: there are {len(labels)} tasks; a column 'task' must name them")
        entries = zip(tasks, features, _numbers(table, "coefficient"), strict=True)
    else:
        found = [name for name in table.columns if name != "feature"]
        if len(labels) == 1 and len(found) == 1:
            pairs = [(labels[0], found[0])]
        else:
            pairs = [(name, name) for name in found]
        entries = [
            (task, feature, value)
            for task, column in pairs
            for feature, value in zip(features, _numbers(table, column), strict=True)
        ]
    seen = set()
    for task, feature, value in entries:
        if task not in task_place:
            raise TableError(f"{table.source}: task {task!r} is not in the data, which have {', '.join(labels[:5])}")
        if (task, feature) in seen:
            raise TableError(f"{table.source}: feature {feature!r} of task {task!r} is there twice")
        seen.add((task, feature))
        if feature in position:
            coef[task_place[task], position[feature]] = value
        elif feature in INTERCEPTS:
            constants[task_place[task]] = value
        else:
            raise TableError(
                f"{table.source}: feature {feature!r} is not in the data, which have {', '.join(names[:5])}, ..."
            )
    return coef, constants


def _read_intercepts(table: Table, labels: list[str]) -> np.ndarray:
    found = dict(zip(_words(table, "task"), _numbers(table, "intercept"), strict=True))
    absent = [label for label in labels if label not in found]
    if absent:
        raise TableError(f"{table.source} has no intercept of task {absent[0]!r}")
    return np.array([found[label] for label in labels])


def _words(table: Table, name: str) -> list[str]:
    return [label_word(value) for value in table.require(name, "coefficients").values.tolist()]


def _numbers(table: Table, name: str) -> list[float]:
    column = table.require(name, "coefficients")
    if column.kind != "number":
        raise TableError(f"{table.source}: column {name!r} must hold numbers")
    values = column.values.astype(np.float64)
    if not np.isfinite(values).all():
        raise TableError(f"{table.source}: row {int(np.argmin(np.isfinite(values))) + 1}, column {name!r} is no number")
    return values.tolist()
