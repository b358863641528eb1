"""From one pair of values (C, graph_strength) to the next: the dual point goes along, scaled with C."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..losses import gamma
from .finish import solve_and_certify
from .reading import GraphData
from .solver import GraphProblem, Progress, Solution

Start = list[tuple[np.ndarray, np.ndarray]]  # of each machine: dual point, weights with C in them


class Walk:
    """The machines of some samples, solved for one pair of values after another.

    Parameters
    ----------
    data : GraphData
    weights : ndarray
        Of all samples in the loss, in the order of the labels.
    options : dict
        tol, max_iter, solver and seed of `solve_and_certify`.
    chosen : int64 ndarray, optional
        The samples to learn from, in the order of the graph; by default all.

    Attributes
    ----------
    last : list of (dual point, weights), or None
        Where the next solution starts: kept by `solve`, and may be put back to that of an earlier one. Newton's method
        does not use it: it begins anew, on a coarse problem.
    """

    def __init__(
        self, data: GraphData, weights: np.ndarray, options: dict[str, Any], chosen: np.ndarray | None = None
    ) -> None:
        self.data, self.weights, self.options, self.chosen = data, weights, options, chosen
        self.last: Start | None = None

    def solve(self, C: float, strength: float, progress: Progress | None = None) -> list[Solution]:
        """The certified solution of each machine."""
        solutions: list[Solution] = []
        reached: Start = []
        old = self.last
        for k, problem in enumerate(self.data.problems(C, strength, self.weights, self.chosen)):
            start = None
            if old is not None and len(old) == len(self.data.targets) and len(old[k][0]) == problem.n_samples:
                start = rescaled(problem, *old[k])
            solutions.append(solve_and_certify(problem, start=start, progress=progress, **self.options))
            reached.append((solutions[-1].beta, problem.c))
        self.last = reached
        return solutions


def rescaled(problem: GraphProblem, beta: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The dual point of another C, made feasible for this one."""
    low, high = problem.row_loss.domain(problem.y)
    inside = 1e-12 if problem.loss == "logistic" else 0.0  # of the open interval, where the entropy is smooth
    slopes = np.divide(beta, c, out=np.zeros_like(beta), where=c > 0)
    return problem.c * np.clip(slopes, low + inside, high - inside)


def stacked(solutions: list[Solution], n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and intercepts of all machines: (T, d) and (T,), of more than one with an axis in front."""
    coef = [found.w[:, :n_features] for found in solutions]  # a view: tables of hashed strings are large
    intercept = [found.intercept for found in solutions]
    return (np.stack(coef), np.stack(intercept)) if len(solutions) > 1 else (coef[0], intercept[0])


def totals(solutions: list[Solution]) -> tuple[float, float]:
    """Objective and dual gap of all machines together, rounding of the sums included."""
    objective = math.fsum(found.objective for found in solutions)
    gap = math.fsum(found.gap for found in solutions)
    return objective, gap + gamma(2) * (gap + objective) if len(solutions) > 1 else gap
