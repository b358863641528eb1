"""``fit_moments`` and ``path_moments``: models of rows that are known by their `TaskMoments` alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..design import one_blas_thread
from ..design.sums import Gathered
from ..fitted.arguments import default_grid, feature_names, given_grid, kernel_threads
from ..fitted.assess import Cells, Part, spread_of_folds
from ..fitted.checkpoint import keeping
from ..fitted.choosing import select
from ..fitted.folds import ShuffledFolds, Weights, make_folds
from ..fitted.path import RegularizationPath
from ..fitted.progress import told_from
from ..fitted.quality import HeldOutQuality
from ..fitted.restore import DataFacts
from ..fitted.scales import SMALL_TYPES
from ..losses import Squared
from ..path.policy import Kind, choose_for_data
from ..path.tall import Unusable
from ..tasks import (
    GatheredFolds,
    TaskData,
    TaskMoments,
    first_matrix,
    gather_folds,
    kind_of,
    read_task_weights,
)
from ..user_warnings import warn
from .base import PathEstimator
from .cross_validation import PathEstimatorCV
from .early_stopping import MeanCurve
from .held_out import Solved
from .null_model import as_null, null_of_sums
from .tall import Tall, facts_of_data, may_be_tall, say_where

_ENTRIES = 1 << 22  # coefficients of so many values at a time when held-out rows are scored
_TOGETHER = 8  # values of all folds, before they decide whether to go on
_UNSURE = 0.01  # of a held-out error: where rounding may have done more, it is said


def _refuse_device(model: Any) -> None:
    if model.device is not None:
        named = f"device={str(model.device)!r}"
        raise ValueError(f"{named}: sums of rows are worked on by the processor. Leave device out.")


@dataclass
class _Compared:
    """Held-out errors, (values, folds), NaN past an early stop; how many values count; how many did not converge; what
    share of the smallest error may be rounding; the values of each fold."""

    scores: np.ndarray
    n_scored: int
    n_open: int
    unsure: float
    points: list[list[Solved]]


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
        _refuse_device(self)
        tall = tall_of(self, moments)
        tall.fit()
        remember_features(self, moments)
        return self

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
        _refuse_device(self)
        tall = tall_of(self, moments)
        grid = default_grid(tall.alpha_max(), n_alphas, eps) if alphas is None else given_grid(alphas)
        return tall.as_path(tall.solve(grid, exact=False, progress=self._progress()), grid)


class ComparesMoments(PathEstimatorCV):
    """A model whose alpha may be chosen by cross-validation on the moments of folds."""

    def _fit_tall(self, X: Any, y: Any, task: Any, sample_weight: Any, groups: Any) -> bool:
        """Tall data are read once, for all folds; False where they are better left where they are."""
        elsewhere = self.device is not None or kind_of(first_matrix(X)).place == "device"
        if elsewhere or not may_be_tall(X) or keeping() or self.scoring is not None:
            return False
        models = self._candidates()
        data = self._read(X, y, task, sample_weight)
        if data.source is None:
            return False
        choices = [choose_for_data(facts_of_data(model, data, 2), folds=True) for model in models]
        if any(choice.kind is not Kind.SUMS_IN_BLOCKS for choice in choices):
            return False
        found = make_folds(
            self.cv,
            y,
            data,
            groups=groups,
            random_state=self.random_state,
            like_scikit_learn=self._folds_of_scikit_learn,
        )
        fold = fold_of_samples(data, found.weights)
        if fold is None:
            return False
        say_where(self, data)
        with one_blas_thread():
            gathered = gather_folds(
                data, fold, len(found.weights), models[0].fit_intercept, kernel_threads(self.n_jobs)
            )
        names = feature_names(X)
        assert data.source is not None
        small = data.source.dtype.type in SMALL_TYPES
        try:
            talls = [
                Tall(model, gathered.whole, data, names, small=small, readings=gathered.readings, choice=choice)
                for model, choice in zip(models, choices, strict=True)
            ]
        except Unusable:
            return False
        if not all(tall.problem.finite for tall in talls):
            data.refuse_not_finite()
        if not all(tall.serves for tall in talls):
            return False
        chosen = self._choose(talls, gathered, data.form, data.tasks, found.words, exact=True)
        if chosen is None:
            return False
        points, n_tried = chosen
        self._set_held_out(data, found, points, groups, n_tried)
        self._set_features(X, data)
        return True

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
        _refuse_device(self)
        if moments.n_folds is None:
            raise ValueError("moments have no folds to choose alpha by: gather them with TaskMoments(n_folds=5).")
        self._check_folds(moments)
        talls = [tall_of(model, moments) for model in self._candidates()]
        gathered = GatheredFolds.of(moments.parts())
        for f, (training, held) in enumerate(gathered.folds):
            if np.any(training.totals <= 0.0):
                name = moments.tasks_[training.totals <= 0.0].tolist()[0]
                raise ValueError(f"fold {f} leaves task {name!r} without an observed row to learn from.")
            if not np.any(held.totals > 0.0):
                raise ValueError(f"fold {f} holds out no observed row: use fewer folds.")
        if self.scoring is not None:
            raise ValueError("The 'scoring' parameter needs rows: moments know squared errors only.")
        chosen = self._choose(talls, gathered, str(moments.form), moments.tasks_, moments.folds_in_words)
        assert chosen is not None
        points, n_tried = chosen
        nulls = [null_of_sums(self._model(), training) for training, _ in gathered.folds]
        parts = [part for _, part in gathered.folds]
        self.cv_quality_ = quality_of_sums(parts, points, nulls, moments, self.cv_folds_, n_tried)
        for name in ("cv_predictions_", "cv_task_scores_"):  # of rows
            self.__dict__.pop(name, None)
        remember_features(self, moments)
        return self

    def _choose(
        self,
        talls: list[Tall],
        gathered: GatheredFolds,
        form: str,
        tasks: np.ndarray,
        words: str,
        exact: bool = False,
    ) -> tuple[list[Solved], int] | None:
        """Compares the models and keeps the best; None where statistics do not prove what is asked (`exact`), else the
        value of each fold that was chosen, and among how many."""
        grids = [self._grid_of(tall) for tall in talls]
        models = [tall.model for tall in talls]
        found = [
            self._compare(self._fold_model(model), grid, gathered.folds, form, tasks)
            for model, grid in zip(models, grids, strict=True)
        ]
        if exact and (any(one.n_open for one in found) or max(one.unsure for one in found) > _UNSURE):
            return None
        scores, n_scored = np.stack([one.scores for one in found]), [one.n_scored for one in found]
        self._warn_of_folds(found, models)
        best, k = select(scores, self.selection_rule)
        model, tall, grid = models[best], talls[best], grids[best][: n_scored[best]]
        progress = model._progress(f"{type(self).__name__}, all rows")
        solution = tall.solve(grid, exact=exact, progress=progress)
        if solution.interrupted:
            raise KeyboardInterrupt
        if len(solution.points) < len(grid):
            return None
        self.path_ = tall.as_path(solution, grid)
        self.alpha_ = float(grid[k])
        self._set_solution(tall.facts, solution.points[k])
        self.choice_ = self.path_.choice
        tall.set_measures(self, solution)
        self.n_scored_ = n_scored[best]
        self.path_scores_ = scores[best][: self.n_scored_]
        self.passes_ = float(gathered.readings)
        self.cv_folds_ = words
        self._set_scores(best, models, grids, scores)
        return [points[k] for points in found[best].points], sum(n_scored)

    def _compare(
        self,
        model: PathEstimator,
        grid: np.ndarray,
        folds: list[tuple[Gathered, Gathered]],
        form: str,
        tasks: np.ndarray,
    ) -> _Compared:
        """Held-out errors of a model along its path; with early stopping a few values of all folds at a time."""
        walks = [Tall(model, training, facts_of(model, training, form, tasks)) for training, _ in folds]
        scores = np.full((len(grid), len(folds)), np.nan)
        open_, unsure = np.zeros(scores.shape, dtype=bool), 0.0
        points: list[list[Solved]] = [[] for _ in folds]
        curve = MeanCurve(len(grid), len(folds)) if self.early_stopping and self._automatic else None
        step = len(grid) if curve is None else _TOGETHER
        for low in range(0, len(grid), step):
            if curve is not None and curve.ended(low):
                break
            values = slice(low, low + step)
            for f, (walk, (_, held)) in enumerate(zip(walks, folds, strict=True)):
                tell = model._progress(f"{type(self).__name__}, fold {f + 1}")
                progress = None
                if tell is not None:
                    progress = partial(told_from, tell, low, len(grid))
                solution = walk.solve(grid[values], exact=False, progress=progress)
                if solution.interrupted:
                    raise KeyboardInterrupt
                open_[values, f] = [not point.converged for point in solution.points]
                points[f] += [Solved(point.features, point.rows, point.intercept) for point in solution.points]
                scores[values, f], doubt = held_out_errors(held, solution.points)
                unsure = max(unsure, doubt)
                if curve is not None:
                    curve.add(f, low, scores[values, f])
        n_scored = len(grid) if curve is None else curve.n_scored
        scores[n_scored:], open_[n_scored:] = np.nan, False
        return _Compared(scores, n_scored, int(np.count_nonzero(open_)), unsure, points)

    def _warn_of_folds(self, found: list[_Compared], models: list[PathEstimator]) -> None:
        n_open, total = sum(one.n_open for one in found), sum(one.n_scored * one.scores.shape[1] for one in found)
        if n_open:
            warn(
                f"{n_open} of {total} solutions in the folds did not reach fold_tol="
                f"{self._fold_model(models[0]).tol:g}: raise max_iter or fold_tol.",
                ConvergenceWarning,
            )
        unsure = max(one.unsure for one in found)
        if unsure > _UNSURE:
            warn(
                f"Held-out errors are so small beside y that sums of products know them to {unsure:.0%} only: fit the "
                "rows themselves where the choice of alpha matters.",
                UserWarning,
            )

    def _check_folds(self, moments: TaskMoments) -> None:
        cv = self.cv.n_splits if isinstance(self.cv, ShuffledFolds) else self.cv
        if cv is not None and cv != moments.n_folds:
            raise ValueError(f"cv is {self.cv!r}, but the moments have {moments.n_folds} folds: leave cv out.")
        if self.random_state is not None and self.random_state != moments.random_state:
            raise ValueError(
                f"random_state is {self.random_state!r}, but the folds of the moments were made with "
                f"{moments.random_state!r}: leave it out, or give it to TaskMoments."
            )

    def _grid_of(self, tall: Tall) -> np.ndarray:
        if self._automatic:
            n_alphas = self.n_alphas if self.alphas is None else int(self.alphas)
            return default_grid(tall.alpha_max(), n_alphas, self.eps)
        return given_grid(self.alphas)


def facts_of(model: Any, gathered: Gathered, form: str, tasks: np.ndarray) -> DataFacts:
    """What a solution must know of its data."""
    per_task, n_features = np.array(gathered.totals), gathered.n_features
    n_bar = float(per_task.sum()) / len(per_task)
    facts = DataFacts(len(per_task), n_features, tasks, n_bar, form, None, per_task, np.ones(len(per_task)))
    weights = read_task_weights(model.task_weights, facts)  # type: ignore[arg-type]
    return DataFacts(len(per_task), n_features, tasks, n_bar, form, None, per_task, weights)


def tall_of(model: Any, moments: TaskMoments) -> Tall:
    """A model on moments; a ValueError where they do not serve it."""
    if not isinstance(moments, TaskMoments):
        raise TypeError(f"moments must be a TaskMoments; got {type(moments).__name__}. `fit` takes rows.")
    if model.fit_intercept != moments.fit_intercept:
        raise ValueError(
            f"fit_intercept is {model.fit_intercept}, but the moments were gathered with "
            f"fit_intercept={moments.fit_intercept}: it must be the same."
        )
    if model.screening != "auto" or getattr(model, "warm_start", False):
        raise ValueError("screening and warm_start are for rows: from moments, models have screening='auto'.")
    whole = moments.whole()
    names = getattr(moments, "feature_names_in_", None)
    found = Tall(model, whole, facts_of(model, whole, str(moments.form), moments.tasks_), names)
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
    remember_features(null, moments)
    return as_null(null, facts_of(null, whole, str(moments.form), moments.tasks_), null_of_sums(null, whole))


def fold_of_samples(data: TaskData, weights: list[Weights]) -> np.ndarray | None:
    """The fold of each sample, the number of folds for those that none holds out; None where weights say more."""
    fold = np.full(len(data.y), len(weights), dtype=np.int64)
    for f, (train, test) in enumerate(weights):
        out = test > 0.0
        if np.any(fold[out] != len(weights)) or not np.array_equal(np.where(out, 0.0, data.weights), train):
            return None
        if not np.array_equal(test[out], data.weights[out]):
            return None
        fold[out] = f
    return fold


def remember_features(model: Any, moments: TaskMoments) -> None:
    model.n_features_in_ = moments.n_features_in_
    if hasattr(moments, "feature_names_in_"):
        model.feature_names_in_ = moments.feature_names_in_
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_


def held_out_errors(held: Gathered, points: list[Any]) -> tuple[np.ndarray, float]:
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
    parts: list[Gathered],
    points: list[Solved],
    nulls: list[Solved],
    moments: TaskMoments,
    folds: str,
    n_tried: int,
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

    def columns(of_fold: np.ndarray) -> list[tuple[str, Part]]:
        own = of_fold[task, fold] / weights
        explained = cells.explained(own, base, base + np.square(means)[task])
        return [("R²", explained), (Squared.label, cells.mean(own))]

    n_covariates = len(nulls[0].features)
    return cells.quality(
        moments.tasks_,
        columns(errors),
        columns(without),
        unit="folds",
        folds=folds,
        n_tried=n_tried,
        null_covariates=n_covariates,
    )
