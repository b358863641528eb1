"""The end of the batteries: the reference is right, and answers that differ from it are caught."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import xlogy

import tasksieve as ts
from tasksieve.checks import check_loss, small_fit
from tasksieve.design import Design, as_storage
from tasksieve.path import Problem, solve_path


@pytest.fixture
def problem(rng):
    x = rng.standard_normal((40, 6))
    design = Design(as_storage(x), np.array([0, 15, 40]), n_threads=1)
    return x, Problem(design, x[:, 0] + 0.5 * rng.standard_normal(40))


def test_the_reference_is_the_optimum(problem):
    cp = pytest.importorskip("cvxpy")
    x, made = problem
    plain = small_fit.PlainProblem(made, x, 0.5 * made.lambda_max())
    w, b = cp.Variable((6, 2)), cp.Variable(2)
    y = made.loss.target  # centred in each task
    fits = [cp.sum_squares(y[own] - x[own] @ w[:, t] - b[t]) / 2 for t, own in enumerate((slice(15), slice(15, 40)))]
    program = cp.Problem(cp.Minimize(sum(fits) + plain.lam * cp.sum(cp.norm(w, 2, axis=1))))
    program.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    assert plain.minimum() == pytest.approx(program.value, rel=1e-8)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda point: replace(point, objective=point.objective + 1e-3), "report the objective"),
        (lambda point: replace(point, converged=False), "must converge"),
        (lambda point: replace(point, rows=0.9 * point.rows), "report the objective"),
    ],
)
def test_wrong_answers_are_caught(problem, monkeypatch, wrong, words):
    x, made = problem

    def solved(*args, **options):
        solution = solve_path(*args, **options)
        solution.points = [wrong(solution.points[0])]
        return solution

    small_fit.compare("P9", made, x)
    monkeypatch.setattr(small_fit, "solve_path", solved)
    with pytest.raises(AssertionError, match=f"P9: .*{words}"):
        small_fit.compare("P9", made, x)


def test_worse_answers_with_small_gaps_are_caught(problem, monkeypatch):
    x, made = problem

    def stopped(*args, **options):
        solution = solve_path(*args, **options)
        point = solution.points[0]
        rows = np.zeros((7, 2))
        rows[point.features], rows[-1] = 0.9 * point.rows, point.intercept - made.loss.shift
        objective = small_fit.PlainProblem(made, x, point.lam).objective(rows)
        solution.points = [replace(point, rows=0.9 * point.rows, objective=objective)]
        return solution

    monkeypatch.setattr(small_fit, "solve_path", stopped)
    with pytest.raises(AssertionError, match=r"P9: .*than the certificate of a fit allows"):
        small_fit.compare("P9", made, x)


class Gamma(ts.losses.RowLoss):
    """``y exp(-z) + z`` without its constant: some values are negative."""

    smoothness = np.inf
    differentiable = True

    def value(self, y, z):
        return y * np.exp(-z) + z

    def slope(self, y, z):
        return y * np.exp(-z) - 1.0

    def conjugate(self, y, p):
        return xlogy(1.0 + p, (1.0 + p) / y) - (1.0 + p)

    def domain(self, y):
        return -1.0, np.inf


def test_labels_that_are_drawn():
    drawn = []

    def labels(rng, n):
        drawn.append(n)
        return rng.exponential(2.0, n)

    check_loss(ts.losses.Poisson(), labels=labels, draws=2)
    assert len(drawn) > 4
    with pytest.raises(AssertionError, match=r"L0: `value` must not be negative.*`constant`"):
        check_loss(Gamma(), labels=labels)
    with pytest.raises(ValueError, match="must give 60 finite numbers"):
        check_loss(Gamma(), labels=lambda rng, n: np.ones(3))
