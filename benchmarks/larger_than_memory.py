"""A memory-mapped float32 matrix several times larger than the memory the process may have.

    python benchmarks/larger_than_memory.py

The matrix lies in a file, in Fortran order and in C order. A process of its own maps it, limits itself
(RLIMIT_DATA: private writable memory; --no-limit only measures), computes the certified path, and reports its peak
anonymous memory (RssAnon). Clean pages of the file do not count: the system may drop them whenever it likes.
"""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _common import (
    Report,
    Rows,
    Tasks,
    arguments,
    gap_cell,
    gap_summary,
    lambda_max,
    library,
    our_path,
    relative_gaps,
    say,
    seconds_cell,
)
from _memory import MemoryWatch, child_answer, in_child, status

BLOCK_BYTES = 64 << 20


def make_file(file: Path, order: str, n_rows: int, n_features: int, seed: int) -> None:
    """Standard Gaussian float32 entries, written block by block; both orders hold different numbers of the same law."""
    shape = (n_rows, n_features)
    X = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=shape, fortran_order=order == "F")
    lines = X.T if order == "F" else X
    step = max(1, BLOCK_BYTES // (4 * lines.shape[1]))
    rng = np.random.default_rng(seed)
    for first in range(0, lines.shape[0], step):
        block = lines[first : first + step]
        block[:] = rng.standard_normal(block.shape, dtype=np.float32)
    X.flush()


def make_targets(file: Path, n_tasks: int, seed: int) -> np.ndarray:
    """30 true features, the same in every task; signal-to-noise ratio 3."""
    X = np.load(file, mmap_mode="r")
    n = X.shape[0] // n_tasks
    rng = np.random.default_rng(seed + 1)
    support = np.sort(rng.choice(X.shape[1], 30, replace=False))
    columns = np.asarray(X[:, support], dtype=np.float64)
    coefficients = rng.standard_normal((30, n_tasks))
    y = np.concatenate([columns[t * n : (t + 1) * n] @ coefficients[:, t] for t in range(n_tasks)])
    noise = rng.standard_normal(y.size)
    return np.asarray(y + noise * np.linalg.norm(y) / (3 * np.linalg.norm(noise)))


def measure(args: Any) -> dict[str, Any]:
    """In the child: the path on the mapped file within the limit."""
    y, task = np.load(args.targets), np.repeat(np.arange(args.tasks), args.rows // args.tasks)
    alphas = args.alpha_max * np.geomspace(1, args.eps, args.values)
    X = np.load(args.matrix, mmap_mode="r")
    library()  # the interpreter and the libraries count, but are loaded before the limit is set
    if not args.no_limit:
        resource.setrlimit(resource.RLIMIT_DATA, (args.limit, args.limit))
    before = status("RssAnon")
    with MemoryWatch() as memory:
        run = our_path(X, y, task, alphas, threads=args.threads)
    features = [a.features.tolist() for a in run.answers]
    return {
        "seconds": run.seconds,
        "passes": run.passes,
        "before": before,
        "peak": memory.peak,
        "mapped_peak": status("VmHWM"),
        "features": features,
        "values": [a.values.tolist() for a in run.answers],
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=4_000, help="rows in all (10 tasks of 400)")
    parser.add_argument("--features", type=int, default=250_000)
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--values", type=int, default=100)
    parser.add_argument("--eps", type=float, default=0.05)
    parser.add_argument(
        "--times", type=float, default=4.0, help="how many times the allowed memory the file is"
    )
    parser.add_argument(
        "--no-limit", action="store_true", help="measure the anonymous memory, but set no limit"
    )
    parser.add_argument("--orders", nargs="*", default=["F", "C"], choices=["F", "C"])
    parser.add_argument("--scratch", help="folder for the files (default: the system's)")
    for name, kind in (
        ("child", str),
        ("matrix", str),
        ("targets", str),
        ("limit", int),
        ("alpha-max", float),
    ):
        parser.add_argument(f"--{name}", type=kind, help="for the script itself")
    args = parser.parse_args()
    if args.quick and not args.child:
        args.rows, args.features, args.tasks, args.values, args.no_limit = 60, 800, 3, 20, True
    if args.child:
        in_child(args.child, lambda: measure(args))
        return
    report = Report("larger_than_memory", args)
    if library() is None:
        report.finish()
        return
    table = []
    size = 4 * args.rows * args.features
    limit = int(size / args.times)
    for order in args.orders:
        with tempfile.TemporaryDirectory(prefix="tasksieve-map-", dir=args.scratch) as folder:
            file = Path(folder) / "X.npy"
            say(f"writing {size / 2**30:.2f} GiB in {order} order")
            make_file(file, order, args.rows, args.features, args.seed)
            y = make_targets(file, args.tasks, args.seed)
            np.save(Path(folder) / "y.npy", y)
            tasks = Tasks(
                np.load(file, mmap_mode="r"), y, (args.rows // args.tasks) * np.arange(args.tasks + 1)
            )
            lams = lambda_max(tasks) * np.geomspace(1, args.eps, args.values)
            options = [
                "--matrix", str(file), "--targets", str(Path(folder) / "y.npy"), "--limit", str(limit),
                "--alpha-max", repr(float(lams[0] / tasks.n_bar)), "--rows", str(args.rows), "--tasks", str(args.tasks),
                "--features", str(args.features), "--values", str(args.values), "--eps", repr(args.eps),
                "--threads", str(args.threads), *(["--no-limit"] if args.no_limit else []),
            ]  # fmt: skip
            answer = child_answer(__file__, options)
            answers = [
                Rows(np.array(f, dtype=int), np.array(v).reshape(len(f), args.tasks))
                for f, v in zip(answer.pop("features"), answer.pop("values"), strict=True)
            ]
            gap = gap_summary(relative_gaps(tasks, answers, lams))
            report.raw(order=order, bytes=size, limit=None if args.no_limit else limit, gap=gap, **answer)
        table.append([
            order, f"{size / 2**30:.2f}", "-" if args.no_limit else f"{limit / 2**30:.2f}",
            f"{answer['peak'] / 2**30:.2f}", f"{size / answer['peak']:.1f}x", seconds_cell(answer["seconds"]),
            f"{answer['passes']:.1f}", gap_cell(gap), answers[-1].features.size,
        ])  # fmt: skip
        report.headline(
            f"memory-mapped float32, {order} order, {size / 2**30:.1f} GiB: the path completes in bounded memory",
            "file several times the memory allowed",
            f"file is {size / answer['peak']:.1f}x the peak anonymous memory",
            len(answers) == args.values and not gap["over"] and answer["peak"] <= limit,
        )
    report.table(
        f"Larger than memory: {args.tasks} tasks, {args.rows:,} x {args.features:,} float32 in a file, "
        f"{args.values} values to {args.eps:g} alpha_max",
        [
            "order",
            "file, GiB",
            "allowed, GiB",
            "peak anonymous, GiB",
            "file / peak",
            "seconds",
            "passes",
            "worst gap",
            "rows at the last value",
        ],
        table,
        "Allowed: RLIMIT_DATA of the child process. Peak anonymous: RssAnon, the interpreter and libraries included.",
    )
    report.finish()


if __name__ == "__main__":
    main()
