"""From a table and the user's words to what an estimator takes: X, y, task, weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

from ..tasks import PatternedMatrix, Patterns
from ..tasks.patterned import FEW_ROWS, patterned
from ..tasks.task_means import FilledCells
from .columns import FeatureChoice, choose_features, related_rows
from .encode import Encoding
from .filling import (
    FILLED,
    fill_as_fitted,
    fill_with_means,
    filled_cells,
    missing_counts,
    refuse_holes_without_indicator,
    refuse_other_filling,
    told_means,
    with_indicators,
)
from .ids import row_names
from .labels_by_task import LabelsByTask
from .left_out import rows_left_out
from .row_columns import Labels, Missing, RowColumns, told_rows
from .survival_columns import SurvivalColumns
from .table import NAMED_CELLS, Array, StackedFiles, Table, TableError, row_words

NAMED_PATTERNS = 8  # in a note
_NEAREST = "--unseen nearest predicts by the fitted pattern with the largest part of their columns"


@dataclass
class TableProblem:
    """Rows with labels, ready for an estimator: X (n, d), y (n,) or (n, T), and what is known of the rows (n,). Targets
    of unlike kinds are a dict of labels (n,).

    - `fill` (array of shape (d,), or (T, d) of means of tasks): What missing entries were replaced by, if they were.
    - `rows` (int array of shape (n,)): Rows of the table in use, of its `n_rows`.
    - `notes`: What was left out or filled in.
    - `groups`: Labels that related rows share.
    - `classes`: Whether targets are class labels.
    - `offset`: What is added to every prediction before anything is learned.
    - `ids`: The column that names the rows, and their names.
    - `in_file`: Places of the rows in their files, where the table is several files.
    - `missing` (dict of columns of a table): How many values of each column were missing in each task, and what became
      of them; empty where none was.
    - `lacking` (dict of task to columns): That the task does not have: their features are zero in its rows.
    - `survival` (dict of target to columns): Targets that are survival outcomes.
    - `orders` (dict of target to words): Classes of targets from the lowest to the highest, where the file knows that.
    - `related` (name and labels of shape (n,)): A column that names the rows, or whom they are about, and whose values
      come again within a task, where no column of `groups` was named.
    - `given_task` (array of shape (n,)): With ``missing="patterns"`` the tasks as the table has them; `task` is the
      pattern of each row then.
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
    missing: dict[str, list[Any]] = field(default_factory=dict)
    lacking: dict[str, list[str]] = field(default_factory=dict)
    survival: Mapping[str, SurvivalColumns] = field(default_factory=dict)
    related: tuple[str, Array] | None = None
    given_task: Array | None = None
    filled: FilledCells | None = None
    orders: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def with_holes(self) -> Any:
        """X; where missing values were filled with means, with its holes, for findings that fill them from the rows
        that they learn from."""
        return self.X if self.filled is None else self.filled.holed(self.X)

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
    pattern_rows: int | None = None,
    exclude_task: Sequence[str] = (),
    exclude_class: Sequence[str] = (),
    min_rows: int | None = None,
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
    - `missing` ({"error", "drop", "mean", "task-mean", "indicator", "patterns"}): Rows with a missing value: an error
      that names them, left out, or filled with the mean of each feature, over all rows or those of the task;
      "indicator" has, next to task means, a feature for every column that lacks values, 1 where it does; "patterns" has
      them in tasks of their own (`by_pattern`), of which those with fewer than `pattern_rows` are merged. A row without
      a task, a weight or (of a single target) a label cannot be filled in: it is left out unless "error".
    - `exclude_task`, `exclude_class`, `min_rows`: Labels of tasks and classes whose rows are left out, and how many
      rows a task must have.
    - `classes`: Targets are class labels, so words are welcome; or names of those that are, where others may be of
      other kinds.
    - `flag`: The option that names targets.
    - `choice`: Of features: what `FeatureChoice` has.
    """
    beside: dict[str, Any] = {"weights": weights, "offset": offset, "groups": groups, "survival": survival or {}}
    beside |= {"flag": flag, "by_task": by_task}
    columns = RowColumns.of(table, target, task, **beside)
    chosen = columns.roles(table, id), FeatureChoice(**choice)
    encoding, notes = choose_features(table, *chosen, task=columns.task)
    beyond: dict[str, Any] = {"tasks": exclude_task, "classes": exclude_class, "min_rows": min_rows}
    gone, told = rows_left_out(table, columns, encoding, missing, **beyond, has_classes=classes is True)
    if gone.any():  # their words are no categories
        encoding, notes = choose_features(table, *chosen, among=~gone, task=columns.task)
    notes += told
    rows, holes = columns.usable(table, encoding, missing, excluded=gone)
    several = columns.targets if len(columns.targets) > 1 else ()
    unobserved = sum(int(columns.missing(table, name).sum()) for name in several)
    left_out = np.setdiff1d(np.flatnonzero(~gone), rows)
    filled, first = holes if missing in FILLED else [], left_out[:NAMED_CELLS].tolist()
    means = told_means(missing, task)
    notes += told_rows(table.source, table.n_rows, len(several), filled, unobserved, first, len(left_out), means)
    if missing == "indicator":
        encoding = with_indicators(encoding, table, rows)
    counts = missing_counts(table, task, holes, missing)
    X, fill = _some_rows(encoding.matrix(table, "zero" if gone.any() else "error"), rows), None
    known: dict[str, Any] = columns.read(table, rows, classes)
    if groups is None and chosen[1].ids == "names":
        known["related"] = related_rows(table, {*encoding.sources}, chosen[0], rows, known["task"], id)
    if missing == "patterns":
        if several:
            raise TableError(
                "--missing patterns: with several targets each is a task of all rows; fit them one by one, or fill in "
                "what is missing (--missing mean)"
            )
        if by_task is not None:
            raise TableError(
                "--missing patterns: patterns are tasks of their own, which --outcome does not name; fill in what is "
                "missing (--missing task-mean), leave incomplete rows out (--missing drop), or fit each kind of "
                "outcome by itself"
            )
        known["given_task"] = known["task"]
        X = _patterned(X, table, encoding, rows, known["task"], min_rows=pattern_rows)
        known["task"], notes = X.task, [*notes, *_told_patterns(X)]
    elif pattern_rows is not None:
        raise TableError("--pattern-rows: goes with --missing patterns")
    if missing in FILLED:
        whose, holed = None if missing == "mean" else known["task"], X
        X, fill = fill_with_means(X, encoding, table, rows, whose, missing)
        known["filled"] = None if X is holed else filled_cells(holed, encoding, table, rows, whose)
    return TableProblem(
        X,
        **known,
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
        missing=counts,
        orders=_orders(table, columns.targets, rows) if classes else {},
    )


def _orders(table: Table, targets: Sequence[str], rows: Array) -> dict[str, list[str]]:
    found = {name: table.columns[name].order(rows) for name in targets if name in table.columns}
    return {name: order for name, order in found.items() if order is not None}


# --- rows for a model that is already fitted -------------------------------------------------------------------------


def prepare_rows(
    table: Table, encoding: Encoding, *, task: str | None = None, offset: str | None = None, **how: Any
) -> tuple[Any, Array | None, Array | None, Array]:
    """X, task, offsets and rows of a table whose targets are to be predicted.

    - `how`: `missing`, `fill`, `filled`, `tasks`, `unknown`, `patterns` and `unseen` of `prepare_labelled`. Of a model
      of patterns the task is that of the table, and X knows the pattern.
    """
    found = prepare_labelled(table, encoding, RowColumns((), task, offset=offset), **how)
    return found.X, found.task if found.given_task is None else found.given_task, found.offset, found.rows


def prepare_labelled(
    table: Table,
    encoding: Encoding,
    columns: RowColumns,
    *,
    classes: bool | Collection[str] = False,
    missing: Missing = "error",
    fill: Array | None = None,
    filled: str = "mean",
    tasks: Array | None = None,
    unknown: Literal["error", "zero"] = "error",
    patterns: Patterns | None = None,
    unseen: Literal["error", "nearest"] = "error",
) -> TableProblem:
    """The rows of a test table, read as those of the fit were; with their labels, where targets are named.

    - `fill`, `filled`, `tasks`: What the fit has put in for missing values, its `missing`, and the tasks whose means
      the rows of `fill` are.
    - `patterns`, `unseen`: Of a model of patterns those that it knows, and what becomes of rows of other patterns.
    """
    missing = _missing_as_fitted(missing, patterns, unseen)
    for target in columns.targets:
        for name, flag in columns.columns_of(target).items():
            table.require(name, flag)
    rows, holes = columns.usable(table, encoding, missing, advice=() if fill is None else (filled,))
    if holes and missing in FILLED:
        refuse_other_filling(missing, None if fill is None else filled)
    X = _some_rows(encoding.matrix(table, unknown), rows)
    known: dict[str, Any] = columns.read(table, rows, classes)
    if holes and missing in FILLED and fill is not None:
        if missing == "indicator":
            refuse_holes_without_indicator(encoding, table.source, holes)
        X = fill_as_fitted(X, fill, known["task"], tasks, rows, table.source)
    if columns.targets and not len(rows):
        raise TableError(f"{table.source}: no row with a label is left")
    if patterns is not None:
        found = _patterned(X, table, encoding, rows, known["task"], unseen=unseen)
        X = found.as_fitted(patterns, None, rows=rows, remedy=_NEAREST)
        known["given_task"], known["task"] = known["task"], X.task
    return TableProblem(
        X, **known, targets=list(columns.targets), encoding=encoding, fill=fill, rows=rows, n_rows=table.n_rows,
        classes=classes is True, survival=columns.survival,
    )  # fmt: skip


def _missing_as_fitted(missing: Missing, patterns: Patterns | None, unseen: str) -> Missing:
    """How missing values are treated, given the patterns that a model knows."""
    if patterns is not None:
        if missing in ("drop", *FILLED):
            raise TableError(f"--missing {missing}: the model was fitted with --missing patterns, and takes rows so")
        return "patterns"
    if missing == "patterns":
        raise TableError("--missing patterns: the model was fitted without it, so that it knows no patterns")
    if unseen != "error":
        raise TableError("--unseen: is for a model of patterns (--missing patterns)")
    return missing


def _patterned(
    X: Any, table: Table, encoding: Encoding, rows: Array, task: Array | None, **how: Any
) -> PatternedMatrix:
    """Rows with the columns that they have; those that a file lacks are absent in its rows."""
    if issparse(X):
        raise TableError("--missing patterns: a sparse matrix has no columns that rows lack; use --missing drop")
    absent = [(j, table.absent[name][rows]) for j, name in enumerate(encoding.sources) if name in table.absent]
    if absent:
        X = np.array(X, dtype=np.float64, order="F")
        for j, here in absent:
            X[here, j] = np.nan
    return patterned(X, task, rows=rows, **how)


def _told_patterns(X: PatternedMatrix) -> list[str]:
    """Notes about the patterns of a table."""
    known, counts = X.patterns, np.bincount(X.codes, minlength=len(X.patterns))
    listed = [f"{known.names[k]}: {counts[k]:,} rows, {known.words(k)}" for k in range(min(len(known), NAMED_PATTERNS))]
    more = f"; and {len(known) - len(listed)} more" if len(known) > len(listed) else ""
    notes = [f"{len(known):,} patterns of present columns, each a task of its own: {'; '.join(listed)}{more}"]
    n_small = int(np.count_nonzero(counts < FEW_ROWS))
    if 2 * n_small > len(known) > 1:
        notes.append(
            f"{n_small:,} of these patterns have fewer than {FEW_ROWS} rows. Patterns are for blocks of columns that "
            "rows lack together: for holes here and there use --missing task-mean (--pattern-rows 10 merges small ones)"
        )
    return [*notes, f"{X.n_dropped:,} values are left out to merge patterns of few rows"] if X.n_dropped else notes


def _some_rows(X: Any, rows: Array) -> Any:
    return X if len(rows) == X.shape[0] else X[rows]


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
