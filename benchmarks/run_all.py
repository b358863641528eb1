"""Run the benchmarks and put their tables into the READMEs.

    python benchmarks/run_all.py                 # everything (about 8 hours), then the tables
    python benchmarks/run_all.py lasso logistic  # these, then the tables
    python benchmarks/run_all.py --list          # what there is, and about how many minutes each takes
    python benchmarks/run_all.py --tables        # no run: the tables again from benchmarks/results/*.json
    python benchmarks/run_all.py --quick         # tiny sizes: does every script work? Writes no table

Between `<!-- bench:NAME -->` and `<!-- /bench -->` in benchmarks/README.md and README.md stands what was measured: the
tables of results/NAME.json, the list of all promises (NAME = summary), or one figure (per-task-2000, shared-61,
...; two data sets side by side). What has no result is left alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from _common import RESULTS, ROOT, cores, markdown, report_markdown, say


class Job(NamedTuple):
    """A script, its options, and about how many minutes it takes on two idle cores."""

    minutes: float
    script: str
    options: tuple[str, ...] = ()


# name of the result -> what makes it; everyday sizes first, then the extremes
RUNS: dict[str, Job] = {
    "everyday": Job(90, "everyday.py", ("--resume",)),
    "tall": Job(30, "tall.py"),
    "small_fit": Job(1, "small_fit.py"),
    "startup": Job(1, "startup.py"),
    "stability": Job(30, "stability.py"),
    "permutations": Job(2, "permutations.py"),
    "rules_and_noise": Job(1, "rules_and_noise.py"),
    "findings": Job(10, "findings.py"),
    "intervals": Job(60, "intervals.py"),
    "verification": Job(10, "verification.py"),
    "per_task_matrices": Job(20, "per_task_matrices.py"),
    "shared_matrix": Job(15, "shared_matrix.py"),
    "shared_matrix_whole": Job(10, "shared_matrix.py", ("--only-whole",)),
    "opponents": Job(40, "opponents.py", ("--resume",)),
    "lasso": Job(5, "lasso.py"),
    "logistic": Job(1, "logistic.py"),
    "members": Job(15, "members.py"),
    "pairs": Job(25, "pairs.py"),
    "outcomes": Job(10, "outcomes.py"),
    "certified_gaps": Job(2, "certified_gaps.py"),
    "proved_need": Job(8, "proved_need.py"),
    "midpoint": Job(2, "midpoint.py"),
    "row_metrics": Job(4, "row_metrics.py"),
    "screening_figure1": Job(120, "screening.py", ("--only", "figure1", "--resume")),
    "screening_table1": Job(25, "screening.py", ("--only", "table1")),
    "screening_figure2": Job(30, "screening.py", ("--only", "figure2")),
    "screening_limits": Job(10, "screening_limits.py"),
    "genotypes": Job(12, "genotypes.py"),
    "larger_than_memory": Job(5, "larger_than_memory.py"),
    "cluster": Job(15, "cluster.py"),
    "federated_paths": Job(5, "federated.py", ("--only", "paths")),
    "federated_wide": Job(3, "federated.py", ("--only", "wide")),
    "federated_widest": Job(5, "federated.py", ("--only", "widest")),
    "federated_largest": Job(30, "federated.py", ("--only", "largest")),
    "federated_seeds": Job(25, "federated.py", ("--only", "seeds")),
    "federated_problems": Job(3, "federated.py", ("--only", "problems")),
    "federated_rivals": Job(3, "federated.py", ("--only", "rivals")),
    "gpu": Job(3, "gpu.py"),  # ends at once, and says so, where there is no GPU
    "entry_screening": Job(1, "entry_screening.py"),
    "online_speed": Job(2, "online_speed.py"),
    "online_optimum": Job(1, "online_optimum.py"),
    "online_gamma": Job(5, "online_gamma.py"),
    "penalties_school": Job(5, "penalties_school.py"),
    "compare_coverage_same_features": Job(3, "compare_coverage.py", ("--only", "same features", "--sets", "40")),
    "compare_coverage_own_features": Job(2, "compare_coverage.py", ("--only", "own features", "--sets", "60")),
    "compare_coverage_two_classes": Job(5, "compare_coverage.py", ("--only", "two classes", "--sets", "40")),
    "conformal": Job(15, "conformal.py"),
    "transfer": Job(25, "transfer.py"),
    "pretraining": Job(45, "pretraining.py"),
    "compare_coverage_nested": Job(15, "compare_coverage.py", ("--nested", "--sets", "40")),
    "online_school": Job(2, "online_school.py"),
    "stream_csv": Job(1, "stream_csv.py"),
    "export": Job(2, "export.py"),
    "calibrated": Job(8, "calibrated.py"),
    "calibrated_accuracy_table": Job(5, "calibrated_accuracy.py", ("--only", "table")),
    "calibrated_accuracy_pivotality": Job(5, "calibrated_accuracy.py", ("--only", "pivotality")),
    "calibrated_accuracy_real": Job(5, "calibrated_accuracy.py", ("--only", "real")),
    "graph_svm_kernel": Job(3, "graph_svm.py", ("--only", "kernel")),
    "graph_svm_liblinear_dense": Job(3, "graph_svm.py", ("--only", "liblinear-dense")),
    "graph_svm_liblinear_sparse": Job(2, "graph_svm.py", ("--only", "liblinear-sparse")),
    "graph_svm_growth": Job(3, "graph_svm.py", ("--only", "growth")),
    "graph_real": Job(20, "graph_real.py"),
    "graph_strings": Job(5, "graph_strings.py"),
    "graph_figures": Job(10, "graph_figures.py"),
    "owl_screening": Job(10, "owl_screening.py"),
    "owl_path": Job(5, "owl_path.py"),
    "owl_path_memory": Job(1, "owl_path.py", ("--only", "memory")),
}
FILES = (ROOT / "benchmarks" / "README.md", ROOT / "README.md")
MARKED = re.compile(r"(<!-- bench:([\w-]+) -->)(.*?)(<!-- /bench -->)", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").strip(), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(RUNS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes; no table is written")
    parser.add_argument("--tables", action="store_true", help="only write the tables")
    parser.add_argument("--list", action="store_true", help="only say what would run, and for how long")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in RUNS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(RUNS)}")
    names = list(args.names or RUNS)
    if args.list:
        for name in names:
            job = RUNS[name]
            print(f"{job.minutes:5g} min  {name:32} python benchmarks/{job.script} {' '.join(job.options)}")
    hours = sum(RUNS[name].minutes for name in names) / 60
    length = "10 minutes on two cores are promised" if args.quick else f"about {hours:.1f} hours on two idle cores"
    if not args.tables:
        print(f"{len(names)} runs, {length} (python benchmarks/run_all.py --list)", flush=True)
    if args.list:
        return
    run = [] if args.tables else names
    failed = run_quick(run) if args.quick else [name for name in run if not run_one(name)]
    if not args.quick:
        for file in FILES:
            if file.exists():
                write_tables(file)
        print()
        print(summary())
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def run_one(name: str) -> bool:
    """Whether it ended well."""
    job = RUNS[name]
    say(f"=== {name}")
    began = time.perf_counter()
    command = [sys.executable, str(ROOT / "benchmarks" / job.script), *job.options]
    done = subprocess.run(command, check=False, cwd=ROOT)
    say(f"=== {name}: {time.perf_counter() - began:.0f} s")
    return not done.returncode


def run_quick(names: list[str]) -> list[str]:
    """Tiny sizes, as many scripts at a time as there are cores, one thread each and nothing compiled by numba, which
    would take most of the time; those that failed. What a script printed is seen where it failed."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TASKSIEVE_NUM_THREADS", "RAYON_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(threads, "1"), "NUMBA_DISABLE_JIT": "1"}
    seconds: dict[str, float] = {}
    failed: list[str] = []

    def run(name: str) -> None:
        job = RUNS[name]
        command = [sys.executable, str(ROOT / "benchmarks" / job.script), *job.options, "--quick"]
        began = time.perf_counter()
        done = subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True)
        seconds[name] = time.perf_counter() - began
        say(f"{seconds[name]:6.0f} s  {name}{'  FAILED' if done.returncode else ''}")
        if done.returncode:
            failed.append(name)
            say(done.stdout + done.stderr)

    began = time.perf_counter()
    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(run, names))
    longest = sorted(seconds, key=lambda name: -seconds[name])[:5]
    say(f"{time.perf_counter() - began:6.0f} s  in all; longest: {', '.join(longest)}")
    return failed


def result(name: str) -> dict[str, Any] | None:
    file = RESULTS / f"{name}.json"
    content: dict[str, Any] | None = json.loads(file.read_text()) if file.exists() else None
    return content if content and "headlines" in content else None  # not one that an older script has left


def write_tables(file: Path) -> None:
    """Replace what stands between the markers, where there is a result for it."""
    figures = key_figures()

    def text(match: re.Match[str]) -> str:
        start, name, old, end = match.groups()
        if not old.startswith("\n"):  # within a line: one figure
            return f"{start}{figures.get(name, old)}{end}"
        content = result(name.removesuffix("-short"))
        if name == "summary":
            new = summary(old)
        elif name.endswith("-short"):
            new = content.get("short", "") if content else ""
        else:
            new = report_markdown(content) if content else ""
        return f"{start}\n{new}\n{end}" if new else f"{start}{old}{end}"

    old = file.read_text(encoding="utf-8")
    new = MARKED.sub(text, old)
    if new != old:
        file.write_text(new, encoding="utf-8")
        say(f"tables written to {file.relative_to(ROOT)}")


def key_figures() -> dict[str, str]:
    """Single figures by name; several of one name (data sets) stand side by side."""
    figures: dict[str, list[str]] = {}
    for name in RUNS:
        content = result(name)
        for line in content["headlines"] if content else []:
            if line.get("key") and line["met"] is not None:
                figures.setdefault(line["key"], []).append(line["measured"])
    return {key: " / ".join(values) for key, values in figures.items()}


MET = {True: "yes", False: "**no**", None: "-"}


def summary(written: str = "") -> str:
    """Every promise, its bar, and what was measured; of scripts without a result here, what was written before."""
    rows: dict[str, list[list[str]]] = {}
    for line in written.strip().splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows.setdefault(cells[-1], []).append(cells)
    for name, job in RUNS.items():
        content = result(name)
        if content:
            command = f"`{' '.join([f'benchmarks/{job.script}', *job.options])}`"
            rows[command] = [
                [line["promise"], line["bar"], line["measured"], MET[line["met"]], command]
                for line in content["headlines"]
            ]
    table = [row for several in rows.values() for row in several]
    return markdown(["what", "promised", "measured", "met", "script"], table) if table else ""


if __name__ == "__main__":
    main()
