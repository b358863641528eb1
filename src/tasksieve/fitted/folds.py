"""From ``cv``, ``groups`` and ``random_state`` to folds: weights of training rows and of held-out rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import get_routing_for_object

from ..messages import Message, ParameterError, either, value_error
from ..tasks import TaskLabels, read_groups, some_of, to_numpy
from ..user_warnings import warn
from .fold_assignment import NEVER, assign_groups, assign_rows, read_seed
from .model_selection import TaskKFold
from .order import warn_of_order

Weights = tuple[np.ndarray, np.ndarray]  # flat sample weights of training rows, of held-out rows

DEFAULT = 5  # folds, where cv is None


@dataclass(frozen=True)
class ShuffledFolds:
    """``cv`` that means: shuffled within tasks, stratified by class, whole groups together, in every form of data."""

    n_splits: int


@dataclass(frozen=True)
class ConsecutiveFolds:
    """``cv`` that means: consecutive rows of each class of each task, as whole numbers did in version 0.1."""

    n_splits: int


@dataclass(frozen=True)
class Folds:
    """Folds as flat sample weights, and how they were made, in words."""

    weights: list[Weights]
    words: str


@dataclass(frozen=True)
class FoldRules:
    """What `cv` does not say.

    - `random_state`: Of shuffled folds.
    - `like_scikit_learn`: Whether a whole number, one matrix, no task and no groups mean unshuffled folds of its rows.
    - `whole_tasks`: Whether a fold may hold out all rows of a task, because related tasks determine it.
    """

    random_state: Any = None
    like_scikit_learn: bool = False
    whole_tasks: bool = False


def _strata(labels: TaskLabels) -> np.ndarray:
    """The task, or the class of a task, that each row belongs to, from 0."""
    task, classes = labels.task_of_sample, labels.balance_codes
    return task if classes is None else task * (int(classes.max()) + 1) + classes


def _stratified(labels: TaskLabels) -> str:
    """By what folds are balanced, in words."""
    return f", stratified by {labels.balanced_by}" if labels.balanced_by else ""


def make_folds(
    cv: Any, y: Any, labels: TaskLabels, groups: Any = None, rules: FoldRules | None = None
) -> Folds:
    """Folds of a cross-validation.

    - `y`, `groups` (labels of the rows of X): As they were given; rows of one group are held out together.
    """
    cv, rules = read_cv(cv), rules or FoldRules()
    named = None if groups is None else read_groups(groups, labels)
    if isinstance(cv, int):
        unshuffled = rules.like_scikit_learn and labels.form in ("shared", "single") and named is None
        cv = TaskKFold(cv, shuffle=False) if unshuffled else ShuffledFolds(cv)
    if isinstance(cv, ShuffledFolds):
        seed = read_seed(rules.random_state)
        fold, words = _assigned(cv.n_splits, labels, named, seed)
        held_out = [fold == f for f in range(cv.n_splits)]
        weights = [(labels.weights * ~held, labels.weights * held) for held in held_out]
    else:
        if named is not None:
            _refuse_without_groups(cv)
        if isinstance(cv, ConsecutiveFolds):
            splits, origin = _stretches(cv.n_splits, labels)
        else:
            splits, origin = _splits(cv, y, labels, named), _origin(cv, labels)
        weights = [_row_weights(f, split, labels) for f, split in enumerate(splits)]
        words = f"{len(weights)} folds {origin}"
    _refuse_useless(weights, labels, rules.whole_tasks)
    if not isinstance(cv, ShuffledFolds) and named is None:
        warn_of_order(labels, [test > 0 for _, test in weights])
    return Folds(weights, words)


def read_cv(cv: Any) -> Any:
    """A number of folds, or what makes them."""
    if cv is None:
        return DEFAULT
    whole = type(cv) is not bool and isinstance(cv, Integral)
    if whole and cv >= 2:
        return int(cv)
    word = isinstance(cv, str | bytes)  # which has a method split, and is iterable
    if whole or word or not (hasattr(cv, "split") or isinstance(cv, (ShuffledFolds, ConsecutiveFolds, Iterable))):
        raise ParameterError(
            "cv",
            Message(
                "must be an integer >= 2 ({n_splits}the number of folds){others}",
                n_splits=either("n_splits, "),
                others=either(", a splitter, or an iterable of (train, test) pairs of row indices"),
            ),
            cv,
        )
    return cv


# --- shuffled folds --------------------------------------------------------------------------------------------------


def _assigned(
    n_folds: int, labels: TaskLabels, named: tuple[np.ndarray, np.ndarray] | None, seed: int
) -> tuple[np.ndarray, str]:
    """The fold of each row, and how it was found, in words."""
    observed, classes = labels.weights > 0, labels.balance_codes
    stratified = _stratified(labels)
    if named is None:
        classes = np.zeros(len(observed), dtype=np.int64) if classes is None else classes
        within = None if labels.strata is None else labels.y["stratum"]
        fold = assign_rows(labels.offsets, classes, observed, n_folds, seed, within)
        missing = np.setdiff1d(np.arange(n_folds), fold)
        if len(missing):
            rows = int(observed.sum())
            raise value_error(
                "{cv=} is too many folds for {rows} in {tasks}: some folds would hold out no row. Use fewer folds, "
                "or tasks with more rows.",
                cv=n_folds,
                rows=either(f"n_samples={rows}", f"{rows} rows"),
                tasks=f"{labels.n_tasks:,} task{'s' * (labels.n_tasks != 1)}",
            )
        return fold, f"{n_folds} folds, shuffled within tasks{stratified}, seed {seed}"
    names, codes = named
    flat = labels.flatten_rows(codes)
    seen, own = np.unique(flat[observed], return_inverse=True)
    if len(seen) < n_folds:
        raise value_error(
            "{groups} has {n_groups} different label(s) with observed rows, and {cv=} folds need at least one "
            "each: use fewer folds, or smaller groups.",
            n_groups=len(seen),
            cv=n_folds,
        )
    of_group = assign_groups(_strata(labels)[observed], own, n_folds, seed)
    n_free = int(np.count_nonzero(of_group != NEVER))
    if n_free < n_folds:
        kind = {"": "task", "class": "class of a task", "event": "task, or its events"}[labels.balanced_by]
        raise value_error(
            "{groups}: only {n_free} of {n_groups} groups can be held out in {cv=} folds; each other one holds all "
            "rows of a {kind}, which could not be learned without it. Use smaller groups, fewer folds, or leave "
            "such tasks out.",
            n_free=n_free,
            n_groups=len(seen),
            cv=n_folds,
            kind=kind,
        )
    fold = np.full(len(flat), NEVER)
    fold[observed] = of_group[own]
    _warn_never_held_out(labels, flat, names)
    return fold, f"{n_folds} folds of {len(seen)} whole groups{stratified}, shuffled, seed {seed}"


def _warn_never_held_out(labels: TaskLabels, groups: np.ndarray, names: np.ndarray) -> None:
    """Name tasks whose rows, all of one group, say nothing about how well they are predicted."""
    found = []
    for task, part in zip(labels.tasks.tolist(), labels.per_task(), strict=True):
        own = groups[part][labels.weights[part] > 0]
        if len(own) > 1 and own.min() == own.max():
            found.append((task, names[own[:1]].tolist()[0]))
    if found:
        shown = some_of([task for task, _ in found])
        warn(
            Message(
                "{groups}: {n} task(s) are never held out ({shown}): all their rows are of one group (task {task!r}: "
                "{group!r}), and without it they could not be learned.",
                n=len(found),
                shown=shown,
                task=found[0][0],
                group=found[0][1],
            ),
        )


# --- consecutive rows ------------------------------------------------------------------------------------------------


def _stretches(n_folds: int, labels: TaskLabels) -> tuple[Iterable[Any], str]:
    """Pairs of row indices, and how they were found, in words; a matrix shared by all tasks has folds of its rows."""
    strata, words = np.zeros(labels.n_rows, dtype=np.int64), "of consecutive rows"
    if not labels.shared:
        # rows without a label come last, so that they leave the folds of the others as they are
        flat = _strata(labels)
        flat = np.where(labels.weights > 0, flat, flat.max() + 1)
        strata[slice(None) if labels.order is None else labels.order] = flat
        words += " within tasks" + _stratified(labels)
    return TaskKFold(n_folds, shuffle=False).split(strata[:, None], groups=strata), words


# --- other splitters -------------------------------------------------------------------------------------------------


def _origin(cv: Any, labels: TaskLabels) -> str:
    if isinstance(cv, TaskKFold):
        return f"of {'shuffled' if cv.shuffle else 'consecutive'} rows{'' if labels.shared else ' within tasks'}"
    return f"by {type(cv).__name__}" if hasattr(cv, "split") else "as given"


def _takes_groups(cv: Any) -> bool:
    if not hasattr(cv, "split") or isinstance(cv, TaskKFold):
        return False
    if hasattr(cv, "get_metadata_routing"):
        return bool(get_routing_for_object(cv).consumes("split", ["groups"]))
    return "groups" in signature(cv.split).parameters


def _refuse_without_groups(cv: Any) -> None:
    if not _takes_groups(cv):
        what = "a list of folds" if isinstance(cv, Iterable) else type(cv).__name__
        raise ValueError(
            f"groups was given, but cv is {what}, which does not take groups. cv={DEFAULT} keeps rows of one group "
            "together, and so do splitters such as GroupKFold."
        )


def _splits(cv: Any, y: Any, labels: TaskLabels, named: tuple[np.ndarray, np.ndarray] | None) -> Iterable[Any]:
    """Pairs of row indices, rows counted in the order they were given (lists: stacked)."""
    if not hasattr(cv, "split"):
        return cv
    rows = np.zeros((labels.n_rows, 1))
    if isinstance(cv, TaskKFold):
        return cv.split(rows, groups=row_tasks(labels))
    y = to_numpy(y)
    if labels.y.dtype.names is not None:  # a splitter that stratifies does so by event
        y = labels.unflatten(labels.y["event"].astype(np.int64))
    stacked = np.concatenate(y) if labels.form == "list" else y
    if not _takes_groups(cv):
        return cv.split(rows, stacked)
    return cv.split(rows, stacked, row_tasks(labels) if named is None else named[0][named[1]])


def row_tasks(labels: TaskLabels) -> np.ndarray:
    """Task of each row of X as it was given; all 0 for a matrix shared by all tasks."""
    tasks = np.zeros(labels.n_rows, dtype=np.int64)
    if not labels.shared:
        tasks[slice(None) if labels.order is None else labels.order] = labels.task_of_sample
    return tasks


def _row_weights(f: int, split: Any, labels: TaskLabels) -> Weights:
    """Weights of the two parts of a fold of rows."""
    if not isinstance(split, tuple | list | np.ndarray) or len(split) != 2:
        raise ValueError(f"cv: fold {f} must be a pair of row indices, (train, test).")
    train, test = _read_rows(f, "train", split[0], labels.n_rows), _read_rows(f, "test", split[1], labels.n_rows)
    # bincount, not a mask: a splitter may draw a row more than once
    return (
        labels.weights * labels.flatten_rows(np.bincount(train, minlength=labels.n_rows)),
        labels.weights * labels.flatten_rows(np.bincount(test, minlength=labels.n_rows)),
    )


def _read_rows(f: int, name: str, rows: Any, n_rows: int) -> np.ndarray:
    """Row indices of one part of a fold, refused where they are none of X's rows."""
    try:
        index = np.asarray(rows)
    except ValueError:
        index = np.empty((0, 0))
    wrong = ""
    if index.ndim != 1:
        wrong = "must be a 1-D array of row indices"
    elif not len(index):
        wrong = "is empty; a fold needs rows to learn from and rows to hold out"
    elif index.dtype.kind == "b":
        wrong = f"is a mask; pass row indices, np.flatnonzero({name})"
    elif index.dtype.kind not in "iu":
        wrong = f"must hold row indices, whole numbers; it has dtype {index.dtype}"
    elif (outside := index[(index < 0) | (index >= n_rows)]).size:
        wrong = f"has the index {outside[0]}, but the indices of the {n_rows} rows of X are 0 to {n_rows - 1}"
    if wrong:
        raise ValueError(f"cv: fold {f}: {name} {wrong}.")
    return index


def _refuse_useless(folds: list[Weights], labels: TaskLabels, whole_tasks: bool) -> None:
    """Every task must keep a row to be learned from, or where whole tasks may go some task; every fold hold out one."""
    if not folds:
        raise ValueError("cv gave no folds.")
    task, n_tasks = labels.task_of_sample, labels.n_tasks
    observed = np.bincount(task, weights=labels.weights, minlength=n_tasks) > 0
    for f, (train, test) in enumerate(folds):
        empty = np.flatnonzero(observed & (np.bincount(task, weights=train, minlength=n_tasks) <= 0))
        if len(empty) and (not whole_tasks or not train.any()):
            raise value_error(
                "{cv}: fold {fold} leaves task {task!r} without an observed row to learn from. Use {splitter}fewer "
                "folds, or drop the task.",
                fold=f,
                task=labels.tasks[empty[:1]].tolist()[0],
                splitter=either("a splitter that splits within tasks (TaskKFold), "),
            )
        if not test.any():
            raise value_error("{cv}: fold {fold} holds out no observed row.", fold=f)
