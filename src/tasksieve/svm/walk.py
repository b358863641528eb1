"""From one pair of values (C, graph_strength) to the next: the dual point goes along, scaled with C."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..losses import gamma
from .finish import solve_and_certify
from .problem import GraphProblem, Progress, Solution
from .reading import GraphData

Start = list[tuple[np.ndarray, np.ndarray]]  # of each machine: dual point, weights with C in them


class Walk:
    """The machines of some samples (by default all), solved for one pair of values after another, each from the `last`
    solution. Newton's method does not use that: it begins anew, on a coarse problem."""

    def __init__(
        self, data: GraphData, weights: np.ndarray, options: dict[str, Any], chosen: np.ndarray | None = None
    ) -> None:
        self.data, self.weights, self.options, self.chosen = data, weights, options, chosen
        self.last: Start | None = None
        self._before: Start | None = None  # the one before, if at the same strength
        self._strength = -1.0

    def values(self, Cs: np.ndarray, strengths: np.ndarray) -> Iterator[tuple[float, float]]:
        """All pairs of values, to be solved in this order: a new strength starts where the last one had its first C."""
        for strength in strengths.tolist():
            first = None
            for C in Cs.tolist():
                yield C, strength
                first = first or self.last
            self.last, self._before = first, None

    def solve(self, C: float, strength: float, progress: Progress | None = None) -> list[Solution]:
        """The certified solution of each machine."""
        solutions: list[Solution] = []
        reached: Start = []
        for k, problem in enumerate(self.data.problems(C, strength, self.weights, self.chosen)):
            start = self._start(problem, k)
            solutions.append(solve_and_certify(problem, start=start, progress=progress, **self.options))
            reached.append((solutions[-1].beta, problem.c))
        self._before = self.last if strength == self._strength else None
        self.last, self._strength = reached, strength
        return solutions

    def _start(self, problem: GraphProblem, k: int) -> np.ndarray | None:
        """A feasible point near that of machine k at the values before.

        The dual point is a piecewise linear function of C (piecewise smooth for the logistic loss): for losses without
        kinks the line through the last two is a better guess than the last one in proportion. With kinks it is not: too
        many rows leave their bounds on the way.
        """
        last, before = self.last, self._before
        if last is None or len(last) != len(self.data.targets) or len(last[k][0]) != problem.n_samples:
            return None
        beta, c = last[k]
        if before is None or problem.kinked:
            return feasible_slopes(problem, np.divide(beta, c, out=np.zeros_like(beta), where=c > 0))
        beta_before, c_before = before[k]
        ratio = np.divide(problem.c - c, c - c_before, out=np.zeros_like(c), where=c > c_before)
        guess = beta + ratio * (beta - beta_before)
        return feasible_slopes(problem, np.divide(guess, problem.c, out=np.zeros_like(beta), where=c > 0))


def feasible_slopes(problem: GraphProblem, slopes: np.ndarray) -> np.ndarray:
    """The dual point whose quotients with the weights are the feasible ones nearest to these."""
    low, high = problem.row_loss.domain(problem.y)
    inside = 1e-12 if problem.loss == "logistic" else 0.0  # of the open interval, where the entropy is smooth
    return problem.c * np.clip(slopes, low + inside, high - inside)


def stacked(solutions: list[Solution], n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and intercepts of all machines: (T, d) and (T,), of more than one with an axis in front."""
    coef = [found.w[:, :n_features] for found in solutions]  # a view: tables of hashed strings are large
    intercept = [found.intercept for found in solutions]
    return (np.stack(coef), np.stack(intercept)) if len(solutions) > 1 else (coef[0], intercept[0])


def worst_of(solutions: list[Solution]) -> Solution:
    """That of the problems (one for each class) which is furthest from its tolerance."""
    return max(solutions, key=lambda found: (not found.converged, found.gap / max(found.null, 1e-300)))


def totals(solutions: list[Solution]) -> tuple[float, float]:
    """Objective and dual gap of all machines together, rounding of the sums included."""
    objective = math.fsum(found.objective for found in solutions)
    gap = math.fsum(found.gap for found in solutions)
    return objective, gap + gamma(2) * (gap + objective) if len(solutions) > 1 else gap
