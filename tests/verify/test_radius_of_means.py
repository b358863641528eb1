"""Of counts, positive numbers and survival: how near the dual optimum is at least, and the zeros that follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve import verify

Array = np.ndarray[Any, Any]

LOSSES = ["poisson", "negative_binomial:size=2", "gamma", "tweedie:power=1.4", "cox:ties=breslow", "cox:ties=efron"]
D = 6


def problem(loss: str, seed: int, n: int) -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    score = 0.8 * X[:, 0] - 0.6 * X[:, 1] + rng.uniform(-1.0, 2.0)
    mean, noise = np.exp(score), rng.gamma(2.0, 0.5, n)
    if loss.startswith("cox"):
        event = rng.uniform(size=n) < 0.7
        event[0] = True
        y: Any = ts.survival(np.ceil(5.0 * rng.exponential(1.0 / mean)), event)
    else:
        y = {"gamma": mean * noise, "tweedie:power=1.4": rng.poisson(mean) * noise}.get(loss, rng.poisson(mean) + 0.0)
        y[0] = max(y[0], 1.0)
    weight = rng.uniform(0.3, 2.0, n)
    given = {"X": X, "y": y, "sample_weight": weight, "loss": loss, "alpha": 0.05 * 10 ** rng.uniform(-0.5, 1.0)}
    return rng, given


def deep(given: dict[str, Any]) -> tuple[Array, Any]:
    found = ts.grade(np.zeros(D), None, **given, tol=1e-13).polish(tol=1e-13)
    return found.coef, None if given["loss"].startswith("cox") else found.intercept


@pytest.mark.parametrize("exact", [False, True])
def test_divergences_of_means_bound_their_distance(exact: bool) -> None:
    """And of one row hardly too far: nothing is lost there but the width of Bennett's inequality."""
    rng, arith = np.random.default_rng(0), verify.Exact(160) if exact else verify.Floating()
    for n in (1, 5):
        found = ts.grade(np.zeros(1), None, np.ones((n, 1)), np.ones(n), loss="poisson", alpha=1.0, solve=False)
        stated = verify.Certificate(found.certificate.header, found.certificate.arrays)
        rows = [verify.Task(np.ones((n, 1)), np.ones(n), np.ones(n), None)]
        loss = verify.Problem(stated, rows, arith).losses[0]
        for size in (1e-3, 1e-1, 1.0, 5.0):
            mean = rng.uniform(0.1, 10.0, n)
            other = mean * np.exp(size * rng.uniform(0.0, 1.0, n))
            excess = (other - mean) / mean
            gap = float(np.sum(mean * (excess - np.log1p(excess))))
            modulus = float(loss.modulus_of_means(arith.numbers(mean), arith.one(gap)).lo)
            reached = modulus * float(np.sum((mean - other) ** 2)) / (2.0 * gap)
            assert reached <= 1.0 + 1e-6
            assert n > 1 or size > 1.0 or reached > 0.8


@pytest.mark.parametrize("loss", LOSSES)
def test_the_dual_optimum_is_within_the_radius(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Array, float]] = []
    radius = verify.Checker._radius

    def recorded(self: Any, k: int, point: Any, reading: Any, c: Any) -> Any:
        found = radius(self, k, point, reading, c)
        seen.append((float(c) * np.concatenate([v.lo[:, 0] for v in point.v]), float(found)))
        return found

    monkeypatch.setattr(verify.Checker, "_radius", recorded)
    nearest = 0.0
    for seed in range(3):
        rng, given = problem(loss, seed, n=7)
        coef, intercept = deep(given)
        ts.grade(coef, intercept, **given, solve=False)
        best, off = seen[-1]
        for size in (1.0, 0.1, 0.01):
            ts.grade(coef + size * rng.standard_normal(D), intercept, **given, solve=False)
            there, reach = seen[-1]
            distance = float(np.linalg.norm((there - best) / np.sqrt(given["sample_weight"])))
            assert distance <= reach + off
            nearest = max(nearest, distance / reach)
    assert nearest > 0.1  # a radius that is much too small would be seen


@pytest.mark.parametrize("loss", [*LOSSES[:-1], pytest.param(LOSSES[-1], marks=pytest.mark.slow)])
def test_what_is_proved_zero_is_zero_in_a_deep_solution(loss: str) -> None:
    proved = 0
    for seed in range(3):
        rng, given = problem(loss, seed, n=40)
        coef, intercept = deep(given)
        for size in (0.3, 0.03, 0.003):
            rough = coef * (1.0 + size * rng.standard_normal(D))
            found = ts.grade(rough, intercept, **given, solve=False)
            assert not coef[found.proven_zero].any()
            proved += int(found.proven_zero.sum())
        outside = np.flatnonzero(coef == 0.0)
        if len(outside):
            wrong = coef.copy()
            wrong[outside[0]] = 0.01
            found = ts.grade(wrong, intercept, **given, tol=1e-11)
            assert np.flatnonzero(found.wrong_nonzero).tolist() == [outside[0]]
            assert found.verify()
            assert found.verify(exact=True)
            assert not found.certificate.verify(given["X"], given["y"]).proved  # without the weights of rows
    assert proved > 0
