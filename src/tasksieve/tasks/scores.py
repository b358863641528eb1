"""Linear scores of new rows, from the columns of the selected features alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from .source import kind_of

# Rows times selected features packed at a time for a prediction.
PACKED_ENTRIES = 1 << 23


def linear_scores(
    matrix: Any, coef: np.ndarray, intercept: np.ndarray, codes: np.ndarray | None = None
) -> np.ndarray:
    """x_i . w_t + b_t for every row and task, (n, T), or, given the row of `coef` of each row, for that one, (n,).

    Only the columns of features with a non-zero coefficient are read, in blocks of rows; those on a device there, and
    those in a cluster by a dask array.
    """
    support = np.flatnonzero(coef.any(axis=0))
    packed = coef[:, support]
    n_rows = matrix.shape[0]
    if hasattr(matrix, "linear_scores"):  # it knows where its columns lie, and the fill values of missing entries
        found: np.ndarray = matrix.linear_scores(coef, intercept, codes)
        return found
    kind = kind_of(matrix)
    if kind.by_columns:  # those of the selected features are all that is needed
        matrix, coef = kind(matrix).take_columns(support), packed
        support = np.arange(len(support))
    scores = np.empty((n_rows, len(coef)) if codes is None else n_rows)
    sparse = scipy.sparse.issparse(matrix)
    whole = not sparse and len(support) == matrix.shape[1]
    step = n_rows if sparse else max(1, PACKED_ENTRIES // max(1, len(support)))
    for start in range(0, n_rows, max(1, step)):
        rows = slice(start, start + step)
        part = matrix if sparse else matrix[rows]
        columns = part if whole else part[:, support]
        if columns.dtype != np.float64:
            columns = columns.astype(np.float64)
        if codes is None:
            scores[rows] = columns @ packed.T
        else:
            scores[rows] = _scores_by_task(columns, packed, codes[rows])
    scores += intercept if codes is None else intercept[codes]
    return scores


def _scores_by_task(columns: Any, coef: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """x_i . w_codes[i], task by task, so that no row meets a task other than its own."""
    scores = np.empty(len(codes))
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    columns = columns.tocsr() if scipy.sparse.issparse(columns) else columns
    for rows in np.split(order, bounds):
        if len(rows):
            scores[rows] = columns[rows] @ coef[codes[rows[0]]]
    return scores
