"""One state of a fitted linear model: the numbers that its answers are made of, and how they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from ..losses.ordinal import interval_probabilities
from ..tasks import Fills, add_offset, is_task_list, linear_scores, map_rows, read_matrix, task_codes


def read_rows(X: Any, name: str) -> Any:
    """Rows to predict, read as fitting reads them; there may be none."""
    return read_matrix(X, name, min_rows=0)


@dataclass(frozen=True)
class LinearState:
    """Coefficients, and what they belong to.

    Every answer of a fitted model comes from one such state. A model that is still learning makes a new one for
    each answer, so that no answer mixes what was learned before and after.

    - `coef` (ndarray of shape (T, d), with more than two classes (K, T, d)): Where tasks have different classes, and
      one more than two: a list of T arrays of shape (K_t, d).
    - `intercept`: ndarray of shape (T,) or (K, T), or list of T arrays
    - `tasks`: ndarray of shape (T,)
    - `classes`: ndarray of labels, list of such (None: not known), one per task, or None where numbers are predicted
    - `single`: Fitted to a 1-D y without ``task``: predictions of the one task are 1-D, too.
    - `owner`: Whose state it is, for messages.
    - `joint`: Whether several classes are judged together, not one by one against the rest.
    - `needs_offset`: Fitted with an offset: scores without one would be of another kind.
    - `fills`: What stands for missing genotypes.
    - `thresholds` (ndarray of shape (T, K - 1), or list of T arrays): Between ordered classes, P(y <= k) = 1/(1 +
      exp(score - threshold)); None where there are none.
    """

    coef: Any
    intercept: Any
    tasks: np.ndarray
    classes: Any = None
    single: bool = False
    owner: str = "model"
    joint: bool = False
    needs_offset: bool = False
    fills: Fills | None = None
    thresholds: Any = None

    @property
    def rows(self) -> np.ndarray:
        """All coefficients, a row for each task, or for each class of each task: task after task."""
        if isinstance(self.coef, list):
            return np.concatenate(self.coef)
        return self.coef if self.coef.ndim == 2 else self.coef.swapaxes(0, 1).reshape(-1, self.coef.shape[-1])

    @property
    def class_counts(self) -> list[int]:
        """Number of `rows` of each task."""
        if isinstance(self.coef, list):
            return [len(own) for own in self.coef]
        return [1 if self.coef.ndim == 2 else len(self.coef)] * len(self.tasks)

    def shaped(self, rows: np.ndarray) -> Any:
        """Numbers for the `rows` in the form of the coefficients."""
        if isinstance(self.coef, list):
            return np.split(rows, np.cumsum(self.class_counts)[:-1])
        if self.coef.ndim == 2:
            return rows
        return np.ascontiguousarray(rows.reshape(len(self.tasks), -1, rows.shape[1]).swapaxes(0, 1))

    @property
    def constants(self) -> np.ndarray:
        """The intercepts of the `rows`."""
        if isinstance(self.intercept, list):
            return np.concatenate(self.intercept)
        return np.ravel(self.intercept, order="F")

    @property
    def row_names(self) -> np.ndarray:
        """What the `rows` belong to: tasks, or with more than two classes a class of a task, in words."""
        if not isinstance(self.coef, list) and self.coef.ndim == 2:
            return self.tasks
        classes = self.classes if isinstance(self.classes, list) else [self.classes] * len(self.tasks)
        if len(self.tasks) == 1:
            return np.asarray(classes[0])
        pairs = [f"{task}: {name}" for task, own in zip(self.tasks.tolist(), classes, strict=True) for name in own]
        return np.array(pairs)

    def _padded(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts as arrays: zeros stand for classes that a task does not have."""
        if not isinstance(self.coef, list):
            return self.coef, self.intercept
        most, n_tasks, n_features = max(map(len, self.coef)), len(self.coef), self.coef[0].shape[1]
        coef, intercept = np.zeros((most, n_tasks, n_features)), np.zeros((most, n_tasks))
        for t, (own, constants) in enumerate(zip(self.coef, self.intercept, strict=True)):
            coef[: len(own), t], intercept[: len(own), t] = own, constants
        return coef, intercept

    def scores(
        self,
        X: Any,
        task: Any,
        read: Callable[[Any, str], Any] = read_rows,
        score: Callable[..., np.ndarray] = linear_scores,
        offset: Any = None,
    ) -> Any:
        """x . w_t + b_t + offset: (n,) with ``task``, (n, T) without, a list for a list; a last axis for K classes.

        Where tasks have different classes, and one more than two: always a list by task, (n, K_t) without ``task``, and
        with it the scores of that task's rows. ``read(X, name)`` gives the rows, something with a ``shape``, as
        ``score`` takes them, whose arguments are those of `tasksieve.tasks.linear_scores`.
        """
        if self.needs_offset and offset is None:
            raise ValueError(
                f"{self.owner} was fitted with an offset: pass offset=, in the form of the predictions (offset=0.0 for "
                "none)."
            )

        all_coef, all_intercepts = self._padded()
        n_features = all_coef.shape[-1]

        def rows(X: Any, name: str) -> Any:
            matrix = read(X, name)
            if matrix.shape[1] != n_features:
                raise ValueError(
                    f"{name} has {matrix.shape[1]} features, but {self.owner} is expecting "
                    f"{n_features} features as input."
                )
            return matrix

        def scored(matrix: Any, tasks: slice, codes: np.ndarray | None) -> np.ndarray:
            coef, intercept = all_coef[..., tasks, :], all_intercepts[..., tasks]
            if self.fills is not None and hasattr(matrix, "filled"):
                matrix = matrix.filled(self.fills.tasks(tasks))
            if coef.ndim == 2:
                return score(matrix, coef, intercept, codes)
            each = [score(matrix, w, b, codes) for w, b in zip(coef, intercept, strict=True)]
            return np.stack(each, axis=-1)

        n_tasks = len(self.tasks)
        if is_task_list(X):
            if task is not None:
                raise ValueError("task was given with a list of matrices: there, item t belongs to tasks_[t].")
            if len(X) != n_tasks:
                raise ValueError(
                    f"X is a list of {len(X)} matrices, but the model has {n_tasks} tasks: pass one matrix per "
                    "task (of 0 rows where there is nothing to predict), or stacked rows with task."
                )
            parts = [scored(rows(item, f"X[{t}]"), slice(t, t + 1), None)[:, 0] for t, item in enumerate(X)]
            return self._cut(parts) if offset is None else add_offset(self._cut(parts), offset)
        matrix = rows(X, "X")
        codes = None if task is None else task_codes(task, self.tasks, matrix.shape[0])
        found = scored(matrix, slice(None), codes)
        if isinstance(self.coef, list):
            tasks = range(len(self.coef))
            return self._cut([found[:, t] for t in tasks] if codes is None else [found[codes == t] for t in tasks])
        found = found[:, 0] if codes is None and self.single else found
        return found if offset is None else add_offset(found, offset)

    def _cut(self, parts: list[np.ndarray]) -> list[np.ndarray]:
        """Scores by task, each of its own classes only."""
        if not isinstance(self.coef, list):
            return parts
        return [part[:, : len(own)] for part, own in zip(parts, self.coef, strict=True)]

    def answers(self, scores: Any, task: Any, listed: bool = False) -> Any:
        """What `scores` of the same arguments mean: themselves, or the classes that they predict. X may be `listed`."""
        if self.classes is None:
            return scores
        if isinstance(self.coef, list) and not listed:
            return self._gathered([self._labels(part, t) for t, part in enumerate(scores)], task)
        if isinstance(scores, list):
            return [self._labels(part, t) for t, part in enumerate(scores)]
        return self._labels(scores, None if task is None else task_codes(task, self.tasks, len(scores)))

    def _labels(self, scores: np.ndarray, position: Any) -> np.ndarray:
        """Labels of an array of scores; ``position``: the task, or the tasks of the rows, None: a column per task."""
        found: np.ndarray = map_rows(self._row_labels, scores, position)
        return found

    def _row_labels(self, scores: np.ndarray, position: Any) -> np.ndarray:
        if self.thresholds is not None:
            return self._ordered_labels(np.argmax(self._ordered_probabilities(scores, position), axis=-1), position)
        if isinstance(self.coef, list):
            return np.asarray(self.classes[position][np.argmax(scores, axis=-1)])
        if self.coef.ndim == 3:
            return np.asarray(self.classes[np.argmax(scores, axis=-1)])
        upper = (scores > 0).astype(np.intp)
        if not isinstance(self.classes, list):
            return np.asarray(self.classes[upper if len(self.classes) > 1 else np.zeros_like(upper)])
        used = range(len(self.classes)) if position is None else np.unique(position).tolist()
        unknown = [t for t in used if self.classes[t] is None]
        if unknown:
            name = self.tasks.tolist()[unknown[0]]
            raise ValueError(
                f"task {name!r} had no rows of two classes, and the tasks have different pairs of classes: its classes "
                "are not known. Use decision_function."
            )
        known = next(pair for pair in self.classes if pair is not None)
        pairs = np.stack(as_they_are([known if pair is None else pair for pair in self.classes]))
        return pairs[np.arange(len(pairs)) if position is None else position, upper]

    def _gathered(self, parts: list[np.ndarray], task: Any) -> np.ndarray:
        """Labels of all tasks: those of the rows where their tasks are known, else a column per task."""
        parts = as_they_are(parts)
        if task is None:
            return np.stack(parts, axis=1)
        codes = task_codes(task, self.tasks, sum(map(len, parts)))
        out = np.empty(len(codes), dtype=np.result_type(*parts))
        for t, part in enumerate(parts):
            out[codes == t] = part
        return out

    def probabilities(self, scores: Any, task: Any = None) -> Any:
        """Probabilities of the classes on a last axis, p = 1 / (1 + exp(-score)); of more than two the softmax, or,
        where each was judged against the rest, these divided by their sum; of ordered ones by their thresholds. The
        `task` is that of the `scores`."""
        if self.thresholds is not None:
            return self._between_thresholds(scores, task)
        if isinstance(scores, list):
            return [self.probabilities(part) for part in scores]
        return map_rows(self._row_probabilities, scores)

    def _row_probabilities(self, scores: np.ndarray, _: Any) -> np.ndarray:
        several = isinstance(self.coef, list) or self.coef.ndim == 3
        if self.joint or not several:
            return class_probabilities(scores, several)
        each = np.maximum(expit(scores), 1e-300)
        return each / each.sum(axis=-1, keepdims=True)


    # -- ordered classes ----------------------------------------------------------------------------------------------

    @property
    def _all_thresholds(self) -> np.ndarray:
        """(T, K - 1); a task with fewer classes has infinite ones beyond its last, NaN one whose outcome is another."""
        if not isinstance(self.thresholds, list):
            return np.asarray(self.thresholds)
        widths = [0 if own is None else len(own) for own in self.thresholds]
        padded = np.full((len(widths), max(widths)), np.inf)
        for t, own in enumerate(self.thresholds):
            if own is None:
                padded[t] = np.nan
            else:
                padded[t, : widths[t]] = own
        return padded

    @property
    def stored_thresholds(self) -> np.ndarray | None:
        """As a solution of the engine has them, (K - 1, T)."""
        return None if self.thresholds is None else self._all_thresholds.T

    def _ordered_probabilities(self, scores: np.ndarray, position: Any) -> np.ndarray:
        """On a last axis; ``position``: the task, or the tasks of the rows, None: a column per task."""
        own = self._all_thresholds
        own = own[0] if position is None and scores.ndim == 1 else own if position is None else own[position]
        margins = own - scores[..., None]
        end = np.full((*margins.shape[:-1], 1), np.inf)
        return interval_probabilities(np.concatenate([-end, margins], axis=-1), np.concatenate([margins, end], axis=-1))

    def _ordered_labels(self, codes: np.ndarray, position: Any) -> np.ndarray:
        if not isinstance(self.classes, list):
            return np.asarray(self.classes[codes])
        if isinstance(position, int):
            return np.asarray(self.classes[position][codes])
        classes = as_they_are(self.classes)
        out = np.empty(codes.shape, dtype=np.result_type(*classes))
        for t, own in enumerate(classes):
            here = (slice(None), t) if position is None else position == t
            out[here] = own[codes[here]]
        return out

    def _between_thresholds(self, scores: Any, task: Any) -> Any:
        """A list by task where tasks have different classes."""
        differ = isinstance(self.thresholds, list)
        if isinstance(scores, list):
            found = [map_rows(self._ordered_probabilities, part, t) for t, part in enumerate(scores)]
            return [part[..., : len(own) + 1] for part, own in zip(found, self.thresholds, strict=True)]
        codes = None if task is None else task_codes(task, self.tasks, len(scores))
        every = map_rows(self._ordered_probabilities, scores, codes)
        if not differ:
            return every
        parts = [every[:, t] if codes is None else every[codes == t] for t in range(len(self.tasks))]
        return [part[:, : len(own) + 1] for part, own in zip(parts, self.thresholds, strict=True)]


def thresholds_by_task(thresholds: np.ndarray, classes: Any) -> Any:
    """Thresholds (m, T) between the codes of classes as a model has them: (T, K - 1), or a list where tasks have
    classes of their own. Beyond the last class that had rows they are infinite."""
    own = classes if isinstance(classes, list) else [classes] * thresholds.shape[1]
    counts = [len(part) - 1 for part in own]
    padded = np.full((thresholds.shape[1], max(max(counts), len(thresholds))), np.inf)
    padded[:, : len(thresholds)] = thresholds.T
    if not isinstance(classes, list):
        return np.ascontiguousarray(padded[:, : counts[0]])
    return [padded[t, :count].copy() for t, count in enumerate(counts)]


def class_probabilities(scores: np.ndarray, several: bool) -> np.ndarray:
    """Of classes that are judged together, on a last axis, from log-odds."""
    return np.asarray(softmax(scores, axis=-1)) if several else np.stack([expit(-scores), expit(scores)], axis=-1)


def as_they_are(labels: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Arrays of labels that can be joined: numbers and words stay what they are."""
    kinds = {part.dtype.kind for part in labels}
    mixed = len(kinds) > 1 and kinds & set("OUS")
    return [part.astype(object) for part in labels] if mixed else list(labels)
