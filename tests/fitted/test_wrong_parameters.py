"""Every parameter of every public estimator: a wrong value is refused by the name of the parameter."""

from __future__ import annotations

import inspect
import re
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer

import tasksieve as ts
from tasksieve.fitted.parameters import check_common

PUBLIC = {name: getattr(ts, name) for name in ts.__all__}
ESTIMATORS = {
    name: kind for name, kind in PUBLIC.items() if inspect.isclass(kind) and issubclass(kind, BaseEstimator)
}

WRONG = {"text": "no such word", "nan": float("nan"), "negative": -1, "object": object(), "list": ["a", None]}

# (parameter, wrong value) that is right after all, and why.
RIGHT = {
    ("n_jobs", "negative"): "all processors, as everywhere",
    ("alphabet", "text"): "any letters are an alphabet",
    ("task_feature", "text"): "a name",
    ("task_feature", "negative"): "a name",
    ("task_feature", "nan"): "a name",
    ("task_feature", "object"): "a name",
}


def required(kind: type) -> dict[str, Any]:
    """Arguments without which there is no estimator."""
    if kind is ts.StabilitySelection:
        return {"estimator": ts.MultiTaskLasso()}
    if kind is ts.Pretraining:
        return {"estimator": ts.MultiTaskLassoCV()}
    if kind is ts.KnockoffSelection:
        return {"model": ts.MultiTaskLasso()}
    if kind is ts.MultipleImputation:
        return {"model": ts.MultiTaskLasso(), "imputer": SimpleImputer(), "m": 1}
    return {}


def try_to_fit(model: Any) -> None:
    rng = np.random.default_rng(0)
    if isinstance(model, ts.TaskKFold):
        list(model.split(np.zeros((24, 1))))
        return
    if isinstance(model, ts.WeightedDegreeHasher):
        model.fit(["ACGTACGTAC", "ACGTACGTAA"])
        return
    X, task = rng.standard_normal((24, 6)), np.repeat([0, 1], 12)
    classes = "Classifier" in type(model).__name__ or "Logistic" in type(model).__name__
    y = (np.arange(24) % 2) if classes or hasattr(model, "class_weight") else np.abs(X[:, 0]).round()
    if isinstance(model, ts.MultiTaskCox | ts.MultiTaskCoxCV):
        y = ts.survival(1.0 + np.arange(24.0), np.arange(24) % 2)
    if isinstance(model, ts.MultinomialOWL | ts.MultinomialOWLCV):
        model.fit(X, np.arange(24) % 3)
    else:
        model.fit(X, y, task=task)


CASES = [
    (name, parameter, wrong)
    for name, kind in ESTIMATORS.items()
    for parameter in inspect.signature(kind).parameters
    for wrong in WRONG
    if (parameter, wrong) not in RIGHT
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "parameter"), sorted({case[:2] for case in CASES}))
def test_a_wrong_value_is_refused_by_name(name: str, parameter: str) -> None:
    kind = ESTIMATORS[name]
    for wrong in [case[2] for case in CASES if case[:2] == (name, parameter)]:
        model = kind(**{**required(kind), parameter: WRONG[wrong]})
        try:
            try_to_fit(model)
        except ValueError as error:
            words = str(error)
        except ImportError as error:  # torch may not be here
            words = str(error) if parameter == "device" else ""
        except Exception as error:
            raise AssertionError(f"{parameter}={WRONG[wrong]!r}: {type(error).__name__}: {error}") from error
        else:
            raise AssertionError(f"{parameter}={WRONG[wrong]!r} was accepted")
        assert re.search(rf"\b{parameter}\b", words), words


CHOICES = [
    (name, parameter, get_args(hint))
    for name, kind in ESTIMATORS.items()
    for parameter, hint in get_type_hints(kind.__init__).items()
    if get_origin(hint) is Literal
]


@pytest.mark.parametrize(("name", "parameter", "choices"), CHOICES)
def test_a_wrong_word_is_answered_with_the_right_ones(name: str, parameter: str, choices: tuple[Any, ...]) -> None:
    kind = ESTIMATORS[name]
    with pytest.raises(ValueError, match=f"'{parameter}'") as refused:
        try_to_fit(kind(**{**required(kind), parameter: "no such word"}))
    assert all(repr(choice) in str(refused.value) for choice in choices), refused.value


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_jobs": "2"}, "The 'n_jobs' parameter must be None or a whole number other than 0"),
        ({"n_jobs": 0}, "The 'n_jobs' parameter must be None or a whole number other than 0"),
        ({"positive": float("nan")}, "The 'positive' parameter must be True or False; got nan"),
        ({"fit_intercept": "no"}, "The 'fit_intercept' parameter must be True or False; got 'no'"),
        ({"standardize": None}, "The 'standardize' parameter must be True or False; got None"),
        ({"feature_weights": ["1", "two"]}, "The 'feature_weights' parameter must be None, or an array of one number"),
        ({"verbose": "yes"}, "The 'verbose' parameter must be an integer >= 0"),
    ],
)
def test_words_of_refusals(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        try_to_fit(ts.MultiTaskLasso(**given))


def test_a_generator_is_not_asked_by_the_check() -> None:
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    check_common(ts.MultiTaskLassoCV(random_state=one))
    assert one.integers(1000) == other.integers(1000)


@pytest.mark.parametrize("kind", [ts.GraphSVR, ts.OnlineMultiTaskRegressor])
def test_any_generator_will_do(kind: Any) -> None:
    for random_state in (None, 3, np.int64(3), np.random.RandomState(3), np.random.default_rng(3)):
        try_to_fit(kind(random_state=random_state))
