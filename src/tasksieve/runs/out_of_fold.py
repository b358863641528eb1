"""What cross-validation says of rows that were held out: ``cv_quality.csv`` and ``out_of_fold.csv``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..fitted.quality import HeldOutQuality
from ..tables import TableProblem, write_table
from ..tables.table import row_number
from .arrays import plain_numbers
from .folder import RunFolder

LEVEL = 0.9


def quality_labels(quality: HeldOutQuality, targets: Sequence[str]) -> list[str]:
    """Names of the tasks: targets, where each is a task."""
    if len(targets) == len(quality.tasks) and (len(targets) > 1 or quality.tasks.tolist() == [0]):
        return list(targets)
    return [str(label) for label in quality.tasks.tolist()]


def quality_columns(
    quality: HeldOutQuality, names: Sequence[str], level: float = LEVEL, *, defined: bool = False
) -> dict[str, list[Any]]:
    """One line for each task and measure, those of all tasks together last; None where a number is not defined. Only
    lines with a `defined` value where outcomes are of unlike kinds: these have measures of their own."""
    columns, width = quality.to_dict(level), len(quality.measures)
    columns["task"] = [name for name in [*names, columns["task"][-1]] for _ in range(width)]
    n = width * (len(names) + (len(names) > 1))  # of one task the mean over tasks says nothing new
    kept = [i for i in range(n) if not defined or columns["value"][i] == columns["value"][i]]
    return {key: plain_numbers([values[i] for i in kept]) for key, values in columns.items()}


def write_out_of_fold(folder: RunFolder, model: Any, problem: TableProblem) -> None:
    """Every row with its name, task, label and the prediction of a model that had not seen it."""
    found = model.cv_predictions_
    if isinstance(found, list):  # different classes, and more than two: there is no table of them
        return
    rows = problem.rows if problem.in_file is None else problem.in_file
    columns: dict[str, Any] = {"row": [row_number(row) for row in rows.tolist()]}
    if problem.ids is not None:
        columns[problem.ids[0] if problem.ids[0] not in columns else f"{problem.ids[0]} (id)"] = problem.ids[1]
    if problem.task is not None:
        columns["task"] = (problem.task if problem.given_task is None else problem.given_task).tolist()
    if hasattr(problem.X, "patterns") and problem.task is not None:
        columns["pattern"] = problem.task.tolist()
    names = problem.targets
    for t, name in enumerate(names):
        suffix = f" ({name})" if len(names) > 1 else ""
        for title, labels in observed_columns(problem.labels_of(t)).items():
            columns[f"{title}{suffix}"] = plain_numbers(labels)
        folds = getattr(model, "cv_fold_", None)
        if isinstance(folds, np.ndarray):
            columns[f"fold{suffix}"] = _whole(folds[:, t] if folds.ndim == 2 else folds)
        part = found[:, t] if problem.several else found
        for title, values in _titled(model, part, t if problem.several else None):
            columns[f"{title}{suffix}"] = plain_numbers(values)
    write_table(folder / "out_of_fold.csv", columns)


def observed_columns(labels: np.ndarray) -> dict[str, np.ndarray]:
    """Labels of a target as columns: of a survival outcome its time, 1 for an event and 0 for censoring, and where it
    has them the entry time and the stratum."""
    if labels.dtype == object and any(isinstance(label, np.void) for label in labels.tolist()):
        return _among_others(labels)
    if labels.dtype.names is None:
        return {"observed": labels}
    unseen = np.isnan(labels["time"])
    events = labels["event"].astype(np.int64)
    found = {"time": labels["time"], "event": np.where(unseen, np.nan, events) if unseen.any() else events}
    if "entry" in labels.dtype.names:
        found["entry"] = np.where(np.isfinite(labels["entry"]), labels["entry"], np.nan)
    if "stratum" in labels.dtype.names:
        found["stratum"] = labels["stratum"]
    return found


def _among_others(labels: np.ndarray) -> dict[str, np.ndarray]:
    """Survival outcomes of some tasks beside labels of other kinds; None where a row has no such thing."""
    records = np.array([isinstance(label, np.void) for label in labels.tolist()])
    found: dict[str, np.ndarray] = {}
    if not records.all():
        found["observed"] = labels.copy()
        found["observed"][records] = None
    for i in np.flatnonzero(records).tolist():
        for name, value in observed_columns(np.array([labels[i]], dtype=labels[i].dtype)).items():
            found.setdefault(name, np.full(len(labels), None, dtype=object))[i] = value[0]
    return found


def _whole(folds: np.ndarray) -> list[int | None]:
    return [None if np.isnan(fold) else int(fold) for fold in folds.tolist()]


def _titled(model: Any, part: np.ndarray, t: int | None) -> list[tuple[str, np.ndarray]]:
    """Columns of predictions: numbers, decision values, or probabilities of the classes."""
    if hasattr(model, "losses_"):
        return [("prediction" if t is None else _mixed_title(model, t), part)]
    classes = getattr(model, "classes_", None)
    if classes is None:
        return [("prediction", part)]
    if part.ndim == 1:
        return [("decision value", part)]
    return [(f"probability of {name}", part[:, k]) for k, name in enumerate(class_names(model))]


def _mixed_title(model: Any, t: int) -> str:
    """What is predicted of a task whose loss is its own."""
    loss, classes = model.losses_[t], model.classes_[t]
    if loss.labels == "ordered":
        return "expected class, counted from 0"
    if loss.labels == "survival":
        return "log hazard"
    if classes is None:
        return "prediction"
    return f"probability of {classes[-1]}" if loss.probabilities else "decision value"


def class_names(model: Any) -> list[str]:
    """What the classes of a classifier are called, whose tasks may each have two of their own."""
    classes = model.classes_
    return ["first class", "second class"] if isinstance(classes, list) else [str(label) for label in classes.tolist()]
