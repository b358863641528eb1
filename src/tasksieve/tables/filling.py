"""Missing values of features filled by means, over all rows or those of each task, with indicators if wished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ..tasks.task_means import FilledCells, fill_holes, task_sums
from .encode import Absence, Encoding, as_words
from .row_columns import FILLS, Holes
from .table import Array, Table, TableError, row_words

FILLED = tuple(FILLS)  # of --missing: what fills values in


def told_means(missing: str, task: str | None) -> str:
    """What fills holes, in words."""
    whose = "the column's mean over all rows" if missing == "mean" or task is None else "the column's mean in the task"
    return f"{whose}, with an indicator" if missing == "indicator" else whose


def missing_counts(table: Table, task: str | None, holes: Holes, missing: str) -> dict[str, list[Any]]:
    """Columns of a table: for each column with missing values and each task how many there were, of how many rows, and
    what became of them."""
    if not holes:
        return {}
    words = [""] * table.n_rows if task is None else [word or "" for word in as_words(table.columns[task])]
    totals, lines = Counter(words), []
    became = {"drop": "rows left out", "patterns": "absent: rows that lack them are tasks of their own"}.get(missing)
    became = became or f"filled with {told_means(missing, task)}"
    for name, rows, _ in holes:
        own = Counter(words[row - table.first] for row in rows.tolist())
        lines += [(name, label, own[label], totals[label], became) for label in sorted(own)]
    titles = ("column", "task", "missing", "rows", "treatment")
    return {title: list(values) for title, values in zip(titles, zip(*lines, strict=True), strict=True)}


def with_indicators(encoding: Encoding, table: Table, rows: Array) -> Encoding:
    """The encoding with a feature behind for every column that lacks values in some rows, 1 where it does."""
    if encoding.matrix_names is not None:
        raise TableError(
            f"--missing indicator: is for columns with names, {table.source} holds a matrix; --missing task-mean fills "
            "it without indicators"
        )
    used = np.zeros(table.n_rows, dtype=bool)
    used[rows] = True
    columns = list(encoding.columns)
    columns += [(name, Absence()) for name, holes in encoding.missing(table) if used[holes].any()]
    found = Encoding(columns)
    names = found.feature_names
    for name in names[len(encoding.feature_names) :]:
        if names.count(name) > 1:
            raise TableError(f"--missing indicator: {table.source} has a column {name!r} already")
    return found


def filled_cells(X: Array, encoding: Encoding, table: Table, rows: Array, task: Array | None) -> FilledCells:
    """What of X was missing, and whose means have filled it."""
    codes = np.zeros(len(rows), dtype=np.int64) if task is None else np.unique(task, return_inverse=True)[1].ravel()
    absent = None
    if table.absent:
        nowhere = np.zeros(len(rows), dtype=bool)
        absent = np.column_stack([table.absent[name][rows] if name in table.absent else nowhere
                                  for name in encoding.sources])  # fmt: skip
    holes, columns = np.nonzero(np.isnan(X))
    return FilledCells(holes, columns, codes, absent)


def fill_with_means(
    X: Any, encoding: Encoding, table: Table, rows: Array, task: Array | None, missing: str
) -> tuple[Any, Array]:
    """X with its NaN replaced by means of the columns, and the means (d,); with the task of each row by those of the
    task, and these (T, d). Zeros of tasks that do not have a column stand for nothing."""
    if scipy.sparse.issparse(X):
        if X.dtype.kind == "f" and np.isnan(X.data).any():
            raise TableError(f"--missing {missing}: a sparse matrix cannot be filled; use --missing drop")
        return X, np.zeros(X.shape[1])
    names = encoding.feature_names
    labels, codes = None, np.zeros(len(rows), dtype=np.int64)
    if task is not None:
        labels, codes = np.unique(task, return_inverse=True)
    n_tasks = 1 if labels is None else len(labels)
    absent = np.stack([encoding.n_absent(table, rows[codes == t]) for t in range(n_tasks)])
    totals, counts = task_sums(X, codes, n_tasks)
    if labels is None:
        means = means_of(totals[0], counts[0] - absent[0], names)
        return fill_holes(X, means[None], codes), means
    counts = counts - absent
    for t, j in np.argwhere((counts == 0) & (absent == 0))[:1].tolist():
        raise TableError(
            f"--missing {missing}: column {names[j]!r} has no value at all in task {labels[t]}; leave it out with "
            "--drop, or take --missing mean"
        )
    means = totals / np.maximum(counts, 1)
    return fill_holes(X, means, codes), means


def fill_as_fitted(
    X: Any, fill: Array, task: Array | None, tasks: Array | None, rows: Array, source: str
) -> Any:
    """X with its NaN replaced by the means of a fit, those of the row's task where they are of tasks."""
    if scipy.sparse.issparse(X):
        raise TableError("--missing: a sparse matrix cannot be filled; use --missing drop")
    if fill.ndim == 1:
        return filled_with(X, fill)
    if task is None or tasks is None:
        raise TableError("--missing: means are those of tasks, and the rows have none: --all-tasks does not go with it")
    place = {label: t for t, label in enumerate(tasks.tolist())}
    codes = np.zeros(len(task), dtype=np.int64)
    for i, label in enumerate(task.tolist()):
        if label not in place:
            raise TableError(
                f"{source}: {row_words(source, rows[i])} is of task {label!r}, of which the model has no means"
            )
        codes[i] = place[label]
    return fill_holes(X, fill, codes)


def filled_with(X: Array, means: Array) -> Array:
    """X with its NaN replaced by the means of the columns (d,)."""
    return fill_holes(X, means[None], np.zeros(len(X), dtype=np.int64))


def means_of(totals: Array, counts: Array, names: Sequence[str]) -> Array:
    """Means of features, given their sums and the numbers of their values."""
    if np.any(counts == 0):
        name = names[int(np.argmin(counts))]
        raise TableError(f"--missing mean: column {name!r} has no value at all; leave it out")
    return np.asarray(totals / counts)


def refuse_other_filling(missing: str, fitted: str | None) -> None:
    """Refuse to fill holes in another way than the fit."""
    if fitted is None:
        raise TableError(f"--missing {missing}: the model was not fitted with it, so it has no means to fill in")
    if missing != fitted:
        raise TableError(f"--missing {missing}: the model was fitted with --missing {fitted}")


def refuse_holes_without_indicator(encoding: Encoding, source: str, holes: Holes) -> None:
    """Refuse values missing in columns that lacked none when the model was fitted."""
    known = {name for name, coding in encoding.columns if isinstance(coding, Absence)}
    for name, rows, _ in holes:
        if name not in known:
            raise TableError(
                f"--missing indicator: {source}: {row_words(source, rows[0])}, column {name!r} is missing, and had no "
                "missing value in the fit, so that its absence has no indicator. Fill it in, or --missing drop"
            )
