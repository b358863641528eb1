"""A fit from a table that is never in memory: rows go by in chunks, and only their sums of products stay.

The first reading finds out what the columns are, which tasks there are and how many rows each has (of a Parquet file it
reads no columns of real numbers); the second one sums. So folds are those of the same table in memory, up to some
millions of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..tasks import TaskMoments, label_array
from .arrow import from_arrow
from .chunk_folds import ChunkFolds
from .columns import FeatureChoice, choose_features
from .counted import counted_size
from .encode import Encoding
from .frames import need, read_arrow, read_frames, table_format
from .prefetch import prefetched
from .problem import (
    Missing,
    fill_with_means,
    read_labels_column,
    read_target,
    read_weights,
    refuse_missing,
    told_missing,
)
from .read import from_chunk
from .seen import SeenColumn, SeenTable
from .table import Array, Table, TableError
from .task_codes import TaskCodes

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

    @property
    def n_features(self) -> int:
        return len(self.encoding.feature_names)


@dataclass
class _Rows:
    """Usable rows of a chunk."""

    y: Array  # (n,) or (n, targets)
    task: Array  # codes; 0 where there is one task, or a task a target
    weights: Array | None
    kept: Array  # positions in the chunk
    chunk: Table


@dataclass
class ChunkedTable:
    """Reads a table in chunks.

    - `chunk_rows`: Rows at a time; by default so many that a chunk takes a few dozen megabytes.
    - `target`, `task`, `weights`, `id`, `choice`, `missing`: As in `prepare`.
    - `largest_chunk`: The most rows that a chunk had; another is read meanwhile where there are threads.
    """

    path: str
    target: list[str]
    choice: FeatureChoice
    format: str | None = None
    separator: str | None = None
    chunk_rows: int | None = None
    task: str | None = None
    weights: str | None = None
    id: str | None = None
    missing: Missing = "error"
    largest_chunk: int = 0
    readings: int = 0
    _codes: TaskCodes = field(default_factory=TaskCodes)
    _prefetch: bool = False
    _text: list[str] = field(default_factory=list)
    _order: list[str] = field(default_factory=list)

    # -- reading ----------------------------------------------------------------------------------------------------

    def chunks(self, only: list[str] | None = None) -> Iterator[Table]:
        """All rows, once through."""
        format = self.format or table_format(self.path)
        if format not in CHUNKED:
            raise TableError(f"{self.path}: a table of format {format} is read as a whole; {', '.join(CHUNKED)} go by")
        if not Path(self.path).is_file():
            raise TableError(f"there is no file {self.path}")
        self.readings += 1
        first = 0
        rows = self.chunk_rows or self.rows_for(self.path, format, self.separator)
        tables = self._tables(format, rows, only)
        for table in prefetched(tables) if self._prefetch else tables:
            if not table.n_rows:
                continue
            self.largest_chunk = max(self.largest_chunk, table.n_rows)
            table.first = first
            first += table.n_rows
            yield table
        if not first:
            raise TableError(f"{self.path} has no rows")

    def _tables(self, format: str, rows: int, only: list[str] | None) -> Iterator[Table]:
        if format == "csv":
            for frame in read_frames(self.path, format, separator=self.separator, chunk_rows=rows, text=self._text):
                yield from_chunk(frame, self.path)
            return
        for part in read_arrow(self.path, format, chunk_rows=rows, only=only):
            yield from_arrow(part, self.path)

    @staticmethod
    def rows_for(path: str, format: str, separator: str | None) -> int:
        """So many rows that a chunk takes a few dozen megabytes."""
        size = counted_size(path, format, separator)
        if size is None:
            for frame in read_frames(path, format, separator=separator, chunk_rows=100):  # raises if something is wrong
                size = len(frame), frame.shape[1]
        if not size or not size[0]:
            raise TableError(f"{path} has no rows")
        return max(FEWEST_ROWS, CELLS // max(1, size[1]))

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
        table = seen.as_table()
        targets = self._targets(table)
        roles = self._roles(table, targets)
        encoding, notes = choose_features(table, roles, self.choice)
        labels = self._labels(counts, len(targets))
        matrices = len(labels) if self.task is not None else 1
        if serves is not None and not serves(seen.n_rows, len(encoding.feature_names), matrices):
            raise NotTall
        holes = [(name, seen.columns[name]) for name, _ in encoding.columns if seen.columns[name].n_missing]
        if holes and self.missing == "error":
            self._refuse([(name, column.holes, column.n_missing) for name, column in holes], mean=True)
        fill = None
        if self.missing == "mean" or (holes and self.missing == "drop"):
            counts, fill = self._counted(targets, encoding)
            labels = self._labels(counts, len(targets))
        if not counts.used:
            raise TableError(f"{self.path}: no row is left after those with missing values are dropped")
        if holes and self.missing == "mean":
            cell_words = [(name, np.array(column.holes), column.n_missing) for name, column in holes]
            notes.append(told_missing(self.path, cell_words))
        notes += counts.notes(seen.n_rows, len(targets))
        folds = None if n_folds is None else self._folds(counts, labels, n_folds, seed)
        moments = TaskMoments(n_folds, fit_intercept=fit_intercept, random_state=seed, n_jobs=n_jobs)
        self._sum(moments, targets, encoding, fill, folds)
        if not moments.well_centred:
            moments = moments.recentred()
            self._sum(moments, targets, encoding, fill, folds)
        if folds is not None:
            moments.folds_in_words = folds.words
        tasks = label_array(labels) if self.task is not None else np.arange(len(targets))
        return ChunkedProblem(moments, targets, encoding, fill, seen.n_rows, counts.used, tasks, notes)

    def _first_reading(self) -> tuple[SeenTable, _Counts]:
        """What columns are; once more where chunks disagree about it."""
        while True:
            seen, self._codes = SeenTable(self.path), TaskCodes()
            only, known = self._worth_a_look()
            counts = _Counts()
            for chunk in self.chunks(only):
                if not seen.columns:
                    seen = SeenTable(self.path, self._matched(chunk, self.choice.categorical))
                seen.look(chunk)
                counts.add(self._rows(chunk, self._targets(chunk), None))
            mixed = [name for name in seen.mixed() if name not in self._text]
            if not mixed:
                break
            self._text += mixed
        for name in known:  # real numbers, not read yet: missing ones are found when they are
            seen.columns.setdefault(name, SeenColumn(kinds={"number"}, whole=False))
        if only is not None:
            seen.columns = {name: seen.columns[name] for name in self._order if name in seen.columns}
        return seen, counts

    def _matched(self, chunk: Table, patterns: Any) -> list[str]:
        return chunk.match(patterns, "--categorical", list(chunk.columns)) if patterns else []

    def _worth_a_look(self) -> tuple[list[str] | None, list[str]]:
        """Columns of a Parquet file that have to be looked at before they are summed, and those that need not be."""
        if (self.format or table_format(self.path)) != "parquet" or self.missing != "error":
            return None, []
        with_types = need("pyarrow.types")
        try:
            schema = need("pyarrow.parquet").ParquetFile(self.path).schema_arrow
        except Exception:
            return None, []  # the reader of the rows raises
        roles = {self.task, self.weights}
        names = [str(name) for name in schema.names]
        probe = Table(self.path, 0, dict.fromkeys(names))  # type: ignore[arg-type]
        coded = {*probe.match(self.target, "--target", names), *self._matched(probe, self.choice.categorical)}
        real = [
            str(field.name)
            for field in schema
            if with_types.is_floating(field.type) and field.name not in roles and field.name not in coded
        ]
        if len(set(names)) < len(names):
            return None, []
        self._order = names
        looked = [name for name in names if name not in set(real)]
        return (looked, real) if looked else (None, [])

    def _targets(self, table: Table) -> list[str]:
        targets = table.match(self.target, "--target", list(table.columns))
        if len(targets) > 1 and self.task is not None:
            raise TableError(
                f"--task: with several targets ({', '.join(targets[:3])}, ...) each target is a task; either drop "
                "--task, or stack the rows, with one target column and one task column"
            )
        return targets

    def _roles(self, table: Table, targets: list[str]) -> Mapping[str, str]:
        roles = dict.fromkeys(targets, "the target")
        for name, role in ((self.task, "task"), (self.weights, "weights"), (self.id, "id")):
            if name is not None:
                table.require(name, f"--{role}")
                if name in roles and not (name == self.task and role == "id"):
                    raise TableError(f"--{role}: column {name!r} is also {roles[name]}")
                roles.setdefault(name, f"the {role}")
        return roles

    def _refuse(self, found: list[tuple[str, Any, int]], mean: bool) -> None:
        refuse_missing(self.path, [(name, np.asarray(rows), count) for name, rows, count in found], mean=mean)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _rows(self, chunk: Table, targets: list[str], encoding: Encoding | None) -> _Rows:
        """Rows of a chunk that can be used; without an encoding, as far as their features do not matter."""
        unusable = np.zeros(chunk.n_rows, dtype=bool)
        needed = [name for name in (self.task, self.weights) if name is not None]
        needed += targets if len(targets) == 1 else []
        for name in needed:
            holes = chunk.require(name, f"--{'task' if name == self.task else 'weights'}").missing
            if holes.any() and self.missing == "error":
                rows = chunk.first + np.flatnonzero(holes)
                self._refuse([(name, rows, len(rows))], mean=False)
            unusable |= holes
        if len(targets) > 1:
            empty = np.stack([chunk.columns[name].missing for name in targets], axis=1)
            unusable |= empty.all(axis=1)
        if encoding is not None and self.missing != "mean":
            for name, rows in encoding.missing(chunk):
                if self.missing == "error":
                    self._refuse([(name, chunk.first + rows, len(rows))], mean=True)
                unusable[rows] = True
        kept = np.flatnonzero(~unusable)
        labels = [read_target(chunk.columns[name], name, self.path, False)[kept] for name in targets]
        weights = None if self.weights is None else read_weights(chunk, self.weights)[kept]
        task = np.zeros(len(kept), dtype=np.int64)
        if self.task is not None:
            read_labels_column(chunk.columns[self.task], self.task, self.path)
            task = self._codes.codes(chunk.columns[self.task], None if len(kept) == chunk.n_rows else kept)
        y = labels[0] if len(labels) == 1 else np.stack(labels, axis=1)
        return _Rows(y, task, weights, kept, chunk)

    def _counted(self, targets: list[str], encoding: Encoding) -> tuple[_Counts, Array | None]:
        """Rows of tasks, and the means of features where they fill holes."""
        counts = _Counts()
        totals, known = np.zeros(len(encoding.feature_names)), np.zeros(len(encoding.feature_names))
        for chunk in self.chunks():
            rows = self._rows(chunk, targets, encoding)
            counts.add(rows)
            if self.missing == "mean":
                X = encoding.matrix(chunk)[rows.kept]
                holes = np.isnan(X) if X.dtype.kind == "f" else np.zeros(X.shape, dtype=bool)
                totals += np.sum(X, axis=0, dtype=np.float64, where=~holes)
                known += np.count_nonzero(~holes, axis=0)
        if self.missing != "mean":
            return counts, None
        if np.any(known == 0):
            name = encoding.feature_names[int(np.argmin(known))]
            raise TableError(f"--missing mean: column {name!r} has no value at all; leave it out")
        return counts, totals / known

    def _labels(self, counts: _Counts, n_targets: int) -> list[Any]:
        """Of the tasks that have rows, in their order."""
        if self.task is None:
            return list(range(n_targets))
        try:
            return sorted(self._codes.labels[code] for code in np.flatnonzero(counts.by_task).tolist())
        except TypeError:
            raise TableError("--task: labels are words in some rows and numbers in others") from None

    def _folds(self, counts: _Counts, labels: list[Any], n_folds: int, seed: int) -> ChunkFolds:
        position = {label: t for t, label in enumerate(labels)}
        known = self._codes.labels if self.task is not None else labels
        observed = _sum_of(counts.observed, np.zeros(len(known), dtype=np.int64))
        folds = ChunkFolds(observed.tolist(), [position.get(label, 0) for label in known], n_folds, seed)
        if folds.empty is not None:
            raise TableError(
                f"--cv {n_folds}: too many folds for {counts.observed.sum()} rows in these tasks: fold {folds.empty} "
                "would hold out no row"
            )
        return folds

    def _sum(
        self,
        moments: TaskMoments,
        targets: list[str],
        encoding: Encoding,
        fill: Array | None,
        folds: ChunkFolds | None,
    ) -> None:
        if folds is not None:
            folds.rewind()
        for chunk in self.chunks():
            columns = encoding.complete_columns(chunk) if len(targets) == 1 else None
            rows = self._rows(chunk, targets, encoding if columns is None else None)
            if not len(rows.kept):
                continue
            if columns is None or len(rows.kept) < chunk.n_rows:
                X = encoding.matrix(chunk)
                X = X if len(rows.kept) == chunk.n_rows else np.asfortranarray(X[rows.kept])
                if fill is not None:
                    X, _ = fill_with_means(X, encoding.feature_names, fill)
                columns = list(X.T)
            fold = None if folds is None else _next_folds(rows, folds)
            if len(targets) > 1:
                moments.add(X, rows.y, None, rows.weights, fold=fold)
                continue
            labels = self._codes.labels if self.task is not None else None
            moments.add_columns(columns, rows.y, rows.task, labels, rows.weights, fold)


@dataclass
class _Counts:
    """Rows so far.

    - `by_task`: Rows in use, by the codes of tasks; of all targets together.
    - `observed`: Those with a label and a weight, by the codes of tasks or by target.
    """

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
        if away and len(self.first_dropped) < 6:
            gone = np.setdiff1d(np.arange(rows.chunk.n_rows), rows.kept)[:6]
            self.first_dropped += (rows.chunk.first + gone).tolist()
        self.by_task = _sum_of(self.by_task, np.bincount(rows.task))
        if rows.y.ndim == 2:
            live = ~np.isnan(rows.y) if rows.weights is None else ~np.isnan(rows.y) & (rows.weights > 0.0)[:, None]
            self.observed = _sum_of(self.observed, np.count_nonzero(live, axis=0))
            self.unobserved += int(np.isnan(rows.y).sum()) + away * rows.y.shape[1]
            return
        task = rows.task if rows.weights is None else rows.task[rows.weights > 0.0]
        self.observed = _sum_of(self.observed, np.bincount(task, minlength=len(self.by_task)))

    def notes(self, n_rows: int, n_targets: int) -> list[str]:
        found = []
        if n_targets > 1 and self.unobserved:
            found.append(
                f"{self.unobserved} of {n_rows * n_targets} labels are not observed; the model leaves them out"
            )
        if self.dropped:
            shown = ", ".join(str(row + 1) for row in self.first_dropped[:5])
            more = ", ..." if self.dropped > 5 else ""
            found.append(f"{self.dropped} of {n_rows} rows left out for missing values: row {shown}{more}")
        return found


def _sum_of(one: Array, other: Array) -> Array:
    """Of counts, the shorter of which goes on with zeros."""
    found = np.zeros(max(len(one), len(other)), dtype=np.int64)
    found[: len(one)] += one
    found[: len(other)] += other
    return found


def _next_folds(rows: _Rows, folds: ChunkFolds) -> Array:
    """Folds of the rows of a chunk in the form of y."""
    live = None if rows.weights is None else rows.weights > 0.0
    if rows.y.ndim == 1:
        return folds.next(rows.task, live)
    everywhere = np.ones(len(rows.y), dtype=bool) if live is None else live
    own = [np.full(len(rows.y), t) for t in range(rows.y.shape[1])]
    return np.stack([folds.next(t, everywhere & ~np.isnan(rows.y[:, t[0]])) for t in own], axis=1)
