"""The paths of all folds at once, where X lies on a device (`device_batch`).

A fold is a set of weights of the rows, 0 where a row is held out. One that stalls ends there, and goes on by itself.
The problem of all rows can be solved with them; what is found of it waits in `Problem.solved_there`.
The gap of a fold says whether it has converged; a certificate of stored numbers only the model of all rows gets.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..losses import TargetLoss
from ..solvers import VariationalNewton
from .device_path import SHARE
from .policy import Choice, Kind, choose_for_problem
from .problem import Problem
from .values import Value
from .walks import problem_facts

Array = np.ndarray[Any, Any]

CHOICE = Choice(Kind.DEVICE, "all folds share one reading of X a round")


class DeviceFolds:
    """Folds of a problem on a device, given the weights of their training rows, and the unit of the objective of each
    in units of that of all rows. With `tol` all rows are solved as well, to such a relative gap."""

    choice = CHOICE

    def __init__(
        self, problem: Problem, trainings: Sequence[Array], ratios: Sequence[float], tol: float | None
    ) -> None:
        from .device_batch import DeviceBatch

        design, loss = problem.design, problem.loss
        assert isinstance(loss, TargetLoss)
        samples = design.samples
        self._problem, self._intercept, self._tol = problem, design.fit_intercept, tol
        self._first = int(tol is not None)  # where folds begin among the problems of the batch
        self.ratios = np.array([1.0] * self._first + [*ratios])
        root = samples.root
        with np.errstate(divide="ignore", invalid="ignore"):
            labels = np.where(root > 0.0, loss.weighted_labels / root, 0.0)
        roots = np.sqrt(np.asarray(trainings))
        if tol is not None:
            roots = np.vstack([root, roots])
        y, means = np.broadcast_to(labels, roots.shape), np.zeros((len(roots), samples.n_tasks))
        basis, self._totals = np.empty((len(roots), 0, samples.n_samples)), np.zeros((len(roots), samples.n_tasks))
        if design.fit_intercept:
            totals = samples.task_sums(np.square(roots))
            for _ in range(2):
                mean = np.divide(samples.task_sums(np.square(roots) * y), totals, out=0.0 * totals, where=totals > 0.0)
                y, means = y - mean.repeat(samples.lengths, axis=1), means + mean
            self._totals = np.sqrt(totals)
            inverse = np.divide(1.0, self._totals, out=0.0 * totals, where=totals > 0.0)
            basis = (roots * inverse.repeat(samples.lengths, axis=1))[:, None]
        self._label_means = means + loss.shift
        self._batch = DeviceBatch(problem, roots, y * roots, basis)
        first = self._first
        #: of each fold: the loss of W = 0, the smallest strength whose solution is zero, whether it goes on here
        self.nulls, self.lam_max = self._batch.nulls[first:], self._batch.lam_max[first:]
        self.live = self._batch.live[first:]
        #: what to do here while the device is at work
        self.meanwhile: Callable[[], None] | None = None
        #: values of each fold
        self.found: list[list[Value]] = [[] for _ in ratios]
        # values whose coefficients are still on the device: (problem, its rows of the working set, value), and these
        self._unread: list[tuple[list[tuple[int, Array, Value]], Any, Any]] = []
        self._lock = threading.Lock()

    @property
    def passes(self) -> float:
        return self._batch.passes

    def _advance(self, lams: Array, following: Array, goals: Array, ridges: Array) -> None:
        """All folds at their next strengths, with their ridges; `following` come after these."""
        began, batch = time.perf_counter(), self._batch
        batch.launch(lams, following, goals, ridges)
        if self.meanwhile is not None:
            self.meanwhile()
        found = batch.finish()
        if found is None:
            return
        seconds = (time.perf_counter() - began) / len(found.live)
        fresh = []
        if self._first and 0 in found.live:
            self._problem.solved_there.append(replace(found.first, n_readings=0.0))  # counted here
        for p in found.live[self._first if 0 in found.live else 0 :]:
            sums = found.sums[:, p]
            value = Value(
                float(lams[p]), found.features[p], np.empty((0, 0)), np.empty(0), float(0.5 * sums[0] + sums[2]),
                float(found.gaps[p]), found.n_steps, 0, 0, seconds, True, algorithm="newton", n_rounds=found.rounds,
                n_working=int(found.n_working[p]),
            )  # fmt: skip
            self.found[p - self._first].append(value)
            fresh.append((p, found.places[p], value))
        rows = batch.newton.found.rows
        self._unread.append((fresh, rows.clone(), batch.newton.offsets(rows) if self._intercept else None))

    def _read(self) -> None:
        """Coefficients of the values found since the last call, in one message."""
        if not self._unread:
            return
        import torch

        device, kept = self._unread[0][1].device, []
        for found, rows, _ in self._unread:
            flat = [p * rows.shape[1] + chosen for p, chosen, _ in found]
            kept.append(rows.flatten(0, 1)[torch.from_numpy(np.concatenate(flat)).to(device)])
        together, at = torch.cat(kept), 0
        here = torch.empty(together.shape, dtype=together.dtype, pin_memory=together.is_cuda)
        everything = here.copy_(together).numpy()
        tasks = everything.shape[1]
        offsets = None
        if self._intercept:
            offsets = torch.stack([one for _, _, one in self._unread]).cpu().numpy()
            offsets = np.divide(offsets, self._totals, out=0.0 * offsets, where=self._totals > 0.0)
        for k, (found, _, _) in enumerate(self._unread):
            for p, chosen, value in found:
                value.rows, at = everything[at : at + len(chosen)], at + len(chosen)
                value.intercept = np.zeros(tasks) if offsets is None else self._label_means[p] - offsets[k, p]
        self._unread = []

    # -- as the walk of one fold ----------------------------------------------------------------------------------

    def walk(self, fold: int, penalty: Any, unit_ratio: float, n_threads: int) -> FoldWalk | None:
        """Along the path of a fold, whose objective is in units of `unit_ratio` times that of all rows."""
        if VariationalNewton.needs.unmet(self._problem.loss, penalty):
            return None
        return FoldWalk(self, fold, penalty)

    def _ridges(self, penalty: Any, lams: Array) -> Array:
        return np.asarray(penalty.ridges(lams, self.ratios))

    def highest(self, fold: int, count: int) -> Array:
        """The largest gauges at W = 0, so many of them."""
        return self._batch.highest(fold + self._first, count)

    def each_at(self, penalty: Any, lams: Array, following: Array, goals: Array, live: Sequence[int]) -> list[Value]:
        """The next values of some folds, each at a strength of its own, up to the first that stalls; the others end."""
        self.live &= np.isin(np.arange(len(self.live)), live)
        self._advance(lams, following, goals, self._ridges(penalty, lams))
        self._read()
        return [self.found[p][-1] for p in live if self.live[p]]

    def values(self, fold: int, penalty: Any, lams: Array, goals: Array, done: int) -> list[Value]:
        """Values of a fold at the next strengths, after so many; those of the other folds are found with them."""
        with self._lock:
            batch = self._batch
            found, own = self.found[fold], fold + self._first
            ratios = self.ratios / self.ratios[own]
            while len(found) < done + len(lams) and batch.live[own]:
                k = len(found) - done
                at = lams[k] * ratios
                after = (lams[k + 1] if k + 1 < len(lams) else lams[k] * (lams[k] / batch.lams[own])) * ratios
                tols = goals[k] / batch.nulls[own] * batch.nulls
                if self._tol is not None:
                    tols[0] = SHARE * self._tol * batch.nulls[0]
                self._advance(at, np.minimum(after, at), tols, self._ridges(penalty, at))
            self._read()
            return found[done : done + len(lams)]


class FoldWalk:
    """One fold of them, as `SumSolver` takes it."""

    scale = None

    def __init__(self, folds: DeviceFolds, fold: int, penalty: Any) -> None:
        self._folds, self._fold, self._penalty = folds, fold, penalty
        self.null_value, self._done = float(folds.nulls[fold]), 0

    def lambda_max(self) -> float:
        return float(self._folds.lam_max[self._fold])

    def values(self, lams: Array, goals: Array, max_iter: int) -> list[Value]:
        found = self._folds.values(self._fold, self._penalty, lams, goals, self._done)
        self._done += len(found)
        return found


def device_folds(
    problem: Problem, trainings: Sequence[Array], ratios: Sequence[float], tol: float | None, n_values: int
) -> DeviceFolds | None:
    """Folds in one batch (`DeviceFolds`); None where they are better solved one by one."""
    design = problem.design
    if choose_for_problem(problem_facts(problem, n_values, by_sums=False)).kind is not Kind.DEVICE:
        return None
    if VariationalNewton.needs.unmet(problem.loss, problem.penalty):
        return None
    if design.standardize or len(design.unpenalised) or problem.lambda_max() <= 0.0:
        return None
    found = DeviceFolds(problem, trainings, ratios, tol)
    return found if (found.nulls > 0.0).all() else None
