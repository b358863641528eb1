"""The multinomial loss: one column of W per class, all on the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp, xlogy

from .design import Design
from .losses import Evaluation

Array = np.ndarray[Any, Any]


class Multinomial:
    """``sum_i s_i (log sum_k exp z_ik - <Y_i, z_i>)`` with one-hot rows Y_i; smoothness 1/2.

    Conjugate at ``-u``: ``sum s <p, log p>`` with ``p = Y - u / s`` in the simplex. For ``u`` = c times the residual,
    ``p = (1 - c) Y + c softmax(z)``, and what the loss adds to the gap is ``sum s KL(p, softmax(z))``.

    Intercepts are minimised out by Newton's method; they are determined up to a common constant and sum to zero.
    """

    name = "multinomial"
    smoothness = 0.5

    # A class without rows has no finite best intercept: its probability is 0, and the intercept is this far below.
    _CONFIDENT = 30.0

    def __init__(self, design: Design, y: Array) -> None:
        if design.n_tasks > 1 and not design.uniform:
            raise ValueError("the multinomial loss needs one matrix and one weight a row for all classes")
        self._design = design
        self._classes = design.n_tasks
        self._y = y.reshape(self._classes, -1)  # classes x rows, as flat vectors lie
        n = self._y.shape[1]
        self._weights = np.ones(n) if design.weights is None else design.weights[:n]
        self._root = np.ones(n) if design.root_weights is None else design.root_weights[:n]
        self._inverse_root = np.divide(1.0, self._root, out=np.zeros(n), where=self._root > 0)
        self._total = float(self._weights.sum())
        self._counts = self._y @ self._weights
        self._absent = (self._counts == 0.0) if design.fit_intercept else np.zeros(self._classes, dtype=bool)
        self.floor = 1e-12 * self._total
        self.null = self.evaluate(np.zeros(design.n_samples))

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        raw = z.reshape(self._classes, -1) * self._inverse_root
        nuisance = np.empty((0, self._classes))
        if self._design.fit_intercept:
            b = self._best_intercepts(raw, start)
            raw = raw + b[:, None]
            nuisance = b[None, :]
        log_p = self._log_softmax(raw)
        p = np.exp(log_p)
        picked = np.einsum("ki,ki->i", self._y, np.where(self._absent[:, None], 0.0, log_p))
        residual = (self._root * (self._y - p)).ravel()
        return Evaluation(-float(self._weights @ picked), residual, nuisance, margin=log_p)

    def gap_terms(self, at: Evaluation, scale: float) -> float:
        log_p = at.margin
        assert log_p is not None
        mixed = (1.0 - scale) * self._y + scale * np.exp(log_p)
        mixed[self._absent] = 0.0
        # log p rather than p: it does not underflow
        logs = np.where(self._absent[:, None], 0.0, log_p)
        terms = np.sum(xlogy(mixed, mixed) - mixed * logs, axis=0)
        return float(self._weights @ np.maximum(terms, 0.0))

    def best_scale(self, at: Evaluation, product: float, limit: float) -> float:
        return max(min(1.0, limit), 0.0)

    def _log_softmax(self, raw: Array) -> Array:
        if self._absent.any():
            raw = np.where(self._absent[:, None], -np.inf, raw)
        return np.asarray(raw - logsumexp(raw, axis=0, keepdims=True))

    def _best_intercepts(self, raw: Array, start: Array | None) -> Array:
        live = np.flatnonzero(~self._absent)
        z, y, s = raw[live], self._y[live], self._weights
        counts = self._counts[live]
        if start is not None and start.shape == (1, self._classes):
            b = start[0, live].copy()
        else:
            b = np.log(np.maximum(counts, 1e-300))
            b -= b.mean()

        def value_of(b: Array) -> tuple[float, Array]:
            shifted = z + b[:, None]
            log_p = shifted - logsumexp(shifted, axis=0, keepdims=True)
            return -float(s @ np.einsum("ki,ki->i", y, log_p)), log_p

        value, log_p = value_of(b)
        for _ in range(100):
            p = np.exp(log_p)
            gradient = p @ s - counts
            if np.max(np.abs(gradient)) <= 1e-15 * len(s) ** 0.5 * self._total:
                break
            weighted = p * s
            hessian = np.diag(weighted.sum(axis=1)) - weighted @ p.T
            size = float(np.mean(np.diag(hessian)))
            # All intercepts may move together without effect: that direction is made harmless.
            hessian += size * np.ones_like(hessian) / len(live) + 1e-13 * size * np.eye(len(live))
            move = np.linalg.solve(hessian, gradient)
            longest = float(np.max(np.abs(move)))
            scale = min(1.0, 10.0 / longest) if longest > 0.0 else 1.0
            for _ in range(60):
                candidate = b - scale * move
                candidate -= candidate.mean()
                new_value, new_log_p = value_of(candidate)
                if new_value <= value + 1e-15 * abs(value):
                    break
                scale *= 0.5
            else:
                break
            # Near the optimum the value no longer tells: the gradient does.
            stuck = new_value >= value and np.max(np.abs(np.exp(new_log_p) @ s - counts)) >= np.max(np.abs(gradient))
            if stuck:
                break
            b, value, log_p = candidate, new_value, new_log_p
        out = np.empty(self._classes)
        out[live] = b
        if len(live) < self._classes:
            out[self._absent] = float(np.min(b)) - self._CONFIDENT - float(np.max(np.abs(raw), initial=0.0))
        return out
