"""A loss for each task: mixtures of all losses with all penalties and quadratic parts against a cone solver (cvxpy with
Clarabel), gaps and rejections that are never wrong, and what a mixture of one loss is."""

from __future__ import annotations

import runpy
import warnings
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.design import DenseStorage, Design, Part
from tasksieve.outcomes import SURVIVAL
from tasksieve.path import Problem, solve_path
from tasksieve.proof.prove import prove

cp = pytest.importorskip("cvxpy")

# losses and penalties as cvxpy writes them
PAIRS = runpy.run_path(str(Path(__file__).parent / "test_pairs.py"))
CLARABEL, EDGES, LOSSES, N, PENALTIES, SIGNS, D, norm, rows_of = (
    PAIRS[name] for name in ("CLARABEL", "EDGES", "LOSSES", "N", "PENALTIES", "SIGNS", "D", "norm", "rows_of")
)

ALONE = ("square-root", "multinomial")  # losses that cannot stand beside others
LOSSES = {
    **LOSSES,
    "gamma": ts.losses.Gamma(),
    "tweedie": ts.losses.Tweedie(1.5),
    "negative_binomial": ts.losses.NegativeBinomial(2.0),
    "log_cosh": ts.losses.LogCosh(),
    "expectile": ts.losses.Expectile(0.8),
    "ordinal": ts.losses.Ordinal(),
    "cox": ts.losses.Cox(),
}
KINDS = [name for name in LOSSES if name not in ALONE]
QUADRATIC: dict[str, dict[str, Any]] = {
    "plain": {},
    "ridge": {"fixed_ridge": 0.3},
    "graph": {"fixed_ridge": 0.1, "task_graph": 0.5 * EDGES},
}
T = 3
ORACLE = 2e-9  # its accuracy, relative to the null objective: 4e-10 is the worst of all problems here


def ordinal_rows(y: np.ndarray, z: Any) -> tuple[Any, list[Any]]:
    """-log P(class) of three ordered classes, and the constraints that go with them."""
    low, width, cost = cp.Variable(), cp.Variable(), cp.Variable()
    above, below = (y < 2.0).astype(float), (y > 0.0).astype(float)
    over, under = z - low - width * (y == 1.0), low + width * (y == 2.0) - z
    middle = (y == 1.0).astype(float)
    rows = cp.multiply(above, cp.logistic(over)) + cp.multiply(below, cp.logistic(under)) + cost * middle
    return rows, [cp.exp(-width) + cp.exp(-cost) <= 1.0]  # cost >= -log(1 - exp(-width))


def more_rows(kind: str, y: np.ndarray, z: Any) -> tuple[Any, list[Any]]:
    """The loss of each row, of kinds that stand in no other test of pairs."""
    if kind == "ordinal":
        return ordinal_rows(y, z)
    if kind == "gamma":
        return cp.multiply(y, cp.exp(-z)) + z, []
    if kind == "tweedie":
        return 2.0 * cp.multiply(y, cp.exp(-z / 2.0)) + 2.0 * cp.exp(z / 2.0), []
    if kind == "negative_binomial":
        return cp.multiply(y + 2.0, cp.logistic(z - np.log(2.0))) - cp.multiply(y, z), []
    if kind == "log_cosh":
        return cp.logistic(2.0 * (y - z)) - (y - z) - np.log(2.0), []
    if kind == "expectile":
        return 0.4 * cp.square(cp.pos(y - z)) + 0.1 * cp.square(cp.neg(y - z)), []
    return rows_of(kind, y, z)


def partial_likelihood(y: np.ndarray, s: np.ndarray, z: Any) -> Any:
    """Minus its logarithm, of times without ties."""
    total = 0.0
    for i in np.flatnonzero(y["event"] & (s > 0.0)):
        risk = np.flatnonzero((y["time"] >= y["time"][i]) & (s > 0.0))
        total += s[i] * (cp.log_sum_exp(z[risk] + np.log(s[risk])) - z[i])
    return total


class Mixture:
    """A problem of a random loss for each of three tasks, with weights, offsets, a row of weight 0, columns that are
    equal or empty."""

    def __init__(self, seed: int, kinds: Any = None, unpenalised: Any = None) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.kinds = list(rng.choice(KINDS, T) if kinds is None else kinds)
        self.offsets = N * np.arange(T + 1)
        self.x = rng.standard_normal((T * N, D))
        self.x[:, 4] = self.x[:, 3]
        self.x[N : 2 * N, 5] = 0.0
        z = self.x[:, 0] - 0.5 * self.x[:, 1]
        self.s = rng.uniform(0.5, 2.0, T * N)
        self.s[5] = 0.0
        self.known = 0.3 * rng.standard_normal(T * N)
        self.v = rng.uniform(0.2, 3.0, T)
        self.y = np.concatenate([self._labels(kind, z[t * N : (t + 1) * N]) for t, kind in enumerate(self.kinds)])
        if "cox" in self.kinds:  # records, whose time is the label of other tasks
            numbers, self.y = self.y, np.zeros(T * N, dtype=SURVIVAL)
            self.y["time"], self.y["entry"] = numbers, -np.inf
            self.y["event"] = rng.random(T * N) < 0.7
        self.unpenalised = unpenalised

    def _labels(self, kind: str, z: np.ndarray) -> np.ndarray:
        if kind in ("poisson", "negative_binomial"):
            return self.rng.poisson(np.exp(0.5 * z)) + (np.arange(N) == 0.0)
        if kind in ("gamma", "tweedie"):
            zero = (kind == "tweedie") & (self.rng.random(N) < 0.3) & (np.arange(N) > 0)
            return np.where(zero, 0.0, self.rng.gamma(2.0, 0.5 * np.exp(0.5 * z)))
        if kind == "cox":
            return self.rng.exponential(np.exp(-z))
        if kind == "ordinal":
            return np.append([0.0, 1.0, 2.0], np.digitize(z[3:] + self.rng.logistic(size=N - 3), [-0.8, 0.6]))
        if kind in SIGNS:
            y = np.where(z + self.rng.standard_normal(N) > 0, 1.0, -1.0)
            y[:2] = -1.0, 1.0
            return y
        return 3.0 + z + 0.5 * self.rng.standard_normal(N)

    def problem(self, penalty: Any = None, **options: Any) -> Problem:
        design = Design(
            DenseStorage(np.asfortranarray(self.x)), self.offsets, weights=self.s, unpenalised=self.unpenalised
        )
        loss = ts.losses.Mixed([LOSSES[kind] for kind in self.kinds], self.v)
        return Problem(design, self.y, offset=self.known, loss=loss, penalty=penalty, **options)

    def oracle(self, penalty: str, options: dict[str, Any], lam: float) -> tuple[float, np.ndarray]:
        w, b = cp.Variable((D, T)), cp.Variable(T)
        value, constraints = norm(penalty, w, T)
        total = lam * value + 0.5 * options.get("fixed_ridge", 0.0) * cp.sum_squares(w)
        edges = options.get("task_graph", np.zeros((T, T)))
        for t, kind in enumerate(self.kinds):
            own = slice(t * N, (t + 1) * N)
            z = self.x[own] @ w[:, t] + b[t] + self.known[own]
            y = self.y[own] if self.y.dtype.names is None else self.y["time"][own]
            if kind == "cox":
                total += self.v[t] * partial_likelihood(self.y[own], self.s[own], z)
            else:
                rows, more = more_rows(kind, y, z)
                total += self.v[t] * (self.s[own] @ rows)
                constraints += more
            total += sum(0.5 * edges[t, u] * cp.sum_squares(w[:, t] - w[:, u]) for u in range(t))
        program = cp.Problem(cp.Minimize(total), constraints)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it stops one digit earlier, and says so
            program.solve(solver="CLARABEL", **CLARABEL)
        return float(program.value), np.asarray(w.value)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("part", QUADRATIC)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("draw", range(4))
def test_as_good_as_a_cone_solver_with_a_true_gap_and_no_wrong_rejection(draw, penalty, part):
    given = Mixture(zlib.crc32(f"{draw} {penalty} {part}".encode()))
    problem = given.problem(PENALTIES[penalty], **QUADRATIC[part])
    lam, scale = 0.3 * problem.lambda_max(), problem.loss.null.value
    best, w = given.oracle(penalty, QUADRATIC[part], lam)
    selected = np.abs(w).max(axis=1) > 1e-3
    for tol in (1e-2, 1e-4, 2e-9):
        (value,) = solve_path(problem, [lam], tol=tol).points
        assert value.converged, (given.kinds, tol, value.limit)
        assert value.objective >= best - ORACLE * scale
        assert value.objective - value.dual_gap <= best + ORACLE * scale, given.kinds
        coef = np.zeros((T, D))
        coef[:, value.features] = value.rows.T
        if "ordinal" not in given.kinds:  # its thresholds stand beside the intercepts
            proof = prove(problem, lam, coef, value.intercept)
            assert not (proof.zero_rows & selected).any(), given.kinds
            assert value.objective == pytest.approx(proof.objective, rel=1e-10)
            assert proof.objective - proof.dual_gap <= best + ORACLE * scale
    assert value.objective <= best + 2.0 * ORACLE * scale


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_what_the_rows_could_have_been_multiplied_by(kind):
    given = Mixture(3, [kind] * T)
    mixed = given.problem()
    design = Design(DenseStorage(np.asfortranarray(given.x)), given.offsets, weights=given.s * np.repeat(given.v, N))
    plain = Problem(design, given.y, offset=given.known, loss=LOSSES[kind])
    assert mixed.lambda_max() == pytest.approx(plain.lambda_max(), rel=1e-12)
    assert mixed.loss.null.value == pytest.approx(plain.loss.null.value, rel=1e-12)
    if kind != "cox":  # whose weights stand inside logarithms, too
        assert mixed.loss.constant == pytest.approx(plain.loss.constant, rel=1e-12)
    lam = 0.4 * plain.lambda_max()
    found, other = (solve_path(problem, [lam], tol=1e-10).points[0] for problem in (mixed, plain))
    values = (point.objective - problem.loss.constant for point, problem in ((found, mixed), (other, plain)))
    assert next(values) == pytest.approx(next(values), abs=2e-10 * plain.loss.null.value)
    np.testing.assert_allclose(found.intercept, other.intercept, atol=1e-4)
    if kind == "ordinal":
        np.testing.assert_allclose(found.thresholds, other.thresholds, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_one_loss_of_weight_one_is_that_loss_to_the_last_digit(kind):
    given = Mixture(4, [kind] * T)
    given.v = np.ones(T)
    design = Design(DenseStorage(np.asfortranarray(given.x)), given.offsets, weights=given.s)
    plain = Problem(design, given.y, offset=given.known, loss=LOSSES[kind])
    lams = plain.lambda_max() * np.array([0.8, 0.3])
    for found, other in zip(solve_path(given.problem(), lams).points, solve_path(plain, lams).points, strict=True):
        assert (found.objective, found.dual_gap) == (other.objective, other.dual_gap)
        np.testing.assert_array_equal(found.rows, other.rows)


@pytest.mark.parametrize(
    "kinds", [("cox", "squared", "logistic"), ("cox", "poisson", "cox"), ("ordinal", "cox", "huber")]
)
@pytest.mark.parametrize("part", QUADRATIC)
def test_survival_beside_others(kinds, part):
    given = Mixture(8, kinds)
    problem = given.problem(PENALTIES["l21"], **QUADRATIC[part])
    lam, scale = 0.3 * problem.lambda_max(), problem.loss.null.value
    best, _ = given.oracle("l21", QUADRATIC[part], lam)
    (value,) = solve_path(problem, [lam], tol=2e-9).points
    assert value.converged
    assert best - ORACLE * scale <= value.objective <= best + 2.0 * ORACLE * scale
    assert value.objective - value.dual_gap <= best + ORACLE * scale
    assert not value.intercept[kinds.index("cox")]


def test_groups_of_tasks_are_evaluated_together():
    mixed = ts.losses.Mixed(["squared", "huber", ts.losses.Squared(), ts.losses.Huber(), ts.losses.Huber(2.0)])
    assert [tasks for _, tasks in mixed.groups()] == [[0, 2], [1, 3], [4]]


@pytest.mark.parametrize("unpenalised", [None, [3], [2, 3]])
@pytest.mark.parametrize("kinds", [("squared", "logistic", "squared"), ("poisson", "huber", "poisson")])
def test_values_residuals_and_nuisance_are_those_of_single_tasks(kinds, unpenalised):
    given = Mixture(5, kinds, unpenalised)
    loss = given.problem().loss
    z = loss.design.project(0.4 * given.rng.standard_normal(T * N))
    at = loss.settled(loss.evaluate(z))
    total = gap = 0.0
    for t, kind in enumerate(kinds):
        own = slice(t * N, (t + 1) * N)
        weights = given.v[t] * given.s[own]
        alone = Design(
            DenseStorage(np.asfortranarray(given.x[own])), np.array([0, N]), weights=weights, unpenalised=unpenalised
        )
        single = LOSSES[kind].on(alone, given.y[own], given.known[own])
        there = single.settled(single.evaluate(np.sqrt(given.v[t]) * z[own]))
        total, gap = total + there.value, gap + single.terms(there, 0.7)
        np.testing.assert_allclose(at.residual[own], np.sqrt(given.v[t]) * there.residual, atol=1e-9)
        np.testing.assert_allclose(at.nuisance[:, t], there.nuisance[:, 0], atol=1e-7)
        metric = single.metric(there, 0.7, 0.3)
        expected = given.v[t] * (single.smoothness if metric is None else metric)
        np.testing.assert_allclose(loss.metric(at, 0.7, 0.3)[own], expected, rtol=1e-6)
    assert at.value == pytest.approx(total, rel=1e-12)
    assert loss.terms(at, 0.7) == pytest.approx(gap, rel=1e-9)
    # the residual is minus the gradient
    step = loss.design.project(given.rng.standard_normal(T * N))
    up, down = (loss.evaluate(z + h * step).value for h in (1e-5, -1e-5))
    assert (down - up) / 2e-5 == pytest.approx(float(at.residual @ step), rel=1e-5, abs=1e-6)


def test_a_dual_point_of_a_solver_is_seen_by_the_groups():
    given = Mixture(6, ("huber", "logistic", "poisson"))
    loss = given.problem().loss
    at = loss.settled(loss.evaluate(np.zeros(T * N)))
    half = loss.settled(replace(at, residual=0.5 * at.residual))
    assert loss.terms(half, 1.0) == pytest.approx(loss.terms(at, 0.5), rel=1e-9)
    error = np.full(T, 1e-3)
    assert loss.young(at, error, half, 1.0) == pytest.approx(loss.young(at, error, at, 0.5), rel=1e-6)
    assert loss.young(at, error, at, 0.5) > loss.young(at, 0.0 * error, at, 0.5) >= loss.terms(at, 0.5)


@pytest.mark.parametrize("shared", [False, True])
def test_a_part_of_a_design_is_the_design_of_its_tasks(shared, rng):
    rows = 12
    x = rng.standard_normal((rows if shared else 4 * rows, 3))
    weights = rng.uniform(0.5, 2.0, 4 * rows)
    whole = Design(
        DenseStorage(np.asfortranarray(x)),
        rows * np.arange(5),
        shared=shared,
        weights=weights,
        unpenalised=np.array([1]),
    )
    tasks, factors = np.array([3, 1]), np.array([2.0, 0.5])
    part = Part(whole, tasks, factors)
    flat = np.concatenate([np.arange(3 * rows, 4 * rows), np.arange(rows, 2 * rows)])
    own = x if shared else x[flat]
    alone = Design(
        DenseStorage(np.asfortranarray(own)), rows * np.arange(3), shared=shared,
        weights=weights[flat] * np.repeat(factors, rows), unpenalised=np.array([1]),
    )  # fmt: skip
    vector = rng.standard_normal(2 * rows)
    np.testing.assert_allclose(part.project(vector), alone.project(vector), atol=1e-14)
    np.testing.assert_allclose(part.nuisance_fit(vector), alone.nuisance_fit(vector), atol=1e-13)
    np.testing.assert_allclose(
        part.samples.orthogonality(vector)[0], alone.samples.orthogonality(vector)[0], atol=1e-13
    )
    for name in ("nuisance_sizes", "independence", "nuisance_shifts", "nuisance_basis", "weights", "offsets"):
        np.testing.assert_allclose(getattr(part, name), getattr(alone, name), atol=1e-14)
    np.testing.assert_allclose(part.samples.root_totals, alone.samples.root_totals)
    np.testing.assert_allclose(part.samples.nuisance_lengths, alone.samples.nuisance_lengths)


def test_refusals():
    with pytest.raises(ValueError, match="square-root loss estimates the noise"):
        ts.losses.Mixed(["squared", "square-root"])
    with pytest.raises(ValueError, match="row of coefficients for each class"):
        ts.losses.Mixed(["squared", "multinomial"])
    with pytest.raises(ValueError, match=r"2 losses and 1 weights"):
        ts.losses.Mixed(["squared", "logistic"], [1.0])
    with pytest.raises(ValueError, match=r"weights\[1\] of Mixed is 0"):
        ts.losses.Mixed(["squared", "logistic"], [1.0, 0.0])
    given = Mixture(7, ("squared", "logistic", "poisson"))
    given.kinds = given.kinds[:2]
    given.v = given.v[:2]
    with pytest.raises(ValueError, match="2 losses, but there are 3 tasks"):
        given.problem()
    with pytest.raises(ValueError, match="has a kink"):
        LOSSES["hinge"] = ts.losses.BY_NAME["hinge"]()
        given.kinds, given.v = ["squared", "hinge", "squared"], np.ones(3)
        try:
            given.problem()
        finally:
            del LOSSES["hinge"]
