"""The number that says how good predictions are, R², D² or accuracy: chosen here, for every use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..losses import Loss
from ..tasks import TaskLabels, count_rows, read_labels
from .scoring import Metric, accuracy, by_task, d2, r2

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
    metric: Metric
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


def places_of_tasks(labels: TaskLabels, tasks: np.ndarray) -> np.ndarray:
    """The place of each task of some labels among those of a model."""
    if labels.form != "stacked":  # lists and shared matrices have all, in order
        return np.arange(labels.n_tasks)
    place = {label: t for t, label in enumerate(tasks.tolist())}
    return np.array([place[label] for label in labels.tasks.tolist()])


def scores_by_task(
    model: Any, X: Any, y: Any, task: Any = None, sample_weight: Any = None, offset: Any = None
) -> tuple[str, Array, Array]:
    """Name of the measure (R², D², accuracy), its values and the number of labels, in the order of ``tasks_``.

    NaN for a task with too few labels to say.
    """
    measure = measure_of(model)
    labels = read_labels(count_rows(X), y, task, sample_weight, targets=model._raw_targets, allow_empty=True)
    options = {name: given for name, given in (("task", task), ("offset", offset)) if given is not None}
    answer = model._scores(X, task, offset=offset) if measure.of_scores else model.predict(X, **options)
    tasks = getattr(model, "tasks_", labels.tasks)
    values, counts = np.full(len(tasks), np.nan), np.zeros(len(tasks), dtype=np.int64)
    places = places_of_tasks(labels, tasks)
    values[places], counts[places] = by_task(labels, labels.flatten(answer), measure.metric, measure.least)
    return measure.name, values, counts
