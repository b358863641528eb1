"""Paths of halves whose missing values are filled from the half alone.

The bounds of stability selection need the halves of a pair to be independent: an imputation drawn from all rows would
tell one half of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..design import one_blas_thread
from ..fitted.checkpoint import kept
from ..messages import ParameterError
from ..tasks import is_task_list
from ..tasks.task_means import HoledRows
from .half_paths import Entries, HalfPaths
from .imputation import MultipleImputation, seeds_of, with_holes

Array = np.ndarray[Any, Any]
#: X of all rows, given the number of a half, which rows are in it, and the task of each
Complete = Callable[[int, Array, Array], Any]


def refuse_imputation(imputation: MultipleImputation, X: Any, y: Any) -> None:
    """Refuse rows that halves cannot be imputed of: they must be stacked, with an imputer."""
    if imputation.imputer is None:
        raise ParameterError("imputer", "is None: halves are imputed one by one, which needs one")
    if is_task_list(X) or np.ndim(y) == 2:
        raise ValueError("X: halves with imputations need stacked rows (task=), no list and no matrix shared by tasks.")


class CompletedHalfPaths(HalfPaths):
    """The paths of halves, each completed from its own rows."""

    def complete_by(self, complete: Complete, known_by: Any, given: tuple[Any, Any, Any]) -> None:
        """Say how, what that depends on beside the rows, and what was given beside X: y, task, sample_weight."""
        self._complete, self._completed_by, self._given = complete, known_by, given

    def _follow(self, some: Sequence[int], callback: Callable[[int, int], None] | None) -> None:
        with one_blas_thread():
            for h in some:
                self._complete_half(h)
                self._done += 1
                if callback is not None:
                    callback(self._done, len(self.entries))

    def _complete_half(self, h: int) -> None:
        data = self._data
        weights = self._halves.weights(h, data.weights)

        def compute() -> dict[str, Array]:
            inside, task = data.unflatten(weights > 0.0), data.unflatten(data.task_of_sample)
            if data.shared:  # by rows of X, which are of all tasks
                inside, task = inside.any(axis=1), np.zeros(data.n_rows, dtype=np.int64)
            table = self._complete(h, inside, task)
            training = self._model._read_with(table, *self._given, None)
            return self._walk(training.with_weights(weights), self._n_jobs)

        arrays = kept(f"half-{h}", [self._known_by, weights, self._completed_by], compute)
        self.entries[h] = Entries(arrays["numbers"], arrays["alphas"], int(arrays["open"]))


def by_imputation(imputation: MultipleImputation, X: Any, n_halves: int) -> tuple[Complete, Any]:
    """An imputation of each half, drawn with a seed of its own."""
    holed, seeds = with_holes(X), seeds_of(imputation.random_state, n_halves)

    def complete(h: int, inside: Array, task: Array) -> Array:
        table = np.zeros_like(holed)  # rows of the other half have no weight
        table[inside], _ = imputation.complete(holed[inside], task=task[inside], seed=seeds[h])
        return table

    return complete, seeds


def by_means(rows: HoledRows) -> tuple[Complete, Any]:
    """Means of each half."""
    return lambda h, inside, task: rows.filled(inside), "means of the half"
