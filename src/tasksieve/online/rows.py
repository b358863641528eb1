"""Rows of any tasks in the order in which they are to be learned, from any form of the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse

from ..tasks import Form, read_labels, read_stacked

# Rows converted to float64 (and gathered, where they are shuffled) at a time.
BLOCK_ENTRIES = 1 << 20


@dataclass
class RowBatch:
    """Rows to learn from."""

    matrix: Any  # ndarray or CSR
    rows: np.ndarray | None  # row of `matrix` of each instance; None: one instance a row, in order
    y: np.ndarray  # numbers, or class labels as they came
    tasks: list[Any]  # labels in the order in which they are first met
    codes: np.ndarray  # place of each instance's task in `tasks`
    weights: np.ndarray | None  # 0: not observed, or left out
    form: Form

    @property
    def n_features(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def sparse(self) -> bool:
        return bool(scipy.sparse.issparse(self.matrix))

    @property
    def observed(self) -> np.ndarray:
        """Whether each instance has a label that counts."""
        return np.ones(len(self.y), dtype=bool) if self.weights is None else self.weights > 0

    def first(self, count: int) -> RowBatch:
        """The first instances alone, with the tasks that are among them."""
        codes = self.codes[:count]
        return replace(
            self,
            matrix=self.matrix[:count] if self.rows is None else self.matrix,
            rows=None if self.rows is None else self.rows[:count],
            y=self.y[:count],
            tasks=self.tasks[: int(codes.max(initial=-1)) + 1],  # first seen first
            codes=codes,
            weights=None if self.weights is None else self.weights[:count],
        )

    def blocks(self, order: np.ndarray | None = None) -> Iterator[tuple[Any, Any]]:
        """(rows of the matrix in float64, which instances they are), a bounded number at a time."""
        n = len(self.y)
        per_row = self.matrix.nnz // max(1, self.matrix.shape[0]) + 1 if self.sparse else self.n_features
        step = max(1, BLOCK_ENTRIES // max(1, per_row))
        for start in range(0, n, step):
            some: Any = slice(start, start + step) if order is None else order[start : start + step]
            if self.rows is not None:
                part = self.matrix[self.rows[some]]
            elif order is None and n <= step:
                part = self.matrix
            else:
                part = self.matrix[some]
            if part.dtype != np.float64:
                part = part.astype(np.float64)
            yield (part if self.sparse else np.ascontiguousarray(part)), some


def read_rows(
    X: Any, y: Any, task: Any, sample_weight: Any, targets: Literal["values", "labels"]
) -> RowBatch:
    """Read X, y, task and weights in any form of the contract, keeping the order of the rows. One matrix shared by all
    tasks gives, row by row, one instance for each observed entry of y."""
    matrix, heights = read_stacked(X)
    labels = read_labels(heights, y, task, sample_weight, targets=targets, allow_empty=True)
    values, weights, codes = labels.y, labels.weights, labels.task_of_sample
    if labels.form != "list":
        values, weights, codes = (labels.unflatten(part).ravel() for part in (values, weights, codes))
    rows = np.repeat(np.arange(labels.n_rows), labels.n_tasks) if labels.shared else None
    tasks, codes = first_seen(labels.tasks.tolist(), codes)
    return RowBatch(
        matrix, rows, values, tasks, codes, None if np.all(weights == 1.0) else weights, labels.form
    )


def first_seen(tasks: list[Any], codes: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Tasks in the order in which they are first met, and the codes to match; tasks without rows are left out."""
    present, first = np.unique(codes, return_index=True)
    in_order = present[np.argsort(first)]
    position = np.empty(len(tasks), dtype=np.int64)
    position[in_order] = np.arange(len(in_order))
    return [tasks[t] for t in in_order.tolist()], position[codes]
