"""A graph of tasks beside the penalty: against a cone solver, and what screening and certificate make of it."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from sorted_norms import sorted_norm_expression

from tasksieve.design import DenseStorage, Design
from tasksieve.path import Problem, solve_path
from tasksieve.penalties import L11, L21, Sorted, SparseGroup, oscar_weights
from tasksieve.penalties.coupling import Coupling
from tasksieve.proof.prove import prove

PENALTIES = {"L2,1": L21(), "L1,1": L11(), "sparse group": SparseGroup(0.4, 0.7), "sorted": Sorted()}
TASKS, ROWS, FEATURES = 3, 16, 8


def graph_of(rng) -> np.ndarray:
    weights = np.triu(rng.uniform(0.2, 2.0, (TASKS, TASKS)), 1)
    weights[0, 2] = 0.0
    return weights + weights.T


def data_of(rng, loss="squared", features=FEATURES):
    offsets = ROWS * np.arange(TASKS + 1)
    x = rng.standard_normal((TASKS * ROWS, features))
    x[:ROWS, 2] = 1.5  # constant in one task: its coefficient there follows the neighbours
    w = np.zeros((features, TASKS))
    w[:3] = rng.standard_normal((3, 1)) + 0.5 * rng.standard_normal((3, TASKS))
    y = np.concatenate([x[a:b] @ w[:, t] + t for t, (a, b) in enumerate(zip(offsets[:-1], offsets[1:], strict=True))])
    y = y + 0.4 * rng.standard_normal(len(y))
    return x, np.sign(y - 0.5) if loss == "logistic" else y, offsets, rng.uniform(0.3, 2.0, len(y))


def problem_of(x, y, offsets, s, loss="squared", penalty=None, graph=None, **options):
    design = Design(DenseStorage(np.asfortranarray(x)), offsets, weights=s, fit_intercept=True)
    return Problem(design, y, loss=loss, penalty=penalty or L21(), task_graph=graph, **options)


def norm_of(kind, w):
    rows, entries = cp.sum(cp.norm(w, 2, axis=1)), cp.sum(cp.abs(w))
    if kind == "sorted":
        return sorted_norm_expression(w, oscar_weights(w.shape[0]))
    return {"L2,1": rows, "L1,1": entries, "sparse group": 0.7 * rows + 0.4 * entries}[kind]


def optimum(x, y, offsets, s, loss, kind, lam, graph, ridge=0.0, positive=False) -> float:
    w, b = cp.Variable((x.shape[1], TASKS)), cp.Variable(TASKS)
    total = lam * norm_of(kind, w) + 0.5 * ridge * cp.sum_squares(w)
    for t, (low, high) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
        z, own = x[low:high] @ w[:, t] + b[t], s[low:high]
        if loss == "square-root":
            total += cp.norm(cp.multiply(np.sqrt(own), y[low:high] - z))
        else:
            margin = cp.multiply(y[low:high], z)
            total += own @ (cp.square(y[low:high] - z) / 2 if loss == "squared" else cp.logistic(-margin))
        total += sum(0.5 * graph[t, other] * cp.sum_squares(w[:, t] - w[:, other]) for other in range(t))
    program = cp.Problem(cp.Minimize(total), [w >= 0] if positive else [])
    program.solve(solver="CLARABEL")
    return float(program.value)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("kind", PENALTIES)
@pytest.mark.parametrize("options", [{}, {"fixed_ridge": 2.0}, {"positive": True}], ids=["plain", "ridge", "positive"])
def test_as_good_as_a_cone_solver_with_a_true_gap(rng, loss, kind, options):
    x, y, offsets, s = data_of(rng, loss)
    graph = 5.0 * graph_of(rng)
    problem = problem_of(x, y, offsets, s, loss, PENALTIES[kind], graph, **options)
    lam, scale = 0.2 * problem.lambda_max(), problem.loss.null.value
    ridge, positive = options.get("fixed_ridge", 0.0), options.get("positive", False)
    best = optimum(x, y, offsets, s, loss, kind, lam, graph, ridge, positive)
    for tol in (1e-1, 1e-3, 1e-8):
        (value,) = solve_path(problem, [lam], tol=tol).points
        assert value.converged
        assert value.dual_gap <= tol * scale
        assert value.objective - best <= value.dual_gap + 1e-7 * scale
        assert value.objective - best >= -1e-7 * scale
    assert len(value.features)
    coupled = np.count_nonzero(value.rows[value.features.tolist().index(2), 0]) if 2 in value.features else 1
    assert coupled or positive or kind in ("L1,1", "sparse group")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["L2,1", "L1,1", "sparse group"])
@pytest.mark.parametrize("strength", [0.0, 1.0, 1e4])
def test_the_square_root_loss_takes_other_penalties_and_a_graph(rng, kind, strength):
    x, y, offsets, s = data_of(rng)
    graph = strength * graph_of(rng)
    problem = problem_of(x, y, offsets, s, "square-root", PENALTIES[kind], graph if strength else None)
    lam, scale = 0.2 * problem.lambda_max(), problem.loss.null.value
    best = optimum(x, y, offsets, s, "square-root", kind, lam, graph)
    for tol in (1e-2, 1e-6):
        (value,) = solve_path(problem, [lam], tol=tol).points
        assert value.dual_gap <= tol * scale
        assert -1e-7 * scale <= value.objective - best <= value.dual_gap + 1e-7 * scale


@pytest.mark.parametrize("solver", ["cd", "apgd", "prox-newton"])
def test_every_solver_for_it_finds_the_same(rng, solver):
    loss = "logistic" if solver == "prox-newton" else "squared"
    x, y, offsets, s = data_of(rng, loss)
    graph = graph_of(rng)
    problem = problem_of(x, y, offsets, s, loss, SparseGroup(0.3), graph)
    lam = 0.1 * problem.lambda_max()
    found = [solve_path(problem, [lam], tol=1e-9, solver=name).points[0] for name in ("auto", solver)]
    assert all(value.converged for value in found)
    assert abs(found[0].objective - found[1].objective) <= found[0].dual_gap + found[1].dual_gap


def test_what_cannot_deal_with_it_says_so(rng):
    x, y, offsets, s = data_of(rng)
    problem = problem_of(x, y, offsets, s, graph=graph_of(rng))
    with pytest.raises(ValueError, match=r"'newton' is for problems without a task graph; use 'auto', 'cd', 'apgd'"):
        solve_path(problem, [1.0], solver="newton")
    with pytest.raises(ValueError, match="dpc-published"):
        solve_path(problem, [1.0], screening="dpc-published")


@pytest.mark.parametrize("kind", ["L2,1", "sorted"])
def test_a_ridge_is_not_forgotten_by_any_solver(rng, kind):
    """Solvers that know no ridge are not chosen."""
    x, y, offsets, s = data_of(rng)
    problem = problem_of(x, y, offsets, s, penalty=PENALTIES[kind], fixed_ridge=20.0)
    lam = 0.1 * problem.lambda_max()
    best = optimum(x, y, offsets, s, "squared", kind, lam, np.zeros((TASKS, TASKS)), ridge=20.0)
    (value,) = solve_path(problem, [lam], tol=1e-8).points
    assert value.converged
    assert value.objective == pytest.approx(best, rel=1e-6)
    if kind == "sorted":
        with pytest.raises(ValueError, match="without a ridge"):
            solve_path(problem, [lam], solver="spgd")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("loss", "kind"),
    [(loss, kind) for loss in ("squared", "logistic") for kind in PENALTIES]
    + [("square-root", "L1,1"), ("square-root", "sparse group")],
)
@pytest.mark.parametrize("strength", [0.0, 1.0, 100.0])
def test_screening_is_never_wrong(rng, loss, kind, strength):
    x, y, offsets, s = data_of(rng, loss, features=40)
    graph = strength * graph_of(rng)
    found = []
    for rule in ("auto", None):
        problem = problem_of(x, y, offsets, s, loss, PENALTIES[kind], graph if strength else None)
        hard = loss == "square-root" or (loss, kind) == ("logistic", "sorted")
        lams = problem.lambda_max() * np.geomspace(1.0, 0.4 if hard else 0.1, 4 if hard else 8)
        tol = 1e-6 if hard or kind == "sorted" else 1e-8
        found.append(solve_path(problem, lams, tol=tol, screening=rule).points)
    for one, two in zip(*found, strict=True):
        assert abs(one.objective - two.objective) <= one.dual_gap + two.dual_gap
    if strength == 1.0 and not hard:
        assert sum(value.n_rejected + value.n_rejected_dynamic for value in found[0]) > 40
    # no row, and no entry, that is not zero is proved to be zero
    value = found[0][-1]
    coef = np.zeros((TASKS, 40))
    coef[:, value.features] = value.rows.T
    proof = prove(problem, value.lam, coef, value.intercept)
    assert not coef[proof.zero_entries].any()
    assert proof.objective == pytest.approx(value.objective, rel=1e-12)
    assert proof.dual_gap <= 1e-5 * problem.loss.null.value


def test_an_entry_without_correlation_follows_its_neighbours(rng):
    """A feature that is constant in a task: the entry test of the l1 part would call its coefficient zero."""
    x, y, offsets, s = data_of(rng)
    problem = problem_of(x, y, offsets, s, penalty=SparseGroup(0.1), graph=50.0 * graph_of(rng))
    (value,) = solve_path(problem, [0.02 * problem.lambda_max()], tol=1e-9).points
    row = value.rows[value.features.tolist().index(2)]
    assert row[0] != 0.0
    coef = np.zeros((TASKS, FEATURES))
    coef[:, value.features] = value.rows.T
    assert not prove(problem, value.lam, coef, value.intercept).zero_entries[0, 2]


def exact_objective(x, y, offsets, s, lam, graph, coef, intercept) -> Fraction:
    """The objective of stored numbers with the L1,1 penalty, in exact arithmetic."""

    def exact(values):
        return np.array([Fraction(float(value)) for value in np.ravel(values)], dtype=object).reshape(np.shape(values))

    x, y, s, graph, w, b = (exact(part) for part in (x, y, s, graph, coef, intercept))
    total = Fraction(float(lam)) * np.abs(w).sum()
    for t, (low, high) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
        residual = y[low:high] - x[low:high] @ w[t] - b[t]
        total += (s[low:high] * residual * residual).sum() / 2
        for other in range(t):
            apart = w[t] - w[other]
            total += graph[t, other] * (apart * apart).sum() / 2
    return total


@pytest.mark.sampled(3)
@pytest.mark.parametrize("strength", [1e-8, 1.0, 1e4, 1e8, 1e12])
def test_the_certificate_holds_for_the_stored_numbers_in_exact_arithmetic(rng, strength):
    """Whatever other point is taken: none is better than ours by more than the gap says."""
    x, y, offsets, s = data_of(rng)
    graph = strength * graph_of(rng)
    problem = problem_of(x, y, offsets, s, penalty=L11(), graph=graph)
    lam = 0.1 * problem.lambda_max()
    loose, tight = (solve_path(problem, [lam], tol=tol).points[0] for tol in (1e-3, 1e-13))
    scale = problem.loss.null.value
    assert loose.dual_gap <= 1e-3 * scale or strength == 1e12
    assert tight.dual_gap <= {1e4: 1e-9, 1e8: 1e-6, 1e12: 1e-1}.get(strength, 1e-11) * scale

    def dense(value):
        coef = np.zeros((TASKS, FEATURES))
        coef[:, value.features] = value.rows.T
        return coef

    values = {
        which: exact_objective(x, y, offsets, s, lam, graph, dense(value), value.intercept)
        for which, value in (("loose", loose), ("tight", tight))
    }
    for _ in range(5):
        tied = np.mean(dense(tight), axis=0) * (1.0 + 1e-3 * rng.standard_normal())
        point = np.where(rng.random() < 0.5, np.tile(tied, (TASKS, 1)), dense(tight) * (1.0 - 1e-6))
        values[len(values)] = exact_objective(x, y, offsets, s, lam, graph, point, tight.intercept)
    best = min(values.values())
    for which, value in (("loose", loose), ("tight", tight)):
        assert values[which] - best <= Fraction(value.dual_gap)
        assert Fraction(value.objective) - best <= Fraction(value.dual_gap)


def test_complete_graph_is_a_ridge_towards_the_mean(rng):
    """All edges 1/T: ``sum_t ||w_t - mean||^2``, so with an equal ridge on the mean it is a ridge."""
    coupling = Coupling(np.full((4, 4), 0.25))
    rows = rng.standard_normal((6, 4))
    apart = rows - rows.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(coupling.pull(rows), apart, atol=1e-14)
    assert coupling.quadratic(rows) == pytest.approx(np.sum(apart**2))
    centred = apart  # rows that sum to zero feel the graph as they would feel a ridge of 1
    np.testing.assert_allclose(coupling.pull(centred), centred, atol=1e-14)


def test_pull_of_the_graph_is_that_of_its_laplacian_in_exact_arithmetic(rng):
    weights = np.triu(rng.uniform(0.0, 1e8, (5, 5)) * (rng.random((5, 5)) < 0.6), 1)
    coupling = Coupling(weights + weights.T)
    rows = 1.0 + 1e-7 * rng.standard_normal((7, 5))
    pulled, square = coupling.pull(rows), coupling.quadratic(rows)
    far, lost = coupling.errors(rows)
    exact = np.vectorize(Fraction, otypes=[object])
    edges, w = exact(weights + weights.T), exact(rows)
    total = Fraction(0)
    for j in range(7):
        for t in range(5):
            true = sum(edges[t, s] * (w[j, t] - w[j, s]) for s in range(5))
            assert abs(true - Fraction(pulled[j, t])) <= Fraction(far[j, t])
            total += true * w[j, t]
    assert abs(total - Fraction(square)) <= Fraction(lost)
    assert np.all(far <= 1e-6 * 1e8)
