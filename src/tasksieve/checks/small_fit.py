"""The end of a battery: a small problem, solved by the library and by plain proximal gradient.

The reference is FISTA with backtracking and restarts. It knows the value and the slope of the loss at given scores, the
penalty's `value` and `prox`, and nothing of duals, screening, working sets or compiled updates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import Design, as_storage
from ..losses import Loss
from ..path import Problem, solve_path
from ..penalties import L21, RowPenalty
from .claims import claim
from .loss_cases import DataCase
from .penalty_cases import first_of_blocks

Array = np.ndarray[Any, Any]

STRENGTH = 0.5  # of the smallest strength whose solution is zero
CLOSE = 1e-6  # relative to the objective at W = 0
ITERATIONS = 20_000  # of proximal gradient, at most


def fit_loss(loss: Loss, case: DataCase) -> None:
    """L10: the loss with the L2,1 norm."""
    compare("L10", Problem(case.design, case.y, loss=loss, penalty=L21()), case.x, data=case.words)


def fit_penalty(penalty: RowPenalty, n_features: int | None, seed: int) -> None:
    """P9: the penalty with the squared loss; once with feature weights, positivity and a ridge."""
    rng = np.random.default_rng(seed)
    d = 6 if n_features is None else n_features
    x = rng.standard_normal((40, d))
    y = x[:, 0] - 0.7 * x[:, d // 2] + 0.5 * rng.standard_normal(40)
    design = Design(as_storage(x), np.array([0, 12, 25, 40]), n_threads=1)
    weights = rng.uniform(0.5, 2.0, d)[first_of_blocks(penalty, d)] if penalty.separable else None
    compare("P9", Problem(design, y, penalty=penalty), x)
    more: dict[str, Any] = {"feature_weights": weights, "positive": True, "fixed_ridge": 2.0}
    compare("P9", Problem(design, y, penalty=penalty, **more), x, **more)


def compare(name: str, problem: Problem, x: Array, **where: Any) -> None:
    """Claims that the library's answer is that of the reference, and its gap a bound."""
    plain = PlainProblem(problem, x, STRENGTH * problem.lambda_max())
    point = solve_path(problem, [plain.lam], tol=1e-9).points[0]
    claim(point.converged, f"{name}: a small fit must converge.", gap=point.dual_gap, limit=point.limit, **where)
    answer = np.zeros_like(plain.zero)
    answer[point.features] = point.rows
    if problem.design.fit_intercept:
        answer[-1] = point.intercept - problem.loss.shift
    found, reference, size = plain.objective(answer), plain.minimum(), abs(problem.loss.null.value)
    reported = point.objective - problem.loss.constant
    words = f"{name}: a fit must report the objective of its coefficients."
    claim(abs(found - reported) <= 1e-9 * size, words, reported=reported, objective=found, **where)
    words = (
        f"{name}: proximal gradient finds a smaller objective than the certificate of a fit allows: gaps are too small."
    )
    bounded = reference >= found - point.dual_gap - 1e-10 * size
    claim(bounded, words, objective=found, gap=point.dual_gap, reference=reference, **where)
    words = (
        f"{name}: proximal gradient does not come down to the objective of a fit: slopes or the prox belong to "
        "something else."
    )
    claim(reference <= found + CLOSE * size, words, objective=found, reference=reference, **where)


class PlainProblem:
    """A problem in terms of coefficients V: a row for each feature and, with intercepts, one more.

    - `problem`: Of features that are all penalised.
    - `x`: Its matrix: rows of all tasks, one after the other, or one matrix that they share.
    """

    def __init__(self, problem: Problem, x: Array, lam: float) -> None:
        self.lam, design = lam, problem.design
        self._loss, self._penalty = problem.loss, problem.penalty.at(lam)
        root = np.ones(design.n_samples) if design.weights is None else np.sqrt(design.weights)
        wide = np.hstack([x, np.ones((len(x), 1))]) if design.fit_intercept else x
        spans = [slice(a, b) for a, b in zip(design.offsets[:-1], design.offsets[1:], strict=True)]
        self._tasks = [(wide if design.shared else wide[own], own) for own in spans]
        self._root = root
        self._n_features = x.shape[1]
        self.zero = np.zeros((wide.shape[1], len(spans)))

    def smooth(self, v: Array) -> tuple[float, Array]:
        """The loss, and its gradient."""
        with np.errstate(over="ignore", invalid="ignore"):
            at = self._loss.at_scores(np.concatenate([x @ v[:, t] for t, (x, _) in enumerate(self._tasks)]))
            slope = self._root * at.residual
            return at.value, -np.stack([x.T @ slope[own] for x, own in self._tasks], axis=1)

    def norm(self, v: Array) -> float:
        """The penalty, with its ridge."""
        rows = v[: self._n_features]
        return self._penalty.value(rows) + 0.5 * self._penalty.ridge * float(np.vdot(rows, rows))

    def prox(self, v: Array, step: float) -> Array:
        """Of `norm`, and of W >= 0 where that is required."""
        out, rows = v.copy(), v[: self._n_features]
        rows = np.maximum(rows, 0.0) if self._penalty.positive else rows
        out[: self._n_features] = self._penalty.prox(rows, step) / (1.0 + step * self._penalty.ridge)
        return out

    def objective(self, v: Array) -> float:
        return self.smooth(v)[0] + self.norm(v)

    def minimum(self) -> float:
        """The smallest objective that proximal gradient finds."""
        v = extrapolated = self.zero
        inertia = step = 1.0
        best, still = self.objective(v), 0
        for _ in range(ITERATIONS):
            value, gradient = self.smooth(extrapolated)
            while True:
                new = self.prox(extrapolated - step * gradient, step)
                move = new - extrapolated
                tangent = value + float(np.vdot(gradient, move)) + float(np.vdot(move, move)) / (2.0 * step)
                loss = self.smooth(new)[0]
                if loss <= tangent + 1e-13 * (1.0 + abs(value)) or step < 1e-14:
                    break
                step *= 0.5
            if float(np.vdot(extrapolated - new, new - v)) > 0.0:  # the last step went uphill
                inertia = 1.0
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * inertia * inertia))
            extrapolated = new + (inertia - 1.0) / following * (new - v)
            v, inertia = new, following
            objective = loss + self.norm(v)
            still = 0 if objective < best - 1e-12 * (1.0 + abs(best)) else still + 1
            best = min(best, objective)
            if still > 50:
                break
        return best
