"""Newton's method on the manifold of a sorted norm: against Clarabel, by its order of convergence, and where the
manifold is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.design import Design, PackedColumns, as_storage
from tasksieve.path import Problem, solve_path
from tasksieve.penalties import oscar_weights, row_norms, slope_weights
from tasksieve.solvers import Accelerated, ManifoldNewton, WorkingProblem
from tasksieve.solvers import manifold_newton as module

T, N, D = 3, 12, 16
SHAPES = {"oscar": oscar_weights(D), "slope": slope_weights(D)}


class Case:
    """A small problem and its numbers."""

    def __init__(self, loss: str, shape: str = "oscar", seed: int = 0, shared: bool = False, **options: Any) -> None:
        rng = np.random.default_rng(seed)
        self.x = rng.standard_normal((N if shared else T * N, D))
        self.x[:, 3] = self.x[:, 2] + 0.1 * rng.standard_normal(len(self.x))
        w = np.zeros((D, T))
        w[:4] = 1.0 + 0.3 * rng.standard_normal((4, T))
        self.own = [slice(0, N) if shared else slice(t * N, (t + 1) * N) for t in range(T)]
        z = np.concatenate([self.x[own] @ w[:, t] for t, own in enumerate(self.own)])
        y = z + rng.standard_normal(T * N)
        if loss == "logistic":
            y = np.where(y > 0.0, 1.0, -1.0)
        elif loss == "poisson":
            y = rng.poisson(np.exp(0.3 * z)).astype(float)
        self.y, self.weights = y, SHAPES[shape]
        design = Design(as_storage(self.x), np.arange(T + 1) * N, shared=shared)
        self.problem = Problem(design, y, loss=loss, penalty=ts.penalties.Sorted(self.weights), **options)

    def clarabel(self, lam: float) -> float:
        """The objective of a cone solver, from the raw columns."""
        cp = pytest.importorskip("cvxpy")
        w, b, total = cp.Variable((D, T)), cp.Variable(T), 0
        for t, own in enumerate(self.own):
            z, y = self.x[own] @ w[:, t] + b[t], self.y[t * N : (t + 1) * N]
            total += {
                "squared": lambda z=z, y=y: cp.sum_squares(y - z) / 2,
                "logistic": lambda z=z, y=y: cp.sum(cp.logistic(-cp.multiply(y, z))),
                "poisson": lambda z=z, y=y: cp.sum(cp.exp(z) - cp.multiply(y, z)),
                "huber": lambda z=z, y=y: cp.sum(cp.huber(y - z, 1.35)) / 2,
            }[self.problem.loss.name]()
        norms, steps = cp.norm(w, 2, axis=1), -np.diff(self.weights, append=0.0)
        total += lam * sum(step * cp.sum_largest(norms, k + 1) for k, step in enumerate(steps) if step > 0.0)
        total += self.problem.penalty.at(lam).ridge / 2 * cp.sum_squares(w)
        program = cp.Problem(cp.Minimize(total), [w >= 0] if self.problem.penalty.positive else [])
        program.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        return float(program.value)

    def working(self, lam: float) -> WorkingProblem:
        columns = PackedColumns(self.problem.design)
        return WorkingProblem(columns, columns.positions(np.arange(D)), self.problem.penalty.at(lam), self.problem.loss)


CASES: dict[str, dict[str, Any]] = {
    "squared": {"loss": "squared"},
    "squared, shared, slope": {"loss": "squared", "shape": "slope", "shared": True},
    "logistic, ridge": {"loss": "logistic", "fixed_ridge": 0.5},
    "poisson, slope": {"loss": "poisson", "shape": "slope"},
    "huber, positive": {"loss": "huber", "positive": True},
}


@pytest.mark.parametrize("name", CASES)
def test_objectives_are_those_of_clarabel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DEAR", np.inf)  # Newton steps as soon as there may be any
    for work in ("_FIXED", "_FIXED_A_TASK", "_PASSES"):
        monkeypatch.setattr(module, work, 0.0)
    case = Case(**CASES[name])
    lams = case.problem.lambda_max() * np.array([0.6, 0.35, 0.2])
    path = solve_path(case.problem, lams, tol=1e-10)
    null = case.problem.loss.null.value
    assert path.points[-1].algorithm == "manifold-newton"
    for value in path.points:
        assert value.converged
        assert value.dual_gap <= 1e-10 * null
    best = case.clarabel(float(lams[-1]))
    assert abs(path.points[-1].objective - best) <= 1e-8 * null
    assert path.points[-1].objective - path.points[-1].dual_gap <= best + 1e-9 * null


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_convergence_is_quadratic(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ACCURACY", 1e-12)
    monkeypatch.setattr(module, "_CORRECTIONS", 60)
    case = Case(loss, seed=1)
    working = case.working(0.25 * case.problem.lambda_max())
    goal = 1e-11 * case.problem.loss.null.value
    best = ManifoldNewton().solve(working, np.zeros((D, T)), goal, 20_000).rows
    at = working.evaluate(best)
    manifold = working.penalty.manifold(best, working.correlate(at.residual))
    assert manifold is not None
    assert len(manifold.starts) < len(manifold.live)
    rng = np.random.default_rng(0)
    sizes, across = rng.standard_normal(len(manifold.starts)), rng.standard_normal(manifold.rows.shape)
    away = []
    for eps in (1e-1, 1e-2):
        rows = np.zeros_like(best)
        rows[manifold.live] = manifold.moved(
            manifold.sizes * (1.0 + 0.01 * eps * sizes), 0.1 * eps * manifold.sizes[manifold.block][:, None] * across
        )
        nearer = ManifoldNewton()._step(working, rows)
        assert nearer is not None
        away.append((np.linalg.norm(rows - best), np.linalg.norm(nearer - best)))
    assert away[0][1] < 0.1 * away[0][0]
    assert away[1][1] < 0.015 * away[0][1]  # a tenth of the distance, a hundredth of it after the step


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_a_wrong_manifold_never_raises_the_objective(loss: str) -> None:
    moved = 0
    for seed in range(12):
        case = Case(loss, seed=seed)
        elsewhere, working = (case.working(part * case.problem.lambda_max()) for part in (0.5, 0.3))
        rows = Accelerated().solve(elsewhere, np.zeros((D, T)), 0.0, 5).rows
        following = ManifoldNewton()._step(working, rows)
        if following is not None:
            moved += 1
            before, after = (working.evaluate(w).value + working.penalty.total(w) for w in (rows, following))
            assert after < before
    assert moved > 2


def test_sizes_keep_their_order_and_sign() -> None:
    rng = np.random.default_rng(0)
    tied = zero = 0
    for _ in range(40):
        count = 8
        rows = np.sort(rng.random(count))[::-1, None] * np.ones((1, 2))
        case = ts.penalties.Sorted("oscar").on(np.ones(count), 2)
        manifold = case.manifold(rows, rows)
        assert manifold is not None
        factor = rng.standard_normal((count, count))
        sizes = module._Sizes(manifold, factor @ factor.T + np.eye(count), rng.standard_normal(count))
        if not sizes.settle():
            continue
        found = manifold.sizes + sizes.start()
        assert np.all(found >= -1e-12)
        assert np.all(np.diff(found) <= 1e-10)
        zero += int(np.any(np.abs(found) <= 1e-12))
        tied += int(np.any(np.abs(np.diff(found)[found[1:] > 1e-9]) <= 1e-12))
    assert tied > 5
    assert zero > 5


def test_blocks_are_rows_of_equal_norms() -> None:
    penalty = ts.penalties.Sorted(np.array([3.0, 2.0, 1.0, 0.5])).on(np.ones(4), 2)
    rows = np.array([[0.0, 1.0], [0.0, 0.0], [3.0, 4.0], [1.0, 0.0]])
    manifold = penalty.manifold(rows, rows)
    assert manifold is not None
    assert manifold.live.tolist() == [2, 0, 3]
    assert manifold.starts.tolist() == [0, 1]
    assert manifold.sizes.tolist() == [5.0, 1.0]
    assert manifold.slopes.tolist() == [3.0, 3.0]
    assert penalty.value(rows) == manifold.slopes @ manifold.sizes
    moved = manifold.moved(np.array([4.0, 2.0]), np.zeros((3, 2)))
    np.testing.assert_allclose(row_norms(moved), [4.0, 2.0, 2.0])
    assert penalty.manifold(0.0 * rows, rows) is None
