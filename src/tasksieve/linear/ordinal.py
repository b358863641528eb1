"""Ordered classes: proportional odds with any penalty."""

from __future__ import annotations

from typing import Any, Unpack

from ..docstrings import described_by
from ..fitted.documented import ROWS, documented
from ..fitted.parameters import (
    BareSolverOptions,
    FeatureWeights,
    KeptFoldOptions,
    TaskOptions,
    keep_parameters,
)
from ..fitted.predicting import TaskClassification
from ..fitted.predictions import Predictions
from ..losses import Loss, Ordinal
from ..penalties import RowPenalty
from ..tasks.named import takes_named_tasks
from .base import PathEstimator
from .generic import AnyMembers, AnyMembersCV, GraphCVOptions, GraphOptions


class OrdinalOptions(GraphOptions, BareSolverOptions, TaskOptions, FeatureWeights, total=False):
    """Of `MultiTaskOrdinal`, but for those that it names."""

    class_weight: Any
    warm_start: bool


class OrdinalCVOptions(GraphCVOptions, KeptFoldOptions, BareSolverOptions, TaskOptions, FeatureWeights, total=False):
    """Of `MultiTaskOrdinalCV`, but for those that it names."""

    class_weight: Any


class _OrdinalLoss(TaskClassification, AnyMembers):
    """A model of ordered classes; its thresholds take up any constant, so columns are centred."""

    loss = "ordinal"
    _multi_class = True
    fit_intercept = True
    class_weight: Any
    categories: Any
    thresholds_: Any

    @property
    def _loss(self) -> Loss:  # type: ignore[override]
        return Ordinal()

    def _knows_loss(self) -> bool:
        return True

    @takes_named_tasks
    @described_by(ROWS)
    def decision_function(self, X: Any, *, task: Any = None, offset: Any = None) -> Predictions:
        """The linear score x . w_t + offset: the larger, the higher the class.

        Class k lies between ``thresholds_[t, k - 1]`` and ``thresholds_[t, k]``. Scores of different tasks are not
        comparable.

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            As `predict`.
        """
        return super().decision_function(X, task=task, offset=offset)

    @takes_named_tasks
    @described_by(ROWS)
    def predict(  # type: ignore[override]  # thresholds have no mean
        self, X: Any, *, task: Any = None, offset: Any = None
    ) -> Predictions:
        """Predict the most probable class.

        It is the best guess where every mistake counts alike. Where a mistake counts by how many classes it is off, the
        median of `predict_proba` is better, the first class whose cumulative probability reaches one half.

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            With ``task`` (n,), without (n, T), every task's prediction (but (n,) where the model was fitted to a 1-D y
            without task); a list for a list.
        """
        return super().predict(X, task=task, offset=offset)

    @takes_named_tasks
    @described_by(ROWS)
    def predict_proba(  # type: ignore[override]
        self, X: Any, *, task: Any = None, offset: Any = None
    ) -> Predictions:
        """Probabilities of the classes, differences of 1/(1 + exp(score - threshold)).

        Returns
        -------
        ndarray of shape (n, K) with ``task``, (n, T, K) without; a list of (n_t, K) for a list
            The last axis follows ``classes_``; 0 for a class of which a task had no row. (n, K) where the model was
            fitted to a 1-D y without task. Tasks with classes of their own: a list by task, (n, K_t) without ``task``,
            and with it the probabilities of that task's rows.
        """
        return super().predict_proba(X, task=task, offset=offset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # the default of alpha is strong for standardised features, and labels of the checks have no order
        tags.classifier_tags.poor_score = True
        return tags


@documented
class MultiTaskOrdinal(_OrdinalLoss, PathEstimator):
    r"""Ordinal regression (proportional odds) for several tasks, with any penalty.

    .. math::

        \min_{W, \theta}\ -\frac{1}{\bar n} \sum_t v_t \sum_i s_i \log\bigl(\sigma(\theta_{t, y_i} - z_i)
        - \sigma(\theta_{t, y_i - 1} - z_i)\bigr) + \alpha\, \Omega(W)
        + \frac{\text{ridge}}{2} \lVert W \rVert_F^2
        + \frac{\gamma}{2} \sum_j \sum_{s<t} A_{st} (W_{js} - W_{jt})^2, \qquad z_i = x_i \cdot w_t + o_i

    with {terms} :math:`\sigma(x) = 1/(1 + e^{-x})`, so that :math:`P(y \le k) = \sigma(\theta_{t,k} - z)` with
    thresholds :math:`\theta_{t,0} < \ldots < \theta_{t,K-2}` of each task, never penalised, in place of an intercept; o
    is the ``offset`` of `fit`, A holds the weights of a graph of tasks, and :math:`\gamma` is its strength.

    Parameters
    ----------
    categories : sequence of labels, or dict of task to such, optional
        The classes from the lowest to the highest. By default the order of an ordered categorical of pandas, else
        labels are sorted: numbers by size, words by the alphabet (a warning says so). A dict gives each task classes of
        its own.
    screening : {"auto", "gap", None}, default="auto"
        Safe rule that discards features before and while solving; None: no screening.
    feature_weights : array of shape (d,), optional
        Weights of the features in the penalty; 0 means never penalised.
    task_graph : "chain", array or sparse matrix of shape (T, T), or networkx graph, optional
        As in `MultiTaskRegressor`.
    graph_strength : float, default=1.0
        How strongly neighbours agree, >= 0; it does not grow with alpha.

    Attributes
    ----------
    classes_ : ndarray of shape (K,), or list of arrays
        The classes in their order; a list in the order of ``tasks_`` where tasks have classes of their own.
    thresholds_ : ndarray of shape (T, K - 1), or list of T arrays
        Between the classes. Around a class of which a task has no rows both are equal, or infinite at the ends: its
        probability is 0. Certified like the coefficients.
    intercept_ : ndarray of shape (T,)
        Zeros: the thresholds take up any constant.

    See Also
    --------
    MultiTaskLogisticRegression : the same with two classes, and for classes without an order.

    Notes
    -----
    Coefficients have the sign of ``MASS::polr`` in R and of ``OrderedModel(distr="logit")`` in statsmodels: a positive
    one makes high classes more probable. A task with rows of one class only does not affect the model; a warning says
    so.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(n_rows=60)
    >>> pain = np.array(["none", "mild", "severe"])[np.digitize(y, [-0.5, 0.5])]
    >>> model = ts.MultiTaskOrdinal(alpha=0.1, categories=["none", "mild", "severe"]).fit(X, pain, task=task)
    >>> model.get_support(indices=True), model.thresholds_.shape
    (array([0]), (2, 2))
    >>> model.predict_proba(X, task=task).shape
    (120, 3)
    >>> bool(model.score(X, pain, task=task) > 0.6)
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        penalty: str | RowPenalty = "l21",
        categories: Any = None,
        **options: Unpack[OrdinalOptions],
    ) -> None:
        keep_parameters(self, locals())


@documented
class MultiTaskOrdinalCV(_OrdinalLoss, AnyMembersCV):
    """`MultiTaskOrdinal` with ``alpha``, and ``graph_strength`` where several are given, by cross-validation.

    Folds are stratified by class within tasks.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(n_rows=60)
    >>> grade = np.digitize(y, [-0.5, 0.5])
    >>> model = ts.MultiTaskOrdinalCV(n_alphas=20, eps=0.05, cv=3).fit(X, grade, task=task)
    >>> model.cv_quality_.measures
    ('accuracy', 'AUC', 'mean absolute error', 'ordinal deviance')
    >>> model.get_support()[0]
    np.True_
    """

    _estimator = MultiTaskOrdinal
    _held_out_words = "mean ordinal deviance, -2 log P(class)"

    def __init__(
        self,
        alphas: Any = None,
        *,
        penalty: str | RowPenalty = "l21",
        categories: Any = None,
        **options: Unpack[OrdinalCVOptions],
    ) -> None:
        keep_parameters(self, locals())
