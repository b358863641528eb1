"""NumPy twin of `smooth_path.cpp`: a path of a smooth loss on packed columns, Newton's method with the penalty kept."""

from __future__ import annotations

import time

import numpy as np
from scipy.special import expit, xlogy

from .coordinate import row_gauge, row_norm, solve_row
from .passes import segments

_DONE, _CROWDED, _STUCK = 0, 2, 3


def _logistic(y, z):
    p = expit(-y * z)
    return np.logaddexp(0.0, -y * z), y * p, p * (1.0 - p)


def _logistic_excess(y, z, p):
    q = np.clip(y * p, 0.0, 1.0)
    return np.logaddexp(0.0, -y * z) + p * z + xlogy(q, q) + xlogy(1.0 - q, 1.0 - q)


def _poisson(y, z):
    mean = np.exp(z)
    return mean - y * z, y - mean, mean


def _poisson_excess(y, z, p):
    mean, primal = np.maximum(y - p, 0.0), np.exp(z)
    return np.where(mean > 0.0, xlogy(mean, np.maximum(mean, 1e-300)) - mean * z - mean + primal, primal)


_LOSSES = ((_logistic, _logistic_excess), (_poisson, _poisson_excess))


class SmoothPath:
    """Rows of W solved one at a time on models of the present point, at decreasing strengths.

    The compiled twin starts from the secant of the last two values, works on the features in play only, and keeps a
    model for as long as it serves.
    """

    def __init__(
        self, x, offsets, shared, root, labels, offset, intercept, loss, group, l1, positive, room
    ):
        self._parts = segments(offsets)
        self._x = [x if shared else x[part] for part in self._parts]
        self._root, self._labels = [root[part] for part in self._parts], [labels[part] for part in self._parts]
        self._offset = [np.zeros(len(own)) if offset is None else offset[part]
                        for own, part in zip(self._root, self._parts, strict=True)]  # fmt: skip
        self._intercept, self._group, self._l1, self._positive = intercept, group, l1, positive
        self._loss, self._excess = _LOSSES[loss]
        self._room = room
        self._w, self._b = np.zeros((x.shape[1], len(self._parts))), np.zeros(len(self._parts))

    def advance(self, lams, goals, max_epochs, budget):
        """(why it stopped, facts, features, rows, intercepts): as `SmoothPath::advance`; facts of values: gaps,
        seconds, epochs and numbers of rows."""
        tasks, values = len(self._parts), []
        features, rows, levels = [np.empty(0, dtype=np.int64)], [np.empty((0, tasks))], [np.empty((0, tasks))]
        stop = _DONE
        for lam, goal in zip(lams, goals, strict=True):
            began, epochs = time.perf_counter(), 0
            while True:
                points = [self._point(t) for t in range(tasks)]
                gap = self._gap(lam, points)
                if not np.isfinite(gap) or gap <= goal or epochs >= max_epochs:
                    break
                epochs += self._step(lam, goal, gap, points)
            live = np.flatnonzero(self._w.any(axis=1))
            if not gap <= goal or len(live) > self._room:
                stop = _CROWDED if len(live) > self._room else _STUCK
                break
            values.append((gap, time.perf_counter() - began, epochs, len(live)))
            features.append(live)
            rows.append(self._w[live])
            levels.append(self._b[None].copy())
        facts = np.array(values, dtype=np.float64).reshape(-1, 4).T.copy()
        return stop, facts, np.concatenate(features), np.vstack(rows), np.vstack(levels)

    def _scores(self, t):
        root = self._root[t]
        image = self._x[t] @ self._w[:, t]
        return np.divide(image, root, out=np.zeros_like(image), where=root > 0.0) + self._offset[t]

    def _point(self, t):
        """Predictions with the best intercept, and the loss there."""
        z, y, s = self._scores(t), self._labels[t], np.square(self._root[t])
        for _ in range(100 if self._intercept else 0):
            _, slope, curvature = self._loss(y, z + self._b[t])
            if abs(s @ slope) <= 1e-14 * (s @ np.abs(slope)):
                break
            self._b[t] += np.clip((s @ slope) / (s @ curvature), -2.0, 2.0)
        z = z + self._b[t]
        return z, *self._loss(y, z)

    def _correlations(self, points):
        return np.stack([x.T @ (root * point[2]) for x, root, point in zip(self._x, self._root, points, strict=True)],
                        axis=1)  # fmt: skip

    def _norm(self, lam):
        return lam * sum(row_norm(w, *own) for w, *own in zip(self._w, self._group, self._l1, strict=True))

    def _gap(self, lam, points):
        c = self._correlations(points)
        strengths = zip(self._group, self._l1, strict=True)
        polar = max(row_gauge(m, *own, self._positive) for m, own in zip(c, strengths, strict=True))
        scale = min(1.0, lam / polar) if polar > 0.0 else 1.0
        rows = sum(
            np.square(root) @ self._excess(y, point[0], scale * point[2])
            for root, y, point in zip(self._root, self._labels, points, strict=True)
        )
        return float(rows + max(self._norm(lam) - scale * np.sum(c * self._w), 0.0))

    def _step(self, lam, goal, gap, points):
        """Coordinate descent on the model of a point, and a step towards its solution; returns epochs."""
        grams = []
        for x, root, (*_, second) in zip(self._x, self._root, points, strict=True):
            columns, constant = np.sqrt(second)[:, None] * x, np.sqrt(second) * root
            beside = constant @ columns
            total = constant @ constant if self._intercept else np.inf
            grams.append(columns.T @ columns - np.outer(beside, beside) / total)
        before, g = self._w.copy(), self._correlations(points)
        scale = np.stack([np.square(x).sum(axis=0) for x in self._x], axis=1)
        epochs, gained = 0, np.inf
        while gained > 1e-3 * min(goal, gap) and epochs < 200:
            epochs, gained = epochs + 1, 0.0
            for j in range(len(g)):
                h = np.array([gram[j, j] for gram in grams])
                h = np.where(h > 1e-13 * scale[j], h, 0.0)
                c = np.where(h > 0.0, g[j] + h * self._w[j], 0.0)
                delta = solve_row(c, h, lam * self._group[j], lam * self._l1[j], 0.0, self._positive) - self._w[j]
                gained += float(h @ np.square(delta))
                self._w[j] += delta
                for t in np.flatnonzero(delta):
                    g[:, t] -= delta[t] * grams[t][j]
        target, level, step = self._w.copy(), self._b.copy(), 1.0
        value = self._value(points)
        old = value + lam * sum(row_norm(w, *own) for w, *own in zip(before, self._group, self._l1, strict=True))
        while step > 1e-8:
            self._w, self._b = before + step * (target - before), level.copy()
            new = self._value([self._point(t) for t in range(len(self._parts))]) + self._norm(lam)
            if new <= old + 1e-12 * abs(old):
                break
            step *= 0.5
        return epochs

    def _value(self, points):
        return sum(np.square(root) @ point[1] for root, point in zip(self._root, points, strict=True))
