"""The data on which estimators are tried: small counts, which every type of storage holds exactly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from ..outcomes import survival

Array = np.ndarray[Any, Any]

TASKS = 3


@dataclass
class Rows:
    """Rows of several tasks out of order, or of one (`task` is None)."""

    X: Array
    y: Array
    task: Array | None

    @property
    def arguments(self) -> dict[str, Any]:
        """Of `fit`, `predict`, `score`, beside X and y."""
        return {} if self.task is None else {"task": self.task}

    @property
    def given(self) -> dict[str, Any]:
        """Of `fit`, all of them."""
        return {"X": self.X, "y": self.y, **self.arguments}

    def some(self, rows: Any) -> Rows:
        """Some rows, as a boolean mask or indices."""
        return Rows(self.X[rows], self.y[rows], None if self.task is None else self.task[rows])

    def as_list(self) -> tuple[list[Array], list[Array]]:
        """A matrix and a 1-D array for each task."""
        tasks = range(TASKS)
        return [self.X[self.task == t] for t in tasks], [self.y[self.task == t] for t in tasks]

    def as_columns(self) -> Array:
        """A column of labels for each task, NaN where a row is not the task's."""
        assert self.task is not None
        wide = np.empty((len(self.y), TASKS), dtype=self.y.dtype)
        wide[...] = self.unobserved
        wide[np.arange(len(self.y)), self.task] = self.y
        return wide


    @property
    def unobserved(self) -> Any:
        """A label that is not observed."""
        return np.nan if self.y.dtype.names is None else survival([np.nan], [False])[0]

    def without_labels(self, kept: Array) -> Array:
        """The labels of the rows that are kept; others are not observed."""
        found = self.y.copy()
        found[~kept] = self.unobserved
        return found

    def with_infinity(self) -> Array:
        """The labels, the last of which is infinite."""
        found = self.y.copy()
        (found if found.dtype.names is None else found["time"])[-1] = np.inf
        return found


def rows_for(estimator: Any, many_tasks: bool, seed: int = 0) -> Rows:
    """Rows that suit an estimator: numbers, counts, positive numbers, times to an event, or classes 0 and 1 (three
    without tasks) that X explains."""
    rng = np.random.default_rng(seed)
    n, d = 54, 7
    task = rng.permutation(np.repeat(np.arange(TASKS), [15, 21, 18]))
    X = rng.integers(0, 4, size=(n, d)).astype(np.float64)
    W = np.zeros((TASKS, d))
    W[:, [0, 3]] = rng.choice([-1.0, 1.0], (TASKS, 2)) * rng.uniform(0.6, 1.5, (TASKS, 2))
    scores = np.einsum("ij,ij->i", X, W[task if many_tasks else 0 * task])
    scores = scores + 0.4 * rng.standard_normal(n)
    if getattr(estimator, "_targets", None) == "survival":
        return Rows(X, survival(np.exp(-scores), rng.random(n) < 0.8), task if many_tasks else None)
    if not is_classifier(estimator) and get_tags(estimator).target_tags.positive_only:
        means = np.exp(0.3 * scores + 0.5)
        y = means if estimator._loss.labels == "positive" else rng.poisson(means).astype(np.float64)
        return Rows(X, y, task if many_tasks else None)
    if not is_classifier(estimator):
        return Rows(X, scores + 1.0, task if many_tasks else None)
    if not many_tasks:
        return Rows(X, np.digitize(scores, np.quantile(scores, [0.35, 0.7])).astype(np.float64), None)
    medians = np.array([np.median(scores[task == t]) for t in range(TASKS)])
    return Rows(X, (scores > medians[task]).astype(np.float64), task)


def storages(X: Array, folder: Path, quick: bool) -> dict[str, Any]:
    """The same numbers in other types, orders and containers."""
    found: dict[str, Any] = {
        "float32": X.astype(np.float32),
        "int8, Fortran order": np.asfortranarray(X, dtype=np.int8),
        "sparse rows": scipy.sparse.csr_array(X),
        "memory map": _mapped(folder / "c", X, "C"),
    }
    if quick:
        return found
    return found | {
        "Fortran order": np.asfortranarray(X),
        "uint8": X.astype(np.uint8),
        "int64": X.astype(np.int64),
        "every second column of a wider array": np.repeat(X, 2, axis=1)[:, ::2],
        "list of rows": X.tolist(),
        "sparse columns of int8": scipy.sparse.csc_matrix(X.astype(np.int8)),
        "memory map, Fortran order, float32": _mapped(folder / "f", X.astype(np.float32), "F"),
    }


def _mapped(path: Path, x: Array, order: Any) -> Any:
    new = np.memmap(path, dtype=x.dtype, mode="w+", shape=x.shape, order=order)
    new[...] = x
    new.flush()
    return np.memmap(path, dtype=x.dtype, mode="r", shape=x.shape, order=order)
