"""Dual points are feasible however badly intercepts and unpenalised coefficients were solved for: no gap is a lie."""

from __future__ import annotations

import numpy as np
import pytest
from exact_numbers import soft_plus, wide

from tasksieve.design import DenseStorage, Design
from tasksieve.losses import Huber, Logistic, Poisson, Quantile, SmoothedHinge, SquaredHinge
from tasksieve.losses.rowwise import RowLossOnData
from tasksieve.path import Problem, solve_path
from tasksieve.proof.prove import prove

LOSSES = [Huber(0.5), Quantile(0.7, 0.3), SquaredHinge(), SmoothedHinge(0.5), Logistic(), Poisson()]
SLOPPY = (0.0, 1e-13, 1e-9, 1e-5, 1e-3, 0.03, 0.3, 1.0)
OFFSETS = np.array([0, 14, 30])
TASK = np.repeat([0, 1], np.diff(OFFSETS))


def make_problem(loss, rng):
    """Intercepts and one unpenalised column, weights; the last columns are a duplicate and a constant."""
    x = rng.standard_normal((30, 7))
    x[:, 5], x[:, 6] = x[:, 4], 1.0
    z = x[:, 0] - x[:, 1] + 0.8 * x[:, 3] + rng.standard_normal(30)
    y = {"signs": np.where(z > 0, 1.0, -1.0), "counts": rng.poisson(np.exp(0.5 * z)).astype(float)}.get(loss.labels, z)
    weights = rng.uniform(0.3, 2.0, 30)
    storage = DenseStorage(np.asfortranarray(x))
    design = Design(storage, OFFSETS, weights=weights, unpenalised=np.array([3]), n_threads=1)
    feature_weights = np.ones(7)
    feature_weights[3] = 0.0
    return x, y, weights, Problem(design, y, loss=loss, feature_weights=feature_weights)


def objective(loss, x, y, weights, coef, intercept, lam):
    """From the definition, in forty digits."""
    z = np.sum(wide(x) * coef[TASK], axis=1) + intercept[TASK]
    norms = np.sqrt(np.sum(np.square(wide(np.delete(coef, 3, axis=1))), axis=0))
    values = {
        Huber: lambda: _clipped(y - z, -0.5, 0.5, 1.0),
        Quantile: lambda: _clipped(y - z, 0.7 - 1.0, 0.7, 0.3),
        SmoothedHinge: lambda: _clipped(1 - y * z, 0.0, 1.0, 0.5),
        SquaredHinge: lambda: np.maximum(1 - y * z, 0) ** 2 / 2,
        Logistic: lambda: soft_plus(-y * z),
        Poisson: lambda: np.exp(z) - y * z,
    }[type(loss)]()
    return float(weights @ values + lam * norms.sum())


def _clipped(r, low, high, mu):
    p = np.clip(r / mu, low, high)
    return p * r - mu * p * p / 2


def taken(monkeypatch, problem, x, coef, intercept):
    """Intercepts and unpenalised coefficients are taken as they were given, nothing is minimised."""
    given = np.sum(x * coef[TASK], axis=1) + (intercept - problem.loss.shift)[TASK]
    monkeypatch.setattr(type(problem.loss), "_best_nuisance", lambda self, raw, start: given - raw)


def judge(monkeypatch, loss, seeds):
    """Points, gaps below the truth, wrong zeros, gaps that were useful."""
    points = lies = wrong = useful = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        x, y, weights, problem = make_problem(loss, rng)
        lam = float(rng.choice([0.6, 0.2, 0.05])) * problem.lambda_max()
        best = solve_path(problem, [lam], tol=1e-10, screening=None).points[0]
        coef = np.zeros((2, 7))
        coef[:, best.features] = best.rows.T
        low = objective(loss, x, y, weights, coef, best.intercept, lam)
        for size in SLOPPY:
            blurred = coef * (1.0 + rng.choice([0.0, 1e-3, 0.1]) * rng.standard_normal(coef.shape))
            blurred[:, 3] += size * rng.standard_normal(2)
            intercept = best.intercept + size * rng.standard_normal(2)
            with monkeypatch.context() as patch:
                taken(patch, problem, x, blurred, intercept)
                proof = prove(problem, lam, blurred, intercept)
            value = objective(loss, x, y, weights, blurred, intercept, lam)
            assert proof.objective == pytest.approx(value, rel=1e-11, abs=1e-11)
            points += 1
            lies += bool(not np.isfinite(proof.dual_gap) or value - low > proof.dual_gap + 1e-13 * abs(value))
            wrong += bool(np.any(proof.zero_rows & (np.abs(coef).max(axis=0) > 1e-4)))
            useful += bool(proof.dual_gap < 0.2 * problem.loss.null.value)
    return points, lies, wrong, useful


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 24), marks=pytest.mark.slow)], ids=["few", "many"])
def test_gaps_are_never_below_the_truth(monkeypatch, loss, seeds):
    points, lies, wrong, useful = judge(monkeypatch, loss, seeds)
    assert points == 8 * len(seeds)
    assert lies == 0
    assert wrong == 0
    assert useful > points // 4


def test_without_the_repair_they_are(monkeypatch):
    """The test above sees it: residuals taken for dual points as they are."""
    from dataclasses import replace

    def unrepaired(self, at):
        none = np.zeros(self.design.n_tasks)
        return replace(at, residual=at.slope, leak=none, tilt=none, lengths=self.design.task_norms(at.slope))

    monkeypatch.setattr(RowLossOnData, "settled", unrepaired)
    assert sum(judge(monkeypatch, loss, range(4))[1] for loss in (Huber(0.5), Logistic(), Poisson())) > 0
