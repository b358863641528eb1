"""NumPy twins of `gram_path.cpp`: a path on Gram matrices, for the squared loss."""

from __future__ import annotations

import time

import numpy as np

from .coordinate import row_gauge, solve_row
from .passes import segments

PANEL_ROWS, PANEL_COLUMNS = 64, 8
_UNIT, _LOST = 2.0**-53, 2.0**-520


def panel_cells(features):
    """Numbers of one matrix of so many features: blocks of rows, each cut into panels of columns."""
    return -(-features // PANEL_ROWS) * -(-features // PANEL_COLUMNS) * PANEL_ROWS * PANEL_COLUMNS


def square(panels, features):
    """The matrix that lies in these panels: (features, features)."""
    across = -(-features // PANEL_COLUMNS)
    blocks = panels.reshape(-1, across, PANEL_ROWS, PANEL_COLUMNS)
    return blocks.transpose(0, 2, 1, 3).reshape(-1, across * PANEL_COLUMNS)[:features, :features]


def add_grams(x, offsets, threads, gram):
    """``gram[m] += X_m' X_m``, laid out in panels, for the rows between two offsets, or for all."""
    features = x.shape[1]
    tall, across = -(-features // PANEL_ROWS), -(-features // PANEL_COLUMNS)
    for m, rows in enumerate([slice(None)] if len(gram) == 1 else segments(offsets)):
        whole = np.zeros((tall * PANEL_ROWS, across * PANEL_COLUMNS))
        whole[:features, :features] = x[rows].T @ x[rows]
        gram[m] += whole.reshape(tall, PANEL_ROWS, across, PANEL_COLUMNS).transpose(0, 2, 1, 3).ravel()


def subtract_outer(first, second, threads, gram):
    """``gram[m] -= first[m]' second[m]`` of (matrices, count, features) factors, in place."""
    features = first.shape[2]
    tall, across = -(-features // PANEL_ROWS), -(-features // PANEL_COLUMNS)
    for panels, u, v in zip(gram, first, second, strict=True):
        whole = np.zeros((tall * PANEL_ROWS, across * PANEL_COLUMNS))
        whole[:features, :features] = u.T @ v
        panels -= whole.reshape(tall, PANEL_ROWS, across, PANEL_COLUMNS).transpose(0, 2, 1, 3).ravel()


def _gamma(operations):
    return 1.01 * _UNIT * operations


class GramPath:
    """Rows of W solved one at a time at decreasing strengths; every value with a gap that includes rounding.

    The compiled twin starts from the secant of the last two values, works on the features in play only, in blocks of
    rows, and extrapolates (Anderson).
    """

    def __init__(
        self, gram, cross, labels, sizes, label_sizes, group, l1, positive, rounding, gauge_error, room, rows, threads
    ):
        tasks, features = cross.shape
        self._gram = [square(gram[0 if len(gram) == 1 else t], features) for t in range(tasks)]
        self._cross, self._labels = cross.T, labels
        self._sizes = np.broadcast_to(sizes, (tasks, features)).T
        self._label_sizes, self._group, self._l1 = label_sizes, group, l1
        self._positive, self._rounding, self._gauge_error, self._room = positive, rounding, gauge_error, room
        self._w = np.zeros((features, tasks))

    def advance(self, lams, ridges, goals, max_epochs, budget):
        """(why it stopped, facts, features, rows): as `GramPath::advance`; facts of values: objectives, errors,
        gaps, seconds, epochs, rejected rows and numbers of rows."""
        values: list = []
        features: list = []
        rows: list = []
        for lam, ridge, goal in zip(lams, ridges, goals, strict=True):
            began = time.perf_counter()
            w = self._w.copy()
            objective, objective_error, gap, lost, rejected = self._certify(w, lam, ridge)
            epochs = 0
            while gap > goal and epochs < max_epochs and lost <= 0.1 * goal:
                before = gap
                for _ in range(10):
                    self._sweep(w, lam, ridge)
                epochs += 10
                least = 1e-14 * np.sqrt(self._labels.sum())
                w[np.linalg.norm(w, axis=1) * self._sizes.max(axis=1) <= least] = 0.0
                objective, objective_error, gap, lost, _ = self._certify(w, lam, ridge)
                if gap > goal and not gap < before and epochs > 1000:
                    return 3, *self._arrays(values, features, rows)
            if not np.isfinite(gap) or (gap > goal and lost > 0.1 * goal):
                return 3, *self._arrays(values, features, rows)
            self._w = w
            live = np.flatnonzero(w.any(axis=1))
            seconds = time.perf_counter() - began
            values.append((objective, objective_error, gap, seconds, epochs, rejected, len(live)))
            features.append(live)
            rows.append(w[live].ravel())
        return 0, *self._arrays(values, features, rows)

    @staticmethod
    def _arrays(values, features, rows):
        none, facts = np.empty(0, dtype=np.int64), np.array(values, dtype=np.float64).reshape(-1, 7).T.copy()
        return facts, np.concatenate([none, *features]).astype(np.int64), np.concatenate([np.empty(0), *rows])

    def _correlations(self, w):
        fitted = np.stack([gram @ w[:, t] for t, gram in enumerate(self._gram)], axis=1)
        return self._cross - fitted

    def _sweep(self, w, lam, ridge):
        h = self._correlations(w)
        for j in range(len(w)):
            own = np.array([gram[j, j] for gram in self._gram])
            own = np.where(own > 8.0 * self._rounding * self._sizes[j] ** 2, own, 0.0)
            c = np.where(own > 0.0, h[j] + own * w[j], 0.0)
            new = solve_row(c, own, lam * self._group[j], lam * self._l1[j], ridge, self._positive)
            for t in np.flatnonzero(new != w[j]):
                h[:, t] -= (new[t] - w[j, t]) * self._gram[t][j]
            w[j] = new

    def _certify(self, w, lam, ridge):
        h = self._correlations(w)
        reach = np.sum(self._sizes * np.abs(w), axis=0)
        kappa = (self._rounding + _gamma(len(w) + 8)) * (self._label_sizes + reach)
        m = h - ridge * w
        errors = kappa * self._sizes + _LOST * self._label_sizes
        if ridge:
            errors = errors + _gamma(6) * (np.abs(h) + ridge * np.abs(w))
        upper = (m if self._positive else np.abs(m)) + errors
        strengths = list(zip(lam * self._group, lam * self._l1, strict=True))
        gauges = np.array([row_gauge(u, *s, self._positive) for u, s in zip(upper, strengths, strict=True)])
        polar = float(gauges.max(initial=0.0))
        inner, weight2 = float(np.sum(w * m)), float(np.sum(w * w))
        norm = lam * float(self._group @ np.linalg.norm(w, axis=1) + self._l1 @ np.abs(w).sum(axis=1))
        total = float(np.maximum(self._labels - np.sum(w * (self._cross + h), axis=0), 0.0).sum())
        sums = _gamma(w.size + 24)
        error = float(kappa @ reach) + sums * (float(np.sum(np.abs(w * h))) + ridge * weight2)
        off = float(4.0 * kappa @ reach + 2.0 * self._rounding * self._label_sizes @ self._label_sizes)
        residual = total + off + ridge * weight2 * (1.0 + sums)
        limit = 1.0 / (polar * (1.0 + self._gauge_error)) if polar > 0.0 else np.inf
        scale = (total + ridge * weight2 + inner) / residual if residual > 0.0 else 1.0
        scale = max(min(scale, limit, 1.0 if ridge > 0.0 else np.inf), 0.0)
        objective = 0.5 * total + norm + 0.5 * ridge * weight2
        objective_error = 0.5 * off + sums * (norm + ridge * weight2) + _gamma(64) * objective
        gap = 0.5 * (1.0 - scale) ** 2 * residual + max(norm * (1.0 + sums) - scale * (inner - error), 0.0)
        gap = gap * (1.0 + _gamma(64)) + objective_error
        worst = int(np.argmax(gauges)) if len(gauges) else 0
        plain = row_gauge(m[worst], *strengths[worst], self._positive)
        lost = objective_error + error + max(polar - plain, 0.0) * norm
        reaches = np.sqrt(2.0 * gap) * np.sqrt(self._sizes.max(axis=1) ** 2 + ridge)
        rejected = np.count_nonzero(scale * gauges + reaches / (lam * (self._group + self._l1)) < 1.0 - 1e-9)
        return objective, objective_error, gap, lost, int(rejected)
