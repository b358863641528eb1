"""One matrix per task, against adelie: Synthetic 1 and 2 of Wang & Ye (50 tasks of 50 rows).

    python benchmarks/per_task_matrices.py

Both programs run the same first values of the same 100-value grid to 0.01 alpha_max, on the same number of
threads, to a relative gap of 1e-6 at every value (recomputed in NumPy from the coefficients of both). Then our
whole path at the largest size, as a multiple of one pass of NumPy's matrix-vector product over the same data.
"""

from __future__ import annotations

import statistics
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
    stacked_tasks,
    timed,
)
from _peers import ADELIE_TOLS, Adelie, adelie_ready, at_equal_gap

from tasksieve.datasets import make_wang_synthetic

# features -> (first values, promised ratio)
CASES = {2_000: (100, 60), 10_000: (40, 20), 50_000: (20, 8)}
QUICK = {200: (20, 60)}
WHOLE = 50_000
MAX_GEMV_PASSES, MAX_PASSES = 200, 20


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--features", type=int, nargs="*", help="sizes to run (default: 2000 10000 50000)")
    parser.add_argument("--kinds", type=int, nargs="*", default=[1, 2], help="Synthetic 1 and/or 2")
    parser.add_argument("--repeats", type=int, default=3, help="runs of ours")
    parser.add_argument("--peer-repeats", type=int, default=1, help="runs of adelie at its final tolerance")
    parser.add_argument("--no-peer", action="store_true", help="ours only")
    parser.add_argument(
        "--no-whole", action="store_true", help="leave out the whole path at the largest size"
    )
    args = parser.parse_args()
    if args.quick and not args.no_peer and not adelie_ready():
        say("adelie is not installed: ours only")
        args.no_peer = True
    cases = QUICK if args.quick else CASES
    shape = (10, 20) if args.quick else (50, 50)
    sizes = args.features or list(cases)
    args.kinds = args.kinds[:1] if args.quick else args.kinds
    report = Report("per_task_matrices", args)
    versus, whole = [], []
    for kind in args.kinds:
        for d in sizes:
            values, bar = cases.get(d, (100, None))
            made = make_wang_synthetic(kind, *shape, d, args.seed)
            row = None if args.no_peer else compare(report, args, kind, d, made, values, bar)
            if row is not None:
                versus.append(row)
            if not args.no_whole and d == max(sizes):
                row = whole_path(report, args, kind, d, made)
                if row is not None:
                    whole.append(row)
            del made
    report.table(
        "One matrix per task: the same first values of the path, both to relative gap 1e-6",
        ["data", "d", "values", "tasksieve, s", "adelie, s", "adelie / tasksieve", "promised", "worst gap, ours",
         "worst gap, adelie", "adelie's tol", "rows at the last value"],
        versus,
        f"Medians; {shape[0]} tasks of {shape[1]} rows, no intercept, {args.threads} threads on both sides. Gaps: "
        "recomputed in NumPy float64 from the returned coefficients, relative to 1/2||y||^2.",
    )  # fmt: skip
    report.table(
        "The whole 100-value path",
        ["data", "d", "seconds", "one GEMV pass, s", "path / GEMV pass", "promised", "passes spent", "promised",
         "worst gap", "rows at the last value"],
        whole,
        "GEMV pass: NumPy's X.T @ r over the whole stacked matrix in float64, all BLAS threads, median over the run.",
    )  # fmt: skip
    report.finish()


def compare(
    report: Report, args: Any, kind: int, d: int, made: Any, values: int, bar: int | None
) -> list[Any] | None:
    say(f"Synthetic {kind}, d = {d}, first {values} values")
    X, y, task, _ = made
    tasks = stacked_tasks(X, y, task)
    lams = lambda_max(tasks) * np.geomspace(1, 0.01, 100)[:values]
    alphas = lams / tasks.n_bar
    with Adelie(tasks, args.threads) as adelie:
        first: list[Run] = []
        if library() is not None:
            first.append(our_path(X, y, task, alphas, threads=args.threads))
            say(f"  tasksieve: {first[0].seconds:.2f} s")
        tol, peer, peer_gap = at_equal_gap(lambda tol: adelie.path(lams, tol), ADELIE_TOLS, tasks, lams)
        sides: dict[str, Any] = {}
        if first and args.repeats > 1:
            sides["ours"] = (args.repeats - 1, lambda: our_path(X, y, task, alphas, threads=args.threads))
        if args.peer_repeats > 1:
            sides["adelie"] = (args.peer_repeats - 1, lambda: adelie.path(lams, tol))
        runs = alternate(sides) if sides else {}
    report.content["versions"]["adelie"] = peer.extra["version"]
    ours = first + runs.get("ours", [])
    theirs = [peer] + runs.get("adelie", [])
    gap = gap_summary(relative_gaps(tasks, ours[-1].answers, lams)) if ours else None
    our_seconds = median_seconds(ours) if ours else None
    their_seconds = median_seconds(theirs)
    ratio = their_seconds / our_seconds if our_seconds else None
    report.raw(
        kind=kind, d=d, values=values, ours=[r.seconds for r in ours], adelie=[r.seconds for r in theirs],
        adelie_tol=tol, gap_ours=gap, gap_adelie=peer_gap, passes=ours[-1].passes if ours else None, ratio=ratio,
    )  # fmt: skip
    if bar is not None:
        report.headline(
            f"one matrix per task, Synthetic {kind}, d = {d:,}, {values} values: faster than adelie",
            f"{bar}x",
            ratio_cell(ratio),
            None if ratio is None or gap is None else ratio >= bar and not gap["over"],
            f"per-task-{d}",
        )
    return [
        f"Synthetic {kind}", f"{d:,}", f"first {values} of 100" if values < 100 else "all 100",
        seconds_cell(our_seconds), seconds_cell(their_seconds), ratio_cell(ratio), f"{bar}x" if bar else "-",
        gap_cell(gap), gap_cell(peer_gap), f"{tol:g}",
        (ours[-1] if ours else peer).answers[-1].features.size,
    ]  # fmt: skip


def whole_path(report: Report, args: Any, kind: int, d: int, made: Any) -> list[Any] | None:
    if library() is None:
        return None
    say(f"Synthetic {kind}, d = {d}, whole path")
    X, y, task, _ = made
    tasks = stacked_tasks(X, y, task)
    lams = lambda_max(tasks) * np.geomspace(1, 0.01, 100)
    passes: list[float] = []

    def gemv() -> None:
        passes.extend(timed(lambda: X.T @ y)[0] for _ in range(3))

    gemv()
    ours: list[Run] = []
    for _ in range(args.repeats):
        for earlier in ours:
            earlier.answers = []
        ours.append(our_path(X, y, task, lams / tasks.n_bar, threads=args.threads))
        gemv()
    gap = gap_summary(relative_gaps(tasks, ours[-1].answers, lams))
    seconds, one = median_seconds(ours), statistics.median(passes)
    spent = ours[-1].passes
    report.raw(whole=True, kind=kind, d=d, ours=[r.seconds for r in ours], gemv=passes, passes=spent, gap=gap)
    name = f"Synthetic {kind}, d = {d:,}, whole path"
    report.headline(
        f"{name}: multiple of one GEMV pass",
        f"at most {MAX_GEMV_PASSES}",
        f"{seconds / one:.0f}",
        seconds / one <= MAX_GEMV_PASSES and not gap["over"],
    )
    report.headline(
        f"{name}: full passes over the data",
        f"at most {MAX_PASSES}",
        f"{spent:.1f}",
        spent is not None and spent <= MAX_PASSES,
    )
    return [
        f"Synthetic {kind}", f"{d:,}", seconds_cell(seconds), seconds_cell(one), f"{seconds / one:.0f}",
        f"<= {MAX_GEMV_PASSES}", f"{spent:.1f}", f"<= {MAX_PASSES}", gap_cell(gap), ours[-1].answers[-1].features.size,
    ]  # fmt: skip


if __name__ == "__main__":
    main()
