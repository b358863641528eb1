"""The derivative of a norm's proximal map: what Newton's method on a dual problem needs to know of a penalty.

    V = argmin 1/2 ||V - Q||^2 + step Omega(V),        dV = diag(a) dQ + sum_b k_b <v_b, dQ> v_b,

where every ``v_b`` lies in one row, in one block of rows, or in rows that are tied: a derivative is a diagonal and some
matrices of rank one. It is there almost everywhere; where it jumps, one of its limits is taken, and Newton's method is
content with any (Qi and Sun 1993). The formulas follow from those of the maps themselves:

- ``group ||.||_2 + l1 ||.||_1`` on rows or blocks: what is left of soft thresholding, shortened;
- the largest entry: entries above the height move together, as their mean of sizes does;
- shared and specific parts: entries above the cut move freely, those below it are shortened as the shared part is;
- sorted norms of rows: norms of a tied cluster move together, as their mean does; directions turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..penalties import RowPenalty, row_norms

Array = np.ndarray[Any, Any]

_TIED = 1e-10  # relative: norms that differ by less are one


@dataclass
class RankOnes:
    """``sum_b factors_b v_b v_b'``, where v_b is what `vectors` have in the rows whose `labels` are b."""

    vectors: Array  # (rows, tasks)
    labels: Array
    factors: Array  # one for each label


@dataclass
class Derivative:
    """On the `live` rows, those that the map does not send to zero; it is zero on the others."""

    live: Array
    diagonal: Array  # (live rows, tasks)
    parts: list[RankOnes] = field(default_factory=list)


def has_derivative(penalty: RowPenalty) -> bool:
    """Whether the formulas cover a penalty."""
    forms = penalty.row_form(), penalty.block_form(), penalty.sorted_form()
    return penalty.coupling is None and any(form is not None for form in forms)


def couples_tasks(penalty: RowPenalty) -> bool:
    """Whether there are matrices of rank one at all: L1,1 has none."""
    form = penalty.row_form()
    return form is None or form.kind != "sum" or bool(form.group.any())


def prox_derivative(penalty: RowPenalty, rows: Array, moved: Array, step: float) -> Derivative:
    """Of ``penalty.proximal`` at rows that it sends to `moved`."""
    live = np.flatnonzero(moved.any(axis=1))
    rows = np.maximum(rows[live], 0.0) if penalty.positive else rows[live]
    shrink = 1.0 / (1.0 + step * penalty.ridge)
    found = _of_norm(penalty, live, rows, moved[live] / shrink, step)
    if penalty.positive:
        found.diagonal *= rows > 0.0
    if penalty.ridge:
        found.diagonal *= shrink
        for part in found.parts:
            part.factors = part.factors * shrink
    return found


def _of_norm(penalty: RowPenalty, live: Array, rows: Array, moved: Array, step: float) -> Derivative:
    form, blocks = penalty.row_form(), penalty.block_form()
    every = np.arange(len(live))
    if form is not None:
        group, l1 = step * form.group[live], step * form.l1[live]
        if form.kind == "largest":
            return _largest(live, rows, moved)
        if form.kind == "split":
            return _split(live, rows, moved, group, l1)
        return _thresholded(live, rows, moved, every, group, l1)
    if blocks is not None:
        names, labels = np.unique(blocks.block[live], return_inverse=True)
        group, l1 = step * blocks.group[names], step * blocks.l1[names]
        if blocks.kind == "sum":
            return _thresholded(live, rows, moved, labels, group, l1[labels])
        return _stacked(live, rows, moved, labels, group, l1[labels])
    return _sorted(live, rows, moved)


def _lengths(rows: Array, labels: Array, count: int) -> Array:
    """Norms of blocks of rows."""
    return np.sqrt(np.bincount(labels, np.einsum("jt,jt->j", rows, rows), minlength=count))


def _thresholded(live: Array, rows: Array, moved: Array, labels: Array, group: Array, l1: Array) -> Derivative:
    """``group ||.||_F + l1 ||.||_1``: with n the norm after soft thresholding, ``V = (1 - group/n) soft(Q)``."""
    diagonal = (moved != 0.0).astype(np.float64)
    if not group.any():
        return Derivative(live, diagonal)
    soft = rows - np.clip(rows, -l1[:, None], l1[:, None])
    sizes = _lengths(soft, labels, len(group))
    taken = np.minimum(np.divide(group, sizes, out=np.ones_like(sizes), where=sizes > 0.0), 1.0)
    diagonal = (soft != 0.0) * (1.0 - taken)[labels, None]
    units = soft / sizes[labels, None]
    return Derivative(live, diagonal, [RankOnes(units, labels, taken)])


def _stacked(live: Array, rows: Array, moved: Array, labels: Array, group: Array, inner: Array) -> Derivative:
    """``group ||.||_F + inner sum of the rows' norms``: rows are shortened first, then their block."""
    lengths = row_norms(rows)
    shorter = inner / lengths
    soft = rows * (1.0 - shorter)[:, None]
    sizes = _lengths(soft, labels, len(group))
    taken = np.minimum(group / sizes, 1.0)
    left = (1.0 - taken)[labels]
    turns = RankOnes(rows / lengths[:, None], np.arange(len(live)), left * shorter)
    together = RankOnes(soft / sizes[labels, None], labels, taken)
    diagonal = np.repeat((left * (1.0 - shorter))[:, None], rows.shape[1], axis=1)
    return Derivative(live, diagonal, [turns, together])


def _largest(live: Array, rows: Array, moved: Array) -> Derivative:
    """What is cut at a height follows the mean of what is above it."""
    cut = np.abs(rows) > np.abs(moved) * (1.0 + 1e-14)
    signs = np.where(cut, np.sign(rows), 0.0)
    counts = np.count_nonzero(cut, axis=1)
    factors = 1.0 / np.maximum(counts, 1)
    return Derivative(live, (~cut).astype(np.float64), [RankOnes(signs, np.arange(len(live)), factors)])


def _split(live: Array, rows: Array, moved: Array, group: Array, l1: Array) -> Derivative:
    """With `taken` off, entries whose part of it is as large as l1 are specific and move freely; the rest is the shared
    part, shortened by group over its norm; where no part is shared the others are zero."""
    taken = rows - moved
    free = np.abs(taken) >= l1[:, None] * (1.0 - 1e-12)
    below = np.where(free, 0.0, rows)
    sizes = row_norms(below)
    rest = np.sqrt(np.maximum(group**2 - np.count_nonzero(free, axis=1) * l1**2, 0.0))
    shared = (moved != 0.0) & ~free
    ratio = np.divide(rest, sizes, out=np.ones_like(sizes), where=sizes > 0.0)
    ratio = np.where(shared.any(axis=1), np.minimum(ratio, 1.0), 1.0)
    diagonal = np.where(free, 1.0, (1.0 - ratio)[:, None])
    units = np.divide(below, sizes[:, None], out=np.zeros_like(rows), where=sizes[:, None] > 0.0)
    factors = np.where(shared.any(axis=1), ratio, 0.0)
    return Derivative(live, diagonal, [RankOnes(units, np.arange(len(live)), factors)])


def _sorted(live: Array, rows: Array, moved: Array) -> Derivative:
    """Norms move with the mean of their cluster, directions are turned on a sphere of another size."""
    sizes, norms = row_norms(rows), row_norms(moved)
    order = np.argsort(-norms, kind="stable")
    ranked = norms[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = ranked[1:] < ranked[:-1] * (1.0 - _TIED)
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = np.cumsum(new) - 1
    counts = np.bincount(labels)
    units, shorter = rows / sizes[:, None], norms / sizes
    diagonal = np.repeat(shorter[:, None], rows.shape[1], axis=1)
    single = counts[labels] == 1
    # a row by itself keeps a factor that is not negative
    own = np.where(single, 1.0 - shorter, -shorter)
    shared = np.where(counts == 1, 0.0, 1.0 / counts)
    return Derivative(live, diagonal, [RankOnes(units, np.arange(len(live)), own), RankOnes(units, labels, shared)])
