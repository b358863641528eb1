"""Algorithms 1 and 2 of Bao et al. (2025) line by line: fixed steps, a gap at every iteration, no restarts.

Plain NumPy on top of the library's prox, dual norm and the paper's screening test; nothing else of its solvers.
Where the text leaves something open: the step of Algorithm 1 is 1/L with L the Lipschitz constant of the gradient
over all columns (the paper's t_k stands for the momentum alone), and its momentum starts again when the active set
changes, as in line 7. Algorithm 2 takes the paper's 40 steps of 40 rows with its correction divided by l; 40 steps
then follow nearly the same gradient, so the largest step that is sure to converge is 1/(40 L) (the paper picks one
by hand).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg

from tasksieve.penalties import Sorted
from tasksieve.screening.owl import bao_test

INNER, BATCH = 40, 40


@dataclass
class Published:
    """One run: seconds, whether it was stopped at the limit, its relative gap, iterations, rows left."""

    seconds: float
    stopped: bool
    gap: float
    iterations: int
    left: int


class _Model:
    """Loss and dual of either model at a point, on the columns that are left."""

    def __init__(self, x: Any, y: np.ndarray, weights: np.ndarray, multinomial: bool) -> None:
        self.x, self.y, self.multinomial = x, y, multinomial
        self.penalty = Sorted(weights).on(np.ones(len(weights)), 2)
        self.smoothness = 0.5 if multinomial else 1.0
        self.null = len(y) * np.log(y.shape[1]) if multinomial else 0.5 * float(np.vdot(y, y))
        squares = x.multiply(x).sum(axis=0) if sparse.issparse(x) else np.einsum("ij,ij->j", x, x)
        self.kappa = np.sqrt(np.asarray(squares).ravel())

    def keep(self, mask: np.ndarray) -> None:
        self.x, self.kappa = self.x[:, mask], self.kappa[mask]
        self.penalty = self.penalty.restrict(np.flatnonzero(mask))

    def residual(self, scores: np.ndarray, rows: Any = slice(None)) -> np.ndarray:
        return np.asarray(self.y[rows] - (_softmax(scores) if self.multinomial else scores))

    def gap(self, scores: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Duality gap at B with its scaled residual as the dual point; sizes of its correlations; -gradient."""
        residual = self.residual(scores)
        products = np.asarray(self.x.T @ residual)
        sizes = self.penalty.row_gauges(products) * self.penalty.weights[0]
        scale = min(1.0, 1.0 / (self.penalty.polar(sizes / self.penalty.weights[0]) * (1.0 + 1e-12)))
        if self.multinomial:
            logs = scores - scores.max(axis=1, keepdims=True)
            logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
            primal = -float(np.vdot(self.y, logs))
            mixed = self.y - scale * residual
            dual = -float(np.vdot(mixed, np.log(np.maximum(mixed, 1e-300))))
        else:
            primal = 0.5 * float(np.vdot(residual, residual))
            dual = scale * float(np.vdot(self.y, residual)) - scale**2 * primal
        return primal + self.penalty.value(b) - dual, scale * sizes, products

    def rejected(self, gap: float, sizes: np.ndarray) -> np.ndarray:
        """Eq. 20 with the radius that the smoothness of this loss gives."""
        radius = np.sqrt(2.0 * self.smoothness * max(gap, 1e-14 * self.null))
        return np.asarray(bao_test(sizes + radius * self.kappa, self.penalty.weights))


def _softmax(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def lipschitz(x: Any, multinomial: bool) -> float:
    """``sigma_max(X)^2`` times the smoothness of the loss; both sides are given it."""
    largest = sparse_linalg.svds(x, k=1, return_singular_vectors=False, random_state=0)
    return float(1.001 * largest[0] ** 2) * (0.5 if multinomial else 1.0)


def algorithm1(
    x: Any,
    y: np.ndarray,
    weights: np.ndarray,
    bound: float,
    *,
    multinomial: bool,
    screening: bool,
    tol: float,
    limit: float,
) -> Published:
    """Accelerated proximal gradient."""
    began, model = time.perf_counter(), _Model(x, y, weights, multinomial)
    b = np.zeros((x.shape[1], y.shape[1]))
    before, ahead, t, k = b, b, 1.0, 0
    while True:
        scores = np.asarray(model.x @ b)
        gap, sizes, _ = model.gap(scores, b)
        seconds = time.perf_counter() - began
        if gap <= tol * model.null or seconds > limit:
            return Published(seconds, gap > tol * model.null, gap / model.null, k, len(b))
        if screening:
            gone = model.rejected(gap, sizes)
            if gone.any():
                model.keep(~gone)
                b = b[~gone]
                before, ahead, t = b, b, 1.0
        products = np.asarray(model.x.T @ model.residual(np.asarray(model.x @ ahead)))
        before, b = b, model.penalty.prox(ahead + products / bound, 1.0 / bound)
        t, last = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t)), t
        ahead = b + (last - 1.0) / t * (b - before)
        k += 1


def algorithm2(
    x: Any,
    y: np.ndarray,
    weights: np.ndarray,
    bound: float,
    *,
    multinomial: bool,
    screening: bool,
    tol: float,
    limit: float,
) -> Published:
    """Stochastic proximal gradient with variance reduction."""
    began, model = time.perf_counter(), _Model(x, y, weights, multinomial)
    b = np.zeros((x.shape[1], y.shape[1]))
    random, step, k = np.random.default_rng(0), 1.0 / (INNER * bound), 0
    while True:
        scores = np.asarray(model.x @ b)
        gap, sizes, products = model.gap(scores, b)
        seconds = time.perf_counter() - began
        if gap <= tol * model.null or seconds > limit:
            return Published(seconds, gap > tol * model.null, gap / model.null, k, len(b))
        if screening:
            gone = model.rejected(gap, sizes)
            if gone.any():
                model.keep(~gone)
                b, products = b[~gone], products[~gone]
                scores = np.asarray(model.x @ b)
        inner = b
        for _ in range(INNER):
            rows = random.choice(len(y), min(BATCH, len(y)), replace=False)
            part = model.x[rows]
            change = model.residual(np.asarray(part @ inner), rows) - model.residual(scores[rows], rows)
            direction = np.asarray(part.T @ change) / len(rows) + products
            inner = model.penalty.prox(inner + step * direction, step)
        b = inner
        k += 1
