"""From rows that models have not seen to their `HeldOutQuality`: measures, and what every row contributes to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tasks import TaskLabels, read_groups
from .measures import Measure
from .quality import HeldOutQuality

# A sum of losses of the best constant that is rounding beside the labels: there is nothing to explain.
NOTHING = 1e-14


class HeldOutRows:
    """What models made of rows that they had not seen, in the flat sample space: sums over the times held out.

    Parameters
    ----------
    n_rows : int
    measure : Measure
    codes : int array of shape (N,), optional
        Classes, from 0; None: numbers.
    """

    def __init__(self, n_rows: int, measure: Measure, codes: np.ndarray | None = None) -> None:
        self.measure, self.codes = measure, codes
        self.times, self._loss, self._judged = np.zeros((3, n_rows))

    def add(self, flat: np.ndarray, loss: np.ndarray, judged: np.ndarray) -> None:
        """Rows, their losses, and what the measure sums: losses of its own, or whether the class was met."""
        self.times[flat] += 1.0
        self._loss[flat] += loss
        self._judged[flat] += judged

    def means(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses, and what the measure sums, over the times that rows were held out."""
        return self._loss[rows] / self.times[rows], self._judged[rows] / self.times[rows]


def units_of(labels: TaskLabels, groups: Any = None) -> np.ndarray:
    """The independent unit that each sample belongs to: its group, or its row of X."""
    rows = np.arange(labels.n_rows) if groups is None else read_groups(groups, labels)[1]
    if labels.form == "list":
        return rows
    return labels.flatten_rows(rows)


def widening(tests: Sequence[np.ndarray], trainings: Sequence[np.ndarray]) -> float:
    """How much longer standard errors are, because the models of the folds share most of the rows that they learn from.

    With J folds that hold out :math:`n_2` rows and learn from :math:`n_1`, and n rows held out at all, the variance is
    multiplied by :math:`n / (J n_2) + n / n_1` (Nadeau and Bengio 2003): :math:`1 + K / (K - 1)` for K folds.

    Parameters
    ----------
    tests, trainings : sequences of arrays
        For each fold, which samples it holds out and learns from (not 0).
    """
    held, learned = (np.array([np.count_nonzero(part) for part in parts]) for parts in (tests, trainings))
    n_rows = int(np.count_nonzero(np.logical_or.reduce([part != 0 for part in tests])))
    return spread_of_folds(n_rows, held, learned)


def spread_of_folds(n_rows: float, held: np.ndarray, learned: np.ndarray) -> float:
    """`widening`, from numbers of rows: all, held out by each fold, learned from in each."""
    return float(np.sqrt(max(1.0, n_rows / np.sum(held) + n_rows / np.mean(learned))))


def assess(
    labels: TaskLabels,
    found: HeldOutRows,
    *,
    weights: np.ndarray,
    loss: str,
    rooted: bool = False,
    ranks: np.ndarray | None = None,
    units: np.ndarray,
    factor: float = 1.0,
    unit: str = "rows",
    folds: str = "",
    n_tried: int = 1,
) -> HeldOutQuality:
    """The quality of predictions of held-out rows.

    Parameters
    ----------
    labels : TaskLabels
    found : HeldOutRows
    weights : array of shape (N,)
        Of the samples, in judging them.
    loss : str
        Name of the loss.
    rooted : bool
        Whether a task's loss is the root of the mean.
    ranks : array of shape (N, K), optional
        What classes are told apart by, a column for each, or one for the later of two.
    units : int array of shape (N,)
        Samples of one unit are not independent.
    factor : float
        Of the standard errors (`widening`).
    unit, folds, n_tried
        As in `HeldOutQuality`.
    """
    rows = np.flatnonzero((weights > 0.0) & (found.times > 0.0))
    losses, judged = found.means(rows)
    task, s = labels.task_of_sample[rows], weights[rows]
    cells = Cells(task, s, units[rows], labels.n_tasks, factor)
    measure = found.measure
    columns: list[tuple[str, Part]] = []
    if measure.constant_losses is None:
        columns.append((measure.name.lower(), cells.mean(judged)))
        if ranks is not None and found.codes is not None:
            columns.append(("AUC", auc(cells, found.codes[rows], ranks[rows])))
    else:
        y = labels.y[rows]
        base = np.zeros(len(rows))
        cuts = np.searchsorted(task, np.arange(labels.n_tasks + 1))
        for start, stop in zip(cuts[:-1], cuts[1:], strict=True):
            if stop > start:
                base[start:stop] = measure.constant_losses(y[start:stop], s[start:stop])
        columns.append((measure.name, cells.explained(judged, base, measure.sizes(y))))
    columns.append((loss, cells.root(cells.mean(losses)) if rooted else cells.mean(losses)))
    return cells.quality(labels.tasks, columns, unit=unit, folds=folds, n_tried=n_tried)


@dataclass(frozen=True)
class Part:
    """A measure of each task (T,), and what each row contributes to its first-order change."""

    values: np.ndarray
    changes: np.ndarray


class Cells:
    """Held-out rows, or sums of such: of which task and unit each is, and its weight.

    Parameters
    ----------
    task : int array of shape (m,)
        Increasing.
    weights : array of shape (m,)
    units : int array of shape (m,)
    n_tasks : int
    factor : float
        Of the standard errors.
    rows : int array of shape (m,), optional
        How many rows each is; 1 by default.
    """

    def __init__(
        self,
        task: np.ndarray,
        weights: np.ndarray,
        units: np.ndarray,
        n_tasks: int,
        factor: float = 1.0,
        rows: np.ndarray | None = None,
    ) -> None:
        self.task, self.weights, self.n_tasks, self.factor = task, weights, n_tasks, factor
        self.units = np.unique(units, return_inverse=True)[1]
        self.n_rows = np.bincount(task, weights=rows, minlength=n_tasks).astype(np.int64)
        _, self._pair = np.unique(self.units * n_tasks + task, return_inverse=True)
        self._n_pairs = int(self._pair.max()) + 1 if len(self._pair) else 0
        self._task_of_pair = np.zeros(self._n_pairs, dtype=np.int64)
        self._task_of_pair[self._pair] = task
        self.n_units = np.bincount(self._task_of_pair, minlength=n_tasks)
        total = self._sums(weights)
        self._total = np.where(total > 0.0, total, np.nan)

    def _sums(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.task, weights=values, minlength=self.n_tasks)

    def mean(self, values: np.ndarray) -> Part:
        """Weighted means."""
        means = self._sums(self.weights * values) / self._total
        return Part(means, self.weights * (values - means[self.task]) / self._total[self.task])

    def root(self, part: Part) -> Part:
        """Square roots."""
        values = np.sqrt(part.values)
        slope = np.divide(0.5, values, out=np.zeros_like(values), where=values > 0.0)
        return Part(values, part.changes * slope[self.task])

    def explained(self, losses: np.ndarray, base: np.ndarray, sizes: np.ndarray) -> Part:
        """1 - mean loss / mean loss of the best constant; NaN where that is nothing beside the sizes of the labels."""
        own, best = self.mean(losses), self.mean(base)
        size = self._sums(self.weights * sizes) / self._total
        told = (best.values > NOTHING * size) & (self.n_rows > 1)
        bottom = np.where(told, best.values, np.nan)
        ratio = own.values / bottom
        # the constant itself is at its best, so that its own change does not count
        return Part(1.0 - ratio, (ratio[self.task] * best.changes - own.changes) / bottom[self.task])

    def errors(self, changes: np.ndarray) -> tuple[np.ndarray, float]:
        """Standard errors of the tasks, and of the mean over those whose changes are known."""
        known = np.zeros(self.n_tasks, dtype=bool)
        known[self.task[np.isfinite(changes)]] = True
        several = self.n_units > 1
        factor = self.factor * np.sqrt(np.where(several, self.n_units / np.maximum(self.n_units - 1.0, 1.0), np.nan))
        scaled = np.where(np.isfinite(changes), changes, 0.0) * factor[self.task]
        by_pair = np.bincount(self._pair, weights=scaled, minlength=self._n_pairs)
        squares = np.bincount(self._task_of_pair, weights=np.square(by_pair), minlength=self.n_tasks)
        errors = np.where(known & several, np.sqrt(squares), np.nan)
        counted = known[self.task]
        if not known.any() or not np.all(several[known]):
            return errors, float("nan")
        together = np.bincount(self.units[counted], weights=scaled[counted])
        return errors, float(np.sqrt(np.sum(np.square(together))) / np.count_nonzero(known))

    def quality(self, tasks: np.ndarray, columns: list[tuple[str, Part]], **words: Any) -> HeldOutQuality:
        """All measures of the tasks, and their means."""
        values, errors, overall, overall_errors = [], [], [], []
        for _, part in columns:
            known = np.isfinite(part.values)
            own, mean = self.errors(part.changes)
            values.append(part.values)
            errors.append(np.where(known, own, np.nan))
            overall.append(float(np.mean(part.values[known])) if known.any() else np.nan)
            overall_errors.append(mean)
        return HeldOutQuality(
            tasks=tasks,
            measures=tuple(name for name, _ in columns),
            values=np.stack(values, axis=1),
            errors=np.stack(errors, axis=1),
            overall=np.array(overall),
            overall_errors=np.array(overall_errors),
            n_rows=self.n_rows,
            n_units=self.n_units,
            n_all_units=int(self.units.max()) + 1 if len(self.units) else 0,
            widening=self.factor,
            **words,
        )


# --- area under the curve --------------------------------------------------------------------------------------------


def auc(cells: Cells, codes: np.ndarray, ranks: np.ndarray) -> Part:
    """Area under the ROC curve of each task, of several classes the mean of each against the rest; NaN of one class."""
    values, changes = np.full(cells.n_tasks, np.nan), np.full(len(codes), np.nan)
    cuts = np.searchsorted(cells.task, np.arange(cells.n_tasks + 1))
    for t, (start, stop) in enumerate(zip(cuts[:-1], cuts[1:], strict=True)):
        part = slice(start, stop)
        present = np.unique(codes[part])
        if len(present) < 2:
            continue
        chosen = present if ranks.shape[1] > 2 or len(present) > 2 else present[1:]
        parts = []
        for k in chosen.tolist():
            column = min(k, ranks.shape[1] - 1)
            parts.append(_area(codes[part] == k, ranks[part, column], cells.weights[part]))
        values[t] = np.mean([area for area, _ in parts])
        changes[part] = np.mean([change for _, change in parts], axis=0)
    return Part(values, changes)


def _area(positive: np.ndarray, ranks: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Weighted share of pairs in order, ties half; and what rows contribute (DeLong et al. 1988)."""
    place = np.unique(ranks, return_inverse=True)[1]
    up = np.bincount(place, weights=weights * positive)
    down = np.bincount(place, weights=weights * ~positive)
    below = (np.cumsum(down) - 0.5 * down)[place] / down.sum()  # of a positive row: share of the others under it
    above = (up.sum() - np.cumsum(up) + 0.5 * up)[place] / up.sum()
    won = np.where(positive, below, above)
    area = float(np.sum(weights[positive] * below[positive]) / up.sum())
    total = np.where(positive, up.sum(), down.sum())
    changes = weights * (won - area) / total
    # one row of a class cannot say how it varies
    few = min(np.count_nonzero(positive), np.count_nonzero(~positive)) < 2
    return area, np.full(len(changes), np.nan) if few else changes
