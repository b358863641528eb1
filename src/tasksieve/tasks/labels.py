"""Targets, classes and task labels in any form, read into the flat sample space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from ..complex_numbers import refuse_complex
from ..messages import Message, either, parameter_name, value_error
from ..outcomes import encode, is_absent
from ..row_names import row_name
from .endpoints import read_endpoints, read_outcomes
from .frames import frame_columns, pick_columns
from .refusals import is_number, mask_of, refuse_masked_or_complex
from .sample_space import Form, TaskLabels, as_array, matching_list, one_column
from .tensors import to_numpy
from .weights import read_sample_weights

# What the labels of rows are for, in messages.
MEANING = {
    "task": "task says which task each row of X belongs to, one label (a school, a patient, a site) per row",
    "groups": "groups says which rows of X belong together, one label (a family, a patient) per row: rows of one group "
    "are held out together",
}


def read_labels(
    rows: int | Sequence[int],
    y: Any,
    task: Any = None,
    sample_weight: Any = None,
    *,
    targets: Literal["values", "classes", "many classes", "labels", "survival"] = "values",
    allow_empty: bool = False,
) -> TaskLabels:
    """Read y, task and sample weights, as `read_tasks` has them, for a matrix of so many rows or a list of matrices.

    ``targets="labels"`` leaves class labels as they are, ``"survival"`` gives `outcomes.SURVIVAL`; ``allow_empty``
    accepts tasks without observed labels, which may be scored, but not fitted.
    """
    if y is None:
        raise ValueError("tasksieve requires y to be passed, but the target y is None.")
    names, hidden = None if type(y) is np.ndarray else frame_columns(y), None
    y, task, sample_weight = to_numpy(y), to_numpy(task), to_numpy(sample_weight)
    if targets == "survival":
        raw, labels = _survival(rows, y, task)
    else:
        raw, hidden, labels = _one_matrix(rows, y, task, names) if isinstance(rows, int) else _list(rows, y, task)
    weights = None if sample_weight is None else read_sample_weights(sample_weight, labels)
    strata = None
    if targets == "survival":
        values, observed, strata = encode(raw)
    else:
        read = read_values if targets == "values" else read_classes
        values, observed = read(raw, hidden, labels.where)
    if weights is None:
        weights = np.ones(len(values)) if observed is None else observed.astype(np.float64)
    elif observed is not None:
        weights = weights * observed
    labels = replace(labels, y=values, weights=weights, strata=strata)
    if not allow_empty and (observed is not None or sample_weight is not None):
        refuse_empty_tasks(labels.tasks.tolist(), labels.weight_per_task, sample_weight is not None)
    if targets in ("classes", "many classes"):
        labels = _encode_classes(labels, targets == "many classes")
    return labels


# Labels and the mask of those hidden (None: none are), both in the flat sample space, and the form of it.
_Read = tuple[np.ndarray, np.ndarray | None, TaskLabels]
_NOTHING = np.empty(0)
_LISTED = "task was given with a list of matrices: there, item t of X and of y is task t. Drop task."


def _survival(rows: int | Sequence[int], y: Any, task: Any) -> tuple[np.ndarray, TaskLabels]:
    """Survival labels in the flat sample space, as `outcomes.survival` makes them, and the form of it."""
    if not isinstance(rows, int):
        if task is not None:
            raise ValueError(_LISTED)
        if not isinstance(y, list | tuple) or len(y) != len(rows):
            given = f"a list of {len(y)}" if isinstance(y, list | tuple) else type(y).__name__
            raise ValueError(
                f"X is a list of {len(rows)} matrices, so y must be a list of {len(rows)} outcomes; got {given}."
            )
        offsets = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
        tasks = np.arange(len(rows))
        labels = TaskLabels("list", tasks, offsets, _NOTHING, _NOTHING, None, int(offsets[-1]))
        return read_outcomes(y, rows, tasks.tolist()), labels
    raw, names = read_endpoints(y, rows)
    if names is None:
        tasks, order, offsets = read_task(task, rows)
        labels = TaskLabels("single" if task is None else "stacked", tasks, offsets, _NOTHING, _NOTHING, order, rows)
        return labels.flatten(raw), labels
    if task is not None:
        raise value_error(
            "{task} was given with a {y} of {n_tasks} outcomes. Either drop {task} (each outcome is a task), or stack "
            "the rows: one outcome for the rows of all tasks.",
            n_tasks=len(names),
        )
    offsets = rows * np.arange(len(names) + 1, dtype=np.int64)
    return raw, TaskLabels("shared", label_array(names), offsets, _NOTHING, _NOTHING, None, rows)


def _one_matrix(n_rows: int, y: Any, task: Any, names: list[Any] | None) -> _Read:
    raw, hidden = as_array(y), mask_of(y)
    if raw.shape[0] != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y has {raw.shape[0]}."
        )
    if task is not None:
        raw, hidden = one_column(raw), hidden if hidden is None else one_column(hidden)
    if raw.ndim == 1:
        tasks, order, offsets = read_task(task, n_rows)
        form: Form = "single" if task is None else "stacked"
    else:
        if task is not None:
            raise value_error(
                "{task} was given with a {y} of {n_tasks} columns. Either drop {task} (the columns of {y} are "
                "the tasks), or stack the rows{how}; NaN marks a label that is not observed.",
                n_tasks=raw.shape[1],
                how=either(": X = np.vstack([X] * T), y = Y.ravel(order='F'), task = np.repeat(np.arange(T), len(Y))"),
            )
        if not raw.shape[1]:
            raise ValueError("y has no columns: it needs one per task.")
        tasks, order, form = _column_names(names, raw.shape[1]), None, "shared"
        offsets = n_rows * np.arange(len(tasks) + 1, dtype=np.int64)
    labels = TaskLabels(form, tasks, offsets, _NOTHING, _NOTHING, order, n_rows)
    return labels.flatten(raw), hidden if hidden is None else labels.flatten(hidden), labels


def _column_names(names: list[Any] | None, n_tasks: int) -> np.ndarray:
    """Tasks of a y of several columns: the names of a data frame's, else 0, 1, .."""
    if names is None:
        return np.arange(n_tasks)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise value_error("{y} has two columns called {name!r}: each task needs a name of its own.", name=twice)
    return label_array(names)


def outcomes_in_order(y: Any, tasks: np.ndarray) -> Any:
    """A data frame of outcomes with its columns as a fitted model has its tasks; anything else, and outcomes of a model
    whose tasks have no names, as it is."""
    names, known = frame_columns(y), tasks.tolist()
    if names is None or len(names) == 1 or names == known or known == list(range(len(known))):
        return y
    if len(names) == len(known) and set(names) == set(known):
        return pick_columns(y, known)
    raise ValueError(f"y has the columns {some_of(names)}, but the tasks of the model are {some_of(known)}.")


def _list(rows: Sequence[int], y: Any, task: Any) -> _Read:
    if task is not None:
        raise ValueError(_LISTED)
    raw = np.concatenate(matching_list(rows, y, "y"))
    masks, hidden = [mask_of(part) for part in y], None
    if any(mask is not None for mask in masks):
        every = zip(rows, masks, strict=True)
        hidden = np.concatenate([np.zeros(n, dtype=bool) if mask is None else mask.ravel() for n, mask in every])
    offsets = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    labels = TaskLabels("list", np.arange(len(rows)), offsets, _NOTHING, _NOTHING, None, int(offsets[-1]))
    return raw, hidden, labels


def read_task(task: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Sorted task labels, the permutation that sorts the rows (None: sorted), the offsets."""
    if task is None:
        return np.zeros(1, dtype=np.int64), None, np.array([0, n_rows], dtype=np.int64)
    labels = row_labels(task, n_rows, "task")
    if n_rows and labels.dtype.kind in "biuUS" and np.all(labels[1:] >= labels[:-1]):  # sorted, as most data are
        starts = np.concatenate([[0], np.flatnonzero(labels[1:] != labels[:-1]) + 1])
        return labels[starts], None, np.append(starts, n_rows).astype(np.int64, copy=False)
    tasks, codes = sorted_labels(labels, "task")
    offsets = np.zeros(len(tasks) + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=len(tasks)), out=offsets[1:])
    if np.all(codes[1:] >= codes[:-1]):
        return tasks, None, offsets
    return tasks, np.argsort(codes, kind="stable"), offsets


def row_labels(values: Any, n_rows: int, name: str) -> np.ndarray:
    """One label per row of X and none missing, as a 1-D array."""
    refuse_masked_or_complex(values, name)
    if isinstance(values, str | bytes):
        raise ValueError(
            f"{name}={values!r} is a word, not the name of a column that would be looked up: {MEANING[name]}. Pass the "
            f"column itself, {name}=frame[{values!r}], and leave it out of X"
            + (", or name it in the constructor of the model." if name == "task" else ".")
        )
    labels = one_column(np.asarray(to_numpy(values)))
    if labels.ndim != 1 or len(labels) != n_rows:
        raise ValueError(
            f"{name} must have one label per row of X: X has {n_rows} rows, {name} has shape {labels.shape}. "
            f"{name.capitalize()}{MEANING[name].removeprefix(name)}."
        )
    missing = _missing(labels)
    if missing is not None:
        row = int(np.argmax(missing))
        raise ValueError(
            f"{name} has no label in {row_name(row)}: every row belongs to a {name.removesuffix('s')}. Label it or "
            "drop it."
        )
    odd = first_fraction(labels) if name == "task" else None
    if odd is not None:
        raise value_error(
            "{task} is {label} in {row}, and {task} says which task a row belongs to, by one label (a school, a "
            "patient, a site) per row: is this the outcome? {how}Labels that are no whole numbers are written as "
            "words{words}.",
            label=labels[odd : odd + 1].tolist()[0],
            row=row_name(odd),
            how=either("Pass the outcome as y: fit(X, y, task=task). "),
            words=either(": [str(label) for label in task]"),
        )
    return labels


def first_fraction(labels: np.ndarray) -> int | None:
    """The first of some labels, none missing, that is a number, and no whole one; None where there is none."""
    if labels.dtype.kind == "f":
        odd = np.isinf(labels) | (labels != np.floor(labels))
    elif labels.dtype.kind == "O":
        odd = np.fromiter(map(is_fraction, labels.tolist()), bool, len(labels))
    else:
        return None
    return int(np.argmax(odd)) if odd.any() else None


def is_fraction(label: Any) -> bool:
    """Return whether a label is a number, and no whole one: a measurement, not the name of a task."""
    return isinstance(label, float | np.floating) and not float(label).is_integer()


def sorted_labels(labels: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The different labels, sorted, and the position among them of that of each row."""
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise value_error(
            "{argument} mixes labels that cannot be sorted (numbers and strings, say): use one kind{how}.",
            argument=parameter_name(name),
            how=either(f", for example [str(label) for label in {name}]"),
        ) from error


def read_groups(groups: Any, labels: TaskLabels) -> tuple[np.ndarray, np.ndarray]:
    """The names of the groups, sorted, and the position among them of the group of each row of X."""
    groups = to_numpy(groups)
    if labels.form == "list" and isinstance(groups, list | tuple) and all(np.ndim(part) for part in groups):
        groups = np.concatenate(matching_list(np.diff(labels.offsets).tolist(), groups, "groups"))
    return sorted_labels(row_labels(groups, labels.n_rows, "groups"), "groups")


def label_array(labels: list[Any]) -> np.ndarray:
    """Labels as an array: of their own type where they have one in common, else of objects."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {str, int, float, bool, bytes}:
        return np.array(labels)
    out = np.empty(len(labels), dtype=object)
    out[:] = labels
    return out


def some_of(names: Sequence[Any]) -> str:
    """The first few labels, for messages."""
    return ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")


def task_codes(task: Any, tasks: np.ndarray, n_rows: int) -> np.ndarray:
    """Position in ``tasks`` of the label of each row; a label not met in `fit` is an error."""
    labels = row_labels(task, n_rows, "task")
    if len(labels) == 0:
        return np.zeros(0, dtype=np.int64)
    try:
        known, inverse = np.unique(labels, return_inverse=True)
    except TypeError:
        known, inverse = labels, np.arange(n_rows)
    position = {label: t for t, label in enumerate(tasks.tolist())}
    codes = np.array([position.get(label, -1) for label in known.tolist()], dtype=np.int64)
    if np.any(codes < 0):
        row = int(np.argmax(codes[inverse] < 0))
        raise value_error(
            "task {task!r} in {row} is unknown: the model was fitted on the {n} task(s) {some}{where}.",
            task=labels[row : row + 1].tolist()[0],
            row=row_name(row),
            n=len(tasks),
            some=some_of(tasks.tolist()),
            where=either(" (see tasks_)"),
        )
    return codes[inverse]


def _missing(values: np.ndarray) -> np.ndarray | None:
    """Mask of missing entries (NaN, None, NA, NaT), or None where there are none."""
    if values.dtype.kind in "fc":
        mask = np.isnan(values)
    elif values.dtype.kind in "mM":
        mask = np.isnat(values)
    elif values.dtype.kind == "O":
        mask = np.fromiter(map(is_absent, values.ravel()), bool, values.size).reshape(values.shape)
    else:
        return None
    return mask if mask.any() else None


def _unobserved(raw: np.ndarray, hidden: np.ndarray | None) -> np.ndarray | None:
    """Mask of the labels that are missing or hidden by the mask of y, or None where there are none."""
    missing = _missing(raw)
    if hidden is None:
        return missing
    return hidden if missing is None else hidden | missing


def read_values(
    raw: np.ndarray, hidden: np.ndarray | None, where: Callable[[int], str]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Targets as float64, and the mask of those observed (None: all)."""
    refuse_complex(raw, "y")
    if raw.dtype.kind in "mM":
        kind = "dates" if raw.dtype.kind == "M" else "durations"
        raise value_error("{y} holds {kind}: turn them into numbers, days since some day say.", kind=kind)
    missing = _unobserved(raw, hidden)
    values = raw
    if missing is not None:
        values = raw.copy()
        values[missing] = 0
    try:
        values = values.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        wrong = next((i for i, value in enumerate(values.tolist()) if not is_number(value)), None)
        found = f"{where(wrong)} is {values[wrong : wrong + 1].tolist()[0]!r}" if wrong is not None else str(error)
        raise value_error("{y} must hold numbers: {found}. Classes are for classifiers.", found=found) from error
    if not np.isfinite(np.add.reduce(values)):
        _refuse_infinite(np.isinf(values), where)
    return values, None if missing is None else ~missing


def _refuse_infinite(infinite: np.ndarray, where: Callable[[int], str]) -> None:
    if infinite.any():
        raise value_error(
            "Input {y} contains infinity (inf): {where}. Correct it, or set it to NaN if it is not observed.",
            where=where(int(np.argmax(infinite))),
        )


def _kind(label: Any) -> str:
    """Of a class label, in words: labels of one kind can be compared."""
    if isinstance(label, str):
        return "text"
    return "a number" if isinstance(label, Real | np.bool_) else type(label).__name__


def _refuse_mixed(raw: np.ndarray, missing: np.ndarray | None, where: Callable[[int], str]) -> None:
    """Refuse class labels of different kinds: 1 and '1' would be two classes without an order."""
    first: dict[str, int] = {}
    for i, label in enumerate(raw.tolist()):
        if missing is None or not missing[i]:
            first.setdefault(_kind(label), i)
        if len(first) == 2:
            one, other = (f"{raw[k]!r} in {where(k)} is {kind}" for kind, k in first.items())
            raise value_error(
                "{y} mixes labels of different kinds: {one}, {other}. Write all of them one way{how}.",
                one=one,
                other=other,
                how=either(", for example [str(label) for label in y]"),
            )


def read_classes(
    raw: np.ndarray, hidden: np.ndarray | None, where: Callable[[int], str]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Class labels as they are, and the mask of those observed (None: all)."""
    refuse_complex(raw, "y")
    missing = _unobserved(raw, hidden)
    if raw.dtype.kind == "O":
        _refuse_mixed(raw, missing, where)
    if raw.dtype.kind == "f":
        _refuse_infinite(np.isinf(raw) if missing is None else np.isinf(raw) & ~missing, where)
    return raw, None if missing is None else ~missing


def refuse_empty_tasks(names: Sequence[Any], totals: np.ndarray, weighted: bool = True) -> None:
    """Refuse tasks of which nothing is observed, given how much the rows of each weigh together."""
    empty = np.flatnonzero(totals <= 0)
    if len(empty):
        reason = Message("missing in {y} or has zero {sample_weight}" if weighted else "missing (NaN) in {y}")
        raise value_error(
            "task {name!r} has no rows: each of its labels is {reason}. Leave the task out, or give it at least "
            "one observed label.",
            name=names[int(empty[0])],
            reason=reason,
        )


def refuse_real_numbers(labels: np.ndarray) -> None:
    """Raise a ValueError where class labels are numbers that are not whole."""
    if labels.dtype.kind == "f" and np.any(labels != np.floor(labels)):
        raise value_error("Unknown label type: continuous. {y} holds real numbers, a classifier needs classes.")


def observed_classes(labels: TaskLabels) -> np.ndarray | None:
    """The sorted classes of all tasks, two or more; None where labels of different kinds cannot be sorted."""
    observed = labels.y[labels.weights > 0]
    try:
        classes = np.unique(observed)
    except TypeError:
        return None
    if len(classes) == 1:
        only = classes.tolist()[0]
        raise value_error("{y} has one class only ({only!r}): a classifier needs two classes.", only=only)
    if len(classes) > 2:
        refuse_real_numbers(classes)
    return classes


def _encode_classes(labels: TaskLabels, many: bool) -> TaskLabels:
    """Classes, and their signs: +1 for the larger label of all tasks or, where tasks differ, of each task.

    With `many`, codes from 0 where a task has more than two. If one task has rows of all classes these are the classes
    of every task; otherwise each has its own.
    """
    present = labels.weights > 0
    y = labels.y
    classes = observed_classes(labels)
    if classes is not None and len(classes) == 2:
        signs = np.where(present, np.where(y == classes[1], 1.0, -1.0), 0.0)
        return replace(labels, classes=classes, y=signs)
    own = [np.unique(y[part][present[part]]) for part in labels.per_task()]
    counts = np.array([len(labels_of_task) for labels_of_task in own])
    binary = bool(np.all(counts == 2))
    if not binary and not many:
        t = int(np.argmax(counts != 2))
        raise value_error(
            "Only binary classification is supported. Task {name!r} has {n} class(es) of the {total} in {y}; "
            "where tasks have different pairs of classes, each needs exactly two.",
            name=labels.tasks[t : t + 1].tolist()[0],
            n=len(own[t]),
            total="several" if classes is None else len(classes),
        )
    everywhere = not binary and classes is not None and counts.max() == len(classes)
    if everywhere and classes is not None:
        own, counts = [classes] * len(own), np.full(len(own), len(classes))
    codes = np.zeros(len(y))
    for part, labels_of_task in zip(labels.per_task(), own, strict=True):
        here = np.flatnonzero(present[part]) + part.start
        codes[here] = np.searchsorted(labels_of_task, y[here])
    if binary:
        return replace(labels, classes=own, y=np.where(present, 2.0 * codes - 1.0, 0.0))
    return replace(labels, classes=classes if everywhere else own, y=codes, class_counts=counts)
