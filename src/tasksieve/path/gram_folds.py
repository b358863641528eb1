"""Cross-validation from moments: every row is summed once, and the training rows of a fold are a sum of parts.

Sums of the other folds, never a difference from all rows: of a column that is large in the held-out rows and small in
the others a difference would leave nothing but rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..design.moments import Moments, panel_diagonal, shifted_columns
from ..losses import TargetLoss, gamma
from ..penalties import SparseGroup
from .gram import GramWalk, frame_of
from .policy import Choice, Kind, choose_for_problem, memory_allows
from .problem import Problem
from .walks import problem_facts

Array = np.ndarray[Any, Any]


class FoldMoments:
    """Moments of the training rows of each fold, given the samples that each holds out; none is held out twice."""

    choice = Choice(Kind.SUMS, "rows of all folds were summed at once")
    passes = 0.0  # beside those of the design

    def __init__(self, problem: Problem, held_out: Sequence[Array]) -> None:
        design, loss = problem.design, problem.loss
        assert isinstance(loss, TargetLoss)
        self._design = design
        columns = shifted_columns(design, np.flatnonzero(problem.penalty.penalised))
        self._frame = frame_of(problem, columns)
        matrices = len(columns.offsets) - 1
        self._rows = len(columns.x) / matrices
        labels = loss.weighted_labels
        one = matrices < design.n_tasks or design.n_tasks == 1
        parts: list[Moments] = []
        for out in (*held_out, ~np.logical_or.reduce(held_out)):
            rows = np.flatnonzero(out[: len(columns.x)])
            part = Moments.zeros(matrices, design.n_tasks, len(self._frame.features), design.n_nuisance)
            if len(rows):
                x = np.asfortranarray(columns.x[rows])
                y = labels.reshape(design.n_tasks, -1).T[rows] if one else labels[rows]
                z = np.ascontiguousarray(design.samples.weighted_nuisance[:, rows])
                part.add_rows(x, y, z, np.searchsorted(rows, columns.offsets), design.n_threads)
            parts.append(part)
        self._parts, self._n_folds = parts, len(held_out)

    def walk(self, fold: int, penalty: SparseGroup, unit_ratio: float, n_threads: int) -> GramWalk | None:
        """Along the path of a fold, whose objective is in units of `unit_ratio` times that of all rows; None where its
        statistics are no good."""
        design, frame = self._design, self._frame
        moments = self._parts[fold].empty()
        for f, part in enumerate(self._parts):
            if f != fold:
                moments.add(part)
        totals = moments.nuisance[:, 0, 0] if design.fit_intercept else np.ones(len(moments.gram))
        totals = np.broadcast_to(totals, design.n_tasks) if len(totals) == 1 else totals
        scale = self._scale(moments, totals) if design.standardize else None
        if scale is not None and not np.all(np.isfinite(scale)):
            return None
        rows = self._rows * (self._n_folds - 1) / self._n_folds
        penalty = penalty.with_fixed_ridge(unit_ratio)
        walk = GramWalk(moments, penalty, replace(frame, totals=np.array(totals), scale=scale), rows, n_threads)
        return walk if walk.usable else None

    def _scale(self, moments: Moments, totals: Array) -> Array:
        """Standard deviations of the training rows, 1 of columns that are zero there; NaN where rounding hides them."""
        count, matrices = len(self._frame.features), len(moments.gram)
        squares = panel_diagonal(moments.gram, count)
        weights = totals[:matrices, None]
        spread = squares
        if self._design.fit_intercept:
            sums = np.square(moments.beside[:, 0])
            spread = squares - np.divide(sums, weights, out=np.zeros_like(squares), where=weights > 0)
        hidden = spread <= 32.0 * gamma(moments.rows + 16) * squares
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(hidden, np.nan, np.sqrt(np.maximum(spread, 0.0) / weights))
        return np.where((squares == 0.0) | (weights <= 0.0), 1.0, scale)


def fold_moments(
    problem: Problem, trainings: Sequence[Array], n_values: int, least: float, n_jobs: int
) -> FoldMoments | None:
    """Moments of folds, given the row weights of their training rows; None where the Gram solver does not apply."""
    design = problem.design
    facts = problem_facts(problem, n_values, least, by_device=False)
    if choose_for_problem(facts).kind is not Kind.SUMS or not memory_allows(facts, len(trainings) + 1, n_jobs):
        return None
    if design.standardize and not design.fit_intercept:
        return None  # standard deviations are about zero there, and totals are not among the moments
    weights = np.ones(design.n_samples) if design.weights is None else design.weights
    held_out = []
    for training in trainings:
        out = (training == 0.0) & (weights > 0.0)
        if not np.array_equal(np.where(out, 0.0, weights), training):
            return None  # weights of the other rows change as well
        if design.uniform and design.n_tasks > 1:
            by_task = out.reshape(design.n_tasks, -1)
            if not np.array_equal(by_task, np.broadcast_to(by_task[0], by_task.shape)):
                return None  # tasks hold out different rows: one matrix would not serve them all
        held_out.append(out)
    if np.any(np.sum(held_out, axis=0) > 1):
        return None
    return FoldMoments(problem, held_out)
