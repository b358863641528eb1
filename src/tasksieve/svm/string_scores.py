"""Scores of strings whose features are never stored."""

from __future__ import annotations

import numpy as np

from ..design import thread_count
from .problem import GraphProblem, KernelRows, Shape, StringSource


def string_scores(
    source: StringSource, coef: np.ndarray, intercept: np.ndarray, codes: np.ndarray | None = None
) -> np.ndarray:
    """`tasksieve.tasks.linear_scores` of strings: their features are computed on the way."""
    rows, one = KernelRows(source, Shape("hinge", threads=thread_count())), np.eye(1)

    def scores(table: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        ends, nothing = np.array([0, len(chosen)], dtype=np.int64), np.zeros(len(chosen))
        problem = GraphProblem(rows, ends, chosen, nothing, nothing, one, one)
        return problem.scores(np.ascontiguousarray(table[None], dtype=np.float32))

    every = np.arange(len(source.text))
    if codes is None:
        return np.stack([scores(table, every) for table in coef], axis=1) + intercept
    out = np.empty(len(every))
    for t, table in enumerate(coef):  # one task at a time: no copy of the tables
        chosen = np.flatnonzero(codes == t)
        if len(chosen):
            out[chosen] = scores(table, chosen)
    return out + intercept[codes]
