"""The multinomial loss of many tasks at the same time: arrays of classes x rows of all of them.

A task has no more to do than any other: without this, small tasks would be a loop of small calls. Classes that a task
does not have, or has no rows of where there are intercepts, have the score minus infinity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import Design
from .base import Evaluation

Array = np.ndarray[Any, Any]

#: A class without rows has no finite best intercept: its probability is 0, and the intercept is this far below.
CONFIDENT = 30.0

_STEPS = 25  # of Newton's method; tasks that need more care are left to others
_FEWEST_TASKS = 3
_MOST_PRODUCTS = 1 << 23  # entries of all products of two probabilities: beyond this tasks are better taken one by one


class MultinomialTasks:
    """Values, residuals and best intercepts of all tasks, where Newton's method takes them there without trouble, and
    whether that is less work than one task after another (`serves`)."""

    def __init__(self, design: Design, y: Array, weights: Array, known: Array | None = None) -> None:
        # where the classes of each task start; where each class starts in a flat vector
        blocks, offsets, root, fit_intercept = design.blocks, design.offsets, design.samples.root, design.fit_intercept
        counts = np.diff(blocks)
        lengths = (offsets[blocks[1:]] - offsets[blocks[:-1]]) // counts  # rows of each task
        most, n_rows, n_tasks = int(counts.max()), int(lengths.sum()), len(counts)
        self._task = np.repeat(np.arange(n_tasks), lengths)
        self._starts = np.cumsum(lengths) - lengths
        self._first, self._known = offsets[blocks[:-1]], known
        within = np.arange(n_rows) - self._starts[self._task]
        self._size, self._blocks, self._intercept = int(offsets[-1]), blocks, fit_intercept
        k = np.arange(most)[:, None]
        position = offsets[blocks[:-1]][self._task] + k * lengths[self._task] + within
        own = k < counts[self._task]
        self._codes = np.zeros(n_rows, dtype=np.intp)
        for c in range(most):
            here = own[c] & (y[np.where(own[c], position[c], 0)] > 0.0)
            self._codes[here] = c
        first = position[0]
        self._s, self._root = weights[first], root[first]
        self._inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0.0)
        labels = np.zeros((most, n_rows))
        labels[self._codes, np.arange(n_rows)] = self._s
        self._masses = np.add.reduceat(labels, self._starts, axis=1)  # of the classes of each task
        live = (k < counts) & ((self._masses > 0.0) | (not fit_intercept))
        self._live = live
        shown = live[:, self._task]
        #: where the scores of classes x rows lie in a flat vector; the last position is for those that are not there
        self._position = np.where(shown, position, self._size)
        self._shown = shown
        self._totals = np.add.reduceat(self._s, self._starts)
        self._precision = 1e-15 * np.sqrt(lengths) * self._totals
        unfit = n_tasks < _FEWEST_TASKS or most * most * n_rows > _MOST_PRODUCTS
        self.serves = not unfit and bool(np.all(live.any(axis=0)))
        n_live = live.sum(axis=0)
        # All intercepts may move together without effect; those that are not there do not move.
        both = live[:, None, :] & live[None, :, :]
        self._together = np.where(both, 1.0 / n_live, 0.0) + 1e-13 * np.eye(most)[:, :, None]
        self._still = np.eye(most)[:, :, None] * ~live[None, :, :]
        self._n_live = n_live

    def evaluate(self, z: Array, start: Array | None, accuracy: float) -> Evaluation | None:
        """The loss at z, as `DataLoss.evaluate`; None where Newton's method is in trouble."""
        scores = z * self._inverse if self._known is None else z * self._inverse + self._known
        flat = np.append(scores, -np.inf)
        raw = flat[self._position]
        b = None
        if self._intercept:
            b = self._best_intercepts(raw, start, accuracy)
            if b is None:
                return None
            e = raw + b[:, self._task]
        else:
            e = raw
        rows = np.arange(e.shape[1])
        top = e.max(axis=0)
        e = np.exp(e - top)
        totals = e.sum(axis=0)
        own = raw[self._codes, rows] - top - np.log(totals)
        if b is not None:
            own += b[self._codes, self._task]
        own[self._s == 0.0] = 0.0  # their class may not be there
        away = e / -totals
        away[self._codes, rows] += 1.0
        away *= self._root
        residual = np.zeros(self._size)
        residual[self._position[self._shown]] = away[self._shown]
        nuisance = np.empty((0, int(self._blocks[-1])))
        if b is not None:
            nuisance = self._as_stored(b, np.maximum.reduceat(np.abs(flat[:-1]), self._first))
        return Evaluation(-float(self._s @ own), residual, nuisance, margin=own)

    def _as_stored(self, b: Array, largest: Array) -> Array:
        """Intercepts of all classes, one after another: where a class has no rows, far below the others beside scores
        that are at most so large."""
        low = np.where(self._live, b, np.inf).min(axis=0) - CONFIDENT - largest
        b = np.where(self._live, b, low)
        counts = np.diff(self._blocks)
        return np.concatenate([b[:count, t] for t, count in enumerate(counts)])[None, :]

    def _best_intercepts(self, raw: Array, start: Array | None, accuracy: float) -> Array | None:
        live, masses, s, task = self._live, self._masses, self._s, self._task
        b = np.log(masses, out=np.zeros_like(masses), where=live)
        if start is not None:
            for t, (low, high) in enumerate(zip(self._blocks[:-1], self._blocks[1:], strict=True)):
                b[: high - low, t] = start[0, low:high]
        b = self._centred(b)
        goal = np.maximum(self._precision, accuracy * self._totals)
        value = error = np.full(b.shape[1], np.inf)
        before, near = b, np.zeros(b.shape[1], dtype=bool)
        for _ in range(_STEPS):
            e = raw + b[:, task]
            top = e.max(axis=0)
            e -= top
            np.exp(e, out=e)
            totals = e.sum(axis=0)
            new_value = np.add.reduceat(s * (np.log(totals) + top), self._starts) - np.sum(masses * b, axis=0)
            # near the optimum the value is only rounding
            if np.any(new_value > value + 1e-12 * (np.abs(value) + self._totals)):
                return None
            e *= s / totals  # s p
            found = np.add.reduceat(e, self._starts, axis=1)
            gradient = np.where(live, found - masses, 0.0)
            new_error = np.abs(gradient).max(axis=0)
            worse = near & (new_error >= error)
            if np.all((new_error <= goal) | worse):
                return np.where(worse, before, b)
            p = np.divide(e, s, out=np.zeros_like(e), where=s > 0.0)
            hessian = -np.add.reduceat(e[:, None, :] * p[None, :, :], self._starts, axis=2)
            diagonal = np.arange(len(b))
            hessian[diagonal, diagonal] += found
            size = hessian[diagonal, diagonal].sum(axis=0) / self._n_live
            if not np.all(size > 1e-300):
                return None
            hessian += size * self._together + self._still
            try:
                move = np.linalg.solve(hessian.transpose(2, 0, 1), gradient.T[:, :, None])[:, :, 0].T
            except np.linalg.LinAlgError:
                return None
            if np.abs(move).max() > 10.0:
                return None
            near = np.sum(gradient * move, axis=0) <= 1e-11 * np.abs(new_value)
            done = (new_error <= goal) | worse
            before = np.where(worse, before, b)
            value, error = new_value, np.where(worse, error, new_error)
            b = self._centred(np.where(done, before, b - move))
        return None

    def _centred(self, b: Array) -> Array:
        b = np.where(self._live, b, 0.0)
        return np.where(self._live, b - b.sum(axis=0) / self._n_live, 0.0)
