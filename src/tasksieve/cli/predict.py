"""``tasksieve predict``: a run's model on the rows of another table, or on people of other genotype files."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..path.status import Status
from ..runs import RunError, RunFolder, SavedModel, load_model
from ..runs.folder import STREAM
from ..runs.kept_folds import load_folds
from ..runs.model_file import set_rows
from ..runs.out_of_fold import class_names
from ..runs.results import read_path
from ..runs.stream_run import load_stream
from ..tables import TableError, prepare_rows
from ..tables.row_columns import labels_of_rows
from .exit_codes import OK, UsageError, say
from .new_people import open_rows
from .new_rows import NewRows
from .options import Asked, gibibytes, read_numbers
from .outcomes import saved_survival
from .progress import working
from .written import refuse_file, write_columns


def run_predict(asked: Asked) -> int:
    """One line of predictions for each row of the tables, in their order."""
    refuse_file("--out", asked.out)
    folder = RunFolder(asked.run)
    saved = chosen_model(folder, asked)
    with working("predicting", asked.quiet):
        offset, strata = saved.said["offset"], strata_column(saved, asked)
        named = [(flag, name) for flag, name in (("--offset", offset), ("--strata", strata)) if name]
        new = open_rows(asked, saved, folder, named, all_tasks=asked.all_tasks)
        columns = predictions(saved, new, asked, interval_model(folder, saved, asked))
    if not asked.quiet:
        for note in new.notes:
            say(f"note: {note}")
    n_rows, n_empty = new.table.n_rows, int(sum(value is None for value in next(iter(columns.values()), [])))
    write_columns(asked.out, new.with_names(columns, saved, asked))
    new.write_beside(asked.out)
    if n_empty and not asked.quiet:
        say(f"note: {n_empty} of {n_rows} rows have missing values and no prediction")
    return OK


def chosen_model(folder: RunFolder, asked: Asked) -> SavedModel:
    """The model of a finished run, at the value of the path that was asked for."""
    folder.verify()
    if (folder / STREAM).is_file():
        if asked.alpha is not None:
            raise UsageError("--alpha: a run of stream has one model")
        return load_stream(folder)
    saved = load_model(folder, max_bytes=gibibytes(asked.max_memory))
    choose_value(saved, folder, asked.alpha)
    return saved


def choose_value(saved: SavedModel, folder: RunFolder, alpha: float | None) -> None:
    """Make the model that of another value of the path."""
    if alpha is None:
        if not saved.said["choice"]:
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
    model, chosen = saved.estimator, saved.estimator.alpha
    model.set_params(alpha=float(path.alphas[k]))
    if path.alphas[k] != chosen:  # a baseline hazard is that of the model alone
        model.__dict__.pop("baseline_hazard_", None)
    thresholds = path.thresholds(k, getattr(model, "classes_", None))
    set_rows(
        model,
        path.coefs[k].toarray(),
        path.intercepts[k],
        **({} if thresholds is None else {"thresholds": thresholds}),
        objective=float(path.objectives[k]),
        dual_gap=float(path.dual_gaps[k]),
        n_iter=int(path.n_iter[k]),
        status=Status(path.status[k]),
    )


def interval_model(folder: RunFolder, saved: SavedModel, asked: Asked) -> Any:
    """The model with its folds, where intervals are asked for."""
    if asked.interval is None:
        if asked.borrow:
            raise UsageError("--borrow: is for --interval")
        return None
    if not 0.0 < asked.interval < 1.0:
        raise UsageError(f"--interval: between 0 and 1, 0.9 say; got {asked.interval:g}")
    if asked.alpha is not None:
        raise UsageError("--alpha, --interval: the folds have kept the value that cross-validation has chosen")
    model = load_folds(folder, saved, max_bytes=gibibytes(asked.max_memory))
    if isinstance(getattr(model, "classes_", None), list):
        raise UsageError("--interval: tasks have classes of their own: use predict_set from Python")
    return model


def add_intervals(model: Any, X: Any, keywords: dict[str, Any], asked: Asked, add: Callable[[str, Any], None]) -> None:
    """Columns of bounds, or of possible classes."""
    how = {"coverage": asked.interval, "borrow": asked.borrow, **keywords}
    if hasattr(model, "predict_interval"):
        bounds = np.asarray(model.predict_interval(X, **how))
        add("lower", bounds[..., 0])
        add("upper", bounds[..., 1])
        return
    sets = np.asarray(model.predict_set(X, **how))
    for k, name in enumerate(class_names(model)):
        add(f"may be {name}", np.where(sets[..., k], "yes", "no"))


def predictions(saved: SavedModel, new: NewRows, asked: Asked, folds: Any = None) -> dict[str, list[Any]]:
    """Columns of the output, each as long as the table; None where there is no prediction."""
    model, task, table = saved.estimator, asked.task or saved.task, new.table
    if saved.task is None:
        if task is not None or asked.all_tasks:
            raise UsageError("--task, --all-tasks: the model was fitted without a task column")
    elif asked.all_tasks:
        task = None
    elif task not in table.columns:
        raise TableError(
            f"{table.source} has no task column {task!r}; --task names it, --all-tasks predicts all tasks for all rows"
        )
    if asked.probabilities and not hasattr(model, "predict_proba"):
        raise UsageError(f"--probabilities: {type(model).__name__} gives none")
    patterns = new.how.get("patterns")
    if patterns is not None and asked.all_tasks:
        raise UsageError("--all-tasks: a model of patterns predicts a row by the pattern that it has")
    found = prepare_rows(table, new.encoding, task=task, offset=saved.said["offset"], **new.how)
    X, labels, offsets, rows = found
    X = new.features(X, rows)
    beside = {"task": labels if patterns is None else X.task, "offset": offsets}
    keywords = {name: values for name, values in beside.items() if values is not None}
    columns: dict[str, list[Any]] = {}

    def add(title: str, values: Any) -> None:
        """A column, or one for each task."""
        if values.ndim == 1:
            columns[title] = spread(values, rows, table.n_rows)
            return
        names = saved.targets if len(saved.targets) > 1 else model.tasks_.tolist()
        for t, name in enumerate(names):
            columns[f"{title} ({name})"] = spread(values[:, t], rows, table.n_rows)

    if labels is not None:
        add("task", labels)
    if patterns is not None and len(patterns) > 1:
        add("pattern", X.task)
    add("prediction", np.asarray(model.predict(X, **keywords)) if len(rows) else np.zeros(0))
    if asked.probabilities and len(rows):
        chances = model.predict_proba(X, **keywords)
        if isinstance(chances, list):
            columns |= probabilities_by_task(saved, chances, labels, rows, table.n_rows)
        else:
            for k, name in enumerate(class_names(model)):
                add(f"probability of {name}", np.asarray(chances)[..., k])
    if folds is not None and len(rows):
        add_intervals(folds, X, keywords, asked, add)
    if asked.times is not None and len(rows):
        at = read_times(asked.times)
        strata = strata_column(saved, asked)
        if strata is not None:
            keywords["strata"] = labels_of_rows(table, rows, strata, "--strata")
        chances = np.asarray(model.predict_survival_function(X, times=at, **keywords))
        for k, time in enumerate(at):
            add(f"survival at {time:g}", chances[..., k])
    return columns


def probabilities_by_task(
    saved: SavedModel, chances: list[Any], labels: np.ndarray | None, rows: np.ndarray, n_rows: int
) -> dict[str, list[Any]]:
    """A column for each class of each task that has any, where tasks have classes of their own: with `labels`, the
    tasks of the rows, of its rows only."""
    model, found = saved.estimator, {}
    names = saved.targets if len(saved.targets) > 1 else model.tasks_.tolist()
    for t, (name, own) in enumerate(zip(names, chances, strict=True)):
        here = rows if labels is None else rows[labels == model.tasks_[t]]
        for k, label in enumerate([] if own is None else model.classes_[t].tolist()):
            found[f"probability of {label} ({name})"] = spread(own[:, k], here, n_rows)
    if not found:
        raise UsageError("--probabilities: no task has classes")
    return found


def read_times(text: str) -> list[float]:
    """``--times``."""
    found = read_numbers(text, "--times")
    if not all(math.isfinite(time) and time >= 0.0 for time in found):
        raise UsageError(f"--times: finite and not negative; got {text!r}")
    return found


def strata_column(saved: SavedModel, asked: Asked) -> str | None:
    """The column of strata that survival probabilities need; an error where they cannot be given."""
    if asked.times is None:
        if asked.strata is not None:
            raise UsageError("--strata: is for --times; predictions without it are those of all strata")
        return None
    model = saved.estimator
    if not hasattr(model, "predict_survival_function"):
        raise UsageError(f"--times: is for --model cox; {type(model).__name__} predicts no survival probabilities")
    if getattr(model, "baseline_hazard_", None) is None:
        raise UsageError(
            f"--times: the run has no baseline hazard of alpha = {model.alpha:g}, only of the value that fit has "
            f"chosen; tasksieve fit --alpha {model.alpha:g} computes it"
        )
    read_times(asked.times)
    names = {own.strata for own in saved_survival(saved).values() if own.strata is not None}
    if len(names) > 1 and asked.strata is None:
        listed = ", ".join(sorted(names))
        raise UsageError(f"--times: the outcomes have different strata ({listed}): predict from Python")
    if asked.strata is not None and not names:
        raise UsageError("--strata: the model was fitted without strata")
    return asked.strata or next(iter(names), None)


def spread(values: Any, rows: np.ndarray, n_rows: int) -> list[Any]:
    """Values of some rows in the places of all rows."""
    out = np.full(n_rows, None, dtype=object)
    out[rows] = np.asarray(values).astype(object)
    return out.tolist()
