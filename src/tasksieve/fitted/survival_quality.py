"""How well survival was predicted on rows that a model had not learned from: concordance, and deviance explained.

The deviance of a fold is that of all rows less that of the rows learned from (Verweij and van Houwelingen 1993): not a
sum over the held-out rows, but one over all rows (`losses.partial_likelihood`), whose terms are at the same time what
each row adds to its first-order change. Pairs of the concordance are formed within folds, tasks and strata; of a task
that has fewer than 1,000 of them, within strata alone: a few rows of each fold would decide it, and that the models of
the folds are not quite on one scale is the smaller error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..losses import Loss
from ..losses.partial_likelihood import PartialLikelihood
from ..tasks import TaskLabels
from .assess import Cells, Column, Families, Part, cells_of, widening
from .concordance import FEW_PAIRS, compare_pairs, count_pairs
from .folds import Folds
from .quality import HeldOutQuality

Array = np.ndarray[Any, Any]

CONCORDANCE, EXPLAINED = "concordance", "D²"


class ScoresOutOfFold:
    """Scores of held-out rows by models that did not see them, and by their null models, fold after fold."""

    def __init__(self, labels: TaskLabels) -> None:
        self._labels = labels
        self._sums, self._counts = np.zeros((2, len(labels.y)))

    def means(self) -> Array:
        """The mean answer to each row, NaN where it was never held out."""
        return np.divide(self._sums, self._counts, out=np.full(len(self._sums), np.nan), where=self._counts > 0.0)

    def quality(
        self,
        folds: Folds,
        *,
        groups: Any,
        units: Array,
        weights: Array,
        loss: str,
        rooted: bool,
        families: Families | None = None,
        **facts: Any,
    ) -> HeldOutQuality:
        """How good they are; of patterns of present columns, for the tasks that they are `families` of."""
        tasks, places = families or (self._labels.tasks, None)
        rows, cells = self.cells(folds, units, weights, families)
        of_model, of_null = (self.columns(which, rows, weights, cells, loss, places) for which in (0, 1))
        unit = "rows" if groups is None else "groups"
        return cells.quality(tasks, of_model, of_null, unit=unit, folds=folds.words, **facts)

    def cells(
        self, folds: Folds, units: Array, weights: Array, families: Families | None = None
    ) -> tuple[Array, Cells]:
        """The rows that were held out."""
        trainings, tests = zip(*folds.weights, strict=True)
        rows = (weights > 0.0) & (self._counts > 0.0)
        return cells_of(self._labels, rows, weights, units, widening(tests, trainings), families)

    def columns(
        self, which: int, rows: Array, weights: Array, cells: Cells, loss: str, places: Array | None = None
    ) -> list[Column]:
        """All measures of the model (0) or of its null model (1), on some rows of the flat sample space; `places` of
        the tasks where those of `cells` are others."""
        raise NotImplementedError


class SurvivalOutOfFold(ScoresOutOfFold):
    """The same of times of events."""

    def __init__(self, labels: TaskLabels, loss: Loss) -> None:
        super().__init__(labels)
        n_rows = len(labels.y)
        self._loss, self._events = loss, np.zeros(n_rows)
        #: of the model, the null model and a constant: what each row adds to the deviances of all folds
        self._deviances = np.zeros((3, n_rows))
        self._held: list[tuple[Array, Array, Array]] = []
        self._n_folds = 0

    def add_fold(self, scores: dict[int, tuple[Array, Array]], train: Array, test: Array) -> None:
        """Scores of the model and of its null model (n, 2) for rows of each task: those learned from and those held
        out, whose weights are `train` and `test`."""
        labels = self._labels
        for flat, z in scores.values():
            constant = np.zeros(len(flat)) if labels.known is None else labels.known[flat]
            columns = np.column_stack([z, constant])
            own = self._loss.held_out(labels.y[flat], columns, train[flat], test[flat])
            self._deviances[:, flat] += own.T
            held = np.flatnonzero(test[flat] > 0.0)
            rows = flat[held]
            self._events[rows] += test[rows] * labels.y["event"][rows]
            self._sums[rows] += z[held, 0]
            self._counts[rows] += 1.0
            self._held.append((rows, np.full(len(rows), self._n_folds), z[held]))
        self._n_folds += 1

    def beyond(self, other: SurvivalOutOfFold, rows: Array) -> Part:
        """By how much the deviance for each event is larger than that of another model, and what held-out rows
        contribute."""
        apart = self._deviances[0] - other._deviances[0]
        return _at(ratio_part(apart, self._events, self._labels.task_of_sample, self._labels.n_tasks), rows)

    def columns(
        self, which: int, rows: Array, weights: Array, cells: Cells, loss: str, places: Array | None = None
    ) -> list[Column]:
        """As of any scores; rows are compared within the model's own tasks."""
        labels, task = self._labels, self._labels.task_of_sample
        row, fold, z = (np.concatenate([part[k] for part in self._held]) for k in range(3))
        stratum = task * (int(labels.y["stratum"].max(initial=0)) + 1) + labels.y["stratum"]
        task = task if places is None else places[task]
        where = len(task), cells.n_tasks
        cell = fold * (int(stratum.max(initial=0)) + 1) + stratum[row]
        pairs = concordance_part(labels.y[row], z[:, which], weights[row], cell, task[row], row, *where)
        pairs = replace(pairs, fold_pairs=pairs.pairs)
        if self._n_folds > 1 and pairs.pairs is not None and np.any(pairs.pairs < FEW_PAIRS):
            times = np.bincount(row, minlength=len(task))
            seen = np.flatnonzero(times)
            means = np.bincount(row, weights=z[:, which], minlength=len(task))[seen] / times[seen]
            own = labels.y[seen], means, weights[seen], stratum[seen], task[seen], seen
            pairs = _more_pairs(pairs, concordance_part(*own, *where), task)
        return [
            (CONCORDANCE, _at(pairs, rows)),
            (
                EXPLAINED,
                _at(explained_part(self._deviances[which], self._deviances[2], task, cells.n_tasks), rows),
            ),
            (loss, _at(ratio_part(self._deviances[which], self._events, task, cells.n_tasks), rows)),
        ]


def quality_columns(
    y: Array, scores: Array, known: Array | None, weights: Array, cells: Cells, loss: Loss, within: Array
) -> list[Column]:
    """Measures of scores of new rows, in the order of `cells`, by one model; rows are compared `within` its tasks."""
    constant = np.zeros(len(y)) if known is None else known
    deviances, events = np.zeros((2, len(y))), weights * y["event"]
    for t in np.unique(within).tolist():
        here = np.flatnonzero(within == t)
        own = loss.held_out(
            y[here], np.column_stack([scores, constant])[here], np.zeros(len(here)), weights[here]
        )
        deviances[:, here] = own.T
    cell = within * (int(y["stratum"].max(initial=0)) + 1) + y["stratum"]
    row = np.arange(len(y))
    return [
        (CONCORDANCE, concordance_part(y, scores, weights, cell, cells.task, row, len(y), cells.n_tasks)),
        (EXPLAINED, explained_part(deviances[0], deviances[1], cells.task, cells.n_tasks)),
        (loss.label, ratio_part(deviances[0], events, cells.task, cells.n_tasks)),
    ]


def concordance_part(
    y: Array, risk: Array, weights: Array, cell: Array, task: Array, row: Array, n_rows: int, n_tasks: int
) -> Part:
    """Concordance of each task, pairs being formed within cells, and what each of n rows contributes: an entry for
    every time that a `row` was held out."""
    pairs = compare_pairs(y, risk, weights, cell)
    total = np.bincount(task, weights=pairs.later, minlength=n_tasks)
    total = np.where(total > 0.0, total, np.nan)
    values = np.bincount(task, weights=pairs.later_right, minlength=n_tasks) / total
    right, all_pairs = pairs.later_right + pairs.earlier_right, pairs.later + pairs.earlier
    own = (right - values[task] * all_pairs) / total[task]
    changes = np.bincount(row, weights=own, minlength=n_rows)
    number = np.bincount(task, weights=count_pairs(y, weights, cell), minlength=n_tasks)
    return Part(values, changes, pairs=np.rint(number).astype(np.int64))


def _more_pairs(within: Part, across: Part, task: Array) -> Part:
    """The concordance of pairs within folds, and of tasks that have few of these that of the pairs of all folds."""
    assert within.pairs is not None
    assert across.pairs is not None
    taken = (within.pairs < FEW_PAIRS) & (across.pairs > within.pairs)
    return Part(
        np.where(taken, across.values, within.values),
        np.where(taken[task], across.changes, within.changes),
        pairs=np.where(taken, across.pairs, within.pairs),
        fold_pairs=within.pairs,
    )


def ratio_part(top: Array, bottom: Array, task: Array, n_tasks: int) -> Part:
    """A sum over rows divided by another; NaN where that is 0."""
    tops, bottoms = (np.bincount(task, weights=own, minlength=n_tasks) for own in (top, bottom))
    bottoms = np.where(bottoms > 0.0, bottoms, np.nan)
    values = tops / bottoms
    return Part(values, (top - values[task] * bottom) / bottoms[task])


def explained_part(own: Array, constant: Array, task: Array, n_tasks: int) -> Part:
    """1 - the deviance of a model / that of a constant."""
    ratio = ratio_part(own, constant, task, n_tasks)
    return Part(1.0 - ratio.values, -ratio.changes)


def _at(part: Part, rows: Array) -> Part:
    return replace(part, changes=part.changes[rows])


def deviance_explained(y: Array, scores: Array, known: Array | None, weights: Array, ties: str) -> float:
    """Of the rows of one task by themselves; NaN where there is nothing to explain."""
    constant = np.zeros(len(y)) if known is None else known
    own, base = PartialLikelihood(y, weights, ties).deviance(np.column_stack([scores, constant]))
    return float(1.0 - own / base) if base > 0.0 else float("nan")
