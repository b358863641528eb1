"""Do prediction intervals and sets cover what they promise? Simulated data whose new rows are known.

    python benchmarks/conformal.py --draws 200

Each draw has training rows of every task and 100 new rows of each; the share of new rows inside is one number per draw,
and the table has its mean with the Monte Carlo error. Designs were fixed before the first run: the same features in all
tasks with normal noise; noise of three degrees of freedom; noise that grows with the first feature; more features than
rows of a task; tasks of 12 rows; counts; two and three classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from _common import Report, arguments, say

import tasksieve as ts

COVERAGE, NEW = 0.9, 100
PATH: dict[str, Any] = {"n_alphas": 20, "eps": 0.05, "cv": 5}

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of data."""

    name: str
    n_tasks: int = 5
    n_rows: int = 40
    n_features: int = 30
    noise: str = "normal"
    labels: str = "numbers"
    slow: bool = False  # four draws where others have ten


KINDS = (
    Kind("normal noise"),
    Kind("noise with 3 degrees of freedom", noise="heavy"),
    Kind("noise that grows", n_rows=60, noise="growing", slow=True),
    Kind("200 features", n_features=200),
    Kind("12 rows a task", n_tasks=10, n_rows=12),
    Kind("counts", labels="counts"),
    Kind("two classes", n_rows=60, labels="two"),
    Kind("three classes", n_rows=60, labels="three", slow=True),
)


def draw(kind: Kind, seed: int) -> tuple[Array, Array, Array, Array]:
    """X, y, task, and which rows are new."""
    random = np.random.default_rng([2021, KINDS.index(kind), seed])
    total = kind.n_rows + NEW
    task = np.repeat(np.arange(kind.n_tasks), total)
    X = random.standard_normal((len(task), kind.n_features))
    coef = np.zeros((kind.n_tasks, kind.n_features))
    coef[:, :4] = 0.7 + 0.3 * random.standard_normal((kind.n_tasks, 4))
    z = np.einsum("ij,ij->i", X, coef[task])
    new = np.tile(np.arange(total) >= kind.n_rows, kind.n_tasks)
    if kind.labels == "counts":
        return X, random.poisson(np.exp(0.5 * z)), task, new
    if kind.labels != "numbers":
        noisy = z + random.logistic(size=len(z))
        return X, np.digitize(noisy, [0.0] if kind.labels == "two" else [-1.0, 1.0]), task, new
    noise = random.standard_t(3, len(z)) if kind.noise == "heavy" else random.standard_normal(len(z))
    if kind.noise == "growing":
        noise *= np.exp(0.7 * X[:, 0])
    return X, z + noise, task, new


def forms(kind: Kind, X: Array, y: Array, task: Array, new: Array) -> Iterator[tuple[str, Array, Array]]:
    """Each form of calibration: its name, which new rows are covered, and how wide intervals, or sets, are."""
    old, (rows, names, truth) = ~new, (X[new], task[new], y[new])
    known = {"X": X[old], "y": y[old], "task": task[old]}

    def inside(bounds: Array) -> tuple[Array, Array]:
        return (bounds[:, 0] <= truth) & (truth <= bounds[:, 1]), bounds[:, 1] - bounds[:, 0]

    if kind.labels in ("two", "three"):
        for form, keep in (("tuned", True), ("nested", "nested")):
            model = ts.MultiTaskLogisticRegressionCV(keep_folds=keep, **PATH).fit(**known)
            for score in ("probability", "cumulative"):
                sets = model.predict_set(rows, task=names, coverage=COVERAGE, score=score)
                yield f"{score}, {form}", sets[np.arange(len(truth)), truth], sets.sum(axis=1).astype(float)
        return
    kept: dict[str, Any] = {"keep_folds": True, **PATH}
    if kind.labels == "counts":
        model = ts.MultiTaskPoissonCV(**kept).fit(**known)
        yield "CV+", *inside(model.predict_interval(rows, task=names, coverage=COVERAGE))
        scaled = model.predict_interval(rows, task=names, coverage=COVERAGE, spread="variance")
        yield "CV+, by the loss's variance", *inside(scaled)
        return
    model = ts.MultiTaskLassoCV(**kept).fit(**known)
    yield "CV+, tuned", *inside(model.predict_interval(rows, task=names, coverage=COVERAGE))
    nested = ts.MultiTaskLassoCV(**{**kept, "keep_folds": "nested"}).fit(**known)
    yield "CV+, nested", *inside(nested.predict_interval(rows, task=names, coverage=COVERAGE))
    if kind.n_rows < 20:
        borrowed = model.predict_interval(rows, task=names, coverage=COVERAGE, borrow=20)
        yield "CV+, tuned, borrowed", *inside(borrowed)
    if kind.noise == "growing":
        low, high = (ts.MultiTaskQuantileCV(q=q, **kept).fit(**known) for q in (0.05, 0.95))
        yield "two quantiles", *inside(low.predict_interval(rows, task=names, coverage=COVERAGE, upper=high))
        sizes = np.abs(known[1] - model.cv_predictions_) + 1e-6
        spread = ts.MultiTaskRegressorCV(loss="gamma", **kept).fit(known[0], sizes, task=known[2])
        yield (
            "a model of sizes",
            *inside(model.predict_interval(rows, task=names, coverage=COVERAGE, spread=spread)),
        )


def simulate(kind: Kind, n_draws: int) -> list[list[Any]]:
    """Rows of the table."""
    shares: dict[str, list[float]] = {}
    widths: dict[str, list[float]] = {}
    worst: dict[str, list[float]] = {}
    for k in range(n_draws):
        X, y, task, new = draw(kind, k)
        for form, covered, width in forms(kind, X, y, task, new):
            shares.setdefault(form, []).append(float(covered.mean()))
            widths.setdefault(form, []).append(float(np.median(width)))
            strong = X[new][:, 0] > 1.0
            worst.setdefault(form, []).append(float(covered[strong].mean()))
        if k % 50 == 49:
            say(f"{kind.name}: {k + 1} of {n_draws}")
    size = f"{kind.n_tasks} x {kind.n_rows} x {kind.n_features}"
    out = []
    for form, found in shares.items():
        error = float(np.std(found, ddof=1)) / np.sqrt(len(found)) if len(found) > 1 else np.nan
        mean = float(np.mean(found))
        verdict = "yes" if mean >= COVERAGE - 2.0 * error else "no"
        beyond, width = f"{np.mean(worst[form]):.3f}", f"{np.mean(widths[form]):.2f}"
        out.append([kind.name, size, form, len(found), f"{mean:.4f}", f"{error:.4f}", beyond, width, verdict])
    return out


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--draws", type=int, default=200, help="data sets of each kind (of slow ones: 2/5)")
    parser.add_argument(
        "--only", choices=[kind.name for kind in KINDS], help="one kind of data (default: all)"
    )
    args = parser.parse_args()
    report = Report("conformal", args)
    warnings.simplefilter("ignore")
    n_draws = 2 if args.quick else args.draws
    rows = []
    for kind in KINDS:
        if args.only in (None, kind.name):
            found = simulate(kind, max(2, n_draws * 2 // 5) if kind.slow else n_draws)
            report.raw(kind=kind.name, rows=found)
            rows += found
    report.table(
        f"Coverage aimed at: {COVERAGE}; {NEW} new rows of each task",
        ["data", "tasks x rows x features", "form", "draws", "coverage", "Monte Carlo error",
         "where the first feature > 1", "median width, or size", f"at least {COVERAGE} less two errors"],
        rows,
        "Tuned: alpha chosen on the rows that calibrate. Nested: by folds of the training rows of each fold.",
    )  # fmt: skip
    report.finish()


if __name__ == "__main__":
    main()
