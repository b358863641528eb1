"""``fit_moments`` and ``path_moments``: models of rows that are known by their `TaskMoments` alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from ..design import one_blas_thread
from ..design.sums import Gathered
from ..fitted.arguments import given_grid, kernel_threads
from ..fitted.assess import Cells, Column, spread_of_folds
from ..fitted.checkpoint import keeping
from ..fitted.conformal import fold_of_samples
from ..fitted.folds import Folds, ShuffledFolds
from ..fitted.path import RegularizationPath
from ..fitted.quality import HeldOutQuality
from ..fitted.restore import DataFacts
from ..losses import Squared
from ..messages import ParameterError
from ..path.policy import Kind, choose_for_data
from ..tasks import GatheredFolds, TaskData, TaskMoments, gather_rows, read_task_weights
from ..tasks.many_tasks import warn_many
from .base import PathEstimator
from .cross_validation import PathEstimatorCV
from .fold_paths import Fold, FoldResult, FoldSource
from .held_out import Solved
from .null_model import as_null, null_of_sums
from .path_solver import SumSolver
from .sums import facts_of_data, report_location, solver_of_rows, sum_solver

_ENTRIES = 1 << 22  # coefficients of so many values at a time when held-out rows are scored


class FitsMoments(PathEstimator):
    """A model that sums of products determine."""

    def fit_moments(self, moments: TaskMoments) -> Self:
        """Fit the model to rows of which only the sums of products are left.

        Parameters
        ----------
        moments : TaskMoments

        Returns
        -------
        self
            As `fit` on the rows would leave it. Where the sums have too few digits for ``tol``, a
            `sklearn.exceptions.ConvergenceWarning` says what ``dual_gap_`` they prove.
        """
        self._check_alpha()
        self._check_parameters()
        solver = moments_solver(self, moments)
        solution = self._solve_one(solver, self.alpha)
        self._set_feature_names(moments.n_features_in_, names_of(moments))
        return self._set_fit(solver, solution)

    def path_moments(
        self, moments: TaskMoments, *, alphas: Any = None, n_alphas: int = 100, eps: float = 1e-2
    ) -> RegularizationPath:
        """Solve for a whole sequence of penalty strengths, given sums of products; the model itself is not changed.

        Parameters
        ----------
        moments : TaskMoments
        alphas, n_alphas, eps
            As in `path`.

        Returns
        -------
        RegularizationPath
        """
        self._check_parameters()
        chosen = None if alphas is None else given_grid(alphas)
        solver = moments_solver(self, moments)
        return self._follow(solver, chosen, n_alphas, eps, names_of(moments))


class ComparesMoments(PathEstimatorCV):
    """A model whose alpha may be chosen by cross-validation on the moments of folds."""

    def _sum_folds(
        self, models: list[PathEstimator], data: TaskData, folds: Folds, names: np.ndarray | None
    ) -> SumFolds | None:
        source = data.source
        if source is None or source.location == "device" or data.known is not None:
            return None
        if self.device is not None or keeping() or self.scoring is not None:
            return None
        choices = [choose_for_data(facts_of_data(model, data, 2), folds=True) for model in models]
        if any(choice.kind is not Kind.SUMS_IN_BLOCKS for choice in choices):
            return None
        fold = fold_of_samples(data, folds.weights)
        if fold is None:
            return None
        report_location(self, data)
        n_folds, threads = len(folds.weights), kernel_threads(self.n_jobs)
        with one_blas_thread():
            gathered = gather_rows(data, models[0].fit_intercept, threads, fold, n_folds)
        solvers = []
        for model, choice in zip(models, choices, strict=True):
            found = solver_of_rows(model, gathered.whole, data, gathered.readings, choice)
            if found is None:
                return None
            solvers.append(found)
        return SumFolds(solvers, gathered, data.form, folds.words, names, exact=True)

    def fit_moments(self, moments: TaskMoments) -> Self:
        """Choose alpha by cross-validation and fit, given the sums of products of each fold.

        Parameters
        ----------
        moments : TaskMoments
            With ``n_folds``: the folds are theirs, ``cv`` and ``random_state`` of the model are None or the same.

        Returns
        -------
        self
            As `fit` on the rows with the same folds would leave it.
        """
        self._check_parameters()
        if moments.n_folds is None:
            raise ValueError("moments have no folds to choose alpha by: gather them with TaskMoments(n_folds=5).")
        self._check_folds(moments)
        solvers = [moments_solver(model, moments) for model in self._candidates()]
        gathered = GatheredFolds.of(moments.parts())
        for f, (training, held) in enumerate(gathered.folds):
            if np.any(training.totals <= 0.0):
                name = moments.tasks_[training.totals <= 0.0].tolist()[0]
                raise ValueError(f"fold {f} leaves task {name!r} without an observed row to learn from.")
            if not np.any(held.totals > 0.0):
                raise ValueError(f"fold {f} holds out no observed row: use fewer folds.")
        if self.scoring is not None:
            raise ParameterError("scoring", "needs rows: moments know squared errors only")
        if self.keep_folds:
            raise ParameterError("keep_folds", "needs rows: moments do not know how far a single one is off")
        names = names_of(moments)
        chosen = self._choose(SumFolds(solvers, gathered, str(moments.form), moments.folds_in_words, names))
        assert chosen is not None
        points, n_tried = chosen
        nulls = [null_of_sums(self._model(), training) for training, _ in gathered.folds]
        parts = [part for _, part in gathered.folds]
        self.cv_quality_ = quality_of_sums(parts, points, nulls, moments, self.cv_folds_, n_tried)
        for name in ("cv_fold_", "cv_predictions_", "cv_task_scores_", "_kept"):  # of rows
            self.__dict__.pop(name, None)
        self._set_feature_names(moments.n_features_in_, names)
        return self

    def _check_folds(self, moments: TaskMoments) -> None:
        cv = self.cv.n_splits if isinstance(self.cv, ShuffledFolds) else self.cv
        if cv is not None and cv != moments.n_folds:
            raise ValueError(f"cv is {self.cv!r}, but the moments have {moments.n_folds} folds: leave cv out.")
        if self.random_state is not None and self.random_state != moments.random_state:
            raise ValueError(
                f"random_state is {self.random_state!r}, but the folds of the moments were made with "
                f"{moments.random_state!r}: leave it out, or give it to TaskMoments."
            )


class SumFolds(FoldSource):
    """Sums over the rows of each fold; `exact` where the rows are at hand, too."""

    def __init__(
        self,
        solvers: list[SumSolver],
        gathered: GatheredFolds,
        form: str,
        words: str,
        names: np.ndarray | None,
        exact: bool = False,
    ) -> None:
        self._solvers, self._gathered, self._form = solvers, gathered, form
        self.models, self.facts = [solver.model for solver in solvers], solvers[0].facts
        self.words, self.names, self.exact = words, names, exact
        self.n_folds = len(gathered.folds)

    def whole(self, m: int, n_values: int) -> SumSolver:
        return self._solvers[m]

    def prepare(self, models: list[PathEstimator], grids: list[np.ndarray]) -> None:
        self._fold_models = models

    def fold(self, m: int, f: int, alone: bool) -> Fold:
        model, (training, held) = self._fold_models[m], self._gathered.folds[f]

        def score(points: Sequence[Any]) -> np.ndarray:
            losses, unsure = held_out_errors(held, points)
            self.unsure = max(self.unsure, unsure)
            return losses

        return Fold(sum_solver(model, training, facts_of(model, training, self._form, self.facts.tasks)), score)

    def readings(self, results: Sequence[FoldResult]) -> float:
        return float(self._gathered.readings)


def facts_of(model: Any, gathered: Gathered, form: str, tasks: np.ndarray) -> DataFacts:
    """What a solution must know of its data."""
    per_task, n_features = np.array(gathered.totals), gathered.n_features
    n_bar = float(per_task.sum()) / len(per_task)
    facts = DataFacts(len(per_task), n_features, tasks, n_bar, form, None, per_task, np.ones(len(per_task)))
    return replace(facts, task_weights=read_task_weights(model.task_weights, facts))  # type: ignore[arg-type]


def moments_solver(model: Any, moments: TaskMoments) -> SumSolver:
    """A model on moments; a ValueError where they do not serve it."""
    if not isinstance(moments, TaskMoments):
        raise TypeError(f"moments must be a TaskMoments; got {type(moments).__name__}. `fit` takes rows.")
    if model.device is not None:
        named = f"device={str(model.device)!r}"
        raise ValueError(f"{named}: sums of rows are worked on by the processor. Leave device out.")
    if model.fit_intercept != moments.fit_intercept:
        raise ValueError(
            f"fit_intercept is {model.fit_intercept}, but the moments were gathered with "
            f"fit_intercept={moments.fit_intercept}: it must be the same."
        )
    if model.screening != "auto" or getattr(model, "warm_start", False):
        raise ValueError("screening and warm_start are for rows: from moments, models have screening='auto'.")
    whole = moments.whole()
    if moments.form == "stacked":
        warn_many(len(moments.tasks_), int(moments.rows_per_task_.sum()))
    found = sum_solver(model, whole, facts_of(model, whole, str(moments.form), moments.tasks_))
    if not found.problem.ordinary:
        raise ValueError(
            "X, y: entries are so large or so small that their squares leave the range of double precision. Multiply "
            "columns or y by a constant before they are added."
        )
    if found.problem.dependent is not None:
        name = moments.tasks_.tolist()[found.problem.dependent]
        raise ValueError(
            f"feature_weights: features of weight 0 are combinations of each other in task {name!r}: leave one out, or "
            "give it a weight."
        )
    return found


def null_of_moments(model: PathEstimator, moments: TaskMoments) -> PathEstimator:
    """The null model of rows that are known by their sums, as an estimator that predicts."""
    null, whole = clone(model), moments.whole()
    null._set_feature_names(moments.n_features_in_, names_of(moments))
    return as_null(null, facts_of(null, whole, str(moments.form), moments.tasks_), null_of_sums(null, whole))


def names_of(moments: TaskMoments) -> np.ndarray | None:
    return getattr(moments, "feature_names_in_", None)


def held_out_errors(held: Gathered, points: Sequence[Any]) -> tuple[np.ndarray, float]:
    """Mean over tasks of the mean squared error on held-out rows, for each point of a path; and what share of the
    smallest may be rounding."""
    kept = np.flatnonzero(held.totals > 0.0)
    totals = held.totals[kept]
    errors, doubts = np.empty(len(points)), np.empty(len(points))
    step = max(1, _ENTRIES // max(1, held.n_tasks * held.n_features))
    for low in range(0, len(points), step):
        part = points[low : low + step]
        coefs = np.zeros((len(part), held.n_tasks, held.n_features))
        for k, point in enumerate(part):
            coefs[k][:, point.features] = point.rows.T
        left, unsure = held.residual_squares(coefs, np.stack([point.intercept for point in part]))
        errors[low : low + step] = np.mean(left[:, kept] / totals, axis=1)
        doubts[low : low + step] = np.mean(unsure[:, kept] / totals, axis=1)
    k = int(np.argmin(errors))
    return errors, float(doubts[k] / errors[k]) if errors[k] > 0.0 else 0.0


def quality_of_sums(
    parts: list[Gathered], points: list[Solved], nulls: list[Solved], moments: TaskMoments, folds: str, n_tried: int
) -> HeldOutQuality:
    """R² and squared error on held-out rows of which only the sums are left: their spread is that between folds."""
    n_tasks = len(moments.tasks_)
    totals = np.stack([part.totals for part in parts], axis=1)  # tasks x folds
    sums = np.stack([part.totals * part.means()[1] for part in parts], axis=1)
    means = sums.sum(axis=1) / np.maximum(totals.sum(axis=1), 1e-300)
    errors, without, spread = np.zeros((3, n_tasks, len(parts)))
    for f, (part, point, null) in enumerate(zip(parts, points, nulls, strict=True)):
        coefs = np.zeros((3, n_tasks, part.n_features))  # the model, the null model, and the mean of each task
        coefs[0][:, point.features], coefs[1][:, null.features] = point.rows.T, null.rows.T
        intercepts = np.stack([point.intercept, null.intercept, means])
        errors[:, f], without[:, f], spread[:, f] = part.residual_squares(coefs, intercepts)[0]
    task, fold = np.nonzero(totals > 0.0)
    weights = totals[task, fold]
    rows = moments.rows_per_fold()
    held = rows[:, : len(parts)].sum(axis=0)
    factor = spread_of_folds(float(held.sum()), held, rows.sum() - held)
    cells = Cells(task, weights, fold, n_tasks, factor, rows[task, fold])
    base = spread[task, fold] / weights

    def columns(of_fold: np.ndarray) -> list[Column]:
        own = of_fold[task, fold] / weights
        explained = cells.explained(own, base, base + np.square(means)[task])
        return [("R²", explained), (Squared.label, cells.mean(own))]

    words = {"unit": "folds", "folds": folds, "n_tried": n_tried, "null_covariates": len(nulls[0].features)}
    return cells.quality(moments.tasks_, columns(errors), columns(without), **words)
