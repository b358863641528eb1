"""Data for tests of the cluster, and the local run with the same cutting."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from tasksieve.design import DenseStorage
from tasksieve.path.policy import VARIABLE

Array = np.ndarray[Any, Any]


class Ranges(list[Any]):
    """Storages of successive ranges of features, where a single one is expected."""

    sparse, costly_reads, shard_class, wrapped_shard_class = False, False, None, None

    def __init__(self, x: Array, starts: Array) -> None:
        super().__init__(
            DenseStorage(np.asfortranarray(x[:, low:high])) for low, high in zip(starts[:-1], starts[1:], strict=True)
        )
        self.dtype, self.n_rows, self.n_features = x.dtype, *x.shape


def stacked(
    seed: int = 0, n_tasks: int = 4, n: int = 25, d: int = 1500, kind: str = "values"
) -> tuple[Array, Array, Array]:
    """X, y and the task of each row, in no order."""
    rng = np.random.default_rng(seed)
    task = rng.permutation(np.repeat(np.arange(n_tasks), n))
    X = rng.standard_normal((n_tasks * n, d))
    W = np.zeros((n_tasks, d))
    W[:, ::97] = rng.standard_normal((n_tasks, len(range(0, d, 97))))
    scores = np.einsum("ij,ij->i", X, W[task]) + 0.5 * rng.standard_normal(len(X))
    return X, {"values": scores, "classes": (scores > 0).astype(int), "counts": rng.poisson(np.exp(0.2 * scores))}[
        kind
    ], task


def paths(model: Any, given: Any, X: Array, y: Any, task: Any, grid: Array) -> tuple[Any, Any, Any]:
    """The path of a model on data in a cluster, that on the same ranges of features here, by rows, and the fleet."""
    data = model._read_with(given, y, task, None, None)
    far = model._solve(data, model._problem(data), grid)
    here = model._read_with(X, y, task, None, None)
    order = here.order if here.order is not None else np.arange(len(X))
    here = replace(here, X=Ranges(X[order], data.make_storage().fleet.starts))
    with patch.dict(os.environ, {VARIABLE: "rows"}):
        near = model._solve(here, model._problem(here), grid)
    return far, near, data.make_storage().fleet


def same_bits(first: Any, second: Any) -> None:
    """Two solutions of a path that agree in every bit."""
    assert len(first.points) == len(second.points)
    for a, b in zip(first.points, second.points, strict=True):
        assert np.array_equal(a.features, b.features)
        assert np.array_equal(a.rows, b.rows)
        assert np.array_equal(a.intercept, b.intercept)
        assert (a.dual_gap, a.objective, a.n_iter) == (b.dual_gap, b.objective, b.n_iter)
        assert (a.n_rejected, a.n_rejected_dynamic) == (b.n_rejected, b.n_rejected_dynamic)
