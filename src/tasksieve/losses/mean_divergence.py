r"""Losses that are divergences of means: Poisson, gamma, Tweedie, negative binomial.

    f(y, z) = sum_j KL(label_j || m_j(z))/k_j,        KL(a || b) = a log(a/b) - a + b,

up to a constant of the labels. A dual point has means M_j in place of the labels, and what a row adds to a gap is
``sum_j KL(M_j || m_j)/k_j``: nothing cancels in it.

Such a loss need not be smooth, its derivative may grow as fast as itself; yet every gap bounds the dual optimum. With M
the means of a feasible dual point, m those of the primal point and M* those of the optimum, Fenchel's inequality says

    sum_i s_i KL(M_i || M_i*) + sum_i s_i KL(M_i* || m_i)  <=  k G                                             (*)

for each part, and with ``KL(a||b) >= (a - b)^2/(2 (a + 2/3 (b - a)_+))`` and
``KL(b||a) >= (a - b)^2/(2 (a + 1/3 (b - a)_+))`` each half alone says, for ``g = k G/s_i``, how large a fitted mean can
be at the optimum:

    M_i* <= Q_i = min( M + 2g/3 + sqrt(4g^2/9 + 2gM),  m + g/3 + sqrt(g^2/9 + 2gm) ).

So with ``kappa_i = max(M + 2/3 (Q - M)_+, m + 1/3 (Q - m)_+)`` both halves together are an ellipsoid around the
midpoint of the two slopes. Of several parts: the slope is a difference of means that move freely, so that Cauchy and
Schwarz add up ``k_j kappa_j``; or means whose sum is fixed, one of which falls by what the other gains: then the
inverses add up (`MeanDivergence._together` says which).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..design import Design
from .base import UNIT, DataLoss, Evaluation, gamma
from .divergence import divergence, exp, poisson_metric, relative_divergence
from .rowwise import RowLoss, RowLossOnData

Array = np.ndarray[Any, Any]


class MeanDivergence(RowLoss):
    """The family: a member says its means at a prediction and at a dual point."""

    estimates = True
    smoothness = np.inf
    differentiable = True

    @property
    def _shares(self) -> tuple[float, ...]:
        """k_j; the means are powers k_j of e^z or e^-z where they move freely."""
        return (1.0,)

    def _log_means(self, y: Array, z: Array) -> tuple[tuple[Array, Array | float], ...]:
        """By part: log m_j, and the size of the numbers of which it was made, for their rounding."""
        raise NotImplementedError

    def _dual_means(self, y: Array, p: Array) -> tuple[Array, ...]:
        """By part: M_j of the slope p."""
        raise NotImplementedError

    def _labels_as_means(self, y: Array) -> tuple[Array, ...]:
        """By part: the means of a perfect fit, whose slope is 0."""
        return self._dual_means(y, np.zeros(np.shape(y)))

    def _largest_means(self, y: Array) -> tuple[Array | float, ...]:
        """By part: what no mean exceeds."""
        return (np.inf,) * len(self._shares)

    def _largest_curvature(self, y: Array) -> Array | float:
        """What the second derivative never exceeds."""
        return np.inf

    def _together(self, means: Sequence[Array]) -> Array:
        """The second derivative made of means; or, of their metrics, the metric of the slope."""
        return np.asarray(sum(share * mean for share, mean in zip(self._shares, means, strict=True)))

    def value(self, y: Array, z: Array) -> Array:
        parts = zip(self._shares, self._labels_as_means(y), self._log_means(y, z), strict=True)
        return np.asarray(sum(divergence(label, log) / share for share, label, (log, _) in parts))

    def curvature(self, y: Array, z: Array) -> Array:
        return self._together([exp(log) for log, _ in self._log_means(y, z)])

    def _steepest(self, y: Array, z: Array, away: Array) -> Array:
        """The largest second derivative at predictions up to `away` from z."""
        logs = self._log_means(y, z)
        grown = [exp(log + share * away) for share, (log, _) in zip(self._shares, logs, strict=True)]
        return np.minimum(self._together(grown), self._largest_curvature(y))

    def excess(self, y: Array, z: Array, p: Array) -> tuple[Array, Array]:
        """``sum_j KL(M_j || m_j)/k_j``. Where both means are near each other, by what one is more than the other: so no
        more is lost than digits of that difference."""
        found = sizes = np.zeros(np.broadcast_shapes(np.shape(y), np.shape(z)))
        parts = zip(self._shares, self._dual_means(y, p), self._log_means(y, z), strict=True)
        for share, dual, (log, made_of) in parts:
            primal, lost = exp(log), 1.0 + made_of
            with np.errstate(invalid="ignore"):
                near = np.abs(dual - primal) <= 0.5 * primal
            away = np.where(near, dual - primal, 0.0)
            x = np.divide(away, primal, out=np.zeros_like(away), where=near & (primal > 0.0))
            value = primal * relative_divergence(x)
            size = np.abs(away) * lost + UNIT * np.where(near, primal, 0.0) * lost * lost
            if not near.all():
                logs = np.abs(np.log(np.maximum(dual, 1e-300))) + np.where(np.isfinite(log), np.abs(log), 0.0)
                value = np.where(near, value, divergence(dual, log))
                size = np.where(near, size, dual * (logs + lost) + primal * lost)
            found, sizes = found + value / share, sizes + size / share
        return found, sizes

    def rooms(self, y: Array, p: Array) -> tuple[Array, Array]:
        """Means may go down to zero, and up to twice what they are."""
        room = self._together(self._dual_means(y, p))
        return room, room

    def deviance(self, y: Array, z: Array) -> Array:
        return 2.0 * self.value(y, z)

    def sizes(self, y: Array) -> Array:
        return np.asarray(sum(mean / share for share, mean in zip(self._shares, self._labels_as_means(y), strict=True)))

    def link(self, z: Array) -> Array:
        """The mean."""
        return exp(z)

    def best_constant(self, y: Array, weights: Array) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(np.average(y, weights=weights)))

    def on(self, design: Design, y: Array, offset: Array | None = None) -> DataLoss:
        return MeanDivergenceOnData(self, design, y, offset)


def nothing_counted(y: Array, weights: Array, design: Design) -> Array:
    """-1 for tasks whose labels are all 0, so that their best intercept is minus infinity; 0 for the others."""
    return np.where(design.task_sums(weights * y) == 0.0, -1.0, 0.0)


def log_ratio(design: Design, weights: Array, above: Array, below: Array) -> Array:
    """By task: ``log(sum s e^above / sum s e^below)``, 0 where there is none."""
    with np.errstate(invalid="ignore"):  # of a task without rows both are minus infinity
        found = _log_sums(design, weights, above) - _log_sums(design, weights, below)
    return np.where(np.isfinite(found), found, 0.0)


def _log_sums(design: Design, weights: Array, logs: Array) -> Array:
    top = np.maximum.reduceat(np.where(weights > 0.0, logs, -np.inf), design.offsets[:-1])
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return top + np.log(design.task_sums(weights * np.exp(np.minimum(logs - design.per_sample(top), 0.0))))


class MeanDivergenceOnData(RowLossOnData):
    """A member of the family on data."""

    of: MeanDivergence

    def __init__(self, loss: MeanDivergence, design: Design, y: Array, offset: Array | None = None) -> None:
        if design.weights is not None:
            y = np.where(design.weights > 0.0, y, 1.0)  # what stands for a label that is not there need not be one
        super().__init__(loss, design, y, offset)
        # what sums over rows are made of, for what rounding may take from them
        assert self.null.margin is not None
        made_of = np.abs(loss.constant(y)) + loss.excess(y, self.null.margin, np.zeros(len(y)))[1]
        self._sizes = float(self._weights @ made_of)
        if self.null.value <= gamma(64) * self._sizes:  # the same in all rows of a task: nothing to explain
            nothing = np.zeros(design.n_samples)
            self.null = self.settled(replace(self.null, residual=nothing, slope=nothing))

    def least_goal(self) -> float:
        """Rounding, and what tasks that count nothing cost at an intercept that is kept finite."""
        if self.null.residual.any():
            return 0.0
        return 8.0 * gamma(64) * self._sizes + 2e-13 * float(self._weights.sum()) / min(self.of._shares)

    def summed_error(self) -> float:
        return gamma(16) * self._sizes

    def objective_error(self, at: Evaluation, error: Array) -> float:
        return super().objective_error(at, error) + self.summed_error()

    @property
    def size(self) -> float:
        return float(np.sqrt(self._weights.sum()))

    def floored_gap(self, gap: float) -> float:
        return gap + gamma(64) * self._sizes

    def beyond_tangent(self, z: Array, error: Array) -> Array:
        """By the largest second derivative of any sample on the way from z to a score that is off."""
        moved, away = np.sum(np.square(error), axis=-1), self.design.per_sample(error) * self._inverse_root
        with np.errstate(over="ignore", invalid="ignore"):
            bends = np.where((self._weights > 0.0) & (away > 0.0), self.of._steepest(self._y, z, away), 0.0)
            return np.where(moved > 0.0, 0.5 * np.max(bends, axis=-1, initial=0.0) * moved, 0.0)

    def metric(self, at: Evaluation, scale: float, gap: float) -> Array:
        """``kappa`` of the module's docstring."""
        loss, y, s = self.of, self._y, self._weights
        assert at.margin is not None
        duals = loss._dual_means(y, self.inside_domain(scale * at.residual * self._inverse_root))
        logs = loss._log_means(y, at.margin)
        with np.errstate(invalid="ignore"):
            found = [
                poisson_metric(s * dual, s * exp(log), share * gap, np.where(s > 0.0, s * most, 0.0))
                for share, dual, (log, _), most in zip(loss._shares, duals, logs, loss._largest_means(y), strict=True)
            ]
            weighted = np.minimum(loss._together(found), np.where(s > 0.0, s * loss._largest_curvature(y), 0.0))
        return weighted * np.square(self._inverse_root)
