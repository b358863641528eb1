"""One state of a fitted linear model: the numbers that its answers are made of, and how they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from ..tasks import add_offset, is_task_list, linear_scores, read_matrix, task_codes


def read_rows(X: Any, name: str) -> Any:
    """Rows to predict, read as fitting reads them; there may be none."""
    return read_matrix(X, name, min_rows=0)


@dataclass(frozen=True)
class LinearState:
    """Coefficients, and what they belong to.

    Every answer of a fitted model comes from one such state. A model that goes on learning hands out a new one for
    each answer, so that no answer mixes what was learned before and after.

    Attributes
    ----------
    coef : ndarray of shape (T, d), with more than two classes (K, T, d)
    intercept : ndarray of shape (T,) or (K, T)
    tasks : ndarray of shape (T,)
    classes : ndarray of labels, list of pairs (None: not known), one per task, or None where numbers are predicted
    single : bool
        Fitted to a 1-D y without ``task``: predictions of the one task are 1-D, too.
    owner : str
        Whose state it is, for messages.
    needs_offset : bool
        Fitted with an offset: scores without one would be of another kind.
    """

    coef: np.ndarray
    intercept: np.ndarray
    tasks: np.ndarray
    classes: Any = None
    single: bool = False
    owner: str = "model"
    needs_offset: bool = False

    def scores(
        self,
        X: Any,
        task: Any,
        read: Callable[[Any, str], Any] = read_rows,
        score: Callable[..., np.ndarray] = linear_scores,
        offset: Any = None,
    ) -> Any:
        """x . w_t + b_t + offset: (n,) with ``task``, (n, T) without, a list for a list; a last axis for K classes.

        Parameters
        ----------
        X : matrix, or list of matrices (one per task)
        task : array of shape (n,), or None
        read : callable
            ``read(X, name)`` gives the rows in the form that ``score`` takes, something with a ``shape``.
        score : callable
            With the arguments of `tasksieve.tasks.linear_scores`.
        offset : float, or array or list in the form of the scores, optional
        """
        if self.needs_offset and offset is None:
            raise ValueError(
                f"{self.owner} was fitted with an offset: pass offset=, in the form of the predictions (offset=0.0 for "
                "none)."
            )

        def rows(X: Any, name: str) -> Any:
            matrix = read(X, name)
            if matrix.shape[1] != self.coef.shape[-1]:
                raise ValueError(
                    f"{name} has {matrix.shape[1]} features, but {self.owner} is expecting "
                    f"{self.coef.shape[-1]} features as input."
                )
            return matrix

        def scored(matrix: Any, tasks: slice, codes: np.ndarray | None) -> np.ndarray:
            coef, intercept = self.coef[..., tasks, :], self.intercept[..., tasks]
            if coef.ndim == 2:
                return score(matrix, coef, intercept, codes)
            each = [score(matrix, w, b, codes) for w, b in zip(coef, intercept, strict=True)]
            return np.stack(each, axis=-1)

        n_tasks = len(self.tasks)
        if is_task_list(X):
            if task is not None:
                raise ValueError(
                    "task was given with a list of matrices: there, item t belongs to tasks_[t]."
                )
            if len(X) != n_tasks:
                raise ValueError(
                    f"X is a list of {len(X)} matrices, but the model has {n_tasks} tasks: pass one matrix per "
                    "task (of 0 rows where there is nothing to predict), or stacked rows with task."
                )
            parts = [scored(rows(item, f"X[{t}]"), slice(t, t + 1), None)[:, 0] for t, item in enumerate(X)]
            return parts if offset is None else add_offset(parts, offset)
        matrix = rows(X, "X")
        codes = None if task is None else task_codes(task, self.tasks, matrix.shape[0])
        found = scored(matrix, slice(None), codes)
        found = found[:, 0] if codes is None and self.single else found
        return found if offset is None else add_offset(found, offset)

    def answers(self, scores: Any, task: Any) -> Any:
        """What `scores` of the same arguments mean: themselves, or the classes that they speak for."""
        if self.classes is None:
            return scores
        if isinstance(scores, list):
            return [self._labels(part, t) for t, part in enumerate(scores)]
        return self._labels(scores, None if task is None else task_codes(task, self.tasks, len(scores)))

    def _labels(self, scores: np.ndarray, place: Any) -> np.ndarray:
        """Labels of an array of scores; ``place``: the task, or the tasks of the rows, None: a column per task."""
        if self.coef.ndim == 3:
            return np.asarray(self.classes[np.argmax(scores, axis=-1)])
        upper = (scores > 0).astype(np.intp)
        if not isinstance(self.classes, list):
            return np.asarray(self.classes[upper if len(self.classes) > 1 else np.zeros_like(upper)])
        used = range(len(self.classes)) if place is None else np.unique(place).tolist()
        unknown = [t for t in used if self.classes[t] is None]
        if unknown:
            name = self.tasks.tolist()[unknown[0]]
            raise ValueError(
                f"task {name!r} had no rows of two classes, and the tasks have different pairs of classes: its classes "
                "are not known. Use decision_function."
            )
        known = next(pair for pair in self.classes if pair is not None)
        pairs = stack_pairs([known if pair is None else pair for pair in self.classes])
        return pairs[np.arange(len(pairs)) if place is None else place, upper]

    def probabilities(self, scores: Any) -> Any:
        """Probabilities of the classes on a last axis, p = 1 / (1 + exp(-score)); one-vs-rest: divided by their sum."""
        if isinstance(scores, list):
            return [self.probabilities(part) for part in scores]
        if self.coef.ndim == 2:
            return np.stack([expit(-scores), expit(scores)], axis=-1)
        each = np.maximum(expit(scores), 1e-300)
        return each / each.sum(axis=-1, keepdims=True)


def stack_pairs(pairs: Sequence[np.ndarray]) -> np.ndarray:
    """Pairs of class labels as one (T, 2) array; labels of different kinds stay what they are."""
    kinds = {pair.dtype.kind for pair in pairs}
    if len(kinds) > 1 and kinds & set("OUS"):
        return np.array([pair.tolist() for pair in pairs], dtype=object)
    return np.stack(pairs)
