"""Moments of tall data in a cluster: each block of rows is summed where it is, and the sums are added two by two.

What crosses are Gram matrices of a few features, one for each task and fold, instead of rows.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from ..design.sums import Gathered, RowSums, SharedSums, about

Array = np.ndarray[Any, Any]
Sums = RowSums | SharedSums


def sums_in_cluster(
    data: Any,
    shift: bool,
    known: tuple[Array, Array] | None,
    fold: Array | None,
    n_cells: int,
    one_matrix: bool,
) -> list[Gathered]:
    """The parts of the folds, or of all rows: as `gather` finds them in memory."""
    from dask import compute, delayed

    blocks = _blocks(data)
    if shift and known is None:
        known = compute(delayed(_first_shift)(blocks[0][1]))[0], _label_shifts(data)
    add, merge = delayed(_sums), delayed(_merged)
    level = [
        add(rows, _of_rows(data, positions, fold, one_matrix), known, (data.n_features, data.n_tasks, n_cells, shift))
        for positions, rows in blocks
    ]
    while len(level) > 1:  # the same tree whichever block finishes first
        pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
        level = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    found = compute(level[0])[0]
    return [found.gathered(cell) for cell in range(n_cells)]


def _blocks(data: Any) -> list[tuple[Array, Any]]:
    """(positions in task order, rows) of every block of rows, the rows where they are."""
    order, found, first = data.order, [], 0
    position = np.arange(data.n_rows)
    if order is not None:
        position[order] = np.arange(data.n_rows)
    for part in data.source.matrices:
        lazy = part.lazy.rechunk((part.lazy.chunks[0], -1))
        for size, block in zip(lazy.chunks[0], lazy.to_delayed().ravel().tolist(), strict=True):
            found.append((position[first : first + size], block))
            first += size
    return found


def _of_rows(data: Any, positions: Array, fold: Array | None, one_matrix: bool) -> tuple[Array, Any, Any, Array]:
    """Labels, tasks, folds and weights of some rows; by rows and tasks where all tasks share them."""
    if data.shared:
        y = data.y.reshape(data.n_tasks, -1)[:, positions].T
        weights = data.weights.reshape(data.n_tasks, -1)[:, positions].T
        folds = None if fold is None else fold.reshape(data.n_tasks, -1)[:, positions].T
        return y, "one matrix" if one_matrix else None, folds, weights
    tasks = np.searchsorted(data.offsets, positions, side="right") - 1
    return data.y[positions], tasks, None if fold is None else fold[positions], data.weights[positions]


def _first_shift(rows: Array) -> Array:
    """About the means in the first block: for all tasks, until these turn out to be far from that."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = about(rows)
    found[~np.isfinite(found)] = 0.0
    return found


def _label_shifts(data: Any) -> Array:
    """About the mean label of each task."""
    found = np.zeros(data.n_tasks)
    for t, part in enumerate(data.per_task()):
        live = data.y[part][data.weights[part] > 0.0]
        found[t] = about(live[:, None])[0] if len(live) else 0.0
    return found


def _sums(rows: Array, facts: tuple[Array, Any, Any, Array], known: Any, sizes: tuple[int, int, int, bool]) -> Sums:
    """What a block of rows amounts to."""
    (y, tasks, folds, weights), (n_features, n_tasks, n_cells, shift) = facts, sizes
    shifts = None
    if shift:
        columns, labels = known
        shifts = np.broadcast_to(columns, (n_tasks, n_features)), labels
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(tasks, str):
            shared = SharedSums(n_features, n_tasks, n_cells, shift=shift)
            if shifts is not None:
                shared.shift_by(shifts[0][0], shifts[1])
            own = None if folds is None else folds[:, 0]
            live = weights[:, 0] > 0.0
            shared.add(rows[live], y[live], None if own is None else own[live], weights[live, 0])
            return shared
        found = RowSums(n_features, n_cells, shift=shift)
        found.grow(n_tasks)
        if shifts is not None:
            found.shift_by(*shifts)
        if tasks is not None:
            found.add(rows, y, tasks, folds, weights)
            return found
        for t in range(n_tasks):
            found.add(rows, y[:, t], np.full(len(rows), t), None if folds is None else folds[:, t], weights[:, t])
        return found


def _merged(first: Sums, second: Sums) -> Sums:
    found = deepcopy(first)  # what another task has found is not ours to change
    found.merge(second)  # type: ignore[arg-type]
    return found
