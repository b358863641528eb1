"""Scores of strings whose features are never stored."""

from __future__ import annotations

import numpy as np

from ..design import thread_count
from .solver import GraphProblem, StringSource


def string_scores(
    source: StringSource, coef: np.ndarray, intercept: np.ndarray, codes: np.ndarray | None = None
) -> np.ndarray:
    """`tasksieve.tasks.linear_scores` of strings: their features are computed on the way."""
    n = len(source.text)
    threads = thread_count()
    one, nothing = np.eye(1), np.zeros(n)

    def scores(table: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        count = n if rows is None else len(rows)
        ends = np.array([0, count], dtype=np.int64)
        none = nothing[:count]
        problem = GraphProblem(source, ends, rows, none, none, one, one, "hinge", threads=threads)
        return problem.scores(np.ascontiguousarray(table[None], dtype=np.float32))

    if codes is None:
        return np.stack([scores(table, None) for table in coef], axis=1) + intercept
    out = np.empty(n)
    for t, table in enumerate(coef):  # one task at a time: no copy of the tables
        rows = np.flatnonzero(codes == t)
        if len(rows):
            out[rows] = scores(table, rows)
    return out + intercept[codes]
