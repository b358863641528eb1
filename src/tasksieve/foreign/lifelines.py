r"""lifelines: CoxPHFitter.

.. math:: -\frac1n \log PL(w) + \sum_j v_j \Bigl(r\, |c_j w_j| + \frac{1-r}{2} (c_j w_j)^2\Bigr)

with Efron's ties; v is ``penalizer``, r ``l1_ratio``, c_j the standard deviation of a column with the divisor n - 1.
The fitter replaces |x| by a smooth function that approaches it from step
to step, so that its coefficients are never exactly 0: what is graded is the problem that its documentation states, with
|x| itself, and every feature counts as one that it reports unless the coefficients are rounded before.
"""

from __future__ import annotations

import numpy as np

from ..losses import Cox
from .stated import GivenData, StatedProblem, penalised
from .words import Words

SOLVER = (
    "alpha",
    "label",
    "baseline_estimation_method",
    "n_baseline_knots",
    "knots",
    "breakpoints",
    "fit_options",
)
NOTE = (
    "lifelines smooths |x|, so that none of its coefficients is exactly 0; graded is the problem that its "
    "documentation states"
)


def stated(words: Words, data: GivenData) -> StatedProblem:
    """The problem of the fitter."""
    words.choice("estimator", of=("CoxPHFitter",), default="CoxPHFitter")
    ratio = words.number("l1_ratio", default=0.0, high=1.0)
    n = data.n_rows
    given = np.asarray(words.take("penalizer", default=0.0), dtype=np.float64)
    words.refuse("strata", "give strata with the labels: tasksieve.survival(..., strata=...)")
    if given.ndim == 1 and not data.is_path:
        words.put("penalizer", given)
        factors, strengths = words.vector("penalizer", size=data.n_features), np.asarray(1.0)
    else:
        words.put("penalizer", given)
        factors, strengths = None, words.strengths("penalizer")
    words.finish()
    if data.sample_weight is not None:
        raise words.error("weights of rows are not converted: give each row as often as it counts.")
    scales = float(np.sqrt(n / (n - 1.0)))
    return penalised(
        words.error,
        data,
        strengths,
        l1_ratio=ratio,
        factors=factors,
        scales=scales,
        loss=Cox("efron"),
        note=NOTE,
    )
