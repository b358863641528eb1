"""Quadratic models of Cox's loss: its second derivative is ``L L'``, and L' times a vector is cheap.

With nested risk sets and in the order of times the second derivative is ``H_ij = -w_i w_j c_j`` for a later row i. So
its Cholesky factor has the entries ``L_ij = -w_i g_j``, and L'x is a cumulative sum (`_kernels/cox.hpp`; tied deaths
have entries of two kinds). With entry times the factor of a stratum is an ordinary one.

Constants of a stratum are lost in L', as they are in the loss. A little is added to the diagonal there: it changes no
gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from .._kernels import kernels
from ..design import Design
from .risk_sets import RiskPoint, RiskSets

Array = np.ndarray[Any, Any]

_LEAST = 1e-9  # of an expected event: what is added to its second derivative
_LARGEST = 1000  # rows of a stratum with entry times: a factor of more costs more than it saves


class Factor(Protocol):
    """L of some risk sets; `right` solves ``L right = residual``, one entry a row."""

    right: Array

    def columns(self, x: Array, positions: Array, source: Array, out: Array, squares: Array) -> None:
        """Rows of L'x into those of `out`, and their squared norms added to `squares`, by task."""
        ...


class NestedFactor:
    """Of nested risk sets."""

    def __init__(self, sets: RiskSets, at: RiskPoint, residual: Array, scale: Array, n_threads: int) -> None:
        assert at.weights is not None
        self._sets, self._weights, self._scale, self._threads = sets, at.weights, scale, n_threads
        self._diagonal, self._below, self._beside, self.right = np.empty((4, len(sets.rows)))
        kernels.risk_factor(
            sets.starts, at.weights, sets.tie, at.mean, *sets.curvatures(at), residual, self._diagonal, self._below,
            self._beside, self.right,
        )  # fmt: skip

    def columns(self, x: Array, positions: Array, source: Array, out: Array, squares: Array) -> None:
        sets, found = self._sets, np.empty_like(squares)
        kernels.risk_columns(
            sets.starts, self._weights, sets.tie, sets.task_of_block, self._diagonal, self._below, self._beside, x,
            positions, source, sets.rows, self._scale, self._threads, out, found,
        )  # fmt: skip
        squares += found


class DenseFactor:
    """Of any risk sets, a matrix for every block."""

    def __init__(self, sets: RiskSets, at: RiskPoint, residual: Array, scale: Array) -> None:
        self._sets, self._scale = sets, scale
        self.right = np.empty(len(sets.rows))
        self._factors = []
        for own, hessian in sets.hessians(at):
            hessian[np.diag_indices(len(hessian))] += _LEAST * at.mean[own]
            lower = cholesky(hessian, lower=True, overwrite_a=True, check_finite=False)
            self.right[own] = solve_triangular(lower, residual[own], lower=True, check_finite=False)
            self._factors.append((own, lower))

    def columns(self, x: Array, positions: Array, source: Array, out: Array, squares: Array) -> None:
        sets = self._sets
        for (own, lower), task in zip(self._factors, sets.task_of_block, strict=True):
            found = lower.T @ (self._scale[own, None] * x[source[own][:, None], positions])
            out[sets.rows[own]] = found
            squares[:, task] += np.sum(np.square(out[sets.rows[own]], dtype=np.float64), axis=0)


class RiskModel:
    """``1/2 ||right - L'v||^2`` is, but for a constant, the second-order model of the loss in a change v of z~.

    - `residual`: Minus the gradient in z~, flat.
    - `inverse_root`: Of the weights of the rows, flat.
    """

    def __init__(
        self, design: Design, sets: Sequence[RiskSets], at: Sequence[RiskPoint], residual: Array, inverse_root: Array
    ) -> None:
        self._design, self._sets = design, sets
        self._factors: list[Factor] = []
        self.right = np.zeros(design.n_samples)
        for part, point in zip(sets, at, strict=True):
            scale = inverse_root[part.rows]
            own = residual[part.rows] / scale
            factor: Factor
            if part.nested:
                factor = NestedFactor(part, point, own, scale, design.n_threads)
            else:
                factor = DenseFactor(part, point, own, scale)
            self.right[part.rows] = factor.right
            self._factors.append(factor)
        idle = np.ones(design.n_samples, dtype=bool)
        for part in sets:
            idle[part.rows] = False
        self._idle = np.flatnonzero(idle)  # rows in no risk set

    @staticmethod
    def serves(sets: Sequence[RiskSets], at: Sequence[RiskPoint]) -> bool:
        """Whether there are such factors, and they are worth it."""
        small = all(part.nested or np.max(np.diff(part.starts)) <= _LARGEST for part in sets)
        return small and all(point.weights is not None for point in at)

    def columns(self, x: Array, positions: Array, shared: bool, out: Array) -> Array:
        """``L'`` times packed columns of X~, into `out`; returns their squared norms by task."""
        squares = np.zeros((len(positions), self._design.n_tasks))
        out[self._idle] = 0.0
        for part, factor in zip(self._sets, self._factors, strict=True):
            source = part.rows - self._design.offsets[part.task_of_row] if shared else part.rows
            factor.columns(x, positions, source, out, squares)
        return squares
