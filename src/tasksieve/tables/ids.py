"""Columns that name the rows: to learn from them is to learn nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ..tasks.refusals import is_number
from .number_words import are_digits
from .table import UNNAMED, Array, CodedColumn, Column

# In fewer rows than these, different words or consecutive numbers may be a coincidence.
FEWEST_WORDS = 10
FEWEST_NUMBERS = 20
# Fewer different values than these are no names of rows, whatever the column is called: "patient" may be yes or no.
FEWEST_NAMES = 3
# Consecutive years, one a row, are a time series and no ids.
YEARS = (1800, 2200)

# --- names of columns ------------------------------------------------------------------------------------------------

_PEOPLE = "patient(?:en)?|subject|participant|person|individual|respondent|proband(?:en)?"
_NUMBERED = f"{_PEOPLE}|pat|pt|subj|case|record|sample|specimen|animal|mouse|row|obs|observation"
_OTHERS = "donor|family|household|student|pupil|child|customer|client|user|member|employee|study|encounter|admission"
_NUMBER = "id|no|nr|num|number|nummer|code|key|uuid|identifier"
# A column so called names the rows, or whom they are about, unless its values say otherwise: the whole name, so that
# humidity, lipid and the gene ID1 are none; nor are counts of them ("patients"), nor IDS, which is a gene, too.
_NAMES_ROWS = re.compile(
    rf"[\W_]*(?:id|[peisuf]id|uuid|guid|mrn|usubjid|identifier|record|{_PEOPLE}"
    rf"|(?:{_NUMBERED})[\W_]*(?:{_NUMBER})|(?:{_OTHERS})[\W_]*(?:id|uuid|key)|id[\W_]*(?:{_PEOPLE}))[\W_]*",
    re.ASCII | re.IGNORECASE,
)
# Row names: as R and pandas write them, without a name or with one that other programs gave them.
_ROW_NAMES = re.compile(r"Unnamed: 0(?:\.\d+)*|__index_level_\d+__|row[\W_]*names?", re.ASCII | re.IGNORECASE)
# So called, whole numbers that all differ are ids, consecutive or not.
_CALLED_ID = re.compile(r"(?:^|[\W_])(?:id|uuid|key)$|[a-z]I[Dd]$|^I[Dd]$", re.ASCII)
_RUNNING = re.compile(r"[Ii]ds|(?i:index|level_0|row|obs|seq|seqno|serial)")
# Times of a task count 1, 2, 3, ... in every task, and are no ids of its rows.
_TIMES = re.compile(
    r"(?:^|[\W_])(?:t|time|day|week|month|quarter|year|hour|minute|second|date|visit|wave|period|cycle|step|round|session"
    r"|trial|age|dose)s?(?:$|[\W_])",
    re.ASCII | re.IGNORECASE,
)


def names_rows(name: str) -> bool:
    """Return whether a column so called names the rows, or whom they are about."""
    return _NAMES_ROWS.fullmatch(name) is not None or is_row_names(name)


def called_id(name: str) -> bool:
    """Return whether whole numbers that all differ are ids in a column so called."""
    return _CALLED_ID.search(name) is not None or _RUNNING.fullmatch(name) is not None


def judged_by_values(name: str) -> str:
    """A name that says as much of a column as its own did in version 0.2."""
    return "key" if _CALLED_ID.search(name) else ""


def is_row_names(name: str) -> bool:
    """Return whether a column so called is the index of a data frame."""
    return _ROW_NAMES.fullmatch(name) is not None


# --- values ----------------------------------------------------------------------------------------------------------


# What an id is known by: its name and its values, in files and tasks too; or the values of all rows, as in version 0.2.
Ids = Literal["names", "values"]


class Part(NamedTuple):
    """A division of the rows, each part of which may count its own.

    - `word`: What a part is called: file, task.
    - `codes` (int array of shape (n,)): The part of each row, -1 where it is in none.
    """

    word: str
    codes: Array


def row_names(column: Column) -> list[Any]:
    """What a column calls the rows: words, dates as text, whole numbers as such; None where it is empty."""
    if column.kind == "date":
        values = np.datetime_as_string(column.values, unit="auto").tolist()
    else:
        values = column.values.tolist()
    holes = column.missing.tolist()
    whole = column.kind == "number" and not np.any(np.mod(column.values[~column.missing], 1))
    return [None if hole else int(v) if whole else v for v, hole in zip(values, holes, strict=True)]


def value_codes(column: Column) -> tuple[Array, int]:
    """The values of a column as numbers from 0, -1 where it is empty, and how many different ones there are."""
    if isinstance(column, CodedColumn):
        used, codes = np.unique(column.codes, return_inverse=True)
        n_empty = int(len(used) > 0 and used[0] < 0)
        return codes - n_empty, len(used) - n_empty
    if column.kind in ("number", "date"):
        codes = np.full(len(column.values), -1, dtype=np.int64)
        present = ~column.missing
        values, codes[present] = np.unique(column.values[present], return_inverse=True)
        return codes, len(values)
    position: dict[Any, int] = {}
    words = (None if value is None else str(value) for value in column.values.tolist())
    found = [-1 if word is None else position.setdefault(word, len(position)) for word in words]
    return np.array(found, dtype=np.int64), len(position)


def come_again(codes: Array, tasks: Array | None = None) -> bool:
    """Return whether a value but -1, missing, comes again, within one of the tasks (codes) where there are any."""
    known = codes >= 0
    if tasks is None:
        return len(np.unique(codes[known])) < int(np.count_nonzero(known))
    pairs = codes[known] + tasks[known].astype(np.int64) * (int(codes.max(initial=0)) + 1)
    return len(np.unique(pairs)) < len(pairs)


def why_id(name: str, column: Column, parts: Sequence[Part] = (), ids: Ids = "names") -> str | None:
    """Why a column looks like an id, in words; None where it does not.

    By its name, whatever its values are, as long as there are more than two different ones: words or whole numbers. By
    its values, over all rows or in every part: words that all differ, whole numbers that are consecutive in whatever
    order, or that all differ in a column called id. Words that are mostly numbers are a spoilt column of numbers and no
    id; digits that a file keeps as words are. `ids`: "values" for the values of all rows alone, as version 0.2 judged.
    """
    if column.seen is not None:
        return column.seen.why_id(name, ids)
    if ids == "values":
        parts, name = (), judged_by_values(name)
    if is_row_names(name) and column.kind != "date":
        return why_row_names(name)
    why = None
    if column.kind == "text":
        why = _why_text(column, parts)
    elif column.kind == "number" and column.values.dtype.kind in "iu" and len(column.values):
        why = _why_wholes(name, column.values, parts)
    if why is None and column.kind in ("text", "number") and names_rows(name):
        known = column.values[~column.missing]
        if column.kind == "text" or not np.any(np.mod(known, 1)):
            codes, n_different = value_codes(column)
            apart = (part.word for part in parts if not come_again(np.where(part.codes < 0, -1, codes), part.codes))
            why = why_called(n_different, len(known), next(apart, None))
    return why


def why_row_names(name: str) -> str:
    """The same of an index."""
    return "row names, without a name in the header" if name == UNNAMED else "row names"


def why_called(n_different: int, count: int, part: str | None) -> str | None:
    """The same of a column that is called so, by its different values; and in parts of which word they all differ."""
    if n_different < FEWEST_NAMES:
        return None
    again = f"{n_different:,} different values in {count:,} rows" if part is None else f"all different in every {part}"
    return f"by its name; {'all different' if n_different == count else again}"


def _why_text(column: Column, parts: Sequence[Part]) -> str | None:
    words = column.values[~column.missing].tolist()
    codes, n_different = value_codes(column)
    if are_digits(words):
        n_numbers = 0
    else:
        n_numbers = sum(map(is_number, words)) if n_different == len(words) or parts else 0
    why = why_words(len(words), n_different == len(words), n_numbers)
    if why is not None or 2 * sum(any(map(str.isdigit, word)) for word in words) <= len(words):
        return why  # words that come again in other parts may be names of things; with digits they are codes
    for part in parts:
        present = (part.codes >= 0) & (codes >= 0)
        largest = _largest(part.codes[present])
        if not come_again(codes[present], part.codes[present]) and why_words(largest, True, n_numbers):
            return f"{len(words):,} words, all different in every {part.word}"
    return None


def _why_wholes(name: str, values: Array, parts: Sequence[Part]) -> str | None:
    def different(_: bool) -> bool:
        return len(np.unique(values)) == len(values)

    why = why_whole_numbers(name, len(values), int(values.min()), int(values.max()), different)
    for part in parts if why is None else ():
        inside = part.codes >= 0
        own, codes = (values, part.codes) if inside.all() else (values[inside], part.codes[inside])
        if not len(own):
            continue
        first = own[codes == codes[0]]
        running = int(first.max()) - int(first.min()) == len(first) - 1
        if not running and not called_id(name):
            continue
        order = np.lexsort((own, codes))
        steps = np.diff(own[order])[np.diff(codes[order]) == 0]
        apart = bool(np.all(steps != 0))  # not of a sign: whole numbers may have none
        each_once = bool(np.all(steps == 1))
        sizes = _largest(codes), int(own.min()), int(own.max())
        why = why_in_parts(name, part.word, *sizes, apart, each_once)
        if why is not None:
            return why
    return why


def _largest(codes: Array) -> int:
    return int(np.bincount(codes).max(initial=0))


def why_words(count: int, different: bool, n_numbers: int) -> str | None:
    """The same of so many words."""
    ids = count >= FEWEST_WORDS and different and 2 * n_numbers < count
    return f"{count:,} words, all different" if ids else None


def why_whole_numbers(name: str, count: int, low: int, high: int, different: Callable[[bool], bool]) -> str | None:
    """The same of so many whole numbers; whether they all differ is asked only where it matters, and given whether they
    would then be consecutive."""
    consecutive = high - low == count - 1
    if count < FEWEST_NUMBERS or not (consecutive or called_id(name)):
        return None
    if (YEARS[0] <= low and high <= YEARS[1]) or not different(consecutive):
        return None
    return f"whole numbers from {low} to {high}, {'each once' if consecutive else 'all different'}"


def why_in_parts(
    name: str, word: str, largest: int, low: int, high: int, different: bool, consecutive: bool
) -> str | None:
    """The same of whole numbers that all differ, or are consecutive, in every part, the largest of which has so many
    rows."""
    if largest < FEWEST_NUMBERS or (YEARS[0] <= low and high <= YEARS[1]):
        return None
    if not (consecutive and not _TIMES.search(name)) and not (different and called_id(name)):
        return None
    return f"whole numbers from {low} to {high}, {'each once' if consecutive else 'all different'} in every {word}"


def of_rows(names: Iterable[str]) -> list[str]:
    """Columns that are called ids."""
    return [name for name in names if names_rows(name)]
