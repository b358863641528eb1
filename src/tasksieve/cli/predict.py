"""``tasksieve predict``: a run's model on the rows of another table."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..fitted.restore import set_state
from ..path.status import Status
from ..runs import RunError, RunFolder, SavedModel, load_model
from ..runs.folder import STREAM
from ..runs.results import read_path
from ..runs.stream_run import load_stream
from ..tables import Table, TableError, prepare_rows
from ..tables.ids import row_names
from .exit_codes import OK, UsageError, say
from .files import read_new_rows
from .folders import gibibytes
from .progress import working
from .written import refuse_file, write_columns


def run_predict(
    run: str,
    table: list[str],
    out: str | None,
    alpha: float | None,
    task: str | None,
    task_name: list[str] | None,
    id: str | None,
    all_tasks: bool,
    probabilities: bool,
    missing: Literal["error", "drop", "mean"],
    unknown: Literal["error", "zero"],
    format: str | None,
    separator: str | None,
    max_memory: float | None,
    quiet: bool,
) -> int:
    """One line of predictions for each row of the tables, in their order."""
    refuse_file("--out", out)
    saved = chosen_model(RunFolder(run), alpha, max_memory)
    with working("predicting", quiet):
        offset = saved.facts.get("offset")
        content = read_new_rows(
            table, saved, task=task, names=task_name, needed=[("--offset", offset)] if offset else [], id=id,
            format=format, separator=separator, all_tasks=all_tasks,
        )  # fmt: skip
        columns = predictions(saved, content, task, all_tasks, probabilities, missing, unknown)
    n_empty = int(sum(value is None for value in next(iter(columns.values()), [])))
    names = names_of_rows(content, id, saved.facts.get("id"), quiet)
    write_columns(out, {**{free_name(name, columns): values for name, values in names.items()}, **columns})
    if n_empty and not quiet:
        say(f"note: {n_empty} of {content.n_rows} rows have missing values and no prediction")
    return OK


def chosen_model(folder: RunFolder, alpha: float | None, max_memory: float | None) -> SavedModel:
    """The model of a finished run, at the value of the path that was asked for."""
    folder.verify()
    if (folder / STREAM).is_file():
        if alpha is not None:
            raise UsageError("--alpha: a run of stream has one model")
        return load_stream(folder)
    saved = load_model(folder, max_bytes=gibibytes(max_memory))
    choose_value(saved, folder, alpha)
    return saved


def choose_value(saved: SavedModel, folder: RunFolder, alpha: float | None) -> None:
    """Make the model that of another value of the path."""
    if alpha is None:
        if not saved.facts.get("choice", True):
            raise UsageError(
                f"{folder.path} is a path without a choice: --alpha names the value to predict with"
            )
        return
    if not (folder / "path.npz").is_file():
        raise UsageError(f"--alpha: {folder.path} holds no path")
    path = read_path(folder)
    if not alpha > 0:
        raise UsageError(f"--alpha: must be positive, got {alpha:g}")
    k = int(np.argmin(np.abs(np.log(path.alphas) - np.log(alpha))))
    if not 0.99 <= path.alphas[k] / alpha <= 1.01:
        raise RunError(
            f"--alpha: the path has no value within 1 % of {alpha:g}; the nearest is {path.alphas[k]:.6g} "
            f"(all are in {folder / 'path.csv'})"
        )
    model = saved.estimator.set_params(alpha=float(path.alphas[k]))
    coef, intercept = path.coefs[k].toarray(), path.intercepts[k]
    if isinstance(model.coef_, list):
        cuts = np.cumsum([len(own) for own in model.coef_])[:-1]
        coef, intercept = np.split(coef, cuts), np.split(intercept, cuts)
    else:
        coef, intercept = coef.reshape(model.coef_.shape), intercept.reshape(model.intercept_.shape)
    set_state(
        model,
        coef=coef,
        intercept=intercept,
        objective=float(path.objectives[k]),
        dual_gap=float(path.dual_gaps[k]),
        n_iter=int(path.n_iter[k]),
        status=Status(path.status[k]),
    )


def predictions(
    saved: SavedModel,
    table: Table,
    task: str | None,
    all_tasks: bool,
    probabilities: bool,
    missing: Literal["error", "drop", "mean"],
    unknown: Literal["error", "zero"],
) -> dict[str, list[Any]]:
    """Columns of the output, each as long as the table; None where there is no prediction."""
    model, task = saved.estimator, task or saved.task
    if saved.task is None:
        if task is not None or all_tasks:
            raise UsageError("--task, --all-tasks: the model was fitted without a task column")
    elif all_tasks:
        task = None
    elif task not in table.columns:
        raise TableError(
            f"{table.source} has no task column {task!r}; --task names it, --all-tasks predicts all tasks for all rows"
        )
    if probabilities and not hasattr(model, "predict_proba"):
        raise UsageError(f"--probabilities: {type(model).__name__} gives none")
    offset = saved.facts.get("offset")
    X, labels, offsets, rows = prepare_rows(
        table, saved.encoding, task=task, offset=offset, missing=missing, fill=saved.fill, unknown=unknown
    )
    keywords = {} if labels is None else {"task": labels}
    if offsets is not None:
        keywords["offset"] = offsets
    columns: dict[str, list[Any]] = {}
    if task is not None:
        columns["task"] = spread(labels, rows, table.n_rows)
    found = model.predict(X, **keywords) if len(rows) else np.zeros((0,))
    add(columns, "prediction", found, saved, rows, table.n_rows)
    if probabilities and isinstance(model.coef_, list):
        raise UsageError("--probabilities: the tasks have different classes, and more than two: predict from Python")
    if probabilities and len(rows):
        chances = np.asarray(model.predict_proba(X, **keywords))
        classes = model.classes_
        if isinstance(classes, list):  # a pair for each task
            names = ["first class", "second class"]
        else:
            names = [str(label) for label in classes.tolist()]
        for k, name in enumerate(names):
            add(columns, f"probability of {name}", chances[..., k], saved, rows, table.n_rows)
    return columns


def add(
    columns: dict[str, list[Any]], title: str, values: Any, saved: SavedModel, rows: Any, n_rows: int
) -> None:
    """A column, or one for each task."""
    values = np.asarray(values)
    if values.ndim == 1:
        columns[title] = spread(values, rows, n_rows)
        return
    names = (
        saved.targets if len(saved.targets) > 1 else [str(label) for label in saved.estimator.tasks_.tolist()]
    )
    for t, name in enumerate(names):
        columns[f"{title} ({name})"] = spread(values[:, t], rows, n_rows)


def names_of_rows(table: Table, asked: str | None, fitted: Any, quiet: bool) -> dict[str, list[Any]]:
    """The column that names the rows, where the fit or this call has one."""
    name = asked or fitted
    if not isinstance(name, str):
        return {}
    if asked is None and name not in table.columns:
        if not quiet:
            say(f"note: {table.source} has no column {name!r}, the --id of the fit: predictions come without it")
        return {}
    return {name: row_names(table.require(name, "--id"))}


def free_name(name: str, taken: dict[str, list[Any]]) -> str:
    return f"{name} (id)" if name in taken else name


def spread(values: Any, rows: np.ndarray, n_rows: int) -> list[Any]:
    """Values of some rows in the places of all rows."""
    out: list[Any] = [None] * n_rows
    for row, value in zip(rows.tolist(), np.asarray(values).tolist(), strict=True):
        out[row] = value
    return out
