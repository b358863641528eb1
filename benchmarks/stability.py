"""Stability selection: seconds, readings of a file, and false selections beside their bound.

    python benchmarks/stability.py
    python benchmarks/stability.py --only speed

Speed: 50 pairs of complementary halves of 20 tasks x 50 rows x 5,000 features, each with its own matrix, q = 70 (the
default levels); and against the usual implementation, one fit of scikit-learn for each half, cut out of X, without
the warm start of a path: MultiTaskLasso on one matrix shared by 20 tasks, Lasso on the same rows pooled into one task.
The other side is given an alpha at which halves have used 0.9 q features on average, which it would have to search for,
and has scikit-learn's default tolerance; it fits a few halves, alternating with our fits of all, and what is compared
are seconds a half.

Readings: how often a file mapped into memory is read, by the number of pairs.

Null: data without any signal (5 tasks x 120 rows x 200 features, neighbours correlated by 1/2): the mean number of
features that are called stable, beside the bound, and what the minimum of a cross-validation selects. Signal: the same
with 5 features that matter in all tasks.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _common import (
    Report,
    Run,
    alternate,
    arguments,
    library,
    median_seconds,
    ratio_cell,
    say,
    seconds_cell,
    timed,
)
from _peers import limited

MAX_SECONDS = 2.0
N_TRUE = 5


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=["speed", "readings", "null"])
    parser.add_argument("--rows", type=int, default=50, help="of a task")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--features", type=int, default=5_000)
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--peer-halves", type=int, default=4, help="that the other side fits in a turn")
    parser.add_argument("--data-sets", type=int, default=100, help="of the simulations")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    if args.quick:
        args.rows, args.tasks, args.features, args.pairs = 20, 3, 200, 5
        args.peer_halves, args.data_sets, args.repeats = 1, 2, 1
    report = Report("stability", args)
    if args.only in (None, "speed"):
        speed(report, args)
    if args.only in (None, "readings"):
        readings(report, args)
    if args.only in (None, "null"):
        simulations(report, args)
    report.finish()


# --- seconds --------------------------------------------------------------------------------------------------------


def own_matrices(args: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One matrix per task; ten features matter."""
    rng = np.random.default_rng(args.seed)
    X = rng.standard_normal((args.rows * args.tasks, args.features))
    task = np.repeat(np.arange(args.tasks), args.rows)
    coefficients = 0.5 * rng.standard_normal((args.tasks, 10))
    y = np.einsum("ij,ij->i", X[:, :10], coefficients[task]) + rng.standard_normal(len(X))
    return X, y, task


def ours(args: Any, X: np.ndarray, y: np.ndarray, task: np.ndarray | None = None) -> Run:
    """Our fit of all halves."""
    ts = library()
    assert ts is not None
    stable = ts.StabilitySelection(
        ts.MultiTaskLasso(), n_pairs=args.pairs, random_state=args.seed, n_jobs=args.threads
    )
    seconds, _ = timed(lambda: stable.fit(X, y, task=task))
    return Run("tasksieve", seconds, [], extra={"stable": stable})


def one_by_one(args: Any, X: np.ndarray, Y: np.ndarray, alpha: float) -> Run:
    """A few halves of the rows, cut out of X and fitted from zero by scikit-learn: seconds a half."""
    from sklearn.linear_model import Lasso, MultiTaskLasso

    model = MultiTaskLasso(alpha=alpha, max_iter=10_000) if Y.ndim == 2 else Lasso(alpha=alpha, max_iter=10_000)
    rng, spent, found = np.random.default_rng(args.seed), [], []
    for _ in range(args.peer_halves):
        rows = np.sort(rng.permutation(len(X))[: len(X) // 2])
        seconds, fitted = timed(lambda rows=rows: model.fit(X[rows], Y[rows]))
        spent.append(seconds)
        found.append(int(np.count_nonzero(np.atleast_2d(fitted.coef_).any(axis=0))))
    return Run("scikit-learn", float(np.median(spent)), [], extra={"selected": found})


def usual_end(stable: Any) -> float:
    """The alpha by which halves have used 0.9 q features on average; our units are scikit-learn's."""
    used = np.asarray(stable.stability_path_.sum(axis=1)).ravel()
    return float(stable.alphas_[np.argmax(used >= 0.9 * used[-1])])


def speed(report: Report, args: Any) -> None:
    X, y, task = own_matrices(args)
    own = [ours(args, X, y, task) for _ in range(args.repeats)]
    stable, seconds = own[-1].extra["stable"], median_seconds(own)
    report.raw(what="one matrix per task", seconds=[run.seconds for run in own], q=stable.q_, passes=stable.passes_)
    size = f"{args.rows} rows x {args.tasks} tasks x {args.features:,} features"
    rows = [["one matrix per task", size, stable.q_, seconds_cell(seconds), "-", "-", "-"]]
    report.headline(
        f"stability selection, {args.pairs} pairs, {size}: seconds", f"{MAX_SECONDS:g} s", f"{seconds:.1f} s",
        None if args.quick else seconds <= MAX_SECONDS, "stability-seconds",
    )  # fmt: skip
    rng = np.random.default_rng(args.seed + 1)
    Y = X[:, :10] @ (0.5 * rng.standard_normal((10, args.tasks))) + rng.standard_normal((len(X), args.tasks))
    shared = X[: 4 * args.rows]
    for name, matrix, labels in (
        ("one shared matrix", shared, Y[: len(shared)]),
        ("one task, pooled rows", X, Y[:, 0].copy()),
    ):
        alpha = usual_end(ours(args, matrix, labels).extra["stable"])
        sides = {
            "ours": (args.repeats, lambda m=matrix, v=labels: ours(args, m, v)),
            "theirs": (
                args.repeats,
                lambda m=matrix, v=labels, a=alpha: limited(args.threads, lambda: one_by_one(args, m, v, a)),
            ),
        }
        runs = alternate(sides)
        stable = runs["ours"][-1].extra["stable"]
        each = median_seconds(runs["ours"]) / (2 * args.pairs)
        theirs = median_seconds(runs["theirs"])
        report.raw(
            what=name, q=stable.q_, alpha=alpha, ours=[run.seconds for run in runs["ours"]],
            theirs_a_half=[run.seconds for run in runs["theirs"]],
            selected=[run.extra["selected"] for run in runs["theirs"]],
        )  # fmt: skip
        wide = f"{len(matrix)} rows x {matrix.shape[1]:,} features, {1 if labels.ndim == 1 else labels.shape[1]} tasks"
        rows.append(
            [name, wide, stable.q_, seconds_cell(median_seconds(runs["ours"])), f"{1e3 * each:.1f}",
             f"{1e3 * theirs:.0f}", ratio_cell(theirs / each)]
        )  # fmt: skip
        say(f"{name}: {ratio_cell(theirs / each)}")
        report.headline(
            f"stability selection, {name}: scikit-learn's fit of a half / ours", "-", ratio_cell(theirs / each), None
        )
    report.table(
        f"{args.pairs} pairs of complementary halves",
        ["data", "size", "q", "tasksieve, s", "ms a half", "scikit-learn, ms a half", "ratio"],
        rows,
        "A half of ours is a path until q features were used, certified at every value to 1e-4; a half of theirs is "
        "one fit from zero at an alpha that was found for it. Medians.",
    )


# --- readings -------------------------------------------------------------------------------------------------------


def readings(report: Report, args: Any) -> None:
    ts = library()
    assert ts is not None
    X, y, task = own_matrices(args)
    rows = []
    with tempfile.TemporaryDirectory(prefix="tasksieve-stability-") as folder:
        mapped = np.memmap(Path(folder) / "x", dtype=np.float64, mode="w+", shape=X.shape, order="F")
        mapped[:] = X
        for n_pairs in (5, 10, 25, 50):
            stable = ts.StabilitySelection(
                ts.MultiTaskLasso(), n_pairs=n_pairs, q=min(70, args.features // 10), assumption="none"
            ).fit(mapped, y, task=task)
            rows.append([n_pairs, 2 * n_pairs, f"{stable.passes_:.1f}"])
            report.raw(what="readings", pairs=n_pairs, passes=stable.passes_)
            say(f"{n_pairs} pairs: {stable.passes_:.1f} readings")
    report.table(
        "Readings of a file mapped into memory",
        ["pairs", "halves", "readings of all data, in equivalents"],
        rows,
        "All halves walk in step and share every reading, as far as memory holds what each remembers of every feature.",
    )


# --- false selections -----------------------------------------------------------------------------------------------


def simulated(rng: np.random.Generator, size: float, n: int = 120, d: int = 200, n_tasks: int = 5) -> Any:
    """Neighbouring features are correlated by 1/2; the first of every 40 matter, with coefficients of this size."""
    X = rng.standard_normal((n_tasks * n, d))
    for j in range(1, d):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    task, true = np.repeat(np.arange(n_tasks), n), np.arange(N_TRUE) * 40
    coefficients = size * rng.choice([-1.0, 1.0], (n_tasks, N_TRUE))
    y = np.einsum("ij,ij->i", X[:, true], coefficients[task]) + rng.standard_normal(len(X))
    return X, y, task, true


def simulations(report: Report, args: Any) -> None:
    ts = library()
    assert ts is not None
    rows = []
    for name, size in (("nothing", 0.0), ("5 features, coefficients +-0.15", 0.15), ("5 features, +-0.3", 0.3)):
        counts: dict[str, list[tuple[int, int, float]]] = {}
        for k in range(args.data_sets):
            X, y, task, true = simulated(np.random.default_rng([args.seed, k]), size)
            real = np.isin(np.arange(X.shape[1]), true) & (size > 0.0)
            for assumption in ("none", "unimodal", "r-concave"):
                stable = ts.StabilitySelection(
                    ts.MultiTaskLasso(), n_pairs=args.pairs, assumption=assumption, random_state=k, n_jobs=args.threads
                ).fit(X, y, task=task)
                chosen = stable.get_support()
                counts.setdefault(f"stable, {assumption}", []).append(
                    (int(np.sum(chosen & ~real)), int(np.sum(chosen & real)), stable.pfer_bound_)
                )
            chosen = ts.MultiTaskLassoCV(n_jobs=args.threads).fit(X, y, task=task).get_support()
            counts.setdefault("minimum of a cross-validation", []).append(
                (int(np.sum(chosen & ~real)), int(np.sum(chosen & real)), np.nan)
            )
            say(f"{name}: data set {k + 1} of {args.data_sets}")
        for way, found in counts.items():
            values = np.array(found)
            error = values[:, 0].std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            bound = values[:, 2].mean()
            rows.append(
                [name, way, f"{values[:, 0].mean():.2f} +- {error:.2f}", "-" if np.isnan(bound) else f"{bound:.2f}",
                 "-" if not size else f"{values[:, 1].mean():.2f} of {N_TRUE}"]
            )  # fmt: skip
            report.raw(what="false selections", signal=name, way=way, false=values[:, 0], found=values[:, 1])
            if not size and way != "minimum of a cross-validation":
                met = None if args.quick else bool(values[:, 0].mean() + 2 * error <= bound)
                report.headline(
                    f"false selections where nothing matters, {way}", f"{bound:.2f}", f"{values[:, 0].mean():.2f}", met
                )
    report.table(
        f"False selections: {args.data_sets} data sets, 5 tasks x 120 rows x 200 features, {args.pairs} pairs",
        ["what matters", "way", "false selections (standard error)", "bound", "found"],
        rows,
        "The bound is on stable features that a half selects no more often than at random. A neighbour of a feature "
        "that matters counts as false here; the bound does not promise that.",
    )


if __name__ == "__main__":
    main()
