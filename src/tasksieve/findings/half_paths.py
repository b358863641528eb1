"""The paths of many subsamples (halves of the rows), each followed until so many features were used.

A half is a set of row weights: all of them read the same X, through a `SharedReading`, and walk in step
(`design.lockstep`), so that one reading serves many. Where reads are costly (a file, a custom storage) as
many walk together as memory allows; elsewhere a few at a time, so that an interruption loses little.

What a half selects depends on its own rows alone, also the values of alpha that it looks at: the bounds need halves of
a pair to be independent, and that each selects at most q features. They need no accuracy: that of a value is as in the
folds of a cross-validation.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import joblib
import numpy as np

from ..design import Lockstep, SharedReading, one_blas_thread, shared_reading
from ..fitted.checkpoint import keeping, kept
from ..linear.base import PathEstimator
from ..linear.path_solver import RowSolver, SumSolver, solve_along
from ..linear.row_folds import facts_of, sketch
from ..path.device_folds import DeviceFolds, device_folds
from ..path.follow import Pace
from ..path.policy import sums_pay_on_halves, walks_that_fit
from ..path.problem import Problem
from ..path.values import Value
from ..path.walks import problem_facts, sets_options
from ..tasks import TaskData
from .halves import Halves

Array = np.ndarray[Any, Any]

_MOST = 100  # halves that have threads of their own
_IN_STEP = 10  # of those walk in step where readings are cheap
_AT_ONCE = 4  # values that are solved together, where the solver can
_BATCH = 16  # halves on a device that share its readings
_EVEN = 4  # values until about q features are to be expected; from there steps grow
_USUAL = 10  # values until q features were used
_LEAST_STEP, _MOST_STEP = 0.02, 0.3  # of log alpha
_DEEPEST = math.log(1e3)  # of log alpha below the largest: further down nothing new is worth the time


def grid_of(alpha_max: float, levels: Array, q: int) -> Array:
    """Decreasing values of alpha below the largest, as far as a path may be followed. Steps of log alpha are even for
    the first four values, which lead to where about q of the features (by their `levels`) enter, and then grow."""
    highest = np.sort(levels)[::-1]
    spread = 0.0
    if len(highest) >= q and highest[q - 1] > 0.0:
        spread = float(np.log(highest[0] / highest[q - 1]))
    step = min(max(spread / _EVEN, _LEAST_STEP), _MOST_STEP)
    k = np.arange(1, math.ceil(_DEEPEST / step) + 1)
    fall = step * (k + np.square(np.maximum(k - _EVEN, 0)) / (2.0 * _EVEN))
    return alpha_max * np.exp(-fall[fall <= _DEEPEST])


class Selectable:
    """What is selected, and counted, by a problem: penalised features, or groups of them. `code` is the number of each
    feature, or of its group (-1: never penalised), smaller than `size`; `count` is how many there are, p."""

    def __init__(self, problem: Problem) -> None:
        penalty, penalised = problem.penalty, problem.penalty.penalised
        self.groups: Array | None = None
        code = np.arange(problem.design.n_features)
        blocks = penalty.named_blocks()
        if blocks is not None:
            self.groups, code = blocks
        self.code = np.where(penalised, code, -1)
        self.count = len(np.unique(self.code[penalised]))
        self.size = problem.design.n_features if self.groups is None else len(self.groups)

    def levels(self, levels: Array) -> Array:
        """The largest level of each."""
        found = np.zeros(self.size)
        penalised = self.code >= 0
        np.maximum.at(found, self.code[penalised], levels[penalised])
        return found

    def used(self, point: Value, problem: Problem) -> tuple[Array, Array]:
        """Numbers of those with a coefficient that is not zero, and how strong they are, in the solver's units."""
        live = (self.code[point.features] >= 0) & point.rows.any(axis=1)
        features, rows = point.features[live], np.ascontiguousarray(point.rows[live])
        squares = np.sum(np.square(problem.design.scaled_units(features, rows)), axis=1)
        numbers, position = np.unique(self.code[features], return_inverse=True)
        return numbers, np.sqrt(np.bincount(position, weights=squares, minlength=len(numbers)))


@dataclass(frozen=True)
class Entries:
    """The first features (or groups) that the path of a half used, in the order in which it did."""

    numbers: Array
    alphas: Array  # at which they were first used, not increasing
    n_open: int = 0  # values that did not converge


class HalfPaths:
    """The paths of halves, each until q were used: their `entries` (None: not finished), and readings of X."""

    def __init__(
        self, model: PathEstimator, data: TaskData, selectable: Selectable, q: int, halves: Halves, n_jobs: int
    ) -> None:
        self._model = copy(model)
        self._model.__dict__["_warn_dependent"] = lambda *_: None  # all rows were checked, with the warning
        self._data, self._selectable, self._q, self._halves, self._n_jobs = data, selectable, q, halves, n_jobs
        self.entries: list[Entries | None] = [None] * len(halves)
        self._known_by = self._fingerprint() if keeping() else None
        self.passes, self.interrupted = float(self._known_by is not None), False
        self._done, self._lock = 0, threading.Lock()

    def follow(self, callback: Callable[[int, int], None] | None = None) -> None:
        """Find the entries of all halves; after a KeyboardInterrupt those that were finished are there."""
        try:
            for low in range(0, len(self.entries), _MOST):
                self._follow(range(low, min(low + _MOST, len(self.entries))), callback)
        except KeyboardInterrupt:
            self.interrupted = True

    def _follow(self, some: Sequence[int], callback: Callable[[int, int], None] | None) -> None:
        """Some halves, in step; one begins when another has ended."""
        some = self._follow_on_device(some, callback)
        if not some:
            return
        shared = shared_reading(self._data.make_storage(), self._n_jobs)
        steps = Lockstep(self._n_jobs, shared.serve)
        shared.meet = steps.ask
        together = self._together(len(some))
        threads = max(1, self._n_jobs // together)

        def half(h: int) -> None:
            steps.wait_until(lambda: h < self._done + together)
            self._half(h, shared, threads)
            with self._lock:
                self._done += 1
                if callback is not None:
                    callback(self._done, len(self.entries))

        try:
            with one_blas_thread():
                steps.run([partial(half, h) for h in some])
        finally:
            shared.meet = None
            self.passes += shared.spent

    def _follow_on_device(self, some: Sequence[int], callback: Callable[[int, int], None] | None) -> Sequence[int]:
        """Where X lies on a device, several halves share its readings (`path.device_folds`); those that are left stall
        there, or are better followed one by one. No two of a batch are of one pair: how exactly a half is solved,
        within its tolerance, depends on the others."""
        if self._data.make_storage().shard_class is None or sets_options(self._model._engine_options()) or keeping():
            return some
        problem = self._model._problem(self._data, self._n_jobs)
        left = list[int]()
        for parity in (0, 1):
            own = [h for h in some if h % 2 == parity]
            for part in np.array_split(own, -(-len(own) // _BATCH)):
                found = HalvesOnDevice.of(self._model, self._data, problem, [self._weights(h) for h in part])
                if found is None:
                    return some
                done = found.follow(self._selectable, self._q)
                self.passes += found.passes
                for h, entering in zip(part.tolist(), done, strict=True):
                    if entering is None:
                        left.append(h)
                        continue
                    self.entries[h] = _entries(entering.arrays())
                    self._done += 1
                    if callback is not None:
                        callback(self._done, len(self.entries))
        return sorted(left)

    def _weights(self, h: int) -> Array:
        return self._halves.weights(h, self._data.weights)

    def _together(self, n_halves: int) -> int:
        """Halves that walk in step, for which there is memory."""
        data = self._data
        columns = data.n_tasks if data.class_counts is None else int(np.sum(data.class_counts))
        stored = data.n_rows * data.n_features * data.make_storage().dtype.itemsize
        wanted = n_halves if data.make_storage().costly_reads and not keeping() else _IN_STEP
        return max(2, min(walks_that_fit(data.n_features, columns, stored), wanted))

    def _fingerprint(self) -> str:
        """What all halves depend on."""
        facts = facts_of(self._model, self._data, sketch(self._data, self._n_jobs))
        return str(joblib.hash([*facts, self._selectable.code, self._q]))

    def _half(self, h: int, shared: SharedReading, threads: int) -> None:
        weights = self._weights(h)

        def compute() -> dict[str, Array]:
            training = replace(self._data, X=shared.reader()).with_weights(weights)
            return self._walk(training, threads)

        arrays = kept(f"half-{h}", [self._known_by, weights], compute)
        self.entries[h] = _entries(arrays)

    def _walk(self, training: TaskData, threads: int) -> dict[str, Array]:
        """Down the path from its own alpha_max until q were used."""
        model, own, training = self._model, self._selectable, training.without_absent_rows()
        problem = model._problem(training, threads)
        largest = model._alpha_max(problem, training)
        entering = _UntilUsed(own, problem, self._q)
        if largest > 0.0:
            entering.alphas = grid_of(largest, self._highest(problem), self._q)
            solve_along(self._solver(problem, training), entering.alphas, pace=entering).raise_interrupt()
        if training.make_storage().shard_class is not None:
            self.passes += problem.design.passes  # of columns that are not read through `shared`
        return entering.arrays()

    def _highest(self, problem: Problem) -> Array:
        """The levels at W = 0, at least the q highest."""
        own = self._selectable
        return problem.highest_levels(self._q) if own.groups is None else own.levels(problem.null_levels())

    def _solver(self, problem: Problem, training: TaskData) -> RowSolver:
        """On sums or with the engine, whichever is less work."""
        model = self._model
        by_sums = sums_pay_on_halves(problem_facts(problem, _USUAL, by_device=False))
        if model.screening == "auto" and not by_sums:
            model = copy(model)
            # So few values, so near the top, need no safe rule: working sets keep the columns few, and certificates
            # look at all of them.
            model.screening = None
        return RowSolver(model, training, problem, _USUAL)


def _entries(arrays: dict[str, Array]) -> Entries:
    return Entries(arrays["numbers"], arrays["alphas"], int(arrays["open"]))


class HalvesOnDevice:
    """Some halves in one batch, each at strengths of its own, and no further than it needs."""

    def __init__(self, folds: DeviceFolds, solvers: list[SumSolver], problem: Problem) -> None:
        self._folds, self._solvers, self._problem = folds, solvers, problem

    @classmethod
    def of(
        cls, model: PathEstimator, data: TaskData, problem: Problem, weights: Sequence[Array]
    ) -> HalvesOnDevice | None:
        """None where halves are better followed one by one."""
        trainings = [data.with_weights(own) for own in weights]
        ratios = [float(model._unit(training) / model._unit(data)) for training in trainings]
        folds = device_folds(problem, [model._row_weights(own) for own in trainings], ratios, None, _USUAL)
        if folds is None:
            return None
        solvers = []
        for p, training in enumerate(trainings):
            walk = folds.walk(p, problem.penalty, ratios[p], 1)
            solvers.append(SumSolver(model, training, walk, problem.units, choice=folds.choice, readings=0))
        return cls(folds, solvers, problem)

    @property
    def passes(self) -> float:
        return self._folds.passes

    def follow(self, selectable: Selectable, q: int) -> list[_UntilUsed | None]:
        """What each half has used, at its own values of alpha; None for those that stall."""
        folds, count = self._folds, len(self._solvers)
        entering = [_UntilUsed(selectable, self._problem, q) for _ in self._solvers]
        lams = list[Array]()
        for p, (solver, own) in enumerate(zip(self._solvers, entering, strict=True)):
            own.alphas = grid_of(solver.alpha_max(), folds.highest(p, q), q)
            lams.append(solver.strengths(own.alphas))
        goals = np.array([solver.goal for solver in self._solvers])
        at = folds.lam_max.copy()
        live, stalled = list(range(count)), set[int]()
        k = 0
        while live := [p for p in live if k < len(lams[p]) and entering[p].goes_on(k)]:
            following = at.copy()
            for p in live:
                at[p] = lams[p][k]
                following[p] = lams[p][min(k + 1, len(lams[p]) - 1)]
            values = iter(folds.each_at(self._problem.penalty, at, np.minimum(following, at), goals, live))
            stalled |= {p for p in live if not folds.live[p]}
            live = [p for p in live if p not in stalled]
            for p in live:
                entering[p].reached(k, self._solvers[p].outward([next(values)]))
            k += 1
        return [None if p in stalled else own for p, own in enumerate(entering)]


class _UntilUsed(Pace):
    """Follow a path until so many features were used; the alpha at which each was used first."""

    most = _AT_ONCE

    def __init__(self, selectable: Selectable, problem: Problem, q: int) -> None:
        self._selectable, self._problem, self._q = selectable, problem, q
        self._known = np.zeros(selectable.size, dtype=bool)
        self._numbers, self._first, self._n_open = list[int](), list[float](), 0
        self.alphas: Array = np.empty(0)

    def goes_on(self, k: int) -> bool:
        return len(self._numbers) < self._q

    def reached(self, first: int, values: Sequence[Value]) -> None:
        for alpha, point in zip(self.alphas[first:].tolist(), values, strict=False):
            self._n_open += not point.converged
            fresh = self._fresh(point)[: self._q - len(self._numbers)]
            self._numbers += fresh.tolist()
            self._first += [alpha] * len(fresh)

    def arrays(self) -> dict[str, Array]:
        """Those used, when, and how many values did not converge."""
        numbers = np.array(self._numbers, dtype=np.int64)
        return {"numbers": numbers, "alphas": np.array(self._first), "open": np.array(self._n_open)}

    def _fresh(self, point: Value) -> Array:
        """Those used at a value for the first time, the strongest first."""
        numbers, strength = self._selectable.used(point, self._problem)
        new = ~self._known[numbers]
        numbers, strength = numbers[new], strength[new]
        self._known[numbers] = True
        return numbers[np.lexsort((numbers, -strength))]
