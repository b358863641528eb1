"""How well an online model predicted rows before it learned them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Progress:
    """Progressive (prequential) validation: each row is predicted first, then learned.

    - `loss`: Mean loss over all rows (weighted; NaN before any).
    - `tasks`: Task labels.
    - `task_loss` (ndarray of shape (T,)): Mean loss of each task's rows.
    - `score` (ndarray of shape (T,)): Regression: 1 - squared errors / squares about the task's mean, a progressive R².
      Classification: accuracy.
    - `weight` (ndarray of shape (T,)): Sum of the weights of each task's rows.
    - `rows`: 1, 2, 4, ...: numbers of rows at which the stream was looked at.
    - `losses`: Mean loss of the rows up to each of them.
    """

    loss: float
    tasks: np.ndarray
    task_loss: np.ndarray
    score: np.ndarray
    weight: np.ndarray
    rows: np.ndarray
    losses: np.ndarray

    @classmethod
    def of(cls, state: dict[str, Any], tasks: np.ndarray, classes: bool) -> Progress:
        """From the arrays of the kernel."""
        weight, loss = state["seen_weight"], state["seen_loss"]
        task_loss = _ratio(loss, weight)
        # the squared loss is half of the squared error
        score = _ratio(state["seen_hits"], weight) if classes else 1.0 - _ratio(2.0 * loss, state["seen_spread"])
        curve = state["seen_curve"].reshape(-1, 2)
        # rows counted before version 0.2 have no losses: the curve ends at the last power of two
        last = int(state["shape"][3]).bit_length()
        rows = 2 ** np.arange(last - len(curve), last, dtype=np.int64)
        total = float(_ratio(loss.sum(), weight.sum()))
        return cls(total, tasks, task_loss, score, weight, rows, _ratio(curve[:, 1], curve[:, 0]))


def _ratio(above: Any, below: Any) -> Any:
    above, below = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
