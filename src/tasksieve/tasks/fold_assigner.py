"""Fold assignment of rows that come one after the other, their number not known in advance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class FoldAssigner:
    """Folds of the rows of a task, one after the other: random permutations of all folds, again and again."""

    def __init__(self, n_folds: int, seed: Sequence[int]) -> None:
        self._lot = np.random.RandomState(list(seed))  # its numbers are the same in every version of NumPy
        self._n_folds, self._left = n_folds, np.empty(0, dtype=np.int64)

    def next(self, count: int) -> Array:
        rounds = -(-max(count - len(self._left), 0) // self._n_folds)
        drawn = np.argsort(self._lot.random_sample((rounds, self._n_folds)), axis=1, kind="stable").ravel()
        ready = np.concatenate([self._left, drawn])
        self._left = ready[count:]
        return ready[:count]
