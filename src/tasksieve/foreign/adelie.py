r"""adelie: ``grpnet``.

.. math:: \ell(z) + \lambda \sum_g v_g \Bigl(\alpha \lVert W_g \rVert_2 + \frac{1-\alpha}{2} \lVert W_g \rVert_2^2\Bigr)

with weights that sum to 1 in the loss, divided by the number of outputs for "multigaussian" and "multinomial":
``alpha`` of ours is that number times theirs. Groups are given by their first features, and v (``penalty``) is by
default the root of a group's size, for several outputs of the size times their number. Of "cox" ``tie_method`` is
"efron" by default.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import Cox
from ..penalties import Groups
from .grouped import labels_of_starts
from .stated import GivenData, StatedProblem, penalised
from .words import Words

SOLVER = (
    "irls_max_iters", "irls_tol", "max_iters", "tol", "adev_tol", "ddev_tol", "newton_tol", "newton_max_iters",
    "n_threads", "early_exit", "screen_rule", "min_ratio", "lmda_path_size", "max_screen_size", "max_active_size",
    "pivot_subset_ratio", "pivot_subset_min", "pivot_slack_ratio", "check_state", "progress_bar", "warm_start",
)  # fmt: skip
LOSSES: dict[str, Any] = {
    "gaussian": "squared", "multigaussian": "squared", "binomial": "logistic", "multinomial": "logistic",
    "poisson": "poisson", "cox": None,
}  # fmt: skip


def stated(words: Words, data: GivenData) -> StatedProblem:
    """The problem of ``grpnet(X, glm.NAME(y), ...)``."""
    family = words.choice("glm", "family", of=LOSSES, default="gaussian")
    loss = LOSSES[family]
    strengths = words.strengths("lmda_path", "lmda")
    ratio = words.number("alpha", default=1.0, high=1.0)
    words.refuse("constraints", "constraints are not part of our problems")
    options: dict[str, Any] = {}
    intercept = words.flag("intercept", True)
    if family == "cox":
        loss = Cox(words.choice("tie_method", of=("efron", "breslow"), default="efron"))
    else:
        options["fit_intercept"] = intercept
    outputs = 1
    if family == "multigaussian":
        outputs = np.asarray(data.y).shape[1]
    elif family == "multinomial":
        outputs = len(np.unique(np.asarray(data.y)))
        if outputs < 3:
            raise words.error("with two classes grade the answer of glm.binomial: ours has one row for them.")
    d = data.n_features
    groups = words.take("groups", default=None)
    labels = np.arange(d) if groups is None else labels_of_starts(words, groups, d)
    sizes = np.bincount(labels)
    weights = words.vector("penalty", size=len(sizes))
    if weights is None:
        weights = np.sqrt(sizes * float(outputs))
    words.finish()
    single = len(sizes) == d
    return penalised(
        words.error,
        data,
        strengths * outputs,
        l1_ratio=ratio,
        factors=weights,
        penalty="l21" if single else Groups(labels, weights=None),
        loss=loss,
        **options,
    )
