"""What the engine asks of a loss, in the weighted, projected geometry of a design.

A loss is evaluated at ``z~ = X~ W`` (flat). Intercepts and unpenalised coefficients are minimised out, so that the
*residual* ``r`` (minus the gradient in z~) is orthogonal to the nuisance columns, and every multiple of it is a
candidate dual point. For the row weights ``s`` the mathematics note's dual variable is ``u = sqrt(s) r``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..described import Described
from ..design import Design
from ..screening.state import Ball

Array = np.ndarray[Any, Any]

_FLOOR = 1e-14  # of the loss at W = 0: a computed gap of 0 is no proof of exactness


@dataclass
class Evaluation:
    """A loss at one point: its value, minus its gradient, the nuisance coefficients that minimise it."""

    value: float
    residual: Array  # minus the gradient; a solver may put a better dual point of the same W in its place
    nuisance: Array  # (n_nuisance, n_tasks)
    curvature: Array | None = None  # second derivative in z~, flat; None where it is 1 everywhere
    margin: Array | None = None  # what the loss needs to remember of the point


class Loss(Described):
    """A loss by its parameters alone; `on` puts it on data."""

    #: what a held-out score of this loss is, in words
    label = "loss"
    #: what labels are: "values" (any numbers), "signs" (-1 and +1), "counts" (from 0), "one-hot" (a column a class)
    labels = "values"
    #: a held-out score is the root of the mean `deviance`
    rooted = False
    #: the tasks are classes of the same rows, judged together
    joint = False

    def deviance(self, y: Array, z: Array) -> Array:
        """What a held-out row counts in cross-validation."""
        raise NotImplementedError

    def link(self, z: Array) -> Array:
        """A prediction in the units of y, from ``x . w + b``."""
        return z

    def unit(self, mean_rows: float) -> float:
        """Public objectives are sum units divided by this; `mean_rows` is the mean weight of a task."""
        return mean_rows

    def row_weights(self, samples: Array, tasks: Array) -> Array:
        """Weights of the rows in the sum, from those of samples and of their tasks."""
        return samples * tasks

    def on(self, design: Design, y: Array) -> DataLoss:
        """The loss of given labels."""
        raise NotImplementedError


class DataLoss:
    """A loss on data: what the engine asks.

    Attributes
    ----------
    null : Evaluation
        At W = 0, with the best intercepts.
    smoothness : float
        L: the derivative in z is L-Lipschitz. Infinite: the loss is not smooth.
    floor : float
        Gaps below this are rounding.
    """

    name = ""
    smoothness = np.inf
    floor = 0.0
    null: Evaluation
    target: Array  # of losses that are about a residual ``target - z``

    def __init__(self, design: Design) -> None:
        self.design = design

    @property
    def squared(self) -> bool:
        """Whether the loss is ``1/2 ||target - z||^2``."""
        return False

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        """The loss at z, intercepts and unpenalised coefficients at their best; `start` is a guess of these."""
        raise NotImplementedError

    def sketch(self, z: Array, start: Array | None = None) -> Evaluation:
        """`evaluate`, good enough for a step of a solver, not for a certificate."""
        return self.evaluate(z, start)

    def value_at(self, raw: Array) -> float:
        """The loss at given predictions in the units of y, intercepts included."""
        raise NotImplementedError

    def terms(self, at: Evaluation, scale: float) -> float:
        """``F(z) + F*(-u) + <u, z>`` for ``u`` = scale times the residual: what the loss adds to the gap, >= 0."""
        raise NotImplementedError

    def best_scale(self, at: Evaluation, product: float, limit: float) -> float:
        """The multiple of the residual, at most `limit`, with the largest dual value; `product` is <r, z~>."""
        return max(min(1.0, limit), 0.0)

    def ball(self, at: Evaluation, scale: float, gap: float) -> Ball | None:
        """A set that holds the dual optimum, given a gap with the dual point ``scale residual``.

        The gap-safe sphere: the dual objective is 1/L-strongly concave, so ``||u - u*||^2 <= 2 L gap`` (Ndiaye,
        Fercoq, Gramfort and Salmon 2017).
        """
        radius = np.sqrt(2.0 * self.smoothness * self.floored(gap))
        return Ball(float(radius), residual_coef=scale)

    def floored(self, gap: float) -> float:
        """A gap that may serve as a radius."""
        return max(gap, _FLOOR * self.null.value)

    @property
    def size(self) -> float:
        """How large predictions are that matter at all: for what is rounding beside them."""
        return float(np.sqrt(2.0 * self.null.value))

    def residual_norms(self, at: Evaluation) -> Array | None:
        """Norm of the residual in each task, where the loss is made of them."""
        return None
