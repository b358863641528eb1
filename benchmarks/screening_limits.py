"""Why a safe ball rejects nearly everything on some data and nothing on other: mouse_hs taken apart.

    python benchmarks/screening_limits.py

`screening.py --only figure2` finds that on mouse_hs (1,814 mice, 20 traits) screening before a value is solved
rejects nothing below 0.1 alpha_max. A feature is rejected where its gauge ||X_j' theta||, at most 1 at the dual
optimum, stays below 1 over a whole ball: gauge at the centre + about radius x norm of the column ("lift") < 1. So there
are three ways to fail, and this script measures each at a few values of the grid, from solutions 10 times as precise
as usual, so that what is seen is the geometry and not the solver:

- slack: how far the gauges of the zero rows are below 1 at the optimum itself; what is there to be had;
- lift: what the rule's ball (Wang & Ye, Theorem 5, the previous optimum taken as exact) adds to a gauge. Its radius is
  half of 1/lam - 1/lam_0 times the part of y that is orthogonal to the previous fit, so the lift is the product of the
  step of the grid, of y over alpha, and of the share of y that the fit leaves unexplained;
- tight: what is rejected by the smallest ball round the same centre that holds the optimum. No ball round that centre
  can reject more and be safe, so this is an oracle.

Controls: the same genotypes with 50 mice for each trait, as many as people in the paper's ADNI; the same with every
marker's genotypes shuffled over the mice, which takes the likeness of neighbours away; Synthetic 1 and TDT2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from _common import (
    TOL,
    Report,
    Tasks,
    arguments,
    engine_problem,
    lambda_max,
    null_objective,
    point_answers,
    predictions,
    say,
    shared_tasks,
    stacked_tasks,
)
from screening import mouse_tasks, synthetic, tdt2_tasks

from tasksieve.screening.ball import row_maximum

GRID = np.geomspace(1, 0.01, 100)
MARKS = (0.9, 0.5, 0.2, 0.1)
MICE = 50


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", nargs="*", choices=list(DATA), default=list(DATA))
    parser.add_argument("--marks", type=float, nargs="*", default=list(MARKS), help="parts of alpha_max")
    args = parser.parse_args()
    args.tdt2_weighting = "counts"
    report = Report("screening_limits", args)
    rows = []
    for name in args.only:
        tasks, fit_intercept = DATA[name](args)
        rows += [look.row(name) for look in looks(tasks, fit_intercept, args)]
        say("\n".join(" ".join(map(str, row)) for row in rows[-len(args.marks) :]))
        report.raw(data=name, rows=rows[-len(args.marks) :])
    report.table("Why a ball rejects or does not", COLUMNS, rows, NOTE)
    report.finish()


NOTE = (
    "Previous optimum: that of the grid's value before (1.048 times this alpha). Gauges: of the zero rows at the "
    "optimum, quartiles. y over alpha: norm of the target times the median norm of a column, over alpha (in "
    "sums). y across the fit: sine of the angle between the target and the previous fit, 1 where nothing is "
    "explained. Lift: radius times the norm of the column in its longest task, median over the zero rows: 0.023 "
    "times the two columns before; from 1 on nothing can be rejected, whatever the slack. Rejected: share of the "
    "zero rows, by the rule's ball, by the smallest ball round its centre that holds the optimum (an oracle), and "
    "by the ball that a certified gap of 1e-6 gives round the optimum itself."
)
COLUMNS = ("data", "alpha / alpha_max", "active rows", "gauges of zero rows (quartiles)", "y over alpha",
           "y across the fit", "lift of the ball", "lift of the tight ball", "rejected", "by the tight ball",
           "by gap 1e-6")  # fmt: skip


class Look(NamedTuple):
    """One value of one path."""

    part: float
    active: int
    quartiles: np.ndarray
    target: float
    across: float
    lift: float
    tight_lift: float
    rejected: float
    tight: float
    gap: float

    def row(self, name: str) -> list[Any]:
        return [
            name, f"{self.part:g}", self.active, " ".join(f"{q:.2f}" for q in self.quartiles), f"{self.target:.1f}",
            f"{self.across:.2f}", f"{self.lift:.2f}", f"{self.tight_lift:.2f}", f"{self.rejected:.3f}",
            f"{self.tight:.3f}", f"{self.gap:.3f}",
        ]  # fmt: skip


def looks(tasks: Tasks, fit_intercept: bool, args: Any) -> list[Look]:
    from tasksieve.path.solve import solve_path

    positions = [max(1, int(np.argmin(np.abs(np.log(GRID / mark))))) for mark in args.marks]
    lams = lambda_max(tasks, fit_intercept) * GRID[: max(positions) + 1]
    problem = engine_problem(tasks, fit_intercept=fit_intercept, threads=args.threads)
    solution = solve_path(
        problem, lams, tol=0.1 * TOL, progress=lambda k, n, value: say(f"  {k} of {n}: {len(value.features)} rows")
    )
    answers = point_answers(solution, fit_intercept)
    y = centred(tasks, tasks.y, fit_intercept)
    norms = column_norms(tasks, fit_intercept)
    null = null_objective(tasks, fit_intercept)
    longest = norms.max(axis=1)
    out = []
    for mark, k in zip(args.marks, positions, strict=True):
        residuals = tasks.y[:, None] - predictions(tasks, answers[k - 1 : k + 1])
        before, now = (centred(tasks, residuals[:, i], fit_intercept) / lams[k - 1 + i] for i in (0, 1))
        # theta(lam_0) + half of what of y/lam - theta(lam_0) is orthogonal to y/lam_0 - theta(lam_0)
        outward = y / lams[k - 1] - before
        if not np.any(outward):  # alpha_max itself: the steepest constraint's gradient instead
            outward = steepest(tasks, before, fit_intercept)
        towards = y / lams[k] - before
        across = towards - (towards @ outward) / (outward @ outward) * outward
        centre, radius = before + 0.5 * across, 0.5 * float(np.linalg.norm(across))
        tight = float(np.linalg.norm(now - centre))
        zero = np.ones(tasks.X.shape[1], dtype=bool)
        zero[answers[k].features] = False
        at_centre, at_optimum = products(tasks, centre)[zero], products(tasks, now)[zero]
        gauges = np.linalg.norm(at_optimum, axis=1)
        gap_radius = float(np.sqrt(2 * TOL * null)) / lams[k]
        a, length = norms[zero], longest[zero]

        def share(products: np.ndarray, radius: float, a: np.ndarray = a) -> float:
            return float(np.mean(np.asarray(row_maximum(products, a, radius)) < 1.0))

        out.append(
            Look(
                mark, len(answers[k].features), np.quantile(gauges, [0.25, 0.5, 0.75]),
                float(np.linalg.norm(y) * np.median(length) / lams[k]),
                float(2 * radius / ((1 / lams[k] - 1 / lams[k - 1]) * np.linalg.norm(y))),
                float(radius * np.median(length)), float(tight * np.median(length)), share(at_centre, radius),
                share(at_centre, tight),
                share(at_optimum, gap_radius),
            )
        )  # fmt: skip
    return out


# --- the problem in plain NumPy ---------------------------------------------------------------------------------


def by_task(tasks: Tasks) -> list[tuple[slice, slice]]:
    """Rows of X of each task, and its stretch of the sample space."""
    out = []
    for t in range(tasks.n_tasks):
        stretch = slice(tasks.offsets[t], tasks.offsets[t + 1])
        rows = slice(None) if tasks.shared else stretch
        out.append((rows, stretch))
    return out


def observed(tasks: Tasks) -> np.ndarray:
    return np.ones(tasks.y.size) if tasks.observed is None else tasks.observed.astype(float)


def centred(tasks: Tasks, flat: np.ndarray, fit_intercept: bool) -> np.ndarray:
    seen = observed(tasks)
    out = flat * seen
    if fit_intercept:
        for _, stretch in by_task(tasks):
            out[stretch] -= seen[stretch] * out[stretch].sum() / seen[stretch].sum()
    return out


def in_blocks(tasks: Tasks, vectors: list[np.ndarray], power: int) -> list[np.ndarray]:
    """(X**power)' v for each v, task by task: (features, tasks)."""
    d = tasks.X.shape[1]
    out = [np.empty((d, tasks.n_tasks)) for _ in vectors]
    for first in range(0, d, 2048):
        block = tasks.X[:, first : first + 2048]
        block = np.asarray(block.todense() if hasattr(block, "todense") else block, dtype=float) ** power
        for t, (rows, stretch) in enumerate(by_task(tasks)):
            for answer, v in zip(out, vectors, strict=True):
                answer[first : first + 2048, t] = block[rows].T @ v[stretch]
    return out


def products(tasks: Tasks, theta: np.ndarray) -> np.ndarray:
    """X_j' theta in each task; theta is centred already."""
    return in_blocks(tasks, [theta], 1)[0]


def column_norms(tasks: Tasks, fit_intercept: bool) -> np.ndarray:
    seen = observed(tasks)
    squares = in_blocks(tasks, [seen], 2)[0]
    if fit_intercept:
        counts = np.array([seen[stretch].sum() for _, stretch in by_task(tasks)])
        squares -= in_blocks(tasks, [seen], 1)[0] ** 2 / counts
    return np.sqrt(np.maximum(squares, 0.0))


def steepest(tasks: Tasks, theta: np.ndarray, fit_intercept: bool) -> np.ndarray:
    """Gradient of the largest ||X_j' theta||^2 / 2."""
    found = products(tasks, theta)
    j = int(np.argmax(np.linalg.norm(found, axis=1)))
    column = tasks.X[:, [j]]
    column = np.asarray(column.todense() if hasattr(column, "todense") else column, dtype=float)[:, 0]
    out = np.empty_like(theta)
    for t, (rows, stretch) in enumerate(by_task(tasks)):
        out[stretch] = found[j, t] * column[rows]
    return centred(tasks, out, fit_intercept)


# --- data -------------------------------------------------------------------------------------------------------


def few_mice(args: Any) -> Tasks:
    """Each trait with its own 50 mice."""
    whole = mouse_tasks(args)
    rng = np.random.default_rng(args.seed)
    seen = observed(whole).reshape(whole.n_tasks, -1)
    Y = whole.y.reshape(whole.n_tasks, -1)
    size = 15 if args.quick else MICE
    picked = [rng.choice(np.flatnonzero(row), size, replace=False) for row in seen]
    y = np.concatenate([Y[t, mice] for t, mice in enumerate(picked)])
    X = np.asfortranarray(whole.X[np.concatenate(picked)])
    return stacked_tasks(X, y, np.repeat(np.arange(whole.n_tasks), size))


def shuffled(args: Any) -> Tasks:
    whole = mouse_tasks(args)
    X = np.asfortranarray(np.random.default_rng(args.seed).permuted(whole.X, axis=0))
    Y = np.where(observed(whole) > 0, whole.y, np.nan).reshape(whole.n_tasks, -1).T
    return shared_tasks(X, Y)


DATA = {
    "mouse_hs": lambda args: (mouse_tasks(args), True),
    "mouse_hs, 50 mice a trait": lambda args: (few_mice(args), True),
    "mouse_hs, markers shuffled": lambda args: (shuffled(args), True),
    "Synthetic 1, d = 10,000": lambda args: (synthetic(args, 1, 300 if args.quick else 10_000, args.seed), False),
    "TDT2": lambda args: (tdt2_tasks(args), False),
}

if __name__ == "__main__":
    main()
