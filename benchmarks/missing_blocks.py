"""Blocks of columns that some rows lack: patterns as tasks against complete cases.

    python benchmarks/missing_blocks.py [draws]

The design was written down, and committed, before the first run. Four blocks of 300 features, as four instruments have
them (correlations 0.5^|i - j| within a block, none between blocks); five features of each block matter, with
coefficients of random sign between 0.3 and 0.7; noise of standard deviation 1.5. Of 600 rows 240 are complete, and 90
lack each of the blocks: 60 % of the rows are incomplete. 1,000 further complete rows are held out.

- `complete`: `MultiTaskLassoCV` on the 240 complete rows.
- `patterns`: `MultiTaskLassoCV` on `ts.by_pattern` of all 600 rows: five tasks, the complete rows one of them.
- `mean fill`: `MultiTaskLassoCV` on all rows, means of the columns in the place of what is missing; beside the promise,
  for who has to choose.

All choose alpha by the same rule (5 folds, 50 values down to 0.05 alpha_max). Reported for each draw: R2 on the
held-out rows and the features selected (of them the true ones, of 20); and once how much is stored and multiplied.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

import tasksieve as ts

BLOCKS, WIDTH, TRUE, ROWS, COMPLETE, HELD_OUT, NOISE = 4, 300, 5, 600, 240, 1000, 1.5
GRID: dict[str, Any] = {"n_alphas": 50, "eps": 0.05, "cv": 5, "random_state": 0}


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows with holes, their responses, held-out rows with theirs, and the features that matter."""
    rng = np.random.default_rng(seed)
    n, d = ROWS + HELD_OUT, BLOCKS * WIDTH
    X = rng.standard_normal((n, d))
    for j in range(d):
        if j % WIDTH:
            X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    true = np.concatenate([b * WIDTH + rng.choice(WIDTH, TRUE, replace=False) for b in range(BLOCKS)])
    w = rng.choice([-1.0, 1.0], len(true)) * rng.uniform(0.3, 0.7, len(true))
    y = X[:, true] @ w + NOISE * rng.standard_normal(n)
    holes = X[:ROWS].copy()
    lacking = (ROWS - COMPLETE) // BLOCKS
    for b in range(BLOCKS):
        first = COMPLETE + b * lacking
        holes[first : first + lacking, b * WIDTH : (b + 1) * WIDTH] = np.nan
    order = rng.permutation(ROWS)
    return holes[order], y[:ROWS][order], X[ROWS:], y[ROWS:], np.sort(true)


def r2(y: np.ndarray, predicted: np.ndarray) -> float:
    return float(1.0 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))


def fitted(seed: int) -> dict[str, tuple[float, int, int]]:
    """Of each model R2 on the held-out rows, features selected, and true ones among them."""
    X, y, X_new, y_new, true = draw(seed)
    whole = ~np.isnan(X).any(axis=1)
    rows = ts.by_pattern(X)
    found = {}

    def record(name: str, model: Any, predicted: np.ndarray) -> None:
        chosen = model.get_support(indices=True)
        found[name] = (r2(y_new, predicted), len(chosen), len(np.intersect1d(chosen, true)))

    model = ts.MultiTaskLassoCV(**GRID).fit(X[whole], y[whole])
    record("complete", model, model.predict(X_new))
    model = ts.MultiTaskLassoCV(**GRID).fit(rows, y)
    assert rows.n_rows == len(X)
    assert not model.coef_[~model.present_].any()
    record("patterns", model, model.predict(ts.by_pattern(X_new)))
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    model = ts.MultiTaskLassoCV(**GRID).fit(filled, y)
    record("mean fill", model, model.predict(X_new))
    return found


def counts() -> str:
    """What is stored and multiplied, against one zero column for each that is absent."""
    X, y, *_ = draw(0)
    rows = ts.by_pattern(X)
    order = np.argsort(rows.task, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows.codes))])
    storage = rows.in_task_order(order, offsets)
    storage.products(np.ones(len(y)), offsets, False, None, False, 1)
    present = int((~np.isnan(X)).sum())
    return (
        f"Of {X.size:,} entries {present:,} are present; stored are {storage.entries:,}, and a pass multiplies "
        f"{storage.multiplied:,}."
    )


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    warnings.simplefilter("ignore")
    names, better, table = ("complete", "patterns", "mean fill"), 0, []
    print("| draw | " + " | ".join(f"R2 {name}" for name in names) + " | selected (true) |")
    print("|---" * (len(names) + 2) + "|")
    for seed in range(draws):
        found = fitted(seed)
        better += found["patterns"][0] >= found["complete"][0]
        table.append([found[name][0] for name in names])
        numbers = " | ".join(f"{found[name][0]:.4f}" for name in names)
        chosen = ", ".join(f"{found[name][1]} ({found[name][2]})" for name in names)
        print(f"| {seed} | {numbers} | {chosen} |", flush=True)
    print("| mean | " + " | ".join(f"{value:.4f}" for value in np.mean(table, axis=0)) + " | |")
    print(f"\nR2 of patterns at least that of complete cases in {better} of {draws} draws.")
    print(counts())


if __name__ == "__main__":
    main()
