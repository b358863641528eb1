"""The best dual point that a first-order method has passed by."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class BestDual:
    """The largest dual value seen, and the rows that gave it."""

    def __init__(self) -> None:
        self.value = -np.inf
        self.rows: Array | None = None

    def update(self, objective: float, gap: float, rows: Array) -> float:
        """Takes a pair in; returns the gap between `objective` and the best dual value."""
        if objective - gap > self.value:
            self.value, self.rows = objective - gap, rows.copy()
            return gap
        return objective - self.value
