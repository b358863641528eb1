"""Columns as numbers: numbers stay, words become one column of zeros and ones per word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse

from .table import Array, Column, Table, TableError, row_number

# Types of which a whole matrix may consist; the library reads them as they are.
KEPT = (np.float64, np.float32, np.int8, np.uint8)


@dataclass
class Encoding:
    """How the columns of a table become features, fixed when a model is fitted and repeated when it predicts.

    Attributes
    ----------
    columns : list of (name, categories)
        Categories are None for a number, else the words in the order of their indicator columns.
    matrix_names : list of names, optional
        Features taken from the matrix of an npz or libsvm file; then there are no columns.
    """

    columns: list[tuple[str, list[str] | None]]
    matrix_names: list[str] | None = None

    @classmethod
    def of(
        cls, table: Table, names: Sequence[str], categorical: Sequence[str], max_categories: int
    ) -> Encoding:
        """Decide how to encode the named columns of a table.

        Parameters
        ----------
        table : Table
        names : sequence of str
        categorical : sequence of str
            Columns of numbers that are names of things (codes), not quantities.
        max_categories : int
            More words than this in one column are an error.
        """
        columns: list[tuple[str, list[str] | None]] = []
        for name in names:
            column = table.require(name, "--features")
            if column.kind == "other":
                raise TableError(
                    f"--features: column {name!r} of {table.source} holds neither numbers nor words (dates? lists?): "
                    "turn it into numbers, or leave it out"
                )
            if column.kind == "number" and name not in categorical:
                columns.append((name, None))
                continue
            if name not in categorical:
                refuse_spoilt_numbers(column, name, table.source)
            words = sorted({word for word in as_words(column) if word is not None})
            if len(words) > max_categories:
                raise TableError(
                    f"--features: column {name!r} of {table.source} has {len(words)} different words, more than "
                    f"--max-categories {max_categories}: leave it out (an identifier?) or raise the limit"
                )
            columns.append((name, words))
        return cls(columns)

    @property
    def feature_names(self) -> list[str]:
        if self.matrix_names is not None:
            return list(self.matrix_names)
        names: list[str] = []
        for name, words in self.columns:
            names += [name] if words is None else [f"{name}={word}" for word in words]
        return names

    def matrix(self, table: Table, unknown: Literal["error", "zero"] = "error") -> Any:
        """The features of a table, NaN where a value is missing (all indicators of a missing word).

        Parameters
        ----------
        table : Table
        unknown : {"error", "zero"}
            A word that was not there when the encoding was made: an error, or zero in all its indicators.
        """
        if self.matrix_names is not None:
            return self._from_matrix(table)
        if table.matrix is not None:
            raise TableError(f"{table.source} holds a matrix, but the model was fitted to named columns")
        names = self.feature_names
        X = np.empty((table.n_rows, len(names)), dtype=self._type(table), order="F")
        k = 0
        for name, words in self.columns:
            column = table.require(name, "the model's features")
            if words is None:
                X[:, k] = self._numbers(column, name, table)
                k += 1
            else:
                X[:, k : k + len(words)] = self._indicators(column, name, words, table, unknown)
                k += len(words)
        return X

    def _type(self, table: Table) -> Any:
        if any(words is not None for _, words in self.columns):
            return np.float64
        types = {table.columns[name].values.dtype.type for name, _ in self.columns if name in table.columns}
        return types.pop() if len(types) == 1 and types <= set(KEPT) else np.float64

    def _numbers(self, column: Column, name: str, table: Table) -> Array:
        if column.kind == "text":
            refuse_spoilt_numbers(column, name, table.source, all_numbers=True)
        if column.kind != "number":
            raise TableError(f"column {name!r} of {table.source} must hold numbers")
        values = column.values
        if values.dtype.kind == "f" and np.isinf(values).any():
            row = int(np.flatnonzero(np.isinf(values))[0])
            raise TableError(
                f"{table.source}: row {row_number(row)}, column {name!r} is infinite: correct it or drop the row"
            )
        return values

    def _indicators(self, column: Column, name: str, words: list[str], table: Table, unknown: str) -> Array:
        place = {word: k for k, word in enumerate(words)}
        found = as_words(column)
        codes = np.array([-2 if word is None else place.get(word, -1) for word in found], dtype=np.int64)
        strange = np.flatnonzero(codes == -1)
        if len(strange) and unknown == "error":
            raise TableError(
                f"{table.source}: row {row_number(strange[0])}, column {name!r} is {found[strange[0]]!r}, a word that "
                "was not there when the model was fitted; --unknown zero leaves such words out"
            )
        out = np.zeros((len(codes), len(words)))
        known = np.flatnonzero(codes >= 0)
        out[known, codes[known]] = 1.0
        out[codes == -2] = np.nan
        return out

    def _from_matrix(self, table: Table) -> Any:
        """Columns by name; in a sparse table a column that is not there is zero."""
        assert self.matrix_names is not None
        if table.matrix is None:
            raise TableError(f"{table.source} has no matrix X, but the model was fitted to one")
        if list(table.matrix_names) == self.matrix_names:
            return table.matrix
        place = {name: j for j, name in enumerate(table.matrix_names)}
        absent = [name for name in self.matrix_names if name not in place]
        if absent and not scipy.sparse.issparse(table.matrix):
            raise TableError(f"{table.source} has no feature {absent[0]!r}")
        if not absent:
            return table.matrix[:, [place[name] for name in self.matrix_names]]
        n_known = table.matrix.shape[1]
        wide = scipy.sparse.hstack([table.matrix, scipy.sparse.csr_matrix((table.n_rows, 1))], format="csc")
        return wide[:, [place.get(name, n_known) for name in self.matrix_names]].tocsr()

    def missing(self, table: Table) -> list[tuple[str, Array]]:
        """Columns with missing values, and the rows."""
        if self.matrix_names is not None:
            return _missing_in_matrix(self._from_matrix(table), self.matrix_names)
        found = []
        for name, _ in self.columns:
            rows = np.flatnonzero(table.require(name, "the model's features").missing)
            if len(rows):
                found.append((name, rows))
        return found

    def to_json(self) -> dict[str, Any]:
        if self.matrix_names is not None:
            return {"matrix": True}
        return {"columns": [[name, words] for name, words in self.columns]}

    @classmethod
    def from_json(cls, content: Any, names: list[str]) -> Encoding:
        """The encoding that `to_json` has written; `names` are the model's features."""
        if content.get("matrix") is True:
            return cls([], list(names))
        columns: list[tuple[str, list[str] | None]] = []
        for name, words in content["columns"]:
            if not isinstance(name, str) or not (
                words is None or all(isinstance(word, str) for word in words)
            ):
                raise ValueError("columns of the encoding")
            columns.append((name, None if words is None else list(words)))
        encoding = cls(columns)
        if encoding.feature_names != names:
            raise ValueError("columns of the encoding do not give the model's features")
        return encoding


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
    """The values as words; whole numbers without a decimal point."""
    if column.kind == "text":
        return column.values.tolist()
    words: list[str | None] = []
    for value in column.values.tolist():
        if value != value:
            words.append(None)
        else:
            words.append(str(int(value)) if value == int(value) else repr(value))
    return words


def refuse_spoilt_numbers(column: Column, name: str, source: str, all_numbers: bool = False) -> None:
    """Words that are mostly numbers are a column of numbers with something else in it: say where."""
    present = [(row, word) for row, word in enumerate(column.values.tolist()) if word is not None]
    others = [(row, word) for row, word in present if not is_number(word)]
    if others and (all_numbers or 2 * len(others) <= len(present)):
        row, word = others[0]
        raise TableError(
            f"{source}: row {row_number(row)}, column {name!r} is {word[:60]!r}, but the column holds numbers: correct "
            "it, leave it empty, or say --categorical if these numbers are names"
        )


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
