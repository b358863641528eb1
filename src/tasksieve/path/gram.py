"""The Gram solver: a whole path on sufficient statistics, for the squared loss where features are few beside the work.

``G = X'X`` and ``c = X'y`` are gathered in one reading (`design.moments`); what intercepts and unpenalised features
explain is taken out of them; one compiled call then walks along the strengths. The certificate is made of the same
statistics,

    gap = 1/2 (1 - s)^2 ||r||^2 + Omega(W) - s <W, H>,    H = c - G W,

a sum of non-negative terms, with what rounding may have done to G, c and H in it (docs: The certificate). Where that is
not small beside the goal, or where more features come into play than the rows can bear, the walk ends and the engine
goes on from its last value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._kernels import kernels
from ..design.moments import (
    PANEL_COLUMNS,
    PANEL_ROWS,
    Moments,
    ShiftedColumns,
    gather,
    shifted_columns,
)
from ..losses import TargetLoss, gamma
from ..penalties.sparse_group import SparseGroup, is_sparse_group
from .policy import features_in_play
from .problem import Problem
from .values import Value, Values

Array = np.ndarray[Any, Any]

_ENOUGH = 0.95  # of the goal: what storing the numbers adds still fits
_DONE, _PAUSED, _SPENT = 0, 1, 4  # why the kernel returns, unless the walk is at its end
PATIENCE = 300  # epochs at one value, after which the engine has better means
_INDEPENDENT = 0.03  # nuisance columns less independent than this cost digits that residuals keep
_ORDINARY = 2.0**100  # sizes up to this, and down to its inverse, can be squared twice
_BUDGET = 5e8  # multiplications in one call: between calls there is time for progress and interrupts


@dataclass
class Frame:
    """What turns rows of scaled columns into stored numbers: shifts of the penalised columns and of the labels, sums of
    the weights, what columns are divided by."""

    features: Array
    unpenalised: Array
    fit_intercept: bool
    shifts: Array
    nuisance_shifts: Array
    label_shifts: Array
    totals: Array
    scale: Array | None = None

    def __post_init__(self) -> None:
        for name in ("shifts", "nuisance_shifts", "label_shifts", "totals"):  # which kernels read
            setattr(self, name, np.ascontiguousarray(getattr(self, name)))


class GramWalk:
    """Strengths one after the other, on the statistics of the data.

    - `moments`: Taken over: they are changed.
    - `patience`: Epochs at one value after which the walk ends and its fallback goes on; None: there is none.
    """

    def __init__(
        self,
        moments: Moments,
        penalty: SparseGroup,
        frame: Frame,
        n_rows: float,
        n_threads: int,
        patience: int | None = PATIENCE,
    ) -> None:
        self._patience, self._n_threads = patience, n_threads
        self.frame = frame
        self._own = own = penalty.restrict(frame.features)
        gram, matrices, n_tasks = moments.gram, len(moments.gram), len(moments.labels)
        for name in ("beside", "nuisance", "explained", "cross"):  # as the kernels read them
            setattr(moments, name, np.ascontiguousarray(getattr(moments, name)))
        self._of_task = np.zeros(n_tasks, dtype=np.int64) if matrices == 1 else np.arange(n_tasks)
        self._beside, self._nuisance, self._explained = moments.beside, moments.nuisance, moments.explained
        # Relative error of a sum of products: of two roundings each in shifting, weighting and the root of the weight.
        self._sums = gamma(moments.rows + 16)
        self._coefficients: Array = np.zeros(moments.beside.shape)  # (Z'Z)^-1 Z'X
        self._fit: Array = np.zeros(moments.explained.shape)  # (Z'Z)^-1 Z'y
        self._independence = np.ones(matrices)  # least singular values of Z, columns of length 1
        self.sizes = np.empty((matrices, len(frame.features)))
        self._label_sizes, self._nuisance_sizes = np.empty(n_tasks), np.empty(moments.beside.shape[:2])
        self._rounding = float(self._eliminate(moments)) + gamma(16)
        if frame.scale is not None:
            _scale(gram, frame.scale)
            self.sizes /= frame.scale
            moments.cross /= frame.scale[self._of_task]
            self._coefficients = self._coefficients / frame.scale[:, None, :]
            self._beside = self._beside / frame.scale[:, None, :]
        #: half the sum of squares of what is to be explained: the objective at W = 0
        self.null_value = 0.5 * float(np.sum(moments.labels))
        newton = not (own.has_entries or own.positive or own.ridge)
        self._ended = False
        self._cross = moments.cross
        self._path = kernels.GramPath(
            gram, self._cross, moments.labels, self.sizes, self._label_sizes, np.ascontiguousarray(own.group),
            np.ascontiguousarray(own.l1), own.positive, self._rounding, own.gauge_error, features_in_play(n_rows),
            n_rows if n_tasks > 1 and newton else 0.0, n_threads,
        )  # fmt: skip

    def lambda_max(self) -> float:
        """The smallest strength whose solution is zero."""
        return self._own.polar(self._own.row_gauges(np.ascontiguousarray(self._cross.T)))

    @property
    def usable(self) -> bool:
        """Whether numbers are of ordinary sizes, the nuisance columns are independent, and what is to be explained is
        more than rounding."""
        least = 1e4 * self._rounding * float(np.sum(np.square(self._label_sizes)))
        return self._ordinary and bool(np.all(self._independence > 0.0)) and self.null_value > least

    def _eliminate(self, moments: Moments) -> float:
        """Takes what nuisance columns explain out of the moments; returns the relative error of what is left.

        Errors are relative to the sizes of the columns. In units of these sizes, with ``B = Z'Z`` and its smallest
        eigenvalue ``s^2``, a Schur complement ``g - c' B^-1 d`` has ``||B^-1 c|| <= 1/s``: so an error of ``e`` in
        every entry becomes at most ``e (1 + sqrt(k)/s)^2``.
        """
        matrices, count = moments.nuisance.shape[:2]
        entry = self._sums + gamma(16 * count * count)
        # Errors of sums are relative only where squares are not below the range of double precision.
        self._ordinary = kernels.take_out_constant(
            moments.gram, moments.cross, moments.labels, moments.beside, moments.nuisance, moments.explained, _ORDINARY,
            self._n_threads, self._coefficients, self._fit, self.sizes, self._label_sizes, self._nuisance_sizes,
        )  # fmt: skip
        if count <= 1:  # no equations to solve
            return entry * (1.0 + np.sqrt(count)) ** 2
        for m in range(matrices):
            sizes = self._nuisance_sizes[m]
            if not np.all(sizes > 0.0):  # a task without rows, or a nuisance column without entries
                self._independence[m] = 0.0
                continue
            normal = moments.nuisance[m] / np.outer(sizes, sizes)
            least = float(np.linalg.eigvalsh(normal)[0])
            self._independence[m] = np.sqrt(max(least - count * entry, 0.0))
            if self._independence[m] < 1e-6:
                self._independence[m] = 0.0
                continue
            tasks = np.flatnonzero(self._of_task == m)
            right = np.hstack([moments.beside[m], moments.explained[tasks].T]) / sizes[:, None]
            solved = np.linalg.solve(normal, right) / sizes[:, None]
            self._coefficients[m], self._fit[tasks] = solved[:, : -len(tasks)], solved[:, -len(tasks) :].T
            own = slice(m, m + 1)
            kernels.subtract_outer(moments.beside[own], self._coefficients[own], self._n_threads, moments.gram[own])
            moments.cross[tasks] -= moments.explained[tasks] @ self._coefficients[m]
            moments.labels[tasks] -= np.einsum("tz,tz->t", moments.explained[tasks], self._fit[tasks])
        np.maximum(moments.labels, 0.0, out=moments.labels)
        worst = self.independence
        return entry * (1.0 + np.sqrt(count) / worst) ** 2 if worst > 0.0 else np.inf

    def values(self, lams: Array, goals: Array, max_iter: int) -> Sequence[Value]:
        """The first of these strengths, as many as one call solves; none where the walk has come to its end."""
        if self._ended:
            return []
        lams, goals = np.ascontiguousarray(lams, dtype=np.float64), np.asarray(goals, dtype=np.float64)
        allowed = max_iter if self._patience is None else min(max_iter, self._patience)
        ridges = self._own.ridges(lams)
        stop, facts, positions, rows = self._path.advance(lams, ridges, _ENOUGH * goals, allowed, _BUDGET)
        self._ended = stop not in (_DONE, _PAUSED) and not (stop == _SPENT and allowed == max_iter)
        found = facts.shape[1]
        if not found:
            return []
        # Columns all along: a path of small values must not spend its time making objects of them.
        objective, _, gap, seconds, epochs, rejected, count = facts
        epochs, rejected, counts = (column.astype(np.int64) for column in (epochs, rejected, count))
        rows = rows.reshape(len(positions), len(self._of_task))
        raw, intercept, free, added, lost = self._numbers(counts, positions, rows)
        gaps = gap + lost
        reached = gaps <= goals[:found]
        values = Values(
            {
                "lam": lams[:found],
                "objective": objective + added,
                "dual_gap": gaps,
                "n_iter": epochs,
                "n_rejected": rejected,
                "n_working": len(self.frame.features) - rejected,
                "seconds": seconds,
                "converged": reached,
            },
            counts.cumsum(),
            self.frame.features[positions],
            raw,
            intercept,
            self.frame.unpenalised,
            free,
        )
        if not reached.all():
            short = np.flatnonzero(~reached & (epochs < max_iter))
            if len(short):
                self._ended = True  # too slow, or numbers as they are stored fall short of the goal
                return values.first(int(short[0]))
        return values

    @property
    def independence(self) -> float:
        """The least singular value of nuisance columns of length 1, over all matrices."""
        return float(np.min(self._independence, initial=1.0))

    @property
    def dependent(self) -> int | None:
        """The first matrix whose nuisance columns are linearly dependent."""
        return None if np.all(self._independence > 0.0) else int(np.argmin(self._independence))

    def again(self) -> None:
        """A walk that has come to its end may be called once more, with other goals."""
        self._ended = False

    def _numbers(self, counts: Array, positions: Array, rows: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Stored numbers of several values at once: raw rows, intercepts (values, tasks), coefficients of unpenalised
        features (values, columns, tasks); what the objective gains by rounding them, and at most gains."""
        frame, n_values, n_tasks = self.frame, len(counts), rows.shape[1]
        raw = rows if frame.scale is None else rows / frame.scale[self._of_task].T[positions]
        first = int(frame.fit_intercept)
        left = np.empty((n_values, self._fit.shape[1], n_tasks))  # coefficients of the nuisance columns
        facts = np.empty((4, n_values, n_tasks))
        kernels.stored_values(
            counts, positions, rows, raw, self.sizes, frame.shifts, self._coefficients, self._fit,
            frame.nuisance_shifts, frame.label_shifts, frame.fit_intercept, left, facts,
        )  # fmt: skip
        intercept, rest, total, reach = facts
        free = left[:, first:]
        if left.shape[1] <= 1:
            gained, most = np.empty(n_values), np.empty(n_values)
            about = self._label_sizes, frame.totals, self._sums, left.shape[1], frame.fit_intercept
            kernels.storing_loss(counts, facts, *about, gained, most)
            return raw, intercept, free, gained, most
        away = self._nuisance_distance(left, rows, positions, counts, reach)
        if not first:
            dropped = 0.5 * np.square(away) * (1.0 + gamma(16))
            return raw, intercept, free, np.zeros(n_values), dropped.sum(axis=1)
        # Where large numbers cancel the intercept was summed in twice the precision.
        width = counts + 2 + free.shape[1]
        rest = np.abs(rest)
        lost = gamma(2) * rest + np.square(gamma(1) * (2 * width + 8))[:, None] * total
        root = np.sqrt(frame.totals)
        added = 0.5 * np.square(root * rest)
        dropped = 0.5 * np.square(away + root * (rest + lost)) * (1.0 + gamma(16))
        return raw, intercept, free, added.sum(axis=1), dropped.sum(axis=1)

    def _nuisance_distance(self, left: Array, rows: Array, positions: Array, counts: Array, reach: Array) -> Array:
        """How far the scores of nuisance coefficients are from those of the best ones: norms, (values, tasks)."""
        n_values, count, n_tasks = left.shape
        terms = gamma(int(counts.max()) + 2 * count + 16) + self._sums
        sizes = self._nuisance_sizes[self._of_task]  # (tasks, nuisance)
        value = np.repeat(np.arange(n_values), counts)
        seen = np.zeros((n_values, count, n_tasks))
        for z, part in enumerate(self._beside.transpose(1, 0, 2)):
            np.add.at(seen[:, z], value, part[self._of_task].T[positions] * rows)
        fitted = np.einsum("tyz,vzt->vyt", self._nuisance[self._of_task], left)
        open_ = self._explained.T[None] - seen - fitted
        known = self._label_sizes + reach + np.einsum("vzt,tz->vt", np.abs(left), sizes)
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = np.where(sizes.T > 0.0, np.abs(open_) / sizes.T, 0.0)
        off = np.sqrt(np.sum(np.square(scaled), axis=1)) + np.sqrt(count) * terms * known
        return np.asarray(off / self._independence[self._of_task])


def _scale(gram: Array, scale: Array) -> None:
    """Gram matrices of divided columns, in place."""
    count = scale.shape[1]
    tall, across = -(-count // PANEL_ROWS), -(-count // PANEL_COLUMNS)
    for panels, own in zip(gram, 1.0 / scale, strict=True):
        rows, columns = np.zeros(tall * PANEL_ROWS), np.zeros(across * PANEL_COLUMNS)
        rows[:count] = columns[:count] = own
        blocks = panels.reshape(tall, across, PANEL_ROWS, PANEL_COLUMNS)
        blocks *= rows.reshape(tall, 1, PANEL_ROWS, 1)
        blocks *= columns.reshape(across, 1, PANEL_COLUMNS)


# -- from a problem in memory -----------------------------------------------------------------------------------------


def frame_of(problem: Problem, columns: ShiftedColumns) -> Frame:
    """What turns rows into numbers for the data of a problem, but for a scale."""
    design = problem.design
    return Frame(
        np.flatnonzero(problem.penalty.penalised),
        design.unpenalised,
        design.fit_intercept,
        columns.shifts,
        design.nuisance_shifts,
        problem.loss.shift,
        np.square(design.samples.root_totals),
    )


def gram_walk(problem: Problem) -> GramWalk | None:
    """The walk along a problem's path; None where its statistics are no good."""
    design, loss, penalty = problem.design, problem.loss, problem.penalty
    assert isinstance(loss, TargetLoss) and is_sparse_group(penalty)
    with np.errstate(over="ignore", invalid="ignore"):  # sizes that are not ordinary are no good
        columns = shifted_columns(design, np.flatnonzero(penalty.penalised))
        moments = gather(design, columns, loss.weighted_labels)
        matrices = len(moments.gram)
        frame = frame_of(problem, columns)
        if design.scale is not None:
            frame.scale = np.ascontiguousarray(design.scale[frame.features].T[:matrices])
        walk = GramWalk(moments, penalty, frame, len(columns.x) / matrices, design.n_threads)
        return walk if walk.usable and walk.independence >= _INDEPENDENT else None
