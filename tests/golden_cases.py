"""Small paths of every batch model, to hold one version of the engine against another.

``python tests/golden_cases.py FILE`` solves them and writes what `test_golden.py` compares; the file in the
repository was made by version 0.1.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import tasksieve as ts

TOLERANCES = (1e-6, 1e-11)
N_ALPHAS, EPS = 8, 0.05


def _stacked(rng: np.random.Generator, d: int, rows: tuple[int, ...], noise: float = 0.5) -> tuple[Any, Any, Any]:
    task = np.repeat(np.arange(len(rows)), rows)
    x = rng.standard_normal((len(task), d)) + rng.standard_normal(d)
    x[:, 7] = x[:, 3] + 0.05 * rng.standard_normal(len(task))
    x[:, 11] = 0.0
    w = np.zeros((d, len(rows)))
    w[:9] = rng.standard_normal((9, len(rows)))
    y = np.einsum("ij,ji->i", x, w[:, task]) + noise * (1.0 + task) * rng.standard_normal(len(task))
    return x, y, task


def _shared(rng: np.random.Generator, d: int, n: int, tasks: int) -> tuple[Any, Any]:
    x = rng.standard_normal((n, d)) + rng.standard_normal(d)
    w = np.zeros((d, tasks))
    w[:8] = rng.standard_normal((8, tasks))
    return x, x @ w + 0.5 * rng.standard_normal((n, tasks))


def cases() -> dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """Name -> (model, arguments, keywords of `path`)."""
    rng = np.random.default_rng(20240101)
    x, y, task = _stacked(rng, 400, (25, 40, 31))
    sx, sy = _shared(rng, 350, 45, 4)
    labels = np.where(y > np.array([np.median(y[task == t]) for t in range(3)])[task], "yes", "no")
    weight = rng.uniform(0.2, 2.0, len(y))
    missing = sy.copy()
    missing[rng.random(sy.shape) < 0.15] = np.nan
    feature_weights = rng.uniform(0.5, 2.0, x.shape[1])
    feature_weights[[5, 20]] = 0.0
    classes = np.argmax(sy[:, :3], axis=1)
    own = {"task": task}
    lasso, net, group = ts.MultiTaskLasso, ts.MultiTaskElasticNet, ts.MultiTaskSparseGroupLasso
    return {
        "lasso": (lasso(), (x, y), own),
        "lasso-few-features": (lasso(), (x[:, :60], y), own),
        "lasso-weights": (lasso(task_weights="balanced"), (x, y), own | {"sample_weight": weight}),
        "lasso-unpenalised": (lasso(feature_weights=feature_weights), (x, y), own),
        "lasso-positive": (lasso(positive=True), (x, y), own),
        "lasso-standardize": (lasso(standardize=True), (x, y), own),
        "lasso-no-intercept": (lasso(fit_intercept=False), (x, y), own),
        "lasso-no-screening": (lasso(screening=None), (x, y), own),
        "lasso-gap": (lasso(screening="gap"), (x, y), own),
        "lasso-published": (lasso(screening="dpc-published"), (x, y), own),
        "lasso-shared": (lasso(), (sx, sy), {}),
        "lasso-missing": (lasso(), (sx, missing), {}),
        "lasso-one-task": (lasso(), (sx, sy[:, 0]), {}),
        "elastic-net": (net(l1_ratio=0.7), (x, y), own),
        "elastic-net-shared": (net(l1_ratio=0.3), (sx, sy), {}),
        "sparse-group": (group(l1=0.4), (x, y), own),
        "sparse-group-l1-only": (group(l1=1.0, group=0.0), (x, y), own),
        "sparse-group-logistic": (group(l1=0.3, loss="logistic"), (x, labels), own),
        "logistic": (ts.MultiTaskLogisticRegression(), (x, labels), own),
        "logistic-weights": (ts.MultiTaskLogisticRegression(), (x, labels), own | {"sample_weight": weight}),
        "calibrated": (ts.CalibratedMultiTaskLasso(), (x, y), own),
        "calibrated-ridge": (ts.CalibratedMultiTaskLasso(l2=0.05), (x, y), own),
        "calibrated-shared": (ts.CalibratedMultiTaskLasso(), (sx, sy), {}),
        "calibrated-positive": (ts.CalibratedMultiTaskLasso(positive=True, max_iter=2000), (x, y), own),
        "owl-oscar": (ts.MultiTaskOWL(), (x, y), own),
        "owl-slope-shared": (ts.MultiTaskOWL(weights="slope"), (sx, sy), {}),
        "owl-positive": (ts.MultiTaskOWL(positive=True), (x, y), own),
        "multinomial-owl": (ts.MultinomialOWL(), (sx, classes), {}),
    }


def loose(name: str) -> bool:
    """Models whose first-order solver is not meant for 1e-11: compared at the loose tolerance alone."""
    return name == "calibrated-positive"


def first_order(name: str) -> bool:
    """Models that reach 1e-11 on some machines and stop at `max_iter` on others: compared within their gaps."""
    return name == "multinomial-owl"


def solve(name: str, tol: float) -> dict[str, np.ndarray]:
    model, arguments, keywords = cases()[name]
    path = model.set_params(tol=tol).path(*arguments, **keywords, n_alphas=N_ALPHAS, eps=EPS)
    sizes = np.stack([np.sqrt(np.asarray(path.coef(k).power(2).sum(axis=0))).ravel() for k in range(len(path.alphas))])
    return {
        "alphas": path.alphas,
        "objectives": path.objectives,
        "gaps": path.dual_gaps,
        "null": np.array(path.null_objective),
        "row_norms": sizes.astype(np.float32),
    }


if __name__ == "__main__":
    stored: dict[str, np.ndarray] = {}
    for name in cases():
        for tol in TOLERANCES:
            if tol < 1e-8 and loose(name):
                continue
            found = solve(name, tol)
            print(f"{name:24s} tol {tol:g}: worst gap / null {np.max(found['gaps'] / found['null']):.1e}")
            stored |= {f"{name}/{tol:g}/{key}": value for key, value in found.items()}
    np.savez_compressed(sys.argv[1], **stored)
