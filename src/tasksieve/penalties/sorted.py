"""The sorted norm of Group OWL: weights on the rows of W in the order of their norms.

    J(W) = sum_k weight_k ||W||_[k],    ||W||_[1] >= ||W||_[2] >= ...,   weight_1 >= weight_2 >= ... >= 0

Its dual ball is ``{M : cumsum(sorted ||M_j||)_k <= cumsum(weight)_k for all k}`` (mathematics, sections 4 and 6),
so the one number that stands for feasibility is a maximum of ratios of cumulative sums. Rows that are known to be
zero take the smallest weights: the norm on m rows has the first m weights, whichever rows they are.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from .._kernels import kernels
from ..complex_numbers import refuse_complex
from ..screening.owl import SORTED_TESTS
from .base import Manifold, RowPenalty, row_norms

Array = np.ndarray[Any, Any]

_TIED = 1e-9  # relative: norms that differ by less are equal
_LEAST_SHARE = 1e-3  # of the largest weight: rows that bear less would move without bound


class EqualNorms(Manifold):
    """Rows in blocks of equal norms."""

    def moved(self, sizes: Array, change: Array) -> Array:
        turned = self.rows + change
        norms = row_norms(turned)
        scale = np.divide(np.maximum(sizes, 0.0)[self.block], norms, out=np.zeros_like(norms), where=norms > 0.0)
        return np.asarray(scale[:, None] * turned)


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
    if weights is None or isinstance(weights, str | Real):
        if weights == "oscar":
            return oscar_weights(n_features, oscar_ratio)
        if weights == "slope":
            return slope_weights(n_features, fdr)
        equal = " Equal weights for all ranks, np.ones(d), are the model MultiTaskLasso."
        raise ValueError(
            f"weights must be 'oscar', 'slope' or an array of {n_features} numbers; got {weights!r}."
            f"{'' if isinstance(weights, str) else equal}"
        )
    refuse_complex(weights, "weights")
    try:
        shape = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights must be 'oscar', 'slope' or an array of numbers: {error}.") from error
    if shape.ndim != 1 or len(shape) != n_features:
        raise ValueError(
            f"weights has shape {shape.shape}, but X has {n_features} features: one weight is needed for each rank, "
            f"an array of shape ({n_features},)."
        )
    for wrong, words in ((~np.isfinite(shape), "must be finite numbers"), (shape < 0.0, "must not be negative")):
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ValueError(f"weights[{k}] is {shape[k]:g}: weights {words}.")
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


class Sorted(RowPenalty):
    """``sum_k weight_k ||W||_[k]``, rows of W in the order of their norms (Group OWL).

    The gauges of rows are their norms over the largest weight; feasibility is a matter of all of them together.

    Parameters
    ----------
    weights : {"oscar", "slope"} or array
        The shape, non-increasing; see `read_sorted_weights`.
    oscar_ratio, fdr : float
        For "oscar" and "slope".
    test : {"cumulative", "bao"}
        Which safe test finds zero rows (`screening.owl`).
    """

    label = "sorted rows"
    formula = "α Σ_k ω_k ‖W_[k]‖₂, rows sorted by norm and ω falling,"
    separable = False
    tests = tuple(SORTED_TESTS)
    _kernel: Any

    def __init__(
        self, weights: Any = "oscar", *, oscar_ratio: float = 1.0, fdr: float = 0.1, test: str = "cumulative"
    ) -> None:
        self.shape = weights
        self.oscar_ratio = oscar_ratio
        self.fdr = fdr
        self.test = test

    def parameters(self) -> dict[str, Any]:
        return {"weights": self.shape, "oscar_ratio": self.oscar_ratio, "fdr": self.fdr, "test": self.test}

    def on(self, weights: Array, n_tasks: int, **options: Any) -> Self:
        if np.any(np.asarray(weights) != 1.0):
            raise ValueError("a sorted penalty has weights of ranks, not of features: leave feature_weights out")
        shape = read_sorted_weights(self.shape, len(weights), self.oscar_ratio, self.fdr)
        bound = super().on(shape, n_tasks, **options)
        bound._kernel = kernels.SortedNorm()
        return bound

    def __getstate__(self) -> dict[str, Any]:
        """Without the kernel, which holds work arrays only."""
        return {name: value for name, value in self.__dict__.items() if name != "_kernel"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "weights" in state:
            self._kernel = kernels.SortedNorm()

    def certificate_form(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"name": "sorted"}, {"sorted_weights": self.weights}

    def restrict(self, features: Array) -> Self:
        """The norm on some rows, all others being zero: it has the first weights, whichever rows they are."""
        smaller = super().restrict(slice(0, len(features)))  # type: ignore[arg-type]
        smaller.__dict__.pop("_totals", None)
        smaller._top = self._top
        return smaller

    def times(self, factor: float) -> Self:
        scaled = super().times(factor)
        scaled.__dict__.pop("_totals", None)
        scaled.__dict__.pop("_top", None)
        return scaled

    @cached_property
    def _top(self) -> float:
        """The largest weight of all: gauges are in its units, also on a part of the rows."""
        return float(self.weights[0])

    @cached_property
    def _totals(self) -> Array:
        """Cumulative weights in the units of gauges."""
        return np.cumsum(self.weights) / self._top

    @property
    def penalised(self) -> Array:
        return np.ones(len(self.weights), dtype=bool)

    def value(self, rows: Array) -> float:
        sizes = row_norms(rows)
        sizes = np.sort(sizes[sizes > 0.0])[::-1]
        return float(sizes @ self.weights[: len(sizes)])

    def gauges(self, products: Array) -> Array:
        return row_norms(products) / self._top

    def row_gauges(self, products: Array) -> Array:
        return self.gauges(np.maximum(products, 0.0) if self.positive else products)

    def reach(self, centre: Array, norms: Array, radius: float) -> Array:
        return (row_norms(centre) + radius * np.max(norms, axis=1, initial=0.0)) / self._top

    def prox(self, rows: Array, step: float) -> Array:
        """O(d log d)."""
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        out = np.empty_like(rows)
        self._kernel.prox(rows, self.weights, step, False, out)
        return out

    @property
    def euclid(self) -> Array | float | None:
        return 1.0 / self._top

    def thresholds(self) -> tuple[Array, Array | None] | None:
        return np.full(len(self.weights), self._top), None

    def sorted_form(self) -> Array | None:
        return self.weights

    def manifold(self, rows: Array, products: Array) -> Manifold | None:
        """Blocks of equal norms. Across, a row moves on the sphere of its norm s: with ``mu = <M_j, u_j>``, the part of
        its block's weights that it bears, the norm's second derivative is ``mu/s (I - u u')``."""
        norms = row_norms(rows)
        live = np.argsort(-norms, kind="stable")[: int(np.count_nonzero(norms))]
        if not len(live):
            return None
        sizes = norms[live]
        starts = np.flatnonzero(np.append(True, sizes[1:] < sizes[:-1] * (1.0 - _TIED)))
        weights = self.weights[: len(live)]
        units = rows[live] / sizes[:, None]
        borne = np.maximum(np.einsum("jt,jt->j", units, products[live]), _LEAST_SHARE * self._top)
        softness = sizes / borne
        compliance = np.repeat(softness[:, None], rows.shape[1], axis=1)
        if self.positive:
            compliance[units == 0.0] = 0.0
        return EqualNorms(
            live=live,
            starts=starts,
            sizes=sizes[starts],
            slopes=np.add.reduceat(weights, starts),
            ordered=True,
            rows=rows[live],
            directions=units,
            compliance=compliance,
            across=np.sqrt(softness)[:, None] * units,
        )

    def polar(self, gauges: Array) -> float:
        ranked = np.sort(gauges)[::-1]
        return float(np.max(np.cumsum(ranked) / self._totals[: len(ranked)], initial=0.0))

    def certified(self, upper: Array, known: Array) -> Array:
        """Every bound counts: it has a rank of its own."""
        return upper

    def inactive(self, upper: Array) -> Array:
        return np.asarray(SORTED_TESTS[self.test](upper * self._top, self.weights))

    def open(self, upper: Array, known: Array) -> Array:
        """Features that are only bounded, and could lift a cumulative sum above what the known ones reach."""
        sure = self.polar(np.where(known, upper, 0.0))
        order = np.argsort(-upper, kind="stable")
        ratios = np.cumsum(upper[order]) / self._totals
        above = np.flatnonzero(ratios > sure * (1.0 + 1e-10))
        if not len(above):
            return order[:0]
        prefix = order[: int(above[-1]) + 1]
        return np.sort(prefix[~known[prefix]])

    def leading(self, gauges: Array) -> Array:
        """The ranks at which cumulative sums exceed most.

        At an optimum the cumulative sums of an active set equal those of the weights; what exceeds them belongs in.
        """
        order = np.argsort(-gauges, kind="stable")
        excess = np.cumsum(gauges[order] - self.weights[: len(order)] / self._top)
        k = int(np.argmax(excess)) if len(order) else 0
        return order[: k + 1] if len(order) and excess[k] > 0.0 else order[:0]

    def ties(self, features: Array, rows: Array) -> list[Array] | None:
        return tied_rows(rows, features)

    def promising(self, levels: Array, last: float, lam: float) -> Array:
        return np.sort(self.leading(levels / lam))


def tied_rows(rows: Array, names: Array | None = None, tolerance: float = _TIED) -> list[Array]:
    """Groups of rows with the same non-zero norm (up to rounding), largest first; ascending within a group.

    By their indices, or by `names` that ascend.
    """
    sizes = row_norms(rows)
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0.0]
    if not len(order):
        return []
    ranked = sizes[order]
    smaller = ranked[1:] < ranked[:-1] * (1.0 - tolerance)
    group = np.zeros(len(order), dtype=np.int64)
    np.cumsum(smaller, out=group[1:])
    order = order[np.lexsort((order, group))]
    order = order if names is None else names[order]
    cuts = [0, *(smaller.nonzero()[0] + 1).tolist(), len(order)]
    return [order[low:high] for low, high in pairwise(cuts)]
