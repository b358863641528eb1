"""A path on a local Dask cluster: what crosses the network at a value, and what that means for real machines.

    python benchmarks/cluster.py            # 2 and 4 worker processes, two widths
    python benchmarks/cluster.py --quick

Worker processes share the cores of this machine with each other: of times, only ratios mean anything. Counted are
trips (a message to all workers, and their answers), bytes out and in, columns taken and full passes. Folds and halves
go in step: they are counted at the first width, beside a path.

The model of a path of K values on m machines, each a worker of c cores, X of n rows and d features of b bytes:

    client     what the engine computes by itself, measured, proportional to n
    trips      trips * (latency of an empty trip, measured here, plus 1 ms for a real network)
    network    (vectors sent * 8 n * m + bytes received) / bandwidth; vectors sent and columns received are counted,
               columns are b n bytes each
    passes     passes * n d b / (m * c * bytes that one core reads and multiplies a second, measured)
    bounds     K * 2 * d * T * anchors * 4 bytes / (m * memory bandwidth)

Columns that do not fit into 256 GB a machine are read again in each pass, at 2 GB/s a machine. The same model, with one
process for a machine, no network and the cores they really have, is compared with what was measured here.
"""

from __future__ import annotations

import logging
import tempfile
import time
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
from _common import Report, arguments, cores, ratio_cell, say, seconds_cell

BANDWIDTH = 10e9 / 8  # bytes a second
REAL_LATENCY = 1e-3
CORES_A_MACHINE, MEMORY_A_MACHINE, DISK = 32, 256e9, 2e9
MEMORY_BANDWIDTH = 100e9
ANCHORS = 5


@dataclass
class Counts:
    """Of one path, without loading."""

    seconds: float
    trips: int
    sent: int
    received: int
    passes: float
    columns: int


def make_store(folder: Path, n: int, d: int, n_tasks: int, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    import zarr

    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d), dtype=np.float32)
    task = np.repeat(np.arange(n_tasks), n // n_tasks)
    W = np.zeros((n_tasks, d))
    W[:, rng.choice(d, 30, replace=False)] = rng.standard_normal((n_tasks, 30))
    y = np.einsum("ij,ij->i", X, W[task])
    y += rng.standard_normal(n) * np.linalg.norm(y) / (3 * np.sqrt(n))
    store = zarr.create_array(folder / f"x{d}.zarr", shape=X.shape, chunks=(n, max(1, d // 16)), dtype=X.dtype)
    store[:] = X
    return X, y, task


def local_run(
    X: np.ndarray, y: np.ndarray, task: np.ndarray, grid: np.ndarray, starts: np.ndarray
) -> tuple[Any, float]:
    """The same path in this process, with the same cutting and the same bounds: those that a process makes from inner
    products of anchors, where features are many, are not made in a cluster, and so bits would differ."""
    from tasksieve.design import DenseStorage, Design
    from tasksieve.path.problem import Problem
    from tasksieve.path.solve import solve_path

    parts = [DenseStorage(np.asfortranarray(X[:, a:b])) for a, b in zip(starts[:-1], starts[1:], strict=True)]
    offsets = np.searchsorted(task, np.arange(task.max() + 2))
    design = Design(parts, offsets)
    design.shard.joint_bounds = False
    problem = Problem(design, y, unit=len(y) / (task.max() + 1))
    began = time.perf_counter()
    solution = solve_path(problem, grid * problem.unit)
    return solution, time.perf_counter() - began


def cluster_run(store: Any, y: np.ndarray, task: np.ndarray, grid: np.ndarray | None, n_values: int) -> Any:
    """The path on the active client: solution, grid, counts, ranges of features."""
    from tasksieve import MultiTaskLasso

    model = MultiTaskLasso()
    data = model._read_with(store, y, task, None, None)
    problem = model._problem(data)
    if grid is None:
        grid = model._alpha_max(problem, data) * np.geomspace(1, 0.1, n_values)
    fleet = data.make_storage().fleet
    far = problem.design.shard
    before = far.passes
    taken = [0]
    take = far.take

    def counted(features: np.ndarray) -> Any:
        taken[0] += len(features)
        return take(features)

    far.take = counted
    was = fleet.traffic.trips, fleet.traffic.sent, fleet.traffic.received
    began = time.perf_counter()
    solution = model._solve(data, problem, grid)
    seconds = time.perf_counter() - began
    now = fleet.traffic
    said = now.trips - was[0], now.sent - was[1], now.received - was[2]
    counts = Counts(seconds, *said, far.passes - before, taken[0])
    return solution, grid, counts, fleet


def in_step(store: Any, y: np.ndarray, task: np.ndarray, n_values: int) -> list[list[Any]]:
    """A path, folds and halves on the active client, each with columns of its own: what crosses, and passes."""
    import tasksieve as ts

    rows = []
    for words, work in (
        (f"path, {n_values} values", lambda X: ts.MultiTaskLasso().path(X, y, task=task, n_alphas=n_values, eps=0.1)),
        (
            f"the same and 5 folds, {n_values} values",
            lambda X: ts.MultiTaskLassoCV(cv=5, n_alphas=n_values, eps=0.1).fit(X, y, task=task),
        ),
        (
            "10 halves until 20 features",
            lambda X: ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=5, q=20, assumption="none").fit(
                X, y, task=task
            ),
        ),
    ):
        fleets = noted_fleets()
        began = time.perf_counter()
        done = work(store)
        seconds = time.perf_counter() - began
        traffic = [fleet.traffic for fleet in fleets]
        passes = done.passes_ if hasattr(done, "passes_") else done.passes
        rows.append([
            words, seconds_cell(seconds), sum(one.trips for one in traffic),
            f"{sum(one.sent for one in traffic) / 1e6:.1f}", f"{sum(one.received for one in traffic) / 1e6:.1f}",
            f"{passes:.1f}",
        ])  # fmt: skip
    return rows


def noted_fleets() -> list[Any]:
    """All fleets that are made from now on."""
    from tasksieve.design.cluster.fleet import Fleet

    found: list[Any] = []
    begin = getattr(Fleet.__init__, "__wrapped__", Fleet.__init__)

    @wraps(begin)
    def noted(fleet: Any, *arguments: Any) -> None:
        begin(fleet, *arguments)
        found.append(fleet)

    Fleet.__init__ = noted  # type: ignore[method-assign]
    return found


def same_bits(a: Any, b: Any) -> bool:
    alike = np.array_equal(a.features, b.features) and np.array_equal(a.rows, b.rows)
    return alike and a.dual_gap == b.dual_gap and a.n_rejected == b.n_rejected


def empty_trip(fleet: Any, repeats: int = 20) -> float:
    """Seconds of a message that asks nothing."""
    from distributed.protocol.pickle import dumps

    from tasksieve.design.cluster import worker
    from tasksieve.design.cluster.messages import Message

    packed = bytes(dumps(([Message(fleet.data, "nobody", {}, [])], [])))
    addresses = sorted(fleet.client.nthreads())
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        fleet.client.nthreads()
        fleet.client.run(worker.serve, packed, workers=addresses)
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def pass_rate(X: np.ndarray, y: np.ndarray, task: np.ndarray) -> float:
    """Bytes of X that one core reads and multiplies in a second."""
    from tasksieve.design import DenseStorage

    x = np.asfortranarray(X[:, : min(X.shape[1], 20_000)])
    storage, offsets = DenseStorage(x), np.searchsorted(task, np.arange(task.max() + 2))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        storage.products(y, offsets, False, None, False, 1)
        times.append(time.perf_counter() - began)
    return x.nbytes / float(np.median(times))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=2500)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--features", type=int, nargs="+", default=[50_000, 200_000])
    parser.add_argument("--values", type=int, default=100)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    args = parser.parse_args()
    if args.quick:
        args.rows, args.tasks, args.features, args.values, args.workers = 300, 4, [2000, 8000], 30, [2]
    report = Report("cluster", args)
    measure(args, report)
    report.finish()


def measure(args: Any, report: Report) -> None:
    from distributed import Client, LocalCluster

    import tasksieve as ts

    table, checks, last, together = [], [], None, []
    with tempfile.TemporaryDirectory(prefix="tasksieve-cluster-") as name:
        for d in args.features:
            X, y, task = make_store(Path(name), args.rows, d, args.tasks, args.seed)
            for n_workers in args.workers:
                say(f"{d:,} features, {n_workers} workers")
                with (
                    LocalCluster(
                        n_workers=n_workers, threads_per_worker=max(1, cores() // n_workers), dashboard_address=":0",
                        silence_logs=logging.ERROR,
                    ) as local,
                    Client(local),
                ):
                    store = ts.open_zarr(Path(name) / f"x{d}.zarr")
                    solution, grid, counts, fleet = cluster_run(store, y, task, None, args.values)
                    latency = empty_trip(fleet)
                    if not together:
                        together = in_step(store, y, task, min(args.values, 30))
                    near, seconds = local_run(X, y, task, grid, fleet.starts)
                same = all(map(same_bits, solution.points, near.points))
                rate = pass_rate(X, y, task)
                values = len(grid)
                vectors = counts.sent / (8.0 * args.rows * n_workers)
                reading = counts.passes * X.nbytes / (rate * cores())
                client = max(seconds - reading, 0.0)
                predicted = client + counts.trips * latency + counts.passes * X.nbytes / (rate * cores())
                table.append([
                    f"{d:,}", n_workers, ratio_cell(counts.seconds / seconds), f"{counts.trips / values:.2f}",
                    f"{counts.sent / values / 1e3:.0f}", f"{counts.received / values / 1e3:.0f}",
                    f"{vectors / values:.2f}", f"{counts.columns / values:.1f}", f"{counts.passes:.1f}",
                    f"{2.0 * counts.passes * args.rows * d / values:.1e}", "yes" if same else "NO",
                ])  # fmt: skip
                checks.append([f"{d:,}", n_workers, f"{1e3 * latency:.1f}", ratio_cell(predicted / counts.seconds)])
                last = counts, client, latency, rate, vectors
                report.raw(
                    features=d, workers=n_workers, local_seconds=seconds, latency=latency, rate=rate, same_bits=same,
                    **vars(counts),
                )  # fmt: skip
    report.table(
        f"A path of {args.values} values on a local cluster: {args.tasks} tasks, {args.rows:,} rows, float32 in Zarr",
        [
            "features", "workers", "time / local threads", "trips a value", "kB out a value", "kB in a value",
            "vectors out a value", "columns taken a value", "passes", "flops of passes a value", "same bits",
        ],
        table,
        "kB out: to all workers together. Loading is not counted; workers and client share the cores.",
    )  # fmt: skip
    report.table(
        f"Fits in step: {args.features[0]:,} features, {args.workers[0]} workers",
        ["", "seconds", "trips", "MB out", "MB in", "passes"],
        together,
        "One message has the questions of all folds or halves; columns cross once for all.",
    )
    report.raw(in_step=together)
    report.table(
        "The model against what was measured here",
        ["features", "workers", "empty trip, ms", "model / measured"],
        checks,
        "With one process for a machine, the cores they really have, and no network.",
    )
    assert last is not None
    predict(args, report, *last)


def predict(
    args: Any, report: Report, counts: Counts, client: float, latency: float, rate: float, vectors: float
) -> None:
    rows, n, itemsize = [], 100_000, 1
    for d in (1e6, 1e7):
        for machines in (4, 16, 64):
            share = n * d * itemsize / machines
            fits = share <= 0.6 * MEMORY_A_MACHINE
            speed = min(rate * CORES_A_MACHINE, MEMORY_BANDWIDTH) if fits else DISK
            parts = {
                "client": client * n / args.rows,
                "trips": counts.trips * (latency + REAL_LATENCY),
                "network": (vectors * 8.0 * n * machines + counts.columns * float(itemsize) * n) / BANDWIDTH,
                "passes": counts.passes * share / speed,
                "bounds": args.values * 2.0 * d * args.tasks * ANCHORS * 4.0 / (machines * MEMORY_BANDWIDTH),
            }
            rows.append([
                f"{d:.0e}", machines, "yes" if fits else "no", *(seconds_cell(part) for part in parts.values()),
                seconds_cell(sum(parts.values())),
            ])  # fmt: skip
    report.table(
        f"Predicted seconds of a path of {args.values} values: {n:,} rows of one byte, {args.tasks} tasks, 10 Gbit/s",
        ["features", "machines", "in memory", "client", "trips", "network", "passes", "bounds", "all"],
        rows,
        f"{CORES_A_MACHINE} cores and {MEMORY_A_MACHINE / 1e9:.0f} GB a machine; counts of the last measurement above, "
        "whose rows are fewer: trips, vectors, columns and passes are taken to be the same. Not measured on machines.",
    )


if __name__ == "__main__":
    main()
