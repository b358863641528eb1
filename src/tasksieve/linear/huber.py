"""Multi-task Huber regression: the same features for all tasks, robust to outliers."""

from __future__ import annotations

from typing import Any, Unpack

from ..fitted.documented import documented
from ..fitted.parameters import PathCVOptions, PathOptions, keep_parameters
from ..losses import Huber, Loss
from .base import PathEstimator
from .cross_validation import PathEstimatorCV
from .linked import LinkedRegression


class _HuberLoss(LinkedRegression):
    delta: float

    @property
    def _loss(self) -> Loss:  # type: ignore[override]
        return Huber(float(self.delta))


@documented
class MultiTaskHuber(_HuberLoss, PathEstimator):
    r"""Robust linear regression for several tasks that selects features for all of them together.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t v_t \sum_i s_i h_\delta(y_i - x_i \cdot w_t - b_t)
        + \alpha \sum_j u_j \lVert W_j \rVert_2, \qquad
        h_\delta(r) = \begin{cases} r^2/2 & |r| \le \delta \\ \delta |r| - \delta^2/2 & |r| > \delta \end{cases}

    with {terms}

    See Also
    --------
    MultiTaskQuantile : any quantile in place of a centre.
    MultiTaskRegressor : with any penalty.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=[1.0, 1.0, -1.0])
    >>> y[::10] += 30.0  # some measurements went wrong
    >>> model = ts.MultiTaskHuber(alpha=0.3, delta=1.0).fit(X, y, task=task)
    >>> model.get_support(indices=True)
    array([0])
    >>> ts.MultiTaskLasso(alpha=0.3).fit(X, y, task=task).get_support().sum()
    np.int64(8)
    """

    def __init__(self, alpha: float = 1.0, *, delta: float = 1.35, **options: Unpack[PathOptions]) -> None:
        keep_parameters(self, locals())


@documented
class MultiTaskHuberCV(_HuberLoss, PathEstimatorCV):
    """`MultiTaskHuber` with ``alpha`` chosen by cross-validation along its path.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=[1.0, 1.0, -1.0])
    >>> y[::10] += 30.0
    >>> model = ts.MultiTaskHuberCV(delta=1.0, n_alphas=20, eps=0.05).fit(X, y, task=task)
    >>> model.coef_[:, 0].round(1)
    array([ 0.9,  0.9, -0.9])
    """

    _estimator = MultiTaskHuber
    _held_out_words = "mean Huber loss"

    def __init__(self, alphas: Any = None, *, delta: float = 1.35, **options: Unpack[PathCVOptions]) -> None:
        keep_parameters(self, locals())
