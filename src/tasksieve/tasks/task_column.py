"""The task of each row as a column of X: ``task="hospital"`` in the constructor of a model."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse

from ..messages import ParameterError, value_error
from .frames import frame_columns, frame_of, is_lazy_frame, pick_columns
from .labels import label_array
from .source import is_task_list

_NAMED = 8  # columns in a message


class TaskColumn(np.ndarray):
    """Tasks of rows that were a column of X. A model that is handed them inside the library knows by their type that X
    is without that column already."""


def column_of_tasks(model: Any) -> Any:
    """The column of X that a model, or the model inside it, reads tasks from; None where they are given apart."""
    while model is not None:
        found = getattr(model, "task", None)
        if found is not None:
            return found
        steps = getattr(model, "steps", None)  # of a pipeline
        model = steps[-1][1] if steps else getattr(model, "estimator", None)
    return None


def check_column(value: Any, name: str) -> None:
    """Refuse what is neither the name of a column nor its number."""
    if isinstance(value, bool) or not isinstance(value, str | Integral):
        raise ParameterError(name, "must be the name of a column of X, or the number of one", value)


def split_task_column(X: Any, column: Any, task: Any = None) -> tuple[Any, Any]:
    """X without its column of tasks, and the tasks.

    - `task`: What was given apart: an error, unless it is what an earlier call has split off.
    """
    if isinstance(task, TaskColumn):
        return X, task
    check_column(column, "task")
    if task is not None:
        raise value_error(
            "{given}: the tasks were given apart, but the model reads them from column {column!r} of X. Leave them "
            "out, or fit a model without {task}.",
            given="task", column=column, task=f"task={column!r}",
        )  # fmt: skip
    found = task_column(X, column)
    names = frame_columns(X)
    if names is not None:
        kept = [other for k, other in enumerate(names) if k != _position(names, column)]
        return pick_columns(X, kept), found
    X = X if hasattr(X, "shape") else np.asarray(X)
    return X[:, np.delete(np.arange(X.shape[1]), int(column))], found


def task_column(X: Any, column: Any) -> TaskColumn:
    """The tasks that stand in a column of X."""
    if is_lazy_frame(X):
        raise ValueError("X is a lazy frame, a query that has not been run: pass X.collect().")
    names = frame_columns(X)
    if names is not None:
        return label_array(frame_of(X)[:, _position(names, column)].to_list()).view(TaskColumn)
    if is_task_list(X) or isinstance(X, dict):
        raise ValueError(
            f"task={column!r} names a column of X, but X is {'a dict' if isinstance(X, dict) else 'a list'} of tasks: "
            "stack its rows in one frame with that column, or fit a model without task=."
        )
    X = X if hasattr(X, "shape") else np.asarray(X)
    if isinstance(column, str):
        raise ValueError(
            f"task={column!r} names a column, but X, {type(X).__name__}, has no names: pass a data frame, or the "
            "number of the column. (After a ColumnTransformer: its set_output(transform='pandas').)"
        )
    if not (isinstance(X, np.ndarray) or scipy.sparse.issparse(X)) or len(X.shape) != 2:
        raise ValueError(
            f"task={column!r}: tasks can be a column of a data frame, an array or a sparse matrix, not of "
            f"{type(X).__name__}."
        )
    if not -X.shape[1] <= column < X.shape[1]:
        raise ValueError(f"task={column!r}: X has {X.shape[1]} columns.")
    values = X[:, [int(column)]]
    values = values.toarray() if scipy.sparse.issparse(values) else np.asarray(values)
    return label_array(values[:, 0].tolist()).view(TaskColumn)


def without_task_column(X: Any, model: Any) -> Any:
    """X without the column of tasks of a model, where it has one."""
    column = column_of_tasks(model)
    if column is None or isinstance(X, list):
        return X
    names = frame_columns(X)
    absent = column not in names if names is not None and isinstance(column, str) else False
    return X if absent else split_task_column(X, column)[0]


def _position(names: list[Any], column: Any) -> int:
    if column in names:
        return names.index(column)
    if not isinstance(column, str) and -len(names) <= column < len(names):
        return int(column) % len(names)
    shown = ", ".join(map(repr, names[:_NAMED])) + (", ..." if len(names) > _NAMED else "")
    raise ValueError(f"task={column!r} is no column of X, which has {shown}.")
