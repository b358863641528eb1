"""Which columns of a table are learned from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .categories import named_references, told_codings
from .dates import FIRST_DAY, LAST_DAY, DateParts, date_ways
from .encode import Encoding
from .ids import FEWEST_NUMBERS, why_id
from .table import NAMED_CELLS, Table, TableError
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
    """

    features: Sequence[str] = ()
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    categorical: Sequence[str] = ()
    date_parts: bool = False
    max_categories: int = 100
    reference: Sequence[str] = ()


@dataclass
class _LeftOut:
    """Columns left out by default, and why."""

    ids: dict[str, str] = field(default_factory=dict)
    dates: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        found = []
        for name in list(self.ids)[:NAMED_CELLS]:
            word = shlex.quote(name)
            found.append(
                f"column {name!r} is left out: it looks like an id ({self.ids[name]}). --id {word} carries it into "
                f"predictions, --keep {word} learns from it"
            )
        if len(self.ids) > NAMED_CELLS:
            more = ", ".join(map(repr, list(self.ids)[NAMED_CELLS:]))
            found.append(f"left out as well, they look like ids: columns {more}")
        if self.dates:
            names = ", ".join(map(repr, self.dates))
            subject = f"column {names} is left out: it holds" if len(self.dates) == 1 else (
                f"columns {names} are left out: they hold"
            )  # fmt: skip
            found.append(f"{subject} dates. --date-parts learns from their year, month, day and so on")
        return found


def choose_features(
    table: Table, roles: Mapping[str, str], choice: FeatureChoice
) -> tuple[Encoding, list[str]]:
    """How the features of a table are encoded, and notes about columns left out and about categories.

    - `roles` (dict of column to what it is): Columns that are no features: targets, task, weights, id.
    """
    if table.matrix is not None:
        return _from_matrix(table, choice), []
    names = _names(table, roles, choice)
    coded = table.match(choice.categorical, "--categorical", names) if choice.categorical else []
    as_they_are = {*coded, *(table.match(choice.keep, "--keep", names) if choice.keep else [])}
    left_out = _LeftOut()
    dates: dict[str, DateParts] = {}
    looked = names
    if isinstance(table.columns, WideColumns):
        looked = table.columns.worth_a_look(names, FEWEST_NUMBERS, (FIRST_DAY, LAST_DAY))
    for name in looked:
        if name in as_they_are:
            continue
        column = table.present(name)
        ways = date_ways(column)
        if ways and choice.date_parts:
            dates[name] = DateParts.of(column, ways, name, table.source)
        elif name in choice.features:
            continue
        elif ways:
            left_out.dates.append(name)
        elif (why := why_id(name, column)) is not None:
            left_out.ids[name] = why
    out = {*left_out.dates, *left_out.ids}
    found = [name for name in names if name not in out] if out else names
    notes = left_out.notes()
    if not found:
        raise TableError(
            f"{table.source} has no column left for features" + "".join(f"; {note}" for note in notes)
        )
    if choice.date_parts and not dates:
        notes.append("--date-parts: no feature column holds dates")
    references = named_references(choice.reference, found)
    encoding = Encoding.of(table, found, coded, choice.max_categories, dates, references)
    return encoding, [*notes, *told_codings(encoding.categories, references)]


def _names(table: Table, roles: Mapping[str, str], choice: FeatureChoice) -> list[str]:
    """Requested columns, without those that are something else or dropped: a glob may touch both."""
    every = list(table.columns)
    names = table.match(choice.features, "--features", every) if choice.features else every
    dropped = set(table.match(choice.drop, "--drop", every)) if choice.drop else set()
    for flag, patterns in (("--features", choice.features), ("--drop", choice.drop), ("--keep", choice.keep)):
        both = [name for name in patterns if name in roles]
        if both:
            raise TableError(f"{flag}: column {both[0]!r} is also {roles[both[0]]}")
    for flag, patterns in (("--features", choice.features), ("--keep", choice.keep)):
        both = [name for name in patterns if name in dropped]
        if both:
            raise TableError(f"{flag}: column {both[0]!r} is also in --drop")
    names = [name for name in names if name not in roles and name not in dropped]
    if not names:
        raise TableError(f"--features: {table.source} has no column left for features")
    return names


def _from_matrix(table: Table, choice: FeatureChoice) -> Encoding:
    words = {"--categorical": choice.categorical, "--date-parts": choice.date_parts, "--reference": choice.reference}
    for flag in (flag for flag, asked in words.items() if asked):
        raise TableError(f"{flag}: the features of {table.source} are a matrix of numbers")
    every = list(table.matrix_names)
    names = table.match(choice.features, "--features", every) if choice.features else every
    if choice.keep:
        table.match(choice.keep, "--keep", names)  # all are kept; a name that is not there is a mistake
    dropped = set(table.match(choice.drop, "--drop", every)) if choice.drop else set()
    names = [name for name in names if name not in dropped]
    if not names:
        raise TableError(f"--features: {table.source} has no column left for features")
    return Encoding([], names)
