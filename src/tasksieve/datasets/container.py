"""What every generator and loader returns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class TaskDataset(NamedTuple):
    """A multi-task problem: stacked rows, targets, task labels, true features.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        Stacked data, rows sorted by task.
    y : array of shape (n_rows,), or (n_rows, n_outputs) for one shared matrix
        Targets; for classification +1 and -1, or labels.
    task : array of shape (n_rows,), or None for one shared matrix
        Task of each row.
    support : integer array
        Sorted indices of the features used to make y; empty for real data.
    """

    X: Any
    y: np.ndarray
    task: np.ndarray | None
    support: np.ndarray
