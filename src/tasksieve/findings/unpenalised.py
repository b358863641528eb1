"""One task fitted without a penalty: the model's own loss on a few features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from ..design import DenseStorage, Design
from ..losses import Loss
from ..losses.squared import TargetLoss

Array = np.ndarray[Any, Any]

_FLAT = 1e-9  # of the largest curvature: less, in some direction, and the fit diverges along it


class NoFit(ValueError):
    """There is no finite fit; the message says why, without the task."""


@dataclass(frozen=True)
class TaskFit:
    """Coefficients of one task, and the rows they were fitted to."""

    coef: Array
    intercept: float
    scores: Array  # ``columns @ coef + intercept + offset``
    unique: bool  # no other coefficients fit as well; else these have the smallest norm, columns being of length 1
    columns: Array
    thresholds: Array | None = None  # between ordered classes, which scores are compared with

    def times(self, scale: float) -> TaskFit:
        """The same for responses that were divided by a scale."""
        if scale == 1.0:
            return self
        return replace(self, coef=self.coef * scale, intercept=self.intercept * scale, scores=self.scores * scale)


def fit_task(
    loss: Loss,
    columns: Array,
    y: Array,
    weights: Array,
    offset: Array | None,
    *,
    fit_intercept: bool,
    ridge: float = 0.0,
    positive: bool = False,
) -> TaskFit:
    """Minimise the loss of observed rows (of numbers, counts or two classes), or with least squares, which alone has
    `ridge` and `positive`, that plus ``total weight ridge/2 ||coef||^2``."""
    count = columns.shape[1]
    design = Design(
        DenseStorage(np.asfortranarray(columns if count else np.zeros((len(y), 1)), dtype=np.float64)),
        np.array([0, len(y)]),
        weights=weights,
        fit_intercept=fit_intercept,
        unpenalised=np.arange(count),
        n_threads=1,
    )
    known = () if offset is None else (np.ascontiguousarray(offset, dtype=np.float64),)
    on = loss.on(design, np.ascontiguousarray(y, dtype=np.float64 if y.dtype.names is None else None), *known)
    first = int(fit_intercept)
    shifts, basis = design.nuisance_shifts[first:, 0], design.nuisance_basis
    unique = len(basis) - first == count
    if (ridge or positive) and not isinstance(on, TargetLoss):
        raise ValueError(
            f"{'ridge' if ridge else 'positive=True'} is for least squares only, and the loss of the model is another: "
            "leave it out."
        )
    if loss.labels != "values":
        _refuse_divergence(on, basis)
    coef = on.null.nuisance[first : design.n_nuisance, 0].copy()
    rest = float(on.null.nuisance[0, 0]) if fit_intercept else 0.0
    rest += float(on.shift[0])
    if count and (ridge or positive or not unique):
        root = np.sqrt(weights)[:, None]
        centred = columns - shifts
        level = root * np.ones((len(y), 1))
        freed, target = root * centred, root[:, 0] * (centred @ coef)  # any coefficients with the same scores
        if ridge or positive:
            assert isinstance(on, TargetLoss)
            target = on.weighted_labels
        if fit_intercept:
            level /= np.linalg.norm(level)
            freed, target = freed - level * (level.T @ freed), target - level[:, 0] * (level[:, 0] @ target)
        coef = _least_squares(freed, target, ridge * float(weights.sum()), positive)
        unique = unique or bool(ridge)
        if fit_intercept and isinstance(on, TargetLoss):
            total = float(weights.sum())
            labels = np.sqrt(weights) @ on.weighted_labels / total
            rest = float(on.shift[0]) + float(labels - (weights @ centred / total) @ coef)
        elif fit_intercept:
            before = on.null.nuisance[first : design.n_nuisance, 0]
            rest += float((weights @ centred / weights.sum()) @ (before - coef))
    constant = fit_intercept and (on.has_intercept is None or bool(on.has_intercept[0]))
    rest -= float(shifts @ coef)
    intercept, thresholds = rest if constant else 0.0, on.thresholds(on.null.nuisance)
    scores = columns @ coef + intercept + (0.0 if offset is None else offset)
    return TaskFit(coef, intercept, scores, unique, columns, None if thresholds is None else thresholds[:, 0] - rest)


def _least_squares(columns: Array, target: Array, ridge: float, positive: bool) -> Array:
    """The shortest of the best coefficients, in units in which columns have length 1."""
    sizes = np.linalg.norm(columns, axis=0)
    used = sizes > 1e-13 * sizes.max(initial=0.0)
    if ridge:
        columns = np.vstack([columns, np.sqrt(ridge) * np.eye(columns.shape[1])])
        target = np.concatenate([target, np.zeros(columns.shape[1])])
        sizes, used = np.linalg.norm(columns, axis=0), np.ones(columns.shape[1], dtype=bool)
    coef = np.zeros(columns.shape[1])
    scaled = columns[:, used] / sizes[used]
    if positive:
        coef[used] = nnls(scaled, target)[0] / sizes[used]
    else:
        coef[used] = np.linalg.lstsq(scaled, target, rcond=1e-10)[0] / sizes[used]
    return coef


def _refuse_divergence(on: Any, basis: Array) -> None:
    """Refuse a fit that diverges, as where classes are separated."""
    null = on.null
    hessian, scale = on.nuisance_hessian(null) or _of_rows(null, basis)
    steep = np.linalg.eigvalsh(hessian) if len(hessian) else np.ones(1)
    if on.explained(null)[0] or not steep[0] > _FLAT * scale:
        raise NoFit(
            "its rows are explained ever better by ever larger coefficients (classes that the features separate, "
            "counts that are all 0 where a feature is on, a feature that is largest in all events), so that the fit "
            "without a penalty does not exist"
        )


def _of_rows(null: Any, basis: Array) -> tuple[Array, float]:
    """The second derivative of a sum over rows in coefficients of the basis, and its largest eigenvalue."""
    curvature = null.second if null.second is not None else null.curvature
    hessian = (basis * curvature) @ basis.T
    return hessian, float(np.linalg.eigvalsh(hessian)[-1]) if len(hessian) else 0.0
