"""What a graph machine reads of its data, once for all values of its parameters and for all folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from sklearn import get_config

from ..graph.graphs import similarity_of
from ..tasks import TaskLabels, refuse_not_finite
from .problem import LOSSES, GraphProblem, KernelRows, Shape
from .ranges import refuse_costs, refuse_ranges


@dataclass
class GraphData:
    """Rows, targets and graph.

    - `targets`: Numbers, or -1 / +1: one for each machine (more than two classes: one per class), in the order of the
      labels.
    - `tasks`, `position`: Those of the graph, in its order, and where each task of the labels is among them.
    """

    source: Any
    labels: TaskLabels
    targets: list[np.ndarray]
    tasks: np.ndarray
    position: np.ndarray
    graph: np.ndarray
    shape: Shape
    _couplings: dict[float, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.order, self.offsets = _graph_order(self.labels, self.position, len(self.tasks))
        self.row_of = _row_of_sample(self.labels, self.order)

    def without_rows(self) -> GraphData:
        """What a solution must know of its data once the rows are gone."""
        return replace(self, source=None, _couplings={})

    @cached_property
    def rows(self) -> KernelRows:
        rows = KernelRows(self.source, self.shape)
        if not rows.strings and not get_config()["assume_finite"] and not np.isfinite(np.sum(rows.squares)):
            # the norms of the rows, which are needed anyway, show NaN and infinity too: X is not read twice
            refuse_not_finite(self.source, "X")
        return rows

    def coupling(self, strength: float) -> tuple[np.ndarray, np.ndarray]:
        """I + L and its inverse."""
        if strength not in self._couplings:
            apart = strength == 0.0 or not self.graph.any()  # nothing to invert, however many tasks there are
            alone = np.eye(len(self.tasks))
            self._couplings[strength] = (alone, alone) if apart else similarity_of(self.graph, strength)
        return self._couplings[strength]

    def sorted(self, flat: np.ndarray) -> np.ndarray:
        """From the order of the labels to that of the graph."""
        return np.ascontiguousarray(flat if self.order is None else flat[self.order])

    def unsorted(self, flat: np.ndarray) -> np.ndarray:
        """And back."""
        if self.order is None:
            return flat
        back = np.empty_like(flat)
        back[self.order] = flat
        return back

    def in_form_of_y(self, flat: np.ndarray) -> Any:
        """Values in the order of the graph, in the form of y."""
        return self.labels.unflatten(self.unsorted(flat))

    @property
    def codes(self) -> np.ndarray:
        """The class of each sample, from 0, in the order of the labels."""
        return np.argmax(self.targets, axis=0) if len(self.targets) > 1 else (self.targets[0] > 0).astype(np.intp)

    def problems(
        self, C: float, strength: float, weights: np.ndarray, chosen: np.ndarray | None = None
    ) -> Iterator[GraphProblem]:
        """The problem of each machine in turn, on the samples that are `chosen` (in the order of the graph; no row is
        copied), given weights in the order of the labels."""
        with np.errstate(over="ignore", under="ignore"):
            cost = C * weights
        refuse_costs(C, cost, weights)
        for target in self.targets:
            problem = self._problem(target, cost, strength, chosen)
            refuse_ranges(problem)
            yield problem

    def _problem(
        self, target: np.ndarray, cost: np.ndarray, strength: float, chosen: np.ndarray | None
    ) -> GraphProblem:
        offsets, row_of = self.offsets, self.row_of
        target, cost = self.sorted(target), self.sorted(cost)
        if chosen is not None:
            offsets = np.searchsorted(chosen, offsets).astype(np.int64)
            row_of = chosen if row_of is None else row_of[chosen]
            target, cost = target[chosen], cost[chosen]
        return GraphProblem(self.rows, offsets, row_of, target, cost, *self.coupling(strength))

    def scorer(self, chosen: np.ndarray) -> GraphProblem:
        """What gives the scores of some samples, increasing, in the order of the graph."""
        zero = np.zeros(len(self.labels.y))
        return self._problem(zero, zero, 0.0, chosen)

    def losses(self, chosen: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Of some samples in the order of the graph, the mean over machines; these are the last axis of several."""
        loss = LOSSES[self.shape.loss][1](self.shape.epsilon)
        targets = [self.sorted(target)[chosen] for target in self.targets]
        return np.mean([loss.value(y, own) for y, own in zip(targets, np.atleast_2d(z.T), strict=True)], axis=0)

    def row_squares(self) -> np.ndarray:
        """Squared length of the row of every sample, constant feature included, in the order of the labels."""
        if self.rows.strings:
            return np.full(len(self.labels.y), self.source.total(2) + self.shape.bias**2)
        squares = self.rows.squares
        return self.unsorted(squares[: len(self.labels.y)] if self.row_of is None else squares[self.row_of])


def _graph_order(labels: TaskLabels, position: np.ndarray, n_tasks: int) -> tuple[np.ndarray | None, np.ndarray]:
    """The samples task after task as the graph has them (None: as they are already), and where each task begins."""
    counts = np.zeros(n_tasks, dtype=np.int64)
    counts[position] = np.diff(labels.offsets)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    if np.all(np.diff(position) > 0):
        return None, offsets
    parts = list(labels.per_task())
    return np.concatenate([np.arange(parts[k].start, parts[k].stop) for k in np.argsort(position)]), offsets


def _row_of_sample(labels: TaskLabels, order: np.ndarray | None) -> np.ndarray | None:
    """The row of X that each sample is; None where sample i is row i."""
    if order is None and labels.order is None and not labels.shared:
        return None
    rows = labels.flatten_rows(np.arange(labels.n_rows))
    return np.ascontiguousarray(rows if order is None else rows[order], dtype=np.int64)


def row_major(matrix: Any) -> Any:
    """Rows contiguous in memory: a copy only of what is not."""
    if scipy.sparse.issparse(matrix):
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    return np.ascontiguousarray(matrix)
