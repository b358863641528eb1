"""Certified paths on a GPU: seconds, cold and warm, and from which size on it pays.

    python benchmarks/gpu.py                    # on a machine with an NVIDIA GPU and torch (tasksieve[gpu])
    python benchmarks/gpu.py --only paths       # paths, cv, sizes
    python benchmarks/gpu.py --device cpu --quick     # does the script work at all?

Genotypes are simulated on the device, as int8: 0, 1 or 2 copies of an allele of frequency 0.05 to 0.5, independent;
fifty of them matter in all tasks. Paths of 100 values to 0.01 alpha_max at a relative gap of 1e-6. *Cold* is the first
path of that size in the process, with whatever has to be compiled and recorded; *warm* is the median of the following
ones. Gaps are recomputed on the device from the coefficients alone, in float64, at three values of each path.

Cross-validation: ten folds, default settings, against one path of the same data. Sizes: 20 tasks of 50 rows of float32,
d features; the same path on this machine's processor with all its cores.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from typing import Any

import numpy as np
from _common import TOL, Report, arguments, ratio_cell, say, seconds_cell

import tasksieve as ts

SIZES = {
    # name: tasks, rows of each, features, kind, smallest alpha / alpha_max, at most seconds
    "20 x 50 x 504,095 int8 (ADNI scale)": (20, 50, 504_095, "int8", 0.01, 0.35),
    "50 x 50 x 50,000 float64": (50, 50, 50_000, "float64", 0.01, None),
    "20 x 50 x 5,000,000 int8 (5 GB)": (20, 50, 5_000_000, "int8", 0.01, 0.6),
    "4 x 5,000 x 2,000,000 int8 (40 GB), to 0.3 alpha_max": (4, 5_000, 2_000_000, "int8", 0.3, 1.5),
}
QUICK = {"3 x 20 x 300 int8": (3, 20, 300, "int8", 0.05, None)}
ACTIVE = 50


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", nargs="*", choices=["paths", "cv", "sizes"])
    parser.add_argument("--repeats", type=int, default=5, help="warm runs")
    parser.add_argument("--values", type=int, default=100)
    parser.add_argument("--folds", type=int, default=10)
    args = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("left out, since there is no torch: pip install 'tasksieve[gpu]'")
        return
    if args.device == "cuda" and not torch.cuda.is_available():
        print("left out, since torch sees no CUDA device; --device cpu --quick shows whether the script works")
        return
    if args.quick:
        args.repeats, args.values, args.folds = 2, 8, 3
    report = Report("gpu", args)
    wanted = args.only or ["paths", "cv", "sizes"]
    name = torch.cuda.get_device_name() if args.device == "cuda" else "the processor"
    note = f"{name}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}."
    if "paths" in wanted:
        columns = ["tasks x rows x features", "cold, s", "warm, s", "at most, s", "passes", "selected at the end",
                   "worst gap claimed", "worst gap recomputed"]  # fmt: skip
        rows = [one_size(report, args, label, *size) for label, size in (QUICK if args.quick else SIZES).items()]
        report.table(f"Paths of {args.values} values on a GPU", columns, rows, note)
    if "cv" in wanted:
        rows = [folds(report, args)]
        columns = ["tasks x rows x features", "path, s", f"{args.folds}-fold cross-validation, s", "ratio"]
        report.table("Cross-validation on a GPU", columns, rows, note)
    if "sizes" in wanted:
        counts = [300] if args.quick else [1_000, 10_000, 100_000, 500_000]
        rows = [against_processor(report, args, d) for d in counts]
        columns = ["features (20 tasks x 50 rows, float32)", "GPU, s", "processor, s", "times faster"]
        report.table("From which size on", columns, rows, f"{note} Processor: {args.threads} threads.")
    report.finish()


def simulated(device: str, tasks: int, rows: int, d: int, kind: str, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """A tensor (rows, features) whose columns lie one after the other, labels, and the task of each row."""
    import torch

    draw = torch.Generator(device=device).manual_seed(seed)
    n = tasks * rows
    columns = torch.empty((d, n), dtype=getattr(torch, kind), device=device)
    step = max(1, (1 << 26) // n)
    for low in range(0, d, step):
        part = slice(low, min(low + step, d))
        shape = (part.stop - part.start, n)
        if kind == "int8":
            often = torch.rand((shape[0], 1), device=device, generator=draw) * 0.45 + 0.05
            first = torch.rand(shape, device=device, generator=draw) < often
            columns[part] = first.to(torch.int8) + (torch.rand(shape, device=device, generator=draw) < often)
        else:
            columns[part] = torch.randn(shape, device=device, generator=draw, dtype=columns.dtype)
    rng = np.random.default_rng(seed)
    features = np.sort(rng.choice(d, min(ACTIVE, d // 4), replace=False))
    chosen = columns[torch.from_numpy(features).to(device)].double().cpu().numpy()
    task = np.repeat(np.arange(tasks), rows)
    y = np.einsum("jt,ji->ti", rng.standard_normal((len(features), tasks)), chosen)[task, np.arange(n)]
    return columns.T, y + 0.5 * np.std(y) * rng.standard_normal(n), task


def seconds_of(device: str, work: Any) -> tuple[float, Any]:
    import torch

    began = time.perf_counter()
    found = work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began, found


def one_size(
    report: Report,
    args: argparse.Namespace,
    label: str,
    tasks: int,
    rows: int,
    d: int,
    kind: str,
    least: float,
    most: float | None,
) -> list[str]:
    say(label)
    X, y, task = simulated(args.device, tasks, rows, d, kind, args.seed)
    grid = np.geomspace(1.0, 0.01, args.values)
    grid = grid[grid >= least * (1.0 - 1e-9)]
    model = ts.MultiTaskLasso(tol=TOL)

    def path() -> Any:
        return model.path(X, y, task=task, n_alphas=len(grid), eps=float(grid[-1]))

    cold, found = seconds_of(args.device, path)
    warm = statistics.median(seconds_of(args.device, path)[0] for _ in range(args.repeats))
    claimed = float(np.max(found.dual_gaps / found.null_objective))
    positions = sorted({len(grid) // 3, 2 * len(grid) // 3, len(grid) - 1})
    checked = max(recomputed_gap(X, y, task, found, k) for k in positions)
    say(f"  cold {cold:.2f} s, warm {warm:.3f} s, gaps {claimed:.1e} claimed, {checked:.1e} recomputed")
    report.raw(size=label, cold=cold, warm=warm, passes=found.passes, claimed=claimed, recomputed=checked)
    if most is not None:
        key = {504_095: "gpu-adni", 5_000_000: "gpu-5m"}.get(d, "gpu-40gb")
        report.headline(f"on a GPU: {label}", f"{most} s", f"{warm:.2f} s", warm <= most and checked <= TOL, key)
    return [
        label,
        seconds_cell(cold),
        f"{warm:.3f}",
        "-" if most is None else f"{most}",
        f"{found.passes:.1f}",
        str(int(found.n_selected[-1])),
        f"{claimed:.1e}",
        f"{checked:.1e}",
    ]


def recomputed_gap(X: Any, y: np.ndarray, task: np.ndarray, path: Any, k: int) -> float:
    """Relative duality gap of one value from its coefficients, with nothing of the library: one pass in float64."""
    import torch

    coef, intercept = path.coef(k).tocsc(), np.asarray(path.intercept(k))
    features = np.flatnonzero(np.diff(coef.indptr))
    W = coef[:, features].toarray()
    columns = X.T
    tasks = W.shape[0]
    n_bar, alpha = len(y) / tasks, float(path.alphas[k])
    chosen = columns[torch.from_numpy(features).to(X.device)].double()
    fitted = (chosen * torch.from_numpy(W.T).to(X.device)[:, torch.from_numpy(task).to(X.device)]).sum(0).cpu().numpy()
    residual = y - fitted - intercept[task]
    means = np.bincount(task, residual) / np.bincount(task)
    primal = 0.5 * residual @ residual / n_bar + alpha * np.linalg.norm(W, axis=0).sum()
    centred = residual - means[task]  # a dual point must be orthogonal to the intercepts
    there = torch.from_numpy(centred).to(X.device)
    starts = np.searchsorted(task, np.arange(tasks + 1))
    largest, step = 0.0, max(1, (1 << 27) // len(y))
    for low in range(0, columns.shape[0], step):
        block = columns[low : low + step].double()
        found = torch.stack([block[:, a:b] @ there[a:b] for a, b in zip(starts[:-1], starts[1:], strict=True)])
        largest = max(largest, float(torch.linalg.vector_norm(found, dim=0).max()))
    scale = min(1.0, alpha * n_bar / largest) / n_bar
    dual = scale * (y @ centred) - 0.5 * n_bar * scale**2 * (centred @ centred)
    null = y - (np.bincount(task, y) / np.bincount(task))[task]
    return float((primal - dual) / (0.5 * null @ null / n_bar))


def folds(report: Report, args: argparse.Namespace) -> list[str]:
    tasks, rows, d = (3, 20, 300) if args.quick else (20, 50, 504_095)
    X, y, task = simulated(args.device, tasks, rows, d, "int8", args.seed)
    say(f"{args.folds} folds of {tasks} x {rows} x {d}")
    model = ts.MultiTaskLasso(tol=TOL)
    path, _ = min(
        (seconds_of(args.device, lambda: model.path(X, y, task=task, n_alphas=args.values)) for _ in range(3)),
        key=lambda pair: pair[0],
    )
    search = ts.MultiTaskLassoCV(cv=args.folds, n_alphas=args.values, tol=TOL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = min(seconds_of(args.device, lambda: search.fit(X, y, task=task))[0] for _ in range(2))
    report.raw(folds=args.folds, path=path, cross_validation=seconds)
    report.headline(
        f"on a GPU: {args.folds}-fold cross-validation / one path",
        "3x",
        f"{seconds / path:.1f}x",
        seconds <= 3.0 * path,
        "gpu-cv",
    )
    return [f"{tasks} x {rows} x {d:,} int8", f"{path:.3f}", seconds_cell(seconds), ratio_cell(seconds / path)]


def against_processor(report: Report, args: argparse.Namespace, d: int) -> list[str]:
    X, y, task = simulated(args.device, 20, 50, d, "float32", args.seed)
    here = np.asfortranarray(X.cpu().numpy())
    model = ts.MultiTaskLasso(tol=TOL, n_jobs=args.threads)
    there, processor = [], []
    for k in range(4):
        a = seconds_of(args.device, lambda: model.path(X, y, task=task, n_alphas=args.values))[0]
        b = seconds_of("cpu", lambda: model.path(here, y, task=task, n_alphas=args.values))[0]
        if k:  # the first compiles
            there.append(a)
            processor.append(b)
    gpu, cpu = statistics.median(there), statistics.median(processor)
    say(f"d = {d}: {gpu:.3f} s, processor {cpu:.3f} s")
    report.raw(features=d, gpu=gpu, processor=cpu)
    return [f"{d:,}", f"{gpu:.3f}", f"{cpu:.3f}", ratio_cell(cpu / gpu)]


if __name__ == "__main__":
    main()
