"""Cross-validation along the path: folds are row weights, all of them share one X."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..fitted.checkpoint import keeping, kept
from ..fitted.folds import Weights, make_folds
from ..fitted.path import RegularizationPath
from ..fitted.progress import carried
from ..plotting import score_curve
from ..tasks import TaskData, is_task_list
from .base import PathEstimator, TaskLinearModel, default_grid, feature_names, given_grid, kernel_threads

# Entries of X packed at a time to predict held-out rows.
PACKED_ENTRIES = 1 << 25


# Parameters that change no number of a fold, whose rows are known.
IDLE = ("n_jobs", "verbose", "warm_start", "random_state")


class PathEstimatorCV(TaskLinearModel):
    """Model whose ``alpha`` is chosen by cross-validation.

    A subclass mixes in its loss, names the model it repeats in ``_estimator``, and stores the parameters of that
    model (all but ``alpha`` and ``warm_start``) and of the cross-validation in its constructor.
    """

    _estimator: ClassVar[type[PathEstimator]]

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
    selection_rule: Literal["min", "1se"]
    task_weights: Any
    n_jobs: int | None
    verbose: int

    alpha_: float
    alphas_: np.ndarray
    cv_scores_: np.ndarray
    cv_folds_: str
    path_scores_: np.ndarray
    path_: RegularizationPath

    def _candidates(self) -> list[PathEstimator]:
        """The models compared, each along its own path: one, or one per value of another parameter."""
        return [self._model()]

    def _model(self, **changed: Any) -> PathEstimator:
        own = self.get_params(deep=False)
        shared = {name: own[name] for name in self._estimator().get_params(deep=False) if name in own}
        return self._estimator(**{**shared, **changed})

    def _check_parameters(self) -> None:
        if self.selection_rule not in ("min", "1se"):
            raise ValueError(
                f"The 'selection_rule' parameter must be 'min' or '1se'; got {self.selection_rule!r}."
            )
        for model in self._candidates():
            model._check_parameters()

    @property
    def cv_measure(self) -> str:
        """What ``cv_scores_`` are, in words: the smaller, the better."""
        return f"held-out {self._member.label}"

    def fit(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Choose alpha by cross-validation and fit on all rows.

        Parameters
        ----------
        X : matrix of shape (n, d), or list of matrices
            Rows of all tasks stacked (with ``task``), one matrix per task (a list), or one matrix shared by all
            tasks (with y of shape (n, T)). float64, float32, int8 and uint8 arrays, scipy sparse matrices, data
            frames and memory maps; never modified.
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

        Returns
        -------
        self
        """
        self._check_parameters()
        models = self._candidates()
        data = self._read(X, y, task, sample_weight)
        found = make_folds(
            self.cv,
            y,
            data,
            groups=groups,
            random_state=self.random_state,
            joint=self._member.joint,
            like_scikit_learn=self._folds_of_scikit_learn,
        )
        folds = found.weights
        threads = max(1, kernel_threads() // effective_n_jobs(self.n_jobs))
        problems = [model._problem(data, threads) for model in models]
        grids = [self._grid(model, problem, data) for model, problem in zip(models, problems, strict=True)]

        # require="sharedmem" means threads: the kernels let them run side by side, and X is in memory once
        parallel = Parallel(n_jobs=self.n_jobs, require="sharedmem")
        solve_fold = carried(kept_scores)
        known_by = sketch(data, threads) if keeping() else None
        results = parallel(
            delayed(solve_fold)(
                f"fold-{m}-{f}", known_by, model, data, grid, fold, threads, f"{type(self).__name__}, fold {f + 1}"
            )
            for m, (model, grid) in enumerate(zip(models, grids, strict=True))
            for f, fold in enumerate(folds)
        )
        scores = np.array([score for score, _ in results])
        scores = scores.reshape(len(models), len(folds), -1).transpose(0, 2, 1)  # models x values x folds
        n_open = sum(count for _, count in results)
        if n_open:
            warnings.warn(
                f"{n_open} of {scores.size} solutions in the folds did not reach tol={models[0].tol:g} within "
                f"max_iter={models[0].max_iter}: raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )

        best, k = select(scores, self.selection_rule)
        model, problem, grid = models[best], problems[best], grids[best]
        progress = model._progress(f"{type(self).__name__}, all rows")
        solution = model._solve(data, problem, grid, progress=progress)
        if solution.interrupted:
            raise KeyboardInterrupt
        names = feature_names(X[0] if is_task_list(X) else X)
        model._warn_scales(data, problem, names)
        self.path_ = model._as_path(data, problem, solution, grid, names)
        self.alpha_ = float(grid[k])
        self._set_features(X, data)
        self._set_solution(data, solution.points[k])
        self.null_objective_ = self.path_.null_objective
        self._set_scale(problem.design.scale, problem.units.x)
        self.path_scores_ = scores[best]
        self.cv_folds_ = found.words
        self._set_scores(best, models, grids, scores)
        return self

    def _set_scores(
        self, best: int, models: list[PathEstimator], grids: list[np.ndarray], scores: np.ndarray
    ) -> None:
        self.alphas_ = grids[best]
        self.cv_scores_ = scores[best]

    def _grid(self, model: PathEstimator, problem: Any, data: TaskData) -> np.ndarray:
        if self.alphas is None or isinstance(self.alphas, Integral):
            n_alphas = self.n_alphas if self.alphas is None else int(self.alphas)
            return default_grid(model._alpha_max(problem, data), n_alphas, self.eps)
        return given_grid(self.alphas)

    def plot_scores(self, ax: Any = None) -> Any:
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
    return data.storage.products(vector, np.array([0, data.n_rows]), False, None, False, threads)


def kept_scores(
    name: str,
    known_by: np.ndarray | None,
    model: PathEstimator,
    data: TaskData,
    alphas: np.ndarray,
    fold: Weights,
    n_threads: int,
    label: str,
) -> tuple[np.ndarray, int]:
    """`held_out_scores`, or what the `checkpoint` block around the fit remembers of them."""

    def compute() -> dict[str, np.ndarray]:
        scores, n_open = held_out_scores(model, data, alphas, fold, n_threads, label)
        return {"scores": scores, "open": np.array(n_open)}

    params = {key: value for key, value in model.get_params(deep=False).items() if key not in IDLE}
    facts = [type(model).__name__, params, known_by, data.y, data.offsets, data.form, alphas, fold, n_threads]
    found = kept(name, facts, compute)
    return found["scores"], int(found["open"])


def held_out_scores(
    model: PathEstimator, data: TaskData, alphas: np.ndarray, fold: Weights, n_threads: int, label: str
) -> tuple[np.ndarray, int]:
    """Path on the training rows of a fold: the mean over tasks of the held-out loss at each value (K,).

    Also the number of values at which the solver did not converge.
    """
    train, test = fold
    training = data.with_weights(train)
    solution = model._solve(
        training, model._problem(training, n_threads), alphas, progress=model._progress(label)
    )
    if solution.interrupted:
        raise KeyboardInterrupt
    loss = model._member
    if loss.joint:
        scores = path_log_losses(data, test, solution.points)
    else:
        scores = path_losses(data, test, solution.points, loss.deviance, root=loss.rooted)
    return scores, sum(not point.converged for point in solution.points)


def path_scores(
    data: TaskData, weights: np.ndarray, points: Sequence[Any]
) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
    """Rows of each task with a positive weight, and for tasks that have any x . w_t + b_t at each point (rows x K).

    The columns of all features selected anywhere on the path are read once, a bounded number at a time.
    """
    chosen = [np.flatnonzero(weights[part] > 0) for part in data.per_task()]
    kept = [t for t, rows in enumerate(chosen) if len(rows)]
    support = np.unique(np.concatenate([point.features for point in points]))
    scores = {t: np.tile([float(point.intercept[t]) for point in points], (len(chosen[t]), 1)) for t in kept}
    step = max(1, PACKED_ENTRIES // max(1, data.n_rows))
    for start in range(0, len(support), step):
        features = support[start : start + step]
        columns = data.storage.take(features)
        places = [np.searchsorted(features, point.features) for point in points]
        inside = [
            (place < len(features)) & (features[np.minimum(place, len(features) - 1)] == point.features)
            for place, point in zip(places, points, strict=True)
        ]
        for t in kept:
            first = 0 if data.shared else data.offsets[t]
            coef = np.zeros((len(features), len(points)))
            for k, point in enumerate(points):
                coef[places[k][inside[k]], k] = point.rows[inside[k], t]
            scores[t] += columns[first + chosen[t]] @ coef
    return chosen, scores


def path_losses(
    data: TaskData, weights: np.ndarray, points: Sequence[Any], loss: Any, root: bool = False
) -> np.ndarray:
    """Mean over tasks of the weighted mean loss on the rows with a positive weight, for each point of a path.

    With `root`, of its square root: a task's norm, as in the calibrated model.
    """
    chosen, scores = path_scores(data, weights, points)
    kept = list(scores)
    losses = np.zeros(len(points))
    for t in kept:
        flat = data.offsets[t] + chosen[t]
        own = np.average(loss(data.y[flat][:, None], scores[t]), axis=0, weights=weights[flat])
        losses += np.sqrt(own) if root else own
    return losses / len(kept)


def path_log_losses(data: TaskData, weights: np.ndarray, points: Sequence[Any]) -> np.ndarray:
    """Weighted mean over rows of -log p(class), classes being the tasks of a shared matrix with one-hot labels."""
    chosen, scores = path_scores(data, weights, points)
    z = np.stack([scores[t] for t in range(data.n_tasks)])  # classes x rows x K
    labels = np.stack([data.y[part][chosen[0]] for part in data.per_task()])
    picked = np.einsum("ci,cik->ik", labels, z)
    return np.average(logsumexp(z, axis=0) - picked, axis=0, weights=weights[: data.n_rows][chosen[0]])


def select(scores: np.ndarray, rule: Literal["min", "1se"]) -> tuple[int, int]:
    """Which model and which value of its path to take, from held-out losses (models x values x folds).

    "min": the smallest mean over folds. "1se": with the same model, the largest alpha (smallest index) whose mean is
    within one standard error of it.
    """
    means = scores.mean(axis=2)
    best, k = np.unravel_index(np.argmin(means), means.shape)
    n_folds = scores.shape[2]
    if rule == "1se" and n_folds > 1:
        error = scores[best, k].std(ddof=1) / np.sqrt(n_folds)
        k = np.flatnonzero(means[best] <= means[best, k] + error)[0]
    return int(best), int(k)
