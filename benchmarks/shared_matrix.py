"""One matrix shared by all outputs, against scikit-learn, celer, skglm and adelie.

    python benchmarks/shared_matrix.py                 # the first 61 of 100 values, all peers
    python benchmarks/shared_matrix.py --only-whole    # the whole path, against celer (some minutes)

n = 300, d = 20,000, 50 outputs, 20 true rows, signal-to-noise ratio 3; columns independent, and with correlation
0.5^|i-j|. All programs solve the same grid to relative gap 1e-6; celer and scikit-learn stop at tol ||Y||^2, so
their equal setting is 5e-7; skglm and adelie get the loosest tolerance whose recomputed gaps all reach 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from _common import (
    Report,
    Run,
    Tasks,
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
from _peers import (
    ADELIE_SHARED_TOLS,
    EQUAL_TOL,
    SKGLM_TOLS,
    Adelie,
    adelie_ready,
    at_equal_gap,
    blas_threads,
    celer_path,
    limited,
    skglm_path,
    sklearn_path,
)

from tasksieve.datasets import make_shared_regression

BAR, BAR_WHOLE = 12, 20
PEERS = ("scikit-learn", "celer", "skglm", "adelie")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--whole", action="store_true", help="the whole path as well, against celer")
    parser.add_argument("--only-whole", action="store_true", help="the whole path alone")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--correlations", type=float, nargs="*", default=[0.0, 0.5])
    parser.add_argument("--repeats", type=int, default=3, help="runs of ours")
    args = parser.parse_args()
    if args.quick and "adelie" in args.peers and not adelie_ready():
        say("adelie is not installed: left out")
        args.peers = [peer for peer in args.peers if peer != "adelie"]
    shape = (60, 400, 8, 5) if args.quick else (300, 20_000, 50, 20)
    # the whole path alone is kept beside the short one, not in its place
    report = Report("shared_matrix_whole" if args.only_whole else "shared_matrix", args)
    first, whole = [], []
    for correlation in args.correlations:
        X, Y, _, _ = make_shared_regression(*shape, 3.0, correlation, args.seed)
        tasks = shared_tasks(X, Y)
        grid = lambda_max(tasks) * np.geomspace(1, 0.01, 100)
        label = "independent" if correlation == 0 else f"AR({correlation:g})"
        if not args.only_whole:
            first += compare(report, args, label, X, Y, tasks, grid[:61], args.peers, BAR)
        if args.whole or args.only_whole:
            whole += compare(report, args, label, X, Y, tasks, grid, ["celer"], BAR_WHOLE)
    columns = [
        "columns",
        "program",
        "setting",
        "seconds",
        "program / tasksieve",
        "worst gap",
        "rows at the last value",
    ]
    note = (
        f"n = {shape[0]}, d = {shape[1]:,}, {shape[2]} outputs, no intercept. The gap of celer is the better of the "
        "residual's and its own dual point's. Each peer ran with 1 or all BLAS threads, whichever made it faster."
    )
    if first:
        report.table("Shared matrix, first 61 of 100 values", columns, first, note)
    if whole:
        report.table("Shared matrix, all 100 values", columns, whole, note)
    report.finish()


def compare(
    report: Report, args: Any, label: str, X: np.ndarray, Y: np.ndarray, tasks: Tasks, lams: np.ndarray,
    peers: list[str], bar: int,
) -> list[list[Any]]:  # fmt: skip
    say(f"{label} columns, {lams.size} values")
    alphas = lams / tasks.n_bar
    ours: list[Run] = []

    def run_ours() -> None:
        if library() is not None and len(ours) < max(args.repeats, 1):
            for earlier in ours:
                earlier.answers = []
            ours.append(our_path(X, Y, None, alphas, threads=args.threads))
            say(f"  tasksieve: {ours[-1].seconds:.2f} s")

    runs: list[tuple[Run, dict[str, Any]]] = []
    for peer in peers:
        run_ours()  # in turn with the peers
        run, ladder = peer_runner(peer, X, Y, alphas)
        if peer == "adelie":
            with Adelie(tasks, args.threads) as adelie:
                _, result, gap = at_equal_gap(lambda tol, a=adelie: a.path(lams, tol), ladder, tasks, lams)  # type: ignore[misc]
        else:
            _, result, gap = at_equal_gap(run, ladder, tasks, lams)
        result.extra["rows"] = result.answers[-1].features.size
        result.answers, result.duals = [], None
        if peer == "adelie":
            report.content["versions"]["adelie"] = result.extra["version"]
        runs.append((result, gap))
    while library() is not None and len(ours) < args.repeats:
        run_ours()
    table = []
    our_seconds = median_seconds(ours) if ours else None
    if ours:
        gap = gap_summary(relative_gaps(tasks, ours[-1].answers, lams))
        table.append([label, "tasksieve", ours[-1].setting, seconds_cell(our_seconds), "1", gap_cell(gap),
                      ours[-1].answers[-1].features.size])  # fmt: skip
    for result, peer_gap in runs:
        setting = result.setting
        if result.extra.get("blas_threads"):
            setting += f", {result.extra['blas_threads']} BLAS threads"
        table.append([label, result.program, setting, seconds_cell(result.seconds),
                      ratio_cell(result.seconds / our_seconds if our_seconds else None), gap_cell(peer_gap),
                      result.extra["rows"]])  # fmt: skip
    report.raw(
        columns=label, values=int(lams.size), ours=[r.seconds for r in ours], passes=ours[-1].passes if ours else None,
        peers={r.program: {"seconds": r.seconds, "setting": r.setting, "gap": g, **r.extra} for r, g in runs},
    )  # fmt: skip
    # the fastest peer that did the same work; where none did, the fastest of all (which flatters it)
    complete = [r for r, g in runs if not g["over"]] or [r for r, _ in runs]
    if complete:
        fastest = min(complete, key=lambda r: r.seconds)
        ratio = fastest.seconds / our_seconds if our_seconds else None
        what = (
            "all 100 values: faster than celer"
            if lams.size == 100
            else f"first {lams.size} values: faster than the fastest of the others"
        )
        report.headline(
            f"shared matrix, {label} columns, {what}",
            f"{bar}x",
            f"{ratio_cell(ratio)} ({fastest.program})",
            None if ratio is None else ratio >= bar and not gap["over"],
            "shared-whole" if lams.size == 100 else f"shared-{lams.size}",
        )
    return table


def peer_runner(
    peer: str, X: np.ndarray, Y: np.ndarray, alphas: np.ndarray
) -> tuple[Callable[[float], Run], tuple[float, ...]]:
    """How to run a peer at a tolerance, and its ladder of tolerances."""
    if peer == "adelie":
        return (lambda tol: Run("adelie", 0.0, [])), ADELIE_SHARED_TOLS
    paths: dict[str, Callable[[np.ndarray, float], Run]] = {
        "scikit-learn": lambda grid, tol: sklearn_path(X, Y, grid, tol),
        "celer": lambda grid, tol: celer_path(X, Y, grid, tol),
        "skglm": lambda grid, tol: skglm_path(X, Y, grid, alphas[0], tol),
    }
    path = paths[peer]
    ladder = SKGLM_TOLS if peer == "skglm" else (EQUAL_TOL,)
    threads = blas_threads(lambda: path(alphas[:12], ladder[0]))
    return (lambda tol: limited(threads, lambda: path(alphas, tol))), ladder


if __name__ == "__main__":
    main()
