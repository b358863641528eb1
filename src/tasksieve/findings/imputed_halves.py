"""Paths of halves whose missing values are imputed from the half alone.

The bounds of stability selection need the halves of a pair to be independent: an imputation drawn from all rows would
tell one half of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..design import one_blas_thread
from ..fitted.checkpoint import kept
from ..messages import ParameterError
from ..tasks import is_task_list
from .half_paths import Entries, HalfPaths
from .imputation import MultipleImputation, seeds_of, with_holes

Array = np.ndarray[Any, Any]


def imputable(imputation: MultipleImputation, X: Any, y: Any, task: Any, sample_weight: Any) -> tuple[Any, ...]:
    """Rows that halves can be imputed of: stacked, with an imputer."""
    if imputation.imputer is None:
        raise ParameterError("imputer", "is None: halves are imputed one by one, which needs one")
    if is_task_list(X) or np.ndim(y) == 2:
        raise ValueError("X: halves with imputations need stacked rows (task=), no list and no matrix shared by tasks.")
    return X, y, task, sample_weight


class ImputedHalfPaths(HalfPaths):
    """The paths of halves, each completed by an imputation of its own."""

    def impute(self, imputation: MultipleImputation, given: tuple[Any, ...]) -> None:
        """Say how, and the rows as they were given: X, y, task, sample_weight."""
        X, self._y, self._task, self._sample_weight = given
        self._imputation, self._holed = imputation, with_holes(X)
        self._seeds = seeds_of(imputation.random_state, len(self.entries))

    def _follow(self, some: range, callback: Callable[[int, int], None] | None) -> None:
        with one_blas_thread():
            for h in some:
                self._complete_half(h)
                self._done += 1
                if callback is not None:
                    callback(self._done, len(self.entries))

    def _complete_half(self, h: int) -> None:
        weights = self._halves.weights(h, self._data.weights)

        def compute() -> dict[str, Array]:
            order = self._data.order
            of_row = np.empty(len(weights))
            of_row[np.arange(len(weights)) if order is None else order] = weights
            inside = of_row > 0.0
            task = np.empty(len(weights), dtype=np.int64)
            task[np.arange(len(weights)) if order is None else order] = self._data.task_of_sample
            table = np.zeros_like(self._holed)  # rows of the other half have no weight
            table[inside], _ = self._imputation.complete(self._holed[inside], task[inside], self._seeds[h])
            training = self._model._read_with(table, self._y, self._task, self._sample_weight, None)
            return self._walk(training.with_weights(weights), self._n_jobs)

        arrays = kept(f"half-{h}", [self._known_by, weights, self._seeds[h]], compute)
        self.entries[h] = Entries(arrays["numbers"], arrays["alphas"], int(arrays["open"]))
