"""The sorted norm of Group OWL: weights on the rows of W in the order of their norms.

    J(W) = sum_k weight_k ||W||_[k],    ||W||_[1] >= ||W||_[2] >= ...,   weight_1 >= weight_2 >= ... >= 0

Its dual ball is ``{M : cumsum(sorted ||M_j||)_k <= cumsum(weight)_k for all k}`` (mathematics, sections 4 and 6),
so the one number that stands for feasibility is a maximum of ratios of cumulative sums. Rows that are known to be
zero take the smallest weights: the norm on m rows has the first m weights, whichever rows they are.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtri

from .._kernels import kernels
from .rows import row_norms

Array = np.ndarray[Any, Any]

__all__ = ["SortedPenalty", "oscar_weights", "read_sorted_weights", "slope_weights", "tied_rows"]


def oscar_weights(n_features: int, ratio: float = 1.0) -> Array:
    """``1 + ratio (d - k)/d`` for k = 1..d, divided by the first: OSCAR with ``ratio = a2 d / a1``."""
    falling = 1.0 + ratio * (n_features - np.arange(1.0, n_features + 1.0)) / n_features
    return np.asarray(falling / falling[0])


def slope_weights(n_features: int, fdr: float = 0.1) -> Array:
    """``Phi^-1(1 - k q / (2 d))`` for k = 1..d, divided by the first: the Benjamini-Hochberg line of SLOPE."""
    levels = -ndtri(fdr * np.arange(1.0, n_features + 1.0) / (2.0 * n_features))
    levels = np.maximum(levels, 0.0)  # fdr = 1 ends at Phi^-1(1/2), up to rounding
    return np.asarray(levels / levels[0]) if levels[0] > 0.0 else np.ones(n_features)


def read_sorted_weights(weights: Any, n_features: int, oscar_ratio: float = 1.0, fdr: float = 0.1) -> Array:
    """The shape of a sorted norm: "oscar", "slope", or a non-increasing non-negative array, taken as it is."""
    if isinstance(weights, str):
        if weights == "oscar":
            return oscar_weights(n_features, oscar_ratio)
        if weights == "slope":
            return slope_weights(n_features, fdr)
        raise ValueError(
            f"weights must be 'oscar', 'slope' or an array of {n_features} numbers; got {weights!r}."
        )
    if weights is None or isinstance(weights, Real):
        raise ValueError(
            f"weights must be 'oscar', 'slope' or an array of {n_features} numbers; got {weights!r}. Equal weights "
            "for all ranks, np.ones(d), are the model MultiTaskLasso."
        )
    try:
        shape = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights must be 'oscar', 'slope' or an array of numbers: {error}.") from error
    if shape.ndim != 1 or len(shape) != n_features:
        raise ValueError(
            f"weights has shape {shape.shape}, but X has {n_features} features: one weight is needed for each rank, "
            f"an array of shape ({n_features},)."
        )
    bad = np.flatnonzero(~np.isfinite(shape))
    if bad.size:
        raise ValueError(f"weights[{bad[0]}] is {shape[bad[0]]}: weights must be finite numbers.")
    bad = np.flatnonzero(shape < 0.0)
    if bad.size:
        raise ValueError(f"weights[{bad[0]}] is {shape[bad[0]]:g}: weights must not be negative.")
    bad = np.flatnonzero(np.diff(shape) > 0.0)
    if bad.size:
        k = int(bad[0])
        raise ValueError(
            f"weights increase from {shape[k]:g} at rank {k} to {shape[k + 1]:g} at rank {k + 1}: they belong to the "
            "rows in the order of decreasing norms and must not increase (sort them: np.sort(weights)[::-1])."
        )
    if shape[0] == 0.0:
        raise ValueError("weights are all zero: nothing would be penalised. The first must be positive.")
    return shape


class SortedPenalty:
    """``J(W)`` at one strength, for as many rows as it has weights.

    Parameters
    ----------
    weights : array
        Non-increasing, the strength included.
    positive : bool
        Only W >= 0. Then the dual ball is about the positive parts of M.
    """

    ridge = 0.0  # `solvers.working.duality_gap` asks

    def __init__(self, weights: Array, positive: bool = False, _kernel: Any = None) -> None:
        self.weights = np.ascontiguousarray(weights, dtype=np.float64)
        self.positive = positive
        self._kernel = kernels.SortedNorm() if _kernel is None else _kernel
        self._totals: Array | None = None

    def head(self, count: int) -> SortedPenalty:
        """The norm on `count` rows, all others being zero."""
        return SortedPenalty(self.weights[:count], self.positive, self._kernel)

    @property
    def totals(self) -> Array:
        """Cumulative weights."""
        if self._totals is None:
            self._totals = np.cumsum(self.weights)
        return self._totals

    def norm(self, rows: Array) -> float:
        """J(W)."""
        sizes = row_norms(rows)
        sizes = np.sort(sizes[sizes > 0.0])[::-1]
        return float(sizes @ self.weights[: len(sizes)])

    value = norm

    def sizes(self, products: Array) -> Array:
        """Norms of the rows of M that count in the dual ball."""
        return row_norms(np.maximum(products, 0.0) if self.positive else products)

    def polar(self, sizes: Array) -> float:
        """The smallest v with M/v in the dual ball, from the norms of its rows."""
        ranked = np.sort(sizes)[::-1]
        return float(np.max(np.cumsum(ranked) / self.totals[: len(ranked)], initial=0.0))

    def gauges(self, products: Array) -> Array:
        """The polar, as an array of one entry."""
        return np.array([self.polar(self.sizes(products))])

    def prox(self, rows: Array, step: float, out: Array | None = None) -> Array:
        """``argmin_V 1/2 ||V - rows||^2 + step J(V)``, O(d log d), in place if `out` is `rows`."""
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        out = np.empty_like(rows) if out is None else out
        self._kernel.prox(rows, self.weights, step, self.positive, out)
        return out

    def leading(self, sizes: Array) -> Array:
        """Rows that would be active if the correlations were these: the ranks at which cumulative sums exceed most.

        At an optimum the cumulative sums of an active set equal those of the weights; what exceeds them belongs in.
        """
        order = np.argsort(-sizes, kind="stable")
        excess = np.cumsum(sizes[order] - self.weights[: len(order)])
        k = int(np.argmax(excess)) if len(order) else 0
        return order[: k + 1] if len(order) and excess[k] > 0.0 else order[:0]


def tied_rows(rows: Array, tolerance: float = 1e-9) -> list[Array]:
    """Groups of rows with the same non-zero norm (up to rounding), largest first; indices within a group ascend."""
    sizes = row_norms(rows)
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0.0]
    if not len(order):
        return []
    ranked = sizes[order]
    cuts = np.flatnonzero(ranked[1:] < ranked[:-1] * (1.0 - tolerance)) + 1
    return [np.sort(group) for group in np.split(order, cuts)]
