"""Deviance explained: how good scores of one task are beside its best constant, by the task's own loss.

Scores of ordered classes are thresholds less the linear score, on a last axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import DenseStorage, Design
from ..losses import Loss, RowLoss
from .survival_quality import deviance_explained as survival_explained

Array = np.ndarray[Any, Any]

_NOTHING = 1e-12  # deviances of a constant, per row, that leave nothing to explain
_LEAST = 1e-300


def constant_deviances(loss: Loss, y: Array, weights: Array) -> Array:
    """Deviances of the rows of one task at its best constant (ordered classes: at their shares)."""
    if loss.labels == "ordered":
        codes = y.astype(np.intp)
        shares = np.bincount(codes, weights=weights) / np.sum(weights)
        return -2.0 * np.log(np.maximum(shares[codes], _LEAST))
    known = loss.best_constant(y, weights)
    if known is None:
        storage = DenseStorage(np.zeros((len(y), 1), order="F"))
        design = Design(storage, np.array([0, len(y)]), weights=weights, fit_intercept=True, n_threads=1)
        found = loss.on(design, y)
        known = float(found.null.nuisance[0, 0] + found.shift[0])
    return loss.deviance(y, np.full(len(y), known))


def explained_deviance(loss: Loss, y: Array, z: Array, weights: Array, known: Array | None = None) -> float:
    """1 - deviance / that of the best constant; NaN where a constant explains the labels. `known` is the offset."""
    if loss.labels == "survival":
        return survival_explained(y, z, known, weights, loss.ties)  # type: ignore[attr-defined]
    best = float(weights @ constant_deviances(loss, y, weights))
    if not best > _NOTHING * float(weights.sum()):
        return float("nan")
    return 1.0 - float(weights @ loss.deviance(y, z)) / best


def in_units_of_loss(loss: Loss, y: Array, z: Array) -> Array:
    """What rows add to the loss, up to constants: deviances are mostly twice that."""
    return loss.value(y, z) if isinstance(loss, RowLoss) else 0.5 * loss.deviance(y, z)
