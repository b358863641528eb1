"""Thresholds between ordered classes, task by task: where rows lie between them, and the best ones.

Rows of class k of a task cost ``softplus(z - upper_k) + softplus(lower_k - z)``, and the class as a whole
``-n_k log(1 - exp(-(upper_k - lower_k)))``, n_k its weight: jointly convex in scores and thresholds, with a tridiagonal
second derivative in the latter. Classes that a task does not have are left out: the thresholds on both of their sides
are one, or infinite at the ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design import Design, Samples

Array = np.ndarray[Any, Any]

_NEGLIGIBLE = (
    2e-13  # a mean loss at which rows count as explained: unpenalised features may separate the classes
)
_APART = 2.0**-48  # of thresholds, relative to their size: what sums of rows can still tell apart
_KEPT = 0.05  # the least share of the distance between two thresholds that a step leaves


class Classes:
    """The classes of each task that have rows, in their order.

    Arrays by class are (n_tasks, the most classes of a task).

    - `counts` (array of shape (n_tasks,)): How many they are.
    - `codes`: Their labels; `mass`: The weight of their rows; `middle`: There are classes on both sides.
    - `cell`: Where the class of each row stands in a raveled array by class.
    """

    def __init__(self, design: Design, y: Array, weights: Array) -> None:
        self.design, self.weights = design, weights
        labels = y.astype(np.int64)
        self.n_labels = int(labels.max(initial=0)) + 1
        tasks = design.per_sample(np.arange(design.n_tasks))
        flat = tasks * self.n_labels + labels
        shape = design.n_tasks, self.n_labels
        live = np.bincount(flat, weights > 0.0, design.n_tasks * self.n_labels).reshape(shape) > 0.0
        self.counts = np.count_nonzero(live, axis=1)
        self._up_to = np.cumsum(live, axis=1)  # classes with rows up to each label
        width = max(int(self.counts.max()), 2)
        where = tasks * width + np.maximum(self._up_to.ravel()[flat] - 1, 0)
        self.cell, self.shape = where, (design.n_tasks, width)
        self._order = np.argsort(where, kind="stable")
        self._bounds = np.searchsorted(where[self._order], np.arange(design.n_tasks * width + 1)).astype(
            np.int64
        )
        place = np.arange(width)
        self.middle = (place > 0) & (place < self.counts[:, None] - 1)
        #: thresholds that a task has: one less than classes
        self.used = place[:-1] < self.counts[:, None] - 1
        self.codes = np.full(self.shape, -1)
        for t in range(design.n_tasks):
            self.codes[t, : self.counts[t]] = np.flatnonzero(live[t])
        self.mass = self.exact_sums(np.ones(design.n_samples))

    def exact_sums(self, values: Array) -> Array:
        """Of weight times value over the rows of each class, to a rounding of each sum."""
        order = self._order
        return Samples.exact_cut(self.weights[order], values[order], self._bounds).reshape(self.shape)

    def sums(self, weighted: Array) -> Array:
        """Of values by row over the rows of each class."""
        return np.bincount(self.cell, weighted, self.shape[0] * self.shape[1]).reshape(self.shape)

    def of_rows(self, values: Array) -> Array:
        """An array by class, row by row."""
        return np.asarray(values.ravel()[self.cell])

    def bounds(self, thresholds: Array) -> tuple[Array, Array]:
        """Lower and upper bounds of the classes, (n_tasks, classes), between these thresholds."""
        tasks = len(thresholds)
        inner = np.where(self.used, thresholds, np.inf)
        end = np.full((tasks, 1), np.inf)
        return np.hstack([-end, inner]), np.hstack([inner, end])

    def stored_bounds(self, thresholds: Array) -> tuple[Array, Array]:
        """The same from thresholds between all labels, (m, n_tasks)."""
        tasks, most = self.shape[0], max(self.n_labels - 1, len(thresholds))
        padded = np.full((tasks, most + 2), np.inf)
        padded[:, 0] = -np.inf
        padded[:, 1 : len(thresholds) + 1] = thresholds.T
        own = np.arange(tasks)[:, None], np.maximum(self.codes, 0)
        known = self.codes >= 0
        return np.where(known, padded[own], -np.inf), np.where(known, padded[own[0], own[1] + 1], np.inf)

    def between_labels(self, thresholds: Array) -> Array:
        """Thresholds between all labels, (m, n_tasks), from those between classes with rows, (n_tasks, classes - 1)."""
        below, tasks = self._up_to[:, :-1], np.arange(self.shape[0])[:, None]
        inner = thresholds[tasks, np.clip(below - 1, 0, thresholds.shape[1] - 1)]
        full = np.where(below == 0, -np.inf, np.where(below >= self.counts[:, None], np.inf, inner))
        return np.ascontiguousarray(full.T)

    def log_odds(self) -> Array:
        """Logarithms of the weight below each threshold over that above it: sums from either end, which lose no class
        that is small beside the others. Thresholds that rounding makes one are moved apart."""
        below = np.cumsum(self.mass[:, :-1], axis=1)
        above = np.cumsum(self.mass[:, :0:-1], axis=1)[:, ::-1]
        found = np.log(np.where(self.used, below, 1.0) / np.where(self.used, above, 1.0))
        for k in range(1, found.shape[1]):
            least = found[:, k - 1] + _APART * np.maximum(np.abs(found[:, k - 1]), 1.0)
            found[:, k] = np.where(self.used[:, k], np.maximum(found[:, k], least), found[:, k])
        return found


@dataclass
class Margins:
    """Rows between the thresholds around their class.

    - `above`, `below`: ``z - upper`` and ``lower - z``; minus infinity where there is no threshold.
    - `width` (by class): upper - lower.
    - `apart` (by class): How far its lower bound is above the upper one of the class before: 0 where these are one
      threshold.
    - `costs`: softplus of `above` and of `below`.
    - `over`, `under`: The logistic function of the two, or a dual point in their place.
    - `force`, `slack` (by class): The dual variable of its width, times its weight, of the dual point, and how far the
      exact one may be off.
    - `blurs`: How far `above`, `below` and `width` may be off.
    """

    above: Array
    below: Array
    width: Array
    costs: tuple[Array, Array]
    over: Array
    under: Array
    apart: Array | None = None
    force: Array | None = None
    slack: Array | None = None
    blurs: tuple[Array, Array, Array] | None = None

    @classmethod
    def at(cls, classes: Classes, z: Array, lower: Array, upper: Array) -> Margins:
        above, below = z - classes.of_rows(upper), classes.of_rows(lower) - z
        (first, over), (second, under) = _softplus(above), _softplus(below)
        with np.errstate(invalid="ignore"):  # classes that a task does not have
            width = upper - lower
        return cls(above, below, width, (first, second), over, under)

    @property
    def values(self) -> Array:
        """By row."""
        return self.costs[0] + self.costs[1]

    @property
    def odds(self) -> Array:
        """By class, ``1/(exp(width) - 1)``."""
        with np.errstate(over="ignore", divide="ignore"):
            return np.asarray(1.0 / np.expm1(self.width))

    @property
    def curvature(self) -> Array:
        """The second derivative of a row's loss in its score."""
        return self.over * (1.0 - self.over) + self.under * (1.0 - self.under)


def width_cost(width: Array) -> Array:
    """``-log(1 - exp(-width))``; infinite where there is no width left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(width > 0.0, -np.log(-np.expm1(-width)), np.inf)


def _softplus(x: Array) -> tuple[Array, Array]:
    """``log(1 + e^x)`` and its derivative."""
    small = np.exp(-np.abs(x))
    return np.maximum(x, 0.0) + np.log1p(small), np.where(x >= 0.0, 1.0, small) / (1.0 + small)


class ThresholdNewton:
    """The best thresholds of each task beside given scores, and coefficients of unpenalised features with them."""

    def __init__(self, classes: Classes, directions: Array) -> None:
        self._classes, self._directions = classes, directions
        #: thresholds of scores of 0
        self.null = classes.log_odds()
        totals = classes.mass.sum(axis=1)
        self._negligible = _NEGLIGIBLE * totals
        self._share = classes.weights / classes.design.per_sample(np.where(totals > 0.0, totals, 1.0))

    def solve(
        self, z: Array, thresholds: Array | None, part: Array, accuracy: float
    ) -> tuple[Array, Array, Margins]:
        """Thresholds, what unpenalised features add to scores, and the margins there.

        Newton's method, each task with steps of its own that keep thresholds in their order and do not raise its loss.
        """
        classes, design = self._classes, self._classes.design
        if thresholds is None:
            thresholds = self.null + design.task_sums(self._share * z)[:, None]
        live = classes.counts > 1
        at, value = self._at(z + part, thresholds)
        if not np.all(np.isfinite(value)):  # a start that is none
            thresholds, part = self.null + design.task_sums(self._share * z)[:, None], np.zeros_like(z)
            at, value = self._at(z + part, thresholds)
        for _ in range(100):
            gradient, sizes, hessian = self._derivatives(at)
            off = np.abs(gradient) > max(4e-16 * len(z) ** 0.5, accuracy) * sizes
            open_ = live & off.any(axis=1) & (value > self._negligible)
            if not open_.any():
                break
            step = np.where(open_[:, None], hessian.solve(gradient), 0.0)
            move, turn = step[:, : thresholds.shape[1]], step[:, thresholds.shape[1] :]
            along = np.zeros_like(z)
            for direction, sizes_ in zip(self._directions, turn.T, strict=True):
                along += direction * design.per_sample(sizes_)
            scale, longest, reach = self._longest(at, move, along)
            for _ in range(60):
                factor = design.per_sample(scale)
                new = thresholds - scale[:, None] * move, part - factor * along
                new_at, new_value = self._at(z + new[1], new[0])
                worse = open_ & ~(new_value <= value + 1e-15 * np.abs(value))
                if not worse.any():
                    break
                scale[worse] *= 0.5
            if worse.any():  # even tiny steps do not help: rounding has been reached there
                scale[worse] = 0.0
                new = thresholds - scale[:, None] * move, part - design.per_sample(scale) * along
                new_at, new_value = self._at(z + new[1], new[0])
            gain = np.abs(value - new_value) > 1e-17 * np.abs(value)
            moved = scale * longest > 4e-16 * reach
            (thresholds, part), at, value = new, new_at, new_value
            if not np.any(open_ & (gain | moved)):
                break
        return thresholds, part, at

    def explained(self, values: Array) -> Array:
        """Tasks whose loss counts as none, from the losses of their rows and classes."""
        return values <= self._negligible

    def value_of(self, at: Margins) -> Array:
        """The loss of each task."""
        classes = self._classes
        wide = np.where(classes.middle, width_cost(at.width), 0.0)
        return classes.design.task_sums(classes.weights * at.values) + np.sum(classes.mass * wide, axis=1)

    def _at(self, z: Array, thresholds: Array) -> tuple[Margins, Array]:
        at = Margins.at(self._classes, z, *self._classes.bounds(thresholds))
        return at, self.value_of(at)

    def _longest(self, at: Margins, move: Array, along: Array) -> tuple[Array, Array, Array]:
        """By task: the longest step that leaves some of each width, the size of a full one, and that of the scores."""
        classes, design = self._classes, self._classes.design
        padded = np.pad(move, ((0, 0), (1, 1)))
        closing = np.where(classes.middle, padded[:, 1:] - padded[:, :-1], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(closing > 0.0, (1.0 - _KEPT) * at.width / closing, np.inf).min(axis=1)
        starts = design.offsets[:-1]
        longest = np.maximum(np.abs(move).max(axis=1), np.maximum.reduceat(np.abs(along), starts))
        seen = np.where(np.isfinite(at.above), np.abs(at.above), 0.0)
        seen = np.maximum(seen, np.where(np.isfinite(at.below), np.abs(at.below), 0.0))
        reach = 10.0 + 2.0 * np.maximum.reduceat(seen, starts)
        return np.minimum(np.minimum(1.0, room), reach / np.maximum(longest, 1e-300)), longest, reach

    def _derivatives(self, at: Margins) -> tuple[Array, Array, _Hessian]:
        """The gradient in thresholds and directions, (n_tasks, both), what its sums are made of, and the Hessian."""
        classes, s, directions = self._classes, self._classes.weights, self._directions
        task_sums = classes.design.task_sums
        over, under = s * at.over, s * at.under
        first, second = classes.sums(over), classes.sums(under)
        odds = np.where(classes.middle, at.odds, 0.0)
        mass = classes.mass * odds
        gradient = second[:, 1:] - first[:, :-1] + (mass[:, 1:] - mass[:, :-1])
        sizes = second[:, 1:] + first[:, :-1] + mass[:, 1:] + mass[:, :-1]
        bent_over, bent_under = over * (1.0 - at.over), under * (1.0 - at.under)
        stiff = mass * (1.0 + odds)
        diagonal = (
            classes.sums(bent_over)[:, :-1] + classes.sums(bent_under)[:, 1:] + stiff[:, 1:] + stiff[:, :-1]
        )
        used = classes.used
        gradient, sizes = np.where(used, gradient, 0.0), np.where(used, sizes, 0.0)
        diagonal, beside = np.where(used, diagonal, 1.0), np.where(used[:, 1:], -stiff[:, 1:-1], 0.0)
        if not len(directions):
            return gradient, sizes, _Hessian(diagonal, beside)
        turn = task_sums(directions * (over - under)).T
        turn_sizes = task_sums(np.abs(directions) * (over + under)).T
        cross = [
            -(classes.sums(bent_over * row)[:, :-1] + classes.sums(bent_under * row)[:, 1:])
            for row in directions
        ]
        corner = np.stack(
            [task_sums(directions * (row * (bent_over + bent_under))).T for row in directions], axis=1
        )
        crossing = np.where(used[:, None, :], np.stack(cross, axis=1), 0.0)
        return (
            np.hstack([gradient, turn]),
            np.hstack([sizes, turn_sizes]),
            _Hessian(diagonal, beside, crossing, corner),
        )


@dataclass
class _Hessian:
    """By task: tridiagonal in the thresholds, bordered by the directions of unpenalised features."""

    diagonal: Array
    beside: Array
    crossing: Array | None = None
    corner: Array | None = None

    def solve(self, right: Array) -> Array:
        """The Newton step, (n_tasks, thresholds and directions)."""
        largest = self.diagonal.max(axis=1, keepdims=True)
        diagonal = self.diagonal + 1e-14 * largest + 1e-300
        if self.crossing is None or self.corner is None:
            return _tridiagonal(diagonal, self.beside, right)
        tasks, count = diagonal.shape
        size = count + self.corner.shape[1]
        full, place = np.zeros((tasks, size, size)), np.arange(count)
        full[:, place, place] = diagonal
        full[:, place[:-1], place[1:]] = full[:, place[1:], place[:-1]] = self.beside
        full[:, count:, :count] = self.crossing
        full[:, :count, count:] = self.crossing.swapaxes(1, 2)
        full[:, count:, count:] = self.corner
        inner = np.einsum("tkk->tk", full[:, count:, count:])
        inner += 1e-14 * inner.max(axis=1, keepdims=True) + 1e-12
        return np.asarray(np.linalg.solve(full, right[:, :, None])[:, :, 0])


def _tridiagonal(diagonal: Array, beside: Array, right: Array) -> Array:
    """Thomas's algorithm, all tasks at once: symmetric and positive definite."""
    count = diagonal.shape[1]
    pivots, found = diagonal.copy(), right.copy()
    for k in range(1, count):
        factor = beside[:, k - 1] / pivots[:, k - 1]
        pivots[:, k] -= factor * beside[:, k - 1]
        found[:, k] -= factor * found[:, k - 1]
    found[:, -1] /= pivots[:, -1]
    for k in range(count - 2, -1, -1):
        found[:, k] = (found[:, k] - beside[:, k] * found[:, k + 1]) / pivots[:, k]
    return found
