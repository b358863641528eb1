"""Moments of data in memory, in a memory map or in a cluster: rows are read once in blocks, and none is copied.

In a cluster each block of rows is summed where it is, and the sums are added two by two: what crosses are Gram matrices
of a few features, one for each task and fold, instead of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design.moments import leave_one_out
from ..design.sums import Gathered, RowSums, SharedSums, about, block_rows, sums_at_once
from .data import TaskData

Array = np.ndarray[Any, Any]
Sums = RowSums | SharedSums


def gather_at_once(data: TaskData, shift: bool, n_threads: int) -> Gathered:
    """What rows amount to that are few enough to be copied: those of one matrix for all tasks, or of one a task."""
    source, n_tasks = data.source, data.n_tasks
    assert source is not None
    x, alike = source.columns(), data.shared or n_tasks == 1
    y = np.asfortranarray(data.y.reshape(n_tasks if alike else 1, -1).T)
    offsets = np.array([0, len(x)]) if alike else data.offsets
    weights = data.weights[: len(x)]
    root = np.ones(len(x)) if (weights == 1.0).all() else np.sqrt(weights)
    return sums_at_once(x, y, root, offsets, shift=shift, n_threads=n_threads)


@dataclass
class GatheredFolds:
    """What all rows amount to, after so many readings, and for each fold the training rows and those held out."""

    whole: Gathered
    folds: list[tuple[Gathered, Gathered]]
    readings: int = 1

    @classmethod
    def of(cls, parts: list[Gathered], readings: int = 1) -> GatheredFolds:
        """Given the parts of all folds and, last, that of the rows that none holds out."""
        *held, never = parts
        if not held:
            return cls(never, [], readings)
        whole = Gathered(never.moments.copy(), never.shifts, never.label_shifts)
        for part in held:
            whole.moments.add(part.moments)
        left = leave_one_out([part.moments for part in held], never.moments)
        pairs = [
            (Gathered(others, part.shifts, part.label_shifts), part) for part, others in zip(held, left, strict=True)
        ]
        return cls(whole, pairs, readings)


def gather_rows(
    data: TaskData, shift: bool, n_threads: int, fold: Array | None = None, n_folds: int = 0
) -> GatheredFolds:
    """What the rows amount to, under the sample weights alone; they are read once more, with the means found, where the
    first rows are unlike the others.

    - `fold`: Of each sample: `n_folds` for those that none holds out.
    """
    found = GatheredFolds.of(_read(data, shift, n_threads, None, fold, n_folds + 1))
    if not shift or found.whole.well_centred:
        return found
    return GatheredFolds.of(_read(data, shift, n_threads, found.whole.means(), fold, n_folds + 1), 2)


def one_matrix(data: TaskData) -> bool:
    """Whether all tasks see the very same rows: one Gram matrix serves them all."""
    return data.shared and data.n_tasks > 1 and same_for_all(data.weights.reshape(data.n_tasks, -1))


def same_for_all(by_task: Array) -> bool:
    """Whether the rows of a shared matrix have the same weight, or the same fold, in all tasks."""
    return bool((by_task[1:] == by_task[0]).all())


def _read(
    data: TaskData,
    shift: bool,
    n_threads: int,
    known: tuple[Array, Array] | None,
    fold: Array | None,
    n_cells: int,
) -> list[Gathered]:
    """The parts of the folds, or of all rows."""
    source = data.source
    assert source is not None
    together = one_matrix(data) and (fold is None or same_for_all(fold.reshape(data.n_tasks, -1)))
    plan = SumPlan(data.n_features, data.n_tasks, n_cells, shift, together, known)
    if source.location == "cluster":
        sums = _in_cluster(data, plan, fold)
    else:
        sums = plan.begun(n_threads)
        for positions, rows in source.blocks(block_rows(data.n_features + 2)):
            add_rows(sums, rows, *_beside(data, positions, fold))
    return [sums.gathered(cell) for cell in range(n_cells)]


@dataclass(frozen=True)
class SumPlan:
    """What is summed: one matrix for all tasks or one each, and, where they are known, shifts of columns and labels."""

    n_features: int
    n_tasks: int
    n_cells: int
    shift: bool
    together: bool
    known: tuple[Array, Array] | None

    def begun(self, n_threads: int) -> Sums:
        """Sums of no rows yet."""
        options: Any = {"shift": self.shift, "n_threads": n_threads}
        sums: Sums
        if self.together:
            sums = SharedSums(self.n_features, self.n_tasks, self.n_cells, **options)
        else:
            sums = RowSums(self.n_features, self.n_cells, **options)
            sums.grow(self.n_tasks)
        if self.known is not None:
            shifts, labels = self.known
            sums.shift_by(shifts[0] if self.together else np.broadcast_to(shifts, sums.shifts.shape), labels)
        return sums


def _beside(data: TaskData, positions: Array, fold: Array | None) -> tuple[Array, Array | None, Array | None, Array]:
    """Labels, tasks, folds and weights of some rows; (rows, tasks) and no tasks where all tasks share them."""
    if not data.shared:
        tasks = np.zeros(len(positions), dtype=np.int64)
        if data.n_tasks > 1:
            tasks = np.searchsorted(data.offsets, positions, side="right") - 1
        return data.y[positions], tasks, None if fold is None else fold[positions], data.weights[positions]
    y, folds, weights = (
        None if values is None else values.reshape(data.n_tasks, -1)[:, positions].T
        for values in (data.y, fold, data.weights)
    )
    return y, None, folds, weights  # type: ignore[return-value]


def add_rows(sums: Sums, rows: Array, y: Array, tasks: Array | None, folds: Array | None, weights: Array) -> None:
    """Rows of a task each or, without `tasks`, of all tasks."""
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(sums, SharedSums):
            own = None if np.all(weights[:, 0] == 1.0) else weights[:, 0]
            sums.add(rows, y, None if folds is None else folds[:, 0], own)
        elif tasks is not None:
            sums.add(rows, y, tasks, folds, weights)
        else:
            for t in range(y.shape[1]):
                own = None if folds is None else folds[:, t]
                sums.add(rows, y[:, t], np.full(len(rows), t), own, weights[:, t])


# --- in a cluster ----------------------------------------------------------------------------------------------------


def _in_cluster(data: TaskData, plan: SumPlan, fold: Array | None) -> Sums:
    from dask import compute, delayed

    blocks = list(_lazy_blocks(data))
    if plan.shift and plan.known is None:
        shifts = compute(delayed(_first_shift)(blocks[0][1]))[0]
        plan = SumPlan(plan.n_features, plan.n_tasks, plan.n_cells, True, plan.together, (shifts, _label_shifts(data)))
    add, merge = delayed(_block_sums), delayed(_merged)
    level = [add(plan, rows, _beside(data, positions, fold)) for positions, rows in blocks]
    while len(level) > 1:  # the same tree whichever block finishes first
        pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
        level = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    found: Sums = compute(level[0])[0]
    return found


def _lazy_blocks(data: TaskData) -> Iterator[tuple[Array, Any]]:
    """(positions in task order, rows) of every block of rows, the rows where they are."""
    position, first = np.arange(data.n_rows), 0
    if data.order is not None:
        position[data.order] = np.arange(data.n_rows)
    for part in data.source.matrices if data.source is not None else ():
        lazy = part.lazy.rechunk((part.lazy.chunks[0], -1))
        for size, block in zip(lazy.chunks[0], lazy.to_delayed().ravel().tolist(), strict=True):
            yield position[first : first + size], block
            first += size


def _first_shift(rows: Array) -> Array:
    """About the means in the first block: for all tasks, until these turn out to be far from that."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = about(rows)
    found[~np.isfinite(found)] = 0.0
    return found[None]


def _label_shifts(data: TaskData) -> Array:
    live = [data.y[part][data.weights[part] > 0.0] for part in data.per_task()]
    return np.array([about(own[:, None])[0] if len(own) else 0.0 for own in live])


def _block_sums(plan: SumPlan, rows: Array, beside: tuple[Any, ...]) -> Sums:
    sums = plan.begun(1)
    add_rows(sums, rows, *beside)
    return sums


def _merged(first: Sums, second: Sums) -> Sums:
    found = deepcopy(first)  # what another task has found is not ours to change
    found.merge(second)  # type: ignore[arg-type]
    return found
