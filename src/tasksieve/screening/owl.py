"""Safe tests for the sorted norm: which rows of a Group OWL model are certainly zero.

Both take upper bounds ``U_j >= ||m_j(u*)||`` (a ball around a dual point gives them) and the weights of the norm.
With them they look at the sorted bounds only, so what they keep is always a prefix of the sorted order, and
repeating a test on the rows it left costs nothing: O(d log d) in all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["SORTED_TESTS", "bao_test", "cumulative_test"]

_MARGIN = 1e-9  # a bound must be below its threshold by more than rounding


def bao_test(upper: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows with ``U_j < weight_|A|``, A the rows not yet rejected, repeated (Bao et al. 2025, eq. 20).

    Safe, since every active row has ``||m_j|| >= weight_|A*| >= weight_|A|``; rows rejected take the smallest
    weights.
    """
    ranked = np.sort(upper)[::-1]
    kept = len(ranked)
    while kept:
        threshold = weights[kept - 1] * (1.0 - _MARGIN)
        left = int(np.searchsorted(-ranked[:kept], -threshold, side="right"))
        if left == kept:
            break
        kept = left
    return _beyond(upper, ranked, kept)


def cumulative_test(upper: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows with ``U_j < min_{q <= |A|} tau_q``, repeated (mathematics, section 6).

    A row active in a cluster that ends at rank q has ``||m_j|| >= tau_q = weight_q + max_{p <= q} sum_{k=p}^{q-1}
    (weight_k - U_(k))``: the cluster's sums are met with equality, and the rows before it can use up only their
    bounds. Never weaker than `bao_test`, and at convergence it finds every row that can be found.
    """
    ranked = np.sort(upper)[::-1]
    count = len(ranked)
    weights = weights[:count]
    sums = np.concatenate([[0.0], np.cumsum(weights - ranked)[:-1]])
    slack = 1e-15 * count**0.5 * np.cumsum(weights + ranked)  # rounding of the cumulative sums
    tau = (weights + sums - np.minimum.accumulate(sums)) * (1.0 - _MARGIN) - slack
    least = np.minimum.accumulate(tau)
    kept = count
    while kept:
        left = int(np.searchsorted(-ranked[:kept], -least[kept - 1], side="right"))
        if left == kept:
            break
        kept = left
    return _beyond(upper, ranked, kept)


def _beyond(upper: NDArray[np.float64], ranked: NDArray[np.float64], kept: int) -> NDArray[np.bool_]:
    """Rows whose bound is smaller than the kept ones; rows tied with a kept one are kept."""
    if kept == 0:
        return np.ones(len(upper), dtype=bool)
    return np.asarray(upper < ranked[kept - 1])


SORTED_TESTS = {"cumulative": cumulative_test, "bao": bao_test}
