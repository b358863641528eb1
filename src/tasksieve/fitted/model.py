"""A linear model of several tasks once it is fitted: its features, its scores, its support."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..docstrings import described_by
from ..losses import Loss
from ..messages import value_error
from ..plotting import AXES, DRAWN_ON, coefficient_map
from ..tasks import (
    TaskData,
    TaskLabels,
    count_rows,
    is_task_list,
    kind_of,
    like,
    linear_scores,
    outcomes_in_order,
    placed,
    read_labels,
    read_offset,
    read_tasks,
    to_host,
    with_class_weight,
    without_common_factor,
)
from ..tasks.named import pattern_rows
from ..tasks.task_column import without_task_column
from .arguments import (
    feature_names,
    refuse_labels,
    refuse_other_names,
    warn_column,
    warn_no_counts,
    warn_one_class,
)
from .callbacks import CallbackSupportMixin
from .covariates import covariates_of
from .measures import mean_over_tasks, measure_of
from .predictions import Predictions
from .progress import reporter
from .shown import Shown
from .state import LinearState, read_rows, thresholds_by_task
from .without_task import warn_of_all_tasks

if TYPE_CHECKING:
    from matplotlib.axes import Axes



class FittedModel(Shown, CallbackSupportMixin, BaseEstimator):
    """Linear model with one row of coefficients per task, by any solver: features, scores of rows, test labels."""

    _targets: ClassVar[Literal["values", "classes", "survival"]]

    #: whether more than two classes are scored together, not one by one against the rest
    _joint: ClassVar[bool] = False
    _takes_offset: ClassVar[bool] = False

    #: the column of X with the tasks; models that were pickled before there was this parameter have none
    task: Any = None
    #: whether rows without names are as good as those of the fit, although the names of features are known
    _fitted_to_arrays: bool = False

    coef_: Any
    intercept_: Any
    tasks_: np.ndarray
    n_features_in_: int
    _single: bool

    @property
    def _raw_targets(self) -> Literal["values", "labels", "survival"]:
        """What y is read as where classes are to stay what they are."""
        return "labels" if self._targets == "classes" else self._targets

    def _learned(self) -> LinearState:
        """The state from which the next call is answered."""
        check_is_fitted(self, "coef_")
        classes = getattr(self, "classes_", None) if self._targets == "classes" else None
        return LinearState(
            self.coef_,
            self.intercept_,
            self.tasks_,
            classes,
            self._single,
            type(self).__name__,
            self._joint,
            getattr(self, "_needs_offset", False),
            getattr(self, "_fills", None),
            getattr(self, "thresholds_", None),
        )

    def _remember_features(self, X: Any, n_features: int) -> None:
        """Number and names of the features, as scikit-learn keeps them."""
        names = feature_names(X)
        self._set_feature_names(n_features, names)
        for item in X[1:] if names is not None and is_task_list(X) else []:
            validate_data(self, item, reset=False, skip_check_array=True)

    def _set_feature_names(self, n_features: int, names: np.ndarray | None) -> None:
        self.__dict__.pop("_fitted_to_arrays", None)
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_features(self, X: Any) -> None:
        """Refuse rows whose features go by other names than those fitted."""
        if refuse_other_names(X, getattr(self, "feature_names_in_", None)):
            return
        nameless = isinstance(X, np.ndarray | list) or scipy.sparse.issparse(X)
        if self._fitted_to_arrays and (nameless or feature_names(X) is None):
            return
        if not nameless or hasattr(self, "feature_names_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)

    def _read_matrix(self, X: Any, name: str = "X") -> Any:
        """Rows to predict, as `_score_rows` takes them."""
        self._check_features(X)
        return read_rows(X, name)

    def _score_rows(
        self, rows: Any, coef: np.ndarray, intercept: np.ndarray, codes: np.ndarray | None
    ) -> np.ndarray:
        return linear_scores(rows, coef, intercept, codes)

    def _scores(self, X: Any, task: Any, state: LinearState | None = None, offset: Any = None) -> Any:
        """x . w_t + b_t + offset in the form that `predict` promises: (n,), (n, T) or a list."""
        if offset is not None and not self._takes_offset:
            raise TypeError(f"{type(self).__name__} has no offset: leave it out, or add it to what is predicted.")
        X, task = pattern_rows(X, task, self)
        if task is None:
            warn_of_all_tasks()
        return (state or self._learned()).scores(X, task, self._read_matrix, self._score_rows, offset)

    def _read_test_labels(
        self, X: Any, y: Any, task: Any, sample_weight: Any, state: LinearState | None = None
    ) -> TaskLabels:
        """Labels to score against; a task without observed labels has weight 0."""
        tasks = (state or self._learned()).tasks
        y, n_tasks = outcomes_in_order(y, tasks), len(tasks)
        labels = read_labels(
            count_rows(X), y, task, sample_weight, targets=self._raw_targets, allow_empty=True
        )
        if labels.form == "single" and n_tasks > 1:
            raise ValueError(f"The model has {n_tasks} tasks: pass task, the task of each row, to score.")
        if labels.form in ("list", "shared") and labels.n_tasks != n_tasks:
            raise ValueError(f"y has {labels.n_tasks} tasks, the model has {n_tasks}.")
        return labels

    def _predict(self, X: Any, task: Any, state: LinearState | None = None, offset: Any = None) -> Any:
        state = state or self._learned()
        return state.answers(self._scores(X, task, state, offset), task, is_task_list(X))

    def _task_score(self, X: Any, y: Any, task: Any, sample_weight: Any, offset: Any = None) -> float:
        """Mean over tasks of what `measure_of` chooses: R², D² or accuracy."""
        state, measure = self._learned(), measure_of(self)
        labels = self._read_test_labels(X, y, task, sample_weight, state)
        refuse_labels(labels, getattr(getattr(self, "_loss", None), "labels", "values"))
        answer = self._scores if measure.of_scores else self._predict
        known = None if offset is None else labels.unflatten(read_offset(offset, labels))
        flat = labels.flatten(answer(X, task, state, known))
        return mean_over_tasks(labels, flat, measure.metric, measure.least)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


class FeatureSelector(SelectorMixin, FittedModel):
    """Estimators that select features, of one matrix or of one for each task."""

    def get_support(self, indices: bool = False) -> np.ndarray:
        """The features selected.

        Parameters
        ----------
        indices : bool, default=False
            Their indices instead of a mask.

        Returns
        -------
        boolean ndarray of shape (d,), or int ndarray
        """
        return np.asarray(super().get_support(indices))

    def transform(self, X: Any) -> Predictions:
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
        X = without_task_column(X, self)
        if kind_of(X).location == "device":
            rows = self._read_matrix(X)
            if rows.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                    "features as input."
                )
            return like(X, rows.take(self.get_support(indices=True)).astype(rows.dtype))
        return super().transform(X)

    def inverse_transform(self, X: Any) -> Predictions:
        """Put columns of zeros where `transform` has removed features.

        Parameters
        ----------
        X : matrix of shape (n, number of selected features)

        Returns
        -------
        matrix of shape (n, d)
        """
        if kind_of(X).location == "device":
            return like(X, self.inverse_transform(to_host(X)))
        if X.shape[1] == 0 and not self.get_support().any():
            return np.zeros((X.shape[0], self.n_features_in_), dtype=X.dtype)
        return super().inverse_transform(X)


class SelectingModel(FeatureSelector):
    """A model whose coefficients are sparse: it selects features."""

    def _get_support_mask(self) -> np.ndarray:
        return np.any(self._learned().rows, axis=0)

    @described_by(AXES, returns=DRAWN_ON)
    def plot_coefficients(self, ax: Any = None, *, most: int = 50) -> Axes:
        """Draw the coefficients of the selected features as a heat map, strongest feature on top.

        Parameters
        ----------
        most : int, default=50
            Features drawn; the title says how many are selected. Features that are never penalised are not among them.
        """
        state = self._learned()
        rows, names = state.rows, getattr(self, "feature_names_in_", None)
        covariates = covariates_of(self, rows.shape[-1])
        if len(covariates):
            names = np.array([f"x{j}" for j in range(rows.shape[-1])]) if names is None else names
            rows, names = np.delete(rows, covariates, axis=-1), np.delete(names, covariates)
        return coefficient_map(self, rows, state.row_names, names, ax, most)


class TaskLinearModel(SelectingModel):
    """Model fitted to all rows at once, by a solver that answers with a solution point."""

    #: the loss; of two classes where it is about classes
    _loss: ClassVar[Loss]
    _joint: ClassVar[bool] = True
    _takes_offset: ClassVar[bool] = True

    fit_intercept: bool

    def _loss_of(self, data: TaskData) -> Loss:
        """The loss of these labels: with more than two classes it is another one."""
        if data.class_counts is None:
            return self._loss
        several = self._loss.with_classes()
        assert several is not None
        return several

    @property
    def present_(self) -> np.ndarray:
        """Which features each task has, (T, d): coefficients of the others are 0 because they were not measured."""
        known = getattr(self, "patterns_", None)
        if known is None:
            raise AttributeError("present_ is known of models fitted to rows of by_pattern: all features are present.")
        return np.asarray(known.present)

    @property
    def _several(self) -> bool:
        """Whether the model was fitted to more than two classes: a row of coefficients for each class of each task."""
        coef: Any = getattr(self, "coef_", 0.0)
        return isinstance(coef, list) or np.ndim(coef) == 3

    @property
    def _fitted_loss(self) -> Loss:
        """The loss of the labels that the model was fitted to."""
        return (self._loss.with_classes() if self._several else None) or self._loss

    def _read(self, X: Any, y: Any, task: Any, sample_weight: Any) -> TaskData:
        targets: Literal["values", "classes", "many classes", "ordered", "survival"] = self._targets
        if targets == "classes":
            if task is None:
                warn_column(y)
            targets = "classes" if self._loss.with_classes() is None else "many classes"
            targets = "ordered" if self._loss.labels == "ordered" else targets
        data = read_tasks(
            X if getattr(self, "device", None) is None else placed(X, self),
            y,
            task,
            sample_weight,
            task_weights=getattr(self, "task_weights", None),
            targets=targets,
            categories=getattr(self, "categories", None),
        )
        if targets in ("classes", "many classes", "ordered"):
            data = with_class_weight(data, getattr(self, "class_weight", None))
            if self.fit_intercept:
                warn_one_class(data)
        else:
            refuse_labels(data, self._loss.labels)
            if self._loss.labels == "counts" and self.fit_intercept:
                warn_no_counts(data)
        self._report_passes(data)
        ordinary = without_common_factor(data.weights)
        return data if ordinary is data.weights else data.with_weights(ordinary)

    def _report_passes(self, data: TaskData) -> None:
        """Report once how long a pass takes, where X streams through a device."""
        source = data.source
        if source is not None and source.streams:
            source.make_storage().progress = reporter(type(self).__name__, "pass", getattr(self, "verbose", 0))

    def _read_with(self, X: Any, y: Any, task: Any, sample_weight: Any, offset: Any) -> TaskData:
        """`_read`, and what is known of every prediction."""
        data = self._read(X, y, task, sample_weight)
        if offset is None:
            return data
        return replace(data, known=self._read_offset(offset, data))

    def _read_offset(self, offset: Any, data: TaskData) -> np.ndarray:
        """As flat vectors over samples lie."""
        if data.class_counts is not None:
            raise value_error(
                "{offset}: with more than two classes one number per row would change nothing, all classes being "
                "shifted alike. Leave it out."
            )
        return read_offset(offset, data)

    def _set_features(self, X: Any, data: TaskData) -> None:
        self._remember_features(X, data.n_features)

    def _unit(self, data: TaskData) -> float:
        """The engine minimises this times the estimator's objective."""
        return self._loss.unit(data.n_bar)

    def _set_solution(self, data: TaskData, point: Any) -> None:
        self.__dict__.pop("_proven", None)  # of an earlier fit
        self.coef_ = np.zeros((point.rows.shape[1], data.n_features))
        self.coef_[:, point.features] = point.rows.T
        self.intercept_ = np.array(point.intercept, dtype=np.float64)
        if data.class_counts is not None:  # a row for each class of each task so far
            cuts = np.cumsum(data.class_counts)[:-1]
            self.coef_, self.intercept_ = np.split(self.coef_, cuts), np.split(self.intercept_, cuts)
            if not isinstance(data.classes, list):
                self.coef_, self.intercept_ = np.stack(self.coef_, axis=1), np.stack(self.intercept_, axis=1)
        thresholds = getattr(point, "thresholds", None)
        if thresholds is not None:
            self.thresholds_ = thresholds_by_task(thresholds, data.classes)
        self.tasks_ = data.tasks
        unit = self._unit(data)
        self.objective_ = float(point.objective) / unit
        self.dual_gap_ = float(point.dual_gap) / unit
        self.n_iter_ = max(1, int(point.n_iter))
        self.status_ = point.status
        self._single = data.form == "single"
        self._needs_offset = data.has_offset
        self._fills = data.fills(point.features)
        self.__dict__.pop("patterns_", None)
        if data.patterns is not None:
            self.patterns_ = data.patterns
        if data.classes is not None:
            self.classes_ = data.classes

    def _set_scale(self, scale: np.ndarray | None, exponent: int) -> None:
        """Standard deviations by which the objective is defined, where columns were divided by them."""
        if scale is not None:
            firsts = np.cumsum([0, *self._learned().class_counts[:-1]])  # the classes of a task have the same
            self.scale_ = np.ascontiguousarray(np.ldexp(scale[:, firsts], exponent).T)
        elif hasattr(self, "scale_"):
            del self.scale_
