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


def quality_columns(quality: HeldOutQuality, names: Sequence[str], level: float = LEVEL) -> dict[str, list[Any]]:
    """One line for each task and measure, those of all tasks together last; None where a number is not defined."""
    columns, width = quality.to_dict(level), len(quality.measures)
    columns["task"] = [name for name in [*names, columns["task"][-1]] for _ in range(width)]
    n = width * (len(names) + (len(names) > 1))  # of one task the mean over tasks says nothing new
    return {key: plain_numbers(values[:n]) for key, values in columns.items()}


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
        columns["task"] = problem.task.tolist()
    y, names = problem.y, problem.targets
    for t, name in enumerate(names):
        suffix = f" ({name})" if len(names) > 1 else ""
        own = y[:, t] if y.ndim == 2 else y
        columns[f"observed{suffix}"] = plain_numbers(own)
        part = found[:, t] if y.ndim == 2 else found
        for title, values in _titled(model, part):
            columns[f"{title}{suffix}"] = plain_numbers(values)
    write_table(folder / "out_of_fold.csv", columns)


def _titled(model: Any, part: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Columns of predictions: numbers, decision values, or probabilities of the classes."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return [("prediction", part)]
    if part.ndim == 1:
        return [("decision value", part)]
    return [(f"probability of {name}", part[:, k]) for k, name in enumerate(class_names(model))]


def class_names(model: Any) -> list[str]:
    """What the classes of a classifier are called, whose tasks may each have two of their own."""
    classes = model.classes_
    return ["first class", "second class"] if isinstance(classes, list) else [str(label) for label in classes.tolist()]
