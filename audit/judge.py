"""What is proved of an answer: `tasksieve.grade`, and the objective once more in plain NumPy."""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from programs import Convention
from scipy.special import logsumexp

import tasksieve as ts

Array = np.ndarray[Any, Any]
#: of the solution that answers are compared with, relative to the objective at zero
TOL = 1e-11


class Problem(NamedTuple):
    """A problem in the words of `tasksieve.grade`."""

    X: Array
    y: Any
    options: dict[str, Any]

    @property
    def loss(self) -> str:
        return str(self.options["loss"]).partition(":")[0]


def problem_of(convention: Convention, loss: str, X: Array, y: Array, alpha: float) -> Problem:
    """The problem that a program says it solves at (our) alpha."""
    options: dict[str, Any] = {"alpha": alpha, "penalty": convention.penalty, "loss": loss}
    if convention.constant_penalised:  # one more column, that of the intercept
        X = np.column_stack([X, np.ones(len(X))])
    if loss == "cox":
        options["loss"] = f"cox:ties={convention.ties}"
        return Problem(X, ts.survival(y[:, 0], y[:, 1]), options)
    options["fit_intercept"] = convention.fit_intercept
    options["loss"] = {"grouped": "squared", "multinomial": "logistic"}.get(loss, loss)
    return Problem(X, y, options)


def read_answer(convention: Convention, coef: Array, intercept: list[float]) -> tuple[Array, Array | None]:
    """Coefficients (outputs, columns) and intercepts in the columns of the problem."""
    if convention.constant_penalised:
        return np.column_stack([coef, np.reshape(intercept, (-1, 1))]), None
    return coef, np.asarray(intercept) if convention.fit_intercept else None


def grade(problem: Problem, coef: Array, intercept: Array | None) -> tuple[dict[str, Any], ts.Grade]:
    """Numbers of one answer, all relative to the objective at zero, and the grade itself."""
    coef = coef[0] if len(coef) == 1 else coef
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ts.grade(coef, intercept, problem.X, problem.y, **problem.options, tol=TOL)
        seconds = time.process_time() - start
        alone = ts.grade(coef, intercept, problem.X, problem.y, **problem.options, solve=False)
    null = found.dual_gap / found.relative_gap
    rounding = 1e-14 * (abs(found.objective) + null)
    assert found.excess is not None
    return {
        "objective": found.objective,
        "null": null,
        "excess_lower": max(0.0, (found.excess - rounding) / null),
        "excess_upper": found.dual_gap / null,
        "own_gap": alone.dual_gap / null,
        "selected": int(found.selected.sum()),
        "wrong_zero": int(found.wrong_zero.sum()),
        "wrong_nonzero": int(found.wrong_nonzero.sum()),
        "proven_zero": int(found.proven_zero.sum()),
        "proven_nonzero": int(found.proven_nonzero.sum()),
        "seconds_of_proof": seconds,
    }, found


def objective(problem: Problem, coef: Array, intercept: Array | None) -> float:
    """The objective in plain NumPy: nothing of the library."""
    Z = problem.X @ np.atleast_2d(coef).T + (0.0 if intercept is None else intercept)
    size = np.abs(coef).sum() if problem.options["penalty"] == "l11" else np.linalg.norm(coef, axis=0).sum()
    y, n = problem.y, len(problem.X)
    if problem.loss == "cox":
        value = cox(Z[:, 0], y["time"], y["event"], efron=problem.options["loss"].endswith("efron")) / n
    elif problem.loss == "logistic":
        if Z.shape[1] == 1:
            Z = np.column_stack([np.zeros(n), Z])
        classes = np.unique(y, return_inverse=True)[1]
        value = np.mean(logsumexp(Z, axis=1) - Z[np.arange(n), classes])
    elif problem.loss == "poisson":
        y = np.asarray(y, dtype=float)
        value = np.mean(np.exp(Z[:, 0]) - y * Z[:, 0] - np.where(y > 0, y - y * np.log(np.maximum(y, 1e-300)), 0.0))
    else:
        value = 0.5 * np.sum((np.reshape(y, Z.shape) - Z) ** 2) / n
    return float(value + problem.options["alpha"] * size)


def cox(z: Array, when: Array, event: Array, efron: bool = False) -> float:
    """Minus the log partial likelihood, in the textbook's loop over the times of events."""
    total = 0.0
    for t in np.unique(when[event]):
        dead = event & (when == t)
        risk = logsumexp(z[when >= t])
        share = np.exp(logsumexp(z[dead]) - risk)
        count = int(dead.sum())
        steps = np.log1p(-share * np.arange(count) / count).sum() if efron else 0.0
        total += count * risk + steps - z[dead].sum()
    return float(total)


def alpha_max(convention: Convention, problem: Problem) -> float:
    """The smallest strength whose solution is zero."""
    X, y, n = problem.X, problem.y, len(problem.X)
    if problem.loss == "cox":
        slopes = np.zeros(X.shape[1])
        efron = convention.ties == "efron"
        for t in np.unique(y["time"][y["event"]]):
            dead, risk = y["event"] & (y["time"] == t), y["time"] >= t
            count = int(dead.sum())
            for part in range(count):
                f = part / count if efron else 0.0
                weights = risk - f * dead
                slopes += X[dead].sum(axis=0) / count - weights @ X / weights.sum()
        pull = slopes[None] / n
    else:
        if problem.loss == "logistic":
            shown = np.eye(len(np.unique(y)))[np.unique(y, return_inverse=True)[1]]
            shown = shown[:, 1:] if shown.shape[1] == 2 else shown
        else:
            shown = np.reshape(y, (n, -1)).astype(float)
        if problem.options.get("fit_intercept"):
            start = shown.mean(axis=0)
        else:
            start = np.full(shown.shape[1], 0.5 if problem.loss == "logistic" else 1.0 if problem.loss == "poisson" else 0.0)
        pull = (shown - start).T @ X / n
    rows = np.abs(pull).max(axis=0) if problem.options["penalty"] == "l11" else np.linalg.norm(pull, axis=0)
    return float(rows.max())
