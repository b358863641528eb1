"""Quadratic models of Cox's loss with nested risk sets: its second derivative is ``L L'``, and L' times a vector is as
cheap as the vector.

In the order of times the second derivative is ``H_ij = -w_i w_j c_j`` for a later row i, so that its Cholesky factor has
the entries ``L_ij = -w_i g_j``, and L'x is a cumulative sum (`_kernels/cox.hpp`; tied deaths have two kinds of entries).
Constants of a stratum are lost in L', as they are in the loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._kernels import kernels
from ..design import Design
from .risk_sets import RiskPoint, RiskSets

Array = np.ndarray[Any, Any]


class RiskModel:
    """``1/2 ||right - L'v||^2`` is, but for a constant, the second-order model of the loss in a change v of the scores.

    - `sets`: Nested, all that the loss has.
    - `residual`: Minus the gradient in z~, flat.
    """

    def __init__(self, design: Design, sets: RiskSets, at: RiskPoint, residual: Array, inverse_root: Array) -> None:
        assert at.weights is not None
        self._design, self._sets, self._weights = design, sets, at.weights
        self._scale = inverse_root[sets.rows]
        self._diagonal, self._below, self._beside, right = np.empty((4, len(sets.rows)))
        kernels.risk_factor(
            sets.starts, at.weights, sets.tie, at.mean, *sets.curvatures(at), residual[sets.rows] / self._scale,
            self._diagonal, self._below, self._beside, right,
        )  # fmt: skip
        self.right = np.zeros(design.n_samples)
        self.right[sets.rows] = right

    def columns(self, x: Array, positions: Array, shared: bool, out: Array) -> Array:
        """``L'`` times packed columns of X~, into `out`; returns their squared norms by task."""
        sets, design = self._sets, self._design
        squares = np.empty((len(positions), design.n_tasks))
        source = sets.rows - design.offsets[sets.task_of_row] if shared else sets.rows
        if len(sets.rows) < len(out):
            out[:] = 0.0  # rows in no risk set
        kernels.risk_columns(
            sets.starts, self._weights, sets.tie, sets.task_of_block, self._diagonal, self._below, self._beside, x,
            positions, source, sets.rows, self._scale, design.n_threads, out, squares,
        )  # fmt: skip
        return squares
