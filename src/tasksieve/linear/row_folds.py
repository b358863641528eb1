"""Folds of rows: weights of the rows of one X, or all folds at once: by sums over their rows, or on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from ..design import one_blas_thread, shared_reading
from ..fitted.arguments import kernel_threads
from ..fitted.checkpoint import keeping, kept
from ..fitted.folds import Folds
from ..path.device_folds import DeviceFolds, device_folds
from ..path.gram_folds import FoldMoments, fold_moments
from ..path.policy import walks_share_readings
from ..path.problem import Problem
from ..path.values import Value
from ..path.walks import sets_options
from ..penalties.sparse_group import is_sparse_group
from ..tasks import TaskData
from .base import PathEstimator
from .early_stopping import PATIENCE
from .fold_paths import Fold, FoldResult, FoldSource
from .path_solver import RowSolver, SumSolver, SumsThenRows

# Parameters that change no number of a fold, whose rows are known.
_IDLE = ("n_jobs", "verbose", "warm_start", "random_state")


def sketch(data: TaskData, threads: int) -> np.ndarray:
    """X as one number per column, its product with a fixed random vector: other data give other numbers."""
    vector = np.random.default_rng(2015).standard_normal(data.n_rows)
    return data.make_storage().products(vector, np.array([0, data.n_rows]), False, None, False, threads)


def facts_of(model: Any, data: TaskData, sketched: Any) -> list[Any]:
    """What every fit of a model to parts of the data depends on, where finished ones are kept."""
    params = {key: value for key, value in model.get_params(deep=False).items() if key not in _IDLE}
    known = [] if data.known is None else [data.known]
    return [type(model).__name__, params, sketched, data.y, data.offsets, data.form, *known]


class SolvedAhead:
    """The path over all rows, which a device solves with the folds: certified here while that is at work, as far as
    it has got; the rest when it is asked for."""

    def __init__(self, solver: RowSolver, alphas: np.ndarray, problem: Problem) -> None:
        self._solver, self._alphas, self._problem = solver, alphas, problem
        self._values: list[Value] = []
        self._given = 0

    def certify(self) -> None:
        done = len(self._values)
        if done < min(len(self._problem.solved_there), len(self._alphas)):
            self._values += self._solver.values(self._alphas[done:])

    def values(self, alphas: np.ndarray) -> Sequence[Value]:
        ready = self._values[self._given :][: len(alphas)]
        self._given += len(ready)
        return ready if ready else self._solver.values(alphas)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solver, name)


class RowFolds(FoldSource):
    """Folds of rows, scored as a `Judge` does it; `early` where they stop together."""

    whole_in_step = True

    def __init__(
        self,
        models: list[PathEstimator],
        data: TaskData,
        folds: Folds,
        names: np.ndarray | None,
        early: bool,
        scoring: Any,
        n_jobs: int | None,
    ) -> None:
        self.models, self.facts, self.names, self.words = models, data, names, folds.words
        self._folds, self._scoring, self.n_jobs = folds.weights, scoring, n_jobs
        self.n_folds, self.slots = len(folds.weights), effective_n_jobs(n_jobs)
        self._threads = max(1, kernel_threads() // self.slots)
        # Folds that walk in step are finished together. A `checkpoint` keeps those that are finished: then one by one.
        storage = data.make_storage()
        stored = data.n_rows * data.n_features * storage.dtype.itemsize
        sizes = self.n_folds + 1, data.n_features, data.n_tasks, stored
        if walks_share_readings(bool(storage.costly_reads), *sizes) and (early or not keeping()):
            self.shared = shared_reading(storage, kernel_threads())
        #: the data, as all rows are read
        self.data = data if self.shared is None else replace(data, X=self.shared.reader())
        self._problems = [model._problem(self.data, self._threads) for model in models]
        self._known_by = sketch(self.data, self._threads) if keeping() else None
        self._ahead: SolvedAhead | None = None

    def whole(self, m: int, n_values: int) -> Any:
        if self._ahead is not None:
            return self._ahead
        return RowSolver(self.models[m], self.data, self._problems[m], n_values, note=True)

    def prepare(self, models: list[PathEstimator], grids: list[np.ndarray]) -> None:
        """Sums over the rows of all folds, where these are less work than the rows; or readings of X that serve all
        folds, where it lies on a device."""
        n_values = max(len(grid) for grid in grids)
        self._fold_models, self._n_values = models, n_values
        self._together: FoldMoments | DeviceFolds | None = None
        if any(sets_options(model._engine_options()) for model in models):
            return
        # Without a number of jobs: folds on sums, each on one thread, run side by side.
        slots = min(self.slots * self._threads, self.n_folds) if self.n_jobs is None and not keeping() else 0
        trainings = [self.facts.with_weights(train) for train, _ in self._folds]
        weights = [models[0]._row_weights(training) for training in trainings]
        with one_blas_thread():
            least = float(self.whole(0, n_values).strengths(grids[0]).min())
            self._together = fold_moments(self._problems[0], weights, n_values, least, slots or self.slots)
        if self._together is not None:
            self.side_by_side = slots
        elif len(models) == 1:
            ratios = [self._ratio(models[0], training) for training in trainings]
            folds = device_folds(self._problems[0], weights, ratios, self.models[0].tol, n_values)
            if folds is not None:
                ahead = SolvedAhead(self.whole(0, n_values), grids[0], self._problems[0])
                self._together, self._ahead, folds.meanwhile = folds, ahead, ahead.certify
                self.whole_in_step = False  # it is with them as it is
                self.solved_with_first = True

    def fold(self, m: int, f: int, alone: bool) -> Fold:
        data, model, (train, test) = self.facts, self._fold_models[m], self._folds[f]
        if self.shared is not None:
            data = replace(data, X=self.shared.reader())
        training = data.with_weights(train)
        judge = model._judge(data, self._scoring, self._folds)

        def on_rows(after: Value | None = None, by_sums: bool = True) -> RowSolver:
            problem = model._problem(training, self._threads)
            return RowSolver(model, training, problem, self._n_values, after=after, by_sums=by_sums)

        sums = self.with_others(m, f, training, 1 if alone and self.side_by_side else self._threads)
        solver = on_rows() if sums is None else SumsThenRows(sums, partial(on_rows, by_sums=False))
        return Fold(solver, lambda points: judge.losses(data, train, test, points))

    def with_others(self, m: int, f: int, training: TaskData, n_threads: int) -> SumSolver | None:
        """The path of model m on the training rows of fold f, solved with the others; None where that is no use."""
        model, problem = self._fold_models[m], self._problems[m]
        # made for the first model; another one may have a graph of tasks, which sums and readings do not serve
        if self._together is None or not is_sparse_group(problem.penalty) or problem.penalty.coupling is not None:
            return None
        walk = self._together.walk(f, problem.penalty, self._ratio(model, training), n_threads)
        if walk is None:
            return None
        return SumSolver(model, training, walk, problem.units, choice=self._together.choice, readings=0)

    def _ratio(self, model: PathEstimator, training: TaskData) -> float:
        """The unit of the objective on some rows, of that of all rows."""
        return float(model._unit(training) / model._unit(self.facts))

    def keep(
        self, m: int, f: int, alphas: np.ndarray, early: bool, compute: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        data, model = self.facts, self._fold_models[m]
        # where they stop together, a fold depends on all
        rows: Any = ("early", PATIENCE, self._folds) if early else self._folds[f]
        if not early and self._together is not None:  # its roundings depend on all
            rows = ("sums", f, self._folds)
        facts = [*facts_of(model, data, self._known_by), alphas, rows, self._threads, self._scoring]
        return kept(f"fold-{m}-{f}", facts, compute)

    def readings(self, results: Sequence[FoldResult]) -> float:
        if self.shared is not None and self.data.make_storage().shard_class is None:
            return self.shared.spent
        own = sum(problem.design.passes for problem in self._problems) + sum(result.passes for result in results)
        return own + float(keeping()) + (0.0 if self._together is None else self._together.passes)
