"""Do findings keep their word? Simulated data, where the truth is known.

    python benchmarks/findings.py
    python benchmarks/findings.py --only split

Split inference: how often 90 % intervals hold the true coefficient, beside
the intervals of least squares on the very rows that selected the features; errors are larger where a feature is large.
Knockoffs: share of false features among those selected, at a target of 0.2, and share of true ones that are found.

(The permutation test: `permutations.py`. False selections of stability selection: `stability.py`. Intervals of
comparisons: `compare_coverage.py`.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _common import Report, arguments, say
from scipy.stats import t as student

import tasksieve as ts

LEVEL = 0.9


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=["split", "knockoffs"])
    parser.add_argument("--sets", type=int, default=None, help="data sets of each kind (200 and 60 by default)")
    args = parser.parse_args()
    report = Report("findings", args)
    for name, work, usual in (("split", coverage, 200), ("knockoffs", discoveries, 60)):
        if args.only in (None, name):
            work(report, args.sets or (2 if args.quick else usual), args.seed)
    report.finish()


def coverage(report: Report, sets: int, seed: int) -> None:
    n, n_tasks, d, true = 80, 4, 24, np.array([0, 3, 6])
    task = np.repeat(np.arange(n_tasks), n)
    models: dict[str, Any] = {
        "alpha given": ts.MultiTaskLasso(0.45, n_jobs=1),
        "alpha by cross-validation": ts.MultiTaskLassoCV(n_alphas=15, cv=3, n_jobs=1),
    }
    rows = []
    for name, model in models.items():
        say("split inference,", name)
        split: dict[str, list[bool]] = {"all": [], "false": []}
        naive: dict[str, list[bool]] = {"all": [], "false": []}
        for k in range(sets):
            rng = np.random.default_rng([seed, k])
            X, coef = rng.standard_normal((n * n_tasks, d)), np.zeros((d, n_tasks))
            coef[true] = 0.8 * rng.choice([-1.0, 1.0], (len(true), n_tasks))
            noise = (0.5 + 0.7 * np.abs(X[:, 0])) * rng.standard_normal(len(task))
            y = np.einsum("ij,ij->i", X, coef.T[task]) + noise
            found = ts.split_inference(model, X, y, task=task, random_state=k)
            features, tasks = found.feature, found.task
            if np.isin(true, features).all():  # else the truth is another combination
                truth = coef[features, tasks]
                hit = (found.lower <= truth) & (truth <= found.upper)
                _keep(split, hit, ~np.isin(features, true))
            chosen = model.fit(X, y, task=task).get_support(indices=True)
            if np.isin(true, chosen).all():
                for t in range(n_tasks):
                    low, high = _least_squares(X[task == t][:, chosen], y[task == t])
                    truth = coef[chosen, t]
                    _keep(naive, (low <= truth) & (truth <= high), ~np.isin(chosen, true))
        shares = [f"{np.mean(kept):.3f} ({len(kept):,})" for both in (split, naive) for kept in both.values()]
        rows.append([name, *shares])
    report.table(
        f"{LEVEL:.0%} intervals of coefficients: share that hold the truth (intervals)",
        ["model", "split", "of false features", "least squares on the rows that selected", "of false features"],
        rows,
        f"{n_tasks} tasks x {n} rows x {d} features, {len(true)} of which matter; {sets} data sets.",
    )


def _keep(kept: dict[str, list[bool]], hit: np.ndarray, false: np.ndarray) -> None:
    kept["all"] += hit.tolist()
    kept["false"] += hit[false].tolist()


def _least_squares(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intervals as textbooks have them."""
    a = np.column_stack([np.ones(len(x)), x])
    inverse = np.linalg.inv(a.T @ a)
    found = inverse @ (a.T @ y)
    freedom = len(y) - a.shape[1]
    variance = float(np.sum(np.square(y - a @ found))) / freedom
    wide = student.ppf(0.5 + LEVEL / 2, freedom) * np.sqrt(variance * np.diag(inverse))
    return (found - wide)[1:], (found + wide)[1:]


def discoveries(report: Report, sets: int, seed: int) -> None:
    rows, d = [], 200
    for n_tasks, n, used, rho, strength in (
        (20, 60, 10, 0.0, 0.3),
        (20, 60, 10, 0.5, 0.3),
        (20, 60, 10, 0.8, 0.3),
        (5, 120, 20, 0.5, 0.4),
        (20, 60, 0, 0.5, 0.0),
    ):
        say("knockoffs,", n_tasks, "tasks, correlation", rho, ",", used, "true")
        root = np.linalg.cholesky(rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))).T
        task, own = np.repeat(np.arange(n_tasks), n), ts.KnockoffSelection(ts.MultiTaskLasso(n_jobs=1))
        shares, power = [], []
        for k in range(sets):
            rng = np.random.default_rng([seed, k])
            X, true = rng.standard_normal((n * n_tasks, d)) @ root, rng.permutation(d)[:used]
            coef = np.zeros((n_tasks, d))
            coef[:, true] = strength * rng.standard_normal((n_tasks, used))
            y = np.einsum("ij,ij->i", X, coef[task]) + rng.standard_normal(len(task))
            found = own.fit(X, y, task=task).get_support()
            hits = np.count_nonzero(found[true])
            shares.append((found.sum() - hits) / max(found.sum(), 1))
            power.append(hits / used if used else np.nan)
        error = np.std(shares, ddof=1) / np.sqrt(sets)
        rows.append(
            [n_tasks, n, used, rho, f"{np.mean(shares):.3f} ± {error:.3f}", f"{np.mean(power):.2f}" if used else "-"]
        )
    report.table(
        "Knockoffs at a target of 0.2",
        ["tasks", "rows each", "true ones, of 200", "correlation of neighbours", "share of false ones", "found"],
        rows,
        f"{sets} data sets of each kind; ± standard error. Where nothing matters every selection is false.",
    )


if __name__ == "__main__":
    main()
