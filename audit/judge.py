"""What is proved of an answer: `tasksieve.grade`, and the objective once more in plain NumPy."""

from __future__ import annotations

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
    """A problem: in the words of `tasksieve.grade`, and in ours."""

    X: Array
    y: Any
    loss: str
    convention: Convention
    theirs: float
    alpha: float

    def grade(self, coef: Array, intercept: Array | None, **options: Any) -> ts.Grade:
        """What the library proves, the problem stated in the program's own words."""
        coef = coef[0] if len(coef) == 1 else coef
        known: dict[str, Any]
        if self.convention.words is not None:
            program, parameters = self.convention.words(self.theirs, *self.X.shape)
            if self.convention.ties == "efron" and program not in ("adelie", "lifelines"):
                parameters = parameters | {"method": "efron"}
            known = {"problem": program, "parameters": parameters}
        else:
            loss = "cox:ties=breslow" if self.loss == "cox" else self.loss
            known = {"loss": loss, "penalty": self.convention.penalty, "alpha": self.alpha}
            if self.loss != "cox":
                known["fit_intercept"] = self.convention.fit_intercept
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: ts.Grade = ts.grade(coef, intercept, self.X, self.y, **known, **options)
        return found


def problem_of(convention: Convention, loss: str, X: Array, y: Array, theirs: float) -> Problem:
    """The problem that a program says it solves at that strength."""
    outputs = y.shape[1] if loss == "grouped" else len(np.unique(y)) if loss == "multinomial" else 1
    labels = ts.survival(y[:, 0], y[:, 1]) if loss == "cox" else y
    return Problem(X, labels, loss, convention, theirs, convention.alpha(theirs, len(X), outputs))


def grade(problem: Problem, coef: Array, intercept: Array | None) -> tuple[dict[str, Any], ts.Grade]:
    """Numbers of one answer, relative to the objective at zero, and the grade itself."""
    found = problem.grade(coef, intercept, tol=TOL)
    alone = problem.grade(coef, intercept, solve=False)
    polished = found.polish(tol=1e-9)
    low, high = found.relative_excess
    return {
        "objective": found.objective,
        "null": found.null_objective,
        "excess_lower": low,
        "excess_upper": high,
        "own_gap": alone.relative_gap,
        "selected": int(found.selected.sum()),
        "wrong_zero": int(found.wrong_zero.sum()),
        "wrong_nonzero": int(found.wrong_nonzero.sum()),
        "proven_zero": int(found.proven_zero.sum()),
        "proven_nonzero": int(found.proven_nonzero.sum()),
        "polish_seconds": polished.processor_time,
    }, found


def objective(problem: Problem, coef: Array, intercept: Array | None) -> float:
    """The objective in plain NumPy: nothing of the library."""
    Z = problem.X @ np.atleast_2d(coef).T + (0.0 if intercept is None else intercept)
    size = np.abs(coef).sum() if problem.convention.penalty == "l11" else np.linalg.norm(coef, axis=0).sum()
    if problem.convention.constant_penalised and intercept is not None:
        size += np.abs(intercept).sum()
    y, n = problem.y, len(problem.X)
    if problem.loss == "cox":
        value = cox(Z[:, 0], y["time"], y["event"], efron=problem.convention.ties == "efron") / n
    elif problem.loss in ("logistic", "multinomial"):
        if Z.shape[1] == 1:
            Z = np.column_stack([np.zeros(n), Z])
        classes = np.unique(y, return_inverse=True)[1]
        value = np.mean(logsumexp(Z, axis=1) - Z[np.arange(n), classes])
    elif problem.loss == "poisson":
        value = np.mean(np.exp(Z[:, 0]) - y * Z[:, 0])
    else:
        value = 0.5 * np.sum((np.reshape(y, Z.shape) - Z) ** 2) / n
    return float(value + problem.alpha * size)


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


def alpha_max(problem: Problem) -> float:
    """The smallest strength whose solution is zero, in our words."""
    convention = problem.convention
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
        if problem.loss in ("logistic", "multinomial"):
            shown = np.eye(len(np.unique(y)))[np.unique(y, return_inverse=True)[1]]
            shown = shown[:, 1:] if shown.shape[1] == 2 else shown
        else:
            shown = np.reshape(y, (n, -1)).astype(float)
        start = (
            shown.mean(axis=0) if convention.fit_intercept else np.full(shown.shape[1], 0.5)
        )  # two classes
        pull = (shown - start).T @ X / n
    rows = np.abs(pull).max(axis=0) if convention.penalty == "l11" else np.linalg.norm(pull, axis=0)
    return float(rows.max())
