"""Held-out rows scored by any scorer of scikit-learn, one task at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer
from sklearn.utils.metaestimators import available_if

from ..messages import ParameterError


@dataclass(frozen=True)
class HeldOutTask:
    """Held-out rows of the task at a position of ``tasks_``, as a model of this task alone would be given them."""

    position: int
    X: Any
    y: np.ndarray
    weights: np.ndarray | None


def read_scorer(scoring: Any) -> Callable[..., float] | None:
    """``scoring`` as a callable ``scorer(estimator, X, y)``, the larger the better; None stays None."""
    if scoring is None or callable(scoring):
        return scoring
    if not isinstance(scoring, str):
        raise ParameterError(
            "scoring",
            "must be None, the name of a scorer of scikit-learn ('accuracy', 'neg_mean_absolute_error'), or a callable "
            "scorer(estimator, X, y)",
            scoring,
        )
    try:
        return get_scorer(scoring)
    except ValueError as error:
        raise ValueError(f"The 'scoring' parameter: {error}") from None


def score_or_nan(
    scorer: Callable[..., float], estimator: Any, X: Any, y: np.ndarray, weights: np.ndarray | None
) -> float:
    """The score of one task; NaN where it is not defined: too few rows, or classes that are not there. A scorer that
    takes ``sample_weight`` gets it where rows have weights."""
    weighted = weights is not None and "sample_weight" in signature(scorer).parameters
    more = {"sample_weight": weights} if weighted else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        try:
            return float(scorer(estimator, X, y, **more))
        except ValueError:
            classes = getattr(estimator, "classes_", None)
            if classes is not None and len(np.unique(y)) < len(classes):
                return float("nan")
            raise


def mean_score(scorer: Callable[..., float], model: Any, tasks: list[HeldOutTask]) -> float:
    """Mean over tasks of the scores of a fitted model; tasks whose score is not defined (NaN) are left out."""
    scores = [score_or_nan(scorer, one_task(model, held.position), held.X, held.y, held.weights) for held in tasks]
    known = [score for score in scores if not np.isnan(score)]
    return float(np.mean(known)) if known else float("nan")


def one_task(model: Any, position: int) -> Any:
    """A fitted model of several tasks as the model of one of them, as scikit-learn knows models."""
    kind = OneTaskRegressor if getattr(model, "classes_", None) is None else OneTaskClassifier
    return kind(model, position)


def _has(name: str) -> Any:
    return available_if(lambda self: hasattr(self.model, name))


class OneTask(BaseEstimator):
    """Answers of one task of a fitted model, by its position in ``tasks_``."""

    def __init__(self, model: Any = None, position: int = 0) -> None:
        self.model = model
        self.position = position

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _tasks(self, X: Any) -> np.ndarray:
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        return np.repeat(self.model.tasks_[self.position : self.position + 1], n_rows)

    def predict(self, X: Any) -> Any:
        return self.model.predict(X, task=self._tasks(X))


class OneTaskRegressor(RegressorMixin, OneTask):
    """Of a model that predicts numbers."""


class OneTaskClassifier(ClassifierMixin, OneTask):
    """Of a model that predicts classes."""

    @property
    def classes_(self) -> np.ndarray:
        classes = self.model.classes_
        return classes[self.position] if isinstance(classes, list) else classes

    @_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        return self.model.decision_function(X, task=self._tasks(X))

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(X, task=self._tasks(X))
