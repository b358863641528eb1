"""Deviance explained: how good scores of one task are beside its best constant, by the task's own loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import DenseStorage, Design
from ..losses import Loss, RowLoss, Squared

Array = np.ndarray[Any, Any]

_NOTHING = 1e-12  # of the sizes of labels: deviances of a constant that leave nothing to explain


def constant_of(loss: Loss, y: Array, weights: Array) -> float:
    """The z that is best for all of these labels."""
    known = loss.best_constant(y, weights)
    if known is not None:
        return known
    storage = DenseStorage(np.zeros((len(y), 1), order="F"))
    design = Design(storage, np.array([0, len(y)]), weights=weights, fit_intercept=True, n_threads=1)
    found = loss.on(design, y)
    return float(found.null.nuisance[0, 0] + found.shift[0])


def constant_deviances(loss: Loss, y: Array, weights: Array) -> Array:
    """Deviances of the rows of one task at its best constant."""
    return loss.deviance(y, np.full(len(y), constant_of(loss, y, weights)))


def explained_deviance(loss: Loss, y: Array, z: Array, weights: Array) -> float:
    """1 - deviance / that of the best constant; NaN where a constant explains the labels."""
    best = float(weights @ constant_deviances(loss, y, weights))
    if not best > _NOTHING * float(weights.sum()):
        return float("nan")
    return 1.0 - float(weights @ loss.deviance(y, z)) / best


def in_units_of_loss(loss: Loss, y: Array, z: Array) -> Array:
    """What rows add to the loss, up to constants: deviances of losses differ by a factor of two."""
    if isinstance(loss, RowLoss):
        return loss.value(y, z)
    return 0.5 * loss.deviance(y, z) if isinstance(loss, Squared) else loss.deviance(y, z)
