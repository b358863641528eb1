"""Cox's loss on data: against its definition in floats and in sixty digits, and against an interior-point solver."""

from __future__ import annotations

import warnings

import mpmath as mp
import numpy as np
import pytest
from cox_reference import Reference, draw

import tasksieve as ts
from tasksieve.checks.data_loss import CHECKS
from tasksieve.checks.loss_cases import data_cases, survival_labels
from tasksieve.design import Design, as_storage
from tasksieve.losses.cox import Cox
from tasksieve.outcomes import SURVIVAL
from tasksieve.path import Problem, solve_path
from tasksieve.solvers import prox_newton

TIES = ("efron", "breslow")


def case(seed, largest=24, entry=None, smallest=4):
    """Labels, weights (some of them 0), the loss on them and its definition, and scores."""
    rng = np.random.default_rng(seed)
    n, efron = int(rng.integers(smallest, largest)), seed % 2 == 0
    entry = seed % 3 == 2 if entry is None else entry
    y, s = draw(rng, n, entry, 1 + seed % 2), rng.uniform(0.3, 2.0, n) * (rng.random(n) > 0.1)
    y["event"][0], s[0] = True, 1.0
    design = Design(as_storage(rng.standard_normal((n, 3))), np.array([0, n]), weights=s, n_threads=1)
    loss = Cox("efron" if efron else "breslow").on(design, y)
    z = np.where(s > 0, rng.choice([0.3, 2.0]) * rng.standard_normal(n), 0.0)
    return rng, s, loss, Reference(y, s, efron), z


@pytest.mark.parametrize("seed", range(30))
def test_values_and_derivatives(seed):
    _, s, loss, truth, z = case(seed)
    at, root = loss.evaluate(np.sqrt(s) * z), np.sqrt(s)
    mean, hessian = truth.derivatives(z)
    assert at.value + loss.constant == pytest.approx(truth.value(z), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(at.margin.mean, mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(root * at.residual, truth.events - mean, atol=1e-12)
    assert abs(np.sum(root * at.residual)) <= 1e-12 * truth.events.sum()
    assert float(loss.constant) == pytest.approx(float(truth.saturated()), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(loss._most, truth.largest, rtol=1e-12)
    assert np.all(mean <= truth.largest * (1 + 1e-12))
    for sets, part in zip(loss._sets, at.margin.parts, strict=True):
        own = np.ix_(sets.rows, sets.rows)
        products = np.stack([sets.hessian_times(part, unit) for unit in np.eye(len(sets.rows))])
        np.testing.assert_allclose(products, hessian[own], atol=1e-11)
        columns = np.stack([z[sets.rows], np.arange(len(sets.rows)) * 0.1])
        quadratic, sides = sets.hessian_of(part, columns, 1)
        np.testing.assert_allclose(quadratic[0], columns @ hessian[own] @ columns.T, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(sides[0], np.square(columns) @ mean[sets.rows], rtol=1e-12)
    model = loss.quadratic_model(at)
    units = np.asfortranarray(np.eye(len(z)))
    turned = np.empty_like(units, order="F")
    squares = model.columns(units, np.arange(len(z)), False, turned)
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    np.testing.assert_allclose(turned.T @ turned, hessian * np.outer(inverse, inverse), atol=1e-7)
    np.testing.assert_allclose(turned.T @ model.right, at.residual, atol=1e-11)
    np.testing.assert_allclose(squares[:, 0], np.square(turned).sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(k, marks=pytest.mark.slow) for k in range(8, 80))])
def test_gaps_in_sixty_digits(seed):
    """`terms` is the supremum, and `young` is never below it, at one point and between two."""
    rng, s, loss, truth, z = case(seed, largest=9)
    root = np.sqrt(s)
    with mp.workdps(60):
        for away in (0.0, 1e-9, 0.3):
            primal = np.where(s > 0, z + away * rng.standard_normal(len(z)), 0.0)
            at = loss.evaluate(root * z)
            settled, stored = loss.settled(at), loss.at_scores(primal)
            # what is evaluated are these very scores
            theta = at.margin.scores
            for scale in (0.0, 0.3, 0.9, 0.999, 1.0 - 1e-7, 1.0):
                if not at.residual.any() and scale:
                    continue
                exact = truth.young(primal, theta, scale)
                certain = loss.young(stored, np.zeros(1), settled, scale)
                size = 1.0 + float(truth.events.sum())
                if len(loss._sets) and loss._sets[0].nested:
                    assert exact <= certain, (scale, away)
                    assert certain <= exact + 1e-11 * size + 1e-6 * exact, (scale, away)
                else:  # the dual point is near the scaled one, as near as the leak says
                    off = settled.leak[0] * max(float(np.linalg.norm(root * (primal - theta))), 1.0)
                    assert exact <= certain + scale * off, (scale, away)
                    if scale >= 0.9:
                        assert certain <= exact + 1e-9 * size + 1e-6 * exact, (scale, away)
                if away == 0.0:
                    terms = loss.terms(at, scale)
                    assert terms >= exact - 1e-12 * size
                    assert scale < 0.9 or terms <= exact + 1e-9 * size


def phi(x):
    return x * mp.log(x) if x > mp.mpf(10) ** -70 else mp.mpf(0)


@pytest.mark.parametrize("seed", range(12))
def test_scores_of_thousands(seed):
    """Separated rows, scores up to +-5000: the gap is finite and never below what it is in sixty digits."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 14))
    y = draw(rng, n, ties=seed % 2 == 0)
    y["event"][int(rng.integers(n))] = True
    z = rng.choice([40.0, 700.0, 5000.0]) * rng.choice([-1.0, 0.0, 1.0], n) + rng.standard_normal(n)
    design = Design(as_storage(np.ones((n, 1))), np.array([0, n]), n_threads=1)
    loss, truth = Cox("breslow").on(design, y), Reference(y, np.ones(n), False)
    at = loss.evaluate(z)
    settled = loss.settled(at)
    times = np.unique(y["time"][y["event"]])
    risk = [y["time"] >= t for t in times]
    with mp.workdps(80):
        value, mean, _ = truth.exact([mp.mpf(v) for v in z])
        assert abs(at.value + loss.constant - value) <= 1e-12 * (1 + abs(z).max()) * n
        died = [int(np.sum(y["event"] & (y["time"] == t))) for t in times]
        for scale in (0.0, 0.4, 0.95, 1.0 - 1e-9):
            c = mp.mpf(scale if at.residual.any() else 0.0)
            mixed = [(1 - c) * int(e) + c * m for e, m in zip(y["event"], mean, strict=True)]
            # F* by its closed form, sums by subtraction: eighty digits are enough
            later = [sum(died[g:]) for g in range(len(died))]
            held = [mp.fsum(m for m, r in zip(mixed, at_risk, strict=True) if r) for at_risk in risk]
            left = [max(m - d, 0) for m, d in zip(held, later, strict=True)]
            brackets = (phi(b + d) - phi(b) for b, d in zip(left, died, strict=True))
            products = ((int(e) - m) * mp.mpf(v) for e, m, v in zip(y["event"], mixed, z, strict=True))
            exact = value + mp.fsum(phi(m) for m in mixed) - mp.fsum(brackets) + mp.fsum(products)
            certain = loss.young(loss.at_scores(z), np.zeros(1), settled, scale)
            assert np.isfinite(certain)
            assert exact <= certain + mp.mpf(10) ** -60
            assert certain <= exact + 1e-9 * (1 + abs(z).max() * n)


def nested_labels(rng, n):
    y = survival_labels(rng, n)
    y["entry"] = -np.inf
    return y


@pytest.mark.parametrize("labels", [nested_labels, survival_labels])
def test_properties(labels):
    """Those of `check_loss`, at one point of some data."""
    for case in data_cases(Cox(), labels, 0):
        if case.words in ("weights, some of them 0", "an offset, unpenalised features"):
            z = case.point(0.5)
            for check in CHECKS:
                check(case, z)


@pytest.mark.slow
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("labels", [nested_labels, survival_labels])
def test_battery(ties, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # tasks of one row without an event
        ts.checks.check_loss(Cox(ties), labels=labels)


# -- problems -------------------------------------------------------------------------------------------------------

FEATURES, TASKS, LABELS = 6, 2, [0, 0, 1, 1, 2, 2]
KINDS = (
    "plain", "ties", "weights", "offset", "strata", "entry", "everything", "unpenalised", "one event", "two events",
    "separated",
)  # fmt: skip


def rows_norm(cp, w):
    return cp.sum(cp.norm(w, 2, axis=1))


def sparse_group_norm(cp, w):
    return 0.4 * cp.sum(cp.abs(w)) + 0.8 * rows_norm(cp, w)


def groups_norm(cp, w):
    return sum(np.sqrt(2.0) * cp.norm(w[2 * k : 2 * k + 2], "fro") for k in range(3))


def dirty_norm(cp, w):
    part = cp.Variable(w.shape)
    return TASKS**0.25 * rows_norm(cp, part) + cp.sum(cp.abs(w - part))


def sorted_norm(cp, w, weights):
    norms = cp.norm(w, 2, axis=1)
    drops = weights - np.append(weights[1:], 0.0)
    return sum(drop * cp.sum_largest(norms, k + 1) for k, drop in enumerate(drops))


OWL = np.linspace(1.5, 0.5, FEATURES)
PENALTIES = {
    "l21": (ts.penalties.L21(), rows_norm),
    "l11": (ts.penalties.L11(), lambda cp, w: cp.sum(cp.abs(w))),
    "sparse group": (ts.penalties.SparseGroup(0.4, 0.8), sparse_group_norm),
    "linf": (ts.penalties.LInf(), lambda cp, w: cp.sum(cp.max(cp.abs(w), axis=1))),
    "dirty": (ts.penalties.Dirty(), dirty_norm),
    "groups": (ts.penalties.Groups(LABELS), groups_norm),
    "owl": (ts.penalties.Sorted(OWL), lambda cp, w: sorted_norm(cp, w, OWL)),
}
QUADRATICS = {"none": {}, "ridge": {"fixed_ridge": 0.4}, "graph": {"task_graph": np.array([[0.0, 0.7], [0.7, 0.0]])}}


def problem_of(kind, rng, penalty, quadratic):
    """Two tasks of 14 rows."""
    n, offsets = 28, np.array([0, 14, 28])
    x = rng.standard_normal((n, FEATURES))
    score = x[:, 0] - 0.7 * x[:, 1] + 0.5 * rng.standard_normal(n)
    y = np.zeros(n, SURVIVAL)
    y["time"], y["entry"], y["event"] = rng.exponential(np.exp(-score)), -np.inf, rng.random(n) < 0.7
    y["event"][[0, 14]] = True
    s, offset, free = np.ones(n), None, np.empty(0, dtype=np.int64)
    everything = kind == "everything"
    if kind in ("ties", "everything"):
        y["time"] = np.ceil(3.0 * y["time"])
    if kind == "weights" or everything:
        s = rng.uniform(0.2, 2.0, n) * (rng.random(n) > 0.1)
        s[[0, 14]] = 1.0
    if kind == "offset" or everything:
        offset = rng.standard_normal(n)
    if kind == "strata" or everything:
        y["stratum"] = rng.integers(0, 2, n)
    if kind == "entry" or everything:
        y["entry"] = np.where(rng.random(n) < 0.4, 0.5 * y["time"] - 0.01, -np.inf)
    if kind == "unpenalised" or everything:
        free = np.array([5])
    if kind in ("one event", "two events"):
        y["event"] = False
        y["event"][[2, 16] if kind == "one event" else [2, 5, 16, 20]] = True
        y["time"][[2, 16]] = 1e-3
    if kind == "separated":
        y["time"] = np.exp(-x[:, 0] - x[:, 1])
        y["event"] = True
    if len(free) and isinstance(penalty, ts.penalties.Groups | ts.penalties.Sorted):
        free = free[:0]
    design = Design(as_storage(x), offsets, weights=s, unpenalised=free, n_threads=1)
    ties = "efron" if rng.random() < 0.5 else "breslow"
    problem = Problem(design, y, offset=offset, loss=Cox(ties), penalty=penalty, **quadratic)
    truths = [Reference(y[a:b], s[a:b], ties == "efron") for a, b in ((0, 14), (14, 28))]
    return problem, x, np.zeros(n) if offset is None else offset, truths


def optimum(problem, x, offset, truths, norm, quadratic, lam):
    """By a cone solver, in sum units with the constant."""
    cp = pytest.importorskip("cvxpy")
    w, total = cp.Variable((FEATURES, TASKS)), 0
    for t, truth in enumerate(truths):
        own = slice(14 * t, 14 * t + 14)
        total = total + truth.program(x[own] @ w[:, t] + offset[own], cp)
    penalised = np.flatnonzero(problem.penalty.penalised)
    held = w if len(penalised) == FEATURES else w[penalised]
    total = total + lam * norm(cp, held)
    total = total + quadratic.get("fixed_ridge", 0.0) / 2 * cp.sum_squares(held)
    if "task_graph" in quadratic:
        total = total + 0.35 * cp.sum_squares(held[:, 0] - held[:, 1])
    program = cp.Problem(cp.Minimize(total))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(program.value)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("quadratic", QUADRATICS)
@pytest.mark.parametrize("name", PENALTIES)
def test_optimum_and_gap(name, quadratic, kind):
    rng = np.random.default_rng([list(PENALTIES).index(name), list(QUADRATICS).index(quadratic), KINDS.index(kind)])
    penalty, norm = PENALTIES[name]
    options = QUADRATICS[quadratic]
    problem, *parts = problem_of(kind, rng, penalty, options)
    null = problem.loss.null.value
    lam = 0.3 * problem.lambda_max()
    best = optimum(problem, *parts, norm, options, lam)
    for tol in (1e-2, 1e-5, 1e-10):
        point = solve_path(problem, [lam], tol=tol).points[0]
        assert point.dual_gap <= max(tol, 1e-9) * null
        assert point.objective - best <= point.dual_gap + 1e-8 * null
        assert point.objective - best >= -1e-8 * null
        assert np.all(point.intercept == 0.0)


@pytest.mark.parametrize("tol", [1e-6, 1e-9])
def test_models_in_single_precision(monkeypatch, tol):
    """They serve down to gaps where their rounding matters, and lead to the same answers."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3 * 60, 40))
    y = ts.survival(rng.exponential(size=180) / np.exp(X[:, 0] - X[:, 1]), rng.random(180) < 0.7)
    task, used = np.repeat([0, 1, 2], 60), []
    room = prox_newton.ProximalNewton._room

    def spy(self, design, count, kind=np.float64):
        used.append(kind)
        return room(self, design, count, kind)

    monkeypatch.setattr(prox_newton.ProximalNewton, "_room", spy)
    model = ts.MultiTaskCox(tol=tol)
    usual = model.path(X, y, task=task, n_alphas=6, eps=0.2)
    assert set(used) == {np.float64}
    used.clear()
    monkeypatch.setattr(prox_newton, "_WIDE", 0)
    narrow = model.path(X, y, task=task, alphas=usual.alphas)
    assert (np.float32 in used) == (tol == 1e-6)
    assert np.max(narrow.relative_gaps) <= tol
    np.testing.assert_allclose(narrow.objectives, usual.objectives, rtol=3.0 * tol)
