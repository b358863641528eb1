"""How many features safe sets reject whose size is known row by row: Poisson's and Cox's losses.

One task, 300 rows x 2,000 columns (neighbours correlated 0.5), a path to 0.1 alpha_max. First the sets alone: at each
value, from points of an accelerated gradient method at given relative gaps and from the last value ("sequential"),
features rejected over features that are zero, mean over the values. The sets have the same centre, and differ in k, by
which the dual variable of a row can move:

- global: what holds at every point (Cox: half of the events at risk; Poisson has no such number);
- largest: the largest k of the task for all of its rows;
- two norms: each row its k, by norms that were measured under the metric of the last value (`design.row_metric`);
- row: each row its k, by norms of that very metric.

Then whole paths, with the largest k and with row metrics as the library uses them: processor seconds (median of
several, in turns), passes, measurements, rejected features, columns that were read because bounds left them open.

    python benchmarks/row_metrics.py
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import tasksieve as ts
from tasksieve.design import DenseStorage, Design, one_blas_thread
from tasksieve.outcomes import SURVIVAL
from tasksieve.path import policy
from tasksieve.path.pair import Point, point_gap
from tasksieve.path.problem import Problem
from tasksieve.path.walks import PathWalk

Array = np.ndarray[Any, Any]
ROWS, FEATURES, VALUES = 300, 2000, 25
GAPS = (1e-2, 1e-3, 1e-4)
SETS = ("global", "largest", "two norms", "row")


def make_columns(rng: np.random.Generator, rows: int, features: int) -> Array:
    x = rng.standard_normal((rows, features))
    x[:, 1:] = 0.5 * x[:, :-1] + np.sqrt(0.75) * x[:, 1:]
    return np.asfortranarray((x - x.mean(axis=0)) / x.std(axis=0))


def make_problem(name: str, seed: int, rows: int = ROWS, features: int = FEATURES, tasks: int = 1) -> Problem:
    rng = np.random.default_rng(seed)
    x = make_columns(rng, rows * tasks, features)
    w = np.zeros(features)
    w[:10] = rng.choice([-1.0, 1.0], 10) * (0.4 if name == "Cox" else 0.25)
    offsets, offset, n = rows * np.arange(tasks + 1), None, rows * tasks
    y: Array
    if name == "Cox":
        survival = rng.exponential(size=n) / np.exp(x @ w)
        censored = rng.exponential(size=n) * np.median(survival) * 3.0
        y = np.zeros(n, dtype=SURVIVAL)
        y["time"], y["event"], y["entry"] = np.minimum(survival, censored), survival <= censored, -np.inf
        loss: ts.losses.Loss = ts.losses.Cox()
    else:
        offset = rng.standard_normal(n) if name == "Poisson, exposures" else None
        y = rng.poisson(np.exp(0.5 + x @ w + (0.0 if offset is None else offset))).astype(float)
        loss = ts.losses.Poisson()
    return Problem(Design(DenseStorage(x), offsets, n_threads=1), y, offset=offset, loss=loss, unit=float(rows))


class Study:
    """One problem, its columns, and the safe sets at any point of it."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.design, self.loss = problem, problem.design, problem.loss
        self.columns = self.design.take(np.arange(self.design.n_features)).columns
        self.lam_max = problem.lambda_max()
        self.lipschitz = 1.0

    def evaluate(self, w: Array) -> tuple[Any, Array]:
        live = np.flatnonzero(w)
        at = self.loss.evaluate(self.columns[:, live] @ w[live])
        return at, self.columns.T @ at.residual

    def settled(self, w: Array, lam: float) -> tuple[Any, Array, float, float]:
        """The loss at w, correlations, the gap over all features, and the scale of the dual point."""
        at, _ = self.evaluate(w)
        at = self.loss.settled(at)
        penalty, products = self.problem.penalty.at(lam), self.columns.T @ at.residual
        live = np.flatnonzero(w)
        point = Point(live, w[live, None], at, products[live, None])
        gap, scale = point_gap(self.loss, penalty, point, penalty.row_gauges(products[:, None]))
        return at, products, gap, scale

    def norms(self, metric: Array) -> Array:
        """Of columns under a metric, freed of the constant under it."""
        total = max(float(metric.sum()), 1e-300)
        square = metric @ np.square(self.columns) - np.square(metric @ self.columns) / total
        return np.sqrt(np.maximum(square, 0.0))

    def sets(self, w: Array, lam: float) -> dict[str, Array]:
        """Which features each set rejects."""
        at, _, gap, scale = self.settled(w, lam)
        gap = self.loss.floored_gap(gap)
        own = self.loss.metric(at, scale, gap)
        assert own is not None
        live, dual = own > 0.0, scale * at.residual
        centre = np.abs(self.columns.T @ (0.5 * (at.slope + dual)))
        apart = np.square(at.slope - dual)

        def outside(metric: Array, lengths: Array) -> Array:
            square = gap - 0.25 * float(np.sum(apart[live] / metric[live]))
            return np.asarray(centre + np.sqrt(max(square, 0.0)) * lengths < lam)

        found = {"largest": outside(np.full(len(own), own.max()), np.sqrt(own.max()) * self.norms(np.ones(len(own))))}
        most = getattr(self.loss, "_most", None)
        if most is not None:
            half = np.where(live, 0.5 * most, 0.0)
            found["global"] = outside(half, self.norms(half))
        found["row"] = outside(own, self.norms(own))
        cover = self.problem.metric.cover(own)
        if cover is not None:
            found["two norms"] = outside(own, np.asarray(self.design.shard.metric_norms(cover))[:, 0])
        else:
            found["two norms"] = found["largest"]
        return found

    def descend(self, w: Array, lam: float, null: float) -> tuple[Array, dict[float, dict[str, Array]]]:
        """Accelerated gradient steps from w to a relative gap of 1e-7; the sets where those of `GAPS` are reached."""
        ahead, momentum, left, found = w, 1.0, list(GAPS), {}
        for step in range(5000):
            at, products = self.evaluate(ahead)
            while True:
                moved = ahead + products / self.lipschitz
                new = np.sign(moved) * np.maximum(np.abs(moved) - lam / self.lipschitz, 0.0)
                way = new - ahead
                bound = at.value - products @ way + 0.5 * self.lipschitz * way @ way
                if self.evaluate(new)[0].value <= bound + 1e-13 * abs(at.value):
                    break
                self.lipschitz *= 1.5
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = new + (momentum - 1.0) / following * (new - w)
            if (ahead - new) @ (new - w) < 0.0:
                ahead, following = new, 1.0
            w, momentum = new, following
            self.lipschitz *= 0.98
            if step % 5 == 4:
                gap = self.settled(w, lam)[2]
                while left and gap < left[0] * null:
                    found[left.pop(0)] = self.sets(w, lam)
                if gap < 1e-7 * null:
                    break
        return w, found

    def measure(self, w: Array, lam: float) -> None:
        """Norms under the metric of a solution, for the next value."""
        at, _, gap, _ = self.settled(w, lam)
        metric = self.loss.metric(at, 1.0, self.loss.floored_gap(gap))
        assert metric is not None
        self.problem.metric.before_reading(metric)
        self.design.correlate(at.residual)


def rejected_by_sets(name: str, seeds: int) -> None:
    shares: dict[tuple[Any, str], list[float]] = {}
    wrong = active = 0
    for seed in range(seeds):
        study = Study(make_problem(name, seed))
        null, w = study.loss.null.value, np.zeros(FEATURES)
        for lam in study.lam_max * np.geomspace(1.0, 0.1, VALUES)[1:]:
            before = study.sets(w, lam)
            w, found = study.descend(w, lam, null)
            zero = w == 0.0
            for when, masks in [("sequential", before), *found.items()]:
                for kind, mask in masks.items():
                    shares.setdefault((when, kind), []).append(float(np.mean(mask[zero])))
                    wrong += int(np.count_nonzero(mask & (np.abs(w) > 1e-3)))
            study.measure(w, lam)
        active = int(np.count_nonzero(w))
    for when in ("sequential", *GAPS):
        cells = [f"{np.mean(shares[when, kind]):.2f}" if (when, kind) in shares else "" for kind in SETS]
        print(f"| {name} | {when} | {' | '.join(cells)} |", flush=True)
    print(f"{name}: {active} active at the end, {wrong} wrong", flush=True)


def follow(problem: Problem, values: int, tol: float) -> dict[str, float]:
    measured = [0]
    also_measure = problem.design.shard.also_measure

    def count(metric: Array) -> None:
        measured[0] += 1
        also_measure(metric)

    problem.design.shard.also_measure = count
    with one_blas_thread():
        began = time.process_time()
        lams = problem.lambda_max() * np.geomspace(1.0, 0.1, values)
        walk, goals = PathWalk(problem, values), [tol * problem.loss.null.value] * 2
        found = [walk.values(lams[k : k + 2], goals)[0] for k in range(values)]
        seconds = time.process_time() - began
    rejections = sum(value.n_rejected + value.n_rejected_dynamic for value in found)
    return {
        "seconds": seconds,
        "passes": problem.design.passes,
        "measured": measured[0],
        "rejected": rejections / (values * problem.design.n_features),
        "open": sum(value.n_open for value in found),
        "converged": float(np.mean([value.converged for value in found])),
    }


def whole_paths(name: str, rows: int, features: int, tasks: int, tol: float, repeats: int) -> None:
    usual, found = policy.HELPFUL_LENGTH, {}
    for repeat in range(repeats):
        for kind in ("largest", "row metrics"):
            policy.HELPFUL_LENGTH = usual if kind == "row metrics" else 0.0  # never
            problem = make_problem(name, 0, rows, features, tasks)
            found.setdefault(kind, []).append(follow(problem, 50, tol))
            assert repeat == 0 or found[kind][0]["passes"] == found[kind][-1]["passes"]
    policy.HELPFUL_LENGTH = usual
    for kind, runs in found.items():
        seconds, one = float(np.median([run["seconds"] for run in runs])), runs[0]
        print(
            f"| {name} | {rows:,} x {features:,} x {tasks} | {tol:.0e} | {kind} | {seconds:.3f} | {one['passes']:.2f} "
            f"| {one['measured']} | {one['rejected']:.3f} | {one['open']:,} | {one['converged']:.2f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--losses", nargs="+", default=["Poisson", "Poisson, exposures", "Cox"])
    parser.add_argument("--quick", action="store_true", help="a little of it, to see that it works")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.losses = 1, options.losses[:1]
    print(f"| loss | gap | {' | '.join(SETS)} |\n|---|---|---|---|---|---|")
    for name in options.losses:
        rejected_by_sets(name, options.seeds)
    print("| loss | rows x features x tasks | tol | k | seconds | passes | measured | rejected | open | converged |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in options.losses:
        for rows, features, tasks, tol in ((300, 2000, 1, 1e-6), (1000, 5000, 1, 1e-6), (300, 2000, 4, 1e-4)):
            whole_paths(name, rows, features, tasks, tol, options.repeats)


if __name__ == "__main__":
    main()
