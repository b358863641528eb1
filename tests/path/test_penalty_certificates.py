"""Certificates of L1,inf, dirty and group penalties on awkward data, judged in forty digits.

At every accuracy the stored numbers' objective, from its definition, is what the model says up to its gap, and no other
fit of the same problem is below objective minus gap.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from exact_numbers import Wide, wide

import tasksieve as ts
from tasksieve.penalties import Dirty, Groups, LInf

TOLERANCES = (1e-1, 1e-4, 1e-8, 1e-12)


def dirty_norm(row, g, l1):
    """The best of the heights at which a row can be cut into its parts."""
    sizes = np.sort(np.abs(row))[::-1]
    best = l1 * sizes.sum()
    below = np.cumsum((sizes * sizes)[::-1])[::-1]
    for k in range(len(sizes)):
        left = g * g - k * l1 * l1
        if left <= 0:
            break
        height = l1 * np.sqrt(below[k] / left)
        cut = np.minimum(sizes, height)
        best = min(best, g * np.sqrt(np.sum(cut * cut)) + l1 * np.sum(sizes - cut))
    return best


def norm(penalty, rows, u):
    """From the definition, rows and weights in forty digits."""
    if isinstance(penalty, LInf):
        return np.sum(u * np.max(np.abs(rows), axis=1))
    if isinstance(penalty, Dirty):
        g = Wide(rows.shape[1] ** 0.25)
        return sum(weight * dirty_norm(row, g, Wide(1)) for row, weight in zip(rows, u, strict=True))
    total, mix = Wide(0), Wide(penalty.mix)
    for label in np.unique(penalty.labels):
        own = np.asarray(penalty.labels) == label
        squares = rows[own] * rows[own]
        value = np.sqrt(np.sum(squares))
        if penalty.inside == "rows":
            value = (1 - mix) * value + mix * np.sum(np.sqrt(np.sum(squares, axis=1)))
        elif penalty.inside == "entries":
            value = (1 - mix) * value + mix * np.sum(np.abs(rows[own]))
        total += u[own][0] * np.sqrt(wide(np.count_nonzero(own))) * value
    return total


def draw(seed):
    """Few rows, equal and empty columns, offsets, scales, labels far from zero."""
    rng = np.random.default_rng(seed)
    tasks, rows, d = int(rng.integers(1, 5)), int(rng.integers(4, 14)), int(rng.integers(3, 14))
    x = rng.standard_normal((tasks * rows, d))
    if rng.random() < 0.4:
        x[:, 1] = x[:, 0]
    if rng.random() < 0.4:
        x[:, 2] = 0.0
    if rng.random() < 0.4:
        x += 10.0 ** rng.uniform(0, 6) * rng.standard_normal(d)
    if rng.random() < 0.4:
        x *= 10.0 ** rng.uniform(-4, 4, d)
    y = 10 ** rng.uniform(-3, 3) * rng.standard_normal(tasks * rows)
    if rng.random() < 0.5:
        y += 10 ** rng.uniform(0, 5)
    return rng, x, y, np.repeat(np.arange(tasks), rows), rng.integers(0, max(1, d // 2), d)


def examine(seed):
    rng, x, y, task, labels = draw(seed)
    d, rows = x.shape[1], int(np.count_nonzero(task == 0))
    u = rng.uniform(0.3, 2.0, d) if rng.random() < 0.5 else np.ones(d)
    columns, target = wide(x), wide(y)
    for penalty in (LInf(), Dirty(), Groups(labels), Groups(labels, "rows", mix=0.4), Groups(labels, "entries")):
        weights = np.array([u[penalty.whole(np.array([j]))[0]] for j in range(d)])
        options = {
            "penalty": penalty,
            "feature_weights": weights,
            "positive": bool(rng.random() < 0.2),
            "fit_intercept": bool(rng.random() < 0.7),
            "ridge": float(rng.choice([0.0, 0.1])),
            "max_iter": 3000,
            "n_jobs": 1,
        }
        largest = ts.MultiTaskRegressor(**options).alpha_max(x, y, task=task)
        if largest == 0.0:
            continue
        alpha = largest * float(rng.choice([1.0, 0.5, 0.1, 0.01]))
        found = []
        for tol in TOLERANCES:
            model = ts.MultiTaskRegressor(alpha=alpha, tol=tol, **options).fit(x, y, task=task)
            w = wide(model.coef_.T)
            residual = target - np.sum(columns * w.T[task], axis=1) - model.intercept_[task]
            value = residual @ residual / 2 / rows + alpha * norm(penalty, w, wide(weights))
            value += options["ridge"] / 2 * np.sum(w * w)
            assert abs(value - model.objective_) <= model.dual_gap_, (seed, penalty, tol)
            found.append((value, model.dual_gap_))
        lowest = min(value for value, _ in found)
        for value, gap in found:
            assert value - gap <= lowest, (seed, penalty, float(value - lowest), float(gap))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(8))
def test_certificates_are_true(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is not reached, and scales
        examine(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_more_certificates_are_true(part):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(100 + 15 * part, 115 + 15 * part):
            examine(seed)
