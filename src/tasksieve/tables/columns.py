"""Which columns of a table are learned from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .categories import named_references, told_codings
from .dates import FIRST_DAY, LAST_DAY, DateParts, date_ways
from .encode import Encoding
from .ids import FEWEST_NUMBERS, why_id
from .table import NAMED_CELLS, Array, Table, TableError
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


def choose_features(
    table: Table, roles: Mapping[str, str], choice: FeatureChoice, among: Array | None = None
) -> tuple[Encoding, list[str]]:
    """How the features of a table are encoded, and notes about columns left out and about categories. `roles` say which
    columns are no features, and what they are: targets, task, weights, id. Words are those of the rows `among` (a mask)
    which it is decided."""
    if table.matrix is not None:
        return Encoding([], _from_matrix(table, choice)), []
    names = _names(table, list(table.columns), roles, choice)
    coded = table.match(choice.categorical, "--categorical", names)
    as_they_are = {*coded, *table.match(choice.keep, "--keep", names)}
    dates: dict[str, DateParts] = {}
    dates_out: list[str] = []
    ids: dict[str, str] = {}
    looked = names
    if isinstance(table.columns, WideColumns):
        looked = table.columns.worth_a_look(names, FEWEST_NUMBERS, (FIRST_DAY, LAST_DAY))
    for name in (name for name in looked if name not in as_they_are):
        column = table.present(name, among)
        ways = date_ways(column)
        if ways and choice.date_parts:
            dates[name] = DateParts.of(column, ways, name, table.source)
        elif name in choice.features:
            continue
        elif ways:
            dates_out.append(name)
        elif (why := why_id(name, column)) is not None:
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
