"""Balls from sums reject nothing that the optimum uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.federated.balls import gap_spheres, outside_spheres

Array = np.ndarray[Any, Any]


def problem(seed: int, ridge: float) -> tuple[list[Array], list[Array], float, list[Array], Array]:
    """Rows without intercepts, those of the ridge below them; a strength; the optimal residual, and s."""
    rng = np.random.default_rng(seed)
    d, tasks = 30, 3
    X = [rng.standard_normal((int(rng.integers(8, 20)), d)) * rng.uniform(0.3, 2.0, d) for _ in range(tasks)]
    y = [x[:, :3] @ rng.standard_normal(3) + 0.3 * rng.standard_normal(len(x)) for x in X]
    if ridge:
        X = [np.vstack([x, np.sqrt(ridge) * np.eye(d)]) for x in X]
        y = [np.concatenate([b, np.zeros(d)]) for b in y]
    lam = float(np.max(levels(X, y))) * rng.uniform(0.2, 0.9)
    n = float(np.mean([len(b) for b in y]))
    W = ts.MultiTaskLasso(alpha=lam / n, fit_intercept=False, tol=1e-12).fit(X, y).coef_
    s = np.linalg.norm(W, axis=0) / lam
    return X, y, lam, [b - x @ w for x, b, w in zip(X, y, W, strict=True)], s


def products(X: list[Array], u: list[Array]) -> Array:
    return np.stack([x.T @ v for x, v in zip(X, u, strict=True)], axis=1)


def levels(X: list[Array], u: list[Array]) -> Array:
    return np.linalg.norm(products(X, u), axis=1)


def dot(a: list[Array], b: list[Array]) -> float:
    return float(sum(x @ y for x, y in zip(a, b, strict=True)))


def adversaries(u: list[Array], y: list[Array], best: list[Array], rng: Any) -> list[Array]:
    """Columns of features: random ones, and such as point from likely centres of balls to the optimum."""
    directions = [
        [v - a * p - b * q for v, p, q in zip(best, u, y, strict=True)]
        for a in np.linspace(0.0, 1.2, 7)
        for b in np.linspace(-0.5, 0.5, 7)
    ]
    noise = [rng.standard_normal((20, len(v))) for v in best]
    return [np.column_stack([*(d[t] for d in directions), *noise[t]]) for t in range(len(best))]


@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_balls_hold_the_optimum(ridge: float) -> None:
    """No column whatsoever has a bound below its level at the optimum."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y, lam, best, s_best = problem(seed, ridge)
        yy = dot(y, y)
        optimum = 0.5 * dot(best, best) + lam * float(s_best @ levels(X, best))
        for noise in (2.0, 0.3, 0.03, 0.0):
            s = s_best * np.exp(noise * rng.standard_normal(len(s_best)))
            u = [np.linalg.solve(np.eye(len(b)) + (x * s) @ x.T, b) for x, b in zip(X, y, strict=True)]
            size, square, product = levels(X, u), dot(u, u), dot(y, u)
            penalty = lam * float(s @ size)
            scale = min(product / square, lam / size.max())
            primal, dual = 0.5 * square + penalty, scale * product - 0.5 * scale**2 * square
            assert primal >= optimum * (1 - 1e-9)
            V = adversaries(u, y, best, rng)
            lengths = np.max([np.linalg.norm(v, axis=0) for v in V], axis=0)
            strengths = levels(V, best) * (1 - 1e-9)
            spheres = gap_spheres(primal, dual, optimum, optimum, scale, (1 - scale) ** 2 * square, 0.5 * yy)
            assert not outside_spheres(levels(V, u), lengths, strengths, spheres).any()


def test_balls_reject_where_the_point_is_good() -> None:
    X, y, lam, best, s = problem(0, 0.0)
    lengths = np.max([np.linalg.norm(x, axis=0) for x in X], axis=0)
    size, square, product = levels(X, best), dot(best, best), dot(y, best)
    scale = min(product / square, lam / size.max())
    primal = 0.5 * square + lam * float(s @ size)
    dual, strengths = scale * product - 0.5 * scale**2 * square, np.full(len(s), lam)
    spheres = gap_spheres(primal, dual, primal, dual, scale, (1 - scale) ** 2 * square, 0.5 * dot(y, y))
    rejected = outside_spheres(size, lengths, strengths, spheres)
    assert rejected.sum() >= 0.8 * np.sum(s == 0.0)
    assert not np.any(s[rejected])


def test_spheres_about_what_is_not_known_are_left_out() -> None:
    assert gap_spheres(2.0, -np.inf, 1.5, -np.inf, 0.5, 0.0, 1.0) == []
    assert [centre for centre, _ in gap_spheres(2.0, -np.inf, 1.5, 1.0, 0.5, 0.0, 1.0)] == [1.0]
