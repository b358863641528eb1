"""Members of one's own that no compiled solver knows: a norm that is not a matter of each row alone, losses without
finite smoothness. Judged by a cone solver (cvxpy with Clarabel)."""

from __future__ import annotations

import runpy
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.design import DenseStorage, Design
from tasksieve.path import Problem, solve_path
from tasksieve.penalties import row_norms

Array = np.ndarray[Any, Any]
own = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "examples" / "own_members.py")))
# Cones to ten digits: where Clarabel gets nine it warns, and what is compared with its answer decides.
ALMOST = pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning")
KSupport, GammaDeviance = own.KSupport, own.Gamma


class FourthPower(ts.losses.RowLoss):
    """``(y - z)^4/4``."""

    smoothness = np.inf
    differentiable = True
    translates = True

    def value(self, y: Array, z: Array) -> Array:
        return (y - z) ** 4 / 4.0

    def slope(self, y: Array, z: Array) -> Array:
        return (y - z) ** 3

    def conjugate(self, y: Array, p: Array) -> Array:
        return 0.75 * np.abs(p) ** (4.0 / 3.0) - p * y


class AbsoluteError(ts.losses.RowLoss):
    """``|y - z|``."""

    smoothness = np.inf

    def value(self, y: Array, z: Array) -> Array:
        return np.abs(y - z)

    def slope(self, y: Array, z: Array) -> Array:
        return np.sign(y - z)

    def conjugate(self, y: Array, p: Array) -> Array:
        return -p * y

    def domain(self, y: Array) -> tuple[float, float]:
        return -1.0, 1.0


def k_support_by_cones(
    x: list[Array], y: list[Array], alpha: float, k: int, huber: float | None
) -> tuple[float, Array]:
    """``min 1/2 (sum_j ||W_j||^2/eta_j + s)`` over ``0 <= eta <= s, sum eta <= k s`` is the norm."""
    cp = pytest.importorskip("cvxpy")
    d, tasks = x[0].shape[1], len(x)
    w, b, eta, s = cp.Variable((d, tasks)), cp.Variable(tasks), cp.Variable(d), cp.Variable()
    norm = (sum(cp.quad_over_lin(w[j], eta[j]) for j in range(d)) + s) / 2
    loss = 0
    for t in range(tasks):
        residual = y[t] - x[t] @ w[:, t] - b[t]
        loss += cp.sum_squares(residual) / 2 if huber is None else cp.sum(cp.huber(residual, huber)) / 2
    n_bar = sum(map(len, y)) / tasks
    program = cp.Problem(cp.Minimize(loss / n_bar + alpha * norm), [eta <= s, cp.sum(eta) <= k * s])
    program.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(program.value), np.asarray(w.value)


def tasks_of(seed: int, d: int) -> tuple[list[Array], list[Array]]:
    rng = np.random.default_rng(seed)
    x = [rng.standard_normal((25, d)) for _ in range(3)]
    w = np.zeros((d, 3))
    w[:4] = rng.standard_normal((4, 3))
    return x, [part @ w[:, t] + 0.3 * rng.standard_normal(25) for t, part in enumerate(x)]


def test_members_of_the_example_pass_the_checks() -> None:
    ts.checks.check_penalty(KSupport(2), draws=10)
    ts.checks.check_loss(GammaDeviance(), labels=own.positive_labels, draws=4)
    storage = own.Products(own.make_data(rows=5)[0])
    ts.checks.check_storage(storage, storage.dense())


@ALMOST
@pytest.mark.parametrize("intercept", [True, False])
def test_the_three_members_of_the_example_together(intercept: bool) -> None:
    """k-support norm, gamma loss and interaction columns, against cones."""
    cp = pytest.importorskip("cvxpy")
    x, y, task = own.make_data(rows=30, columns=4)
    X, k, n_bar = own.Products(x), 3, 30
    model = ts.MultiTaskRegressor(GammaDeviance(), KSupport(k), tol=1e-12, max_iter=100_000, fit_intercept=intercept)
    alpha = 0.3 * model.alpha_max(X, y, task=task)
    model.set_params(alpha=alpha).fit(X, y, task=task)
    assert model.get_support(indices=True).max() >= 4  # a product was selected

    dense, d = X.dense(), X.n_features
    # the norm by its definition: W is a sum of matrices with k rows each, and they pay their Euclidean norms
    supports = [list(rows) for rows in combinations(range(d), k)]
    parts, b, loss = [cp.Variable((k, 3)) for _ in supports], cp.Variable(3), 0
    w = sum(np.eye(d)[:, rows] @ part for rows, part in zip(supports, parts, strict=True))
    norm = sum(cp.norm(part, "fro") for part in parts)
    for t, name in enumerate(model.tasks_):
        rows = task == name
        z = dense[rows] @ w[:, t] + b[t]
        loss += cp.sum(cp.multiply(y[rows], cp.exp(-z)) + z)
    program = cp.Problem(cp.Minimize(loss / n_bar + alpha * norm), [] if intercept else [b == 0])
    program.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert model.objective_ == pytest.approx(program.value, rel=1e-6)
    assert model.dual_gap_ <= 1e-12 * model.null_objective_
    close = 1e-6 * (1.0 + np.abs(w.value).max())
    np.testing.assert_allclose(model.coef_.T, w.value, atol=close)
    if intercept:
        np.testing.assert_allclose(model.intercept_, b.value, rtol=1e-5)
    np.testing.assert_allclose(model.fit(dense, y, task=task).coef_.T, w.value, atol=close)


@ALMOST
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("seed", "d", "share", "huber"),
    [(0, 12, 0.5, None), (1, 12, 0.1, None), (2, 40, 0.3, None), (3, 12, 0.3, 0.5)],
)
def test_a_norm_that_joins_all_rows_is_solved(seed: int, d: int, share: float, huber: float | None) -> None:
    x, y = tasks_of(seed, d)
    loss = ts.losses.Squared() if huber is None else ts.losses.Huber(huber)
    model = ts.MultiTaskRegressor(loss, KSupport(3), tol=1e-12, max_iter=100_000)
    alpha = share * model.alpha_max(x, y)
    model.set_params(alpha=alpha).fit(x, y)
    best, rows = k_support_by_cones(x, y, alpha, 3, huber)
    assert abs(model.objective_ - best) <= 1e-8 * model.null_objective_
    assert model.objective_ - model.dual_gap_ <= best + 1e-9 * model.null_objective_
    np.testing.assert_allclose(model.coef_.T, rows, atol=1e-6)


@pytest.mark.slow
def test_a_path_of_such_a_norm_is_screened_safely() -> None:
    x, y = tasks_of(4, 300)
    found = ts.MultiTaskRegressor("squared", KSupport(3), tol=1e-10, max_iter=100_000).path(x, y, n_alphas=6, eps=0.2)
    assert found.converged.all()
    plain = ts.MultiTaskRegressor("squared", KSupport(3), tol=1e-10, max_iter=100_000, screening=None)
    for k in (2, 5):
        other = plain.set_params(alpha=found.alphas[k]).fit(x, y)
        assert abs(other.objective_ - found.objectives[k]) <= 1e-9 * other.null_objective_


class Wider(ts.penalties.Sorted):
    """Another norm in the clothes of a compiled one: all ranks have the first weight."""

    def value(self, rows: Array) -> float:
        return float(self.weights[0] * row_norms(rows).sum())


class Halved(ts.penalties.L21):
    """The same for rows."""

    def value(self, rows: Array) -> float:
        return 0.5 * super().value(rows)


@pytest.mark.parametrize("kind", [Wider, Halved])
def test_a_derived_norm_takes_over_no_compiled_form(kind: Any) -> None:
    bound = kind().on(np.ones(4), 2)
    for form in (bound.sorted_form(), bound.row_form(), bound.group_form(), bound.block_form()):
        assert form is None
    assert ts.penalties.Sorted().on(np.ones(4), 2).sorted_form() is not None


def test_solvers_by_name_ask_for_what_they_call() -> None:
    x, y = tasks_of(5, 6)
    design = Design(DenseStorage(np.asfortranarray(x[0])), np.array([0, 25]))
    problem = Problem(design, y[0], penalty=KSupport(2))
    with pytest.raises(ValueError, match="sorted norms"):
        solve_path(problem, [0.5 * problem.lambda_max()], solver="spgd")


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [GammaDeviance(), FourthPower()])
def test_losses_without_finite_smoothness_are_solved(loss: Any, intercept: bool) -> None:
    cp = pytest.importorskip("cvxpy")
    x, y = tasks_of(6, 8)
    gamma = isinstance(loss, GammaDeviance)
    if gamma:
        y = [np.exp(0.4 * part) for part in y]
    model = ts.MultiTaskRegressor(loss, "l21", tol=1e-9, fit_intercept=intercept)
    # the gradient of the null model by its definition
    alpha_max = model.alpha_max(x, y)
    slopes = []
    for part, labels in zip(x, y, strict=True):
        b = 0.0
        if intercept:
            b = float(np.log(labels.mean())) if gamma else _root(lambda b, labels=labels: np.sum((labels - b) ** 3))
        slopes.append(part.T @ loss.slope(labels, np.full(len(labels), b)))
    assert alpha_max == pytest.approx(np.max(np.linalg.norm(slopes, axis=0)) / 25, rel=1e-9)
    model.set_params(alpha=0.2 * alpha_max).fit(x, y)
    w, b = cp.Variable((8, 3)), cp.Variable(3)
    total = 0
    for t in range(3):
        z = x[t] @ w[:, t] + b[t]
        total += cp.sum(cp.multiply(y[t], cp.exp(-z)) + z) if gamma else cp.sum(cp.power(y[t] - z, 4)) / 4
    objective = total / 25 + 0.2 * alpha_max * cp.sum(cp.norm(w, 2, axis=1))
    program = cp.Problem(cp.Minimize(objective), [] if intercept else [b == 0])
    program.solve(solver="CLARABEL")
    assert model.dual_gap_ <= 1e-9 * model.null_objective_
    assert model.objective_ == pytest.approx(program.value, rel=1e-6)


def _root(decreasing: Any) -> float:
    low, high = -100.0, 100.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if decreasing(middle) > 0.0 else (low, middle)
    return low


def test_a_loss_with_kinks_is_refused_by_name() -> None:
    x, y = tasks_of(7, 5)
    model = ts.MultiTaskRegressor(AbsoluteError(), "l21")
    for call in (model.alpha_max, model.fit, model.path):
        with pytest.raises(ValueError, match="no solver for the absoluteerror loss: its smoothness is infinite"):
            call(x, y)
