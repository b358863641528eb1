"""What the engine asks of a loss, in the weighted, projected geometry of a design.

A loss is evaluated at ``z~ = X~ W`` (flat). Intercepts and unpenalised coefficients are minimised out, so that the
*residual* ``r`` (minus the gradient in z~) is orthogonal to the nuisance columns, and every multiple of it is a
candidate dual point. For the row weights ``s`` the mathematics note's dual variable is ``u = sqrt(s) r``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..described import Described
from ..design import Design
from ..screening.state import Ball

Array = np.ndarray[Any, Any]

#: half the distance from 1 to the next number: the largest relative error of one operation
UNIT = 2.0**-53


def gamma(operations: float) -> float:
    """Bound of the relative error that so many operations in a row leave (Higham 2002, lemma 3.1)."""
    return 1.01 * UNIT * operations


def without_offset(y: Array, offset: Array | None) -> tuple[Array, Array | float]:
    """Labels less an offset, and what rounding that difference has left out, exactly (Knuth's two-sum)."""
    if offset is None:
        return y, 0.0
    rest = y - offset
    back = rest - y
    return rest, (y - (rest - back)) - (offset + back)


@dataclass
class Evaluation:
    """A loss at one point: its value, minus its gradient, the nuisance coefficients that minimise it."""

    value: float
    residual: Array  # minus the gradient; a solver may put a better dual point of the same W in its place
    nuisance: Array  # (n_nuisance, n_tasks)
    curvature: Array | None = None  # second derivative in z~, flat; None where it is 1 everywhere
    margin: Array | None = None  # what the loss needs to remember of the point
    #: by task, for a column of length 1: how far its product with the residual is from that with the exact dual point
    leak: Array | None = None
    #: by task: how far the exact dual point is from the residual, in units that the loss knows
    tilt: Array | None = None
    #: by task: norms of the residual; of a settled point always
    lengths: Array | None = None


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
    #: labels and predictions multiplied by a > 0 multiply the loss by a to this power; 0: they have no common units
    degree = 0

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

    def on(self, design: Design, y: Array, offset: Array | None = None) -> DataLoss:
        """The loss of given labels; predictions are ``x . w + b + offset``."""
        raise NotImplementedError


class DataLoss:
    """A loss on data: what the engine asks.

    Attributes
    ----------
    null : Evaluation
        At W = 0, with the best intercepts.
    smoothness : float
        L: the derivative in z is L-Lipschitz. Infinite: the loss is not smooth.
    shift : array of shape (n_tasks,)
        What was subtracted from the labels: scores are less this as well.
    """

    name = ""
    smoothness = np.inf
    null: Evaluation
    shift: Array
    target: Array  # of losses that are about a residual ``target - z``
    #: what a quadratic model takes for the curvature of rows where the loss is flat, so that it stays bounded
    least_curvature = 1e-5

    def __init__(self, design: Design) -> None:
        self.design = design
        self.shift = np.zeros(design.n_tasks)

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

    def at_scores(self, raw: Array) -> Evaluation:
        """The loss at given ``x . w + b`` in the units of y, less the `shift`: nothing is fitted."""
        raise NotImplementedError

    def value_at(self, raw: Array) -> float:
        """The loss of `at_scores`."""
        return self.at_scores(raw).value

    def settled(self, at: Evaluation) -> Evaluation:
        """The same with a dual point that is exactly orthogonal to the nuisance columns, and in the domain.

        That point is never formed: it is so near to the residual that `leak` and `tilt` say all there is to know.
        Where a task has no such point its residual is zero, which always is one.
        """
        raise NotImplementedError

    def young(self, primal: Evaluation, error: Array, dual: Evaluation, scale: float) -> float:
        """Upper bound of ``F(z) + F*(-u) + <u, z>``, rounding included: what the loss adds to a certificate.

        Parameters
        ----------
        primal : Evaluation
            Of `at_scores` or `evaluate`.
        error : array of shape (n_tasks,)
            Norms of what the weighted scores may be off.
        dual : Evaluation
            A `settled` one; u is `scale` times its exact dual point.
        """
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
        """A gap that may serve as a radius: with what rounding may have taken from it."""
        return gap + gamma(4 * self.design.n_samples + 256) * self.null.value

    def wobble(self, at: Evaluation, error: Array) -> float:
        """How far the loss at given scores may be from its value there; `error` as in `young`."""
        steep = np.sqrt(self.design.task_sums(np.square(at.residual))) if at.lengths is None else at.lengths
        bend = 0.5 * self.smoothness * float(error @ error) if math.isfinite(self.smoothness) else float(error.sum())
        return float(steep @ error) + bend

    def label_sizes(self) -> Array:
        """By task: the norm of the weighted labels or offsets, where a score is compared with the ones or added to the
        others; each has lost a rounding."""
        return np.zeros(self.design.n_tasks)

    @property
    def size(self) -> float:
        """How large predictions are that matter at all: for what is rounding beside them."""
        return math.sqrt(2.0 * self.null.value)

    def explained(self, at: Evaluation) -> Array:
        """Tasks whose rows nuisance columns explain ever better, without an end: there is no finite optimum."""
        return np.zeros(self.design.n_tasks, dtype=bool)

    def residual_norms(self, at: Evaluation) -> Array | None:
        """Norm of the residual in each task, where the loss is made of them."""
        return None
