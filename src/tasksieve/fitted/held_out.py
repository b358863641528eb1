"""Held-out rows scored by any scorer of scikit-learn, one task at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer
from sklearn.utils.metaestimators import available_if

from ..losses.partial_likelihood import PartialLikelihood
from ..messages import ParameterError
from ..outcomes import encode, read_outcome
from .concordance import concordance

RESPONSES = ("predict", "predict_proba", "decision_function")
SURVIVAL_SCORES = ("concordance", "partial_likelihood")


class SurvivalScorer:
    """Scores of survival models by name: ``concordance``, and ``partial_likelihood``, minus the deviance for each event
    of the held-out rows by themselves."""

    def __init__(self, name: str, ties: str) -> None:
        self.name, self._ties = name, ties

    def __call__(self, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None) -> float:
        y = encode(read_outcome(y))[0]
        risk, weights = np.asarray(estimator.predict(X)), np.ones(len(y)) if sample_weight is None else sample_weight
        if self.name == "concordance":
            return concordance(y, risk, weights)
        own = PartialLikelihood(y, weights, self._ties)
        if not own.total > 0.0:
            raise ValueError(
                "scoring='partial_likelihood' judges held-out rows by themselves, and those of a task in a fold have "
                "no event: use fewer folds, or scoring=None, which judges them beside the rows learned from."
            )
        return -float(own.deviance(risk[:, None])[0]) / own.total


def read_scorer(scoring: Any, ties: str | None = None) -> Callable[..., float] | None:
    """``scoring`` as a callable ``scorer(estimator, X, y)``, the larger the better; None stays None. `ties` are those
    of a survival model."""
    if scoring is None or callable(scoring):
        return scoring
    if scoring in SURVIVAL_SCORES:
        return SurvivalScorer(scoring, ties or "efron")
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


def mean_score(
    scorer: Callable[..., float], model: Any, tasks: Mapping[int, tuple[Any, np.ndarray, np.ndarray | None]]
) -> float:
    """Mean over tasks of the scores of a fitted model; tasks whose score is not defined (NaN) are left out.
    Held-out rows are X, y and weights (None: all are 1), by the position of their task in ``tasks_``."""
    scores = [score_or_nan(scorer, one_task(model, position), *held) for position, held in tasks.items()]
    known = [score for score in scores if not np.isnan(score)]
    return float(np.mean(known)) if known else float("nan")


def one_task(model: Any, position: int) -> OneTask:
    """A fitted model of several tasks as the model of one of them."""
    task, classes = model.tasks_[position : position + 1], getattr(model, "classes_", None)

    def answers_of(method: str) -> Callable[[Any], Any]:
        return lambda X: getattr(model, method)(X, task=np.repeat(task, X.shape[0] if hasattr(X, "shape") else len(X)))

    answers = {method: answers_of(method) for method in RESPONSES if hasattr(model, method)}
    if classes is None:
        return OneTaskRegressor(answers)
    return OneTaskClassifier(answers, classes[position] if isinstance(classes, list) else classes)


def _has(method: str) -> Any:
    return available_if(lambda self: method in self.answers)


class OneTask(BaseEstimator):
    """One task of a fitted model, as scikit-learn knows models: by the names of methods, what answers rows."""

    def __init__(self, answers: Mapping[str, Callable[[Any], Any]]) -> None:
        self.answers = answers

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Any:
        return self.answers["predict"](X)


class OneTaskRegressor(RegressorMixin, OneTask):
    """Of a model that predicts numbers."""


class OneTaskClassifier(ClassifierMixin, OneTask):
    """Of a model that predicts classes."""

    def __init__(self, answers: Mapping[str, Callable[[Any], Any]], classes: np.ndarray) -> None:
        super().__init__(answers)
        self.classes = self.classes_ = classes

    @_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        return self.answers["decision_function"](X)

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        return self.answers["predict_proba"](X)
