"""Every loss with every penalty: the path of a pair beside that of the same loss with the L2,1 norm, and beside the
squared loss with it, to the same relative gap.

    python benchmarks/pairs.py                                  # everything, more than a quarter of an hour
    python benchmarks/pairs.py --only multinomial --with l11    # some losses, some penalties

One matrix for each task, and for some losses one for all of them ("shared"); 50 values to 0.05 of each pair's own
alpha_max (smallest strength whose solution is zero), gap 1e-6 of the objective at W = 0, intercepts where the model has
them. Seconds are those of the processor on one thread, the least of `--repeats` runs. A pair that takes longer than
`--patience` seconds is run once. Values that did not converge are counted ("missed").

A loss and a penalty are those of `members.py` at their defaults, and beside them: a quantile with less smoothing, a
ridge beside the L2,1 norm, groups of five features with rows or entries inside. Iterations are those of the solver
that the pair has (epochs, Newton steps, proximal gradient steps): they compare runs of one pair.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _common import TOL, Report, arguments, library, ratio_cell, say, seconds_cell

AIM = 5.0
FIRST = "squared"  # loss
PLAIN = "l21"  # penalty
CLASSES = 3
SHARP = "quantile, smoothing 0.01"
SHARED = ("squared", "huber", "poisson", "logistic")  # losses that are measured on one matrix for all tasks, too
ALONE = {"hinge", "epsilon_insensitive"}  # kinks: of support vector machines, without a path


@dataclass
class Side:
    """What is measured of a pair."""

    seconds: float
    iterations: int
    passes: float
    gap: float
    missed: int
    algorithms: list[str]
    selected: int


@dataclass
class Data:
    """Columns, and scores from which labels of any kind are made."""

    name: str
    X: np.ndarray
    task: np.ndarray | None
    scores: np.ndarray  # (n,), or (n, outputs) where they share X
    rng: np.random.Generator
    made: dict[str, Any] = field(default_factory=dict)

    def labels(self, ts: Any, kind: str) -> Any:
        """Made once for each kind."""
        if kind not in self.made:
            self.made[kind] = self._make(ts, kind)
        return self.made[kind]

    def _make(self, ts: Any, kind: str) -> Any:
        z, rng = self.scores / self.scores.std(), self.rng
        if kind == "signs":
            return (z + 0.5 * rng.logistic(size=z.shape) > 0.0).astype(int)
        if kind == "counts":
            return rng.poisson(np.exp(np.clip(z, -3.0, 3.0))).astype(float)
        if kind in ("positive", "non-negative"):
            return np.exp(0.7 * z) * rng.gamma(4.0, 0.25, z.shape)
        if kind == "classes":
            other = self.X[:, :10] @ rng.standard_normal((10, CLASSES))
            other = other / other.std() + np.outer(z if z.ndim == 1 else z[:, 0], np.arange(CLASSES) - 1.0)
            return np.argmax(other + 0.5 * rng.gumbel(size=other.shape), axis=1)
        if kind == "ordered":
            return np.digitize(z + 0.5 * rng.logistic(size=z.shape), [-0.7, 0.7])
        if kind == "survival":
            times = rng.exponential(np.exp(-z))
            return ts.survival(times, (rng.uniform(size=z.shape) < 0.7).astype(int))
        return self.scores + 0.5 * self.scores.std() * rng.standard_t(3.0, self.scores.shape)


def make_data(quick: bool, seed: int) -> list[Data]:
    rng = np.random.default_rng(seed)
    tasks, rows, features = (3, 30, 40) if quick else (8, 50, 500)
    n, active = tasks * rows, 12
    W = np.zeros((features, tasks))
    W[rng.choice(features, active, replace=False)] = rng.standard_normal((active, tasks))
    task = np.repeat(np.arange(tasks), rows)
    X = np.asfortranarray(rng.standard_normal((n, features)))
    found = [Data("a matrix per task", X, task, np.einsum("ij,ji->i", X, W[:, task]), rng)]
    n = 2 * rows
    X = np.asfortranarray(rng.standard_normal((n, features)))
    return [*found, Data("shared", X, None, X @ W, rng)]


def losses(ts: Any) -> dict[str, Any]:
    """Name and member; of classes, ordered and survival labels the models are their own."""
    from tasksieve.members import LOSSES

    found = {name: kind for name, kind in LOSSES.items() if name not in ALONE}
    made = {name: kind() for name, kind in found.items()}
    made[SHARP] = ts.losses.Quantile(smoothing=0.01)
    return made


def penalties(ts: Any, features: int) -> dict[str, tuple[Any, float]]:
    """Name, member and ridge."""
    from tasksieve.members import PENALTIES

    blocks = np.repeat(np.arange(features // 5), 5)
    found = {name: (kind(), 0.0) for name, kind in PENALTIES.items() if name != "groups"}
    found["sparse_group, l1=0.5"] = ts.penalties.SparseGroup(l1=0.5, group=0.5), 0.0
    found["l21 + ridge"] = ts.penalties.L21(), 0.01
    for inside in (None, "rows", "entries"):
        name = "groups" if inside is None else f"groups, {inside} inside"
        found[name] = ts.penalties.Groups(blocks, inside), 0.0
    return found


def model_of(ts: Any, loss: Any, penalty: Any, ridge: float) -> tuple[Any, str]:
    """The estimator of a pair, and the labels that it takes."""
    options: dict[str, Any] = {"tol": TOL, "n_jobs": 1, "ridge": ridge}
    if loss.labels == "one-hot":
        return ts.MultiTaskClassifier("logistic", penalty, **options), "classes"
    if loss.labels == "ordered":
        return ts.MultiTaskOrdinal(penalty=penalty, **options), "ordered"
    if loss.labels == "survival":
        return ts.MultiTaskCox(penalty=penalty, **options), "survival"
    if loss.labels == "signs":
        return ts.MultiTaskClassifier(loss, penalty, **options), "signs"
    return ts.MultiTaskRegressor(loss, penalty, **options), loss.labels


def run(ts: Any, data: Data, loss: Any, penalty: tuple[Any, float], args: Any) -> Side | str:
    """The least of a few runs, or why there is none."""
    model, kind = model_of(ts, loss, *penalty)
    y = data.labels(ts, kind)
    given = {} if data.task is None else {"task": data.task}
    least = np.inf
    for _ in range(1 if args.quick else args.repeats):
        began = time.process_time()
        try:
            path = model.path(data.X, y, n_alphas=10 if args.quick else 50, eps=0.05, **given)
        except ValueError as error:
            return str(error).split(":")[0]
        spent = time.process_time() - began
        least = min(least, spent)
        if spent > args.patience:
            break
    algorithms = sorted({point.algorithm for point in path._points if point.algorithm})
    gaps, missed = path.relative_gaps, int(np.count_nonzero(~path.converged))
    return Side(
        least, int(path.n_iter.sum()), float(path.passes), float(gaps.max()), missed, algorithms,
        int(path.n_selected[-1]),
    )  # fmt: skip


def table(
    report: Report, ts: Any, data: Data, chosen: list[str], beside: list[str] | None, args: Any
) -> list[tuple[float, str]]:
    """Rows of one data set; returns what each pair takes beside the L2,1 norm, and its name."""
    rows, worst, known = [], [], losses(ts)
    norms = penalties(ts, data.X.shape[1])
    first = run(ts, data, known[FIRST], norms[PLAIN], args)
    assert isinstance(first, Side)
    for name in chosen:
        plain = first if name == FIRST else run(ts, data, known[name], norms[PLAIN], args)
        for norm, penalty in norms.items():
            if beside is not None and norm not in (*beside, PLAIN):
                continue
            found = plain if norm == PLAIN else run(ts, data, known[name], penalty, args)
            if isinstance(found, str) or isinstance(plain, str):
                say(f"{data.name}: {name} with {norm}: {found}")
                continue
            times = found.seconds / plain.seconds
            worst.append((times, f"{name} with {norm}, {data.name}"))
            missed = f" ({found.missed} missed)" if found.missed else ""
            rows.append(
                [name, norm, f"{found.seconds:.3f}", ratio_cell(times), ratio_cell(found.seconds / first.seconds),
                 found.iterations, f"{found.passes:.1f}", found.selected, f"{found.gap:.1e}{missed}",
                 ", ".join(found.algorithms)]
            )  # fmt: skip
            say(data.name, *rows[-1])
            report.raw(data=data.name, loss=name, penalty=norm, **vars(found))
    n, d = data.X.shape
    outputs = data.scores.shape[1] if data.scores.ndim > 1 else len(np.unique(data.task))
    report.table(
        f"{outputs} tasks, {data.name}: {n:,} rows x {d:,} features",
        ["loss", "penalty", "processor s", "/ same loss, L2,1", "/ squared, L2,1", "iterations", "passes", "selected",
         "worst gap", "solver"],
        rows,
    )  # fmt: skip
    return worst


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", nargs="*", metavar="LOSS", help="names of losses")
    parser.add_argument("--with", nargs="*", metavar="PENALTY", dest="beside", help="names of penalties")
    parser.add_argument("--data", choices=("separate", "shared"), help="one of the two data sets")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--patience", type=float, default=1.0)
    args = parser.parse_args()
    args.threads = 1
    ts = library()
    report = Report("pairs", args)
    if ts is None:
        report.finish()
        return
    chosen = [name for name in losses(ts) if args.only is None or name in args.only]
    worst: list[tuple[float, str]] = []
    for data in make_data(args.quick, args.seed):
        shared = data.task is None
        if args.data not in (None, "shared" if shared else "separate"):
            continue
        own = [name for name in chosen if name in SHARED] if shared else chosen
        worst += table(report, ts, data, own, args.beside, args)
    if worst:
        times, pair = max(worst)
        over = sum(value > AIM for value, _ in worst)
        report.headline(
            "every loss with every penalty, path of 50 values: the same loss with the L2,1 norm", f"at most {AIM:g}x",
            f"{seconds_cell(times)}x at worst ({pair}); {over} of {len(worst)} pairs above", times <= AIM,
            "pairs-worst",
        )  # fmt: skip
    report.finish()


if __name__ == "__main__":
    main()
