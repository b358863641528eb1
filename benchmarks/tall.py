"""Tall data: tables of 100,000 to 100,000,000 rows on disk, and a million rows in memory.

    python benchmarks/tall.py                       # as many rows as half of the free disk holds
    python benchmarks/tall.py --rows 100000 1000000 --only table
    python benchmarks/tall.py --only arrays

Table: simulated Parquet (float32 features, a task, a target), written in chunks; `tasksieve fit` on it,
cross-validated as by default and at one --alpha, in a process of its own that may have --memory of private memory;
against merely reading the file with pyarrow, batch by batch. What has to be seen: seconds per row and memory that do
not grow with the rows. A run that fails is reported as failed.

Arrays: 1,000,000 rows x 60 features in 50 tasks, a path of 100 values to 0.01 alpha_max by `MultiTaskLasso.path`, its
gap recomputed in NumPy, and the memory it needs beyond X; beside it scikit-learn's Lasso path of every task on its
own. That is another problem (nothing is shared between the tasks), so its ratio is for orientation.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _common import (
    Report,
    alternate,
    arguments,
    gap_cell,
    gap_summary,
    lambda_max,
    median_seconds,
    our_path,
    ratio_cell,
    relative_gaps,
    say,
    seconds_cell,
    stacked_tasks,
)
from _memory import MemoryWatch, child_answer, in_child, status, watched
from _peers import EQUAL_TOL, limited, sklearn_path

CHUNK = 200_000
N_TRUE = 5
MAX_SECONDS, MAX_TIMES_X, MAX_BYTES, MAX_GROWTH = 2.0, 1.3, 10**9, 1.2


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=["table", "arrays"])
    parser.add_argument("--rows", type=int, nargs="*", default=[10**5, 10**6, 10**7, 10**8], help="of the tables")
    parser.add_argument("--features", type=int, default=20, help="of the tables")
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--alpha", type=float, default=0.05, help="of the single fit; the features have variance 1")
    parser.add_argument("--memory", type=float, default=4.0, help="GB of private memory a fit of a table may have")
    parser.add_argument("--array-rows", type=int, default=10**6)
    parser.add_argument("--array-features", type=int, default=60)
    parser.add_argument("--values", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scratch", help="folder for the files (default: the system's)")
    parser.add_argument("--child", help="for the script itself")
    args = parser.parse_args()
    if args.child:
        in_child(args.child, lambda: arrays_in_child(args))
        return
    if args.quick:
        args.rows, args.features, args.tasks, args.repeats = [2_000, 20_000], 6, 4, 1
        args.array_rows, args.array_features, args.values = 8_000, 10, 20
    report = Report("tall", args)
    if args.only in (None, "table"):
        table(report, args)
    if args.only in (None, "arrays"):
        arrays(report, args)
    report.finish()


# --- tables -------------------------------------------------------------------------------------------------------


def write_table(file: Path, n_rows: int, n_features: int, n_tasks: int, seed: int) -> None:
    """Chunk by chunk; five features matter, with coefficients of each task's own; tasks in no order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    coefficients = rng.standard_normal((n_tasks, N_TRUE)).astype(np.float32)
    writer = None
    for first in range(0, n_rows, CHUNK):
        n = min(CHUNK, n_rows - first)
        X = rng.standard_normal((n_features, n), dtype=np.float32)
        site = rng.integers(n_tasks, size=n, dtype=np.int16)
        y = np.einsum("ji,ij->i", X[:N_TRUE], coefficients[site]) + rng.standard_normal(n, dtype=np.float32)
        columns = {f"x{j}": X[j] for j in range(n_features)} | {"site": site, "y": y}
        chunk = pa.table(columns)
        writer = writer or pq.ParquetWriter(file, chunk.schema, compression="none", use_dictionary=False)
        writer.write_table(chunk)
    if writer is not None:
        writer.close()


READ = """
import sys, pyarrow.parquet as pq
total = 0.0
for batch in pq.ParquetFile(sys.argv[1], pre_buffer=False).iter_batches(65536):  # without keeping what was read
    total += sum(column.to_numpy(zero_copy_only=False).sum(dtype=float) for column in batch.columns)
"""


def table(report: Report, args: Any) -> None:
    rows, reached = [], []
    with tempfile.TemporaryDirectory(prefix="tasksieve-tall-", dir=args.scratch) as folder:
        for n in sorted(args.rows):
            size = n * (4 * args.features + 6)
            if size > shutil.disk_usage(folder).free / 2:
                say(f"{n:,} rows need {size / 1e9:.1f} GB: more than half of the free disk, left out")
                continue
            entry = one_table(Path(folder), n, args)
            report.raw(rows=n, **entry)
            rows.append(table_row(n, entry))
            reached += [(n, entry)] if entry["cv"]["code"] == 0 else []
    report.table(
        f"Parquet tables: {args.features} float32 features, {args.tasks} tasks",
        ["rows", "file, MB", "reading, s", "fit at one alpha, s", "peak MB", "cross-validated fit, s", "peak MB",
         "us per row", "fit / reading", "cross-validated / reading"],
        rows,
        "Each in a process of its own, start of Python included; medians. Reading: pyarrow, every column summed batch "
        "by batch. Peak: resident. us per row: of the cross-validated fit. "
        f"A fit may have {args.memory:g} GB of private memory.",
    )  # fmt: skip
    if reached:
        most, last = reached[-1]
        report.headline(
            f"{most:,} rows of Parquet, cross-validated: peak memory", "1 GB", f"{last['cv']['resident'] / 1e9:.2f} GB",
            last["cv"]["resident"] <= MAX_BYTES if most >= 10**7 else None, "tall-table",
        )  # fmt: skip
        report.headline(
            f"{most:,} rows of Parquet, fit at one alpha: time / reading the file", "about 1",
            ratio_cell(last["fit"]["seconds"] / last["read"]["seconds"]), None,
        )  # fmt: skip
    large = [(n, entry["cv"]["seconds"] / n) for n, entry in reached if n >= 10**6]
    if len(large) > 1:
        growth = large[-1][1] / large[0][1]
        report.headline(
            f"seconds per row, {large[-1][0]:,} rows against {large[0][0]:,}", f"at most {MAX_GROWTH:g}x",
            ratio_cell(growth), growth <= MAX_GROWTH,
        )  # fmt: skip


def one_table(folder: Path, n: int, args: Any) -> dict[str, Any]:
    file = folder / f"{n}.parquet"
    say(f"{n:,} rows: writing")
    write_table(file, n, args.features, args.tasks, args.seed)
    fit = [sys.executable, "-m", "tasksieve", "fit", str(file), "--target", "y", "--task", "site",
           "--out", str(folder / "run"), "--overwrite", "--no-report", "--quiet",
           "--threads", str(args.threads)]  # fmt: skip
    commands = {
        "read": [sys.executable, "-c", READ, str(file)],
        "fit": [*fit, "--alpha", str(args.alpha)],
        "cv": fit,
    }
    limit = int(args.memory * 1e9)
    # the large files once: minutes do not scatter as seconds do
    repeats = args.repeats if n <= 10**6 else 1
    done: dict[str, list[dict[str, Any]]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            done[name].append(watched(command, limit))
            say(f"  {name}: {done[name][-1]['seconds']:.1f} s, code {done[name][-1]['code']}")
    entry: dict[str, Any] = {
        name: sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2] for name, runs in done.items()
    }
    entry["bytes"] = file.stat().st_size
    file.unlink()
    return entry


def table_row(n: int, entry: dict[str, Any]) -> list[Any]:
    def cells(run: dict[str, Any]) -> list[str]:
        if run["code"]:
            last = run["words"].splitlines()[-1][:80] if run["words"] else ""
            return [f"failed ({run['code']}: {last})", f"{run['resident'] / 1e6:.0f}"]
        return [seconds_cell(run["seconds"]), f"{run['resident'] / 1e6:.0f}"]

    read, fit, cv = entry["read"], entry["fit"], entry["cv"]

    def times(run: dict[str, Any]) -> str:
        return "-" if run["code"] or read["code"] else ratio_cell(run["seconds"] / read["seconds"])

    per_row = "-" if cv["code"] else f"{1e6 * cv['seconds'] / n:.2f}"
    return [
        f"{n:,}", f"{entry['bytes'] / 1e6:.0f}", seconds_cell(read["seconds"]), *cells(fit), *cells(cv), per_row,
        times(fit), times(cv),
    ]  # fmt: skip


# --- arrays -------------------------------------------------------------------------------------------------------


def arrays_in_child(args: Any) -> dict[str, Any]:
    """One process: the data, our path under a watch on its memory, then all programs in turn."""
    n, d, T = args.array_rows, args.array_features, args.tasks
    rng = np.random.default_rng(args.seed)
    X = np.empty((n, d))
    for first in range(0, n, CHUNK):  # no second copy, not even for a moment
        rng.standard_normal(out=X[first : first + CHUNK])
    task = np.repeat(np.arange(T), -(-n // T))[:n]
    y = np.einsum("ij,ij->i", X[:, :N_TRUE], rng.standard_normal((T, N_TRUE))[task]) + rng.standard_normal(n)
    tasks = stacked_tasks(X, y, task)
    lams = lambda_max(tasks, True) * np.geomspace(1, 0.01, args.values)
    alphas = lams / tasks.n_bar
    # loads the library
    our_path(X[:100], y[:100], np.arange(100) % 2, alphas[:3], fit_intercept=True, threads=args.threads)
    before = status("RssAnon")
    with MemoryWatch() as memory:
        run = our_path(X, y, task, alphas, fit_intercept=True, threads=args.threads)
    gaps = gap_summary(relative_gaps(tasks, run.answers, lams, fit_intercept=True))
    blocks = [slice(tasks.offsets[t], tasks.offsets[t + 1]) for t in range(T)]
    # centred copies in the order scikit-learn likes, made for it beforehand
    own = [(np.asfortranarray(X[rows] - X[rows].mean(axis=0)), y[rows] - y[rows].mean()) for rows in blocks]

    def separate() -> Any:
        runs = []
        for Z, z in own:
            top = np.abs(Z.T @ z).max() / len(z)
            # by the Gram matrix: so few columns, so many rows
            runs.append(sklearn_path(Z, z, top * np.geomspace(1, 0.01, args.values), EQUAL_TOL, precompute=True))
        total = runs[0]
        total.seconds = sum(one.seconds for one in runs)
        return total

    runs = alternate(
        {
            "tasksieve": (args.repeats, lambda: our_path(X, y, task, alphas, fit_intercept=True, threads=args.threads)),
            "scikit-learn": (args.repeats, lambda: limited(None, separate)),
        }
    )
    return {
        "seconds": {name: [one.seconds for one in done] for name, done in runs.items()},
        "median": {name: median_seconds(done) for name, done in runs.items()},
        "beyond": memory.peak - before,
        "bytes": X.nbytes,
        "gap": gaps,
        "selected": len(run.answers[-1].features),
    }


def arrays(report: Report, args: Any) -> None:
    names = ("array_rows", "array_features", "tasks", "values", "repeats", "threads", "seed")
    options = [text for name in names for text in (f"--{name.replace('_', '-')}", str(getattr(args, name)))]
    found = child_answer(__file__, options)
    report.raw(arrays=found)
    ours, theirs = found["median"]["tasksieve"], found["median"]["scikit-learn"]
    times_x = 1.0 + found["beyond"] / found["bytes"]
    shape = f"{args.array_rows:,} rows x {args.array_features} features in {args.tasks} tasks"
    report.table(
        f"In memory: {shape}, {args.values} values to 0.01 alpha_max",
        ["path, s", "scikit-learn's Lasso path of every task on its own, s", "its time / ours", "X, MB",
         "X and what the path adds / X", "worst gap", "features at the last value"],
        [[seconds_cell(ours), seconds_cell(theirs), ratio_cell(theirs / ours), f"{found['bytes'] / 1e6:.0f}",
          f"{times_x:.2f}", gap_cell(found["gap"]), found["selected"]]],
        "float64 in C order, intercepts; medians, in turn. scikit-learn's is another problem, without anything shared "
        "between tasks, on centred copies made beforehand, with Gram matrices.",
    )  # fmt: skip
    full = args.array_rows >= 10**6
    met = ours <= MAX_SECONDS if full else None
    report.headline(f"{shape}: path", f"{MAX_SECONDS:g} s", f"{ours:.2f} s", met, "tall-path")
    report.headline(
        f"{shape}: memory with X / X", f"at most {MAX_TIMES_X:g}", f"{times_x:.2f}",
        times_x <= MAX_TIMES_X if full else None, "tall-memory",
    )  # fmt: skip


if __name__ == "__main__":
    main()
