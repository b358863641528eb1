"""Rows that do not have all columns: a matrix with holes whose patterns of present columns are tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse

from ..design import ColumnGroup, PresentStorage, Storage
from ..messages import Message, ParameterError, either, value_error
from ..optional import data_frame
from ..row_names import cell_name, row_numbers
from ..user_warnings import warn
from .frames import frame_columns
from .labels import label_array, row_labels, sorted_labels
from .matrix import read_matrix
from .patterns import Patterns, Unseen, find_patterns, merge_small, pattern_names
from .source import kind_of
from .task_column import split_task_column
from .tensors import to_host

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 22  # entries looked at together
FEW_ROWS = 5  # a pattern with fewer is told of
_REMEDY = 'by_pattern(..., unseen="nearest") predicts by the fitted pattern with the largest part of their columns'


@dataclass(frozen=True)
class _Part:
    """Rows of one matrix, and which of all columns each of its columns is (None: all, in their order)."""

    values: Array
    columns: Array | None

    def __len__(self) -> int:
        return len(self.values)

    def places(self, features: Array, n_features: int) -> tuple[Any, Array]:
        """Positions among the features of those that it has, and these as it counts them."""
        if self.columns is None:
            return slice(None), features
        place = np.full(n_features, -1)
        place[self.columns] = np.arange(len(self.columns))
        own = place[features]
        return np.flatnonzero(own >= 0), own[own >= 0]


class PatternedMatrix(Storage):
    """Rows with the columns that they have; made by `by_pattern` and given as X, it knows the task of each row.

    Attributes
    ----------
    task : ndarray of shape (n,), or None
        The pattern of each row, by its label: what ``fit`` takes for its task. None where there is one only, and no
        task was given.
    patterns : Patterns
        ``names`` (labels, in the order of ``tasks_``), ``of`` (the task, as it was given, that each is a part of) and
        ``present`` (which columns each has, P x d).
    feature_names : ndarray of str
        Where X was a data frame.
    n_dropped : int
        Values that are there and are left out, by ``min_rows`` or ``unseen="nearest"``.
    """

    finite = True

    def __init__(
        self,
        parts: Sequence[_Part],
        codes: Array,
        patterns: Patterns,
        *,
        names: Array | None = None,
        unseen: Unseen = "error",
        heights: Mapping[Any, int] | None = None,
        n_dropped: int = 0,
        rows: Array | None = None,
        tasked: bool = True,
    ) -> None:
        self._parts, self.codes, self.patterns = list(parts), codes, patterns
        self._rows, self.unseen, self.n_dropped, self._tasked = rows, unseen, n_dropped, tasked
        #: rows of each entry of a dict, where X was one
        self.heights = heights
        self.n_rows, self.n_features = len(codes), patterns.n_features
        self.dtype = np.result_type(*[part.values.dtype for part in parts])
        if names is not None:
            self.feature_names = names

    @property
    def task(self) -> Array | None:
        return self.patterns.names[self.codes] if self._tasked or len(self.patterns) > 1 else None

    @property
    def present(self) -> Array:
        """Which columns each pattern has, (P, d)."""
        return self.patterns.present

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        return f"{self.n_rows:,} rows of {self.n_features:,} columns in {len(self.patterns):,} patterns"

    def to_frame(self) -> Any:
        """The patterns as a pandas data frame: their labels, tasks, rows and numbers of columns.

        Returns
        -------
        DataFrame
            With columns ``pattern``, ``task``, ``rows`` and ``columns``.
        """
        known = self.patterns
        of = [known.family(k) for k in range(len(known))]
        rows = np.bincount(self.codes, minlength=len(known))
        columns = {"pattern": known.names, "task": of, "rows": rows, "columns": known.present.sum(axis=1)}
        return data_frame(self, columns, labels=("task",))

    def __getitem__(self, rows: Any) -> PatternedMatrix:
        """Some rows, by a slice, a mask or their numbers; the patterns stay what they are."""
        chosen = np.arange(self.n_rows)[rows]
        if chosen.ndim != 1:
            raise IndexError("rows are chosen by a slice, a mask or an array of their numbers.")
        under = chosen if self._rows is None else self._rows[chosen]
        return self._with(codes=self.codes[chosen], rows=under, heights=None)

    def _with(self, **changed: Any) -> PatternedMatrix:
        given = {
            "codes": self.codes, "patterns": self.patterns, "names": getattr(self, "feature_names", None),
            "unseen": self.unseen, "heights": self.heights, "n_dropped": self.n_dropped, "rows": self._rows,
            "tasked": self._tasked,
        }  # fmt: skip
        found = PatternedMatrix(changed.pop("parts", self._parts), **{**given, **changed})
        found.small_meant = self.small_meant
        return found

    def take(self, features: Array) -> Array:
        """Columns, zero in rows that do not have them."""
        features = np.asarray(features)
        return self._gathered(np.arange(self.n_rows), features, self.present[:, features][self.codes], np.float64)

    def to_array(self) -> Array:
        """All columns, NaN in rows that do not have them.

        Returns
        -------
        ndarray of shape (n, d)
        """
        out = self.take(np.arange(self.n_features))
        out[~self.present[self.codes]] = np.nan
        return out

    def _gathered(self, rows: Array, features: Array, present: Array | None, dtype: Any) -> Array:
        """Entries of rows and columns; 0 where not `present` (None: all are)."""
        out = np.zeros((len(rows), len(features)), dtype=dtype, order="F")
        under, first = rows if self._rows is None else self._rows[rows], 0
        for part in self._parts:
            here = np.flatnonzero((under >= first) & (under < first + len(part)))
            positions, own = part.places(features, self.n_features)
            if len(here) and len(own):
                found = part.values[np.ix_(under[here] - first, own)]
                if len(here) == len(rows) and isinstance(positions, slice):
                    out[...] = found
                else:
                    out[np.ix_(here, np.arange(len(features))[positions])] = found
            first += len(part)
        if present is not None:
            out[~present] = 0.0
        return out

    def in_task_order(self, row_order: Array | None, offsets: Array) -> PresentStorage:
        order = np.arange(self.n_rows) if row_order is None else row_order
        codes = self.codes[order]
        met = np.flatnonzero(np.bincount(codes, minlength=len(self.patterns)))
        # columns that the same patterns have lie together
        packed = np.ascontiguousarray(np.packbits(self.present[met], axis=0).T)
        _, first, owner = np.unique(
            packed.view(np.dtype((np.void, packed.shape[1]))).ravel(), return_index=True, return_inverse=True
        )
        groups = []
        for g, column in enumerate(first.tolist()):
            rows = np.flatnonzero(self.present[codes, column])
            features = np.flatnonzero(owner.ravel() == g)
            if len(rows):
                groups.append(ColumnGroup(features, rows, self._gathered(order[rows], features, None, self.dtype)))
        return PresentStorage(groups, self.n_rows, self.n_features, self.dtype)

    # -- for a model that is to be fitted -----------------------------------------------------------------------------

    #: whether patterns of few rows are meant
    small_meant = False

    def warn_small(self) -> None:
        """Warn of patterns with few rows, unless they are meant."""
        counts = np.bincount(self.codes, minlength=len(self.patterns))
        small = np.flatnonzero((counts > 0) & (counts < FEW_ROWS))
        if self.small_meant or not len(small) or len(self.patterns) == 1:
            return
        words = Message(
            "{small:,} of {n:,} patterns of present columns have fewer than {few} rows ({name!r} has {count}), and "
            "each has coefficients of its own. {merging} merges them into patterns with fewer columns; {meant} says "
            "that they are meant.",
            small=len(small), n=len(self.patterns), few=FEW_ROWS, name=self.patterns.names[small[:1]].tolist()[0],
            count=counts[small[0]], merging=_merging(2 * FEW_ROWS), meant=_merging(1),
        )  # fmt: skip
        warn(words, UserWarning)

    # -- for a model that is already fitted ---------------------------------------------------------------------------

    def as_fitted(
        self, known: Patterns, names: Array | None, *, rows: Array | None = None, remedy: str = _REMEDY
    ) -> PatternedMatrix:
        """The same rows in the patterns of a fitted model, and its columns in their order.

        - `names`: Of the model's features, where they are known: columns are then matched by name, and those that are
          not here are absent.
        - `rows`, `remedy`: For messages: what the rows are called, counted from 0, and what helps.
        """
        own = getattr(self, "feature_names", None)
        places = np.arange(self.n_features)
        if own is not None and names is not None and not np.array_equal(own, names):
            at = {name: j for j, name in enumerate(names.tolist())}
            unknown = [name for name in own.tolist() if name not in at]
            if unknown:
                raise value_error(
                    "{X} has the column {name!r}, which the model was not fitted with: leave it out.", name=unknown[0]
                )
            places = np.array([at[name] for name in own.tolist()], dtype=np.int64)
        elif known.n_features != self.n_features:
            raise value_error(
                "{X} has {n} features, the model was fitted with {d}.", n=self.n_features, d=known.n_features
            )
        mine = self.patterns.on_columns(places, known.n_features)
        found = known.place(mine, self.unseen, self.codes, np.arange(self.n_rows) if rows is None else rows, remedy)
        lost = mine.present.sum(axis=1) - known.present[found].sum(axis=1)
        parts = self._parts
        if not np.array_equal(places, np.arange(known.n_features)):
            parts = [_Part(part.values, places if part.columns is None else places[part.columns]) for part in parts]
        return self._with(
            parts=parts, codes=found[self.codes], patterns=known, names=None if own is None else names,
            n_dropped=self.n_dropped + int(lost[self.codes].sum()), tasked=known.of is not None,
        )  # fmt: skip


def _merging(count: int) -> Any:
    return either(f"min_rows={count}", f"--pattern-rows {count}")


def by_pattern(
    X: Any,
    *,
    task: Any = None,
    columns: Literal["same", "union"] = "same",
    min_rows: int | None = None,
    unseen: Unseen = "error",
) -> PatternedMatrix:
    """Rows with missing values, without filling anything in: a pattern of present columns is a task.

    Rows of a task in which the same columns are present form a task of their own, and a column that is missing there
    is a feature that this task does not have: its coefficient is exactly 0, it is neither stored nor read, and it has
    no part in standardisation. Every row is used. The penalty ties the patterns together as it ties any tasks: of the
    L2,1 norm, the row of feature j runs over the patterns that have it.

    Parameters
    ----------
    X : array or data frame of shape (n, d), or dict of task to such
        NaN (None, NA) is a value that is missing. Of a dict, ``{task: X}``, the rows are stacked in its order; y and
        what else is said of rows may then be dicts with the same keys. Never modified, and not copied.
    task : array of shape (n,), or str, optional
        The task of each row: words or whole numbers; or the name of the column of X, a data frame, that has them. Not
        with a dict.
    columns : {"same", "union"}, default="same"
        Data frames of a dict whose columns differ: an error, or all columns that one of them has, those that a frame
        does not have being absent there.
    min_rows : int, optional
        Patterns with fewer rows are merged into the largest pattern of their task whose columns they all have: the
        other columns of these rows are left out (``n_dropped`` counts the values). By default none is, and patterns of
        fewer than 5 rows are warned of; 1 says that they are meant.
    unseen : {"error", "nearest"}, default="error"
        Rows to predict whose pattern was not fitted: an error that names them, or the prediction of the fitted pattern
        of their task with the largest part of their columns.

    Returns
    -------
    PatternedMatrix
        For ``fit``, ``path``, ``predict``, ``score`` and ``certificate`` in the place of X, without ``task``: it has
        the label of each row's pattern, ``A/1``, ``A/2``, ... for those of task A, the first with most columns.
        Fitted models have ``present_`` (T, d) and ``patterns_``; rows to predict are given by `by_pattern` as well, and
        find their patterns by the columns that they have.

    Raises
    ------
    ValueError
        For infinite values, rows without any value, and models that tie coefficients of different tasks to each other
        (``task_graph``): there an absent feature would not stay at 0.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> X, y, _, _ = ts.datasets.make_small_tasks(effects=[1.0], n_rows=60, n_features=6)
    >>> X[40:, 3:] = np.nan                      # the second block was not measured for the last 20 rows
    >>> rows = ts.by_pattern(X)
    >>> rows
    60 rows of 6 columns in 2 patterns
    >>> model = ts.MultiTaskLasso(alpha=0.1).fit(rows, y)
    >>> model.tasks_
    array(['pattern 1', 'pattern 2'], dtype='<U9')
    >>> model.present_.sum(axis=1), bool(np.any(model.coef_[~model.present_]))
    (array([6, 3]), False)
    >>> model.predict(ts.by_pattern(X[38:42])).shape
    (4,)
    """
    if columns not in ("same", "union"):
        raise ParameterError("columns", "must be 'same' or 'union'", columns)
    if unseen not in ("error", "nearest"):
        raise ParameterError("unseen", "must be 'error' or 'nearest'", unseen)
    heights = None
    if isinstance(X, Mapping) and not scipy.sparse.issparse(X):
        if task is not None:
            raise ValueError("task was given with a dict of tasks: its keys are the tasks. Drop task.")
        if not X:
            raise ValueError("X is an empty dict: it needs an entry for each task.")
        frames = {label: to_host(own[0] if isinstance(own, tuple) else own) for label, own in X.items()}
        parts, names, n_features = _stacked(frames, columns)
        heights = {label: len(part) for label, part in zip(frames, parts, strict=True)}
        task = np.repeat(label_array(list(frames)), list(heights.values()))
    else:
        if columns != "same":
            raise ParameterError("columns", "is for a dict of data frames; one matrix has its columns", columns)
        if isinstance(task, str):
            X, task = split_task_column(X, task)
        names, values = _column_names(X), _numbers(X, "X")
        if names is not None and not all(isinstance(name, str) for name in names.tolist()):
            names = None
        parts, n_features = [_Part(values, None)], values.shape[1]
    return _found(parts, names, n_features, task, min_rows=min_rows, unseen=unseen, heights=heights)


def patterned(
    X: Array, task: Any, *, rows: Array, min_rows: int | None = None, unseen: Unseen = "error"
) -> PatternedMatrix:
    """`by_pattern` of the rows of a table, which messages call by their numbers there, counted from 0."""
    return _found([_Part(X, None)], None, X.shape[1], task, min_rows=min_rows, unseen=unseen, rows=rows)


def _found(
    parts: Sequence[_Part],
    names: Array | None,
    n_features: int,
    task: Any,
    *,
    min_rows: int | None,
    unseen: Unseen,
    heights: Mapping[Any, int] | None = None,
    rows: Array | None = None,
) -> PatternedMatrix:
    """Rows in their patterns; messages call them by `rows`."""
    least = 1 if min_rows is None else min_rows
    if type(min_rows) is bool or type(least) not in (int, np.int32, np.int64) or least < 1:
        raise ParameterError("min_rows", "must be a whole number >= 1", min_rows)
    n_rows = sum(map(len, parts))
    called = np.arange(n_rows) if rows is None else rows
    labels, families = None, np.zeros(n_rows, dtype=np.int64)
    if task is not None:
        labels, families = sorted_labels(row_labels(task, n_rows, "task"), "task")
        families = families.ravel()
    owners, packed, codes = find_patterns(_packed_masks(parts, n_features, names), families)
    present = np.unpackbits(packed, axis=1, count=n_features).astype(bool)
    empty = np.flatnonzero(~present.any(axis=1))
    if len(empty):
        named = row_numbers(called[np.isin(codes, empty)].tolist())
        raise value_error("rows {named} have no value at all (row 1 is the first): leave them out.", named=named)
    n_dropped = 0
    if least > 1:
        stands = merge_small(owners, present, codes, int(least), called)
        sizes = present.sum(axis=1)
        n_dropped = int((sizes - sizes[stands])[codes].sum())
        kept, codes = np.unique(stands[codes], return_inverse=True)
        owners, present, codes = owners[kept], present[kept], codes.ravel()
    table = Patterns(pattern_names(labels, owners), None if labels is None else labels[owners], present)
    order = np.argsort(table.names, kind="stable")  # as labels of tasks are sorted
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    table = table.subset(table.names[order].tolist())
    found = PatternedMatrix(
        parts, place[codes], table, names=names, unseen=unseen, heights=heights, n_dropped=n_dropped,
        tasked=labels is not None,
    )  # fmt: skip
    found.small_meant = min_rows is not None
    return found


def _stacked(frames: Mapping[Any, Any], columns: str) -> tuple[list[_Part], Array | None, int]:
    """Matrices of the entries of a dict, the names of all columns, and their number."""
    own = {label: _column_names(frame) for label, frame in frames.items()}
    values = {label: _numbers(frame, f"X[{label!r}]") for label, frame in frames.items()}
    first = next(iter(frames))
    nameless = [label for label, names in own.items() if names is None]
    if nameless and len(nameless) < len(own):
        raise ValueError(f"X[{nameless[0]!r}] has no names of columns, others have: make all of them data frames.")
    if nameless:
        if columns == "union":
            raise ParameterError("columns", "needs data frames: columns are matched by their names", columns)
        for label, matrix in values.items():
            if matrix.shape[1] != values[first].shape[1]:
                raise value_error(
                    "X[{label!r}] has {n} columns, X[{first!r}] has {m}: use data frames and {union}.",
                    label=label, n=matrix.shape[1], first=first, m=values[first].shape[1],
                    union=either("columns='union'", "--columns union"),
                )  # fmt: skip
        return [_Part(matrix, None) for matrix in values.values()], None, values[first].shape[1]
    every = list(dict.fromkeys(name for names in own.values() if names is not None for name in names.tolist()))
    place = {name: j for j, name in enumerate(every)}
    parts = []
    for label, names in own.items():
        assert names is not None
        if len(set(names.tolist())) < len(names):
            raise ValueError(f"X[{label!r}] has two columns of one name.")
        if columns == "same" and len(names) < len(every):
            absent = next(name for name in every if name not in set(names.tolist()))
            raise value_error(
                "X[{label!r}] lacks the column {absent!r}: {union} makes it absent there.",
                label=label, absent=absent, union=either("columns='union'", "--columns union"),
            )  # fmt: skip
        parts.append(_Part(values[label], np.array([place[name] for name in names.tolist()], dtype=np.int64)))
    return parts, np.array(every, dtype=object) if all(isinstance(name, str) for name in every) else None, len(every)


def _column_names(X: Any) -> Array | None:
    found = frame_columns(X)
    return None if found is None else np.array(found, dtype=object)


def _numbers(X: Any, name: str) -> Array:
    """Numbers, NaN where there is none, in a type that the kernels read."""
    X = to_host(X)
    if not kind_of(X).dense:
        raise ValueError(f"{name}: patterns of present columns are found in arrays and data frames in memory.")
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(np.ma.asarray(X, dtype=np.float64), np.nan)
    return np.asarray(read_matrix(X, name, search=False))


def _packed_masks(parts: Sequence[_Part], n_features: int, names: Array | None) -> Array:
    """Present columns of each row, packed into bits; infinite values are refused."""
    found, first = [], 0
    for part in parts:
        step = max(1, _BLOCK // max(n_features, 1))
        for low in range(0, len(part), step):
            block = part.values[low : low + step]
            there = ~np.isnan(block) if block.dtype.kind == "f" else np.ones(block.shape, dtype=bool)
            if block.dtype.kind == "f" and np.isinf(block).any():
                row, column = np.argwhere(np.isinf(block))[0].tolist()
                where = column if part.columns is None else int(part.columns[column])
                words = cell_name(first + low + row, where) + ("" if names is None else f" ({names[where]!r})")
                raise value_error("{X} contains infinity (inf): {where}. Correct it.", where=words)
            if part.columns is not None:
                wide = np.zeros((len(block), n_features), dtype=bool)
                wide[:, part.columns] = there
                there = wide
            found.append(np.packbits(there, axis=1))
        first += len(part)
    return np.concatenate(found)
