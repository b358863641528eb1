"""One type for every table, wherever it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]

# Places named in a message about missing values; the rest are counted.
NAMED_CELLS = 5
NAMED_FILES = 3
# What a first column without a name in the header is called: the row names that R and pandas write.
UNNAMED = "Unnamed: 0"
# Names that one which is not there is compared with.
MOST_COMPARED = 5000


class StackedFiles(str):
    """The name of a table that is several files, one after another; it knows in which of them a row is."""

    files: list[str]
    sizes: list[int]
    parts: list[str]

    def __new__(cls, files: Sequence[str], sizes: Sequence[int], parts: Sequence[str] = ()) -> StackedFiles:
        """`parts`: The names of the tables, which may know what a message calls their rows."""
        shown = ", ".join(files[:NAMED_FILES]) + (", ..." if len(files) > NAMED_FILES else "")
        self = super().__new__(cls, f"{len(files)} file{'s' if len(files) > 1 else ''} ({shown})")
        self.files, self.sizes, self.parts = list(files), list(sizes), list(parts)
        return self

    def row_words(self, row: int) -> str:
        """What a message calls a row."""
        ends = np.cumsum(self.sizes)
        k = int(np.searchsorted(ends, row, side="right"))
        name, own = self.position(row)
        return f"{row_words(self.parts[k] if self.parts else name, own)} of {name}"

    def position(self, row: int) -> tuple[str, int]:
        """The file that a row is in, and its position there, counted from 0."""
        ends = np.cumsum(self.sizes)
        k = int(np.searchsorted(ends, row, side="right"))
        return self.files[k], int(row) - int(ends[k] - self.sizes[k])

    def rows(self) -> Array:
        """For every row its position in its file."""
        return np.concatenate([np.arange(size) for size in self.sizes])


class NamedRows(str):
    """The name of a table whose rows have names; it knows what a message calls a row."""

    names: list[str]

    def __new__(cls, name: str, names: Sequence[str]) -> NamedRows:
        self = super().__new__(cls, name)
        self.names = list(names)
        return self


class TableError(ValueError):
    """Something is wrong with a table; the message says where and what to do."""


@dataclass
class Column:
    """A named column.

    - `kind`: "other": durations, lists, anything that is neither a number nor a word nor a date.
    - `values`: Numbers (NaN where missing), strings (None where missing), or datetime64[us] (NaT where missing).
    """

    kind: Literal["number", "text", "date", "other"]
    values: Array
    #: what is known of a column whose rows went by in chunks (`seen.SeenColumn`); then there are no values
    seen: Any = None
    #: why the column cannot be used as it is, where its file says more than its values do
    refusal: str = ""
    #: numbers that the words are labels of
    numbers: Array | None = None
    #: the words from the lowest to the highest, where they are categories that have an order
    ordered: tuple[str, ...] = ()

    def order(self, rows: Array) -> list[str] | None:
        """The words of some rows from the lowest to the highest, where the file knows that; else None."""
        words = [word for word in self.values[rows].tolist() if word is not None] if self.kind == "text" else []
        if self.ordered:
            present = set(words)
            return [word for word in self.ordered if word in present]
        if not words or self.numbers is None:
            return None
        numbers = self.numbers[rows]
        pairs = sorted(set(zip(numbers[~np.isnan(numbers)].tolist(), words, strict=True)))
        found = [word for _, word in pairs]
        return found if len(set(found)) == len(found) else None  # files may have numbered the words differently

    @property
    def missing(self) -> Array:
        """Which rows have no value."""
        if self.kind == "number":
            real = self.values.dtype.kind == "f"
            return np.isnan(self.values) if real else np.zeros(len(self.values), dtype=bool)
        if self.kind == "date":
            return np.isnat(self.values)
        return np.array([value is None for value in self.values], dtype=bool)


class CodedColumn(Column):
    """A column of words, each row by the position of its word, -1 where it is missing; some words may be in no row."""

    def __init__(self, words: Array, codes: Array) -> None:
        self.kind, self.words, self.codes, self.seen = "text", words, codes, None
        self.refusal, self.numbers, self.ordered = "", None, ()

    @property
    def values(self) -> Array:  # type: ignore[override]
        return np.array([*self.words.tolist(), None], dtype=object)[self.codes]

    @property
    def missing(self) -> Array:
        return self.codes < 0


@dataclass
class Table:
    """A table: named columns, and for npz and libsvm files a matrix of features beside them.

    - `source`: Name of the file, for messages.
    - `columns`: In the order of the file; of very many columns a `wide.WideColumns`.
    - `matrix` (array or CSR matrix of shape (n, d)): Features that have no columns of their own.
    - `groups` (dict of name to names): A name that stands for several columns, those of a 2-D array in an npz file.
    - `first`: Rows of the file before these, where this is a chunk of it.
    - `absent` (dict of column to bool array of shape (n,)): Rows of tasks that do not have the column: their features
      are zero, and nothing is missing there.
    - `notes`: How the file was read, where that is not as most files are.
    - `recognised` (dict of str): How the file is written: encoding, separator, decimal sign, sheet.
    """

    source: str
    n_rows: int
    columns: Mapping[str, Column]
    matrix: Any = None
    matrix_names: Sequence[str] = ()
    groups: dict[str, list[str]] = field(default_factory=dict)
    first: int = 0
    absent: Mapping[str, Array] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    recognised: dict[str, str] = field(default_factory=dict)

    def require(self, name: str, role: str) -> Column:
        """The column of that name; `role` says in an error what it was needed for."""
        if name not in self.columns:
            raise TableError(f"{role}: {self.source} has no column {name!r}{self._hint(name)}")
        return self.columns[name]

    def rows_of(self, name: str, among: Array | None = None) -> Array | None:
        """Rows (a mask) of tasks that have a column, and that are `among` these; None for all rows."""
        if name not in self.absent:
            return among
        own = ~self.absent[name]
        return own if among is None else own & among

    def present(self, name: str, among: Array | None = None) -> Column:
        """A column without the rows of tasks that do not have it, and without those that are not `among` (a mask)."""
        column, own = self.columns[name], self.rows_of(name, among)
        if own is None:
            return column
        numbers = None if column.numbers is None else column.numbers[own]
        return Column(column.kind, column.values[own], column.seen, column.refusal, numbers)

    def usable(self, name: str, flag: str = "") -> Column:
        """A column that says why where it cannot be used."""
        column = self.columns[name]
        if column.refusal:
            raise TableError(f"{flag}column {name!r} of {self.source}: {column.refusal}")
        return column

    def match(self, patterns: Iterable[str], role: str, among: Sequence[str]) -> list[str]:
        """Names that are given or match a glob, in the order of the patterns; each pattern must find something."""
        known = set(among)
        found: dict[str, None] = {}
        for pattern in patterns:
            if pattern in known:
                found[pattern] = None
                continue
            if pattern in self.groups and set(self.groups[pattern]) <= known:
                found.update(dict.fromkeys(self.groups[pattern]))
                continue
            names = glob(pattern, among)
            if not names:
                raise TableError(f"{role}: {self.source} has no column {pattern!r}{self._hint(pattern)}")
            found.update(dict.fromkeys(names))
        return list(found)

    def _hint(self, name: str) -> str:
        from difflib import get_close_matches

        names = [*self.columns, *self.groups]
        close = get_close_matches(name, names[:MOST_COMPARED], n=1)
        shown = ", ".join(repr(other) for other in names[:8]) + (", ..." if len(names) > 8 else "")
        return f"; did you mean {close[0]!r}?" if close else f"; it has {shown}" if names else ""


def column_names(words: Iterable[Any]) -> list[str]:
    """Names of columns as a header has them, without spaces at their ends; a first one without a name is `UNNAMED`."""
    names = [str(word).strip() for word in words]
    if len(names) > 1 and not names[0]:
        names[0] = UNNAMED
    return names


def tidy_labels(values: Array) -> Array:
    """Labels in their plainest type: words as strings, whole floats (a column with a hole was read so) as integers."""
    if values.dtype == object and all(issubclass(kind, str) for kind in set(map(type, values))):
        return values.astype(str)
    if values.dtype.kind == "f" and np.all(np.isfinite(values)) and np.all(np.abs(values) < 2**53):
        whole = values.astype(np.int64)
        return whole if np.array_equal(whole, values) else values
    return values


def glob(pattern: str, names: Iterable[str]) -> list[str]:
    """Names that match a pattern; none matches one that is a plain name."""
    return [name for name in names if fnmatchcase(name, pattern)] if set("*?[") & set(pattern) else []


def few(words: Sequence[str], most: int = NAMED_CELLS) -> str:
    """The first words; the rest are counted."""
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def row_number(row: int) -> int:
    """Rows are counted from 1, the header not counted."""
    return int(row) + 1


def row_words(source: str, row: int) -> str:
    """What a message calls a row of a table; the position of the row is counted from 0."""
    if isinstance(source, StackedFiles):
        return source.row_words(row)
    if isinstance(source, NamedRows):
        return source.names[row]
    return f"row {row_number(row)}"
