"""Class labels that arrive one by one, and what they mean as signs."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ..messages import value_error
from ..tasks import label_array, refuse_real_numbers


def read_label(label: Any) -> Any:
    """One class label as arrays of them are read: NaN is None, not observed; other real numbers are refused."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, float):
        if label != label:
            return None
        if label in (np.inf, -np.inf):
            raise value_error("{y} is infinite.")
        refuse_real_numbers(np.array([label]))
    return label


class ClassRegister:
    """Which labels were met, overall and in each task, and the sign of each.

    Up to two labels in all: the larger is +1. More than two: each task has its own pair. A label may turn out to have
    had the wrong sign when the second one arrives; all three losses are symmetric, so the task's state is then simply
    negated (`learn` reports which ones).
    """

    def __init__(self, declared: list[Any] | None = None) -> None:
        self.all: list[Any] = []
        self.of_task: list[list[Any]] = []
        self.signs: list[dict[Any, float]] = []
        for label in declared or []:
            self._meet(label)

    @property
    def common(self) -> bool:
        """Whether all tasks share one pair."""
        return len(self.all) <= 2

    def met(self, task: int, label: Any) -> bool:
        """Whether a task has met a label."""
        return task < len(self.of_task) and label in self.of_task[task]

    def _meet(self, label: Any) -> bool:
        if label in self.all:
            return False
        self.all.append(label)
        try:
            self.all.sort()
        except TypeError as error:
            self.all.remove(label)
            raise value_error(
                "{y} mixes labels of different kinds: {one!r} beside {other!r}. Write all of them one way, as "
                "words say.",
                one=label,
                other=self.all[0],
            ) from error
        return True

    def learn(self, task: int, label: Any) -> list[int]:
        """Take note of a label; returns the tasks whose signs turn round."""
        while len(self.of_task) <= task:
            self.of_task.append([])
            self.signs.append({})
        known = self.of_task[task]
        if label in known:
            return []
        if len(known) == 2:
            raise ValueError(
                f"Only binary classification is supported: task number {task} has met {known[0]!r}, {known[1]!r} and "
                f"now {label!r}."
            )
        changed = range(len(self.of_task)) if self._meet(label) else [task]
        known.append(label)
        known.sort()
        return [t for t in changed if self._assign(t)]

    def _assign(self, task: int) -> bool:
        old, known = self.signs[task], self.of_task[task]
        if len(self.all) == 1:  # 0 and -1 are usually the smaller ones
            new = {label: -1.0 if isinstance(label, int | float) and label <= 0 else 1.0 for label in known}
        elif self.common:
            new = {label: 1.0 if label == self.all[-1] else -1.0 for label in self.all}
        elif len(known) == 2:
            new = {known[0]: -1.0, known[1]: 1.0}
        else:
            new = {label: old.get(label, 1.0) for label in known}
        self.signs[task] = new
        return any(old.get(label, sign) != sign for label, sign in new.items() if label in known)

    def copy(self) -> ClassRegister:
        return copy.deepcopy(self)

    def known(self) -> Any:
        """The sorted labels, or the pair of each task, None where it has not met two."""
        if self.common:
            return label_array(list(self.all))
        return [label_array(list(pair)) if len(pair) == 2 else None for pair in self.of_task]

    def classes(self, tasks: list[Any]) -> Any:
        """``classes_``: the sorted labels, or a pair for each task."""
        for task, met in zip(tasks, [] if self.common else self.of_task, strict=False):
            if len(met) != 2:
                raise ValueError(
                    f"Tasks have different pairs of classes, and task {task!r} has met only {met!r}: "
                    "it needs a row of its second class."
                )
        return self.known()

    def encode(self, codes: np.ndarray, y: np.ndarray, present: np.ndarray) -> tuple[np.ndarray, list[int]]:
        """Signs of a chunk's labels (0 where not observed), and the tasks that turn round."""
        signs = np.zeros(len(y))
        flips: list[int] = []
        values, inverse = np.unique(y[present], return_inverse=True)
        refuse_real_numbers(values)
        labels, own = values.tolist(), codes[present]
        pairs, position = np.unique(own * len(labels) + inverse, return_inverse=True)
        found = [(pair // len(labels), labels[pair % len(labels)]) for pair in pairs.tolist()]
        for own_task, label in found:
            for task in self.learn(own_task, label):
                flips.remove(task) if task in flips else flips.append(task)
        signs[present] = np.array([self.signs[task][label] for task, label in found])[position]
        return signs, flips
