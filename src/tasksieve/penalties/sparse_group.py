"""The family of L2,1, L1,1 and sparse group penalties.

    Omega(W) = sum_j u_j ( group ||W_j||_2 + l1_j ||W_j||_1 )

Its dual ball is ``{M : ||soft(M_j, u_j l1_j)|| <= u_j group for all j}``.
"""

from __future__ import annotations

from typing import Any, Self, TypeGuard

import numpy as np

from .._kernels import kernels
from ..screening.ball import sphere_norms, zero_entries, zero_rows
from ..screening.polar import steepest_row
from .base import REJECT, RowPenalty, row_norms

Array = np.ndarray[Any, Any]


class SparseGroup(RowPenalty):
    """``sum_j u_j (l1_j ||W_j||_1 + group ||W_j||_2)``: features are selected, and within them tasks.

    Parameters
    ----------
    l1 : float or array, one entry a feature
    group : float
    """

    label = "sparse group"
    formula = "α Σ_j (l1 ‖W_j‖₁ + group ‖W_j‖₂)"

    def __init__(self, l1: float | Array = 0.01, group: float = 1.0) -> None:
        self.l1_ratio = l1
        self.group_ratio = group

    def parameters(self) -> dict[str, Any]:
        return {"l1": self.l1_ratio, "group": self.group_ratio}

    def on(self, weights: Array, n_tasks: int, **options: Any) -> Self:
        bound = super().on(weights, n_tasks, **options)
        if n_tasks == 1:  # of one number both norms are the same
            bound.weights = bound.weights * (self.group_ratio + self.l1_ratio)
            bound.group_ratio, bound.l1_ratio = 1.0, 0.0
        ratio = bound.l1_ratio
        bound.has_entries = bool(ratio.any() if isinstance(ratio, np.ndarray) else ratio)
        if not bound.has_entries:  # a norm and a quotient
            bound.gauge_error = 2.0**-53 * (n_tasks + 24)
        bound._set()
        return bound

    def _set(self) -> Self:
        """What multiplies ``||W_j||_2`` and ``||W_j||_1``, all factors included."""
        self.group = self.weights if self.group_ratio == 1.0 else self.group_ratio * self.weights
        self.l1 = self.weights * self.l1_ratio if self.has_entries else np.zeros(len(self.weights))
        return self

    def times(self, factor: float) -> Self:
        return super().times(factor)._set()

    def restrict(self, features: Array) -> Self:
        smaller = self._copy()
        smaller.group = self.group[features]
        if not self.has_entries and self.group_ratio == 1.0:
            smaller.weights, smaller.l1 = smaller.group, self.l1[: len(smaller.group)]
            return smaller
        smaller.weights, smaller.l1 = self.weights[features], self.l1[features]
        if np.ndim(self.l1_ratio):
            smaller.l1_ratio = np.asarray(self.l1_ratio)[features]
        return smaller

    def certificate_form(self) -> tuple[dict[str, Any], dict[str, Array]]:
        form: dict[str, Any] = {"name": "rows", "group": float(self.group_ratio)}
        arrays = {"feature_weights": self.weights}
        if np.ndim(self.l1_ratio):
            arrays["l1"] = np.asarray(self.l1_ratio, dtype=np.float64)
        else:
            form["l1"] = float(self.l1_ratio)
        return form, arrays

    @property
    def penalised(self) -> Array:
        return self.group + self.l1 > 0.0 if self.has_entries else self.group > 0.0

    def value(self, rows: Array) -> float:
        value = float(self.group @ row_norms(rows))
        return value + float(self.l1 @ np.abs(rows).sum(axis=1)) if self.has_entries else value

    def gauges(self, products: Array) -> Array:
        return self.row_gauges(products)

    def row_gauges(self, products: Array) -> Array:
        return self.upper_gauges(products, None)

    def upper_gauges(self, products: Array, errors: Array | None) -> Array:
        out = np.empty(len(products))
        errors = None if errors is None else np.ascontiguousarray(errors)
        kernels.row_gauges(np.ascontiguousarray(products), errors, self.group, self.l1, self.positive, out)
        return out

    def prox(self, rows: Array, step: float) -> Array:
        if self.has_entries:
            rows = np.sign(rows) * np.maximum(np.abs(rows) - step * self.l1[:, None], 0.0)
        sizes = row_norms(rows)
        ratio = np.divide(step * self.group, sizes, out=np.ones_like(sizes), where=sizes > 0.0)
        return np.asarray(rows * np.maximum(1.0 - ratio, 0.0)[:, None])

    def reach(self, centre: Array, norms: Array, radius: float) -> Array:
        if not self.has_entries:
            return sphere_norms(centre, norms, radius, self.group) / self.group
        # The gauge of a sum is at most the sum of gauges; where the sharper test of the whole ball succeeds, below 1.
        longest = radius * np.max(norms, axis=1, initial=0.0)
        upper = self.row_gauges(centre) + longest / (self.group + self.l1)
        inside = zero_rows(centre, norms, radius, self.group, self.l1)
        return np.where(inside, np.minimum(upper, 0.9 * REJECT), upper)

    def steepest(self, products: Array) -> tuple[Array, Array] | None:
        return steepest_row(products, self.group, self.l1, self.positive)

    def zero_entries(self, centre: Array, errors: Array, norms: Array, radius: float) -> Array | None:
        if not self.has_entries or self.coupling is not None:
            return None
        return zero_entries(centre, norms, radius, self.l1, self.positive, errors)

    def thresholds(self) -> tuple[Array, Array | None] | None:
        return self.group, self.l1 if self.has_entries else None

    @property
    def outer(self) -> Array | None:
        return None if self.has_entries else self.group


class L21(SparseGroup):
    """``sum_j u_j ||W_j||_2``: a feature is in for all tasks or out for all."""

    label = "L2,1"
    formula = "α Σ_j ‖W_j‖₂"

    def parameters(self) -> dict[str, Any]:
        return {}

    def __init__(self) -> None:
        super().__init__(l1=0.0, group=1.0)

    certificate_form = SparseGroup.certificate_form


class L11(SparseGroup):
    """``sum_j u_j ||W_j||_1``: independent Lassos under one strength."""

    label = "L1,1"
    formula = "α Σ_j ‖W_j‖₁"

    def parameters(self) -> dict[str, Any]:
        return {}

    def __init__(self) -> None:
        super().__init__(l1=1.0, group=0.0)

    certificate_form = SparseGroup.certificate_form


def is_sparse_group(penalty: Any) -> TypeGuard[SparseGroup]:
    """Whether a penalty is one of these three: what is compiled for them knows nothing of classes derived from them."""
    return type(penalty) in (SparseGroup, L21, L11)
