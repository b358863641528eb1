"""The permutation test: seconds, and how often it is wrong where nothing matters.

    python benchmarks/permutations.py
    python benchmarks/permutations.py --only speed

Speed: 1,000 permutations of the labels within 20 tasks x 50 rows x 5,000 features, each task with its own matrix; and
against the same null distribution one permutation at a time, with NumPy: the product of every task's matrix with its
permuted labels, and the largest norm of a row of these.

Size: how often the test at level 0.05 says that something matters where nothing does: one task; five tasks; twenty with
skewed noise of unequal size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _common import (
    Report,
    Run,
    alternate,
    arguments,
    library,
    median_seconds,
    ratio_cell,
    say,
    seconds_cell,
    timed,
)
from _peers import limited

MAX_SECONDS = 1.0


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=["speed", "size"])
    parser.add_argument("--rows", type=int, default=50, help="of a task")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--features", type=int, default=5_000)
    parser.add_argument("--permutations", type=int, default=1_000)
    parser.add_argument("--data-sets", type=int, default=400, help="of the simulations")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    if args.quick:
        args.rows, args.tasks, args.features, args.permutations = 20, 3, 200, 50
        args.data_sets, args.repeats = 4, 1
    report = Report("permutations", args)
    if args.only in (None, "speed"):
        speed(report, args)
    if args.only in (None, "size"):
        size(report, args)
    report.finish()


def ours(args: Any, X: np.ndarray, y: np.ndarray, task: np.ndarray) -> Run:
    ts = library()
    assert ts is not None
    model = ts.MultiTaskLasso(n_jobs=args.threads)
    seconds, found = timed(lambda: ts.permutation_test(model, X, y, task=task, n_permutations=args.permutations))
    return Run("tasksieve", seconds, [], extra={"null": found.null})


def one_by_one(args: Any, X: np.ndarray, y: np.ndarray, task: np.ndarray) -> Run:
    rng = np.random.default_rng(args.seed)

    def all_of_them() -> np.ndarray:
        blocks = [(X[task == t], y[task == t]) for t in np.unique(task)]
        parts = [(x - x.mean(axis=0), labels - labels.mean()) for x, labels in blocks]
        null = np.empty(args.permutations)
        for p in range(len(null)):
            products = np.stack([x.T @ rng.permutation(labels) for x, labels in parts], axis=1)
            null[p] = np.linalg.norm(products, axis=1).max() * len(parts) / len(y)
        return null

    seconds, null = timed(all_of_them)
    return Run("NumPy", seconds, [], extra={"null": null})


def speed(report: Report, args: Any) -> None:
    rng = np.random.default_rng(args.seed)
    task = np.repeat(np.arange(args.tasks), args.rows)
    X, y = rng.standard_normal((len(task), args.features)), rng.standard_normal(len(task))
    sides = {
        "ours": (args.repeats, lambda: ours(args, X, y, task)),
        "theirs": (args.repeats, lambda: limited(args.threads, lambda: one_by_one(args, X, y, task))),
    }
    runs = alternate(sides)
    own, theirs = median_seconds(runs["ours"]), median_seconds(runs["theirs"])
    medians = {name: float(np.median(each[-1].extra["null"])) for name, each in runs.items()}
    report.raw(
        what="speed", ours=[run.seconds for run in runs["ours"]], theirs=[run.seconds for run in runs["theirs"]],
        median_of_null=medians,
    )  # fmt: skip
    wide = f"{args.rows} rows x {args.tasks} tasks x {args.features:,} features"
    say(f"{args.permutations} permutations: {own:.2f} s, {theirs:.2f} s one by one")
    report.headline(
        f"permutation test, {args.permutations:,} permutations, {wide}: seconds", f"{MAX_SECONDS:g} s", f"{own:.2f} s",
        None if args.quick else own <= MAX_SECONDS, "permutation-seconds",
    )  # fmt: skip
    report.table(
        f"{args.permutations:,} permutations",
        ["size", "tasksieve, s", "one by one, s", "ratio", "medians of the null levels"],
        [[wide, seconds_cell(own), seconds_cell(theirs), ratio_cell(theirs / own),
          f"{medians['ours']:.4f}, {medians['theirs']:.4f}"]],
        "Medians; both draw permutations of their own, so that the null levels agree but for chance.",
    )  # fmt: skip


def size(report: Report, args: Any) -> None:
    ts = library()
    assert ts is not None
    rows = []
    for name, n_tasks, n, skewed in (
        ("1 task x 60 rows, normal noise", 1, 60, False),
        ("5 tasks x 30 rows, normal noise", 5, 30, False),
        ("20 tasks x 20 rows, log-normal noise of unequal size", 20, 20, True),
    ):
        wrong = 0
        for k in range(args.data_sets):
            rng = np.random.default_rng([args.seed, k])
            task = np.repeat(np.arange(n_tasks), n)
            X = rng.standard_normal((len(task), 100))
            y = rng.lognormal(size=len(task)) * (1.0 + task) if skewed else rng.standard_normal(len(task))
            found = ts.permutation_test(ts.MultiTaskLasso(n_jobs=1), X, y, task=task, n_permutations=199)
            wrong += found.pvalue <= 0.05
        share = wrong / args.data_sets
        error = np.sqrt(max(share * (1.0 - share), 1e-4) / args.data_sets)
        say(f"{name}: {share:.3f}")
        report.raw(what="size", data=name, share=share)
        rows.append([name, f"{share:.3f}", f"{error:.3f}"])
    report.table(
        f"Nothing matters: how often p <= 0.05, in {args.data_sets} data sets of 100 features",
        ["data", "share", "standard error"],
        rows,
    )


if __name__ == "__main__":
    main()
