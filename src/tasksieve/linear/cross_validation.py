"""Cross-validation along the path: alpha is chosen by held-out losses of folds.

Folds are rows (`row_folds`) or sums over rows (`from_moments`); `fold_paths` follows the paths of both.
"""

from __future__ import annotations

from copy import copy
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..docstrings import described_by
from ..fitted.arguments import default_grid, feature_names, given_grid, read_several
from ..fitted.assess import units_of
from ..fitted.choosing import CrossValidated, fold_tolerance, select
from ..fitted.documented import CHOSEN, DATA
from ..fitted.folds import FoldRules, Folds, ShuffledFolds, make_folds
from ..fitted.measures import kind_of_targets, measure_of
from ..fitted.parameters import check_common
from ..fitted.path import RegularizationPath
from ..fitted.progress import tells_callbacks
from ..fitted.survival_quality import SurvivalOutOfFold
from ..losses import Loss
from ..parameters import CROSS_VALIDATED, Parameter
from ..plotting import AXES, DRAWN_ON, score_curve
from ..tasks import TaskData
from ..tasks.named import takes_named_tasks
from ..user_warnings import warn
from .base import PathEstimator
from .certified import CertifiedModel
from .conformal import ConformalPredictions
from .fold_paths import FoldPaths, FoldSource
from .held_out import Solved, in_form_of_y, out_of_fold, unpack_point
from .null_model import NullModel
from .path_solver import PathSolver, solve_along
from .row_folds import RowFolds
from .transfer import Transferring

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_UNSURE = 0.01  # of a held-out error: a warning where rounding may exceed it


class PathEstimatorCV(CrossValidated, CertifiedModel, Transferring, ConformalPredictions):
    """Model whose ``alpha`` is chosen by cross-validation.

    A subclass mixes in its loss, names the model it repeats in ``_estimator``, and stores the parameters of that
    model (all but ``alpha`` and ``warm_start``) and of the cross-validation in its constructor.
    """

    _parameters: ClassVar[dict[str, Parameter]] = CROSS_VALIDATED
    _attributes: ClassVar[str] = CHOSEN
    #: what held-out rows are judged by, in the docstring
    _held_out_words: ClassVar[str]

    #: a parameter that may be a list, of which each value has its own path
    _compared: ClassVar[str | None] = None

    #: labels of the example in the docstring, and a score that it reaches
    _example: ClassVar[tuple[str, float]] = ("", 0.9)

    #: whether one matrix without tasks has unshuffled folds of rows, as scikit-learn's namesake has
    _folds_of_scikit_learn: ClassVar[bool] = False

    alphas: Any
    n_alphas: int
    eps: float
    early_stopping: bool
    task_weights: Any
    device: Any

    path_: RegularizationPath

    def _stated(self) -> tuple[PathEstimator, float]:
        """The model whose problem the certificate is about, and the strength chosen."""
        model: Any = self.path_._estimator
        return model, self.alpha_

    def _candidates(self) -> list[PathEstimator]:
        """The models compared, each along its own path: one, or one per value of another parameter."""
        name = self._compared
        if name is None:
            return [self._model()]
        return [self._model(**{name: value}) for value in read_several(getattr(self, name), name)]

    def _check_parameters(self) -> None:
        check_common(self)
        if getattr(self, "keep_folds", False):
            self._check_kept()
        for model in self._candidates():
            model._check_parameters()

    @property
    def _loss_label(self) -> str:
        return self._fitted_loss.label

    @tells_callbacks
    @takes_named_tasks
    @described_by(DATA, returns="self")
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        task: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        offset: Any = None,
    ) -> Self:
        """Choose alpha by cross-validation and fit on all rows."""
        self._check_parameters()
        models = self._candidates()
        data = self._read_with(X, y, task, sample_weight, offset)
        rules = FoldRules(self.random_state, like_scikit_learn=self._folds_of_scikit_learn)
        found = make_folds(self.cv, y, data, groups, rules)
        self.__dict__.pop("_kept", None)
        kept = getattr(self, "keep_folds", False)
        if kept:
            self._fold_of_samples(data, found)  # before the work, which would be in vain
        names = feature_names(X)
        given = data
        data, chosen = self._choose_on(models, data, found, names)
        self._set_held_out(data, found, *chosen, groups)
        self._set_features(X, data)
        if kept:
            points = self._nested(given, y, groups, found, names) if kept == "nested" else chosen[0]
            self._keep_folds(data, found, points, self._loss_of(data))
        return self

    def _choose_on(
        self, models: list[PathEstimator], data: TaskData, folds: Folds, names: np.ndarray | None
    ) -> tuple[TaskData, tuple[list[Solved], int]]:
        """`_choose` from sums over the rows, or else from the rows; and the data, as all rows were read."""
        source: FoldSource | None = self._sum_folds(models, data, folds, names)
        chosen = None if source is None else self._choose(source)
        if chosen is None:
            source = RowFolds(models, data, folds, names, self._early, self.scoring, self.n_jobs)
            data, chosen = source.data, self._choose(source)
            assert chosen is not None
        return data, chosen

    def _nested(self, data: TaskData, y: Any, groups: Any, folds: Folds, names: np.ndarray | None) -> list[Solved]:
        """The model of each fold's training rows, alpha chosen by a cross-validation of these alone."""
        points, cv = [], ShuffledFolds(len(folds.weights))
        for train, _ in folds.weights:
            inner, training = clone(self), data.with_weights(train)
            inside = make_folds(cv, y, training, groups, FoldRules(self.random_state))
            inner._choose_on(inner._candidates(), training, inside, names)
            point = inner.path_._points[int(np.flatnonzero(inner.path_.alphas == inner.alpha_)[0])]
            points.append(Solved(point.features, point.rows, point.intercept, getattr(point, "thresholds", None)))
        return points

    def _sum_folds(
        self, models: list[PathEstimator], data: TaskData, folds: Folds, names: np.ndarray | None
    ) -> FoldSource | None:
        """Sums over the rows of each fold, which take one pass over the data; None where the rows are better."""
        return None

    def _choose(self, source: FoldSource) -> tuple[list[Solved], int] | None:
        """Compares the models and keeps the best: the value of each fold that was chosen, and among how many; None
        where the source does not reach the accuracy, and another one is needed."""
        models, n_folds = source.models, source.n_folds
        grids = [self._grid(source.whole(m, 1)) for m in range(len(models))]
        fold_models = [copy(model) for model in models]
        for model in fold_models:
            model.tol = fold_tolerance(self.tol, self.fold_tol)
        found = FoldPaths(type(self).__name__, source, fold_models, grids).solve(self._early)
        n_open = sum(int(np.count_nonzero(result.open)) for result in found.folds)
        if source.exact and (n_open or source.unsure > _UNSURE):
            return None
        self._warn_open_folds(n_open, sum(found.n_scored) * n_folds, models[0].max_iter)
        if source.unsure > _UNSURE:
            warn(
                f"Held-out errors are so small beside y that sums of products know them to {source.unsure:.0%} only: "
                "fit the rows themselves where the choice of alpha matters.",
                UserWarning,
            )
        scores = np.array([result.scores for result in found.folds])
        scores = scores.reshape(len(models), n_folds, -1).transpose(0, 2, 1)  # models x values x folds
        best, k = select(scores, self.selection_rule)
        model, n_scored = models[best], found.n_scored[best]
        grid, solution = grids[best][:n_scored], found.whole
        solver = source.whole(best, len(grid))
        if solution is None:
            solution = solve_along(solver, grid, model._progress(f"{type(self).__name__}, all rows"))
            if solution.interrupted:
                raise KeyboardInterrupt
            if len(solution.points) < len(grid):
                return None
        self.path_ = model._as_path(source.facts, solver, solution, grid, source.names)
        self.alpha_ = float(grid[k])
        self._set_solution(source.facts, solution.points[k])
        self.choice_ = self.path_.choice
        self.null_objective_ = self.path_.null_objective
        self._set_scale(*solver.scale)
        self.n_scored_ = n_scored
        self.passes_ = source.readings(found.folds)
        self.cv_folds_ = source.words
        scores = scores if self.scoring is None else -scores
        self.path_scores_ = scores[best][:n_scored]
        self._set_scores(best, models, grids, scores)
        chosen = found.folds[best * n_folds : (best + 1) * n_folds]
        return [unpack_point(result.points, k) for result in chosen], sum(found.n_scored)

    def _set_held_out(self, data: TaskData, folds: Folds, points: list[Solved], n_tried: int, groups: Any) -> None:
        """Predictions out of fold, their quality, and the score of each task, at the point of each fold that was
        chosen among so many."""
        loss = self._loss_of(data)
        judge = self._model()._judge(data, self.scoring, folds.weights)
        answers: Any = self._out_of_fold(data, loss)
        task_scores, null = np.empty((data.n_tasks, len(points))), NullModel(self._model(), data)
        for f, ((train, test), point) in enumerate(zip(folds.weights, points, strict=True)):
            both = [point, null.fit(train)]
            chosen, scores = found = judge.scores(data, train, test, both)
            task_scores[:, f] = judge.by_task(data, train, test, both, found)[:, 0]
            if hasattr(answers, "add_fold"):
                answers.add_fold({t: (data.offsets[t] + chosen[t], z) for t, z in scores.items()}, train, test)
                continue
            for t, z in scores.items():
                answers.add(data.offsets[t] + chosen[t], z[:, 0], z[:, 1], f)
        fold = np.full(len(data.weights), np.nan)  # from 1; NaN for rows that are never held out
        for f, (_, test) in enumerate(folds.weights, start=1):
            fold[test > 0] = f
        self.cv_fold_ = data.unflatten(fold)
        self.cv_predictions_, self.cv_task_scores_ = in_form_of_y(data, answers.means()), task_scores
        facts: dict[str, Any] = {
            "groups": groups,
            "units": units_of(data, groups),
            "weights": data.weights if data.class_factors is None else data.weights / data.class_factors,
            "loss": loss.label,
            "rooted": loss.rooted,
            "null_covariates": len(null.covariates),
            "n_tried": n_tried,
        }
        self.cv_quality_ = answers.quality(folds, **facts)
        self.__dict__.pop("cv_quality_by_task_", None)
        patterns = data.patterns
        # patterns with classes or losses of their own are no parts of a whole
        alike = not isinstance(data.classes, list) and kind_of_targets(self) != "mixed"
        if patterns is not None and alike and len(patterns.families()[0]) < len(patterns):
            self.cv_quality_by_task_ = answers.quality(folds, **facts, families=patterns.families())

    def _out_of_fold(self, data: TaskData, loss: Loss) -> Any:
        """What gathers predictions out of fold."""
        return out_of_fold(data, loss, measure_of(self)) if loss.by_row else SurvivalOutOfFold(data, loss)

    @property
    def _automatic(self) -> bool:
        """Whether the values of alpha are not the user's."""
        return self.alphas is None or isinstance(self.alphas, Integral)

    @property
    def _early(self) -> bool:
        return self.early_stopping and self._automatic

    def _set_scores(
        self, best: int, models: list[PathEstimator], grids: list[np.ndarray], scores: np.ndarray
    ) -> None:
        self.alphas_, self.cv_scores_ = grids[best], scores[best]
        name = self._compared
        if name is not None:
            setattr(self, f"{name}_", float(getattr(models[best], name)))
            values = np.array([float(getattr(model, name)) for model in models])
            self.cv_compared_ = self._best_of_each({name: values}, {"alpha": grids}, scores)
            if not isinstance(getattr(self, name), Real):
                self.alphas_, self.cv_scores_ = np.array(grids), scores

    def _grid(self, solver: PathSolver) -> np.ndarray:
        """The alphas of a model, given what follows its path over all rows."""
        if self._automatic:
            n_alphas = self.n_alphas if self.alphas is None else int(self.alphas)
            return default_grid(solver.alpha_max(), n_alphas, self.eps)
        return given_grid(self.alphas)

    @described_by(AXES, returns=DRAWN_ON)
    def plot_scores(self, ax: Any = None) -> Axes:
        """Draw the held-out loss by alpha: mean over the folds, one standard error, and the chosen value.
        """
        check_is_fitted(self, "path_scores_")
        return score_curve(self, ax)
