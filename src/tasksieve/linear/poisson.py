"""Multi-task Poisson regression: the same features for all tasks, counts or rates."""

from __future__ import annotations

from typing import Any, Unpack

from ..fitted.documented import documented
from ..fitted.parameters import PathCVOptions, PathOptions, keep_parameters
from ..losses import Loss, Poisson
from .base import PathEstimator
from .cross_validation import PathEstimatorCV
from .linked import LinkedRegression


class _PoissonLoss(LinkedRegression):
    @property
    def _loss(self) -> Loss:  # type: ignore[override]
        return Poisson()


@documented
class MultiTaskPoisson(_PoissonLoss, PathEstimator):
    r"""Poisson regression for several tasks that selects features for all of them together.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t v_t \sum_i s_i \bigl(e^{z_i} - y_i z_i\bigr)
        + \alpha \sum_j u_j \lVert W_j \rVert_2, \qquad z_i = x_i \cdot w_t + b_t,\ y_i \ge 0

    with {terms} `predict` gives rates, :math:`e^z`; an ``offset``, added to z, is the logarithm of
    the exposure, and with ``offset=0.0`` rates are per unit of exposure.

    Parameters
    ----------
    tol : float, default=1e-6
        Stop when the dual gap is at most ``tol`` times half the Poisson deviance of the empty model.
    screening : {"auto", "midpoint", "gap", None}, default="auto"
        Rule that discards features before and while solving; None: no screening.

    Attributes
    ----------
    coef_ : ndarray of shape (T, d)
        Coefficients W', a row per task: logarithms of rates.
    null_objective_ : float
        Half the deviance of the empty model (over :math:`\bar n`): its objective above that of a perfect fit.
        ``dual_gap_`` is at most ``tol`` times this, or there was a warning.

    See Also
    --------
    MultiTaskRegressor : with any penalty.

    Notes
    -----
    A task whose counts are all zero has no best intercept: it is kept finite, and there is a warning. The loss is not
    smooth; the safe test is about an ellipsoid that every gap gives ([docs](models/poisson.md)).

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks("counts", effects=[0.8, 1.2])
    >>> model = ts.MultiTaskPoisson(alpha=0.8).fit(X, y, task=task)
    >>> model.get_support(indices=True)
    array([0])
    >>> bool(model.predict(X, task=task).min() > 0)
    True
    """

    def __init__(self, alpha: float = 1.0, **options: Unpack[PathOptions]) -> None:
        keep_parameters(self, locals())


@documented
class MultiTaskPoissonCV(_PoissonLoss, PathEstimatorCV):
    """`MultiTaskPoisson` with ``alpha`` chosen by cross-validation along its path."""

    _estimator = MultiTaskPoisson
    _example = ("'counts'", 0.5)
    _held_out_words = "mean Poisson deviance"

    def __init__(self, alphas: Any = None, **options: Unpack[PathCVOptions]) -> None:
        keep_parameters(self, locals())
