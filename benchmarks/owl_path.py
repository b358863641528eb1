"""Group OWL paths: "auto" against Algorithm 1 of Bao et al. (2025) with its screening; one task against sortedl1.

    python benchmarks/owl_path.py
    python benchmarks/owl_path.py --only sortedl1

Batch cases: 50 values from alpha_max to 0.05 alpha_max, OSCAR weights, relative gap 1e-6 at every value. Algorithm 1
starts each value from the last solution; where it takes longer than --limit seconds it is stopped, and both sides are
compared on the values it finished. One task: 100 values to 0.05 alpha_max on n = 200, d = 20,000, independent and
AR(0.5) columns, 20 true features, signal-to-noise 3. sortedl1's gaps are recomputed in NumPy from its coefficients with
the scaled residual as the dual point; ours are the certified ones. Memory: the path on reuters21578 in a process of its
own.
"""

from __future__ import annotations

import statistics
import sys
import warnings
from functools import partial
from typing import Any

import numpy as np
from _common import Report, arguments, gap_cell, gap_summary, ratio_cell, say, seconds_cell, timed
from _memory import child_answer, in_child, peak_resident
from owl_screening import CELLS, read
from sklearn.exceptions import ConvergenceWarning

import tasksieve as ts
from tasksieve.penalties import oscar_weights, slope_weights

BATCH = ("genbase", "medical", "mouse_hs", "reuters21578")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", default="", choices=["", "batch", "sortedl1", "memory"])
    parser.add_argument(
        "--data", default=",".join(BATCH), help="data sets of the batch cases, separated by commas"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one path of Algorithm 1")
    parser.add_argument("--child", default="", help=argparse_hidden())
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.child:
        in_child(args.child, lambda: reuters_memory(args.threads))
        return
    report = Report("owl_path" if not args.only else f"owl_path_{args.only}", args)
    if args.only in ("", "batch"):
        batch(report, args)
    if args.only in ("", "sortedl1"):
        one_task(report, args)
    if args.only in ("", "memory") and not args.quick:
        memory(report, args)
    report.finish()


def argparse_hidden() -> str:
    import argparse

    return argparse.SUPPRESS


# --- auto against Algorithm 1 ----------------------------------------------------------------------------------------


def batch(report: Report, args: Any) -> None:
    rows = []
    for name in ("genbase",) if args.quick else args.data.split(","):
        x, y = read(name, None)
        multinomial = "multinomial" in CELLS[name].kind
        labels: Any = np.argmax(y, axis=1) if multinomial else y
        Model = ts.MultinomialOWL if multinomial else ts.MultiTaskOWL
        alphas = Model().alpha_max(x, labels) * np.geomspace(1.0, 0.05, 10 if args.quick else 50)
        seconds: dict[str, list[float]] = {"auto": [], "apgd": []}
        done = len(alphas)
        repeats = 1 if name in ("mouse_hs", "reuters21578") or args.quick else args.repeats
        gaps = {}
        for _ in range(repeats):
            for solver in ("apgd", "auto"):
                model = Model(
                    solver=solver, screening="bao" if solver == "apgd" else "auto", n_jobs=args.threads
                )
                limit = args.limit if solver == "apgd" else 10 * args.limit
                _, path = timed(partial(stopped, model, x, labels, alphas[:done], limit))
                done = min(done, len(path.alphas))
                seconds[solver].append(float(np.sum(path.seconds[:done])))
                gaps[solver] = float(np.max(path.dual_gaps[:done]) / path.objectives[0])
                if solver == "auto":
                    selected = int(path.n_selected[-1])
        auto, slow = statistics.median(seconds["auto"]), statistics.median(seconds["apgd"])
        shown = f"first {done}" if done < len(alphas) else f"{done}"
        rows.append(
            [name, f"{x.shape[0]:,} x {x.shape[1]:,} x {y.shape[1]}", shown, selected, seconds_cell(slow),
             seconds_cell(auto), ratio_cell(slow / auto), f"{gaps['apgd']:.1e} / {gaps['auto']:.1e}"]
        )  # fmt: skip
        say(*rows[-1])
        report.raw(name=name, seconds=seconds, done=done)
        report.headline(
            f"Group OWL path, {name}: auto against Algorithm 1 with its screening", ">= 3x", f"{slow / auto:.2f}x",
            None if args.quick else slow / auto >= 3.0, key=f"owl-path-{name}",
        )  # fmt: skip
    report.table(
        "50-value path: auto against Algorithm 1 with the paper's screening",
        ["data", "n x d x T", "values", "rows at the end", "Algorithm 1", "auto", "ratio", "worst gap"],
        rows,
        "Intercepts fitted; ratio on the values that Algorithm 1 finished within its limit.",
    )


def stopped(model: Any, x: Any, y: Any, alphas: np.ndarray, limit: float) -> Any:
    """The path, interrupted after so many seconds."""
    import signal

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        return model.path(x, y, alphas=alphas)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


# --- one task against sortedl1 ---------------------------------------------------------------------------------


def one_task(report: Report, args: Any) -> None:
    from sortedl1 import Slope

    n, d, values = (50, 500, 10) if args.quick else (200, 20_000, 100)
    rows = []
    for rho in (0.0, 0.5):
        x, y = lasso_data(n, d, rho, args.seed)
        for kind, bar in (("oscar", 3.0), ("slope", 1.5)):
            shape = oscar_weights(d) if kind == "oscar" else slope_weights(d, 0.1)
            model = ts.MultiTaskOWL(weights=kind, fit_intercept=False, n_jobs=args.threads)
            alphas = model.alpha_max(x, y) * np.geomspace(1.0, 0.05, values)
            ours, theirs = [], []
            for _ in range(1 if args.quick else args.repeats):
                seconds, path = timed(partial(model.path, x, y, alphas=alphas))
                ours.append(seconds)
                peer = Slope(
                    lam=shape,
                    fit_intercept=False,
                    centering="none",
                    scaling="none",
                    tol=1e-6,
                    max_iter=1_000_000,
                )
                seconds, other = timed(
                    partial(
                        peer.path, x, y, alphas=alphas, tol_dev_change=0.0, tol_dev_ratio=1.0, max_clusters=d
                    )
                )
                theirs.append(seconds)
            own_gaps = path.dual_gaps / path.objectives[0]
            peer_gaps = recomputed_gaps(x, y, np.asarray(other.coefs).reshape(d, -1).T, alphas, shape)
            mine, peers = statistics.median(ours), statistics.median(theirs)
            columns = "AR(0.5)" if rho else "independent"
            rows.append(
                [columns, kind, path.n_selected[-1], seconds_cell(peers), seconds_cell(mine), ratio_cell(peers / mine),
                 gap_cell(gap_summary(peer_gaps)), gap_cell(gap_summary(own_gaps)), f"{path.passes:.0f}"]
            )  # fmt: skip
            say(*rows[-1])
            report.raw(columns=columns, kind=kind, ours=ours, theirs=theirs)
            report.headline(
                f"OWL, one task, {n} x {d:,}, {columns}, {kind} weights: against sortedl1", f">= {bar:g}x",
                f"{peers / mine:.2f}x", None if args.quick else peers / mine >= bar, key=f"owl-one-task-{kind}",
            )  # fmt: skip
    report.table(
        f"One task, {n} x {d:,}, {values} values to 0.05 alpha_max",
        [
            "columns",
            "weights",
            "rows at the end",
            "sortedl1",
            "tasksieve",
            "ratio",
            "sortedl1's gaps",
            "our gaps",
            "passes",
        ],
        rows,
        "sortedl1 at tol=1e-6, the loosest that reaches the gap; its path's early stops are off.",
    )


def lasso_data(n: int, d: int, rho: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    for j in range(1, d) if rho else ():
        x[:, j] = rho * x[:, j - 1] + np.sqrt(1.0 - rho**2) * x[:, j]
    truth = np.zeros(d)
    truth[rng.choice(d, 20, replace=False)] = rng.choice([-1.0, 1.0], 20)
    signal = x @ truth
    y = signal + rng.standard_normal(n) * signal.std() / np.sqrt(3.0)
    return np.asfortranarray(x - x.mean(axis=0)), y - y.mean()


def recomputed_gaps(
    x: np.ndarray, y: np.ndarray, coefs: np.ndarray, alphas: np.ndarray, shape: np.ndarray
) -> np.ndarray:
    gaps = []
    for coef, alpha in zip(coefs, alphas, strict=True):
        weights = alpha * len(y) * shape
        residual = y - x @ coef
        ranked = np.sort(np.abs(x.T @ residual))[::-1]
        polar = float(np.max(np.cumsum(ranked) / np.cumsum(weights)))
        square = float(residual @ residual)
        scale = min(1.0 / polar, float(y @ residual) / square)
        objective = 0.5 * square + float(np.sort(np.abs(coef))[::-1] @ weights)
        gaps.append(objective - scale * float(y @ residual) + 0.5 * scale**2 * square)
    return np.array(gaps) / (0.5 * float(y @ y))


# --- memory -----------------------------------------------------------------------------------------------------------


def reuters_memory(threads: int) -> dict[str, Any]:
    x, y = read("reuters21578", None)
    before = peak_resident()
    seconds, path = timed(
        lambda: ts.MultinomialOWL(n_jobs=threads).path(x, np.argmax(y, axis=1), n_alphas=20, eps=0.1)
    )
    return {
        "before": before,
        "peak": peak_resident(),
        "dense": 8 * x.shape[0] * x.shape[1],
        "sparse": int(x.data.nbytes + x.indices.nbytes + x.indptr.nbytes),
        "products": 8 * x.shape[1] * y.shape[1],
        "seconds": seconds,
        "selected": int(path.n_selected[-1]),
        "worst": float(np.max(path.dual_gaps) / path.objectives[0]),
    }


def memory(report: Report, args: Any) -> None:
    answer = child_answer(sys.argv[0], ["--threads", str(args.threads)])
    mega = {key: f"{answer[key] / 2**20:.0f} MB" for key in ("before", "peak", "dense", "sparse", "products")}
    report.table(
        "reuters21578, 30 classes, 20 values to 0.1 alpha_max, X sparse",
        ["peak resident", "before the path", "X sparse", "a d x 30 array", "X dense would be", "seconds", "worst gap"],
        [[mega["peak"], mega["before"], mega["sparse"], mega["products"], mega["dense"],
          seconds_cell(answer["seconds"]), f"{answer['worst']:.1e}"]],
    )  # fmt: skip
    kept = answer["peak"] - answer["before"] < 0.5 * answer["dense"]
    report.headline(
        "Group OWL path on reuters21578 keeps X sparse", "no dense copy of X",
        f"{mega['peak']} at its peak, {mega['dense']} dense", kept, key="owl-memory",
    )  # fmt: skip
    report.raw(memory=answer)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
