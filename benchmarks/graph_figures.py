"""Figures 1, 2 and 3 of Widmer et al. (2012), drawn again.

    python benchmarks/graph_figures.py                # three PNG files into docs/_static; a few minutes
    python benchmarks/graph_figures.py --only 3       # AUPRC over the training size (see --sizes)

Figure 1: how far the objective is from the optimum, against time. Each point is a fit of its own at a tolerance of its
own, from W = 0, so that no recording is timed. The kernel (scikit-learn's SVC on the precomputed matrix
M[s, t] <x, z>) is timed with its matrix and measured by its own dual objective, since its bias is not regularised; on
Gauss2D that matrix would take 80 GB. Figure 2: seconds to relative precision 1e-4 over n. Figure 3: synthetic windows
(see graph_strings.py) stand in for the splice sites.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import _extras  # noqa: F401  (says what to install where matplotlib is not)
import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from _common import ROOT, Report, arguments, say, timed
from graph_strings import TREE, windows
from graph_svm import landmine, mnist, ours
from matplotlib.ticker import NullFormatter
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score
from sklearn.svm import SVC

import tasksieve as ts
from tasksieve.datasets import evolve_consensus
from tasksieve.graph import complete_graph, task_similarity, tree_graph

OURS, THEIRS, THIRD = "#2a6fbb", "#c2571a", "#5b8c3a"
FIGURES = ROOT / "docs" / "_static"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", type=int, nargs="*", choices=(1, 2, 3), default=(1, 2, 3))
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 30_000, 100_000, 300_000, 1_000_000])
    parser.add_argument("--out", type=Path, default=FIGURES)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    args.out.mkdir(parents=True, exist_ok=True)
    whole = set(args.only) == {1, 2, 3}
    report = Report("graph_figures" if whole else "graph_figures_" + "_".join(map(str, args.only)), args)
    for number, draw in ((1, precision_over_time), (2, time_over_rows), (3, quality_over_rows)):
        if number in args.only:
            figure, points = draw(args)
            report.raw(figure=number, points=points)
            name = args.out / f"graph_figure{number}.png"
            figure.savefig(name, dpi=80)
            say(f"{name}: {name.stat().st_size / 1024:.0f} KB")
    report.finish()


def gauss(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two tasks in the plane, two normal clouds each; the tasks' means differ a little."""
    rng = np.random.default_rng(seed)
    task, y = np.repeat([0, 1], n // 2), rng.choice([-1, 1], n)
    centre = y[:, None] * np.array([[1.0, 0.4], [0.8, 0.8]])[task]
    return centre + rng.standard_normal((n, 2)), y, task


def kernel_runs(
    X: np.ndarray, y: np.ndarray, task: np.ndarray, C: float, tolerances: tuple[float, ...]
) -> list[tuple[float, float]]:
    """(seconds with the matrix, relative distance of the dual objective from its best) for every tolerance."""
    M = task_similarity(complete_graph(int(task.max()) + 1))
    gram_seconds, K = timed(lambda: M[np.ix_(task, task)] * (X @ X.T))
    found = []
    for tol in tolerances:
        seconds, model = timed(lambda t=tol: SVC(C=C, kernel="precomputed", tol=t, cache_size=1000).fit(K, y))
        a, at = model.dual_coef_.ravel(), model.support_
        found.append((gram_seconds + seconds, float(np.abs(a).sum() - 0.5 * a @ K[np.ix_(at, at)] @ a)))
        say(f"kernel, n = {len(y):,}, tol {tol:g}: {gram_seconds:.2f} + {seconds:.2f} s")
    best = max(value for _, value in found)
    return [(seconds, (best - value) / (C * len(y))) for seconds, value in found]


def our_runs(
    X: np.ndarray, y: np.ndarray, task: np.ndarray, C: float, tolerances: tuple[float, ...], threads: int
) -> list[tuple[float, float]]:
    """(seconds, relative distance of the objective from a certified optimum) for every tolerance."""
    graph = complete_graph(int(task.max()) + 1)
    scale = C * len(y)
    exact = ours(graph, C, 1e-8, X, y, task, threads)
    lowest = exact.objective_ - exact.dual_gap_
    found = []
    for tol in tolerances:
        runs = [timed(lambda t=tol: ours(graph, C, t, X, y, task, threads)) for _ in range(3)]
        seconds, model = sorted(runs, key=lambda run: run[0])[1]
        found.append((seconds, (model.objective_ - lowest) / scale))
    return found


def precision_over_time(args: Any) -> tuple[Any, Any]:
    few = args.quick
    sets = {
        "Gauss2D, 2 tasks": (*gauss(2_000 if few else 100_000, args.seed), 1.0, False),
        "landmine, 29 tasks": (*(part[: 1_000 if few else None] for part in landmine()), 1.0, True),
        "MNIST-MTL, 3 tasks": (*mnist(600 if few else 12_000), 0.1, True),
    }
    tolerances = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained")
    data = {}
    for axis, (name, (X, y, task, C, with_kernel)) in zip(axes, sets.items(), strict=True):
        mine = our_runs(X, y, task, C, tolerances, args.threads)
        say(name, mine)
        axis.loglog(*zip(*mine, strict=True), "o-", color=OURS, label="tasksieve")
        theirs = kernel_runs(X, y, task, C, (1.0, 1e-1, 1e-2, 1e-3)) if with_kernel else []
        shown = [point for point in theirs if point[1] > 0]  # the last one is the yardstick
        if shown:
            axis.loglog(*zip(*shown, strict=True), "s--", color=THEIRS, label="multi-task kernel")
        axis.set_title(f"{name}, n = {len(y):,}, C = {C:g}", fontsize=9)
        times = [seconds for seconds, _ in mine + theirs]
        axis.set_xlim(min(times) / 5, max(times) * 5)
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xlabel("seconds")
        axis.grid(alpha=0.3)
        data[name] = {"ours": mine, "kernel": theirs}
    axes[0].set_ylabel("function difference / objective at 0")
    axes[1].legend(fontsize=8)
    return figure, data


def time_over_rows(args: Any) -> tuple[Any, Any]:
    few = args.quick
    sizes = (300, 600) if few else (750, 1_500, 3_000, 6_000, 12_000)
    X_mines, y_mines, task_mines = landmine()
    mixed = np.random.default_rng(args.seed).permutation(len(y_mines))  # every part has rows of all fields

    def mines(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        part = np.sort(mixed[:n])
        return np.ascontiguousarray(X_mines[part]), y_mines[part], task_mines[part]

    sets = {
        "Gauss2D": (lambda n: gauss(n, args.seed), 1.0, () if few else (30_000, 100_000)),
        "landmine": (mines, 1.0, ()),
        "MNIST-MTL": (mnist, 0.1, ()),
    }
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained")
    data = {}
    for axis, (name, (draw, C, more)) in zip(axes, sets.items(), strict=True):
        mine, theirs = [], []
        for n in (*sizes, *more):
            X, y, task = draw(n)
            graph = complete_graph(int(task.max()) + 1)
            runs = [
                timed(lambda x=X, y=y, k=task, g=graph, c=C: ours(g, c, 1e-4, x, y, k, args.threads))
                for _ in range(3)
            ]
            mine.append((len(y), sorted(seconds for seconds, _ in runs)[1]))
            if n not in more:  # the kernel's matrix of 100,000 rows would take 80 GB
                found = kernel_runs(X, y, task, C, (1.0, 1e-1, 1e-2, 1e-3, 1e-4))
                theirs.append((len(y), min(seconds for seconds, precision in found if precision <= 1e-4)))
            say(name, mine[-1], theirs[-1])
        axis.loglog(*zip(*mine, strict=True), "o-", color=OURS, label="tasksieve, certified")
        axis.loglog(*zip(*theirs, strict=True), "s--", color=THEIRS, label="multi-task kernel")
        axis.set_title(f"{name}, C = {C:g}", fontsize=9)
        axis.set_xlabel("rows")
        axis.grid(alpha=0.3)
        data[name] = {"ours": mine, "kernel": theirs}
    axes[0].set_ylabel("seconds to precision 1e-4")
    axes[0].legend(fontsize=8)
    return figure, data


def quality_over_rows(args: Any) -> tuple[Any, Any]:
    graph, _ = tree_graph(TREE)
    consensus = evolve_consensus(random_state=args.seed)
    n_test = 1_000 if args.quick else 20_000
    X_test, y_test, task_test = windows(n_test, consensus, args.seed + 1)
    curves: dict[str, list[tuple[int, float]]] = {"multi-task": [], "independent": [], "pooled": []}
    for n in (500, 1_000) if args.quick else args.sizes:
        X, y, task = windows(n, consensus, args.seed + 2)
        for kind, curve in curves.items():
            one = np.zeros_like
            train, test = (one(task), one(task_test)) if kind == "pooled" else (task, task_test)
            model = ts.GraphSVC(
                graph if kind == "multi-task" else None, C=3.0, hasher=ts.WeightedDegreeHasher(8), tol=1e-2,
                n_jobs=args.threads,
            )  # fmt: skip
            seconds, _ = timed(lambda m=model, x=X, y=y, k=train: m.fit(x, y, task=k))
            scores = model.decision_function(X_test, task=test)
            each = [average_precision_score(y_test[task_test == t], scores[task_test == t]) for t in range(4)]
            curve.append((n, float(np.mean(each))))
            say(n, kind, f"{seconds:.1f} s", f"{curve[-1][1]:.4f}")
    figure, axis = plt.subplots(figsize=(5, 3.4), layout="constrained")
    for (kind, curve), color, mark in zip(
        curves.items(), (OURS, THIRD, THEIRS), ("o-", "^-", "s--"), strict=True
    ):
        axis.semilogx(*zip(*curve, strict=True), mark, color=color, label=kind)
    axis.set_xlabel("training windows (4 organisms)")
    axis.set_ylabel("area under precision-recall curve")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    return figure, curves


if __name__ == "__main__":
    main()
