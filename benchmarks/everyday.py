"""The sizes people have: 200 to 5,000 rows, 50 to 2,000 features, 1 to 20 outputs, against scikit-learn.

    python benchmarks/everyday.py                  # everything; an hour or two
    python benchmarks/everyday.py --resume         # goes on with what the same version has measured
    python benchmarks/everyday.py --tables         # no run: the tables and the picture again from the JSON
    python benchmarks/everyday.py --cells 200x50x1 1000x500x5 --designs iid --matrices shared

Paths of 100 values to 0.01 alpha_max, independent and AR(0.9) columns. Ours fits intercepts on the data as they are;
the others, whose path functions know no intercept, get centred data for free: the same problem, coefficient by
coefficient. Equal precision: ours at tol 1e-6, the others at the loosest tolerance of a ladder whose worst gap over the
path, recomputed here in NumPy, is at most the same 1e-6 of the objective at W = 0. The others run with or without Gram
matrix and with 1 or all BLAS threads, whichever is faster. Programs take turns; medians.

One matrix per task: scikit-learn has no such model, so celer's group Lasso on the block-diagonal matrix is the
other side where that matrix is small enough (--group-limit), and elsewhere our time stands alone. Separate Lassos,
one for each task, would be another problem.

Then cross-validation with default settings (scikit-learn: tol 1e-4, values to 0.001 alpha_max; also with our
default, 0.01), and single small fits.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from _common import (
    RESULTS,
    TOL,
    Report,
    Run,
    Tasks,
    alternate,
    arguments,
    gap_summary,
    lambda_max,
    our_path,
    ratio_cell,
    relative_gaps,
    say,
    seconds_cell,
    shared_tasks,
    stacked_tasks,
)
from _peers import (
    at_equal_gap,
    blas_threads,
    celer_group_path,
    celer_path,
    limited,
    skglm_lasso_path,
    sklearn_path,
)
from everyday_figure import draw_plane, times_faster

from tasksieve.datasets import make_shared_regression

ROWS, FEATURES, TASKS = (200, 1000, 5000), (50, 500, 2000), (1, 5, 20)
DESIGNS = {"iid": 0.0, "AR(0.9)": 0.9}
CV_SHAPES = ((500, 100, 20), (600, 1279, 4), (200, 1000, 10), (1900, 1279, 1))
FIT_SHAPES = ((100, 50, 5), (200, 50, 1), (200, 50, 5), (1000, 50, 5), (200, 500, 5))
# theirs: tol * ||Y||^2, ours: tol * 1/2 ||Y||^2, so 5e-7 is the same goal; looser ones may reach it, too
LADDER = (1e-4, 1e-5, 1e-6, 5e-7, 1e-7, 1e-8, 1e-9)
SKGLM_LADDER = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
MIN_WORST, MIN_MEDIAN, MIN_CV = 2.0, 3.0, 1.5


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cells", nargs="*", type=shape_of, metavar="NxDxT", help="of the grid, or others")
    parser.add_argument("--designs", nargs="*", choices=list(DESIGNS), default=list(DESIGNS))
    parser.add_argument("--matrices", nargs="*", choices=["shared", "own"], default=["shared", "own"])
    parser.add_argument("--peers", nargs="*", choices=["scikit-learn", "celer", "skglm"], default=None)
    parser.add_argument("--only", choices=["paths", "cv", "fits"])
    parser.add_argument("--repeats", type=int, default=3, help="runs of each side (at least 3 for a claim)")
    parser.add_argument("--fit-repeats", type=int, default=200)
    parser.add_argument(
        "--group-limit", type=float, default=4e6, help="most entries of the stacked matrix for celer's group Lasso"
    )
    parser.add_argument("--resume", action="store_true", help="keep what the same version has measured")
    parser.add_argument("--tables", action="store_true", help="only print tables and draw, from the JSON")
    parser.add_argument("--figure", help="where else to save the picture")
    args = parser.parse_args()
    if args.quick:
        args.repeats, args.fit_repeats = min(args.repeats, 2), 10
    report = Report("everyday", args)
    report.keep(resume=args.resume, tables=args.tables)
    if not args.tables:
        measure(args, report)
    tables(report)
    cells = times_faster(report.content["raw"])
    if cells:
        draw_plane(cells, RESULTS / f"everyday{'.quick' if args.quick else ''}.png", args.figure)
    report.finish()


def shape_of(text: str) -> tuple[int, int, int]:
    n, d, T = (int(part) for part in text.lower().split("x"))
    return n, d, T


def measure(args: Any, report: Report) -> None:
    have = {json.dumps(entry["key"]) for entry in report.content["raw"]}

    def once(key: list[Any], work: Callable[[], dict[str, Any]]) -> None:
        if json.dumps(key) not in have:
            say(" ".join(map(str, key)))
            report.raw(key=key, **work())

    small = [(40, 12, 1), (40, 60, 3)]
    if args.only in (None, "paths"):
        cells = args.cells or (small if args.quick else list(product(ROWS, FEATURES, TASKS)))
        for matrices, design, shape in product(args.matrices, args.designs, cells):
            if matrices == "shared" or shape[2] > 1:  # one task: the same problem
                once(["path", matrices, design, *shape], lambda m=matrices, d=design, s=shape: path_cell(args, m, d, s))  # type: ignore[misc]
    if args.only in (None, "cv"):
        for design, shape in product(args.designs, small if args.quick else CV_SHAPES):
            once(["cv", design, *shape], lambda d=design, s=shape: cv_cell(args, d, s))  # type: ignore[misc]
    if args.only in (None, "fits"):
        for shape in small if args.quick else FIT_SHAPES:
            once(["fit", *shape], lambda s=shape: fit_cell(args, s))  # type: ignore[misc]


# --- paths --------------------------------------------------------------------------------------------------------


def data(design: str, shape: tuple[int, int, int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    n, d, T = shape
    X, Y, _, _ = make_shared_regression(n, d, T, min(20, d // 4), 3.0, DESIGNS[design], seed)
    return X, Y if T > 1 else np.ascontiguousarray(Y[:, 0])


def own_data(design: str, shape: tuple[int, int, int], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n rows for each task; the same features matter in all of them."""
    n, d, T = shape
    # the design of n T rows for one output; its coefficients are drawn anew for every task
    X, _, _, support = make_shared_regression(n * T, d, 1, min(20, d // 4), 3.0, DESIGNS[design], seed)
    rng = np.random.default_rng(seed + 1)
    task = np.repeat(np.arange(T), n)
    signal = np.einsum("ij,ij->i", X[:, support], rng.standard_normal((T, len(support)))[task])
    noise = rng.standard_normal(n * T)
    return X, signal + noise * np.linalg.norm(signal) / (3.0 * np.linalg.norm(noise)), task


def path_cell(args: Any, matrices: str, design: str, shape: tuple[int, int, int]) -> dict[str, Any]:
    if matrices == "own":
        X, y, task = own_data(design, shape, args.seed)
        tasks = stacked_tasks(X, y, task)
    else:
        X, y = data(design, shape, args.seed)
        task, tasks = None, shared_tasks(X, y)
    values = 20 if args.quick else 100
    lams = lambda_max(tasks, True) * np.geomspace(1, 0.01, values)
    alphas = lams / tasks.n_bar
    ours: Callable[[], Run] = lambda: our_path(X, y, task, alphas, fit_intercept=True, threads=args.threads)  # noqa: E731
    ours()  # what the first call of a process loads is no part of a path
    sides: dict[str, tuple[int, Callable[[], Run]]] = {"tasksieve": (args.repeats, ours)}
    settings: dict[str, dict[str, Any]] = {}
    flat = centred_tasks(tasks, X)
    for name, variants in peers(args, matrices, flat, lams, shape).items():
        chosen = best_variant(variants, flat, lams)
        settings[name] = {key: chosen[key] for key in ("setting", "gap", "blas")}
        sides[name] = (args.repeats, chosen["run"])
    runs = alternate(sides)
    ours_run = runs["tasksieve"][-1]
    gaps = relative_gaps(tasks, ours_run.answers, lams, fit_intercept=True)
    return {
        "seconds": {name: [run.seconds for run in done] for name, done in runs.items()},
        "settings": settings,
        "gap": gap_summary(gaps),
        "selected": len(ours_run.answers[-1].features),
    }


def centred_tasks(tasks: Tasks, X: np.ndarray) -> Tasks:
    """The same problem without intercepts: columns and targets less their means within each task."""
    if tasks.shared:
        Y = tasks.y.reshape(tasks.n_tasks, -1)
        centred = np.asfortranarray(X - X.mean(axis=0))
        return tasks._replace(X=centred, y=(Y - Y.mean(axis=1, keepdims=True)).ravel())
    Z, y = np.array(X, order="F"), tasks.y.copy()
    for t in range(tasks.n_tasks):
        rows = slice(tasks.offsets[t], tasks.offsets[t + 1])
        Z[rows] -= Z[rows].mean(axis=0)
        y[rows] -= y[rows].mean()
    return tasks._replace(X=Z, y=y)


Variant = tuple[Callable[[float, np.ndarray], Run], Sequence[float]]


def peers(
    args: Any, matrices: str, flat: Tasks, lams: np.ndarray, shape: tuple[int, int, int]
) -> dict[str, list[Variant]]:
    """For each other program its variants: a run at a tolerance on a part of the grid, and its ladder."""
    n, _, T = shape
    wanted = args.peers or ["scikit-learn", *(name for name in ("celer", "skglm") if installed(name))]
    X = flat.X
    if matrices == "own":
        if "celer" in wanted and X.size <= args.group_limit:
            return {"celer, group Lasso": [(lambda tol, grid: celer_group_path(flat, grid, tol), LADDER)]}
        return {}
    Y = np.asfortranarray(flat.y.reshape(T, -1).T) if T > 1 else flat.y
    top = float(lams[0]) / n
    out: dict[str, list[Variant]] = {}
    if "scikit-learn" in wanted:
        out["scikit-learn"] = [(lambda tol, grid: sklearn_path(X, Y, grid / n, tol), LADDER)]
        if T == 1:
            out["scikit-learn"].append((lambda tol, grid: sklearn_path(X, Y, grid / n, tol, True), LADDER))
    if "celer" in wanted and T == 1:
        out["celer"] = [(lambda tol, grid: celer_path(X, Y, grid / n, tol), LADDER)]
    if "skglm" in wanted and T == 1:
        out["skglm"] = [(lambda tol, grid: skglm_lasso_path(X, Y, grid / n, top, tol), SKGLM_LADDER)]
    return out


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def best_variant(variants: Sequence[Variant], tasks: Tasks, lams: np.ndarray) -> dict[str, Any]:
    """The fastest way of a program to the gap: which variant, which tolerance, how many BLAS threads."""
    best: dict[str, Any] | None = None
    for run, ladder in variants:
        tol, first, gap = at_equal_gap(lambda tol, run=run: run(tol, lams), ladder, tasks, lams)  # type: ignore[misc]
        if best is None or first.seconds < best["first"].seconds:
            best = {"first": first, "gap": gap, "setting": first.setting, "tol": tol, "solve": run}
    assert best is not None
    solve, tol = best["solve"], best["tol"]
    threads = blas_threads(lambda: solve(tol, lams[: max(3, len(lams) // 3)]))
    best["blas"] = threads or "all"
    best["run"] = lambda: limited(threads, lambda: solve(tol, lams))
    return best


# --- cross-validation and single fits -------------------------------------------------------------------------------


def cv_cell(args: Any, design: str, shape: tuple[int, int, int]) -> dict[str, Any]:
    from sklearn.linear_model import LassoCV, MultiTaskLassoCV

    import tasksieve as ts

    X, Y = data(design, shape, args.seed)
    theirs = LassoCV if Y.ndim == 1 else MultiTaskLassoCV
    sides: dict[str, Callable[[], Any]] = {
        "tasksieve": lambda: ts.MultiTaskLassoCV().fit(X, Y),
        "scikit-learn": lambda: theirs().fit(X, Y),
        "scikit-learn, eps 0.01": lambda: theirs(eps=0.01).fit(X, Y),
    }
    models, seconds = turns(sides, args.repeats, warm=1)
    return {"seconds": seconds, "alpha": {name: float(model.alpha_) for name, model in models.items()}}


def fit_cell(args: Any, shape: tuple[int, int, int]) -> dict[str, Any]:
    from sklearn.linear_model import Lasso, MultiTaskLasso

    import tasksieve as ts

    X, Y = data("iid", shape, args.seed)
    tasks = shared_tasks(X, Y)
    alpha = 0.1 * lambda_max(tasks, True) / tasks.n_bar
    theirs = Lasso if Y.ndim == 1 else MultiTaskLasso
    sides: dict[str, Callable[[], Any]] = {
        "tasksieve": lambda: ts.MultiTaskLasso(alpha=alpha).fit(X, Y),
        "scikit-learn": lambda: theirs(alpha=alpha).fit(X, Y),
    }
    _, seconds = turns(sides, args.fit_repeats, warm=3)
    return {"seconds": seconds}


def turns(
    sides: dict[str, Callable[[], Any]], repeats: int, warm: int
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """The models of all programs, fitted in turns; the first rounds warm up and do not count."""
    models: dict[str, Any] = {}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # defaults are defaults, converged or not
        for repeat in range(repeats + warm):
            for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
                start = time.perf_counter()
                models[name] = sides[name]()
                if repeat >= warm:
                    seconds[name].append(time.perf_counter() - start)
    return models, seconds


# --- tables, from the raw results alone -----------------------------------------------------------------------------


def tables(report: Report) -> None:
    raw = report.content["raw"]
    path_tables(report, [entry for entry in raw if entry["key"][0] == "path"])
    cv_table(report, [entry for entry in raw if entry["key"][0] == "cv"])
    fit_table(report, [entry for entry in raw if entry["key"][0] == "fit"])


def medians(entry: dict[str, Any]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in entry["seconds"].items()}


def path_tables(report: Report, entries: list[dict[str, Any]]) -> None:
    rows, ratios = [], {}
    for entry in entries:
        _, matrices, design, n, d, T = entry["key"]
        seconds = medians(entry)
        ours = seconds.pop("tasksieve")
        cells = []
        for name, value in seconds.items():
            ratios.setdefault((matrices, design, name), []).append(value / ours)
            setting = entry["settings"][name]
            # a gap that no tolerance reaches is said: the ratio then favours the other side
            missed = f", gap {setting['gap']['worst']:.0e}" if setting["gap"]["over"] else ""
            cells.append(f"{ratio_cell(value / ours)} {name} ({seconds_cell(value)} s, {setting['setting']}{missed})")
        rows.append([matrices, design, n, d, T, seconds_cell(ours), "; ".join(cells) or "no peer", entry["selected"],
                     f"{entry['gap']['worst']:.1e}"])  # fmt: skip
    if rows:
        report.table(
            "Paths of 100 values to 0.01 alpha_max: times faster at an equal certified gap",
            ["matrices", "columns", "n", "d", "T", "tasksieve, s", "times faster than", "features at the last value",
             "our worst gap"],
            rows,
            f"Medians of {len(next(iter(entries[0]['seconds'].values())))}, programs in turn; n rows in each task "
            f"where matrices are the tasks' own. Each program's gap, recomputed in NumPy, is at most {TOL:g} of the "
            "objective at W = 0 at every value, unless said.",
        )  # fmt: skip
    summary = [
        [*key, len(found), ratio_cell(min(found)), ratio_cell(statistics.median(found)),
         ratio_cell(float(np.exp(np.mean(np.log(found))))), sum(ratio < 1 for ratio in found)]
        for key, found in ratios.items()
    ]  # fmt: skip
    if summary:
        report.table(
            "The same in short",
            ["matrices", "columns", "against", "cells", "lowest", "median", "geometric mean", "cells below 1"],
            summary,
        )
    against = [ratio for (matrices, _, name), found in ratios.items() if name == "scikit-learn" for ratio in found]
    if against:
        low, middle = min(against), statistics.median(against)
        report.headline(
            f"everyday grid, {len(against)} cells: faster than scikit-learn in every cell", f"{MIN_WORST:g}x",
            ratio_cell(low), low >= MIN_WORST, "everyday-worst",
        )  # fmt: skip
        report.headline(
            f"everyday grid, {len(against)} cells: faster than scikit-learn, median", f"{MIN_MEDIAN:g}x",
            ratio_cell(middle), middle >= MIN_MEDIAN, "everyday-median",
        )  # fmt: skip


def cv_table(report: Report, entries: list[dict[str, Any]]) -> None:
    rows, ratios = [], []
    for entry in entries:
        _, design, n, d, T = entry["key"]
        seconds = medians(entry)
        ours = seconds.pop("tasksieve")
        ratios.append(seconds["scikit-learn"] / ours)
        rows.append([
            design, n, d, T, seconds_cell(ours), *(f"{ratio_cell(value / ours)} ({seconds_cell(value)} s)" for value in
            seconds.values()), *(f"{alpha:.4g}" for alpha in entry["alpha"].values()),
        ])  # fmt: skip
    if not rows:
        return
    report.table(
        "Default cross-validation: times faster",
        ["columns", "n", "d", "T", "tasksieve, s", "than scikit-learn", "than scikit-learn with eps 0.01", "alpha",
         "scikit-learn's", "with eps 0.01"],
        rows,
        "Default settings: five folds, 100 values, ours to 0.01 alpha_max, scikit-learn's to 0.001 at tol 1e-4. "
        "For one output the folds differ: ours are shuffled.",
    )  # fmt: skip
    report.headline(
        "default cross-validation: faster than scikit-learn's, worst of all", f"{MIN_CV:g}x", ratio_cell(min(ratios)),
        min(ratios) >= MIN_CV, "everyday-cv",
    )  # fmt: skip


def fit_table(report: Report, entries: list[dict[str, Any]]) -> None:
    rows, ratios = [], []
    for entry in entries:
        _, n, d, T = entry["key"]
        seconds = medians(entry)
        ratios.append(seconds["scikit-learn"] / seconds["tasksieve"])
        ours, theirs = (f"{1e3 * seconds[name]:.2f}" for name in ("tasksieve", "scikit-learn"))
        rows.append([n, d, T, ours, theirs, ratio_cell(ratios[-1])])
    if not rows:
        return
    report.table(
        "One fit at 0.1 alpha_max: times faster",
        ["n", "d", "T", "tasksieve, ms", "scikit-learn, ms", "times faster"],
        rows,
        "Defaults on both sides (tol 1e-6 ours, certified; 1e-4 scikit-learn's).",
    )
    report.headline(
        "single small fits: times faster than scikit-learn's, worst", "1x", ratio_cell(min(ratios)), min(ratios) >= 1.0
    )


if __name__ == "__main__":
    main()
