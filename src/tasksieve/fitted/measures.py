"""The number that says how good predictions are, R², D² or accuracy: chosen here, for every use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..losses import Loss
from .scoring import accuracy, d2, r2

Array = np.ndarray


@dataclass(frozen=True)
class Measure:
    """How predictions of one task are judged; greater is better.

    - `least`: Labels that it needs.
    - `metric`: ``metric(y, predicted, weights)``.
    - `of_scores`: Whether it judges ``x . w + b``, and not what is predicted.
    - `row_losses`: ``row_losses(y, predicted)``: what the measure is 1 - the sum of, over that of the best constant;
      None where it is the share of rows that are met.
    - `constant_losses`: ``constant_losses(y, weights)``: the same of the best constant.
    - `sizes`: Of labels, in the units of the losses: what rounding is relative to.
    """

    name: str
    least: int
    metric: Callable[[Array, Array, Array], float]
    of_scores: bool = False
    row_losses: Callable[[Array, Array], Array] | None = None
    constant_losses: Callable[[Array, Array], Array] | None = None
    sizes: Callable[[Array], Array] = np.abs


ACCURACY = Measure("Accuracy", 1, accuracy)


def _squares(y: Array, predicted: Array) -> Array:
    return np.square(y - predicted)


def _squares_of_mean(y: Array, weights: Array) -> Array:
    return np.square(y - np.average(y, weights=weights))


def _losses_of_constant(y: Array, weights: Array, loss: Loss) -> Array:
    constant = loss.best_constant(y, weights)
    assert constant is not None
    return loss.deviance(y, np.full(len(y), constant))


R2 = Measure("R²", 2, r2, row_losses=_squares, constant_losses=_squares_of_mean, sizes=np.square)


def measure_of(model: Any) -> Measure:
    """Accuracy of classes, D² of numbers whose loss has a best constant of its own, else R²."""
    if model._targets == "classes":
        return ACCURACY
    loss = getattr(model, "_loss", None)
    if loss is None or loss.best_constant(np.ones(1), np.ones(1)) is None:
        return R2
    return Measure(
        "D²", 2, partial(d2, loss=loss), True, loss.deviance, partial(_losses_of_constant, loss=loss)
    )
