"""A linear model of several tasks once it is fitted: its features, its scores, its support."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..plotting import coefficient_map
from ..tasks import (
    TaskData,
    TaskLabels,
    is_task_list,
    linear_scores,
    read_labels,
    read_matrix,
    read_tasks,
    task_codes,
)
from .arguments import feature_names

LossName = Literal["squared", "square-root", "logistic", "multinomial"]


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
                raise ValueError(
                    "task was given with a list of matrices: there, item t belongs to tasks_[t]."
                )
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
            raise ValueError(
                f"The model has {len(self.tasks_)} tasks: pass task, the task of each row, to score."
            )
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
            self.coef_,
            self.tasks_,
            getattr(self, "feature_names_in_", None),
            ax=ax,
            most=most,
            owner=type(self),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
