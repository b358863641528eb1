"""A descent of its own, from stored numbers: what it finds is a point, so the truth is at least as far.

Points are steps away from the stored numbers; columns are centred where there are intercepts. Newton's method on the
coefficients that are not zero finishes what sweeps of proximal steps begin; intercepts and unpenalised coefficients are
among the unknowns of every Newton step. All of this is float64. What counts is said in forty digits: where the search
ends, scores and objective are computed anew, and a few more Newton steps are judged by objectives of that kind, since
float64 does not see the last gains. Nothing here needs to be optimal: a point that is accepted is lower.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from exact_numbers import dot, wide

from .evaluate import CLIPPED, Plain, class_shares, logistic_slope, task_norms

Array = np.ndarray[Any, Any]

# An upper bound of the second derivative of a row's loss; None: the objective has kinks, or is not a sum over rows.
CURVATURE = {
    "squared": 1.0,
    "logistic": 0.25,
    "multinomial": 0.5,
    "square-root": None,
    "huber": 1.0,
    "quantile": 10.0,
}


@dataclass
class Point:
    """Scaled coefficients, intercepts of the centred columns as steps from the start, scores, objective."""

    v: Array  # tasks x features
    b: Array
    z: list[Array]
    value: Any


class Descent:
    """Points of a problem that are better than given ones."""

    def __init__(self, plain: Plain) -> None:
        self.exact, self.plain = plain, plain.rounded()
        self.centred = plain.fit_intercept and plain.coupling is None
        self.scales = np.ones((plain.n_tasks, plain.n_features)) if plain.scales is None else self.plain.scales
        self.means = [self._means(x, s) for x, s in zip(plain.x, self.plain.s, strict=True)]
        self.x = [(x - m) / c for x, m, c in zip(plain.x, self.means, self.scales, strict=True)]

    def _means(self, x: Array, s: Array) -> Array:
        """Shifts of the columns: near their means, and exactly the column where it is constant."""
        if not self.centred:
            return np.zeros(x.shape[1])
        share = s / s.max()
        mean = x[0] + share @ (x - x[0]) / np.sum(share)
        return np.where(np.isfinite(mean), np.clip(mean, x.min(axis=0), x.max(axis=0)), x[0])

    # -- points -----------------------------------------------------------------------------------------------------

    def start(self, coef: Array, intercept: Array) -> Point:
        """The point of stored numbers."""
        self._coef, self._intercept, self._scores = coef, intercept, self.exact.scores(coef, intercept)
        return self._point(self.plain.scaled(coef), np.zeros(self.plain.n_tasks))[0]

    def null(self) -> tuple[Point, Any, Array, Array]:
        """W = 0 with the best intercepts and unpenalised coefficients, its objective, and the two as a model stores
        them."""
        p = self.plain
        shape = (p.n_tasks, p.n_features)
        first = [
            float(np.clip(np.sum(s / s.max() * y) / np.sum(s / s.max()), y.min(), y.max()))
            if self.centred and p.loss in ("squared", "square-root", *CLIPPED) and len(y)
            else 0.0
            for y, s in zip(p.y, p.s, strict=True)
        ]
        point = self.start(np.zeros(shape), np.array(first))
        if p.coupling is None:
            point = self._newton(point, 40, penalised=False)
            point, value = self._polished(point, penalised=False)
        else:
            value = self._point(point.v, point.b)[1]
        return point, value, *self.rounded(point)

    def rounded(self, point: Point) -> tuple[Array, Array]:
        """A point as a model would store it: float64 coefficients, and intercepts that make up for their shifts."""
        step = self._coefficient_steps(point.v)
        coef = (wide(self._coef) + wide(step)).astype(float)
        moved = [dot(m, w) - dot(m, old) for m, w, old in zip(self.means, coef, self._coef, strict=True)]
        return coef, (wide(self._intercept) + point.b - np.array(moved)).astype(float)

    def _coefficient_steps(self, v: Array) -> Array:
        """From the stored coefficients to those of scaled ones; what is to be zero is zero."""
        return np.where(v == 0.0, -self._coef, v / self.scales - self._coef)

    def _point(self, v: Array, b: Array) -> tuple[Point, Any]:
        """With scores in forty digits, and its objective likewise."""
        step = self._coefficient_steps(v)
        shift = [wide(own) - dot(m, d) for own, m, d in zip(b, self.means, step, strict=True)]
        z = [a + dot(x, d) + c for a, x, d, c in zip(self._scores, self.exact.x, step, shift, strict=True)]
        w, intercept = wide(self._coef) + wide(step), wide(self._intercept) + np.array(shift)
        value = self.exact.loss_value(z) + self.exact.penalty(self.exact.scaled(w), intercept)
        rounded = [part.astype(float) for part in z]
        return Point(v, b, rounded, self._value(v, b, rounded)), value

    def _polished(self, point: Point, penalised: bool = True, steps: int = 3) -> tuple[Point, Any]:
        """Newton's method a little further, by objectives in forty digits."""
        point, value = self._point(point.v, point.b)
        for _ in range(steps):
            direction = self._newton_direction(point, penalised)
            if direction is None or not all(np.all(np.isfinite(part)) for part in direction):
                break
            v = point.v + direction[0]
            trial, lower = self._point(np.maximum(v, 0.0) if self.plain.positive else v, point.b + direction[1])
            if not lower < value:
                break
            point, value = trial, lower
        return point, value

    def _value(self, v: Array, b: Array, z: list[Array]) -> Any:
        intercept = self._intercept + b if self.plain.coupling is not None else b
        return self.plain.loss_value(z) + self.plain.penalty(v, intercept)

    def _step(self, point: Point, dv: Array, db: Array) -> Point:
        z = [
            a + x[:, np.flatnonzero(d)] @ d[np.flatnonzero(d)] + c
            for a, x, d, c in zip(point.z, self.x, dv, db, strict=True)
        ]
        v, b = point.v + dv, point.b + db
        return Point(v, b, z, self._value(v, b, z))

    # -- the descent ------------------------------------------------------------------------------------------------

    def lowest(self, point: Point, rounds: int = 6) -> tuple[Point, Any]:
        """A point that is at least as good, and its objective: Newton's method and sweeps until neither gains."""
        start, value = self._point(point.v, point.b)
        for k in range(rounds):
            before = point.value
            point = self._newton(point, 8)
            if self.plain.ranks is not None:
                point = self._sorted_steps(point, 30)
            elif self.plain.loss in CURVATURE:
                point = self._sweep(point)
                if k < 2:
                    point = self._sweep(self._sweep(point))
            if not before - point.value > 4 * np.finfo(float).eps * before:
                break
        found, lower = self._polished(point)
        return (found, lower) if lower < value else (start, value)

    def _products(self, slopes: list[Array]) -> Array:
        return np.array([x.T @ g for x, g in zip(self.x, slopes, strict=True)])

    def _sweep(self, point: Point) -> Point:
        """One proximal step for each penalised row, after another."""
        p = self.plain
        bound = CURVATURE[p.loss]
        z, v = list(point.z), point.v.copy()
        ridge = p.ridge
        for j in np.flatnonzero(~p.free):
            slopes = p.loss_slopes(z)
            gradient = np.array([x[:, j] @ g for x, g in zip(self.x, slopes, strict=True)])
            squares = np.array([s @ x[:, j] ** 2 for s, x in zip(p.s, self.x, strict=True)])
            if bound is None:  # ||r|| <= (||r||^2 + c^2)/(2c), equal at c = ||r||
                sizes = task_norms(p, z)
                if np.any(sizes == 0):
                    continue
                bends = squares / sizes
            else:
                bends = bound * squares
            bend = p.factor * np.max(bends)
            if not bend > 0:
                new = np.zeros_like(v[:, j])
            else:
                new = _shrunk(v[:, j] - gradient / bend, p.l1[j] / bend, p.group[j] / bend, p.positive) / (
                    1 + ridge / bend
                )
            step = new - v[:, j]
            if np.any(step):
                z = [a + x[:, j] * d for a, x, d in zip(z, self.x, step, strict=True)]
                v[:, j] = new
        found = Point(v, point.b, z, self._value(v, point.b, z))
        return found if found.value < point.value else point

    def _sorted_steps(self, point: Point, steps: int) -> Point:
        """Accelerated proximal gradient with one step length for all rows, starting anew when it stops to gain."""
        p = self.plain
        bound = CURVATURE[p.loss]
        sizes = task_norms(p, point.z) if bound is None else None
        if sizes is not None and np.any(sizes == 0):
            return point
        roots = [np.sqrt(s)[:, None] * x for s, x in zip(p.s, self.x, strict=True)]
        top = max(np.sum(r * r) for r in roots)
        if not top > 0:
            return point
        tight = [_largest_square((r / np.sqrt(top)).astype(np.float64)) for r in roots]
        bends = [c / size for c, size in zip(tight, sizes, strict=True)] if sizes is not None else tight
        bend = p.factor * top * max(bends) * (1 if bound is None else bound) * (1 + 1e-9)
        ahead, t = point, 1
        for _ in range(steps):
            gradient = self._products(p.loss_slopes(ahead.z))
            new = _sorted_shrunk(ahead.v - gradient / bend, p.ranks / bend, p.positive) / (
                1 + p.ridge / bend
            )
            found = self._step(ahead, new - ahead.v, 0 * ahead.b)
            if not found.value < point.value:
                if ahead is point:
                    break
                ahead, t = point, 1
                continue
            grown = (1 + np.sqrt(1 + 4 * t * t)) / 2
            momentum = (t - 1) / grown
            previous, point, t = point, found, grown
            ahead = self._step(point, momentum * (point.v - previous.v), momentum * (point.b - previous.b))
            if p.positive:
                clipped = np.maximum(ahead.v, 0)
                ahead = self._step(ahead, clipped - ahead.v, 0 * ahead.b)
        return point

    def _newton(self, point: Point, steps: int, penalised: bool = True) -> Point:
        """Newton's method on what is not zero (and intercepts, and unpenalised coefficients)."""
        for _ in range(steps):
            direction = self._newton_direction(point, penalised)
            if direction is None:
                break
            length, found = 1, None
            for _ in range(14):
                dv = length * direction[0]
                if self.plain.positive:
                    dv = np.maximum(point.v + dv, 0) - point.v
                trial = self._step(point, dv, length * direction[1])
                if trial.value < point.value:
                    found = trial
                    break
                length /= 2 if length > 0.1 else 16
            if found is None:
                break
            gain = point.value - found.value
            point = found
            if gain <= 4 * np.finfo(float).eps * point.value:
                break
        return point

    def _newton_direction(self, point: Point, penalised: bool) -> tuple[Array, Array] | None:
        p = self.plain
        tasks, d = p.n_tasks, p.n_features
        active = self._active(point.v) if penalised else np.broadcast_to(p.free, (tasks, d))
        slopes = p.loss_slopes(point.z)
        group = p.group
        if p.ranks is not None:  # as the rows are ordered now
            group = np.empty(d)
            group[np.argsort(-np.sum(point.v**2, axis=0), kind="stable")] = p.ranks
        gradient = self._products(slopes)
        norms = np.sqrt(np.sum(point.v**2, axis=0))
        safe = np.where(norms > 0, norms, 1)
        unit = point.v / safe
        extra = np.zeros((tasks, d, tasks))  # of a feature: task by task
        own = np.arange(tasks)
        if p.coupling is not None:
            gradient = gradient + p.coupling @ point.v
            extra += p.coupling[:, None, :]
        else:
            held = np.where(p.free, 0.0, p.ridge)
            gradient = gradient + held * point.v + group * unit + p.l1 * np.sign(point.v)
            extra -= (group / safe)[None, :, None] * np.einsum("tj,sj->tjs", unit, unit)
            extra[own, :, own] += np.where(norms > 0, group / safe, 0) + held
        # unknowns: (task, feature) pairs, then intercepts
        at_task, at_feature = np.nonzero(active)
        n_own = len(at_task)
        place_t = list(at_task) + (list(range(tasks)) if p.fit_intercept else [])
        if not place_t:
            return None
        first = gradient[active]
        constant = p.intercept_scaling if p.coupling is not None else 1
        if p.fit_intercept:
            drift = np.array([np.sum(g) for g in slopes]) * constant
            if p.coupling is not None:
                drift = drift + p.coupling @ ((self._intercept + point.b) / constant)
            first = np.concatenate([first, drift])
        columns = []
        for t in range(tasks):
            part = self.x[t][:, at_feature[at_task == t]]
            if p.fit_intercept:
                part = np.column_stack([part, np.full(len(part), constant)])
            columns.append(part)
        index = [
            np.concatenate([np.flatnonzero(at_task == t), [n_own + t] if p.fit_intercept else []]).astype(int)
            for t in range(tasks)
        ]
        pairs = self._curvature(point.z)
        added = np.zeros((len(first), len(first)))
        for t in range(tasks):
            for s in range(tasks):
                same = at_feature[at_task == t][:, None] == at_feature[at_task == s][None, :]
                block = np.where(same, extra[t, at_feature[at_task == t], s][:, None], 0)
                added[np.ix_(np.flatnonzero(at_task == t), np.flatnonzero(at_task == s))] += block
        if p.coupling is not None and p.fit_intercept:
            added[n_own:, n_own:] += p.coupling
        diagonal = np.diag(added).copy()
        for t, s, weight, across in pairs:
            if t == s:
                diagonal[index[t]] += weight @ columns[t] ** 2
                if across is not None:
                    diagonal[index[t]] -= (across @ columns[t]) ** 2
        usable = diagonal > 0
        if not usable.any():
            return None
        size = np.where(usable, 1 / np.sqrt(np.where(usable, diagonal, 1)), 0)
        matrix = (added * size[:, None] * size[None, :]).astype(np.float64)
        for t, s, weight, across in pairs:
            root = np.sqrt(np.abs(weight))[:, None]
            left = (root * columns[t] * size[index[t]]).astype(np.float64)
            right = (root * np.sign(weight)[:, None] * columns[s] * size[index[s]]).astype(np.float64)
            product = left.T @ right
            if across is not None:
                line = ((across @ columns[t]) * size[index[t]]).astype(np.float64)
                product = product - np.outer(line, line)
            matrix[np.ix_(index[t], index[s])] += product
        scaled = first * size
        top = np.max(np.abs(scaled))
        if not (top > 0 and np.all(np.isfinite(matrix))):
            return None
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        inverse = np.where(values > 1e-14 * max(values[-1], 0.0), 1 / np.where(values > 0, values, 1), 0)
        answer = vectors @ (inverse * (vectors.T @ (scaled / top).astype(np.float64)))
        step = -answer * top * size
        dv, db = np.zeros((tasks, d)), np.zeros(tasks)
        dv[active] = step[:n_own]
        if p.fit_intercept:
            db[:] = step[n_own:] * constant
        return dv, db

    def _active(self, v: Array) -> Array:
        p = self.plain
        if p.coupling is not None:
            return np.ones(v.shape, dtype=bool)
        entries = v != 0
        if not p.positive:  # a row without an l1 part moves as a whole
            entries = entries | (np.any(v != 0, axis=0) & (p.l1 == 0))
        return entries | p.free

    def _curvature(self, z: list[Array]) -> list[tuple[int, int, Array, Array | None]]:
        """Second derivatives: (task, task, weights of rows, vector whose square is taken off)."""
        p = self.plain
        if p.loss == "multinomial":
            share = class_shares(z)[1]
            rows = p.s[0] * p.factor
            return [
                (k, m, rows * (share[:, k] * ((k == m) - share[:, m])), None)
                for k in range(p.n_tasks)
                for m in range(p.n_tasks)
            ]
        if p.loss == "square-root":
            found: list[tuple[int, int, Array, Array | None]] = []
            for t, (s, r, size) in enumerate(zip(p.s, z, task_norms(p, z), strict=True)):
                if size > 0:
                    scale = p.factor / size
                    found.append((t, t, s * scale, s * r / size * np.sqrt(scale)))
            return found
        bends = []
        for s, a, y in zip(p.s, z, p.y, strict=True):
            if p.loss == "logistic":
                q = logistic_slope(-np.abs(a))
                bend = q * (1 - q)
            elif p.loss == "squared_hinge":
                bend = 2.0 * (y * a < 1)
            elif p.loss == "squared_epsilon_insensitive":
                bend = 2.0 * (np.abs(a) > p.epsilon)
            elif p.loss == "squared_no_half":
                bend = np.full_like(a, 2)
            elif p.loss == "squared":
                bend = np.ones_like(a)
            elif p.loss in CLIPPED:
                low, high, mu = CLIPPED[p.loss]
                bend = ((-a / mu > low) & (-a / mu < high)) / mu
            else:
                bend = np.zeros_like(a)  # kinks: no curvature but that of the penalty
            bends.append(p.factor * s * bend)
        return [(t, t, bend, None) for t, bend in enumerate(bends)]


def _largest_square(x: Array) -> float:
    return float(np.linalg.svd(x, compute_uv=False)[0] ** 2) if x.size else 0.0


def _shrunk(row: Array, l1: Any, group: Any, positive: bool) -> Array:
    """The proximal point of ``l1 ||.||_1 + group ||.||_2``."""
    row = np.maximum(row, 0) if positive else row
    row = np.sign(row) * np.maximum(np.abs(row) - l1, 0)
    size = np.sqrt(np.sum(row * row))
    return row * (1 - group / size) if size > group else 0 * row


def _sorted_shrunk(v: Array, ranks: Array, positive: bool) -> Array:
    """The proximal point of the sorted norm of the columns of `v`: pool adjacent violators on the sorted norms."""
    v = np.maximum(v, 0) if positive else v
    norms = np.sqrt(np.sum(v * v, axis=0))
    order = np.argsort(-norms, kind="stable")
    pools: list[list[Any]] = []
    for value in norms[order] - ranks:
        pools.append([value, 1])
        while len(pools) > 1 and pools[-2][0] <= pools[-1][0]:
            mean, count = pools.pop()
            pools[-1] = [
                (pools[-1][0] * pools[-1][1] + mean * count) / (pools[-1][1] + count),
                pools[-1][1] + count,
            ]
    sizes = np.empty_like(norms)
    sizes[order] = np.concatenate([np.full(count, max(mean, 0)) for mean, count in pools])
    return v * np.where(norms > 0, sizes / np.where(norms > 0, norms, 1), 0)


def alpha_max(plain: Plain) -> Any:
    """The multiple of the problem's strength at which W = 0 begins to be optimal (sparse group: an upper bound)."""
    descent = Descent(replace(plain, positive=False) if plain.positive else plain)
    point, plain = descent.null()[0], descent.plain
    products = descent._products(plain.loss_slopes(point.z))
    sizes = np.sqrt(np.sum(products**2, axis=0))
    if plain.ranks is not None:
        strengths = np.cumsum(plain.ranks)
        sums = np.cumsum(np.sort(sizes)[::-1])
        return np.max(np.where(strengths > 0, sums / np.where(strengths > 0, strengths, 1), 0))
    if not np.any(plain.group):
        sizes = np.max(np.abs(products), axis=0)
    strengths = plain.group + plain.l1
    return np.max(np.where(plain.free, 0, sizes / np.where(plain.free, 1, strengths)))
