"""Columns beside the features: targets, tasks, weights, offsets and groups of the rows, and which rows can be used."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ..tasks.labels import first_fraction
from .encode import Encoding, number_values, refuse_error_cells, refuse_infinite, refuse_spoilt_numbers
from .labels_by_task import LabelsByTask
from .survival_columns import SurvivalColumns, side_by_side
from .table import (
    NAMED_CELLS,
    Array,
    CodedColumn,
    Column,
    StackedFiles,
    Table,
    TableError,
    row_words,
    tidy_labels,
)

Missing = Literal["error", "drop", "mean", "task-mean", "indicator", "patterns"]
# What fills holes, in words, in the order of an error that advises it.
FILLS = {
    "mean": "puts the column's mean over all rows there",
    "task-mean": "that of the row's task",
    "indicator": "that, and a feature that says so",
}
# Said of ``--row-groups``: rows are not related, whatever their ids.
UNRELATED = "none"
_PATTERNS = ", --missing patterns fits rows as they are: those that have the same columns are a task"
# Columns with missing values: the name, the first rows at least, and how many there are.
Holes = list[tuple[str, Array, int]]
# Of one target (n,), of several (n, T); a dict by target where they are of unlike kinds.
Labels = Array | dict[str, Array]


@dataclass(frozen=True)
class RowColumns:
    """Names of the columns. Several targets are a task each; empty cells among them are labels not observed.

    - `survival` (dict of target to columns): Targets that are survival outcomes: names that need not be columns.
    - `flag`: The option that names the other targets.
    - `by_task`: Where tasks have outcomes of unlike kinds in stacked rows; then there is one target.
    """

    targets: Sequence[str] = ()
    task: str | None = None
    weights: str | None = None
    offset: str | None = None
    groups: str | None = None
    survival: Mapping[str, SurvivalColumns] = field(default_factory=dict)
    flag: str = "--target"
    by_task: LabelsByTask | None = None

    @classmethod
    def of(cls, table: Table, target: Sequence[str], task: str | None = None, **others: Any) -> RowColumns:
        """The columns of a table; targets may be globs."""
        survival, flag = others.get("survival") or {}, others.get("flag", "--target")
        if others.get("by_task") is not None:
            return cls(list(target), task, **others)
        found = (
            [word] if word in survival else table.match([word], flag, list(table.columns)) for word in target
        )
        targets = list(dict.fromkeys(name for names in found for name in names))
        if not targets:
            raise TableError("--target: name the column to predict")
        if len(targets) > 1 and task is not None:
            raise TableError(
                f"--task: with several targets ({', '.join(targets[:3])}, ...) each target is a task; either drop "
                "--task, or stack the rows, with one target column and one task column"
            )
        return cls(targets, task, **others)

    def missing(self, table: Table, target: str) -> Array:
        """Rows without a label of a target."""
        if target in self.survival:
            return self.survival[target].missing(table)
        return table.require(target, self.flag).missing

    def columns_of(self, target: str) -> dict[str, str]:
        """The columns of a target, and the options that name them."""
        if self.by_task is not None:
            return self.by_task.columns
        if target not in self.survival:
            return {target: self.flag}
        return {name: flag for flag, name in self.survival[target].flags.items()}

    @property
    def _flags(self) -> dict[str, str]:
        """Options that name a column which is no target, and the column."""
        found = {"--task": self.task, "--weights": self.weights, "--offset": self.offset, "--row-groups": self.groups}
        return {flag: name for flag, name in found.items() if name is not None}

    def roles(self, table: Table, id: str | None) -> dict[str, str]:
        """What columns are, in words; none is two things, but rows may be called by their task or group."""
        roles: dict[str, str] = {}
        for target in self.targets:
            for name, flag in self.columns_of(target).items():
                table.require(name, flag)
                role = "the target" if flag == self.flag else f"the {flag[2:]}"
                if roles.setdefault(name, role) != role:
                    raise TableError(f"{flag}: column {name!r} is also {roles[name]}")
        for flag, name in {**self._flags, **({} if id is None else {"--id": id})}.items():
            table.require(name, flag)
            if name in roles and not (flag == "--id" and name in (self.task, self.groups)):
                raise TableError(f"{flag}: column {name!r} is also {roles[name]}")
            roles.setdefault(name, "the groups of rows" if flag == "--row-groups" else f"the {flag[2:]}")
        return roles

    def usable(
        self,
        table: Table,
        encoding: Encoding | None,
        missing: Missing,
        advice: Collection[str] = tuple(FILLS),
        excluded: Array | None = None,
    ) -> tuple[Array, Holes]:
        """Rows that can be used, and missing values of features (without an encoding they do not matter). A row without
        a task, a weight or (of a single target) a label cannot be filled in. `advice`: what fills holes, for
        the words of an error. Rows that are `excluded` may lack anything."""
        needed = {name: flag for flag, name in self._flags.items()}
        unusable = np.zeros(table.n_rows, dtype=bool)
        found: list[tuple[str, Array]] = []
        if self.by_task is not None and self.task is not None:
            found = self.by_task.holes(table, self.task)
        elif len(self.targets) > 1:
            unusable |= np.all([self.missing(table, name) for name in self.targets], axis=0)
        else:
            needed |= {name: flag for target in self.targets for name, flag in self.columns_of(target).items()}
        found += [(name, np.flatnonzero(table.require(name, flag).missing)) for name, flag in needed.items()]
        in_features = [] if encoding is None else encoding.missing(table)
        if excluded is not None:
            unusable |= excluded
            found, in_features = (
                [(name, rows[~excluded[rows]]) for name, rows in part] for part in (found, in_features)
            )
            in_features = [(name, rows) for name, rows in in_features if len(rows)]
        found = [(name, rows) for name, rows in found if len(rows)]
        holes = [(name, table.first + rows, len(rows)) for name, rows in in_features]
        if missing == "error" and (found or in_features):
            empty = [(name, table.first + rows, len(rows)) for name, rows in found]
            refuse_missing(table.source, empty + holes, advice=() if found else advice, n_rows=table.n_rows)
        for _, rows in found + (in_features if missing == "drop" else []):
            unusable[rows] = True
        return np.flatnonzero(~unusable), holes

    def read(self, table: Table, rows: Array, classes: bool | Collection[str] = False) -> dict[str, Any]:
        """Of some rows y, task, sample_weight, offset and groups; None for what there is not."""
        return {
            "y": self.labels(table, rows, classes) if self.targets else None,
            "task": _names(table, rows, self.task, "--task"),
            "sample_weight": self.read_weights(table, rows),
            "offset": _numbers(table, rows, self.offset, "--offset", "offsets are finite (of a rate: log(exposure))"),
            "groups": _names(table, rows, self.groups, "--row-groups"),
        }

    def labels(self, table: Table, rows: Array, classes: bool | Collection[str] = False) -> Labels:
        """Labels of some rows. Of targets that are classes they may be words; where some targets are and others may not
        be, so that `classes` names them, there is a dict by target."""
        if self.by_task is not None and self.task is not None:
            return self.by_task.read(table, rows, self.task)
        found: dict[str, Array] = {}
        for name in self.targets:
            if name in self.survival:
                found[name] = self.survival[name].read(table, rows)
                continue
            words = classes if isinstance(classes, bool) else name in classes
            labels = _target(table, name, words, self.flag)[rows]
            found[name] = tidy_labels(labels) if words and len(self.targets) == 1 else labels
        if not isinstance(classes, bool):
            return found
        every = list(found.values())
        if len(every) == 1:
            return every[0]
        return side_by_side(every) if self.survival else np.stack(every, axis=1)

    def read_weights(self, table: Table, rows: Array) -> Array | None:
        return _numbers(table, rows, self.weights, "--weights", "weights are finite and >= 0", least=0.0)


def groups_column(said: str | None) -> str | None:
    """The column that ``--row-groups`` names."""
    return None if said == UNRELATED else said


# --- values ----------------------------------------------------------------------------------------------------------


def _target(table: Table, name: str, classes: bool, flag: str = "--target") -> Array:
    """Labels of one target: numbers, or class labels (None or NaN where not observed)."""
    column = words_or_numbers(table, name, flag)
    if classes:
        return column.values
    if column.kind == "text" and column.numbers is None:
        table.usable(name, f"{flag}: ")
        refuse_spoilt_numbers(column, name, table.source)
        raise TableError(
            f"{flag}: column {name!r} of {table.source} holds words; this model predicts numbers. For classes use "
            "--model logistic or another classifier"
        )
    values = number_values(table, name, f"{flag}: ")
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        refuse_infinite(table, int(infinite[0]), name)
    return values.astype(np.float64)


def words_or_numbers(table: Table, name: str, flag: str) -> Column:
    column = table.columns[name]
    if column.kind == "other":
        table.usable(name, f"{flag}: ")
    if column.kind == "text":
        words = column.words if isinstance(column, CodedColumn) else column.values
        refuse_error_cells(table, name, {word for word in words.tolist() if word is not None})
    if column.kind in ("date", "other"):
        raise TableError(f"{flag}: column {name!r} of {table.source} holds neither numbers nor words")
    return column


def labels_of_rows(table: Table, rows: Array, name: str, flag: str) -> Array:
    """Labels of a column in which none of some rows may lack one."""
    empty = rows[table.require(name, flag).missing[rows]]
    if len(empty):
        place = row_words(table.source, table.first + empty[0])
        raise TableError(f"{flag}: {table.source}: {place}, column {name!r} is missing")
    return tidy_labels(words_or_numbers(table, name, flag).values[rows])


def _names(table: Table, rows: Array, name: str | None, flag: str) -> Array | None:
    if name is None:
        return None
    column = words_or_numbers(table, name, flag)
    if flag == "--task":
        refuse_fractions(table, name, column, rows)
    return tidy_labels(column.values[rows])


def refuse_fractions(table: Table, name: str, column: Column, rows: Array) -> None:
    """Refuse a column of tasks that holds measurements."""
    values = column.values[rows]
    odd = first_fraction(values)
    if odd is not None:
        raise TableError(fraction_words(row_words(table.source, table.first + int(rows[odd])), name, values[odd]))


def fraction_words(place: str, name: str, value: float) -> str:
    """Why a number is not the label of a task."""
    return (
        f"--task: {place}, column {name!r} is {value:g}, no whole number: is this the outcome (--target)? A task is a "
        "label that rows share, a school, a patient, a site; write labels that are such numbers as words"
    )


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


def refuse_missing(
    source: str, found: Holes, *, advice: Collection[str] = tuple(FILLS), n_rows: int | None = None
) -> None:
    """Raise a TableError that names missing values; where all are known, it says how many of `n_rows` have some."""
    count, listed = _listed(source, found)
    where = ""
    if n_rows is not None and count > NAMED_CELLS:
        incomplete = len(np.unique(np.concatenate([rows for _, rows, _ in found])))
        where = f" in {incomplete:,} of {n_rows:,} rows and {len(found):,} column(s)"
    filled = "".join(f", --missing {how} {words}" for how, words in FILLS.items() if how in advice)
    if len(advice) == 1:
        filled = f", --missing {next(iter(advice))} fills them as the fit did"
    elif filled:
        filled += _PATTERNS
    raise TableError(
        f"{source}: {count} missing value(s){where}: {listed}. --missing drop leaves such rows out{filled}."
    )


def _listed(source: str, found: Holes) -> tuple[int, str]:
    words = [
        f"{row_words(source, row)}, column {name!r}"
        for name, rows, _ in found[:NAMED_CELLS]
        for row in rows[:NAMED_CELLS].tolist()
    ]
    count, named = sum(count for _, _, count in found), words[:NAMED_CELLS]
    return count, "; ".join(named) + (f"; and {count - len(named)} more" if count > len(named) else "")


def told_rows(
    source: str,
    n_rows: int,
    n_targets: int,
    filled: Holes,
    unobserved: int,
    left_out: Sequence[int],
    n_left_out: int,
    means: str,
) -> list[str]:
    """Notes about missing values that were filled in (with `means`, in words), about labels of several targets, and
    about rows that cannot be used, given the first of them; an error where no row is left."""
    if n_left_out == n_rows:
        raise TableError(f"{source}: no row is left after those with missing values are dropped")
    count, listed = _listed(source, filled)
    shown = ", ".join(row_words(source, row) for row in left_out[:NAMED_CELLS])
    if not isinstance(source, StackedFiles):  # row 3, 7, 12
        shown = shown.replace(", row ", ", ")
    more = ", ..." if n_left_out > NAMED_CELLS else ""
    notes = {
        f"{unobserved} of {n_rows * n_targets} labels are not observed; the model leaves them out": unobserved,
        f"{count} missing value(s) in {len(filled)} column(s) filled with {means}: {listed}": count,
        f"{n_left_out} of {n_rows} rows left out for missing values: {shown}{more}": n_left_out,
    }
    return [words for words, number in notes.items() if number]
