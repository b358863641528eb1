"""What checking a certificate costs, against what it cost to find the answer.

    python benchmarks/verification.py

A path of 100 values: the time to compute it, to write its certificate, to verify one value and all of them in floating
point; reading of the data for the digests is part of it. Then the entries of X a second that ``--exact`` gets through,
on a small problem. One pass is the time of one product of X' with a vector for each task.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
from _common import Report, arguments, ratio_cell, say, timed

import tasksieve as ts
from tasksieve import verify

MOST_PASSES, MOST_RATIO = 3.0, 2.0


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--features", type=int, nargs="+", default=[2_000, 10_000, 50_000])
    parser.add_argument("--rows", type=int, default=50, help="of each task")
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--values", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    if args.quick:
        args.features, args.rows, args.tasks, args.values, args.repeats = [60], 12, 3, 5, 1
    report = Report("verification", args)
    rows = [floating(report, args, d) for d in args.features]
    report.table(
        f"A path of {args.values} values: {args.tasks} tasks, {args.rows} rows each (seconds, medians)",
        ["features", "path", "certificate", "verify one value", "passes over X", "verify all", "verify all / path",
         "bytes of the certificate"],
        rows,
        "The certificate is written with the verifier's own numbers, so that it costs about what verifying does.",
    )  # fmt: skip
    report.table(
        "In fractions (--exact), one value of the squared loss",
        ["tasks x rows x features", "seconds", "entries of X a second"],
        [exact(report, args)],
        "",
    )
    report.finish()


def problem(args: Any, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(args.seed)
    n = args.tasks * args.rows
    X = np.asfortranarray(rng.standard_normal((n, d)))
    task = np.repeat(np.arange(args.tasks), args.rows)
    w = rng.standard_normal((args.tasks, min(d, 20)))
    y = np.einsum("ij,ij->i", X[:, : w.shape[1]], w[task])
    return X, y + 0.5 * rng.standard_normal(n), task


def median_of(args: Any, function: Any) -> tuple[float, Any]:
    runs = [timed(function) for _ in range(args.repeats)]
    return statistics.median(seconds for seconds, _ in runs), runs[-1][1]


def floating(report: Report, args: Any, d: int) -> list[Any]:
    say(f"{d} features")
    X, y, task = problem(args, d)
    solve, path = median_of(args, lambda: ts.MultiTaskLasso().path(X, y, task=task, n_alphas=args.values))
    write, certificate = timed(lambda: path.certificate(X, y, task=task))
    whole = verify.read_certificate(certificate.to_bytes())
    middle = args.values // 2
    one, verdict = median_of(args, lambda: verify.verify(whole, X, y, task=task, value=middle))
    every, all_of_them = timed(lambda: verify.verify(whole, X, y, task=task))
    if not (verdict and all_of_them):
        raise SystemExit(f"not proved: {all_of_them.words}")
    parts = [X[task == t] for t in range(args.tasks)]
    vectors = [np.ones(args.rows)] * args.tasks
    a_pass, _ = median_of(args, lambda: [part.T @ vector for part, vector in zip(parts, vectors, strict=True)])
    passes, ratio = one / a_pass, every / solve
    report.raw(d=d, path=solve, write=write, one=one, a_pass=a_pass, every=every)
    largest = d == max(args.features)
    if largest:
        report.headline(
            f"verifying one value, {d:,} features: passes over X", f"under {MOST_PASSES:g}", f"{passes:.1f}",
            None if args.quick else passes < MOST_PASSES,
        )  # fmt: skip
        report.headline(
            f"verifying {args.values} values, {d:,} features: time / the path's", f"under {MOST_RATIO:g}x",
            f"{ratio:.2f}x", None if args.quick else ratio < MOST_RATIO,
        )  # fmt: skip
    size = len(certificate.to_bytes())
    return [
        f"{d:,}", f"{solve:.2f}", f"{write:.2f}", f"{one:.3f}", f"{passes:.1f}", f"{every:.2f}", ratio_cell(ratio),
        f"{size:,}",
    ]  # fmt: skip


def exact(report: Report, args: Any) -> list[Any]:
    tasks, rows, d = (2, 8, 10) if args.quick else (4, 50, 500)
    small = type(args)(**{**vars(args), "tasks": tasks, "rows": rows})
    X, y, task = problem(small, d)
    certificate = ts.MultiTaskLasso(0.2).fit(X, y, task=task).certificate(X, y, task=task)
    seconds, verdict = timed(lambda: certificate.verify(X, y, task=task, exact=True))
    if not verdict:
        raise SystemExit(f"not proved: {verdict.words}")
    report.raw(exact=seconds, entries=X.size)
    return [f"{tasks} x {rows} x {d}", f"{seconds:.2f}", f"{X.size / seconds:,.0f}"]


if __name__ == "__main__":
    main()
