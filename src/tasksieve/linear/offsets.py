"""What linear models predict, with an offset: what is known of a prediction beforehand is added to it."""

from __future__ import annotations

from typing import Any

from ..fitted import predicting
from ..fitted.answers import Answer, available_if
from ..fitted.predicting import gives_probabilities
from ..tasks import like
from ..tasks.named import takes_named_tasks


class TaskRegression(predicting.TaskRegression):
    """Numbers as targets: squared loss, R²."""

    @takes_named_tasks
    def predict(self, X: Any, task: Any = None, *, offset: Any = None) -> Answer:
        """Predict with x . w_t + b_t + offset.

        Parameters
        ----------
        X : matrix of shape (n, d), or list of matrices
            Rows to predict, in any form that `fit` takes; in a list, item t belongs to ``tasks_[t]``.
        task : array of shape (n,), optional
            The task of each row, one of ``tasks_``.
        offset : float, or array or list in the form of the predictions, optional
            Needed if the model was fitted with one (0.0 for none); one per row serves for all tasks.

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            With ``task`` (n,), without (n, T), every task's prediction (but (n,) where the model was fitted to
            a 1-D y without task); a list for a list.
        """
        return like(X, self._predict(X, task, offset=offset))

    @takes_named_tasks
    def score(self, X: Any, y: Any = None, task: Any = None, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Mean over tasks of the coefficient of determination R².

        Parameters
        ----------
        X, y, task, sample_weight
            Rows in any form that `fit` takes.
        offset : float, or array or list in the form of y, optional
            As in `predict`.

        Returns
        -------
        float
            1 is perfect; 0 is as good as each task's mean. Labels that are NaN are left out, and so are tasks
            with fewer than two labels, for which R² is not defined.
        """
        return self._task_score(X, y, task, sample_weight, offset)


class TaskClassification(predicting.TaskClassification):
    """Classes as targets, by default two per task: logistic loss, accuracy."""

    @takes_named_tasks
    def decision_function(self, X: Any, task: Any = None, *, offset: Any = None) -> Answer:
        """Score of the larger class, x . w_t + b_t + offset (with the logistic loss its log-odds).

        Parameters
        ----------
        X : matrix of shape (n, d), or list of matrices
            Rows in any form that `fit` takes.
        task : array of shape (n,), optional
        offset : float, or array or list in the form of the scores, optional
            Needed if the model was fitted with one (0.0 for none); one per row serves for all tasks.

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            As `predict`.
        """
        return like(X, self._scores(X, task, offset=offset))

    @available_if(gives_probabilities)
    @takes_named_tasks
    def predict_proba(self, X: Any, task: Any = None, *, offset: Any = None) -> Answer:
        """Probabilities of the classes (logistic loss).

        Parameters
        ----------
        X : matrix of shape (n, d), or list of matrices
            Rows in any form that `fit` takes.
        task : array of shape (n,), optional
        offset : float, or array or list in the form of the scores, optional
            As in `decision_function`.

        Returns
        -------
        ndarray of shape (n, 2) with ``task``, (n, T, 2) without; a list of (n_t, 2) for a list
            The last axis follows ``classes_``. (n, 2) where the model was fitted to a 1-D y without task.
        """
        state = self._learned()
        return like(X, state.probabilities(self._scores(X, task, state, offset)))

    @takes_named_tasks
    def predict(self, X: Any, task: Any = None, *, offset: Any = None) -> Answer:
        """Predict the class whose score is larger: with the logistic loss, the more probable one.

        Parameters
        ----------
        X : matrix of shape (n, d), or list of matrices
            Rows to predict, in any form that `fit` takes; in a list, item t belongs to ``tasks_[t]``.
        task : array of shape (n,), optional
            The task of each row, one of ``tasks_``.
        offset : float, or array or list in the form of the scores, optional
            As in `decision_function`.

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            With ``task`` (n,), without (n, T), every task's prediction (but (n,) where the model was fitted to
            a 1-D y without task); a list for a list.
        """
        return like(X, self._predict(X, task, offset=offset))

    @takes_named_tasks
    def score(self, X: Any, y: Any = None, task: Any = None, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Mean over tasks of the accuracy.

        Parameters
        ----------
        X, y, task, sample_weight
            Rows in any form that `fit` takes.
        offset : float, or array or list in the form of y, optional
            As in `decision_function`.

        Returns
        -------
        float
            Between 0 and 1. Labels that are missing are left out, and so are tasks without any.
        """
        return self._task_score(X, y, task, sample_weight, offset)
