"""The square-root loss of the calibrated model, and where its dual optimum can be.

For *any* W with residuals ``r_t = y_t - X_t w_t`` and a gap G at least ``P(W) - P*``,

    sum_t ||r_t||/2 ||u_t* - r_t/||r_t|| ||^2  <=  P(W) - P*  <=  G,                                        (*)

for every dual optimum u*. Proof: with Omega the penalty (ridge included), ``D(u*) = <u*, y> - Omega*(X'u*)`` and
Fenchel's inequality ``Omega(W) + Omega*(X'u*) >= <X'u*, W>``,

    P(W) - P* = P(W) - D(u*) >= sum_t ( ||r_t|| - <u_t*, r_t> ),

and ``1 - <u, v> >= ||u - v||^2/2`` for ``||u|| <= 1 = ||v||``. So the u_t* lie in an ellipsoid with half-axes
``sqrt(2 G/||r_t||)`` around the directions of the residuals. Nothing but (*) is used: neither a ridge (the published
models are strongly convex, this needs no strong convexity), nor a lower bound on the residuals of the optimum, nor
that the pair is anywhere near it. A task that is fitted so well that (*) says less than ``||u_t*|| <= 1`` is bounded by
that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import Design
from ..screening.state import Ball
from .base import DataLoss, Evaluation, Loss
from .squared import TargetLoss

Array = np.ndarray[Any, Any]


class SquareRoot(Loss):
    """``sum_t ||y_t - z_t||``, the calibrated loss: a norm for each task, so that tasks may differ in noise.

    Conjugate ``<v, y>`` where every ``||v_t|| <= 1``. Minus the gradient is the *direction* of each task's residual;
    where a task is fitted exactly any vector of the unit ball is, and zero stands for them here. The scale of
    y_t cancels in the direction: that is why the right amount of shrinkage does not depend on the noise.
    """

    label = "root mean squared error"
    rooted = True

    def deviance(self, y: Array, z: Array) -> Array:
        return np.square(y - z)

    def unit(self, mean_rows: float) -> float:
        return float(np.sqrt(mean_rows))

    def row_weights(self, samples: Array, tasks: Array) -> Array:
        """``v ||sqrt(s) r|| = ||sqrt(v^2 s) r||``."""
        return samples * np.square(tasks)

    def on(self, design: Design, y: Array) -> DataLoss:
        return TaskNorms(design, y)


class TaskNorms(TargetLoss):
    """`SquareRoot` on data. `Evaluation.margin` is the residual itself, `Evaluation.residual` the dual point."""

    name = "square-root"

    def sizes(self, vector: Array) -> Array:
        """The norm of a flat vector in each task."""
        return np.sqrt(self.design.task_sums(vector * vector))

    def task_products(self, first: Array, second: Array) -> Array:
        """Inner product of two flat vectors in each task."""
        return self.design.task_sums(first * second)

    def scaled(self, vector: Array, factors: Array) -> Array:
        """A flat vector, each task multiplied by its factor."""
        return vector * self.design.per_sample(factors)

    def project(self, vector: Array) -> Array:
        """The part of a flat vector that intercepts and unpenalised features cannot explain."""
        return self.design.project(vector)

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        residual = self.target - z
        sizes = self.sizes(residual)
        inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)
        direction = self.scaled(residual, inverse)
        return Evaluation(float(sizes.sum()), direction, self._nuisance, margin=residual)

    def value_at(self, raw: Array) -> float:
        return float(self.sizes(self._weighted_residual(raw)).sum())

    def terms(self, at: Evaluation, scale: float) -> float:
        # ||r_t|| - k <u_t, r_t> >= 0: written so that nothing cancels where u is the direction of r
        assert at.margin is not None
        products = self.task_products(at.residual, at.margin)
        return float(np.sum(np.maximum(self.sizes(at.margin) - scale * products, 0.0)))

    def ball(self, at: Evaluation, scale: float, gap: float) -> Ball | None:
        """The ellipsoid of (*); None where no task is bounded by it."""
        sizes = self.residual_norms(at)
        gap = self.floored(gap)
        bounded = 2.0 * gap < sizes
        if not bounded.any():
            return None
        inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=bounded)
        # Unbounded tasks take no part in the ellipsoid: their half-axis is nothing beside the others'.
        stretch = np.where(bounded, np.sqrt(inverse), 1e-6 * np.sqrt(inverse[bounded].min()))
        slack = np.where(bounded, 0.0, 1.0)
        assert at.margin is not None
        return Ball(float(np.sqrt(2.0 * gap)), vector=self.scaled(at.margin, inverse), stretch=stretch, slack=slack)

    def residual_norms(self, at: Evaluation) -> Array:
        assert at.margin is not None
        return self.sizes(at.margin)
