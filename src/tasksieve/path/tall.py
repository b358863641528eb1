"""A problem of which only the sufficient statistics are left: the Gram way without a design.

Where rows outnumber features by far they are read once, in blocks (`design.sums`), and are gone when the path begins.
So there is no engine to fall back to: a value that the statistics cannot prove to `tol` is certified as far as they
go, and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..design import one_blas_thread
from ..design.sums import Gathered
from ..losses import gamma
from ..penalties import SparseGroup
from .engine import Value
from .gram import Frame, GramWalk
from .solve import PathSolution

Array = np.ndarray[Any, Any]

_ORDINARY = 2.0**100  # sizes up to this, and down to its inverse, can be squared twice
_NOISE = 64.0  # roundings: a spread that is no more than these is none
_NO_RESIDUALS = 1e9  # rows, for the walk to count by: there are no residuals that it could leave anything to
_LIMIT = "its statistics, sums over the rows, have no more digits"


class Unusable(ValueError):
    """The statistics do not determine the problem."""


class TallProblem:
    """``1/2 sum_i s_i (y_i - x_i w - b)^2 + lam Omega(W) + ridge/2 ||W||_F^2``, known by moments alone, in sum units.

    Parameters
    ----------
    gathered : Gathered
        Not changed.
    penalty : SparseGroup
        Of all features, at unit strength (`SparseGroup.on`).
    fit_intercept, standardize : bool
        Without intercepts the moments must be about 0.
    n_threads : int

    Attributes
    ----------
    scale : array, (n_features, n_tasks), optional
        What columns are divided by.
    lambda_max : float
        The smallest strength whose solution is zero.
    """

    def __init__(
        self, gathered: Gathered, penalty: SparseGroup, *, fit_intercept: bool, standardize: bool, n_threads: int
    ) -> None:
        self._gathered = gathered
        free, kept = np.flatnonzero(~penalty.penalised), np.flatnonzero(penalty.penalised)
        self.n_tasks, count = gathered.n_tasks, len(kept)
        matrices = len(gathered.shifts)
        scale = self._deviations(fit_intercept) if standardize else None
        self.scale = None if scale is None else np.broadcast_to(scale, (self.n_tasks, gathered.n_features)).T
        moments = gathered.moments.split(kept, free, fit_intercept)
        of_task = np.zeros(self.n_tasks, dtype=np.int64) if matrices == 1 else np.arange(self.n_tasks)
        constant = np.zeros((int(fit_intercept), self.n_tasks))
        nuisance_shifts = np.concatenate([constant, gathered.shifts[of_task][:, free].T])
        frame = Frame(
            kept,
            free,
            fit_intercept,
            np.ascontiguousarray(gathered.shifts[:, kept]),
            nuisance_shifts,
            gathered.label_shifts,
            gathered.totals,
            None if scale is None else np.ascontiguousarray(scale[:, kept]),
        )
        sizes = np.sqrt(np.concatenate([part.ravel() for part in gathered.squares()[:2]]))
        live = sizes[sizes > 0.0]
        #: whether numbers are of a size that their fourth powers have a representation
        self.ordinary = bool(np.all(np.isfinite(sizes))) and bool(np.all((live < _ORDINARY) & (live > 1.0 / _ORDINARY)))
        self.finite = bool(np.all(np.isfinite(sizes)))
        if not self.ordinary:
            return
        if not count:
            raise Unusable("every feature has weight 0 in feature_weights: nothing is penalised")
        self._walk = GramWalk(moments, penalty, frame, _NO_RESIDUALS, n_threads, patience=None)
        self.null_value = self._walk.null_value
        if self.null_value == 0.0 and len(free):
            raise Unusable("features of weight 0 in feature_weights explain the labels exactly")
        #: the first task whose unpenalised features cannot be told apart, or None
        self.dependent = self._walk.dependent
        #: whether what is to be explained is more than rounding
        self.usable = self._walk.usable or self.null_value == 0.0
        self._label_squares = float(np.sum(gathered.moments.labels))
        own = penalty.restrict(kept)
        self.lambda_max = own.polar(own.row_gauges(np.ascontiguousarray(moments.cross.T)))

    def _deviations(self, fit_intercept: bool) -> Array:
        """Of columns about their means (about 0 without intercepts), 1 where there is none: (matrices, n_features)."""
        columns, _, by_means, _ = self._gathered.squares()
        spread = columns - by_means if fit_intercept else columns
        spread = np.where(spread > gamma(_NOISE) * columns, spread, 0.0)
        totals = self._gathered.moments.nuisance[:, :1, 0]
        scale = np.sqrt(np.divide(spread, totals, out=np.zeros_like(spread), where=totals > 0.0))
        scale[scale == 0.0] = 1.0
        return scale

    def solve(
        self,
        lams: Array,
        *,
        tol: float,
        max_iter: int,
        progress: Callable[[int, int, Value], None] | None = None,
        settle: bool = True,
    ) -> PathSolution | None:
        """The path; where the statistics have too few digits for `tol` as near as they come, or without `settle`
        None."""
        solution = PathSolution(self.null_value)
        goals = np.full(len(lams), tol * self.null_value)

        def found(value: Value) -> None:
            solution.points.append(value)
            if progress is not None:
                progress(len(solution.points) - 1, len(lams), value)

        try:
            with one_blas_thread():
                if self.null_value == 0.0:
                    self._nothing(lams, goals, found)
                elif not self._along(lams, goals, max_iter, found, settle):
                    return None
        except KeyboardInterrupt:
            solution.interrupted = True
        return solution

    def _along(
        self, lams: Array, goals: Array, max_iter: int, found: Callable[[Value], None], settle: bool
    ) -> bool:
        done, loose, tried = 0, 1.0, False
        while done < len(lams):
            eased = np.maximum(goals, 1e-16 * self.null_value) * loose if loose > 1.0 else goals
            values = self._walk.values(lams[done:], eased[done:], max_iter)
            for value in values:
                if value.converged and not value.dual_gap <= goals[done]:
                    value = replace(value, converged=False, limit=_LIMIT)
                found(value)
                done += 1
            if not values:
                if tried and not settle:
                    return False
                if tried:
                    loose *= 10.0
                    if eased[done] > 1e3 * self.null_value:
                        raise Unusable("sums over the rows have lost all digits: columns are far larger than they vary")
                self._walk.again()
            tried = not values
        return True

    def _nothing(self, lams: Array, goals: Array, found: Callable[[Value], None]) -> None:
        """Labels that intercepts and unpenalised features explain without a penalised one: W = 0 at every strength."""
        none = np.empty((0, self.n_tasks))
        gap = gamma(self._gathered.moments.rows + 64.0) * self._label_squares
        for lam, goal in zip(lams, goals, strict=True):
            intercept = self._gathered.means()[1] if self._walk.frame.fit_intercept else np.zeros(self.n_tasks)
            features = np.empty(0, dtype=np.int64)
            found(Value(float(lam), features, none, intercept, 0.0, gap, 0, 0, 0, 0.0, bool(gap <= goal)))
