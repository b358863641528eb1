"""From predictions of held-out rows to their `HeldOutQuality`: measures, and what every row contributes to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..tasks import TaskLabels, read_groups
from .folds import Folds
from .measures import Measure
from .quality import HeldOutQuality

# A sum of losses of the best constant that is rounding beside the labels: there is nothing to explain.
NOTHING = 1e-14
STEPS = "mean absolute error"  # of ordered classes: how many classes a prediction is off


#: tasks that several of a model's tasks are parts of, as patterns of present columns are: their labels, and the place
#: among them of each of the model's
Families = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Ranked:
    """Scores by which classes are ranked, a column for each class or one for the later of two: an entry for every time
    that a row was held out, and the fold whose model has judged it. Those of different models are not compared."""

    row: np.ndarray
    fold: np.ndarray
    ranks: np.ndarray


class HeldOutRows:
    """Predictions of held-out rows, in the flat sample space: sums over the times held out. `codes` are of classes."""

    def __init__(self, n_rows: int, measure: Measure, codes: np.ndarray | None = None) -> None:
        self.measure, self.codes = measure, codes
        self.times, self._loss, self._judged = np.zeros((3, n_rows))
        self._steps: np.ndarray | None = None
        self._ranks: list[tuple[np.ndarray, np.ndarray]] = []
        self._folds: list[int] = []

    def add(
        self,
        flat: np.ndarray,
        loss: np.ndarray,
        judged: np.ndarray,
        ranks: np.ndarray | None = None,
        steps: np.ndarray | None = None,
        fold: int | None = None,
    ) -> None:
        """Rows that one model has judged: losses, what the measure sums (losses of its own, or whether the class was
        met), the scores by which classes are ranked, and of ordered ones how many the predicted class is off. What is
        added for one `fold` is of one model, by default all at once."""
        self.times[flat] += 1.0
        self._loss[flat] += loss
        self._judged[flat] += judged
        if ranks is not None:
            self._folds.append(len(self._ranks) if fold is None else fold)
            self._ranks.append((flat, ranks.reshape(len(flat), -1)))
        if steps is not None:
            self._steps = np.zeros(len(self.times)) if self._steps is None else self._steps
            self._steps[flat] += steps

    def steps(self, rows: np.ndarray) -> np.ndarray | None:
        """By how many classes predictions of ordered ones are off, over the times that rows were held out."""
        return None if self._steps is None else self._steps[rows] / self.times[rows]

    def means(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses, and what the measure sums, over the times that rows were held out."""
        return self._loss[rows] / self.times[rows], self._judged[rows] / self.times[rows]

    def ranked(self, rows: np.ndarray) -> Ranked | None:
        """The ranks of some rows, which are then counted as they come here; None where there are none."""
        if not self._ranks:
            return None
        width = max(ranks.shape[1] for _, ranks in self._ranks)
        position = np.full(len(self.times), -1)
        position[rows] = np.arange(len(rows))
        row = np.concatenate([position[flat] for flat, _ in self._ranks])
        fold = np.repeat(self._folds, [len(flat) for flat, _ in self._ranks])
        ranks = np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for _, part in self._ranks])
        kept = row >= 0
        return Ranked(row[kept], fold[kept], ranks[kept])


def units_of(labels: TaskLabels, groups: Any = None) -> np.ndarray:
    """The independent unit that each sample belongs to: its group, or its row of X."""
    rows = np.arange(labels.n_rows) if groups is None else read_groups(groups, labels)[1]
    return labels.flatten_rows(rows)


def widening(tests: Sequence[np.ndarray], trainings: Sequence[np.ndarray]) -> float:
    """How much longer standard errors are, because the models of the folds share most of their training rows.

    With J folds of :math:`n_2` held-out and :math:`n_1` training rows, and n rows held out at all, the variance is
    multiplied by :math:`n / (J n_2) + n / n_1` (Nadeau and Bengio 2003): :math:`1 + K / (K - 1)` for K folds.

    - `tests`, `trainings`: For each fold, its held-out and its training samples (not 0).
    """
    held, learned = (np.array([np.count_nonzero(part) for part in parts]) for parts in (tests, trainings))
    n_rows = int(np.count_nonzero(np.logical_or.reduce([part != 0 for part in tests])))
    return spread_of_folds(n_rows, held, learned)


def spread_of_folds(n_rows: float, held: np.ndarray, learned: np.ndarray) -> float:
    """`widening`, from numbers of rows: all, held out in each fold, used for training in each."""
    return float(np.sqrt(max(1.0, n_rows / np.sum(held) + n_rows / np.mean(learned))))


def cells_of(
    labels: TaskLabels,
    held: np.ndarray,
    weights: np.ndarray,
    units: np.ndarray,
    factor: float,
    families: Families | None = None,
) -> tuple[np.ndarray, Cells]:
    """The rows that were held out (a mask), in the order of the tasks that are asked about, and their cells."""
    tasks, task = labels.tasks, labels.task_of_sample
    if families is not None:
        tasks, places = families
        task = places[task]
    rows = np.flatnonzero(held)
    rows = rows[np.argsort(task[rows], kind="stable")]
    return rows, Cells(task[rows], weights[rows], units[rows], len(tasks), factor)


def assess(
    labels: TaskLabels,
    found: HeldOutRows,
    *,
    weights: np.ndarray,
    loss: str,
    rooted: bool = False,
    units: np.ndarray,
    factor: float = 1.0,
    null: HeldOutRows | None = None,
    families: Families | None = None,
    **words: Any,
) -> HeldOutQuality:
    """The quality of predictions of held-out rows.

    - `rooted`: Whether a task's loss is the root of the mean.
    - `units` (int array of shape (N,)): Samples of one unit are not independent.
    - `factor`: Of the standard errors (`widening`).
    - `null`: The same rows, judged by the null models of the same folds.
    - `families`: Tasks to speak of in place of the model's, where these are parts of them.
    - `**words`: ``unit``, ``folds``, ``n_tried``, ``tuned``, ``null_covariates`` of `HeldOutQuality`.
    """
    rows, cells = cells_of(labels, (weights > 0.0) & (found.times > 0.0), weights, units, factor, families)
    columns = _columns(labels, found, rows, cells, loss, rooted)
    beside = None if null is None else _columns(labels, null, rows, cells, loss, rooted)
    return cells.quality(labels.tasks if families is None else families[0], columns, beside, **words)


def _columns(
    labels: TaskLabels, found: HeldOutRows, rows: np.ndarray, cells: Cells, loss: str, rooted: bool
) -> list[Column]:
    """All measures of one model."""
    losses, judged = found.means(rows)
    measure = found.measure
    columns: list[Column] = []
    if measure.constant_losses is None:
        columns.append((measure.name.lower(), cells.mean(judged)))
        ranked = found.ranked(rows)
        if ranked is not None and found.codes is not None:
            columns.append(("AUC", auc(cells, found.codes[rows], ranked)))
        steps = found.steps(rows)
        if steps is not None:
            columns.append((STEPS, cells.mean(steps)))
    else:
        columns.append((measure.name, explained(cells, measure, labels.y[rows], judged)))
    columns.append((loss, cells.root(cells.mean(losses)) if rooted else cells.mean(losses)))
    return columns


def explained(cells: Cells, measure: Measure, y: np.ndarray, losses: np.ndarray) -> Part:
    """The part of the loss of each task's best constant that is explained."""
    assert measure.constant_losses is not None
    base = np.zeros(len(y))
    for start, stop in pairwise(np.searchsorted(cells.task, np.arange(cells.n_tasks + 1)).tolist()):
        if stop > start:
            base[start:stop] = measure.constant_losses(y[start:stop], cells.weights[start:stop])
    return cells.explained(losses, base, measure.sizes(y))


class OutOfFold:
    """Predictions of all rows by models that did not see them, and by their null models, fold after fold.

    Scores z are an array of shape (n,), or (n, K) where each of K classes has one.

    - `codes` (int array of shape (N,)): Classes, from 0; None: numbers.
    - `losses`: ``losses(flat, z)`` of some entries of the flat sample space.
    - `answers`: ``answers(z)``: responses, decision values, or probabilities with their classes on a last axis.
    - `decide`: ``decide(z)``: codes of classes; by default those of the largest score, or of the sign of one.
    - `ranks`: By what classes are ranked for AUC; by default the answers.
    - `width`: The most numbers that an answer has.
    """

    def __init__(
        self,
        labels: TaskLabels,
        measure: Measure,
        codes: np.ndarray | None,
        *,
        losses: Callable[[np.ndarray, np.ndarray], np.ndarray],
        answers: Callable[[np.ndarray], np.ndarray],
        ranks: Callable[[np.ndarray], np.ndarray] | None = None,
        decide: Callable[[np.ndarray], np.ndarray] | None = None,
        width: int,
    ) -> None:
        self._labels, self._measure, self._codes = labels, measure, codes
        self._losses, self._answers, self._ranks = losses, answers, ranks or answers
        self._decide = decide or (lambda z: np.argmax(z, axis=1) if z.ndim == 2 else z > 0)
        self._rows, self._null = (HeldOutRows(len(labels.y), measure, codes) for _ in range(2))
        self._sums, self._counts = np.zeros((len(labels.y), width)), np.zeros((len(labels.y), 1))

    def add(self, flat: np.ndarray, of_model: np.ndarray, of_null: np.ndarray, fold: int | None = None) -> None:
        """Scores of rows that a fold holds out, all at once, or task by task with the number of the `fold`."""
        found = self._answers(of_model).reshape(len(flat), -1)
        self._sums[flat, : found.shape[1]] += found
        self._counts[flat] += 1.0
        self._judge(self._rows, flat, of_model, fold)
        self._judge(self._null, flat, of_null, fold)

    def _judge(self, rows: HeldOutRows, flat: np.ndarray, z: np.ndarray, fold: int | None) -> None:
        if self._codes is not None:
            decided = self._decide(z)
            met = self._codes[flat] == decided
            steps = np.abs(self._codes[flat] - decided) if self._labels.ordered else None
            rows.add(flat, self._losses(flat, z), met, self._ranks(z), steps, fold)
            return
        assert self._measure.row_losses is not None
        predicted = z if self._measure.of_scores else self._answers(z)
        rows.add(flat, self._losses(flat, z), self._measure.row_losses(self._labels.y[flat], predicted))

    def quality(self, folds: Folds, *, groups: Any, **facts: Any) -> HeldOutQuality:
        """How good they are; `facts` are further arguments of `assess`."""
        trainings, tests = zip(*folds.weights, strict=True)
        return assess(
            self._labels,
            self._rows,
            null=self._null,
            factor=widening(tests, trainings),
            unit="rows" if groups is None else "groups",
            folds=folds.words,
            **facts,
        )

    def means(self) -> np.ndarray:
        """The mean answer to each row, NaN where it was never held out; (N,) where an answer is one number."""
        mean = np.divide(self._sums, self._counts, out=np.full(self._sums.shape, np.nan), where=self._counts > 0.0)
        return mean[:, 0] if mean.shape[1] == 1 else mean


@dataclass(frozen=True)
class Part:
    """A measure of each task (T,), and what each row contributes to its first-order change; of AUC, how many folds of
    each task held out one class only; of concordance, how many pairs each task has, and how many within folds."""

    values: np.ndarray
    changes: np.ndarray
    one_class_folds: np.ndarray | None = None
    pairs: np.ndarray | None = None
    fold_pairs: np.ndarray | None = None

    def beyond(self, other: Part) -> Part:
        """By how much it is larger than another, on the same rows."""
        return Part(self.values - other.values, self.changes - other.changes)


Column = tuple[str, Part]  # the name of a measure, and the measure


class Cells:
    """Held-out rows, or sums of so many `rows`: of which task (increasing) and unit each is, and its weight. Standard
    errors are multiplied by `factor`."""

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
        known = (best.values > NOTHING * size) & (self.n_rows > 1)
        bottom = np.where(known, best.values, np.nan)
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

    def quality(
        self, tasks: np.ndarray, columns: list[Column], null: list[Column] | None = None, **words: Any
    ) -> HeldOutQuality:
        """All measures of the tasks, and their means; those of the null model beside them."""
        parts = [part for _, part in columns]
        values, errors, overall, overall_errors = self._values_and_errors(parts)
        beside: dict[str, Any] = {}
        if null is not None:
            named = ("null_values", "null_errors", "null_overall", "null_overall_errors")
            beside = dict(zip(named, self._values_and_errors([part for _, part in null]), strict=True))
            gains = [part.beyond(other) for part, (_, other) in zip(parts, null, strict=True)]
            _, beside["increment_errors"], _, beside["overall_increment_errors"] = self._values_and_errors(gains)
        skipped = [part.one_class_folds for part in parts if part.one_class_folds is not None]
        paired = [part for part in parts if part.pairs is not None]
        return HeldOutQuality(
            tasks=tasks,
            measures=tuple(name for name, _ in columns),
            values=values,
            errors=errors,
            overall=overall,
            overall_errors=overall_errors,
            n_rows=self.n_rows,
            n_units=self.n_units,
            n_all_units=int(self.units.max()) + 1 if len(self.units) else 0,
            widening=self.factor,
            one_class_folds=skipped[0] if skipped else None,
            pairs=paired[0].pairs if paired else None,
            fold_pairs=paired[0].fold_pairs if paired else None,
            **beside,
            **words,
        )

    def _values_and_errors(self, parts: list[Part]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Values and standard errors of the tasks, (T, M), and of their means, (M,)."""
        values, errors, overall, overall_errors = [], [], [], []
        for part in parts:
            known = np.isfinite(part.values)
            own, mean = self.errors(part.changes)
            values.append(part.values)
            errors.append(np.where(known, own, np.nan))
            overall.append(float(np.mean(part.values[known])) if known.any() else np.nan)
            overall_errors.append(mean)
        return np.stack(values, axis=1), np.stack(errors, axis=1), np.array(overall), np.array(overall_errors)


# --- area under the curve --------------------------------------------------------------------------------------------


def auc(cells: Cells, codes: np.ndarray, ranked: Ranked) -> Part:
    """Area under the ROC curve of each task, of several classes the mean of each against the rest.

    Pairs are formed within a fold: scores of different models are not compared. A fold that holds out one class only
    has no pair and is counted; a task without any pair has no area (NaN).
    """
    values, changes = np.full(cells.n_tasks, np.nan), np.full(len(codes), np.nan)
    one_class = np.zeros(cells.n_tasks, dtype=np.int64)
    order = np.argsort(cells.task[ranked.row], kind="stable")
    cuts = np.searchsorted(cells.task[ranked.row[order]], np.arange(cells.n_tasks + 1))
    for t, (start, stop) in enumerate(pairwise(cuts.tolist())):
        part = order[start:stop]
        row, fold = ranked.row[part], np.unique(ranked.fold[part], return_inverse=True)[1]
        own = codes[row]
        present = np.unique(own)
        if not len(present):
            continue
        classes_of_fold = np.bincount(np.unique(fold * (int(present[-1]) + 1) + own) // (int(present[-1]) + 1))
        one_class[t] = np.count_nonzero(classes_of_fold == 1)
        several = ranked.ranks.shape[1] > 2 or len(present) > 2
        parts = []
        for k in (present if several else present[1:]).tolist():
            column = min(k, ranked.ranks.shape[1] - 1)
            area, change = _area(own == k, ranked.ranks[part, column], cells.weights[row], fold)
            if np.isfinite(area):
                parts.append((area, change))
        if parts:
            values[t] = np.mean([area for area, _ in parts])
            total = np.bincount(row, weights=np.mean([change for _, change in parts], axis=0), minlength=len(codes))
            changes[row] = total[row]
    return Part(values, changes, one_class)


def _area(
    positive: np.ndarray, ranks: np.ndarray, weights: np.ndarray, fold: np.ndarray
) -> tuple[float, np.ndarray]:
    """Weighted share of the pairs of a fold that are in order, ties half; and what rows contribute.

    With the pairs (i, j) of all folds, i positive and j not, the area is A = sum s_i s_j [i over j] / sum s_i s_j. A
    row adds s_i (sum_j s_j [i over j] - A sum_j s_j) / sum s_i s_j to its first-order change, sums over j of the other
    class of its fold: with one fold that is DeLong's (1988).
    """
    levels, level = np.unique(ranks, return_inverse=True)
    position = np.unique(fold * len(levels) + level, return_inverse=True)[1]  # in the order of folds, then of ranks
    up, down = (np.bincount(position, weights=weights * own) for own in (positive, ~positive))
    ups, downs = (np.bincount(fold, weights=weights * own) for own in (positive, ~positive))
    below = (np.cumsum(down) - 0.5 * down)[position] - (np.cumsum(downs) - downs)[fold]
    above = np.cumsum(ups)[fold] - (np.cumsum(up) - 0.5 * up)[position]
    pairs = float(ups @ downs)
    if not pairs > 0.0:
        return float("nan"), np.full(len(ranks), np.nan)
    won, other = np.where(positive, below, above), np.where(positive, downs[fold], ups[fold])
    area = float(weights[positive] @ below[positive]) / pairs
    # one row of a class has no variance
    compared = (ups * downs > 0.0)[fold]
    few = min(np.count_nonzero(positive & compared), np.count_nonzero(~positive & compared)) < 2
    return area, np.full(len(ranks), np.nan) if few else weights * (won - area * other) / pairs
