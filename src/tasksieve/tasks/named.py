"""Tasks by name: ``{task: (X, y)}``, or a column of X: in other words, stacked rows with their tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np
import scipy.sparse

from ..outcomes import is_outcome, read_outcome
from .endpoints import read_outcomes
from .frames import frame_columns, pick_columns
from .labels import label_array
from .ordered import known_order, with_orders
from .patterned import PatternedMatrix
from .patterns import Patterns
from .sample_space import one_column
from .task_column import column_of_tasks, split_task_column
from .tensors import stack_rows, to_host, to_numpy

# Columns named in a message; the rest are counted.
_NAMED = 5
_PER_ROW = ("sample_weight", "offset", "groups", "strata")
_FITTING = ("fit", "path", "alpha_max", "compare", "split_inference", "permutation_test")
_NO_TASK = "task was given with a dict of tasks: its keys are the tasks. Drop task."

_P = ParamSpec("_P")
_R = TypeVar("_R")


def is_named(X: Any) -> bool:
    """Whether X is a dict of tasks; one kind of sparse matrices is a dict by birth."""
    return isinstance(X, Mapping) and not scipy.sparse.issparse(X)


def takes_named_tasks(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function of X, or a method, that takes ``{task: (X, y)}`` as X, too, and an X with a column of tasks where the
    model names one.

    One with a parameter ``y`` is called once, with the rows of all tasks stacked. One without is called for the rows of
    each task, ``{task: X}``, and its answers are a dict with the same keys.
    """
    form = signature(function)
    position, per_row = list(form.parameters).index("X"), [name for name in _PER_ROW if name in form.parameters]
    by_place = [name for name, given in form.parameters.items() if given.kind is not given.KEYWORD_ONLY]

    @wraps(function)
    def taking(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if len(args) > len(by_place):
            raise TypeError(_too_many(args[0] if position else None, function.__name__, by_place, len(args)))
        try:
            return take(*args, **kwargs)
        except TypeError as error:
            own = f"{function.__qualname__}("
            if not position or not str(error).startswith(own):
                raise
            # arguments that it does not take: Python names the class that has the method, not the one that was asked
            raise TypeError(f"{type(args[0]).__name__}.{function.__name__}({str(error).removeprefix(own)}") from None

    def take(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        X = args[position] if len(args) > position else kwargs.get("X")
        model: Any = args[0] if position else None
        # arrays and their tasks are what most calls have: they need not enter another file
        named = getattr(model, "task", None) is not None or hasattr(model, "estimator")
        column = column_of_tasks(model) if named else None
        if column is not None and not isinstance(X, PatternedMatrix):
            bound = form.bind(*args, **kwargs)
            bound.arguments["X"], bound.arguments["task"] = split_task_column(
                X, column, bound.arguments.get("task")
            )
            return function(*bound.args, **bound.kwargs)
        if isinstance(X, PatternedMatrix):
            bound = form.bind(*args, **kwargs)
            _tell_patterns(function.__name__, bound.arguments, per_row, position)
            return function(*bound.args, **bound.kwargs)
        if not is_named(X):
            return function(*args, **kwargs)
        given = form.bind(*args, **kwargs).arguments
        first = [given.pop(name) for name in list(form.parameters)[:position]]  # the model
        options = {name: given.pop(name, None) for name in ("X", "task", *per_row)}
        call: Any = partial(function, *first)
        if "y" in form.parameters:
            targets = getattr(first[0], "_targets", None) if first else None
            survival, mixed = targets == "survival", targets == "mixed"
            return call(**stack_named(y=given.pop("y", None), survival=survival, mixed=mixed, **options), **given)
        return _by_task(first[0], partial(call, **given), **options)  # type: ignore[return-value]

    return taking


def _too_many(model: Any, name: str, by_place: Sequence[str], given: int) -> str:
    """Why a call is refused: scikit-learn's third argument is sample_weight, other libraries' is something else."""
    method = model is not None and by_place[0] == "self"
    known = list(by_place[method:])
    whose = f"{type(model).__name__}.{name}" if method else name
    taken = " and ".join(filter(None, [", ".join(known[:-1]), known[-1]]))
    return (
        f"{whose} takes {taken} by position, and the rest by name: "
        f"{name}({', '.join([*known, 'task=...'])}); got {given - method} positional arguments."
    )


def _tell_patterns(method: str, given: dict[str, Any], per_row: Sequence[str], position: int) -> None:
    """Arguments about rows that do not have all columns, in the place of those given."""
    X: PatternedMatrix = given["X"]
    model: Any = next(iter(given.values())) if position and method not in _FITTING else None
    if method in _FITTING:
        X.warn_small()
    given["X"], given["task"] = pattern_rows(X, given.get("task"), model)
    for name in ("y", *per_row):
        if X.heights is not None and isinstance(given.get(name), Mapping):
            _refuse_other_keys(X.heights, {name: given[name]})
            parts = [_one_per_row(given[name][label], n, f"{name}[{label!r}]") for label, n in X.heights.items()]
            given[name] = stack_labels(parts)


def refuse_patterns(X: Any, asker: str) -> None:
    """Refuse rows that do not have all columns where single tasks are fitted together, or columns are copied."""
    if isinstance(X, PatternedMatrix) and not X.patterns.complete:
        raise ValueError(
            f"{asker} needs rows that have all columns: of X, rows of by_pattern, some tasks lack some. Leave out what "
            "is incomplete, or fill it in."
        )


def pattern_rows(X: Any, task: Any, model: Any = None) -> tuple[Any, Any]:
    """X and task of rows; where they do not have all columns their tasks are their patterns, of a model, or a path,
    that is fitted those that it knows."""
    if not isinstance(X, PatternedMatrix):
        return X, task
    known = getattr(model, "patterns_", None)
    if known is None and hasattr(model, "tasks_"):
        single = bool(getattr(model, "_single", False))
        known = Patterns.of_tasks(np.asarray(model.tasks_), int(model.n_features_in_), single)
    own = X.task
    if known is not None and X.patterns is not known:
        names = getattr(model, "feature_names_in_", getattr(model, "feature_names", None))
        X = X.as_fitted(known, names)
    labels = [label for label in (own, X.task) if label is not None]
    if task is not None and not any(np.array_equal(np.asarray(to_numpy(task)), label) for label in labels):
        raise ValueError("task was given with rows of by_pattern, which know their tasks: by_pattern(X, task=task).")
    return X, X.task


def _by_task(model: Any, method: Callable[..., Any], X: Mapping[Any, Any], task: Any, **options: Any) -> dict[Any, Any]:
    """What a method of a model answers for the rows of each task, given ``{task: X}`` and options, in dicts with the
    same keys or the same for all."""
    if task is not None:
        raise ValueError(_NO_TASK)
    given = {name: value for name, value in options.items() if value is not None}
    _refuse_other_keys(X, given)
    known, found = getattr(model, "feature_names_in_", None), {}
    for label, rows in X.items():
        matrix = rows[0] if isinstance(rows, tuple) else rows
        own = {name: value[label] if isinstance(value, Mapping) else value for name, value in given.items()}
        if known is not None and frame_columns(matrix) is not None:
            matrix = _in_order(matrix, list(known), f"X[{label!r}]")
        n_rows = matrix.shape[0] if hasattr(matrix, "shape") else len(matrix)
        found[label] = method(matrix, task=label_array([label] * n_rows), **own)
    return found


def stack_named(
    X: Mapping[Any, Any], y: Any, task: Any, *, survival: bool = False, mixed: bool = False, **options: Any
) -> dict[str, Any]:
    """Keyword arguments X, y and task of stacked rows, and what else is said of them: dicts with the same keys.

    - `X` (dict of task to (X, y), or to X where `y` is a dict, too): Arrays, sparse matrices, or data frames: their
      columns are matched by name, in the order of the first one.
    - `survival`: Whether y holds survival outcomes, whose entries need not be 1-D.
    - `mixed`: Whether it may hold such.
    """
    if task is not None:
        raise ValueError(_NO_TASK)
    options = {name: value for name, value in options.items() if value is not None}
    if not X:
        raise ValueError("X is an empty dict: it needs an entry for each task.")
    labels = list(X)
    if y is None:
        for label in labels:
            if not isinstance(X[label], tuple | list) or len(X[label]) != 2:
                raise ValueError(
                    f"X[{label!r}] must be a pair (X, y), the rows of that task and their targets; or pass y, a dict "
                    "with the same keys."
                )
        y = {label: X[label][1] for label in labels}
        X = {label: X[label][0] for label in labels}
    elif not isinstance(y, Mapping):
        raise ValueError("X is a dict of tasks, so y must be a dict with the same keys, or None where X holds pairs.")
    _refuse_other_keys(X, {"y": y, **options})
    if mixed:
        y = {label: read_outcome(own, f"y[{label!r}]") if _has_columns(own) else own for label, own in y.items()}
    matrices = _matched(X)
    sizes = [matrix.shape[0] for matrix in matrices]
    stacked = {
        name: stack_labels([_one_per_row(value[label], size, f"{name}[{label!r}]")
                            for label, size in zip(labels, sizes, strict=True)])
        for name, value in {"y": y, **options}.items() if isinstance(value, Mapping) and not (survival and name == "y")
    }  # fmt: skip
    if survival:
        stacked["y"] = read_outcomes([y[label] for label in labels], sizes, labels)
    orders = [known_order(y[label]) for label in labels]
    order = orders[0]
    if order is not None and all(other == order for other in orders):  # of ordered categoricals, which NumPy forgets
        from pandas import Categorical

        stacked["y"] = Categorical(stacked["y"], categories=order, ordered=True)
    elif mixed:
        stacked["y"] = with_orders(stacked["y"], dict(zip(labels, orders, strict=True)))
    return {**options, **stacked, "X": stack_rows(matrices), "task": np.repeat(label_array(labels), sizes)}


def _has_columns(y: Any) -> bool:
    """Whether labels of one task are times and events: a pair of arrays, or two columns and more."""
    return is_outcome(y) and (isinstance(y, tuple) or getattr(getattr(y, "dtype", None), "names", None) is not None
                              or y.shape[1] > 1)  # fmt: skip


def stack_labels(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays one after the other; numbers beside words, or beside records, stay what they are: objects."""
    kinds = {part.dtype.kind for part in parts}
    alike = len(kinds) == 1 and (kinds != {"V"} or len({part.dtype for part in parts}) == 1)
    if alike or not kinds & set("OUSV"):
        return np.concatenate(parts)
    out = np.empty(sum(map(len, parts)), dtype=object)
    out[:] = [label for part in parts for label in (list(part) if part.dtype.kind == "V" else part.tolist())]
    return out


def _refuse_other_keys(X: Mapping[Any, Any], others: Mapping[str, Any]) -> None:
    for name, value in others.items():
        if not isinstance(value, Mapping):
            continue
        odd = [label for label in (*X, *value) if label not in X or label not in value]
        if odd:
            where = "X" if odd[0] in X else name
            raise ValueError(f"{name} and X must have the same keys: {odd[0]!r} is in {where} only.")


def _one_per_row(values: Any, n_rows: int, name: str) -> np.ndarray:
    array = one_column(np.asarray(to_numpy(values)))
    if array.ndim != 1 or len(array) != n_rows:
        raise ValueError(f"{name} must be 1-D, one entry per row of X: {n_rows} rows, shape {array.shape}.")
    return array


def _matched(X: Mapping[Any, Any]) -> list[Any]:
    matrices = {label: to_host(matrix) for label, matrix in X.items()}
    columns = {label: names for label, matrix in matrices.items() if (names := frame_columns(matrix)) is not None}
    if not columns:
        plain = [m if scipy.sparse.issparse(m) else np.asarray(m) for m in matrices.values()]
        for label, matrix in zip(X, plain, strict=True):
            if matrix.ndim != 2 or matrix.shape[1] != plain[0].shape[-1]:
                raise ValueError(
                    f"X[{label!r}] has shape {matrix.shape}, X[{next(iter(X))!r}] has shape {plain[0].shape}: all "
                    "tasks need the same features in the same order (data frames are matched by the names of their "
                    "columns)."
                )
        return plain
    origin, first = next(iter(columns.items()))
    for label in X:
        if label not in columns:
            raise ValueError(
                f"X[{label!r}] has no names of columns, X[{origin!r}] has: make all of them data frames, or none."
            )
    _refuse_other_columns(columns, origin)
    return [_in_order(matrix, first, f"X[{label!r}]") for label, matrix in matrices.items()]


def _refuse_other_columns(columns: Mapping[Any, list[Any]], origin: Any) -> None:
    """Name what each task's frame lacks, or has beyond the first one's."""
    first, lines = columns[origin], []
    known = set(first)
    for label, names in columns.items():
        lacks, more = [name for name in first if name not in set(names)], [name for name in names if name not in known]
        words = [f"lacks {_few(lacks)}"] if lacks else []
        words += [f"has {_few(more)}, which X[{origin!r}] has not"] if more else []
        lines += [f"X[{label!r}] {' and '.join(words)}"] if words else []
    if lines:
        raise ValueError(
            f"The data frames of the tasks have different columns: {'; '.join(lines[:_NAMED])}"
            + (f"; and {len(lines) - _NAMED} more" if len(lines) > _NAMED else "")
            + ". Take those that all have (frame[shared]), or make a column that a task lacks no feature of that task: "
            'ts.by_pattern(X, columns="union").'
        )


def _in_order(frame: Any, names: Sequence[Any], name: str) -> Any:
    """A frame with its columns in another order; as it is where they lie so already."""
    own = frame_columns(frame) or []
    if own == list(names):
        return frame
    absent = [column for column in names if column not in own]
    if absent:
        raise ValueError(f"{name} lacks {_few(absent)}.")
    return pick_columns(frame, names)


def _few(names: Sequence[Any]) -> str:
    shown = ", ".join(repr(name) for name in names[:_NAMED])
    return shown + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
