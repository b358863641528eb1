r"""PySpark: LinearRegression and LogisticRegression of ``pyspark.ml``.

.. math:: \frac1{\sum s_i} \sum_i s_i f(y_i, z_i) + \lambda \sum_j \Bigl(r\, |c_j w_j| + \frac{1-r}{2}\, q\, (c_j
    w_j)^2\Bigr)

:math:`\lambda` is ``regParam``, r ``elasticNetParam``; c_j the standard deviation of a column, or with
standardization=False 1. LinearRegression fits y divided by its standard deviation, with regParam for y as it is, so
that there q = 1 / that deviation, else 1. Its solver "normal" (weighted least squares; "auto" up to 4,096 columns)
takes both deviations with the divisor n, "l-bfgs" with n - 1, as LogisticRegression does. Several classes are
multinomial, with the sum of absolute values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .stated import GivenData, StatedProblem, penalised
from .words import Words

SOLVER = (
    "maxIter", "tol", "aggregationDepth", "maxBlockSizeInMB", "featuresCol", "labelCol", "predictionCol",
    "weightCol", "threshold", "thresholds", "rawPredictionCol", "probabilityCol",
)  # fmt: skip

NORMAL_COLUMNS = 4096  # up to which LinearRegression's solver "auto" is "normal"


def stated(words: Words, data: GivenData) -> StatedProblem:
    """The problem of an estimator."""
    name = words.choice("estimator", of=("LinearRegression", "LogisticRegression"))
    strengths = words.strengths("regParam")
    ratio = words.number("elasticNetParam", default=0.0, high=1.0)
    intercept, standardize = words.flag("fitIntercept", True), words.flag("standardization", True)
    n = data.n_rows
    larger = float(np.sqrt(n / (n - 1.0)))  # deviations with the divisor n - 1
    if name == "LinearRegression":
        solver = words.choice("solver", of=("auto", "normal", "l-bfgs"), default="auto")
        if solver == "normal" or (solver == "auto" and data.n_features <= NORMAL_COLUMNS):
            larger = 1.0
        words.choice("loss", of=("squaredError",), default="squaredError")
        words.refuse("epsilon", "of the Huber loss, which is not graded", 1.35)
    else:
        words.choice("family", of=("auto", "binomial", "multinomial"), default="auto")
    for bound in ("lower", "upper"):
        words.refuse(f"{bound}BoundsOnCoefficients", "bounds are not part of our problems")
        words.refuse(f"{bound}BoundsOnIntercepts", "bounds are not part of our problems")
    words.finish()
    if data.sample_weight is not None:
        raise words.error("weights of rows are not converted: give each row as often as it counts.")
    options: dict[str, Any] = {"loss": "logistic", "penalty": "l21"}
    ridge = 1.0
    if name == "LinearRegression":
        options["loss"] = "squared"
        ridge = 1.0 / (larger * data.spread_of_y(True)) if ratio < 1.0 else 1.0
    elif len(np.unique(np.asarray(data.y))) > 2:
        options["penalty"] = "l11"
    return penalised(
        words.error,
        data,
        strengths,
        l1_ratio=ratio,
        scales=larger if standardize else None,
        about_mean=intercept,
        ridge=ridge,
        fit_intercept=intercept,
        **options,
    )
