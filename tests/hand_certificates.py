"""Certificates built by hand: the format written down a second time, with formulas of its own in plain NumPy.

Nothing here uses the verifier or the library's writer; solutions come from the library's estimators, dual points from
the residuals below. Claims are the plain values with a margin for the rounding of this file. """

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass
class Case:
    """A problem of the format, and a point. Lists by task; coef (d, Q), intercept (Q,)."""

    x: list[Array]
    y: list[Array]  # numbers, or places of classes
    coef: Array
    intercept: Array
    loss: dict[str, Any]
    penalty: dict[str, Any]
    alpha: float
    ridge: float = 0.0
    unit: float = 1.0
    fit_intercept: Any = True
    standardize: bool = False
    positive: bool = False
    weight: list[Array] | None = None
    offset: list[Array] | None = None
    task_weights: list[float] | None = None
    class_weights: list[list[float]] | None = None
    classes: list[Any] | None = None
    shared: bool = False
    arrays: dict[str, Array] = field(default_factory=dict)  # edges, feature_weights, l1, group_of, ...
    tasks: list[Any] | None = None

    @property
    def n_tasks(self) -> int:
        return len(self.x)

    @property
    def multinomial(self) -> bool:
        return bool(self.loss["name"] == "multinomial")

    def outputs(self, t: int) -> list[int]:
        if not self.multinomial:
            return [t]
        nested = isinstance(self.classes[0], list)
        counts = [len(self.classes[k] if nested else self.classes) for k in range(self.n_tasks)]
        return list(range(sum(counts[:t]), sum(counts[: t + 1])))

    @property
    def task_of(self) -> Array:
        return np.concatenate([np.full(len(self.outputs(t)), t) for t in range(self.n_tasks)])

    @property
    def free(self) -> Array:
        return np.flatnonzero(self.arrays.get("feature_weights", np.ones(self.x[0].shape[1])) == 0.0)

    def s(self, t: int) -> Array:
        s = np.ones(len(self.y[t])) if self.weight is None else self.weight[t]
        if self.task_weights is not None:
            s = s * self.task_weights[t] ** (2 if self.loss["name"] == "square-root" else 1)
        if self.class_weights is not None:
            s = s * np.array(self.class_weights[t])[self.y[t].astype(int)]
        return s

    def sd(self) -> Array:
        """(d, Q) standard deviations, or ones."""
        d, q = self.coef.shape
        found = np.ones((d, q))
        if self.standardize:
            for t, x in enumerate(self.x):
                s = self.s(t)
                mean = (s @ x) / s.sum() if self.fit_intercept is True else 0.0
                scale = np.sqrt(s @ (x - mean) ** 2 / s.sum())
                scale[np.ptp(x[s > 0], axis=0) == 0 if self.fit_intercept is True else ~x.any(axis=0)] = 1.0
                found[:, self.outputs(t)] = scale[:, None]
        return found

    def o(self, t: int) -> Array:
        return np.zeros(len(self.y[t])) if self.offset is None else self.offset[t]

    def z(self, t: int) -> Array:
        q = self.outputs(t)
        return self.x[t] @ self.coef[:, q] + self.intercept[q] + self.o(t)[:, None]

    def sign(self, t: int) -> Array:
        return 2.0 * self.y[t] - 1.0

    def target(self, t: int) -> Array:
        return self.sign(t) if self.loss.get("labels") == "classes" or self.loss["name"] == "logistic" else self.y[t]

    def bounds(self, t: int) -> tuple[Array, Array]:
        high = np.inf if self.loss["high"] is None else self.loss["high"]
        if self.loss["labels"] == "classes":
            y = self.sign(t)
            return np.where(y > 0, 0.0, -high), np.where(y > 0, high, 0.0)
        low = -np.inf if self.loss["low"] is None else self.loss["low"]
        return np.full(len(self.y[t]), low), np.full(len(self.y[t]), high)

    # -- dual points -----------------------------------------------------------------------------------------

    def residual(self, t: int) -> Array:
        """p of the stored coefficients, (n, outputs of the task)."""
        name, z = self.loss["name"], self.z(t)
        if name == "multinomial":
            e = np.exp(z - z.max(axis=1, keepdims=True))
            return np.eye(z.shape[1])[self.y[t].astype(int)] - e / e.sum(axis=1, keepdims=True)
        z, y = z[:, 0], self.target(t)
        if name == "logistic":
            return (y / (1.0 + np.exp(np.clip(y * z, -700, 700))))[:, None]
        if name == "poisson":
            return (y - np.exp(z))[:, None]
        if name == "gamma":
            return (y * np.exp(-z) - 1.0)[:, None]
        if name == "tweedie":
            a, b = self.tweedie(y, z)
            return (a - b)[:, None]
        if name == "negative_binomial":
            size = self.loss["size"]
            return (y - (y + size) / (1.0 + size * np.exp(-z)))[:, None]
        r = y - z
        if name == "log_cosh":
            return np.tanh(r)[:, None]
        if name == "expectile":
            return (self.sides(r) * r)[:, None]
        if name == "square-root":
            size = np.sqrt(self.s(t) @ r**2)
            return (r / size if size > 0 else 0 * r)[:, None]
        low, high = self.bounds(t)
        over = np.sign(r) * np.maximum(np.abs(r) - self.loss.get("epsilon", 0.0), 0.0)
        if self.loss["mu"] == 0.0:
            return np.where(over > 0, high, np.where(over < 0, low, 0.0))[:, None]
        return np.clip(over / self.loss["mu"], low, high)[:, None]

    def tweedie(self, y: Array, z: Array) -> tuple[Array, Array]:
        power = self.loss["power"]
        return y * np.exp(-(power - 1.0) * z), np.exp((2.0 - power) * z)

    def sides(self, r: Array) -> Array:
        """Weights of the expectile loss."""
        return np.where(r > 0.0, self.loss["level"], 1.0 - self.loss["level"])

    def room(self, t: int, q: Array) -> Array:
        """h of the format's table."""
        name, y = self.loss["name"], self.y[t]
        if name == "logistic":
            pi = self.sign(t) * q
            return pi * (1.0 - pi)
        if name == "tweedie":
            return np.abs(q) + (y > 0.0)
        rooms = {"poisson": y - q, "gamma": 1.0 + q, "log_cosh": 1.0 - q * q}
        if name == "negative_binomial":
            return (y - q) * (self.loss["size"] + q)
        return rooms.get(name, np.ones(len(q)))

    def corrected(self, t: int, p: Array) -> Array:
        """Brought near the complement of what costs nothing, in floating point, as any writer would."""
        n = len(p)
        z = ([np.ones(n)] if self.fit_intercept is True else []) + [self.x[t][:, j] for j in self.free]
        if not z or not n:
            return p
        z = np.stack(z, axis=1)
        if self.fit_intercept is True:
            z[:, 1:] -= z[:, 1:].mean(axis=0)
        s, name = self.s(t), self.loss["name"]
        for _ in range(3):
            if name == "multinomial":
                onehot = np.eye(p.shape[1])[self.y[t].astype(int)]
                pi = onehot - p
                pi = pi / pi.sum(axis=1, keepdims=True)
                k = p.shape[1] - 1
                matrix = np.array([[s @ (pi[:, q] * ((q == r) - pi[:, r])) for r in range(k)] for q in range(k)])
                c = np.append(np.linalg.lstsq(matrix, (s @ (onehot - pi))[:k], rcond=None)[0], 0.0)
                p = onehot - pi * (1.0 + c - (pi @ c)[:, None])
                continue
            q = p[:, 0]
            if name == "clipped":
                low, high = self.bounds(t)
                h = np.minimum(q - low, high - q)
                h = np.where(np.isinf(h), 1.0, np.maximum(h, 0.0))
            else:
                h = self.room(t, q)
            c = np.linalg.lstsq(z.T @ ((s * h)[:, None] * z), z.T @ (s * q), rcond=None)[0]
            q = q - h * (z @ c)
            if name == "square-root":
                q = q * min(1.0, (1 - 1e-15) / np.sqrt(s @ q**2)) if q.any() else q
            p = q[:, None]
        return p

    def duals(self) -> list[Array]:
        return [self.corrected(t, self.residual(t)) for t in range(self.n_tasks)]

    # -- values ----------------------------------------------------------------------------------------------

    def loss_value(self) -> float:
        total = 0.0
        for t in range(self.n_tasks):
            s, z, name = self.s(t), self.z(t), self.loss["name"]
            if name == "multinomial":
                top = z.max(axis=1)
                own = z[np.arange(len(z)), self.y[t].astype(int)]
                total += s @ (np.log(np.exp(z - top[:, None]).sum(axis=1)) + top - own)
                continue
            z, y = z[:, 0], self.target(t)
            if name == "logistic":
                total += s @ np.logaddexp(0.0, -y * z)
            elif name == "poisson":
                total += s @ (np.exp(z) - y * z)
            elif name == "gamma":
                total += s @ (y * np.exp(-z) + z)
            elif name == "tweedie":
                a, b = self.tweedie(y, z)
                total += s @ (a / (self.loss["power"] - 1.0) + b / (2.0 - self.loss["power"]))
            elif name == "negative_binomial":
                size = self.loss["size"]
                total += s @ ((y + size) * np.logaddexp(0.0, z - np.log(size)) - y * z)
            elif name == "log_cosh":
                total += s @ (np.logaddexp(y - z, z - y) - np.log(2.0))
            elif name == "expectile":
                total += s @ (self.sides(y - z) * (y - z) ** 2) / 2
            elif name == "square-root":
                total += np.sqrt(s @ (y - z) ** 2)
            else:
                p = self.residual(t)[:, 0]
                value = p * (y - z) - self.loss["mu"] * p**2 / 2 - self.loss.get("epsilon", 0.0) * np.abs(p)
                total += s @ value
        return total / self.unit

    def conjugates(self, duals: list[Array], c: float) -> float:
        """``sum s f*(-c p) + c <v, o>``, divided by the unit."""
        def xlogx(x: Array) -> Array:
            return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0)

        total = 0.0
        for t, p in enumerate(duals):
            s, name, y = self.s(t), self.loss["name"], self.target(t)
            total += c * np.sum(s[:, None] * p * self.o(t)[:, None])
            if name == "multinomial":
                pi = np.eye(p.shape[1])[self.y[t].astype(int)] - c * p
                total += s @ xlogx(np.clip(pi, 0, 1)).sum(axis=1)
                continue
            q = c * p[:, 0]
            if name == "logistic":
                total += s @ (xlogx(y * q) + xlogx(1 - y * q))
            elif name == "poisson":
                total += s @ (xlogx(y - q) - (y - q))
            elif name == "gamma":
                total += s @ (xlogx(1 + q) - (1 + q) * (1.0 + np.log(y)))
            elif name == "tweedie":
                k, rest = self.loss["power"] - 1.0, 2.0 - self.loss["power"]
                a, b = self.tweedie(y, self.score_of(y, q))
                logs = np.log(np.where(y > 0.0, y, 1.0))
                total += s @ ((xlogx(a) - a * (1.0 + logs)) / k + (xlogx(b) - b) / rest)
            elif name == "negative_binomial":
                size = self.loss["size"]
                share = (y - q) / (y + size)
                total += s @ ((y + size) * (xlogx(share) + xlogx(1 - share)) + (y - q) * np.log(size))
            elif name == "log_cosh":
                total += s @ ((xlogx(1 + q) + xlogx(1 - q)) / 2 - q * y)
            elif name == "expectile":
                total += s @ (q**2 / (2 * self.sides(q)) - q * y)
            elif name == "square-root":
                total -= s @ (q * y)
            else:
                total += s @ (self.loss["mu"] * q**2 / 2 + self.loss.get("epsilon", 0.0) * np.abs(q) - q * y)
        return total / self.unit

    def score_of(self, y: Array, p: Array) -> Array:
        """The z at which the Tweedie loss has the slope -p."""
        low, high = np.full(len(p), -500.0), np.full(len(p), 500.0)
        for _ in range(200):
            z = (low + high) / 2
            a, b = self.tweedie(y, z)
            low, high = np.where(a - b > p, z, low), np.where(a - b > p, high, z)
        return high

    def scaled(self) -> Array:
        return self.coef * self.sd()

    def quadratic(self) -> float:
        w = np.delete(self.scaled(), self.free, axis=0)
        if not isinstance(self.fit_intercept, bool):
            w = np.vstack([w, self.intercept / self.fit_intercept])
        edges = self.arrays.get("edges", np.zeros((w.shape[1],) * 2))
        apart = w[:, :, None] - w[:, None, :]
        return float(self.ridge / 2 * np.sum(w**2) + 0.25 * np.sum(edges * apart**2))

    def pulled(self) -> Array:
        """R W (d, Q), without the row of a constant feature."""
        w = self.scaled()
        w[self.free] = 0.0
        edges = self.arrays.get("edges", np.zeros((w.shape[1],) * 2))
        return self.unit * (self.ridge * w + np.sum(edges[None] * (w[:, :, None] - w[:, None, :]), axis=2))

    def products(self, duals: list[Array]) -> Array:
        m = np.zeros(self.coef.shape)
        for t, p in enumerate(duals):
            v = self.s(t)[:, None] * p
            x = self.x[t] - (self.x[t].mean(axis=0) if self.fit_intercept is True and len(v) else 0.0)
            m[:, self.outputs(t)] = x.T @ v
        return m / self.sd()

    def u(self) -> Array:
        return self.arrays.get("feature_weights", np.ones(len(self.coef)))

    def penalty_value(self) -> float:
        w, name, u = self.scaled(), self.penalty["name"], self.u()
        g, l1 = self.penalty.get("group", 1.0), self.arrays.get("l1", self.penalty.get("l1", 0.0))
        norms = np.sqrt((w**2).sum(axis=1))
        if name == "rows":
            return float(u @ (g * norms + l1 * np.abs(w).sum(axis=1)))
        if name == "largest":
            return float(u @ np.abs(w).max(axis=1))
        if name == "split":
            return float(sum(u[j] * split_value(w[j], g, l1) for j in range(len(w))))
        if name == "sorted":
            falling = np.sort(np.delete(norms, self.free))[::-1]
            return float(falling @ self.arrays["sorted_weights"][: len(falling)])
        if name == "groups":
            total = 0.0
            for k, weight in enumerate(self.arrays["group_weights"]):
                mine = (self.arrays["group_of"] == k) & (u > 0)
                inside = self.penalty.get("inside")
                part = 0.0 if inside is None else norms[mine].sum() if inside == "rows" else np.abs(w[mine]).sum()
                total += weight * (g * np.sqrt((w[mine] ** 2).sum()) + l1 * part)
            return float(total)
        return 0.0

    def inside(self, m: Array) -> bool:
        """Whether m, in units of N alpha, is in the dual ball."""
        name, u = self.penalty["name"], self.u()
        g, l1 = self.penalty.get("group", 1.0), self.arrays.get("l1", self.penalty.get("l1", 0.0))
        m = np.maximum(m, 0.0) if self.positive else np.abs(m)
        keep = u > 0
        m, u = m[keep], u[keep]
        norms = np.sqrt((m**2).sum(axis=1))
        if name == "rows":
            l1 = np.broadcast_to(l1, len(keep))[keep]
            over = np.maximum(m - (u * l1)[:, None], 0.0)
            return bool(np.all(np.sqrt((over**2).sum(axis=1)) <= u * g))
        if name == "largest":
            return bool(np.all(m.sum(axis=1) <= u))
        if name == "split":
            return bool(np.all(norms <= u * g) and np.all(m <= (u * l1)[:, None]))
        if name == "sorted":
            limits = np.cumsum(self.arrays["sorted_weights"][: len(norms)])
            return bool(np.all(np.cumsum(np.sort(norms)[::-1]) <= limits))
        for k, weight in enumerate(self.arrays["group_weights"]):
            mine = self.arrays["group_of"][keep] == k
            x = norms[mine] if self.penalty.get("inside") == "rows" else m[mine].ravel()
            cut = weight * l1 if self.penalty.get("inside") else 0.0
            if np.sqrt((np.maximum(x - cut, 0.0) ** 2).sum()) > weight * g:
                return False
        return True

    def pair(self, duals: list[Array]) -> tuple[float, float, float]:
        """P, D and c, in plain floating point."""
        primal = self.loss_value() + self.alpha * self.penalty_value() + self.quadratic()
        m, pulled = self.products(duals), self.pulled()
        if self.penalty["name"] == "none":
            w, v, r = self.scaled(), m, pulled
            if not isinstance(self.fit_intercept, bool):
                b = self.fit_intercept
                last = np.array([b * self.s(t) @ duals[t][:, 0] if len(duals[t]) else 0.0 for t in range(self.n_tasks)])
                w = np.vstack([w, self.intercept / b])
                v = np.vstack([v, last])
                edges = self.arrays.get("edges", np.zeros((w.shape[1],) * 2))
                r = self.unit * (self.ridge * w + np.sum(edges[None] * (w[:, :, None] - w[:, None, :]), axis=2))
            missed = np.sum((r - v) ** 2) / (2 * self.unit * self.ridge)
            return primal, -self.conjugates(duals, 1.0) - (np.sum(v * w) + missed) / self.unit + self.quadratic(), 1.0
        m = (m - pulled) / (self.unit * self.alpha)
        low, high = 0.0, 1.0
        if self.inside(m):
            low = 1.0
        for _ in range(100):
            if low == 1.0:
                break
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.inside(middle * m) else (low, middle)
        return primal, -self.conjugates(duals, low) - low**2 * self.quadratic(), low

    # -- the file --------------------------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        def digest(values: Array) -> str:
            return hashlib.sha256((np.ascontiguousarray(values, dtype="<f8") + 0.0).tobytes()).hexdigest()

        labels = []
        for t in range(self.n_tasks):
            columns = [self.y[t], np.ones(len(self.y[t])) if self.weight is None else self.weight[t]]
            labels.append(digest(np.stack(columns + ([] if self.offset is None else [self.offset[t]]), axis=1)))
        return {
            "format": "tasksieve-certificate",
            "version": 1,
            "tasks": list(range(self.n_tasks)) if self.tasks is None else self.tasks,
            "rows": [len(y) for y in self.y],
            "n_features": len(self.coef),
            "shared": self.shared,
            "offset": self.offset is not None,
            "classes": self.classes,
            "digests": {"matrices": [digest(x) for x in (self.x[:1] if self.shared else self.x)], "labels": labels},
            "unit": self.unit,
            "intercept": self.fit_intercept,
            "standardize": self.standardize,
            "positive": self.positive,
            "task_weights": self.task_weights,
            "class_weights": self.class_weights,
            "loss": self.loss,
            "penalty": self.penalty,
        }

    def content(self, margin: float = 1e-9, duals: list[Array] | None = None) -> tuple[dict[str, Any], Any]:
        """Header and arrays, claims with a margin relative to the objective at zero."""
        duals = self.duals() if duals is None else duals
        primal, dual, _ = self.pair(duals)
        slack = margin * max(abs(primal), abs(dual), abs(self.conjugates(duals, 1.0)), 1e-300)
        feature, output = np.nonzero(self.coef)
        arrays = {
            "alpha": np.array([self.alpha]),
            "ridge": np.array([self.ridge]),
            "objective": np.array([primal]),
            "dual_value": np.array([dual - slack]),
            "gap": np.array([max(primal - dual, 0.0) + 2 * slack]),
            "intercept": np.asarray(self.intercept, dtype=float)[None],
            "start": np.array([0, len(feature)]),
            "feature": feature.astype(np.int64),
            "output": output.astype(np.int64),
            "coef": self.coef[feature, output],
            "dual": np.concatenate([p.T.ravel() for p in duals])[None],
            **self.arrays,
        }
        return self.header(), arrays

    def data(self) -> dict[str, Any]:
        """What `verify` is called with."""
        classes = self.classes
        if classes is not None and not isinstance(classes[0], list):
            classes = [classes] * self.n_tasks
        y = self.y
        if classes is not None:
            y = [np.array(classes[t], dtype=object)[v.astype(int)] for t, v in enumerate(self.y)]
        found: dict[str, Any] = {"X": self.x, "y": y, "sample_weight": self.weight, "offset": self.offset}
        if self.shared:
            stacked = {k: None if v is None else np.stack(v, axis=1) for k, v in found.items() if k != "X"}
            return {"X": self.x[0], **stacked}
        return found

    def save(self, margin: float = 1e-9, duals: list[Array] | None = None, **changes: Array) -> bytes:
        header, arrays = self.content(margin, duals)
        return pack(header, {**arrays, **changes})


def split_value(w: Array, g: float, l1: float) -> float:
    """``min g |p| + l |w - p|_1`` by trying every height between the sizes of entries, and the best between them."""
    heights = np.linspace(0.0, np.abs(w).max(), 20001)
    cuts = np.minimum(np.abs(w)[None], heights[:, None])
    values = g * np.sqrt((cuts**2).sum(axis=1)) + l1 * (np.abs(w)[None] - cuts).sum(axis=1)
    best = int(np.argmin(values))
    low, high = heights[max(best - 1, 0)], heights[min(best + 1, 20000)]

    def value(h: float) -> float:
        cut = np.minimum(np.abs(w), h)
        return float(g * np.linalg.norm(cut) + l1 * (np.abs(w) - cut).sum())

    for _ in range(200):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if value(a) <= value(b) else (a, high)
    return min(float(values[best]), value(low))


def pack(header: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """The bytes of a certificate file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("header.json", json.dumps(header, allow_nan=False))
        for name, values in arrays.items():
            body = io.BytesIO()
            kind = "<i8" if np.asarray(values).dtype.kind in "iu" else "<f8"
            np.lib.format.write_array(body, np.ascontiguousarray(values, dtype=kind), version=(1, 0))
            archive.writestr(name + ".npy", body.getvalue())
    return stream.getvalue()
