r"""What makes tasks of unlike outcomes comparable: scales of their responses, and weights of their losses.

A weight cannot repair the units of coefficients: the penalty compares these across tasks. So where a loss is about
``y - z`` the responses are divided by their standard deviation first. Then, with u_0 minus the slopes of a task's loss
at the null model (u = s p for row weights s),

    v_t = 1/rho_t,    rho_t^2 = sum_i u_0i^2/s_i / sum_i s_i:

for standardised columns the correlations of task t at the null model are root n_t times the score-test statistics of
the features, so that no task dominates by its units and noise enters all tasks at the same alpha.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from ..design import DenseStorage, one_blas_thread
from ..fitted.covariates import covariates_of
from ..losses import Loss, Mixed
from ..messages import value_error
from ..tasks import TaskData, lay_out
from .units import TargetUnits

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Balance:
    """Scales of the responses and weights of the losses, (T,)."""

    scales: Array
    weights: Array

    def units(self, data: TaskData) -> TargetUnits:
        """Those in which a problem of the data is solved."""
        return TargetUnits(scales=self.scales, lengths=np.diff(data.offsets))


def balance_of(model: Any, data: TaskData, losses: Sequence[Loss]) -> Balance:
    """Of data, as the model's parameters have it."""
    scales = _given(model.target_scales, "target_scales", data.tasks)
    for t in np.flatnonzero(np.isnan(scales)).tolist():
        scales[t] = _spread(data, t) if losses[t].translates else 1.0
    weights = _given(model.loss_weights, "loss_weights", data.tasks)
    automatic = np.isnan(weights)
    if automatic.any():
        found = null_residuals(model, data, losses, Balance(scales, weights).units(data))
        weights = np.where(automatic, np.divide(1.0, found, out=np.ones_like(found), where=found > 0.0), weights)
    return Balance(scales, weights)


def _given(rule: Any, name: str, tasks: Array) -> Array:
    """Numbers of the tasks, NaN where none is given."""
    if rule is None:
        return np.full(len(tasks), np.nan)
    if isinstance(rule, Real):
        return np.full(len(tasks), float(rule))
    if isinstance(rule, Mapping):
        names = tasks.tolist()
        unknown = [task for task in rule if task not in names]
        if unknown:
            raise ValueError(f"{name} names the task {unknown[0]!r}, which is not in the data.")
        return np.array([float(rule.get(task, np.nan)) for task in names])
    found = np.array(rule, dtype=np.float64)
    if found.shape != (len(tasks),):
        raise ValueError(f"{name} has shape {found.shape}, but there are {len(tasks)} tasks: one number per task.")
    return found


def _spread(data: TaskData, t: int) -> float:
    """Standard deviation of the responses of a task, less what is known of them; 1 where they are all the same."""
    part = slice(int(data.offsets[t]), int(data.offsets[t + 1]))
    own = data.values[part]
    own = own if data.known is None else own - data.known[part]
    weights = data.weights[part]
    live = weights > 0.0
    own, weights = own[live], weights[live]
    largest = float(np.max(np.abs(own), initial=0.0))
    if not largest > 0.0:
        return 1.0
    own = own / largest  # squares stay inside the range
    mean = np.average(own, weights=weights)
    found = float(np.sqrt(np.average(np.square(own - mean), weights=weights)))
    return found * largest if found > 1e-14 else 1.0


def null_residuals(model: Any, data: TaskData, losses: Sequence[Loss], units: TargetUnits) -> Array:
    """Root mean squares of the residuals of each task's null model: intercepts and unpenalised features only."""
    covariates = covariates_of(model, data.n_features)
    columns = data.take(covariates) if len(covariates) else np.zeros((data.n_rows, 1))
    storage = DenseStorage(np.asfortranarray(columns, dtype=np.float64))
    layout = lay_out(replace(data, X=storage, n_features=storage.n_features), data.weights)
    with one_blas_thread():
        free = np.arange(len(covariates))
        design = layout.design(fit_intercept=model.fit_intercept, unpenalised=free, n_threads=1)
        known = () if data.known is None else (units.labels(data.known),)
        found = Mixed(losses).on(design, units.labels(layout.y), *known)
        squares = design.task_sums(np.square(found.null.residual))
    totals = design.task_sums(data.weights)
    if not np.all(np.isfinite(squares)):
        t = int(np.argmin(np.isfinite(squares)))
        raise value_error(
            "{y}: the null residual of task {task!r} is not finite, so that its loss has no weight: give it one "
            "(loss_weights).",
            task=data.tasks.tolist()[t],
        )
    return np.sqrt(np.divide(squares, totals, out=np.zeros_like(squares), where=totals > 0.0))
