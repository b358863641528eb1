"""An order of the rows by their content: random draws must not depend on the order or form of the data.

Within a task rows are sorted by label, weight and offset, then by as many columns of X as it takes to distinguish them.
Every task has a stream of random numbers of its own, seeded by its rows in that order: not by its name, nor by its
place. (Nor by its labels alone: two tasks with as many rows of each class would draw alike.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..outcomes import columns
from ..tasks import TaskData
from .ranks import content_names, content_ranks

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Canonical:
    """Rows of X in an order of their own, and what the streams of random numbers are seeded with."""

    rows: list[Array]  # observed rows as X is stored, task by task, or once for a matrix shared by all tasks
    seeds: list[tuple[int, ...]]  # one for each of them

    def stream(self, seed: int, *parts: int, more: tuple[int, ...] = ()) -> np.random.Generator:
        """The stream that belongs to some of them together."""
        return np.random.default_rng([seed, *(number for k in parts for number in self.seeds[k]), *more])


def canonical(data: TaskData) -> Canonical:
    """The observed rows of each task in their own order; those of a shared matrix are rows of all tasks."""
    n_rows, known = data.n_rows, data.known
    flat = [*columns(data.y), data.weights] if known is None else [*columns(data.y), data.weights, known]
    if data.shared:
        labels = np.concatenate([part.reshape(data.n_tasks, n_rows) for part in flat]).T
        task = np.zeros(n_rows, dtype=np.int64)
        observed = np.logical_or.reduce((data.weights > 0.0).reshape(data.n_tasks, n_rows), axis=0)
    else:
        labels, task = np.stack(flat, axis=1), data.task_of_sample
        observed = np.asarray(data.weights > 0.0)
    labels = labels + 0.0  # no negative zeros
    present = np.flatnonzero(observed)
    ranks = content_ranks(data, present, [*labels[present].T[::-1], task[present]])
    order = present[np.argsort(ranks, kind="stable")]
    rows = [order[task[order] == k] for k in range(int(task.max()) + 1)]
    names = content_names(data, [np.ascontiguousarray(labels[own]).tobytes() for own in rows], rows)
    return Canonical(rows, [tuple(np.frombuffer(name, dtype=">u4").tolist()) for name in names])
