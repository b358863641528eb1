"""The objectives of the contract, from their definitions, at the numbers that a model stores.

A `Plain` problem is numbers only: no estimator, no storage. Rows of weight 0 and labels not observed are not in it. Its
numbers have forty digits; `Plain.rounded` is the same problem in float64, in which one can look for better points.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from exact_numbers import Wide, dot, soft_plus, wide

Array = np.ndarray[Any, Any]

REGRESSIONS = (
    "squared",
    "square-root",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
    "squared_no_half",
    "huber",
    "quantile",
)
#: ends of the slopes, and what their squares cost, as the estimators have them by default
CLIPPED = {"huber": (-1.35, 1.35, 1.0), "quantile": (-0.5, 0.5, 0.1)}


@dataclass
class Plain:
    """``factor * loss + sum_j (l1_j ||V_j||_1 + group_j ||V_j||_2) + sum_k ranks_k ||V_[k]|| + ridge/2 ||V||^2`` (or
    ``1/2 <V, K V>`` with a `coupling` K of tasks, where intercepts count, too), V = W * scales.

    Attributes
    ----------
    x : list of float64 arrays, one for each task (of a multinomial model: the same for each class)
    y : list of float64 arrays
        Targets, signs, or (multinomial, in each place) the number of the class.
    s : list of arrays
        Weights of the rows, those of tasks included.
    factor : number
        1/n_bar, 1/sqrt(n_bar) for the square-root loss, C for machines on a graph.
    free : bool array (d,)
        Features that nothing penalises, the ridge neither.
    intercept_scaling : float
        Size of the constant feature of a machine on a graph.
    named_ranks : bool
        The ranks come from a formula, which float64 knows to a few ulps only.
    """

    x: list[Array]
    y: list[Array]
    s: list[Array]
    loss: str
    factor: Any
    group: Array
    l1: Array
    ranks: Array | None = None
    ridge: Any = 0.0
    positive: bool = False
    fit_intercept: bool = True
    scales: Array | None = None
    coupling: Array | None = None
    intercept_scaling: float = 1.0
    epsilon: float = 0.0
    named_ranks: bool = False
    free: Array = field(init=False)

    def __post_init__(self) -> None:
        self.free = (self.group == 0) & (self.l1 == 0)
        if self.ranks is not None or self.coupling is not None:
            self.free = np.zeros(self.n_features, dtype=bool)

    @property
    def n_tasks(self) -> int:
        return len(self.x)

    @property
    def n_features(self) -> int:
        return int(self.x[0].shape[1])

    def scores(self, coef: Array, intercept: Array) -> list[Array]:
        """Of stored numbers, in forty digits: predictions, less the target for regressions."""
        found = []
        for x, y, w, b in zip(self.x, self.y, coef, intercept, strict=True):
            used = np.flatnonzero(w)
            found.append(dot(x[:, used], w[used]) + b - (y if self.loss in REGRESSIONS else 0.0))
        return found

    def objective(self, coef: Array, intercept: Array) -> Any:
        """At stored numbers, float64."""
        z = self.scores(coef, intercept)
        return self.loss_value(z) + self.penalty(self.scaled(wide(coef)), wide(intercept))

    def rounded(self) -> Plain:
        """In float64."""

        def rounding(value: Any) -> Any:
            if isinstance(value, list):
                return [part.astype(float) for part in value]
            return value.astype(float) if isinstance(value, np.ndarray) else float(value)

        names = ("s", "factor", "group", "l1", "ridge")
        names += tuple(name for name in ("ranks", "scales", "coupling") if getattr(self, name) is not None)
        return replace(self, **{name: rounding(getattr(self, name)) for name in names})

    def scaled(self, w: Array) -> Array:
        return w if self.scales is None else w * self.scales

    def loss_value(self, z: list[Array]) -> Any:
        return self.factor * _VALUES[self.loss](self, z)

    def loss_slopes(self, z: list[Array]) -> list[Array]:
        """Derivatives by the scores, factor included."""
        return [self.factor * slope for slope in _SLOPES[self.loss](self, z)]

    def blur(self, coef: Array, intercept: Array) -> Any:
        """What float64 sums of raw columns, 16 ulps of their sizes, can change in the loss: what an estimator may be
        wrong by where no intercept takes offsets off."""
        z = self.scores(coef, intercept)
        total = Wide(0)
        for x, w, b, y, s, slope in zip(
            self.x, coef, intercept, self.y, self.s, self.loss_slopes(z), strict=True
        ):
            size = np.abs(wide(x)) @ np.abs(wide(w)) + abs(Wide(b)) + np.abs(wide(y))
            error = 16 * Wide(2.0**-53) * size
            if self.loss == "square-root":
                total += self.factor * np.sqrt(np.sum(s * error**2))
            else:
                total += np.sum(np.abs(slope) * error) + self.factor * np.sum(s * error**2)
        return total

    def penalty(self, v: Array, intercept: Array) -> Any:
        """Of scaled coefficients (tasks x features)."""
        if self.positive and np.any(v < 0):
            return np.inf
        if self.coupling is not None:
            value = np.sum(v * (self.coupling @ v))
            if self.fit_intercept:
                b = intercept / self.intercept_scaling
                value += b @ (self.coupling @ b)
            return value / 2
        norms = np.sqrt(np.sum(v * v, axis=0))
        value = np.sum(self.group * norms) + np.sum(self.l1 * np.sum(np.abs(v), axis=0))
        if self.ranks is not None:
            value = np.sum(self.ranks * np.sort(norms)[::-1])
        return value + self.ridge / 2 * np.sum(np.where(self.free, 0.0, v * v))


def logistic_slope(m: Array) -> Array:
    """1 / (1 + exp(-m)), without overflow."""
    e = np.exp(-np.abs(m))
    return np.where(m >= 0, 1 / (1 + e), e / (1 + e))


def task_norms(p: Plain, z: list[Array]) -> Array:
    return np.array([np.sqrt(np.sum(s * r * r)) for s, r in zip(p.s, z, strict=True)])


def class_shares(z: list[Array]) -> tuple[Array, Array]:
    """log of the sum of exponentials (n,), and the probabilities (n, classes)."""
    table = np.stack(z, axis=1)
    top = table.max(axis=1)
    terms = np.exp(table - top[:, None])
    total = terms.sum(axis=1)
    return top + np.log(total), terms / total[:, None]


def _cross_entropy(p: Plain, z: list[Array]) -> Any:
    """``lse(z) - z_y`` as ``log(1 + sum of the other exponentials)``: small losses keep their digits."""
    table, code = np.stack(z, axis=1), p.y[0].astype(int)
    is_own = code[:, None] == np.arange(table.shape[1])
    own = table[is_own]
    others = table[~is_own].reshape(len(code), -1) - own[:, None]
    top = np.maximum(others.max(axis=1), 0 * own)
    total = np.exp(others - top[:, None]).sum(axis=1)
    value = np.where(top > 0, top + np.log(total + np.exp(-top)), np.log1p(total))
    return np.sum(p.s[0] * value)


def _cross_entropy_slopes(p: Plain, z: list[Array]) -> list[Array]:
    share = class_shares(z)[1]
    return [p.s[0] * (share[:, k] - (p.y[0] == k)) for k in range(len(z))]


def _per_row(value: Any) -> Any:
    return lambda p, z: sum(
        (np.sum(s * value(p, a, y)) for s, a, y in zip(p.s, z, p.y, strict=True)), 0
    )


def _slope_per_row(slope: Any) -> Any:
    return lambda p, z: [s * slope(p, a, y) for s, a, y in zip(p.s, z, p.y, strict=True)]


def _beyond(p: Plain, r: Array) -> Array:
    return np.sign(r) * np.maximum(np.abs(r) - p.epsilon, 0)


def _clipped_slope(name: str, residual: Array) -> Array:
    low, high, mu = CLIPPED[name]
    return np.clip(residual / mu, low, high)


def _clipped_value(name: str, residual: Array) -> Array:
    p = _clipped_slope(name, residual)
    return p * residual - CLIPPED[name][2] * p * p / 2


def _root_slopes(p: Plain, z: list[Array]) -> list[Array]:
    sizes = task_norms(p, z)
    return [s * r / size if size > 0 else 0 * r for s, r, size in zip(p.s, z, sizes, strict=True)]


_VALUES = {
    "squared": _per_row(lambda p, r, y: r * r / 2),
    "square-root": lambda p, z: np.sum(task_norms(p, z)),
    "logistic": _per_row(lambda p, z, y: soft_plus(-y * z)),
    "multinomial": _cross_entropy,
    "hinge": _per_row(lambda p, z, y: np.maximum(1 - y * z, 0)),
    "squared_hinge": _per_row(lambda p, z, y: np.maximum(1 - y * z, 0) ** 2),
    "epsilon_insensitive": _per_row(lambda p, r, y: np.abs(_beyond(p, r))),
    "squared_epsilon_insensitive": _per_row(lambda p, r, y: _beyond(p, r) ** 2),
    "squared_no_half": _per_row(lambda p, r, y: r * r),
    "huber": _per_row(lambda p, r, y: _clipped_value("huber", -r)),
    "quantile": _per_row(lambda p, r, y: _clipped_value("quantile", -r)),
}
_SLOPES = {
    "squared": _slope_per_row(lambda p, r, y: r),
    "square-root": _root_slopes,
    "logistic": _slope_per_row(lambda p, z, y: -y * logistic_slope(-y * z)),
    "multinomial": _cross_entropy_slopes,
    "hinge": _slope_per_row(lambda p, z, y: -y * (y * z < 1)),
    "squared_hinge": _slope_per_row(lambda p, z, y: -2 * y * np.maximum(1 - y * z, 0)),
    "epsilon_insensitive": _slope_per_row(lambda p, r, y: np.sign(_beyond(p, r))),
    "squared_epsilon_insensitive": _slope_per_row(lambda p, r, y: 2 * _beyond(p, r)),
    "squared_no_half": _slope_per_row(lambda p, r, y: 2 * r),
    "huber": _slope_per_row(lambda p, r, y: -_clipped_slope("huber", -r)),
    "quantile": _slope_per_row(lambda p, r, y: -_clipped_slope("quantile", -r)),
}


# --- numbers that the contract defines by a formula ----------------------------------------------------------------


def oscar(d: int, ratio: float) -> Array:
    falling = 1 + Wide(ratio) * wide(np.arange(d - 1, -1, -1)) / d
    return falling / falling[0]


def slope(d: int, fdr: float) -> Array:
    levels = [max(-NormalDist().inv_cdf(fdr * k / (2 * d)), 0.0) for k in range(1, d + 1)]
    return wide(levels) / Wide(levels[0])


def deviations(x: list[Array], s: list[Array]) -> Array:
    """Weighted standard deviations, tasks x features; 1 for a constant column."""
    rows = []
    for block, weights in zip(x, s, strict=True):
        centred = wide(block) - wide(block[0])  # exact enough to leave no offset behind
        mean = weights @ centred / np.sum(weights)
        deviation = np.sqrt(weights @ (centred - mean) ** 2 / np.sum(weights))
        constant = np.all(block == block[0], axis=0)
        rows.append(np.where(constant, Wide(1), deviation))
    return np.array(rows)
