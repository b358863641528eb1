"""Labels of stacked rows whose tasks have outcomes of unlike kinds: a column of labels, times and events beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..tasks.refusals import is_number
from ..tasks.sample_space import CLASSES
from .survival_columns import SurvivalColumns
from .table import Array, Table, TableError, row_words, tidy_labels

SURVIVAL = "survival"


@dataclass(frozen=True)
class LabelsByTask:
    """Where the labels of each task are, and of which kind they are.

    - `column`: Labels that are no survival outcomes; None where all are.
    - `kinds` (dict of task, in words, to kind): As `Loss.labels`; that of None is the kind of all other tasks.
    - `survival` (dict of task, in words, to columns): Of tasks whose kind is "survival"; None: of all others of them.
    """

    column: str | None
    kinds: Mapping[str | None, str]
    survival: Mapping[str | None, SurvivalColumns] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, str]:
        """The columns, and the options that name them."""
        found = {} if self.column is None else {self.column: "--target"}
        return found | {name: flag for own in self.survival.values() for flag, name in own.flags.items()}

    def holes(self, table: Table, task: str) -> list[tuple[str, Array]]:
        """Columns that lack labels of their tasks, and the rows."""
        found: dict[str, Array] = {}
        for name, rows in _rows_by_task(table, task, np.arange(table.n_rows)).items():
            for column, flag in self._columns_of(name).items():
                empty = rows[table.require(column, flag).missing[rows]]
                found[column] = np.union1d(found.get(column, empty), empty)
        return [(column, rows) for column, rows in found.items() if len(rows)]

    def read(self, table: Table, rows: Array, task: str) -> Array:
        """Labels of some rows, each as the kind of its task has them: numbers, classes, or records of survival."""
        found = np.empty(table.n_rows, dtype=object)
        for name, own in _rows_by_task(table, task, rows).items():
            labels = self._labels(table, name, own)
            found[own] = list(labels) if labels.dtype.names is not None else labels.astype(object)
        return found[rows]

    def _kind(self, task: str) -> str:
        kind = self.kinds.get(task, self.kinds.get(None))
        if kind is None:
            raise TableError(f"--outcome: task {task!r} has no kind; --outcome '{task}=KIND' says it")
        return kind

    def _columns_of(self, task: str) -> dict[str, str]:
        if self._kind(task) != SURVIVAL:
            if self.column is None:
                raise TableError(f"--target: name the column with the labels of task {task!r}")
            return {self.column: "--target"}
        return {name: flag for flag, name in self.survival_of(task).flags.items()}

    def survival_of(self, task: str) -> SurvivalColumns:
        """The columns of a task whose outcome is one of survival."""
        return self.survival[task if task in self.survival else None]

    def _labels(self, table: Table, task: str, rows: Array) -> Array:
        kind = self._kind(task)
        if kind == SURVIVAL:
            return self.survival_of(task).read(table, rows)
        name = next(iter(self._columns_of(task)))
        column = table.require(name, "--target")
        if column.kind in ("date", "other"):
            raise TableError(f"--target: column {name!r} of {table.source} holds neither numbers nor words")
        values = column.values[rows]
        if column.kind == "text":  # of other tasks, perhaps: words that are numbers are read as such
            numbers = [is_number(word) for word in values.tolist()]
            if kind in CLASSES and not all(numbers):
                return tidy_labels(values)
            if not all(numbers):
                i = numbers.index(False)
                place = row_words(table.source, table.first + rows[i])
                raise TableError(
                    f"--target: {table.source}: {place}, column {name!r} is {values[i]!r}; task {task!r} predicts "
                    "numbers. Classes are --outcome binary or ordered"
                )
            values = np.array([float(word) for word in values.tolist()])
        infinite = np.isinf(values.astype(np.float64))
        if infinite.any():
            place = row_words(table.source, table.first + rows[int(np.argmax(infinite))])
            raise TableError(f"--target: {table.source}: {place}, column {name!r} is infinite")
        return tidy_labels(values) if kind in CLASSES else values.astype(np.float64)


def _rows_by_task(table: Table, task: str, rows: Array) -> dict[str, Array]:
    """Of some rows those of each task, by its name in words."""
    column = table.require(task, "--task")
    rows = rows[~column.missing[rows]]
    names = np.array([str(label) for label in tidy_labels(column.values[rows]).tolist()], dtype=object)
    return {name: rows[names == name] for name in sorted(set(names.tolist()))}
