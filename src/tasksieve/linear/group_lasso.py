"""Multi-task group Lasso: groups of features are selected for all tasks together."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from ..fitted.documented import documented
from ..fitted.model import TaskLinearModel
from ..fitted.parameters import PathCVOptions, PathOptions, keep_parameters
from ..fitted.predicting import TaskRegression
from ..losses import Squared
from ..messages import value_error
from ..parameters import CROSS_VALIDATED, PARAMETERS, Parameter, table
from ..penalties import L21, Groups, RowPenalty, SparseGroup
from .base import PathEstimator
from .cross_validation import PathEstimatorCV

#: of the penalty
GROUPED = table(
    PARAMETERS["feature_groups"],
    PARAMETERS["inside"],
    Parameter("mix", "float", 0.5, "Share of the norm inside, 0 < ``mix`` < 1; with ``inside`` only."),
    Parameter(
        "group_weights", '"sqrt", None, array or mapping', "sqrt",
        ":math:`u_G`: the root of the group's size; 1; or numbers > 0, by label or in the order of the sorted labels.",
    ),
)  # fmt: skip


class Grouping(TypedDict, total=False):
    """Of the penalty."""

    feature_groups: Any
    inside: Literal["rows", "entries"] | None
    mix: float
    group_weights: Any


class GroupOptions(Grouping, PathOptions, total=False):
    """Of `MultiTaskGroupLasso`, but for ``alpha``."""


class GroupCVOptions(Grouping, PathCVOptions, total=False):
    """Of `MultiTaskGroupLassoCV`, but for ``alphas``."""


class _OnGroups(TaskRegression, TaskLinearModel):
    """What both estimators say of their penalty."""

    _loss = Squared()

    feature_groups: Any
    inside: Literal["rows", "entries"] | None
    mix: float
    group_weights: Any

    @property
    def _norm(self) -> RowPenalty:
        """The penalty, without data; a feature that has no group is one by itself."""
        if self.feature_groups is not None:
            return Groups(self.feature_groups, self.inside, mix=self.mix, weights=self.group_weights)
        if self.group_weights not in ("sqrt", None):
            raise value_error(
                "{group_weights} need {feature_groups}; weights of single features are {feature_weights}."
            )
        Groups([0], self.inside, mix=self.mix).check(1)
        return SparseGroup(self.mix, 1.0 - self.mix) if self.inside == "entries" else L21()

    def _penalty(self) -> dict[str, Any]:
        return {"penalty": self._norm}

    @property
    def selected_groups_(self) -> np.ndarray:
        """Labels of the groups that are not zero; the selected features where there are no groups."""
        selected = np.flatnonzero(self._learned().coef.any(axis=0))
        names = self._norm.names_of(selected)
        return selected if names is None else names


@documented
class MultiTaskGroupLasso(_OnGroups, PathEstimator):
    r"""Linear regression of several tasks that selects whole groups of features, for all tasks together.

    .. math::

        \min_{W, b}\ \frac{1}{2 \bar n} \sum_t v_t \sum_i s_i (y_i - x_i \cdot w_t - b_t)^2
        + \alpha \sum_G u_G \lVert W_G \rVert_F

    with :math:`W_G` the rows of W that belong to the features of group G (genes, sets of SNPs, the columns of one
    category), {terms} With ``inside="rows"`` the norm of a group is :math:`(1 - m) \lVert W_G \rVert_F
    + m \sum_{j \in G} \lVert W_j \rVert_2`, with ``inside="entries"``
    :math:`(1 - m) \lVert W_G \rVert_F + m \lVert W_G \rVert_1`, m = ``mix``.

    Parameters
    ----------
    feature_weights : array of shape (d,), optional
        Equal within each group, whose weight they multiply; 0: a group that is never penalised.
    screening : {"auto", "dpc", "gap", None}, default="auto"
        Safe rule that discards groups before and while solving; None: no screening.

    Attributes
    ----------
    selected_groups_ : ndarray
        Labels of the groups that are not zero. `get_support` gives features.

    See Also
    --------
    MultiTaskRegressor : the same penalty (`tasksieve.penalties.Groups`) with other losses and a ridge.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks()
    >>> y += X[:, 1] - X[:, 2]
    >>> groups = ["left", "left", "left", "mid", "mid", "right", "right", "right"]
    >>> model = ts.MultiTaskGroupLasso(alpha=0.3, feature_groups=groups).fit(X, y, task=task)
    >>> model.selected_groups_.tolist(), model.get_support(indices=True)
    (['left'], array([0, 1, 2]))
    """

    _parameters = GROUPED | PARAMETERS

    def __init__(self, alpha: float = 1.0, **options: Unpack[GroupOptions]) -> None:
        keep_parameters(self, locals())


@documented
class MultiTaskGroupLassoCV(_OnGroups, PathEstimatorCV):
    """`MultiTaskGroupLasso` with ``alpha`` chosen by cross-validation along its path.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks()
    >>> model = ts.MultiTaskGroupLassoCV(feature_groups=[0, 0, 1, 1, 2, 2, 3, 3], cv=3, selection_rule="1se")
    >>> model.fit(X, y, task=task).selected_groups_
    array([0])
    """

    _estimator = MultiTaskGroupLasso
    _parameters = GROUPED | CROSS_VALIDATED
    _held_out_words = "mean squared error"

    def __init__(self, alphas: Any = None, **options: Unpack[GroupCVOptions]) -> None:
        keep_parameters(self, locals())
