"""NumPy twin of `sorted_columns.cpp`: columns of a table, sorted by task and shifted."""

from __future__ import annotations

import numpy as np


def sorted_columns(columns, order, offsets, shifts, threads, out):
    """``out[j, i] = columns[j][order[i]] - shifts[t, j]`` for the rows ``i`` of task ``t``."""
    tasks = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    for j, column in enumerate(columns):
        out[j] = column if order is None else column[order]
        if shifts is not None:
            out[j] -= shifts[tasks, j]
