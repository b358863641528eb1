r"""statsmodels: ``fit_regularized``.

.. math:: \frac1n \sum_i f(y_i, z_i) + \sum_j v_j \Bigl(r\, |w_j| + \frac{1-r}{2} w_j^2\Bigr)

v is ``alpha``, a number or one for each column, r ``L1_wt``. OLS, GLM and PHReg are so; Logit and Poisson of the
discrete models have the sum over rows in place of the mean, and r = 1. There is no intercept: a column of ones in X is
a feature like others, and penalised unless its entry of ``alpha`` is 0. OLS with method "sqrt_lasso" is
:math:`\lVert y - Xw \rVert_2 + \alpha \lVert w \rVert_1`, which is :math:`\sqrt n` times ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import Cox
from .stated import GivenData, StatedProblem, penalised
from .words import Words

SOLVER = (
    "maxiter", "cnvrg_tol", "zero_tol", "start_params", "check_step", "acc", "full_output", "disp", "callback",
    "trim_mode", "auto_trim_tol", "size_trim_tol", "qc_tol", "qc_verbose",
)  # fmt: skip
#: model, family: our loss, and whether it is a sum over rows there
LOSSES: dict[tuple[str, str], tuple[Any, bool]] = {
    ("OLS", ""): ("squared", False),
    ("GLM", "Gaussian"): ("squared", False),
    ("GLM", "Binomial"): ("logistic", False),
    ("GLM", "Poisson"): ("poisson", False),
    ("Logit", ""): ("logistic", True),
    ("Poisson", ""): ("poisson", True),
    ("PHReg", ""): (None, False),
}


def stated(words: Words, data: GivenData) -> StatedProblem:
    """The problem of ``MODEL(y, X).fit_regularized(...)``."""
    model = words.choice("model", "estimator", of=sorted({model for model, _ in LOSSES}), default="OLS")
    families = [family for known, family in LOSSES if known == model]
    family = words.choice("family", of=families, default=families[0])
    loss, summed = LOSSES[model, family]
    if model == "PHReg":
        loss = Cox(words.choice("ties", of=("efron", "breslow"), default="breslow"))
    words.refuse("refit", "a refit minimises the loss alone", False)
    words.refuse("profile_scale", "the profile likelihood is another problem", False)
    sums = ("l1", "l1_cvxopt_cp") if summed else ("elastic_net", "sqrt_lasso") if model == "OLS" else ("elastic_net",)
    method = words.choice("method", of=sums, default=sums[0])
    ratio = 1.0 if summed or method == "sqrt_lasso" else words.number("L1_wt", default=1.0, high=1.0)
    given = np.asarray(words.take("alpha", default=0.0), dtype=np.float64)
    words.put("alpha", given)
    factors: Any = None
    if given.ndim == 1 and not data.is_path:
        factors, strengths = words.vector("alpha", size=data.n_features), np.asarray(1.0)
    else:
        strengths = words.strengths("alpha")
    words.finish()
    if data.sample_weight is not None:
        raise words.error("weights of rows are not converted: grade the answer for the rows as they were given.")
    if summed:
        strengths = strengths / data.n_rows
    if method == "sqrt_lasso":
        loss, strengths = "square-root", strengths / np.sqrt(data.n_rows)
    options: dict[str, Any] = {} if model == "PHReg" else {"fit_intercept": False}
    return penalised(words.error, data, strengths, l1_ratio=ratio, factors=factors, loss=loss, **options)
