"""How well predictions meet the labels, task by task."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..losses import Loss
from ..tasks import TaskLabels


def r2(y: np.ndarray, predicted: np.ndarray, weights: np.ndarray) -> float:
    """1 - weighted residual / total sum of squares; constant y: 1 if met exactly, else 0 (as scikit-learn)."""
    residual = float(np.sum(weights * (y - predicted) ** 2))
    total = float(np.sum(weights * (y - np.average(y, weights=weights)) ** 2))
    if total == 0.0:
        return 1.0 if residual == 0.0 else 0.0
    return 1.0 - residual / total


def d2(y: np.ndarray, scores: np.ndarray, weights: np.ndarray, loss: Loss) -> float:
    """1 - deviance / deviance of the best constant; where that is 0: 1 if the labels are met exactly, else 0."""
    constant = loss.best_constant(y, weights)
    assert constant is not None
    own = float(weights @ loss.deviance(y, scores))
    total = float(weights @ loss.deviance(y, np.full(len(y), constant)))
    if total <= 1e-14 * float(weights @ np.abs(y)):
        return 1.0 if own <= 1e-14 * float(weights @ np.abs(y)) else 0.0
    return 1.0 - own / total


def accuracy(y: np.ndarray, predicted: np.ndarray, weights: np.ndarray) -> float:
    return float(np.average(y == predicted, weights=weights))


Metric = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


def by_task(
    labels: TaskLabels, predicted: np.ndarray, metric: Metric, least: int
) -> tuple[np.ndarray, np.ndarray]:
    """A metric of each task, NaN for those with fewer than ``least`` observed labels, and how many labels these are."""
    values, counts = np.full(labels.n_tasks, np.nan), np.zeros(labels.n_tasks, dtype=np.int64)
    for t, part in enumerate(labels.per_task()):
        seen = labels.weights[part] > 0
        counts[t] = np.count_nonzero(seen)
        if counts[t] >= least:
            values[t] = metric(labels.y[part][seen], predicted[part][seen], labels.weights[part][seen])
    return values, counts


def mean_over_tasks(labels: TaskLabels, predicted: np.ndarray, metric: Metric, least: int) -> float:
    """Mean of a metric over the tasks that have at least ``least`` observed labels; NaN if there are none."""
    values, counts = by_task(labels, predicted, metric, least)
    known = values[counts >= least]
    return float(np.mean(known)) if len(known) else float("nan")
