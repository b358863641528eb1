"""NumPy twins of `passes.cpp`: products of all columns with a vector per task."""

from __future__ import annotations

import numpy as np


def _columns(x, columns):
    return np.asarray(x if columns is None else x[:, columns], dtype=np.float64)


def segments(offsets):
    """The rows of each task, as slices."""
    return [slice(offsets[t], offsets[t + 1]) for t in range(len(offsets) - 1)]


def segment_products(x, columns, r, offsets, squares, threads, out):
    """``out[k, t] = sum_i x[i, columns[k]]^p r[i]`` over the rows ``i`` of task ``t``; ``p`` is 2 with `squares`."""
    block = _columns(x, columns)
    for t, rows in enumerate(segments(offsets)):
        part = block[rows]
        out[:, t] = (part * part if squares else part).T @ r[rows]


def shared_products(x, columns, r, squares, threads, out):
    """``out = (X^p)' R`` for one matrix shared by all tasks."""
    block = _columns(x, columns)
    out[...] = (block * block if squares else block).T @ r


def sparse_products(data, indices, indptr, columns, r, task_of, tasks, squares, threads, out):
    """The same products for sparse columns; r is n x V. Stacked rows carry their task in `task_of`: out is V T wide."""
    out[...] = 0.0
    for k, j in enumerate(range(len(indptr) - 1) if columns is None else columns):
        span = slice(indptr[j], indptr[j + 1])
        rows, values = indices[span], np.asarray(data[span], dtype=np.float64)
        if squares:
            values = values * values
        if task_of is None:
            out[k] = values @ r[rows]
        else:
            for v, target in enumerate(out[k].reshape(-1, tasks)):
                np.add.at(target, task_of[rows], values * r[rows, v])


def row_products(x, r, squares, task_of, threads, out):
    """``out[k][task_of[k][i]] += r[k][i] x[i]^p`` for row-major rows; p = 2 for the first `squares` vectors."""
    for i, row in enumerate(np.asarray(x, dtype=np.float64)):
        for k, vector in enumerate(r):
            if vector[i] != 0.0:
                out[k][task_of[k][i]] += vector[i] * (row * row if k < squares else row)


def many_products(x, r, squares, offsets, threads, out):
    """``out[k][j, t] = sum_i x_ij^p r[k][i]`` over the rows of each task; p = 2 for the first `squares` vectors."""
    for k, vector in enumerate(r):
        segment_products(x, None, vector, offsets, k < squares, threads, out[k])
