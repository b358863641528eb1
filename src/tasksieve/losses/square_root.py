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
from ..messages import Message, either
from ..screening.state import Ball
from .base import UNIT, DataLoss, Evaluation, Loss, gamma
from .squared import TargetLoss

Array = np.ndarray[Any, Any]

_FITTED = 1e-9  # of the loss: what a task is that is fitted exactly


class SquareRoot(Loss):
    """``sum_t ||y_t - z_t||``, the calibrated loss: a norm for each task, so that tasks may differ in noise.

    Conjugate ``<v, y>`` where every ``||v_t|| <= 1``. Minus the gradient is the *direction* of each task's residual;
    where a task is fitted exactly any vector of the unit ball is, and zero stands for them here. The scale of
    y_t cancels in the direction: that is why the right amount of shrinkage does not depend on the noise.
    """

    label = "root mean squared error"
    formula = "1/√n̄ Σ_t ‖y_t − X_t w_t − b_t‖₂"
    estimates = True
    degree = 1
    rooted = True
    alone = Message(
        "The square-root loss estimates the noise of its own tasks and has no common dual point with other losses: "
        "take 'squared' (whose responses are divided by their standard deviations) beside others, or {model} for all "
        "tasks.",
        model=either("CalibratedMultiTaskLasso", "--model calibrated"),
    )

    def deviance(self, y: Array, z: Array) -> Array:
        return np.square(y - z)

    def unit(self, mean_rows: float) -> float:
        return float(np.sqrt(mean_rows))

    def row_weights(self, samples: Array, tasks: Array) -> Array:
        """``v ||sqrt(s) r|| = ||sqrt(v^2 s) r||``."""
        return samples * np.square(tasks)

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "square-root"}

    def on(self, design: Design, y: Array, offset: Array | None = None) -> DataLoss:
        return TaskNorms(design, y, offset)


class TaskNorms(TargetLoss):
    """`SquareRoot` on data. `Evaluation.margin` is the residual itself, `Evaluation.residual` the dual point."""

    name = "square-root"
    least_curvature = 0.0
    differentiable = True  # but where a task is fitted exactly: steps are measured

    def least_goal(self) -> float:
        """The same in units of y, as this loss is."""
        weights = np.ones(self.design.n_samples) if self.design.weights is None else self.design.weights
        last = gamma(8) * float(np.sqrt(self.design.task_sums(weights)) @ np.abs(self.shift))
        return last if self.null.value <= last else 0.0

    def sizes(self, vector: Array) -> Array:
        """The norm of a flat vector in each task."""
        return np.sqrt(self.design.task_sums(vector * vector))

    def task_products(self, first: Array, second: Array) -> Array:
        """Inner product of two flat vectors in each task."""
        return self.design.task_sums(first * second)

    def scaled(self, vector: Array, factors: Array) -> Array:
        """A flat vector, each task multiplied by its factor."""
        return vector * self.design.per_sample(factors)

    has_dual_step = True

    def free_residual(self, at: Evaluation) -> Array:
        assert at.margin is not None
        return np.asarray(at.margin)

    def dual_step(self, pulled: Array, step: Array) -> tuple[Array, Array, Array | None]:
        """Residuals are shortened by the step, task by task: nothing is left of those that are no longer."""
        sizes = np.maximum(self.sizes(pulled), 1e-300)
        kept = np.maximum(1.0 - step / sizes, 0.0)
        along = np.sqrt(np.where(kept > 0.0, 1.0 - kept, 0.0)) / sizes
        return self.scaled(pulled, kept), self.design.per_sample(kept), self.scaled(pulled, along)

    def inside(self, residual: Array) -> Array:
        """The nearest dual point."""
        return self.scaled(residual, 1.0 / np.maximum(self.sizes(residual), 1.0))

    def project(self, vector: Array) -> Array:
        """The part of a flat vector that intercepts and unpenalised features cannot explain."""
        return self.design.project(vector)

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        residual = self.target - z
        sizes = self.sizes(residual)
        inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)
        direction = self.scaled(residual, inverse)
        # ||r|| <= ||r||^2/(2 size) + size/2: a quadratic above the loss, for solvers that make models of it
        steep = 1.0 / np.maximum(sizes, max(_FITTED * float(sizes.sum()), 1e-290))
        return Evaluation(
            float(sizes.sum()), direction, self._nuisance, self.design.per_sample(steep), margin=residual
        )

    def at_scores(self, raw: Array) -> Evaluation:
        residual = self._weighted_residual(raw)
        sizes = np.sqrt(self.design.exact_products(residual, residual))
        inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)
        return Evaluation(float(sizes.sum()), self.scaled(residual, inverse), self._nuisance, margin=residual)

    def best_scale(self, at: Evaluation, product: float, limit: float) -> float:
        """At most 1, and no task's dual point longer than 1, rounding included."""
        longest = float(np.max(self.sizes(at.residual), initial=0.0)) * (1.0 + gamma(len(at.residual) + 16))
        return max(min(1.0, limit, 1.0 / longest if longest > 0.0 else 1.0), 0.0)

    def young(self, primal: Evaluation, error: Array, dual: Evaluation, scale: float) -> float:
        """``sum_t ||r_t|| - <u_t, r_t>``.

        Its derivative in r is ``r/||r|| - u``, small near the optimum, and its curvature at most ``1/||r||``. A change
        of u among the nuisance columns is orthogonal to the exact u: only the part of r beside u sees it.
        """
        r, u, slack = primal.margin, dual.residual, gamma(len(dual.residual) + 16)
        assert r is not None and dual.leak is not None
        sizes, lengths, products = self.sizes(r), self.sizes(u), self.task_products(r, u)
        inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)
        steep = np.sqrt(np.maximum(1.0 - 2.0 * scale * products * inverse + (scale * lengths) ** 2, 0.0) + 8.0 * slack)
        unit = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
        beside = np.sqrt(np.maximum(2.0 - 2.0 * products * inverse * unit, 0.0) + 8.0 * slack)
        terms = np.maximum(sizes - scale * products, 0.0) + 4.0 * slack * sizes
        bent = np.minimum(error * inverse, 2.0)  # of the second derivative; a norm's slope is never above 1
        terms += error * np.where(sizes > 0.0, np.minimum(steep + bent, 2.0), 2.0)
        terms += scale * dual.leak * (sizes + error) * np.minimum(beside + dual.leak * unit + bent, 2.0)
        return float(np.sum(terms)) * (1.0 + 16.0 * UNIT)

    def terms(self, at: Evaluation, scale: float) -> float:
        # ||r_t|| - k <u_t, r_t> >= 0: written so that nothing cancels where u is the direction of r
        assert at.margin is not None
        products = self.task_products(at.residual, at.margin)
        return float(np.sum(np.maximum(self.sizes(at.margin) - scale * products, 0.0)))

    def ball(self, at: Evaluation, scale: float, gap: float) -> Ball | None:
        """The ellipsoid of (*); None where no task is bounded by it."""
        sizes = self.residual_norms(at)
        gap = self.floored_gap(gap)
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
