"""Dates: which columns hold them, and their parts as numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from .frames import need
from .table import Array, Column, TableError, row_words

PARTS = ("days", "year", "month", "day", "weekday", "hour")

# Words are read as dates in one of these ways, the same for the whole column.
ISO = "ISO8601"
DAYS = ("%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y")
TIMES = ("", " %H:%M", " %H:%M:%S")
WAYS = (ISO, *(day + time for day, time in product(DAYS, TIMES)))
ISO_WORD = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}\S*)?)?")
DATE_WORD = re.compile(r"(\d{1,4}[-/. ](\d{1,2}|[A-Za-z]{3})[-/. ]\d{1,4}|[A-Za-z]{3} \d{1,2}, \d{4})([T ].*)?")

# Whole numbers such as 20240131: every one must be a day of the calendar, and so many of them are no accident.
EIGHT_DIGITS = "%Y%m%d"
FIRST_DAY, LAST_DAY = 19_000_101, 21_001_231
FEWEST_DAYS = 10

# Words looked at before a whole column is read.
SAMPLE = 20


@dataclass(frozen=True)
class DateParts:
    """How a column of dates becomes numbers.

    - `parts`: Some of "days" (since 1970-01-01), "year", "month", "day", "weekday" (Monday is 0), "hour" (with its
      fraction).
    - `way`: How the dates were written where the column held words or numbers; "" where it held dates.
    """

    parts: tuple[str, ...]
    way: str = ""

    @classmethod
    def of(cls, column: Column, ways: Sequence[str], name: str, source: str) -> DateParts:
        """Decide for a column that `date_ways` has taken for dates; the hour is a part only where there are hours."""
        if len(ways) > 1:
            example = next(word for word in column.values.tolist() if word is not None)
            raise TableError(
                f"--date-parts: column {name!r} of {source} holds dates such as {example!r}: is the day or the month "
                "first? Write them as 2024-01-31, or leave the column out with --drop"
            )
        way = ways[0]
        hours = part_of(read_dates(column, way, name, source), "hour")
        return cls(PARTS if np.nansum(np.abs(hours)) > 0 else PARTS[:-1], way)

    def features(self, name: str) -> list[str]:
        """What the parts are called."""
        return [f"{name}.{part}" for part in self.parts]

    def to_json(self) -> dict[str, Any]:
        return {"parts": list(self.parts), "way": self.way}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> DateParts:
        parts, way = tuple(content["parts"]), content["way"]
        if not set(parts) <= set(PARTS) or way not in ("", *WAYS, EIGHT_DIGITS):
            raise ValueError("dates of the encoding")
        return cls(parts, way)

    def matrix(self, column: Column, name: str, source: str) -> Array:
        """The parts as columns, NaN where a date is missing."""
        ways = [self.way] if self.way or column.kind == "date" else list(date_ways(column))
        if len(ways) != 1:
            raise TableError(f"column {name!r} of {source} must hold dates, written as 2024-01-31")
        dates = read_dates(column, ways[0], name, source)
        return np.stack([part_of(dates, part) for part in self.parts], axis=1)


def date_ways(column: Column) -> tuple[str, ...]:
    """Ways in which all values of a column are dates: none, one, or two where day and month are ambiguous."""
    if column.seen is not None:
        return tuple(column.seen.ways)
    if column.kind == "date":
        return ("",)
    if column.kind == "text":
        words = column.values[~column.missing]
        if not len(words) or not all(DATE_WORD.fullmatch(word) or ISO_WORD.fullmatch(word) for word in words[:SAMPLE]):
            return ()
        return tuple(way for way in WAYS if _all_dates(words, way))
    if column.kind == "number" and column.values.dtype.kind in "iu" and len(column.values):
        values = column.values
        if values.min() >= FIRST_DAY and values.max() <= LAST_DAY and len(np.unique(values)) >= FEWEST_DAYS:
            return (EIGHT_DIGITS,) if _all_dates(values.astype(str).astype(object), EIGHT_DIGITS) else ()
    return ()


def _all_dates(words: Array, way: str) -> bool:
    if way == ISO and not all(ISO_WORD.fullmatch(word) for word in words):
        return False
    return bool(_parse(words[:SAMPLE], way)[1].all() and _parse(words, way)[1].all())


def _parse(words: Array, way: str) -> tuple[Array, Array]:
    """Dates, and which of the words are any."""
    found = need("pandas").to_datetime(words, format=way, errors="coerce", utc=True)
    dates: Any = np.asarray(found.tz_localize(None), dtype="datetime64[us]")
    return dates, ~np.isnat(dates)


def read_dates(column: Column, way: str, name: str, source: str) -> Array:
    """A column as dates, NaT where missing; words that are none are an error that names the row."""
    if column.kind == "date":
        return column.values
    holes = column.missing
    dates = np.full(len(column.values), "NaT", dtype="datetime64[us]")
    present = column.values[~holes]
    if present.dtype.kind == "f":  # whole numbers, read as others because of a hole
        present = np.where(np.abs(present) < 2.0**53, present, 0.0).astype(np.int64)
    words = present.astype(str).astype(object)
    dates[~holes], good = _parse(words, way)
    if not good.all():
        k = int(np.argmin(good))
        row = int(np.flatnonzero(~holes)[k])
        like = "" if way == ISO else f" ({way})"
        raise TableError(
            f"{source}: {row_words(source, row)}, column {name!r} is {str(words[k])[:60]!r}, which is no date as the "
            f"others are{like}: correct it or leave it empty"
        )
    return dates


def part_of(dates: Array, part: str) -> Array:
    """One part of dates, NaN where there is none."""
    missing = np.isnat(dates)
    known = np.where(missing, np.datetime64(0, "us"), dates)
    day, month = known.astype("datetime64[D]"), known.astype("datetime64[M]")
    hours = (known - day) / np.timedelta64(1, "h")
    days = day.astype(np.int64)
    values: Any = {
        "days": lambda: days + hours / 24.0,
        "year": lambda: known.astype("datetime64[Y]").astype(np.int64) + 1970,
        "month": lambda: month.astype(np.int64) % 12 + 1,
        "day": lambda: (day - month.astype("datetime64[D]")).astype(np.int64) + 1,
        "weekday": lambda: (days + 3) % 7,  # the first of January 1970 was a Thursday
        "hour": lambda: hours,
    }[part]()
    return np.where(missing, np.nan, values.astype(np.float64))
