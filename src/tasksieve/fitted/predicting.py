"""What a model predicts: numbers (`TaskRegression`) or classes (`TaskClassification`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from ..tasks import (
    TaskData,
    task_codes,
)
from .arguments import warn_column, warn_one_class
from .model import LossName
from .scoring import accuracy, mean_over_tasks, r2


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
            return [
                pair[(part > 0).astype(np.intp)] for pair, part in zip(self.classes_, scores, strict=True)
            ]
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
