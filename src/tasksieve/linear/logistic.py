"""Multi-task logistic regression: the same features for all tasks, two or more classes in each."""

from __future__ import annotations

from typing import Any, Unpack

from ..fitted.documented import documented
from ..fitted.parameters import PathCVOptions, PathOptions, keep_parameters
from .base import PathEstimator
from .classifier import AnyClassification
from .cross_validation import PathEstimatorCV


@documented
class MultiTaskLogisticRegression(AnyClassification, PathEstimator):
    r"""Classification for several tasks that selects features for all of them together.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t v_t \sum_i s_i \log\bigl(1 + \exp(-y_i (x_i \cdot w_t + b_t))\bigr)
        + \alpha \sum_j u_j \lVert W_j \rVert_2 + \frac{\text{ridge}}{2} \lVert W \rVert_F^2, \qquad y_i = \pm 1

    with {terms} With more than two classes the loss is the multinomial one, task by task,

    .. math:: \log \sum_k e^{z_{ik}} - z_{i, y_i}, \qquad z_{ik} = x_i \cdot w_{tk} + b_{tk},

    and row j of W has the coefficients of feature j for all classes of all tasks.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, > 0. `alpha_max` gives the smallest value at which nothing is selected; with
        standardised features and one task it is below 0.5.
    feature_weights : array of shape (d,), optional
        :math:`u_j \ge 0`; 0 means never penalised (two classes only).
    screening : {"auto", "midpoint", "gap", None}, default="auto"
        Rule that discards features before and while solving; None: no screening.

    Attributes
    ----------
    classes_ : ndarray of shape (2,) or (K,), or list of arrays
        The labels, sorted over all tasks; of two the larger is +1. Where tasks have different labels, a list in the
        order of ``tasks_``.
    coef_ : ndarray of shape (T, d), more than two classes (K, T, d)
        Coefficients, with two classes a row per task: log-odds of the larger class. Where tasks have different classes,
        and one more than two: a list of T arrays of shape (K_t, d).
    intercept_ : ndarray of shape (T,), or (K, T), or list of T arrays

    See Also
    --------
    MultiTaskClassifier : with other penalties, and other losses.

    Notes
    -----
    A task may lack one of the two classes. With an intercept, its loss then falls towards 0 as the intercept grows
    without end: a warning says so, and the intercept is kept finite. Where each task has two labels, and not all the
    same, these are its classes. Otherwise, if one task has rows of all classes, these are the classes of every task,
    and a task may lack some; if none has, each task has its own.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(["no", "yes"])
    >>> model = ts.MultiTaskLogisticRegression(alpha=0.2).fit(X, y, task=task)
    >>> model.classes_
    array(['no', 'yes'], dtype='<U3')
    >>> model.get_support(indices=True)
    array([0])
    >>> model.predict_proba(X, task=task).shape, model.predict_proba(X).shape
    ((60, 2), (60, 2, 2))
    """

    loss, penalty = "logistic", "l21"

    def __init__(
        self, alpha: float = 1.0, *, ridge: float = 0.0, class_weight: Any = None, **options: Unpack[PathOptions]
    ) -> None:
        keep_parameters(self, locals())


@documented
class MultiTaskLogisticRegressionCV(AnyClassification, PathEstimatorCV):
    """`MultiTaskLogisticRegression` with ``alpha`` chosen by cross-validation along its path."""

    _estimator = MultiTaskLogisticRegression
    _example = ("['no', 'yes']", 0.85)
    _held_out_words = "mean logistic loss (more than two classes: of -log p(class))"

    loss, penalty = "logistic", "l21"

    def __init__(
        self, alphas: Any = None, *, ridge: float = 0.0, class_weight: Any = None, **options: Unpack[PathCVOptions]
    ) -> None:
        keep_parameters(self, locals())
