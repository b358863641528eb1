"""Multi-task Lasso and elastic net: the same features for all tasks, squared loss."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from ..fitted.documented import documented
from ..fitted.parameters import LassoCVOptions, LassoOptions, keep_parameters
from ..fitted.predicting import TaskRegression
from ..parameters import CROSS_VALIDATED, table
from .cross_validation import PathEstimatorCV
from .from_moments import ComparesMoments, FitsMoments


@documented
class MultiTaskLasso(TaskRegression, FitsMoments):
    r"""Linear regression for several tasks that selects features for all of them together.

    .. math::

        \min_{W, b}\ \frac{1}{2 \bar n} \sum_t v_t \sum_i s_i (y_i - x_i \cdot w_t - b_t)^2
        + \alpha \sum_j u_j \lVert W_j \rVert_2

    with {terms}

    Parameters
    ----------
    screening : {"auto", "dpc", "dpc-published", "midpoint", "gap", None}, default="auto"
        Rule that discards features before and while solving. All are safe but "dpc-published", the system of [1]_, for
        study: exact products at every value, its sequential rule, and all rows that are left are solved for, without
        working sets; its results are checked. None: no screening.

    See Also
    --------
    MultiTaskElasticNet : the same with a ridge penalty.

    Notes
    -----
    With one matrix shared by all tasks the objective, and so ``coef_`` and ``intercept_``, are those of
    `sklearn.linear_model.MultiTaskLasso`.

    References
    ----------
    .. [1] J. Wang, J. Ye, "Safe Screening for Multi-Task Feature Learning with Multiple Data Matrices", ICML 2015.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks()
    >>> model = ts.MultiTaskLasso(alpha=0.1).fit(X, y, task=task)
    >>> model.get_support(indices=True)
    array([0])
    >>> model.tasks_
    array(['a', 'b'], dtype='<U1')
    >>> model.predict(X[:3], task=task[:3]).shape, model.predict(X[:3]).shape
    ((3,), (3, 2))
    >>> model.score(X, y, task=task) > 0.9
    True
    """

    def __init__(self, alpha: float = 1.0, **options: Unpack[LassoOptions]) -> None:
        keep_parameters(self, locals())


class ScikitLearnFolds(TaskRegression, ComparesMoments):
    """A model with a namesake in scikit-learn, whose folds it has where the data are such as that one takes."""

    _parameters = CROSS_VALIDATED | table(
        CROSS_VALIDATED["cv"].with_sentence(
            "One matrix without ``task`` and ``groups``: unshuffled folds of its rows, as in scikit-learn."
        )
    )
    _folds_of_scikit_learn = True
    _held_out_words = "mean squared error"
    _skip_checks: ClassVar[dict[str, str]] = {
        **PathEstimatorCV._skip_checks,
        "columns": "one matrix without tasks has scikit-learn's folds",
    }


@documented
class MultiTaskLassoCV(ScikitLearnFolds):
    """`MultiTaskLasso` with ``alpha`` chosen by cross-validation along its path."""

    _estimator = MultiTaskLasso

    def __init__(self, alphas: Any = None, **options: Unpack[LassoCVOptions]) -> None:
        keep_parameters(self, locals())


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

    def _norm_share(self) -> float:
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

    def __init__(self, alphas: Any = None, *, l1_ratio: Any = 0.5, **options: Unpack[LassoCVOptions]) -> None:
        keep_parameters(self, locals())
