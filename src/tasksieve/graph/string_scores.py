"""Scores of strings whose features are never stored."""

from __future__ import annotations

import numpy as np

from ..linear.base import (
    kernel_threads,
)
from .solver import GraphProblem, StringSource


def string_scores(
    source: StringSource, coef: np.ndarray, intercept: np.ndarray, codes: np.ndarray | None = None
) -> np.ndarray:
    """`tasksieve.tasks.linear_scores` of strings: their features are computed on the way."""
    n = len(source.text)
    threads = kernel_threads()

    def scores(offsets: np.ndarray, row_of: np.ndarray | None, table: np.ndarray) -> np.ndarray:
        one = np.eye(len(table))
        nothing = np.zeros(n)
        problem = GraphProblem(source, offsets, row_of, nothing, nothing, one, one, "hinge", threads=threads)
        return problem.scores(np.ascontiguousarray(table, dtype=np.float32))

    if codes is None:
        ends = np.array([0, n], dtype=np.int64)
        out = np.stack([scores(ends, None, coef[t : t + 1]) for t in range(len(coef))], axis=1)
        return out + intercept
    order = np.argsort(codes, kind="stable").astype(np.int64)
    offsets = np.searchsorted(codes[order], np.arange(len(coef) + 1)).astype(np.int64)
    out = np.empty(n)
    out[order] = scores(offsets, order, coef)
    return out + intercept[codes]
