"""A loss of its own for each task: outcomes of unlike kinds, one set of features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Unpack

import numpy as np

from ..docstrings import described_by
from ..fitted.arguments import check_number
from ..fitted.documented import DATA, ROWS, documented
from ..fitted.measures import places_of_tasks
from ..fitted.parameters import keep_parameters
from ..fitted.predicting import Predicting
from ..fitted.predictions import Predictions
from ..fitted.state import as_they_are, class_probabilities
from ..losses import Loss, Mixed
from ..members import LOSSES
from ..messages import ParameterError
from ..penalties import RowPenalty
from ..tasks import (
    TaskData,
    TaskLabels,
    is_task_list,
    like,
    map_rows,
    read_offset,
    some_of,
    task_codes,
    to_numpy,
    without_common_factor,
)
from ..tasks.mixed_labels import read_known_tasks, read_mixed
from ..tasks.named import takes_named_tasks
from ..user_warnings import warn
from .balance import Balance, balance_of
from .base import PathEstimator
from .explained import explained_deviance
from .generic import AnyMembers, RegressorOptions
from .units import TargetUnits

Array = np.ndarray[Any, Any]


class _AnyLosses(Predicting, AnyMembers):
    """A model with a loss for each task."""

    _targets: ClassVar[Literal["values", "classes", "survival"]] = "values"

    losses: Any
    loss_weights: Any
    target_scales: Any
    task_weights: Any

    loss_weights_: Array
    target_scales_: Array
    losses_: list[Loss]
    classes_: list[Array | None]

    # -- which loss -------------------------------------------------------------------------------------------------

    def _knows_loss(self) -> bool:
        return True  # they are looked at one by one

    def _takes(self, loss: type[Loss]) -> bool:
        return loss.labels not in ("one-hot", "mixed")

    @property
    def _loss(self) -> Loss:  # type: ignore[override]
        """What is common to all: objectives are means over tasks of what the rows add."""
        return Mixed(["squared"])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, loss in self._named_losses():
            self._one_loss(loss, name)
        for name in ("loss_weights", "target_scales"):
            rule = getattr(self, name)
            each = list(rule.values()) if isinstance(rule, Mapping) else np.ravel(to_numpy(rule)).tolist()
            for value in [] if rule is None else each:
                check_number(value, name, low=0, closed=False)

    def _named_losses(self) -> list[tuple[str, Any]]:
        given = self.losses
        if isinstance(given, Mapping):
            return [(f"losses[{task!r}]", loss) for task, loss in given.items()]
        if isinstance(given, list | tuple):
            return [(f"losses[{t}]", loss) for t, loss in enumerate(given)]
        return [("losses", given)]

    def _one_loss(self, loss: Any, name: str) -> Loss:
        if isinstance(loss, Loss):
            Mixed([loss])  # refuses those that cannot stand beside others
            return loss
        if not LOSSES.offers(loss) or not self._takes(LOSSES[loss]):
            names = ", ".join(
                repr(own) for own in LOSSES.offered() if self._takes(LOSSES[own]) and own != "square-root"
            )
            raise ParameterError(name, f"must be one of {names} or a tasksieve.losses.Loss", loss)
        found: Loss = LOSSES.make(loss)
        Mixed([found])
        return found

    def _losses_of(self, tasks: Array) -> list[Loss]:
        """In the order of the tasks."""
        given, names = self.losses, tasks.tolist()
        if isinstance(given, Mapping):
            unknown = [task for task in given if task not in names]
            if unknown:
                raise ParameterError("losses", f"names the task {unknown[0]!r}, which is not in the data", None)
            missing = [task for task in names if task not in given]
            if missing:
                raise ParameterError("losses", f"has no loss for the task {missing[0]!r}: each task needs one", None)
            return [self._one_loss(given[task], f"losses[{task!r}]") for task in names]
        if isinstance(given, list | tuple):
            if len(given) != len(names):
                words = f"has {len(given)} losses, but there are {len(names)} tasks ({some_of(names)}): one each"
                raise ParameterError("losses", words, None)
            return [self._one_loss(loss, f"losses[{t}]") for t, loss in enumerate(given)]
        loss = self._one_loss(given, "losses")
        return [loss] * len(names)

    def _balance(self, data: TaskData) -> Balance:
        known: Balance | None = data.balance
        return balance_of(self, data, self._losses_of(data.tasks)) if known is None else known

    def _loss_of(self, data: TaskData) -> Loss:
        return Mixed(self._losses_of(data.tasks), self._balance(data).weights.tolist())

    @property
    def _fitted_loss(self) -> Loss:
        return Mixed(self.losses_, self.loss_weights_.tolist())

    def _units(self, data: TaskData, weights: Array) -> TargetUnits:
        return self._balance(data).units(data)

    # -- labels -----------------------------------------------------------------------------------------------------

    def _read_kinds(self, X: Any, y: Any, task: Any, sample_weight: Any) -> TaskData:
        def kinds(tasks: Array) -> list[str]:
            return [loss.labels for loss in self._losses_of(tasks)]

        return read_mixed(X, y, task, sample_weight, kinds=kinds, task_weights=self.task_weights)

    def _weights_as_given(self, X: Any, y: Any, task: Any, sample_weight: Any) -> Array:
        return np.asarray(self._read_kinds(X, y, task, sample_weight).weights)

    def _read(self, X: Any, y: Any, task: Any, sample_weight: Any) -> TaskData:
        data = self._read_kinds(X, y, task, sample_weight)
        if getattr(self, "fit_intercept", True):
            _warn_no_counts(data)
        self._report_passes(data)
        ordinary = without_common_factor(data.weights)
        return data if ordinary is data.weights else data.with_weights(ordinary)

    def _read_with(self, X: Any, y: Any, task: Any, sample_weight: Any, offset: Any) -> TaskData:
        data = super()._read_with(X, y, task, sample_weight, offset)
        return replace(data, balance=self._balance(data))

    def _read_test_labels(self, X: Any, y: Any, task: Any, sample_weight: Any, state: Any = None) -> TaskLabels:
        kinds = [loss.labels for loss in self.losses_]
        return read_known_tasks(X, y, task, sample_weight, tasks=self.tasks_, kinds=kinds, classes=self.classes_)

    def _set_solution(self, data: Any, point: Any) -> None:
        super()._set_solution(data, point)
        self.losses_ = self._losses_of(data.tasks)
        self.classes_ = [None] * len(data.tasks) if data.classes is None else list(data.classes)
        self.loss_weights_, self.target_scales_ = data.balance.weights, data.balance.scales

    # -- predictions ------------------------------------------------------------------------------------------------

    def _predict(self, X: Any, task: Any, state: Any = None, offset: Any = None) -> Any:
        scores = self._scores(X, task, state or self._learned(), offset)
        if is_task_list(X):
            return [self._answer(t, part) for t, part in enumerate(scores)]
        codes = None if task is None else task_codes(task, self.tasks_, len(scores))
        return map_rows(self._answers, scores, codes)

    def _answer(self, t: int, z: Array) -> Array:
        """What scores of a task mean in its own units."""
        classes = self.classes_[t]
        return self.losses_[t].link(z) if classes is None else classes[(z > 0.0).astype(np.intp)]

    def _answers(self, scores: Array, codes: Any) -> Array:
        """The same of rows of several tasks, or of a column for each."""
        if scores.ndim == 2:
            return np.stack(as_they_are([self._answer(t, scores[:, t]) for t in range(scores.shape[1])]), axis=1)
        if codes is None:
            return self._answer(0, scores)
        tasks = np.unique(codes).tolist()
        parts = as_they_are([self._answer(t, scores[codes == t]) for t in tasks])
        out = np.empty(len(scores), dtype=np.result_type(*parts) if parts else np.float64)
        for t, part in zip(tasks, parts, strict=True):
            out[codes == t] = part
        return out

    @takes_named_tasks
    @described_by(ROWS)
    def decision_function(self, X: Any, task: Any = None, *, offset: Any = None) -> Predictions:
        """Linear scores, x . w_t + b_t + offset, in every task: what `predict` is made of.

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            As `predict`. Means of numbers, logarithms of rates or means, log-odds of the larger class, log hazards.
        """
        return like(X, self._scores(X, task, offset=offset))

    @takes_named_tasks
    @described_by(ROWS)
    def predict_proba(self, X: Any, task: Any = None, *, offset: Any = None) -> Any:
        """Probabilities of the classes, of tasks whose loss has them.

        Returns
        -------
        list of T entries
            (n, K_t) for a task with probabilities, in the order of its ``classes_``: of all rows without ``task``, of
            the task's own rows with it. None for other tasks.
        """
        scores = self._scores(X, task, offset=offset)
        n_tasks = len(self.tasks_)
        if not is_task_list(X):
            scores = np.asarray(scores)
            if task is not None:
                codes = task_codes(task, self.tasks_, len(scores))
                scores = [scores[codes == t] for t in range(n_tasks)]
            else:
                scores = [scores] if scores.ndim == 1 else [scores[:, t] for t in range(n_tasks)]
        return [self._probabilities(t, np.asarray(part)) for t, part in enumerate(scores)]

    def _probabilities(self, t: int, z: Array) -> Array | None:
        return class_probabilities(z, False) if self.losses_[t].probabilities else None

    # -- how good ---------------------------------------------------------------------------------------------------

    def _task_score(self, X: Any, y: Any, task: Any, sample_weight: Any, offset: Any = None) -> float:
        values = self.deviance_explained(X, y, task, sample_weight, offset=offset)
        known = values[np.isfinite(values)]
        return float(np.mean(known)) if len(known) else float("nan")

    @takes_named_tasks
    @described_by(DATA)
    def score(self, X: Any, y: Any = None, task: Any = None, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Mean over tasks of the deviance explained, D²: comparable, whatever the outcomes are.

        Returns
        -------
        float
            1 is perfect, 0 as good as each task's best constant.
        """
        return self._task_score(X, y, task, sample_weight, offset)

    @takes_named_tasks
    @described_by(DATA)
    def deviance_explained(
        self, X: Any, y: Any = None, task: Any = None, sample_weight: Any = None, *, offset: Any = None
    ) -> Array:
        """Of each task: 1 - deviance / deviance of the task's best constant (R² where the loss is the squared one).

        Returns
        -------
        ndarray of shape (T,)
            In the order of ``tasks_``; NaN for tasks without labels, or whose labels a constant explains.
        """
        state = self._learned()
        labels = self._read_test_labels(X, y, task, sample_weight, state)
        known = None if offset is None else labels.unflatten(read_offset(offset, labels))
        flat = labels.flatten(self._scores(X, task, state, known))
        found = np.full(len(self.tasks_), np.nan)
        places = places_of_tasks(labels, self.tasks_)
        for place, part in zip(places.tolist(), labels.per_task(), strict=True):
            loss, scale = self.losses_[place], float(self.target_scales_[place])
            own = labels.weights[part] > 0.0
            if np.count_nonzero(own) >= 2:
                y_own, z = labels.y[part][own] / scale, flat[part][own] / scale
                found[place] = explained_deviance(loss, y_own, z, labels.weights[part][own])
        return found


def _warn_no_counts(data: TaskData) -> None:
    """Name the tasks that count nothing: with an intercept, their loss has no minimiser."""
    assert data.kinds is not None
    names = [
        name
        for name, kind, part in zip(data.tasks.tolist(), data.kinds, data.per_task(), strict=True)
        if kind == "counts" and not np.any(data.weights[part] * data.y[part])
    ]
    if names:
        warn(
            f"{len(names)} task(s) count nothing ({some_of(names)}): their best intercept would be minus infinity and "
            "is kept finite, their rate is practically 0, and they do not affect which features are selected.",
        )


@documented
class MultiTaskMixed(_AnyLosses, PathEstimator):
    r"""Outcomes of unlike kinds, a loss for each task, and features that are selected for all of them together.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t v_t \sum_i s_i f_t\Bigl(\frac{y_i}{\sigma_t}, x_i \cdot w_t + b_t\Bigr)
        + \alpha\, \Omega(W) + \frac{\text{ridge}}{2} \lVert W \rVert_F^2
        + \frac{\gamma}{2} \sum_j \sum_{s<t} A_{st} (W_{js} - W_{jt})^2

    with {terms} :math:`\sigma_t` is the standard deviation of the responses where the loss is about :math:`y - z`
    (squared, Huber, quantile), 1 elsewhere: coefficients are multiplied by it afterwards, so that ``coef_`` is in the
    units of y. :math:`v_t = 1/\rho_t`, with :math:`\rho_t` the root mean square of the residual of the task's null
    model: then no task dominates by its units, and noise enters all tasks at the same alpha.

    Parameters
    ----------
    losses : str, Loss, list or dict, default="squared"
        The loss of each task: a dict by task, a list in the order of ``tasks_``, or one for all. Names ("squared",
        "huber", "quantile", "poisson", "logistic", "squared_hinge", "smoothed_hinge"), or objects of
        `tasksieve.losses`. Parameters that are in the units of y (``delta``, ``smoothing``) are in units of
        ``target_scales_``.
    loss_weights : float, array of shape (T,) or dict, optional
        :math:`v_t` in place of :math:`1/\rho_t`: one for all, in the order of ``tasks_``, or by task (others keep
        theirs). ``task_weights`` multiply them.
    target_scales : float, array of shape (T,) or dict, optional
        :math:`\sigma_t` in place of standard deviations: one for all (1: responses as they are), in the order of
        ``tasks_``, or by task.

    Attributes
    ----------
    coef_ : ndarray of shape (T, d)
        Coefficients in the units of y, a row per task. What is penalised, and what the certificate is about, is
        ``coef_ / target_scales_[:, None]``.
    losses_ : list of Loss
        In the order of ``tasks_``.
    loss_weights_, target_scales_ : ndarrays of shape (T,)
        :math:`v_t` and :math:`\sigma_t`.
    classes_ : list
        The two classes of each task, the larger is +1; None for tasks of other outcomes.

    Notes
    -----
    ``alpha`` is on the scale of the weighted problem: not comparable with that of models of single tasks. With one
    task, ``loss_weights=1`` and ``target_scales=1`` the model is that of the single loss.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X = {task: rng.standard_normal((60, 8)) for task in ("pressure", "diabetes", "visits")}
    >>> z = {task: own[:, 0] for task, own in X.items()}
    >>> y = {
    ...     "pressure": 120.0 + 15.0 * z["pressure"] + rng.normal(0.0, 5.0, 60),
    ...     "diabetes": np.where(z["diabetes"] + rng.logistic(0.0, 0.5, 60) > 0.0, "yes", "no"),
    ...     "visits": rng.poisson(np.exp(0.5 + z["visits"])),
    ... }
    >>> model = ts.MultiTaskMixed({"pressure": "squared", "diabetes": "logistic", "visits": "poisson"}, alpha=0.4)
    >>> model.fit(X, y).get_support(indices=True)
    array([0])
    >>> {task: answer[:2].tolist() for task, answer in model.predict({"diabetes": X["diabetes"]}).items()}
    {'diabetes': ['no', 'yes']}
    """

    def __init__(
        self,
        losses: Any = "squared",
        penalty: str | RowPenalty = "l21",
        *,
        alpha: float = 1.0,
        loss_weights: Any = None,
        target_scales: Any = None,
        **options: Unpack[RegressorOptions],
    ) -> None:
        keep_parameters(self, locals())
