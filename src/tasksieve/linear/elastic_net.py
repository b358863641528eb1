"""Multi-task elastic net: the multi-task Lasso with a ridge."""

from __future__ import annotations

from typing import Any, Unpack

from ..fitted.documented import documented
from ..fitted.parameters import LassoCVOptions, LassoOptions, keep_parameters
from ..fitted.predicting import TaskRegression
from .from_moments import FitsMoments
from .lasso import ScikitLearnFolds


@documented
class MultiTaskElasticNet(TaskRegression, FitsMoments):
    r"""Multi-task Lasso with a ridge: correlated features are kept together rather than picked by chance.

    .. math::

        \min_{W, b}\ \frac{1}{2 \bar n} \sum_t v_t \sum_i s_i (y_i - x_i \cdot w_t - b_t)^2
        + \alpha \rho \sum_j u_j \lVert W_j \rVert_2 + \frac{\alpha (1 - \rho)}{2} \lVert W \rVert_F^2

    with :math:`\rho` = ``l1_ratio``, {terms}

    Parameters
    ----------
    feature_weights : array of shape (d,), optional
        :math:`u_j \ge 0`; 0 means never penalised (not by the ridge either).

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


@documented
class MultiTaskElasticNetCV(ScikitLearnFolds):
    """`MultiTaskElasticNet` with ``alpha``, and ``l1_ratio`` where several are given, chosen by cross-validation.

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
