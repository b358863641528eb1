"""The best dual point that a first-order method has passed by, and what it saw at every check."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import Evaluation
from .working import Solution

Array = np.ndarray[Any, Any]


class BestDual:
    """The largest dual value seen, and the rows that gave it; screening on the way leaves some of the first ones."""

    def __init__(self, start: Array) -> None:
        self._start = start
        self._steps: list[tuple[int, int, float]] = []
        self.value = -np.inf
        self._rows: Array | None = None

    def update(self, iteration: int, alive: Array, rows: Array, objective: float, gap: float) -> float:
        """Takes a pair in; returns the gap between `objective` and the best dual value."""
        if objective - gap > self.value:
            self.value, self._rows = objective - gap, self._whole(alive, rows)
        else:
            gap = objective - self.value
        self._steps.append((iteration, len(alive), gap))
        return gap

    def solution(
        self, iterations: int, alive: Array, rows: Array, gap: float, shrunk: bool, at: Evaluation | None = None
    ) -> Solution:
        """The last rows, with the best dual point."""
        assert self._rows is not None
        left = alive if shrunk else None
        return Solution(
            self._whole(alive, rows), iterations, gap, at, dual_rows=self._rows, alive=left, steps=self._steps
        )

    def _whole(self, alive: Array, rows: Array) -> Array:
        full = np.zeros_like(self._start)
        full[alive] = rows
        return full
