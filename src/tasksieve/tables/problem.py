"""From a table and the user's words to what an estimator takes: X, y, task, weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.sparse

from .columns import FeatureChoice, choose_features
from .encode import Encoding, as_words, refuse_decimal_commas, refuse_spoilt_numbers
from .ids import row_names
from .table import NAMED_CELLS, Array, Column, StackedFiles, Table, TableError, cell_words, row_words

Missing = Literal["error", "drop", "mean"]


@dataclass
class TableProblem:
    """A fit, ready for an estimator.

    - `X`: matrix of shape (n, d)
    - `y`: array of shape (n,), or (n, T) for several targets
    - `task`: array of shape (n,)
    - `sample_weight`: array of shape (n,)
    - `fill` (array of shape (d,)): With ``missing="mean"``, what missing entries were replaced by.
    - `rows` (int array of shape (n,)): Rows of the table in use.
    - `n_rows`: Rows of the table.
    - `notes`: What was left out or filled in.
    - `groups` (array of shape (n,)): Labels that related rows share.
    - `classes`: Whether targets are class labels.
    - `offset` (array of shape (n,)): What is added to every prediction before anything is learned.
    - `ids`: The column that names the rows, and their names.
    - `in_file` (int array of shape (n,)): Places of the rows in their files, where the table is several files.
    - `lacking` (dict of task to columns): That the task does not have: their features are zero in its rows.
    """

    X: Any
    y: Array
    task: Array | None
    sample_weight: Array | None
    targets: list[str]
    encoding: Encoding
    fill: Array | None
    rows: Array
    n_rows: int
    notes: list[str] = field(default_factory=list)
    groups: Array | None = None
    classes: bool = False
    offset: Array | None = None
    ids: tuple[str, list[Any]] | None = None
    in_file: Array | None = None
    lacking: dict[str, list[str]] = field(default_factory=dict)

    def row_arguments(self, groups: bool = True) -> dict[str, Any]:
        """Arguments of `fit` for the rows beside X and y; without the groups for methods that take none."""
        found = {"task": self.task, "sample_weight": self.sample_weight, "offset": self.offset}
        if groups:
            found["groups"] = self.groups
        return {name: values for name, values in found.items() if values is not None}

    @property
    def n_used(self) -> int:
        """Training rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def tasks(self) -> Array:
        """The labels of the tasks, as the estimators will have them."""
        if self.task is not None:
            return np.unique(self.task)
        return np.arange(self.y.shape[1] if self.y.ndim == 2 else 1)


def prepare(
    table: Table,
    *,
    target: Sequence[str],
    task: str | None = None,
    weights: str | None = None,
    offset: str | None = None,
    groups: str | None = None,
    id: str | None = None,
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    categorical: Sequence[str] = (),
    date_parts: bool = False,
    missing: Missing = "error",
    max_categories: int = 100,
    reference: Sequence[str] = (),
    classes: bool = False,
) -> TableProblem:
    """Choose columns, encode them, and handle missing values.

    - `target`: Several: one matrix shared by several targets, each a task; empty cells are labels that were not
      observed.
    - `features`: By default all columns that are nothing else and look like neither an id nor a date.
    - `drop`: Columns to leave out.
    - `keep`: Columns to learn from although they look like an id or a date.
    - `categorical`: Features whose numbers are names.
    - `date_parts`: Learn from the parts of dates.
    - `missing` ({"error", "drop", "mean"}): Rows with a missing value: an error that names them, left out, or filled
      with the mean of each feature. A row without a task, a weight or (of a single target) a label cannot be filled in:
      it is left out unless "error".
    - `reference`: Categories that have no indicator: without it the more frequent of two, and none of more.
    - `classes`: Targets are class labels, so words are welcome.
    """
    named = list(table.columns)
    targets = table.match(target, "--target", named)
    if not targets:
        raise TableError("--target: name the column to predict")
    if len(targets) > 1 and task is not None:
        raise TableError(
            f"--task: with several targets ({', '.join(targets[:3])}, ...) each target is a task; either drop --task, "
            "or stack the rows, with one target column and one task column"
        )
    roles = dict.fromkeys(targets, "the target")
    roles_asked = ((task, "task"), (weights, "weights"), (offset, "offset"), (groups, "row-groups"), (id, "id"))
    for name, role in roles_asked:
        if name is not None:
            table.require(name, f"--{role}")
            if name in roles and not (name in (task, groups) and role == "id"):  # rows may be called by these
                raise TableError(f"--{role}: column {name!r} is also {roles[name]}")
            roles.setdefault(name, "the groups of rows" if role == "row-groups" else f"the {role}")
    choice = FeatureChoice(features, drop, keep, categorical, date_parts, max_categories, reference)
    encoding, left_out = choose_features(table, roles, choice)
    needed = [name for name in (task, weights, offset, groups) if name is not None]
    unusable, notes = _find_missing(table, targets, needed, encoding, missing)
    notes = [*left_out, *notes]

    rows = np.flatnonzero(~unusable)
    if len(rows) == 0:
        raise TableError(f"{table.source}: no row is left after those with missing values are dropped")
    X = encoding.matrix(table)
    X = X if len(rows) == table.n_rows else X[rows]
    fill = None
    if missing == "mean":
        X, fill = fill_with_means(X, encoding.feature_names, absent=encoding.n_absent(table, rows))
    labels = [read_target(table.columns[name], name, table.source, classes)[rows] for name in targets]
    weight = None if weights is None else read_weights(table, weights)[rows]
    y = labels[0] if len(labels) == 1 else np.stack(labels, axis=1)
    return TableProblem(
        X,
        tidy_labels(y) if classes and y.ndim == 1 else y,
        None
        if task is None
        else tidy_labels(read_labels_column(table.columns[task], task, table.source)[rows]),
        weight,
        targets,
        encoding,
        fill,
        rows,
        table.n_rows,
        notes,
        None
        if groups is None
        else tidy_labels(read_labels_column(table.columns[groups], groups, table.source, "--row-groups")[rows]),
        classes,
        None if offset is None else read_offsets(table, offset)[rows],
        None if id is None else (id, np.array(row_names(table.columns[id]), dtype=object)[rows].tolist()),
        table.source.rows()[rows] if isinstance(table.source, StackedFiles) else None,
    )


def prepare_rows(
    table: Table,
    encoding: Encoding,
    *,
    task: str | None = None,
    offset: str | None = None,
    missing: Missing = "error",
    fill: Array | None = None,
    unknown: Literal["error", "zero"] = "error",
) -> tuple[Any, Array | None, Array | None, Array]:
    """X, task, offsets and rows of a table whose targets are to be predicted; `fill` is what the fit has put in."""
    unusable = np.zeros(table.n_rows, dtype=bool)
    found = encoding.missing(table)
    for name, role in ((task, "--task"), (offset, "--offset")):
        empty = np.empty(0, dtype=np.int64) if name is None else np.flatnonzero(table.require(name, role).missing)
        if name is not None and len(empty):
            if missing == "error":
                _refuse(table.source, [(name, empty)], mean=False)
            unusable[empty] = True
    if found and missing == "error":
        _refuse(table.source, found, mean=fill is not None)
    if found and missing == "mean" and fill is None:
        raise TableError("--missing mean: the model was not fitted with it, so it has no means to fill in")
    if missing == "drop":
        for _, bad in found:
            unusable[bad] = True
    rows = np.flatnonzero(~unusable)
    X = encoding.matrix(table, unknown)
    X = X if len(rows) == table.n_rows else X[rows]
    if missing == "mean" and fill is not None:
        X, _ = fill_with_means(X, encoding.feature_names, fill)
    labels = (
        None
        if task is None
        else tidy_labels(read_labels_column(table.columns[task], task, table.source)[rows])
    )
    return X, labels, None if offset is None else read_offsets(table, offset)[rows], rows


def _find_missing(
    table: Table,
    targets: list[str],
    needed: list[str],
    encoding: Encoding,
    missing: Missing,
) -> tuple[Array, list[str]]:
    """Rows that cannot be used, and notes about them; ``needed`` are columns that every row must fill."""
    unusable = np.zeros(table.n_rows, dtype=bool)
    notes: list[str] = []
    needed = needed + (targets if len(targets) == 1 else [])
    found = [(name, np.flatnonzero(table.columns[name].missing)) for name in needed]
    found = [(name, rows) for name, rows in found if len(rows)]
    if len(targets) > 1:
        empty = np.stack([table.columns[name].missing for name in targets], axis=1)
        if empty.any():
            notes.append(
                f"{int(empty.sum())} of {empty.size} labels are not observed; the model leaves them out"
            )
        unusable |= empty.all(axis=1)
    in_features = encoding.missing(table)
    if missing == "error" and (found or in_features):
        _refuse(table.source, found + in_features, mean=not found)
    for _, rows in found:
        unusable[rows] = True
    if missing == "drop":
        for _, rows in in_features:
            unusable[rows] = True
    elif in_features:
        notes.append(told_missing(table.source, [(name, rows, len(rows)) for name, rows in in_features]))
    n_dropped = int(np.count_nonzero(unusable))
    if n_dropped:
        shown = ", ".join(row_words(table.source, row) for row in np.flatnonzero(unusable)[:NAMED_CELLS].tolist())
        if not isinstance(table.source, StackedFiles):  # row 3, 7, 12
            shown = shown.replace(", row ", ", ")
        notes.append(
            f"{n_dropped} of {table.n_rows} rows left out for missing values: "
            f"{shown}{', ...' if n_dropped > NAMED_CELLS else ''}"
        )
    return unusable, notes


# Columns with missing values: the name, the first rows at least, and how many there are.
Holes = list[tuple[str, Array, int]]


def _listed(source: str, found: Holes) -> str:
    words = [cell for name, rows, _ in found[:NAMED_CELLS] for cell in cell_words(source, rows, name)]
    named = words[:NAMED_CELLS]
    count = sum(count for _, _, count in found)
    return "; ".join(named) + (f"; and {count - len(named)} more" if count > len(named) else "")


def told_missing(source: str, found: Holes) -> str:
    """A note about missing values that were filled in."""
    count = sum(count for _, _, count in found)
    listed = _listed(source, found)
    return f"{count} missing value(s) in {len(found)} column(s) filled with the column's mean: {listed}"


def refuse_missing(source: str, found: Holes, *, mean: bool) -> None:
    """Raise a TableError that names missing values."""
    count = sum(count for _, _, count in found)
    filled = ", --missing mean puts the column's mean there" if mean else ""
    raise TableError(
        f"{source}: {count} missing value(s): {_listed(source, found)}. --missing drop leaves such rows out{filled}."
    )


def _refuse(source: str, found: list[tuple[str, Array]], *, mean: bool) -> None:
    refuse_missing(source, [(name, rows, len(rows)) for name, rows in found], mean=mean)


def fill_with_means(
    X: Any, names: Sequence[str], fill: Array | None = None, absent: Array | int = 0
) -> tuple[Any, Array]:
    """X with its NaN replaced by the means of the columns (or by those given), and the means.

    Of each column so many rows are `absent`: zeros that stand for nothing.
    """
    if scipy.sparse.issparse(X):
        if X.dtype.kind == "f" and np.isnan(X.data).any():
            raise TableError("--missing mean: a sparse matrix cannot be filled; use --missing drop")
        return X, np.zeros(X.shape[1])
    holes = np.isnan(X) if X.dtype.kind == "f" else np.zeros((0, X.shape[1]), dtype=bool)
    if fill is None:
        counts = X.shape[0] - (np.count_nonzero(holes, axis=0) if len(holes) else np.zeros(X.shape[1])) - absent
        if np.any(counts == 0):
            raise TableError(
                f"--missing mean: column {names[int(np.argmin(counts))]!r} has no value at all; leave it out"
            )
        total = np.sum(X, axis=0, dtype=np.float64, where=~holes if len(holes) else True)
        fill = np.asarray(total / counts)
    if holes.any():
        X = X.copy(order="F")
        rows, columns = np.nonzero(holes)
        X[rows, columns] = fill[columns]
    return X, fill


def read_target(column: Column, name: str, source: str, classes: bool) -> Array:
    """Labels of one target: numbers, or class labels (None or NaN where not observed)."""
    if column.kind in ("date", "other"):
        raise TableError(f"--target: column {name!r} of {source} holds neither numbers nor words")
    if classes:
        return column.values
    if column.kind == "text":
        refuse_spoilt_numbers(column, name, source)
        refuse_decimal_commas([word for word in as_words(column) if word is not None], name, source)
        raise TableError(
            f"--target: column {name!r} of {source} holds words; this model predicts numbers. For classes use --model "
            "logistic or another classifier"
        )
    if np.isinf(column.values).any():
        row = int(np.flatnonzero(np.isinf(column.values))[0])
        raise TableError(f"{source}: {row_words(source, row)}, column {name!r} is infinite")
    return column.values.astype(np.float64)


def read_labels_column(column: Column, name: str, source: str, role: str = "--task") -> Array:
    """Labels of tasks or groups: words or numbers."""
    if column.kind in ("date", "other"):
        raise TableError(f"{role}: column {name!r} of {source} holds neither numbers nor words")
    return column.values


def tidy_labels(values: Array) -> Array:
    """Labels in their plainest type: words as strings, whole floats (a column with a hole was read so) as integers."""
    if values.dtype == object and all(issubclass(kind, str) for kind in set(map(type, values))):
        return values.astype(str)
    if values.dtype.kind == "f" and np.all(np.isfinite(values)) and np.all(np.abs(values) < 2**53):
        whole = values.astype(np.int64)
        return whole if np.array_equal(whole, values) else values
    return values


def read_weights(table: Table, name: str) -> Array:
    """Weights of rows, NaN where they are missing."""
    values = _numbers(table, name, "--weights")
    _refuse_row(table, name, values, values >= 0, "--weights", "weights are finite and >= 0")
    return values


def read_offsets(table: Table, name: str) -> Array:
    """Offsets of rows, NaN where they are missing."""
    values = _numbers(table, name, "--offset")
    _refuse_row(table, name, values, values == values, "--offset", "offsets are finite (of a rate: log(exposure))")
    return values


def _numbers(table: Table, name: str, flag: str) -> Array:
    column = table.columns[name]
    if column.kind == "text":
        refuse_spoilt_numbers(column, name, table.source, all_numbers=True)
    if column.kind != "number":
        raise TableError(f"{flag}: column {name!r} of {table.source} must hold numbers")
    return column.values.astype(np.float64)


def _refuse_row(table: Table, name: str, values: Array, good: Array, flag: str, rule: str) -> None:
    bad = np.flatnonzero(~np.isnan(values) & ~(good & np.isfinite(values)))
    if len(bad):
        raise TableError(
            f"{flag}: {table.source}: {row_words(table.source, table.first + bad[0])}, column {name!r} is "
            f"{values[bad[0]]:g}; {rule}"
        )
