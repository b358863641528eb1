"""Multi-task elastic net: the multi-task Lasso with a ridge."""

from __future__ import annotations

from typing import Any, Unpack

from ..fitted.documented import documented
from ..fitted.parameters import LassoCVOptions, LassoOptions, keep_parameters
from .base import TaskRegression, check_number
from .from_moments import FitsMoments
from .lasso import ScikitLearnFolds


@documented
class MultiTaskElasticNet(TaskRegression, FitsMoments):
    r"""Multi-task Lasso with a ridge: correlated features are kept together rather than picked by chance.

    .. math::

        \min_{W, b}\ \frac{1}{2 \bar n} \sum_t v_t \sum_i s_i (y_i - x_i \cdot w_t - b_t)^2
        + \alpha \rho \sum_j u_j \lVert W_j \rVert_2 + \frac{\alpha (1 - \rho)}{2} \lVert W \rVert_F^2

    with :math:`\rho` = ``l1_ratio``, row j of W the coefficients of feature j in all tasks, :math:`\bar n` the total
    sample weight of the observed labels / the number of tasks, and u, v, s the weights of features, tasks and samples.

    Parameters
    ----------
    feature_weights : array of shape (d,), optional
        :math:`u_j \ge 0`; 0 means never penalised (not by the ridge either).

    See Also
    --------
    MultiTaskElasticNetCV : alpha and l1_ratio by cross-validation.

    Notes
    -----
    With one matrix shared by all tasks the objective, and so ``coef_`` and ``intercept_``, are those of
    `sklearn.linear_model.MultiTaskElasticNet`.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks()
    >>> X[:, 1] = X[:, 0]  # twins
    >>> model = ts.MultiTaskElasticNet(alpha=0.2, l1_ratio=0.5).fit(X, y, task=task)
    >>> model.get_support(indices=True)
    array([0, 1])
    """

    def __init__(self, alpha: float = 1.0, *, l1_ratio: float = 0.5, **options: Unpack[LassoOptions]) -> None:
        keep_parameters(self, locals())

    def _penalty(self) -> dict[str, Any]:
        return {"ridge_ratio": (1.0 - self.l1_ratio) / self.l1_ratio}

    def _strength(self) -> float:
        return self.l1_ratio

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self.l1_ratio, "l1_ratio", low=0, closed=False, high=1)


@documented
class MultiTaskElasticNetCV(ScikitLearnFolds):
    r"""`MultiTaskElasticNet` with ``alpha``, and ``l1_ratio`` where several are given, chosen by cross-validation.

    .. math:: (\alpha, \rho)^\star = \arg\min_{\alpha, \rho} \frac1F \sum_f \frac1T \sum_t
        \text{MSE}\bigl(y_t^{(f)}, X_t^{(f)} w_t^{(-f)}(\alpha, \rho) + b_t^{(-f)}(\alpha, \rho)\bigr)

    over folds f, each predicted by a model of the other folds. Folds are row weights: X is neither copied nor cut.

    Parameters
    ----------
    n_alphas : int, default=100
        Number of values, geometrically from ``alpha_max`` (of each ``l1_ratio``) to ``eps`` times that.
    l1_ratio : float or list of float, default=0.5
        Share of the L2,1 norm, or several to compare.
    selection_rule : {"min", "1se"}, default="min"
        The smallest mean loss, or, with the same ``l1_ratio``, the largest alpha within one standard error of it.

    Attributes
    ----------
    l1_ratio_ : float
        The ratio chosen.
    alphas_ : ndarray of shape (K,), or (n_l1_ratio, K) where ``l1_ratio`` is a list
    cv_scores_ : ndarray of shape (K, n_folds), or (n_l1_ratio, K, n_folds) where ``l1_ratio`` is a list
        Mean over tasks of the held-out mean squared error.
    path_ : RegularizationPath
        The path with ``l1_ratio_`` on all rows.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks()
    >>> model = ts.MultiTaskElasticNetCV(l1_ratio=[0.1, 0.9], n_alphas=20).fit(X, y, task=task)
    >>> model.l1_ratio_
    0.9
    >>> model.cv_scores_.shape
    (2, 20, 5)
    """

    _estimator = MultiTaskElasticNet
    _compared = "l1_ratio"

    def __init__(
        self, alphas: Any = None, *, l1_ratio: Any = 0.5, **options: Unpack[LassoCVOptions]
    ) -> None:
        keep_parameters(self, locals())
