"""Wang & Ye's system at the public door, held against one written from the paper with NumPy alone.

Theorems 5, 7, 8 and Corollary 9, in the paper's own scale (theta), with exact optima from a plain solver. The paper's
slips are mended as Wang's formulas require: the Hessian of Theorem 7 is made of squared norms, its poles lie at the
squared norms, and Corollary 9 begins at lambda_max.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.path import policy

Array = np.ndarray[Any, Any]


# --- the paper, in NumPy -------------------------------------------------------------------------------------------


def gradient_rows(x: Array, residual: Array) -> Array:
    """<x_jt, r_t>, of shape (d, T); x is (T, n, d)."""
    return np.einsum("tnd,tn->dt", x, residual)


def largest_over_ball(products: Array, norms: Array, radius: float) -> Array:
    """Theorem 7: max of sum_t <x_jt, theta_t>^2 over a ball, by bisection of the secular equation."""
    b, a2 = np.abs(products), norms**2
    top = a2.max(axis=1)
    if radius == 0.0:
        return np.sum(b**2, axis=1)
    ab = norms * b
    low, high = top * (1.0 + 1e-14), top + np.linalg.norm(ab, axis=1) / radius + 1e-300
    for _ in range(100):
        middle = 0.5 * (low + high)
        too_long = np.linalg.norm(ab / (middle[:, None] - a2), axis=1) > radius
        low, high = np.where(too_long, middle, low), np.where(too_long, high, middle)
    return high * radius**2 + np.sum(high[:, None] * b**2 / (high[:, None] - a2), axis=1)


def dpc(x: Array, y: Array, theta0: Array, lam0: float, lam: float, lam_max: float) -> Array:
    """Theorem 8: rows that are zero at lam, from the exact dual optimum at lam0."""
    if lam0 < lam_max:
        n = y / lam0 - theta0
    else:
        products = gradient_rows(x, y / lam_max)
        hardest = int(np.argmax(np.linalg.norm(products, axis=1)))
        n = 2.0 * products[hardest][:, None] * x[:, :, hardest]
    r = y / lam - theta0
    across = r - np.vdot(n, r) / np.vdot(n, n) * n
    centre, radius = theta0 + 0.5 * across, 0.5 * float(np.linalg.norm(across))
    return largest_over_ball(gradient_rows(x, centre), np.linalg.norm(x, axis=1).T, radius) < 1.0


def exact_rows(x: Array, y: Array, lam: float, start: Array) -> Array:
    """1/2 ||y - XW||^2 + lam sum_j ||w_j||, by accelerated proximal gradient with restarts on a growing set."""
    rows = start.copy()
    inside = np.zeros(len(rows), dtype=bool)
    while True:
        residual = y - np.einsum("tnd,dt->tn", x, rows)
        inside |= rows.any(axis=1) | (np.linalg.norm(gradient_rows(x, residual), axis=1) > lam)
        chosen = np.flatnonzero(inside)
        rows[chosen] = _on_set(np.ascontiguousarray(x[:, :, chosen]), y, lam, rows[chosen])
        residual = y - np.einsum("tnd,dt->tn", x, rows)
        gauges = np.linalg.norm(gradient_rows(x, residual), axis=1)
        if gauges[~inside].max(initial=0.0) <= lam:
            theta = residual / max(lam, gauges.max())
            value = 0.5 * np.vdot(residual, residual) + lam * np.linalg.norm(rows, axis=1).sum()
            dual = 0.5 * np.vdot(y, y) - 0.5 * lam**2 * np.sum((theta - y / lam) ** 2)
            assert value - dual <= 1e-10 * np.vdot(y, y)
            return rows


def _on_set(x: Array, y: Array, lam: float, rows: Array) -> Array:
    back = np.ascontiguousarray(x.transpose(0, 2, 1))
    step = 1.0 / max(np.linalg.norm(own, 2) for own in x) ** 2
    ahead, momentum, w = rows.T.copy(), 1.0, rows.T.copy()
    for _ in range(200_000):
        moved = ahead + step * (back @ (y[:, :, None] - x @ ahead[:, :, None]))[:, :, 0]
        length = np.linalg.norm(moved, axis=0)
        new = moved * np.maximum(1.0 - step * lam / np.maximum(length, 1e-300), 0.0)
        if np.vdot(ahead - new, new - w) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        change = new - w
        ahead, momentum, w = new + (momentum - 1.0) / following * change, following, new
        if np.linalg.norm(change) <= 1e-12 * np.linalg.norm(w):
            break
    return w.T


def paper_ratios(x: Array, y: Array, lams: Array) -> Array:
    """Corollary 9 down a path: rows rejected / rows that are zero."""
    lam_max = float(np.linalg.norm(gradient_rows(x, y), axis=1).max())
    ratios, rows, lam0, theta0 = [], np.zeros((x.shape[2], len(x))), lam_max, y / lam_max
    for lam in lams:
        if lam >= lam_max * (1.0 - 1e-12):
            ratios.append(1.0)
            continue
        rejected = dpc(x, y, theta0, lam0, float(lam), lam_max)
        rows = exact_rows(x, y, float(lam), rows)
        zero = ~rows.any(axis=1)
        assert not (rejected & ~zero).any()
        ratios.append(np.count_nonzero(rejected) / np.count_nonzero(zero))
        lam0, theta0 = float(lam), (y - np.einsum("tnd,dt->tn", x, rows)) / lam
    return np.array(ratios)


# --- the door ------------------------------------------------------------------------------------------------------


@cache
def _problem(
    kind: int, tasks: int, rows: int, features: int, unlike: bool = False
) -> tuple[Array, Array, Array]:
    X, y, task, _ = ts.datasets.make_wang_synthetic(kind, tasks, rows, features, random_state=kind)
    assert task is not None
    if unlike:  # column norms that differ between tasks: where the largest one of them says too little
        X = np.asfortranarray(X * np.random.default_rng(5).uniform(0.3, 2.0, tasks)[task][:, None])
    return X, y, task


def in_paper_units(X: Array, y: Array, task: Array, model: Any) -> tuple[Array, Array, float]:
    """Matrices and targets of the tasks as the paper takes them, and lambda / alpha."""
    tasks = int(task.max()) + 1
    x, targets = X.reshape(tasks, -1, X.shape[1]).copy(), y.reshape(tasks, -1).copy()
    if model.fit_intercept:
        x -= x.mean(axis=1, keepdims=True)
        targets -= targets.mean(axis=1, keepdims=True)
    if model.standardize:
        x /= np.sqrt(np.mean((x - x.mean(axis=1, keepdims=True)) ** 2, axis=1, keepdims=True))
    return x, targets, float(x.shape[1])


CASES = {
    "synthetic 1": ((1, 10, 30, 400), {"fit_intercept": False}, 0.8, 10),
    "synthetic 2, intercepts": ((2, 10, 30, 400), {}, 0.8, 10),
    "unlike tasks": ((1, 6, 20, 300, True), {"fit_intercept": False}, 0.9, 15),
    "standardised": ((2, 6, 20, 300, True), {"standardize": True}, 0.9, 15),
}


@pytest.mark.parametrize("name", CASES)
def test_rejection_ratios_are_those_of_the_paper(name: str) -> None:
    made, options, factor, count = CASES[name]
    X, y, task = _problem(*made)
    model = ts.MultiTaskLasso(screening="dpc-published", tol=1e-10, **options)
    x, targets, unit = in_paper_units(X, y, task, model)
    alphas = model.alpha_max(X, y, task=task) * factor ** np.arange(count)
    expected = paper_ratios(x, targets, alphas * unit)
    path = model.path(X, y, task=task, alphas=alphas)
    assert path.converged.all()
    np.testing.assert_allclose(path.rejection_ratios, expected, atol=0.005)
    assert 0.05 < expected[1:].mean() < 0.95  # or little is compared
    rejected = np.round(path.rejection_ratios * (X.shape[1] - path.n_selected)).astype(int)
    # all that is left is solved for
    assert [point.n_working for point in path._points][1:] == (X.shape[1] - rejected)[1:].tolist()


def test_bounds_from_past_passes_prove_less() -> None:
    """The default counts what bounds from past passes prove, which jumps; the published rule does not."""
    X, y, task = _problem(1, 10, 30, 400)
    model = ts.MultiTaskLasso(tol=1e-10, fit_intercept=False)
    alphas = model.alpha_max(X, y, task=task) * 0.8 ** np.arange(10)
    published = model.set_params(screening="dpc-published").path(X, y, task=task, alphas=alphas)
    by_bounds = model.set_params(screening="dpc").path(X, y, task=task, alphas=alphas)
    assert np.max(np.abs(np.diff(published.rejection_ratios[3:]))) < 0.2
    assert np.min(by_bounds.rejection_ratios - published.rejection_ratios) < -0.1
    np.testing.assert_allclose(published.objectives, by_bounds.objectives, rtol=1e-9)


@pytest.mark.parametrize(
    "at", ["one combination of anchors for all tasks", "sparse", "one matrix", "float32"]
)
def test_it_is_the_same_wherever_bounds_come_from(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, task = _problem(1, 6, 20, 300, True)
    if at.startswith("one combination"):
        monkeypatch.setattr(policy, "JOINT_BOUNDS", 1)
    given: Any = X
    if at == "sparse":
        given = pytest.importorskip("scipy.sparse").csc_array(X)
    elif at == "float32":
        given = X.astype(np.float32)
        X = given.astype(np.float64)
    model = ts.MultiTaskLasso(screening="dpc-published", tol=1e-10, fit_intercept=False)
    if at == "one matrix":
        shared, targets = X[:40], y.reshape(6, 20).repeat(2, axis=1).T
        x, labels = np.repeat(shared[None], 6, axis=0), np.ascontiguousarray(targets.T)
        arguments: tuple[Any, ...] = shared, targets
        keywords: dict[str, Any] = {}
    else:
        x, labels, _ = in_paper_units(X, y, task, model)
        arguments, keywords = (given, y), {"task": task}
    alphas = model.alpha_max(*arguments, **keywords) * 0.9 ** np.arange(12)
    path = model.path(*arguments, **keywords, alphas=alphas)
    np.testing.assert_allclose(
        path.rejection_ratios, paper_ratios(x, labels, alphas * x.shape[1]), atol=0.005
    )


def test_a_single_value_begins_at_alpha_max() -> None:
    X, y, task = _problem(1, 10, 30, 400)
    model = ts.MultiTaskLasso(screening="dpc-published", tol=1e-10, fit_intercept=False)
    x, targets, unit = in_paper_units(X, y, task, model)
    top = model.alpha_max(X, y, task=task)
    for alpha in (0.9 * top, 0.8 * top):
        path, expected = (
            model.path(X, y, task=task, alphas=[alpha]),
            paper_ratios(x, targets, np.array([alpha * unit])),
        )
        np.testing.assert_allclose(path.rejection_ratios, expected, atol=0.005)
        assert 0.0 < path.rejection_ratios[0] < 1.0
    fitted = model.set_params(alpha=0.8 * top).fit(X, y, task=task)
    np.testing.assert_allclose(fitted.objective_, path.objectives[0], rtol=1e-9)


def test_the_path_of_a_cross_validated_model_has_them_too() -> None:
    X, y, task = _problem(1, 6, 20, 300, True)
    grid = ts.MultiTaskLasso().alpha_max(X, y, task=task) * 0.9 ** np.arange(8)
    chosen = ts.MultiTaskLassoCV(alphas=grid, screening="dpc-published", tol=1e-10, cv=2).fit(X, y, task=task)
    x, targets, unit = in_paper_units(X, y, task, chosen)
    np.testing.assert_allclose(
        chosen.path_.rejection_ratios, paper_ratios(x, targets, grid * unit), atol=0.005
    )


def test_weights_are_scales_of_columns_and_rows() -> None:
    """A feature's weight divides its columns, a task's weight is the root's square of its rows."""
    X, y, task = _problem(2, 6, 20, 300, True)
    rng = np.random.default_rng(2)
    own, of_task = rng.uniform(0.5, 2.0, X.shape[1]), rng.uniform(0.5, 2.0, 6)
    model = ts.MultiTaskLasso(
        screening="dpc-published", tol=1e-10, fit_intercept=False, feature_weights=own, task_weights=of_task
    )
    x, targets, unit = in_paper_units(X, y, task, model)
    root = np.sqrt(of_task)
    alphas = model.alpha_max(X, y, task=task) * 0.9 ** np.arange(8)
    path = model.path(X, y, task=task, alphas=alphas)
    expected = paper_ratios(x / own * root[:, None, None], targets * root[:, None], alphas * unit)
    np.testing.assert_allclose(path.rejection_ratios, expected, atol=0.005)


@pytest.mark.parametrize(
    "make",
    [
        lambda **options: ts.MultiTaskElasticNet(l1_ratio=1.0, **options),
        lambda **options: ts.MultiTaskSparseGroupLasso(l1=0.0, group=2.0, **options),
        lambda **options: ts.MultiTaskRegressor("squared", "l21", **options),
    ],
    ids=["elastic net", "sparse group", "regressor"],
)
def test_every_door_is_the_same_rule(make: Any) -> None:
    X, y, task = _problem(1, 6, 20, 300, True)
    options: dict[str, Any] = {"screening": "dpc-published", "tol": 1e-10}
    paths = []
    for model in (ts.MultiTaskLasso(**options), make(**options)):
        alphas = model.alpha_max(X, y, task=task) * 0.9 ** np.arange(8)
        paths.append(model.path(X, y, task=task, alphas=alphas))
    np.testing.assert_allclose(paths[1].rejection_ratios, paths[0].rejection_ratios, atol=0.005)
    assert 0.01 < paths[1].rejection_ratios[1:].mean() < 0.99
