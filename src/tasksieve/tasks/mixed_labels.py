"""Labels of tasks whose outcomes are of unlike kinds: numbers, classes, counts, in one flat vector.

Any form of y says which labels belong to which task; each task is then read by its kind (`Loss.labels`). In the flat
sample space all of them are numbers: two classes are -1 and +1, ordered ones the codes 0, 1, .. Where a task has
survival outcomes all labels are records (`outcomes.SURVIVAL`), whose `time` is the number of other tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ..messages import ParameterError, value_error
from ..outcomes import SURVIVAL, encode, read_outcome
from .data import TaskData, read_tasks
from .labels import label_array, read_classes, read_labels, read_values, refuse_empty_tasks, some_of
from .ordered import orders_by_task
from .refusals import mask_of
from .sample_space import CLASSES, TaskLabels, as_array, one_column
from .source import count_rows, is_task_list
from .tensors import to_numpy
from .weights import read_task_weights

AnyLabels = TypeVar("AnyLabels", bound=TaskLabels)


def read_mixed(
    X: Any,
    y: Any,
    task: Any = None,
    sample_weight: Any = None,
    *,
    kinds: Callable[[np.ndarray], Sequence[str]],
    categories: Any = None,
    task_weights: Any = None,
) -> TaskData:
    """Read X, y, task and weights in any form of the contract, each task's labels by its kind; see `read_tasks`.

    - `y`: Beside arrays, of objects too, for one shared matrix: a data frame, whose columns are tasks by name, or a
      dict or list of arrays.
    - `kinds`: ``kinds(tasks)``: the kinds of labels (`Loss.labels`), given the tasks.
    - `categories`: By task: ordered classes, from the lowest to the highest; by default as ordered categoricals have
      them.
    """
    y, names = targets_of(X, y, task)
    data = read_tasks(X, _stand_in(X, y), task, sample_weight, task_weights=task_weights)
    if names is not None:
        data = replace(data, tasks=names)
    own = kinds(data.tasks)
    found = with_labels(data, y, own, _orders(categories, y, data.tasks, own))
    refuse_empty_tasks(found.tasks.tolist(), found.weight_per_task, sample_weight is not None)
    return replace(found, task_weights=read_task_weights(task_weights, found))


def _orders(categories: Any, y: Any, tasks: np.ndarray, kinds: Sequence[str]) -> list[Any]:
    """The order of the classes of each task: as given, or as ordered categoricals know it; None where neither says."""
    names = tasks.tolist()
    given = {} if categories is None else categories
    if not isinstance(given, Mapping) or any(task not in names for task in given):
        odd = [task for task in given if task not in names] if isinstance(given, Mapping) else [given]
        raise ParameterError("categories", "must be a dict of tasks, each with its classes in their order", odd[0])
    known = [
        order if kind == "ordered" else None for order, kind in zip(orders_by_task(y, tasks), kinds, strict=True)
    ]
    found = [given.get(task, order) for task, order in zip(names, known, strict=True)]
    return [None if order is None else label_array(list(order)) for order in found]


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
    if isinstance(values, tuple) and all(map(_is_column, values)) and values:  # (time, event)
        return _length(values[0])
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
    """Data with the labels of all tasks, each read by its kind; `known` are classes of tasks, None where they are to be
    found."""
    size, weights = int(data.offsets[-1]), data.weights.copy()
    flat: np.ndarray = np.zeros(size)
    if "survival" in kinds:
        flat = np.zeros(size, dtype=SURVIVAL)
        flat["entry"] = -np.inf
    numbers = flat if flat.dtype.names is None else flat["time"]
    classes: list[np.ndarray | None] = []
    for t, (own, part, kind) in enumerate(zip(labels_by_task(data, y), data.per_task(), kinds, strict=True)):
        task = _Task(data, t, kind, None if known is None else known[t])
        if kind == "survival":
            flat[part], observed = task.survival(own)
        else:
            numbers[part], observed = task.read(_column(own), weights[part])
        weights[part] = np.where(observed, weights[part], 0.0)
        classes.append(task.classes)
    named = classes if any(names is not None for names in classes) else None
    return replace(data, y=flat, weights=weights, kinds=tuple(kinds), classes=named)


def labels_by_task(labels: TaskLabels, y: Any) -> list[Any]:
    """The labels of each task, in the order that its rows have in the flat sample space."""
    if labels.form == "list":
        return list(y)
    if labels.shared:
        if isinstance(y, list):
            return y
        array = _objects(y)
        return [array[:, t] for t in range(labels.n_tasks)]
    array = one_column(_objects(y))
    array = array if labels.order is None else array[labels.order]
    return [array[part] for part in labels.per_task()]


def _column(values: Any) -> np.ndarray:
    """Labels other than survival times."""
    array = one_column(_objects(values))
    if array.dtype.names is not None and "time" in array.dtype.names:  # beside survival times in one array of records
        return np.asarray(array["time"])
    if array.dtype.kind != "O" or not len(array):
        return array
    kinds = {type(value) for value in array.tolist()}
    return label_array(array.tolist()) if len(kinds) == 1 else array


def _objects(values: Any) -> np.ndarray:
    """An array, with None where it is masked."""
    array, hidden = as_array(to_numpy(values)), mask_of(values)
    if hidden is not None and hidden.any():
        array = array.astype(object)
        array[hidden] = None
    return array


class _Task:
    """Labels of one task: how they are read, and `classes`, where it has any."""

    def __init__(self, labels: TaskLabels, t: int, kind: str, known: np.ndarray | None) -> None:
        self._labels, self._kind, self.classes = labels, kind, known
        self._name, self._start = labels.tasks[t : t + 1].tolist()[0], int(labels.offsets[t])

    def _where(self, i: int) -> str:
        return f"{self._labels.where(self._start + i)} (task {self._name!r})"

    def survival(self, raw: Any) -> tuple[np.ndarray, np.ndarray]:
        """Records, and which of them are observed."""
        if isinstance(raw, np.ndarray) and raw.dtype.kind == "O" and raw.ndim == 1 and len(raw):
            first = next((label for label in raw.tolist() if isinstance(label, np.void)), None)
            if first is not None:  # records among labels of other kinds
                empty = np.zeros(1, dtype=first.dtype)
                empty["time"] = np.nan
                raw = np.array([label if isinstance(label, np.void) else empty[0] for label in raw], first.dtype)
        values, seen, _ = encode(read_outcome(raw, f"y[{self._name!r}]"))
        return values, np.ones(len(values), dtype=bool) if seen is None else seen

    def read(self, raw: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Labels as numbers, and which of them are observed."""
        read = read_classes if self._kind in CLASSES else read_values
        values, seen = read(raw, None, self._where)
        seen = np.ones(len(values), dtype=bool) if seen is None else seen
        live = seen & (weights > 0.0)
        if self._kind in CLASSES:
            codes = self._codes(values, live)
            return np.where(live, codes if self._kind == "ordered" else 2.0 * codes - 1.0, 0.0), seen
        limits = {"counts": (values >= 0.0, "must not be negative"), "positive": (values > 0.0, "must be above 0")}
        allowed, words = limits.get(self._kind, (live, ""))
        wrong = live & ~allowed
        if wrong.any():
            i = int(np.argmax(wrong))
            raise value_error(
                "{y}: {what} of task {name!r} {words}; {where} is {value:g}. Leave such rows out (NaN is a label that "
                "is not observed), or choose another loss for the task.",
                what="counts" if self._kind == "counts" else "labels",
                name=self._name,
                words=words,
                where=self._labels.where(self._start + i),
                value=values[i],
            )
        return values, seen

    def _codes(self, values: np.ndarray, live: np.ndarray) -> np.ndarray:
        """The place of each label among the classes, which are found where they are not known."""
        if self.classes is None:
            try:
                self.classes = np.unique(values[live])
            except TypeError:
                raise value_error("{y}: the classes of task {name!r} cannot be sorted.", name=self._name) from None
            self._refuse_count(self.classes)
            if self._kind == "ordered" and self.classes.dtype.kind in "OUS" and len(self.classes) > 2:
                raise value_error(
                    "{y}: the classes of task {name!r} are words ({some}), whose order is not known: pass "
                    "{categories}, a dict of the task and its classes from the lowest to the highest.",
                    name=self._name,
                    some=some_of(self.classes.tolist()),
                )
        place = {label: k for k, label in enumerate(self.classes.tolist())}
        codes = np.array([place.get(label, -1) for label in values.tolist()], dtype=np.float64)
        strange = live & (codes < 0.0)
        if strange.any():
            i = int(np.argmax(strange))
            raise value_error(
                "{y}: {where} is {label!r}, which is none of the classes {classes}.",
                where=self._where(i),
                label=values[i : i + 1].tolist()[0],
                classes=self.classes.tolist(),
            )
        return codes

    def _refuse_count(self, classes: np.ndarray) -> None:
        n = len(classes)
        if n == 2 or (n > 2 and self._kind == "ordered"):
            return
        number = classes.dtype.kind == "f" and n > 2
        raise value_error(
            "{y}: task {name!r} has {n} classes{found}, and its loss is one of {wanted}. {advice}",
            name=self._name,
            n=n,
            found=f" ({', '.join(map(repr, classes[:5].tolist()))}{', ...' if n > 5 else ''})",
            wanted="two classes" if self._kind == "signs" else "two or more",
            advice="Real numbers need a loss of numbers, 'squared' say."
            if number
            else "Leave the task out, or join its classes to two.",
        )
