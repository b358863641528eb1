"""Classification with any penalty: two classes per task with any loss of signs, more with the logistic one."""

from __future__ import annotations

from typing import Any, Unpack

from ..fitted.documented import documented
from ..fitted.parameters import PathCVOptions, PathOptions, keep_parameters
from ..fitted.predicting import TaskClassification
from ..losses import Loss
from ..messages import ParameterError
from ..penalties import RowPenalty
from .base import PathEstimator
from .cross_validation import PathEstimatorCV
from .generic import AnyMembers, AnyMembersCV, RegressorCVOptions, RegressorOptions


class ClassifierOptions(RegressorOptions, total=False):
    """Of `MultiTaskClassifier`, but for those that it names."""

    class_weight: Any


class ClassifierCVOptions(RegressorCVOptions, total=False):
    """Of `MultiTaskClassifierCV`, but for those that it names."""

    class_weight: Any


class AnyClassification(TaskClassification, AnyMembers):
    """A classification whose loss and penalty are parameters."""

    _loss = AnyMembers._loss

    class_weight: Any

    def _takes(self, loss: type[Loss]) -> bool:
        return loss.labels == "signs"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._loss.labels != "signs":
            raise ParameterError(
                "loss",
                f"is the {self._loss.label}, whose labels are {self._loss.labels}: a classifier needs a loss of "
                "signs, -1 and +1",
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._knows_loss() and self._loss.with_classes() is not None
        # no standardised feature enters a task at alpha >= 1/2, so at the default nothing may be learned
        tags.classifier_tags.poor_score = getattr(self, "alpha", 0.0) >= 0.5
        return tags


@documented
class MultiTaskClassifier(AnyClassification, PathEstimator):
    r"""Linear classification for several tasks with any penalty, and any loss of two classes.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t v_t \sum_i s_i f(y_i, x_i \cdot w_t + b_t)
        + \alpha\, \Omega(W) + \frac{\text{ridge}}{2} \lVert W \rVert_F^2, \qquad y_i = \pm 1

    with {terms} With more than two classes the logistic loss is the multinomial one, task by task: a row of W then
    holds the coefficients of all classes of all tasks, and

    .. math:: f(y_i, z_i) = \log \sum_k e^{z_{ik}} - z_{i, y_i}, \qquad z_{ik} = x_i \cdot w_{tk} + b_{tk}.

    Screening, paths, every storage, cross-validation and the certificate come with every pair.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        f: the name of a loss of two classes, or an object of `tasksieve.losses` whose labels are signs, a
        `tasksieve.losses.RowLoss` of your own, say. More than two classes need "logistic".
    task_graph : "chain", array or sparse matrix of shape (T, T), or networkx graph, optional
        As in `MultiTaskRegressor`; more than two classes must be the same in all tasks.
    graph_strength : float, default=1.0
        How strongly neighbours agree, >= 0; it does not grow with alpha.
    feature_weights : array of shape (d,), optional
        Weights of the features in the penalty; 0 means never penalised (two classes only).
    screening : {"auto", "gap", None}, default="auto"
        Safe rule that discards features before and while solving; None: no screening.

    Attributes
    ----------
    classes_ : ndarray of shape (K,), or list of arrays
        The labels, sorted over all tasks; of two the larger is +1. Where tasks have different classes, a list in the
        order of ``tasks_``.
    coef_ : ndarray of shape (T, d), more than two classes (K, T, d)
        Coefficients; of two classes those of the larger. Where tasks have different classes, and one more than two: a
        list of T arrays of shape (K_t, d).
    intercept_ : ndarray of shape (T,), or (K, T), or list of T arrays

    See Also
    --------
    MultiTaskLogisticRegression : the logistic loss with the L2,1 norm.

    Notes
    -----
    Two classes in all tasks together, or two in each, are two classes. Otherwise, if one task has rows of all classes,
    these are the classes of every task; a task may lack some, whose probability is then next to 0 there (a warning says
    so where there are intercepts). If no task has them all, each task has its own.

    With two classes the multinomial loss at :math:`\sqrt2\,\alpha` is the logistic one at :math:`\alpha` (L2,1).

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(["left", "mid", "right"], n_rows=60)
    >>> model = ts.MultiTaskClassifier(penalty="l21", alpha=0.2).fit(X, y, task=task)
    >>> model.coef_.shape, model.get_support(indices=True)
    ((3, 2, 8), array([0]))
    >>> model.predict_proba(X, task=task).shape
    (120, 3)
    """

    def __init__(
        self,
        loss: str | Loss = "logistic",
        penalty: str | RowPenalty = "l21",
        *,
        alpha: float = 1.0,
        **options: Unpack[ClassifierOptions],
    ) -> None:
        keep_parameters(self, locals())


@documented
class MultiTaskClassifierCV(AnyClassification, AnyMembersCV):
    """`MultiTaskClassifier` with ``alpha``, and ``graph_strength`` where several are given, by cross-validation."""

    _estimator = MultiTaskClassifier
    _example = ("['left', 'mid', 'right']", 0.8)
    _held_out_words = "loss's own score (`tasksieve.losses.Loss.deviance`)"

    def __init__(
        self,
        loss: str | Loss = "logistic",
        penalty: str | RowPenalty = "l21",
        *,
        alphas: Any = None,
        **options: Unpack[ClassifierCVOptions],
    ) -> None:
        keep_parameters(self, locals())


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
