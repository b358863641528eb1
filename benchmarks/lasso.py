"""The plain Lasso (one task), against celer and scikit-learn: the special case must not be poor.

    python benchmarks/lasso.py

n = 200, 500, 1,000, d = 20,000, 20 true features, signal-to-noise ratio 3, 100 values to 0.01 alpha_max, relative
gap 1e-6 at every value (celer and scikit-learn: tol 5e-7, which is the same). Programs take turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from _common import (
    Report,
    Run,
    alternate,
    arguments,
    gap_cell,
    gap_summary,
    lambda_max,
    library,
    median_seconds,
    our_path,
    ratio_cell,
    relative_gaps,
    say,
    seconds_cell,
    shared_tasks,
)
from _peers import blas_threads, celer_path, limited, sklearn_path

from tasksieve.datasets import make_shared_regression

BARS = {"celer": 3, "scikit-learn": 8}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, nargs="*", help="sizes n (default: 200 500 1000)")
    parser.add_argument("--correlation", type=float, default=0.0)
    parser.add_argument("--repeats", type=int, default=5, help="runs of ours and of celer")
    parser.add_argument("--sklearn-repeats", type=int, default=1)
    args = parser.parse_args()
    sizes = args.rows or ([40, 60] if args.quick else [200, 500, 1000])
    d = 300 if args.quick else 20_000
    report = Report("lasso", args)
    table: list[list[Any]] = []
    for n in sizes:
        table += compare(report, args, n, d)
    report.table(
        "Lasso, 100 values to 0.01 alpha_max",
        [
            "n",
            "program",
            "seconds",
            "program / tasksieve",
            "promised",
            "worst gap",
            "features at the last value",
        ],
        table,
        f"d = {d:,}; medians. The gap of celer is the better of the residual's and its own dual point's. Each peer ran "
        "with 1 or all BLAS threads, whichever made it faster.",
    )
    report.finish()


def compare(report: Report, args: Any, n: int, d: int) -> list[list[Any]]:
    say(f"n = {n}, d = {d}")
    X, Y, _, _ = make_shared_regression(n, d, 1, 20, 3.0, args.correlation, args.seed)
    y = np.ascontiguousarray(Y[:, 0])
    tasks = shared_tasks(X, y)
    lams = lambda_max(tasks) * np.geomspace(1, 0.01, 100)
    alphas = lams / n
    peers: dict[str, Callable[[np.ndarray], Run]] = {
        "celer": lambda grid: celer_path(X, y, grid),
        "scikit-learn": lambda grid: sklearn_path(X, y, grid),
    }
    sides: dict[str, Any] = {}
    if library() is not None:
        sides["tasksieve"] = (args.repeats, lambda: our_path(X, y, None, alphas, threads=args.threads))
    for name, path in peers.items():
        threads = blas_threads(lambda path=path: path(alphas[:30]))  # type: ignore[misc]
        count = args.sklearn_repeats if name == "scikit-learn" else args.repeats
        sides[name] = (count, lambda path=path, threads=threads: limited(threads, lambda: path(alphas)))
    runs = alternate(sides)
    gaps = {
        name: gap_summary(relative_gaps(tasks, done[-1].answers, lams, duals=done[-1].duals))
        for name, done in runs.items()
    }
    ours = median_seconds(runs["tasksieve"]) if "tasksieve" in runs else None
    rows = []
    for name, done in runs.items():
        seconds = median_seconds(done)
        ratio = seconds / ours if ours else None
        bar = BARS.get(name)
        rows.append([n, name, seconds_cell(seconds), "1" if name == "tasksieve" else ratio_cell(ratio),
                     f"{bar}x" if bar else "-", gap_cell(gaps[name]), done[-1].answers[-1].features.size])  # fmt: skip
        if bar:
            report.headline(
                f"Lasso, n = {n:,}, d = {d:,}, 100 values: faster than {name}",
                f"{bar}x",
                ratio_cell(ratio),
                None if ratio is None else ratio >= bar and not gaps["tasksieve"]["over"],
                f"lasso-{'sklearn' if name == 'scikit-learn' else name}" if n == 500 else "",
            )
    report.raw(
        n=n, d=d, seconds={name: [r.seconds for r in done] for name, done in runs.items()}, gaps=gaps,
        passes=runs["tasksieve"][-1].passes if ours else None,
    )  # fmt: skip
    return rows


if __name__ == "__main__":
    main()
