"""Cox paths against glmnet and scikit-survival, and how far their answers and skein-glm's are from the optimum.

    python benchmarks/outcomes.py [--only path|tasks|grade]

- `path`: one cohort, 1,000 rows x 20,000 features, 100 values to 0.1 alpha_max, continuous times (no ties, so that all
  programs solve the same problem), standardised columns. The peers' thresholds are tightened until every value of their
  path has a duality gap of at most 1e-6 of half the null deviance; their defaults are beside it. glmnet runs in a
  process of its own (R; the package is to be installed there), and only its call is timed.
- `tasks`: 33 cohorts of 300 rows x 20,000 features, one set of features for all of them. No peer fits that.
- `grade`: what the answers of these programs and of skein-glm at their defaults are worth, value by value.

The judge is a few lines of NumPy below: coefficients in, a duality gap out, the same for all programs.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from _common import (
    TOL,
    Report,
    Run,
    alternate,
    arguments,
    gap_cell,
    gap_summary,
    library,
    median_seconds,
    path_answers,
    ratio_cell,
    rows_of,
    say,
    seconds_cell,
    timed,
)
from _peers import Glmnet, have_glmnet

GLMNET = (1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14)  # its default first
SKEIN = (1e-6,)
SKSURV = (1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14)


# --- data -------------------------------------------------------------------------------------------------------------


def cohort(
    n_rows: int, n_features: int, rng: np.random.Generator, effects: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Standardised, correlated columns; exponential times with censoring; about 60 % events."""
    X = rng.standard_normal((n_rows, n_features))
    X[:, 1:] = 0.5 * X[:, :-1] + np.sqrt(0.75) * X[:, 1:]
    X = np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))
    dies = rng.exponential(size=n_rows) / np.exp(X[:, : len(effects)] @ effects)
    leaves = rng.exponential(size=n_rows) * np.median(dies) * 3.0
    return X, np.minimum(dies, leaves), dies <= leaves


# --- the judge --------------------------------------------------------------------------------------------------------


def martingale(time: np.ndarray, event: np.ndarray, z: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Half the deviance of Cox's partial likelihood without ties at scores z, the expected numbers of events M, and
    ``b = Lambda(t-) S(t)`` at the events; rows in the order of `time`."""
    level = z.max()
    weight = np.exp(z - level)
    at_risk = np.cumsum(weight[::-1])[::-1]
    hazard = np.cumsum(np.where(event, 1.0 / at_risk, 0.0))
    value = float(np.sum(np.log(at_risk[event])) - np.sum(z[event] - level))
    before = hazard[event] - 1.0 / at_risk[event]
    return value, weight * hazard, before * at_risk[event]


def entropy(x: np.ndarray) -> np.ndarray:
    """``(1 + x) log(1 + x) - x``, by its series near 0."""
    small = np.abs(x) < 1e-4
    series = x * x * (0.5 - x * (1.0 / 6.0 - x / 12.0))
    inside = np.where(small | (x <= -1.0), 0.0, x)
    full = (1.0 + inside) * np.log1p(inside) - inside
    return np.where(small, series, np.where(x <= -1.0, 1.0, full))


def relative_gaps(
    X: np.ndarray, time: np.ndarray, event: np.ndarray, coefs: np.ndarray, lams: np.ndarray
) -> np.ndarray:
    """Duality gaps of the columns of `coefs` at strengths in sum units, relative to half the null deviance."""
    order = np.argsort(time, kind="stable")
    event = event[order]
    Z = (X @ coefs)[order]
    parts = [martingale(time[order], event, z) for z in Z.T]
    residuals = np.stack([event - means for _, means, _ in parts], axis=1)
    back = np.empty_like(residuals)
    back[order] = residuals
    products = X.T @ back
    null = martingale(time[order], event, np.zeros(len(event)))[0]
    gaps = []
    for k, (_, means, carried) in enumerate(parts):
        scale = min(1.0, lams[k] / np.abs(products[:, k]).max())
        short = 1.0 - scale
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.where(means > 0.0, short * residuals[:, k] / means, 0.0)
        terms = np.sum(means * entropy(change))
        terms += np.sum(
            carried * entropy(np.array([-short]))
            - (carried + 1.0) * entropy(-short * carried / (carried + 1.0))
        )
        excess = lams[k] * np.abs(coefs[:, k]).sum() - scale * products[:, k] @ coefs[:, k]
        gaps.append((terms + excess) / null)
    return np.array(gaps)


def alpha_max(X: np.ndarray, time: np.ndarray, event: np.ndarray) -> float:
    order = np.argsort(time, kind="stable")
    _, means, _ = martingale(time[order], event[order], np.zeros(len(time)))
    residual = np.empty(len(time))
    residual[order] = event[order] - means
    return float(np.abs(X.T @ residual).max()) / len(time)


# --- the programs -----------------------------------------------------------------------------------------------------


def dense(run: Run, n_features: int) -> np.ndarray:
    """Coefficients of a path: features x values."""
    out = np.zeros((n_features, len(run.answers)))
    for k, answer in enumerate(run.answers):
        out[answer.features, k] = answer.values[:, 0]
    return out


def ours(
    X: np.ndarray, time: np.ndarray, event: np.ndarray, alphas: np.ndarray, threads: int, tol: float = TOL
) -> Run:
    import tasksieve as ts

    y = ts.survival(time, event)
    model = ts.MultiTaskCox(tol=tol, n_jobs=threads)
    seconds, path = timed(lambda: model.path(X, y, alphas=alphas))
    return Run("tasksieve", seconds, path_answers(path, False), f"tol {tol:g}", passes=float(path.passes))


def scikit_survival(
    X: np.ndarray, time: np.ndarray, event: np.ndarray, alphas: np.ndarray, tol: float = SKSURV[0]
) -> Run:
    from sksurv.linear_model import CoxnetSurvivalAnalysis
    from sksurv.util import Surv

    y = Surv.from_arrays(event, time)
    model = CoxnetSurvivalAnalysis(alphas=alphas, l1_ratio=1.0, tol=tol, max_iter=1_000_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = timed(lambda: model.fit(X, y))
    coefs = model.coef_
    missing = len(alphas) - coefs.shape[1]
    if missing:
        say(f"  scikit-survival stopped {missing} values early: the last one stands for them")
        coefs = np.hstack([coefs, np.repeat(coefs[:, -1:], missing, axis=1)])
    return Run("scikit-survival", seconds, [rows_of(column[:, None]) for column in coefs.T], f"tol {tol:g}")


def glmnet(
    X: np.ndarray, time: np.ndarray, event: np.ndarray, alphas: np.ndarray, thresh: float = GLMNET[0]
) -> Run:
    with Glmnet("cox", X, np.column_stack([time, event.astype(float)]), alphas, False) as r:
        return r.path(thresh)


def skein(
    X: np.ndarray, time: np.ndarray, event: np.ndarray, alphas: np.ndarray, tol: float = SKEIN[0]
) -> Run:
    """It has no lasso for Cox's model; its group lasso with groups of one feature is that."""
    from skein_glm import CoxGroupLassoPathRegressor

    model = CoxGroupLassoPathRegressor(np.arange(X.shape[1]), lambdas=alphas, tol=tol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = timed(lambda: model.fit(X, time, event.astype(float)))
    if not np.array_equal(model.lambdas_, alphas):
        raise RuntimeError("skein-glm has changed the strengths")
    return Run("skein-glm", seconds, [rows_of(column[:, None]) for column in model.coefs_], f"tol {tol:g}")


def graded() -> dict[str, tuple[Callable[..., Run], Sequence[float]]]:
    """Those whose defaults are graded."""
    found = peers()
    try:
        import skein_glm  # noqa: F401

        found["skein-glm"] = (skein, SKEIN)
    except ImportError:
        say("skein-glm is not here: it is left out")
    return found


def peers() -> dict[str, tuple[Callable[..., Run], Sequence[float]]]:
    """Those that are here."""
    found: dict[str, tuple[Callable[..., Run], Sequence[float]]] = {}
    if have_glmnet():
        found["glmnet"] = (glmnet, GLMNET)
    else:
        say("R with glmnet is not here: it is left out")
    try:
        import sksurv  # noqa: F401

        found["scikit-survival"] = (scikit_survival, SKSURV)
    except ImportError:
        say("scikit-survival is not here: it is left out")
    return found


# --- what is measured -------------------------------------------------------------------------------------------------


def compare_path(args, report: Report) -> None:
    n, d, values = (100, 200, 20) if args.quick else (args.rows, args.features, 100)
    rng = np.random.default_rng(args.seed)
    X, time, event = cohort(n, d, rng, rng.choice([-0.4, 0.4], 10))
    alphas = alpha_max(X, time, event) * np.geomspace(1.0, 0.1, values)
    lams = alphas * n

    def judged(run: Run) -> dict:
        return gap_summary(relative_gaps(X, time, event, dense(run, d), lams))

    settings = {}
    rows = []
    for name, (solve, ladder) in peers().items():
        for tol in ladder:
            run = solve(X, time, event, alphas, tol)
            summary = judged(run)
            say(
                f"  {name} at {tol:g}: {run.seconds:.2f} s, worst gap {summary['worst']:.1e}, {summary['over']} over"
            )
            if tol == ladder[0]:
                rows.append(
                    [f"{name}, its default", run.setting, seconds_cell(run.seconds), "-", gap_cell(summary)]
                )
            settings[name] = (solve, tol, summary)
            if not summary["over"]:
                break
    sides = {"tasksieve": (args.repeats, lambda: ours(X, time, event, alphas, args.threads))}
    for name, (solve, tol, _) in settings.items():
        sides[name] = (args.repeats, lambda solve=solve, tol=tol: solve(X, time, event, alphas, tol))
    runs = alternate(sides)
    mine, own = median_seconds(runs["tasksieve"]), judged(runs["tasksieve"][-1])
    table = [["tasksieve", runs["tasksieve"][-1].setting, seconds_cell(mine), "1", gap_cell(own)]]
    for name, (_, tol, summary) in settings.items():
        theirs = median_seconds(runs[name])
        table.append([name, f"{tol:g}", seconds_cell(theirs), ratio_cell(theirs / mine), gap_cell(summary)])
        report.headline(
            f"Cox path, {n:,} x {d:,}, {values} values: against {name}", "1x", ratio_cell(theirs / mine),
            theirs >= mine and not own["over"], f"cox-{name}",
        )  # fmt: skip
    report.raw(
        seconds={name: [run.seconds for run in done] for name, done in runs.items()},
        passes=runs["tasksieve"][-1].passes,
    )
    report.table(
        f"Cox path: {n:,} rows x {d:,} features, {values} values to 0.1 alpha_max",
        ["program", "setting", "seconds", "ratio", "worst gap"],
        table + rows,
        f"Medians of {args.repeats} runs in turn. Gaps: recomputed from the coefficients, relative to half the null "
        f"deviance; the goal is {TOL:g}. tasksieve read the data {runs['tasksieve'][-1].passes:.1f} times.",
    )


def many_tasks(args, report: Report) -> None:
    import tasksieve as ts

    tasks, n, d, values = (3, 60, 200, 20) if args.quick else (33, 300, 20_000, 100)
    rng = np.random.default_rng(args.seed)
    effects = rng.choice([-0.4, 0.4], 10)
    data = [cohort(n, d, rng, effects * rng.uniform(0.5, 1.5, 10)) for _ in range(tasks)]
    X = np.asfortranarray(np.vstack([part[0] for part in data]))
    y = ts.survival(np.concatenate([part[1] for part in data]), np.concatenate([part[2] for part in data]))
    task = np.repeat(np.arange(tasks), n)
    model = ts.MultiTaskCox(tol=TOL, n_jobs=args.threads)
    seconds, path = timed(lambda: model.path(X, y, task=task, n_alphas=values, eps=0.1))
    fitted, _ = timed(
        lambda: ts.MultiTaskCox(alpha=float(path.alphas[values // 2]), tol=TOL).fit(X, y, task=task)
    )
    worst = float(np.max(path.relative_gaps))
    report.headline(
        f"Cox, {tasks} tasks of {n} rows x {d:,}: a path", "10 s", f"{seconds:.1f} s", seconds <= 10.0
    )
    report.raw(seconds=seconds, fit=fitted, passes=float(path.passes), worst=worst)
    report.table(
        f"Cox, {tasks} tasks of {n} rows x {d:,} features, {values} values to 0.1 alpha_max",
        ["what", "seconds", "worst certified gap", "passes over the data", "features at the end"],
        [
            [
                "path",
                seconds_cell(seconds),
                f"{worst:.1e}",
                f"{float(path.passes):.1f}",
                int(path.n_selected[-1]),
            ],
            ["one fit, half way", seconds_cell(fitted), "-", "-", "-"],
        ],
        "Certified gaps are the library's own. One run.",
    )


def grade(args, report: Report) -> None:
    n, d, values = (100, 200, 10) if args.quick else (300, 2_000, 20)
    rng = np.random.default_rng(args.seed)
    X, time, event = cohort(n, d, rng, rng.choice([-0.4, 0.4], 10))
    alphas = alpha_max(X, time, event) * np.geomspace(1.0, 0.1, values)[1:]
    best = ours(X, time, event, alphas, args.threads, 1e-9)
    true = dense(best, d) != 0.0
    rows = []
    for name, (solve, ladder) in {
        "tasksieve": (lambda *given: ours(*given[:4], args.threads), (TOL,)),
        **graded(),
    }.items():
        run = solve(X, time, event, alphas, ladder[0])
        coefs = dense(run, d)
        gaps = relative_gaps(X, time, event, coefs, alphas * n)
        extra, missed = np.sum((coefs != 0) & ~true, axis=0), np.sum((coefs == 0) & true, axis=0)
        rows.append(
            [name, run.setting, f"{np.median(gaps):.1e}", f"{gaps.max():.1e}", int(extra.sum()), int(missed.sum()),
             int(true.sum())]
        )  # fmt: skip
    report.table(
        f"Answers at default settings: {n} rows x {d:,} features, {len(alphas)} values",
        ["program", "setting", "median gap", "worst gap", "features too many", "features missed", "of"],
        rows,
        "Gaps relative to half the null deviance. Features are compared with those of a solution certified to 1e-9, "
        "summed over the values.",
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=("path", "tasks", "grade"), action="append")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--features", type=int, default=20_000)
    args = parser.parse_args()
    report = Report("outcomes" if args.only is None else "outcomes_" + "_".join(args.only), args)
    if library() is None:
        report.finish()
        return
    os.environ.setdefault("OMP_NUM_THREADS", str(args.threads))
    for name, work in (("path", compare_path), ("tasks", many_tasks), ("grade", grade)):
        if args.only is None or name in args.only:
            work(args, report)
    report.finish()


if __name__ == "__main__":
    main()
