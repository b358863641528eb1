"""Columns that name the rows: to learn from them is to learn nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..tasks.refusals import is_number
from .number_words import are_digits
from .table import Column

# In fewer rows than these, different words or consecutive numbers may be a coincidence.
FEWEST_WORDS = 10
FEWEST_NUMBERS = 20
# Consecutive years, one a row, are a time series and no ids.
YEARS = (1800, 2200)
CALLED_ID = re.compile(r"(?:^|[\W_])(?:id|uuid|key)$|[a-z]I[Dd]$|^I[Dd]$", re.ASCII)


def row_names(column: Column) -> list[Any]:
    """What a column calls the rows: words, dates as text, whole numbers as such; None where it is empty."""
    if column.kind == "date":
        values = np.datetime_as_string(column.values, unit="auto").tolist()
    else:
        values = column.values.tolist()
    holes = column.missing.tolist()
    whole = column.kind == "number" and not np.any(np.mod(column.values[~column.missing], 1))
    return [None if hole else int(v) if whole else v for v, hole in zip(values, holes, strict=True)]


def why_id(name: str, column: Column) -> str | None:
    """Why a column looks like an id, in words; None where it does not.

    Words that all differ, whole numbers that are consecutive in whatever order, or that all differ in a column called
    id. Words that are mostly numbers are a spoilt column of numbers and no id; digits that a file keeps as words are.
    """
    if column.seen is not None:
        return column.seen.why_id(name)
    if column.kind == "text":
        words = column.values[~column.missing].tolist()
        different = len(set(words)) == len(words)
        names = different and not are_digits(words)
        return why_words(len(words), different, sum(map(is_number, words)) if names else 0)
    if column.kind == "number" and column.values.dtype.kind in "iu" and len(column.values):
        values = column.values
        low, high = int(values.min()), int(values.max())
        return why_whole_numbers(name, len(values), low, high, lambda _: len(np.unique(values)) == len(values))
    return None


def why_words(count: int, different: bool, n_numbers: int) -> str | None:
    """The same of so many words."""
    ids = count >= FEWEST_WORDS and different and 2 * n_numbers < count
    return f"{count:,} words, all different" if ids else None


def why_whole_numbers(name: str, count: int, low: int, high: int, different: Callable[[bool], bool]) -> str | None:
    """The same of so many whole numbers; whether they all differ is asked only where it matters, and given whether they
    would then be consecutive."""
    consecutive = high - low == count - 1
    if count < FEWEST_NUMBERS or not (consecutive or CALLED_ID.search(name)):
        return None
    if (YEARS[0] <= low and high <= YEARS[1]) or not different(consecutive):
        return None
    return f"whole numbers from {low} to {high}, {'each once' if consecutive else 'all different'}"
