"""``tasksieve evaluate``: how well a run's model predicts the rows of a table that it has not seen."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..fitted.new_rows import quality_on
from ..fitted.quality import ALL, HeldOutQuality
from ..report.content import with_error
from ..report.words import count
from ..runs import RunFolder, SavedModel
from ..runs.arrays import plain_numbers
from ..runs.out_of_fold import observed_columns, quality_columns, quality_labels
from ..tables import TableError, TableProblem
from ..tables.columns import related_rows
from ..tables.problem import prepare_labelled, refuse_unknown_labels
from ..tables.row_columns import RowColumns, groups_column
from ..tasks.sample_space import CLASSES
from .exit_codes import OK, UsageError, say
from .new_people import names_genotypes, open_rows
from .new_rows import NewRows
from .options import Asked, refuse
from .outcomes import SURVIVAL, is_mixed, read_survival, saved_labels_by_task, saved_survival
from .predict import chosen_model, spread
from .progress import working
from .written import aligned, refuse_file, write_columns


def run_evaluate(asked: Asked) -> int:
    """Scores of each task and of all, with their uncertainty, and where asked every row with its prediction."""
    for flag, file in (("--out", asked.out), ("--predictions", asked.predictions)):
        refuse_file(flag, file)
    if not 0.0 < asked.level < 1.0:
        raise UsageError(f"--level: between 0 and 1, got {asked.level:g}")
    folder = RunFolder(asked.run)
    saved = chosen_model(folder, asked)
    if names_genotypes(asked):  # as in fit --pheno-name A,B
        asked.target = [name for word in asked.target or () for name in word.split(",") if name]
    with working("predicting", asked.quiet):
        groups = groups_column(asked.row_groups)
        roles = {"--weights": asked.weights, "--row-groups": groups, "--offset": saved.said["offset"]}
        columns = row_columns_of(saved, asked)
        needed = [(flag, name) for target in columns.targets for name, flag in columns.columns_of(target).items()]
        beside = [(flag, name) for flag, name in roles.items() if name]
        classes = columns.targets if is_classifier(saved.estimator) else ()
        by_task = columns.by_task is not None
        wanted = {"some": needed} if by_task else {"classes": classes}
        new = open_rows(asked, saved, folder, beside if by_task else [*needed, *beside], **wanted)
        labelled = read_rows(saved, new, columns)
        if asked.row_groups is None and labelled.related is not None:
            name = labelled.related[0]
            new.notes.append(
                f"rows that share a value of column {name!r} are related, and errors are those of single rows: "
                f"--row-groups {shlex.quote(name)} counts them as one (--row-groups none: they are not related)"
            )
        rows = labelled.row_arguments()
        quality = quality_on(saved.estimator, labelled.X, labelled.y, **rows, null=saved.null)
        given = None
        if labelled.given_task is not None and not isinstance(getattr(saved.estimator, "classes_", None), list):
            given = quality_on(saved.estimator, labelled.X, labelled.y, **rows, null=saved.null, given_tasks=True)
    names, n_rows = quality_labels(quality, saved.targets), new.table.n_rows
    if not asked.quiet:
        for note in new.notes:
            say(f"note: {note}")
        if new.seen_by(folder):
            say(f"note: {new.title} is the {new.kind} that the run was fitted to: rows that it has seen flatter it")
        if len(labelled.rows) < n_rows:
            say(f"note: {n_rows - len(labelled.rows)} of {n_rows} rows have missing values and are left out")
    if asked.out is not None:
        write_columns(asked.out, quality_columns(quality, names, asked.level, defined=is_mixed(saved)))
    if asked.predictions is not None:
        write_columns(asked.predictions, new.with_names(row_columns(saved, labelled), saved, asked))
    new.write_beside(asked.out or asked.predictions)
    if not asked.quiet and asked.out != "-" and asked.predictions != "-":
        print(summary(quality, names, asked.level, new.title), flush=True)
        if given is not None and len(given.tasks) < len(quality.tasks):
            print("\nof the tasks that the patterns are parts of:")
            print(summary(given, [str(own) for own in given.tasks.tolist()], asked.level, new.title), flush=True)
    return OK


# --- rows --------------------------------------------------------------------------------------------------------


def row_columns_of(saved: SavedModel, asked: Asked) -> RowColumns:
    """The columns that labels and all else but features are in."""
    known, by_task = saved_survival(saved), saved_labels_by_task(saved)
    mixed = is_mixed(saved)
    if asked.target and known and not mixed:
        raise UsageError("--target: the model predicts times to an event; --time and --event name their columns")
    given = {key: getattr(asked, key) for key in SURVIVAL}
    if not known:
        refuse((key for key, words in given.items() if words), "is for a survival model")
    wanted = [name for name in saved.targets if name not in known] if by_task is None else saved.targets[:1]
    if asked.target and len(asked.target) != len(wanted):
        raise UsageError(f"--target: the model predicts {', '.join(wanted)}; name as many columns, in that order")
    if asked.task is not None and saved.task is None:
        raise UsageError("--task: the model was fitted without a task column")
    survival = read_survival(given, list(known), known, mixed=mixed, common=by_task is not None) if known else {}
    beside = (asked.weights, saved.said["offset"], groups_column(asked.row_groups))
    if by_task is not None:
        label = asked.target[0] if asked.target else by_task.column
        by_task = replace(by_task, column=label, survival=dict(survival.items()))
        return RowColumns(saved.targets, asked.task or saved.task, *beside, by_task=by_task)
    here = dict(zip(wanted, asked.target or wanted, strict=True))
    targets = [here.get(name, name) for name in saved.targets]
    return RowColumns(targets, asked.task or saved.task, *beside, survival)


def read_rows(saved: SavedModel, new: NewRows, columns: RowColumns) -> TableProblem:
    """Rows and labels as the model needs them; labels that it cannot know are errors."""
    model, named, table = saved.estimator, columns.task, new.table
    classes: bool | frozenset[str] = is_classifier(model)
    if is_mixed(saved):
        pairs = zip(columns.targets, model.losses_, strict=False)
        classes = frozenset(name for name, loss in pairs if loss.labels in CLASSES)
    if named is not None and named not in table.columns:
        raise TableError(f"{table.source} has no task column {named!r}; --task names it")
    found = prepare_labelled(table, new.encoding, columns, classes=classes, **new.how)
    found.X = new.features(found.X, found.rows)
    if columns.groups is None and new.kind == "table":
        tasks = found.task if found.given_task is None else found.given_task
        learned, roles = {*new.encoding.sources}, columns.roles(table, None)
        found.related = related_rows(table, learned, roles, found.rows, tasks, None)
    if isinstance(found.y, dict):  # by the names that the model has for them
        found.y, found.targets = dict(zip(saved.targets, found.y.values(), strict=True)), list(saved.targets)
    if named is not None and found.task is not None and found.given_task is None:
        refuse_unknown_labels(table.source, named, found.task, found.rows, model.tasks_.tolist(), "task")
    if hasattr(model, "classes_"):
        refuse_unknown_classes(table.source, model, found, list(columns.targets))
    return found


def refuse_unknown_classes(source: str, model: Any, found: TableProblem, targets: list[str]) -> None:
    classes, tasks = model.classes_, getattr(model, "tasks_", np.zeros(1)).tolist()
    of_task = classes if isinstance(classes, list) else [classes] * len(tasks)
    for t, own in enumerate(of_task):
        if own is None:
            continue
        several, y = found.several, found.labels_of(t if found.several else 0)
        here = np.ones(len(y), dtype=bool)
        if several:
            here = np.array([value is not None and value == value for value in y.tolist()])
        elif found.task is not None:
            here = found.task == tasks[t]
        name = targets[t if several else 0]
        refuse_unknown_labels(source, name, y[here], found.rows[here], own.tolist(), "class")


# --- scores ------------------------------------------------------------------------------------------------------


def summary(quality: HeldOutQuality, names: list[str], level: float, table: str) -> str:
    """A table for people: a line for each task, ± standard error."""
    several = len(names) > 1
    paired = quality.pairs is not None
    lines = [["task", "rows", *["pairs"] * paired, *quality.measures]]
    pairs = np.zeros(len(names), dtype=np.int64) if quality.pairs is None else quality.pairs
    values = np.vstack([quality.values, quality.overall])
    errors = np.vstack([quality.errors, quality.overall_errors])
    labels = [*names, ALL] if several else names
    rows = [*quality.n_rows.tolist(), int(quality.n_rows.sum())]
    numbers = zip(labels, rows, [*pairs.tolist(), int(pairs.sum())], values, errors, strict=False)
    for name, n, n_pairs, own, spread_of in numbers:
        if not n:
            continue
        compared = [f"{n_pairs:,}"] * paired
        lines.append([name, f"{n:,}", *compared, *(figure(v, e) for v, e in zip(own, spread_of, strict=True))])
    low, high = quality.intervals(level)
    k = len(labels) - 1
    footnote = f"{count(rows[k], 'row')} of {table}; ± one standard error"
    if n_empty := int(np.count_nonzero(quality.n_rows == 0)):
        footnote += f"; {count(n_empty, 'task')} of the model without a row here"
    if np.isfinite(low[k, 0]):
        over = " (mean over tasks)" if several else ""
        footnote += f"; {level:.0%} interval of {quality.measures[0]}{over}: {low[k, 0]:.3f} to {high[k, 0]:.3f}"
    counted = [quality.pairs_words] if quality.pairs_words else []
    return "\n".join([*aligned(lines), footnote, *counted, *null_lines(quality)])


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


def row_columns(saved: SavedModel, labelled: TableProblem) -> dict[str, list[Any]]:
    """Every row of the table: its task, label and prediction; empty where it was left out."""
    found: dict[str, Any] = {} if labelled.task is None else {"task": labelled.task}
    given = {name: own for name, own in labelled.row_arguments().items() if name in ("task", "offset")}
    predicted = np.asarray(saved.estimator.predict(labelled.X, **given))
    for t, name in enumerate(saved.targets):
        suffix = f" ({name})" if labelled.several else ""
        for heading, own in observed_columns(labelled.labels_of(t)).items():
            found[f"{heading}{suffix}"] = np.array(plain_numbers(own), dtype=object) if labelled.several else own
        found[f"prediction{suffix}"] = predicted[:, t] if labelled.several else predicted.reshape(labelled.n_used)
    return {name: spread(values, labelled.rows, labelled.n_rows) for name, values in found.items()}
