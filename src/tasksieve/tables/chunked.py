"""A fit from a table that is never in memory: rows go by in chunks, and only their sums of products stay.

The first reading finds out what the columns are, which tasks there are and how many rows each has (of a Parquet file it
reads no columns of real numbers); the second one sums. So folds are those of the same table in memory, up to some
millions of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..tasks import TaskMoments, label_array
from ..tasks.task_means import observed
from .chunk_folds import ChunkFolds
from .columns import FeatureChoice, choose_features
from .encode import Encoding
from .filling import filled_with, means_of, told_means
from .frame_columns import from_arrow, from_frame
from .frames import counted_size, need, read_arrow, read_frames
from .ids import names_rows
from .row_columns import Missing, RowColumns, refuse_fractions, refuse_missing, told_rows, words_or_numbers
from .seen import SeenColumn, SeenTable
from .table import NAMED_CELLS, Array, Table, TableError, column_names
from .task_codes import TaskCodes
from .text_form import TextForm

CHUNKED = ("csv", "parquet", "arrow")
CELLS = 1 << 21  # of a chunk, where its number of rows is not given
FEWEST_ROWS = 1000


class NotTall(Exception):
    """The sums of a table would be more than its rows are worth."""


@dataclass
class ChunkedProblem:
    """A fit whose rows are gone; attributes as those of `TableProblem`, but for `moments`."""

    moments: TaskMoments
    targets: list[str]
    encoding: Encoding
    fill: Array | None
    n_rows: int
    n_used: int
    tasks: Array
    notes: list[str]
    classes: bool = False

    @property
    def n_features(self) -> int:
        return len(self.encoding.feature_names)

    @property
    def several(self) -> bool:
        """Whether each target is a task."""
        return len(self.targets) > 1


def rows_of_chunks(path: str, format: str, form: TextForm | None) -> int:
    """So many rows that a chunk takes a few dozen megabytes."""
    size = counted_size(path, format, form)
    if size is None:
        for frame in read_frames(path, format, form=form, chunk_rows=100):  # raises if something is wrong
            size = len(frame), frame.shape[1]
    if not size or not size[0]:
        raise TableError(f"{path} has no rows")
    return max(FEWEST_ROWS, CELLS // max(1, size[1]))


def prefetched(tables: Iterator[Any]) -> Iterator[Any]:
    """The same tables, each read by another thread as soon as the one before it is taken."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, tables, None)
        while (table := coming.result()) is not None:
            coming = pool.submit(next, tables, None)
            yield table


@dataclass
class _Rows:
    """Usable rows of a chunk."""

    y: Array  # (n,) or (n, targets)
    task: Array  # codes; 0 where there is one task, or a task a target
    weights: Array | None
    kept: Array  # positions in the chunk
    chunk: Table

    @property
    def live(self) -> Array:
        """Labels that are observed and have a weight, in the form of y."""
        weighted = np.ones(len(self.y), dtype=bool) if self.weights is None else self.weights > 0.0
        return (weighted if self.y.ndim == 1 else weighted[:, None]) & ~np.isnan(self.y)


@dataclass
class ChunkedTable:
    """Reads a table in chunks; columns as in `prepare`. `largest_chunk` is the most rows that one had: another is read
    meanwhile where there are threads."""

    path: str
    format: str
    form: TextForm | None
    chunk_rows: int
    target: list[str]
    choice: FeatureChoice
    task: str | None = None
    weights: str | None = None
    id: str | None = None
    missing: Missing = "error"
    unrelated: bool = False  # rows of one id count as any others
    largest_chunk: int = 0
    readings: int = 0
    _columns: RowColumns = field(default_factory=RowColumns)
    _codes: TaskCodes = field(default_factory=TaskCodes)
    _prefetch: bool = False
    _text: list[str] = field(default_factory=list)

    # -- reading ----------------------------------------------------------------------------------------------------

    def chunks(self, only: list[str] | None = None) -> Iterator[Table]:
        """All rows, once through."""
        if not Path(self.path).is_file():
            raise TableError(f"there is no file {self.path}")
        self.readings += 1
        first = 0
        tables = self._tables(only)
        for table in prefetched(tables) if self._prefetch else tables:
            if not table.n_rows:
                continue
            self.largest_chunk = max(self.largest_chunk, table.n_rows)
            table.first = first
            first += table.n_rows
            yield table
        if not first:
            raise TableError(f"{self.path} has no rows")

    def _tables(self, only: list[str] | None) -> Iterator[Table]:
        if self.format == "csv":
            options: dict[str, Any] = {"form": self.form, "chunk_rows": self.chunk_rows, "text": self._text}
            return (from_frame(frame, self.path, coded=True) for frame in read_frames(self.path, "csv", **options))
        parts = read_arrow(self.path, self.format, chunk_rows=self.chunk_rows, only=only)
        return (from_arrow(part, self.path) for part in parts)

    def problem(
        self,
        *,
        n_folds: int | None,
        seed: int,
        fit_intercept: bool,
        n_jobs: int | None,
        serves: Callable[[int, int, int], bool] | None = None,
    ) -> ChunkedProblem:
        """Two readings, a third where missing values decide which rows there are, and one more where the first rows
        are unlike the others; `NotTall` where `serves` says so, given rows, features and matrices."""
        self._prefetch = n_jobs != 1
        seen, counts = self._first_reading()
        table, targets = seen.as_table(), self._columns.targets
        encoding, notes = choose_features(table, self._columns.roles(table, self.id), self.choice)
        notes = [*(self.form.notes(self.path) if self.form is not None else ()), *notes]
        matrices = len(self._labels(counts)) if self.task is not None else 1
        if serves is not None and not serves(seen.n_rows, len(encoding.feature_names), matrices):
            raise NotTall
        related = None if n_folds is None or self.unrelated else self._related(seen, encoding)
        if related is not None and serves is not None:
            raise NotTall
        if related is not None:
            notes.append(
                f"rows that share a value of column {related!r} are related, and folds of chunks may part them, which "
                "makes held-out errors too small: --chunk-rows 0 keeps them together (--row-groups none: they are not "
                "related)"
            )
        with_holes = [(name, seen.columns[name]) for name, _ in encoding.columns if seen.columns[name].n_missing]
        holes = [(name, np.array(column.holes), column.n_missing) for name, column in with_holes]
        if holes and self.missing == "error":
            refuse_missing(self.path, holes)
        fill = None
        if self.missing == "mean" or (holes and self.missing == "drop"):
            counts, fill = self._counted(encoding)
        labels = self._labels(counts)
        filled, left_out = holes if self.missing == "mean" else [], (counts.first_dropped, counts.dropped)
        counted = (seen.n_rows, len(targets), filled, counts.unobserved, *left_out)
        notes += told_rows(self.path, *counted, told_means("mean", None))
        folds = None if n_folds is None else self._folds(counts, labels, n_folds, seed)
        moments = TaskMoments(n_folds, fit_intercept=fit_intercept, random_state=seed, n_jobs=n_jobs)
        self._sum(moments, encoding, fill, folds)
        if not moments.well_centred:
            moments = moments.recentred()
            self._sum(moments, encoding, fill, folds)
        if folds is not None:
            moments.folds_in_words = folds.words
        tasks = label_array(labels) if self.task is not None else np.arange(len(targets))
        return ChunkedProblem(moments, list(targets), encoding, fill, seen.n_rows, counts.used, tasks, notes)

    def _first_reading(self) -> tuple[SeenTable, _Counts]:
        """What columns are; once more where chunks disagree about it."""
        while True:
            seen, self._codes, counts = SeenTable(self.path), TaskCodes(), _Counts()
            names, known = self._real_columns()
            looked = [name for name in names if name not in known]
            for chunk in self.chunks(looked or None):
                if not seen.columns:
                    seen = SeenTable(self.path, self._coded(chunk))
                    self._columns = RowColumns.of(chunk, self.target, self.task, weights=self.weights)
                rows = self._rows(chunk, None)
                counts.add(rows)
                tasks = None
                if self.task is not None:
                    tasks = np.full(chunk.n_rows, -1)
                    tasks[rows.kept] = rows.task
                seen.look(chunk, tasks)
            mixed = [name for name in seen.mixed() if name not in self._text]
            if not mixed:
                break
            self._text += mixed
        for name in known if looked else ():  # real numbers, not read yet: missing ones are found when they are
            seen.columns[name] = SeenColumn(kinds={"number"}, whole=False)
        seen.columns = {name: seen.columns[name] for name in names or seen.columns}
        return seen, counts

    def _related(self, seen: SeenTable, encoding: Encoding) -> str | None:
        """A column that names the rows, and whose values come again within a task."""
        apart = {*encoding.sources, *self._columns.roles(seen.as_table(), None)}
        for name, column in seen.columns.items():
            names = column.names
            if names is not None and names.relate and name not in apart:
                return name
        return None

    def _coded(self, table: Table) -> list[str]:
        """Columns of numbers that are names of things."""
        return table.match(self.choice.categorical, "--categorical", list(table.columns))

    def _real_columns(self) -> tuple[list[str], set[str]]:
        """All columns of a Parquet file, and those that need not be looked at before they are summed; none of a file
        that has to be looked at as a whole."""
        if self.format != "parquet" or self.missing != "error":
            return [], set()
        floating = need("pyarrow.types").is_floating
        try:
            schema = need("pyarrow.parquet").ParquetFile(self.path).schema_arrow
        except Exception:
            return [], set()  # the reader of the rows raises
        names = column_names(schema.names)
        probe = Table(self.path, 0, dict.fromkeys(names))  # type: ignore[arg-type]
        apart = {*probe.match(self.target, "--target", names), *self._coded(probe), self.task, self.weights}
        kinds = zip(names, schema.types, strict=True)
        return names, {name for name, kind in kinds if floating(kind) and not names_rows(name)} - apart

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _rows(self, chunk: Table, encoding: Encoding | None) -> _Rows:
        """Rows of a chunk that can be used; without an encoding, as far as their features do not matter."""
        columns = self._columns
        kept, _ = columns.usable(chunk, encoding, self.missing)
        task = np.zeros(len(kept), dtype=np.int64)
        if self.task is not None:
            column = words_or_numbers(chunk, self.task, "--task")
            if column.kind == "number":
                refuse_fractions(chunk, self.task, column, kept)
            task = self._codes.codes(column, None if len(kept) == chunk.n_rows else kept)
        return _Rows(np.asarray(columns.labels(chunk, kept)), task, columns.read_weights(chunk, kept), kept, chunk)

    def _counted(self, encoding: Encoding) -> tuple[_Counts, Array | None]:
        """Rows of tasks, and the means of features where they fill holes."""
        counts, names = _Counts(), encoding.feature_names
        totals, known = np.zeros(len(names)), np.zeros(len(names))
        for chunk in self.chunks():
            rows = self._rows(chunk, encoding)
            counts.add(rows)
            if self.missing == "mean":
                X = encoding.matrix(chunk)[rows.kept]
                here = observed(X)
                totals += np.sum(X, axis=0, dtype=np.float64, where=here)
                known += here.sum(axis=0)
        return counts, means_of(totals, known, names) if self.missing == "mean" else None

    def _labels(self, counts: _Counts) -> list[Any]:
        """Of the tasks that have rows, in their order."""
        if self.task is None:
            return list(range(len(self._columns.targets)))
        try:
            return sorted(self._codes.labels[code] for code in np.flatnonzero(counts.by_task).tolist())
        except TypeError:
            raise TableError("--task: labels are words in some rows and numbers in others") from None

    def _folds(self, counts: _Counts, labels: list[Any], n_folds: int, seed: int) -> ChunkFolds:
        position = {label: t for t, label in enumerate(labels)}
        known = self._codes.labels if self.task is not None else labels
        labelled = _sum_of(counts.observed, np.zeros(len(known), dtype=np.int64))
        folds = ChunkFolds(labelled.tolist(), [position.get(label, 0) for label in known], n_folds, seed)
        if folds.empty is not None:
            raise TableError(
                f"--cv {n_folds}: too many folds for {counts.observed.sum()} rows in these tasks: fold {folds.empty} "
                "would hold out no row"
            )
        return folds

    def _sum(
        self, moments: TaskMoments, encoding: Encoding, fill: Array | None, folds: ChunkFolds | None
    ) -> None:
        several = len(self._columns.targets) > 1
        if folds is not None:
            folds.rewind()
        for chunk in self.chunks():
            columns = None if several else encoding.complete_columns(chunk)
            rows = self._rows(chunk, encoding if columns is None else None)
            if not len(rows.kept):
                continue
            if columns is None or len(rows.kept) < chunk.n_rows:
                X = encoding.matrix(chunk)
                X = X if len(rows.kept) == chunk.n_rows else np.asfortranarray(X[rows.kept])
                if fill is not None:
                    X = filled_with(X, fill)
                columns = list(X.T)
            fold = None if folds is None else _next_folds(rows, folds)
            if several:
                moments.add(X, rows.y, sample_weight=rows.weights, fold=fold)
                continue
            labels = self._codes.labels if self.task is not None else None
            moments.add_columns(columns, rows.y, rows.task, labels, sample_weight=rows.weights, fold=fold)


@dataclass
class _Counts:
    """Rows so far: those in use by the codes of tasks, of all targets together, and those with a label and a weight, by
    the codes of tasks or by target."""

    used: int = 0
    dropped: int = 0
    first_dropped: list[int] = field(default_factory=list)
    unobserved: int = 0
    by_task: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    observed: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def add(self, rows: _Rows) -> None:
        self.used += len(rows.kept)
        away = rows.chunk.n_rows - len(rows.kept)
        self.dropped += away
        if away and len(self.first_dropped) < NAMED_CELLS:
            gone = np.setdiff1d(np.arange(rows.chunk.n_rows), rows.kept)[:NAMED_CELLS]
            self.first_dropped += (rows.chunk.first + gone).tolist()
        self.by_task = _sum_of(self.by_task, np.bincount(rows.task))
        if rows.y.ndim == 2:
            self.observed = _sum_of(self.observed, np.count_nonzero(rows.live, axis=0))
            self.unobserved += int(np.isnan(rows.y).sum()) + away * rows.y.shape[1]
        else:
            self.observed = _sum_of(self.observed, np.bincount(rows.task[rows.live], minlength=len(self.by_task)))


def _sum_of(one: Array, other: Array) -> Array:
    """Of counts, the shorter of which goes on with zeros."""
    found = np.zeros(max(len(one), len(other)), dtype=np.int64)
    found[: len(one)] += one
    found[: len(other)] += other
    return found


def _next_folds(rows: _Rows, folds: ChunkFolds) -> Array:
    """Folds of the rows of a chunk in the form of y."""
    if rows.y.ndim == 1:
        return folds.next(rows.task, rows.live)
    return np.stack([folds.next(np.full(len(own), t), own) for t, own in enumerate(rows.live.T)], axis=1)
