r"""skglm: its convex estimators.

Lasso, WeightedLasso (``weights``), ElasticNet, MultiTaskLasso and GroupLasso as in celer; SparseLogisticRegression is
the mean logistic loss with ``alpha * l1_ratio`` and the ridge ``alpha (1 - l1_ratio)``; CoxEstimator the partial
likelihood over n, ``method`` for ties; SqrtLasso :math:`\lVert y - Xw - b \rVert_2 + \alpha \lVert w \rVert_1`, which
is :math:`\sqrt n` times ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import Cox
from .grouped import group_lasso
from .stated import GivenData, StatedProblem, penalised
from .words import Words

SOLVER = (
    "max_iter", "max_epochs", "p0", "verbose", "tol", "warm_start", "ws_strategy", "copy_X", "max_pn_iter", "solver",
)  # fmt: skip
LOSSES: dict[str, Any] = {
    "Lasso": "squared", "WeightedLasso": "squared", "ElasticNet": "squared", "MultiTaskLasso": "squared",
    "GroupLasso": "squared", "SparseLogisticRegression": "logistic", "CoxEstimator": None, "SqrtLasso": "square-root",
}  # fmt: skip
#: the default share of the L1 norm
RATIOS = {"ElasticNet": 0.5, "SparseLogisticRegression": 1.0, "CoxEstimator": 0.7}
OTHERS = {
    "MCPRegression": "its penalty is not convex: there is no dual problem that bounds it.",
    "LinearSVC": "it has no sparse penalty.",
    "GeneralizedLinearEstimator": "name the estimator with the same datafit and penalty.",
}


def stated(words: Words, data: GivenData) -> StatedProblem:
    """The problem of an estimator."""
    name = words.take("estimator")
    if name in OTHERS:
        raise words.error(f"{name}: {OTHERS[name]}")
    words.put("estimator", name)
    name = words.choice("estimator", of=LOSSES)
    d, loss = data.n_features, LOSSES[name]
    if data.sample_weight is not None:
        raise words.error("these estimators have no weights of rows.")
    strengths = words.strengths("alpha", default=1.0)
    ratio = words.number("l1_ratio", default=RATIOS[name], high=1.0) if name in RATIOS else 1.0
    options: dict[str, Any] = {"penalty": "l21"}
    weights = None
    if name == "CoxEstimator":
        loss = Cox(words.choice("method", of=("efron", "breslow"), default="efron"))
    else:
        options["fit_intercept"] = words.flag("fit_intercept", True)
    if name == "GroupLasso":
        options["penalty"], weights = group_lasso(words, d)
    elif name == "WeightedLasso":
        weights = words.vector("weights", size=d)
    elif name == "SqrtLasso":
        strengths = strengths / np.sqrt(data.n_rows)
    options["positive"] = words.flag("positive", False)
    words.finish()
    return penalised(words.error, data, strengths, l1_ratio=ratio, factors=weights, loss=loss, **options)
