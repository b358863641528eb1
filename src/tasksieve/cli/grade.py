"""``tasksieve grade``: what can be proved about the coefficients of any program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..linear.grading import Grade, grade
from ..losses import Cox, as_loss
from ..row_names import label_word
from ..tables import SurvivalColumns, Table, TableError, TableProblem, prepare, read_table
from .commands import GRADE
from .exit_codes import OK, UsageError, say
from .files import check_files, expand_tables, read_content, task_column
from .in_json import in_json
from .members import check_members
from .options import Asked, given_of, refuse
from .outcomes import SURVIVAL, read_survival
from .progress import working
from .source import named
from .table_source import PREPARED

INTERCEPTS = ("(intercept)", "intercept", "(Intercept)", "Intercept")


def run_grade(asked: Asked) -> int:
    """Read both tables, grade, and print the result.

    Coefficients are a table with columns feature, coefficient and, of several tasks, task; or feature and a column for
    each task. A feature called "(Intercept)" is the intercept.
    """
    options = given_of(asked, GRADE, "param")
    if asked.loss in ("ordinal", "mixed"):
        what = "thresholds beside its coefficients" if asked.loss == "ordinal" else "a loss and a weight for each task"
        raise UsageError(f"--loss: {asked.loss} has {what}, for which there is no table; grade in Python takes them")
    survival = _survival(asked)
    if survival:
        options["loss"] = Cox(asked.ties)
    check_members(options, *(["penalty"] if survival else ["loss", "penalty"]))
    with working("reading", asked.quiet):
        problem = _read(asked, survival)
        labels, names = _row_labels(problem), problem.encoding.feature_names
        coef, constants = read_coefficients(read_table(asked.coefficients), labels, names)
        if asked.intercepts is not None:
            constants = _read_intercepts(read_table(asked.intercepts), labels)
    with working("grading", asked.quiet):
        found: Grade = grade(coef, constants, problem.X, problem.y, **problem.row_arguments(groups=False), **options)
    if asked.certificate is not None:
        found.certificate.header["features"] = list(names)
        found.certificate.save(asked.certificate)
    named = Grade(**{**vars(found), "feature_names": np.array(names, dtype=object)})
    print(in_json(_content(named)) if asked.json else named.summary())
    return OK


def _content(found: Grade) -> dict[str, Any]:
    """A grade for programs: its numbers, and features by name."""
    numbers = ("objective", "dual_gap", "relative_gap", "best_objective", "excess")
    named: Any = found.feature_names
    sets = {
        "selected": found.selected,
        "selected_and_needed": found.selected & found.proven_nonzero,
        "wrong_nonzero": found.wrong_nonzero,
        "wrong_zero": found.wrong_zero,
    }
    features = {key: [str(name) for name in named[which]] for key, which in sets.items()}
    counts = {"features": len(named), "proven_zero": int(found.proven_zero.sum())}
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


def _read(asked: Asked, survival: dict[str, SurvivalColumns]) -> TableProblem:
    given = given_of(asked, GRADE, "config")
    config = {key: value for key, value in given.items() if value is not None and value != []}
    config.pop("skip", None)
    config["table"] = expand_tables(asked.table, skip=asked.skip)
    if survival:
        config |= {"model": "cox", "target": list(survival)}
    check_files(config)
    content = read_content(config)
    classes = not survival and as_loss(asked.loss).of_classes()
    labels: dict[str, Any] = {"survival": survival, "classes": classes}
    problem = prepare(content.table, task=task_column(config), **labels, **named(config, *PREPARED))
    for note in content.notes:
        say(f"note: {note}")
    return problem


def _row_labels(problem: TableProblem) -> list[str]:
    """What the rows of coefficients are called."""
    if problem.task is None and len(problem.targets) > 1:
        return list(problem.targets)
    return [str(label) for label in problem.tasks.tolist()]


def read_coefficients(table: Table, labels: list[str], names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (tasks, features) and intercepts of a table; what it does not list is 0."""
    coef, constants = np.zeros((len(labels), len(names))), np.zeros(len(labels))
    features = _words(table, "feature")
    position, task_place = {name: j for j, name in enumerate(names)}, {name: t for t, name in enumerate(labels)}
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

