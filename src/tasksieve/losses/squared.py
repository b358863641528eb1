"""The squared loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..design import Design
from .base import UNIT, DataLoss, Evaluation, Loss, centred_labels, gamma
from .tensor_formulas import SQUARED

Array = np.ndarray[Any, Any]


class TargetLoss(DataLoss):
    """A loss of ``target - z``, the target freed of what intercepts and unpenalised features explain.

    The same least-squares fit of the nuisance columns minimises it, whatever W is. With an intercept the labels are
    shifted by about their mean first, so that a large offset costs no digits.
    """

    def __init__(self, design: Design, y: Array, offset: Array | None = None) -> None:
        super().__init__(design)
        self.shift, self._y = centred_labels(design, y, offset)  # only the difference counts
        #: shifted and weighted, nothing projected out of them yet
        self.weighted_labels = design.samples.weighted(self._y)
        self.target = design.project(self.weighted_labels)
        self._nuisance = design.nuisance_fit(self._y)
        self._label_sizes = design.task_norms(self.weighted_labels)
        self._size = math.sqrt(self.target @ self.target)
        self.null = self.settled(self.evaluate(np.zeros(design.n_samples)))

    @property
    def size(self) -> float:
        return self._size

    def settled(self, at: Evaluation) -> Evaluation:
        """The exact dual point is the projection of the residual: as far away as that is from orthogonal."""
        residual = at.residual
        leak, lengths = self._leak(residual)
        if (leak > 1e-12 * lengths).any():  # a solver's own dual point, or one of a task that is fitted exactly
            residual = self.design.project(self.design.project(residual))
            leak, lengths = self._leak(residual)
        return Evaluation(at.value, residual, at.nuisance, at.curvature, at.margin, leak, None, lengths, at.slope)

    def _leak(self, residual: Array) -> tuple[Array, Array]:
        found, lengths = self.design.samples.orthogonality(residual)
        if len(found) == 1:  # one column is independent
            return found[0], lengths
        with np.errstate(divide="ignore", invalid="ignore"):
            away = np.sqrt(np.sum(np.square(found), axis=0))
            return np.where(away > 0.0, away / self.design.independence, 0.0), lengths

    def label_sizes(self) -> Array:
        return self._label_sizes

    def _weighted_residual(self, raw: Array) -> Array:
        return self.design.samples.weighted(self._y - raw)


class Squared(Loss):
    """``1/2 sum_i s_i (y_i - z_i)^2``; conjugate ``v^2/2 + v y``; smoothness 1."""

    label = "squared error"
    formula = "1/(2n̄) Σ_t Σ_i (y_i − x_i·w_t − b_t)²"
    estimates = True
    degree = 2
    translates = True
    squared = True
    smoothness = 1.0

    def deviance(self, y: Array, z: Array) -> Array:
        return np.square(y - z)

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "clipped", "mu": 1.0, "low": None, "high": None, "labels": "numbers"}

    def on(self, design: Design, y: Array, offset: Array | None = None) -> DataLoss:
        return _SquaredOnData(design, y, offset)


class _SquaredOnData(TargetLoss):
    name = "squared"
    smoothness = 1.0
    squared = True
    tensor_formula = SQUARED

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        residual = self.target - z
        return Evaluation(0.5 * float(residual @ residual), residual, self._nuisance)

    def at_scores(self, raw: Array) -> Evaluation:
        residual = self._weighted_residual(raw)
        squares = self.design.exact_products(residual, residual)
        return Evaluation(0.5 * float(squares.sum()), residual, self._nuisance, lengths=np.sqrt(squares))

    def by_task(self, at: Evaluation) -> Array:
        return 0.5 * np.square(self.design.task_norms(at.residual))

    def young(self, primal: Evaluation, error: Array, dual: Evaluation, scale: float) -> float:
        """``1/2 ||r - u||^2``."""
        leak, lengths = dual.leak, dual.lengths
        assert leak is not None and lengths is not None
        away = primal.residual - scale * dual.residual
        sizes = math.sqrt(2.0 * primal.value) + scale * math.sqrt(lengths @ lengths)
        moved = math.sqrt(error @ error) + scale * math.sqrt(leak @ leak) + 4.0 * UNIT * sizes
        total = math.sqrt(away @ away) * (1.0 + gamma(len(away) + 8)) + moved
        return 0.5 * total * total * (1.0 + 8.0 * UNIT)

    def terms(self, at: Evaluation, scale: float) -> float:
        return (1.0 - scale) ** 2 * at.value

    def best_scale(self, at: Evaluation, product: float, limit: float) -> float:
        if at.value == 0.0:
            return 0.0
        return max(min((2.0 * at.value + product) / (2.0 * at.value), limit), 0.0)
