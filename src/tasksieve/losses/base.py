"""Losses in the weighted, projected geometry of a design: value, gradient, conjugate, smoothness.

A loss is evaluated at ``z~ = X~ W`` (flat). Intercepts and unpenalised coefficients are minimised out exactly, so that
the *residual* ``r`` (minus the gradient in z~) is orthogonal to the nuisance columns, and every multiple of it is a
candidate dual point. For the row weights ``s`` the mathematics note's dual variable is ``u = sqrt(s) r``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass
class Evaluation:
    """A loss at one point: its value, minus its gradient, the nuisance coefficients that minimise it."""

    value: float
    residual: Array
    nuisance: Array  # (n_nuisance, n_tasks)
    curvature: Array | None = None  # second derivative in z~, flat; None where it is 1 everywhere
    margin: Array | None = None  # classification: label times prediction, flat


class Loss(Protocol):
    """What the engine asks of a loss."""

    name: str
    smoothness: float
    null: Evaluation  # at W = 0, with the best intercepts
    floor: float  # gaps below this are rounding

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation: ...

    def gap_terms(self, at: Evaluation, scale: float) -> float:
        """``F(z) + F*(-u) + <u, z>`` for ``u`` = scale times the residual: what the loss adds to the gap, >= 0."""
        ...

    def best_scale(self, at: Evaluation, product: float, limit: float) -> float:
        """The multiple of the residual, at most `limit`, with the largest dual value; `product` is <r, z~>."""
        ...
