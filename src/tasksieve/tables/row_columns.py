"""Columns beside the features: targets, tasks, weights, offsets and groups of the rows, and which rows can be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .encode import Encoding, number_values, refuse_infinite, refuse_spoilt_numbers
from .table import NAMED_CELLS, Array, Column, StackedFiles, Table, TableError, row_words

Missing = Literal["error", "drop", "mean"]
# Columns with missing values: the name, the first rows at least, and how many there are.
Holes = list[tuple[str, Array, int]]


@dataclass(frozen=True)
class RowColumns:
    """Names of the columns. Several targets are a task each; empty cells among them are labels not observed."""

    targets: Sequence[str] = ()
    task: str | None = None
    weights: str | None = None
    offset: str | None = None
    groups: str | None = None

    @classmethod
    def of(cls, table: Table, target: Sequence[str], task: str | None = None, **others: str | None) -> RowColumns:
        """The columns of a table; targets may be globs."""
        targets = table.match(target, "--target", list(table.columns))
        if not targets:
            raise TableError("--target: name the column to predict")
        if len(targets) > 1 and task is not None:
            raise TableError(
                f"--task: with several targets ({', '.join(targets[:3])}, ...) each target is a task; either drop "
                "--task, or stack the rows, with one target column and one task column"
            )
        return cls(targets, task, **others)

    @property
    def _flags(self) -> dict[str, str]:
        """Options that name a column which is no target, and the column."""
        found = {"--task": self.task, "--weights": self.weights, "--offset": self.offset, "--row-groups": self.groups}
        return {flag: name for flag, name in found.items() if name is not None}

    def roles(self, table: Table, id: str | None) -> dict[str, str]:
        """What columns are, in words; none is two things, but rows may be called by their task or group."""
        roles = dict.fromkeys(self.targets, "the target")
        for flag, name in {**self._flags, **({} if id is None else {"--id": id})}.items():
            table.require(name, flag)
            if name in roles and not (flag == "--id" and name in (self.task, self.groups)):
                raise TableError(f"{flag}: column {name!r} is also {roles[name]}")
            roles.setdefault(name, "the groups of rows" if flag == "--row-groups" else f"the {flag[2:]}")
        return roles

    def usable(
        self, table: Table, encoding: Encoding | None, missing: Missing, mean: bool = True
    ) -> tuple[Array, Holes]:
        """Rows that can be used, and missing values of features (without an encoding they do not matter). A row without
        a task, a weight or (of a single target) a label cannot be filled in. `mean`: an error may advise means."""
        needed = {name: flag for flag, name in self._flags.items()}
        unusable = np.zeros(table.n_rows, dtype=bool)
        if len(self.targets) > 1:
            unusable |= np.all([table.require(name, "--target").missing for name in self.targets], axis=0)
        else:
            needed |= dict.fromkeys(self.targets, "--target")
        found = [(name, np.flatnonzero(table.require(name, flag).missing)) for name, flag in needed.items()]
        found = [(name, rows) for name, rows in found if len(rows)]
        in_features = [] if encoding is None else encoding.missing(table)
        holes = [(name, table.first + rows, len(rows)) for name, rows in in_features]
        if missing == "error" and (found or in_features):
            empty = [(name, table.first + rows, len(rows)) for name, rows in found]
            refuse_missing(table.source, empty + holes, mean=mean and not found)
        for _, rows in found + (in_features if missing == "drop" else []):
            unusable[rows] = True
        return np.flatnonzero(~unusable), holes

    def read(self, table: Table, rows: Array, classes: bool = False) -> dict[str, Array | None]:
        """Of some rows y, task, sample_weight, offset and groups; None for what there is not. Classes may be words."""
        return {
            "y": self.labels(table, rows, classes) if self.targets else None,
            "task": _names(table, rows, self.task, "--task"),
            "sample_weight": self.read_weights(table, rows),
            "offset": _numbers(table, rows, self.offset, "--offset", "offsets are finite (of a rate: log(exposure))"),
            "groups": _names(table, rows, self.groups, "--row-groups"),
        }

    def labels(self, table: Table, rows: Array, classes: bool = False) -> Array:
        found = [_target(table, name, classes)[rows] for name in self.targets]
        if len(found) > 1:
            return np.stack(found, axis=1)
        return tidy_labels(found[0]) if classes else found[0]

    def read_weights(self, table: Table, rows: Array) -> Array | None:
        return _numbers(table, rows, self.weights, "--weights", "weights are finite and >= 0", least=0.0)


# --- values ----------------------------------------------------------------------------------------------------------


def _target(table: Table, name: str, classes: bool) -> Array:
    """Labels of one target: numbers, or class labels (None or NaN where not observed)."""
    column = words_or_numbers(table, name, "--target")
    if classes:
        return column.values
    if column.kind == "text":
        refuse_spoilt_numbers(column, name, table.source)
        raise TableError(
            f"--target: column {name!r} of {table.source} holds words; this model predicts numbers. For classes use "
            "--model logistic or another classifier"
        )
    infinite = np.flatnonzero(np.isinf(column.values))
    if len(infinite):
        refuse_infinite(table, int(infinite[0]), name)
    return column.values.astype(np.float64)


def words_or_numbers(table: Table, name: str, flag: str) -> Column:
    column = table.columns[name]
    if column.kind in ("date", "other"):
        raise TableError(f"{flag}: column {name!r} of {table.source} holds neither numbers nor words")
    return column


def _names(table: Table, rows: Array, name: str | None, flag: str) -> Array | None:
    return None if name is None else tidy_labels(words_or_numbers(table, name, flag).values[rows])


def tidy_labels(values: Array) -> Array:
    """Labels in their plainest type: words as strings, whole floats (a column with a hole was read so) as integers."""
    if values.dtype == object and all(issubclass(kind, str) for kind in set(map(type, values))):
        return values.astype(str)
    if values.dtype.kind == "f" and np.all(np.isfinite(values)) and np.all(np.abs(values) < 2**53):
        whole = values.astype(np.int64)
        return whole if np.array_equal(whole, values) else values
    return values


def _numbers(
    table: Table, rows: Array, name: str | None, flag: str, rule: str, least: float = -np.inf
) -> Array | None:
    """Numbers that are finite and large enough wherever there is one."""
    if name is None:
        return None
    values = number_values(table, name, f"{flag}: ").astype(np.float64)
    bad = np.flatnonzero((values < least) | np.isinf(values))
    if len(bad):
        raise TableError(
            f"{flag}: {table.source}: {row_words(table.source, table.first + bad[0])}, column {name!r} is "
            f"{values[bad[0]]:g}; {rule}"
        )
    return values[rows]


# --- what is missing, in words ---------------------------------------------------------------------------------------


def refuse_missing(source: str, found: Holes, *, mean: bool) -> None:
    """Raise a TableError that names missing values."""
    count, listed = _listed(source, found)
    filled = ", --missing mean puts the column's mean there" if mean else ""
    raise TableError(f"{source}: {count} missing value(s): {listed}. --missing drop leaves such rows out{filled}.")


def _listed(source: str, found: Holes) -> tuple[int, str]:
    words = [
        f"{row_words(source, row)}, column {name!r}"
        for name, rows, _ in found[:NAMED_CELLS]
        for row in rows[:NAMED_CELLS].tolist()
    ]
    count, named = sum(count for _, _, count in found), words[:NAMED_CELLS]
    return count, "; ".join(named) + (f"; and {count - len(named)} more" if count > len(named) else "")


def told_rows(
    source: str, n_rows: int, n_targets: int, filled: Holes, unobserved: int, left_out: Sequence[int], n_left_out: int
) -> list[str]:
    """Notes about missing values that were filled in, about labels of several targets, and about rows that cannot be
    used, given the first of them; an error where no row is left."""
    if n_left_out == n_rows:
        raise TableError(f"{source}: no row is left after those with missing values are dropped")
    count, listed = _listed(source, filled)
    shown = ", ".join(row_words(source, row) for row in left_out[:NAMED_CELLS])
    if not isinstance(source, StackedFiles):  # row 3, 7, 12
        shown = shown.replace(", row ", ", ")
    more = ", ..." if n_left_out > NAMED_CELLS else ""
    means = f"in {len(filled)} column(s) filled with the column's mean"
    notes = {
        f"{unobserved} of {n_rows * n_targets} labels are not observed; the model leaves them out": unobserved,
        f"{count} missing value(s) {means}: {listed}": count,
        f"{n_left_out} of {n_rows} rows left out for missing values: {shown}{more}": n_left_out,
    }
    return [words for words, number in notes.items() if number]
