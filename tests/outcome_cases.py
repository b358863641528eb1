"""Small problems with a loss of its own for each task: solved by a conic solver, written down as certificates.

Losses are written a second time here, as sums over rows and risk sets: for the solver (cvxpy) and in 60 digits
(mpmath). Nothing of the verifier or of the library is used. What is claimed is compared with the least objective that
the solver finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import cvxpy as cp
import mpmath
import numpy as np
from certificate_oracle import Content
from mpmath import mpf

Array = np.ndarray[Any, Any]

COX = ("cox efron", "cox breslow")
RESIDUAL = ("squared", "log_cosh", "expectile")  # of y - z
WORDS: dict[str, dict[str, Any]] = {
    "squared": {"name": "clipped", "mu": 1.0, "low": None, "high": None, "labels": "numbers"},
    "logistic": {"name": "logistic"},
    "poisson": {"name": "poisson"},
    "gamma": {"name": "gamma"},
    "tweedie": {"name": "tweedie", "power": 1.4},
    "negative_binomial": {"name": "negative_binomial", "size": 1.7},
    "log_cosh": {"name": "log_cosh"},
    "expectile": {"name": "expectile", "level": 0.8},
    "cox efron": {"name": "cox", "ties": "efron"},
    "cox breslow": {"name": "cox", "ties": "breslow"},
    "ordinal": {"name": "ordinal"},
}


def terms_of(y: Array, s: Array, ties: str) -> list[tuple[float, Array, Array, float]]:
    """Weight, events, others at risk, and what the events count, of each logarithm of a partial likelihood."""
    time, event, entry, stratum = y.T
    found = []
    for label in np.unique(stratum):
        for t in np.unique(time[(stratum == label) & (event == 1) & (s > 0)]):
            risk = (stratum == label) & (entry < t) & (t <= time) & (s > 0)
            dead = np.flatnonzero(risk & (event == 1) & (time == t))
            others, weight = np.setdiff1d(np.flatnonzero(risk), dead), float(s[dead].sum())
            count = len(dead) if ties == "efron" else 1
            found += [(weight / count, dead, others, 1.0 - number / count) for number in range(count)]
    return found


@dataclass
class Outcome:
    """One task: labels as the format lists them, weights, offsets; of a mixture the factor of the loss and the scale
    of y - z."""

    kind: str
    words: dict[str, Any]
    x: Array
    y: Array
    weight: Array
    offset: Array
    classes: list[Any] | None = None
    factor: float = 1.0
    scale: float = 1.0

    def expression(self, z: Any, thresholds: Any) -> Any:
        """F for the solver."""
        s, y, name = self.weight, self.y, self.words["name"]
        if self.scale != 1.0:
            y, z = y / self.scale, z / self.scale
        if name == "clipped":
            return cp.sum(cp.multiply(s, cp.square(y - z))) / 2
        if name == "logistic":
            return cp.sum(cp.multiply(s, cp.logistic(-cp.multiply(2.0 * y - 1.0, z))))
        if name == "poisson":
            return cp.sum(cp.multiply(s, cp.exp(z) - cp.multiply(y, z)))
        if name == "gamma":
            return cp.sum(cp.multiply(s * y, cp.exp(-z))) + s @ z
        if name == "tweedie":
            k = self.words["power"] - 1.0
            return cp.sum(cp.multiply(s * y / k, cp.exp(-k * z))) + cp.sum(
                cp.multiply(s / (1.0 - k), cp.exp((1.0 - k) * z))
            )
        if name == "negative_binomial":
            size = self.words["size"]
            return cp.sum(cp.multiply(s * (y + size), cp.logistic(z - np.log(size))) - cp.multiply(s * y, z))
        if name == "log_cosh":
            return cp.sum(cp.multiply(s, cp.logistic(2 * (y - z)) - (y - z) - np.log(2.0)))
        if name == "expectile":
            level = self.words["level"]
            above, below = cp.square(cp.pos(y - z)), cp.square(cp.neg(y - z))
            return cp.sum(cp.multiply(s, level * above + (1.0 - level) * below)) / 2
        if name == "cox":
            total = -(s * y[:, 1]) @ z
            for weight, dead, others, share in terms_of(y, s, self.words["ties"]):
                logs = np.log(np.concatenate([s[dead] * share, s[others]]))
                total += weight * cp.log_sum_exp(z[np.concatenate([dead, others])] + logs)
            return total
        codes, total = y.astype(int), 0.0
        up, down = np.flatnonzero(codes < len(self.classes) - 1), np.flatnonzero(codes > 0)
        if len(self.classes) > 1:
            total += cp.sum(cp.multiply(s[up], cp.logistic(z[up] - thresholds[codes[up]])))
            total += cp.sum(cp.multiply(s[down], cp.logistic(thresholds[codes[down] - 1] - z[down])))
        for k in range(1, len(self.classes) - 1):
            gap = thresholds[k] - thresholds[k - 1]
            total -= float(s[codes == k].sum()) * cp.log(1.0 - cp.exp(-gap))
        return total

    def value(self, z: list[Any], thresholds: Array) -> Any:
        """F in 60 digits."""
        s, name = [mpf(float(one)) for one in self.weight], self.words["name"]
        exp, log = mpmath.exp, mpmath.log
        if name == "cox":
            total = -sum((a * z[i] for i, a in enumerate(s) if self.y[i, 1]), mpf(0))
            for _, dead, others, share in terms_of(self.y, self.weight, self.words["ties"]):
                count = len(dead) if self.words["ties"] == "efron" else 1
                weight = sum(s[i] for i in dead) / count
                part = mpf(round(share * count)) / count
                inside = sum(s[i] * exp(z[i]) for i in dead) * part + sum(s[i] * exp(z[i]) for i in others)
                total += weight * log(inside)
            return total
        y, total = [mpf(float(one)) / mpf(self.scale) for one in self.y], mpf(0)
        z = [one / mpf(self.scale) for one in z]
        for i, a in enumerate(s):
            if name == "clipped":
                f = (y[i] - z[i]) ** 2 / 2
            elif name == "logistic":
                f = log(1 + exp(-(2 * y[i] - 1) * z[i]))
            elif name == "poisson":
                f = exp(z[i]) - y[i] * z[i]
            elif name == "gamma":
                f = y[i] * exp(-z[i]) + z[i]
            elif name == "tweedie":
                k = mpf(self.words["power"]) - 1
                f = y[i] * exp(-k * z[i]) / k + exp((1 - k) * z[i]) / (1 - k)
            elif name == "negative_binomial":
                size = mpf(self.words["size"])
                f = (y[i] + size) * log(1 + exp(z[i]) / size) - y[i] * z[i]
            elif name == "log_cosh":
                f = log(mpmath.cosh(y[i] - z[i]))
            elif name == "expectile":
                level, r = mpf(self.words["level"]), y[i] - z[i]
                f = (level if r > 0 else 1 - level) * r * r / 2
            else:
                c, places = int(y[i]), [mpf(float(one)) for one in thresholds]
                low = 1 / (1 + exp(z[i] - places[c - 1])) if c else mpf(0)
                high = 1 / (1 + exp(z[i] - places[c])) if c < len(places) else mpf(1)
                f = -log(high - low)
            total += a * f
        return total

    def slopes(self, z: Array, thresholds: Array) -> Array:
        """p, minus the slope of f, in plain floating point."""
        y, s, name = self.y, self.weight, self.words["name"]
        if self.scale != 1.0:
            y, z = y / self.scale, z / self.scale
        with np.errstate(over="ignore"):
            if name == "clipped":
                return y - z
            if name == "logistic":
                return (2 * y - 1) / (1 + np.exp((2 * y - 1) * z))
            if name == "poisson":
                return y - np.exp(z)
            if name == "gamma":
                return y * np.exp(-z) - 1.0
            if name == "tweedie":
                k = self.words["power"] - 1.0
                return y * np.exp(-k * z) - np.exp((1.0 - k) * z)
            if name == "negative_binomial":
                size = self.words["size"]
                return y - (y + size) / (1.0 + size * np.exp(-z))
            if name == "log_cosh":
                return np.tanh(y - z)
            if name == "expectile":
                return np.where(y > z, self.words["level"], 1.0 - self.words["level"]) * (y - z)
            if name == "cox":
                w, mass = np.exp(z), np.zeros(len(z))
                for weight, dead, others, share in terms_of(y, s, self.words["ties"]):
                    part = np.zeros(len(z))
                    part[dead], part[others] = share * w[dead], w[others]
                    mass += weight * part / (s @ part)
                return y[:, 1] - mass
            places = np.concatenate([[-np.inf], thresholds, [np.inf]])
            codes = y.astype(int)
            return 1 / (1 + np.exp(z - places[codes])) - 1 / (1 + np.exp(places[codes + 1] - z))


@dataclass
class Outcomes:
    """A problem of several tasks, mixed if they are unlike, with the penalty ``alpha sum_j |w_j|_2``."""

    parts: list[Outcome]
    alpha: float
    ridge: float = 0.0
    mixed: bool = False
    intercept: bool = True
    free: list[int] = field(default_factory=list)
    unit: float = 10.0
    offset: bool = True

    @property
    def d(self) -> int:
        return self.parts[0].x.shape[1]

    @property
    def scales(self) -> Array:
        return np.array([part.scale for part in self.parts])

    @cached_property
    def solution(self) -> tuple[float, Array, Array, list[Array]]:
        """The least objective, coefficients, intercepts and thresholds that the solver finds."""
        w, b = cp.Variable((self.d, len(self.parts))), cp.Variable(len(self.parts))
        places, loss = [cp.Variable(max(1, len(part.classes or []) - 1)) for part in self.parts], 0.0
        has = [self.intercept and part.words["name"] not in ("cox", "ordinal") for part in self.parts]
        for t, part in enumerate(self.parts):
            z = part.x @ w[:, t] + part.offset + (b[t] if has[t] else 0.0)
            loss += part.factor * part.expression(z, places[t])
        kept = np.setdiff1d(np.arange(self.d), self.free)
        own = w[kept] @ np.diag(1.0 / self.scales)
        penalty = self.alpha * cp.sum(cp.norm(own, 2, axis=1)) + self.ridge / 2 * cp.sum_squares(own)
        problem = cp.Problem(cp.Minimize(loss / self.unit + penalty))
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
        coef = np.where(np.abs(w.value).max(axis=1, keepdims=True) > 1e-7, w.value, 0.0)
        coef[self.free] = w.value[self.free]
        found = [np.zeros(0) if one.value is None else np.sort(one.value) for one in places]
        intercept = np.array([float(b.value[t]) if has[t] else 0.0 for t in range(len(self.parts))])
        return float(problem.value), coef, intercept, found

    def objective(self, coef: Array, intercept: Array, places: list[Array]) -> Any:
        """P in 60 digits."""
        total = mpf(0)
        for t, part in enumerate(self.parts):
            w = [mpf(float(one)) for one in coef[:, t]]
            z = [sum((mpf(float(a)) * b for a, b in zip(row, w, strict=True)), mpf(0)) + mpf(float(o))
                 + mpf(float(intercept[t])) for row, o in zip(part.x, part.offset, strict=True)]  # fmt: skip
            total += mpf(part.factor) * part.value(z, places[t])
        kept = np.setdiff1d(np.arange(self.d), self.free)
        lengths = [sum(((mpf(float(v)) / mpf(part.scale)) ** 2 for v, part in zip(coef[j], self.parts, strict=True)),
                       mpf(0)) for j in kept]  # fmt: skip
        norms, squares = sum(map(mpmath.sqrt, lengths), mpf(0)), sum(lengths, mpf(0))
        return total / mpf(self.unit) + mpf(self.alpha) * norms + mpf(self.ridge) / 2 * squares

    def duals(self, coef: Array, intercept: Array, places: list[Array]) -> Array:
        return np.concatenate([part.slopes(part.x @ coef[:, t] + part.offset + intercept[t], places[t])
                               for t, part in enumerate(self.parts)])  # fmt: skip

    def content(self, coef: Array, intercept: Array, places: list[Array], dual: Array, gap: float) -> Content:
        """A certificate of these numbers; the objective is the true one, the dual value that less the gap."""
        objective = float(self.objective(coef, intercept, places))
        words = [part.words for part in self.parts]
        loss = {"name": "mixed", "losses": words, "weights": [part.factor for part in self.parts]}
        if (self.scales != 1.0).any():
            loss["scales"] = self.scales.tolist()
        classes: Any = [part.classes for part in self.parts]
        header = {
            "format": "tasksieve-certificate", "version": 1, "tasks": list(range(len(words))), "n_features": self.d,
            "rows": [len(part.y) for part in self.parts], "shared": False, "offset": self.offset,
            "classes": None if all(one is None for one in classes) else classes, "digests": {}, "unit": self.unit,
            "intercept": self.intercept, "standardize": False, "positive": False, "penalty": {"name": "rows"},
            "loss": loss if self.mixed else words[0],
        }  # fmt: skip
        feature, output = np.nonzero(coef)
        arrays = {
            "alpha": np.array([self.alpha]), "ridge": np.array([self.ridge]), "objective": np.array([objective]),
            "dual_value": np.array([objective - gap]), "gap": np.array([gap]), "intercept": intercept[None],
            "start": np.array([0, len(feature)]), "feature": feature, "output": output, "coef": coef[feature, output],
            "dual": dual[None],
        }  # fmt: skip
        used = [one for one, part in zip(places, self.parts, strict=True) if part.words["name"] == "ordinal"]
        if sum(map(len, used)):
            arrays["thresholds"] = np.concatenate(used)[None]
        if self.free:
            arrays["feature_weights"] = np.isin(np.arange(self.d), self.free, invert=True).astype(float)
        offset = [part.offset for part in self.parts] if self.offset else None
        made = Content(header, arrays, [part.x for part in self.parts], [part.y for part in self.parts],
                       [part.weight for part in self.parts], offset)  # fmt: skip
        made.sign()
        return made


def make_outcome(kind: str, rng: Any, n: int, d: int, **options: Any) -> Outcome:
    """Options: weights, offset, entry, strata (booleans)."""
    x = rng.standard_normal((n, d))
    z = x[:, 0] - 0.7 * x[:, 1]
    weight = rng.uniform(0.5, 2.0, n) if options.get("weights") else np.ones(n)
    offset = 0.3 * rng.standard_normal(n) if options.get("offset", True) else np.zeros(n)
    classes: list[Any] | None = None
    if kind in COX:
        time = np.ceil(4.0 * rng.exponential(np.exp(-0.5 * z)))  # ties
        event = (rng.random(n) < 0.7).astype(float)
        event[np.argmin(time)] = 1.0
        late = rng.random(n) < 0.5
        entry = np.where(late & bool(options.get("entry")), time - np.ceil(2.0 * rng.exponential(1.0, n)), -np.inf)
        stratum = np.unique(rng.integers(0, 2, n), return_inverse=True)[1] if options.get("strata") else np.zeros(n)
        if options.get("strata") and stratum[0]:
            stratum = 1 - stratum  # numbered in the order in which they come
        y: Array = np.stack([time, event, entry, stratum], axis=1)
    elif kind == "ordinal":
        classes = ["low", "middle", "high", "top"][: int(rng.integers(2, 5))]
        y = np.argsort(np.argsort(z + 0.7 * rng.standard_normal(n))) * len(classes) // n * 1.0
    elif kind == "logistic":
        classes, y = [0, 1], (z + 0.5 * rng.standard_normal(n) > 0).astype(float)
        y[:2] = [0.0, 1.0]
    elif kind in ("poisson", "negative_binomial"):
        y = rng.poisson(np.exp(0.5 * z)).astype(float)
    elif kind in ("gamma", "tweedie"):
        y = np.exp(0.5 * z) * rng.gamma(2.0, 0.5, n)
        y = y if kind == "gamma" else y * (rng.random(n) < 0.7)
    else:
        y = z + 0.5 * rng.standard_normal(n)
    return Outcome(kind, dict(WORDS[kind]), x, y, weight, offset, classes)


def make_outcomes(kinds: list[str], seed: int, n: int = 12, d: int = 4, **options: Any) -> Outcomes:
    """Further options: ridge, free, mixed, no_intercept (booleans), strength."""
    rng = np.random.default_rng(seed)
    parts = [make_outcome(kind, rng, n + int(rng.integers(0, 3)), d, **options) for kind in kinds]
    for part in parts if options.get("mixed") else ():
        part.factor = float(rng.uniform(0.5, 2.0))
        if part.kind in RESIDUAL:
            part.scale = float(rng.uniform(0.5, 2.0))
    return Outcomes(parts, float(options.get("strength", 0.1)), 0.05 if options.get("ridge") else 0.0,
                    bool(options.get("mixed")), not options.get("no_intercept"),
                    [d - 1] if options.get("free") else [])  # fmt: skip
