"""A CSV file of two million rows through `tasksieve stream`: rows per second, and memory that does not grow.

    python benchmarks/stream_csv.py

Five tasks, 20 features of which 5 matter. The same command is run on the first tenth of the rows and on all of them,
each in a process of its own; peak resident memory is that of the whole process, libraries included.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _common import Report, arguments, say

BLOCK = 20_000


def write_csv(file: Path, n_rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((5, 20)) * (np.arange(20) < 5)
    with open(file, "w", encoding="ascii") as out:
        out.write(",".join(["task", *(f"x{j}" for j in range(20)), "y"]) + "\n")
        for first in range(0, n_rows, BLOCK):
            n = min(BLOCK, n_rows - first)
            X, task = rng.standard_normal((n, 20)).round(4), rng.integers(0, 5, n)
            y = np.einsum("ij,ij->i", X, W[task]) + 0.5 * rng.standard_normal(n)
            np.savetxt(out, np.column_stack([task, X, y]), fmt=["t%d", *["%.4f"] * 21], delimiter=",")


def stream(file: Path, out: Path, max_rows: int | None) -> tuple[float, float]:
    """Seconds, and peak resident memory in MB, of a process that streams the file."""
    command = [
        sys.executable, "-m", "tasksieve", "stream", str(file), "--target", "y", "--task", "task", "--alpha", "0.2",
        "--gamma", "50", "--out", str(out), "--quiet",
    ]  # fmt: skip
    if max_rows is not None:
        command += ["--max-rows", str(max_rows)]

    began = time.perf_counter()
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        sys.exit(f"the stream ended with status {status}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    args = parser.parse_args()
    n_rows = 100_000 if args.quick else args.rows
    report = Report("stream_csv", args)
    with tempfile.TemporaryDirectory(prefix="tasksieve-stream-") as folder:
        file = Path(folder) / "rows.csv"
        say("writing", f"{n_rows:,} rows")
        write_csv(file, n_rows, args.seed)
        size = file.stat().st_size / 2**20
        rows = []
        peaks = []
        for label, part in (("first tenth", n_rows // 10), ("all", None)):
            seconds, peak = stream(file, Path(folder) / label.replace(" ", "-"), part)
            count = part or n_rows
            peaks.append(peak)
            rows.append([label, f"{count:,}", f"{seconds:.1f}", f"{count / seconds:,.0f}", f"{peak:.0f} MB"])
            say(rows[-1])
    report.table(
        f"`tasksieve stream` on a CSV file of {size:.0f} MB",
        ["rows", "number", "seconds", "rows a second", "peak resident memory"],
        rows,
    )
    growth = peaks[1] - peaks[0]
    report.headline(
        "memory does not grow from a tenth of the rows to all of them",
        "20 MB",
        f"{growth:+.0f} MB",
        growth <= 20,
    )
    report.finish()


if __name__ == "__main__":
    main()
