"""Losses whose slope is a clipped residual: Huber's, the smoothed quantile loss, the hinges.

    f(y, z) = max { p (y - z) - mu p^2/2 : low <= p <= high },      slope p = clip((y - z)/mu, low, high).

A dual optimum of such a loss is a projection: of y/mu on the dual set and the box of the slopes. So it is the squared
loss with one more unknown a row, an outlier ``q = (y - z) - mu p`` that costs ``max(low q, high q)``, and the cut ball
of the squared loss (`screening.dpc`) holds for all of them.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design import Design
from .base import UNIT, DataLoss, Evaluation, check_positive, gamma
from .rowwise import RowLoss, RowLossOnData
from .tensor_formulas import CLIPPED, TensorFormula

Array = np.ndarray[Any, Any]

_NEWTON_STEPS = 3  # from a guess, before corners are sorted


class Clipped(RowLoss):
    """The family: a member defines its `mu` and, as `domain`, the ends of its slopes. With mu = 0 it has a kink."""

    @property
    def mu(self) -> float:
        """How much a slope costs: the inverse of the smoothness."""
        return 1.0

    @property
    def tensor_formula(self) -> TensorFormula | None:  # type: ignore[override]
        return CLIPPED if self.mu > 0.0 else None

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        return 1.0 / self.mu if self.mu else np.inf

    def value(self, y: Array, z: Array) -> Array:
        residual, p = y - z, self.slope(y, z)
        return np.asarray(p * residual - 0.5 * self.mu * p * p)

    def slope(self, y: Array, z: Array) -> Array:
        low, high = self.domain(y)
        if self.mu == 0.0:
            return np.where(y > z, high, np.where(y < z, low, 0.0))
        return np.clip((y - z) / self.mu, low, high)

    def conjugate(self, y: Array, p: Array) -> Array:
        low, high = self.domain(y)
        return np.where((p >= low) & (p <= high), 0.5 * self.mu * p * p - p * y, np.inf)

    def curvature(self, y: Array, z: Array) -> Array:
        """Of a parabola that touches the loss at z and lies above it.

        Between finite ends the loss is, but for a linear term, an even function of ``y - z - mu (low + high)/2`` that
        is concave in the square of it: ``min(1/mu, (high - low)/2 / |.|)`` will do.
        """
        if self.mu == 0.0:
            return np.zeros(np.shape(y - z))
        low, high = self.domain(y)
        half = 0.5 * np.subtract(high, low)
        bounded = np.isfinite(half)
        with np.errstate(invalid="ignore"):
            away = np.abs(y - z - 0.5 * self.mu * np.add(low, high))
            found = np.where(bounded, half / np.maximum(away, self.mu * half), self.smoothness)
        return np.asarray(found)

    def second(self, y: Array, z: Array) -> Array | None:
        if self.mu == 0.0:
            return None
        low, high = self.domain(y)
        raw = (y - z) / self.mu
        return np.where((raw > low) & (raw < high), self.smoothness, 0.0)

    def excess(self, y: Array, z: Array, p: Array) -> tuple[Array, Array]:
        """``mu [1/2 (p' - p)^2 + (p' - p) (residual/mu - p')]`` with p' the slope at z: nothing cancels."""
        if self.mu == 0.0:
            return super().excess(y, z, p)
        low, high = self.domain(y)
        raw = (y - z) / self.mu
        own = np.clip(raw, low, high)
        away = own - p
        outside = (p < low) | (p > high)
        found = np.where(outside, np.inf, self.mu * (0.5 * away * away + away * (raw - own)))
        sizes = self.mu * (np.abs(own) + np.abs(p)) * (np.abs(raw - own) + np.abs(away))
        return found, sizes + np.abs(away) * (np.abs(y) + np.abs(z))

    def intercepts(self, y: Array, z: Array, weights: Array, design: Design, guess: Array | None) -> Array | None:
        """Roots of decreasing, piecewise linear functions: by their corners, unless the guess is a few steps of
        Newton's method away."""
        if self.mu == 0.0:  # a kink: the function jumps
            return None
        residual = y - z
        at_least, at_most = (_extremes(residual, weights, design, kind) for kind in (np.minimum, np.maximum))
        low, high = self.domain(y)
        b = np.full(design.n_tasks, np.nan) if guess is None else np.clip(guess, at_least, at_most)
        for count in range(100):
            if count == (0 if guess is None else _NEWTON_STEPS):
                b = np.clip(self._corner_roots(residual, low, high, weights, design), at_least, at_most)
            raw = (residual - design.per_sample(b)) / self.mu
            p = np.clip(raw, low, high)
            pull, size = design.task_sums(weights * p), design.task_sums(weights * np.abs(p))
            steep = design.task_sums(weights * ((raw >= low) & (raw <= high))) / self.mu
            open_ = np.abs(pull) > 4e-16 * (size + steep * np.abs(b))
            if not open_.any():
                break
            at_least, at_most = np.where(pull > 0.0, b, at_least), np.where(pull < 0.0, b, at_most)
            following = b + np.divide(pull, steep, out=np.full_like(pull, np.inf), where=steep > 0.0)
            inside = (following > at_least) & (following < at_most)
            following = np.where(open_, np.where(inside, following, 0.5 * (at_least + at_most)), b)
            if np.array_equal(following, b):
                break
            b = following
        return b

    def _corner_roots(self, residual: Array, low: Any, high: Any, weights: Array, design: Design) -> Array:
        """Where the pull ``A - B b`` of each task, whose A and B change at corners, falls to zero: up to rounding."""
        n, slope = len(residual), weights / self.mu
        low, high = np.broadcast_to(low, n), np.broadcast_to(high, n)
        ends, inner = np.concatenate([high, low]), np.tile(slope * residual, 2)
        corners = np.tile(residual, 2) - self.mu * ends
        signs, finite = np.repeat([1.0, -1.0], n), np.isfinite(ends)
        outer = np.where(finite, np.tile(weights, 2) * np.where(finite, ends, 0.0), 0.0)
        a_steps = np.where(finite, signs * (inner - outer), 0.0)
        b_steps = np.where(finite, signs * np.tile(slope, 2), 0.0)
        # left of all corners every slope is at its upper end, or linear where that has none
        a_first = design.task_sums(np.where(np.isfinite(high), outer[:n], inner[:n]))
        b_first = design.task_sums(np.where(np.isfinite(high), 0.0, slope))
        task = np.tile(np.repeat(np.arange(design.n_tasks), np.diff(design.offsets)), 2)
        order = np.lexsort((corners, task))
        starts = 2 * design.offsets[:-1]
        task, corners = task[order], corners[order]
        a, b = np.cumsum(a_steps[order]), np.cumsum(b_steps[order])
        a_before, b_before = a - a_steps[order], b - b_steps[order]
        a_before += (a_first - a_before[starts])[task]
        b_before += (b_first - b_before[starts])[task]
        live = np.isfinite(corners)
        with np.errstate(invalid="ignore", divide="ignore"):
            down = live & (a_before - b_before * corners <= 0.0)
            first = np.minimum.reduceat(np.where(down, np.arange(2 * n), 2 * n), starts)
            found = np.minimum(first, 2 * design.offsets[1:] - 1)
            root = a_before[found] / b_before[found]
        return np.where(np.isfinite(root), root, np.where(np.isfinite(corners[found]), corners[found], 0.0))

    def on(self, design: Design, y: Array, offset: Array | None = None) -> DataLoss:
        return ClippedOnData(self, design, y, offset) if self.mu else super().on(design, y, offset)


def _extremes(values: Array, weights: Array, design: Design, kind: Any) -> Array:
    """Smallest or largest value of each task among its rows with a weight."""
    worst = np.inf if kind is np.minimum else -np.inf
    found = kind.reduceat(np.where(weights > 0.0, values, worst), design.offsets[:-1])
    return np.where(np.isfinite(found), found, 0.0)


class _Ends(Clipped):
    """With given ends, an entry a row."""

    def __init__(self, mu: float, low: Any, high: Any) -> None:
        self._mu, self._ends = mu, (low, high)

    @property
    def mu(self) -> float:
        return self._mu

    def domain(self, y: Array) -> tuple[Any, Any]:
        return self._ends


class ClippedOnData(RowLossOnData):
    """A smooth member of the family on data."""

    of: Clipped
    clipped = True
    has_dual_step = True

    def __init__(self, loss: Clipped, design: Design, y: Array, offset: Array | None = None) -> None:
        super().__init__(loss, design, y, offset)
        rest = self._y if self._offset is None else self._y - self._offset
        self.target = design.project(self._root * rest / loss.mu)

    def wider(self, at: Evaluation, share: float) -> float:
        """How much more smoothing puts the corners a share of the median residual apart."""
        low, high = (np.broadcast_to(end, self._y.shape) for end in self.of.domain(self._y))
        apart = np.subtract(high, low)
        apart = float(np.median(apart[np.isfinite(apart)])) if np.isfinite(apart).any() else 1.0
        assert at.margin is not None
        left = float(np.median(np.abs(self._y - at.margin)))
        return max(share * left / apart - self.of.mu, self.of.mu)

    def centred_at(self, centre: Array, extra: float) -> ClippedOnData:
        """The loss with ``-extra/2 (u - centre)^2`` in the maximum over the slopes u of each row, less a constant: more
        smoothing, and other labels. Its slopes are dual points of this loss."""
        other = copy(self)
        low, high = self.of.domain(self._y)
        other.of = _Ends(self.of.mu + extra, low, high)
        other.smoothness = 1.0 / (self.of.mu + extra)
        other._y = self._y + extra * centre * self._inverse_root
        other.target = None  # type: ignore[assignment]  # of certificates only
        return other

    def free_residual(self, at: Evaluation) -> Array:
        assert at.margin is not None
        return np.asarray(self._root * (self._y - at.margin))

    def dual_step(self, pulled: Array, step: Array) -> tuple[Array, Array, Array | None]:
        """The slope at the prox is a clipped residual again, that of the loss with `step` more smoothing."""
        step = self.design.per_sample(step)
        low, high = self.of.domain(self._y)
        raw = pulled / (self.of.mu + step)
        with np.errstate(invalid="ignore"):  # a weight of zero, an infinite end
            u = np.where(self._root > 0.0, np.clip(raw, self._root * low, self._root * high), 0.0)
        return pulled - step * u, np.where(u == raw, self.of.mu / (self.of.mu + step), 1.0), None

    def best_scale(self, at: Evaluation, product: float, limit: float) -> float:
        """The dual value is a parabola in the scale; slopes must stay between their ends."""
        z, p = at.margin, at.residual * self._inverse_root
        assert z is not None
        square = self.of.mu * float(at.residual @ at.residual)
        if square == 0.0:
            return max(min(1.0, limit), 0.0)
        outlying = float(self._weights @ (p * (self._y - z - self.of.mu * p)))
        best = 1.0 + (max(outlying, 0.0) + product) / square
        return max(min(best, limit, max(self._room(at, p), 1.0)), 0.0)

    def _room(self, at: Evaluation, p: Array) -> float:
        """The largest factor that keeps every place where the exact dual point may be between the ends."""
        low, high = self.of.domain(self._y)
        down, up = self.rooms(p)
        tilt = self.design.per_sample(at.tilt) if at.tilt is not None else 1e-9
        up, down = p + tilt * up + 8.0 * UNIT * np.abs(p), p - tilt * down - 8.0 * UNIT * np.abs(p)
        with np.errstate(invalid="ignore", divide="ignore"):
            rooms = np.where(up > 0.0, high / up, np.inf), np.where(down < 0.0, low / down, np.inf)
        live = self._weights > 0.0
        return min(float(np.min(room[live], initial=np.inf)) for room in rooms) * (1.0 - 4.0 * UNIT)

    def outliers(self, at: Evaluation) -> tuple[float, float]:
        """What the outliers ``q = (y - z) - mu p`` of a point cost at most, and the norm of what they do not explain.

        Where a slope has no end, an outlier on that side costs infinity: what rounding has left there is returned
        as the second number.
        """
        z, p = at.margin, at.residual * self._inverse_root
        assert z is not None
        q = self._y - z - self.of.mu * p
        low, high = (np.broadcast_to(end, q.shape) for end in self.of.domain(self._y))
        lost = ((q > 0.0) & np.isinf(high)) | ((q < 0.0) & np.isinf(low))
        kept = np.where(lost, 0.0, q)
        with np.errstate(invalid="ignore"):
            costs = np.where(kept > 0.0, kept * high, np.where(kept < 0.0, kept * low, 0.0))
        rounding = gamma(8) * self._root * (np.abs(self._y) + np.abs(z) + self.of.mu * np.abs(p))
        unexplained = np.linalg.norm(self._root * np.where(lost, q, 0.0)) + np.linalg.norm(rounding)
        return float(self._weights @ costs) * (1.0 + gamma(len(q) + 16)), float(unexplained)


@dataclass(frozen=True)
class Huber(Clipped):
    r"""Squared up to a residual of `delta`, linear beyond: labels that went wrong do not decide.

    .. math:: f(y, z) = \tfrac12 r^2 \text{ for } |r| \le \delta, \quad \delta |r| - \tfrac12 \delta^2 \text{ beyond},
        \qquad r = y - z

    Conjugate :math:`p^2/2 - p y` for :math:`|p| \le \delta`; smoothness 1.

    Parameters
    ----------
    delta : float, default=1.35
        In units of y: there is no estimate of scale in it.

    Examples
    --------
    >>> import tasksieve as ts
    >>> ts.losses.Huber(delta=1.0).value(0.0, 3.0)
    array(2.5)
    """

    label = "Huber loss"
    formula = "1/n̄ Σ_t Σ_i h(y_i − x_i·w_t − b_t), h Huber's loss,"
    estimates = True
    translates = True

    delta: float = 1.35

    def __post_init__(self) -> None:
        check_positive(self.delta, "delta")

    def domain(self, y: Array) -> tuple[float, float]:
        return -self.delta, self.delta

    def certificate_form(self) -> dict[str, Any]:
        delta = float(self.delta)
        return {"name": "clipped", "mu": 1.0, "low": -delta, "high": delta, "labels": "numbers"}


@dataclass(frozen=True)
class Quantile(Clipped):
    r"""The pinball loss of a quantile, its kink rounded over `smoothing`.

    .. math:: f(y, z) = \max_{q - 1 \le p \le q} p (y - z) - \tfrac{\mu}{2} p^2, \qquad \mu = \text{smoothing}

    At most :math:`\mu \max(q, 1-q)^2/2` below the pinball loss :math:`\max(q r, (q - 1) r)`. Conjugate
    :math:`\mu p^2/2 - p y` for p in [q - 1, q]; smoothness :math:`1/\mu`.

    Parameters
    ----------
    q : float, default=0.5
        The quantile, between 0 and 1.
    smoothing : float, default=0.1
        :math:`\mu > 0`, part of the objective. The slope goes from q - 1 to q while the residual goes from
        ``-smoothing (1 - q)`` to ``smoothing q``, in units of y.

    Examples
    --------
    >>> import tasksieve as ts
    >>> loss = ts.losses.Quantile(q=0.9, smoothing=0.1)
    >>> round(float(loss.deviance(2.0, 0.0)), 2), round(float(loss.deviance(0.0, 2.0)), 2)  # the pinball loss itself
    (1.8, 0.2)
    """

    label = "pinball loss"
    formula = "1/n̄ Σ_t Σ_i ρ(y_i − x_i·w_t − b_t), ρ the smoothed pinball loss,"
    translates = True

    q: float = 0.5
    smoothing: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 < self.q < 1.0:
            raise ValueError(f"q must be a number between 0 and 1; got {self.q!r}.")
        if not 0.0 < self.smoothing < np.inf:
            raise ValueError(
                f"smoothing must be a positive number; got {self.smoothing!r}. The pinball loss itself has a kink and "
                "allows no safe test; a small smoothing comes as near to it as you like."
            )

    @property
    def mu(self) -> float:
        return self.smoothing

    def domain(self, y: Array) -> tuple[float, float]:
        return self.q - 1.0, self.q

    def certificate_form(self) -> dict[str, Any]:
        q, mu = float(self.q), float(self.smoothing)
        return {"name": "clipped", "mu": mu, "low": q - 1.0, "high": q, "labels": "numbers"}

    def deviance(self, y: Array, z: Array) -> Array:
        """The pinball loss, not smoothed."""
        residual = y - z
        return np.maximum(self.q * residual, (self.q - 1.0) * residual)

    def best_constant(self, y: Array, weights: Array) -> float:
        """The quantile of the labels."""
        order = np.argsort(y, kind="stable")
        below = np.cumsum(weights[order])
        return float(y[order][np.searchsorted(below, self.q * below[-1] * (1.0 - 1e-12))])
