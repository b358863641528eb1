"""Walks along the paths of folds: by moments that were summed once for all of them, or each on its own rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..path.gram import GramWalk
from ..path.gram_folds import fold_moments
from ..path.policy import Choice
from ..path.problem import Problem
from ..path.solve import Value
from ..path.walks import PathWalk, asks_for_something
from ..penalties.sparse_group import is_sparse_group
from ..tasks import TaskData
from .base import PathEstimator
from .units import Units


class TrainingWalk:
    """The values of a model's path on some rows, in the units of the data.

    - `model`: With the accuracy asked for.
    - `data`: Its rows are those with a positive weight.
    - `n_values`: That will be asked for.
    - `problem`: The model's on these rows, where it is known.
    - `gram`: A walk on the moments of these rows, and its units.
    """

    def __init__(
        self,
        model: PathEstimator,
        data: TaskData,
        n_values: int,
        n_threads: int,
        problem: Problem | None = None,
        gram: tuple[GramWalk, Units] | None = None,
    ) -> None:
        self._model, self._data, self._n_values, self._n_threads = model, data, n_values, n_threads
        self._problem, self._gram, self._tried = problem, gram, gram
        self._walk: PathWalk | None = None
        self._last: Value | None = None
        if gram is None:
            self._begin()

    def _begin(self) -> PathWalk:
        """The problem on these rows, from where the moments have led."""
        model = self._model
        if self._problem is None:
            self._problem = model._problem(self._data, self._n_threads)
        units = self._problem.units
        options: dict[str, Any] = model._engine_options()
        after = None
        if self._last is not None:
            lam = units.inward(np.array([self._last.lam]))[0]
            after = replace(self._last, lam=float(lam), rows=units.rows(self._last.rows))
        by_gram = self._tried is None
        self._walk = PathWalk(
            self._problem, self._n_values, max_iter=model.max_iter, after=after, by_gram=by_gram, **options
        )
        return self._walk

    @property
    def choice(self) -> Choice | None:
        """Which solver, and why; None as long as it is on given moments."""
        return None if self._walk is None else self._walk.choice

    @property
    def passes(self) -> float:
        """Readings of the data."""
        return 0.0 if self._problem is None else self._problem.design.passes

    def values(self, alphas: np.ndarray) -> list[Value]:
        """The first of the values at the next strengths, at least one."""
        model = self._model
        if self._gram is not None:
            walk, units = self._gram
            lams = model._inward(self._data, units, alphas)
            found = walk.values(lams, np.full(len(lams), model.tol * walk.null_value), model.max_iter)
            if found:
                found = [units.value(value) for value in found]
                self._last = found[-1]
                return found
            self._gram = None
        ahead = self._walk or self._begin()
        assert self._problem is not None
        units = self._problem.units
        lams = model._inward(self._data, units, alphas)
        goals = np.full(len(lams), model.tol * self._problem.loss.null.value)
        return [units.value(value) for value in ahead.values(lams, goals)]


class FoldSums:
    """Sums over the rows of all folds, made in one reading, and walks on the training rows of each.

    - `models`: All on the same rows.
    - `problems`: Those of the models on all rows.
    - `trainings`: The training rows of each fold.
    - `n_values`: Along a path.
    - `n_jobs`: Folds that are walked at the same time.
    - `serve`: Whether walks on moments are less work than on the rows.
    """

    def __init__(
        self,
        models: Sequence[PathEstimator],
        data: TaskData,
        problems: Sequence[Problem],
        trainings: Sequence[TaskData],
        n_values: int,
        n_jobs: int,
    ) -> None:
        model, self._problems = models[0], problems
        asked = any(asks_for_something(other._engine_options()) for other in models)
        weights = [] if asked else [model._row_weights(training) for training in trainings]
        self._moments = fold_moments(problems[0], weights, n_values, n_jobs) if weights else None
        self._ratios = [model._unit(training) / model._unit(data) for training in trainings]
        self.serve = self._moments is not None

    def walk(self, m: int, f: int, n_threads: int) -> tuple[GramWalk, Units] | None:
        """Of model m along the path of fold f, and its units; None where somebody else has to."""
        problem = self._problems[m]
        if self._moments is None or not is_sparse_group(problem.penalty):
            return None
        walk = self._moments.walk(f, problem.penalty, self._ratios[f], n_threads)
        return None if walk is None else (walk, problem.units)
