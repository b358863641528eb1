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
    """The same products for sparse columns; stacked rows carry their task in `task_of`, else ``r`` is n x T."""
    out[...] = 0.0
    for k, j in enumerate(range(len(indptr) - 1) if columns is None else columns):
        span = slice(indptr[j], indptr[j + 1])
        rows, values = indices[span], np.asarray(data[span], dtype=np.float64)
        if squares:
            values = values * values
        if task_of is None:
            out[k] = values @ r[rows]
        else:
            np.add.at(out[k], task_of[rows], values * r[rows, 0])


def row_products(x, r, task_of, squares, threads, out):
    """``out[task_of[i]] += r[i] x[i]^p`` for a block of row-major rows."""
    for i in range(len(r)):
        row = np.asarray(x[i], dtype=np.float64)
        out[task_of[i]] += r[i] * (row * row if squares else row)


def first_products(x, weights, r, offsets, threads, squares, out):
    """``squares[j, t] = sum_i weights_i x_ij^2`` and ``out[k][j, t] = sum_i x_ij r_ki`` over the rows of each task."""
    segment_products(x, None, weights, offsets, True, threads, squares)
    for vector, products in zip(r, out, strict=True):
        segment_products(x, None, vector, offsets, False, threads, products)
