r"""scikit-learn: its sparse linear models.

=========================================== ===================================================================
Lasso, LassoLars, MultiTaskLasso            ours (``alpha``); MultiTaskLasso: the lengths of rows
ElasticNet, MultiTaskElasticNet             the same with ``alpha * l1_ratio`` and the ridge ``alpha (1 - l1_ratio)``
LogisticRegression                          :math:`C \sum_i s_i f + r \lVert W \rVert_1 + \tfrac{1-r}{2} \lVert W
                                            \rVert_2^2`: ``alpha`` = r / (C times the sum of weights), those of classes
                                            included. solver="liblinear" penalises the intercept: a column of
                                            ``intercept_scaling`` in X stands for it.
LinearSVC(penalty="l1")                     :math:`C \sum_i s_i \max(0, 1 - y_i z_i)^2 + \lVert w \rVert_1`, which is
                                            twice our squared hinge: ``alpha`` = 1 / (2 C sum of weights); the intercept
                                            is penalised as by liblinear
SGDClassifier, SGDRegressor                 the mean loss with ``alpha * l1_ratio`` and the ridge ``alpha (1 -
                                            l1_ratio)``; "squared_hinge" is twice ours, epsilon is the Huber delta
=========================================== ===================================================================

Sample weights are divided by their mean, as ours are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import Huber
from .stated import GivenData, StatedProblem, penalised
from .words import Words

SOLVER = (
    "tol", "max_iter", "selection", "random_state", "warm_start", "precompute", "copy_X", "n_jobs", "verbose", "eps",
    "fit_path", "jitter", "learning_rate", "eta0", "power_t", "shuffle", "early_stopping", "validation_fraction",
    "n_iter_no_change", "n_alphas", "alphas", "cv", "Cs", "l1_ratios", "scoring", "refit", "method",
)  # fmt: skip

LEAST_SQUARES = ("Lasso", "ElasticNet", "LassoLars", "MultiTaskLasso", "MultiTaskElasticNet")
ONLY_RIDGE = (
    "Ridge", "RidgeClassifier", "PoissonRegressor", "GammaRegressor", "TweedieRegressor", "HuberRegressor",
)  # fmt: skip
OTHERS = {
    "QuantileRegressor": "its loss is not smooth, and ours is smoothed (Quantile): they are different problems.",
    "Lars": "it minimises no objective.",
    "OrthogonalMatchingPursuit": "it minimises no convex objective.",
}


def stated(words: Words, data: GivenData) -> StatedProblem:
    """The problem of an estimator."""
    name = words.take("estimator")
    name = name[:-2] if isinstance(name, str) and name.endswith("CV") else name
    if name in ONLY_RIDGE:
        raise words.error(f"{name} has a ridge alone: with it nothing is selected, and there is nothing to prove.")
    if name in OTHERS:
        raise words.error(f"{name}: {OTHERS[name]}")
    if name in LEAST_SQUARES:
        return _least_squares(name, words, data)
    if name == "LogisticRegression":
        return _logistic(words, data)
    if name == "LinearSVC":
        return _svc(words, data)
    if name in ("SGDClassifier", "SGDRegressor"):
        return _sgd(name, words, data)
    known = ", ".join([*LEAST_SQUARES, "LogisticRegression", "LinearSVC", "SGDClassifier", "SGDRegressor"])
    raise words.error(f"estimator must be one of {known} (or of these with CV); got {name!r}.")


def _least_squares(name: str, words: Words, data: GivenData) -> StatedProblem:
    strengths = words.strengths("alpha", default=1.0)
    mixed = words.number("l1_ratio", default=0.5, high=1.0) if "Elastic" in name else 1.0
    positive, intercept = words.flag("positive", False), words.flag("fit_intercept", True)
    words.finish()
    return penalised(
        words.error,
        data,
        strengths,
        l1_ratio=mixed,
        loss="squared",
        positive=positive,
        fit_intercept=intercept,
    )


def _total_weight(words: Words, data: GivenData) -> tuple[float, dict[str, Any]]:
    """The sum of weights with those of classes, and what `grade` is told of them."""
    given = words.take("class_weight", default=None)
    n = data.n_rows
    own = np.ones(n) if data.sample_weight is None else np.broadcast_to(data.sample_weight, (n,))
    if given is None:
        return float(np.sum(own)), {}
    from sklearn.utils.class_weight import compute_class_weight

    y = np.asarray(data.y)
    classes, codes = np.unique(y, return_inverse=True)
    if isinstance(given, str) and given == "balanced" and data.sample_weight is not None:
        raise words.error(
            'class_weight="balanced" beside sample_weight differs between versions of scikit-learn: give '
            "class_weight as a dict, as they were used."
        )
    factors = compute_class_weight(given, classes=classes, y=y)
    words_of = {label: float(factor) for label, factor in zip(classes.tolist(), factors, strict=True)}
    return float(np.sum(own * factors[codes])), {"class_weight": words_of}


def _mixed(words: Words) -> float:
    """The share of the L1 norm, in the words of old versions or of new ones."""
    ratio, kind = words.take("l1_ratio", default=None), words.take("penalty", default=None)
    if kind in (None, "deprecated"):
        share = 0.0 if ratio is None else float(ratio)
    elif kind == "l1":
        share = 1.0
    elif kind == "elasticnet":
        share = float(0.5 if ratio is None else ratio)
    else:
        share = 0.0
    return share


def _logistic(words: Words, data: GivenData) -> StatedProblem:
    strength = 1.0 / words.strengths("C", default=1.0)
    share, solver = _mixed(words), words.take("solver", default="saga")
    intercept, scaling = words.flag("fit_intercept", True), words.number("intercept_scaling", default=1.0)
    words.refuse("dual", "l1 has no dual formulation there", False)
    words.refuse("multi_class", "classes one against the rest are problems of their own", "auto")
    total, options = _total_weight(words, data)
    words.finish()
    several = len(np.unique(np.asarray(data.y))) > 2
    if several and solver == "liblinear":
        raise words.error(
            "liblinear fits several classes one against the rest: grade the answer of each, with its labels."
        )
    held = scaling if solver == "liblinear" and intercept else None
    return penalised(
        words.error,
        data,
        strength / total,
        l1_ratio=share,
        loss="logistic",
        penalty="l11" if several else "l21",
        fit_intercept=intercept and held is None,
        constant=held,
        **options,
    )


def _svc(words: Words, data: GivenData) -> StatedProblem:
    strength = 1.0 / words.strengths("C", default=1.0)
    intercept, scaling = words.flag("fit_intercept", True), words.number("intercept_scaling", default=1.0)
    words.refuse("multi_class", "only two classes are graded", "ovr")
    words.refuse("dual", "l1 has no dual formulation there", False)
    words.choice("loss", of=("squared_hinge",), default="squared_hinge")
    share = 1.0 if words.take("penalty", default="l2") == "l1" else 0.0
    total, options = _total_weight(words, data)
    words.finish()
    if len(np.unique(np.asarray(data.y))) > 2:
        raise words.error("LinearSVC fits several classes one against the rest: grade the answer of each.")
    return penalised(
        words.error,
        data,
        strength / (2.0 * total),
        l1_ratio=share,
        loss="squared_hinge",
        fit_intercept=False,
        constant=scaling if intercept else None,
        **options,
    )


def _sgd(name: str, words: Words, data: GivenData) -> StatedProblem:
    strengths = words.strengths("alpha", default=1e-4)
    kind = words.choice("penalty", of=("l1", "elasticnet", "l2"), default="l2")
    ratio = words.number("l1_ratio", default=0.15, high=1.0)
    intercept = words.flag("fit_intercept", True)
    epsilon = words.number("epsilon", default=0.1)
    words.refuse("average", "an average of steps minimises nothing", False)
    words.refuse("class_weight", "there, weights of classes are not divided by their mean: give sample_weight")
    losses: dict[str, tuple[Any, float]] = (
        {"squared_error": ("squared", 1.0), "huber": (Huber(delta=epsilon), 1.0)}
        if name == "SGDRegressor"
        else {"log_loss": ("logistic", 1.0), "squared_hinge": ("squared_hinge", 0.5)}
    )
    default = "squared_error" if name == "SGDRegressor" else "hinge"
    loss, part = losses[words.choice("loss", of=losses, default=default)]
    words.finish()
    if data.sample_weight is not None:
        raise words.error(f"{name} does not divide its weights by their mean: scale alpha, and give them to grade.")
    if name == "SGDClassifier" and len(np.unique(np.asarray(data.y))) > 2:
        raise words.error("SGDClassifier fits several classes one against the rest: grade the answer of each.")
    share = {"l1": 1.0, "elasticnet": ratio, "l2": 0.0}[kind]
    return penalised(words.error, data, strengths * part, l1_ratio=share, loss=loss, fit_intercept=intercept)
