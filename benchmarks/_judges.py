"""Duality gaps of losses that `_common.relative_gaps` does not know: coefficients in, gaps out, nothing of the library.

Each is relative to half the null deviance (the objective at W = 0 with the best intercepts, less the smallest that the
loss could take), and each takes its dual point at the intercepts that are right for W: a dual point must sum to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from _common import Rows, Tasks, dual_norms, predictions, relative_gaps

Judge = Callable[[Sequence[Rows]], np.ndarray]


def separate_gaps(tasks: Tasks, answers: Sequence[Rows], lams: np.ndarray) -> np.ndarray:
    """Squared loss and the sum of all |w_jt|, without intercepts: a Lasso for each task, whose gaps add up."""
    gaps, nulls = np.zeros(len(answers)), 0.0
    for t in range(tasks.n_tasks):
        rows = slice(tasks.offsets[t], tasks.offsets[t + 1])
        one = Tasks(tasks.X[rows], tasks.y[rows], np.array([0, rows.stop - rows.start]))
        own = [Rows(a.features, a.values[:, [t]]) for a in answers]
        null = float(one.y @ one.y) / 2
        gaps += null * relative_gaps(one, own, lams)
        nulls += null
    return gaps / nulls


def poisson_gaps(X: np.ndarray, y: np.ndarray, answers: Sequence[Rows], lams: np.ndarray) -> np.ndarray:
    """Sum of exp(z) - y z and an L1 norm, with an intercept."""
    tasks = Tasks(X, y, np.array([0, len(y)]))
    Z = predictions(tasks, answers)
    penalty = np.array([np.abs(a.values).sum() for a in answers])
    primal = np.sum(np.exp(Z) - y[:, None] * Z, axis=0) + lams * penalty
    means = np.exp(Z) * (y.sum() / np.exp(Z).sum(axis=0))  # at the best intercept
    residual = y[:, None] - means
    scale = np.minimum(1.0, lams / np.maximum(dual_norms(tasks, residual), 1e-300))
    at = y[:, None] - scale * residual
    dual = np.sum(at - _xlogx(at), axis=0)
    null = float(np.sum(_xlogx(y)) - y.sum() * np.log(y.mean()))
    return (primal - dual) / null


def multinomial_gaps(X: np.ndarray, classes: np.ndarray, answers: Sequence[Rows], lams: np.ndarray) -> np.ndarray:
    """Softmax and the sum of the lengths of the rows of W (classes across), with an intercept for each class."""
    n, k = len(classes), int(classes.max()) + 1
    seen = np.eye(k)[classes]
    tasks = Tasks(X, seen.ravel(order="F"), n * np.arange(k + 1), True)
    null = -float(np.sum(_xlogx(seen.mean(axis=0)))) * n
    gaps = []
    for answer, lam, flat in zip(answers, lams, predictions(tasks, answers).T, strict=True):
        Z = flat.reshape(k, n).T
        primal = np.sum(_log_sums(Z)) - np.sum(seen * Z) + lam * np.linalg.norm(answer.values, axis=1).sum()
        residual = seen - _centred_shares(Z, seen)
        norm = dual_norms(tasks, residual.ravel(order="F")[:, None])[0]
        at = seen - min(1.0, lam / max(norm, 1e-300)) * residual
        gaps.append((primal + np.sum(_xlogx(at))) / null)
    return np.array(gaps)


def _centred_shares(Z: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Probabilities at the intercepts that make them agree with the frequencies of the classes (Newton)."""
    b = np.zeros(Z.shape[1])
    for _ in range(100):
        shares = np.exp(Z + b - _log_sums(Z + b)[:, None])
        missing = (seen - shares).sum(axis=0)
        if np.abs(missing).max() <= 1e-13 * len(Z):
            break
        b = b + np.linalg.lstsq(np.diag(shares.sum(axis=0)) - shares.T @ shares, missing, rcond=1e-12)[0]
    return shares


def _log_sums(Z: np.ndarray) -> np.ndarray:
    top = Z.max(axis=1)
    return top + np.log(np.sum(np.exp(Z - top[:, None]), axis=1))


def _xlogx(p: np.ndarray) -> np.ndarray:
    return np.where(p > 0, p * np.log(np.maximum(p, 1e-300)), 0.0)
