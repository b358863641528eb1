"""The lean way: one pass a value on the device gives what the engine gives with anchors and screening."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from device_helpers import DEVICES, KEPT, tensor

from tasksieve.design import Design, as_storage
from tasksieve.design.device.matrix import DeviceMatrix
from tasksieve.path.policy import choose_for_problem
from tasksieve.path.problem import Problem
from tasksieve.path.solve import solve_path
from tasksieve.path.walks import problem_facts

CASES: dict[str, dict[str, Any]] = {
    "equal tasks": {},
    "ragged tasks": {"lengths": [3, 25, 11, 40, 1]},
    "weights": {"weights": True},
    "scaled": {"standardize": True, "weights": True},
    "ridge": {"ridge_ratio": 0.2},
    "no intercepts": {"fit_intercept": False},
    "unpenalised": {"unpenalised": [4, 7]},
    "offsets": {"offset": 1e6},
    "one task": {"lengths": [60]},
    "long tasks": {"lengths": [150, 160], "features": 90},
    "one matrix": {"shared": 3},
}


def problem_of(x: Any, case: dict[str, Any], flat: np.ndarray, y: np.ndarray, weights: Any) -> Problem:
    free = np.array(case.get("unpenalised", []), dtype=np.int64)
    design = Design(
        as_storage(x), flat, shared="shared" in case, weights=weights, fit_intercept=case.get("fit_intercept", True),
        unpenalised=free, standardize=case.get("standardize", False),
    )  # fmt: skip
    weighed = np.ones(design.n_features)
    weighed[free] = 0.0
    return Problem(design, y, feature_weights=weighed, ridge_ratio=case.get("ridge_ratio", 0.0))


def drawn(case: dict[str, Any], dtype: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    rng = np.random.default_rng(seed)
    lengths = case.get("lengths", [20] * 5)
    tasks = case.get("shared", len(lengths))
    n, d = (50 if "shared" in case else sum(lengths)), case.get("features", 400)
    x = rng.integers(0, 3, (n, d)) if "int" in dtype else rng.standard_normal((n, d))
    x = np.asfortranarray(x, dtype=dtype)
    if "offset" in case:
        x[:, 3] += case["offset"]
    flat = np.arange(tasks + 1) * n if "shared" in case else np.concatenate([[0], np.cumsum(lengths)])
    rows = rng.standard_normal((6, tasks))
    image = [x[:, :6] if "shared" in case else x[flat[t] : flat[t + 1], :6] for t in range(tasks)]
    y = np.concatenate([part @ rows[:, t] for t, part in enumerate(image)]) + rng.standard_normal(flat[-1])
    weights = rng.integers(0, 3, len(y)).astype(float) if case.get("weights") else None
    return x, flat, y, weights


# large offsets fit double precision alone
PAIRS = [(name, dtype) for name in CASES for dtype in KEPT if "offset" not in CASES[name] or dtype == "float64"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_as_the_engine_solves(name: str, dtype: str, device: str) -> None:
    case = CASES[name]
    x, flat, y, weights = drawn(case, dtype)
    here = problem_of(x, case, flat, y, weights)
    there = problem_of(DeviceMatrix(tensor(x, dtype, device)), case, flat, y, weights)
    assert choose_for_problem(problem_facts(there, 12)).kind == "device"
    assert choose_for_problem(problem_facts(here, 12)).kind != "device"
    grid = here.lambda_max() * np.geomspace(1.0, 0.05, 12)
    assert there.lambda_max() == pytest.approx(here.lambda_max(), rel=1e-12)
    plain, found = (solve_path(p, grid, tol=1e-9) for p in (here, there))
    for a, b in zip(plain.points, found.points, strict=True):
        assert b.converged
        assert b.dual_gap <= 1e-9 * found.null_objective
        # both objectives are within both gaps of the optimum
        assert abs(a.objective - b.objective) <= max(a.dual_gap, b.dual_gap) + 1e-12 * abs(a.objective)
        strong = np.linalg.norm(a.rows, axis=1) > 1e-4 * np.linalg.norm(a.rows, axis=1).max(initial=0.0)
        assert np.isin(a.features[strong], b.features).all()


def test_where_newton_finds_no_way_on_the_solvers_here_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from tasksieve.solvers.batch_newton import BatchNewton

    x, flat, y, weights = drawn({}, "float64")
    step, count = BatchNewton.step, [0]

    def some(self: Any, rows: int, again: bool) -> None:
        count[0] += 1
        if count[0] < 12:
            step(self, rows, again)

    monkeypatch.setattr(BatchNewton, "step", some)
    there = problem_of(DeviceMatrix(tensor(x)), {}, flat, y, weights)
    found = solve_path(there, there.lambda_max() * np.geomspace(1.0, 0.1, 6), tol=1e-8)
    assert count[0] > 12
    assert all(point.converged for point in found.points)
    assert found.points[1].algorithm == "newton" != found.points[-1].algorithm


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", KEPT)
@pytest.mark.parametrize("lengths", [[7], [50] * 4, [1, 90, 16, 33], [700, 3]])
def test_kernels_and_twins(lengths: list[int], dtype: str, device: str) -> None:
    """On a GPU the kernels; everywhere the torch twins: against sums without rounding."""
    import torch

    from tasksieve.design.device import passes

    rng = np.random.default_rng(len(lengths))
    offsets, n, d = np.concatenate([[0], np.cumsum(lengths)]), sum(lengths), 37
    x = (rng.integers(-3 if dtype == "int8" else 0, 100, (n, d)) if "int" in dtype else rng.standard_normal((n, d)))
    x = x.astype(dtype)
    storage = as_storage(DeviceMatrix(tensor(x, dtype, device)))
    vectors = rng.standard_normal((3, n))
    chosen = np.array([5, 0, 36, 5])
    for squares in (False, True):
        for columns in (None, chosen):
            block = (x if columns is None else x[:, columns]).astype(float)
            block = block * block if squares else block
            truth = [
                [[math.fsum(block[a:b, j] * v[a:b]) for a, b in pairwise(offsets)] for j in range(block.shape[1])]
                for v in vectors
            ]
            found = storage.multiply(list(vectors), offsets, False, columns, squares)
            scale = np.abs(block).max() * n
            for part, wanted in zip(found, truth, strict=True):
                np.testing.assert_allclose(part.cpu().numpy(), wanted, atol=1e-14 * scale)
    lengths_found = storage.lengths(vectors[0], offsets).cpu().numpy()
    products = storage.multiply([vectors[0]], offsets, False)[0]
    np.testing.assert_allclose(lengths_found, torch.linalg.vector_norm(products, dim=1).cpu().numpy(), rtol=1e-13)
    twin = passes.plain_segment_products(storage.x, n, storage.on(vectors[:1]), offsets, None, False)[0]
    np.testing.assert_allclose(lengths_found, torch.linalg.vector_norm(twin, dim=1).cpu().numpy(), rtol=1e-12)
