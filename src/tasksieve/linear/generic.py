"""Any loss with any penalty: the estimator through which members of your own enter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np

from ..fitted.arguments import read_several
from ..fitted.documented import documented
from ..fitted.model import TaskLinearModel
from ..fitted.parameters import PathCVOptions, PathOptions, keep_parameters
from ..losses import Loss, as_loss
from ..members import LOSSES, PENALTIES, Registry
from ..messages import Message, ParameterError, either, value_error
from ..penalties import RowPenalty, as_penalty
from .base import PathEstimator
from .cross_validation import PathEstimatorCV
from .regressions import LinkedRegression


class QuadraticOptions(TypedDict, total=False):
    """Of the quadratic terms beside a penalty."""

    ridge: float
    task_graph: Any


class GraphOptions(QuadraticOptions, total=False):
    """The same, with one strength of the graph."""

    graph_strength: float


class GraphCVOptions(QuadraticOptions, total=False):
    """The same, with one strength of the graph, or several to choose from."""

    graph_strength: float | Sequence[float]


class RegressorOptions(GraphOptions, PathOptions, total=False):
    """Of `MultiTaskRegressor`, but for those that it names."""


class RegressorCVOptions(GraphCVOptions, PathCVOptions, total=False):
    """Of `MultiTaskRegressorCV`, but for those that it names."""


class AnyMembers(TaskLinearModel):
    """A model whose loss and penalty are parameters."""

    loss: Any
    penalty: Any
    ridge: float
    task_graph: Any = None
    graph_strength: float = 1.0
    #: a ridge that grows with alpha, beside the other: of problems that other programs have stated
    _ridge_ratio: float = 0.0

    def _takes(self, loss: type[Loss]) -> bool:
        """Whether the labels of a loss are those of the model."""
        return not loss.of_classes() and loss.labels != "survival"

    def _knows_loss(self) -> bool:
        """Whether the loss is one, or the name of one that the model takes."""
        return isinstance(self.loss, Loss) or (LOSSES.offers(self.loss) and self._takes(LOSSES[self.loss]))

    @property
    def _loss(self) -> Loss:  # type: ignore[override]
        return as_loss(self.loss)

    def _penalty(self) -> dict[str, Any]:
        found = {"penalty": self._norm, "fixed_ridge": float(self.ridge)}
        return found | {"ridge_ratio": self._ridge_ratio} if self._ridge_ratio else found

    @property
    def _norm(self) -> RowPenalty:
        """The penalty, without data."""
        return as_penalty(self.penalty)

    @property
    def shared_coef_(self) -> Any:
        """The part of ``coef_`` that tasks share."""
        return self._part("shared")

    @property
    def specific_coef_(self) -> Any:
        """The part of ``coef_`` that is of single tasks."""
        return self._part("specific")

    @property
    def selected_groups_(self) -> np.ndarray:
        """Names of the groups of features that are not zero."""
        names = self._norm.names_of(np.flatnonzero(self._learned().rows.any(axis=0)))
        if names is None:
            raise AttributeError(
                f"{type(self).__name__} has selected_groups_ only with a penalty on groups of features "
                "(tasksieve.penalties.Groups)."
            )
        return names

    def _part(self, name: str) -> Any:
        """A part of the coefficients, where the penalty is a minimum over parts."""
        state = self._learned()
        rows = state.rows.T
        scale = np.repeat(self.scale_, state.class_counts, axis=0).T if self.standardize else np.ones_like(rows)
        parts = self._norm.split(np.ascontiguousarray(rows * scale))
        if parts is None or name not in parts:
            raise AttributeError(
                f"{type(self).__name__} has {name}_coef_ only with a penalty that splits coefficients into parts "
                "(penalty='dirty')."
            )
        return state.shaped(np.ascontiguousarray((parts[name] / scale).T))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self._knows_loss():
            names = (name for name in LOSSES.offered() if self._takes(LOSSES[name]))
            raise _unknown(LOSSES, "a tasksieve.losses.Loss", self.loss, names)
        if not isinstance(self.penalty, RowPenalty) and not PENALTIES.offers(self.penalty):
            raise _unknown(PENALTIES, "a tasksieve.penalties.RowPenalty", self.penalty, PENALTIES.offered())
        _ = self._loss, self._norm  # refuses options that a member does not have


class AnyMembersCV(PathEstimatorCV):
    """A cross-validation that may also compare strengths of a graph of tasks."""

    _compared = "graph_strength"

    task_graph: Any
    graph_strength: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.task_graph is None and len(read_several(self.graph_strength, "graph_strength")) > 1:
            raise value_error("{graph_strength} has several values, but there is no graph: give {task_graph}.")


def _unknown(registry: Registry[Any], other: str, given: Any, names: Iterable[str]) -> ParameterError:
    listed = ", ".join(map(repr, names))
    words = Message("must be one of {listed}{other}", listed=listed, other=either(f" or {other}"))
    return ParameterError(registry.word, words, given)


class _AnyRegression(LinkedRegression, AnyMembers):
    """A regression whose loss and penalty are parameters."""

    _loss = AnyMembers._loss

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._loss.labels == "survival":
            model = either("MultiTaskCox", "--model cox")
            raise ParameterError("loss", Message("is about times to an event: use {model}", model=model), self.loss)


@documented
class MultiTaskRegressor(_AnyRegression, PathEstimator):
    r"""Linear regression for several tasks with any loss and any penalty, yours included.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t v_t \sum_i s_i f(y_i, x_i \cdot w_t + b_t + o_i)
        + \alpha\, \Omega(W) + \frac{\text{ridge}}{2} \lVert W \rVert_F^2
        + \frac{\gamma}{2} \sum_j \sum_{s<t} A_{st} (W_{js} - W_{jt})^2

    with {terms} o is the ``offset`` of `fit` (0 by default), A holds the weights of a graph of tasks, and
    :math:`\gamma` is its strength (the square-root loss: :math:`1/\sqrt{\bar n}` and the norm of each task's residual,
    as in `CalibratedMultiTaskLasso`). Screening, paths, every storage, cross-validation and the certificate come with
    every pair.

    Parameters
    ----------
    screening : {"auto", "dpc", "midpoint", "gap", None}, default="auto"
        Safe rule that discards features before and while solving; None: no screening. "dpc" is for the squared, Huber,
        quantile and hinge losses.

    See Also
    --------
    tasksieve.checks.check_penalty, tasksieve.checks.check_loss : whether a member of your own is right.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=[2.0, -1.0, 0.0])
    >>> penalty = ts.penalties.SparseGroup(l1=1.0, group=1.0)
    >>> model = ts.MultiTaskRegressor(penalty=penalty, alpha=0.1).fit(X, y, task=task)
    >>> model.coef_.nonzero()  # feature 0, in the tasks 0 and 1
    (array([0, 1]), array([0, 0]))
    """

    def __init__(
        self,
        loss: str | Loss = "squared",
        penalty: str | RowPenalty = "l21",
        *,
        alpha: float = 1.0,
        **options: Unpack[RegressorOptions],
    ) -> None:
        keep_parameters(self, locals())


@documented
class MultiTaskRegressorCV(_AnyRegression, AnyMembersCV):
    """`MultiTaskRegressor` with ``alpha``, and ``graph_strength`` where several are given, by cross-validation."""

    _estimator = MultiTaskRegressor
    _held_out_words = "loss's own score (`tasksieve.losses.Loss.deviance`)"

    def __init__(
        self,
        loss: str | Loss = "squared",
        penalty: str | RowPenalty = "l21",
        *,
        alphas: Any = None,
        **options: Unpack[RegressorCVOptions],
    ) -> None:
        keep_parameters(self, locals())
