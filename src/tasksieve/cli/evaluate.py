"""``tasksieve evaluate``: how well a run's model predicts the rows of a table that it has not seen."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import is_classifier

from ..fitted.new_rows import quality_on
from ..fitted.quality import ALL, HeldOutQuality
from ..report.content import with_error
from ..report.words import count
from ..runs import RunFolder, SavedModel
from ..runs.folder import DATA
from ..runs.out_of_fold import quality_columns, quality_labels
from ..tables import Table, TableError, TableProblem
from ..tables.problem import prepare_labelled, refuse_unknown_labels
from ..tables.row_columns import RowColumns
from .exit_codes import OK, UsageError, say
from .files import expand_tables, read_new_rows, tables_digest, title
from .predict import chosen_model, free_name, names_of_rows, spread
from .progress import working
from .written import refuse_file, write_columns


def run_evaluate(
    run: str,
    table: list[str],
    out: str | None,
    predictions: str | None,
    alpha: float | None,
    target: list[str] | None,
    task: str | None,
    task_name: list[str] | None,
    weights: str | None,
    row_groups: str | None,
    id: str | None,
    missing: Literal["error", "drop", "mean"],
    unknown: Literal["error", "zero"],
    level: float,
    format: str | None,
    separator: str | None,
    max_memory: float | None,
    quiet: bool,
) -> int:
    """Scores of each task and of all, with their uncertainty, and where asked every row with its prediction."""
    for flag, file in (("--out", out), ("--predictions", predictions)):
        refuse_file(flag, file)
    if not 0.0 < level < 1.0:
        raise UsageError(f"--level: between 0 and 1, got {level:g}")
    folder = RunFolder(run)
    saved = chosen_model(folder, alpha, max_memory)
    with working("predicting", quiet):
        roles = [("--weights", weights), ("--row-groups", row_groups), ("--offset", saved.facts.get("offset"))]
        needed = [("--target", name) for name in target or saved.targets] + [(f, name) for f, name in roles if name]
        content = read_new_rows(
            table, saved, task=task, names=task_name, needed=needed, id=id, format=format, separator=separator
        )
        labelled = read_rows(saved, content, target or [], task, weights, row_groups, missing, unknown)
        quality = judge(saved, labelled)
    names, files = quality_labels(quality, saved.targets), expand_tables(table, format)
    if not quiet:
        if folder.read_json(DATA).get("sha256") == tables_digest(files):
            say(f"note: {title(files)} is the table that the run was fitted to: rows that it has seen flatter it")
        if len(labelled.rows) < content.n_rows:
            n_lost = content.n_rows - len(labelled.rows)
            say(f"note: {n_lost} of {content.n_rows} rows have missing values and are left out")
    columns = quality_columns(quality, names, level)
    if out is not None:
        write_columns(out, columns)
    if predictions is not None:
        write_columns(predictions, row_columns(saved, content, labelled, id, quiet))
    if not quiet and out != "-" and predictions != "-":
        print(summary(quality, names, level, title(files)), flush=True)
    return OK


# --- rows --------------------------------------------------------------------------------------------------------


def read_rows(
    saved: SavedModel,
    table: Table,
    target: list[str],
    task: str | None,
    weights: str | None,
    row_groups: str | None,
    missing: Literal["error", "drop", "mean"],
    unknown: Literal["error", "zero"],
) -> TableProblem:
    """Rows and labels as the model needs them; labels that it cannot know are errors."""
    model = saved.estimator
    if target and len(target) != len(saved.targets):
        wanted = ", ".join(saved.targets)
        raise UsageError(f"--target: the model predicts {wanted}; name as many columns, in that order")
    if task is not None and saved.task is None:
        raise UsageError("--task: the model was fitted without a task column")
    named = task or saved.task
    if named is not None and named not in table.columns:
        raise TableError(f"{table.source} has no task column {named!r}; --task names it")
    classes = is_classifier(model)
    found = prepare_labelled(
        table,
        saved.encoding,
        RowColumns(target or saved.targets, named, weights, saved.facts.get("offset"), row_groups),
        classes=classes,
        missing=missing,
        fill=saved.fill,
        unknown=unknown,
    )
    if named is not None and found.task is not None:
        refuse_unknown_labels(table.source, named, found.task, found.rows, model.tasks_.tolist(), "task")
    if classes:
        refuse_unknown_classes(table.source, model, found, target or saved.targets)
    return found


def refuse_unknown_classes(source: str, model: Any, found: TableProblem, targets: list[str]) -> None:
    classes, tasks = model.classes_, getattr(model, "tasks_", np.zeros(1)).tolist()
    of_task = classes if isinstance(classes, list) else [classes] * len(tasks)
    for t, own in enumerate(of_task):
        if own is None:
            continue
        several = found.y.ndim == 2
        y = found.y[:, t] if several else found.y
        here = np.ones(len(y), dtype=bool)
        if several:
            here = np.array([value is not None and value == value for value in y.tolist()])
        elif found.task is not None:
            here = found.task == tasks[t]
        name = targets[t if several else 0]
        refuse_unknown_labels(source, name, y[here], found.rows[here], own.tolist(), "class")


def arguments(labelled: TableProblem) -> dict[str, Any]:
    given = {"task": labelled.task, "offset": labelled.offset}
    return {name: values for name, values in given.items() if values is not None}


# --- scores ------------------------------------------------------------------------------------------------------


def judge(saved: SavedModel, labelled: TableProblem) -> HeldOutQuality:
    rows = {"sample_weight": labelled.sample_weight, "groups": labelled.groups, **arguments(labelled)}
    return quality_on(saved.estimator, labelled.X, labelled.y, **rows, null=saved.null)


def summary(quality: HeldOutQuality, names: list[str], level: float, table: str) -> str:
    """A table for people: a line for each task, ± standard error."""
    several = len(names) > 1
    lines = [["task", "rows", *quality.measures]]
    values = np.vstack([quality.values, quality.overall])
    errors = np.vstack([quality.errors, quality.overall_errors])
    labels = [*names, ALL] if several else names
    rows = [*quality.n_rows.tolist(), int(quality.n_rows.sum())]
    for name, n, own, spread_of in zip(labels, rows, values, errors, strict=False):
        lines.append([name, f"{n:,}", *(figure(v, e) for v, e in zip(own, spread_of, strict=True))])
    widths = [max(len(line[c]) for line in lines) for c in range(len(lines[0]))]
    shown = [
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    ]
    low, high = quality.intervals(level)
    k = len(labels) - 1
    headline = quality.measures[0]
    footnote = f"{count(rows[-1] if several else rows[0], 'row')} of {table}; ± one standard error"
    if np.isfinite(low[k, 0]):
        over = " (mean over tasks)" if several else ""
        footnote += f"; {level:.0%} interval of {headline}{over}: {low[k, 0]:.3f} to {high[k, 0]:.3f}"
    return "\n".join([*shown, footnote, *null_lines(quality)])


def null_lines(quality: HeldOutQuality) -> list[str]:
    """The null model, and what the model adds to it; nothing where the run does not know it."""
    gains, errors = quality.overall_increments, quality.overall_increment_errors
    if quality.null_overall is None or gains is None or errors is None:
        return []
    rows = zip(quality.measures, quality.null_overall, gains, errors, strict=True)
    figures = [f"{name} {with_error(value)}, beyond it {with_error(gain, error)}" for name, value, gain, error in rows]
    return [f"{quality.null_words}: {'; '.join(figures)}"]


def figure(value: float, error: float) -> str:
    if np.isnan(value):
        return "-"
    return f"{value:.4g}" + ("" if np.isnan(error) else f" ± {error:.2g}")


def row_columns(
    saved: SavedModel, table: Table, labelled: TableProblem, id: str | None, quiet: bool
) -> dict[str, list[Any]]:
    """Every row of the table: its name, task, label and prediction; empty where it was left out."""
    model, n = saved.estimator, table.n_rows
    columns: dict[str, list[Any]] = {}
    if labelled.task is not None:
        columns["task"] = spread(labelled.task, labelled.rows, n)
    predicted = np.asarray(model.predict(labelled.X, **arguments(labelled)))
    y = labelled.y
    if y.ndim == 1:
        columns["observed"] = spread(y, labelled.rows, n)
        columns["prediction"] = spread(predicted.reshape(len(y)), labelled.rows, n)
    else:
        for t, name in enumerate(saved.targets):
            observed = [None if value != value else value for value in y[:, t].tolist()]
            columns[f"observed ({name})"] = spread(np.array(observed, dtype=object), labelled.rows, n)
            columns[f"prediction ({name})"] = spread(predicted[:, t], labelled.rows, n)
    names = names_of_rows(table, id, saved.facts.get("id"), quiet)
    return {**{free_name(name, columns): values for name, values in names.items()}, **columns}
