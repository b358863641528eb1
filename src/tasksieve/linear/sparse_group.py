"""Multi-task sparse group Lasso: features are selected for all tasks together, and within them tasks."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from ..fitted.arguments import check_choice, refuse_l1_length
from ..fitted.documented import documented
from ..fitted.model import TaskLinearModel
from ..fitted.parameters import PathCVOptions, PathOptions, keep_parameters
from ..fitted.predicting import Predicting, TaskClassification
from ..fitted.predictions import available_if
from ..losses import Loss, as_loss
from ..messages import Message, ParameterError
from ..parameters import CROSS_VALIDATED, PARAMETERS, Parameter, table
from ..penalties import SparseGroup
from ..tasks import TaskData
from .from_moments import ComparesMoments, FitsMoments

#: of loss and penalty
SPARSE_GROUP = table(
    PARAMETERS["l1"],
    PARAMETERS["group"],
    Parameter(
        "loss", '{"squared", "logistic"}', "squared",
        "With more than two classes the logistic loss is the multinomial one, task by task, as in "
        "`MultiTaskClassifier`.",
    ),
)  # fmt: skip


class _LossAndPenalty(TypedDict, total=False):
    l1: Any
    group: float
    loss: Literal["squared", "logistic"]
    class_weight: Any


class SparseGroupOptions(_LossAndPenalty, PathOptions, total=False):
    """Of `MultiTaskSparseGroupLasso`, but for ``alpha``."""


class SparseGroupCVOptions(_LossAndPenalty, PathCVOptions, total=False):
    """Of `MultiTaskSparseGroupLassoCV`, but for ``alphas``."""


def _is_classifier(model: Any) -> bool:
    return bool(model.loss == "logistic")


class _EitherLoss(Predicting, TaskLinearModel):
    """A model that is a regression or a classification, as its parameter ``loss`` says."""

    loss: Literal["squared", "logistic"]
    l1: Any
    group: float
    class_weight: Any

    @property
    def _loss(self) -> Loss:  # type: ignore[override]
        return as_loss(self.loss)

    @property
    def _targets(self) -> Literal["values", "classes"]:  # type: ignore[override]
        return "classes" if self.loss == "logistic" else "values"

    def _penalty(self) -> dict[str, Any]:
        l1 = self.l1 if np.ndim(self.l1) == 0 else np.asarray(self.l1, dtype=np.float64)
        return {"penalty": SparseGroup(l1, float(self.group))}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.loss, "loss", ("squared", "logistic"))
        if self.class_weight is not None and self.loss != "logistic":
            raise ParameterError("class_weight", Message("is for {loss=!r}", loss="logistic"))
        if self.group == 0 and not np.all(np.asarray(self.l1) > 0):
            unpenalised = Message("must be positive with {group=}: else features are not penalised", group=0)
            raise ParameterError("l1", unpenalised)

    def _read(self, X: Any, y: Any, task: Any, sample_weight: Any) -> TaskData:
        data = super()._read(X, y, task, sample_weight)
        refuse_l1_length(self.l1, data.n_features)
        return data

    decision_function = available_if(_is_classifier)(TaskClassification.decision_function)
    predict_proba = available_if(_is_classifier)(TaskClassification.predict_proba)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags

        tags = super().__sklearn_tags__()
        if self.loss == "logistic":
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=True)
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
            tags.target_tags.multi_output = True
        return tags


@documented
class MultiTaskSparseGroupLasso(_EitherLoss, FitsMoments):
    r"""Linear model of several tasks that selects features for all of them, and within each feature its tasks.

    .. math::

        \min_{W, b}\ \frac{1}{2 \bar n} \sum_t v_t \sum_i s_i (y_i - x_i \cdot w_t - b_t)^2
        + \alpha \sum_j u_j \bigl( r_j \lVert W_j \rVert_1 + g \lVert W_j \rVert_2 \bigr)

    or the same with the logistic loss :math:`\frac{1}{\bar n} \sum_t v_t \sum_i s_i
    \log(1 + e^{-y_i (x_i \cdot w_t + b_t)})`; :math:`r_j` = ``l1``, g = ``group``, {terms}

    Parameters
    ----------
    class_weight : dict or "balanced", optional
        With the logistic loss: factors of the sample weights, by label (1 for those not named), or such that within
        each task every class counts alike.

    Attributes
    ----------
    classes_ : ndarray of labels, or a list of such
        With the logistic loss.
    coef_ : ndarray of shape (T, d)
        Coefficients W', a row per task; more than two classes: as in `MultiTaskClassifier`.

    See Also
    --------
    OnlineMultiTaskRegressor, OnlineMultiTaskClassifier : the same models, one row at a time.

    Notes
    -----
    The penalty is that of "MTFTS" [1]_. `zero_coefficients` gives the coefficients that are provably zero in every
    solution: whole rows, and single entries within rows.

    References
    ----------
    .. [1] H. Yang, I. King, M. R. Lyu, "Online Learning for Multi-Task Feature Selection", CIKM 2010.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=[2.0, -1.0, 0.0])
    >>> model = ts.MultiTaskSparseGroupLasso(alpha=0.1, l1=1.0).fit(X, y, task=task)
    >>> model.coef_.nonzero()  # feature 0, in tasks a and b only
    (array([0, 1]), array([0, 0]))
    >>> int(model.zero_coefficients(X, y, task=task).sum())  # proved, out of 24
    22
    """

    _parameters = SPARSE_GROUP | PARAMETERS

    def __init__(self, alpha: float = 1.0, **options: Unpack[SparseGroupOptions]) -> None:
        keep_parameters(self, locals())

    def zero_coefficients(
        self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> np.ndarray:
        """Coefficients that are zero in every solution, proved by the safe row and entry tests at this model.

        Parameters
        ----------
        X, y, task, sample_weight, offset
            The data of the fit (or others: the proof is about the data given). One pass over X.

        Returns
        -------
        boolean ndarray of shape (T, d)
            True: certainly zero. A row test discards a feature for all tasks, an entry test for one. More than two
            classes: a row for each class of each task, task after task.
        """
        if self.standardize:
            raise ValueError("zero_coefficients needs standardize=False; scale the columns yourself.")
        self._check_parameters()
        if self._needs_offset and offset is None:
            raise ValueError("the model was fitted with an offset: pass offset= (offset=0.0 for none).")
        data = self._read_with(X, y, task, sample_weight, offset)
        if data.tasks.tolist() != self.tasks_.tolist() or data.n_features != self.n_features_in_:
            raise ValueError("X and task must have the features and the tasks of the fitted model.")
        state = self._learned()
        return self._proof_of(data, state.rows, state.constants).zero_entries

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.loss == "logistic":
            # no standardised feature enters a task at alpha >= 1/2, so at the default nothing may be learned
            tags.classifier_tags.poor_score = self.alpha >= 0.5
        return tags


@documented
class MultiTaskSparseGroupLassoCV(_EitherLoss, ComparesMoments):
    """`MultiTaskSparseGroupLasso` with ``alpha`` chosen by cross-validation along its path."""

    _estimator = MultiTaskSparseGroupLasso
    _parameters = SPARSE_GROUP | CROSS_VALIDATED
    _held_out_words = "mean squared error, or the mean logistic loss"

    def __init__(self, alphas: Any = None, **options: Unpack[SparseGroupCVOptions]) -> None:
        keep_parameters(self, locals())
