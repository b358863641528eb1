"""Labels of tasks whose outcomes are of unlike kinds: numbers, classes, counts, in one flat vector.

Any form of y says which labels belong to which task; each task is then read by its kind (`Loss.labels`). In the flat
sample space all of them are numbers: classes are -1 and +1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ..messages import value_error
from .data import TaskData, read_tasks
from .labels import label_array, read_classes, read_labels, read_values, refuse_empty_tasks, some_of
from .refusals import mask_of
from .sample_space import TaskLabels, as_array, one_column
from .source import count_rows, is_task_list
from .tensors import to_numpy
from .weights import read_task_weights

#: kinds of labels (`Loss.labels`) that are numbers
NUMBERS = ("values", "counts", "positive")

Labels = list[Any]  # one array a task
AnyLabels = TypeVar("AnyLabels", bound=TaskLabels)


def read_mixed(
    X: Any,
    y: Any,
    task: Any = None,
    sample_weight: Any = None,
    *,
    kinds: Callable[[np.ndarray], Sequence[str]],
    task_weights: Any = None,
) -> TaskData:
    """Read X, y, task and weights in any form of the contract, each task's labels by its kind; see `read_tasks`.

    - `y`: Beside arrays, of objects too, for one shared matrix: a data frame, whose columns are tasks by name, or a
      dict or list of arrays.
    - `kinds`: ``kinds(tasks)``: the kinds of labels (`Loss.labels`), given the tasks.
    """
    y, names = targets_of(X, y, task)
    data = read_tasks(X, _stand_in(X, y), task, sample_weight, task_weights=task_weights)
    if names is not None:
        data = replace(data, tasks=names)
    found = with_labels(data, y, kinds(data.tasks))
    refuse_empty_tasks(found.tasks.tolist(), found.weight_per_task, sample_weight is not None)
    return replace(found, task_weights=read_task_weights(task_weights, found))


def targets_of(X: Any, y: Any, task: Any) -> tuple[Any, np.ndarray | None]:
    """y as an array, or a list of arrays by task; and the names of the tasks where y has them."""
    if y is None:
        raise ValueError("tasksieve requires y to be passed, but the target y is None.")
    names: list[Any] | None = None
    if isinstance(y, Mapping):
        if is_task_list(X):
            raise ValueError("X is a list of matrices, so y must be a list, too: item t belongs to task t.")
        if task is not None:
            raise ValueError("task was given with a dict of targets: its keys are the tasks. Drop task.")
        names, y = list(y), list(y.values())
    elif hasattr(y, "columns") and task is None and not is_task_list(X):
        names = list(y.columns)
        y = [y[name] for name in names]
    if names is not None and not names:
        raise ValueError("y is empty: it needs a column for each task.")
    if isinstance(y, list | tuple) and not is_task_list(X) and task is None and y and all(map(_is_column, y)):
        n_rows = count_rows(X)
        for t, own in enumerate(y):
            if _length(own) != n_rows:
                place = t if names is None else names[t]
                raise ValueError(f"y[{place!r}] has {_length(own)} entries, but X has {n_rows} rows.")
        y = list(y)
    return y, None if names is None else label_array(names)


def _is_column(values: Any) -> bool:
    """Whether a value holds the labels of many rows, not one label."""
    return isinstance(values, list | tuple) or (hasattr(values, "shape") and len(values.shape) > 0)


def _length(values: Any) -> int:
    return int(values.shape[0]) if hasattr(values, "shape") else len(values)


def _stand_in(X: Any, y: Any) -> Any:
    """Numbers in the form of y."""
    if is_task_list(X):
        if not isinstance(y, list | tuple):
            return y  # refused where lists are read
        return [np.zeros(_length(own)) if _is_column(own) else own for own in y]
    if isinstance(y, list) and y and all(map(_is_column, y)) and _length(y[0]) == count_rows(X):
        return np.zeros((_length(y[0]), len(y)))
    return np.zeros(as_array(to_numpy(y)).shape)


def read_known_tasks(
    X: Any, y: Any, task: Any, sample_weight: Any, *, tasks: np.ndarray, kinds: Sequence[str], classes: Any
) -> TaskLabels:
    """Labels of tasks that a model was fitted to, with their kinds and classes; a task without observed ones has weight
    0."""
    y, names = targets_of(X, y, task)
    known = tasks.tolist()
    if names is not None:
        odd = [name for name in (*names.tolist(), *known) if name not in known or name not in names.tolist()]
        if odd:
            raise ValueError(f"y and the model must have the same tasks: {odd[0]!r} is in one of them only.")
        y = [y[names.tolist().index(name)] for name in known]
    labels = read_labels(count_rows(X), _stand_in(X, y), task, sample_weight, allow_empty=True)
    if labels.form == "single" and len(known) > 1:
        raise ValueError(f"The model has {len(known)} tasks: pass task, the task of each row, to score.")
    if labels.form in ("list", "shared") and labels.n_tasks != len(known):
        raise ValueError(f"y has {labels.n_tasks} tasks, the model has {len(known)}.")
    places = range(len(known))
    if labels.form == "stacked":
        for name in labels.tasks.tolist():
            if name not in known:
                raise ValueError(f"task {name!r} is unknown: the model was fitted on {some_of(known)}.")
        places = [known.index(name) for name in labels.tasks.tolist()]  # type: ignore[assignment]
    own = [None if classes is None else classes[t] for t in places]
    return with_labels(labels, y, [kinds[t] for t in places], own)


def with_labels(data: AnyLabels, y: Any, kinds: Sequence[str], known: Any = None) -> AnyLabels:
    """Data with the labels of all tasks, each read by its kind; `known` are classes of tasks that were fitted."""
    flat, weights = np.zeros(int(data.offsets[-1])), data.weights.copy()
    classes: list[np.ndarray | None] = []
    for t, (own, part, kind) in enumerate(zip(labels_by_task(data, y), data.per_task(), kinds, strict=True)):
        values, observed, names = _read_task(own, kind, data, t, None if known is None else known[t], weights[part])
        flat[part] = values
        weights[part] = np.where(observed, weights[part], 0.0)
        classes.append(names)
    named = classes if any(names is not None for names in classes) else None
    return replace(data, y=flat, weights=weights, kinds=tuple(kinds), classes=named)


def labels_by_task(labels: TaskLabels, y: Any) -> Labels:
    """The labels of each task, in the order that its rows have in the flat sample space."""
    if labels.form == "list":
        return [_column(own) for own in y]
    if labels.shared:
        if isinstance(y, list):
            return [_column(own) for own in y]
        array = _objects(y)
        return [_own_type(array[:, t]) for t in range(labels.n_tasks)]
    array = one_column(_objects(y))
    array = array if labels.order is None else array[labels.order]
    return [_own_type(array[part]) for part in labels.per_task()]


def _column(values: Any) -> np.ndarray:
    return _own_type(one_column(_objects(values)))


def _objects(values: Any) -> np.ndarray:
    """An array, with None where it is masked."""
    array, hidden = as_array(to_numpy(values)), mask_of(values)
    if hidden is not None and hidden.any():
        array = array.astype(object)
        array[hidden] = None
    return array


def _own_type(values: np.ndarray) -> np.ndarray:
    """Objects as an array of their own type where they have one."""
    if values.dtype.kind != "O" or not len(values):
        return values
    kinds = {type(value) for value in values.tolist()}
    return label_array(values.tolist()) if len(kinds) == 1 else values


def _read_task(
    raw: np.ndarray, kind: str, labels: TaskLabels, t: int, known: Any, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Labels of a task as numbers, which of them are observed, and its classes where it has any."""
    name, start = labels.tasks[t : t + 1].tolist()[0], int(labels.offsets[t])

    def where(i: int) -> str:
        return f"{labels.where(start + i)} (task {name!r})"

    if kind == "signs":
        values, seen = read_classes(raw, None, where)
        seen = np.ones(len(values), dtype=bool) if seen is None else seen
        return _signs(values, seen, seen & (weights > 0.0), name, known, where)
    values, seen = read_values(raw, None, where)
    seen = np.ones(len(values), dtype=bool) if seen is None else seen
    live = seen & (weights > 0.0)
    limits = {
        "counts": (values >= 0.0, "counts must not be negative"),
        "positive": (values > 0.0, "must be positive"),
    }
    if kind in limits:
        allowed, words = limits[kind]
        wrong = live & ~allowed
        if wrong.any():
            i = int(np.argmax(wrong))
            raise value_error(
                "{y}: labels of task {name!r}: {words}; {where} is {value:g}. Leave such rows out (NaN is a label that "
                "is not observed), or choose another loss for the task.",
                name=name,
                words=words,
                where=labels.where(start + i),
                value=values[i],
            )
    return values, seen, None


def _signs(
    values: np.ndarray, seen: np.ndarray, live: np.ndarray, name: Any, known: Any, where: Callable[[int], str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """-1 and +1 for two classes, in the order of their labels."""
    try:
        classes = np.unique(values[live]) if known is None else np.asarray(known)
    except TypeError:
        raise value_error("{y}: the classes of task {name!r} cannot be sorted.", name=name) from None
    if known is None and len(classes) != 2:
        number = classes.dtype.kind == "f" and len(classes) > 2
        raise value_error(
            "{y}: task {name!r} has {n} classes{found}, and its loss is one of two classes. {advice}",
            name=name,
            n=len(classes),
            found=f" ({', '.join(map(repr, classes[:5].tolist()))}{', ...' if len(classes) > 5 else ''})",
            advice="Real numbers need a loss of numbers, 'squared' say."
            if number
            else "Leave the task out, or join its classes to two.",
        )
    signs = np.where(values == classes[1], 1.0, np.where(values == classes[0], -1.0, 0.0))
    strange = live & (signs == 0.0)
    if strange.any():
        i = int(np.argmax(strange))
        raise value_error(
            "{y}: {where} is {label!r}, which is none of the classes {classes} that the model was fitted to.",
            where=where(i),
            label=values[i : i + 1].tolist()[0],
            classes=classes.tolist(),
        )
    return np.where(seen, signs, 0.0), seen, classes
