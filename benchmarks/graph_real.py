"""Real data: landmine, MNIST-MTL and school; a graph against independent and pooled machines.

    python benchmarks/graph_real.py

Every split is chosen within each task. C and the strength of the graph are chosen by cross-validation on the training
rows
alone (3 folds within tasks), for each of the three models separately; features are standardised on the training rows.
Independent: no graph. Pooled: one machine for all rows. Graph: a complete graph; for landmine also the two kinds of
ground
(tasks 0-14 foliated, 15-28 bare), chosen by the same cross-validation.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _common import ROOT, Report, arguments, say
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

import tasksieve as ts
from tasksieve.graph import complete_graph

DATA = Path(os.environ.get("TASKSIEVE_DATA", ROOT.parent / "shared" / "datasets"))
Metric = Callable[[np.ndarray, np.ndarray], float]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--splits", type=int, default=20)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    splits = 2 if args.quick else args.splits
    report = Report("graph_real", args)
    rows = []

    z = np.load(DATA / "landmine.npz")
    X, y, task = z["X"], np.where(z["y"] > 0, 1, -1), z["task"].astype(int)
    ground = np.zeros((29, 29))
    ground[:15, :15] = ground[15:, 15:] = 1 / 15
    graphs = {"complete": complete_graph(29), "two grounds": ground}
    for per_task in (40,):
        rows.append(
            compare(f"landmine, {per_task} rows a task, mean AUC", X, y, task, per_task, graphs, splits, auc,
                    ts.GraphSVC,
                    {"class_weight": "balanced"}, args.seed)
        )  # fmt: skip
        say(rows[-1])

    z = np.load(DATA / "mnist.npz")
    digit = z["y"]
    pairs = ((1, 0), (7, 9), (2, 8))
    chosen = [np.flatnonzero(np.isin(digit, pair))[:2000] for pair in pairs]
    X = np.concatenate([z["X"][rows_] for rows_ in chosen]) / 255.0
    y = np.concatenate(
        [np.where(digit[rows_] == pair[0], 1, -1) for rows_, pair in zip(chosen, pairs, strict=True)]
    )
    task = np.repeat(np.arange(3), 2000)
    for per_task in (50,):
        rows.append(
            compare(f"MNIST-MTL, {per_task} rows a task, mean accuracy", X, y, task, per_task,
                    {"complete": complete_graph(3)},
                    splits, accuracy, ts.GraphSVC, {}, args.seed, scale=False)
        )  # fmt: skip
        say(rows[-1])

    z = np.load(DATA / "school.npz")
    X, y, task = z["X"].astype(float), z["y"].astype(float), z["task"].astype(int)
    for per_task in (10,):
        rows.append(
            compare(f"school, {per_task} pupils a school, mean squared error", X, y, task, per_task,
                    {"complete": complete_graph(139)}, splits, squared_error,
                    ts.GraphSVR, {"loss": "squared"}, args.seed)
        )  # fmt: skip
        say(rows[-1])
    report.raw(rows=rows)
    report.table(
        f"Real data, {splits} random splits: mean (standard error of the mean)",
        ["data", "independent", "pooled", "graph", "graph better than independent", "than pooled"],
        rows,
        "Last two columns: splits of all in which the graph was better. The paper's breast-cancer data "
        "are not to be had.",
    )
    report.finish()


def auc(y: np.ndarray, scores: np.ndarray) -> float:
    return float(roc_auc_score(y, scores)) if len(np.unique(y)) == 2 else np.nan


def accuracy(y: np.ndarray, scores: np.ndarray) -> float:
    return float(np.mean((scores > 0) == (y > 0)))


def squared_error(y: np.ndarray, scores: np.ndarray) -> float:
    return -float(np.mean((y - scores) ** 2))


def by_task(metric: Metric, y: np.ndarray, scores: np.ndarray, task: np.ndarray) -> float:
    """Mean over tasks; errors count negative, so that more is better."""
    return float(np.nanmean([metric(y[task == t], scores[task == t]) for t in np.unique(task)]))


def compare(
    name: str, X: np.ndarray, y: np.ndarray, task: np.ndarray, per_task: int,
    graphs: dict[str, np.ndarray], splits: int,
    metric: Metric, Model: Any, options: dict[str, Any], seed: int, scale: bool = True,
) -> list[str]:  # fmt: skip
    n_tasks = int(task.max()) + 1
    regression = Model is ts.GraphSVR
    found: dict[str, list[float]] = {"independent": [], "pooled": [], "graph": []}
    for split in range(splits):
        rng = np.random.default_rng(seed + split)
        train = np.zeros(len(y), dtype=bool)
        for t in range(n_tasks):
            rows = rng.permutation(np.flatnonzero(task == t))[:per_task]
            while (
                not regression and len(np.unique(y[rows])) < 2
            ):  # a task needs both classes to be learned alone
                rows = rng.permutation(np.flatnonzero(task == t))[:per_task]
            train[rows] = True
        Z, target = X, y
        if scale:
            deviation = X[train].std(axis=0)
            Z = (X - X[train].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        if regression:
            target = y - y[train].mean()
        Cs = (1e-3, 1e-2, 1e-1) if regression else (1e-2, 1e-1, 1.0)
        models = {
            "independent": [{"C": C} for C in Cs],
            "graph": [
                {"graph": graph, "graph_strength": strength, "C": C}
                for graph in graphs.values()
                for strength in (1.0, 10.0, 100.0)
                for C in Cs
            ],
        }
        folds = rng.integers(3, size=len(y))
        for kind, grid in {**models, "pooled": models["independent"]}.items():
            label = np.zeros_like(task) if kind == "pooled" else task
            chosen, best = grid[0], -np.inf
            for setting in grid:
                scores = np.full(len(y), np.nan)
                for fold in range(3):
                    inner, held = train & (folds != fold), train & (folds == fold)
                    scores[held] = fit(Model, options, setting, Z, target, label, inner, held)
                value = by_task(metric, target[train], scores[train], task[train])
                if value > best:
                    chosen, best = setting, value
            out = fit(Model, options, chosen, Z, target, label, train, ~train)
            found[kind].append(by_task(metric, target[~train], out, task[~train]))
    sign = -1.0 if regression else 1.0
    cells = [
        f"{sign * np.mean(values):.4g} ({np.std(values, ddof=1) / np.sqrt(splits):.2g})"
        for values in found.values()
    ]
    wins = [
        f"{np.sum(np.array(found['graph']) > np.array(found[other]))} of {splits}"
        for other in ("independent", "pooled")
    ]
    return [name, *cells, *wins]


def fit(
    Model: Any, options: dict[str, Any], setting: dict[str, Any], X: np.ndarray, y: np.ndarray, task: np.ndarray,
    train: np.ndarray, test: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Scores of the test rows; a task that lost all its rows to the held-out fold is predicted as 0."""
    model = Model(tol=1e-3, max_iter=300, **options, **setting).fit(X[train], y[train], task=task[train])
    scores = np.zeros(int(test.sum()))
    rows, labels = X[test], task[test]
    known = np.isin(labels, model.tasks_)
    out = model.predict if Model is ts.GraphSVR else model.decision_function
    scores[known] = out(rows[known], task=labels[known])
    return scores


if __name__ == "__main__":
    main()
