"""How well predictions meet the labels, task by task: R², D² or accuracy, chosen here for every use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..losses import Loss
from ..tasks import TaskLabels, count_rows, outcomes_in_order, read_labels
from .concordance import concordance, count_pairs

Array = np.ndarray
Metric = Callable[[Array, Array, Array], float]


@dataclass(frozen=True)
class Measure:
    """How predictions of one task are judged; greater is better.

    - `least`: Labels that it needs.
    - `row_losses`: ``row_losses(y, predicted)``: what the measure is 1 - the sum of, over that of the best constant;
      None where it is the share of rows that are met.
    - `constant_losses`: ``constant_losses(y, weights)``: the same of the best constant.
    - `sizes`: Of labels, in the units of the losses: what rounding is relative to.
    - `rounding`: Share of these sizes that counts as nothing.
    - `of_scores`: Whether it judges ``x . w + b``, and not what is predicted.
    - `together`: ``together(y, predicted, weights)``: of a measure that is no sum over rows, itself; NaN: not defined.
    """

    name: str
    least: int
    row_losses: Callable[[Array, Array], Array] | None = None
    constant_losses: Callable[[Array, Array], Array] | None = None
    sizes: Callable[[Array], Array] = np.abs
    rounding: float = 0.0
    of_scores: bool = False
    together: Metric | None = None

    def metric(self, y: Array, predicted: Array, weights: Array) -> float:
        """Of one task. Labels that a constant meets: 1 if they are met exactly, else 0 (as scikit-learn)."""
        if self.together is not None:
            return self.together(y, predicted, weights)
        if self.row_losses is None or self.constant_losses is None:
            return accuracy(y, predicted, weights)
        own = float(np.sum(weights * self.row_losses(y, predicted)))
        best = float(np.sum(weights * self.constant_losses(y, weights)))
        nothing = self.rounding * float(np.sum(weights * self.sizes(y)))
        if best <= nothing:
            return 1.0 if own <= nothing else 0.0
        return 1.0 - own / best


def accuracy(y: Array, predicted: Array, weights: Array) -> float:
    return float(np.average(y == predicted, weights=weights))


def _squares(y: Array, predicted: Array) -> Array:
    return np.square(y - predicted)


def _squares_of_mean(y: Array, weights: Array) -> Array:
    return np.square(y - np.average(y, weights=weights))


def _losses_of_constant(y: Array, weights: Array, loss: Loss) -> Array:
    constant = loss.best_constant(y, weights)
    assert constant is not None
    return loss.deviance(y, np.full(len(y), constant))


ACCURACY = Measure("Accuracy", 1)
R2 = Measure("R²", 2, _squares, _squares_of_mean, np.square)
CONCORDANCE = Measure("concordance", 2, of_scores=True, together=concordance)


def kind_of_targets(model: Any) -> str:
    """What a model predicts: "values", "classes", "survival", "mixed" where tasks are unlike; "" of other objects."""
    return str(getattr(model, "_targets", ""))


def measure_of(model: Any) -> Measure:
    """Accuracy of classes, concordance of survival, D² of numbers whose loss has a best constant, else R²."""
    if model._targets == "classes":
        return ACCURACY
    if model._targets == "survival":
        return CONCORDANCE
    loss = getattr(model, "_loss", None)
    if loss is None or loss.best_constant(np.ones(1), np.ones(1)) is None:
        return R2
    return Measure("D²", 2, loss.deviance, partial(_losses_of_constant, loss=loss), loss.sizes, 1e-14, True)


def by_task(labels: TaskLabels, predicted: Array, metric: Metric, least: int) -> tuple[Array, Array]:
    """A metric of each task, NaN for those with fewer than ``least`` observed labels, and how many labels these are."""
    values, counts = np.full(labels.n_tasks, np.nan), np.zeros(labels.n_tasks, dtype=np.int64)
    for t, part in enumerate(labels.per_task()):
        seen = labels.weights[part] > 0
        counts[t] = np.count_nonzero(seen)
        if counts[t] >= least:
            values[t] = metric(labels.y[part][seen], predicted[part][seen], labels.weights[part][seen])
    return values, counts


def mean_over_tasks(labels: TaskLabels, predicted: Array, metric: Metric, least: int) -> float:
    """Mean of a metric over the tasks that have at least ``least`` observed labels; NaN if there are none."""
    values, counts = by_task(labels, predicted, metric, least)
    known = values[(counts >= least) & ~np.isnan(values)]
    return float(np.mean(known)) if len(known) else float("nan")


def places_of_tasks(labels: TaskLabels, tasks: np.ndarray) -> np.ndarray:
    """The place of each task of some labels among those of a model."""
    if labels.form != "stacked":  # lists and shared matrices have all, in order
        return np.arange(labels.n_tasks)
    place = {label: t for t, label in enumerate(tasks.tolist())}
    return np.array([place[label] for label in labels.tasks.tolist()])


def pairs_by_task(
    model: Any, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None
) -> Array | None:
    """Count the comparable pairs that the concordance of each task is made of; None of other measures."""
    if model._targets != "survival":
        return None
    labels = read_labels(count_rows(X), y, task, sample_weight, targets=model._raw_targets, allow_empty=True)
    tasks = getattr(model, "tasks_", labels.tasks)
    found, places = np.zeros(len(tasks), dtype=np.int64), places_of_tasks(labels, tasks)
    for place, part in zip(places.tolist(), labels.per_task(), strict=True):
        own = labels.y[part]
        found[place] = round(float(count_pairs(own, labels.weights[part], own["stratum"]).sum()))
    return found


def scores_by_task(
    model: Any, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None, offset: Any = None
) -> tuple[str, Array, Array]:
    """Name of the measure (R², D², accuracy), its values (NaN for a task with too few labels to say) and the number of
    labels, in the order of ``tasks_``."""
    if model._targets == "mixed":
        labels = model._read_test_labels(X, y, task, sample_weight)
        counts = np.zeros(len(model.tasks_), dtype=np.int64)
        counts[places_of_tasks(labels, model.tasks_)] = np.add.reduceat(labels.weights > 0.0, labels.offsets[:-1])
        return "D²", model.deviance_explained(X, y, task=task, sample_weight=sample_weight, offset=offset), counts
    measure = measure_of(model)
    y = outcomes_in_order(y, model.tasks_) if hasattr(model, "tasks_") else y
    labels = read_labels(count_rows(X), y, task, sample_weight, targets=model._raw_targets, allow_empty=True)
    options = {name: given for name, given in (("task", task), ("offset", offset)) if given is not None}
    answer = model._scores(X, task, offset=offset) if measure.of_scores else model.predict(X, **options)
    tasks = getattr(model, "tasks_", labels.tasks)
    values, counts = np.full(len(tasks), np.nan), np.zeros(len(tasks), dtype=np.int64)
    places = places_of_tasks(labels, tasks)
    values[places], counts[places] = by_task(labels, labels.flatten(answer), measure.metric, measure.least)
    return measure.name, values, counts
