"""Sites that keep their rows: rounds, bytes and agreement with the pooled fit; and the algorithm of dsMTL beside it.

    python benchmarks/federated.py --only paths      # or wide, widest, largest, seeds, problems, rivals; minutes each

Simulated sites in one process, which exchange the integers that real ones would (`federated.in_memory`); every value of
the path to a relative gap of 1e-6. Bytes are those of the numbers, for one site; an envelope with a signature adds some
hundred to each round. The bars are what a prototype needed on settings of the same kind. "Same sets" compares the
selected features with those of the pooled fit of the same rows, also to 1e-6; objectives lie "outside" where they
differ by more than the gaps of both.

dsMTL (Cao et al. 2022) is R and GPL, and needs a server at each site. Here is its algorithm, written anew from the
paper: accelerated proximal gradients on the L2,1 penalty with warm starts along the path. A round is a message to all
sites and back: a gradient, or a value for the search of a step length. Its defaults are 50 iterations a value and a
relative change of the objective of 0.01; beside them the same until the true gap is 1e-6, which its users cannot see.
Rows are centred before, as intercepts would do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _common import TOL, Report, arguments, say

import tasksieve as ts
from tasksieve.federated.in_memory import SitesInMemory
from tasksieve.federated.local import LocalProblem
from tasksieve.federated.path import FederatedPath
from tasksieve.federated.together import follow
from tasksieve.tasks import read_tasks

Rows = list[tuple[np.ndarray, np.ndarray]]


@dataclass
class Setting:
    """A problem: data by `simulated`, and options of the path; `rounds` and `megabytes` are the bar, of an earlier
    prototype."""

    name: str
    loss: str = "squared"
    data: dict[str, Any] = field(default_factory=dict)
    path: dict[str, Any] = field(default_factory=dict)
    pooled: Callable[[], Any] | None = ts.MultiTaskLasso
    group: str = "paths"
    rounds: int = 0
    megabytes: float = 0.0


UNEVEN = tuple(np.linspace(40, 200, 8).astype(int).tolist())
SETTINGS = (
    Setting("8 x 40 x 1,000", rounds=10, megabytes=2.2),
    Setting("same, 100 values to 0.01", path={"n_values": 100, "eps": 0.01}, rounds=13, megabytes=8.4),
    Setting("same, gap 1e-9", path={"tol": 1e-9}, pooled=None, rounds=12, megabytes=2.4),
    Setting("8 x 100 x 1,000, AR 0.8", data={"rows": 100, "rho": 0.8}, path={"n_values": 100}, rounds=10,
            megabytes=1.9),
    Setting("3 sites x 80 x 2,000", data={"sites": 3, "rows": 80, "d": 2000}, rounds=12, megabytes=2.3),
    Setting("20 sites x 50 x 2,000", data={"sites": 20, "rows": 50, "d": 2000}, rounds=10, megabytes=2.7),
    Setting("ridge 20, 8 x 60 x 1,000", data={"rows": 60}, path={"ridge": 20.0}, rounds=15, megabytes=17.1,
            pooled=lambda: ts.MultiTaskRegressor(ridge=20.0 / 60)),
    Setting("sparse group, l1_ratio 0.3, 8 x 60 x 1,000", data={"rows": 60},
            path={"l1_ratio": 0.3, "n_values": 30, "eps": 0.1},
            pooled=lambda: ts.MultiTaskRegressor(penalty=ts.penalties.SparseGroup(l1=0.3, group=1.0))),
    Setting("8 x (40..200) x 20,000", data={"rows": UNEVEN, "d": 20_000, "used": 20}, group="wide", rounds=10,
            megabytes=6.1),
    Setting("8 x 40 x 100,000", data={"rows": 40, "d": 100_000, "used": 20, "dtype": np.float32}, group="widest",
            rounds=15, megabytes=56.5, pooled=None),
    Setting("8 x 40 x 500,000", data={"rows": 40, "d": 500_000, "used": 20, "dtype": np.float32}, group="largest",
            megabytes=100.0, pooled=None),
    Setting("logistic, 8 x 100 x 1,000", "logistic", {"rows": 100, "used": 8}, rounds=14, megabytes=9.8,
            pooled=ts.MultiTaskClassifier),
    Setting("Poisson, 8 x 100 x 1,000", "poisson", {"rows": 100, "used": 8}, rounds=17, megabytes=12.0,
            pooled=ts.MultiTaskPoisson),
    Setting("Huber 1.35, 8 x 100 x 1,000", "huber", {"rows": 100, "used": 8}, rounds=23, megabytes=7.2,
            pooled=ts.MultiTaskHuber),
)  # fmt: skip
QUICK = (
    Setting("4 x 20 x 60", data={"sites": 4, "rows": 20, "d": 60, "used": 4}, path={"n_values": 8, "eps": 0.2}),
    Setting("logistic, 3 x 30 x 40", "logistic", {"sites": 3, "rows": 30, "d": 40, "used": 3},
            {"n_values": 5, "eps": 0.3}, ts.MultiTaskClassifier),
)  # fmt: skip
GROUPS = ("paths", "wide", "widest", "largest", "seeds", "problems", "rivals")
SEEDS = range(1, 6)  # none of which was looked at when anything was chosen


def simulated(
    loss: str, seed: int, sites: int = 8, rows: Any = 40, d: int = 1000, used: int = 15, rho: float = 0.0,
    dtype: Any = np.float64,
) -> Rows:  # fmt: skip
    """A task at each site: normal columns, neighbours correlated by `rho`; `used` features with normal coefficients."""
    rng = np.random.default_rng(seed)
    W = np.zeros((d, sites))
    W[rng.permutation(d)[:used]] = rng.standard_normal((used, sites))
    tasks = []
    for t in range(sites):
        n = int(np.broadcast_to(rows, sites)[t])
        X = rng.standard_normal((d, n), dtype=dtype).T if dtype != np.float64 else rng.standard_normal((n, d))
        for j in range(1, d if rho else 0):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
        z = X @ W[:, t]
        if loss == "logistic":
            y = (rng.random(n) < 1.0 / (1.0 + np.exp(-z))).astype(float)
        elif loss == "poisson":
            y = rng.poisson(np.exp(np.clip(0.3 * z, -3.0, 2.0))).astype(float)
        else:
            y = z + 0.5 * rng.standard_normal(n)
        tasks.append((X, y))
    return tasks


def sites_of(tasks: Rows, loss: str, problems: Any = None, **options: Any) -> SitesInMemory:
    kind = "classes" if loss == "logistic" else "values"
    each = problems or [None] * len(tasks)
    return SitesInMemory(
        [
            LocalProblem(read_tasks([X], [y], targets=kind), loss, problems=own, **options)
            for (X, y), own in zip(tasks, each, strict=True)
        ]
    )


def one_path(setting: Setting, seed: int, report: Report) -> list[Any]:
    tasks = simulated(setting.loss, seed, **setting.data)
    sites = sites_of(tasks, setting.loss)
    path = FederatedPath(tasks[0][0].shape[1], loss=setting.loss, **({"tol": TOL} | setting.path))
    began = time.perf_counter()
    follow([path], sites.ask)
    seconds = time.perf_counter() - began
    same = outside = "-"
    if setting.pooled is not None:
        same, outside = compared(path, setting.pooled(), tasks)
    worst = float(np.max(path.gaps)) / path.null_loss
    report.raw(
        setting=setting.name, rounds=sites.rounds, questions=sites.questions, up=sites.up, down=sites.down,
        worst_gap=worst, seconds=seconds, same=same, outside=outside,
    )  # fmt: skip
    bar = bar_of(setting)
    megabytes = f"{sites.up / 1e6:.2f} / {sites.down / 1e6:.2f}"
    last = len(path.features(len(path.values) - 1))
    return [setting.name, len(path.values), sites.rounds, megabytes, bar, f"{worst:.1e}", last, same, outside]


def bar_of(setting: Setting) -> str:
    return f"{setting.rounds or '-'}; {setting.megabytes}" if setting.megabytes else "-"


def other_seeds(setting: Setting, report: Report) -> list[Any]:
    """Least and most over seeds that nothing was chosen by."""
    runs = [one_path(setting, seed, report) for seed in SEEDS]
    rounds = [run[2] for run in runs]
    up, down = ([float(run[3].split(" / ")[k]) for run in runs] for k in (0, 1))
    same = [[int(number) for number in run[7].split("/")] for run in runs if run[7] != "-"]
    sets = "/".join(str(sum(each)) for each in zip(*same, strict=True)) or "-"
    outside = sum(int(run[8]) for run in runs if run[8] != "-")
    megabytes = f"{min(up):.2f}-{max(up):.2f} / {min(down):.2f}-{max(down):.2f}"
    worst = max(runs, key=lambda run: float(run[5]))[5]
    return [setting.name, f"{min(rounds)}-{max(rounds)}", megabytes, bar_of(setting), worst, sets, outside]


def compared(path: FederatedPath, model: Any, tasks: Rows) -> tuple[str, str]:
    """Values with the selected set of the pooled fit; objectives further from its than the gaps allow."""
    counts = [len(y) for _, y in tasks]
    unit = float(np.mean(counts))
    X, y = np.vstack([X for X, _ in tasks]), np.concatenate([y for _, y in tasks])
    task = np.repeat(np.arange(len(tasks)), counts)
    pooled = model.set_params(tol=TOL).path(X, y, task=task, alphas=path.lams / unit)
    away = path.objectives - pooled.objectives * unit
    slack = 1e-10 * path.null_loss
    outside = (away > path.gaps + slack) | (-away > pooled.dual_gaps * unit + slack)
    same = [np.array_equal(path.features(k), np.sort(pooled.features(k))) for k in range(len(away))]
    return f"{sum(same)}/{len(same)}", str(int(outside.sum()))


def many_problems(seed: int, quick: bool, report: Report) -> list[list[Any]]:
    """Five folds and all rows; forty halves."""
    d, rows, count = (60, 20, 4) if quick else (1000, 60, 40)
    tasks = simulated("squared", seed, sites=8, rows=rows, d=d, used=4 if quick else 15)
    rng = np.random.default_rng(seed + 1)
    folds = [rng.permutation(len(y)) % 5 for _, y in tasks]
    halves = [[rng.permutation(len(y)) < len(y) // 2 for _ in range(count // 2)] for _, y in tasks]
    problems = [
        {f"fold {f}": np.where(fold == f, 0.0, 1.0) for f in range(5)}
        | {f"half {2 * h + side}": (half == bool(side)).astype(float) for h, half in enumerate(own) for side in (0, 1)}
        for fold, own in zip(folds, halves, strict=True)
    ]
    found = []
    plans: list[tuple[str, list[str], dict[str, Any], dict[str, Any], str]] = [
        ("5 folds and all rows, 50 values each", [f"fold {f}" for f in range(5)], {"held_out": True}, {}, "12; 9.5"),
        (f"{count} halves, 15 values to 0.3 of their own", [f"half {h}" for h in range(count)],
         {"own_values": True, "n_values": 15, "eps": 0.3}, {"n_values": 15, "eps": 0.3}, "11; 17.7"),
    ]  # fmt: skip
    for name, names, options, whole_options, bar in plans:
        say(name)
        sites = sites_of(tasks, "squared", problems)
        whole = FederatedPath(d, **whole_options)
        paths = [whole, *(FederatedPath(d, problem=problem, leader=whole, **options) for problem in names)]
        follow(paths, sites.ask)
        worst = max(float(np.max(path.gaps)) / path.null_loss for path in paths)
        report.raw(setting=name, rounds=sites.rounds, up=sites.up, down=sites.down, worst_gap=worst)
        megabytes = f"{sites.up / 1e6:.2f} / {sites.down / 1e6:.2f}"
        found.append([name, sum(len(path.values) for path in paths), sites.rounds, megabytes, bar, f"{worst:.1e}"])
    return found


# --- the other algorithm --------------------------------------------------------------------------------------


@dataclass
class Count:
    """Messages to all sites and back, and bytes for one site."""

    rounds: int = 0
    up: int = 0
    down: int = 0

    def add(self, down: int, up: int) -> None:
        self.rounds, self.up, self.down = self.rounds + 1, self.up + 8 * up, self.down + 8 * down


def relative_gap(tasks: Rows, W: np.ndarray, lam: float) -> float:
    """From the rows, which nobody of such a federation sees together."""
    residuals = [y - X @ W[:, t] for t, (X, y) in enumerate(tasks)]
    products = np.stack([X.T @ r for (X, _), r in zip(tasks, residuals, strict=True)], axis=1)
    square = sum(float(r @ r) for r in residuals)
    labels = sum(float(y @ r) for (_, y), r in zip(tasks, residuals, strict=True))
    null = 0.5 * sum(float(y @ y) for _, y in tasks)
    scale = min(labels / square, lam / float(np.linalg.norm(products, axis=1).max()))
    primal = 0.5 * square + lam * float(np.linalg.norm(W, axis=1).sum())
    return (primal - scale * labels + 0.5 * scale**2 * square) / null


def proximal_path(
    tasks: Rows, lams: np.ndarray, done: Callable[[int, list[float], np.ndarray, float], bool]
) -> tuple[Count, np.ndarray, list[np.ndarray]]:
    """Accelerated proximal gradients along a path. `done(iteration, objectives, W, lam)` ends a value.

    The step length is searched for anew at each value, from curvature 1 by doubling: each trial is a round.
    """
    d, count = tasks[0][0].shape[1], Count()
    n = float(np.mean([len(y) for _, y in tasks]))
    W, gaps, supports = np.zeros((d, len(tasks))), [], []

    def value(at: np.ndarray) -> float:
        count.add(d, 1)
        return sum(float(np.sum(np.square(y - X @ at[:, t]))) for t, (X, y) in enumerate(tasks)) / (2.0 * n)

    for lam in lams:
        previous, curvature, momentum, last = W, 1.0, 1.0, 0.0
        objectives: list[float] = []
        for iteration in range(100_000):
            at = W + (last - 1.0) / momentum * (W - previous)
            residuals = [y - X @ at[:, t] for t, (X, y) in enumerate(tasks)]
            gradient = np.stack([-(X.T @ r) / n for (X, _), r in zip(tasks, residuals, strict=True)], axis=1)
            smooth = sum(float(r @ r) for r in residuals) / (2.0 * n)
            count.add(d, d + 1)
            while True:
                moved = at - gradient / curvature
                norms = np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-300)
                trial = moved * np.maximum(1.0 - lam / (n * curvature) / norms, 0.0)
                step = trial - at
                length = float(np.sum(step * step))
                reached = value(trial)
                if reached <= smooth + float(np.sum(step * gradient)) + 0.5 * curvature * length or length <= 1e-20:
                    break
                curvature *= 2.0
            previous, W = W, trial
            objectives.append(reached + lam / n * float(np.linalg.norm(W, axis=1).sum()))
            if done(iteration, objectives, W, float(lam)):
                break
            last, momentum = momentum, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        gaps.append(relative_gap(tasks, W, float(lam)))
        supports.append(np.flatnonzero(W.any(axis=1)))
    return count, np.array(gaps), supports


def rivals(seed: int, quick: bool, report: Report) -> list[list[Any]]:
    shape: dict[str, Any] = {"sites": 4, "rows": 20, "d": 60, "used": 4} if quick else {}
    tasks = [(X - X.mean(axis=0), y - y.mean()) for X, y in simulated("squared", seed, **shape)]
    sites = sites_of(tasks, "squared", fit_intercept=False)
    path = FederatedPath(tasks[0][0].shape[1], **({"n_values": 6, "eps": 0.3} if quick else {}))
    follow([path], sites.ask)
    gaps = path.gaps / path.null_loss
    sets = [set(path.features(k).tolist()) for k in range(len(gaps))]
    total = len(sets)
    found = [["ours", sites.rounds, f"{sites.up / 1e6:.1f} / {sites.down / 1e6:.1f}", f"{np.median(gaps):.1e}",
              f"{gaps.max():.1e}", f"{total}/{total}"]]  # fmt: skip

    def change(limit: int, tol: float) -> Callable[[int, list[float], np.ndarray, float], bool]:
        return lambda i, f, W, lam: i + 1 >= limit or (i >= 2 and abs(f[-1] - f[-2]) <= tol * f[-2])

    rules = [
        ("proximal gradients, dsMTL's defaults", change(50, 0.01)),
        ("same, tolerance 1e-6, 5,000 iterations", change(5000, 1e-6)),
        ("same, to a gap of 1e-6", lambda i, f, W, lam: relative_gap(tasks, W, lam) <= TOL),
    ]
    for name, done in rules:
        say(name)
        count, gaps, supports = proximal_path(tasks, path.lams, done)
        right = sum(set(own.tolist()) == best for own, best in zip(supports, sets, strict=True))
        report.raw(rival=name, rounds=count.rounds, up=count.up, down=count.down, gaps=gaps, right=right)
        found.append([name, count.rounds, f"{count.up / 1e6:.1f} / {count.down / 1e6:.1f}", f"{np.median(gaps):.1e}",
                      f"{gaps.max():.1e}", f"{right}/{total}"])  # fmt: skip
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=GROUPS, default="paths", help="what to measure")
    given = parser.parse_args()
    report = Report(f"federated_{given.only}", given)
    paths = [setting for setting in (QUICK if given.quick else SETTINGS) if setting.group == given.only]
    rows = []
    for setting in paths:
        say(setting.name)
        rows.append(one_path(setting, given.seed, report))
    columns = ["problem", "values", "rounds", "MB up / down a site", "bar: rounds; MB up", "worst gap", "selected",
               "same sets", "outside"]  # fmt: skip
    if rows:
        report.table("Paths", columns, rows)
    if given.only == "seeds":
        rows = []
        for setting in QUICK if given.quick else [one for one in SETTINGS if one.group == "paths"]:
            say(setting.name)
            rows.append(other_seeds(setting, report))
        names = ["problem", "rounds", "MB up / down a site", *columns[4:6], *columns[7:]]
        report.table("Five other seeds, least to most", names, rows)
    if given.only == "problems":
        report.table("Many problems in the same rounds", columns[:6], many_problems(given.seed, given.quick, report))
    if given.only == "rivals":
        report.table(
            "8 x 40 x 1,000, 50 values" if not given.quick else "4 x 20 x 60, 6 values",
            ["method", "rounds", "MB up / down a site", "median gap", "worst gap", "sets of ours"],
            rivals(given.seed, given.quick, report),
        )
    report.finish()


if __name__ == "__main__":
    main()
