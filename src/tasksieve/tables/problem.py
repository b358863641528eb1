"""From a table and the user's words to what an estimator takes: X, y, task, weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.sparse

from .columns import FeatureChoice, choose_features
from .encode import Encoding
from .ids import row_names
from .labels_by_task import LabelsByTask
from .row_columns import Labels, Missing, RowColumns, told_rows
from .survival_columns import SurvivalColumns
from .table import NAMED_CELLS, Array, StackedFiles, Table, TableError, row_words


@dataclass
class TableProblem:
    """Rows with labels, ready for an estimator: X (n, d), y (n,) or (n, T), and what is known of the rows (n,). Targets
    of unlike kinds are a dict of labels (n,).

    - `fill` (array of shape (d,)): With ``missing="mean"``, what missing entries were replaced by.
    - `rows` (int array of shape (n,)): Rows of the table in use, of its `n_rows`.
    - `notes`: What was left out or filled in.
    - `groups`: Labels that related rows share.
    - `classes`: Whether targets are class labels.
    - `offset`: What is added to every prediction before anything is learned.
    - `ids`: The column that names the rows, and their names.
    - `in_file`: Places of the rows in their files, where the table is several files.
    - `lacking` (dict of task to columns): That the task does not have: their features are zero in its rows.
    - `survival` (dict of target to columns): Targets that are survival outcomes.
    """

    X: Any
    y: Labels
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
    survival: Mapping[str, SurvivalColumns] = field(default_factory=dict)

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
        if isinstance(self.y, dict):
            return np.array(list(self.y))
        return np.arange(self.y.shape[1] if self.y.ndim == 2 else 1)

    @property
    def several(self) -> bool:
        """Whether each target is a task."""
        return isinstance(self.y, dict) or self.y.ndim == 2

    @property
    def n_labels(self) -> int:
        """Labels of all tasks, observed or not."""
        return sum(map(len, self.y.values())) if isinstance(self.y, dict) else int(self.y.size)

    def labels_of(self, t: int) -> Array:
        """The labels of a target."""
        if isinstance(self.y, dict):
            return self.y[self.targets[t]]
        return self.y[:, t] if self.several else self.y


def prepare(
    table: Table,
    *,
    target: Sequence[str],
    task: str | None = None,
    weights: str | None = None,
    offset: str | None = None,
    groups: str | None = None,
    survival: Mapping[str, SurvivalColumns] | None = None,
    by_task: LabelsByTask | None = None,
    id: str | None = None,
    missing: Missing = "error",
    classes: bool | Collection[str] = False,
    flag: str = "--target",
    **choice: Any,
) -> TableProblem:
    """Choose columns, encode them, and handle missing values.

    - `target`: Several: one matrix shared by several targets, each a task; empty cells are labels that were not
      observed.
    - `survival` (dict of target to columns): Targets that are survival outcomes; their names need not be columns.
    - `by_task`: Stacked rows whose tasks have outcomes of unlike kinds; `target` is then the column of their labels, or
      a name where there is none.
    - `missing` ({"error", "drop", "mean"}): Rows with a missing value: an error that names them, left out, or filled
      with the mean of each feature. A row without a task, a weight or (of a single target) a label cannot be filled in:
      it is left out unless "error".
    - `classes`: Targets are class labels, so words are welcome; or names of those that are, where others may be of
      other kinds.
    - `flag`: The option that names targets.
    - `choice`: Of features: what `FeatureChoice` has.
    """
    beside: dict[str, Any] = {"weights": weights, "offset": offset, "groups": groups, "survival": survival or {}}
    beside |= {"flag": flag, "by_task": by_task}
    columns = RowColumns.of(table, target, task, **beside)
    encoding, notes = choose_features(table, columns.roles(table, id), FeatureChoice(**choice))
    rows, holes = columns.usable(table, encoding, missing)
    several = columns.targets if len(columns.targets) > 1 else ()
    unobserved = sum(int(columns.missing(table, name).sum()) for name in several)
    left_out = np.setdiff1d(np.arange(table.n_rows), rows)
    filled, first = holes if missing == "mean" else [], left_out[:NAMED_CELLS].tolist()
    notes += told_rows(table.source, table.n_rows, len(several), filled, unobserved, first, len(left_out))
    X, fill = _some_rows(encoding.matrix(table), rows), None
    if missing == "mean":
        X, fill = fill_with_means(X, encoding.feature_names, absent=encoding.n_absent(table, rows))
    return TableProblem(
        X,
        **columns.read(table, rows, classes),
        targets=list(columns.targets),
        encoding=encoding,
        fill=fill,
        rows=rows,
        n_rows=table.n_rows,
        notes=notes,
        classes=classes is True,
        survival=columns.survival,
        ids=None if id is None else (id, np.array(row_names(table.columns[id]), dtype=object)[rows].tolist()),
        in_file=table.source.rows()[rows] if isinstance(table.source, StackedFiles) else None,
    )


# --- rows for a model that is already fitted -------------------------------------------------------------------------


def prepare_rows(
    table: Table, encoding: Encoding, *, task: str | None = None, offset: str | None = None, **how: Any
) -> tuple[Any, Array | None, Array | None, Array]:
    """X, task, offsets and rows of a table whose targets are to be predicted.

    - `how`: `missing`, `fill` and `unknown` of `prepare_labelled`.
    """
    found = prepare_labelled(table, encoding, RowColumns((), task, offset=offset), **how)
    return found.X, found.task, found.offset, found.rows


def prepare_labelled(
    table: Table,
    encoding: Encoding,
    columns: RowColumns,
    *,
    classes: bool | Collection[str] = False,
    missing: Missing = "error",
    fill: Array | None = None,
    unknown: Literal["error", "zero"] = "error",
) -> TableProblem:
    """The rows of a test table, read as those of the fit were; with their labels, where targets are named.

    - `fill`: What the fit has put in for missing values.
    """
    for target in columns.targets:
        for name, flag in columns.columns_of(target).items():
            table.require(name, flag)
    rows, holes = columns.usable(table, encoding, missing, mean=fill is not None)
    if holes and missing == "mean" and fill is None:
        raise TableError("--missing mean: the model was not fitted with it, so it has no means to fill in")
    X = _some_rows(encoding.matrix(table, unknown), rows)
    if missing == "mean" and fill is not None:
        X, _ = fill_with_means(X, encoding.feature_names, fill)
    if columns.targets and not len(rows):
        raise TableError(f"{table.source}: no row with a label is left")
    known: dict[str, Any] = columns.read(table, rows, classes)
    return TableProblem(
        X, **known, targets=list(columns.targets), encoding=encoding, fill=fill, rows=rows, n_rows=table.n_rows,
        classes=classes is True, survival=columns.survival,
    )  # fmt: skip


def _some_rows(X: Any, rows: Array) -> Any:
    return X if len(rows) == X.shape[0] else X[rows]


def fill_with_means(
    X: Any, names: Sequence[str], fill: Array | None = None, absent: Array | int = 0
) -> tuple[Any, Array]:
    """X with its NaN replaced by the means of the columns (or by those given), and the means. Of each column so many
    rows are `absent`: zeros that stand for nothing."""
    if scipy.sparse.issparse(X):
        if X.dtype.kind == "f" and np.isnan(X.data).any():
            raise TableError("--missing mean: a sparse matrix cannot be filled; use --missing drop")
        return X, np.zeros(X.shape[1])
    known = known_entries(X)
    if fill is None:
        totals = np.asarray(np.sum(X, axis=0, dtype=np.float64, where=known))
        fill = means_of(totals, known.sum(axis=0) - absent, names)
    if not known.all():
        X = X.copy(order="F")
        rows, columns = np.nonzero(~known)
        X[rows, columns] = fill[columns]
    return X, fill


def known_entries(X: Array) -> Array:
    return ~np.isnan(X) if X.dtype.kind == "f" else np.broadcast_to(True, X.shape)


def means_of(totals: Array, counts: Array, names: Sequence[str]) -> Array:
    """Means of features, given their sums and the numbers of their values."""
    if np.any(counts == 0):
        name = names[int(np.argmin(counts))]
        raise TableError(f"--missing mean: column {name!r} has no value at all; leave it out")
    return np.asarray(totals / counts)


def refuse_unknown_labels(
    source: str, name: str, values: Array, rows: Array, known: Sequence[Any], what: str
) -> None:
    """Refuse labels ("task" or "class") that the model has not met, and name the first rows that have them."""
    met = set(known)
    bad = [i for i, value in enumerate(values.tolist()) if value not in met]
    if not bad:
        return
    named = "; ".join(f"{row_words(source, rows[i])} is {values[i : i + 1].tolist()[0]!r}" for i in bad[:NAMED_CELLS])
    more = f"; and {len(bad) - NAMED_CELLS} more" if len(bad) > NAMED_CELLS else ""
    shown = ", ".join(map(repr, list(known)[:8])) + (", ..." if len(met) > 8 else "")
    raise TableError(
        f"{source}, column {name!r}: the model was fitted without this {what}: {named}{more}. It knows {shown}. "
        "Correct these rows, or leave them out of the table"
    )
