"""Tables larger than memory: a chunk at a time, from a file or from standard input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from .encode import is_number
from .frames import read_frames, read_libsvm_rows
from .problem import read_labels_column, read_target, tidy_labels
from .read import from_frame
from .table import Column, Table, TableError, row_number

Chunk = tuple[Any, Any, Any, Any]  # X, y, task, sample_weight
STREAMED = ("csv", "parquet", "libsvm")


@dataclass
class ChunkReader:
    """Reads a table in chunks that the online models take.

    - `source`: path or binary file
    - `name`: For messages.
    - `format`: {"csv", "parquet", "libsvm"}
    - `target`, `task`, `weights`, `features`, `separator`: As in `prepare`; features are fixed by the first chunk.
    - `missing`: {"error", "drop"}
    - `n_features`: Of a libsvm file.
    - `feature_names`: Known once the first chunk is read.
    - `n_read`, `n_dropped`: Rows so far.
    """

    source: Any
    name: str
    format: str
    target: str | None
    task: str | None = None
    weights: str | None = None
    features: Sequence[str] = ()
    separator: str | None = None
    missing: Literal["error", "drop"] = "error"
    classes: bool = False
    chunk_rows: int = 10_000
    n_features: int | None = None
    feature_names: list[str] = field(default_factory=list)
    n_read: int = 0
    n_dropped: int = 0
    #: the type of the task labels, fixed by the first chunk: a task is called the same in all of them
    task_kind: str = ""

    def __iter__(self) -> Iterator[Chunk]:
        if self.format == "libsvm":
            yield from self._libsvm()
            return
        if self.target is None:
            raise TableError("--target: name the column to predict")
        for frame in read_frames(
            self.source, self.format, name=self.name, separator=self.separator, chunk_rows=self.chunk_rows
        ):
            if not len(frame):
                continue
            table = from_frame(frame, self.name)
            yield self._chunk(table)
            self.n_read += table.n_rows

    def _libsvm(self) -> Iterator[Chunk]:
        if (
            self.target not in (None, "label")
            or self.task not in (None, "qid")
            or self.weights
            or self.features
        ):
            raise TableError(
                "a libsvm file has one target (label) and at most one task (qid), and no other columns"
            )
        if self.n_features is None:
            raise TableError("--n-features: a libsvm file does not say how many features there are")
        self.feature_names = [f"f{j}" for j in range(self.n_features + 1)]
        # counted from 0, so that the number in the file is the number in the name
        for X, label, qid in read_libsvm_rows(
            self.source, chunk_rows=self.chunk_rows, n_features=self.n_features + 1
        ):
            yield X, label, qid if self.task == "qid" else None, None
            self.n_read += len(label)

    def _chunk(self, table: Table) -> Chunk:
        assert self.target is not None
        if not self.feature_names:
            special = [name for name in (self.target, self.task, self.weights) if name is not None]
            among = [name for name in table.columns if name not in special]
            self.feature_names = table.match(self.features, "--features", among) if self.features else among
            if not self.feature_names:
                raise TableError(f"--features: {self.name} has no column left for features")
        target = table.require(self.target, "--target")
        task = None if self.task is None else table.require(self.task, "--task")
        weights = None if self.weights is None else table.require(self.weights, "--weights")
        columns = [table.require(name, "--features") for name in self.feature_names]
        bad = np.zeros(table.n_rows, dtype=bool)
        named = [(self.target, target), (self.task, task), (self.weights, weights)]
        for name, column in [*named, *zip(self.feature_names, columns, strict=True)]:
            if column is None or name is None:
                continue
            if name in self.feature_names or name == self.weights:
                self._must_be_numbers(column, name)
            holes = column.missing
            if holes.any() and self.missing == "error":
                row = self.n_read + int(np.flatnonzero(holes)[0])
                raise TableError(
                    f"{self.name}: row {row_number(row)}, column {name!r} is missing. "
                    "--missing drop leaves such rows out."
                )
            bad |= holes
        rows = np.flatnonzero(~bad)
        self.n_dropped += table.n_rows - len(rows)
        X = np.empty((len(rows), len(columns)))
        for k, column in enumerate(columns):
            X[:, k] = column.values[rows]
        if not np.isfinite(X).all():
            row, k = np.argwhere(~np.isfinite(X))[0].tolist()
            raise TableError(
                f"{self.name}: row {row_number(self.n_read + rows[row])}, column {self.feature_names[k]!r} is infinite"
            )
        labels = read_target(target, self.target, self.name, self.classes)[rows]
        return (
            X,
            tidy_labels(labels) if self.classes else labels,
            None if task is None else self._tasks(read_labels_column(task, str(self.task), self.name)[rows]),
            None if weights is None else weights.values[rows].astype(np.float64),
        )

    def _must_be_numbers(self, column: Column, name: str) -> None:
        if column.kind == "number":
            return
        text = column.kind == "text"
        row, word = next(
            (
                (row, value)
                for row, value in enumerate(column.values.tolist())
                if value is not None and not (text and is_number(value))
            ),
            (0, "?"),
        )
        raise TableError(
            f"{self.name}: row {row_number(self.n_read + row)}, column {name!r} is {str(word)[:60]!r}: a stream learns "
            "from numbers (the words of a column are not known beforehand). Leave it out with --features, or code it."
        )

    def _tasks(self, values: np.ndarray) -> np.ndarray:
        """Task labels in one type throughout: a task is called the same in all chunks."""
        values = tidy_labels(values)
        kind = "words" if values.dtype.kind == "U" else "numbers"
        self.task_kind = self.task_kind or kind
        if kind != self.task_kind:
            raise TableError(
                f"{self.name}: column {self.task!r} held {self.task_kind} first, and {kind} in the rows from "
                f"{row_number(self.n_read)}: make its labels all words or all numbers"
            )
        return values
