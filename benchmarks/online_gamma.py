"""What ``gamma="auto"`` of the online models is worth, and how its constants were found.

    python benchmarks/online_gamma.py

Streams of thirteen kinds (features scaled or not, with offsets, correlated, sparse, heavy-tailed; a first row out
of all proportion; tasks that come rarely, or late; noise of several kinds), each learned once through. "auto" is
compared with the best of a grid of fixed values, half a decade apart over 20 decades, chosen afterwards, for each
stream by itself and for each measure by itself: by the progressive loss (every row predicted before it is learned,
relative to the loss of the best constants where that is smaller than the grid's), and by R² or accuracy on fresh
rows. A fixed value has to be known beforehand; this comparison gives it that for nothing.

The second part varies the constants of the rule in the NumPy twin of the kernel, one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from _common import Report, arguments, say

import tasksieve as ts
from tasksieve._kernels.reference import dual_averaging as twin

KINDS = {
    "scaled": "standard normal features",
    "noisy": "the same, noise three times the signal",
    "unscaled": "scales of the features from 0.01 to 100",
    "offset": "means of the features five times their spread",
    "large": "all features times 10,000",
    "correlated": "neighbours correlated by 0.9",
    "sparse": "about ten features a row",
    "counts": "Poisson counts of unequal rates",
    "heavy features": "Student, 2.1 degrees of freedom",
    "heavy rows": "whole rows scaled by a Pareto variable of index 1.5",
    "first row large": "the first row times 100",
    "rare tasks": "the k-th task with a share of 1/k",
    "late tasks": "tasks join one after the other",
}
SIZES = ((10, 1), (10, 20), (100, 3), (5, 60))  # features, tasks
LOSSES = {"squared": 0.02, "logistic": 0.05, "hinge": 0.05}  # alpha as a share of the largest
PENALTIES = ("l21", "l11", "l1+l21")
GRID = 10.0 ** np.arange(-8, 12.1, 0.5)


@dataclass
class Stream:
    X: np.ndarray
    y: np.ndarray
    task: np.ndarray
    fresh: tuple[np.ndarray, np.ndarray, np.ndarray]
    alpha_max: float
    constant: float  # loss of the best constants


def make(kind: str, loss: str, d: int, n_tasks: int, n: int, seed: int) -> Stream:
    rng = np.random.default_rng(seed)
    total = n + 2_000
    X = rng.standard_normal((total, d))
    if kind == "unscaled":
        X *= 10.0 ** rng.uniform(-2, 2, d)
    elif kind == "offset":
        X += 5.0 * rng.standard_normal(d)
    elif kind == "large":
        X *= 1e4
    elif kind == "correlated":
        for j in range(1, d):
            X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(0.19) * X[:, j]
    elif kind == "sparse":
        X *= rng.random(X.shape) < min(1.0, 10 / d)
    elif kind == "counts":
        X = rng.poisson(rng.gamma(0.2, 5.0, d), X.shape).astype(float)
    elif kind == "heavy features":
        X = rng.standard_t(2.1, X.shape)
    elif kind == "heavy rows":
        X *= rng.pareto(1.5, (total, 1)) + 0.3
    elif kind == "first row large":
        X[0] *= 100.0
    task = rng.integers(0, n_tasks, total)
    if kind == "rare tasks":
        shares = 1.0 / np.arange(1, n_tasks + 1)
        task = rng.choice(n_tasks, total, p=shares / shares.sum())
    elif kind == "late tasks":
        task[:n] = np.minimum(task[:n], np.arange(n) * n_tasks // n)
    used = rng.permutation(d) < min(d, 10)
    W = (rng.standard_normal(d) + 0.5 * rng.standard_normal((n_tasks, d))) * used
    if not kind.startswith("heavy"):
        spread = X.std(axis=0)
        W = W / np.where(spread > 0, spread, 1.0)
    signal = np.einsum("ij,ij->i", X, W[task])
    signal -= np.median(signal)
    signal /= 1.48 * np.median(np.abs(signal))
    y = signal + (3.0 if kind == "noisy" else 0.5) * rng.standard_normal(total)
    y = y + 3.0 * rng.standard_normal(n_tasks)[task] if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    own = [task[:n] == q for q in range(n_tasks)]
    left = y[:n] - np.array([y[:n][rows].mean() if rows.any() else 0.0 for rows in own])[task[:n]]
    means = np.array([(left[rows] @ X[:n][rows]) / max(1, rows.sum()) for rows in own])
    alpha_max = float(np.sqrt((means**2).sum(axis=0)).max()) * (0.5 if loss == "logistic" else 1.0)
    constant = {"squared": 0.5 * float(np.mean(left**2)), "logistic": float(np.log(2)), "hinge": 1.0}[loss]
    return Stream(X[:n], y[:n], task[:n], (X[n:], y[n:], task[n:]), alpha_max, constant)


def learn(stream: Stream, loss: str, **params: Any) -> tuple[float, float]:
    """Progressive loss / that of the best constants, and R² (of all fresh rows together) or accuracy."""
    Model: Any = ts.OnlineMultiTaskRegressor if loss == "squared" else ts.OnlineMultiTaskClassifier
    model = Model(LOSSES[loss] * stream.alpha_max, loss=loss, average=False, **params)
    try:
        model.partial_fit(stream.X, stream.y, task=stream.task)
    except ValueError:  # it has diverged
        return np.inf, -np.inf
    X, y, task = stream.fresh
    kept = np.isin(task, model.tasks_)
    with np.errstate(over="ignore"):
        found = model.predict(X[kept], task=task[kept])
        if loss == "squared":
            quality = 1.0 - np.mean((found - y[kept]) ** 2) / np.var(y[kept])
        else:
            quality = np.mean(found == y[kept])
        return model.progressive_loss_ / stream.constant, float(quality)


def compare(report: Report, n: int, seed: int, grid: np.ndarray, quick: bool) -> None:
    rows, short, ratios, diverged = [], [], [], 0
    for loss in LOSSES:
        for penalty in PENALTIES:
            found = []
            for kind in KINDS:
                for d, n_tasks in SIZES[: 1 if quick else None]:
                    stream = make(kind, loss, d, n_tasks, n, seed)
                    fixed = np.array([learn(stream, loss, penalty=penalty, gamma=g) for g in grid])
                    best_loss, best_quality = min(1.0, fixed[:, 0].min()), fixed[:, 1].max()
                    own = learn(stream, loss, penalty=penalty)
                    one = learn(stream, loss, penalty=penalty, gamma=1.0)
                    diverged += not np.isfinite(own[0])
                    found.append((own[0] / best_loss, best_quality - own[1], one[0] / best_loss))
                    what = {"loss": loss, "penalty": penalty, "kind": kind, "d": d, "tasks": n_tasks}
                    report.raw(**what, ratio=found[-1][0], short=found[-1][1])
            ratio, behind, fixed_one = np.array(found).T
            ratios.append(ratio)
            short.append(behind)
            rows.append(
                [
                    loss,
                    penalty,
                    f"{np.median(ratio):.2f}",
                    f"{np.quantile(ratio, 0.9):.2f}",
                    f"{ratio.max():.2f}",
                    f"{np.median(behind):+.3f}",
                    f"{np.quantile(behind, 0.9):+.3f}",
                    f"{np.count_nonzero(fixed_one > 2.0)} of {len(fixed_one)}",
                ]
            )
            say(rows[-1])
    report.table(
        f"gamma='auto' against the best of {len(grid)} fixed values chosen afterwards, {n:,} rows a stream",
        [
            "loss",
            "penalty",
            "progressive loss / best: median",
            "90 %",
            "largest",
            "R² or accuracy behind the best: median",
            "90 %",
            "gamma=1 more than twice the best loss",
        ],
        rows,
    )
    every, behind = np.concatenate(ratios), np.concatenate(short)
    report.headline("gamma='auto' never diverges", "0 streams", f"{diverged} of {len(every)}", diverged == 0)
    median = float(np.median(every))
    report.headline(
        "progressive loss / that of the best fixed gamma, median", "1.1", f"{median:.2f}", median <= 1.1
    )
    median = float(np.median(behind))
    report.headline(
        "R² or accuracy behind that of the best fixed gamma, median", "0.02", f"{median:+.3f}", median <= 0.02
    )


def vary(report: Report, n: int, seed: int) -> None:
    """The constants, one at a time, in the twin."""
    values = {
        "SHARE": (0.125, 0.25, 0.5, 1.0, 2.0),
        "WAY": (0.25, 0.5, 1.0, 2.0, 1e300),
        "CROWDING": (0.0, 0.125, 0.25, 0.375),
        "BEFORE": (0.0, 10.0, 30.0, 100.0),
        "CUT": (2.0, 4.0, 16.0, 1e300),
        "OFFSET": (0.5, 1.0, 2.0),
    }
    words = {
        "SHARE": "share of the squared mean size",
        "WAY": "of the way to the target, at most",
        "CROWDING": "power of the task's share",
        "BEFORE": "rows of zeros before the first",
        "CUT": "times the mean, at most",
        "OFFSET": "gamma of the intercepts, times",
    }
    usual = {name: getattr(twin, name) for name in values}
    streams = [
        (loss, make(kind, loss, d, n_tasks, n, seed))
        for loss in ("squared", "logistic")
        for kind in KINDS
        for d, n_tasks in SIZES[:2]
    ]
    rows = []
    for name, tried in values.items():
        for value in tried:
            setattr(twin, name, value)
            losses = np.array([_twin_loss(stream, loss) for loss, stream in streams])
            setattr(twin, name, usual[name])
            middle = np.exp(np.mean(np.log(np.minimum(losses, 1e6))))
            mark = " (chosen)" if value == usual[name] else ""
            shown = "none" if value == 1e300 else f"{value:g}"
            rows.append(
                [words[name], shown + mark, f"{middle:.3f}", f"{losses.max():.3g}", f"{np.mean(losses > 1.5):.0%}"]
            )
            say(rows[-1])
    report.table(
        f"Constants of the rule, one varied at a time: progressive loss / that of the best constant predictions, "
        f"{len(streams)} streams",
        ["constant", "value", "geometric mean", "largest", "above 1.5"],
        rows,
    )


def _twin_loss(stream: Stream, loss: str) -> float:
    learner = twin.DualAveraging()
    alpha = LOSSES[loss] * stream.alpha_max
    code = {"squared": twin.SQUARED, "logistic": twin.LOGISTIC}[loss]
    learner.configure(twin.L21, twin.PER_TASK, code, alpha, np.nan, 0.0, 0.0, True, False, 0.0)
    learner.resize(stream.X.shape[1], int(stream.task.max()) + 1)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if learner.learn_dense(stream.X, stream.y, stream.task, None) < len(stream.y):
            return np.inf
    return float(learner.foresight["loss"].sum() / learner.foresight["weight"].sum()) / stream.constant


def main() -> None:
    args = arguments(__doc__).parse_args()
    report = Report("online_gamma", args)
    compare(report, 300 if args.quick else 5_000, args.seed, GRID[::8] if args.quick else GRID, args.quick)
    vary(report, 100 if args.quick else 1_500, args.seed)
    report.finish()


if __name__ == "__main__":
    main()
