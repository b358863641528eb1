"""The calibrated model: the paper's Figure 1, paths and single fits against D-PG, cvxpy on a size it can solve.

    python benchmarks/calibrated.py
    python benchmarks/calibrated.py --only figure

Figure 1 of Gong et al. (2014) from our histories: all five algorithms of the paper and "auto" on its synthetic data
(10 tasks, 100 x 200, correlation 0.5), with lam1 = lam2 as there. D-PG "as published"
touches all features at every iteration; "with working sets" it has the
screening, working sets and certificates of "auto". Both are ours, of the same kernels, and start every value from the
last solution. A rival that runs out of its time is compared on the values it has finished.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _common import (
    TOL,
    Report,
    arguments,
    cores,
    ratio_cell,
    say,
    seconds_cell,
)

import tasksieve as ts
from tasksieve.datasets import make_gong_synthetic
from tasksieve.design import Design, as_storage
from tasksieve.path.calibrated import PUBLISHED
from tasksieve.path.problem import Problem
from tasksieve.path.solve import solve_path

PARTS = ("figure", "single", "path", "cvxpy")
RIDGES = (0.01, 0.0)  # lam2 in the paper's units (sum of norms)
LEVELS = (1e-3, 1e-6, 1e-9)
FIGURE = Path(__file__).parent.parent / "docs" / "_static" / "calibrated_figure1.png"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=PARTS, help="one part (default: all)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of a rival's path")
    parser.add_argument("--draw", action="store_true", help="write the figure into the documentation")
    args = parser.parse_args()
    report = Report("calibrated" if args.only is None else f"calibrated_{args.only}", args)
    for part in PARTS if args.only is None else (args.only,):
        say(f"--- {part}")
        globals()[part](args, report)
    report.finish()


def problem_of(data: Any, ridge: float, threads: int) -> Problem:
    offsets = np.concatenate([[0], np.cumsum(np.bincount(data.task))])
    design = Design(as_storage(data.X), offsets, fit_intercept=False, n_threads=threads)
    return Problem(design, data.y, loss="square-root", fixed_ridge=ridge)


# --- Figure 1 ---------------------------------------------------------------------------------------------------


def figure(args: Any, report: Report) -> None:
    """History of every algorithm; time to three certified gaps."""
    data = make_gong_synthetic(
        *((4, 20, 30) if args.quick else (10, 100, 200)), random_state=args.seed
    )
    unit = np.sqrt(len(data.y) / (data.task.max() + 1))
    histories: dict[tuple[float, str], Any] = {}
    rows = []
    limit = 300 if args.quick else 3000
    for fraction in (0.3, 0.1):
        model = ts.CalibratedMultiTaskLasso(fit_intercept=False, n_jobs=args.threads)
        alpha = fraction * model.alpha_max(data.X, data.y, task=data.task)
        model.set_params(l2=alpha)  # lam1 = lam2
        null = float(
            np.sum(np.sqrt(np.add.reduceat(data.y**2, np.flatnonzero(np.diff(data.task, prepend=-1)))))
        )
        for solver in (*PUBLISHED, "auto"):
            times: dict[float, list[float]] = {level: [] for level in LEVELS}
            for _ in range(1 if args.quick else args.repeats):
                if solver == "auto":
                    for level in LEVELS:
                        problem = problem_of(data, alpha * unit, args.threads)
                        solved = solve_path(problem, [alpha * unit], tol=level)
                        times[level].append(solved.points[0].seconds)
                    continue
                history = fit(model, data, alpha, solver, LEVELS[-1], limit).history_
                histories[fraction, solver] = {name: values.tolist() for name, values in history.items()}
                for level in LEVELS:
                    done = np.flatnonzero(history["gap"] * unit <= level * null)
                    times[level].append(history["seconds"][done[0]] if len(done) else np.inf)
            cells = [seconds_cell(median(v)) if np.isfinite(median(v)) else "-" for v in times.values()]
            rows.append([f"{fraction:g}", solver, *cells])
            report.raw(
                part="figure", fraction=fraction, solver=solver, seconds={str(k): v for k, v in times.items()}
            )
            say(rows[-1])
        published = {solver: histories[fraction, solver] for solver in PUBLISHED}
        best = max(h["dual"][-1] for h in published.values())
        ends = [min(h["objective"]) - best for name, h in published.items() if name.startswith("p-")]
        say("primal ends above the optimum by", ends)
        own = [row for row in rows if row[0] == f"{fraction:g}"]
        at_six = {row[1]: row[3] for row in own}
        first = min(
            (s for s in PUBLISHED if at_six[s] != "-"), key=lambda s: float(at_six[s]), default="none"
        )
        report.headline(
            f"Figure 1, lam1 = {fraction:g} lam1_max: first of the paper's five to a certified 1e-6",
            "d-pg",
            first,
            first == "d-pg",
        )
    report.table(
        "Figure 1 of Gong et al.: seconds to a certified relative gap",
        ["lam1 / lam1_max", "algorithm", "1e-3", "1e-6", "1e-9"],
        rows,
        f"10 tasks, 100 x 200, lam2 = lam1; medians of {args.repeats}; '-': not within {limit} iterations.",
    )
    if args.draw:
        draw(histories)


def fit(model: Any, data: Any, alpha: float, solver: str, tol: float, limit: int) -> Any:
    model = ts.CalibratedMultiTaskLasso(
        **{**model.get_params(), "alpha": alpha, "solver": solver, "tol": tol}
    )
    model.set_params(max_iter=limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(data.X, data.y, task=data.task)


def draw(histories: dict[tuple[float, str], Any]) -> None:
    """Values against time, as in the paper, and the certified gap."""
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
    for row, fraction in zip(axes, (0.3, 0.1), strict=True):
        best = max(h["dual"][-1] for (f, _), h in histories.items() if f == fraction)
        for solver in PUBLISHED:
            history = histories[fraction, solver]
            kind = "dual" if solver.startswith("d-") else "objective"
            row[0].plot(history["seconds"], history[kind], label=solver)
            row[1].plot(history["seconds"], np.maximum(history["gap"], 1e-12) / best)
        row[0].axhline(best, color="0.5", lw=0.8, ls="--")
        row[0].set(ylim=(0.8 * best, 1.3 * best), ylabel="dual value (d-), objective (p-)", xscale="log")
        row[0].set_title(rf"$\lambda_1 = {fraction:g}\,\lambda_{{1,\max}}$", fontsize=10)
        row[1].set(yscale="log", xscale="log", ylabel="certified relative gap", ylim=(1e-10, 1))
    axes[0, 0].legend(fontsize=8)
    for axis in axes[1]:
        axis.set_xlabel("seconds")
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(FIGURE, dpi=100, metadata={"Software": None})


# --- single fits ------------------------------------------------------------------------------------------------


def single(args: Any, report: Report) -> None:
    """Cold fits, "auto" against D-PG as published, in turn."""
    sizes = {"paper": (10, 100, 200, 0.95), "big": (20, 50, 10_000, 0.995)}
    if args.quick:
        sizes = {"paper": (4, 20, 30, 0.9)}
    rows, worst = [], np.inf
    for name, (T, n, d, zeros) in sizes.items():
        data = make_gong_synthetic(T, n, d, zeros, random_state=args.seed)
        small = d < 1000
        for ridge in RIDGES:
            for fraction in (0.3, 0.1):
                for level in LEVELS if small else LEVELS[:2]:
                    limit = (2000 if ridge == 0.0 else 10_000) if small else 150
                    seconds: dict[str, list[float]] = {"auto": [], "d-pg": []}
                    reached = {}
                    for _ in range(2 * args.repeats + 1 if small else 1):
                        for solver in seconds:
                            problem = problem_of(data, ridge, args.threads)
                            lam = fraction * problem.lambda_max()
                            started = time.perf_counter()
                            solved = solve_path(
                                problem,
                                [lam],
                                tol=level,
                                solver=solver,
                                working_set=solver == "auto",
                                screening=None,
                                max_iter=10_000 if solver == "auto" else limit,
                            )
                            seconds[solver].append(time.perf_counter() - started)
                            reached[solver] = solved.points[0].dual_gap / solved.null_objective
                    auto, rival = median(seconds["auto"]), median(seconds["d-pg"])
                    worst = min(worst, rival / auto)
                    short = "" if reached["d-pg"] <= level else f" (stopped at {reached['d-pg']:.0e})"
                    rows.append(
                        [
                            name,
                            f"{ridge:g}",
                            f"{fraction:g}",
                            f"{level:g}",
                            seconds_cell(auto),
                            seconds_cell(rival) + short,
                            ratio_cell(rival / auto),
                        ]
                    )
                    report.raw(part="single", size=name, ridge=ridge, fraction=fraction, tol=level, **{
                        "auto": seconds["auto"], "d-pg": seconds["d-pg"], "reached": reached
                    })  # fmt: skip
                    say(rows[-1])
    report.table(
        "Single fits from a cold start, seconds",
        ["data", "lam2", "lam1 / lam1_max", "relative gap", "auto", "d-pg as published", "d-pg / auto"],
        rows,
        "paper: 10 tasks, 100 x 200; big: 20 tasks, 50 x 10,000.",
    )
    report.headline(
        "single fits: auto against d-pg as published, worst",
        ">= 1x (0.9x: noise)",
        ratio_cell(worst),
        worst >= 0.9,
    )


# --- paths ------------------------------------------------------------------------------------------------------


def path(args: Any, report: Report) -> None:
    """50 values to 0.05 lam1_max: auto, D-PG with working sets and screening, D-PG as published."""
    T, n, d = (4, 20, 300) if args.quick else (20, 50, 10_000)
    data = make_gong_synthetic(T, n, d, 0.995 if d > 1000 else 0.95, random_state=args.seed)
    rows = []
    for ridge in RIDGES:
        problem = problem_of(data, ridge, args.threads)
        lams = problem.lambda_max() * np.geomspace(1.0, 0.05, 50)
        ours = [run_path(data, ridge, lams, "auto", True, np.inf, args) for _ in range(args.repeats)]
        auto = median(sum(p.seconds for p in solved.points) for solved in ours)
        rivals = {}
        for name, working in (("with working sets and screening", True), ("as published", False)):
            solved = run_path(data, ridge, lams, "d-pg", working, args.budget, args)
            ours.append(
                run_path(data, ridge, lams, "auto", True, np.inf, args)
            )  # in turn: a busy minute hurts both
            count = len(solved.points)
            rival = sum(p.seconds for p in solved.points)
            same = median(sum(p.seconds for p in run.points[:count]) for run in ours)
            short = sum(not p.converged for p in solved.points)
            rivals[name] = rival / same
            rows.append(
                [
                    f"{ridge:g}",
                    f"d-pg {name}",
                    f"{count}" + (f" ({short} short of 1e-6)" if short else ""),
                    seconds_cell(rival),
                    seconds_cell(same),
                    ratio_cell(rival / same),
                ]
            )
            report.raw(
                part="path", ridge=ridge, rival=name, values=count, seconds=rival, auto_same=same, short=short
            )
            say(rows[-1])
        worst = max(p.dual_gap / ours[0].null_objective for p in ours[0].points)
        rejected = [p.n_rejected for p in ours[0].points[1:]]
        rows.append([f"{ridge:g}", "auto, whole path", "50", "", seconds_cell(auto), f"gap {worst:.0e}"])
        report.raw(part="path", ridge=ridge, auto=auto, worst_gap=worst, rejected=rejected,
                   iterations=[p.n_iter for p in ours[0].points])  # fmt: skip
        bars = {"with working sets and screening": 3.0 if ridge else 10.0, "as published": 20.0}
        for name, bar in bars.items():
            report.headline(
                f"path, lam2 = {ridge:g}: auto against d-pg {name}",
                f">= {bar:g}x",
                ratio_cell(rivals[name]),
                rivals[name] >= bar,
            )
    report.table(
        f"Path of 50 values to 0.05 lam1_max, {T} tasks, {n} x {d:,}, certified relative gap 1e-6 (seconds)",
        ["lam2", "rival", "values finished", "rival", "auto, same values", "rival / auto"],
        rows,
        f"{cores()} cores. A rival stops at the first value after {args.budget:g} s, and gives up a value after 10,000"
        " iterations (as published: 1,000). Time of the values themselves: reading the data is the same for all.",
    )


def run_path(
    data: Any, ridge: float, lams: np.ndarray, solver: str, working: bool, budget: float, args: Any
) -> Any:
    problem = problem_of(data, ridge, args.threads)
    began = time.perf_counter()

    def watch(k: int, count: int, point: Any) -> None:
        if time.perf_counter() - began > budget:
            raise KeyboardInterrupt

    return solve_path(
        problem,
        lams,
        tol=TOL,
        solver=solver,
        working_set=working,
        screening="auto" if working else None,
        max_iter=10_000 if working else 1_000,
        progress=watch,
    )


# --- an outside reference ---------------------------------------------------------------------------------------


def cvxpy(args: Any, report: Report) -> None:
    """Clarabel through cvxpy on the paper's data: same objective, and its time."""
    import cvxpy as cp

    data = make_gong_synthetic(
        *((4, 20, 30) if args.quick else (10, 100, 200)), random_state=args.seed
    )
    rows = []
    for ridge in RIDGES:
        problem = problem_of(data, ridge, args.threads)
        lam = 0.1 * problem.lambda_max()
        seconds = []
        for _ in range(args.repeats):
            problem = problem_of(data, ridge, args.threads)
            started = time.perf_counter()
            solved = solve_path(problem, [lam], tol=1e-9)
            seconds.append(time.perf_counter() - started)
        point = solved.points[0]
        W = cp.Variable((data.X.shape[1], data.task.max() + 1))
        tasks = [data.task == t for t in range(W.shape[1])]
        loss = sum(cp.norm(data.y[rows_t] - data.X[rows_t] @ W[:, t]) for t, rows_t in enumerate(tasks))
        program = cp.Problem(
            cp.Minimize(loss + lam * cp.sum(cp.norm(W, axis=1)) + ridge / 2 * cp.sum_squares(W))
        )
        started = time.perf_counter()
        value = program.solve(solver=cp.CLARABEL)
        whole = time.perf_counter() - started
        inside = float(program.solver_stats.solve_time)
        difference = (value - point.objective) / point.objective
        rows.append(
            [f"{ridge:g}", seconds_cell(median(seconds)), seconds_cell(inside), seconds_cell(whole),
             ratio_cell(inside / median(seconds)), f"{difference:.1e}"]
        )  # fmt: skip
        report.raw(
            part="cvxpy", ridge=ridge, auto=seconds, clarabel=inside, cvxpy=whole, difference=difference
        )
    report.table(
        "cvxpy with Clarabel, 10 tasks, 100 x 200, lam1 = 0.1 lam1_max",
        [
            "lam2",
            "auto (gap 1e-9)",
            "Clarabel alone",
            "with cvxpy",
            "Clarabel / auto",
            "its objective above ours",
        ],
        rows,
    )


if __name__ == "__main__":
    main()
