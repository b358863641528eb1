"""Penalties on the rows of W: value, prox, dual gauge.

All of them are members of one family,

    Omega(W) = sum_j ( group_j ||W_j||_2 + l1_j ||W_j||_1 ) + ridge/2 ||W||_F^2      (+ W >= 0 if `positive`),

whose first part is a norm: its dual ball is ``{M : gauge_j(M_j) <= 1 for all j}``. The ridge is carried as extra rows
of squared loss (mathematics, section 1), so that gauges and screening tests are those of the norm alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._kernels import kernels

Array = np.ndarray[Any, Any]


def row_norms(rows: Array) -> Array:
    """Euclidean norms of the rows."""
    return np.sqrt(np.einsum("ij,ij->i", rows, rows))


@dataclass(frozen=True)
class RowPenalty:
    """The penalty at one strength, for all features or for some.

    Attributes
    ----------
    group, l1 : arrays, one entry a feature
    ridge : float
    positive : bool
    has_l1 : bool
        False promises that `l1` is zero, which saves time.
    """

    group: Array
    l1: Array
    ridge: float = 0.0
    positive: bool = False
    has_l1: bool = True

    def restrict(self, features: Array) -> RowPenalty:
        """The same penalty on some features."""
        return RowPenalty(self.group[features], self.l1[features], self.ridge, self.positive, self.has_l1)

    def norm(self, rows: Array) -> float:
        """The value without the ridge."""
        value = float(self.group @ row_norms(rows))
        return value + float(self.l1 @ np.abs(rows).sum(axis=1)) if self.has_l1 else value

    def value(self, rows: Array) -> float:
        """Omega(W)."""
        return self.norm(rows) + 0.5 * self.ridge * float(np.vdot(rows, rows))

    def gauges(self, products: Array) -> Array:
        """Dual gauge of each row: the smallest v with ``M_j / v`` in the row's dual ball; 0 if unpenalised."""
        if self.has_l1:
            out = np.empty(len(products))
            kernels.row_gauges(np.ascontiguousarray(products), self.group, self.l1, self.positive, out)
            return np.where(self.group + self.l1 > 0.0, out, 0.0)
        sizes = row_norms(np.maximum(products, 0.0) if self.positive else products)
        return np.divide(sizes, self.group, out=np.zeros_like(sizes), where=self.group > 0.0)

    def prox(self, rows: Array, step: float) -> Array:
        """``argmin_V 1/2 ||V - rows||^2 + step Omega(V)``."""
        rows = np.maximum(rows, 0.0) if self.positive else rows
        if self.has_l1:
            rows = np.sign(rows) * np.maximum(np.abs(rows) - step * self.l1[:, None], 0.0)
        sizes = row_norms(rows)
        ratio = np.divide(step * self.group, sizes, out=np.ones_like(sizes), where=sizes > 0.0)
        shrink = np.maximum(1.0 - ratio, 0.0)
        return np.asarray(rows * (shrink / (1.0 + step * self.ridge))[:, None])


@dataclass(frozen=True)
class PenaltyShape:
    """A penalty without its strength: ``at(lam)`` gives it, every part multiplied by lam (but for `fixed_ridge`).

    Use the functions below; they name the members of the family.
    """

    weights: Array
    group: float = 1.0
    l1: Array | float = 0.0
    ridge_ratio: float = 0.0
    positive: bool = False
    fixed_ridge: float = 0.0

    def at(self, lam: float) -> RowPenalty:
        scaled = lam * self.weights
        l1 = scaled * self.l1 if self.has_l1 else np.zeros_like(scaled)
        ridge = lam * self.ridge_ratio + self.fixed_ridge
        return RowPenalty(self.group * scaled, l1, ridge, self.positive, self.has_l1)

    @cached_property
    def has_l1(self) -> bool:
        return bool(np.any(self.l1))


def l21(weights: Array, *, ridge_ratio: float = 0.0, positive: bool = False) -> PenaltyShape:
    """``sum_j u_j ||W_j||_2 (+ ridge_ratio/2 ||W||_F^2)``: a feature is in for all tasks or out for all."""
    return PenaltyShape(weights, 1.0, 0.0, ridge_ratio, positive)


def l11(weights: Array, *, ridge_ratio: float = 0.0, positive: bool = False) -> PenaltyShape:
    """``sum_j u_j ||W_j||_1``: independent Lassos under one strength."""
    return PenaltyShape(weights, 0.0, 1.0, ridge_ratio, positive)


def sparse_group(
    weights: Array, l1: Array | float, group: float = 1.0, *, ridge_ratio: float = 0.0, positive: bool = False
) -> PenaltyShape:
    """``sum_j u_j (l1_j ||W_j||_1 + group ||W_j||_2)``: features are selected, and within them tasks."""
    return PenaltyShape(weights, group, l1, ridge_ratio, positive)
