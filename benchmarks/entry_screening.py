"""Does it pay to leave single coefficients out? The sparse group penalty with and without its safe entry test.

    python benchmarks/entry_screening.py
    python benchmarks/entry_screening.py --quick

The same path both ways, in turn, on one core; medians of processor time and of the ratios of neighbouring runs. Rows
are screened in both. Each task has features of its own beside those that all tasks share.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _common import Report, arguments, ratio_cell, say

import tasksieve as ts
from tasksieve.path.pair import Pair
from tasksieve.path.sieve import Sieve

VALUES, EPS = 50, 0.02


def tasks(
    rng: np.random.Generator, T: int, n: int, d: int, shared: int, own: int, correlation: float
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    X = [rng.standard_normal((n, d)) for _ in range(T)]
    for x in X:
        for j in range(1, d):
            x[:, j] = correlation * x[:, j - 1] + np.sqrt(1.0 - correlation**2) * x[:, j]
    W = np.zeros((d, T))
    W[:shared] = rng.standard_normal((shared, T))
    for t in range(T):
        W[shared + rng.choice(d - shared, own, replace=False), t] = 1.5 * rng.standard_normal(own)
    return X, [x @ W[:, t] + 0.5 * rng.standard_normal(n) for t, x in enumerate(X)]


def no_entries(sieve: Sieve, pair: Pair, *_: Any) -> np.ndarray:
    """None of the pair's entries is proved to be zero."""
    return np.zeros(pair.dual.rows.shape, dtype=bool)


def main() -> None:
    args = arguments(__doc__).parse_args()
    rng = np.random.default_rng(args.seed)
    report = Report("entry_screening", args)
    T, n, d, repeats = (4, 20, 50, 1) if args.quick else (20, 100, 2000, 3)
    with_entries = Sieve.zero_entries
    rows = []
    for correlation in (0.0, 0.9):
        X, y = tasks(rng, T, n, d, 5, 5, correlation)
        for name, options in (
            ("l1 = 1, group = 0 (independent Lassos)", {"l1": 1.0, "group": 0.0}),
            ("l1 = 1, group = 1", {"l1": 1.0}),
            ("l1 = 0.3, group = 1", {"l1": 0.3}),
            ("l1 = 0.01, group = 1 (default)", {}),
            ("l1 = 1, group = 1, logistic loss", {"l1": 1.0, "loss": "logistic"}),
        ):
            say(correlation, name)
            labels = [np.where(v > np.median(v), 1, 0) for v in y] if "loss" in options else y
            model = ts.MultiTaskSparseGroupLasso(n_jobs=1, **options)
            seconds: dict[bool, list[float]] = {True: [], False: []}
            found: dict[bool, Any] = {}
            for _ in range(repeats):
                for used in (True, False):
                    Sieve.zero_entries = with_entries if used else no_entries
                    began = time.process_time()
                    found[used] = model.path(X, labels, n_alphas=VALUES, eps=EPS)
                    seconds[used].append(time.process_time() - began)
            Sieve.zero_entries = with_entries
            path = found[True]
            zero = int(path.n_selected.sum()) * T - sum(path.coef(k).nnz for k in range(VALUES))
            proven = int(path.rejected_entries.sum())
            ratio = float(np.median(np.divide(seconds[False], seconds[True])))
            report.raw(
                correlation=correlation, name=name, seconds_with=seconds[True], seconds_without=seconds[False]
            )
            rows.append(
                [
                    f"{correlation:g}",
                    name,
                    f"{proven / max(zero, 1):.0%}",
                    f"{np.median(seconds[False]):.2f}",
                    f"{np.median(seconds[True]):.2f}",
                    ratio_cell(ratio),
                ]
            )
    report.table(
        f"Entry tests on a path of {VALUES} values to {EPS:g} alpha_max; T = {T}, {n} rows a task, d = {d}",
        [
            "correlation",
            "penalty",
            "proven / zero entries of selected rows",
            "s without",
            "s with",
            "speed-up",
        ],
        rows,
    )
    report.finish()


if __name__ == "__main__":
    main()
