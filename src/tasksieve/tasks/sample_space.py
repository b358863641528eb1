"""The flat sample space: targets and weights of all tasks in one vector each, and what is given in their form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse

from ..row_names import row_name
from .refusals import refuse_masked_or_complex
from .tensors import to_numpy

Form = Literal["stacked", "list", "shared", "single"]

#: kinds of labels (`Loss.labels`) that are classes
CLASSES = ("signs", "ordered")


@dataclass(frozen=True)
class TaskLabels:
    """Targets and weights in the flat sample space.

    - `form` ({"stacked", "list", "shared", "single"}): How the data came; "single" is a 1-D y without ``task``.
    - `tasks` (ndarray of shape (T,)): Task labels in the order of ``coef_``.
    - `offsets`: int64 ndarray of shape (T + 1,)
    - `y` (ndarray of shape (N,)): Targets: float64 (0 where not observed), -1 / +1 for two classes, codes from 0 for
      more; `outcomes.SURVIVAL` for times of events.
    - `weights` (float64 ndarray of shape (N,)): ``sample_weight``, 0 where the label is not observed; task weights are
      not in it.
    - `order` (int64 ndarray or None): Permutation that sorts stacked rows by task; None where they are sorted already.
    - `n_rows`: Rows of X: N, or N / T for a shared matrix.
    - `classes`: ndarray of labels, list of such (one per task), or None
    - `class_counts` (int ndarray of shape (T,), or None): Number of classes of each task, where a task has more than
      two.
    - `ordered`: Whether classes are ordered: y holds their codes, from 0, however many they are.
    - `known` (float64 ndarray of shape (N,) or None): What is known of each prediction beforehand (``offset``); None:
      nothing.
    - `strata` (ndarray of labels, or None): Names of the strata of survival labels, by number; None: there are none.
    - `kinds` (one for each task, or None): Kinds of labels (`Loss.labels`), where tasks may differ: `classes` are then
      a list, None for tasks that have none.
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
    strata: np.ndarray | None = None
    kinds: tuple[str, ...] | None = None
    ordered: bool = False

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
            return f"{row_name(i - self.offsets[t])}, task {self.tasks.tolist()[t]!r}"
        return row_name(i if self.order is None else self.order[i])

    @property
    def class_codes(self) -> np.ndarray | None:
        """The class of each sample, from 0; None where targets are numbers."""
        if self.classes is None or self.kinds is not None:
            return None
        signs = self.class_counts is None and not self.ordered
        return (self.y > 0 if signs else self.y).astype(np.intp)

    @property
    def balance_codes(self) -> np.ndarray | None:
        """What folds and halves are balanced by: the class of each sample, from 0, or whether it is an event; None
        where targets are numbers."""
        if self.kinds is not None:
            return self._mixed_codes()
        if self.y.dtype.names is not None:
            return self.y["event"].astype(np.int64)
        if self.classes is None:
            return None
        return np.maximum(self.y, 0).astype(np.int64)

    def _mixed_codes(self) -> np.ndarray | None:
        """The same where tasks are of unlike kinds: 0 in those of numbers."""
        assert self.kinds is not None
        codes, values = np.zeros(int(self.offsets[-1]), dtype=np.int64), self.values
        for kind, part in zip(self.kinds, self.per_task(), strict=True):
            if kind == "survival":
                codes[part] = self.y["event"][part]
            elif kind in CLASSES:
                codes[part] = np.maximum(values[part], 0.0)
        return codes if self.balanced_by else None

    @property
    def values(self) -> np.ndarray:
        """Labels as numbers: of survival times, and of what stands beside them in their records."""
        return self.y if self.y.dtype.names is None else self.y["time"]

    @property
    def balanced_by(self) -> str:
        """The same in words; empty where targets are numbers."""
        if self.kinds is not None:
            words = {"survival": "event", "signs": "class", "ordered": "class"}
            return " and ".join(sorted({words[kind] for kind in self.kinds if kind in words}))
        if self.y.dtype.names is not None:
            return "event"
        return "" if self.classes is None else "class"

    def classes_of(self, t: int) -> np.ndarray:
        """The classes of a task, where there are any."""
        return np.asarray(self.classes[t] if isinstance(self.classes, list) else self.classes)

    def per_task(self) -> Iterator[slice]:
        for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield slice(start, stop)


# --- values in the form of y: one for all labels, for each or for each row; a list for a list of matrices ------------


def one_column(values: np.ndarray) -> np.ndarray:
    """A column of numbers or labels as a vector; anything else as it is."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def as_array(y: Any) -> np.ndarray:
    """Labels of one matrix, (n,) or (n, T), of whatever type they are."""
    if scipy.sparse.issparse(y):
        raise ValueError("y is sparse: pass a dense array (NaN marks labels that are not observed).")
    try:
        array = np.asarray(y)
    except ValueError as error:
        raise ValueError(
            "y is a list of arrays of different lengths, but X is one matrix. "
            "With one matrix per task, X is a list of matrices."
        ) from error
    if array.dtype.kind in "US" and isinstance(y, list | tuple):
        array = np.asarray(y, dtype=object)  # NumPy writes numbers beside words as words, and NaN as the word 'nan'
        array = array.astype(str) if all(isinstance(item, str) for item in array.ravel()) else array
    if array.ndim not in (1, 2):
        raise ValueError(f"y should be a 1d array or an array of shape (n, T), got an array of shape {array.shape}.")
    return array


def matching_list(rows: Sequence[int], values: Any, name: str) -> list[np.ndarray]:
    """The 1-D arrays of a list of tasks, as long as its matrices; only those of y may be masked."""
    if not isinstance(values, list | tuple) or len(values) != len(rows):
        given = f"a list of {len(values)}" if isinstance(values, list | tuple) else type(values).__name__
        raise ValueError(
            f"X is a list of {len(rows)} matrices, so {name} must be a list of {len(rows)} 1-D arrays; got {given}."
        )
    parts, values = [], to_numpy(values)
    for t, (n_rows, value) in enumerate(zip(rows, values, strict=True)):
        if name != "y":
            refuse_masked_or_complex(value, f"{name}[{t}]")
        part = one_column(as_array(value))
        if part.ndim != 1:
            raise ValueError(f"{name}[{t}] must be 1-D: one number per row of X[{t}]; got shape {part.shape}.")
        if len(part) != n_rows:
            raise ValueError(f"{name}[{t}] has {len(part)} entries, but X[{t}] has {n_rows} rows.")
        parts.append(part)
    kinds = {part.dtype.kind for part in parts}
    if len(kinds) > 1 and kinds & set("OUS"):  # numbers beside strings stay what they are
        parts = [part.astype(object) for part in parts]
    return parts


def as_numbers(values: Any, name: str) -> np.ndarray:
    """Real numbers in any form, none of them masked."""
    refuse_masked_or_complex(values, name, ("row", "task"))
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, in the form of y: {error}") from error


def read_numbers(values: Any, labels: TaskLabels, name: str) -> np.ndarray:
    """Numbers in the form of y as a flat vector, one for each label."""
    values = to_numpy(values)
    if labels.form == "list" and (isinstance(values, list | tuple) or np.ndim(values)):
        values = np.concatenate(matching_list(np.diff(labels.offsets).tolist(), values, name))
    numbers = as_numbers(values, name)
    if numbers.ndim == 0:
        return np.full(int(labels.offsets[-1]), float(numbers))
    shape: tuple[int, ...] = (labels.n_rows, labels.n_tasks) if labels.shared else (labels.n_rows,)
    if labels.shared and numbers.shape == shape[:1]:
        numbers = np.repeat(numbers[:, None], shape[1], axis=1)
    numbers = numbers if labels.shared else one_column(numbers)
    if numbers.shape != shape:
        more = f", or one per row, {shape[:1]}" if labels.shared else ""
        raise ValueError(f"{name}.shape == {numbers.shape}, expected {shape}: one number per label in y{more}.")
    return numbers if labels.form == "list" else labels.flatten(numbers)
