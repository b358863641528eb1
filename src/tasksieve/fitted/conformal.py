"""Conformal calibration: from how badly held-out rows conform to the models of their folds to intervals and sets.

CV+ of Barber, Candès, Ramdas and Tibshirani (2021), by arrays alone. A held-out row i of fold k(i) has a score S_i, and
a new row is compared with it by the same model, that of fold k(i).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from ..losses import Gamma, Loss, NegativeBinomial, Poisson, Tweedie
from ..tasks import TaskLabels
from .folds import Weights
from .restore import DataFacts

_ENTRIES = 1 << 22  # bounds compared at a time
_ROUNDING = 1e-12  # of sums of weights that would be 1

Array = np.ndarray[Any, Any]


def rank(coverage: float, n_rows: int) -> int:
    """ceil(coverage (n + 1)), the number read as it is written: 0.9 of 10 is 9."""
    return ceil(Fraction(repr(float(coverage))) * (n_rows + 1))


def rows_needed(coverage: float) -> int:
    """The fewest rows from which a bound is finite."""
    n_rows = 1
    while rank(coverage, n_rows) > n_rows:
        n_rows += 1
    return n_rows


def fold_of_samples(labels: TaskLabels, weights: list[Weights]) -> Array | None:
    """The fold of each sample, the number of folds for those that none holds out; None where a sample is held out
    twice, or the others of a fold are not all learned from."""
    fold = np.full(len(labels.y), len(weights), dtype=np.int64)
    for f, (train, test) in enumerate(weights):
        out = test > 0.0
        if np.any(fold[out] != len(weights)) or not np.array_equal(np.where(out, 0.0, labels.weights), train):
            return None
        if not np.array_equal(test[out], labels.weights[out]):
            return None
        fold[out] = f
    return fold


@dataclass(frozen=True)
class KeptFolds:
    """The models of all folds, and the rows that each held out.

    - `points`: Features, coefficients and intercepts of each fold's model.
    - `facts`: What these must know of the data.
    - `task`, `fold` (int arrays of shape (m,)): Of each row held out.
    - `y`: Its label: a number, or the place of its class.
    - `answers` (of shape (m,) or (m, K)): What the model of its fold predicts: a number, a decision value, or
      probabilities.
    """

    points: list[Any]
    facts: DataFacts
    task: Array
    fold: Array
    y: Array
    answers: Array

    def like(self, other: KeptFolds) -> bool:
        """Whether both have the same rows and folds."""
        return np.array_equal(self.task, other.task) and np.array_equal(self.fold, other.fold)

    def of_task(self, scores: Array, t: int, least: int) -> Calibration:
        """The scores that a row of task t is compared with: those of its task or, where these are fewer than `least`,
        those of all tasks."""
        own = self.task == t
        if np.count_nonzero(own) >= least:
            return Calibration(scores[own], self.fold[own])
        # tasks count alike, and within a task its rows; in task t the new row is one of them
        counts = np.bincount(self.task, minlength=self.facts.n_tasks)
        counts[t] += 1
        weights = 1.0 / (np.count_nonzero(counts) * counts[self.task])
        return Calibration(scores, self.fold, weights)


@dataclass(frozen=True)
class Calibration:
    """Scores of held-out rows, and their folds; `weights` where they do not count alike: the rest to 1 is the new
    row's."""

    scores: Array
    fold: Array
    weights: Array | None = None

    def intervals(self, low: Array, high: Array, unit: Array, coverage: float) -> Array:
        """Bounds of n rows (n, 2), from what the models of F folds say of them, (F, n): a band, and the unit of
        scores. Row i allows from ``low - S_i unit`` to ``high + S_i unit``."""
        out = np.empty((low.shape[1], 2))
        step = max(1, _ENTRIES // max(1, len(self.scores)))
        for first in range(0, len(out), step):
            part = slice(first, first + step)
            widths = self.scores[:, None] * unit[self.fold, part]
            out[part, 0] = -self._bound(widths - low[self.fold, part], coverage)
            out[part, 1] = self._bound(high[self.fold, part] + widths, coverage)
        return out

    def _bound(self, values: Array, coverage: float) -> Array:
        """For each column: the smallest of the values (m, n) that a share `coverage` of them, and of one more that
        may be infinite, does not exceed."""
        n_rows, n_columns = values.shape
        if self.weights is None:
            k = rank(coverage, n_rows)
            if k > n_rows:
                return np.full(n_columns, np.inf)
            return np.asarray(np.partition(values, k - 1, axis=0)[k - 1])
        order = np.argsort(values, axis=0, kind="stable")
        reached = np.cumsum(self.weights[order], axis=0) >= coverage - _ROUNDING
        place = np.argmax(reached, axis=0)
        found = np.take_along_axis(values, order[place, np.arange(n_columns)][None], axis=0)[0]
        return np.where(reached[-1], found, np.inf)

    def sets(self, scores: Array, coverage: float) -> Array:
        """Which classes of n rows conform (n, K), from the scores of each under the models of F folds, (F, n, K)."""
        below = np.zeros(scores.shape[1:])
        for f, of_fold in enumerate(scores):
            own = np.flatnonzero(self.fold == f)
            own = own[np.argsort(self.scores[own], kind="stable")]
            weights = np.ones(len(own)) if self.weights is None else self.weights[own]
            sums = np.concatenate([[0.0], np.cumsum(weights)])
            below += sums[np.searchsorted(self.scores[own], of_fold, side="left")]
        if self.weights is None:
            return below < rank(coverage, len(self.scores))
        return below < coverage + _ROUNDING


def class_scores(answers: Array, probable: bool, cumulative: bool = False) -> Array:
    """How badly each class conforms, on a last axis: minus its probability, or the sum of those that are no smaller.
    What is not `probable` is a decision value for the second of two classes."""
    if not probable:
        return np.stack([answers, -answers], axis=-1)
    if not cumulative:
        return -answers
    order = np.argsort(-answers, axis=-1, kind="stable")
    sums = np.cumsum(np.take_along_axis(answers, order, axis=-1), axis=-1)
    found = np.empty_like(answers)
    np.put_along_axis(found, order, sums, axis=-1)
    return found


def deviation(loss: Loss, mean: Array) -> Array | None:
    """The standard deviation of a label with this mean, but for a factor; None for losses that do not say."""
    mean = np.maximum(mean, np.finfo(np.float64).tiny)
    if isinstance(loss, Poisson):
        return np.sqrt(mean)
    if isinstance(loss, NegativeBinomial):
        return np.sqrt(mean + mean * mean / loss.size)
    if isinstance(loss, Gamma):
        return mean
    if isinstance(loss, Tweedie):
        return np.asarray(mean ** (loss.power / 2.0))
    return None


def tasks_of(n_tasks: int, listed: bool, single: bool, codes: Array | None) -> Iterator[tuple[int, Any]]:
    """Each task that predictions are about, and what selects its predictions: an item of a list, rows whose tasks are
    `codes`, all rows of a `single` task, or a column."""
    if listed:
        yield from ((t, t) for t in range(n_tasks))
    elif codes is not None:
        yield from ((t, np.flatnonzero(codes == t)) for t in np.unique(codes).tolist())
    elif single:
        yield 0, slice(None)
    else:
        yield from ((t, (slice(None), t)) for t in range(n_tasks))
