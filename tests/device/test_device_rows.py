"""Other pairs of loss and penalty where a device makes a pass a value: the same answers, proofs and ranks as here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_helpers import DEVICES, tensor

from tasksieve.design import Design, as_storage
from tasksieve.design.device.matrix import DeviceMatrix
from tasksieve.path import device_path
from tasksieve.path.policy import choose_for_problem
from tasksieve.path.problem import Problem
from tasksieve.path.solve import solve_path
from tasksieve.path.walks import problem_facts
from tasksieve.penalties import Sorted, SparseGroup

CASES: dict[str, dict[str, Any]] = {
    "logistic": {"loss": "logistic"},
    "logistic, weights, ridge": {"loss": "logistic", "weights": True, "ridge_ratio": 0.2, "factors": True},
    "logistic, unpenalised": {"loss": "logistic", "unpenalised": [4, 7]},
    "logistic, one matrix": {"loss": "logistic", "shared": 3},
    "Poisson": {"loss": "poisson"},
    "Huber": {"loss": "huber"},
    "Huber, ragged, l1": {"loss": "huber", "lengths": [9, 25, 11, 40], "l1": 0.3},
    "l1": {"l1": 0.3},
    "l1, ridge, weights": {"l1": 0.6, "ridge_ratio": 0.1, "weights": True, "factors": True},
    "l1, one matrix, scaled": {"l1": 0.3, "shared": 3, "standardize": True},
    "l1, positive": {"l1": 0.2, "positive": True},
    "sorted": {"penalty": "sorted"},
    "sorted, offsets": {"penalty": "sorted", "offset": 1e6},
    "L1,1": {"l1": 1.0, "group": 0.0},
}
ON_THE_DEVICE = [name for name in CASES if not set(CASES[name]) & {"positive", "penalty", "group"}]


def drawn(case: dict[str, Any], seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    rng = np.random.default_rng(seed)
    lengths = case.get("lengths", [22] * 4)
    tasks, d = case.get("shared", len(lengths)), 300
    n = 50 if "shared" in case else sum(lengths)
    x = np.asfortranarray(rng.integers(0, 3, (n, d)), dtype=np.float64)
    flat = np.arange(tasks + 1) * n if "shared" in case else np.concatenate([[0], np.cumsum(lengths)])
    rows = rng.standard_normal((5, tasks))
    image = [x[:, :5] if "shared" in case else x[flat[t] : flat[t + 1], :5] for t in range(tasks)]
    z = np.concatenate([part @ rows[:, t] for t, part in enumerate(image)]) + rng.standard_normal(flat[-1])
    if "offset" in case:
        x[:, 3] += case["offset"]
    kind = case.get("loss", "squared")
    z = z - np.mean(z)
    y = {"logistic": np.where(z > 0.0, 1.0, -1.0), "poisson": rng.poisson(np.exp(0.3 * z)).astype(float)}.get(kind, z)
    weights = rng.integers(0, 3, len(y)).astype(float) if case.get("weights") else None
    return x, flat, y, weights


def problem_of(x: Any, case: dict[str, Any], flat: np.ndarray, y: np.ndarray, weights: Any) -> Problem:
    free = np.array(case.get("unpenalised", []), dtype=np.int64)
    design = Design(
        as_storage(x), flat, shared="shared" in case, weights=weights, unpenalised=free,
        standardize=case.get("standardize", False),
    )  # fmt: skip
    factors = np.ones(design.n_features)
    if case.get("factors"):
        factors[::3] = 1.7
    factors[free] = 0.0
    options: dict[str, Any] = {"ridge_ratio": case.get("ridge_ratio", 0.0), "positive": case.get("positive", False)}
    if case.get("penalty") == "sorted":
        return Problem(design, y, penalty=Sorted("slope"))
    penalty = SparseGroup(l1=case.get("l1", 0.0), group=case.get("group", 1.0))
    return Problem(
        design, y, loss=case.get("loss", "squared"), penalty=penalty, feature_weights=factors, **options
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_as_the_engine_solves(name: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    x, flat, y, weights = drawn(case)
    here = problem_of(x, case, flat, y, weights)
    there = problem_of(DeviceMatrix(tensor(x, device=device)), case, flat, y, weights)
    assert choose_for_problem(problem_facts(there, 8)).kind == "device"
    grid = here.lambda_max() * np.geomspace(1.0, 0.1, 8)
    tol = 1e-7
    plain = solve_path(here, grid, tol=tol)
    if name in ON_THE_DEVICE:  # by Newton's method there: no other solver is asked
        made = device_path.DeviceRowStrategy.__init__

        def alone(self: Any, problem: Problem) -> None:
            made(self, problem)
            monkeypatch.setattr(self._here, "solve", None)

        monkeypatch.setattr(device_path.DeviceRowStrategy, "__init__", alone)
    found = solve_path(there, grid, tol=tol)
    for a, b in zip(plain.points, found.points, strict=True):
        assert b.converged
        assert b.dual_gap <= tol * found.null_objective
        # both objectives are within both gaps of the optimum
        assert abs(a.objective - b.objective) <= max(a.dual_gap, b.dual_gap) + 1e-12 * abs(a.objective)
        assert b.dual_gap >= b.objective - a.objective - 1e-12 * abs(a.objective)


@pytest.mark.parametrize("device", DEVICES)
def test_gauges_that_reach_a_level(device: str) -> None:
    """Of a pass, those of rows with L1 beside the norm: as they are computed one by one."""
    for name in ("l1", "l1, positive", "L1,1"):
        case = CASES[name]
        x, flat, y, weights = drawn(case)
        problem = problem_of(DeviceMatrix(tensor(x, device=device)), case, flat, y, weights)
        residual, errors = problem.loss.null.residual, np.full(4, 1e-9)
        shard = problem.design.shard
        shard.survey(residual, problem.penalty, errors)
        every = problem.penalty.upper_gauges(shard.correlate(residual), shard.norms() * errors)
        for level in (0.3 * every.max(), 0.8 * every.max()):
            features, gauges = shard.reaching(level)
            assert np.array_equal(features, np.flatnonzero(every >= level))
            np.testing.assert_allclose(gauges, every[features], rtol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", ["slope", "oscar", "few"])
def test_first_ranks_decide(shape: str, device: str) -> None:
    """The polar of the ranks that are returned is that of all, and violators are among them."""
    x, flat, y, weights = drawn({})
    design = Design(as_storage(DeviceMatrix(tensor(x, device=device))), flat)
    weights = np.maximum(1.0 - np.arange(300) / 40.0, 0.0) if shape == "few" else shape
    problem = Problem(design, y, penalty=Sorted(weights))
    residual, errors = problem.loss.null.residual, np.full(4, 1e-9)
    design.shard.survey(residual, problem.penalty, errors)
    every = problem.penalty.upper_gauges(design.shard.correlate(residual), design.shard.norms() * errors)
    for strength in (0.3, 0.9, 1.1):
        lam = strength * problem.penalty.polar(every)
        features, gauges = design.shard.leading(lam)
        polar = problem.penalty.polar(gauges)
        assert polar >= problem.penalty.polar(every)
        assert polar == pytest.approx(problem.penalty.polar(every), rel=1e-9)
        assert np.isin(problem.penalty.leading(every / lam), features).all()
        np.testing.assert_allclose(gauges, np.sort(every)[::-1][: len(gauges)], rtol=1e-9)
