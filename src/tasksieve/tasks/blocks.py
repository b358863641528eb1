"""How rows lie for a loss: one column of coefficients a task, or one for each class of a task."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..design import Design, RepeatedStorage
from .data import TaskData

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Layout:
    """Arguments of a `Design`, and the labels that go with it; see there."""

    storage: Any
    offsets: Array
    shared: bool
    weights: Array
    y: Array
    blocks: Array | None = None

    def design(self, storage: Any = None, **options: Any) -> Design:
        """With further arguments of a `Design`, and with another storage of the same rows where one is given."""
        storage, rest = self.storage if storage is None else storage, {"blocks": self.blocks, **options}
        return Design(storage, self.offsets, shared=self.shared, weights=self.weights, **rest)


def lay_out(data: TaskData, weights: Array) -> Layout:
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
