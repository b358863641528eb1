"""Labels, weights and the matrix they belong to, and how they lie for a loss: all that a problem is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import scipy.sparse
from sklearn import get_config

from ..design import Design, RepeatedStorage, SomeRows
from ..messages import value_error
from .fills import Fills
from .labels import read_labels
from .many_tasks import warn_many_tasks
from .matrix import read_source, read_task_list
from .ordered import encode_ordered, known_order
from .patterns import Patterns
from .sample_space import TaskLabels
from .source import RowSource, Source, is_task_list, kind_of
from .tensors import refuse_mixed
from .weights import read_task_weights

# Matrices of at least so many entries are not searched for NaN when they are read.
SEARCHED_ENTRIES = 1 << 22


@dataclass(frozen=True)
class TaskData(TaskLabels):
    """Labels, weights and the matrix they belong to: all that a problem is made of.

    - `X` (RowSource, or storage of `tasksieve.design`): As it was given, or its columns.
    - `unsearched` (list of (Source, name)): Large matrices in which NaN and infinity have not been looked for: the
      norms of their columns will show.
    - `class_factors`: What ``class_weight`` has multiplied the sample weights by, or None.
    - `balance`: Scales of the responses and weights of the losses under these weights, where tasks have losses of their
      own and they are known.
    """

    X: Any = None
    n_features: int = 0
    task_weights: Any = None
    task_weights_rule: Any = None
    unsearched: Any = ()
    class_factors: Any = None
    balance: Any = None

    @cached_property
    def n_bar(self) -> float:
        return super().n_bar  # used several times a fit

    @property
    def source(self) -> RowSource | None:
        """X as it was given, where that is known."""
        return self.X if isinstance(self.X, RowSource) else None

    def make_storage(self) -> Any:
        """The columns of X, rows in task order: stored once whatever the number of tasks, on first use."""
        return self.X.make_storage() if isinstance(self.X, RowSource) else self.X

    def take(self, features: np.ndarray) -> np.ndarray:
        """Some columns, rows in task order; cut from the source while no storage has been made."""
        source = self.source
        return self.make_storage().take(features) if source is None or source.stored else source.cut(features)

    @property
    def patterns(self) -> Patterns | None:
        """Which columns tasks have, where some may lack some (`by_pattern`)."""
        known = None if self.source is None else getattr(self.source.matrices[0], "patterns", None)
        if known is None or self.n_tasks == len(known):  # of some rows: patterns may have none
            return known
        return known.subset(self.tasks.tolist())

    @property
    def has_fills(self) -> bool:
        """Whether calls can be missing (`read_plink`)."""
        return self.source is not None and hasattr(self.source.matrices[0], "filled")

    def fills(self, *features: np.ndarray) -> Fills | None:
        """Fill values of missing calls of the features in these arrays, where calls can be missing."""
        if not self.has_fills:
            return None
        chosen = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *features]))
        means = self.make_storage().fills(chosen)
        return Fills(chosen, np.broadcast_to(means, (len(chosen), self.n_tasks)).copy())

    def refuse_not_finite(self) -> None:
        """Raise a ValueError that names the first NaN or infinity of X, if there is one."""
        for source, name in self.unsearched:
            source.refuse_not_finite(name)

    @property
    def sample_weights(self) -> np.ndarray:
        """Weights of the loss: sample weight times task weight."""
        if self.task_weights_rule is None:
            return self.weights
        return self.weights * np.repeat(self.task_weights, np.diff(self.offsets))

    def with_weights(self, weights: np.ndarray) -> TaskData:
        """The same data under other sample weights: how folds and masks are made, without a copy of X."""
        changed = replace(self, weights=weights, balance=None)
        task_weights = read_task_weights(self.task_weights_rule, changed)
        return replace(changed, task_weights=task_weights)

    def without_absent_rows(self) -> TaskData:
        """The same without rows of weight 0, of which no copy is made: only their columns become shorter. A task keeps
        one row at least. Sparse columns, and those that are not in this process, keep all of their rows."""
        storage = self.make_storage()
        if storage.sparse or storage.shard_class is not None:
            return self
        live = np.asarray(self.weights > 0.0)
        if self.shared:
            live = np.logical_or.reduce(live.reshape(self.n_tasks, -1), axis=0)
        else:
            live[self.offsets[:-1][~np.logical_or.reduceat(live, self.offsets[:-1])]] = True
        rows = np.flatnonzero(live)
        if len(rows) == self.n_rows or not len(rows):
            return self
        samples, offsets = rows, np.searchsorted(rows, self.offsets)
        if self.shared:
            samples = (self.offsets[:-1, None] + rows).ravel()
            offsets = len(rows) * np.arange(self.n_tasks + 1, dtype=np.int64)
        return replace(
            self,
            X=SomeRows(storage, rows, self.offsets, offsets),
            n_rows=len(rows),
            offsets=offsets,
            order=None,
            y=self.y[samples],
            weights=self.weights[samples],
            known=None if self.known is None else self.known[samples],
            class_factors=None if self.class_factors is None else self.class_factors[samples],
        )


def read_tasks(
    X: Any,
    y: Any,
    task: Any = None,
    sample_weight: Any = None,
    *,
    task_weights: Any = None,
    targets: Literal["values", "classes", "many classes", "ordered", "survival"] = "values",
    categories: Any = None,
) -> TaskData:
    """Read X, y, task and weights in any form of the contract.

    - `X` (matrix, or list of matrices (one per task)): Tensors stay on their device; all else that is a tensor is
      brought to NumPy, once.
    - `y` (array of shape (n,) or (n, T), or list of 1-D arrays): NaN (None, NA) is a label that is not observed. Of
      survival labels see `endpoints`.
    - `targets`: Numbers, labels of two classes to be read as -1 / +1, or of any number of classes, or times of events;
      "ordered" classes stand in the order of `categories` (None: of an ordered categorical, or sorted).
    """
    # The norms of the columns show NaN and infinity too, and are needed anyway: a large matrix is not read twice.
    unsearched: list[tuple[Source, str]] = []

    def read(item: Any, name: str) -> Source:
        source = read_source(item, name, search=False)
        if not source.finite and not get_config()["assume_finite"]:
            if source.searched_late or math.prod(source.shape) >= SEARCHED_ENTRIES:
                unsearched.append((source, name))
            else:
                source.refuse_not_finite(name)
        return source

    sources = _alike(read_task_list(X, read)) if is_task_list(X) else [read(X, "X")]
    rows = [source.shape[0] for source in sources] if is_task_list(X) else sources[0].shape[0]
    if targets == "ordered":
        labels = read_labels(rows, y, task, sample_weight, targets="labels")
        labels = encode_ordered(labels, known_order(y) if categories is None else categories)
    else:
        labels = read_labels(rows, y, task, sample_weight, targets=targets)
    known = getattr(sources[0].matrix, "patterns", None)
    if known is not None and len(known) > 1 and labels.form != "stacked":
        raise value_error(
            "{X} is rows of by_pattern in {n} patterns of present columns, each of them a task, and this model has one "
            "task, or one matrix for all of them. Fill in what is missing.",
            n=len(known),
        )
    if 2 * labels.n_tasks > labels.n_rows:  # most fits need not enter another file
        warn_many_tasks(labels, known)
    source = RowSource(sources, labels.order, None if labels.shared else labels.offsets)
    return TaskData(
        **vars(labels),
        X=source,
        n_features=source.n_features,
        task_weights=read_task_weights(task_weights, labels),
        task_weights_rule=task_weights,
        unsearched=unsearched,
    )


def _alike(sources: list[Source]) -> list[Source]:
    """Matrices of one kind and of one type, where they can be."""
    matrices = [source.matrix for source in sources]
    refuse_mixed(matrices)
    sparse = [scipy.sparse.issparse(matrix) for matrix in matrices]
    if any(sparse) and not all(sparse):
        matrices = [scipy.sparse.csc_array(matrix) for matrix in matrices]
    if len({matrix.dtype for matrix in matrices}) > 1:
        matrices = [matrix.astype(np.float64) for matrix in matrices]
    return [kind_of(matrix)(matrix) for matrix in matrices]


@dataclass(frozen=True)
class Layout:
    """Arguments of a `Design`, and the labels that go with it; see there."""

    storage: Any
    offsets: np.ndarray
    shared: bool
    weights: np.ndarray
    y: np.ndarray
    blocks: np.ndarray | None = None

    def design(self, storage: Any = None, **options: Any) -> Design:
        """With further arguments of a `Design`, and with another storage of the same rows where one is given."""
        storage, rest = self.storage if storage is None else storage, {"blocks": self.blocks, **options}
        return Design(storage, self.offsets, shared=self.shared, weights=self.weights, **rest)


def lay_out(data: TaskData, weights: np.ndarray) -> Layout:
    """Rows and labels as the loss sees them, under given weights of the rows.

    With more than two classes, each class of a task is a task of the design, with 1 where a row is of that class and 0
    where not. They see the rows of their task, which are not copied.
    """
    counts = data.class_counts
    if counts is None:
        return Layout(data.make_storage(), data.offsets, data.shared, weights, data.y)
    blocks = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    spans = [slice(*pair) for pair in pairwise(data.offsets.tolist())]
    weights = np.concatenate([np.tile(weights[own], count) for own, count in zip(spans, counts, strict=True)])
    one_hot = [(np.arange(count)[:, None] == data.y[own]).ravel() for own, count in zip(spans, counts, strict=True)]
    y = np.concatenate(one_hot).astype(np.float64)
    if data.shared or data.n_tasks == 1:
        offsets = data.n_rows * np.arange(blocks[-1] + 1, dtype=np.int64)
        return Layout(data.make_storage(), offsets, True, weights, y, blocks)
    storage = RepeatedStorage(data.make_storage(), data.offsets, counts)
    return Layout(storage, storage.offsets, False, weights, y, blocks)
