"""The null model: intercepts and unpenalised features only, what any finding has to do better than."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ..design import DenseStorage, one_blas_thread
from ..design.sums import Gathered
from ..fitted.covariates import covariates_of
from ..path.solve import Value
from ..tasks import TaskData, lay_out
from .base import PathEstimator
from .held_out import Solved
from .units import exponent_of


class NullModel:
    """The model without its penalised features, to be fitted to some rows of the data or to others: its own loss,
    minimised over intercepts and coefficients of the covariates. It is what the model itself is at alpha_max."""

    def __init__(self, model: Any, data: TaskData) -> None:
        self._model, self._data = model, data
        self.covariates = covariates_of(model, data.n_features)
        columns = data.take(self.covariates) if len(self.covariates) else np.zeros((data.n_rows, 1))
        storage = DenseStorage(np.asfortranarray(columns, dtype=np.float64))
        self._exponent = exponent_of(storage)
        if self._exponent:
            storage = DenseStorage(np.asfortranarray(np.ldexp(columns, -self._exponent)))
        self._storage = storage

    def fit(self, weights: np.ndarray) -> Solved:
        """Its numbers on the rows with a positive weight."""
        model = self._model
        data = self._data.with_weights(weights)
        weights = model._row_weights(data)
        units = replace(model._units(data, weights), x=self._exponent)
        layout = lay_out(replace(data, X=self._storage, n_features=self._storage.n_features), weights)
        with one_blas_thread():
            free = np.arange(len(self.covariates))
            design = layout.design(fit_intercept=model.fit_intercept, unpenalised=free, n_threads=1)
            known = () if data.known is None else (units.labels(data.known),)
            loss = model._loss_of(data).on(design, units.labels(layout.y), *known)
            found, first = loss.null.nuisance, int(model.fit_intercept)
        rows, intercept = found[first : design.n_nuisance], np.zeros(design.n_tasks)
        if first:
            intercept = found[0] + loss.shift - np.sum(design.nuisance_shifts[first:] * rows, axis=0)
        thresholds = loss.thresholds(found)
        if loss.has_intercept is not None:
            thresholds = None if thresholds is None else thresholds - np.where(loss.has_intercept, 0.0, intercept)
            intercept = np.where(loss.has_intercept, intercept, 0.0)
        rows, intercept = units.solution(rows, intercept)
        return Solved(self.covariates, rows, intercept, thresholds)


def fit_null(
    model: PathEstimator, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None, offset: Any = None
) -> PathEstimator:
    """The null model as an estimator that predicts; rows are those of `fit`."""
    null = clone(model)
    data = null._read_with(X, y, task, sample_weight, offset)
    null._set_features(X, data)
    return as_null(null, data, NullModel(null, data).fit(data.weights))


def as_null(null: PathEstimator, facts: Any, found: Solved) -> PathEstimator:
    """An estimator with the numbers of the null model; it is no optimum of the estimator's objective, and has none."""
    none = float("nan")
    nothing = np.full(found.rows.shape[1], none)
    value = Value(np.inf, found.features, found.rows, found.intercept, none, none, 0, 0, 0, 0.0, True)
    null._set_solution(facts, replace(value, residual_norms=nothing, clusters=[], thresholds=found.thresholds))
    return null


def null_of_sums(model: Any, training: Gathered) -> Solved:
    """The same for least squares on rows of which only the sums are left."""
    covariates, first = covariates_of(model, training.n_features), int(model.fit_intercept)
    moments = training.moments.split(np.empty(0, dtype=np.int64), covariates, model.fit_intercept)
    of_task = np.zeros(training.n_tasks, dtype=np.int64) if len(training.shifts) == 1 else np.arange(training.n_tasks)
    found = np.zeros((first + len(covariates), training.n_tasks))
    for t, m in enumerate(of_task.tolist()):
        found[:, t] = np.linalg.lstsq(moments.nuisance[m], moments.explained[t], rcond=None)[0]
    rows, intercept = found[first:], np.zeros(training.n_tasks)
    if first:
        shifts = training.shifts[of_task][:, covariates].T
        intercept = found[0] + training.label_shifts - np.sum(shifts * rows, axis=0)
    return Solved(covariates, rows, intercept)
