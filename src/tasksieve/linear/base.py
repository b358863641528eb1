"""What all linear models of several tasks share: reading data, solving, predicting, scoring.

A model is the loss it is mixed with (`TaskRegression` or `TaskClassification`), a constructor, and where its
penalty is not the plain L2,1 norm, two short methods, `PathEstimator._penalty` and `PathEstimator._strength`.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..design import Design, thread_count
from ..path import solve_path
from ..plotting import coefficient_map
from ..problem import Problem
from ..regularization_path import RegularizationPath
from ..tasks import (
    TaskData,
    TaskLabels,
    is_task_list,
    linear_scores,
    read_feature_weights,
    read_labels,
    read_matrix,
    read_tasks,
    task_codes,
)

LossName = Literal["squared", "square-root", "logistic", "multinomial"]
SCREENING: tuple[str | None, ...] = ("auto", "dpc", "dpc-published", "gap", None)


# --- small helpers -------------------------------------------------------------------------------------


def kernel_threads(n_jobs: int | None = None) -> int:
    """Threads for the kernels: ``n_jobs`` as in scikit-learn, but by default all that are available."""
    available = thread_count()
    if n_jobs is None:
        return available
    if n_jobs == 0:
        raise ValueError(f"n_jobs must be None or a non-zero integer, got {n_jobs!r}.")
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))


def feature_names(X: Any) -> np.ndarray | None:
    """Column names of X where it has them, as scikit-learn reads them."""
    if isinstance(X, np.ndarray | list) or scipy.sparse.issparse(X):
        return None
    probe = BaseEstimator()
    validate_data(probe, X, reset=True, skip_check_array=True)
    return getattr(probe, "feature_names_in_", None)


def check_number(
    value: Any, name: str, *, low: float, closed: bool, high: float = np.inf, integer: bool = False
) -> None:
    """Refuse a parameter that is not a number between low (itself allowed if ``closed``) and high."""
    numeric = isinstance(value, Integral if integer else Real) and value is not True and value is not False
    if not numeric or not low <= value <= high or value == np.inf or (value == low and not closed):
        bound = f"{'>=' if closed else '>'} {low:g}" + (f" and <= {high:g}" if high < np.inf else "")
        raise ValueError(
            f"The {name!r} parameter must be {'an integer' if integer else 'a number'} {bound}; got {value!r}."
        )


class Progress:
    """Progress of a path on stderr: about one line per second."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.start = self.last = time.monotonic()

    def __call__(self, k: int, n_values: int, point: Any) -> None:
        now = time.monotonic()
        if now - self.last < 1.0 and k + 1 < n_values:
            return
        self.last = now
        print(
            f"{self.label}: value {k + 1} of {n_values}, {len(point.features)} features selected, "
            f"{now - self.start:.1f} s",
            file=sys.stderr,
            flush=True,
        )


def default_grid(alpha_max: float, n_alphas: int, eps: float) -> np.ndarray:
    """Geometric grid of ``n_alphas`` values from ``alpha_max`` down to ``eps * alpha_max``."""
    check_number(n_alphas, "n_alphas", low=1, closed=True, integer=True)
    check_number(eps, "eps", low=0, closed=False, high=1.0)
    if alpha_max <= 0:  # nothing to explain: every value gives zero coefficients, whatever the grid
        alpha_max = 1.0
    grid = alpha_max * np.geomspace(1.0, eps, n_alphas)
    grid[0] = alpha_max
    return grid


def given_grid(alphas: Any) -> np.ndarray:
    """The user's values, decreasing."""
    grid = np.sort(np.asarray(alphas, dtype=np.float64).ravel())[::-1].copy()
    if not len(grid) or not np.all(np.isfinite(grid)) or grid[-1] <= 0:
        raise ValueError("alphas must be one or more positive numbers.")
    return grid


# --- the fitted model ----------------------------------------------------------------------------------


class TaskLinearModel(SelectorMixin, BaseEstimator):
    """Linear model with one row of coefficients per task: what it can do once it is fitted."""

    _loss: ClassVar[LossName]
    _targets: ClassVar[Literal["values", "classes"]]

    coef_: np.ndarray
    intercept_: np.ndarray
    tasks_: np.ndarray
    n_features_in_: int
    _single: bool

    def _read(self, X: Any, y: Any, task: Any, sample_weight: Any) -> TaskData:
        return read_tasks(
            X, y, task, sample_weight, task_weights=getattr(self, "task_weights", None), targets=self._targets
        )

    def _set_features(self, X: Any, data: TaskData) -> None:
        """Remember number and names of the features, as scikit-learn does."""
        items = X if is_task_list(X) else [X]
        names = feature_names(items[0])
        self.n_features_in_ = data.n_features
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        for item in items[1:] if names is not None else []:
            validate_data(self, item, reset=False, skip_check_array=True)

    def _unit(self, data: TaskData) -> float:
        """The engine minimises this times the estimator's objective."""
        return data.n_bar

    def _set_solution(self, data: TaskData, point: Any) -> None:
        self.coef_ = np.zeros((data.n_tasks, data.n_features))
        self.coef_[:, point.features] = point.rows.T
        self.intercept_ = np.array(point.intercept, dtype=np.float64)
        self.tasks_ = data.tasks
        self.objective_ = float(point.objective) / self._unit(data)
        self.dual_gap_ = float(point.dual_gap) / self._unit(data)
        self.n_iter_ = max(1, int(point.n_iter))
        self._single = data.form == "single"
        if data.classes is not None:
            self.classes_ = data.classes

    def _read_matrix(self, X: Any, name: str = "X") -> Any:
        if not isinstance(X, np.ndarray | list) or hasattr(self, "feature_names_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        matrix = read_matrix(X, name, min_rows=0)
        if matrix.shape[1] != self.n_features_in_:
            raise ValueError(
                f"{name} has {matrix.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return matrix

    def _scores(self, X: Any, task: Any) -> Any:
        """x . w_t + b_t in the form that `predict` promises: (n,), (n, T) or a list."""
        check_is_fitted(self, "coef_")
        if is_task_list(X):
            n_tasks = len(self.tasks_)
            if task is not None:
                raise ValueError("task was given with a list of matrices: there, item t belongs to tasks_[t].")
            if len(X) != n_tasks:
                raise ValueError(
                    f"X is a list of {len(X)} matrices, but the model has {n_tasks} tasks: pass one matrix per "
                    "task (of 0 rows where there is nothing to predict), or stacked rows with task."
                )
            return [
                linear_scores(
                    self._read_matrix(item, f"X[{t}]"), self.coef_[t : t + 1], self.intercept_[t : t + 1]
                )[:, 0]
                for t, item in enumerate(X)
            ]
        matrix = self._read_matrix(X)
        if task is not None:
            codes = task_codes(task, self.tasks_, matrix.shape[0])
            return linear_scores(matrix, self.coef_, self.intercept_, codes)
        scores = linear_scores(matrix, self.coef_, self.intercept_)
        return scores[:, 0] if self._single else scores

    def _read_test_labels(self, X: Any, y: Any, task: Any, sample_weight: Any) -> TaskLabels:
        """Labels to score against; a task without observed labels has weight 0."""
        if is_task_list(X):
            rows: Any = [len(item) if isinstance(item, list) else item.shape[0] for item in X]
        else:
            rows = len(X) if isinstance(X, list | tuple) else X.shape[0]
        targets: Literal["values", "labels"] = "values" if self._targets == "values" else "labels"
        labels = read_labels(rows, y, task, sample_weight, targets=targets, allow_empty=True)
        if labels.form == "single" and len(self.tasks_) > 1:
            raise ValueError(f"The model has {len(self.tasks_)} tasks: pass task, the task of each row, to score.")
        if labels.form in ("list", "shared") and labels.n_tasks != len(self.tasks_):
            raise ValueError(f"y has {labels.n_tasks} tasks, the model has {len(self.tasks_)}.")
        return labels

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "coef_")
        return np.any(self.coef_, axis=0)

    def transform(self, X: Any) -> Any:
        """Keep the columns of the selected features.

        Parameters
        ----------
        X : matrix of shape (n, d), or list of matrices

        Returns
        -------
        matrix of shape (n, number of selected features), or a list of such for a list
        """
        if is_task_list(X):
            return [self.transform(item) for item in X]
        return super().transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Put columns of zeros where `transform` has removed features.

        Parameters
        ----------
        X : matrix of shape (n, number of selected features)

        Returns
        -------
        matrix of shape (n, d)
        """
        if X.shape[1] == 0 and not self.get_support().any():
            return np.zeros((X.shape[0], self.n_features_in_), dtype=X.dtype)
        return super().inverse_transform(X)

    def plot_coefficients(self, ax: Any = None, *, most: int = 50) -> Any:
        """Draw the coefficients of the selected features as a heat map, strongest feature on top.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        most : int, default=50
            Features drawn; the title says how many are selected.

        Returns
        -------
        matplotlib axes
        """
        check_is_fitted(self, "coef_")
        return coefficient_map(
            self.coef_, self.tasks_, getattr(self, "feature_names_in_", None), ax=ax, most=most, owner=type(self)
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


# --- the two losses ------------------------------------------------------------------------------------


class TaskRegression(RegressorMixin):
    """Numbers as targets: squared loss, R²."""

    _loss: ClassVar[LossName] = "squared"
    _targets: ClassVar[Literal["values", "classes"]] = "values"

    def predict(self, X: Any, task: Any = None) -> Any:
        """Predict with x . w_t + b_t.

        Parameters
        ----------
        X : matrix of shape (n, d), or list of matrices
            Rows to predict; in a list, item t belongs to ``tasks_[t]``.
        task : array of shape (n,), optional
            The task of each row, one of ``tasks_``.

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            With ``task`` (n,), without (n, T), every task's prediction (but (n,) where the model was fitted to
            a 1-D y without task); a list for a list.
        """
        return self._scores(X, task)

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """Mean over tasks of the coefficient of determination R².

        Parameters
        ----------
        X, y, task, sample_weight
            Rows in any form that `fit` takes.

        Returns
        -------
        float
            1 is perfect; 0 is as good as each task's mean. Labels that are NaN are left out, and so are tasks
            with fewer than two labels, for which R² is not defined.
        """
        predictions = self.predict(X, task)
        labels = self._read_test_labels(X, y, task, sample_weight)
        return mean_over_tasks(labels, labels.flatten(predictions), r2, least=2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class TaskClassification(ClassifierMixin):
    """Two classes per task: logistic loss, accuracy."""

    _loss: ClassVar[LossName] = "logistic"
    _targets: ClassVar[Literal["values", "classes"]] = "classes"

    classes_: Any

    def _read(self, X: Any, y: Any, task: Any, sample_weight: Any) -> TaskData:
        if task is None:
            warn_column(y)
        data: TaskData = super()._read(X, y, task, sample_weight)
        if self.fit_intercept:
            warn_one_class(data)
        return data

    def decision_function(self, X: Any, task: Any = None) -> Any:
        """Log-odds of the larger class, x . w_t + b_t.

        Parameters
        ----------
        X : matrix of shape (n, d), or list of matrices
        task : array of shape (n,), optional

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            As `predict`.
        """
        return self._scores(X, task)

    def predict_proba(self, X: Any, task: Any = None) -> Any:
        """Probabilities of the two classes.

        Parameters
        ----------
        X : matrix of shape (n, d), or list of matrices
        task : array of shape (n,), optional

        Returns
        -------
        ndarray of shape (n, 2) with ``task``, (n, T, 2) without; a list of (n_t, 2) for a list
            The last axis follows ``classes_``. (n, 2) where the model was fitted to a 1-D y without task.
        """
        scores = self._scores(X, task)
        if isinstance(scores, list):
            return [probabilities(part) for part in scores]
        return probabilities(scores)

    def predict(self, X: Any, task: Any = None) -> Any:
        """Predict the more probable class.

        Parameters
        ----------
        X : matrix of shape (n, d), or list of matrices
            Rows to predict; in a list, item t belongs to ``tasks_[t]``.
        task : array of shape (n,), optional
            The task of each row, one of ``tasks_``.

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            With ``task`` (n,), without (n, T), every task's prediction (but (n,) where the model was fitted to
            a 1-D y without task); a list for a list.
        """
        scores = self._scores(X, task)
        if not isinstance(self.classes_, list):
            if isinstance(scores, list):
                return [self.classes_[(part > 0).astype(np.intp)] for part in scores]
            return self.classes_[(scores > 0).astype(np.intp)]
        if isinstance(scores, list):
            return [pair[(part > 0).astype(np.intp)] for pair, part in zip(self.classes_, scores, strict=True)]
        pairs = stack_pairs(self.classes_)
        if task is None:
            return pairs[np.arange(len(pairs)), (scores > 0).astype(np.intp)]
        codes = task_codes(task, self.tasks_, len(scores))
        return pairs[codes, (scores > 0).astype(np.intp)]

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """Mean over tasks of the accuracy.

        Parameters
        ----------
        X, y, task, sample_weight
            Rows in any form that `fit` takes.

        Returns
        -------
        float
            Between 0 and 1. Labels that are missing are left out, and so are tasks without any.
        """
        predictions = self.predict(X, task)
        labels = self._read_test_labels(X, y, task, sample_weight)
        return mean_over_tasks(labels, labels.flatten(predictions), accuracy, least=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def probabilities(scores: np.ndarray) -> np.ndarray:
    """(1 - p, p) on a new last axis, p = 1 / (1 + exp(-score)), without overflow."""
    from scipy.special import expit

    return np.stack([expit(-scores), expit(scores)], axis=-1)


def stack_pairs(pairs: Sequence[np.ndarray]) -> np.ndarray:
    """Pairs of class labels as one (T, 2) array; labels of different kinds stay what they are."""
    kinds = {pair.dtype.kind for pair in pairs}
    if len(kinds) > 1 and kinds & set("OUS"):
        return np.array([pair.tolist() for pair in pairs], dtype=object)
    return np.stack(pairs)


def r2(y: np.ndarray, predicted: np.ndarray, weights: np.ndarray) -> float:
    """1 - weighted residual / total sum of squares; constant y: 1 if met exactly, else 0 (as scikit-learn)."""
    residual = float(np.sum(weights * (y - predicted) ** 2))
    total = float(np.sum(weights * (y - np.average(y, weights=weights)) ** 2))
    if total == 0.0:
        return 1.0 if residual == 0.0 else 0.0
    return 1.0 - residual / total


def accuracy(y: np.ndarray, predicted: np.ndarray, weights: np.ndarray) -> float:
    return float(np.average(y == predicted, weights=weights))


def mean_over_tasks(
    labels: TaskLabels,
    predicted: np.ndarray,
    metric: Callable[[np.ndarray, np.ndarray, np.ndarray], float],
    least: int,
) -> float:
    """Mean of a metric over the tasks that have at least ``least`` observed labels; NaN if there are none."""
    values = []
    for part in labels.per_task():
        seen = labels.weights[part] > 0
        if np.count_nonzero(seen) >= least:
            values.append(metric(labels.y[part][seen], predicted[part][seen], labels.weights[part][seen]))
    return float(np.mean(values)) if values else float("nan")


# --- fitting one value, fitting a path -------------------------------------------------------------------


class PathEstimator(TaskLinearModel):
    """Model with one penalty strength ``alpha``: `fit`, `path`, `alpha_max`.

    A subclass mixes in its loss, stores its parameters in the constructor and, where its penalty is not the
    L2,1 norm, says so in `_penalty` and `_strength`.
    """

    _screening_rules: ClassVar[tuple[str | None, ...]] = SCREENING

    alpha: Any
    fit_intercept: bool
    standardize: bool
    positive: bool
    feature_weights: Any
    task_weights: Any
    tol: float
    max_iter: int
    screening: str | None
    warm_start: bool
    n_jobs: int | None
    verbose: int

    #: ``watcher(label, k, n_values, point)`` is told of each value instead of stderr; the command line sets it
    _watcher: Callable[[str, int, int, Any], None] | None = None

    def _penalty(self) -> dict[str, Any]:
        """Arguments of `Problem` that describe the penalty."""
        return {}

    def _strength(self) -> float:
        """The penalty of the problem is ``alpha * unit * _strength()`` times its norm."""
        return 1.0

    def _row_weights(self, data: TaskData) -> np.ndarray:
        """Weights of the rows in the loss of the problem."""
        return data.sample_weights

    def _engine_options(self) -> dict[str, Any]:
        """Further arguments of `solve_path`."""
        return {"screening": self.screening}

    def _check_alpha(self) -> None:
        check_number(self.alpha, "alpha", low=0, closed=False)

    def _chosen_alpha(self, data: TaskData, problem: Problem) -> float:
        return self.alpha

    def fit(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model.

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
            Weights >= 0 of the rows in the loss; 0 leaves a row out. For a shared matrix (n,) or (n, T).

        Returns
        -------
        self
        """
        self._check_alpha()
        self._check_parameters()
        data = self._read(X, y, task, sample_weight)
        problem = self._problem(data)
        solution = self._solve(
            data,
            problem,
            np.array([self._chosen_alpha(data, problem)], dtype=np.float64),
            start=self._last_solution(problem) if self.warm_start else None,
            progress=self._progress(),
        )
        if not solution.points:
            raise KeyboardInterrupt
        point = solution.points[0]
        self._set_features(X, data)
        self._set_solution(data, point)
        self._null_objective = float(solution.null_objective) / data.n_bar
        if not point.converged:
            self._warn_not_converged(solution, data)
        return self

    def path(
        self,
        X: Any,
        y: Any,
        task: Any = None,
        sample_weight: Any = None,
        *,
        alphas: Any = None,
        n_alphas: int = 100,
        eps: float = 1e-2,
    ) -> RegularizationPath:
        """Solve for a whole sequence of penalty strengths; the model itself is not changed.

        Parameters
        ----------
        X, y, task, sample_weight
            As in `fit`.
        alphas : array, optional
            Penalty strengths, solved in decreasing order. By default ``n_alphas`` values, geometrically from
            `alpha_max` to ``eps`` times that.
        n_alphas : int, default=100
        eps : float, default=1e-2

        Returns
        -------
        RegularizationPath
            After Ctrl-C it holds the values solved until then (``interrupted`` is True).
        """
        self._check_parameters()
        data = self._read(X, y, task, sample_weight)
        problem = self._problem(data)
        if alphas is None:
            grid = default_grid(self._alpha_max(problem, data), n_alphas, eps)
        else:
            grid = given_grid(alphas)
        solution = self._solve(data, problem, grid, progress=self._progress())
        return self._as_path(data, problem, solution, grid, feature_names(X[0] if is_task_list(X) else X))

    def alpha_max(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """The smallest alpha whose solution is zero (but for features that are never penalised).

        Parameters
        ----------
        X, y, task, sample_weight
            As in `fit`.

        Returns
        -------
        float
        """
        self._check_parameters()
        data = self._read(X, y, task, sample_weight)
        return self._alpha_max(self._problem(data), data)

    def _check_parameters(self) -> None:
        check_number(self.tol, "tol", low=0, closed=True)
        check_number(self.max_iter, "max_iter", low=1, closed=True, integer=True)
        rules = self._screening_rules
        if self.screening not in rules:
            raise ValueError(
                f"The 'screening' parameter must be one of {', '.join(map(repr, rules))}; got {self.screening!r}."
            )

    def _progress(self, label: str | None = None) -> Callable[[int, int, Any], None] | None:
        label = label or type(self).__name__
        if self._watcher is not None:
            return partial(self._watcher, label)
        return Progress(label) if self.verbose else None

    def _problem(self, data: TaskData, n_threads: int | None = None) -> Problem:
        feature_weights = read_feature_weights(self.feature_weights, data.n_features)
        if self.positive and feature_weights is not None and not np.all(feature_weights):
            raise ValueError(
                "positive=True cannot be combined with feature_weights of 0: coefficients that are never penalised "
                "are eliminated before the solve and cannot be constrained. Give them a small weight instead."
            )
        if feature_weights is not None and not np.all(feature_weights):
            data.refuse_not_finite()  # unpenalised columns are used before their norms are known
        design = Design(
            data.storage,
            data.offsets,
            shared=data.shared,
            weights=self._row_weights(data),
            fit_intercept=self.fit_intercept,
            unpenalised=None if feature_weights is None else np.flatnonzero(feature_weights == 0),
            standardize=self.standardize,
            n_threads=kernel_threads(self.n_jobs) if n_threads is None else n_threads,
        )
        problem = self._state(design, data, feature_weights)
        if data.unsearched:
            problem.null_products()  # norms come along in the same reading of the data
            if not design.finite:
                data.refuse_not_finite()
                raise ValueError("X has entries whose squares overflow: divide its columns by a common factor.")
        return problem

    def _state(self, design: Design, data: TaskData, feature_weights: np.ndarray | None) -> Problem:
        """The problem on a design."""
        return Problem(
            design,
            data.y,
            loss=self._loss,
            feature_weights=feature_weights,
            positive=self.positive,
            unit=self._unit(data),
            **self._penalty(),
        )

    def _solve(
        self, data: TaskData, problem: Problem, alphas: np.ndarray, *, start: Any = None, progress: Any = None
    ) -> Any:
        return solve_path(
            problem,
            alphas * (self._strength() * self._unit(data)),
            tol=self.tol,
            max_iter=self.max_iter,
            **self._engine_options(),
            start=start,
            progress=progress,
        )

    def _last_solution(self, problem: Problem) -> tuple[np.ndarray, np.ndarray] | None:
        """Selected features and their rows in the units of the solver, where the last fit has the same shape."""
        design = problem.design
        coef = getattr(self, "coef_", None)
        if coef is None or coef.shape != (design.n_tasks, design.n_features):
            return None
        features = np.setdiff1d(np.flatnonzero(coef.any(axis=0)), design.unpenalised)
        rows = np.ascontiguousarray(coef[:, features].T)
        if self.standardize:
            design.norms()  # measures the scales
            rows /= design.original_units(features, np.ones_like(rows))
        return features, np.maximum(rows, 0.0) if self.positive else rows

    def _alpha_max(self, problem: Problem, data: TaskData) -> float:
        largest, unit = problem.lambda_max(), self._strength() * self._unit(data)
        alpha = largest / unit
        while alpha * unit < largest:  # rounding must not leave alpha a hair below the truth
            alpha = np.nextafter(alpha, np.inf)
        return float(alpha)

    def _as_path(
        self, data: TaskData, problem: Problem, solution: Any, alphas: np.ndarray, names: np.ndarray | None
    ) -> RegularizationPath:
        n_solved = len(solution.points)
        path = RegularizationPath(
            solution.points,
            alphas=alphas[:n_solved],
            unit=self._unit(data),
            tasks=data.tasks,
            n_features=data.n_features,
            feature_names=names,
            null_objective=solution.null_objective,
            passes=problem.design.passes,  # those that found alpha_max, too
            interrupted=solution.interrupted,
        )
        if solution.interrupted:
            warnings.warn(
                f"The path was interrupted: {n_solved} of {len(alphas)} values are solved.", stacklevel=3
            )
        if not path.converged.all():
            self._warn_not_converged(solution, data)
        return path

    def _warn_not_converged(self, solution: Any, data: TaskData) -> None:
        open_points = [point for point in solution.points if not point.converged]
        worst = max(point.dual_gap for point in open_points)
        several = f" at {len(open_points)} of {len(solution.points)} values" if len(solution.points) > 1 else ""
        spent = max(point.n_iter for point in open_points)
        relative = worst / solution.null_objective if solution.null_objective > 0 else np.inf
        warnings.warn(
            f"{type(self).__name__} did not reach tol={self.tol:g} in {spent} iterations{several} "
            f"(max_iter={self.max_iter}): "
            f"dual gap {worst / self._unit(data):.3e}, relative gap {relative:.3e}. The gap is a true bound on the "
            "distance to the optimum; raise max_iter, or tol if that is enough.",
            ConvergenceWarning,
            stacklevel=3,
        )


def warn_one_class(data: TaskData) -> None:
    """Name the tasks with one class only: with an intercept, their loss has no finite minimiser."""
    present = data.weights > 0
    negative = np.logical_or.reduceat((data.y < 0) & present, data.offsets[:-1])
    positive = np.logical_or.reduceat((data.y > 0) & present, data.offsets[:-1])
    names = data.tasks[~(negative & positive)].tolist()
    if names:
        shown = ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")
        warnings.warn(
            f"{len(names)} task(s) have rows of one class only ({shown}): their best intercept would be infinite and "
            "is kept finite.",
            stacklevel=4,
        )


def warn_column(y: Any) -> None:
    """scikit-learn's warning about a y of one column, which classifiers there take for a mistake."""
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. It is read as one task of a shared matrix, "
            "and predictions have one column, too.",
            DataConversionWarning,
            stacklevel=4,
        )
