r"""glmnet (R), and glmstar, which has its compiled code under Python.

.. math:: \frac1{\sum s_i} \sum_i s_i f(y_i, z_i) + \lambda \sum_j v_j \Bigl(\alpha \lVert c_j W_j \rVert +
    \frac{1-\alpha}{2}\, q\, \lVert c_j W_j \rVert_2^2\Bigr)

f is half the squared error, the logistic and the multinomial log loss, :math:`e^z - y z`, or Cox's partial likelihood
with Breslow's ties over the sum of weights. v is ``penalty.factor``, divided by its mean. c is 1, or with
``standardize`` a column's standard deviation (1/n), about its mean with and without an intercept. Of the family
"gaussian" y is divided by its standard deviation before the fit (without an intercept by its root mean square), and
lambda is given for y as it is: the quadratic part has q = 1 / that deviation, else 1. Rows of W are single
coefficients; the penalty of "mgaussian" and of "multinomial" with type.multinomial = "grouped" is their length, of
"ungrouped" the sum of their absolute values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import Cox
from .stated import GivenData, StatedProblem, penalised
from .words import Words

SOLVER = (
    "thresh", "maxit", "dfmax", "pmax", "nlambda", "lambda.min.ratio", "type.gaussian", "type.logistic", "trace.it",
    "lambda_min_ratio", "df_max", "control", "covariance", "modified_newton", "type_logistic", "univariate_beta",
    "regularized_estimator", "offset_id", "weight_id", "response_id", "_family", "relax_maxp",
)  # fmt: skip

#: families by R's names, and the estimators of glmstar
FAMILIES = {
    "gaussian": "gaussian", "mgaussian": "mgaussian", "binomial": "binomial", "multinomial": "multinomial",
    "poisson": "poisson", "cox": "cox", "GaussNet": "gaussian", "MultiGaussNet": "mgaussian", "LogNet": "binomial",
    "MultiClassNet": "multinomial", "FishNet": "poisson", "CoxNet": "cox",
}  # fmt: skip


def stated(words: Words, data: GivenData) -> StatedProblem:
    """The problem of ``glmnet(x, y, family, ...)`` or of an estimator of glmstar."""
    family = FAMILIES[words.choice("family", "estimator", of=FAMILIES, default="gaussian")]
    strengths = words.strengths("lambda", "lambda_values", "s")
    alpha = words.number("alpha", default=1.0, high=1.0)
    intercept = words.flag("intercept", words.flag("fit_intercept", True)) if family != "cox" else _none(words)
    standardize = words.flag("standardize", True)
    words.refuse("relax", "a relaxed fit is another problem", False)
    words.refuse("standardize.response", "grade the answer for y divided by its deviations", False)
    words.refuse("standardize_response", "grade the answer for y divided by its deviations", False)
    words.refuse("linear_term", "a linear term is not part of our problems")
    positive = _limits(words)
    out = _left_out(words, data, intercept or family == "cox")
    factors = _factors(words, data)
    options: dict[str, Any] = {"positive": positive, "fit_intercept": intercept}
    ridge, penalty = 1.0, "l21"
    if family in ("gaussian", "mgaussian"):
        options["loss"] = "squared"
        spread = data.spread_of_y(intercept) if alpha < 1.0 and family == "gaussian" else 1.0
        ridge = 1.0 / spread if spread > 0.0 else 1.0
    elif family == "poisson":
        options["loss"] = "poisson"
    elif family == "cox":
        options["loss"] = Cox("breslow")
        del options["fit_intercept"]
    else:
        options["loss"] = "logistic"
        several = len(np.unique(np.asarray(data.y))) > 2
        if several != (family == "multinomial"):
            raise words.error(
                f"y has {'more than' * several or 'only'} two classes, which family={family!r} does not fit: with two "
                "classes its coefficients are those of family='binomial', else of 'multinomial'."
            )
        if family == "multinomial":
            kind = words.choice("type.multinomial", of=("grouped", "ungrouped"), default="ungrouped")
            penalty = "l21" if kind == "grouped" or words.flag("grouped", False) else "l11"
    words.finish()
    return penalised(
        words.error,
        data,
        strengths,
        l1_ratio=alpha,
        factors=factors,
        scales=1.0 if standardize else None,
        about_mean=intercept or family == "cox",
        penalty=penalty,
        ridge=ridge,
        left_out=out,
        **options,
    )


def _none(words: Words) -> bool:
    words.take("intercept", default=None)
    words.take("fit_intercept", default=None)
    return False


def _limits(words: Words) -> bool:
    """Whether coefficients are held above 0: other limits are other problems."""
    low = np.unique(np.asarray(words.take("lower.limits", "lower_limits", default=-np.inf), dtype=np.float64))
    high = np.unique(np.asarray(words.take("upper.limits", "upper_limits", default=np.inf), dtype=np.float64))
    if high.tolist() != [np.inf] or low.tolist() not in ([-np.inf], [0.0]):
        raise words.error("of limits only lower limits of 0 for all features are graded (positive=True).")
    return low.tolist() == [0.0]


def _left_out(words: Words, data: GivenData, constants_vanish: bool) -> np.ndarray[Any, Any] | None:
    """Features that are held at 0: those excluded (counted from 1 as in R), with an infinite factor, and without an
    intercept constant columns, which glmnet never uses."""
    d = data.n_features
    found = np.zeros(d, dtype=bool)
    excluded = words.take("exclude", default=None)
    if excluded is not None and np.size(excluded):
        places = np.asarray(excluded, dtype=np.int64).ravel() - 1
        if places.min() < 0 or places.max() >= d:
            raise words.error("exclude holds the numbers of features, counted from 1.")
        found[places] = True
    factors = words.take("penalty.factor", "penalty_factor", default=None)
    if factors is not None:
        found |= np.isinf(np.broadcast_to(np.asarray(factors, dtype=np.float64), (d,)))
        words.put("penalty.factor", np.where(found, 1.0, factors))
    if not constants_vanish:
        found |= data.moments[1] <= 1e-20 * np.square(data.moments[0])
    return np.flatnonzero(found) if found.any() else None


def _factors(words: Words, data: GivenData) -> np.ndarray[Any, Any] | None:
    found = words.vector("penalty.factor", size=data.n_features)
    if found is None:
        return None
    if not found.any():
        raise words.error("all penalty factors are 0: nothing is penalised.")
    return np.asarray(found * (data.n_features / found.sum()))
