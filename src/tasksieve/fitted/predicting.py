"""What a model predicts: numbers (`TaskRegression`), classes (`TaskClassification`), hazards (`TaskSurvival`)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from sklearn.base import ClassifierMixin, RegressorMixin

from ..docstrings import described_by
from ..losses import Logistic, Loss, Squared
from ..tasks import like
from ..tasks.named import takes_named_tasks
from .documented import DATA, PREDICTIONS, ROWS
from .mean_task import UNKNOWN, with_mean_task
from .predictions import Predictions, available_if


def gives_probabilities(model: Any) -> bool:
    """Whether scores are log-odds: where there is a choice of losses, the logistic one."""
    loss = getattr(model, "loss", "logistic")
    if not (loss.probabilities if isinstance(loss, Loss) else loss in ("logistic", "ordinal")):
        raise AttributeError(f"predict_proba needs loss='logistic'; the loss is {loss!r}.")
    return True


class Predicting:
    """Predictions and their score."""

    _learned: Any
    _predict: Any
    _scores: Any
    _task_score: Any

    @takes_named_tasks
    @described_by(ROWS, returns=PREDICTIONS)
    def predict(self, X: Any, *, task: Any = None, offset: Any = None) -> Predictions:
        """Predict numbers or classes.

        Numbers are x . w_t + b_t + offset (with losses of counts and of positive numbers its exponential, a mean),
        classes those of the largest score (with the logistic loss the most probable ones).
        """
        return like(X, self._predict(X, task, offset=offset))

    @takes_named_tasks
    @described_by(DATA)
    def score(self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None, offset: Any = None) -> float:
        """Mean over tasks of the accuracy (classes), of R², or of D² (of deviances, of the pinball loss not
        smoothed, of asymmetric squares).

        Returns
        -------
        float
            1 is perfect; R² and D² are 0 for a model that is as good as each task's mean, or quantile. Labels that are
            missing (NaN) are left out, and so are tasks without any, or of numbers with fewer than two.
        """
        return float(self._task_score(X, y, task, sample_weight, offset))


class PredictingMeans(Predicting):
    """The same of models whose tasks have a mean, by which those that are not known may be predicted."""

    @takes_named_tasks
    @described_by(ROWS + UNKNOWN, returns=PREDICTIONS)
    def predict(
        self, X: Any, *, task: Any = None, offset: Any = None, unknown_task: Literal["error", "mean"] = "error"
    ) -> Predictions:
        """Predict numbers or classes.

        Numbers are x . w_t + b_t + offset (with losses of counts and of positive numbers its exponential, a mean),
        classes those of the largest score (with the logistic loss the most probable ones).
        """
        if unknown_task != "error":
            state, task = with_mean_task(self, task, unknown_task)
            return like(X, self._predict(X, task, state, offset))
        return like(X, self._predict(X, task, offset=offset))


class TaskRegression(PredictingMeans, RegressorMixin):
    """Numbers as targets: squared loss, R²."""

    _loss: ClassVar[Loss] = Squared()
    _targets: ClassVar[Literal["values", "classes", "survival"]] = "values"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class TaskSurvival(Predicting):
    """Times of events as targets: the logarithm of the hazard, concordance."""

    _targets: ClassVar[Literal["values", "classes", "survival"]] = "survival"

    @takes_named_tasks
    @described_by(ROWS, returns=PREDICTIONS)
    def predict(self, X: Any, *, task: Any = None, offset: Any = None) -> Predictions:
        """Predict the logarithm of the hazard relative to the baseline, x . w_t + offset: the larger, the earlier an
        event is expected.

        Values are comparable within a task and a stratum.
        """
        return like(X, self._predict(X, task, offset=offset))

    @takes_named_tasks
    @described_by(DATA)
    def score(self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None, offset: Any = None) -> float:
        """Mean over tasks of Harrell's concordance.

        Of the pairs of rows of one task and stratum of which one has an event while the other is known to be without
        one, it is the (weighted) share in which the first has the larger prediction; equal predictions count one half.

        Returns
        -------
        float
            1 is perfect, 1/2 is chance. Labels that are missing (NaN) are left out, and so are tasks without a pair.
        """
        return float(self._task_score(X, y, task, sample_weight, offset))


class TaskClassification(PredictingMeans, ClassifierMixin):
    """Classes as targets, by default two per task: logistic loss, accuracy."""

    _loss: ClassVar[Loss] = Logistic()
    _targets: ClassVar[Literal["values", "classes", "survival"]] = "classes"
    _multi_class: ClassVar[bool] = False  # whether a task may have more than two

    classes_: Any

    @takes_named_tasks
    @described_by(ROWS)
    def decision_function(self, X: Any, *, task: Any = None, offset: Any = None) -> Predictions:
        """Score of the larger class, x . w_t + b_t + offset (with the logistic loss its log-odds).

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            As `predict`. More than two classes: one more axis, in the order of ``classes_``; different ones per task:
            a list by task, as `predict_proba`.
        """
        return like(X, self._scores(X, task, offset=offset))

    @available_if(gives_probabilities)
    @takes_named_tasks
    @described_by(ROWS + UNKNOWN)
    def predict_proba(
        self, X: Any, *, task: Any = None, offset: Any = None, unknown_task: Literal["error", "mean"] = "error"
    ) -> Predictions:
        """Probabilities of the classes (logistic loss).

        Returns
        -------
        ndarray of shape (n, 2) with ``task``, (n, T, 2) without; a list of (n_t, 2) for a list
            The last axis follows ``classes_``, K of them where there are more than two.
            (n, 2) where the model was fitted to a 1-D y without task. More than two classes, and different ones per
            task: a list by task, (n, K_t) without ``task``, and with it the probabilities of that task's rows.
        """
        state = self._learned()
        if unknown_task != "error":
            state, task = with_mean_task(self, task, unknown_task)
        return like(X, state.probabilities(self._scores(X, task, state, offset), task))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._multi_class
        return tags
