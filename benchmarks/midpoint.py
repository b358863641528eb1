"""How many rows balls reject that hold the dual optimum: gap-safe sphere, midpoint ball, cut ball.

A path of 30 values down to 0.15 alpha_max, L2,1, one matrix per task, intercepts: before a value is solved (from the
last one, solved to a relative gap of 1e-6: "sequential") and again where its own relative gap has come to 1e-3
("dynamic"). Rejected rows over zero rows, mean over the 29 values below alpha_max. Nothing is remembered but the last
pair, and products are exact: it is the balls that are compared. Rejected rows that are not zero in the solution count
as wrong.

    python benchmarks/midpoint.py
"""

from __future__ import annotations

import argparse

import numpy as np

import tasksieve as ts
from tasksieve.design import DenseStorage, Design
from tasksieve.path import Problem, solve_path
from tasksieve.path.pair import Point, point_gap
from tasksieve.screening import DPC, GapSafe, Midpoint
from tasksieve.screening.state import DualState

TASKS, ROWS, FEATURES, VALUES = 4, 40, 300, 30

LOSSES = {
    "logistic": ts.losses.Logistic(),
    "squared hinge": ts.losses.SquaredHinge(),
    "smoothed hinge": ts.losses.SmoothedHinge(0.5),
    "Huber": ts.losses.Huber(1.35),
    "quantile": ts.losses.Quantile(0.5, 0.5),
    "Poisson": ts.losses.Poisson(),
    "squared": ts.losses.Squared(),
}


def make_data(rng: np.random.Generator, loss: ts.losses.Loss) -> tuple[np.ndarray, np.ndarray]:
    x = rng.standard_normal((TASKS * ROWS, FEATURES))
    w = np.zeros((FEATURES, TASKS))
    w[:12] = rng.standard_normal((12, TASKS))
    z = np.concatenate([x[t * ROWS : (t + 1) * ROWS] @ w[:, t] for t in range(TASKS)])
    if loss.labels == "signs":
        return x, np.where(z + rng.standard_normal(len(z)) > 0.0, 1.0, -1.0)
    if loss.labels == "counts":
        return x, rng.poisson(np.exp(np.clip(0.3 * z, -3.0, 3.0))).astype(float)
    return x, z + 0.5 * rng.standard_t(2, len(z))


def rejected(problem: Problem, rows: np.ndarray, lam: float) -> tuple[dict[str, np.ndarray], float]:
    """Masks of the rules at W (features x tasks) and strength lam, and the relative gap there."""
    design, loss, penalty = problem.design, problem.loss, problem.penalty.at(lam)
    features = np.flatnonzero(rows.any(axis=1))
    image = np.concatenate([design.storage_rows[t] @ rows[:, t] for t in range(TASKS)])
    at = loss.settled(loss.evaluate(design.project(image)))
    products = design.correlate(at.residual)
    gap, scale = point_gap(
        loss, penalty, Point(features, rows[features], at, products[features]), penalty.row_gauges(products)
    )
    outliers = loss.outliers(at) if loss.clipped else None
    share = 1.0 if outliers is None else loss.smoothness
    target = loss.null.residual if outliers is None else loss.target
    state = DualState(
        y=target, residual=at.residual, correlations=products, norms=np.asarray(design.norms()), lam=lam,
        y_correlations=design.correlate(target), features=features, rows=rows[features], squared=loss.squared,
        smoothness=loss.smoothness, gap=gap, dual_scale=scale,
        norm=lambda chosen, own: share * penalty.restrict(chosen).value(own),
        outliers=None if outliers is None else (share * outliers[0], share * outliers[1]),
    )  # fmt: skip
    found = {}
    for rule in (GapSafe(), Midpoint(), DPC()):
        if rule.of_loss:
            ball = rule.ball_of(loss, at, scale, gap)
        elif rule.supports(state):
            ball = rule.ball(state, lam)
        else:
            continue
        norms = state.norms if ball.stretch is None else state.norms * ball.stretch
        if ball.vector is not None:
            centre = design.correlate(ball.vector)
        else:
            centre = ball.residual_coef * products + ball.y_coef * state.y_correlations
        upper = penalty.row_reach(centre, 1e-12 * norms, norms, ball.radius)
        found[rule.name] = penalty.inactive(upper)
    return found, gap / loss.null.value


def compare(loss: ts.losses.Loss, seed: int) -> tuple[dict[tuple[str, str], list[float]], int]:
    rng = np.random.default_rng(seed)
    x, y = make_data(rng, loss)
    offsets = ROWS * np.arange(TASKS + 1)
    design = Design(DenseStorage(np.asfortranarray(x)), offsets, n_threads=1)
    design.storage_rows = [x[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    problem = Problem(design, y, loss=loss)
    lams = problem.lambda_max() * np.geomspace(1.0, 0.15, VALUES)

    def solutions(tol: float) -> list[np.ndarray]:
        out = []
        for point in solve_path(problem, lams, tol=tol).points:
            rows = np.zeros((FEATURES, TASKS))
            rows[point.features] = point.rows
            out.append(rows)
        return out

    exact, rough = solutions(1e-6), solutions(1e-3)
    truth = solutions(1e-9)
    ratios: dict[tuple[str, str], list[float]] = {}
    wrong = 0
    for k in range(1, VALUES):
        zero = ~truth[k].any(axis=1)
        for kind, start in (("sequential", exact[k - 1]), ("dynamic", rough[k])):
            masks, _ = rejected(problem, start, float(lams[k]))
            for name, mask in masks.items():
                ratios.setdefault((kind, name), []).append(mask.sum() / max(zero.sum(), 1))
                wrong += int(np.count_nonzero(mask & ~zero))
    return ratios, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a little of it, to see that it works")
    given = parser.parse_args()
    seeds = 1 if given.quick else given.seeds
    print("| loss | ball | sequential | dynamic | wrong |\n|---|---|---|---|---|")
    for name, loss in LOSSES.items():
        found = [compare(loss, seed) for seed in range(seeds)]
        for rule in ("gap", "midpoint", "dpc"):
            if ("sequential", rule) not in found[0][0]:
                continue
            cells = [
                f"{np.mean([np.mean(ratios[kind, rule]) for ratios, _ in found]):.2f}"
                for kind in ("sequential", "dynamic")
            ]
            print(f"| {name} | {rule} | {' | '.join(cells)} | {sum(wrong for _, wrong in found)} |", flush=True)


if __name__ == "__main__":
    main()
