"""Simulated sites, and the pooled fit of the same rows by the product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tasksieve.federated.in_memory import SitesInMemory
from tasksieve.federated.local import LocalProblem
from tasksieve.federated.path import FederatedPath
from tasksieve.tasks import read_tasks

Array = np.ndarray[Any, Any]
Rows = list[tuple[Array, Array]]


def simulated(
    loss: str = "squared", sizes: Sequence[int] = (24, 20, 28), d: int = 40, used: int = 4, seed: int = 0
) -> Rows:
    """One task a site; the first features matter, with signs of their own in each."""
    rng, tasks = np.random.default_rng(seed), []
    for n in sizes:
        X = rng.standard_normal((n, d)) + 0.3 * rng.standard_normal((n, 1))
        z = X[:, :used] @ rng.standard_normal(used)
        if loss == "logistic":
            y = (rng.random(n) < 1.0 / (1.0 + np.exp(-z))).astype(float)
            y[:2] = 0.0, 1.0
        elif loss == "poisson":
            y = rng.poisson(np.exp(np.clip(0.4 * z, -3.0, 2.0))).astype(float)
            y[0] = max(y[0], 1.0)
        else:
            y = 1.0 + z + 0.5 * rng.standard_normal(n)
        tasks.append((X, y))
    return tasks


def sites_of(
    tasks: Rows, loss: str = "squared", problems: Sequence[Mapping[str, Array]] | None = None, **options: Any
) -> SitesInMemory:
    kind = "classes" if loss == "logistic" else "values"
    each = problems or [{}] * len(tasks)
    return SitesInMemory(
        [
            LocalProblem(read_tasks([X], [y], targets=kind), loss, problems=own, **options)
            for (X, y), own in zip(tasks, each, strict=True)
        ]
    )


def pooled_path(model: Any, tasks: Rows, lams: Array) -> Any:
    """All rows in one place, on the same strengths."""
    counts = [len(y) for _, y in tasks]
    X, y = np.vstack([X for X, _ in tasks]), np.concatenate([y for _, y in tasks])
    return model.path(X, y, task=np.repeat(np.arange(len(tasks)), counts), alphas=lams / np.mean(counts))


def assert_same_path(path: FederatedPath, pooled: Any, unit: float) -> None:
    """Objectives within the gaps of both; the same features but where a row is so small that the gaps allow it."""
    ours, theirs = path.objectives, pooled.objectives * unit
    rounding = 1e-10 * path.null_loss
    assert path.converged.all()
    assert np.all(ours - theirs <= path.gaps + rounding)
    assert np.all(theirs - ours <= pooled.dual_gaps * unit + rounding)
    for k in range(len(ours)):
        one, other = set(path.features(k).tolist()), set(np.asarray(pooled.features(k)).tolist())
        rows = dict(zip(path.features(k).tolist(), path.row_norms(k).tolist(), strict=True))
        largest = max(rows.values(), default=0.0)
        assert all(rows[j] < 0.02 * largest for j in one - other), (k, one ^ other)
        assert len(other - one) <= 1, (k, one ^ other)
