"""Small is fast too: one fit of 5 tasks x 100 rows x 50 features, and what `import tasksieve` costs.

    python benchmarks/small_fit.py

scikit-learn cannot take a matrix per task, so its side is a shared-matrix fit of the same size (n = 100, d = 50, 5
outputs). Defaults on both sides but for alpha, which is a given part of each side's own alpha_max; scikit-learn
is also measured at tol 5e-7, where its gap is the one we guarantee by default. Programs take turns, fit by fit.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from _common import Report, arguments, lambda_max, library, ratio_cell, say, shared_tasks, stacked_tasks

from tasksieve.datasets import make_shared_regression

MAX_RATIO, MAX_IMPORT = 2.0, 0.3
FRACTIONS = (0.5, 0.1, 0.02)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--repeats", type=int, default=500)
    parser.add_argument("--import-repeats", type=int, default=9)
    args = parser.parse_args()
    if args.quick:
        args.repeats, args.import_repeats = 20, 1
    report = Report("small_fit", args)
    rows = []
    for fraction in FRACTIONS:
        rows.append(fits(report, args, fraction))
    report.table(
        "One fit: 5 tasks, 100 rows, 50 features (medians)",
        ["alpha / alpha_max", "tasksieve, a matrix per task, ms", "tasksieve, shared matrix, ms",
         "scikit-learn, shared, ms", "scikit-learn at tol 5e-7, ms", "tasksieve per task / scikit-learn",
         "shared / scikit-learn", "promised"],
        rows,
        "Defaults on both sides (intercepts; tol 1e-6 ours, 1e-4 scikit-learn's) unless said.",
    )  # fmt: skip
    if library() is not None:
        report.table(
            "Import",
            ["already imported", "then", "seconds", "of the processor", "promised"],
            imports(report, args.import_repeats, 1 if args.quick else None),
            "In a fresh interpreter with compiled modules, medians; judged by the wall clock.",
        )
    report.finish()


def fits(report: Report, args: Any, fraction: float) -> list[Any]:
    from sklearn.linear_model import MultiTaskLasso

    say(f"alpha = {fraction:g} alpha_max")
    rng = np.random.default_rng(args.seed)
    X, Y, _, _ = make_shared_regression(100, 50, 5, 5, 3.0, 0.0, rng)
    stacked = np.asfortranarray(rng.standard_normal((500, 50)))
    task = np.repeat(np.arange(5), 100)
    w = rng.standard_normal((5, 5))
    y = np.concatenate([stacked[100 * t : 100 * (t + 1), :5] @ w[t] for t in range(5)])
    y += rng.standard_normal(500) * np.linalg.norm(y) / (3 * np.sqrt(500))
    own = stacked_tasks(stacked, y, task)
    both = shared_tasks(X, Y)
    alpha_own = fraction * lambda_max(own, True) / own.n_bar
    alpha_both = fraction * lambda_max(both, True) / both.n_bar
    sides: dict[str, Callable[[], Any]] = {
        "scikit-learn": lambda: MultiTaskLasso(alpha=alpha_both).fit(X, Y),
        "scikit-learn tight": lambda: MultiTaskLasso(alpha=alpha_both, tol=5e-7, max_iter=100_000).fit(X, Y),
    }
    ts = library()
    if ts is not None:
        sides["ours"] = lambda: ts.MultiTaskLasso(alpha=alpha_own).fit(stacked, y, task=task)
        sides["ours shared"] = lambda: ts.MultiTaskLasso(alpha=alpha_both).fit(X, Y)
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for repeat in range(args.repeats + 3):
            # another order each time: a fit also pays for what the one before it left in the caches
            names = list(sides)
            for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
                fit = sides[name]
                start = time.perf_counter()
                fit()
                if repeat >= 3:  # the first ones warm caches up
                    seconds[name].append(time.perf_counter() - start)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    report.raw(fraction=fraction, medians=median, repeats=args.repeats)
    per_task, shared = median.get("ours"), median.get("ours shared")
    ratio = per_task / median["scikit-learn"] if per_task else None
    report.headline(
        f"small fit at {fraction:g} alpha_max: time / scikit-learn's", f"at most {MAX_RATIO:g}x", ratio_cell(ratio),
        None if ratio is None else ratio <= MAX_RATIO,
    )  # fmt: skip

    def milliseconds(value: float | None) -> str:
        return "-" if value is None else f"{1e3 * value:.2f}"

    return [
        f"{fraction:g}", milliseconds(per_task), milliseconds(shared), milliseconds(median["scikit-learn"]),
        milliseconds(median["scikit-learn tight"]), ratio_cell(ratio),
        ratio_cell(shared / median["scikit-learn"] if shared else None), f"<= {MAX_RATIO:g}x",
    ]  # fmt: skip


def imports(report: Report, repeats: int, most: int | None) -> list[list[Any]]:
    """`import tasksieve` loads names on first use, so the first estimator, and all, are measured with it."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        # as pip installs: modules are compiled; the first process of each pair compiles them and does not count
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        for already, then in product(
            ("sklearn.linear_model", "sklearn")[:most],
            ("from tasksieve import MultiTaskLasso", "import tasksieve", "from tasksieve import *")[:most],
        ):
            code = (
                f"import time, {already}; start = time.perf_counter(), time.process_time(); {then}\n"
                "print(time.perf_counter() - start[0], time.process_time() - start[1])"
            )
            done = [
                subprocess.run(
                    [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
                ).stdout.split()
                for _ in range(repeats + 1)
            ]
            wall, processor = (statistics.median(map(float, column)) for column in zip(*done[1:], strict=True))
            judged = already == "sklearn.linear_model" and then.startswith("from")
            promised = f"< {MAX_IMPORT:g}" if judged else "-"
            rows.append([f"`{already}`", f"`{then}`", f"{wall:.3f}", f"{processor:.3f}", promised])
            report.raw(already=already, then=then, seconds=done)
            if judged:
                report.headline(
                    f"`{then}` beyond scikit-learn's own import",
                    f"under {MAX_IMPORT:g} s",
                    f"{wall:.2f} s",
                    wall < MAX_IMPORT,
                )
    return rows


if __name__ == "__main__":
    main()
