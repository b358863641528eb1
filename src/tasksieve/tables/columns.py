"""Which columns of a table are learned from."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .categories import named_references, told_codings
from .dates import FIRST_DAY, LAST_DAY, DateParts, date_ways
from .encode import Encoding
from .ids import (
    FEWEST_NAMES,
    FEWEST_NUMBERS,
    Ids,
    Part,
    come_again,
    names_rows,
    of_rows,
    row_names,
    value_codes,
    why_id,
)
from .table import NAMED_CELLS, Array, Column, StackedFiles, Table, TableError, tidy_labels
from .wide import WideColumns


@dataclass(frozen=True)
class FeatureChoice:
    """The user's choice of features.

    - `features`: Columns to learn from; by default all that are nothing else.
    - `drop`: Columns to leave out.
    - `keep`: Columns to learn from although they look like an id or a date. Names in `features` or `categorical` are
      kept, too; globs there are not.
    - `categorical`: Columns of numbers that are names of things.
    - `date_parts`: Learn from the parts of dates, instead of leaving dates out.
    - `reference`: Categories that have no indicator.
    - `ids` ({"names", "values"}): What an id is known by: its name and its values, in files and tasks too; or, as in
      version 0.2, the values of all rows alone.
    """

    features: Sequence[str] = ()
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    categorical: Sequence[str] = ()
    date_parts: bool = False
    max_categories: int = 100
    reference: Sequence[str] = ()
    ids: Ids = "names"


def _told_left_out(ids: Mapping[str, str], dates: Sequence[str]) -> list[str]:
    """Notes about columns that look like ids, and why, and about dates."""
    found = []
    for name in list(ids)[:NAMED_CELLS]:
        word = shlex.quote(name)
        found.append(
            f"column {name!r} is left out: it looks like an id ({ids[name]}). --id {word} carries it into "
            f"predictions, --keep {word} learns from it"
        )
    if len(ids) > NAMED_CELLS:
        more = ", ".join(map(repr, list(ids)[NAMED_CELLS:]))
        found.append(f"left out as well, they look like ids: columns {more}")
    if dates:
        one, names = len(dates) == 1, ", ".join(map(repr, dates))
        subject = f"column {names} is left out: it holds" if one else f"columns {names} are left out: they hold"
        found.append(f"{subject} dates. --date-parts learns from their year, month, day and so on")
    return found


class _Parts:
    """The files, and the tasks, that the rows of a table are in: each may number its own rows."""

    def __init__(self, table: Table, task: str | None) -> None:
        self._table, self._task = table, task

    @cached_property
    def _all(self) -> list[Part]:
        found, source = [], self._table.source
        if isinstance(source, StackedFiles):
            found.append(Part("file", np.repeat(np.arange(len(source.sizes)), source.sizes)))
        if self._task is not None:
            codes, n_tasks = value_codes(self._table.columns[self._task])
            if n_tasks > 1 and not (found and np.array_equal(codes, found[0].codes)):
                found.append(Part("task", codes))
        return found

    @property
    def fewest(self) -> int:
        """Rows of the largest part of a division, the least of all divisions and the table itself."""
        sizes = [int(np.bincount(part.codes + 1)[1:].max(initial=0)) for part in self._all]
        return min([self._table.n_rows, *sizes])

    def of(self, own: Array | None) -> list[Part]:
        """For some rows (a mask)."""
        return self._all if own is None else [Part(part.word, part.codes[own]) for part in self._all]


def choose_features(
    table: Table,
    roles: Mapping[str, str],
    choice: FeatureChoice,
    among: Array | None = None,
    task: str | None = None,
) -> tuple[Encoding, list[str]]:
    """How the features of a table are encoded, and notes about columns left out and about categories. `roles` say which
    columns are no features, and what they are: targets, task, weights, id. Words are those of the rows `among` (a mask)
    which it is decided. What looks like an id is judged in all rows, in each file, and in each `task` (a column)."""
    if table.matrix is not None:
        return Encoding([], _from_matrix(table, choice)), []
    names = _names(table, list(table.columns), roles, choice)
    coded = table.match(choice.categorical, "--categorical", names)
    as_they_are = {*coded, *table.match(choice.keep, "--keep", names)}
    dates: dict[str, DateParts] = {}
    dates_out: list[str] = []
    ids: dict[str, str] = {}
    looked, parts = names, _Parts(table, task)
    if isinstance(table.columns, WideColumns):
        suspects = {*table.columns.worth_a_look(names, FEWEST_NUMBERS, parts.fewest, (FIRST_DAY, LAST_DAY))}
        suspects.update(of_rows(names))
        looked = [name for name in names if name in suspects]
    for name in (name for name in looked if name not in as_they_are):
        column = table.present(name, among)
        ways = date_ways(column)
        if ways and choice.date_parts:
            dates[name] = DateParts.of(column, ways, name, table.source)
        elif name in choice.features:
            continue
        elif ways:
            dates_out.append(name)
        elif (why := why_id(name, column, parts.of(table.rows_of(name, among)), choice.ids)) is not None:
            ids[name] = why
    out = {*dates_out, *ids}
    found = [name for name in names if name not in out] if out else names
    notes = _told_left_out(ids, dates_out)
    if not found:
        raise TableError(
            f"{table.source} has no column left for features" + "".join(f"; {note}" for note in notes)
        )
    if choice.date_parts and not dates:
        notes.append("--date-parts: no feature column holds dates")
    references = named_references(choice.reference, found)
    encoding = Encoding.of(table, found, coded, choice.max_categories, dates, references, among)
    return encoding, [*notes, *told_codings(encoding.categories, references)]


def related_rows(
    table: Table, learned: Collection[str], roles: Collection[str], rows: Array, tasks: Array | None, id: str | None
) -> tuple[str, Array] | None:
    """A column that names the rows, or whom they are about, and whose values come again within a task, with labels for
    some rows; of several the one of the fewest values. None where there is none, or where each task is one value.

    - `learned`, `roles`: Columns that are features, or something else but `id`, which the user says names the rows.
    - `tasks`: The task of each of the rows.
    """
    known = None if tasks is None else np.unique(tasks, return_inverse=True)[1]
    found: tuple[str, Array] | None = None
    fewest = len(rows)
    names = of_rows(table.columns) if id is None or names_rows(id) else [*of_rows(table.columns), id]
    for name in names:
        column = table.columns[name]
        if name in learned or (name in roles and name != id) or column.kind not in ("number", "text", "date"):
            continue
        if column.kind == "number" and np.any(np.mod(column.values[~column.missing], 1)):
            continue
        codes, n_different = value_codes(column)
        codes = codes[rows]
        if n_different < FEWEST_NAMES or n_different >= fewest or not come_again(codes, known):
            continue
        own = np.where(codes < 0, n_different + np.arange(len(codes)), codes)  # rows without a name are by themselves
        if len(np.unique(own)) > (0 if known is None else known.max(initial=0)) + 1:
            fewest, found = n_different, (name, _labels(column, rows, own))
    return found


def _labels(column: Column, rows: Array, codes: Array) -> Array:
    """Names of groups of rows: as their column calls them, and rows without a name by their number."""
    words = row_names(column)
    if all(words[row] is not None for row in rows.tolist()):
        return tidy_labels(column.values[rows]) if column.kind != "date" else codes
    return np.array([f"(row {row + 1})" if words[row] is None else str(words[row]) for row in rows.tolist()])


def _names(table: Table, every: list[str], roles: Mapping[str, str], choice: FeatureChoice) -> list[str]:
    """Requested columns, without those that are something else or dropped: a glob may touch both."""
    names = table.match(choice.features, "--features", every) if choice.features else every
    dropped = set(table.match(choice.drop, "--drop", every))
    given = {"--features": choice.features, "--keep": choice.keep, "--drop": choice.drop}
    for flag, patterns in given.items():
        for name in patterns:
            if name in roles:
                raise TableError(f"{flag}: column {name!r} is also {roles[name]}")
            if name in dropped and flag != "--drop":
                raise TableError(f"{flag}: column {name!r} is also in --drop")
    names = [name for name in names if name not in roles and name not in dropped]
    if not names:
        raise TableError(f"--features: {table.source} has no column left for features")
    return names


def _from_matrix(table: Table, choice: FeatureChoice) -> list[str]:
    words = {"--categorical": choice.categorical, "--date-parts": choice.date_parts, "--reference": choice.reference}
    for flag in (flag for flag, asked in words.items() if asked):
        raise TableError(f"{flag}: the features of {table.source} are a matrix of numbers")
    names = _names(table, list(table.matrix_names), {}, choice)
    table.match(choice.keep, "--keep", names)  # all are kept; a name that is not there is a mistake
    return names
