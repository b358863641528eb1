"""The size of the ADNI study: 20 tasks of 50 people, 504,095 genotypes, as int8 and at 2 bits from a PLINK file.

    python benchmarks/genotypes.py
    python benchmarks/genotypes.py --parts passes bed        (of: passes int8 bed large)

Simulated genotypes with realistic allele frequencies and correlation between neighbours (ADNI is not public). The
certified 100-value path is computed in a process of its own, whose peak memory is compared with the int8 data:
everything counts, the interpreter and the data included. Published for ADNI: 9,626 minutes without screening, 35
with it. The same path from a .bed file on disk, people in no order, is computed in another process. Passes over calls
of 2 bits are timed beside passes over int8. Last, 1,000,000 variants of 5,000 people (a file of 1.25 GB).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _bed import passes, simulate_bed, write_bed
from _common import (
    TOL,
    Report,
    arguments,
    cores,
    engine_problem,
    gap_cell,
    gap_summary,
    lambda_max,
    library,
    our_path,
    relative_gaps,
    seconds_cell,
    stacked_tasks,
    timed,
)
from _memory import MemoryWatch, child_answer, in_child, peak_resident

from tasksieve.datasets import make_genotypes

MAX_MEMORY, MAX_SECONDS = 2.5, 30.0
MAX_PASS, MAX_BITS = 0.4, 1 / 3  # of int8's
PARTS = ("passes", "int8", "bed", "large")
PUBLISHED_MINUTES = (9625.58, 35.34)


def measure(features: int, rows: int, n_tasks: int, seed: int, threads: int) -> dict[str, Any]:
    """In the child: make the data, compute the path, and only then (memory is read before) check it."""
    X, y, task, support = make_genotypes(n_tasks, rows, features, random_state=seed)
    assert task is not None
    tasks = stacked_tasks(X, y, task)
    made = peak_resident()
    with MemoryWatch() as memory:
        run = our_path(X, y, task, grid_of(X, y, task, threads), fit_intercept=True, threads=threads)
    answer: dict[str, Any] = {
        "seconds": run.seconds,
        "passes": run.passes,
        "bytes": X.nbytes,
        "peak_resident": peak_resident(),
        "peak_after_making_data": made,
        "peak_anonymous": memory.peak,
        "rows": int(run.answers[-1].features.size),
        "found": int(np.isin(support, run.answers[-1].features).sum()),
        "true": int(support.size),
    }
    lams = lambda_max(tasks, True) * np.geomspace(1, 0.01, 100)
    answer["gap"] = gap_summary(relative_gaps(tasks, run.answers, lams, fit_intercept=True))
    problem = engine_problem(tasks, fit_intercept=True, threads=threads)
    residual = y - np.repeat([y[task == t].mean() for t in range(n_tasks)], rows)
    answer["pass_seconds"] = float(
        np.median([timed(lambda: problem.design.correlate(residual))[0] for _ in range(5)])
    )
    return answer


def grid_of(X: np.ndarray, y: np.ndarray, task: np.ndarray, threads: int) -> np.ndarray:
    """100 values from the library's own alpha_max (no float64 copies of X, unlike the independent check)."""
    ts = library()
    assert ts is not None
    model = ts.MultiTaskLasso(tol=TOL, fit_intercept=True, n_jobs=threads)
    return model.alpha_max(X, y, task=task) * np.geomspace(1, 0.01, 100)


class Columns:
    """Genotypes of a file as the independent check reads an array."""

    def __init__(self, X: Any) -> None:
        self.X, self.shape = X, X.shape

    def __getitem__(self, position: Any) -> np.ndarray:
        return np.asarray(self.X.take(np.arange(self.shape[1])[position[1]]))


def measure_bed(prefix: str, threads: int, values: int, eps: float, checked: bool) -> dict[str, Any]:
    """In the child: the path from a .bed file, not read before by this process."""
    ts = library()
    assert ts is not None
    known = np.load(prefix + ".npz")
    y, task = known["y"], known["task"]
    with MemoryWatch() as memory:
        reading, X = timed(lambda: ts.read_plink(prefix))
        order = np.argsort(task, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(task))])
        sorting, storage = timed(lambda: X.in_task_order(None if (np.diff(task) >= 0).all() else order, offsets))
        alpha_max = ts.MultiTaskLasso(tol=TOL, n_jobs=threads).alpha_max(X, y, task=task)
        run = our_path(X, y, task, alpha_max * np.geomspace(1, eps, values), fit_intercept=True, threads=threads)
    assert run.reported_gaps is not None
    own = [y[task == t] - y[task == t].mean() for t in range(len(offsets) - 1)]
    empty = sum(float(part @ part) for part in own) / 2 / (len(y) / len(own))  # objective of the empty model
    answer = {
        "seconds": run.seconds,
        "reading": reading,
        "sorting": sorting,
        "passes": run.passes,
        "people": X.n_rows,
        "variants": X.n_variants,
        "bytes": storage.nbytes,
        "int8_bytes": X.n_rows * X.n_variants,
        "peak_resident": peak_resident(),
        "peak_anonymous": memory.peak,
        "rows": int(run.answers[-1].features.size),
        "largest_gap": float(np.max(run.reported_gaps)) / empty,
    }
    if checked:  # complete calls only: the check knows no tasks' means
        tasks = stacked_tasks(Columns(X.with_people(order)), y[order], task[order])
        lams = lambda_max(tasks, True) * np.geomspace(1, eps, values)
        answer["gap"] = gap_summary(relative_gaps(tasks, run.answers, lams, fit_intercept=True))
    return answer


def write_adni(prefix: Path, args: Any) -> None:
    """The data of the int8 part, people in no order."""
    X, y, task, _ = make_genotypes(args.tasks, args.rows, args.features, random_state=args.seed)
    order = np.random.default_rng(args.seed).permutation(len(y))
    write_bed(prefix, X, order)
    np.savez(f"{prefix}.npz", y=np.asarray(y)[order], task=np.asarray(task)[order])


def write_large(prefix: Path, args: Any) -> None:
    """Five tasks one after the other, 20 causal variants, half of the variance."""
    causal = simulate_bed(prefix, args.large_variants, args.large_people, 20, args.seed)
    rng = np.random.default_rng(args.seed + 1)
    task = np.sort(rng.integers(0, 5, args.large_people))
    effects = rng.standard_normal((5, len(causal)))
    y = np.einsum("ji,ij->i", causal - causal.mean(axis=1, keepdims=True), effects[task])
    np.savez(f"{prefix}.npz", y=y + np.std(y) * rng.standard_normal(len(y)), task=task)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--features", type=int, default=504_095)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--large-variants", type=int, default=1_000_000)
    parser.add_argument("--large-people", type=int, default=5_000)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--scratch", help="folder for the files (default: the system's)")
    parser.add_argument("--child", help="for the script itself: where the child process writes its answer")
    parser.add_argument("--bed", help="for the script itself: the prefix that the child reads")
    parser.add_argument("--large", action="store_true", help="for the script itself")
    args = parser.parse_args()
    if args.quick:
        args.features, args.large_variants = min(args.features, 3_000), min(args.large_variants, 4_000)
        args.large_people = min(args.large_people, 200)
    if args.child and args.bed:
        values, eps = (30, 0.3) if args.large else (100, 0.01)
        in_child(args.child, lambda: measure_bed(args.bed, args.threads, values, eps, not args.large))
        return
    if args.child:
        in_child(args.child, lambda: measure(args.features, args.rows, args.tasks, args.seed, args.threads))
        return
    report = Report("genotypes", args)
    if library() is None:
        report.finish()
        return
    if "passes" in args.parts:
        report_passes(report, args)
    if "int8" in args.parts:
        report_int8(report, args)
    with tempfile.TemporaryDirectory(prefix="tasksieve-genotypes-", dir=args.scratch) as folder:
        if "bed" in args.parts:
            write_adni(Path(folder) / "adni", args)
            found = child_answer(__file__, [*sys.argv[1:], "--bed", f"{folder}/adni"])
            report_bed(report, found, "people in no order: copied once into task order", "100 values to 0.01 alpha_max")
        if "large" in args.parts:
            seconds, _ = timed(lambda: write_large(Path(folder) / "large", args))
            found = child_answer(__file__, [*sys.argv[1:], "--bed", f"{folder}/large", "--large"])
            where = f"people in task order: mapped, not copied; made in {seconds:.0f} s"
            report_bed(report, found, where, "30 values to 0.3 alpha_max")
    report.finish()


def report_passes(report: Report, args: Any) -> None:
    shapes = [(2_500, 20, 40_000), (20_000, 4, 5_000)]
    if args.quick:
        shapes = [(people // 10, tasks, variants // 20) for people, tasks, variants in shapes]
    found = [
        passes(*shape, missing, args.seed, args.threads) for shape in shapes for missing in (0.0, 0.001, 0.01)
    ]
    report.raw(passes=found)
    for missing, words in ((0.0, "complete calls"), (0.01, "1 % of the calls missing")):
        worst = max(one["bits"] / one["int8"] for one in found if one["missing"] == missing)
        report.headline(f"A pass over 2-bit calls / over int8, all threads, {words}", f"at most {MAX_PASS}",
                        f"{worst:.2f}", worst <= MAX_PASS)  # fmt: skip
    report.table(
        "Passes over genotypes: 2 bits / int8",
        ["people, tasks", "missing", "int8, ms", "one vector", "four vectors", "into another order", "bytes"],
        [
            [
                f"{one['people']:,}, {one['tasks']}", f"{one['missing']:.1%}", f"{1e3 * one['int8']:.1f}",
                f"{one['bits'] / one['int8']:.2f}", f"{one['bits_four'] / one['int8_four']:.2f}",
                f"{one['reorder'] / one['int8']:.2f}", f"{one['bytes'] / one['int8_bytes']:.2f}",
            ]
            for one in found
        ],
        f"{args.threads} threads. Medians of 7, in turn. Bytes include what stands for missing calls: a mean for each "
        "task of every variant that has any.",
    )  # fmt: skip


def report_bed(report: Report, found: dict[str, Any], where: str, grid: str) -> None:
    size = f"{found['people']:,} people x {found['variants']:,} variants"
    ratio = found["bytes"] / found["int8_bytes"]
    report.raw(**{f"bed_{found['people']}": found})
    report.headline(f"{size} from a .bed file: certified path", "-", f"{found['seconds']:.1f} s", True)
    report.headline(f"{size}: genotypes in memory / int8", f"at most {MAX_BITS:.2f}", f"{ratio:.2f}", ratio <= MAX_BITS)
    report.table(
        f"Genotypes from a .bed file: {size}, {grid}, intercepts ({where})",
        ["", "measured"],
        [
            ["reading .bim, .fam and counts, s", f"{found['reading']:.2f}"],
            ["into task order, and looking for missing calls, s", f"{found['sorting']:.2f}"],
            ["certified path, s", seconds_cell(found["seconds"])],
            ["full passes spent", f"{found['passes']:.1f}"],
            ["2-bit calls / int8", f"{ratio:.2f}"],
            ["peak anonymous memory (RssAnon) / int8 data", f"{found['peak_anonymous'] / found['int8_bytes']:.2f}"],
            ["peak memory, mapped file included / int8 data", f"{found['peak_resident'] / found['int8_bytes']:.2f}"],
            ["worst gap", gap_cell(found["gap"]) if "gap" in found else f"{found['largest_gap']:.1e} (its own)"],
            ["rows at the last value", f"{found['rows']}"],
        ],
        "A child process that has not made the data; its peak counts the interpreter and everything.",
    )


def report_int8(report: Report, args: Any) -> None:
    answers = [child_answer(__file__, sys.argv[1:]) for _ in range(args.repeats)]
    best = sorted(answers, key=lambda a: a["seconds"])[len(answers) // 2]
    ratio = best["peak_resident"] / best["bytes"]
    report.raw(runs=answers)
    size = f"{args.tasks} tasks x {args.rows} people x {args.features:,} genotypes"
    report.headline(f"{size}, int8, certified 100-value path: seconds on {cores()} cores", f"under {MAX_SECONDS:g} s",
                    f"{best['seconds']:.1f} s", best["seconds"] < MAX_SECONDS and not best["gap"]["over"],
                    "genotypes-seconds")  # fmt: skip
    report.headline(
        f"{size}: peak memory / int8 data", f"at most {MAX_MEMORY}", f"{ratio:.2f}", ratio <= MAX_MEMORY,
        "genotypes-memory",
    )
    report.table(
        f"Genotypes: {size}, int8, 100 values to 0.01 alpha_max, intercepts",
        ["", "measured", "promised"],
        [
            ["certified path, s", seconds_cell(best["seconds"]), f"< {MAX_SECONDS:g}"],
            ["one full pass, s", f"{best['pass_seconds']:.3f}", "-"],
            ["path / full pass", f"{best['seconds'] / best['pass_seconds']:.0f}", "-"],
            ["full passes spent", f"{best['passes']:.1f}", "-"],
            ["int8 data, MiB", f"{best['bytes'] / 2**20:.0f}", "-"],
            ["peak memory (ru_maxrss) / int8 data", f"{ratio:.2f}", f"<= {MAX_MEMORY}"],
            [
                "peak anonymous memory (RssAnon) / int8 data",
                f"{best['peak_anonymous'] / best['bytes']:.2f}",
                "-",
            ],
            ["worst gap", gap_cell(best["gap"]), "1e-6"],
            [
                "rows at the last value; true markers among them",
                f"{best['rows']}; {best['found']} of {best['true']}",
                "-",
            ],
        ],
        "Peak memory is that of a whole child process: interpreter, data, everything. ADNI is not public: these "
        f"genotypes are simulated. Published for ADNI at this size: {PUBLISHED_MINUTES[0]:,.0f} minutes without "
        f"screening, {PUBLISHED_MINUTES[1]:.0f} with it.",
    )


if __name__ == "__main__":
    main()
