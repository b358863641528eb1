"""Every loss and penalty beside what a user would take instead, path by path, at an equal certified gap.

    python benchmarks/members.py                     # everything, about half an hour
    python benchmarks/members.py --only huber poisson

One task, since the others know no more; no intercepts, since some of them penalise or lack one. Paths of 50 values to
0.05 alpha_max (smallest strength whose solution is zero), all with the same grid and objective:

    1/n sum_i f(y_i, x_i w) + alpha Omega(w)

Equal precision: ours at tol 1e-6, the others at the loosest tolerance of a ladder whose worst duality gap over the
path, recomputed here from the coefficients alone, is at most the same 1e-6 of the objective at w = 0. A side that
misses it at the tightest tolerance is marked. Quantiles are the exception: scikit-learn solves the pinball loss itself
by linear programming, ours a smoothed one; the table says how much larger our pinball objective is.

Programs take turns; medians. Compilation of skglm and celer is not counted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from _common import (
    TOL,
    Report,
    Run,
    alternate,
    arguments,
    library,
    median_seconds,
    ratio_cell,
    rows_of,
    say,
    timed,
)
from scipy.special import expit, logsumexp, xlogy

AIM = 5.0
DELTA, SMOOTHING, Q = 1.35, 0.05, 0.75


# --- certificates, with nothing of the library ------------------------------------------------------------------------


@dataclass
class Judge:
    """A problem, and the gap of any coefficients (d, K)."""

    X: np.ndarray
    y: np.ndarray
    value: Callable[[np.ndarray], float]  # of predictions (n, K): the mean loss
    slope: Callable[[np.ndarray], np.ndarray]  # minus its gradient, times n
    conjugate: Callable[[np.ndarray], float]  # mean of f*(-p)
    omega: Callable[[np.ndarray], float]
    polar: Callable[[np.ndarray], float]

    def gap(self, w: np.ndarray, alpha: float) -> float:
        """Relative to the objective at w = 0."""
        z = self.X @ w
        p = self.slope(z)
        polar = self.polar(self.X.T @ p / len(z))
        p = p * min(1.0, alpha / polar) if polar > 0.0 else p
        primal, dual = self.value(z) + alpha * self.omega(w), -self.conjugate(p)
        return (primal - dual) / self.value(np.zeros_like(z))

    def alpha_max(self) -> float:
        w = np.zeros((self.X.shape[1], 1 if self.y.ndim == 1 else self.y.shape[1]))
        return self.polar(self.X.T @ self.slope(self.X @ w) / len(self.y))

    def worst(self, run: Run, alphas: np.ndarray) -> float:
        gaps = []
        for answer, alpha in zip(run.answers, alphas, strict=True):
            w = np.zeros((self.X.shape[1], answer.values.shape[1]))
            w[answer.features] = answer.values
            gaps.append(self.gap(w, alpha))
        return float(max(gaps))


def l1(w: np.ndarray) -> float:
    return float(np.abs(w).sum())


def largest(m: np.ndarray) -> float:
    return float(np.abs(m).max())


def clipped(X: np.ndarray, y: np.ndarray, low: Any, high: Any, mu: float = 1.0) -> Judge:
    """max over low <= p <= high of p (y - z) - mu p^2 / 2."""
    t, low, high = y[:, None], np.reshape(low, (-1, 1)), np.reshape(high, (-1, 1))

    def slope(z: np.ndarray) -> np.ndarray:
        return np.clip((t - z) / mu, low, high)

    def value(z: np.ndarray) -> float:
        p = slope(z)
        return float(np.mean(p * (t - z) - 0.5 * mu * p * p))

    return Judge(X, y, value, slope, lambda p: float(np.mean(0.5 * mu * p * p - p * t)), l1, largest)


def poisson(X: np.ndarray, y: np.ndarray) -> Judge:
    t = y[:, None]

    def conjugate(p: np.ndarray) -> float:
        m = t - p
        return float(np.mean(xlogy(m, m) - m))

    perfect = conjugate(np.zeros_like(t))  # objectives are counted from a perfect fit: half deviances

    def value(z: np.ndarray) -> float:
        return float(np.mean(np.exp(z) - t * z)) + perfect

    return Judge(X, y, value, lambda z: t - np.exp(z), lambda p: conjugate(p) - perfect, l1, largest)


def multinomial(X: np.ndarray, labels: np.ndarray) -> Judge:
    Y = np.eye(labels.max() + 1)[labels]

    def slope(z: np.ndarray) -> np.ndarray:
        return Y - np.exp(z - logsumexp(z, axis=1, keepdims=True))

    def value(z: np.ndarray) -> float:
        return float(np.mean(logsumexp(z, axis=1) - np.sum(Y * z, axis=1)))

    return Judge(X, Y, value, slope, lambda p: float(np.mean(np.sum(xlogy(Y - p, Y - p), axis=1))), l1, largest)


def grouped(X: np.ndarray, y: np.ndarray, size: int) -> Judge:
    judge = clipped(X, y, -np.inf, np.inf)
    root = np.sqrt(size)
    judge.omega = lambda w: float(root * np.linalg.norm(w.reshape(-1, size), axis=1).sum())
    judge.polar = lambda m: float(np.linalg.norm(m.reshape(-1, size), axis=1).max() / root)
    return judge


# --- the programs -----------------------------------------------------------------------------------------------------


def ours(model: Any, X: np.ndarray, y: np.ndarray, alphas: np.ndarray) -> Run:
    seconds, path = timed(lambda: model.path(X, y, alphas=alphas))
    answers = []
    for k in range(len(alphas)):
        coef = path.coef(k)
        answers.append(rows_of(np.asarray(coef.toarray()).T))
    return Run("tasksieve", seconds, answers)


def columns(program: str, seconds: float, coefs: Any) -> Run:
    return Run(program, seconds, [rows_of(np.asarray(w, dtype=float).reshape(len(w), -1)) for w in coefs])


def skglm_path(
    X: np.ndarray, y: np.ndarray, alphas: np.ndarray, datafit: Any, penalty: Callable[[float], Any], solver: Any
) -> Run:
    """Warm-started value by value."""
    from skglm.utils.jit_compilation import compiled_clone

    def path(A: np.ndarray, b: np.ndarray, grid: np.ndarray) -> list[np.ndarray]:
        fit, found = compiled_clone(datafit), []
        fit.initialize(A, b)
        w, image = np.zeros(A.shape[1]), np.zeros(len(b))
        for alpha in grid:
            w = solver.solve(A, b, fit, compiled_clone(penalty(float(alpha))), w, image)[0]
            image = A @ w
            found.append(w.copy())
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path(X, y, alphas[:2])
        seconds, coefs = timed(lambda: path(X, y, alphas))
    return columns("skglm", seconds, coefs)


def liblinear(X: np.ndarray, y: np.ndarray, alphas: np.ndarray, tol: float) -> Run:
    from sklearn.svm import LinearSVC

    def path() -> list[np.ndarray]:
        return [
            LinearSVC(
                penalty="l1", loss="squared_hinge", dual=False, C=0.5 / (len(y) * alpha), fit_intercept=False, tol=tol,
                max_iter=100_000,
            ).fit(X, y).coef_[0]
            for alpha in alphas
        ]  # fmt: skip

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, coefs = timed(path)
    return columns("LIBLINEAR", seconds, coefs)


def saga(X: np.ndarray, labels: np.ndarray, alphas: np.ndarray, tol: float) -> Run:
    from sklearn.linear_model import LogisticRegression

    def path() -> list[np.ndarray]:
        model = LogisticRegression(
            l1_ratio=1.0, solver="saga", fit_intercept=False, tol=tol, max_iter=3000, warm_start=True
        )
        return [model.set_params(C=1.0 / (len(labels) * alpha)).fit(X, labels).coef_.T.copy() for alpha in alphas]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, coefs = timed(path)
    return columns("scikit-learn (saga)", seconds, coefs)


def pinball_programs(X: np.ndarray, y: np.ndarray, alphas: np.ndarray) -> Run:
    from sklearn.linear_model import QuantileRegressor

    def path() -> list[np.ndarray]:
        return [QuantileRegressor(quantile=Q, alpha=a, fit_intercept=False).fit(X, y).coef_ for a in alphas]

    seconds, coefs = timed(path)
    return columns("scikit-learn", seconds, coefs)


def celer_groups(X: np.ndarray, y: np.ndarray, alphas: np.ndarray, size: int, tol: float) -> Run:
    from celer.homotopy import celer_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, found = timed(
            lambda: celer_path(
                X, y, "grouplasso", alphas=alphas, tol=tol, max_iter=200, groups=size,
                weights=np.full(X.shape[1] // size, np.sqrt(size)), prune=True,
            )
        )  # fmt: skip
    return columns("celer", seconds, list(found[1].T))


# --- the comparisons --------------------------------------------------------------------------------------------------


def data(rng: np.random.Generator, n: int, d: int, active: int = 15) -> tuple[np.ndarray, np.ndarray]:
    X = np.asfortranarray(rng.standard_normal((n, d)))
    w = np.zeros(d)
    w[rng.choice(d, active, replace=False)] = rng.uniform(0.5, 1.0, active) * rng.choice([-1.0, 1.0], active)
    return X, X @ w


def compare(
    report: Report,
    rows: list[list[Any]],
    name: str,
    judge: Judge,
    mine: Callable[[np.ndarray], Run],
    peers: dict[str, tuple[Callable[[np.ndarray, float], Run], tuple[float, ...]]],
    args: Any,
) -> None:
    alphas = judge.alpha_max() * np.geomspace(1.0, 0.05, 10 if args.quick else 50)
    mine(alphas[:2])
    settled: dict[str, tuple[float, float]] = {}
    for program, (run, ladder) in peers.items():
        for tol in ladder:
            found = run(alphas, tol)
            worst = judge.worst(found, alphas)
            say(f"{name}: {program} at {tol:g}: {found.seconds:.2f} s, worst gap {worst:.1e}")
            settled[program] = tol, worst
            if worst <= TOL:
                break
    sides: dict[str, tuple[int, Callable[[], Run]]] = {"tasksieve": (args.repeats, lambda: mine(alphas))}
    for program, (run, _) in peers.items():
        sides[program] = args.repeats, lambda run=run, tol=settled[program][0]: run(alphas, tol)
    done = alternate(sides)
    own, gap = median_seconds(done["tasksieve"]), judge.worst(done["tasksieve"][-1], alphas)
    for program in peers:
        theirs = median_seconds(done[program])
        missed = "" if settled[program][1] <= TOL else " (misses the gap)"
        rows.append(
            [name, f"{judge.X.shape[0]} x {judge.X.shape[1]}", program + missed, f"{own:.3f}", f"{theirs:.3f}",
             ratio_cell(theirs / own), f"{gap:.1e}", f"{settled[program][1]:.1e}"]
        )  # fmt: skip


def main() -> None:
    parser = arguments(__doc__)
    names = ("huber", "quantile", "poisson", "squared hinge", "group lasso", "multinomial", "cv")
    parser.add_argument("--only", nargs="*", choices=[name.replace(" ", "-") for name in names])
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    ts = library()
    report = Report("members", args)
    if ts is None:
        report.finish()
        return
    chosen = names if args.only is None else [name.replace("-", " ") for name in args.only]
    rng = np.random.default_rng(args.seed)
    n, d = (80, 60) if args.quick else (500, 2_000)
    options: dict[str, Any] = {"fit_intercept": False, "tol": TOL, "n_jobs": args.threads}
    tight = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
    rows: list[list[Any]] = []

    if "huber" in chosen:
        from skglm.datafits import Huber
        from skglm.penalties import L1
        from skglm.solvers import AndersonCD

        X, z = data(rng, n, d)
        y = z + rng.standard_t(2.0, n)
        judge = clipped(X, y, -DELTA, DELTA)
        top = judge.alpha_max()
        compare(report, rows, "Huber", judge,
                lambda a: ours(ts.MultiTaskHuber(delta=DELTA, **options), X, y, a),
                {"skglm": (lambda a, tol: skglm_path(
                    X, y, a, Huber(DELTA), L1, AndersonCD(tol=tol * top, max_iter=200, max_epochs=20_000,
                                                          fit_intercept=False, warm_start=True)), tight)},
                args)  # fmt: skip
    if "poisson" in chosen:
        from skglm.datafits import Poisson
        from skglm.penalties import L1
        from skglm.solvers import ProxNewton

        X, z = data(rng, n, d)
        y = rng.poisson(np.exp(np.clip(0.5 * z, -4.0, 4.0))).astype(float)
        judge = poisson(X, y)
        top = judge.alpha_max()
        compare(report, rows, "Poisson", judge,
                lambda a: ours(ts.MultiTaskPoisson(**options), X, y, a),
                {"skglm": (lambda a, tol: skglm_path(
                    X, y, a, Poisson(), L1, ProxNewton(tol=tol * top, max_iter=200, fit_intercept=False,
                                                       warm_start=True)), tight)},
                args)  # fmt: skip
    if "squared hinge" in chosen:
        X, z = data(rng, n, d)
        y = np.where(rng.uniform(size=n) < expit(2.0 * z), 1.0, -1.0)
        judge = clipped(X, y, np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0))
        compare(report, rows, "squared hinge", judge,
                lambda a: ours(ts.MultiTaskClassifier("squared_hinge", **options), X, y, a),
                {"LIBLINEAR": (lambda a, tol: liblinear(X, y, a, tol), (1e-3, 1e-4, 1e-5, 1e-6, 1e-7))},
                args)  # fmt: skip
    if "group lasso" in chosen:
        from skglm.datafits import QuadraticGroup
        from skglm.penalties import WeightedGroupL2
        from skglm.solvers import GroupBCD
        from skglm.utils.data import grp_converter

        size = 5
        X, z = data(rng, n, d)
        y = z + rng.standard_normal(n)
        judge = grouped(X, y, size)
        top = judge.alpha_max()
        labels = np.repeat(np.arange(d // size), size)
        positions, pointers = grp_converter(size, d)
        weights = np.full(d // size, np.sqrt(size))
        compare(report, rows, "group lasso", judge,
                lambda a: ours(ts.MultiTaskGroupLasso(feature_groups=labels, **options), X, y, a),
                {"celer": (lambda a, tol: celer_groups(X, y, a, size, tol), (5e-7, 1e-7, 1e-8)),
                 "skglm": (lambda a, tol: skglm_path(
                     X, y, a, QuadraticGroup(pointers, positions),
                     lambda alpha: WeightedGroupL2(alpha, weights, pointers, positions),
                     GroupBCD(tol=tol * top, max_iter=1000, fit_intercept=False, warm_start=True)), tight)},
                args)  # fmt: skip
    if "multinomial" in chosen:
        X, _ = data(rng, n, d if args.quick else 200)  # saga takes minutes a path beyond
        W = np.zeros((X.shape[1], 4))
        W[:10] = rng.standard_normal((10, 4))
        labels = np.argmax(X @ W + rng.gumbel(size=(n, 4)), axis=1)
        compare(report, rows, "multinomial, entries", multinomial(X, labels),
                lambda a: ours_by_class(ts, options, X, labels, a),
                {"scikit-learn (saga)": (lambda a, tol: saga(X, labels, a, tol), (1e-4, 1e-5, 1e-6))},
                args)  # fmt: skip
    table = ["model", "n x d", "against", "tasksieve, s", "they, s", "times faster", "our gap", "their gap"]
    if rows:
        report.table("Paths of 50 values", table, rows)
        slowest = min(float(row[5].rstrip("x")) for row in rows)
        report.headline(
            "other losses and penalties, 500 x 2,000, path of 50 values: the fastest other program", f"{AIM:g}x",
            f"{slowest:.2f}x at worst", slowest >= AIM, "members-worst",
        )  # fmt: skip
    if "quantile" in chosen:
        report.table(*quantile(ts, options, rng, args))
    if "cv" in chosen:
        report.table(*cross_validation(ts, rng, args))
    report.finish()


def cross_validation(
    ts: Any, rng: np.random.Generator, args: Any
) -> tuple[str, list[str], list[Any]]:
    """Default 5-fold cross-validation of 20 outputs on one matrix: jointly here, output by output there."""
    from sklearn.linear_model import LogisticRegressionCV

    n, d, tasks = (60, 20, 3) if args.quick else (500, 100, 20)
    X, _ = data(rng, n, d)
    W = np.zeros((d, tasks))
    W[:10] = rng.standard_normal((10, tasks))
    Y = (X @ W + rng.logistic(size=(n, tasks)) > 0).astype(int)

    def theirs(n_values: int) -> Run:
        def fit() -> None:
            for t in range(tasks):
                LogisticRegressionCV(
                    Cs=n_values, cv=5, l1_ratios=(1.0,), solver="liblinear", use_legacy_attributes=False,
                    scoring="neg_log_loss",
                ).fit(X, Y[:, t])  # fmt: skip

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Run("scikit-learn", timed(fit)[0], [])

    def mine(n_values: int) -> Run:
        model = ts.MultiTaskLogisticRegressionCV(n_alphas=n_values, n_jobs=args.threads)
        return Run("tasksieve", timed(lambda: model.fit(X, Y))[0], [])

    done = alternate({"ours": (args.repeats, lambda: mine(100)), "theirs": (args.repeats, lambda: theirs(10))})
    own, other = median_seconds(done["ours"]), median_seconds(done["theirs"])
    row = [f"{n} x {d} x {tasks}", f"{own:.2f} (100 values)", f"{other:.2f} (10 values)", ratio_cell(other / own)]
    heads = ["n x d x T", "tasksieve, s", "scikit-learn, s", "times faster"]
    return "Logistic regression, 5-fold cross-validation with each library's default number of values", heads, [row]


def ours_by_class(ts: Any, options: dict[str, Any], X: np.ndarray, labels: np.ndarray, alphas: np.ndarray) -> Run:
    model = ts.MultiTaskClassifier(penalty="l11", **options)
    seconds, path = timed(lambda: model.path(X, labels, alphas=alphas))
    answers = []
    for k in range(len(alphas)):
        coef = path.coef(k)
        dense = coef.toarray() if hasattr(coef, "toarray") else np.asarray(coef)
        answers.append(rows_of(dense.reshape(-1, X.shape[1]).T))
    return Run("tasksieve", seconds, answers)


def quantile(ts: Any, options: dict[str, Any], rng: np.random.Generator, args: Any) -> tuple[str, list[str], list[Any]]:
    n, d = (60, 30) if args.quick else (300, 300)
    X, z = data(rng, n, d, 8)
    y = z + rng.standard_normal(n)
    judge = clipped(X, y, Q - 1.0, Q, SMOOTHING)
    alphas = judge.alpha_max() * np.geomspace(1.0, 0.05, 5 if args.quick else 20)
    model = ts.MultiTaskQuantile(q=Q, smoothing=SMOOTHING, **options)
    done = alternate(
        {
            "ours": (args.repeats, lambda: ours(model, X, y, alphas)),
            "theirs": (1, lambda: pinball_programs(X, y, alphas)),
        }
    )

    def objectives(run: Run) -> np.ndarray:
        found = []
        for answer, alpha in zip(run.answers, alphas, strict=True):
            r = y - X[:, answer.features] @ answer.values[:, 0]
            found.append(np.mean(np.maximum(Q * r, (Q - 1.0) * r)) + alpha * np.abs(answer.values).sum())
        return np.array(found)

    own, theirs = median_seconds(done["ours"]), median_seconds(done["theirs"])
    excess = float(np.max(objectives(done["ours"][-1]) / objectives(done["theirs"][-1]) - 1.0))
    gap = judge.worst(done["ours"][-1], alphas)
    row = [f"{n} x {d}", len(alphas), f"{own:.3f}", f"{theirs:.2f}", ratio_cell(theirs / own), f"{excess:.1%}",
           f"{gap:.1e}"]  # fmt: skip
    heads = ["n x d", "values", "tasksieve, s", "scikit-learn, s", "times faster", "pinball objective larger by"]
    heads.append("our gap")
    return f"Quantile {Q:g}, smoothing {SMOOTHING:g}, against linear programming", heads, [row]


if __name__ == "__main__":
    main()
