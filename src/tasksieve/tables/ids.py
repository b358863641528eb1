"""Columns that name the rows: to learn from them is to learn nothing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..tasks.no_numbers import is_number
from .table import Array, Column

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
    id. Words that are mostly numbers are a spoilt column of numbers and no id.
    """
    if column.seen is not None:
        return column.seen.why_id(name)
    if column.kind == "text":
        return _words(column.values[~column.missing])
    if column.kind == "number" and column.values.dtype.kind in "iu":
        return _whole_numbers(name, column.values)
    return None


def _words(words: Array) -> str | None:
    if len(words) < FEWEST_WORDS or len(set(words.tolist())) < len(words):
        return None
    if 2 * sum(map(is_number, words.tolist())) >= len(words):
        return None
    return f"{len(words):,} words, all different"


def _whole_numbers(name: str, values: Array) -> str | None:
    if len(values) < FEWEST_NUMBERS:
        return None
    low, high = int(values.min()), int(values.max())
    consecutive = high - low == len(values) - 1
    if not consecutive and not CALLED_ID.search(name):
        return None
    if (YEARS[0] <= low and high <= YEARS[1]) or len(np.unique(values)) < len(values):
        return None
    return f"whole numbers from {low} to {high}, {'each once' if consecutive else 'all different'}"
