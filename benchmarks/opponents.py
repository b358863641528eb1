"""The other programs for these models, each at one moderate size for each kind of problem, at an equal duality gap.

    python benchmarks/opponents.py                 # everything, about 40 minutes on two cores
    python benchmarks/opponents.py --resume        # goes on with what the same version has measured
    python benchmarks/opponents.py --tables        # no run: the tables and the picture again from the JSON
    python benchmarks/opponents.py --only wide families

scikit-learn, celer, skglm, glmnet (R), glmstar (glmnet's code under Python), skein-glm, and adelie where it installs
(x86-64, NumPy < 2: an environment of its own). Those that are not here are left out, and that is said; glmstar is in no
extra (pip install glmstar).

All solve the same problem on the same values of the path: mapped by formula, and seen in the gap, which would not close
otherwise. Each program's tolerance is lowered from its default until a judge (`_common`, `_judges`: NumPy, nothing of
the library) finds a gap of at most 1e-6 at every value, relative to the objective at W = 0 (half the null deviance
where that is not it). Default and gap are beside it. Squared loss: the others get data that are centred already, ours
centres. Programs take turns; medians. A program is left at the last tolerance that it reached within --limit seconds.

L1,1 (every coefficient on its own) with a matrix per task is a Lasso on a block matrix, and the same as a Lasso for
each task, so scikit-learn solves those. Rows in groups: ptlasso fits another model (a Lasso on all rows, and one more
for each group), so time and error on new rows stand side by side, not gaps.
"""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import outcomes
from _common import (
    RESULTS,
    TOL,
    Report,
    Run,
    Tasks,
    alternate,
    arguments,
    gap_cell,
    gap_summary,
    lambda_max,
    markdown,
    our_path,
    ratio_cell,
    relative_gaps,
    say,
    seconds_cell,
    shared_tasks,
    stacked_tasks,
    timed,
)
from _judges import multinomial_gaps, poisson_gaps, separate_gaps
from _peers import (
    ADELIE_TOLS,
    GLMNET_THRESH,
    SKEIN_TOLS,
    Adelie,
    Glmnet,
    adelie_python,
    adelie_ready,
    by_task,
    celer_group_path,
    celer_path,
    glmstar_path,
    have_glmnet,
    ptlasso_fit,
    separate_lassos,
    skein_group_path,
    skein_path,
    skglm_lasso_path,
    skglm_path,
    sklearn_path,
    task_blocks,
    walk_down,
)
from everyday import LADDER, SKGLM_LADDER, centred_tasks, data, own_data
from everyday_figure import draw_plane

PROGRAMS = ("scikit-learn", "celer", "skglm", "glmnet", "glmstar", "skein-glm", "adelie")
MODULES = {"celer": "celer", "skglm": "skglm", "glmstar": "glmnet", "skein-glm": "skein_glm"}
# kind -> its cases: name -> how it is made, and what of: rows, features, outputs (or tasks, with so many rows each)
KINDS: dict[str, dict[str, tuple[str, tuple[int, int, int]]]] = {
    "everyday": {"one output": ("shared", (1000, 500, 1)), "5 outputs": ("shared", (1000, 500, 5))},
    "several matrices": {"L2,1": ("own", (100, 500, 10)), "L1,1": ("separate", (100, 500, 10))},
    "wide": {"one output": ("shared", (300, 10_000, 1)), "10 outputs": ("shared", (300, 5_000, 10))},
    "tall": {"one output": ("shared", (50_000, 100, 1)), "5 outputs": ("shared", (50_000, 100, 5))},
    "families": {
        "two classes": ("binomial", (500, 2_000, 1)),
        "4 classes": ("multinomial", (500, 500, 4)),
        "counts": ("poisson", (500, 2_000, 1)),
        "survival": ("cox", (500, 2_000, 1)),
    },
}  # fmt: skip
PLANE_ROWS, PLANE_FEATURES, PLANE_OUTPUTS = (200, 1000, 5000), (50, 500, 2000), (1, 5)
PLANE_PROGRAMS = ("scikit-learn", "celer", "glmnet", "skein-glm")
PARTS = (*KINDS, "groups", "plane")

Solve = Callable[[float], Run]


@dataclass
class Case:
    """One problem: our side, the others with their ladders of tolerances, and who judges the answers."""

    title: str
    ours: Callable[[], Run]
    judge: Callable[[Run], np.ndarray]
    our_judge: Callable[[Run], np.ndarray]
    others: dict[str, tuple[Solve, Sequence[float]]] = field(default_factory=dict)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--programs", nargs="*", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--repeats", type=int, default=3, help="runs of each side; 1 of a side that takes long")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for a program to reach the gap of a problem")
    parser.add_argument("--resume", action="store_true", help="keep what the same version has measured")
    parser.add_argument("--tables", action="store_true", help="only print tables and draw, from the JSON")
    parser.add_argument("--figure", help="where else to save the picture")
    args = parser.parse_args()
    report = Report("opponents", args)
    report.keep(resume=args.resume, tables=args.tables)
    if not args.tables:
        measure(args, report)
    tables(report)
    cells = plane_cells(report.content["raw"])
    if cells:
        file = RESULTS / f"opponents{'.quick' if args.quick else ''}.png"
        draw_plane(cells, file, args.figure, "the fastest of\n" + ", ".join(PLANE_PROGRAMS))
    report.finish()


def measure(args: Any, report: Report) -> None:
    here = available(args.programs, args.quick)
    have = {tuple(entry["key"]) for entry in report.content["raw"]}

    def once(key: tuple[Any, ...], work: Callable[[], dict[str, Any]]) -> None:
        if key not in have:
            say(" ".join(map(str, key)))
            report.raw(key=key, **work())

    for kind in (kind for kind in KINDS if kind in args.only):
        for name, (make, shape) in KINDS[kind].items():
            once((kind, name), lambda m=make, s=shape: measured(args, m, s, here, args.limit))  # type: ignore[misc]
    if "plane" in args.only:
        few = [program for program in here if program in PLANE_PROGRAMS]
        plane = [(40, 12), (40, 60)] if args.quick else list(product(PLANE_ROWS, PLANE_FEATURES))
        for (n, d), T in product(plane, PLANE_OUTPUTS[: 1 if args.quick else None]):
            once(("plane", n, d, T), lambda s=(n, d, T): measured(args, "shared", s, few, args.limit / 5))  # type: ignore[misc]
    if "groups" in args.only and "adelie" in here:
        once(("groups",), lambda: rows_in_groups(args))


def available(wanted: Sequence[str], quick: bool) -> list[str]:
    """Programs that are here; adelie's environment is made where it is not, but not for a quick run."""
    missing = [name for name in wanted if name in MODULES and importlib.util.find_spec(MODULES[name]) is None]
    if "glmnet" in wanted and not have_glmnet():
        missing.append("glmnet")
    if "adelie" in wanted and not adelie_ready():
        try:
            if quick:
                raise RuntimeError
            adelie_python()
        except (RuntimeError, subprocess.CalledProcessError):
            missing.append("adelie")
    if missing:
        say(f"not here, left out: {', '.join(missing)}")
    return [name for name in wanted if name not in missing]


def measured(args: Any, make: str, shape: tuple[int, int, int], here: Sequence[str], limit: float) -> dict[str, Any]:
    if args.quick:
        shape = (min(shape[0], 40), min(shape[1], 20), min(shape[2], 3))
    with ExitStack() as stack:
        case = MAKERS[make](args, shape, here, stack)
        case.ours()  # what the first call of a process loads is no part of a path
        reached = {name: walk_down(solve, ladder, case.judge, limit) for name, (solve, ladder) in case.others.items()}
        sides: dict[str, tuple[int, Callable[[], Run]]] = {"tasksieve": (args.repeats, case.ours)}
        for name, found in reached.items():
            solve = case.others[name][0]
            often = 0 if found.run.seconds * (args.repeats - 1) > limit else args.repeats
            if often:
                sides[name] = (often, lambda solve=solve, tol=found.tol: solve(tol))  # type: ignore[misc]
        runs = alternate(sides)
    ours = runs["tasksieve"][-1]
    others = {
        name: {
            "seconds": [run.seconds for run in runs.get(name, [found.run])],
            "setting": found.run.setting,
            "gap": found.summary,
            "cut": found.cut,
            "default": {
                "setting": found.first.setting, "seconds": found.first.seconds, "gap": found.first_summary
            },
        }
        for name, found in reached.items()
    }  # fmt: skip
    return {
        "title": case.title,
        "ours": {
            "seconds": [run.seconds for run in runs["tasksieve"]],
            "gap": gap_summary(case.our_judge(ours)),
            "passes": ours.passes,
            "selected": len(ours.answers[-1].features),
        },
        "others": others,
    }


# --- problems ---------------------------------------------------------------------------------------------------------


def grid(args: Any, top: float, end: float) -> np.ndarray:
    return top * np.geomspace(1.0, end, 15 if args.quick else 100)


def glm_sides(
    family: str, X: Any, y: np.ndarray, alphas: np.ndarray, intercept: bool, here: Sequence[str], stack: ExitStack
) -> dict[str, tuple[Solve, Sequence[float]]]:
    """glmnet, glmstar and skein-glm, which take every family."""
    sides: dict[str, tuple[Solve, Sequence[float]]] = {}
    if "glmnet" in here:
        sides["glmnet"] = (stack.enter_context(Glmnet(family, X, y, alphas, intercept)).path, GLMNET_THRESH)
    if "glmstar" in here:
        sides["glmstar"] = (lambda tol: glmstar_path(family, X, y, alphas, intercept, tol), GLMNET_THRESH)
    if "skein-glm" in here:
        rows = X if not isinstance(X, np.ndarray) else np.ascontiguousarray(X)  # the order that it computes in
        sides["skein-glm"] = (lambda tol: skein_path(family, rows, y, alphas, intercept, tol), SKEIN_TOLS)
    return sides


def shared_case(args: Any, shape: tuple[int, int, int], here: Sequence[str], stack: ExitStack) -> Case:
    """Squared loss, one matrix, one output or several whose rows of W are penalised by their lengths."""
    n, d, T = shape
    X, y = data("iid", shape, args.seed)
    tasks = shared_tasks(X, y)
    flat = centred_tasks(tasks, X)
    Y = flat.y if T == 1 else np.asfortranarray(flat.y.reshape(T, -1).T)
    end = 0.05 if d > 5 * n else 0.01
    lams = grid(args, lambda_max(tasks, True), end)
    alphas, Z = lams / n, flat.X
    top = float(alphas[0])
    case = Case(
        f"{n:,} rows x {d:,} features, {T} output{'s' if T > 1 else ''}, {len(lams)} values to {end} alpha_max",
        lambda: our_path(X, y, None, alphas, fit_intercept=True, threads=args.threads),
        lambda run: relative_gaps(flat, run.answers, lams, duals=run.duals),
        lambda run: relative_gaps(tasks, run.answers, lams, fit_intercept=True),
    )
    if "scikit-learn" in here:
        gram = T == 1 and d <= n  # what its estimators would choose
        case.others["scikit-learn"] = (lambda tol: sklearn_path(Z, Y, alphas, tol, gram), LADDER)
    if "celer" in here:
        case.others["celer"] = (lambda tol: celer_path(Z, Y, alphas, tol), LADDER)
    if "skglm" in here:
        solver = skglm_lasso_path if T == 1 else skglm_path
        case.others["skglm"] = (lambda tol: solver(Z, Y, alphas, top, tol), SKGLM_LADDER)
    case.others |= glm_sides("gaussian" if T == 1 else "mgaussian", Z, Y, alphas, False, here, stack)
    return case


def own_case(args: Any, shape: tuple[int, int, int], here: Sequence[str], stack: ExitStack) -> Case:
    """Squared loss, a matrix per task, rows of W by their lengths: group Lassos on the block matrix."""
    n, d, T = shape
    X, y, task = own_data("iid", shape, args.seed)
    tasks = stacked_tasks(X, y, task)
    flat = centred_tasks(tasks, X)
    lams = grid(args, lambda_max(tasks, True), 0.01)
    case = Case(
        f"{T} tasks x {n:,} rows x {d:,} features, L2,1, {len(lams)} values to 0.01 alpha_max",
        lambda: our_path(X, y, task, lams / tasks.n_bar, fit_intercept=True, threads=args.threads),
        lambda run: relative_gaps(flat, run.answers, lams, duals=run.duals),
        lambda run: relative_gaps(tasks, run.answers, lams, fit_intercept=True),
    )
    if "celer" in here:
        case.others["celer"] = (lambda tol: celer_group_path(flat, lams, tol), LADDER)
    if "skein-glm" in here:
        case.others["skein-glm"] = (lambda tol: skein_group_path(flat, lams, tol), SKEIN_TOLS)
    if "adelie" in here:
        adelie = stack.enter_context(Adelie(flat, args.threads))
        case.others["adelie"] = (lambda tol: adelie.path(lams, tol), (1e-7, 1e-12, 1e-14, 1e-15, *ADELIE_TOLS))
    return case


def separate_case(args: Any, shape: tuple[int, int, int], here: Sequence[str], stack: ExitStack) -> Case:
    """Squared loss, a matrix per task, every coefficient on its own: a Lasso on the block matrix."""
    n, d, T = shape
    X, y, task = own_data("iid", shape, args.seed)
    tasks = stacked_tasks(X, y, task)
    flat = centred_tasks(tasks, X)
    top = max(
        lambda_max(Tasks(flat.X[task == t], flat.y[task == t], np.array([0, n]))) for t in range(T)
    )
    lams = grid(args, top, 0.01)
    wide = task_blocks(flat)
    alphas = lams / len(y)

    def joined(solve: Solve) -> Solve:
        return lambda tol: by_task(solve(tol), T)

    case = Case(
        f"{T} tasks x {n:,} rows x {d:,} features, L1,1, {len(lams)} values to 0.01 alpha_max",
        lambda: our_path(
            X, y, task, lams / tasks.n_bar, estimator="MultiTaskSparseGroupLasso", fit_intercept=True,
            threads=args.threads, l1=1.0, group=0.0,
        ),
        lambda run: separate_gaps(flat, run.answers, lams),
        lambda run: separate_gaps(flat, run.answers, lams),  # of centred data: intercepts drop out
    )  # fmt: skip
    if "scikit-learn" in here:
        case.others["scikit-learn"] = (lambda tol: separate_lassos(flat, lams, tol), LADDER)
    glm = glm_sides("gaussian", wide, flat.y, alphas, False, here, stack)
    case.others |= {name: (joined(solve), ladder) for name, (solve, ladder) in glm.items()}
    return case


def family_data(args: Any, shape: tuple[int, int, int], family: str) -> tuple[np.ndarray, np.ndarray]:
    """Correlated, standardised columns; ten of them matter."""
    n, d, classes = shape
    rng = np.random.default_rng(args.seed)
    X, time, event = outcomes.cohort(n, d, rng, rng.choice([-0.4, 0.4], 10))
    if family == "cox":
        return X, np.column_stack([time, event.astype(float)])
    scores = X[:, :10] @ rng.choice([-0.6, 0.6], (10, max(classes, 1)))
    if family == "binomial":
        return X, (rng.random(n) < 1 / (1 + np.exp(-scores[:, 0]))).astype(float)
    if family == "poisson":
        return X, rng.poisson(np.exp(0.5 * scores[:, 0])).astype(float)
    return X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


def family_case(args: Any, shape: tuple[int, int, int], here: Sequence[str], stack: ExitStack, family: str) -> Case:
    n, d, classes = shape
    X, y = family_data(args, shape, family)
    if family == "cox":
        lams = grid(args, n * outcomes.alpha_max(X, y[:, 0], y[:, 1] > 0), 0.05)
    else:
        seen = np.eye(classes)[y] if family == "multinomial" else y[:, None]
        Y = seen - seen.mean(axis=0)
        lams = grid(args, lambda_max(shared_tasks(X, Y)), 0.05)
    alphas = lams / n
    signs = shared_tasks(X, np.where(y > 0, 1.0, -1.0)) if family == "binomial" else None

    def judge(run: Run) -> np.ndarray:
        if family == "cox":
            return outcomes.relative_gaps(X, y[:, 0], y[:, 1] > 0, outcomes.dense(run, d), lams)
        if signs is not None:
            return relative_gaps(signs, run.answers, lams, fit_intercept=True, loss="logistic")
        return (poisson_gaps if family == "poisson" else multinomial_gaps)(X, y, run.answers, lams)

    names = {"binomial": "MultiTaskLogisticRegression", "multinomial": "MultiTaskLogisticRegression",
             "poisson": "MultiTaskPoisson"}  # fmt: skip
    if family == "cox":
        def ours() -> Run:
            return outcomes.ours(X, y[:, 0], y[:, 1] > 0, alphas, args.threads)
    else:
        def ours() -> Run:
            return our_path(
                X, y, None, alphas, estimator=names[family], fit_intercept=True, threads=args.threads
            )
    words = {"binomial": "two classes", "multinomial": f"{classes} classes", "poisson": "counts", "cox": "survival"}
    title = f"{words[family]}, {n:,} rows x {d:,} features, {len(lams)} values to 0.05 alpha_max"
    case = Case(title, ours, judge, judge)
    case.others |= glm_sides(family, X, y, alphas, family != "cox", here, stack)
    return case


MAKERS: dict[str, Callable[[Any, tuple[int, int, int], Sequence[str], ExitStack], Case]] = {
    "shared": shared_case,
    "own": own_case,
    "separate": separate_case,
    **{
        family: (lambda args, shape, here, stack, f=family: family_case(args, shape, here, stack, f))
        for family in ("binomial", "multinomial", "poisson", "cox")
    },
}


# --- rows in groups ---------------------------------------------------------------------------------------------------


def rows_in_groups(args: Any) -> dict[str, Any]:
    """Cross-validated fits of ptlasso and of ours on the same rows, and what each explains of new ones."""
    import tasksieve as ts

    n, d, T = (30, 40, 3) if args.quick else (100, 500, 10)
    X, y, task = own_data("iid", (2 * n, d, T), args.seed)
    train = np.tile(np.arange(2 * n) < n, T)
    new = ~train

    def explained(found: np.ndarray) -> float:
        left = [np.sum((y[new & (task == t)] - found[task[new] == t]) ** 2) for t in range(T)]
        about = [np.sum((y[new & (task == t)] - y[train & (task == t)].mean()) ** 2) for t in range(T)]
        return 1.0 - float(np.sum(left) / np.sum(about))

    models = {
        "tasksieve, MultiTaskLassoCV": ts.MultiTaskLassoCV(cv=10, n_jobs=args.threads),
        "tasksieve, dirty model": ts.MultiTaskRegressorCV(penalty="dirty", cv=10, n_jobs=args.threads),
    }
    pretrained = {"ptlasso, alpha 0.5": 0.5, "ptlasso, alpha by cross-validation": None}
    if args.quick:
        models.popitem()
        pretrained.popitem()
    rows: dict[str, dict[str, Any]] = {}
    for name, model in models.items():
        for _ in range(2):  # the first fit of a process loads things
            seconds, _done = timed(lambda m=model: m.fit(X[train], y[train], task=task[train]))  # type: ignore[misc]
        found = model.predict(X[new], task=task[new])
        used = int(np.any(np.asarray(model.coef_) != 0, axis=0).sum())
        rows[name] = {"seconds": seconds, "explained": explained(found), "features": used}
    for name, alpha in pretrained.items():
        seconds, found, used = ptlasso_fit(X[train], y[train], task[train], X[new], task[new], alpha, args.threads)
        rows[name] = {"seconds": seconds, "explained": explained(found), "features": used}
    return {"title": f"{T} groups x {n} rows x {d} features, 10 folds", "models": rows}


# --- tables -----------------------------------------------------------------------------------------------------------


def times_faster(entry: dict[str, Any]) -> dict[str, float]:
    """Median seconds of each other program over ours."""
    ours = statistics.median(entry["ours"]["seconds"])
    return {name: statistics.median(other["seconds"]) / ours for name, other in entry["others"].items()}


def at_the_gap(entry: dict[str, Any]) -> dict[str, float]:
    """Of those that reached it."""
    return {name: r for name, r in times_faster(entry).items() if not entry["others"][name]["gap"]["over"]}


def plane_cells(raw: list[dict[str, Any]]) -> dict[tuple[str, int, int, int], float]:
    """(design, rows, features, outputs) -> the fastest other program's seconds over ours."""
    entries = [(entry["key"][1:], at_the_gap(entry)) for entry in raw if entry["key"][0] == "plane"]
    return {("independent", *key): min(found.values()) for key, found in entries if found}


def tables(report: Report) -> None:
    raw = report.content["raw"]
    cases = [entry for entry in raw if entry["key"][0] in KINDS]
    short: list[list[Any]] = []
    for entry in cases:
        ratios, reached = times_faster(entry), at_the_gap(entry)
        ours = statistics.median(entry["ours"]["seconds"])
        rows = [["**tasksieve**", f"tol {TOL:g}", seconds_cell(ours), "1", gap_cell(entry["ours"]["gap"]), "-", "-"]]
        for name, other in entry["others"].items():
            first = other["default"]
            rows.append([
                name, other["setting"] + (" (cut)" if other["cut"] else ""),
                seconds_cell(statistics.median(other["seconds"])), ratio_cell(ratios[name]), gap_cell(other["gap"]),
                f"{ratio_cell(first['seconds'] / ours)} ({seconds_cell(first['seconds'])} s)",
                f"{first['gap']['worst']:.1e}",
            ])  # fmt: skip
        report.table(
            f"{entry['key'][0]}: {entry['title']}",
            ["program", "setting", "seconds", "times slower", "worst gap", "default: times slower", "default: gap"],
            rows,
        )
        cells = [
            "-" if name not in ratios else shown(ratios[name], name in reached) for name in PROGRAMS
        ]
        short.append([f"{entry['key'][0]}: {entry['title']}", seconds_cell(ours), *cells])
        if reached:
            fastest = min(reached, key=reached.__getitem__)
            report.headline(
                f"{entry['key'][0]}, {entry['key'][1]}: faster than the fastest other program", "1x",
                f"{ratio_cell(reached[fastest])} ({fastest})",
                reached[fastest] >= 1.0 and not entry["ours"]["gap"]["over"],
                "opponents-" + "-".join(entry["key"][:2]).replace(" ", "-").replace(",", ""),
            )  # fmt: skip
    for entry in (entry for entry in raw if entry["key"][0] == "groups"):
        report.table(
            f"Rows in groups: {entry['title']}",
            ["model", "seconds", "explained of new rows (R²)", "features in use"],
            [
                [name, seconds_cell(m["seconds"]), f"{m['explained']:.3f}", m["features"]]
                for name, m in entry["models"].items()
            ],
            "Different models: no gap can be compared. ptlasso also fits the pooled and the separate Lassos.",
        )
    cells = plane_cells(raw)
    if cells:
        fastest = {
            tuple(entry["key"][1:]): min(found, key=found.__getitem__)
            for entry in raw
            if entry["key"][0] == "plane" and (found := at_the_gap(entry))
        }
        report.table(
            "The plane: times faster than the fastest of " + ", ".join(PLANE_PROGRAMS),
            ["rows", "features", "outputs", "times faster", "than"],
            [[n, d, T, shown(ratio, True), fastest[n, d, T]] for (_, n, d, T), ratio in cells.items()],
        )
        worst, middle = min(cells.values()), statistics.median(cells.values())
        report.headline(
            f"{len(cells)} cells of rows, features and outputs: faster than the fastest other program, worst", "1x",
            ratio_cell(worst), worst >= 1.0, "opponents-plane-worst",
        )  # fmt: skip
        report.headline(
            f"{len(cells)} cells of rows, features and outputs: faster than the fastest other program, median", "2x",
            ratio_cell(middle), middle >= 2.0, "opponents-plane-median",
        )  # fmt: skip
    if short:
        note = (
            f"`{report.content['command']}`, {report.content['cores']} cores, {report.content['date']}, tasksieve "
            f"{report.content['versions'].get('tasksieve', '?')}. Bold: the other program is faster. In brackets: its "
            f"gap stayed above {TOL:g} at every setting that was tried. -: no such model, or not measured."
        )
        report.content["short"] = markdown(["problem", "tasksieve, s", *PROGRAMS], short) + "\n\n" + note


def shown(ratio: float, reached: bool) -> str:
    """Times faster: bold where ours is slower, in brackets where the other answer is no answer."""
    text = ratio_cell(ratio)
    return f"({text})" if not reached else f"**{text}**" if ratio < 1.0 else text


if __name__ == "__main__":
    main()
