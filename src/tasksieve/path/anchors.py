"""Anchored correlations, the samples' half: a new vector in terms of a few past ones (`design.anchored`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._kernels import kernels
from ..design import Design, Region
from ..design.anchored import FLOAT32_RANGE, FLOAT32_UNIT, Anchored
from ..penalties import RowPenalty

Array = np.ndarray[Any, Any]


class Anchors:
    """A few past vectors whose products the shards remember, and what they say about a new one. Of `capacity` vectors
    the first one and one that is pinned stay for ever; of the others the oldest goes.

    `joint`: One combination serves all tasks. Then the way that a vector went since the last value is an anchor, too:
    the next ones go on in about that direction.
    """

    def __init__(self, design: Design, capacity: int | None = None, joint: bool = False) -> None:
        self._design, self._joint = design, joint
        self._capacity = capacity or (3 if joint else 5 if design.n_tasks > 1 else 16)
        self.vectors = np.empty((0, design.n_samples))
        self._gram = np.empty((design.n_tasks, 0, 0))  # inner products of the anchors, task by task
        self._current: Anchored | int = 0
        self._first: Anchored | None = None
        self._judged: Anchored | None = None  # the vector whose moments the shards have noted
        self._pinned = 0

    def __len__(self) -> int:
        return len(self.vectors)

    def remember(self, vector: Array, penalty: RowPenalty) -> Any:
        """A full pass: the vector becomes an anchor, and `current`. Returns the gauges of all features, an array, or
        something that becomes one on demand (`FarGauges`)."""
        self.add(vector)
        return self._design.shard.remember(vector, penalty)

    def add(self, vector: Array, before: Array | None = None) -> None:
        """A vector that the shards are about to remember; `before` is that of the last value."""
        fresh = [vector]
        if self._joint and before is not None:
            fresh.insert(0, vector - before)
            self._design.shard.also_remember(fresh[0])
        while len(self) > 1 + self._pinned and len(self) + len(fresh) > self._capacity:
            self._remove(1 + self._pinned)
        self.vectors = np.vstack([self.vectors, *fresh]) if len(self) else vector[None, :]
        self.stand_at(len(self) - 1)

    def _grams(self) -> Array:
        """Inner products of the anchors, task by task; made when they are first needed."""
        known, count = self._gram.shape[1], len(self)
        if known < count:
            gram = np.empty((self._design.n_tasks, count, count))
            gram[:, :known, :known] = self._gram
            for m in range(known, count):
                gram[:, m, :] = gram[:, :, m] = self._task_products(self.vectors[m])
            self._gram = gram
        return self._gram

    def restart(self) -> None:
        """Only the first anchor is left, and a pinned one."""
        while len(self) > 1 + self._pinned:
            self._remove(1 + self._pinned)
        self._judged = None
        self.stand_at(0)

    def _remove(self, m: int) -> None:
        self._gram = np.delete(np.delete(self._grams(), m, axis=1), m, axis=2)
        self.vectors = np.delete(self.vectors, m, axis=0)
        self._design.shard.forget(m)

    @property
    def current(self) -> Anchored:
        """The vector that was followed last, or the anchor stood at."""
        if isinstance(self._current, int):
            self._current = self.anchor(self._current)
        return self._current

    def follow(self, vector: Array, leak: Array) -> Anchored:
        """`express` a vector, known up to `leak` in each task, and remember it as `current`."""
        self._current = self.express(vector).loosened(leak)
        return self._current

    def pin(self, vector: Array, penalty: RowPenalty) -> None:
        """A full pass, unless it was made before: the vector becomes the second anchor, and stays one."""
        if not self._pinned:
            self.restart()
            self.remember(vector, penalty)
            self._pinned, self._capacity = 1, self._capacity + 1
            self.stand_at(0)

    def stand_at(self, m: int) -> None:
        """Anchor m is `current`."""
        self._current = m

    def position_of(self, vector: Array) -> int | None:
        """Which anchor this very vector is, if any."""
        same = np.flatnonzero((self.vectors == vector).all(axis=1))
        return int(same[-1]) if len(same) else None

    def _task_products(self, vector: Array) -> Array:
        """Inner products of the anchors with a vector, (tasks, anchors)."""
        if self._design.n_tasks == 1:
            return (self.vectors @ vector)[None, :]
        return np.add.reduceat(self.vectors * vector, self._design.offsets[:-1], axis=1).T

    def express(self, vector: Array) -> Anchored:
        """Task by task, the best combination of the anchors, and what it leaves."""
        design, tasks, rounding = self._design, self._design.n_tasks, self._design.rounding
        if self._joint:
            return self._express_jointly(vector)
        coef, rest = np.empty((len(self), tasks)), np.empty(design.n_samples)
        errors, remainder = np.empty(tasks), np.empty(tasks)
        kernels.express(
            self.vectors, self._grams(), vector, design.offsets, FLOAT32_UNIT + rounding, rounding, FLOAT32_RANGE,
            coef, rest, errors, remainder,
        )  # fmt: skip
        if tasks == 1:
            return Anchored(coef, remainder, float(remainder[0]))
        spectral = 0.0
        if design.uniform:  # one norm a feature, one matrix for all tasks
            block = rest.reshape(tasks, -1)
            small = block @ block.T if tasks <= block.shape[1] else block.T @ block
            largest = np.linalg.eigvalsh(small)[-1]
            spectral = math.sqrt(max(largest, 0.0)) * (1.0 + 1e-8) + math.sqrt(errors @ errors)
        return Anchored(coef, remainder, spectral)

    def _express_jointly(self, vector: Array) -> Anchored:
        """The best combination for all tasks together; the errors are those of `express`."""
        design, grams, rounding = self._design, self._grams(), self._design.rounding
        sizes = np.sqrt(np.maximum(np.diagonal(grams, axis1=1, axis2=2), 0.0))  # tasks x anchors
        lengths = np.sqrt(np.sum(np.square(sizes), axis=0))
        inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
        system = np.sum(grams, axis=0) * inverse * inverse[:, None]
        np.fill_diagonal(system, 1.0 + 1e-12)
        coef = np.linalg.solve(system, (self.vectors @ vector) * inverse) * inverse
        used = np.abs(coef)
        errors = (FLOAT32_UNIT + rounding) * (sizes @ used) + rounding * design.task_norms(vector)
        errors += FLOAT32_RANGE * float(np.max(sizes, axis=0) @ used)
        remainder = design.task_norms(vector - coef @ self.vectors) * (1.0 + 1e-10) + errors
        columns = np.ascontiguousarray(np.broadcast_to(coef[:, None], (len(self), design.n_tasks)))
        return Anchored(columns, remainder, float(np.linalg.norm(remainder)), True)

    def anchor(self, m: int) -> Anchored:
        """Anchor m in terms of the anchors; that of the first is kept."""
        if m == 0 and self._first is not None and len(self._first.coef) == len(self):
            return self._first
        coef = np.zeros((len(self), self._design.n_tasks))
        coef[m] = 1.0
        sizes = np.sqrt(self._grams()[:, m, m])
        rounding = (FLOAT32_UNIT + self._design.rounding) * sizes + FLOAT32_RANGE * np.max(sizes)
        found = Anchored(coef, rounding, float(np.linalg.norm(rounding)), self._joint)
        if m == 0:
            self._first = found
        return found

    def judge(self, vector: Array, leak: Array, penalty: RowPenalty) -> tuple[Anchored, bool]:
        """`follow` a vector that is about to be judged, and whether the shards are to note its moments."""
        followed, note = self.follow(vector, leak), self._can_note(penalty)
        if note:
            self._judged = followed
        return followed, note

    def ball_question(
        self, current_coef: float, first_coef: float, penalty: RowPenalty, radius: float
    ) -> tuple[str, tuple[Any, ...]]:
        """What bounds all gauges over a ball around ``current_coef * current + first_coef * first anchor``: a method of
        shards, and its arguments but for the penalty."""
        first = self.anchor(0)
        centre = self.current.scaled(current_coef) + first.scaled(first_coef)
        if self._judged is not self.current or not self._can_note(penalty):
            return "bound", (centre, Region(radius))
        return "ball_bound", (first, centre, (current_coef, first_coef), radius)

    def _can_note(self, penalty: RowPenalty) -> bool:
        """Whether norms of combinations follow from inner products; for a single task they are cheap anyway."""
        thresholds = penalty.thresholds()
        plain = thresholds is not None and thresholds[1] is None
        return self._design.n_tasks > 1 and plain and not penalty.positive and not self._joint
