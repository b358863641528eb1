"""Unlike outcomes together and alone: are shared features found that each outcome alone misses?

    python benchmarks/mixed_simulation.py [draws]

Five outcomes (blood pressure, diabetes, visits, pain in three classes, time to death) of 80 rows each, 200 features, of
which 8 matter for all of them, faintly, with signs and sizes of their own. Every model chooses alpha by the same
cross-validation (3 folds), with the rule of one standard error, which selects less. Compared are all outcomes together
(`MultiTaskMixed`, weights by null residuals), the same with weights of 1 (`loss_weights=1`), with each loss divided by
its value at the null model, and each outcome alone. A feature is found by models of single outcomes if any of them
selects it (union), or if at least two do.

Reported for each: true features found (of 8), false ones, F1, and the area under the curve of the order in which
features enter the path. Means over the draws with standard errors.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import tasksieve as ts

N, D, TRUE = 80, 200, 8
LOSSES = {"pressure": "squared", "diabetes": "logistic", "visits": "poisson", "pain": "ordinal", "death": "cox"}
GRID = {"n_alphas": 20, "eps": 0.2, "cv": 3, "selection_rule": "1se", "tol": 1e-4, "fold_tol": 1e-3}


def draw(seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    X, y = {}, {}
    for task in LOSSES:
        X[task] = rng.standard_normal((N, D))
        w = rng.choice([-1.0, 1.0], TRUE) * rng.uniform(0.2, 0.5, TRUE)
        z = X[task][:, :TRUE] @ w
        if task == "pressure":
            y[task] = 120.0 + 15.0 * (z + rng.normal(0.0, 1.2, N))
        elif task == "diabetes":
            y[task] = (1.5 * z + rng.logistic(size=N) > 0.7).astype(float)
        elif task == "visits":
            y[task] = rng.poisson(np.exp(1.0 + 0.5 * z)).astype(float)
        elif task == "pain":
            y[task] = np.digitize(1.5 * z + rng.logistic(size=N), [-1.0, 1.0]).astype(float)
        else:
            time, censored = rng.exponential(np.exp(-z)), rng.exponential(2.0, N)
            y[task] = ts.survival(np.minimum(time, censored) + 1e-6, time <= censored)
    return X, y


def entered(path: ts.RegularizationPath) -> np.ndarray:
    """The largest alpha at which each feature is selected; 0 where it never is."""
    found = np.zeros(D)
    for k in range(len(path.alphas)):
        new = path.features(k)
        found[new] = np.maximum(found[new], path.alphas[k] / path.alphas[0])
    return found


def area(scores: np.ndarray) -> float:
    """Of true features over others, ties half."""
    true, other = scores[:TRUE, None], scores[None, TRUE:]
    return float(np.mean((true > other) + 0.5 * (true == other)))


def judged(selected: np.ndarray, order: np.ndarray) -> list[float]:
    right, wrong = int(selected[:TRUE].sum()), int(selected[TRUE:].sum())
    return [right, wrong, 2.0 * right / max(right + wrong + TRUE, 1), area(order)]


def null_losses(X: dict[str, np.ndarray], y: dict[str, np.ndarray]) -> dict[str, float]:
    """Of each task with responses divided by their standard deviations, per row."""
    found = {}
    for task, loss in LOSSES.items():
        own = ts.MultiTaskMixed({task: loss}, loss_weights=1).fit({task: X[task]}, {task: y[task]})
        found[task] = own.null_objective_
    return found


def one(seed: int) -> dict[str, list[float]]:
    X, y = draw(seed)
    rows = {}
    inverse = {task: 1.0 / value for task, value in null_losses(X, y).items()}
    for name, weights in (("together, 1/rho", None), ("together, weights 1", 1.0), ("together, 1/null loss", inverse)):
        model = ts.MultiTaskMixedCV(LOSSES, loss_weights=weights, **GRID).fit(X, y)
        rows[name] = judged(model.get_support(), entered(model.path_))
    masks, orders = [], []
    for task, loss in LOSSES.items():
        model = ts.MultiTaskMixedCV({task: loss}, **GRID).fit({task: X[task]}, {task: y[task]})
        masks.append(model.get_support())
        orders.append(entered(model.path_))
        rows[f"alone: {task}"] = judged(masks[-1], orders[-1])
    counts = np.sum(masks, axis=0)
    rows["alone, any"] = judged(counts >= 1, np.max(orders, axis=0))
    rows["alone, two or more"] = judged(counts >= 2, np.sort(orders, axis=0)[-2])
    return rows


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    found: dict[str, list[list[float]]] = {}
    for seed in range(draws):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, figures in one(seed).items():
                found.setdefault(name, []).append(figures)
        print(f"draw {seed + 1} of {draws}", file=sys.stderr, flush=True)
    print(f"{draws} draws, {len(LOSSES)} outcomes x {N} rows, {D} features, {TRUE} true; mean (standard error)")
    print(f"{'':24}{'true found':>16}{'false':>16}{'F1':>16}{'AUC of order':>16}")
    for name, figures in found.items():
        table = np.array(figures)
        means, errors = table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else 0.0
        cells = [f"{mean:.2f} ({error:.2f})" for mean, error in zip(means, np.broadcast_to(errors, 4), strict=True)]
        print(f"{name:24}" + "".join(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main()
