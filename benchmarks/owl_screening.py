"""Group OWL with and without safe screening, same solver, same certified gap: Figures 1 to 4 of Bao et al. (2025).

    python benchmarks/owl_screening.py                  # every cell, p1 to p3; draws the two kinds of figures
    python benchmarks/owl_screening.py --only genbase
    python benchmarks/owl_screening.py --sides published    # only the paper's algorithms line by line

Single fits from W = 0 to relative gap 1e-6 with OSCAR weights lambda_k = a1 + a2 (d - k), a1 = p max_l ||x_l'Y||,
a2 = a1/d, p = i exp(-tau), i = 1, 2, 3, tau as in the paper (multinomial: X'(Y - 1/q), see the mathematics note).
"batch" is Algorithm 1 (accelerated proximal gradient), "stochastic" Algorithm 2 (prox-SVRG) with the correction
scaled by n/l; both measure their steps, which makes the side without screening fast as well. A second table has
Algorithms 1 and 2 as published (`_owl_published.py`: fixed steps, no restarts, the paper's test), again without and
with screening to the same gap. PlantGO, EukaryoteGO, Bookmarks and DrivFace are not to be had: genbase, medical and
mouse_hs stand in for the batch regressions, bibtex for Bookmarks. A run that takes longer than --limit seconds is
stopped; its cell then shows a lower bound on the ratio.
"""

from __future__ import annotations

import os
import statistics
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _common import RESULTS, ROOT, Report, arguments, ratio_cell, say, seconds_cell, timed
from _owl_published import Published, algorithm1, algorithm2, lipschitz
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from tasksieve.design import Design, as_storage
from tasksieve.path import Problem, solve_path
from tasksieve.penalties import Sorted, oscar_weights

DATA = Path(os.environ.get("TASKSIEVE_DATA", ROOT.parent / "shared" / "datasets"))


class Cell(NamedTuple):
    """One data set: which model and algorithm, the paper's tau, and what the paper reports for this kind."""

    kind: str
    solver: str
    tau: float
    intercept: bool
    bar: float
    note: str


CELLS = {
    "genbase": Cell("batch regression", "apgd", 3.0, False, 6.0, "for PlantGO"),
    "medical": Cell("batch regression", "apgd", 3.0, False, 6.0, "for EukaryoteGO"),
    "mouse_hs": Cell("batch regression", "apgd", 3.0, True, 6.0, "3 body traits, 600 rows; centred"),
    "ujiindoorloc": Cell(
        "stochastic regression", "spgd", 3.0, True, 10.0, "2 coordinates, 6,000 rows; centred"
    ),
    "bibtex": Cell("stochastic regression", "spgd", 2.0, False, 10.0, "for Bookmarks; first 20 tags"),
    "reuters21578": Cell("batch multinomial", "apgd", 3.0, False, 7.0, "30 categories, X sparse"),
    "protein": Cell("stochastic multinomial", "spgd", 2.0, False, 2.4, "validation part"),
    "mnist": Cell("stochastic multinomial", "spgd", 2.0, False, 2.4, "1,500 of 30,000 rows"),
}


ROWS = {"mouse_hs": 600, "ujiindoorloc": 6000, "mnist": 1500}  # evenly spaced, so that a run ends in seconds


def read(name: str, rows: int | None) -> tuple[Any, np.ndarray]:
    """X and Y (numbers, or one-hot classes)."""
    z = np.load(DATA / f"{name}.npz")
    if "indptr" in z:
        x: Any = sparse.csr_array(
            (z["data"].astype(float), z["indices"].astype(np.int32), z["indptr"].astype(np.int32)),
            shape=tuple(z["shape"]),
        )
    else:
        x = z["X"].astype(float)
    if name == "ujiindoorloc":
        x[x == 100.0] = -105.0  # not detected: weaker than anything
        x += 105.0
        y = z["Y"][:, :2].astype(float)
    elif name in ("reuters21578", "protein", "mnist"):
        y = np.eye(65)[z["y"].astype(int)]
        if name == "reuters21578":
            kept = np.flatnonzero(z["y"] < 30)
            x, y = x[kept], y[kept]
        y = y[:, y.any(axis=0)]
        if name == "mnist":
            x /= 255.0
    elif name == "mouse_hs":
        y = z["Y"][:, :3].astype(float)
        y /= y.std(axis=0)
    else:
        y = z["Y"].astype(float)[:, : 20 if name == "bibtex" else None]
    if rows is not None:
        chosen = np.linspace(0, x.shape[0] - 1, rows).astype(int)
        x, y = x[chosen], y[chosen]
    return x, y


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", default="", help="names of data sets, separated by commas")
    parser.add_argument("--sides", default="ours,published", help="ours, published, or both")
    parser.add_argument(
        "--repeats", type=int, default=5, help="runs of each side, for medians; fewer of slow cells"
    )
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for one run")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    names = [name for name in CELLS if not args.only or name in args.only.split(",")]
    names = ["genbase"] if args.quick else names
    report = Report(
        "owl_screening" if not args.only else f"owl_screening_{args.only.replace(',', '_')}", args
    )
    levels = (1,) if args.quick else (1, 2, 3)
    sides = args.sides.split(",")
    if "ours" in sides:
        ours(report, names, levels, args)
    if "published" in sides:
        published(report, names, levels, args)
    report.finish()


def ours(report: Report, names: list[str], levels: tuple[int, ...], args: Any) -> None:
    table, best = [], {}
    for name in names:
        cell = CELLS[name]
        x, y = read(name, ROWS.get(name))
        for i in levels:
            measured = measure(x, y, cell, i * float(np.exp(-cell.tau)), args)
            ratios = {key: bound(measured[None], measured[key]) for key in ("bao", "cumulative")}
            largest = max((value for value, _ in ratios.values() if value is not None), default=0.0)
            best[name] = max(best.get(name, 0.0), largest)
            table.append(
                [name, f"{x.shape[0]:,} x {x.shape[1]:,} x {y.shape[1]}", cell.kind, f"p{i}",
                 measured["cumulative"]["active"], *(shown(measured[key]) for key in (None, "bao", "cumulative")),
                 *((">= " if floor else "") + ratio_cell(value) for value, floor in ratios.values()), cell.note]
            )  # fmt: skip
            report.raw(name=name, p=i, **{str(key): value for key, value in measured.items()})
            say(*table[-1])
    report.table(
        "Group OWL: seconds to relative gap 1e-6 without and with screening",
        [
            "data",
            "n x d x T",
            "what",
            "p",
            "active",
            "none",
            "bao",
            "cumulative",
            "none/bao",
            "none/cumulative",
            "note",
        ],
        table,
        f"Single fits from W = 0; part of the rows of mouse_hs, ujiindoorloc and mnist. "
        f"A run stopped after {args.limit:g} s is marked with its relative gap; a ratio to it is a lower bound.",
    )
    for name in names:
        cell = CELLS[name]
        report.headline(
            f"Group OWL, {cell.kind}, {name}: faster with screening", f">= {cell.bar:g}x", f"{best[name]:.2f}x",
            None if args.quick else best[name] >= cell.bar, key=f"owl-{name}",
        )  # fmt: skip
    if not args.quick:
        draw(report.content["raw"], RESULTS)


def published(report: Report, names: list[str], levels: tuple[int, ...], args: Any) -> None:
    """The paper's algorithms line by line, without and with its test."""
    table = []
    for name in names:
        cell = CELLS[name]
        x, y = read(name, ROWS.get(name))
        if cell.intercept:
            x, y = np.asfortranarray(x - x.mean(axis=0)), y - y.mean(axis=0)
        multinomial = "multinomial" in cell.kind
        algorithm = algorithm1 if cell.solver == "apgd" else algorithm2
        given = x.tocsr() if sparse.issparse(x) and cell.solver == "spgd" else x
        given = given.tocsc() if sparse.issparse(x) and cell.solver == "apgd" else given
        constant = lipschitz(x, multinomial)
        for i in levels:
            lam = strength(x, y, cell, i * float(np.exp(-cell.tau)))
            runs = {}
            for screening in (False, True):
                runs[screening] = algorithm(
                    given, y, lam * oscar_weights(x.shape[1]), constant,
                    multinomial=multinomial, screening=screening, tol=1e-6, limit=args.limit,
                )  # fmt: skip
            plain, screened = runs[False], runs[True]
            ratio = None if screened.stopped else plain.seconds / screened.seconds
            table.append(
                [name, cell.kind, f"p{i}", *(published_cell(run) for run in (plain, screened)), plain.iterations,
                 screened.iterations, screened.left, (">= " if plain.stopped and ratio else "") + ratio_cell(ratio)]
            )  # fmt: skip
            report.raw(name=name, p=i, published={str(key): vars(run) for key, run in runs.items()})
            say(*table[-1])
    report.table(
        "Group OWL, the paper's algorithms as published: seconds to relative gap 1e-6",
        [
            "data",
            "what",
            "p",
            "none",
            "bao",
            "iterations without",
            "iterations with",
            "rows left",
            "none/bao",
        ],
        table,
        f"Plain NumPy, fixed steps, no restarts, a gap at every iteration. A run stopped after {args.limit:g} s is "
        "marked with the relative gap it had reached.",
    )


def published_cell(run: Published) -> str:
    return f"> {seconds_cell(run.seconds)} ({run.gap:.0e})" if run.stopped else seconds_cell(run.seconds)


def strength(x: Any, y: np.ndarray, cell: Cell, p: float) -> float:
    """The first weight, a1 + a2 (d - 1); x and y are centred where the model has an intercept."""
    d = x.shape[1]
    given = y - 1.0 / y.shape[1] if "multinomial" in cell.kind else y
    return p * float(np.max(np.linalg.norm(x.T @ given, axis=1))) * (1.0 + (d - 1.0) / d)


def measure(x: Any, y: np.ndarray, cell: Cell, p: float, args: Any) -> dict[Any, dict[str, Any]]:
    """Seconds, iterations and the rows left at every check, without screening and with both tests, in turn."""
    n, tasks = x.shape[0], y.shape[1]
    multinomial = "multinomial" in cell.kind
    lam = strength(*((x - x.mean(axis=0), y - y.mean(axis=0)) if cell.intercept else (x, y)), cell, p)
    storage = as_storage(x if sparse.issparse(x) else np.asfortranarray(x))
    runs: dict[Any, list[dict[str, Any]]] = {None: [], "bao": [], "cumulative": []}
    for repeat in range(1 if args.quick else args.repeats):
        if repeat and runs[None][0]["seconds"] > 2.0:
            break  # seconds, not milliseconds: one run says enough
        for screening in runs:
            design = Design(
                storage,
                n * np.arange(tasks + 1),
                shared=tasks > 1,
                fit_intercept=cell.intercept,
                n_threads=args.threads,
            )
            problem = Problem(
                design,
                y.T.ravel(),
                penalty=Sorted("oscar"),
                loss="multinomial" if multinomial else "squared",
            )
            problem.null_levels()
            budget = Budget(problem, args.limit)

            def run(problem: Any = problem, screening: Any = screening) -> Any:
                return solve_path(problem, [lam], tol=1e-6, screening=screening, solver=cell.solver)

            seconds, solution = timed(run)
            runs[screening].append(summary(problem, seconds, solution, budget))
    out = {}
    for screening, repeats in runs.items():
        out[screening] = repeats[-1] | {"seconds": statistics.median(run["seconds"] for run in repeats)}
    return out


class Budget:
    """Stops a solve that runs too long, as Ctrl-C would: the loss raises once the time is over."""

    def __init__(self, problem: Any, limit: float) -> None:
        import time

        self.exceeded = False
        self.last_gap = np.nan
        start = time.perf_counter()

        def watch(method: Any) -> Any:
            def watched(*given: Any, **options: Any) -> Any:
                if time.perf_counter() - start > limit:
                    self.exceeded = True
                    raise KeyboardInterrupt
                return method(*given, **options)

            return watched

        for name in ("evaluate", "sketch"):
            if hasattr(problem.loss, name):
                setattr(problem.loss, name, watch(getattr(problem.loss, name)))


def summary(problem: Any, seconds: float, solution: Any, budget: Budget) -> dict[str, Any]:
    if not solution.points:
        return {
            "seconds": seconds,
            "stopped": True,
            "active": "-",
            "history": [],
            "gap": None,
            "iterations": None,
        }
    point = solution.points[0]
    return {
        "seconds": seconds,
        "stopped": not point.converged,
        "active": len(point.features),
        "history": point.steps,
        "gap": point.dual_gap / problem.loss.null.value,
        "iterations": point.n_iter,
    }


def bound(plain: dict[str, Any], screened: dict[str, Any]) -> tuple[float | None, bool]:
    """Ratio of seconds, and whether it is only a lower bound; None where the screened run did not finish."""
    if screened["stopped"]:
        return None, False
    return plain["seconds"] / screened["seconds"], bool(plain["stopped"])


def shown(run: dict[str, Any]) -> str:
    return ("> " if run["stopped"] else "") + seconds_cell(run["seconds"])


def draw(raw: list[dict[str, Any]], folder: Path) -> None:
    """The paper's two kinds of figures: running time, as a share of p1 without screening, and screening rate.

    The rate is that of the first sparsity level at which both runs with screening ended in time.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    raw = [entry for entry in raw if "cumulative" in entry]
    names = list(dict.fromkeys(entry["name"] for entry in raw))
    figure, axes = plt.subplots(
        2, len(names), figsize=(2.6 * len(names), 5.2), layout="constrained", squeeze=False
    )
    for k, name in enumerate(names):
        own = [entry for entry in raw if entry["name"] == name]
        unit = own[0]["None"]["seconds"]
        for shift, key, color in ((-0.2, "None", "#999999"), (0.2, "cumulative", "#2a6fbb")):
            heights = [100.0 * entry[key]["seconds"] / unit for entry in own]
            label = "without screening" if key == "None" else "with screening"
            axes[0, k].bar(np.arange(len(own)) + shift, heights, 0.38, color=color, label=label)
        axes[0, k].set_xticks(range(len(own)), [f"p{entry['p']}" for entry in own])
        axes[0, k].set_title(name, fontsize=10)
        ended = [entry for entry in own if entry["bao"]["history"] and entry["cumulative"]["history"]]
        for key, color in (("bao", "#d98032"), ("cumulative", "#2a6fbb")) if ended else ():
            run = ended[0][key]
            steps, left, _ = (np.array(values, dtype=float) for values in zip(*run["history"], strict=True))
            inactive = left[0] - run["active"]
            axes[1, k].plot(steps, (left[0] - left) / max(inactive, 1.0), color=color, label=key)
        axes[1, k].set_ylim(0, 1.05)
        steps_of = "iteration" if CELLS[name].solver == "apgd" else "epoch"
        axes[1, k].set_xlabel(f"{steps_of}, p{ended[0]['p']}" if ended else steps_of, fontsize=9)
    axes[0, 0].set_ylabel("running time, % of p1 without")
    axes[1, 0].set_ylabel("screening rate")
    axes[0, 0].legend(fontsize=7)
    axes[1, 0].legend(fontsize=7)
    folder.mkdir(exist_ok=True)
    figure.savefig(folder / "owl_screening.png", dpi=90)


if __name__ == "__main__":
    main()
