"""The logistic loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from ..design import Design
from .base import Evaluation

Array = np.ndarray[Any, Any]


class Logistic:
    """``sum_i s_i log(1 + exp(-y_i z_i))`` with labels +-1; smoothness 1/4.

    Conjugate at ``-u``: ``sum s (p log p + (1-p) log(1-p))`` with ``p = y u / s`` in [0, 1].
    """

    name = "logistic"
    smoothness = 0.25

    # A task with one class only has no finite best intercept: it stops where every row is this well classified. The
    # same happens where unpenalised features separate the classes: there a task counts as done at this mean loss.
    _CONFIDENT = 30.0
    _NEGLIGIBLE = 2e-13

    def __init__(self, design: Design, y: Array) -> None:
        self._design = design
        self._y = y
        self._weights = np.ones(design.n_samples) if design.weights is None else design.weights
        root = np.ones(design.n_samples) if design.root_weights is None else design.root_weights
        self._root = root
        self._inverse_root = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        # What intercepts and unpenalised features can add to a prediction, task by task, in an orthonormal basis: so
        # neither the units of these features nor dependence among them matter.
        self._directions = design.nuisance_basis * self._inverse_root
        self._columns = design.nuisance_columns()
        self._one_class = self._tasks_with_one_class()
        self._totals = design.task_sums(self._weights)
        self.floor = self._NEGLIGIBLE * float(self._totals.sum())
        self.null = self.evaluate(np.zeros(design.n_samples))

    def _tasks_with_one_class(self) -> Array:
        design = self._design
        positive = design.task_sums(self._weights * (self._y > 0))
        negative = design.task_sums(self._weights * (self._y < 0))
        missing = (positive == 0) | (negative == 0)
        return np.asarray(missing & design.fit_intercept)

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        design = self._design
        raw = z * self._inverse_root
        nuisance = np.empty((0, design.n_tasks))
        if len(self._directions):
            part = self._best_nuisance(raw, start)
            raw = raw + part
            nuisance = design.nuisance_fit(part)
        margin = self._y * raw
        p = expit(-margin)
        values = self._weights * np.logaddexp(0.0, -margin)
        residual = self._root * self._y * p
        if len(self._directions):
            # Zero is a feasible dual point, and the right one where nuisance columns explain everything.
            done = self._one_class | (design.task_sums(values) <= self._NEGLIGIBLE * self._totals)
            if done.any():
                residual[design.per_sample(done)] = 0.0
        return Evaluation(float(values.sum()), residual, nuisance, p * (1.0 - p), margin)

    def gap_terms(self, at: Evaluation, scale: float) -> float:
        margin = at.margin
        assert margin is not None
        dual = scale * at.residual * self._inverse_root * self._y
        rest = np.clip(1.0 - dual, 0.0, 1.0)
        terms = np.logaddexp(0.0, -margin) + xlogy(dual, dual) + xlogy(rest, rest) + dual * margin
        return float(self._weights @ np.maximum(terms, 0.0))

    def best_scale(self, at: Evaluation, product: float, limit: float) -> float:
        return max(min(1.0, limit), 0.0)

    def _combine(self, coefficients: Array) -> Array:
        """A flat vector from coefficients (directions, tasks)."""
        total = np.zeros(self._design.n_samples)
        for direction, values in zip(self._directions, coefficients, strict=True):
            total += direction * self._design.per_sample(values)
        return total

    def _best_nuisance(self, raw: Array, start: Array | None) -> Array:
        """What intercepts and unpenalised features add to the prediction `raw` at their optimum, a flat vector.

        Newton's method in each task over its few directions, with steps that neither leave the range of the
        predictions nor raise the loss: where all rows are classified beyond doubt there is no curvature to go by.
        """
        design, k = self._design, len(self._directions)
        live = ~self._one_class
        part = np.zeros(design.n_samples)
        if start is not None:
            for column, values in zip(self._columns, start, strict=True):
                part += column * design.per_sample(values)
        if self._one_class.any():
            sign = np.sign(design.task_sums(self._weights * self._y))
            reach = np.maximum.reduceat(np.abs(raw), design.offsets[:-1])
            confident = design.per_sample(sign * (self._CONFIDENT + reach))
            part = np.where(design.per_sample(self._one_class), confident, part)
        if not live.any():
            return part

        def value_of(candidate: Array) -> tuple[Array, Array]:
            margin = self._y * (raw + candidate)
            return margin, design.task_sums(self._weights * np.logaddexp(0.0, -margin))

        margin, value = value_of(part)
        for _ in range(100):
            p = expit(-margin)
            slope = self._weights * self._y * p
            gradient = np.stack([design.task_sums(direction * slope) for direction in self._directions])
            size = np.stack([design.task_sums(np.abs(direction * slope)) for direction in self._directions])
            open_ = live & np.any(np.abs(gradient) > 4e-16 * len(raw) ** 0.5 * size, axis=0)
            open_ &= value > self._NEGLIGIBLE * self._totals
            if not open_.any():
                break
            curvature = self._weights * p * (1.0 - p)
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
            reach = 10.0 + 2.0 * np.maximum.reduceat(np.abs(margin), design.offsets[:-1])
            scale = np.minimum(1.0, reach / np.maximum(longest, 1e-300))
            for _ in range(60):
                candidate = part + design.per_sample(scale) * move
                new_margin, new_value = value_of(candidate)
                worse = open_ & (new_value > value + 1e-15 * np.abs(value))
                if not worse.any():
                    break
                scale[worse] *= 0.5
            if worse.any():  # even tiny steps do not help: rounding has been reached there
                scale[worse] = 0.0
                candidate = part + design.per_sample(scale) * move
                new_margin, new_value = value_of(candidate)
            gain = np.abs(value - new_value) > 1e-17 * np.abs(value)
            moved = scale * longest > 4e-16 * reach
            part, margin, value = candidate, new_margin, new_value
            if not np.any(open_ & (gain | moved)):
                break
        return part
