"""A loss of its own for each task: outcomes of unlike kinds, one set of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Unpack

import numpy as np

from ..docstrings import described_by
from ..fitted.arguments import check_number
from ..fitted.documented import DATA, ROWS, documented
from ..fitted.explained import explained_deviance, in_units_of_loss
from ..fitted.measures import places_of_tasks
from ..fitted.mixed_quality import MixedOutOfFold
from ..fitted.parameters import keep_parameters
from ..fitted.predicting import Predicting
from ..fitted.predictions import Predictions
from ..fitted.state import LinearState, as_they_are, class_probabilities
from ..losses import Loss, Mixed
from ..losses.mixed import refuse_in_mixture, stands_beside_others
from ..members import LOSSES
from ..messages import Message, ParameterError, either
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
from ..tasks.named import is_named, takes_named_tasks
from ..user_warnings import warn
from .balance import Balance, balance_of
from .base import PathEstimator
from .generic import AnyMembers, AnyMembersCV, RegressorCVOptions, RegressorOptions
from .held_out import Judge, Scores
from .units import TargetUnits

Array = np.ndarray[Any, Any]


class _AnyLosses(Predicting, AnyMembers):
    """A model with a loss for each task."""

    _targets: ClassVar[Any] = "mixed"

    losses: Any
    loss_weights: Any
    target_scales: Any
    categories: Any
    task_weights: Any
    thresholds_: list[Array | None]

    loss_weights_: Array
    target_scales_: Array
    classes_: list[Array | None]

    @property
    def losses_(self) -> list[Loss]:
        """The loss of each task, in the order of ``tasks_``."""
        return self._losses_of(self.tasks_)

    # -- which loss -------------------------------------------------------------------------------------------------

    def _knows_loss(self) -> bool:
        return True  # they are looked at one by one

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
        if not isinstance(loss, Loss) and not (isinstance(loss, str) and loss in LOSSES):
            names = ", ".join(repr(own) for own in LOSSES if stands_beside_others(own))
            words = Message("must be one of {names}{other}", names=names, other=either(" or a tasksieve.losses.Loss"))
            raise ParameterError(name, words, loss)
        found: Loss = LOSSES.make(loss)
        refuse_in_mixture(found)
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

    def _judge(self, data: TaskData, scoring: Any, folds: Sequence[tuple[Array, Array]]) -> Judge:
        balance = self._balance(data)
        held = [[float(np.sum(test[part])) for part in data.per_task()] for _, test in folds]
        return MixedJudge(Mixed(self._losses_of(data.tasks), balance.weights.tolist()), balance, np.mean(held, axis=0))

    def _out_of_fold(self, data: TaskData, loss: Loss) -> MixedOutOfFold:
        losses = self._losses_of(data.tasks)

        def answer(t: int, z: Array) -> Array:
            own: Any = losses[t]
            if own.labels == "ordered":  # the expected class, counted from 0
                shares = own.class_probabilities(z)
                return np.asarray(shares @ np.arange(shares.shape[-1]))
            return np.asarray(own.link(z))

        return MixedOutOfFold(data, losses, self._balance(data).scales, answer)

    def _units(self, data: TaskData, weights: Array) -> TargetUnits:
        return self._balance(data).units(data)

    # -- labels -----------------------------------------------------------------------------------------------------

    def _read_kinds(self, X: Any, y: Any, task: Any, sample_weight: Any) -> TaskData:
        def kinds(tasks: Array) -> list[str]:
            return [loss.labels for loss in self._losses_of(tasks)]

        return read_mixed(
            X, y, task, sample_weight, kinds=kinds, categories=self.categories, task_weights=self.task_weights
        )

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
        found: Any = getattr(point, "thresholds", None)
        super()._set_solution(data, point if found is None else replace(point, thresholds=None))
        self.classes_ = [None] * len(data.tasks) if data.classes is None else list(data.classes)
        self.thresholds_ = [
            _padded(found[:, t], len(classes) - 1) if loss.labels == "ordered" and classes is not None else None
            for t, (loss, classes) in enumerate(zip(self._losses_of(data.tasks), self.classes_, strict=True))
        ]
        self.loss_weights_, self.target_scales_ = data.balance.weights, data.balance.scales

    def _learned(self) -> LinearState:
        state = super()._learned()
        known = self.thresholds_
        if all(own is None for own in known):
            return replace(state, thresholds=None)
        return replace(state, thresholds=[np.empty(0) if own is None else own for own in known])

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
        if classes is None:
            return self.losses_[t].link(z)
        if self.thresholds_[t] is not None:
            return classes[np.argmax(np.asarray(self._probabilities(t, z)), axis=-1)]
        return classes[(z > 0.0).astype(np.intp)]

    def _judged(self, t: int, z: Array) -> Array:
        """What a loss judges: the scores, or thresholds less the scores."""
        own = self.thresholds_[t]
        return z if own is None else own - z[:, None]

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
    def decision_function(self, X: Any, *, task: Any = None, offset: Any = None) -> Predictions:
        """Linear scores, x . w_t + b_t + offset, in every task: what `predict` is made of.

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            As `predict`. Means of numbers, logarithms of rates or means, log-odds of the larger class, log hazards.
        """
        return like(X, self._scores(X, task, offset=offset))

    @described_by(ROWS)
    def predict_proba(self, X: Any, *, task: Any = None, offset: Any = None) -> Any:
        """Probabilities of the classes, of tasks whose loss has them.

        Returns
        -------
        list of T entries, or dict
            (n, K_t) for a task with probabilities, in the order of its ``classes_``: of all rows without ``task``, of
            the task's own rows with it. None for other tasks. By task where X is a dict.
        """
        if is_named(X):
            found, places = self._all_probabilities(X, task=task, offset=offset), self.tasks_.tolist()
            return {name: own[places.index(name)] for name, own in found.items()}
        return self._all_probabilities(X, task=task, offset=offset)

    @takes_named_tasks
    def _all_probabilities(self, X: Any, *, task: Any = None, offset: Any = None) -> Any:
        """A list by task."""
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
        loss: Any = self.losses_[t]
        if not loss.probabilities:
            return None
        if self.thresholds_[t] is not None:
            return np.asarray(loss.class_probabilities(self._judged(t, z)))
        return class_probabilities(z, False)

    # -- how good ---------------------------------------------------------------------------------------------------

    def _task_score(self, X: Any, y: Any, task: Any, sample_weight: Any, offset: Any = None) -> float:
        values = self.deviance_explained(X, y, task=task, sample_weight=sample_weight, offset=offset)
        known = values[np.isfinite(values)]
        return float(np.mean(known)) if len(known) else float("nan")

    @takes_named_tasks
    @described_by(DATA)
    def score(self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None, offset: Any = None) -> float:
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
        self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> Array:
        """Of each task: 1 - deviance / deviance of the task's best constant (R² where the loss is the squared one).

        Returns
        -------
        ndarray of shape (T,)
            In the order of ``tasks_``; NaN for tasks without labels, or whose labels a constant explains.
        """
        state = self._learned()
        labels = self._read_test_labels(X, y, task, sample_weight, state)
        offsets = None if offset is None else read_offset(offset, labels)
        known = None if offsets is None else labels.unflatten(offsets)
        flat = labels.flatten(self._scores(X, task, state, known))
        found = np.full(len(self.tasks_), np.nan)
        places = places_of_tasks(labels, self.tasks_)
        for place, part in zip(places.tolist(), labels.per_task(), strict=True):
            loss, scale = self.losses_[place], float(self.target_scales_[place])
            own = labels.weights[part] > 0.0
            if np.count_nonzero(own) < 2:
                continue
            y_own = labels.y[part][own] if loss.labels == "survival" else labels.values[part][own] / scale
            beside = None if offsets is None else offsets[part][own]
            z = self._judged(place, flat[part][own]) / scale
            found[place] = explained_deviance(loss, y_own, z, labels.weights[part][own], beside)
        return found


def _padded(thresholds: Any, count: int) -> Array:
    """So many thresholds of a task: infinite beyond its last class that had rows."""
    return np.append(thresholds, np.full(max(count - len(thresholds), 0), np.inf))[:count]


class MixedJudge(Judge):
    """Held-out rows by the loss of their task, in its units and with its weight, so that tasks can be added up."""

    def __init__(self, loss: Mixed, balance: Balance, sizes: Array) -> None:
        super().__init__(loss)
        self._mixed, self._balance, self._weights_held = loss, balance, sizes

    def by_task(
        self, data: TaskData, train: Array, test: Array, points: Sequence[Any], found: Scores | None = None
    ) -> Array:
        chosen, scores = self.scores(data, train, test, points) if found is None else found
        out = np.full((data.n_tasks, len(points)), np.nan)
        for t, z in scores.items():
            loss, v, scale = self._mixed.of_task(t), self._balance.weights[t], self._balance.scales[t]
            flat = data.offsets[t] + chosen[t]
            held = test[flat] > 0.0
            if not held.any():
                continue
            if loss.by_row:
                flat, z = flat[held], z[held]
                rows = in_units_of_loss(loss, data.values[flat][:, None] / scale, z / scale)
                out[t] = v * np.average(rows, axis=0, weights=test[flat])
            else:  # half the deviance of the fold, by the weight of its rows
                own = loss.held_out(data.y[flat], z, train[flat], test[flat])
                out[t] = 0.5 * v * own.sum(axis=0) / self._weights_held[t]
        return out


def _warn_no_counts(data: TaskData) -> None:
    """Name the tasks that count nothing: with an intercept, their loss has no minimiser."""
    assert data.kinds is not None
    names = [
        name
        for name, kind, part in zip(data.tasks.tolist(), data.kinds, data.per_task(), strict=True)
        if kind == "counts" and not np.any(data.weights[part] * data.values[part])
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
    categories : dict of task to sequence of labels, optional
        Classes of tasks with the loss "ordinal" from the lowest to the highest. Numbers need none, and an ordered
        categorical of pandas has its own.

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
        The two classes of each task, the larger is +1, or its ordered classes; None for tasks of other outcomes.
    thresholds_ : list
        Between the ordered classes of a task; None for tasks of other outcomes.

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
    {'diabetes': ['yes', 'yes']}
    """

    def __init__(
        self,
        losses: Any = "squared",
        penalty: str | RowPenalty = "l21",
        *,
        alpha: float = 1.0,
        loss_weights: Any = None,
        target_scales: Any = None,
        categories: Any = None,
        **options: Unpack[RegressorOptions],
    ) -> None:
        keep_parameters(self, locals())


@documented
class MultiTaskMixedCV(_AnyLosses, AnyMembersCV):
    """`MultiTaskMixed` with ``alpha``, and ``graph_strength`` where several are given, by cross-validation.

    Scales and weights are those of the training rows of each fold in its fit, and those of all rows where held-out rows
    are judged. Folds are stratified by the classes and events of each task.

    Parameters
    ----------
    scoring : None
        Tasks of unlike outcomes have no score in common but their loss.

    Attributes
    ----------
    cv_quality_ : HeldOutQuality
        Deviance explained (D²) of each task and their mean, and each task in its own measures (accuracy and AUC,
        concordance, its deviance), NaN where a task has none.
    cv_predictions_ : ndarray, or list of such for a list
        Out of fold at ``alpha_``, in the order of y: means, probabilities of the larger class, the expected class of
        ordered ones counted from 0, log hazards; NaN for rows that were never held out.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, pressure, _, _ = ts.datasets.make_small_tasks(effects=[15.0], noise=5.0, n_rows=80)
    >>> _, visits, _, _ = ts.datasets.make_small_tasks("counts", effects=[1.0], n_rows=80)  # of the same X
    >>> y = {"pressure": pressure, "visits": visits}
    >>> model = ts.MultiTaskMixedCV({"pressure": "squared", "visits": "poisson"}, n_alphas=20, eps=0.05, cv=3)
    >>> model.fit(X, y).score(X, y) > 0.6
    True
    >>> model.cv_quality_.measures
    ('D²', 'squared error', 'Poisson deviance')
    """

    _estimator = MultiTaskMixed
    _held_out_words = "loss of each task, times its weight ``loss_weights_``"

    def __init__(
        self,
        losses: Any = "squared",
        penalty: str | RowPenalty = "l21",
        *,
        alphas: Any = None,
        loss_weights: Any = None,
        target_scales: Any = None,
        categories: Any = None,
        **options: Unpack[RegressorCVOptions],
    ) -> None:
        keep_parameters(self, locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.scoring is not None:
            words = "must be None: tasks of unlike outcomes have no score in common"
            raise ParameterError("scoring", words, self.scoring)
