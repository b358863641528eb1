"""Rows of tasks that a model does not know: refused, or, where that is asked for, predicted by the mean task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..messages import value_error
from ..tasks import row_labels, some_of, to_numpy
from ..user_warnings import warn
from .arguments import check_choice
from .state import LinearState

#: the parameter of methods that predict
UNKNOWN = """
unknown_task : {"error", "mean"}, default="error"
    Rows of a task that the model was not fitted to are refused. "mean": they are predicted by the mean of the
    coefficients of all tasks, and a warning says of which tasks; `fit_new_task` learns such a task from rows of it.
"""


class _Mean:
    """The label of the mean task, which is no label of data."""


_MEAN = _Mean()


def with_mean_task(model: Any, task: Any, unknown_task: Any) -> tuple[LinearState, Any]:
    """The state of a model with one task more, their mean, and the tasks of rows, those unknown being this one."""
    check_choice(unknown_task, "unknown_task", ("error", "mean"))
    state: LinearState = model._learned()
    if task is None:
        return state, task
    task = to_numpy(task)
    labels, known = row_labels(task, len(task), "task"), set(state.tasks.tolist())
    new = np.array([label not in known for label in labels.tolist()], dtype=bool)
    if not new.any():
        return state, task
    plain = isinstance(state.coef, np.ndarray) and state.coef.ndim == 2 and state.thresholds is None
    if not plain or isinstance(state.classes, list) or state.fills is not None or hasattr(model, "patterns_"):
        raise value_error(
            "{unknown_task} is 'mean', and the tasks of this model have no mean: it is there for numbers and for two "
            "classes that all tasks have, and for rows in which nothing is missing."
        )
    if getattr(model, "_targets", None) not in ("values", "classes"):
        raise value_error("{unknown_task} is 'mean', and tasks of unlike outcomes, or with hazards, have none.")
    names = list(dict.fromkeys(labels[new].tolist()))
    warn(
        f"{int(new.sum())} row(s) of {len(names)} task(s) that the model does not know ({some_of(names)}) are "
        f"predicted by the mean of the {len(state.tasks)} tasks that it knows.",
        UserWarning,
    )
    tasks, rows = np.empty(len(state.tasks) + 1, dtype=object), np.empty(len(labels), dtype=object)
    tasks[:-1], tasks[-1] = state.tasks.tolist(), _MEAN
    rows[:] = labels.tolist()
    rows[new] = _MEAN
    coef = np.concatenate([state.coef, state.coef.mean(axis=0, keepdims=True)])
    intercept = np.append(state.intercept, np.mean(state.intercept))
    return replace(state, coef=coef, intercept=intercept, tasks=tasks), rows
