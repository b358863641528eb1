"""Columns of a survival outcome: a time, whether it is that of an event, an entry time, a stratum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..outcomes import survival
from ..tasks.refusals import is_number
from .encode import number_values
from .table import Array, Column, Table, TableError, few, row_words, tidy_labels

_ADVICE = "an event is 1 or true, censoring 0 or false"


@dataclass(frozen=True)
class SurvivalColumns:
    """Names of the columns; `value` is what stands for an event in its column, by default 1 (or true)."""

    time: str
    event: str
    entry: str | None = None
    strata: str | None = None
    value: str | None = None

    @property
    def flags(self) -> dict[str, str]:
        """Options that name a column, and the column."""
        found = {"--time": self.time, "--event": self.event, "--entry": self.entry, "--strata": self.strata}
        return {flag: name for flag, name in found.items() if name is not None}

    def missing(self, table: Table) -> Array:
        """Rows without an outcome."""
        absent = [table.require(name, flag).missing for flag, name in self.flags.items()]
        return np.asarray(np.any(absent, axis=0))

    def read(self, table: Table, rows: Array) -> Array:
        """Labels of some rows, as `tasksieve.survival` makes them; those without an outcome are not observed."""
        seen = ~self.missing(table)
        times = self._numbers(table, self.time, "--time")
        self._refuse(table, seen & np.isinf(times), self.time, times, "--time", "times are finite")
        self._refuse(table, seen & (times < 0.0), self.time, times, "--time", "times are not negative")
        fields = {"time": np.where(seen, times, np.nan), "event": np.where(seen, self._events(table), np.nan)}
        if self.entry is not None:
            entries = self._numbers(table, self.entry, "--entry")
            late = seen & ~(entries < times)
            words = f"a row is observed from then on, which must be before its time ({self.time!r})"
            self._refuse(table, late, self.entry, entries, "--entry", words)
            fields["entry"] = np.where(seen, entries, -np.inf)
        if self.strata is not None:
            fields["strata"] = self._strata(table, seen)
        return survival(**{name: values[rows] for name, values in fields.items()})

    def _numbers(self, table: Table, name: str, flag: str) -> Array:
        if table.columns[name].kind == "date":
            raise TableError(
                f"{flag}: column {name!r} of {table.source} holds dates; a time is a number, of days since the "
                "beginning of the observation say"
            )
        return number_values(table, name, f"{flag}: ").astype(np.float64)

    def _refuse(self, table: Table, wrong: Array, name: str, values: Array, flag: str, rule: str) -> None:
        if wrong.any():
            i = int(np.argmax(wrong))
            place = row_words(table.source, table.first + i)
            raise TableError(f"{flag}: {table.source}: {place}, column {name!r} is {values[i]:g}; {rule}")

    def _events(self, table: Table) -> Array:
        """1 and 0, NaN where there is nothing."""
        column, name = table.columns[self.event], self.event
        if column.kind not in ("number", "text"):
            raise TableError(f"--event: column {name!r} of {table.source} holds neither numbers nor words")
        if self.value is not None:
            return self._equal(table, column, self.value)
        if column.kind == "text":
            words = _distinct(column)
            ways = " or ".join(f"--event '{name}=={word}'" for word in words[:2])
            raise TableError(
                f"--event: column {name!r} of {table.source} holds words ({few(list(map(repr, words)), 3)}): say which "
                f"of them is an event, {ways}"
            )
        numbers = column.values.astype(np.float64)
        known = set(numbers[~np.isnan(numbers)].tolist())
        if known <= {0.0, 1.0}:
            return numbers
        if known <= {1.0, 2.0}:
            raise TableError(
                f"--event: column {name!r} of {table.source} holds 1 and 2, as R's survival and PLINK write a status "
                f"(2 is an event): --event '{name}==2'"
            )
        more = ""
        if all(number >= 0.0 and number.is_integer() for number in known):
            more = (
                ". Several kinds of events (competing risks) are no part of the model: with "
                f"--event '{name}==1' the others count as censored"
            )
        wrong = ~np.isnan(numbers) & (numbers != 0.0) & (numbers != 1.0)
        self._refuse(table, wrong, name, numbers, "--event", _ADVICE + more)
        return numbers

    def _equal(self, table: Table, column: Column, value: str) -> Array:
        """Whether the column holds the word, or the number, that stands for an event."""
        if column.kind == "number":
            if not is_number(value):
                raise TableError(
                    f"--event: column {self.event!r} of {table.source} holds numbers; {value!r} is none of them"
                )
            found = column.values == float(value)
        else:
            found = np.array([word == value for word in column.values.tolist()], dtype=bool)
        if not found.any():
            words = few([str(word) for word in _distinct(column)], 5)
            raise TableError(
                f"--event: no row of column {self.event!r} of {table.source} is {value!r}; it holds {words}"
            )
        return np.where(column.missing, np.nan, found)

    def _strata(self, table: Table, seen: Array) -> Array:
        """Labels; rows without an outcome may have any."""
        name = str(self.strata)
        column = table.columns[name]
        if column.kind not in ("number", "text"):
            raise TableError(f"--strata: column {name!r} of {table.source} holds neither numbers nor words")
        values = column.values
        if not seen.all():
            values = values.copy()
            values[~seen] = values[np.argmax(seen)]
        return tidy_labels(values)


def _distinct(column: Column) -> list[object]:
    return sorted(set(column.values[~column.missing].tolist()))


def side_by_side(outcomes: Sequence[Array]) -> Array:
    """Several outcomes of the same rows as an array of shape (n, T)."""
    names = outcomes[0].dtype.names or ()
    every = dict.fromkeys(name for own in outcomes for name in own.dtype.names or names)
    if "entry" in every:
        outcomes = [_with_entry(own) for own in outcomes]
    return np.stack(outcomes, axis=1)


def _with_entry(y: Array) -> Array:
    if "entry" in (y.dtype.names or ()):
        return y
    strata = y["stratum"] if "stratum" in (y.dtype.names or ()) else None
    events = np.where(np.isnan(y["time"]), np.nan, y["event"])
    return survival(y["time"], events, np.full(len(y), -np.inf), strata)
