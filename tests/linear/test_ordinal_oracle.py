"""Ordinal models against an independent interior-point solver: every penalty, quadratic term and awkward outcome."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from exact_numbers import wide
from sorted_norms import sorted_norm_expression

import tasksieve as ts

cp = pytest.importorskip("cvxpy")

TASKS, D = 3, 10
LABELS = [0, 0, 1, 1, 1, 2, 3, 3, 4, 5]
SORTED = np.linspace(1.0, 0.3, D)
KINDS = ("plain", "weights", "offset", "empty classes", "one class", "separated", "unpenalised", "awkward columns")
QUADRATICS = ("none", "ridge", "graph")


def rows_of(w):
    return cp.norm(w, 2, axis=1)


def dirty(w):
    part = cp.Variable(w.shape)
    return TASKS**0.25 * cp.sum(rows_of(part)) + cp.sum(cp.abs(w - part))


def groups(w):
    own = [np.flatnonzero(np.array(LABELS) == label) for label in np.unique(LABELS)]
    return sum(np.sqrt(len(part)) * cp.norm(w[part], "fro") for part in own)


PENALTIES = {
    "l21": ("l21", lambda w: cp.sum(rows_of(w))),
    "l11": ("l11", lambda w: cp.sum(cp.abs(w))),
    "sparse_group": (ts.penalties.SparseGroup(0.4, 0.8), lambda w: 0.4 * cp.sum(cp.abs(w)) + 0.8 * cp.sum(rows_of(w))),
    "linf": ("linf", lambda w: cp.sum(cp.max(cp.abs(w), axis=1))),
    "dirty": ("dirty", dirty),
    "groups": (ts.penalties.Groups(LABELS), groups),
    "owl": (ts.penalties.Sorted(SORTED), lambda w: sorted_norm_expression(w, SORTED)),
}


def make(kind, rng):
    """X, codes of classes, task, and what `fit` and the constructor take beside."""
    task = rng.permutation(np.repeat(np.arange(TASKS), [22, 30, 26]))
    x = rng.standard_normal((len(task), D))
    z = x[:, 0] - 0.7 * x[:, 1] + (task - 1.0) * x[:, 2] + rng.logistic(size=len(task))
    y = np.digitize(z, [-1.5, 0.0, 1.0])
    fit, params = {}, {}
    if kind == "weights":
        fit["sample_weight"] = rng.uniform(0.2, 3.0, len(y)) * (rng.random(len(y)) > 0.1)
        params["task_weights"] = {0: 2.0, 2: 0.5}
    if kind == "offset":
        fit["offset"] = rng.standard_normal(len(y)) + 3.0
    if kind == "empty classes":
        y[(task == 0) & (y == 1)] = 2
        y[(task == 1) & (y == 0)] = 1
        y[(task == 2) & (y >= 2)] = 1
    if kind == "one class":
        y[task == 1] = 2
    if kind == "separated":
        y = np.digitize(x[:, 0], [-1.0, 0.0, 1.0])
    if kind == "unpenalised":
        params["feature_weights"] = np.where(np.arange(D) >= 8, 0.0, 1.0)
    if kind == "awkward columns":
        x[:, 5], x[:, 6], x[:, 7] = x[:, 0], 0.0, 3.0
        x[:, 8] = 1e3 * x[:, 8] + 1e5
    return x, y, task, fit, params


class Oracle:
    """The public objective, written down once for numbers of forty digits and once for cvxpy."""

    def __init__(self, norm, x, y, task, fit, params):
        self.norm, self.x, self.y = norm, x, y
        s = fit.get("sample_weight", np.ones(len(y)))
        self.n_bar = s.sum() / TASKS
        self.s = s * np.array([params.get("task_weights", {}).get(t, 1.0) for t in task])
        self.o = fit.get("offset", np.zeros(len(y)))
        self.parts = [np.flatnonzero((task == t) & (s > 0)) for t in range(TASKS)]
        self.free = params.get("feature_weights", np.ones(D)) == 0.0
        self.ridge = params.get("ridge", 0.0)
        self.edges = params.get("graph_strength", 0.0) * (np.eye(TASKS, k=1) + np.eye(TASKS, k=-1))

    def loss(self, coef, thresholds):
        total = wide(0.0)
        for t, rows in enumerate(self.parts):
            z = wide(self.x[rows]) @ wide(coef[t]) + wide(self.o[rows])
            for score, k, s in zip(z, self.y[rows], self.s[rows], strict=True):
                high = thresholds[t][k] if k < len(thresholds[t]) else np.inf
                low = thresholds[t][k - 1] if k > 0 else -np.inf
                total -= s * np.log(tail(high, score) - tail(low, score))
        return float(total / self.n_bar)

    def quadratic(self, w):
        graph = sum(
            self.edges[a, b] * cp.sum_squares(w[:, a] - w[:, b]) for a in range(TASKS) for b in range(a + 1, TASKS)
        )
        return 0.5 * self.ridge * cp.sum_squares(w) + 0.5 * graph

    def solve(self, alpha):
        w, total = cp.Variable((D, TASKS)), 0
        for t, rows in enumerate(self.parts):
            have = np.unique(self.y[rows])
            if len(have) < 2:
                continue
            codes, s = np.searchsorted(have, self.y[rows]), self.s[rows]
            z, th = self.x[rows] @ w[:, t] + self.o[rows], cp.Variable(len(have) - 1)
            up, down = np.flatnonzero(codes < len(have) - 1), np.flatnonzero(codes > 0)
            total += s[up] @ cp.logistic(z[up] - th[codes[up]]) + s[down] @ cp.logistic(th[codes[down] - 1] - z[down])
            if len(have) > 2:
                mass = np.bincount(codes, s)[1:-1]
                total -= mass @ cp.log(1 - cp.exp(-cp.diff(th)))
        penalised = cp.vstack([0 * w[j] if self.free[j] else w[j] for j in range(D)])
        objective = total / self.n_bar + alpha * self.norm(penalised) + self.quadratic(penalised)
        problem = cp.Problem(cp.Minimize(objective))
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        return problem.value

    def value(self, coef, thresholds, alpha):
        w = cp.Constant(np.where(self.free, 0.0, coef).T)
        other = alpha * self.norm(w) + self.quadratic(w)
        other = cp.Problem(cp.Minimize(other)).solve(solver="CLARABEL") if other.variables() else other.value
        return self.loss(coef, thresholds) + float(other)


def tail(threshold, score):
    if np.isinf(threshold):
        return wide(float(threshold > 0))
    return 1 / (1 + np.exp(score - wide(threshold)))


def solve_and_compare(penalty, quadratic, kind):
    rng = np.random.default_rng([list(PENALTIES).index(penalty), QUADRATICS.index(quadratic), KINDS.index(kind)])
    x, y, task, fit, params = make(kind, rng)
    params |= {"none": {}, "ridge": {"ridge": 0.3}, "graph": {"task_graph": "chain", "graph_strength": 0.4}}[quadratic]
    member, norm = PENALTIES[penalty]
    model = ts.MultiTaskOrdinal(penalty=member, tol=1e-9, n_jobs=1, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about tasks with one class, scales of columns
        model.alpha = float(rng.choice([0.5, 0.2, 0.05])) * model.alpha_max(x, y, task=task, **fit)
        model.fit(x, y, task=task, **fit)
        oracle = Oracle(norm, x, y, task, fit, params)
        best = oracle.solve(model.alpha)
    own, scale = oracle.value(model.coef_, model.thresholds_, model.alpha), model.null_objective_
    accuracy = 1e-7 if penalty == "dirty" else 1e-11  # a norm that the oracle itself minimises
    assert model.objective_ == pytest.approx(own, abs=accuracy * scale)
    assert model.dual_gap_ <= 1e-9 * scale
    assert own <= best + 1e-8 * scale
    assert model.objective_ - model.dual_gap_ <= best + 1e-8 * scale
    assert not model.intercept_.any()
    return model


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("quadratic", QUADRATICS)
@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", KINDS)
def test_solutions_and_gaps(penalty, quadratic, kind):
    if penalty == "owl" and kind == "unpenalised":
        pytest.skip("sorted penalties weigh ranks, not features")
    model = solve_and_compare(penalty, quadratic, kind)
    if kind == "one class":
        assert model.thresholds_[1].tolist() == [-np.inf, -np.inf, np.inf]
        assert not model.coef_[1].any() or quadratic == "graph"
    if kind == "empty classes":
        assert model.thresholds_[0][0] == model.thresholds_[0][1]
        assert model.thresholds_[1][0] == -np.inf
        assert model.thresholds_[2].tolist()[1:] == [np.inf, np.inf]
