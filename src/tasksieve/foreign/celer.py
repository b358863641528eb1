r"""celer.

Lasso, ElasticNet and MultiTaskLasso are scikit-learn's with weights :math:`v_j` (``weights``) in both parts of the
penalty; LogisticRegression is :math:`\sum_i f + \lVert w \rVert_1 / C`, so that ``alpha`` = 1 / (C n). GroupLasso has
``alpha`` times :math:`\sum_g v_g \lVert w_g \rVert_2`, where v is 1 by default and not the root of a group's size.
"""

from __future__ import annotations

from .grouped import group_lasso
from .stated import GivenData, StatedProblem, penalised
from .words import Words

SOLVER = (
    "max_iter", "max_epochs", "p0", "verbose", "tol", "prune", "warm_start", "copy_X", "solver", "n_jobs", "cv", "eps",
    "n_alphas", "alphas", "precompute", "random_state", "selection",
)  # fmt: skip
ESTIMATORS = ("Lasso", "ElasticNet", "MultiTaskLasso", "LogisticRegression", "GroupLasso")


def stated(words: Words, data: GivenData) -> StatedProblem:
    """The problem of an estimator."""
    name = words.choice("estimator", of=[*ESTIMATORS, *(f"{name}CV" for name in ESTIMATORS)]).removesuffix("CV")
    d = data.n_features
    if data.sample_weight is not None:
        raise words.error("celer has no weights of rows.")
    intercept = words.flag("fit_intercept", name != "LogisticRegression")
    if name == "LogisticRegression":
        words.choice("penalty", of=("l1",), default="l1")
        strengths = 1.0 / (data.n_rows * words.strengths("C", default=1.0))
        words.finish()
        return penalised(words.error, data, strengths, loss="logistic", fit_intercept=intercept)
    strengths = words.strengths("alpha", default=1.0)
    ratio = words.number("l1_ratio", default=0.5, high=1.0) if name == "ElasticNet" else 1.0
    positive = words.flag("positive", False)
    grouped = name == "GroupLasso"
    penalty, weights = group_lasso(words, d) if grouped else ("l21", words.vector("weights", size=d))
    words.finish()
    return penalised(
        words.error,
        data,
        strengths,
        l1_ratio=ratio,
        factors=weights,
        penalty=penalty,
        loss="squared",
        positive=positive,
        fit_intercept=intercept,
    )
