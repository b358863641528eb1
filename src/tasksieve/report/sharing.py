"""Does sharing between tasks help? The numbers of a comparison, and plain words for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .words import count, few, quantity

Array = np.ndarray

MODELS = {
    "shared": "the shared model",
    "own": "one model per task",
    "pooled": "one model for all rows",
    "mean": "the task's mean",
}
TITLES = {"shared": "Shared", "own": "One per task", "pooled": "One for all rows", "mean": "Mean only"}
NAMED = 5  # tasks named in a sentence
MOST_ROWS = 100  # of the table


@dataclass
class SharingFinding:
    """A comparison of models by nested cross-validation.

    `numbers` are the columns of `Comparison.to_dict`, of all tasks together last: ``rows``, ``loss_...`` and
    ``score_...`` of each model, ``difference`` with its interval ``low`` and ``high``, ``pvalue``, ``adjusted``.
    """

    tasks: Sequence[str]
    models: Sequence[str]  # "shared", "own", "pooled", "mean", or some of them
    numbers: Mapping[str, Array]
    loss: str  # smaller is better
    score: str  # greater is better
    level: float  # of the intervals
    folds: str = ""  # how rows were held out
    classes: bool = False  # whether classes are predicted
    note: str = ""  # what the figures are about

    def _called(self, model: str) -> str:
        if model == "mean" and self._survival:
            return "the task's baseline hazard"
        return "the task's class frequencies" if model == "mean" and self.classes else MODELS[model]

    @property
    def _survival(self) -> bool:
        return self.score.lower() == "concordance"

    @property
    def overall(self) -> dict[str, float]:
        """The numbers of all tasks together."""
        return {name: float(values[-1]) for name, values in self.numbers.items()}

    @property
    def verdict(self) -> str:
        if not self.overall["pvalue"] <= 1.0 - self.level:
            return "Whether sharing helps cannot be decided from these rows"
        return "Sharing helps" if self.overall["difference"] < 0 else "Sharing does harm"

    def difference_words(self) -> str:
        """The difference in loss of all tasks together, with its interval and p-value."""
        at = self.overall
        details = f"{self.level:.0%} interval {_interval(at)}, p = {at['pvalue']:.2g}"
        return f"{quantity(at['difference'], sign=True)} ({details})"

    def headline(self) -> str:
        """Whether sharing helps, all tasks together."""
        at = self.overall
        return (
            f"{self.verdict}. On rows that no model had seen, the mean {self.loss} over "
            f"{count(len(self.tasks), 'task')} is {quantity(at['loss_shared'])} with the shared model and "
            f"{quantity(at['loss_own'])} with one model per task: a difference of {self.difference_words()}."
        )

    def sentence(self) -> str:
        """The same, task by task, and against the other models."""
        at = self.overall
        said = [self.headline()]
        sure = self.numbers["adjusted"][:-1] <= 1.0 - self.level
        lower = self.numbers["difference"][:-1] < 0
        said.append(
            f"Task by task, corrected for their number, the shared model is better in {self._named(sure & lower)} and "
            f"worse in {self._named(sure & ~lower)}."
        )
        others = [name for name in self.models if name not in ("shared", "own")]
        if others:
            beside = "; ".join(f"{quantity(at[f'loss_{name}'])} with {self._called(name)}" for name in others)
            said.append(f"Beside that: {beside}.")
        if "pooled" in self.models and at["loss_pooled"] < min(at["loss_shared"], at["loss_own"]):
            said.append("One model for all rows does best here: the tasks may hardly differ.")
        if "mean" in self.models and at["loss_shared"] >= at["loss_mean"]:
            said.append(
                f"The shared model is no better than {self._called('mean')}: the features explain nothing here."
            )
        return " ".join(said)

    def _named(self, chosen: Array) -> str:
        names = [name for name, mark in zip(self.tasks, chosen, strict=True) if mark]
        return f"{len(names)} ({few(names, NAMED)})" if names else "none"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows as text, tasks that gain most first, all tasks together last."""
        titles = {**TITLES, "mean": "Null model"} if self.classes or self._survival else TITLES
        columns = ["Task", "Rows", *(titles[name] for name in self.models), "Difference in loss", "p (Holm)"]
        order = np.argsort(self.numbers["difference"][:-1], kind="stable")[:MOST_ROWS].tolist()
        names = [*self.tasks, "all tasks"]
        rows = []
        for t in [*order, len(self.tasks)]:
            at = {name: float(values[t]) for name, values in self.numbers.items()}
            p = at["adjusted"] if t < len(self.tasks) else at["pvalue"]
            rows.append(
                [
                    names[t],
                    f"{int(at['rows']):,}",
                    *(quantity(at[f"score_{name}"]) for name in self.models),
                    f"{quantity(at['difference'], sign=True)} ({_interval(at)})",
                    "–" if np.isnan(p) else f"{p:.2g}",
                ]
            )
        return columns, rows

    def explanation(self) -> str:
        """What the table shows."""
        left = len(self.tasks) - MOST_ROWS
        more = f" {left:,} more tasks are in comparison.csv." if left > 0 else ""
        return (
            f"{self.score[0].upper()}{self.score[1:]} of each model on rows that it had not seen, then how much "
            f"smaller (−) or larger (+) the {self.loss} of the shared model is than that of one model per task, with "
            f"its {self.level:.0%} interval. {self.note}{more}"
        )


def _interval(at: Mapping[str, float]) -> str:
    return f"{quantity(at['low'], sign=True)} to {quantity(at['high'], sign=True)}"
