"""Tables larger than memory: a chunk at a time, from a file or from standard input."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ..tasks.refusals import is_number
from .encode import Encoding
from .frame_columns import from_frame
from .frames import read_frames, read_libsvm_rows, text_form
from .ids import Part, value_codes, why_id
from .row_columns import RowColumns
from .table import Column, Table, TableError, row_number
from .text_form import TextForm, known_encoding, said_separator

Chunk = tuple[Any, Any, Any, Any]  # X, y, task, sample_weight
STREAMED = ("csv", "parquet", "libsvm")


@dataclass
class ChunkReader:
    """Reads a table, a path or a binary file, in chunks that the online models take; columns are named as in `prepare`.
    The first chunk fixes the features; `n_features` are those of a libsvm file. Columns that look like ids there are
    left out but for those to `keep`, by default all."""

    source: Any
    name: str
    format: str
    target: str | None
    task: str | None = None
    weights: str | None = None
    features: Sequence[str] = ()
    keep: Sequence[str] = ("*",)
    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    missing: Literal["error", "drop"] = "error"
    classes: bool = False
    chunk_rows: int = 10_000
    n_features: int | None = None
    feature_names: list[str] = field(default_factory=list)
    n_read: int = 0
    n_dropped: int = 0
    notes: list[str] = field(default_factory=list)
    #: the type of the task labels, fixed by the first chunk: a task is called the same in all of them
    task_kind: str = ""

    def __iter__(self) -> Iterator[Chunk]:
        if self.format == "libsvm":
            yield from self._libsvm()
            return
        if self.target is None:
            raise TableError("--target: name the column to predict")
        columns = RowColumns([self.target], self.task, self.weights)
        options: dict[str, Any] = {"name": self.name, "chunk_rows": self.chunk_rows}
        if self.format == "csv":
            options["form"] = self._form()
            self.notes = options["form"].notes(self.name)
        for frame in read_frames(self.source, self.format, **options):
            if len(frame):
                yield self._chunk(from_frame(frame, self.name), columns)
                self.n_read += len(frame)

    def _form(self) -> TextForm:
        """How the text is written; of standard input, which is read once, as most files are."""
        said = {"separator": self.separator, "encoding": self.encoding, "decimal": self.decimal}
        if not hasattr(self.source, "readline"):
            return text_form(self.source, **said)
        if self.encoding is not None and known_encoding(self.encoding) != "utf-8":
            raise TableError("--encoding: standard input is read as UTF-8; give the file, or recode it (iconv)")
        return TextForm(separator=said_separator(self.separator) or ",", decimal=self.decimal or ".")

    def _libsvm(self) -> Iterator[Chunk]:
        others = self.weights or self.features
        if others or self.target not in (None, "label") or self.task not in (None, "qid"):
            raise TableError("a libsvm file has one target (label) and at most one task (qid), and no other columns")
        if self.n_features is None:
            raise TableError("--n-features: a libsvm file does not say how many features there are")
        self.feature_names = [f"f{j}" for j in range(self.n_features + 1)]
        # counted from 0, so that the number in the file is the number in the name
        for X, label, qid in read_libsvm_rows(self.source, chunk_rows=self.chunk_rows, n_features=self.n_features + 1):
            yield X, label, qid if self.task == "qid" else None, None
            self.n_read += len(label)

    def _chunk(self, table: Table, columns: RowColumns) -> Chunk:
        table.first = self.n_read
        if not self.feature_names:
            table.require(columns.targets[0], "--target")
            roles = columns.roles(table, None)
            among = [name for name in table.columns if name not in roles]
            names = table.match(self.features, "--features", among) if self.features else among
            self.feature_names = self._without_ids(table, names)
            if not self.feature_names:
                raise TableError(f"--features: {self.name} has no column left for features")
        for name in self.feature_names:
            self._must_be_numbers(table.require(name, "--features"), name)
        if self.weights is not None:
            self._must_be_numbers(table.require(self.weights, "--weights"), self.weights)
        encoding = Encoding([(name, None) for name in self.feature_names])
        rows, _ = columns.usable(table, encoding, self.missing, advice=())
        self.n_dropped += table.n_rows - len(rows)
        X = np.ascontiguousarray(encoding.matrix(table)[rows], dtype=np.float64)
        known = columns.read(table, rows, self.classes)
        return X, known["y"], self._tasks(known["task"]), known["sample_weight"]

    def _without_ids(self, table: Table, names: list[str]) -> list[str]:
        """Columns that do not look like ids in the first rows, or that are to be learned from all the same."""
        kept = {*self.features, *table.match(self.keep, "--keep", list(table.columns))}
        parts = [] if self.task is None else [Part("task", value_codes(table.columns[self.task])[0])]
        why = {name: why_id(name, table.columns[name], parts) for name in names if name not in kept}
        for name, words in why.items():
            if words is not None:
                self.notes.append(
                    f"column {name!r} is left out: it looks like an id ({words}). --keep {shlex.quote(name)} learns "
                    "from it"
                )
        return [name for name in names if why.get(name) is None]

    def _must_be_numbers(self, column: Column, name: str) -> None:
        if column.kind == "number":
            return
        cells = [(row, value) for row, value in enumerate(column.values.tolist()) if value is not None]
        words = (cell for cell in cells if column.kind != "text" or not is_number(cell[1]))
        row, word = next(words, (0, "?"))
        raise TableError(
            f"{self.name}: row {row_number(self.n_read + row)}, column {name!r} is {str(word)[:60]!r}: a stream learns "
            "from numbers (the words of a column are not known beforehand). Leave it out with --features, or code it."
        )

    def _tasks(self, values: np.ndarray | None) -> np.ndarray | None:
        """Task labels in one type throughout: a task is called the same in all chunks."""
        if values is None:
            return None
        kind = "words" if values.dtype.kind == "U" else "numbers"
        self.task_kind = self.task_kind or kind
        if kind != self.task_kind:
            raise TableError(
                f"{self.name}: column {self.task!r} held {self.task_kind} first, and {kind} in the rows from "
                f"{row_number(self.n_read)}: make its labels all words or all numbers"
            )
        return values
