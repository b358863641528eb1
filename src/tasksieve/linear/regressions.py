"""Regressions by another loss than the squared one: what labels may be, what is predicted, how it is scored."""

from __future__ import annotations

from typing import Any, Unpack

from ..fitted.arguments import check_number
from ..fitted.documented import documented
from ..fitted.model import TaskLinearModel
from ..fitted.parameters import PathCVOptions, PathOptions, keep_parameters
from ..fitted.predicting import TaskRegression
from ..losses import Huber, Loss, Poisson, Quantile
from ..tasks import is_task_list, map_rows
from .base import PathEstimator
from .cross_validation import PathEstimatorCV


class LinkedRegression(TaskRegression, TaskLinearModel):
    """A regression that leaves it to its loss what numbers mean."""

    def _predict(self, X: Any, task: Any, state: Any = None, offset: Any = None) -> Any:
        scores = super()._predict(X, task, state, offset)
        link = self._loss.link
        if is_task_list(X):
            return [link(part) for part in scores]
        return map_rows(lambda rows, _: link(rows), scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._loss.labels in ("counts", "positive")
        return tags


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
    smooth; the safe test is about an ellipsoid that every gap gives (:doc:`/models/poisson`).

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
