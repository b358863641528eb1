"""Cross-validation along the path: folds are row weights, all of them share one X.

Where reading X is what costs (a file, a storage of the user's own, very much memory) the folds and the path over all
rows walk in step (`path.lockstep`): each asks for a pass when it needs one, and one reading serves all. With early
stopping they walk in step too, so that all stop at the same value. Otherwise each fold is walked on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..design import SharedReading, one_blas_thread
from ..fitted.checkpoint import keeping, kept
from ..fitted.choosing import fold_tolerance, select
from ..fitted.documented import CHOSEN
from ..fitted.folds import Folds, Weights, make_folds
from ..fitted.measures import measure_of
from ..fitted.parameters import CROSS_VALIDATED, Parameter, check_common
from ..fitted.path import RegularizationPath
from ..fitted.progress import carried
from ..fitted.quality import HeldOutQuality
from ..path.follow import Pace, PathSolution, follow
from ..path.lockstep import Lockstep
from ..path.policy import walks_share_readings
from ..path.problem import Problem
from ..path.solve import Value
from ..plotting import score_curve
from ..tasks import TaskData
from ..tasks.named import takes_named_tasks
from ..user_warnings import warn
from .base import (
    PathEstimator,
    TaskLinearModel,
    default_grid,
    feature_names,
    given_grid,
    kernel_threads,
)
from .certified import CertifiedModel
from .early_stopping import PATIENCE, MeanCurve
from .held_out import Judge, OutOfFold, pack_points, path_scores, unpack_point
from .null_model import NullModel
from .training_walk import FoldSums, TrainingWalk

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With early stopping: values that are scored together, which reads the columns they use once. Values that a fold may be
# ahead of the slowest one, and which may turn out useless: at least those, more where company saves readings.
SCORED_TOGETHER = 4
AHEAD, AHEAD_READING = SCORED_TOGETHER, PATIENCE

# Parameters that change no number of a fold, whose rows are known.
IDLE = ("n_jobs", "verbose", "warm_start", "random_state")


class PathEstimatorCV(CertifiedModel, TaskLinearModel):
    """Model whose ``alpha`` is chosen by cross-validation.

    A subclass mixes in its loss, names the model it repeats in ``_estimator``, and stores the parameters of that
    model (all but ``alpha`` and ``warm_start``) and of the cross-validation in its constructor.
    """

    _estimator: ClassVar[type[PathEstimator]]
    _parameters: ClassVar[dict[str, Parameter]] = CROSS_VALIDATED
    _attributes: ClassVar[str] = CHOSEN
    #: what held-out rows are judged by, in the docstring
    _held_out_words: ClassVar[str]

    #: what `checks.check_estimator` leaves out, and why
    _skip_checks: ClassVar[dict[str, str]] = {
        "row_order": "the fold of a row depends on its place, so that rows in another order have other folds",
    }

    #: whether a shared matrix and 2-D Y have unshuffled folds of rows, as scikit-learn's namesake has
    _folds_of_scikit_learn: ClassVar[bool] = False

    alphas: Any
    n_alphas: int
    eps: float
    cv: Any
    random_state: Any
    scoring: Any = None
    selection_rule: Literal["min", "1se"]
    fold_tol: float | None
    early_stopping: bool
    task_weights: Any
    tol: float
    n_jobs: int | None
    device: Any
    verbose: int

    alpha_: float
    alphas_: np.ndarray
    cv_scores_: np.ndarray
    cv_folds_: str
    cv_predictions_: Any
    cv_quality_: HeldOutQuality
    cv_task_scores_: np.ndarray
    path_scores_: np.ndarray
    n_scored_: int
    passes_: float
    path_: RegularizationPath

    def _stated(self) -> tuple[PathEstimator, float]:
        """The model whose problem the certificate is about, and the strength chosen."""
        model: Any = self.path_._estimator
        return model, self.alpha_

    def _candidates(self) -> list[PathEstimator]:
        """The models compared, each along its own path: one, or one per value of another parameter."""
        return [self._model()]

    def _model(self, **changed: Any) -> PathEstimator:
        own = self.get_params(deep=False)
        shared = {name: own[name] for name in self._estimator().get_params(deep=False) if name in own}
        return self._estimator(**{**shared, **changed})

    def _check_parameters(self) -> None:
        check_common(self)
        for model in self._candidates():
            model._check_parameters()

    @property
    def cv_measure(self) -> str:
        """What ``cv_scores_`` are, in words: the smaller, the better, but for those of ``scoring``."""
        if self.scoring is None:
            return f"held-out {self._fitted_loss.label}"
        name = self.scoring if isinstance(self.scoring, str) else getattr(self.scoring, "__name__", "score")
        return f"held-out {name} (greater is better)"

    @takes_named_tasks
    def fit(
        self,
        X: Any,
        y: Any = None,
        task: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        offset: Any = None,
    ) -> Self:
        """Choose alpha by cross-validation and fit on all rows.

        Parameters
        ----------
        X : matrix of shape (n, d), list of matrices, or dict of task to (X, y)
            Rows of all tasks stacked (with ``task``), one matrix per task (a list), one matrix shared by all
            tasks (with y of shape (n, T)), or pairs by the name of the task (without y and task), whose data frames are
            matched by the names of their columns. float64, float32, int8 and uint8 arrays, scipy sparse matrices, data
            frames, memory maps and torch tensors on any device; never modified.
        y : array of shape (n,) or (n, T), or list of 1-D arrays
            Targets. NaN is a label that is not observed. 1-D without ``task``: one task.
        task : array of shape (n,), optional
            The task of each row: any labels, in any order.
        sample_weight : array or list in the form of y, or float, optional
            Weights >= 0 of the rows, in fitting and in scoring; 0 leaves a row out. For a shared matrix (n,) or
            (n, T).
        groups : array of shape (n,), or list of such, optional
            Any labels, one per row of X (a list of matrices: or a list): rows of one group, relatives say, are held out
            together, in all tasks. Splitters that take groups get these, or else the tasks.
        offset : float, or array or list in the form of y, optional
            What is known of each prediction beforehand: it is x . w_t + b_t + offset. Needed at `predict`, too.

        Returns
        -------
        self
        """
        self._check_parameters()
        if offset is None and self._fit_tall(X, y, task, sample_weight, groups):
            return self
        models = self._candidates()
        data = self._read_with(X, y, task, sample_weight, offset)
        found = make_folds(
            self.cv,
            y,
            data,
            groups=groups,
            random_state=self.random_state,
            like_scikit_learn=self._folds_of_scikit_learn,
        )
        folds = found.weights
        jobs = effective_n_jobs(self.n_jobs)
        threads = max(1, kernel_threads() // jobs)
        early = self.early_stopping and self._automatic
        # Folds that walk in step are finished together. A `checkpoint` keeps those that are finished: then one by one.
        shared = None
        if walk_in_step(data, len(folds) + 1) and (early or not keeping()):
            shared = SharedReading(data.make_storage(), kernel_threads())
        given = data if shared is None else replace(data, X=shared.seat())
        problems = [model._problem(given, threads) for model in models]
        grids = [self._grid(model, problem, data) for model, problem in zip(models, problems, strict=True)]
        work = _Folds(self, data, folds, threads, jobs, shared, sketch(given, threads) if keeping() else None)
        fold_models = [self._fold_model(model) for model in models]
        work.gather(fold_models, problems, max(len(grid) for grid in grids))
        solution = None
        if shared is None and not early:
            results, n_scored = work.one_by_one(fold_models, grids), [len(grid) for grid in grids]
        else:
            whole = (models[0], given, problems[0]) if len(models) == 1 else None
            steps = [work.in_step(m, fold_models[m], grids[m], early, whole) for m in range(len(models))]
            results, n_scored = [result for step in steps for result in step.folds], [step.n_scored for step in steps]
            solution = steps[0].whole
        scores = np.array([result.scores for result in results])
        scores = scores.reshape(len(models), len(folds), -1).transpose(0, 2, 1)  # models x values x folds
        n_open = sum(int(np.count_nonzero(result.open)) for result in results)
        if n_open:
            warn(
                f"{n_open} of {sum(n_scored) * len(folds)} solutions in the folds did not reach "
                f"fold_tol={fold_models[0].tol:g} within max_iter={models[0].max_iter}: raise max_iter or fold_tol.",
                ConvergenceWarning,
            )

        best, k = select(scores, self.selection_rule)
        kept_points = results[best * len(folds) : (best + 1) * len(folds)]
        points = [unpack_point(result.points, k) for result in kept_points]
        self._set_held_out(given, found, points, groups, sum(n_scored))
        scores = scores if self.scoring is None else -scores
        model, problem = models[best], problems[best]
        grid = grids[best][: n_scored[best]]
        if solution is None:
            progress = model._progress(f"{type(self).__name__}, all rows")
            solution = model._solve(given, problem, grid, progress=progress)
            if solution.interrupted:
                raise KeyboardInterrupt
        names = feature_names(X)
        model._warn_scales(data, problem, names)
        self.path_ = model._as_path(data, (problem.design.scale, problem.units.x), solution, grid, names)
        self.alpha_ = float(grid[k])
        self._set_features(X, data)
        self._set_solution(data, solution.points[k])
        self.choice_ = self.path_.choice
        self.null_objective_ = self.path_.null_objective
        self._set_scale(problem.design.scale, problem.units.x)
        self.n_scored_ = n_scored[best]
        self.path_scores_ = scores[best][: self.n_scored_]
        own = sum(problem.design.passes for problem in problems) + sum(result.passes for result in results)
        self.passes_ = own + float(keeping()) if shared is None else shared.spent
        self.cv_folds_ = found.words
        self._set_scores(best, models, grids, scores)
        return self

    def _set_held_out(
        self, data: TaskData, folds: Folds, points: Sequence[Any], groups: Any, n_tried: int
    ) -> None:
        """Predictions out of fold, their quality, and the score of each task, at the point of each fold that was
        chosen among so many."""
        loss = self._loss_of(data)
        judge, answers = Judge(loss, self.scoring), OutOfFold(data, loss, measure_of(self))
        task_scores, null = np.empty((data.n_tasks, len(points))), NullModel(self._model(), data)
        for f, ((train, test), point) in enumerate(zip(folds.weights, points, strict=True)):
            both = [point, null.fit(train)]
            found = path_scores(data, test, both)
            task_scores[:, f] = judge.by_task(data, test, both, found)[:, 0]
            answers.add(found)
        self.cv_predictions_, self.cv_task_scores_ = answers.result(), task_scores
        self.cv_quality_ = answers.quality(groups, folds, n_tried, len(null.covariates))

    def _fit_tall(self, X: Any, y: Any, task: Any, sample_weight: Any, groups: Any) -> bool:
        """Whether the model was fitted from sums over rows, which tall data are read for only once."""
        return False

    def _fold_model(self, model: PathEstimator) -> PathEstimator:
        """The model as folds solve it."""
        other = copy(model)
        other.tol = fold_tolerance(self.tol, self.fold_tol)
        return other

    @property
    def _automatic(self) -> bool:
        """Whether the values of alpha are not the user's."""
        return self.alphas is None or isinstance(self.alphas, Integral)

    def _set_scores(
        self, best: int, models: list[PathEstimator], grids: list[np.ndarray], scores: np.ndarray
    ) -> None:
        self.alphas_ = grids[best]
        self.cv_scores_ = scores[best]

    def _grid(self, model: PathEstimator, problem: Any, data: TaskData) -> np.ndarray:
        if self._automatic:
            n_alphas = self.n_alphas if self.alphas is None else int(self.alphas)
            return default_grid(model._alpha_max(problem, data), n_alphas, self.eps)
        return given_grid(self.alphas)

    def plot_scores(self, ax: Any = None) -> Axes:
        """Draw the held-out loss by alpha: mean over the folds, one standard error, and the chosen value.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib axes
        """
        check_is_fitted(self, "path_scores_")
        return score_curve(
            self.path_.alphas, self.path_scores_, self.alpha_, self.cv_measure, ax=ax, owner=type(self)
        )


def sketch(data: TaskData, threads: int) -> np.ndarray:
    """X as one number per column, its product with a fixed random vector: other data give other numbers."""
    vector = np.random.default_rng(2015).standard_normal(data.n_rows)
    return data.make_storage().products(vector, np.array([0, data.n_rows]), False, None, False, threads)


def walk_in_step(data: TaskData, n_walks: int) -> bool:
    """Whether one reading of X is to serve all folds."""
    stored = data.n_rows * data.n_features * data.make_storage().dtype.itemsize
    return walks_share_readings(bool(data.make_storage().dear), n_walks, data.n_features, data.n_tasks, stored)


@dataclass
class FoldResult:
    """Held-out losses along a path (NaN past an early stop), where the solver did not converge, readings of X, and what
    predictions need of the values (`pack_points`)."""

    scores: np.ndarray
    open: np.ndarray
    passes: float
    points: dict[str, np.ndarray]


@dataclass
class StepResult:
    """What folds that walked in step came to, how many values count, and the path over all rows if it was there."""

    folds: list[FoldResult]
    n_scored: int
    whole: PathSolution | None


class _InStep(Pace):
    """The pace of early stopping: not far ahead of the slowest fold, and no further than their mean curve says."""

    most = SCORED_TOGETHER

    def __init__(
        self,
        steps: Lockstep,
        curve: MeanCurve,
        ahead: int,
        score: Callable[[list[Value]], np.ndarray] | None = None,
        fold: int = -1,
    ) -> None:
        self._steps, self._curve, self._ahead, self._score, self._fold = steps, curve, ahead, score, fold
        self._first, self._unscored = 0, list[Value]()

    def goes_on(self, k: int) -> bool:
        self._steps.wait_until(lambda: self._curve.near(k, self._ahead))
        return not self._curve.ended(k)

    def reached(self, first: int, values: Sequence[Value]) -> None:
        self._unscored += values
        if len(self._unscored) >= SCORED_TOGETHER:
            self.ended()

    def ended(self) -> None:
        if self._score is not None and self._unscored:
            self._curve.add(self._fold, self._first, self._score(self._unscored))
        self._first, self._unscored = self._first + len(self._unscored), []


def walk_along(
    walk: TrainingWalk, alphas: np.ndarray, tell: Callable[[int, int, Any], None] | None, pace: Pace
) -> list[Value]:
    """The values of a path, in the units of the data, as far as the pace leads."""
    found = follow(PathSolution(np.nan), lambda k: walk.values(alphas[k:][: pace.most]), len(alphas), tell, pace)
    found.raise_interrupt()
    return list(found.points)


class _Folds:
    """All folds of a cross-validation, to be walked one by one or in step."""

    def __init__(
        self,
        owner: PathEstimatorCV,
        data: TaskData,
        folds: Sequence[Weights],
        threads: int,
        jobs: int,
        shared: SharedReading | None,
        known_by: np.ndarray | None,
    ) -> None:
        self._name, self._n_jobs, self._scoring = type(owner).__name__, owner.n_jobs, owner.scoring
        self._data, self._folds, self._threads, self._jobs = data, folds, threads, jobs
        self._shared, self._known_by = shared, known_by
        self._sums: FoldSums | None = None
        # Nobody has said how many: folds on sums, each on one thread, then run side by side.
        self._side_by_side = owner.n_jobs is None and not keeping()

    def gather(self, models: Sequence[PathEstimator], problems: Sequence[Problem], n_values: int) -> None:
        """Sums over the rows of all folds, where walks on these are less work than on the rows."""
        trainings = [self._data.with_weights(train) for train, _ in self._folds]
        n_jobs = min(self._jobs * self._threads, len(self._folds)) if self._side_by_side else self._jobs
        with one_blas_thread():
            self._sums = FoldSums(models, self._data, problems, trainings, n_values, n_jobs)

    def one_by_one(self, models: Sequence[PathEstimator], grids: Sequence[np.ndarray]) -> list[FoldResult]:
        """Each fold of each model on its own, in threads."""
        folds = [
            (m, f, model, grid)
            for m, (model, grid) in enumerate(zip(models, grids, strict=True))
            for f in range(len(self._folds))
        ]
        if self._side_by_side and self._sums is not None and self._sums.serve:
            slots = min(self._jobs * self._threads, len(self._folds))
            side_by_side: list[FoldResult] = Lockstep(slots).run([partial(self._solve, *fold) for fold in folds])
            return side_by_side
        # require="sharedmem" means threads: the kernels let them run side by side, and X is in memory once
        parallel = Parallel(n_jobs=self._n_jobs, require="sharedmem")
        solve = carried(self._solve)
        found: list[FoldResult] = parallel(delayed(solve)(*fold) for fold in folds)
        return found

    def in_step(
        self,
        m: int,
        model: PathEstimator,
        alphas: np.ndarray,
        early: bool,
        whole: tuple[PathEstimator, TaskData, Problem] | None,
    ) -> StepResult:
        """All folds of a model at the same time, and with them the path over all rows where `whole` is given."""
        shared, n_folds = self._shared, len(self._folds)
        steps = Lockstep(self._jobs, None if shared is None else shared.serve)
        curve = MeanCurve(len(alphas), n_folds) if early else None
        ahead = AHEAD if shared is None else AHEAD_READING

        def fold(f: int) -> Callable[[], FoldResult]:
            return lambda: self._solve(m, f, model, alphas, steps, curve, ahead)

        walks: list[TrainingWalk] = []

        def all_rows() -> list[Value]:
            assert whole is not None
            final, data, problem = whole
            walk = TrainingWalk(final, data, len(alphas), self._threads, problem)
            walks.append(walk)
            pace = Pace() if curve is None else _InStep(steps, curve, ahead)
            return walk_along(walk, alphas, final._progress(f"{self._name}, all rows"), pace)

        works: list[Callable[[], Any]] = [fold(f) for f in range(n_folds)]
        if shared is not None:
            shared.meet = steps.ask
        try:
            with one_blas_thread():
                results = steps.run(works if whole is None else [*works, all_rows])
        finally:
            if shared is not None:
                shared.meet = None
        n_scored = len(alphas) if curve is None else curve.n_scored
        for result in results[:n_folds]:
            result.scores[n_scored:] = np.nan
            result.open[n_scored:] = False
        if whole is None:
            return StepResult(results, n_scored, None)
        problem = whole[2]
        null = float(np.ldexp(problem.loss.null.value, problem.units.f))
        points, passes = results[-1][:n_scored], problem.design.passes
        return StepResult(results[:-1], n_scored, PathSolution(null, points, passes, choice=walks[0].choice))

    def _solve(
        self,
        m: int,
        f: int,
        model: PathEstimator,
        alphas: np.ndarray,
        steps: Lockstep | None = None,
        curve: MeanCurve | None = None,
        ahead: int = 0,
    ) -> FoldResult:
        """A fold, or what the `checkpoint` block around the fit remembers of it."""
        data, fold = self._data, self._folds[f]
        if self._shared is not None:
            data = replace(data, X=self._shared.seat())
        spent: list[float] = []

        def compute() -> dict[str, np.ndarray]:
            found = self._walk(m, f, model, data, alphas, steps, curve, ahead)
            spent.append(found.passes)
            return {"scores": found.scores, "open": found.open, **found.points}

        params = {key: value for key, value in model.get_params(deep=False).items() if key not in IDLE}
        of_data = [self._known_by, data.y, data.offsets, data.form]
        if data.known is not None:
            of_data.append(data.known)
        # where they stop together, a fold depends on all
        rows: Any = fold if curve is None else ("early", PATIENCE, self._folds)
        if curve is None and self._sums is not None and self._sums.serve:  # sums of parts have the roundings of all
            rows = ("sums", f, self._folds)
        facts = [type(model).__name__, params, *of_data, alphas, rows, self._threads, self._scoring]
        found = kept(f"fold-{m}-{f}", facts, compute)
        if curve is not None and not spent:
            curve.add_remembered(f, found["scores"])
        return FoldResult(found["scores"], found["open"], sum(spent), found)

    def _walk(
        self,
        m: int,
        f: int,
        model: PathEstimator,
        data: TaskData,
        alphas: np.ndarray,
        steps: Lockstep | None,
        curve: MeanCurve | None,
        ahead: int,
    ) -> FoldResult:
        train, test = self._folds[f]
        training = data.with_weights(train)
        judge = Judge(model._loss_of(data), self._scoring)

        def score(points: Sequence[Value]) -> np.ndarray:
            return judge.losses(data, test, points)

        pace = Pace()
        if curve is not None:
            assert steps is not None
            pace = _InStep(steps, curve, ahead, score, f)
        with one_blas_thread():
            one = self._side_by_side and steps is None
            on_sums = None if self._sums is None else self._sums.walk(m, f, 1 if one else self._threads)
            walk = TrainingWalk(model, training, len(alphas), self._threads, gram=on_sums)
            points = walk_along(walk, alphas, model._progress(f"{self._name}, fold {f + 1}"), pace)
        scores, open_ = np.full(len(alphas), np.nan), np.zeros(len(alphas), dtype=bool)
        scores[: len(points)] = score(points) if curve is None else curve.scores[: len(points), f]
        open_[: len(points)] = [not point.converged for point in points]
        selected = np.unique(np.concatenate([point.features for point in points]))
        passes = walk.passes + len(selected) / max(data.n_features, 1)
        return FoldResult(scores, open_, passes, pack_points(points))
