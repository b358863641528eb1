r"""scikit-survival: CoxnetSurvivalAnalysis.

.. math:: -\frac1n \log PL(w) + \alpha \sum_j v_j \Bigl(r\, |c_j w_j| + \frac{1-r}{2} (c_j w_j)^2\Bigr)

with Breslow's ties. v is ``penalty_factor``, divided by its mean; c is 1, or with ``normalize`` the length of a centred
column, which is :math:`\sqrt n` times its standard deviation.
"""

from __future__ import annotations

import numpy as np

from ..losses import Cox
from .stated import GivenData, StatedProblem, penalised
from .words import Words

SOLVER = ("n_alphas", "alpha_min_ratio", "copy_X", "tol", "max_iter", "verbose", "fit_baseline_model")


def stated(words: Words, data: GivenData) -> StatedProblem:
    """The problem of the estimator."""
    words.choice("estimator", of=("CoxnetSurvivalAnalysis",), default="CoxnetSurvivalAnalysis")
    strengths = words.strengths("alphas", "alpha")
    ratio = words.number("l1_ratio", default=0.5, high=1.0)
    factors = words.vector("penalty_factor", size=data.n_features)
    normalize = words.flag("normalize", False)
    words.finish()
    if data.sample_weight is not None:
        raise words.error("CoxnetSurvivalAnalysis has no weights of rows.")
    if not data.is_path and strengths.shape == (1,):
        strengths = strengths[0]
    return penalised(
        words.error,
        data,
        strengths,
        l1_ratio=ratio,
        factors=None if factors is None else factors * (data.n_features / factors.sum()),
        scales=float(np.sqrt(data.n_rows)) if normalize else None,
        loss=Cox("breslow"),
    )
