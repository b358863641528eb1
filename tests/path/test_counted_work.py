"""Work is counted, not timed: passes over X, kernels called and iterations of a few fits, each at most what it was."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve._kernels import compiled, kernels

pytestmark = pytest.mark.skipif(not compiled, reason="the twins of the kernels call each other")

#: passes over X, calls of kernels, iterations: as counted with version 0.2. Rounding of another BLAS may change a
#: decision here and there, hence a tenth more is allowed; work that grows by more has a reason that is worth knowing.
COUNTED = {
    "lasso": (6.255, 481, 122),
    "elastic net": (6.584, 547, 152),
    "sparse group": (6.243, 495, 118),
    "logistic": (6.437, 812, 279),
    "huber": (9.534, 1161, 317),
    "calibrated": (10.969, 1082, 78),
}
MODELS: dict[str, Any] = {
    "lasso": ts.MultiTaskLasso(),
    "elastic net": ts.MultiTaskElasticNet(),
    "sparse group": ts.MultiTaskSparseGroupLasso(),
    "logistic": ts.MultiTaskLogisticRegression(),
    "huber": ts.MultiTaskHuber(),
    "calibrated": ts.CalibratedMultiTaskLasso(),
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each kernel is called from here on."""
    counted: Counter[str] = Counter()

    def counting(name: str, function: Any) -> Any:
        def called(*given: Any, **options: Any) -> Any:
            counted[name] += 1
            return function(*given, **options)

        return called

    for name in dir(kernels):
        function = getattr(kernels, name)
        if not name.startswith("_") and callable(function) and not isinstance(function, type):
            monkeypatch.setattr(kernels, name, counting(name, function))
    return counted


def data(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    tasks, rows, d = 5, 30, 800
    x, task = rng.standard_normal((tasks * rows, d)), np.repeat(np.arange(tasks), rows)
    w = np.zeros((d, tasks))
    w[:6] = rng.standard_normal((6, tasks))
    y = np.einsum("ij,ji->i", x, w[:, task]) + 0.5 * rng.standard_normal(len(x))
    return x, np.where(y > 0, 1.0, -1.0) if name == "logistic" else y, task


@pytest.mark.parametrize("name", COUNTED)
def test_a_path_costs_no_more_than_it_did(name: str, calls: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKSIEVE_NUM_THREADS", "1")
    x, y, task = data(name)
    path = MODELS[name].set_params(n_jobs=1).path(x, y, task=task, n_alphas=20, eps=0.1)
    found = (path.passes, sum(calls.values()), int(np.sum(path.n_iter)))
    assert found[1] > 20  # or nothing is counted
    for what, now, before in zip(("passes", "kernels", "iterations"), found, COUNTED[name], strict=True):
        assert now <= 1.1 * before, f"{what}: {now}, and {before} before; kernels: {dict(calls)}"


def test_the_counts_repeat(calls: Counter[str]) -> None:
    x, y, task = data("lasso")
    found = []
    for _ in range(2):
        calls.clear()
        path = ts.MultiTaskLasso(n_jobs=1).path(x, y, task=task, n_alphas=20, eps=0.1)
        found.append((path.passes, dict(calls), path.n_iter.tolist()))
    assert found[0] == found[1]
