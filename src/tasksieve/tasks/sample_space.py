"""The flat sample space: targets and weights of all tasks in one vector each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..row_names import row_name
from .tensors import to_numpy

Form = Literal["stacked", "list", "shared", "single"]


@dataclass(frozen=True)
class TaskLabels:
    """Targets and weights in the flat sample space.

    - `form` ({"stacked", "list", "shared", "single"}): How the data came; "single" is a 1-D y without ``task``.
    - `tasks` (ndarray of shape (T,)): Task labels in the order of ``coef_``.
    - `offsets`: int64 ndarray of shape (T + 1,)
    - `y` (ndarray of shape (N,)): Targets: float64 (0 where not observed), -1 / +1 for two classes, codes from 0 for
      more.
    - `weights` (float64 ndarray of shape (N,)): ``sample_weight``, 0 where the label is not observed; task weights are
      not in it.
    - `order` (int64 ndarray or None): Permutation that sorts stacked rows by task; None where they are sorted already.
    - `n_rows`: Rows of X: N, or N / T for a shared matrix.
    - `classes`: ndarray of labels, list of such (one per task), or None
    - `class_counts` (int ndarray of shape (T,), or None): Number of classes of each task, where a task has more than
      two.
    - `known` (float64 ndarray of shape (N,) or None): What is known of each prediction beforehand (``offset``); None:
      nothing.
    """

    form: Form
    tasks: np.ndarray
    offsets: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    order: np.ndarray | None
    n_rows: int
    classes: Any = None
    class_counts: np.ndarray | None = None
    known: np.ndarray | None = None

    @property
    def has_offset(self) -> bool:
        return self.known is not None

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)

    @property
    def shared(self) -> bool:
        return self.form == "shared"

    @property
    def n_bar(self) -> float:
        """Total weight of the observed labels / number of tasks."""
        return float(np.add.reduce(self.weights)) / self.n_tasks

    @property
    def weight_per_task(self) -> np.ndarray:
        return np.add.reduceat(self.weights, self.offsets[:-1])

    @property
    def task_of_sample(self) -> np.ndarray:
        """Index of the task of every entry of the flat sample space."""
        return np.repeat(np.arange(self.n_tasks), np.diff(self.offsets))

    def flatten(self, values: Any) -> np.ndarray:
        """Values in the form of y (an array, or a list of arrays), as a flat vector."""
        values = to_numpy(values)
        if self.form == "list":
            return np.concatenate([np.asarray(part) for part in values])
        if self.shared:
            return np.asarray(values).ravel(order="F")
        values = np.asarray(values)
        return values if self.order is None else values[self.order]

    def unflatten(self, flat: np.ndarray) -> Any:
        """Values of the flat sample space (the first axis) in the form of y."""
        if self.form == "list":
            return [flat[part] for part in self.per_task()]
        if self.shared:
            return flat.reshape(self.n_tasks, self.n_rows, *flat.shape[1:]).swapaxes(0, 1).copy()
        if self.order is None:
            return flat
        back = np.empty_like(flat)
        back[self.order] = flat
        return back

    def flatten_rows(self, values: np.ndarray) -> np.ndarray:
        """One value per row of X, rows in the order they were given, as a flat vector."""
        if self.shared:
            return np.tile(values, self.n_tasks)
        return values if self.order is None else values[self.order]

    def where(self, i: int, name: str = "y") -> str:
        """The position of an entry of the flat sample space, in terms of y, or of `name`, as it was passed."""
        t = int(np.searchsorted(self.offsets, i, side="right")) - 1
        if self.form == "list":
            return f"{name}[{t}], {row_name(i - self.offsets[t])}"
        if self.shared:
            return f"{row_name(i - self.offsets[t])}, task {t}"
        return row_name(i if self.order is None else self.order[i])

    @property
    def class_codes(self) -> np.ndarray | None:
        """The class of each sample, from 0; None where targets are numbers."""
        if self.classes is None:
            return None
        return (self.y > 0 if self.class_counts is None else self.y).astype(np.intp)

    def classes_of(self, t: int) -> np.ndarray:
        """The classes of a task, where there are any."""
        return np.asarray(self.classes[t] if isinstance(self.classes, list) else self.classes)

    def per_task(self) -> Iterator[slice]:
        for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield slice(start, stop)
