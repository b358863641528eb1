"""Row metrics along a path (`design.row_metric`): when norms are measured, and what they say of another metric.

The metric of a ball moves with its point and with its gap. Norms are only ever measured beside products, in a reading
that is made anyway (`policy.metric_pays`), so no path reads the data once more for them; a ball whose metric is another
one uses them through a `Cover`, which is found in sample space.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import Cover, Design
from ..design.row_metric import MOST_SHIFTED
from . import policy

Array = np.ndarray[Any, Any]

# Where beta is looked for, in units of the ratio of the means of k and M, and between the neighbours of the best.
_BETAS = np.array([0.0, 0.3, 0.6, 0.8, 1.0, 1.25, 1.6, 2.5, 4.0, 8.0])
_BETWEEN = np.linspace(0.0, 1.0, 6)
_UPWARDS = 1.0 + 2.0**-48  # what a few roundings can take from a cover
_EPS = float(np.finfo(np.float64).eps)


class MeasuredMetric:
    """The row metric under which the columns of a design were measured last, if any."""

    def __init__(self, design: Design) -> None:
        self._design, self._starts = design, design.offsets[:-1]
        self._weights = np.ones(design.n_samples) if design.weights is None else design.weights
        self._totals = np.maximum(design.task_sums(self._weights), 1e-300)
        self._live = None if design.weights is None or design.weights.all() else design.weights > 0.0
        self._measured: Array | None = None
        self._mean = np.empty(0)

    def before_reading(self, metric: Array, undecided: float = 1.0) -> None:
        """All columns are about to be read: they are measured as well where norms under this metric are clearly better
        than what is known, and enough features are undecided."""
        metric = self._of_live_rows(metric)
        largest, mean = self._largest(metric), self._means(metric)
        known = largest
        found = self._cover(metric, largest)
        if found is not None:
            known = np.minimum(known, found[1])
        if not np.isfinite(largest).all():
            return
        if policy.metric_pays(_length(known, largest), _length(mean, largest), undecided):
            self._design.shard.also_measure(metric)
            self._measured, self._mean = metric, mean

    def cover(self, metric: Array) -> Cover | None:
        """What the measured metric says of another one; None where the largest k of each task says as much."""
        metric = self._of_live_rows(metric)
        largest = self._largest(metric)
        found = self._cover(metric, largest)
        return found[0] if found is not None and policy.metric_helps(_length(found[1], largest)) else None

    def lengths(self, metric: Array) -> Array | None:
        """By task about how long a column of norm 1 is under a metric; None where the largest k of each task says as
        much."""
        metric = self._of_live_rows(metric)
        mean = self._means(metric)
        return np.sqrt(mean) if policy.metric_helps(_length(mean, self._largest(metric))) else None

    def drift(self, vector: Array) -> Array:
        """By task: what a vector lacks in orthogonality to the nuisance columns, as often as it counts."""
        samples = self._design.samples
        square = np.zeros(samples.n_tasks)
        for column in samples.basis:
            square += np.square(samples.task_sums(column * vector))
        rounding = 4.0 * (samples.depth + 8) * _EPS * samples.task_norms(vector)
        return MOST_SHIFTED * (np.sqrt(square) + rounding)

    def _of_live_rows(self, metric: Array) -> Array:
        """0 in rows that are absent: they are no part of any norm."""
        return metric if self._live is None else np.where(self._live, metric, 0.0)

    def _largest(self, metric: Array) -> Array:
        return np.asarray(np.maximum.reduceat(metric, self._starts))

    def _means(self, metric: Array) -> Array:
        return self._design.task_sums(self._weights * metric) / self._totals

    def _cover(self, metric: Array, largest: Array) -> tuple[Cover, Array] | None:
        """``k <= alpha + beta M`` with about the least mean of the right-hand side, convex in beta; and that mean."""
        known = self._measured
        if known is None or not np.isfinite(largest).all():
            return None
        mean = self._mean
        if metric is known or np.array_equal(metric, known):
            return Cover(np.zeros_like(largest), np.full_like(largest, _UPWARDS)), mean
        typical = self._means(metric) / np.maximum(mean, 1e-300)
        betas, tasks = np.outer(_BETAS, typical), np.arange(len(mean))
        for rounds_left in (2, 1, 0):
            rests = metric - np.repeat(betas, self._design.samples.lengths, axis=1) * known
            alphas = np.maximum(np.maximum.reduceat(rests, self._starts, axis=1), 0.0)
            best = np.argmin(alphas + betas * mean, axis=0)
            if rounds_left:  # the cost is convex: the best beta lies between the neighbours of this one
                low, high = betas[np.maximum(best - 1, 0), tasks], betas[np.minimum(best + 1, len(betas) - 1), tasks]
                betas = low + np.outer(_BETWEEN, high - low)
        beta = betas[best, tasks] * _UPWARDS
        alpha = (alphas[best, tasks] + 4.0 * _EPS * largest) * _UPWARDS
        return Cover(alpha, beta), alpha + beta * mean


def _length(squares: Array, largest: Array) -> float:
    """About how long columns are beside the longest that the largest k of each task allows."""
    return float(np.mean(np.sqrt(np.divide(squares, largest, out=np.ones_like(squares), where=largest > 0.0))))
