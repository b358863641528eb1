"""Problems that share X on a device, each with weights of its own for the rows, at the same alpha: one reading of X a
round serves all of them.

A round solves on the working sets of all problems (`BatchNewton`), reads X once for the residuals of all, and brings
back the few features whose gauges reach a level: those decide whether a problem is solved, and with what it begins at
the next alpha. `launch` begins a value without waiting for the device, `finish` waits for it. The gaps here say whether
problems are solved, with the rounding of products and sums; they are no certificates of stored numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..design.device import lists
from ..design.device.machine import free_bytes
from ..losses import gamma
from ..solvers.batch_newton import BatchNewton
from ..solvers.newton import gap_of_sums
from .engine import rows_of
from .pair import merged
from .problem import Problem
from .solved_there import Listed, SolvedThere

Array = np.ndarray[Any, Any]

ENOUGH = 0.95  # of the goal, as in `engine`
_BEYOND = 0.5  # between a strength and the next: features whose gauges reach so far come into the next working set
_MARGIN = 48  # rows that may enter in a step
_MOST_STEPS = 3  # before the first reading of X at a value
_FIRST_PLAN = 2  # of these at least for a single problem, for which a reading and its message are dearer than a step
_FAR_BELOW = 1e-3  # of the goal: fewer steps would have been enough
_ROUNDS = 60  # of growing working sets, or of steps
_AT_LEAST = 500  # features that may come into a working set at once
_STUCK = 8  # of these in a row, that bring a gap no further down
_SHARE_OF_FREE = 0.5  # of the device's memory
_LEAST_LISTED = 2048  # features of a problem, for which there is room in a message

_NONE = np.empty(0, dtype=np.int64)


@dataclass
class _Task:
    """A value on its way: what is wanted of each problem, working sets as keys, where they start, and what is
    counted."""

    lams: Array
    levels: Array
    goals: Array
    ridges: Array
    sets: Array
    start: tuple[Array, Array]
    passes: float
    rounds: int = 0
    n_steps: int = 0
    stuck: int = 0
    least: float = np.inf
    fresh: bool = True
    message: Any = None


@dataclass
class Found:
    """What is known of a value.

    - `live`: Problems that were solved.
    - `features`, `places`: Of each problem what is not zero, and where it is in the working set; beside them `gaps`,
      `sums`, and sizes of the working sets, `n_working`.
    - `first`: What a certificate of the first problem needs.
    """

    live: list[int]
    features: list[Array]
    places: list[Array]
    gaps: Array
    sums: Array
    n_working: Array
    n_steps: int
    rounds: int
    first: SolvedThere


class DeviceBatch:
    """See above.

    - `roots` (P, samples): Roots of the weights of the rows.
    - `labels` (P, samples): Weighted, free of what nuisance columns explain.
    - `basis` (P, k, samples): Of these.
    """

    def __init__(self, problem: Problem, roots: Array, labels: Array, basis: Array) -> None:
        design = problem.design
        samples, storage = design.samples, design.shard.storage
        self._problem, self._storage, self.offsets = problem, storage, samples.offsets
        tasks, n = samples.n_tasks, samples.depth
        self._shared = samples.shared and tasks > 1
        matrices = slice(0, 1) if tasks == 1 or self._uniform(roots) else slice(None)
        # where each sample of a task stands in flat vectors, and in X
        real = np.arange(n) < samples.lengths[:, None]
        flat = np.where(real, samples.offsets[:-1, None] + np.arange(n), 0)
        rows = flat % storage.n_rows

        def padded(vectors: Array) -> Any:
            return storage.on(np.where(real, vectors[..., flat], 0.0))

        y = padded(labels)
        scale = design.shard.scales_there()
        bases = padded(basis)[:, :, matrices].permute(0, 2, 3, 1)
        root, key = padded(roots), (self.offsets.tobytes(), self._shared)
        own = storage.on(rows[matrices])
        self.newton = BatchNewton(storage.x, own, root[:, matrices], y, bases, scale, key)
        # what is read by what is recorded
        self._memory = memory = self.newton.memory
        self._root, self._cut = memory.keep("roots", root), memory.keep("cut", storage.on(samples.offsets))
        self._real = memory.keep("real", storage.on(np.flatnonzero(real.ravel())))
        thresholds = problem.penalty.thresholds()
        assert thresholds is not None
        self._weights, self._scale = thresholds[0], self.newton.scale
        self._group = memory.keep("group", storage.on(np.where(self._weights > 0.0, self._weights, np.inf)))
        # times what a residual lost: what its gauges may be off
        self._reach = memory.keep("reach", self._raw_lengths() / self._group)
        self._rounding = 4.0 * (gamma(n + 64) + gamma(tasks + 64))
        self._sums_rounding = 4.0 * gamma(samples.n_samples + 64)
        #: the largest of these
        self.longest_reach = float(self._reach.max())
        self._memory_left = _SHARE_OF_FREE * free_bytes(storage.device)
        self._least_plan = _FIRST_PLAN if len(labels) == 1 else 1
        self._plan, self._room = self._least_plan, _LEAST_LISTED
        self._filled = bool(real.all())
        self.passes = 1.0
        nulls = 0.5 * np.sum(np.square(labels), axis=1)
        lengths, lost = self._lengths(y)
        self._at_null: tuple[Any, Any] | None = (lengths, lost)
        tops = (lengths / self._group + lost[:, None] * self._reach).amax(dim=1).cpu().numpy()
        #: of each problem: the loss of W = 0, the smallest strength whose solution is zero, whether it goes on
        self.nulls, self.lam_max, self.live = nulls, tops, np.ones(len(nulls), dtype=bool)
        # where they stand: strengths, rows that are not zero (keys: problem and feature in one number) and their
        # sizes, those of the value before, and what is known of other features
        self.lams, self._firsts = tops.copy(), np.arange(len(nulls) + 1) * storage.n_features
        self._keys, self._sizes = _NONE, np.empty(0)
        self._before: tuple[Array, Array, Array] | None = None
        self._listed = Listed(_NONE, np.empty(0), np.empty(0))
        self._task: _Task | None = None
        # by width and room: one is on its way at a time
        self._messages: dict[tuple[int, int], _Message] = {}

    def _uniform(self, roots: Array) -> bool:
        """Whether all tasks see the very same columns, in every problem."""
        by_task = roots.reshape(len(roots), self._problem.design.n_tasks, -1) if self._shared else None
        return by_task is not None and np.array_equal(by_task, np.broadcast_to(by_task[:, :1], by_task.shape))

    # -- readings of X --------------------------------------------------------------------------------------------

    def _raw_lengths(self) -> Any:
        """The longest part of each raw column in a task, as products see it."""
        storage = self._storage
        out = torch.empty(storage.n_features, dtype=torch.float64, device=storage.device)
        offsets = np.array([0, storage.n_rows]) if self._shared else self.offsets
        step = max(1, (1 << 25) // len(offsets))
        ones = np.ones(storage.n_rows)
        for low in range(0, storage.n_features, step):
            part = slice(low, min(low + step, storage.n_features))
            squares = storage.multiply([ones], offsets, False, np.arange(part.start, part.stop), True)[0]
            out[part] = (squares.sqrt() if self._scale is None else squares.sqrt() / self._scale[part]).amax(dim=1)
        return out

    def _lengths(self, residual: Any) -> tuple[Any, Any]:
        """Lengths of the products of all columns with residuals (P, tasks, n), (P, features), and what these may be
        off, times a column's longest part in a task."""
        weighted, storage = residual * self._root, self._storage
        if self._shared:
            found, lost = storage.lengths_of_shared(weighted, self._scale), 0.0
        else:
            vectors = weighted.flatten(1)
            vectors = vectors if self._filled else vectors[:, self._real].contiguous()
            found, lost = storage.lengths_of(vectors, self.offsets, self._scale, self._cut)
        return found, lost + self._rounding * torch.linalg.vector_norm(weighted.flatten(1), dim=1)

    def _reaching(self, lengths: Any, lost: Any, levels: Any) -> Any:
        """See `lists.reaching`."""
        return lists.reaching(lengths, lost, self._group, self._reach, levels, self._room)

    # -- along the path -------------------------------------------------------------------------------------------

    def start_from(self, features: Array, sizes: Array) -> None:
        """Rows of a single problem that its first value starts from."""
        self._keys, self._sizes = features, sizes

    def highest(self, problem: int, count: int) -> Array:
        """The largest gauges at W = 0, so many of them; before the first value."""
        assert self._at_null is not None
        lengths, lost = self._at_null
        found = lengths[problem] / self._group + lost[problem] * self._reach
        return np.asarray(torch.topk(found, min(count, len(found))).values.cpu().numpy())

    def launch(self, lams: Array, following: Array, goals: Array, ridges: Array) -> None:
        """Begin the next value of all problems, with their strengths and ridges; `following` come after these."""
        if self._at_null is not None:
            self._list_at_null(lams)
        start = self._guess(lams)
        sets = merged(self._promising(lams), start[0])
        levels = lams - _BEYOND * (lams - following)
        self._task = _Task(lams, levels, goals, ridges, sets, start, self.passes)
        self._round(self._task)

    def _problem_of(self, keys: Array) -> Array:
        return keys // self._storage.n_features

    def _guess(self, lams: Array) -> tuple[Array, Array]:
        """Rows and sizes along the secant of the last two values."""
        if self._before is None or not len(self._keys):
            return self._keys, self._sizes
        before, *known = self._before
        moved = self.lams - before
        theta = np.divide(lams - self.lams, moved, out=np.zeros(len(lams)), where=moved != 0.0)
        change = self._sizes - _values_of(self._keys, *known)
        return self._keys, np.maximum(self._sizes + theta[self._problem_of(self._keys)] * change, 0.0)

    def _promising(self, lams: Array) -> Array:
        """What problems begin with at their next strengths, beside what is not zero."""
        keys, gauges = self._listed.features, self._listed.gauges
        level = self.lams - _BEYOND * (self.lams - lams)
        near = gauges >= level[self._problem_of(keys)]
        return self._strongest(keys[near], gauges[near], self._keys)

    def _strongest(self, keys: Array, gauges: Array, active: Array) -> Array:
        """The strongest of each problem, as many as may come into a working set at once."""
        counts, ends = self._counted(keys), np.searchsorted(keys, self._firsts)
        room = np.maximum(_AT_LEAST, 2 * self._counted(active))
        if (counts <= room).all():
            return keys
        chosen = []
        for low, high, most in zip(ends[:-1], ends[1:], room, strict=True):
            own = np.arange(low, high)
            chosen.append(own if len(own) <= most else own[np.argpartition(gauges[own], -most)[-most:]])
        return np.sort(keys[np.concatenate(chosen)])

    def _counted(self, keys: Array) -> Array:
        """How many there are of each problem."""
        return np.diff(np.searchsorted(keys, self._firsts))

    def _round(self, task: _Task) -> None:
        """Steps on the working sets, and a reading of X."""
        task.rounds += 1
        newton = self.newton
        if task.fresh:
            width = width_of(int(self._counted(task.sets).max()))
            if newton.bytes_of(width) > self._memory_left:
                self.live[:] = False
                return
            self._begin(task, width)
        width = newton.found.lam.shape[1]
        keys, sizes = task.start
        active = int(self._counted(keys if task.rounds == 1 else keys[sizes > 0.0]).max())
        count = min(width_of(active + _MARGIN * task.rounds), width)
        steps = self._plan if task.rounds == 1 else 1 + min(task.stuck, _MOST_STEPS)
        # for several problems a factor of their systems is half a step: only where the first round was not enough
        thorough = 1 if len(self.lams) == 1 else 0
        for k in range(steps):
            newton.step(count, again=k < thorough or task.rounds > 1)
        task.n_steps += steps
        task.message = self._send()

    def _begin(self, task: _Task, width: int) -> None:
        """Working sets, and where their solution begins, to the device."""
        problems = len(self.lams)
        whole = self.newton.staging(width)
        given = whole[: 3 * problems * width].reshape(3, problems, width)
        given[0], given[1], given[2] = self._storage.n_features, 1.0, 0.0
        of, places = self._places(task.sets)
        features, sizes = task.sets - self._firsts[of], _values_of(task.sets, *task.start)
        strengths = task.lams[of] * self._weights[features]
        flat, at = given.reshape(3, -1), of * width + places
        flat[0][at], flat[1][at] = features, strengths
        flat[2][at] = sizes / (strengths + task.ridges[of] * sizes)
        whole[-2 * problems : -problems], whole[-problems:] = task.ridges, task.levels
        self.newton.begin(width)

    def _places(self, keys: Array) -> tuple[Array, Array]:
        """Of each key of working sets its problem, and where it is in its working set."""
        of = self._problem_of(keys)
        return of, np.arange(len(keys)) - np.searchsorted(keys, self._firsts)[of]

    def _send(self) -> _Message:
        """On its way from the device: sums, sizes of rows, what reaches the level; and of the first problem its rows
        and its residual."""
        newton, room = self.newton, self._room
        found = newton.found
        problems, width, tasks = found.rows.shape
        shapes = [(4, problems), (problems, width), (problems, 3, room + 1), (width, tasks), (len(self._real),)]
        out = self._memory.numbers(f"message {width} {room}", sum(math.prod(shape) for shape in shapes))

        def work() -> None:
            newton.find(self._rounding)
            listed = self._reaching(*self._lengths(found.residual), newton.levels)
            sizes = torch.linalg.vector_norm(found.rows, dim=2)
            parts = (found.sums, sizes, listed, found.rows[0], found.residual[0].flatten()[self._real])
            torch.cat([part.flatten() for part in parts], out=out)

        self._memory.run(("judge", width, room), work)
        self.passes += 1.0
        if (width, room) not in self._messages:
            self._messages[width, room] = _Message(out, shapes)
        return self._messages[width, room].send()

    def finish(self) -> Found | None:
        """The value that was launched, once it is solved; None where no problem goes on."""
        task, self._task = self._task, None
        assert task is not None
        while self.live.any():
            sums, sizes, there, rows, residual = task.message.read()
            if self._overflows(there):
                task.message = self._send()
                continue
            listed = self._list_of(there)
            gaps, unsolved = self._judge(task, sums, sizes, listed)
            if not unsolved.any():
                break
            if task.stuck > _STUCK or task.rounds == _ROUNDS:
                self.live &= ~unsolved
                break
            self._round(task)
        if not self.live.any():
            return None
        easy = (gaps <= _FAR_BELOW * task.goals) | ~self.live
        self._replan(task, bool(easy.all()))
        keys, norms = task.start
        of, places = self._places(keys)
        kept = (norms > 0.0) & self.live[of]
        self._before = self.lams, self._keys, self._sizes
        self.lams, self._keys, self._sizes = task.lams, keys[kept], norms[kept]
        here = self.live[self._problem_of(listed.features)]
        self._listed = Listed(listed.features[here], listed.gauges[here], listed.reach[here])
        cuts = np.searchsorted(self._keys, self._firsts[1:-1])
        features = np.split(self._keys - self._firsts[of[kept]], cuts)
        chosen, n_working = np.split(places[kept], cuts), self._counted(keys)
        own = slice(0, int(np.searchsorted(listed.features, self._firsts[1])))
        first = SolvedThere(
            float(task.lams[0]), features[0], rows[chosen[0]], residual.copy(),
            Listed(listed.features[own], listed.gauges[own], listed.reach[own]), float(task.levels[0]),
            self.longest_reach, float(gaps[0]), task.n_steps, task.rounds, int(n_working[0]),
            self.passes - task.passes,
        )  # fmt: skip
        live = np.flatnonzero(self.live).tolist()
        return Found(live, features, chosen, gaps, sums.copy(), n_working, task.n_steps, task.rounds, first)

    def _judge(self, task: _Task, sums: Array, sizes: Array, listed: Listed) -> tuple[Array, Array]:
        """Gaps, and which problems are not solved yet; their working sets grow by what is beyond their strengths."""
        keys, gauges, lams = listed.features, listed.gauges, task.lams
        of, (own, places) = self._problem_of(keys), self._places(task.sets)
        outside = _values_of(keys, task.sets, np.ones(len(task.sets))) == 0.0
        beyond = np.zeros(len(lams))
        np.maximum.at(beyond, of[outside], gauges[outside])
        square, inner, norm, polar = sums
        polar = np.maximum(polar, beyond / lams) * (1.0 + 16.0 * self._rounding)
        gaps = np.array([gap_of_sums(*numbers) for numbers in zip(square, inner, norm, polar, strict=True)])
        gaps += self._sums_rounding * (2.0 * self.nulls + square + np.abs(inner) + norm)
        unsolved = self.live & ~(gaps <= ENOUGH * task.goals)
        task.start = task.sets, sizes[own, places]
        over = outside & (gauges > lams[of]) & unsolved[of]
        task.fresh = bool(over.any())
        if task.fresh:
            more = self._strongest(keys[over], gauges[over], task.sets[task.start[1] > 0.0])
            task.sets = merged(task.sets, more)
        worst = float(np.max(np.where(np.isfinite(gaps), gaps / task.goals, np.inf), where=self.live, initial=0.0))
        task.stuck = 0 if task.fresh or worst < 0.9 * task.least else task.stuck + 1
        task.least = min(task.least, worst)
        return gaps, unsolved

    def _replan(self, task: _Task, easy: bool) -> None:
        """How many steps come before the first reading of X at the next value."""
        if task.rounds > 1 and task.n_steps > self._plan:
            self._plan = min(self._plan + 1, _MOST_STEPS)
        elif easy:
            self._plan = max(self._plan - 1, self._least_plan)

    def _list_at_null(self, lams: Array) -> None:
        """What reaches the level of the first value at W = 0."""
        assert self._at_null is not None
        levels = self._storage.on(self.lams - _BEYOND * (self.lams - lams))
        there = self._reaching(*self._at_null, levels).cpu().numpy()
        if self._overflows(there):
            there = self._reaching(*self._at_null, levels).cpu().numpy()
        self._listed, self._at_null = self._list_of(there), None

    def _overflows(self, there: Array) -> bool:
        """Whether more is listed than there was place for; then there is more from now on."""
        most = int(there[:, 0, 0].max())
        if most <= self._room:
            return False
        self._room = 2 * most
        return True

    def _list_of(self, there: Array) -> Listed:
        """From `lists.reaching`, by keys."""
        counts = there[:, 0, 0].astype(np.int64)
        found = np.concatenate([own[:, 1 : count + 1] for own, count in zip(there, counts, strict=True)], axis=1)
        keys = found[0].astype(np.int64) + np.repeat(self._firsts[:-1], counts)
        return Listed(keys, found[1], found[2])


class _Message:
    """Numbers of a device, and their parts as arrays here."""

    def __init__(self, numbers: Any, shapes: Sequence[tuple[int, ...]]) -> None:
        self._there = numbers
        self._here = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=numbers.is_cuda)
        self._arrived = torch.cuda.Event() if numbers.is_cuda else None
        flat, ends = self._here.numpy(), np.cumsum([math.prod(shape) for shape in shapes])
        self._parts = [part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)]

    def send(self) -> _Message:
        self._here.copy_(self._there, non_blocking=True)
        if self._arrived is not None:
            self._arrived.record()
        return self

    def read(self) -> list[Array]:
        """Its parts, once they have arrived; the next `send` overwrites them."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return self._parts


def width_of(count: int) -> int:
    """Room for so many columns: few widths, so that memory is used again."""
    step = 64 if count <= 512 else 128
    return step * max(1, -(-count // step))


def _values_of(features: Array, known: Array, values: Array) -> Array:
    """Values of these features, from those of known ones; 0 for others. Both ascend."""
    return rows_of(features, known, values[:, None])[:, 0]
