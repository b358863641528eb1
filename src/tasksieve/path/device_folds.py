"""The paths of all folds at once, where X lies on a device: one reading of X a round serves every fold.

A fold is a set of weights of the rows, 0 where a row is held out. All folds stand at the same alpha. A round solves on
the working sets of all of them (`BatchNewton`), reads X once for the residuals of all, and brings back the few features
whose gauges reach a level: those decide whether a fold is solved, and with what it begins at the next alpha. A fold
that stalls ends there, and goes on by itself. The gap of a fold says whether it has converged, with the rounding of
products and sums; it is no certificate of stored numbers, which only the model of all rows has.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..losses import TargetLoss, gamma
from ..solvers import VariationalNewton
from ..solvers.newton import gap_of_sums
from .pair import merged
from .policy import Choice, Kind, choose_for_problem
from .problem import Problem
from .values import Value
from .walks import problem_facts

Array = np.ndarray[Any, Any]

_ENOUGH = 0.95  # of the goal, as in `engine`
_BEYOND = 0.5  # between a strength and the next: features whose gauges reach so far come into the next working set
_MARGIN = 48  # rows that may enter in a step
_MOST_STEPS = 3  # before the first reading of X at a value
_FAR_BELOW = 1e-3  # of the goal: fewer steps would have been enough
_ROUNDS = 60  # of growing working sets, or of steps
_STUCK = 8  # of these in a row, that bring a gap no further down
_SHARE_OF_FREE = 0.5  # of the device's memory

_NONE = np.empty(0, dtype=np.int64)

CHOICE = Choice(Kind.DEVICE, "all folds share one reading of X a round")


@dataclass
class _Fold:
    """One problem: where it stands, and what is known at this alpha."""

    ratio: float  # of its strength to that of all rows, at the same alpha
    null: float
    lam_max: float
    lam: float
    features: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # not zero, ascending
    sizes: Array = field(default_factory=lambda: np.empty(0))  # norms of their rows
    before: tuple[float, Array, Array] | None = None  # strength, features and sizes of the value before
    reached: tuple[Array, Array] = field(default_factory=lambda: (np.empty(0, dtype=np.int64), np.empty(0)))
    values: list[Value] = field(default_factory=list)
    stalled: bool = False

    def guess(self, lam: float) -> tuple[Array, Array]:
        """Features and sizes along the secant of the last two values."""
        if self.before is None or self.before[0] == self.lam or not len(self.features):
            return self.features, self.sizes
        lam_before, features, sizes = self.before
        old = _values_of(self.features, features, sizes)
        theta = (lam - self.lam) / (self.lam - lam_before)
        return self.features, np.maximum(self.sizes + theta * (self.sizes - old), 0.0)


class DeviceFolds:
    """Folds of a problem on a device, given the weights of their training rows, and the unit of the objective of each
    in units of that of all rows."""

    choice = CHOICE

    def __init__(self, problem: Problem, trainings: Sequence[Array], ratios: Sequence[float]) -> None:
        import torch

        from ..design.device.machine import free_bytes
        from ..solvers.batch_newton import BatchNewton

        self._torch = torch
        design, loss = problem.design, problem.loss
        assert isinstance(loss, TargetLoss)
        samples, storage = design.samples, design.shard.storage
        self._problem, self._storage, self._offsets = problem, storage, samples.offsets
        tasks, count = samples.n_tasks, len(trainings)
        self._one = samples.shared or tasks == 1
        lengths = np.diff(samples.offsets)
        n = int(lengths.max())
        # where each row of a task stands in X, and whether it is one
        rows = samples.offsets[:-1, None] % (storage.n_rows if self._one else samples.n_samples + 1) + np.arange(n)
        real = np.arange(n) < lengths[:, None]
        flat = np.where(real, samples.offsets[:-1, None] + np.arange(n), 0)
        rows = np.where(real, rows, 0)
        root = samples.root
        with np.errstate(divide="ignore", invalid="ignore"):
            labels = np.where(root > 0.0, loss.weighted_labels / root, 0.0)
        roots = np.sqrt(np.asarray(trainings))[:, flat] * real  # (P, tasks, n)
        y, means = np.broadcast_to(labels[flat], roots.shape), np.zeros((count, tasks))
        if design.fit_intercept:
            totals = np.sum(np.square(roots), axis=2)
            for _ in range(2):
                sums = np.sum(np.square(roots) * y, axis=2)
                mean = np.divide(sums, totals, out=np.zeros_like(totals), where=totals > 0.0)
                y, means = y - mean[:, :, None], means + mean
        self._label_means = means + loss.shift
        y = y * roots
        matrices = slice(0, 1) if self._one else slice(None)
        on = storage.on
        self._real = on(np.flatnonzero(real[matrices].ravel()))
        self._root = on(roots[:, matrices])
        self._newton = BatchNewton(storage.x, on(rows[matrices]), self._root, on(y), design.fit_intercept)
        self._y = on(y)
        thresholds = problem.penalty.thresholds()
        assert thresholds is not None
        self._weights = thresholds[0]
        self._group = on(np.where(self._weights > 0.0, self._weights, np.inf))
        # of a column, over the tasks; what a product may be off is as long as that, its residual and this factor
        self._longest = self._raw_lengths()
        self._rounding = 4.0 * (gamma(n + 64) + gamma(tasks + 64))
        self._sums_rounding = 4.0 * gamma(samples.n_samples + 64)
        self._room = _SHARE_OF_FREE * free_bytes(storage.device)
        self._intercept, self._plan = design.fit_intercept, 1
        # values whose coefficients are still on the device: (problem, its rows of the working set, value), and these
        self._unread: list[tuple[list[tuple[int, Array, Value]], Any, Any]] = []
        self.passes = 1.0
        nulls = 0.5 * np.sum(np.square(y), axis=(1, 2))
        self._levels = self._gauges(self._y)
        tops = self._levels.amax(dim=1).cpu().numpy()
        self.folds = [
            _Fold(ratio, float(null), float(top), float(top))
            for ratio, null, top in zip(ratios, nulls, tops, strict=True)
        ]
        self._lock = threading.Lock()

    # -- readings of X --------------------------------------------------------------------------------------------

    def _raw_lengths(self) -> Any:
        """The longest part of each raw column in a task."""
        torch, storage = self._torch, self._storage
        out = torch.empty(storage.n_features, dtype=torch.float64, device=storage.device)
        offsets = np.array([0, storage.n_rows]) if self._one else self._offsets
        step = max(1, (1 << 25) // len(offsets))
        ones = np.ones(storage.n_rows)
        for low in range(0, storage.n_features, step):
            chosen = np.arange(low, min(low + step, storage.n_features))
            out[low : low + step] = storage.multiply([ones], offsets, False, chosen, True)[0].amax(dim=1).sqrt()
        return out

    def _gauges(self, residual: Any) -> Any:
        """Upper bounds of the gauges of all features at unit strength, (P, features), of residuals (P, tasks, n)."""
        torch, storage = self._torch, self._storage
        weighted = residual * self._root
        errors = self._rounding * torch.linalg.vector_norm(weighted.flatten(1), dim=1)
        if self._one:
            lengths = storage.lengths_of_shared(weighted)
        else:
            vectors = weighted.flatten(1)[:, self._real].contiguous()
            lengths, lost = storage.lengths_of(vectors, self._offsets)
            errors = errors + lost
        self.passes += 1.0
        return lengths.addcmul_(errors[:, None], self._longest[None, :]).div_(self._group)

    # -- along the path -------------------------------------------------------------------------------------------

    def advance(self, lams: Array, following: Array, goals: Array, ridges: Array) -> None:
        """All folds at their next strengths, with their ridges; `following` come after these."""
        began = time.perf_counter()
        folds, on, newton = self.folds, self._storage.on, self._newton
        live = [p for p, fold in enumerate(folds) if not fold.stalled]
        sets, starts = [_NONE] * len(folds), [(_NONE, np.empty(0))] * len(folds)
        for p in live:
            starts[p] = folds[p].guess(lams[p])
            sets[p] = merged(self._promising(p, lams[p]), starts[p][0])
        newton.ridge.copy_(on(ridges))
        levels = on(lams - _BEYOND * (lams - following))[:, None]
        gaps = np.full(len(folds), np.inf)
        rounds = n_steps = stuck = 0
        least, fresh = np.inf, True
        while True:
            rounds += 1
            if fresh:
                width = width_of(max(len(working) for working in sets))
                if newton.bytes_of(width) > self._room:
                    self._stall(live)
                    return
                self._begin(sets, starts, width, lams, ridges)
            active = max(len(start[0]) if rounds == 1 else int(np.count_nonzero(start[1])) for start in starts)
            steps = self._plan if rounds == 1 else 1 + min(stuck, _MOST_STEPS)
            for _ in range(steps):
                newton.step(min(width_of(active + _MARGIN * rounds), width))
            n_steps += steps
            rows = newton.coefficients()
            residual, sums = newton.facts(rows, self._rounding)
            found, sums, sizes = self._message(self._gauges(residual), levels, sums, rows)
            fresh, unsolved, worst = False, [], 0.0
            for p, part in zip(live, found, strict=True):
                reached = part[:, 1].astype(np.int64)
                outside = ~_among(reached, sets[p])
                beyond = float(np.max(part[outside, 2], initial=0.0)) / lams[p]
                square, inner, norm, polar = sums[:, p]
                polar = max(polar, beyond) * (1.0 + 16.0 * self._rounding)
                sizes_of_sums = 2.0 * folds[p].null + square + abs(inner) + norm
                gaps[p] = gap_of_sums(square, inner, norm, polar) + self._sums_rounding * sizes_of_sums
                folds[p].reached = reached, part[:, 2]
                starts[p] = sets[p], sizes[p, : len(sets[p])]
                worst = max(worst, gaps[p] / goals[p]) if np.isfinite(gaps[p]) else np.inf
                if not gaps[p] <= _ENOUGH * goals[p]:
                    unsolved.append(p)
                    over = reached[outside & (part[:, 2] > lams[p])]
                    fresh = fresh or len(over) > 0
                    sets[p] = merged(sets[p], over)
            if not unsolved:
                break
            stuck = 0 if fresh or worst < 0.9 * least else stuck + 1
            least = min(least, worst)
            if stuck > _STUCK or rounds == _ROUNDS:
                self._stall(unsolved)
                live = [p for p in live if p not in unsolved]
                break
        self._replan(rounds, n_steps, bool(live) and all(gaps[p] <= _FAR_BELOW * goals[p] for p in live))
        seconds = (time.perf_counter() - began) / max(1, len(live))
        fresh_values = []
        for p in live:
            fold, (working, norms) = folds[p], starts[p]
            chosen = np.flatnonzero(norms)
            fold.before = fold.lam, fold.features, fold.sizes
            fold.lam, fold.features, fold.sizes = float(lams[p]), working[chosen], norms[chosen]
            objective = float(0.5 * sums[0, p] + sums[2, p])
            value = Value(
                fold.lam, fold.features, np.empty((0, 0)), np.empty(0), objective, float(gaps[p]), n_steps, 0, 0,
                seconds, True, algorithm="newton", n_rounds=rounds, n_working=len(working),
            )  # fmt: skip
            fold.values.append(value)
            fresh_values.append((p, chosen, value))
        self._unread.append((fresh_values, rows, newton.offsets(rows)))

    def _begin(self, sets: list[Array], starts: list[Any], width: int, lams: Array, ridges: Array) -> None:
        """Working sets, and where their solution begins, to the device."""
        on, shape = self._storage.on, (len(sets), width)
        features, strengths, a = np.full(shape, self._storage.n_features), np.ones(shape), np.zeros(shape)
        for p, working in enumerate(sets):
            count, lam, sizes = len(working), lams[p] * self._weights[working], _values_of(working, *starts[p])
            features[p, :count], strengths[p, :count] = working, lam
            a[p, :count] = sizes / (lam + ridges[p] * sizes)
        self._newton.begin(on(features), on(strengths), on(a))

    def _message(self, gauges: Any, levels: Any, sums: Any, rows: Any) -> tuple[list[Array], Array, Array]:
        """From the device: what reaches the level (problem, feature, gauge), by problem; sums; sizes of rows."""
        torch = self._torch
        hits = (gauges >= levels).nonzero()
        of, features = hits.unbind(1)
        listed = torch.stack([of.to(torch.float64), features.to(torch.float64), gauges[of, features]])
        sizes = torch.linalg.vector_norm(rows, dim=2)
        sent = torch.cat([sums.flatten(), sizes.flatten(), listed.flatten()]).cpu().numpy()
        cuts = np.cumsum([sums.numel(), sizes.numel()])
        found = sent[cuts[1] :].reshape(3, -1).T
        ends = np.searchsorted(found[:, 0], np.arange(len(self.folds) + 1))
        parts = [found[ends[p] : ends[p + 1]] for p, fold in enumerate(self.folds) if not fold.stalled]
        return parts, sent[: cuts[0]].reshape(sums.shape), sent[cuts[0] : cuts[1]].reshape(sizes.shape)

    def _replan(self, rounds: int, n_steps: int, easy: bool) -> None:
        """How many steps come before the first reading of X at the next value."""
        if rounds > 1 and n_steps > self._plan:
            self._plan = min(self._plan + 1, _MOST_STEPS)
        elif easy:
            self._plan = max(self._plan - 1, 1)

    def _promising(self, p: int, lam: float) -> Array:
        """Features that a fold begins with at its next strength, beside those that are not zero."""
        fold = self.folds[p]
        level = fold.lam - _BEYOND * (fold.lam - lam)
        reached, gauges = fold.reached if fold.values else self._listed(p, level)
        near, room = gauges >= level, max(500, 2 * len(fold.features))
        reached, gauges = reached[near], gauges[near]
        if len(reached) > room:
            reached = np.sort(reached[np.argpartition(gauges, -room)[-room:]])
        return reached

    def _read(self) -> None:
        """Coefficients of the values found since the last call, in one message."""
        torch = self._torch
        if not self._unread:
            return
        kept = []
        for found, rows, _ in self._unread:
            flat = [p * rows.shape[1] + chosen for p, chosen, _ in found]
            kept.append(rows.flatten(0, 1)[self._storage.on(np.concatenate(flat) if flat else _NONE)])
        everything = torch.cat(kept).cpu().numpy()
        offsets = torch.stack([one for _, _, one in self._unread]).cpu().numpy()
        at = 0
        for (found, _, _), offset in zip(self._unread, offsets, strict=True):
            for p, chosen, value in found:
                value.rows, at = everything[at : at + len(chosen)], at + len(chosen)
                value.intercept = self._label_means[p] - offset[p] if self._intercept else np.zeros(len(offset[p]))
        self._unread = []

    def highest(self, p: int, count: int) -> Array:
        """The largest gauges at W = 0, so many of them."""
        found = self._torch.topk(self._levels[p], min(count, self._storage.n_features)).values
        return np.asarray(found.cpu().numpy())

    def _listed(self, p: int, level: float) -> tuple[Array, Array]:
        """Features whose gauges at W = 0 reach a level, and these gauges."""
        features = (self._levels[p] >= level).nonzero()[:, 0]
        return features.cpu().numpy(), self._levels[p][features].cpu().numpy()

    def _stall(self, problems: Sequence[int]) -> None:
        for p in problems:
            self.folds[p].stalled = True

    # -- as the walk of one fold ----------------------------------------------------------------------------------

    def walk(self, fold: int, penalty: Any, unit_ratio: float, n_threads: int) -> FoldWalk | None:
        """Along the path of a fold, whose objective is in units of `unit_ratio` times that of all rows."""
        if VariationalNewton.needs.unmet(self._problem.loss, penalty):
            return None
        return FoldWalk(self, fold, penalty)

    def each_at(self, penalty: Any, lams: Array, following: Array, goals: Array, live: Sequence[int]) -> list[Value]:
        """The next values of some folds, each at a strength of its own, up to the first that stalls; the others end."""
        self._stall([p for p in range(len(self.folds)) if p not in live])
        few = penalty.restrict(np.empty(0, dtype=np.int64))
        pairs = zip(self.folds, lams, strict=True)
        ridges = [float(few.with_fixed_ridge(one.ratio).at(lam).ridge) for one, lam in pairs]
        self.advance(lams, following, goals, np.array(ridges))
        self._read()
        return [self.folds[p].values[-1] for p in live if not self.folds[p].stalled]

    def values(self, fold: int, penalty: Any, lams: Array, goals: Array, done: int) -> list[Value]:
        """Values of a fold at the next strengths, after so many; those of the other folds are found with them."""
        with self._lock:
            own, few = self.folds[fold], penalty.restrict(np.empty(0, dtype=np.int64))
            ratios = np.array([one.ratio for one in self.folds]) / own.ratio
            nulls = np.array([one.null for one in self.folds]) / own.null
            while len(own.values) < done + len(lams) and not own.stalled:
                k = len(own.values) - done
                at = lams[k] * ratios
                after = (lams[k + 1] if k + 1 < len(lams) else lams[k] * (lams[k] / own.lam)) * ratios
                pairs = zip(self.folds, at, strict=True)
                ridges = [float(few.with_fixed_ridge(one.ratio).at(lam).ridge) for one, lam in pairs]
                self.advance(at, np.minimum(after, at), goals[k] * nulls, np.array(ridges))
            self._read()
            return own.values[done : done + len(lams)]


class FoldWalk:
    """One fold of them, as `SumSolver` takes it."""

    scale = None

    def __init__(self, folds: DeviceFolds, fold: int, penalty: Any) -> None:
        self._folds, self._fold, self._penalty = folds, fold, penalty
        self.null_value, self._done = folds.folds[fold].null, 0

    def lambda_max(self) -> float:
        return self._folds.folds[self._fold].lam_max

    def values(self, lams: Array, goals: Array, max_iter: int) -> list[Value]:
        found = self._folds.values(self._fold, self._penalty, lams, goals, self._done)
        self._done += len(found)
        return found


def width_of(count: int) -> int:
    """Room for so many columns: few widths, so that memory is used again."""
    step = 64 if count <= 512 else 128
    return step * max(1, -(-count // step))


def _values_of(features: Array, known: Array, values: Array) -> Array:
    """Values of these features, from those of known ones; 0 for others. Both ascend."""
    out = np.zeros(len(features))
    if len(known):
        at = np.minimum(np.searchsorted(known, features), len(known) - 1)
        out = np.where(known[at] == features, values[at], 0.0)
    return out


def _among(values: Array, known: Array) -> Array:
    """Which of some numbers are among known ones, that ascend."""
    if not len(known):
        return np.zeros(len(values), dtype=bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, values), len(known) - 1)] == values)


def device_folds(
    problem: Problem, trainings: Sequence[Array], ratios: Sequence[float], n_values: int
) -> DeviceFolds | None:
    """Folds in one batch (`DeviceFolds`); None where they are better solved one by one."""
    design = problem.design
    if choose_for_problem(problem_facts(problem, n_values, by_sums=False)).kind is not Kind.DEVICE:
        return None
    if VariationalNewton.needs.unmet(problem.loss, problem.penalty):
        return None
    if design.standardize or len(design.unpenalised) or problem.lambda_max() <= 0.0:
        return None
    if design.samples.shared and design.n_tasks > 1:
        by_task = np.asarray(trainings).reshape(len(trainings), design.n_tasks, -1)
        if not np.array_equal(by_task, np.broadcast_to(by_task[:, :1], by_task.shape)):
            return None  # tasks hold out different rows
    found = DeviceFolds(problem, trainings, ratios)
    return found if all(fold.null > 0.0 for fold in found.folds) else None
