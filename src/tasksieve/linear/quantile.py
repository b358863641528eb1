"""Multi-task quantile regression: the same features for all tasks, any quantile of the labels."""

from __future__ import annotations

from typing import Any, Unpack

from ..fitted.arguments import check_number
from ..fitted.documented import documented
from ..fitted.parameters import PathCVOptions, PathOptions, keep_parameters
from ..losses import Loss, Quantile
from .base import PathEstimator
from .cross_validation import PathEstimatorCV
from .linked import LinkedRegression


class _QuantileLoss(LinkedRegression):
    q: float
    smoothing: float

    @property
    def _loss(self) -> Loss:  # type: ignore[override]
        return Quantile(float(self.q), float(self.smoothing))


@documented
class MultiTaskQuantile(_QuantileLoss, PathEstimator):
    r"""Quantile regression for several tasks that selects features for all of them together.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t v_t \sum_i s_i \rho(y_i - x_i \cdot w_t - b_t)
        + \alpha \sum_j u_j \lVert W_j \rVert_2, \qquad
        \rho(r) = \max_{q - 1 \le p \le q} p\, r - \frac{\mu}{2} p^2

    with {terms} :math:`\rho` is the pinball loss
    :math:`\max(q r, (q - 1) r)` with its kink rounded over :math:`\mu` = ``smoothing``, and at most
    :math:`\mu \max(q, 1 - q)^2/2` below it.

    See Also
    --------
    MultiTaskHuber : a robust centre.
    MultiTaskRegressor : with any penalty.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(noise=[0.5, 2.0])
    >>> model = ts.MultiTaskQuantile(alpha=0.05, q=0.9).fit(X, y, task=task)
    >>> bool((y <= model.predict(X, task=task)).mean() > 0.8)
    True
    """

    def __init__(
        self, alpha: float = 1.0, *, q: float = 0.5, smoothing: float = 0.1, **options: Unpack[PathOptions]
    ) -> None:
        keep_parameters(self, locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self.q, "q", low=0, closed=False, high=1.0)
        _ = self._loss  # refuses q = 1


@documented
class MultiTaskQuantileCV(_QuantileLoss, PathEstimatorCV):
    """`MultiTaskQuantile` with ``alpha`` chosen by cross-validation along its path."""

    _estimator = MultiTaskQuantile
    _held_out_words = "mean pinball loss, not smoothed"

    def __init__(
        self, alphas: Any = None, *, q: float = 0.5, smoothing: float = 0.1, **options: Unpack[PathCVOptions]
    ) -> None:
        keep_parameters(self, locals())
