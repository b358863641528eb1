"""Safe screening: the figures and the table of Wang & Ye (2015), section 5, made again.

    python benchmarks/screening.py

Figure 1: rejection ratios (rows rejected before a value is solved / zero rows of its solution) along 100 values to
0.01 alpha_max on Synthetic 1 and 2 (50 tasks of 50 rows). The paper's rule is the public door's,
`MultiTaskLasso(screening="dpc-published").path(...)`: exact products at every value, and all that is left solved for.
The rigorous rule (`tasksieve.screening.screen`) is asked from the same solutions, at a relative gap of 1e-6 and of
1e-10: a rule that accounts for the gap of the last solution is as strong as the published one only if that gap is
small where alpha is.

Table 1: speed-up of accelerated proximal gradient (the paper's kind of solver: SLEP's) by screening. No estimator uses
it for this model: it is `tasksieve.path.solve_path` with a solver by name, and the rigorous rule. Without screening
the paper needed up to 41 hours; here both runs stop after --max-seconds, and the speed-up is that over the values
which both finished, whose number the table gives. Nothing is extrapolated.

Figure 2 in kind: TDT2 made into tasks as in the paper; mouse_hs (genotypes, 20 traits with missing labels) for ADNI
and MNIST made into tasks likewise for Animal, neither of which is to be had.

Default: the same synthetic paths with `screening="auto"` and `None`, which the default does not need to be fast.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _common import (
    RESULTS,
    TOL,
    Report,
    Rows,
    Tasks,
    alternate,
    arguments,
    engine_problem,
    gap_cell,
    gap_summary,
    lambda_max,
    library,
    median_seconds,
    our_path,
    path_answers,
    point_answers,
    predictions,
    ratio_cell,
    relative_gaps,
    say,
    seconds_cell,
    shared_tasks,
    stacked_tasks,
    timed,
    versions,
)
from scipy import sparse

from tasksieve.datasets import data_folder, make_wang_synthetic, one_vs_rest_tasks

SERIES = [("dpc-published", 1e-6), ("dpc", 1e-6), ("dpc", 1e-10)]
SHOWN = [SERIES[0], SERIES[2]]  # each with the gap that serves it
PUBLISHED = {
    ("Synthetic 1", 10_000): 14.43,
    ("Synthetic 1", 20_000): 24.68,
    ("Synthetic 1", 50_000): 58.03,
    ("Synthetic 2", 10_000): 13.89,
    ("Synthetic 2", 20_000): 24.72,
    ("Synthetic 2", 50_000): 54.39,
}
PUBLISHED_REAL = {"TDT2": 21.74, "Animal": 19.05, "ADNI": 272.37}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--features", type=int, nargs="*", help="sizes (default: 10000 20000 50000)")
    parser.add_argument("--trials", type=int, default=20, help="draws per setting of Figure 1 (paper: 20)")
    parser.add_argument("--resume", action="store_true", help="Figure 1: keep the draws that are already there")
    parser.add_argument("--stored", action="store_true", help="Figure 1: no run, only the draws that are there")
    parser.add_argument(
        "--main-series", action="store_true", help="Figure 1: only the published rule and the rigorous one, each "
        "with the gap that serves it",
    )  # fmt: skip
    parser.add_argument("--figure", help="Figure 1: where else to save the picture")
    parser.add_argument("--max-seconds", type=float, default=120.0, help="limit of each run of the speed-up")
    parser.add_argument(
        "--whole-path", type=int, nargs="*", default=[], metavar="D",
        help="Table 1: sizes whose runs have no time limit (d = 10000: hours)",
    )  # fmt: skip
    parser.add_argument(
        "--path-seconds", type=float, default=300.0, help="limit of each path whose rejection ratios are shown"
    )
    parser.add_argument("--only", choices=list(PARTS), help="one part; each part keeps a result of its own")
    parser.add_argument(
        "--tdt2-weighting", choices=["counts", "tfidf"], default="counts", help="the paper does not say"
    )
    parser.add_argument(
        "--real", nargs="*", default=["TDT2", "mouse_hs", "MNIST"], choices=["TDT2", "mouse_hs", "MNIST"]
    )
    args = parser.parse_args()
    sizes = args.features or ([150, 300] if args.quick else [10_000, 20_000, 50_000])
    if args.quick:
        args.trials, args.max_seconds = min(args.trials, 2), min(args.max_seconds, 2.0)
        args.path_seconds = min(args.path_seconds, 5.0)
    for name in [args.only] if args.only else PARTS:
        report = Report(f"screening_{name}", args)
        if library() is not None:
            PARTS[name](report, args, sizes)
        report.finish()


# --- Figure 1 -----------------------------------------------------------------------------------------------


def figure1(report: Report, args: Any, sizes: Sequence[int]) -> None:
    """Draw after draw, each kept as soon as it is done: `--resume` goes on with those of the same version."""
    kept = earlier_draws(args) if args.resume or args.stored else []
    for draw in kept:
        report.raw(**draw)
    series = SHOWN if args.main_series else SERIES
    panels, rows = {}, []
    for kind in (1, 2):
        for d in sizes:
            wanted = {"kind": kind, "d": d, "shape": list(task_shape(args))}
            trials: dict[Series, list[Rejection]] = {one: [] for one in series}
            for seed in range(args.seed, args.seed + args.trials):
                tasks = None
                keys = {one: {**wanted, "seed": seed, "rule": one[0], "gap": one[1]} for one in series}
                if args.stored and not all(any(draw["key"] == key for draw in kept) for key in keys.values()):
                    continue
                for (rule, tol), key in keys.items():
                    found = [draw for draw in kept if draw["key"] == key]
                    if found:
                        one = Rejection(np.array(found[0]["ratios"], dtype=float), **found[0]["rest"])
                    else:
                        tasks = synthetic(args, kind, d, seed) if tasks is None else tasks
                        one = rejection(tasks, rule, tol, threads=args.threads, limit=args.path_seconds)
                        rest = {"wrong": one.wrong, "worst": one.worst, "seconds": one.seconds}
                        report.raw(key=key, ratios=one.ratios, rest=rest)
                        say(f"Synthetic {kind}, d = {d}, seed {seed}, {rule}, gap {tol:g}: {one.words()}")
                    trials[rule, tol].append(one)
            if not all(trials.values()):
                continue
            name = f"Synthetic {kind}, d = {d:,}"
            panels[name] = trials
            rows += ratio_rows(f"Synthetic {kind}", d, trials)
            ratio_headlines(report, name, trials)
    report.table(
        *ratio_table(
            "Figure 1: rejection ratios along the path",
            rows,
            "Several draws of the data (the paper: 20): medians, and in brackets lowest and highest. ",
        )
    )
    plot(panels, "figure1", min(len(panels), 3), args.figure)


def earlier_draws(args: Any) -> list[dict[str, Any]]:
    """Draws that an earlier run of the same version has left."""
    file = RESULTS / f"screening_figure1{'.quick' if args.quick else ''}.json"
    content = json.loads(file.read_text()) if file.exists() else {"raw": [], "versions": {}}
    if content["versions"].get("tasksieve") != versions().get("tasksieve"):
        return []
    return [draw for draw in content["raw"] if "key" in draw]


def task_shape(args: Any) -> tuple[int, int]:
    return (8, 15) if args.quick else (50, 50)


def synthetic(args: Any, kind: int, d: int, seed: int) -> Tasks:
    X, y, task, _ = make_wang_synthetic(kind, *task_shape(args), d, seed)
    assert task is not None
    return stacked_tasks(X, y, task)


class Rejection(NamedTuple):
    """One path with screening.

    alpha_max itself is left out: its solution is zero, and there is nothing to solve or to reject.
    """

    ratios: np.ndarray
    wrong: int  # rows rejected that its solution uses
    worst: float  # largest recomputed gap / gap asked for
    seconds: float

    def words(self) -> str:
        done = np.count_nonzero(np.isfinite(self.ratios))
        return f"{self.seconds:.1f} s, {done} values, lowest ratio {self.lowest:.3f}, {self.wrong} wrong"

    @property
    def lowest(self) -> float:
        return float(np.nanmin(self.ratios))


Series = tuple[str, float]  # rule, relative gap


Draws = dict[Series, list[Rejection]]


def spread(values: Sequence[float]) -> str:
    """Median, and the range where there is more than one."""
    if not np.isfinite(values).any():
        return "-"
    middle = f"{np.nanmedian(values):.3f}"
    return middle if len(values) == 1 else f"{middle} ({np.nanmin(values):.3f} - {np.nanmax(values):.3f})"


def ratio_headlines(report: Report, name: str, draws: Draws) -> None:
    for rule, tol in SHOWN:
        runs = draws[rule, tol]
        done = min(np.count_nonzero(np.isfinite(one.ratios)) for one in runs)
        where = "at every value" if done == GRID.size else f"first {done} values"
        middle = float(np.nanmin(np.median([one.ratios for one in runs], axis=0)))
        lows = [one.lowest for one in runs]
        words = f"{middle:.3f}"
        if len(runs) > 1:
            words += f" (lowest of the median; single draws {min(lows):.3f} to {max(lows):.3f})"
        report.headline(
            f"{name}: rejection ratio of {rule}, gap {tol:g}, {where}", "above 0.9", words, middle > 0.9
        )


def rejection(
    tasks: Tasks, rule: str, tol: float, *, threads: int, fit_intercept: bool = False, limit: float = np.inf
) -> Rejection:
    """Rejection ratios along 100 values; not a number for those that were not reached within the time limit."""
    from tasksieve import MultiTaskLasso

    lams = lambda_max(tasks, fit_intercept) * np.geomspace(1, 0.01, 100)
    published = rule == "dpc-published"
    model = MultiTaskLasso(
        screening=rule if published else "auto", tol=tol, fit_intercept=fit_intercept, n_jobs=threads
    )
    X, y, given = public_data(tasks)
    with interrupt_after(limit):
        seconds, path = timed(lambda: model.path(X, y, alphas=lams / tasks.n_bar, **given))
    done = len(path.alphas)
    answers = path_answers(path, fit_intercept)
    gaps = relative_gaps(tasks, answers, lams[:done], fit_intercept=fit_intercept)
    ratios = np.full(GRID.size, np.nan)
    screened, wrong = by_itself(tasks, rule, answers, lams[:done], fit_intercept, threads)
    ratios[: done - 1] = path.rejection_ratios[1:] if published else screened
    return Rejection(ratios, wrong, float(np.max(gaps / tol)), seconds)


def by_itself(
    tasks: Tasks, rule: str, answers: list[Rows], lams: np.ndarray, fit_intercept: bool, threads: int
) -> tuple[np.ndarray, int]:
    """What the rule alone rejects at each value, from the solution of the last, of the rows that are zero; and how many
    rows it rejects that are not."""
    from tasksieve.screening import screen

    design = engine_problem(tasks, fit_intercept=fit_intercept, threads=threads).design
    residuals = tasks.y[:, None] - predictions(tasks, answers)
    if tasks.observed is not None:
        residuals *= tasks.observed[:, None]
    ratios, wrong = [], 0
    for k in range(len(lams) - 1):
        coef = np.zeros((tasks.X.shape[1], tasks.n_tasks))
        coef[answers[k].features] = answers[k].values
        rejected = screen(design, tasks.y, residuals[:, k], lams[k + 1], coef=coef, rule=rule)
        active = answers[k + 1].features
        wrong += int(np.count_nonzero(rejected[active]))
        ratios.append(np.count_nonzero(rejected) / (len(rejected) - len(active)))
    return np.array(ratios), wrong


def public_data(tasks: Tasks) -> tuple[Any, np.ndarray, dict[str, Any]]:
    """X, y and the tasks as an estimator takes them."""
    if not tasks.shared:
        return tasks.X, tasks.y, {"task": np.repeat(np.arange(tasks.n_tasks), np.diff(tasks.offsets))}
    flat = tasks.y if tasks.observed is None else np.where(tasks.observed, tasks.y, np.nan)
    return tasks.X, flat.reshape(tasks.n_tasks, -1).T, {}


@contextmanager
def interrupt_after(seconds: float) -> Iterator[None]:
    """Ctrl-C after so long, which leaves the values of a path that are done."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.0 if np.isinf(seconds) else seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


GRID = np.geomspace(1, 0.01, 100)[1:]
MARKS = (0.9, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


def ratio_rows(name: str, d: int, draws: Draws) -> list[list[Any]]:
    positions = [int(np.argmin(np.abs(np.log(GRID / mark)))) for mark in MARKS]
    return [
        [
            name,
            f"{d:,}",
            rule,
            f"{tol:g}",
            *(spread([one.ratios[k] for one in runs]) for k in positions),
            spread([one.lowest for one in runs]),
            f"{sum(one.lowest > 0.9 for one in runs)} of {len(runs)}",
            sum(one.wrong for one in runs),
            f"{max(one.worst for one in runs):.2f}",
        ]
        for (rule, tol), runs in draws.items()
    ]


def ratio_table(title: str, rows: list[list[Any]], words: str) -> tuple[str, list[str], list[list[Any]], str]:
    columns = [
        "data",
        "d",
        "rule",
        "gap",
        *(f"at {mark:g}" for mark in MARKS),
        "lowest",
        "draws above 0.9 everywhere",
        "wrong rejections",
        "recomputed gap / asked",
    ]
    note = (
        words
        + "Columns: alpha / alpha_max. Published: above 0.9 everywhere. Gap: of every solution, relative to the "
        "objective at W = 0. `dpc-published` is the paper's rule, as `MultiTaskLasso(screening='dpc-published')` runs "
        "it; it takes the last solution for exact and is not safe (wrong rejections: rows that it rejects and the "
        "solution uses). `dpc` is the rigorous rule, asked from the solutions of a path by `screening.screen`: it "
        "accounts for their gap and is safe. A dash: not reached within the time limit of a path. See figure1.png and "
        "figure2.png among the results."
    )
    return title, columns, rows, note


def plot(panels: dict[str, Draws], name: str, across: int, also: str | None = None) -> None:
    """One panel per data set, as in the paper: medians over the draws, and their range."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    down = -(-len(panels) // across)
    figure, axes = plt.subplots(down, across, figsize=(4.2 * across, 3.2 * down), squeeze=False, sharey=True)
    styles = {"dpc-published": ("C1", "published DPC"), "dpc": ("C0", "rigorous DPC")}
    for axis, (title, draws) in zip(axes.flat, panels.items(), strict=False):
        for (rule, tol), runs in draws.items():
            colour, label = styles[rule]
            ratios = np.array([one.ratios for one in runs])
            style = {SHOWN[0]: "--", SHOWN[1]: "-"}.get((rule, tol), ":")
            axis.semilogx(
                GRID, np.median(ratios, axis=0), colour, ls=style, label=f"{label}, gap {tol:g}",
                zorder=3 if rule == "dpc-published" else 2,  # the curves lie on each other: dashes on top
            )  # fmt: skip
            if len(runs) > 1 and (rule, tol) in SHOWN:
                axis.fill_between(GRID, ratios.min(axis=0), ratios.max(axis=0), color=colour, alpha=0.15, lw=0)
        axis.axhline(0.9, color="0.7", lw=0.8, zorder=0)
        axis.set(title=title, xlabel="alpha / alpha_max", ylim=(0, 1.03))
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis in axes[:, 0]:
        axis.set_ylabel("rejection ratio")
    axes[0, 0].legend(loc="lower right", fontsize="small")
    figure.tight_layout()
    RESULTS.mkdir(exist_ok=True)
    for file in (RESULTS / f"{name}.png", *([also] if also else [])):
        figure.savefig(file, dpi=120)
    plt.close(figure)


# --- Table 1 ------------------------------------------------------------------------------------------------


def table1(report: Report, args: Any, sizes: Sequence[int]) -> None:
    rows = []
    for kind in (1, 2):
        for d in sizes:
            tasks = synthetic(args, kind, d, args.seed)
            limit = float("inf") if d in args.whole_path else args.max_seconds
            result = speed_up(tasks, f"Synthetic {kind}, d = {d}", limit, args.threads)
            published = PUBLISHED.get((f"Synthetic {kind}", d))
            rows.append(speed_row(f"Synthetic {kind}", d, result, published))
            report.raw(table1=f"Synthetic {kind}", d=d, **result)
            speed_headline(report, f"Synthetic {kind}, d = {d:,}", result, published)
    report.table(
        "Table 1: what screening saves accelerated proximal gradient", SPEED_COLUMNS, rows, speed_note(args)
    )


SPEED_COLUMNS = ["data", "d", "values both finished", "without screening, s", "with DPC, s", "speed-up", "published",
                 "worst gap, without", "worst gap, with"]  # fmt: skip


def speed_note(args: Any) -> str:
    sizes = ", ".join(f"{d:,}" for d in args.whole_path)
    whole = f" (d = {sizes}: not at all)" if sizes else ""
    return (
        "Accelerated proximal gradient with restart on all surviving features (no working set), fixed gap 1e-6, warm "
        "starts; the rigorous rule, before and during each solve. Each run stopped after "
        f"{args.max_seconds:g} s{whole}; times and speed-up are sums over the first values that both runs finished, "
        "nothing is extrapolated to the others. Gaps: with the better of two dual points, the residual and that of a "
        "solution 100 times as precise."
    )


def speed_row(name: str, d: int, result: dict[str, Any], published: float | None) -> list[Any]:
    return [
        name, f"{d:,}", f"{result['values']} of 100", seconds_cell(result["without"]), seconds_cell(result["with"]),
        ratio_cell(result["speed_up"]), f"{published:g}x" if published else "-", gap_cell(result["gap_without"]),
        gap_cell(result["gap_with"]),
    ]  # fmt: skip


def speed_headline(report: Report, name: str, result: dict[str, Any], published: float | None) -> None:
    if published:
        report.headline(
            f"{name}: screening speeds up accelerated proximal gradient ({result['values']} of 100 values)",
            f"published {published:g}x",
            ratio_cell(result["speed_up"]),
            # a part of the path is another measurement than the published one: neither met nor missed
            None if result["speed_up"] is None or result["values"] < 100 else result["speed_up"] >= published,
        )


def speed_up(
    tasks: Tasks, name: str, limit: float, threads: int, fit_intercept: bool = False
) -> dict[str, Any]:
    """Both runs within the time limit, compared over the values that both finished."""
    lams = lambda_max(tasks, fit_intercept) * np.geomspace(1, 0.01, 100)
    # screened first: it gets further in the same time, so its values cover those of the other
    screened = apgd(tasks, lams, "dpc", limit, threads, fit_intercept)
    plain = apgd(tasks, lams, None, limit, threads, fit_intercept)
    both = min(len(screened["seconds"]), len(plain["seconds"]))
    longest = max(len(screened["seconds"]), len(plain["seconds"]))
    duals = reference_duals(tasks, lams[:longest], threads, fit_intercept)

    def gaps(answers: list[Rows]) -> dict[str, Any] | None:
        n = len(answers)
        found = relative_gaps(tasks, answers, lams[:n], fit_intercept=fit_intercept, duals=duals[:n])
        return gap_summary(found) if n else None

    a, b = sum(plain["seconds"][:both]), sum(screened["seconds"][:both])
    say(f"{name}: {both} values, {a:.1f} s without, {b:.1f} s with screening")
    return {
        "values": both,
        "values_with": len(screened["seconds"]),
        "without": a,
        "with": b,
        "speed_up": a / b if both > 1 and b > 0 else None,
        "gap_without": gaps(plain["answers"]),
        "gap_with": gaps(screened["answers"]),
        "seconds_without": plain["seconds"],
        "seconds_with": screened["seconds"],
    }


def apgd(
    tasks: Tasks, lams: np.ndarray, rule: str | None, limit: float, threads: int, fit_intercept: bool
) -> dict[str, Any]:
    """Accelerated proximal gradient alone, with or without screening, until done or out of time."""
    from tasksieve.path.solve import solve_path

    problem = engine_problem(tasks, fit_intercept=fit_intercept, threads=threads)
    marks = [time.perf_counter()]
    deadline = marks[0] + limit

    def watch(k: int, n_values: int, point: Any) -> None:
        marks.append(time.perf_counter())
        if marks[-1] > deadline:
            raise KeyboardInterrupt  # the engine's own way out: the finished points are kept

    solution = solve_path(
        problem,
        lams,
        tol=TOL,
        max_iter=10**7,
        screening=rule,
        solver="apgd",
        working_set=False,
        lazy=False,
        progress=watch,
    )
    done = len(solution.points)
    return {"seconds": np.diff(marks)[:done].tolist(), "answers": point_answers(solution, fit_intercept)}


def reference_duals(tasks: Tasks, lams: np.ndarray, threads: int, fit_intercept: bool) -> list[np.ndarray]:
    """Residuals of far more precise solutions.

    An accelerated method may stop with a good objective whose own residual, taken as the dual point, says little:
    its certificate came from an earlier iterate. Any dual point proves; these prove nearly all there is.
    """
    from tasksieve.path.solve import solve_path

    problem = engine_problem(tasks, fit_intercept=fit_intercept, threads=threads)
    answers = point_answers(solve_path(problem, lams, tol=1e-2 * TOL), fit_intercept)
    return list((tasks.y[:, None] - predictions(tasks, answers)).T)


# --- Figure 2 -----------------------------------------------------------------------------------------------


def figure2(report: Report, args: Any, sizes: Sequence[int]) -> None:
    panels, ratios, speeds = {}, [], []
    for name, label, tasks, fit_intercept in real_data(args):
        d = tasks.X.shape[1]
        draws: Draws = {}
        for series in SERIES:
            one = rejection(
                tasks, *series, threads=args.threads, fit_intercept=fit_intercept, limit=args.path_seconds
            )
            draws[series] = [one]
            say(f"{name}, d = {d}, {series}: {one.words()}")
        panels[f"{name}, d = {d:,}"] = draws
        ratios += ratio_rows(label, d, draws)
        ratio_headlines(report, label, draws)
        result = speed_up(tasks, name, args.max_seconds, args.threads, fit_intercept)
        published = PUBLISHED_REAL.get(name)
        speeds.append(speed_row(label, d, result, published))
        speed_headline(report, label, result, published)
        curves = {f"{rule}/{tol:g}": runs[0]._asdict() for (rule, tol), runs in draws.items()}
        report.raw(figure2=name, d=d, curves=curves, **result)
    for absent, words in (
        ("Animal", "features not to be had; stand-in: MNIST above"),
        ("ADNI", "not public; stand-ins: mouse_hs above, simulated genotypes in genotypes.py"),
    ):
        speeds.append([f"{absent} ({words})", {"Animal": "15,036", "ADNI": "504,095"}[absent], "-", "-", "-", "-",
                       f"{PUBLISHED_REAL[absent]:g}x", "-", "-"])  # fmt: skip
    about = (
        f"TDT2: 30 tasks of 50 + 50 documents, {args.tdt2_weighting}. mouse_hs: 20 traits with missing labels, one "
        "shared uint8 genotype matrix, intercepts. MNIST: 10 tasks of 30 + 30 images, uint8 pixels. "
    )
    report.table(*ratio_table("Figure 2 in kind: rejection ratios on real data", ratios, about))
    report.table(
        "Table 1, real data: what screening saves accelerated proximal gradient",
        SPEED_COLUMNS,
        speeds,
        speed_note(args),
    )
    plot(panels, "figure2", 3)


def real_data(args: Any) -> list[tuple[str, str, Tasks, bool]]:
    """(short name, name in the tables, tasks, intercepts?)."""
    every = [
        ("TDT2", "TDT2", tdt2_tasks, False),
        ("mouse_hs", "mouse_hs (for ADNI)", mouse_tasks, True),
        ("MNIST", "MNIST (for Animal)", mnist_tasks, False),
    ]
    return [(name, label, make(args), icpt) for name, label, make, icpt in every if name in args.real]


def tdt2_tasks(args: Any) -> Tasks:
    """30 one-vs-rest tasks of 50 + 50 documents; words that occur in none of them dropped, as in the paper."""
    z = np.load(data_folder() / "tdt2.npz")
    X = sparse.csr_matrix(
        (z["data"].astype(float), z["indices"].astype(np.int32), z["indptr"]), shape=tuple(z["shape"])
    )
    if args.tdt2_weighting == "tfidf":
        from sklearn.feature_extraction.text import TfidfTransformer

        X = TfidfTransformer().fit_transform(X)
    chosen = one_vs_rest_tasks(X, z["y"], 6 if args.quick else 50, args.seed)
    used = np.flatnonzero(np.diff(chosen.X.indptr))
    if args.quick:
        used = used[:: max(1, used.size // 400)]
    assert chosen.task is not None
    return stacked_tasks(chosen.X[:, used].tocsc(), chosen.y, chosen.task)


def mnist_tasks(args: Any) -> Tasks:
    """10 one-vs-rest tasks of 30 + 30 images, the rows per task of the Animal data; empty pixels dropped."""
    z = np.load(data_folder() / "mnist.npz")
    train = z["split"] == 0
    chosen = one_vs_rest_tasks(z["X"][train], z["y"][train], 5 if args.quick else 30, args.seed)
    used = np.flatnonzero(chosen.X.any(axis=0))[:: 4 if args.quick else 1]
    assert chosen.task is not None
    return stacked_tasks(np.asfortranarray(chosen.X[:, used]), chosen.y, chosen.task)


def mouse_tasks(args: Any) -> Tasks:
    """Traits have units from grams to millimoles: each is divided by its standard deviation; NaN stays unobserved."""
    z = np.load(data_folder() / "mouse_hs.npz")
    X, Y = z["X"], z["Y"].astype(float)
    if args.quick:
        X, Y = X[:120, ::40], Y[:120]
        Y = Y[:, (~np.isnan(Y)).sum(axis=0) > 20]
    return shared_tasks(np.asfortranarray(X), Y / np.nanstd(Y, axis=0))


# --- The default --------------------------------------------------------------------------------------------


def default(report: Report, args: Any, sizes: Sequence[int]) -> None:
    """What screening saves the default path: readings of X and iterations are counted, the same on every machine."""
    rows = []
    for kind in (1, 2):
        tasks = synthetic(args, kind, sizes[0], args.seed)
        alphas = lambda_max(tasks) * np.geomspace(1, 0.01, 100) / tasks.n_bar
        X, y, given = public_data(tasks)
        solve = partial(our_path, X, y, given["task"], alphas, threads=args.threads)
        sides = {str(screening): (3, partial(solve, screening=screening)) for screening in ("auto", None)}
        for screening, runs in alternate(sides).items():
            last = runs[-1]
            ratios = np.array(last.extra["rejection_ratios"])[1:]
            rows.append([
                f"Synthetic {kind}", f"{sizes[0]:,}", screening, seconds_cell(median_seconds(runs)),
                f"{last.passes:.1f}", last.extra["iterations"], f"{ratios.min():.3f} - {ratios.max():.3f}",
            ])  # fmt: skip
            report.raw(default=f"Synthetic {kind}", screening=screening, seconds=[run.seconds for run in runs])
    columns = ["data", "d", "screening", "100 values, s", "readings of X", "iterations", "proved zero before solving"]
    note = (
        "Medians of 3 runs in turn. The last column: rows proved zero before a value is solved / zero rows of its "
        "solution, lowest and highest along the path: with the default it is what bounds from past readings prove."
    )
    report.table("What screening saves the default path", columns, rows, note)


PARTS = {"figure1": figure1, "table1": table1, "figure2": figure2, "default": default}

if __name__ == "__main__":
    main()
