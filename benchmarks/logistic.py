"""Logistic tasks with a matrix and an intercept each, against accelerated proximal gradient.

    python benchmarks/logistic.py

20 tasks of 100 rows, d = 5,000, 10 true rows, 50 values to 0.05 alpha_max, gap 1e-6 of the intercept-only loss.
No public program solves this problem, so the other side is the method the literature uses for it (accelerated
proximal gradient with restart, as in SLEP), run by our own engine with the same warm starts, the same strong set
and the same certificates: only the inner solver differs.
"""

from __future__ import annotations

import numpy as np
from _common import (
    TOL,
    Report,
    Run,
    alternate,
    arguments,
    engine_problem,
    gap_cell,
    gap_summary,
    lambda_max,
    library,
    median_seconds,
    our_path,
    point_answers,
    ratio_cell,
    relative_gaps,
    seconds_cell,
    stacked_tasks,
    timed,
)

from tasksieve.datasets import make_task_classification

BAR, MAX_PASSES = 12, 20


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs of ours")
    parser.add_argument("--peer-repeats", type=int, default=1, help="runs of accelerated proximal gradient")
    args = parser.parse_args()
    shape = (4, 40, 120, 5) if args.quick else (20, 100, 5_000, 10)
    values = 15 if args.quick else 50
    X, y, task, _ = make_task_classification(*shape, args.seed)
    assert task is not None
    tasks = stacked_tasks(X, y, task)
    lams = lambda_max(tasks, True, "logistic") * np.geomspace(1, 0.05, values)
    report = Report("logistic", args)

    def apgd() -> Run:
        from tasksieve.path.solve import solve_path

        problem = engine_problem(tasks, fit_intercept=True, loss="logistic", threads=args.threads)
        seconds, solution = timed(lambda: solve_path(problem, lams, tol=TOL, max_iter=10**6, solver="apgd"))
        return Run("apgd", seconds, point_answers(solution, True), passes=float(solution.passes))

    if library() is None:
        report.finish()
        return
    runs = alternate(
        {
            "ours": (
                args.repeats,
                lambda: our_path(
                    X, y, task, lams / tasks.n_bar, estimator="MultiTaskLogisticRegression", fit_intercept=True,
                    threads=args.threads,
                ),
            ),
            "apgd": (args.peer_repeats, apgd),
        }
    )  # fmt: skip
    gaps = {
        name: gap_summary(relative_gaps(tasks, done[-1].answers, lams, fit_intercept=True, loss="logistic"))
        for name, done in runs.items()
    }
    ours, theirs = median_seconds(runs["ours"]), median_seconds(runs["apgd"])
    spent = runs["ours"][-1].passes
    assert spent is not None
    name = f"logistic, {shape[0]} tasks of {shape[1]} rows, d = {shape[2]:,}, {values} values"
    report.headline(
        f"{name}: faster than accelerated proximal gradient", f"{BAR}x", ratio_cell(theirs / ours),
        theirs / ours >= BAR and not gaps["ours"]["over"], "logistic",
    )  # fmt: skip
    report.headline(f"{name}: full passes", f"at most {MAX_PASSES}", f"{spent:.1f}", spent <= MAX_PASSES)
    report.raw(seconds={n: [r.seconds for r in done] for n, done in runs.items()}, gaps=gaps, passes=spent)
    report.table(
        f"Logistic loss, intercepts: {shape[0]} tasks of {shape[1]} rows, d = {shape[2]:,}, {values} values to 0.05",
        ["solver", "seconds", "ratio", "promised", "worst gap", "full passes", "promised", "rows at the last value"],
        [
            ["tasksieve", seconds_cell(ours), "1", "-", gap_cell(gaps["ours"]), f"{spent:.1f}", f"<= {MAX_PASSES}",
             runs["ours"][-1].answers[-1].features.size],
            ["accelerated proximal gradient, same strong set and warm starts", seconds_cell(theirs),
             ratio_cell(theirs / ours), f"{BAR}x", gap_cell(gaps["apgd"]), f"{runs['apgd'][-1].passes:.1f}", "-",
             runs["apgd"][-1].answers[-1].features.size],
        ],
        "Gaps: recomputed in NumPy float64 from the coefficients and intercepts, relative to the intercept-only loss.",
    )  # fmt: skip
    report.finish()


if __name__ == "__main__":
    main()
