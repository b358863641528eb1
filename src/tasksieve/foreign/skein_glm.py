r"""skein-glm: its convex estimators.

.. math:: \frac1{n q} \sum_i s_i f(y_i, z_i) + \lambda \sum_g v_g \Bigl(\alpha \lVert W_g \rVert + \frac{1-\alpha}{2}
    \lVert W_g \rVert_2^2\Bigr)

q is the number of outputs ("MultiTask...") or classes ("Multinomial..."), else 1: ``alpha`` of ours is q times theirs.
v is ``weights``, 1 by default for features and groups alike. In the Lassos :math:`\alpha = 1`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import Cox
from ..penalties import Groups
from .stated import GivenData, StatedProblem, penalised
from .words import Words

SOLVER = (
    "n_lambdas", "lambda_min_ratio", "max_iter", "tol", "screening", "acceleration", "max_outer", "outer_tol",
    "parallel", "cv", "n_folds", "random_state",
)  # fmt: skip
#: the loss, and whether the penalty is on groups of features, by the beginning of a name
LOSSES = {
    "ElasticNet": "squared", "GroupLasso": "squared", "GroupElasticNet": "squared", "MultiTaskLasso": "squared",
    "MultiTaskElasticNet": "squared", "LogisticLasso": "logistic", "LogisticElasticNet": "logistic",
    "LogisticGroupLasso": "logistic", "MultinomialLasso": "logistic", "MultinomialElasticNet": "logistic",
    "PoissonLasso": "poisson", "PoissonElasticNet": "poisson", "PoissonGroupLasso": "poisson", "CoxGroupLasso": None,
}  # fmt: skip
ENDS = ("PathRegressor", "PathClassifier", "Regressor", "Classifier", "PathCV")


def stated(words: Words, data: GivenData) -> StatedProblem:
    """The problem of an estimator."""
    known = {f"{name}{end}": name for name in LOSSES for end in ENDS}
    given = words.take("estimator")
    if isinstance(given, str) and any(part in given for part in ("MCP", "SCAD", "Exponential", "Bridge")):
        raise words.error(f"{given}: its penalty is not convex: there is no dual problem that bounds it.")
    words.put("estimator", given)
    name = known[words.choice("estimator", of=known)]
    loss: Any = LOSSES[name]
    strengths = words.strengths("lambda_", "lambdas", "lambda")
    ratio = words.number("alpha", default=0.5, high=1.0) if "ElasticNet" in name else 1.0
    words.refuse("standardize", "give X with its columns divided by their deviations", False)
    options: dict[str, Any] = {"penalty": "l21"}
    if name == "CoxGroupLasso":
        loss = Cox(words.choice("ties", of=("efron", "breslow"), default="breslow"))
    else:
        options["fit_intercept"] = words.flag("fit_intercept", True)
    if "Group" in name:
        labels = np.asarray(words.take("groups"))
        if labels.shape != (data.n_features,):
            raise words.error("groups must hold the group of each feature.")
        sizes = np.unique(labels, return_counts=True)[1]
        weights = words.vector("weights", size=len(sizes))
        options["penalty"] = Groups(labels, weights=None)
    else:
        weights = words.vector("weights", size=data.n_features)
    words.finish()
    shares = 1
    if name.startswith("MultiTask"):
        shares = np.asarray(data.y).shape[1]
    elif name.startswith("Multinomial"):
        shares = len(np.unique(np.asarray(data.y)))
        if shares < 3:
            raise words.error("with two classes grade the answer of LogisticLasso: ours has one row for them.")
    return penalised(words.error, data, strengths * shares, l1_ratio=ratio, factors=weights, loss=loss, **options)
