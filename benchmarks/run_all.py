"""Run the benchmarks and put their tables into the READMEs.

    python benchmarks/run_all.py                 # everything (an hour or two), then the tables
    python benchmarks/run_all.py lasso logistic  # these, then the tables
    python benchmarks/run_all.py --tables        # no run: the tables again from benchmarks/results/*.json
    python benchmarks/run_all.py --quick         # does every script work? Writes no table

Between `<!-- bench:NAME -->` and `<!-- /bench -->` in benchmarks/README.md and README.md stands what was measured: the
tables of results/NAME.json, the list of all promises (NAME = summary), or one figure (per-task-2000, shared-61,
...; two data sets side by side). What has no result is left alone.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from _common import RESULTS, ROOT, markdown, report_markdown, say

# name of the result -> script and options
RUNS: dict[str, tuple[str, ...]] = {
    "per_task_matrices": ("per_task_matrices.py",),
    "shared_matrix": ("shared_matrix.py",),
    "shared_matrix_whole": ("shared_matrix.py", "--only-whole"),
    "lasso": ("lasso.py",),
    "logistic": ("logistic.py",),
    "screening_figure1": ("screening.py", "--only", "figure1"),
    "screening_table1": ("screening.py", "--only", "table1"),
    "screening_figure2": ("screening.py", "--only", "figure2"),
    "genotypes": ("genotypes.py",),
    "larger_than_memory": ("larger_than_memory.py",),
    "small_fit": ("small_fit.py",),
    "entry_screening": ("entry_screening.py",),
    "online_speed": ("online_speed.py",),
    "online_optimum": ("online_optimum.py",),
    "online_gamma": ("online_gamma.py",),
    "online_school": ("online_school.py",),
    "stream_csv": ("stream_csv.py",),
    "calibrated": ("calibrated.py",),
    "calibrated_accuracy_table": ("calibrated_accuracy.py", "--only", "table"),
    "calibrated_accuracy_pivotality": ("calibrated_accuracy.py", "--only", "pivotality"),
    "calibrated_accuracy_real": ("calibrated_accuracy.py", "--only", "real"),
    "graph_svm_kernel": ("graph_svm.py", "--only", "kernel"),
    "graph_svm_liblinear_dense": ("graph_svm.py", "--only", "liblinear-dense"),
    "graph_svm_liblinear_sparse": ("graph_svm.py", "--only", "liblinear-sparse"),
    "graph_svm_growth": ("graph_svm.py", "--only", "growth"),
    "graph_real": ("graph_real.py",),
    "graph_strings": ("graph_strings.py",),
    "graph_figures": ("graph_figures.py",),
    "owl_screening": ("owl_screening.py",),
    "owl_path": ("owl_path.py",),
    "owl_path_memory": ("owl_path.py", "--only", "memory"),
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
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in RUNS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(RUNS)}")
    failed = []
    for name in [] if args.tables else args.names or RUNS:
        script, *options = RUNS[name]
        say(f"=== {name}")
        command = [
            sys.executable,
            str(ROOT / "benchmarks" / script),
            *options,
            *(["--quick"] if args.quick else []),
        ]
        if subprocess.run(command, check=False, cwd=ROOT).returncode:
            failed.append(name)
    if not args.quick:
        for file in FILES:
            if file.exists():
                write_tables(file)
        print()
        print(summary())
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


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
        content = result(name)
        new = summary() if name == "summary" else report_markdown(content) if content else ""
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


def summary() -> str:
    """Every promise, its bar, and what was measured."""
    rows = []
    for name, (script, *options) in RUNS.items():
        content = result(name)
        for line in content["headlines"] if content else []:
            met = {True: "yes", False: "**no**", None: "-"}[line["met"]]
            command = " ".join([f"benchmarks/{script}", *options])
            rows.append([line["promise"], line["bar"], line["measured"], met, f"`{command}`"])
    return markdown(["what", "promised", "measured", "met", "script"], rows) if rows else ""


if __name__ == "__main__":
    main()
