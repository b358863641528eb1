"""Losses that are a sum over rows, each given by what it does to one row.

    F(z) = min_b sum_i s_i f(y_i, z_i + b_task(i))        (and over the coefficients of unpenalised features)

A subclass of `RowLoss` says `value`, `slope` and `conjugate` of one row; weights, intercepts, the gap and the ball that
holds the dual optimum follow here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import Design
from .base import DataLoss, Evaluation, Loss

Array = np.ndarray[Any, Any]

# A task whose best intercept is infinite stops where every row is this well explained. The same happens where
# unpenalised features separate the classes: there a task counts as done at this mean loss.
_CONFIDENT = 30.0
_NEGLIGIBLE = 2e-13
_TRUSTING = 8  # steps of Newton's method with a loss's own curvature, before it is looked at more closely
_ROUNDING = 1e-14  # of the largest slope: what a projection may move a dual point out of its domain


class RowLoss(Loss):
    """A loss ``f(y, z)`` of one label and one prediction; methods take and return arrays.

    Attributes
    ----------
    smoothness : float
        L: ``f'`` is L-Lipschitz in z.
    """

    smoothness = 1.0
    #: whether the loss falls to zero along a ray, so that unpenalised features may explain everything
    vanishing = False

    def value(self, y: Array, z: Array) -> Array:
        """f(y, z), convex in z."""
        raise NotImplementedError

    def slope(self, y: Array, z: Array) -> Array:
        """p = minus the derivative of f in z."""
        raise NotImplementedError

    def conjugate(self, y: Array, p: Array) -> Array:
        """``f*(-p) = sup_z -p z - f(y, z)`` for p in the domain."""
        raise NotImplementedError

    def domain(self, y: Array) -> tuple[Array | float, Array | float]:
        """(low, high): the conjugate is finite where ``low <= p <= high``. Zero must lie in it."""
        return -np.inf, np.inf

    def curvature(self, y: Array, z: Array) -> Array:
        """The second derivative of f in z, or something between it and the smoothness."""
        return np.full(np.shape(z), self.smoothness)

    def deviance(self, y: Array, z: Array) -> Array:
        """What a held-out row counts in cross-validation: the loss itself unless said otherwise."""
        return self.value(y, z)

    def runaway(self, y: Array, weights: Array, design: Design) -> Array:
        """Tasks whose best intercept is infinite: its sign, 0 for the others."""
        return np.zeros(design.n_tasks)

    def on(self, design: Design, y: Array) -> DataLoss:
        for name in ("value", "slope", "conjugate"):
            if getattr(type(self), name) is getattr(RowLoss, name):
                raise ValueError(
                    f"{type(self).__name__} does not say its `{name}`: a loss needs value, slope and conjugate. "
                    "Without them nothing can be certified (docs: Adding a loss)."
                )
        return RowLossOnData(self, design, y)


class RowLossOnData(DataLoss):
    """A `RowLoss` on data. `Evaluation.margin` is the prediction z, nuisance part included."""

    def __init__(self, loss: RowLoss, design: Design, y: Array) -> None:
        super().__init__(design)
        self.of, self._y = loss, y
        self.name = type(loss).__name__.lower()
        self.smoothness = float(loss.smoothness)
        self._weights = np.ones(design.n_samples) if design.weights is None else design.weights
        root = np.ones(design.n_samples) if design.root_weights is None else design.root_weights
        self._root = root
        self._inverse_root = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        # What intercepts and unpenalised features can add to a prediction, task by task, in an orthonormal basis: so
        # neither the units of these features nor dependence among them matter.
        self._directions = design.nuisance_basis * self._inverse_root
        self._columns = design.nuisance_columns
        self._signs = np.zeros(design.n_tasks)
        if design.fit_intercept:
            self._signs = loss.runaway(y, self._weights, design)
        self._totals = design.task_sums(self._weights)
        self._negligible = (_NEGLIGIBLE if loss.vanishing else -1.0) * self._totals
        self.floor = max(float(self._negligible.sum()), 0.0)
        self._inside = np.zeros(design.n_samples)  # a dual point well inside the domain: zero, then half that of W = 0
        self.null = self.evaluate(np.zeros(design.n_samples))
        self._inside = 0.5 * self.null.residual * self._inverse_root

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        design, loss = self.design, self.of
        raw = z * self._inverse_root
        nuisance = np.empty((0, design.n_tasks))
        if len(self._directions):
            part = self._best_nuisance(raw, start)
            raw = raw + part
            nuisance = design.nuisance_fit(part)
        values = self._weights * loss.value(self._y, raw)
        residual = self._root * self._repaired(loss.slope(self._y, raw))
        if len(self._directions):
            # Zero is a feasible dual point, and the right one where nuisance columns explain everything.
            done = (self._signs != 0.0) | (design.task_sums(values) <= self._negligible)
            if done.any():
                residual[design.per_sample(done)] = 0.0
        return Evaluation(float(values.sum()), residual, nuisance, loss.curvature(self._y, raw), raw)

    def value_at(self, raw: Array) -> float:
        return float(self._weights @ self.of.value(self._y, raw))

    def _repaired(self, p: Array) -> Array:
        """p orthogonal to the nuisance columns and in the domain: what makes it a dual point.

        The best nuisance coefficients are known up to rounding, or worse where the loss is flat. What projection then
        moves out of the domain is drawn back towards a point inside it, task by task.
        """
        if not len(self._directions):
            return p
        design = self.design
        p = design.project(self._root * p) * self._inverse_root
        low, high = self.of.domain(self._y)
        over = np.maximum(p - high, low - p)
        # Rounding is no reason to move: saturated rows lie on the boundary, and often the point inside does, too.
        moved = over > _ROUNDING * np.max(np.abs(p), initial=0.0)
        if not moved.any():
            return p
        share = np.divide(over, np.abs(p - self._inside), out=np.ones_like(p), where=p != self._inside)
        share = np.where(moved, np.minimum(share * (1.0 + 1e-10), 1.0), 0.0)
        worst = design.per_sample(np.maximum.reduceat(share, design.offsets[:-1]))
        return p + worst * (self._inside - p)

    def terms(self, at: Evaluation, scale: float) -> float:
        z = at.margin
        assert z is not None
        low, high = self.of.domain(self._y)
        p = np.clip(scale * at.residual * self._inverse_root, low, high)  # moves by rounding at most
        excess = self.of.value(self._y, z) + self.of.conjugate(self._y, p) + p * z
        return float(self._weights @ np.maximum(excess, 0.0))

    def _combine(self, coefficients: Array) -> Array:
        """A flat vector from coefficients (directions, tasks)."""
        total = np.zeros(self.design.n_samples)
        for direction, values in zip(self._directions, coefficients, strict=True):
            total += direction * self.design.per_sample(values)
        return total

    def _second(self, z: Array) -> Array:
        """The second derivative of the loss: as the loss says, or by differences where it says clearly too much.

        A loss may give any curvature that keeps a quadratic above it, or the smoothness for want of better; Newton's
        method is slow with these.
        """
        loss, h = self.of, 1e-6 * (1.0 + np.abs(z))
        said = loss.curvature(self._y, z)
        seen = (loss.slope(self._y, z - h) - loss.slope(self._y, z + h)) / (2.0 * h)
        return np.where(said - seen > 1e-4 * self.smoothness, np.maximum(seen, 0.0), said)

    def _best_nuisance(self, raw: Array, start: Array | None) -> Array:
        """What intercepts and unpenalised features add to the prediction `raw` at their optimum, a flat vector.

        Newton's method in each task over its few directions, with steps that neither leave the range of the
        predictions nor raise the loss: where all rows are classified beyond doubt there is no curvature to go by.
        """
        design, loss, k = self.design, self.of, len(self._directions)
        live = self._signs == 0.0
        part = np.zeros(design.n_samples)
        if start is not None:
            for column, values in zip(self._columns, start, strict=True):
                part += column * design.per_sample(values)
        if not live.all():
            reach = np.maximum.reduceat(np.abs(raw), design.offsets[:-1])
            confident = design.per_sample(self._signs * (_CONFIDENT + reach))
            part = np.where(design.per_sample(live), part, confident)
        if not live.any():
            return part

        def value_of(candidate: Array) -> tuple[Array, Array]:
            z = raw + candidate
            return z, design.task_sums(self._weights * loss.value(self._y, z))

        z, value = value_of(part)
        for count in range(100):
            slope = self._weights * loss.slope(self._y, z)
            gradient = np.stack([design.task_sums(direction * slope) for direction in self._directions])
            size = np.stack([design.task_sums(np.abs(direction * slope)) for direction in self._directions])
            open_ = live & np.any(np.abs(gradient) > 4e-16 * len(raw) ** 0.5 * size, axis=0)
            open_ &= value > self._negligible
            if not open_.any():
                break
            curvature = self._weights * (loss.curvature(self._y, z) if count < _TRUSTING else self._second(z))
            hessian = np.empty((design.n_tasks, k, k))
            for a in range(k):
                for b in range(a + 1):
                    entry = design.task_sums(self._directions[a] * self._directions[b] * curvature)
                    hessian[:, a, b] = hessian[:, b, a] = entry
            diagonal = np.einsum("taa->ta", hessian)
            diagonal += 1e-14 * diagonal.max(axis=1, keepdims=True) + 1e-12
            step = np.linalg.solve(hessian, gradient.T[:, :, None])[:, :, 0].T
            step[:, ~open_] = 0.0
            move = self._combine(step)
            longest = np.maximum.reduceat(np.abs(move), design.offsets[:-1])
            reach = 10.0 + 2.0 * np.maximum.reduceat(np.abs(z), design.offsets[:-1])
            scale = np.minimum(1.0, reach / np.maximum(longest, 1e-300))
            for _ in range(60):
                candidate = part + design.per_sample(scale) * move
                new_z, new_value = value_of(candidate)
                worse = open_ & (new_value > value + 1e-15 * np.abs(value))
                if not worse.any():
                    break
                scale[worse] *= 0.5
            if worse.any():  # even tiny steps do not help: rounding has been reached there
                scale[worse] = 0.0
                candidate = part + design.per_sample(scale) * move
                new_z, new_value = value_of(candidate)
            gain = np.abs(value - new_value) > 1e-17 * np.abs(value)
            moved = scale * longest > 4e-16 * reach
            part, z, value = candidate, new_z, new_value
            if not np.any(open_ & (gain | moved)):
                break
        return part
