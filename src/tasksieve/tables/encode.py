"""Columns as numbers: numbers stay, categories become columns of zeros and ones, a date its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse

from ..tasks.refusals import is_number
from .categories import Categories
from .dates import DateParts
from .number_words import DECIMAL_COMMA, ERROR_CELLS, beyond_doubles, is_beyond_doubles, looks_like_numbers
from .table import NAMED_CELLS, Array, CodedColumn, Column, Table, TableError, row_words
from .wide import LARGEST_WHOLE, STEP, PlainColumns, WideColumns

# Types of which a whole matrix may consist; the library reads them as they are.
KEPT = (np.float64, np.float32, np.int8, np.uint8)


@dataclass(frozen=True)
class Absence:
    """An indicator of a column: 1 where its value is missing."""

    def features(self, name: str) -> list[str]:
        return [f"missing({name})"]

    def to_json(self) -> dict[str, Any]:
        return {"missing": True}


# Of a column: a number as it is, words, a date, or whether there is a value.
Coding = Categories | DateParts | Absence | None


@dataclass
class Encoding:
    """How the columns of a table become features, fixed when a model is fitted and repeated when it predicts.

    - `columns` (sequence of (name, coding)): The coding is None for a number, the categories of a column of words, the
      parts of a date, or `Absence` for an indicator of missing values, beside the column itself.
    - `matrix_names`: Features taken from the matrix of an npz or libsvm file; then there are no columns.
    """

    columns: Sequence[tuple[str, Coding]]
    matrix_names: list[str] | None = None

    @classmethod
    def of(
        cls,
        table: Table,
        names: Sequence[str],
        categorical: Sequence[str],
        max_categories: int,
        dates: Mapping[str, DateParts] | None = None,
        references: Mapping[str, str] | None = None,
        among: Array | None = None,
    ) -> Encoding:
        """Decide how to encode the named columns of a table.

        - `categorical`: Columns of numbers that are names of things (codes), not quantities.
        - `references` (dict of column to category): Categories without an indicator, where others than those of
          `Categories.of` are wanted. None: every category has an indicator.
        - `among` (bool array): Rows whose words become categories; by default all.
        """
        coded, unused = set(categorical), dict(references or {})
        known = np.zeros(len(names), dtype=bool)
        if isinstance(table.columns, WideColumns):
            known = table.columns.positions(names) >= 0
            if known.all() and not coded and not dates and not unused:
                return cls(PlainColumns(names))
        columns: list[tuple[str, Coding]] = []
        for name, plain in zip(names, known.tolist(), strict=True):
            coding: Coding = None
            if dates and name in dates:
                coding = dates[name]
            elif name in coded or not plain:
                counts = _counted_categories(table, name, name in coded, max_categories, among)
                if counts is not None:
                    reference = unused.pop(name, None)
                    _check_reference(table, name, reference, counts)
                    every = Categories(tuple(sorted(counts)))
                    coding = every if references is None else Categories.of(counts, reference)
            columns.append((name, coding))
        for name in unused:
            raise TableError(
                f"--reference: column {name!r} of {table.source} has no categories; numbers that are names of things "
                "are declared by --categorical"
            )
        return cls(columns)

    @property
    def feature_names(self) -> list[str]:
        if self.matrix_names is not None:
            return list(self.matrix_names)
        if isinstance(self.columns, PlainColumns):
            return list(self.columns.names)
        return [feature for name, coding in self.columns for feature in _features(name, coding)]

    @property
    def categories(self) -> dict[str, Categories]:
        """Of the columns of words."""
        return {name: coding for name, coding in self.columns if isinstance(coding, Categories)}

    @property
    def sources(self) -> list[str]:
        """For each feature the column that it comes from."""
        if self.matrix_names is not None:
            return list(self.matrix_names)
        return [name for name, coding in self.columns for _ in _features(name, coding)]

    def matrix(self, table: Table, unknown: Literal["error", "zero"] = "error") -> Any:
        """The features of a table, NaN where a value is missing (all indicators of a missing word).

        - `unknown` ({"error", "zero"}): A word that was not there when the encoding was made: an error, or zero in all
          indicators, as is the reference of a column that has one.
        """
        if self.matrix_names is not None:
            return self._from_matrix(table)
        if table.matrix is not None:
            raise TableError(f"{table.source} holds a matrix, but the model was fitted to named columns")
        positions = self._positions(table)
        direct = np.flatnonzero(positions >= 0)
        wide: Any = table.columns
        for k, rows in wide.where(np.isinf, positions[direct])[:1] if len(direct) else ():
            refuse_infinite(table, int(rows[0]), self.columns[direct[k]][0])
        if len(direct) == len(positions) > 0:
            X = wide.numbers(positions)
            return X if X.dtype.type in KEPT else X.astype(np.float64)
        widths = np.array([len(_features(name, coding)) for name, coding in self.columns], dtype=np.int64)
        starts = np.cumsum(widths) - widths
        kind = np.float64 if len(direct) else self._type(table)
        X = np.empty((table.n_rows, int(widths.sum())), dtype=kind, order="F")
        for low in range(0, len(direct), STEP):
            some = direct[low : low + STEP]
            X[:, starts[some]] = wide.block[:, positions[some]]
        for k in np.flatnonzero(positions < 0).tolist():
            X[:, starts[k] : starts[k] + widths[k]] = self._encoded(*self.columns[k], table, unknown)
        return X

    def _encoded(self, name: str, coding: Coding, table: Table, unknown: str) -> Array:
        if name in table.absent and table.absent[name].all():
            return np.zeros((table.n_rows, len(_features(name, coding))))
        column = table.require(name, "the model's features")
        if column.kind == "other":
            table.usable(name)
        if coding is None:
            block = number_values(table, name)[:, None]
            for row in np.flatnonzero(np.isinf(block))[:1].tolist():
                refuse_infinite(table, row, name)
        elif isinstance(coding, DateParts):
            block = coding.matrix(column, name, table.source)
        elif isinstance(coding, Absence):
            block = column.missing.astype(np.float64)[:, None]
        else:
            block = self._indicators(column, name, coding, table, unknown)
        if name in table.absent:
            block = np.where(table.absent[name][:, None], block.dtype.type(0), block)
        return block

    def n_absent(self, table: Table, rows: Array) -> Array:
        """For each feature how many of some rows are of tasks that do not have it."""
        counts = {name: int(np.count_nonzero(own[rows])) for name, own in table.absent.items()}
        return np.array([counts.get(name, 0) for name in self.sources], dtype=np.int64)

    def _positions(self, table: Table) -> Array:
        """Where the numbers of columns are in a wide table; -1 for those that are more than that."""
        if not isinstance(table.columns, WideColumns):
            return np.full(len(self.columns), -1)
        if isinstance(self.columns, PlainColumns):
            return table.columns.positions(self.columns.names)
        positions = table.columns.positions([name for name, _ in self.columns])
        positions[[k for k, (_, coding) in enumerate(self.columns) if coding is not None]] = -1
        return positions

    def complete_columns(self, table: Table) -> list[Array] | None:
        """The columns of `matrix`, each as it lies in memory, zeros and ones in a byte; None where a value is missing
        or infinite, or of a column that is neither numbers nor words known by their codes."""
        found: list[Array] = []
        for name, coding in self.columns:
            column = table.require(name, "the model's features")
            if coding is None and column.kind == "number" and column.values.dtype.itemsize <= 8:
                if _beyond_doubles(column.values) is not None:
                    return None
                if column.values.dtype.kind == "f":
                    with np.errstate(over="ignore", invalid="ignore"):
                        if not np.isfinite(np.add.reduce(column.values)):
                            return None
                found.append(np.ascontiguousarray(column.values))
            elif isinstance(coding, Categories) and isinstance(column, CodedColumn):
                position = {word: k for k, word in enumerate(coding.words)}
                codes = np.array([position.get(word, -1) for word in column.words.tolist()] + [-1])[column.codes]
                if codes.min(initial=0) < 0:
                    return None
                found += [(codes == position[word]).view(np.uint8) for word in coding.indicators]
            else:
                return None
        return found

    def _type(self, table: Table) -> Any:
        if any(coding is not None for _, coding in self.columns):
            return np.float64
        types = {table.columns[name].values.dtype.type for name, _ in self.columns if name in table.columns}
        return types.pop() if len(types) == 1 and types <= set(KEPT) else np.float64

    def _indicators(self, column: Column, name: str, coding: Categories, table: Table, unknown: str) -> Array:
        position = {word: k for k, word in enumerate(coding.words)}
        found = as_words(column)
        codes = np.array([-2 if word is None else position.get(word, -1) for word in found], dtype=np.int64)
        strange = np.flatnonzero((codes == -1) & ~table.absent.get(name, np.False_))
        if len(strange) and unknown == "error":
            raise TableError(
                f"{table.source}: {row_words(table.source, table.first + strange[0])}, column {name!r} is "
                f"{found[strange[0]]!r}, a word that was not there when the model was fitted; --unknown zero leaves "
                "such words out"
            )
        out = np.equal.outer(codes, [position[word] for word in coding.indicators]).astype(np.float64)
        out[codes == -2] = np.nan
        return out

    def _from_matrix(self, table: Table) -> Any:
        """Columns by name; in a sparse table a column that is not there is zero."""
        assert self.matrix_names is not None
        if table.matrix is None:
            raise TableError(f"{table.source} has no matrix X, but the model was fitted to one")
        if list(table.matrix_names) == self.matrix_names:
            return table.matrix
        position = {name: j for j, name in enumerate(table.matrix_names)}
        absent = [name for name in self.matrix_names if name not in position]
        if absent and not scipy.sparse.issparse(table.matrix):
            raise TableError(f"{table.source} has no feature {absent[0]!r}")
        if not absent:
            return table.matrix[:, [position[name] for name in self.matrix_names]]
        n_known = table.matrix.shape[1]
        wide = scipy.sparse.hstack([table.matrix, scipy.sparse.csr_matrix((table.n_rows, 1))], format="csc")
        return wide[:, [position.get(name, n_known) for name in self.matrix_names]].tocsr()

    def missing(self, table: Table) -> list[tuple[str, Array]]:
        """Columns with missing values, and the rows."""
        if self.matrix_names is not None:
            return _missing_in_matrix(self._from_matrix(table), self.matrix_names)
        positions = self._positions(table)
        direct, wide = np.flatnonzero(positions >= 0), table.columns
        apart = [k for k in np.flatnonzero(positions < 0).tolist() if not isinstance(self.columns[k][1], Absence)]
        holes = {k: self._holes(self.columns[k][0], table) for k in apart}
        if isinstance(wide, WideColumns):
            holes |= {int(direct[k]): rows for k, rows in wide.where(np.isnan, positions[direct])}
        return [(self.columns[k][0], holes[k]) for k in sorted(holes) if len(holes[k])]

    def _holes(self, name: str, table: Table) -> Array:
        holes = table.require(name, "the model's features").missing
        return np.flatnonzero(holes & ~table.absent[name] if name in table.absent else holes)

    def to_json(self) -> dict[str, Any]:
        if self.matrix_names is not None:
            return {"matrix": True}
        if isinstance(self.columns, PlainColumns):
            return {"numbers": True}
        return {"columns": [[name, coding and coding.to_json()] for name, coding in self.columns]}

    @classmethod
    def from_json(cls, content: Any, names: list[str]) -> Encoding:
        """The encoding that `to_json` has written; `names` are the model's features."""
        if content.get("matrix") is True:
            return cls([], list(names))
        if content.get("numbers") is True:
            return cls(PlainColumns(list(names)))
        columns: list[tuple[str, Coding]] = []
        for name, coding in content["columns"]:
            if not isinstance(name, str):
                raise ValueError("columns of the encoding")
            if coding is None or coding == {"missing": True}:
                columns.append((name, coding and Absence()))
                continue
            dates = isinstance(coding, dict) and "parts" in coding
            kind: Any = DateParts if dates else Categories
            columns.append((name, kind.from_json(coding)))
        encoding = cls(columns)
        if encoding.feature_names != names:
            raise ValueError("columns of the encoding do not give the model's features")
        return encoding


def number_values(table: Table, name: str, flag: str = "") -> Array:
    """Of a column that must hold numbers, and may lack some."""
    column = table.usable(name, flag)
    if column.numbers is not None:
        return column.numbers
    if column.kind == "text":
        refuse_spoilt_numbers(column, name, table.source, all_numbers=True)
        words = column.values.tolist()
        if all(word is None or is_number(word) for word in words):  # digits with leading zeros
            return np.array([np.nan if word is None else float(word) for word in words])
    if column.kind != "number":
        raise TableError(f"{flag}column {name!r} of {table.source} must hold numbers")
    beyond = _beyond_doubles(column.values)
    if beyond is not None:
        raise TableError(f"{flag}column {name!r} of {table.source}: {beyond_doubles(beyond)}")
    return column.values


def _beyond_doubles(values: Array) -> int | None:
    """A whole number that no double holds."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not len(values):
        return None
    low, high = int(values.min()), int(values.max())
    return high if high > LARGEST_WHOLE else low if low < -LARGEST_WHOLE else None


def refuse_infinite(table: Table, row: int, name: str) -> None:
    raise TableError(
        f"{table.source}: {row_words(table.source, table.first + row)}, column {name!r} is infinite: correct it or "
        "drop the row"
    )


def _features(name: str, coding: Coding) -> list[str]:
    return [name] if coding is None else coding.features(name)


def _counted_categories(
    table: Table, name: str, coded: bool, most: int, among: Array | None
) -> dict[str, int] | None:
    """The words of a column that becomes categories (or numbers that are codes), and in how many rows they are; None
    for one of numbers."""
    column = table.require(name, "--features")
    if column.kind == "date":
        raise TableError(
            f"column {name!r} of {table.source} holds dates, which are no numbers: --date-parts learns from their "
            "parts, --drop leaves the column out"
        )
    if column.kind == "other":
        table.usable(name, "--features: ")
        raise TableError(
            f"--features: column {name!r} of {table.source} holds neither numbers, words nor dates (durations? "
            "lists?): turn it into numbers, or leave it out with --drop"
        )
    if not coded:
        table.usable(name, "--features: ")
        if column.kind == "number":
            return None
        refuse_spoilt_numbers(column, name, table.source)
    counts = counted_words(table.present(name, among))
    refuse_error_cells(table, name, counts)
    if len(counts) > most:
        raise TableError(
            f"--features: column {name!r} of {table.source} has {len(counts)} different words, more than "
            f"--max-categories {most}: leave it out with --drop (an identifier? then --id), or raise the limit"
        )
    return counts


def _check_reference(table: Table, name: str, reference: str | None, counts: Mapping[str, int]) -> None:
    if reference is not None and reference not in counts:
        words = sorted(counts)
        shown = ", ".join(map(repr, words[:NAMED_CELLS])) + (", ..." if len(words) > NAMED_CELLS else "")
        raise TableError(
            f"--reference: column {name!r} of {table.source} has no category {reference!r}; it has {shown}"
        )


def _missing_in_matrix(matrix: Any, names: Sequence[str]) -> list[tuple[str, Array]]:
    if matrix.dtype.kind != "f":
        return []
    if scipy.sparse.issparse(matrix):
        entries = matrix.tocoo()
        bad = np.isnan(entries.data)
        rows, columns = entries.row[bad], entries.col[bad]
    else:
        rows, columns = np.nonzero(np.isnan(matrix))
    return [(names[j], np.sort(rows[columns == j])) for j in np.unique(columns).tolist()]


def as_words(column: Column) -> list[str | None]:
    """The values as words; whole numbers without a decimal point. Of a column that went by, each word once."""
    if column.seen is not None:
        return list(column.seen.words)
    if column.kind == "text":
        return column.values.tolist()
    words: list[str | None] = []
    for value in column.values.tolist():
        if value != value:
            words.append(None)
        else:
            words.append(str(int(value)) if value == int(value) else repr(value))
    return words


def counted_words(column: Column) -> dict[str, int]:
    """The different words of a column, and in how many rows they are."""
    if column.seen is not None:
        return dict(column.seen.words)
    if not isinstance(column, CodedColumn):
        return Counter(word for word in as_words(column) if word is not None)
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.words))
    return {word: count for word, count in zip(column.words.tolist(), counts.tolist(), strict=True) if count}


def refuse_spoilt_numbers(column: Column, name: str, source: str, all_numbers: bool = False) -> None:
    """Words that are mostly numbers are a column of numbers with something else in it: say where. Those with decimal
    commas would each become a category of their own."""
    if column.seen is not None:
        (n_present, n_others, first), words = column.seen.spoilt, set(column.seen.words)
    else:
        present = [(row, word) for row, word in enumerate(column.values.tolist()) if word is not None]
        words = {word for _, word in present}
        others = [(row, word) for row, word in present if not is_number(word)]
        n_present, n_others, first = len(present), len(others), others[0] if others else None
    if first is not None and (all_numbers or 2 * n_others <= n_present):
        row, word = first
        if DECIMAL_COMMA.fullmatch(word):
            raise TableError(
                f"{source}: {row_words(source, row)}, column {name!r} is {word[:60]!r}, with a decimal comma, and the "
                "file has decimal points, too: write all numbers alike, or say --decimal ','"
            )
        why = "but the column holds numbers"
        if row == 0 and n_others == 1 and not any(sign.isdigit() for sign in word):
            why += " (a second row of header? Delete it)"
        raise TableError(
            f"{source}: {row_words(source, row)}, column {name!r} is {word[:60]!r}, {why}: correct "
            "it, leave it empty, or say --categorical if these numbers are names"
        )
    commas = sorted(word for word in words if DECIMAL_COMMA.fullmatch(word))
    if commas and all(DECIMAL_COMMA.fullmatch(word) or is_number(word) for word in words):
        raise TableError(
            f"column {name!r} of {source} holds numbers with a decimal comma ({commas[0][:60]!r}): write all "
            "numbers alike or say --decimal ',' (of CSV files), leave the column out with --drop, or say "
            "--categorical if these are names"
        )
    beyond = next(filter(is_beyond_doubles, words), None)
    if beyond is not None and all(word.strip().lstrip("+-").isdigit() for word in words):
        raise TableError(f"column {name!r} of {source}: {beyond_doubles(beyond)}")
    decorated = [word for word in words if not is_number(word)]
    if decorated and looks_like_numbers(words):
        raise TableError(
            f"column {name!r} of {source} holds numbers with more than digits ({min(decorated)[:60]!r}): write them as "
            "numbers, leave the column out with --drop, or say --categorical if these are names"
        )


def refuse_error_cells(table: Table, name: str, words: Iterable[str]) -> None:
    """Words that a spreadsheet shows where a formula has no result are no words."""
    wrong = sorted(ERROR_CELLS.intersection(words))
    if wrong:
        raise TableError(
            f"column {name!r} of {table.source} has cells with {wrong[0]}, the error of a formula: correct them, or "
            "leave them empty"
        )
