"""Streams larger than memory, and checkpoints from which they resume bit for bit."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..atomic import write_atomically
from ..fitted.progress import reporter
from .base import RefusedRow
from .single_rows import SingleRows

Chunk = tuple[Any, Any, Any, Any]  # X, y, task, sample_weight

# --- sources ---------------------------------------------------------------------------------------------------


def read_table_rows(
    path: Any, format: str, chunk_rows: int, target: Any, task: Any, weight: Any, features: Any
) -> Iterator[Chunk]:
    """Chunks of a CSV file with a header, or of a Parquet file."""
    from ..tables.frames import read_frames

    if target is None:
        raise ValueError(f"target: name the column of {path} that is to be predicted.")
    only = None if features is None else [*features, target, *(n for n in (task, weight) if n is not None)]
    frames = read_frames(path, format, chunk_rows=chunk_rows, only=only)
    return (_columns(frame, target, task, weight, features) for frame in frames)


def read_libsvm(
    path: Any, chunk_rows: int, task: Any, n_features: int | None, zero_based: bool
) -> Iterator[Chunk]:
    """Chunks of a libsvm file."""
    from ..tables.frames import read_libsvm_rows

    if n_features is None:
        raise ValueError("n_features: a libsvm file does not say how many features there are.")
    if task not in (None, "qid"):
        raise ValueError(f"task: a libsvm file has tasks as query ids only, task='qid'; got {task!r}.")
    rows = read_libsvm_rows(path, chunk_rows=chunk_rows, n_features=n_features, zero_based=zero_based)
    return ((X, label, qid if task == "qid" else None, None) for X, label, qid in rows)


def _columns(frame: Any, target: Any, task: Any, weight: Any, features: Any) -> Chunk:
    special = [name for name in (target, task, weight) if name is not None]
    for name in [*special, *(features or [])]:
        if name not in frame.columns:
            raise ValueError(f"the file has no column {name!r}; it has {list(frame.columns)[:8]}")
    if features is None:
        features = [name for name in frame.columns if name not in special]
    return (
        frame[features],
        frame[target].to_numpy(),
        None if task is None else frame[task].to_numpy(),
        None if weight is None else frame[weight].to_numpy(),
    )


def read_iterable(source: Iterable[Any]) -> Iterator[Chunk]:
    """Chunks (X, y[, task[, sample_weight]]), or single rows (dict, y[, task[, weight]])."""
    for item in source:
        if not isinstance(item, tuple) or not 2 <= len(item) <= 4:
            raise ValueError(
                "a stream must give tuples (X, y), (X, y, task) or (X, y, task, sample_weight), of chunks or of single "
                f"rows (dicts); got {type(item).__name__}"
            )
        X, y, *rest = item
        yield X, y, *rest, *([None] * (2 - len(rest)))


def skipped(chunks: Iterator[Chunk], rows: int) -> Iterator[Chunk]:
    """The chunks without their first rows."""
    for X, y, task, weight in chunks:
        size = 1 if isinstance(X, dict) else len(y)
        if rows >= size:
            rows -= size
            continue
        if rows:
            kept = slice(rows, None)
            X = X.iloc[kept] if hasattr(X, "iloc") else X[kept]
            y, task, weight = (None if part is None else part[kept] for part in (y, task, weight))
            rows = 0
        yield X, y, task, weight


class Streaming(SingleRows):
    """`fit_stream`, `save` and `load` of the online models."""

    learn_one: Any
    partial_fit: Any
    _stream_rows = 0

    def fit_stream(
        self,
        source: Any,
        *,
        format: str | None = None,
        target: Any = None,
        task: Any = None,
        sample_weight: Any = None,
        features: Any = None,
        n_features: int | None = None,
        zero_based: bool = False,
        chunk_rows: int = 10_000,
        max_rows: int | None = None,
        checkpoint: Any = None,
        checkpoint_every: int = 1_000_000,
        resume: bool = True,
        progress: Callable[[int, float], None] | None = None,
    ) -> Self:
        """Learn from a file or an iterator larger than memory, a chunk at a time, once through.

        The model continues from what it has learned. With a ``checkpoint`` that exists (and ``resume``), it first takes
        the state saved there and skips the rows that this state has seen; the result is the same, bit for bit, as
        without the interruption.

        Parameters
        ----------
        source : path, or iterable
            A CSV (with a header), Parquet or libsvm file; or an iterable of tuples (X, y), (X, y, task) or (X, y,
            task, sample_weight), each a chunk, or a single row with X a dict. To resume, an iterable must begin anew.
        format : {"csv", "parquet", "libsvm", "iterable"}, optional
            By default from the name of the file, as on the command line (.csv, .csv.gz, .parquet, .libsvm, ...).
        target : column name
            For CSV and Parquet.
        task, sample_weight : column names, optional
            For CSV and Parquet. For libsvm ``task="qid"`` takes the query ids.
        features : list of column names, optional
            By default all others.
        n_features : int
            For libsvm.
        zero_based : bool, default=False
            Whether the libsvm file counts features from 0.
        chunk_rows : int, default=10000
            Rows in memory at a time (iterables come in their own chunks).
        max_rows : int, optional
            Stop after so many rows of the source (at the end of a chunk).
        checkpoint : path, optional
            File to save the state to, atomically: a run that is killed leaves the last complete one.
        checkpoint_every : int, default=1000000
            Rows between checkpoints (at the ends of chunks), and one at the end.
        resume : bool, default=True
            Whether to go on from a checkpoint that exists.
        progress : callable, optional
            Called as ``progress(rows, seconds)`` after each chunk; with ``verbose`` about one line per second on
            stderr.

        Returns
        -------
        self
        """
        from ..tables.frames import table_format

        if chunk_rows < 1 or checkpoint_every < 1:
            raise ValueError("chunk_rows and checkpoint_every must be at least 1.")
        rows = 0
        if checkpoint is not None and resume and Path(checkpoint).exists():
            saved = type(self).load(checkpoint)
            if not _same_params(saved, self):
                raise ValueError(
                    f"{checkpoint} was saved by a model with other parameters: {saved!r}. Use the same ones, another "
                    "file, or resume=False."
                )
            with self._guard:
                self.__dict__.update({name: value for name, value in vars(saved).items() if name != "_guard"})
            rows = self._stream_rows
        if format is None:
            format = table_format(source) if isinstance(source, str | os.PathLike) else "iterable"
        if format in ("csv", "parquet"):
            chunks = read_table_rows(source, format, chunk_rows, target, task, sample_weight, features)
        elif format == "libsvm":
            chunks = read_libsvm(source, chunk_rows, task, n_features, zero_based)
        elif format == "iterable":
            chunks = read_iterable(source)
        else:
            raise ValueError(
                f"format must be one of 'csv', 'parquet', 'libsvm', 'iterable'; got {format!r} for {source}."
            )
        began, report = time.monotonic(), reporter(type(self).__name__, "row", self.verbose)
        saved_at = rows
        if max_rows is None or rows < max_rows:
            for X, y, labels, weight in skipped(chunks, rows):
                with self._guard:  # a model saved meanwhile has both the rows and their number
                    rows += self._learn_chunk(X, y, labels, weight, rows)
                    self._stream_rows = rows
                if checkpoint is not None and rows // checkpoint_every > saved_at // checkpoint_every:
                    self.save(checkpoint)
                    saved_at = rows
                if progress is not None:
                    progress(rows, time.monotonic() - began)
                if report is not None:
                    report(rows)
                if max_rows is not None and rows >= max_rows:
                    break
        if checkpoint is not None and rows > saved_at:
            self.save(checkpoint)
        return self

    def _learn_chunk(self, X: Any, y: Any, task: Any, weight: Any, before: int) -> int:
        """Learn a chunk, or a single row; returns how many rows it has."""
        if isinstance(X, dict):
            self.learn_one(X, y, task=task, w=1.0 if weight is None else weight)
            return 1
        try:
            self.partial_fit(X, y, task=task, sample_weight=weight)
        except RefusedRow as error:  # say where in the stream the row is
            raise RefusedRow(before + error.row, error.reason) from None
        return len(y)

    # -- files --------------------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the whole state to a file, atomically: the file is the old one or the new one, never a part.

        Parameters
        ----------
        path : path
            NumPy's .npz format, without pickled objects. Task labels, classes and feature names must be strings or
            numbers.
        """
        from .saved import to_arrays

        with self._guard:
            arrays = to_arrays(self)
        write_atomically(Path(path), lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: Any) -> Self:
        """Read a model that `save` or a checkpoint has written, also one of version 0.1.

        Parameters
        ----------
        path : path

        Returns
        -------
        the model, ready to go on

        Raises
        ------
        ValueError
            For a file that is not such a model, with its name and what is wrong. Nothing in a file is executed, and no
            size that it declares is believed: what is built takes a few times the bytes that are there.
        """
        from ..tables.saved import rebuild
        from .saved import from_arrays

        return rebuild(path, lambda arrays: from_arrays(cls, arrays))


def _same_params(one: Any, other: Any) -> bool:
    """Equal but for what does not matter to learning from a stream."""
    a, b = one.get_params(), other.get_params()
    for name in ("random_state", "verbose", "max_iter", "shuffle", "warm_start"):
        a.pop(name), b.pop(name)
    return all(np.array_equal(a[name], b[name]) for name in a)
