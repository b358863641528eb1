"""Newton's method on the dual of proximal points: kinks, sharp corners, tasks that are fitted exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.design import Design, PackedColumns, as_storage
from tasksieve.path import Problem
from tasksieve.penalties import L11, L21, Dirty, Groups, LInf, RowPenalty, Sorted, SparseGroup
from tasksieve.solvers import DualNewton, WorkingProblem
from tasksieve.solvers.dual_system import small_enough
from tasksieve.solvers.prox_derivative import prox_derivative

cp = pytest.importorskip("cvxpy")

Array = np.ndarray[Any, Any]

BLOCKS = np.repeat(np.arange(4), 3)
PENALTIES: dict[str, RowPenalty] = {
    "l11": L11(),
    "l21": L21(),
    "sparse group": SparseGroup(l1=0.4, group=0.6),
    "largest": LInf(),
    "dirty": Dirty(),
    "sorted": Sorted(),
    "groups": Groups(BLOCKS),
    "groups, rows inside": Groups(BLOCKS, "rows"),
    "groups, entries inside": Groups(BLOCKS, "entries"),
}


# --- the derivative of a prox -----------------------------------------------------------------------------------------


def dense(penalty: RowPenalty, rows: Array, moved: Array, step: float) -> Array:
    """The derivative as a matrix of all coefficients."""
    found, n_tasks = prox_derivative(penalty, rows, moved, step), rows.shape[1]
    inner = np.diag(found.diagonal.ravel())
    for part in found.parts:
        for b, factor in enumerate(part.factors):
            v = np.where((part.labels == b)[:, None], part.vectors, 0.0).ravel()
            inner += factor * np.outer(v, v)
    matrix = np.zeros((rows.size, rows.size))
    at = (found.live[:, None] * n_tasks + np.arange(n_tasks)).ravel()
    matrix[np.ix_(at, at)] = inner
    return matrix


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("name", PENALTIES)
def test_derivative_of_prox(name: str, positive: bool) -> None:
    rng = np.random.default_rng(0)
    n_features, n_tasks, h = 12, 4, 1e-6
    for repeat in range(6):
        unit = PENALTIES[name].on(np.ones(n_features), n_tasks, positive=positive, fixed_ridge=0.3 * (repeat % 2))
        penalty, step = unit.at(rng.uniform(0.2, 1.5)), rng.uniform(0.3, 1.5)
        rows = rng.standard_normal((n_features, n_tasks)) * rng.choice([1.0, 3.0])
        moved = penalty.proximal(rows, step)
        changes = [
            penalty.proximal(rows + h * e.reshape(rows.shape), step)
            - penalty.proximal(rows - h * e.reshape(rows.shape), step)
            for e in np.eye(rows.size)
        ]
        expected = np.array([change.ravel() for change in changes]).T / (2.0 * h)
        np.testing.assert_allclose(dense(penalty, rows, moved, step), expected, atol=1e-7)


LOSSES = {
    "square-root": ts.losses.SquareRoot(),
    "quantile": ts.losses.Quantile(0.3, 0.01),
    "huber": ts.losses.Huber(0.5),
    "squared hinge": ts.losses.SquaredHinge(),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ridge": {"ridge_ratio": 0.2},
    "positive": {"positive": True},
    "shared": {"shared": True},
    "weights, no intercept": {"weights": True, "fit_intercept": False},
}
T, N, D = 3, 7, 12


class Case:
    """A small problem with more features than rows, so that tasks come to be fitted exactly."""

    def __init__(
        self, loss: Any, penalty: RowPenalty, *, shared: bool = False, weights: bool = False,
        fit_intercept: bool = True, **options: Any,
    ) -> None:  # fmt: skip
        rng = np.random.default_rng(3)
        self.x = rng.standard_normal((N if shared else T * N, D))
        self.own = [slice(0, N) if shared else slice(t * N, (t + 1) * N) for t in range(T)]
        w = np.zeros((D, T))
        w[:3] = 1.0 + 0.5 * rng.standard_normal((3, T))
        z = np.concatenate([self.x[own] @ w[:, t] for t, own in enumerate(self.own)])
        z += 0.5 * rng.standard_normal(T * N)
        self.loss, self.y = loss, np.where(z > 0.0, 1.0, -1.0) if loss.labels == "signs" else z
        self.weights = rng.uniform(0.5, 2.0, T * N) if weights else np.ones(T * N)
        self.fit_intercept, self.shared = fit_intercept, shared
        design = Design(
            as_storage(self.x), np.arange(T + 1) * N, shared=shared, fit_intercept=fit_intercept,
            weights=self.weights if weights else None,
        )  # fmt: skip
        self.problem = Problem(design, self.y, loss=loss, penalty=penalty, **options)

    def working(self, lam: float) -> WorkingProblem:
        columns, every = PackedColumns(self.problem.design), np.arange(D)
        return WorkingProblem(
            columns, columns.positions(every), self.problem.penalty.at(lam).restrict(every), self.problem.loss
        )

    def clarabel(self, lam: float) -> float:
        """The objective of a cone solver, from the raw columns."""
        w, b, total = cp.Variable((D, T)), cp.Variable(T), 0
        for t, own in enumerate(self.own):
            rows = slice(t * N, (t + 1) * N)
            y, s = self.y[rows], self.weights[rows]
            r = y - self.x[own] @ w[:, t] - (b[t] if self.fit_intercept else 0.0)
            if self.loss.label == "root mean squared error":
                total += cp.norm(cp.multiply(np.sqrt(s), r), 2)
                continue
            low, high = self.loss.domain(y)  # an outlier q is what a slope at its end leaves unexplained
            q, mu = cp.Variable(N), self.loss.mu
            ends = [np.broadcast_to(end, N) for end in (low, high)]
            total += s @ (cp.square(r - q) / (2.0 * mu))
            for end, part in zip(ends, (cp.neg(q), cp.pos(q)), strict=True):
                finite = np.isfinite(end)
                total += s @ cp.multiply(np.where(finite, np.abs(end), 0.0), part)
                if not finite.all():
                    total += 1e6 * cp.sum(cp.multiply((~finite).astype(float), part))
        total += lam * norm_of(self.problem.penalty, w)
        total += self.problem.penalty.at(lam).ridge / 2 * cp.sum_squares(w)
        program = cp.Problem(cp.Minimize(total), [w >= 0] if self.problem.penalty.positive else [])
        program.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        return float(program.value)


def norm_of(penalty: RowPenalty, w: Any) -> Any:
    """The norm as cvxpy has it."""
    if isinstance(penalty, LInf):
        return cp.sum(cp.max(cp.abs(w), axis=1))
    if isinstance(penalty, Dirty):
        shared = cp.Variable(w.shape)
        return penalty._g * cp.sum(cp.norm(shared, 2, axis=1)) + penalty._l * cp.sum(cp.abs(w - shared))
    if isinstance(penalty, Groups):
        strengths = penalty.weights
        total = 0
        for block in np.unique(BLOCKS):
            members = np.flatnonzero(block == BLOCKS)
            inner = {"rows": lambda v: cp.sum(cp.norm(v, 2, axis=1)), "entries": lambda v: cp.sum(cp.abs(v))}
            own = penalty._g * cp.norm(w[members], "fro")
            own += 0 if penalty.inside is None else penalty._in * inner[penalty.inside](w[members])
            total += strengths[members[0]] * own
        return total
    if isinstance(penalty, Sorted):
        steps = -np.diff(penalty.weights, append=0.0)
        norms = cp.norm(w, 2, axis=1)
        return sum(step * cp.sum_largest(norms, k + 1) for k, step in enumerate(steps) if step > 0.0)
    form = penalty.row_form()
    assert form is not None
    return form.group @ cp.norm(w, 2, axis=1) + form.l1 @ cp.sum(cp.abs(w), axis=1)


@pytest.mark.parametrize("loss", LOSSES)
def test_step_of_a_loss(loss: str) -> None:
    """The dual point of a step is inside, and its derivative that of differences."""
    case = Case(LOSSES[loss], L21(), weights=True)
    data, rng, h = case.problem.loss, np.random.default_rng(1), 1e-6
    steps, pulled = np.array([0.2, 1.0, 30.0]), rng.standard_normal(T * N)
    assert data.has_dual_step
    residual, bent, unit = data.dual_step(pulled, steps)
    changes = [
        data.dual_step(pulled + h * e, steps)[0] - data.dual_step(pulled - h * e, steps)[0] for e in np.eye(T * N)
    ]
    found, task = np.diag(bent), np.repeat(np.arange(T), N)
    if unit is not None:
        found = found + np.where(task[:, None] == task, np.outer(unit, unit), 0.0)
    np.testing.assert_allclose(found, np.array(changes) / (2.0 * h), atol=1e-8)
    # r minimises F(r) + ||r - pulled||^2/(2 step): no point nearby is better
    root, spread = np.sqrt(case.weights), case.problem.design.per_sample(steps)

    def value(r: Array) -> float:
        if loss == "square-root":
            own = float(np.sqrt(case.problem.design.task_sums(r * r)).sum())
        else:
            own = float(case.weights @ case.loss.value(data._y, data._y - r / root))
        return own + float(np.sum(np.square(r - pulled) / (2.0 * spread)))

    least = value(residual)
    assert all(value(residual + 1e-3 * rng.standard_normal(T * N)) >= least for _ in range(50))


# every loss with every penalty, the options in turn
COMBINATIONS = [
    (loss, name, list(OPTIONS)[(i + j) % len(OPTIONS)])
    for i, loss in enumerate(LOSSES)
    for j, name in enumerate(PENALTIES)
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("loss", "name", "options"), COMBINATIONS)
def test_against_clarabel(loss: str, name: str, options: str) -> None:
    """At large strengths and where tasks are fitted exactly: certified, and as good as what the cone solver finds."""
    case = Case(LOSSES[loss], PENALTIES[name], **OPTIONS[options])
    null, solver = case.problem.loss.null.value, DualNewton()
    for share in (0.4, 0.02):
        lam = share * case.problem.lambda_max()
        working = case.working(lam)
        solved = solver.solve(working, np.zeros((D, T)), 1e-8 * null, 2000)
        assert solved.gap <= 1e-8 * null
        reached = working.evaluate(solved.rows).value + working.penalty.total(solved.rows)
        assert abs(reached - case.clarabel(lam)) <= 2e-7 * null


@pytest.mark.parametrize("name", ["l11", "largest", "dirty", "sorted"])
def test_path_of_square_root(name: str) -> None:
    """As large as makes other methods stop: every value of a path converges."""
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((120, 150)), np.repeat(np.arange(4), 30)
    y = X[:, :5] @ rng.standard_normal(5) + rng.standard_t(3.0, 120)
    penalty = {"largest": "linf", "sorted": Sorted()}.get(name, name)
    path = ts.MultiTaskRegressor("square-root", penalty, tol=1e-6).path(X, y, task=task, n_alphas=12, eps=0.05)
    assert path.converged.all()
    assert path._points[-1].algorithm == "dual-newton"


def test_too_large_for_it() -> None:
    """Other methods are there for tasks with many rows."""
    assert small_enough(np.array([0, 500, 1000]), coupled=True)
    assert not small_enough(np.array([0, 500, 2000]), coupled=True)
    assert small_enough(np.arange(0, 10_001, 100), coupled=False)
    assert not small_enough(np.array([0, 5000]), coupled=False)
