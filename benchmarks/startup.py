"""What people wait for before anything is computed: starting, importing, the first fit; and reading a very wide table.

    python benchmarks/startup.py

Seconds of processor time of processes of their own (medians; threads of BLAS: one). Memory is the peak resident size
of a process that reads a CSV file of 15 rows (as the command line does), less that of one that has only loaded the
same libraries, beside the size of its numbers.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _common import Report, arguments, say
from _memory import child_answer, in_child, peak_resident

MOST_TIMES = 3.0  # the size of the numbers
FIRST_FIT = (
    "import numpy as np\nfrom tasksieve import MultiTaskLasso\n"
    "X = np.random.default_rng(0).standard_normal((100, 50))\n"
    "MultiTaskLasso(alpha=0.1).fit(X, X[:, :2] @ np.ones((2, 5)))"
)
STARTS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import sklearn.linear_model": ["-c", "import sklearn.linear_model"],
    "tasksieve --version": ["-m", "tasksieve", "--version"],
    "tasksieve --help": ["-m", "tasksieve", "--help"],
    "import tasksieve": ["-c", "import tasksieve"],
    "from tasksieve import MultiTaskLasso, and the first fit": ["-c", FIRST_FIT],
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--columns", type=int, default=200_000)
    parser.add_argument("--rows", type=int, default=15)
    parser.add_argument("--table", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        in_child(args.child, lambda: read_wide(args.table))
        return
    if args.quick:
        args.repeats, args.columns = 1, 20_000
    report = Report("startup", args)
    report.table(
        "Starting",
        ["command", "seconds of processor time"],
        [[f"`{name}`", f"{start(report, name, words, args.repeats):.2f}"] for name, words in STARTS.items()],
        "Medians of processes of their own.",
    )
    report.table(
        f"Reading a CSV file of {args.rows} rows and {args.columns:,} columns",
        ["numbers, MB", "file, MB", "peak beyond the libraries, MB", "times the numbers", "seconds", "promised"],
        [wide(report, args)],
    )
    report.finish()


def start(report: Report, name: str, words: list[str], repeats: int) -> float:
    """Median seconds, user and system, of a command."""
    say(name)
    seconds = []
    for _ in range(repeats + (repeats > 1)):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([sys.executable, *words], check=True, capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    report.raw(command=name, seconds=seconds)
    return statistics.median(seconds[repeats > 1 :])  # the first one compiles


def wide(report: Report, args: Any) -> list[Any]:
    say(f"{args.rows} x {args.columns}")
    with tempfile.TemporaryDirectory(prefix="tasksieve-wide-") as folder:
        table = Path(folder) / "wide.csv"
        write_wide(table, args.rows, args.columns)
        found = child_answer(__file__, ["--table", str(table)])
        size = table.stat().st_size
    numbers = 8 * args.rows * args.columns
    times = found["beyond"] / numbers
    report.raw(**found, numbers=numbers, file=size)
    report.headline(
        f"reading {args.columns:,} columns: memory / size of the numbers", f"at most {MOST_TIMES:g}x", f"{times:.2f}x",
        times <= MOST_TIMES,
    )  # fmt: skip
    megabytes = [f"{value / 1e6:.0f}" for value in (numbers, size, found["beyond"])]
    return [*megabytes, f"{times:.2f}", f"{found['seconds']:.1f}", f"<= {MOST_TIMES:g}x"]


def write_wide(table: Path, rows: int, columns: int) -> None:
    """Columns task, y and numbers with all their digits."""
    rng = np.random.default_rng(0)
    with table.open("w", encoding="utf-8") as file:
        file.write(",".join(["task", "y", *(f"x{j}" for j in range(columns - 2))]) + "\n")
        for row in range(rows):
            numbers = ",".join(map(repr, rng.standard_normal(columns - 1).tolist()))
            file.write(f"{'abc'[row % 3]},{numbers}\n")


def read_wide(table: str) -> dict[str, Any]:
    """In a process of its own: the table as the command line reads it, up to X and y."""
    import time

    import pandas as pd
    import pyarrow.csv  # noqa: F401

    from tasksieve.tables import prepare, read_table

    small = Path(table).with_name("small.csv")
    pd.DataFrame({"task": ["a", "b"], "y": [0.5, 1.5], "x0": [0.25, 0.5]}).to_csv(small, index=False)
    prepare(read_table(small), target=["y"], task="task")  # whatever is loaded on first use
    before, began = peak_resident(), time.process_time()
    problem = prepare(read_table(table), target=["y"], task="task")
    return {
        "beyond": peak_resident() - before,
        "seconds": time.process_time() - began,
        "shape": list(problem.X.shape),
    }


if __name__ == "__main__":
    main()
