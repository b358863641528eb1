"""Every loss with every penalty and every quadratic part, against a cone solver (cvxpy with Clarabel).

Of each pair: our objective is the oracle's, to 2e-9 of the null one; our lower bound does not exceed what the oracle
attained; the gap is as small as was asked for, and the certificate of the model proves it. With weights, offsets,
intercepts, a missing label, a duplicate and an empty column in every problem, and W >= 0 in some.
"""

from __future__ import annotations

import warnings
import zlib
from typing import Any

import numpy as np
import pytest

import tasksieve as ts

cp = pytest.importorskip("cvxpy")

T, N, D = 3, 14, 6
TOL = 1e-9
ORACLE = 1e-9  # its accuracy, relative to the null objective: 2e-10 is the worst of all pairs
CLARABEL = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
GROUPS = np.array([0, 0, 1, 1, 1, 2])
EDGES = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]])
LAPLACIAN = np.diag(EDGES.sum(axis=1)) - EDGES

LOSSES: dict[str, Any] = {
    "squared": ts.losses.Squared(),
    "huber": ts.losses.Huber(0.8),
    "quantile": ts.losses.Quantile(0.7, 0.3),
    "sharp quantile": ts.losses.Quantile(0.7, 0.003),
    "expectile": ts.losses.Expectile(0.8),
    "log_cosh": ts.losses.LogCosh(),
    "poisson": ts.losses.Poisson(),
    "negative_binomial": ts.losses.NegativeBinomial(1.7),
    "gamma": ts.losses.Gamma(),
    "tweedie": ts.losses.Tweedie(1.4),
    "square-root": ts.losses.SquareRoot(),
    "logistic": ts.losses.Logistic(),
    "squared_hinge": ts.losses.SquaredHinge(),
    "smoothed_hinge": ts.losses.SmoothedHinge(0.5),
    "multinomial": ts.losses.Logistic(),
}
PENALTIES: dict[str, Any] = {
    "l21": ts.penalties.L21(),
    "l11": ts.penalties.L11(),
    "sparse_group": ts.penalties.SparseGroup(0.4, 0.8),
    "linf": ts.penalties.LInf(),
    "dirty": ts.penalties.Dirty(1.3, 1.0),
    "groups": ts.penalties.Groups(GROUPS),
    "groups, rows": ts.penalties.Groups(GROUPS, inside="rows"),
    "groups, entries": ts.penalties.Groups(GROUPS, inside="entries"),
    "owl": ts.penalties.Sorted(),
}
QUADRATIC: dict[str, dict[str, Any]] = {
    "plain": {},
    "ridge": {"ridge": 0.3},
    "graph": {"ridge": 0.1, "task_graph": EDGES, "graph_strength": 0.5},
}
SIGNS = ("logistic", "squared_hinge", "smoothed_hinge")
PAIRS = [(loss, penalty, part) for loss in LOSSES for penalty in PENALTIES for part in QUADRATIC]


def norm(penalty: str, w: Any, tasks: int) -> tuple[Any, list[Any]]:
    """The penalty as cvxpy writes it, and constraints that go with it."""
    rows = cp.norm(w, 2, axis=1)
    if penalty == "l21":
        return cp.sum(rows), []
    if penalty == "l11":
        return cp.sum(cp.abs(w)), []
    if penalty == "sparse_group":
        return 0.4 * cp.sum(cp.abs(w)) + 0.8 * cp.sum(rows), []
    if penalty == "linf":
        return cp.sum(cp.max(cp.abs(w), axis=1)), []
    if penalty == "dirty":
        p, q = cp.Variable(w.shape), cp.Variable(w.shape)
        return 1.3 * cp.sum(cp.norm(p, 2, axis=1)) + cp.sum(cp.abs(q)), [p + q == w]
    if penalty == "owl":
        shape = ts.penalties.oscar_weights(D)
        steps = -np.diff(np.append(shape, 0.0))
        return sum(float(steps[k]) * cp.sum_largest(rows, k + 1) for k in range(D)), []
    parts = [np.flatnonzero(g == GROUPS) for g in range(3)]
    sizes = [np.sqrt(len(part)) for part in parts]
    share = 1.0 if penalty == "groups" else 0.5
    value = share * sum(size * cp.norm(w[part], "fro") for part, size in zip(parts, sizes, strict=True))
    if penalty.endswith("rows"):
        value += share * sum(size * cp.sum(rows[part]) for part, size in zip(parts, sizes, strict=True))
    if penalty.endswith("entries"):
        value += share * sum(size * cp.sum(cp.abs(w[part])) for part, size in zip(parts, sizes, strict=True))
    return value, []


def rows_of(loss: str, y: np.ndarray, z: Any) -> tuple[Any, list[Any]]:
    """The loss of each row."""
    if loss == "squared":
        return cp.square(y - z) / 2, []
    if loss == "huber":
        return cp.huber(y - z, 0.8) / 2, []
    if loss == "poisson":
        return cp.exp(z) - cp.multiply(y, z), []
    if loss == "expectile":
        return 0.4 * cp.square(cp.pos(y - z)) + 0.1 * cp.square(cp.neg(y - z)), []
    if loss == "log_cosh":
        return cp.logistic(2 * (y - z)) - (y - z) - np.log(2.0), []
    if loss == "negative_binomial":
        return cp.multiply(y + 1.7, cp.logistic(z - np.log(1.7))) - cp.multiply(y, z), []
    if loss == "gamma":
        return cp.multiply(y, cp.exp(-z)) + z, []
    if loss == "tweedie":
        return cp.multiply(y, cp.exp(-0.4 * z)) / 0.4 + cp.exp(0.6 * z) / 0.6, []
    if loss == "logistic":
        return cp.logistic(-cp.multiply(y, z)), []
    if loss == "squared_hinge":
        return cp.square(cp.pos(1 - cp.multiply(y, z))) / 2, []
    # infimal convolutions of a kinked loss and a parabola
    bent = cp.Variable(len(y))
    if loss in ("quantile", "sharp quantile"):
        smoothing = 0.3 if loss == "quantile" else 0.003
        return cp.maximum(0.7 * bent, -0.3 * bent) + cp.square(y - z - bent) / (2 * smoothing), []
    assert loss == "smoothed_hinge"
    return cp.pos(bent) + cp.square(1 - cp.multiply(y, z) - bent), []


class Problem:
    """A small problem with everything in it."""

    def __init__(self, loss: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.loss = loss
        self.x, self.task = rng.standard_normal((T * N, D)), np.repeat(np.arange(T), N)
        self.x[:, 4] = self.x[:, 3]
        self.x[self.task == 1, 5] = 0.0
        z = self.x[:, 0] * np.array([1.5, 1.0, 0.5])[self.task] - 0.5 * self.x[:, 1]
        self.weights = rng.uniform(0.5, 2.0, T * N)
        self.offset: np.ndarray | None = 0.3 * rng.standard_normal(T * N)
        noise = rng.standard_normal(T * N)
        if loss in ("poisson", "negative_binomial", "tweedie"):
            self.y = rng.poisson(np.exp(0.5 * z)).astype(float)
            if loss == "tweedie":
                self.y *= rng.gamma(2.0, 1.0, T * N)
        elif loss == "gamma":
            self.y = rng.gamma(1.5, np.exp(0.5 * z))
        elif loss in SIGNS:
            self.y = np.where(z + noise > 0, 1.0, -1.0)
            self.y[::N], self.y[1::N] = 1.0, -1.0  # both in every task
        elif loss == "multinomial":
            self.y, self.offset = np.digitize(z + noise, [-0.7, 0.7]).astype(float), None
            for k in range(3):
                self.y[k::N] = k
        else:
            self.y = z + 0.5 * noise
            self.y[::9] += 4.0
        self.missing = 5
        if loss not in (*SIGNS, "multinomial"):
            self.y[self.missing] = np.nan
        else:
            self.weights[self.missing] = 0.0
        seen = np.isfinite(self.y)
        self.n_bar = float(self.weights[seen].sum()) / T

    def oracle(self, penalty: str, quadratic: dict[str, Any], alpha: float, positive: bool) -> float:
        classes = 3 if self.loss == "multinomial" else 1
        w, b = cp.Variable((D, T * classes)), cp.Variable(T * classes)
        total, constraints = 0, [w >= 0] if positive else []
        for t in range(T):
            own = (self.task == t) & np.isfinite(self.y) & (self.weights > 0.0)
            y, s = self.y[own], self.weights[own]
            if classes > 1:
                columns = slice(3 * t, 3 * t + 3)
                z = self.x[own] @ w[:, columns] + cp.reshape(b[columns], (1, 3), order="C")
                picked = cp.sum(cp.multiply(np.eye(3)[y.astype(int)], z), axis=1)
                total = total + s @ (cp.log_sum_exp(z, axis=1) - picked)
                continue
            z = self.x[own] @ w[:, t] + b[t] + self.offset[own]
            if self.loss == "square-root":
                total = total + cp.norm(cp.multiply(np.sqrt(s), y - z), 2)
                continue
            rows, more = rows_of(self.loss, y, z)
            total, constraints = total + s @ rows, constraints + more
        value, more = norm(penalty, w, T * classes)
        unit = np.sqrt(self.n_bar) if self.loss == "square-root" else self.n_bar
        objective = total / unit + alpha * value + quadratic.get("ridge", 0.0) / 2 * cp.sum_squares(w)
        if "task_graph" in quadratic:
            edges = np.kron(EDGES, np.eye(classes))
            for i, j in np.argwhere(np.triu(edges)):
                objective += quadratic["graph_strength"] / 2 * edges[i, j] * cp.sum_squares(w[:, i] - w[:, j])
        program = cp.Problem(cp.Minimize(objective), constraints + more)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it stops one digit earlier, and says so
            program.solve(solver="CLARABEL", **CLARABEL)
        return float(program.value)


def model_of(loss: str, penalty: str, part: str, **options: Any) -> Any:
    kind = ts.MultiTaskClassifier if loss in (*SIGNS, "multinomial") else ts.MultiTaskRegressor
    return kind(LOSSES[loss], PENALTIES[penalty], **QUADRATIC[part], tol=TOL, **options)


def judge(loss: str, penalty: str, part: str) -> None:
    seed = zlib.crc32(f"{loss} {penalty} {part}".encode())
    problem = Problem(loss, seed)
    positive = seed % 4 == 0
    model = model_of(loss, penalty, part, positive=positive)
    rows = {"task": problem.task, "sample_weight": problem.weights}
    if problem.offset is not None:
        rows["offset"] = problem.offset
    alpha = 0.25 * model.alpha_max(problem.x, problem.y, **rows)
    model.set_params(alpha=alpha).fit(problem.x, problem.y, **rows)
    best = problem.oracle(penalty, QUADRATIC[part], alpha, positive)
    scale = model.null_objective_
    assert model.dual_gap_ <= TOL * scale
    assert abs(model.objective_ - best) <= (TOL + ORACLE) * scale
    assert model.objective_ - model.dual_gap_ <= best + ORACLE * scale
    certificate = model.certificate(problem.x, problem.y, **rows)
    verdict = certificate.verify(problem.x, problem.y, **rows)
    assert verdict, verdict.words
    assert certificate.gaps[0] <= 2.0 * model.dual_gap_ + 1e-9 * abs(model.objective_)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("loss", "penalty", "part"), [pair for k, pair in enumerate(PAIRS) if k % 4 == 0])
def test_a_quarter_of_all_pairs(loss: str, penalty: str, part: str) -> None:
    judge(loss, penalty, part)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "penalty", "part"), [pair for k, pair in enumerate(PAIRS) if k % 4])
def test_all_other_pairs(loss: str, penalty: str, part: str) -> None:
    judge(loss, penalty, part)
