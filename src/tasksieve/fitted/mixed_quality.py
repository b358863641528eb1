"""How well unlike outcomes were predicted out of fold: each task in its own measure, all as deviance explained.

A measure that a task does not have is NaN there, and left out of the mean over tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..losses import Loss
from ..tasks import TaskLabels
from ..tasks.sample_space import CLASSES
from .assess import STEPS, Cells, Column, Part, Ranked, auc
from .explained import constant_deviances
from .quality import HeldOutQuality
from .survival_quality import CONCORDANCE, EXPLAINED, ScoresOutOfFold, SurvivalOutOfFold

Array = np.ndarray[Any, Any]


class MixedOutOfFold(ScoresOutOfFold):
    """Scores of held-out rows of tasks of unlike outcomes.

    - `losses`: Of the tasks.
    - `scales`: What responses and scores of each task are divided by before they are judged.
    - `answer`: ``answer(t, z)``: one number for each row, what is predicted.
    """

    def __init__(
        self, labels: TaskLabels, losses: Sequence[Loss], scales: Array, answer: Callable[[int, Array], Array]
    ) -> None:
        super().__init__(labels)
        self._losses, self._scales, self._answer = losses, scales, answer
        #: of the model and its null model: sums of deviances, of how often the class was met, of how many classes off
        self._deviances, self._met, self._steps = np.zeros((3, 2, len(labels.y)))
        self._ranks: list[tuple[Array, Array]] = []
        self._survival = {t: SurvivalOutOfFold(labels, loss) for t, loss in enumerate(losses) if not loss.by_row}

    def add_fold(self, scores: dict[int, tuple[Array, Array]], train: Array, test: Array) -> None:
        """Scores of the model and of its null model (n, 2) for rows of each task; see `SurvivalOutOfFold`."""
        values = self._labels.values
        for t, (flat, z) in scores.items():
            loss = self._losses[t]
            if t in self._survival:
                self._survival[t].add_fold({t: (flat, z)}, train, test)
            held = np.flatnonzero(test[flat] > 0.0)
            rows, z = flat[held], z[held]
            self._counts[rows] += 1.0
            self._sums[rows] += self._answer(t, z[:, 0])
            if t in self._survival:
                continue
            own, scaled = values[rows] / self._scales[t], z / self._scales[t]
            self._deviances[:, rows] += loss.deviance(own[:, None], scaled).T
            if loss.labels == "signs":
                self._met[:, rows] += ((z > 0.0) == (own > 0.0)[:, None]).T
                self._ranks.append((rows, z))
            elif loss.labels == "ordered":
                shares = loss.class_probabilities(z)  # type: ignore[attr-defined]
                off = np.abs(np.argmax(shares, axis=-1) - own[:, None]).T
                self._met[:, rows] += off == 0.0
                self._steps[:, rows] += off

    def of_new_rows(self, *, units: Array, weights: Array, has_null: bool, **facts: Any) -> HeldOutQuality:
        """How good the scores of one model are on rows that are new to it, added as the one fold."""
        rows = np.flatnonzero(weights > 0.0)
        labels = self._labels
        cells = Cells(labels.task_of_sample[rows], weights[rows], units[rows], labels.n_tasks)
        beside = self.columns(1, rows, weights, cells) if has_null else None
        return cells.quality(labels.tasks, self.columns(0, rows, weights, cells), beside, **facts)

    def columns(
        self, which: int, rows: Array, weights: Array, cells: Cells, loss: str = "", places: Array | None = None
    ) -> list[Column]:
        """All measures; losses have names of their own, and tasks of unlike outcomes are no parts of others."""
        explained, own = self._explained(which, rows, cells), dict[str, Part]()
        for t, judged in self._survival.items():
            for name, found in judged.columns(which, rows, weights, cells, self._losses[t].label):
                _put(explained if name == EXPLAINED else own.setdefault(name, _nothing(cells, name)), found, t, cells)
        met = cells.mean(self._met[which][rows] / self._counts[rows])
        for kind in CLASSES:
            self._of_kind(kind, "accuracy", own, cells, met)
        if self._ranks:
            self._of_kind("signs", "AUC", own, cells, self._areas(which, rows, cells))
        self._of_kind("ordered", STEPS, own, cells, cells.mean(self._steps[which][rows] / self._counts[rows]))
        units = np.array([scale**loss.degree for scale, loss in zip(self._scales, self._losses, strict=True)])
        deviances = cells.mean(self._deviances[which][rows] / self._counts[rows] * units[cells.task])
        for t, of_task in enumerate(self._losses):
            if t not in self._survival:
                _put(own.setdefault(of_task.label, _nothing(cells)), deviances, t, cells)
        return [(EXPLAINED, explained), *own.items()]

    def _of_kind(self, kind: str, name: str, own: dict[str, Part], cells: Cells, found: Part) -> None:
        for t, loss in enumerate(self._losses):
            if loss.labels == kind:
                _put(own.setdefault(name, _nothing(cells)), found, t, cells)

    def _explained(self, which: int, rows: Array, cells: Cells) -> Part:
        """Deviance explained of tasks whose rows are judged one by one."""
        base, sizes = np.full((2, len(rows)), np.nan)
        values = self._labels.values[rows]
        for t, loss in enumerate(self._losses):
            here = np.flatnonzero(cells.task == t)
            if t not in self._survival and len(here):
                own = values[here] / self._scales[t]
                base[here] = constant_deviances(loss, own, cells.weights[here])
                sizes[here] = 1.0
        return cells.explained(self._deviances[which][rows] / self._counts[rows], base, sizes)

    def _areas(self, which: int, rows: Array, cells: Cells) -> Part:
        """Areas under the curve of tasks of two classes."""
        position = np.full(len(self._counts), -1)
        position[rows] = np.arange(len(rows))
        row = np.concatenate([position[flat] for flat, _ in self._ranks])
        fold = np.repeat(np.arange(len(self._ranks)), [len(flat) for flat, _ in self._ranks])
        ranks = np.concatenate([z[:, which] for _, z in self._ranks])[:, None]
        kept = row >= 0
        codes = (self._labels.values[rows] > 0.0).astype(np.intp)
        return auc(cells, codes, Ranked(row[kept], fold[kept], ranks[kept]))


def _nothing(cells: Cells, name: str = "") -> Part:
    count = [np.zeros(cells.n_tasks, dtype=np.int64) for _ in range(2)] if name == CONCORDANCE else [None, None]
    return Part(np.full(cells.n_tasks, np.nan), np.full(len(cells.task), np.nan), pairs=count[0], fold_pairs=count[1])


def _put(whole: Part, part: Part, t: int, cells: Cells) -> None:
    """Take over a task of a measure."""
    here = cells.task == t
    whole.values[t], whole.changes[here] = part.values[t], part.changes[here]
    for counted, own in ((whole.pairs, part.pairs), (whole.fold_pairs, part.fold_pairs)):
        if counted is not None and own is not None:
            counted[t] = own[t]
