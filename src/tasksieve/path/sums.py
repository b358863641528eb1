"""A problem of which only the sufficient statistics are left: the Gram solver without a design.

Where rows outnumber features by far they are read once, in blocks (`design.sums`), and may be gone when the path
begins. Without rows there is no engine to fall back to: a value that the statistics cannot prove to `tol` is certified
as far as they go, and says so. Where the rows are at hand, only values before it are taken, and the rows go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..design.sums import Gathered
from ..losses import gamma
from ..penalties import SparseGroup
from .gram import Frame, GramWalk
from .status import Status
from .values import Value

Array = np.ndarray[Any, Any]

_ORDINARY = 2.0**200  # squares up to this, and down to its inverse, can be squared again
_NOISE = 64.0  # roundings: a spread that is no more than these is none
_NO_RESIDUALS = 1e9  # rows, for the walk to count by: there are no residuals that it could leave anything to
_LIMIT = "its statistics, sums over the rows, have no more digits"


class Unusable(ValueError):
    """The statistics do not determine the problem."""


class SumProblem:
    """``1/2 sum_i s_i (y_i - x_i w - b)^2 + lam Omega(W) + ridge/2 ||W||_F^2``, known by moments alone, in sum units.

    - `penalty`: Of all features, at unit strength (`SparseGroup.on`).
    - `fit_intercept`: Without intercepts the moments must be about 0.
    - `patience`: As of `GramWalk`.
    - `settle`: False: the path ends before a value that the statistics cannot prove to its goal.
    - `copy`: False: what was gathered serves no one else, and may be changed.
    - `spread`: Sums of squares of the columns about their means; without intercepts, about 0.
    """

    def __init__(
        self,
        gathered: Gathered,
        penalty: SparseGroup,
        *,
        fit_intercept: bool,
        standardize: bool,
        n_threads: int,
        patience: int | None = None,
        settle: bool = True,
        copy: bool = True,
    ) -> None:
        self._gathered, self._settle = gathered, settle
        self._loose = 1.0  # by what goals are multiplied, where the statistics have too few digits for them
        columns, labels, by_means, _ = gathered.squares()
        self.spread = np.maximum(columns - by_means, 0.0) if fit_intercept else columns
        penalised = penalty.penalised
        free, kept = np.flatnonzero(~penalised), np.flatnonzero(penalised)
        self.n_tasks, count = gathered.n_tasks, len(kept)
        matrices = len(gathered.shifts)
        scale = self._deviations(columns) if standardize else None
        self.scale = None if scale is None else np.broadcast_to(scale, (self.n_tasks, gathered.n_features)).T
        nuisance_shifts = np.zeros((int(fit_intercept), self.n_tasks))
        if len(free):
            of_task = np.zeros(self.n_tasks, dtype=np.int64) if matrices == 1 else np.arange(self.n_tasks)
            nuisance_shifts = np.concatenate([nuisance_shifts, gathered.shifts[of_task][:, free].T])
        frame = Frame(
            kept,
            free,
            fit_intercept,
            gathered.shifts[:, kept] if len(free) else gathered.shifts,
            nuisance_shifts,
            gathered.label_shifts,
            gathered.totals,
            None if scale is None else np.ascontiguousarray(scale[:, kept]),
        )
        #: whether numbers are of a size that their fourth powers have a representation
        self.ordinary = _ordinary(columns) and _ordinary(labels)
        self.finite = self.ordinary or bool(np.isfinite(columns).all() and np.isfinite(labels).all())
        if not self.ordinary:
            return
        self._label_squares = float(labels.sum())
        moments = gathered.moments.split(kept, free, fit_intercept, copy)
        if not count:
            raise Unusable("every feature has weight 0 in feature_weights: nothing is penalised")
        self._walk = GramWalk(moments, penalty, frame, _NO_RESIDUALS, n_threads, patience)
        self.null_value = self._walk.null_value
        if self.null_value == 0.0 and len(free):
            raise Unusable("features of weight 0 in feature_weights explain the labels exactly")
        #: the first task whose unpenalised features are linearly dependent, or None
        self.dependent = self._walk.dependent
        #: whether what is to be explained is more than rounding
        self.usable = self._walk.usable or self.null_value == 0.0

    @property
    def serves(self) -> bool:
        """Whether the statistics determine what the rows would."""
        return self.ordinary and self.dependent is None and self.usable

    def lambda_max(self) -> float:
        """The smallest strength whose solution is zero."""
        return self._walk.lambda_max()

    def _deviations(self, columns: Array) -> Array:
        """Of columns about their means (about 0 without intercepts), 1 where there is none: (matrices, n_features)."""
        spread = np.where(self.spread > gamma(_NOISE) * columns, self.spread, 0.0)
        totals = self._gathered.moments.nuisance[:, :1, 0]
        scale = np.sqrt(np.divide(spread, totals, out=np.zeros_like(spread), where=totals > 0.0))
        scale[scale == 0.0] = 1.0
        return scale

    def values(self, lams: Array, goals: Array, max_iter: int) -> Sequence[Value]:
        """The first of these strengths, as many as one call solves; where the statistics have too few digits for a goal
        as near as they come, or without `settle` none."""
        if self.null_value == 0.0:
            return self._nothing(lams, goals)
        tried = False
        while True:
            loose = self._loose
            eased = np.maximum(goals, 1e-16 * self.null_value) * loose if loose > 1.0 else goals
            values = self._walk.values(lams, eased, max_iter)
            if loose > 1.0:
                values = [_limited(value, goal) for value, goal in zip(values, goals, strict=False)]
            if len(values) or not self._settle:
                return values
            if tried:
                self._loose *= 10.0
                if eased[0] > 1e3 * self.null_value:
                    raise Unusable("sums over the rows have lost all digits: columns are far larger than they vary")
            self._walk.again()
            tried = True

    def _nothing(self, lams: Array, goals: Array) -> list[Value]:
        """Labels that intercepts and unpenalised features explain without a penalised one: W = 0 at every strength."""
        none, features = np.empty((0, self.n_tasks)), np.empty(0, dtype=np.int64)
        gap = gamma(self._gathered.moments.rows + 64.0) * self._label_squares
        intercept = self._gathered.means()[1] if self._walk.frame.fit_intercept else np.zeros(self.n_tasks)
        return [
            Value(float(lam), features, none, intercept, 0.0, gap, 0, 0, 0, 0.0, bool(gap <= goal))
            for lam, goal in zip(lams, goals, strict=True)
        ]


def _ordinary(squares: Array) -> bool:
    least, most = squares.min(initial=1.0), squares.max(initial=1.0)
    if least == 0.0:
        least = squares[squares != 0.0].min(initial=1.0)
    return bool(least > 1.0 / _ORDINARY and most < _ORDINARY)


def _limited(value: Value, goal: float) -> Value:
    """A value that was solved to another goal than this one says what limits it."""
    if not value.converged or value.dual_gap <= goal:
        return value
    return replace(value, converged=False, limit=_LIMIT, unmet=Status.ROUNDING)
