"""Do the intervals of `ts.compare` hold their level? Simulated data, whose true losses are known.

    python benchmarks/compare_coverage.py --sets 60
    python benchmarks/compare_coverage.py --sets 60 --nested

What intervals are about is the mean, over the outer folds, of the true losses of the models that the folds have
learned. Three kinds of data: the same features matter in all tasks; each task has features of its own; two classes.
Plain intervals take the standard error between rows; those of `ts.compare` widen it by sqrt(1 + K / (K - 1)). With
`--nested` there are also intervals by the squared error that Bates, Hastie and Tibshirani estimate: every pair of folds
is held out in turn, three times the work; its ratio to the plain variance is taken over all tasks together, and kept
between 1 and K as in their paper.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from _common import Report, arguments, say
from scipy.special import expit
from scipy.stats import t as student

import tasksieve as ts
from tasksieve.findings import contenders
from tasksieve.findings.own_models import OwnModels

FOLDS, LEVEL = 5, 0.9
PATH = {"n_alphas": 30, "eps": 0.05}
CLASS_PATH = {"n_alphas": 10, "eps": 0.1, "tol": 1e-3}


@dataclass(frozen=True)
class Kind:
    """A kind of data."""

    name: str
    n_tasks: int
    n_rows: int
    n_features: int
    n_used: int
    same: bool
    classes: bool = False


KINDS = (
    Kind("same features", 8, 50, 200, 10, True),
    Kind("own features", 4, 60, 60, 5, False),
    Kind("two classes", 4, 80, 20, 4, True, True),
)


class Remembered:
    """A model that remembers what every fit has found."""

    found: ClassVar[list[tuple[np.ndarray, np.ndarray]]] = []

    def fit(self, *args: Any, **options: Any) -> Any:
        super().fit(*args, **options)  # type: ignore[misc]
        self.found.append((self.coef_, self.intercept_))  # type: ignore[attr-defined]
        return self


class RememberedOwn(OwnModels):
    """The same for models of single tasks, which are found together."""

    def fit(self, weights: np.ndarray, fold: np.ndarray) -> Any:
        models = super().fit(weights, fold)
        for own in models or []:
            coef = np.zeros((1, Data.n_features))
            coef[0, own.features] = np.ravel(own.rows)
            Remembered.found.append((coef, np.atleast_1d(own.intercept)))
        return models


contenders.OwnModels = RememberedOwn  # type: ignore[misc]


class LassoCV(Remembered, ts.MultiTaskLassoCV):
    """Numbers."""


class LogisticCV(Remembered, ts.MultiTaskLogisticRegressionCV):
    """Classes."""


class Data:
    """Rows, and the truth about them."""

    n_features = 0

    def __init__(self, kind: Kind, seed: int) -> None:
        rng, (T, d) = np.random.default_rng(seed), (kind.n_tasks, kind.n_features)
        Data.n_features = d
        self.kind, self.W = kind, np.zeros((T, d))
        size = 1.0 if kind.classes else 0.5
        if kind.same:
            self.W[:, rng.choice(d, kind.n_used, replace=False)] = size * rng.standard_normal((T, kind.n_used))
        else:
            for t in range(T):
                self.W[t, rng.choice(d, kind.n_used, replace=False)] = size * rng.standard_normal(kind.n_used)
        self.task = np.repeat(np.arange(T), kind.n_rows)
        self.X = rng.standard_normal((len(self.task), d))
        z = np.einsum("ij,ij->i", self.X, self.W[self.task])
        self.y = z + rng.standard_normal(len(z)) if not kind.classes else rng.random(len(z)) < expit(z)
        self._new = rng.standard_normal((20_000, d)) if kind.classes else None

    def true_losses(self, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """By task: for numbers exactly, for classes by new rows whose probabilities are known."""
        if self._new is None:
            return 1.0 + np.sum((coef - self.W) ** 2, axis=1) + intercept**2
        p, z = expit(self._new @ self.W.T), self._new @ coef.T + intercept
        return np.mean(p * np.logaddexp(0.0, -z) + (1 - p) * np.logaddexp(0.0, z), axis=0)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", type=int, default=10, help="data sets of each kind")
    parser.add_argument("--only", choices=[kind.name for kind in KINDS], help="one kind of data (default: all)")
    parser.add_argument("--nested", action="store_true", help="the nested estimate, too (numbers only)")
    args = parser.parse_args()
    name = "compare_coverage_nested" if args.nested else "compare_coverage"
    report = Report(name if args.only is None else f"{name}_{args.only.replace(' ', '_')}", args)
    warnings.simplefilter("ignore")
    rows = []
    for kind in KINDS:
        if args.only in (None, kind.name) and not (args.nested and kind.classes):
            found = simulate(kind, 1 if args.quick else args.sets, args.seed, args.nested)
            report.raw(kind=kind.name, rows=found)
            rows += found
    report.table(
        f"Coverage of {LEVEL:.0%} intervals, {FOLDS} outer folds",
        ["data", "of", "intervals", "tasks", "mean over tasks", "difference found", "with the wrong sign"],
        rows,
        "Of the true loss of the folds' models: share of tasks (of data sets, for the mean) whose interval holds it. "
        "Found: tasks whose interval of the difference is on one side of 0.",
    )
    report.finish()


def simulate(kind: Kind, n_sets: int, seed: int, nested: bool) -> list[list[str]]:
    """Rows of the table."""
    found: dict[tuple[str, str], list[tuple[np.ndarray, ...]]] = {}
    size = f"{kind.n_tasks} x {kind.n_rows} x {kind.n_features}"
    for k in range(n_sets):
        data = Data(kind, seed + 1000 * KINDS.index(kind) + k)
        say(f"{kind.name}: {k + 1} of {n_sets}")
        parts = nested_estimates(data) if nested else compared(data)
        for of, (values, errors, truth, freedom, widths) in parts.items():
            for name, factor in widths.items():
                half = student.ppf(0.5 + 0.5 * LEVEL, freedom) * factor * errors
                found.setdefault((of, name), []).append((values, half, truth))
    out = []
    for (of, name), sets in found.items():
        values, half, truth = (np.array([one[i] for one in sets]) for i in range(3))  # sets x (tasks, and their mean)
        inside = np.abs(values - truth) <= half
        told, wrong = np.abs(values) > half, np.sign(values) != np.sign(truth)
        tested = ["-", "-"]
        if "-" in of:
            tested = [f"{told[:, :-1].mean():.0%}", f"{(told & wrong)[:, :-1].mean():.1%}"]
        cover = f"{inside[:, :-1].mean():.1%}", f"{inside[:, -1].mean():.1%}"
        out.append([f"{kind.name}, {size}, {len(sets)} sets", of, name, *cover, *tested])
    return out


def with_mean(values: np.ndarray) -> np.ndarray:
    return np.append(values, values.mean())


def compared(data: Data) -> dict[str, Any]:
    """`ts.compare`: values, standard errors of rows, truth, degrees of freedom, factors by name."""
    kind = data.kind
    Remembered.found.clear()
    model = LogisticCV(**CLASS_PATH) if kind.classes else LassoCV(**PATH)
    result = ts.compare(model, data.X, data.y, task=data.task, cv=FOLDS, pooled=False)
    truth = np.zeros((2, kind.n_tasks))
    step = kind.n_tasks + 1
    for f in range(FOLDS):
        shared, *own = Remembered.found[f * step : (f + 1) * step]
        alone = np.concatenate([coef for coef, _ in own]), np.concatenate([b for _, b in own])
        truth += np.array([data.true_losses(*shared), data.true_losses(*alone)]) / FOLDS
    freedom = np.append(np.full(kind.n_tasks, kind.n_rows - 1.0), kind.n_tasks * kind.n_rows - 1.0)
    parts, widths = {}, {"plain": 1.0, "widened": result.quality["own"].widening}
    for name, true in (("shared", truth[0]), ("own", truth[1])):
        own = result.quality[name]
        errors = np.append(own.errors[:, -1], own.overall_errors[-1]) / own.widening
        parts[name] = (with_mean(own.values[:, -1]), errors, with_mean(true), freedom, widths)
    versus = result.differences["own"]
    errors = np.append(versus.errors, versus.overall_error) / widths["widened"]
    parts["shared - own"] = (with_mean(versus.values), errors, with_mean(truth[0] - truth[1]), freedom, widths)
    return parts


def nested_estimates(data: Data) -> dict[str, Any]:
    """The same by hand, with the nested estimate of Bates, Hastie and Tibshirani (algorithm 1, one repetition)."""
    kind, task = data.kind, data.task
    T, n = kind.n_tasks, kind.n_rows
    rng = np.random.default_rng(len(task))
    fold = np.concatenate([rng.permutation(np.arange(n) % FOLDS) for _ in range(T)])

    def losses(held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of all rows, and the true ones by task: shared, own, and the difference."""
        weights = (~held).astype(float)
        shared = ts.MultiTaskLassoCV(**PATH).fit(data.X, data.y, task=task, sample_weight=weights)
        rows, true = np.empty((3, len(task))), np.empty((3, T))
        rows[0] = (data.y - shared.predict(data.X, task=task)) ** 2
        true[0] = data.true_losses(shared.coef_, shared.intercept_)
        for t in range(T):
            part = slice(t * n, (t + 1) * n)
            own = ts.MultiTaskLassoCV(**PATH).fit(data.X[part], data.y[part], sample_weight=weights[part])
            rows[1, part] = (data.y[part] - own.predict(data.X[part])) ** 2
            true[1, t] = 1.0 + np.sum((own.coef_[0] - data.W[t]) ** 2) + own.intercept_[0] ** 2
        rows[2], true[2] = rows[0] - rows[1], true[0] - true[1]
        return rows, true

    outer, truth = np.empty((3, T, n)), np.zeros((3, T))
    for f in range(FOLDS):
        rows, true = losses(fold == f)
        outer.reshape(3, -1)[:, fold == f] = rows[:, fold == f]
        truth += true / FOLDS
    inner = np.full((FOLDS, 3, T * n), np.nan)  # [f]: fold f is out, and all others are predicted without it
    for f, g in combinations(range(FOLDS), 2):
        rows, _ = losses((fold == f) | (fold == g))
        inner[f][:, fold == g], inner[g][:, fold == f] = rows[:, fold == g], rows[:, fold == f]
    values, errors = outer.mean(axis=2), outer.std(axis=2, ddof=1) / np.sqrt(n)
    squares = np.zeros((3, T))
    for f in range(FOLDS):
        mine = (fold == f).reshape(T, n)
        for t in range(T):
            held = outer[:, t, mine[t]]
            apart = inner[f].reshape(3, T, n)[:, t, ~mine[t]].mean(axis=1) - held.mean(axis=1)
            squares[:, t] += (apart**2 - held.var(axis=1, ddof=1) / held.shape[1]) / FOLDS
    ratio = np.mean((FOLDS - 1) / FOLDS * squares / errors**2, axis=1)
    freedom = np.append(np.full(T, n - 1.0), T * n - 1.0)
    parts = {}
    for k, name in enumerate(("shared", "own", "shared - own")):
        spread = np.append(errors[k], np.sqrt(np.sum(errors[k] ** 2)) / T)
        widths = {
            "plain": 1.0,
            "widened": float(np.sqrt(1 + FOLDS / (FOLDS - 1))),
            "nested": float(np.sqrt(np.clip(ratio[k], 1.0, FOLDS))),
        }
        parts[name] = (with_mean(values[k]), spread, with_mean(truth[k]), freedom, widths)
    return parts


if __name__ == "__main__":
    main()
