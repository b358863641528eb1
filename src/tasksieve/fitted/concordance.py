r"""Harrell's concordance: of pairs of which one is known to outlive the other, the share in which its risk is lower.

A pair (i, j) is comparable where i has an event at a time at which j is under observation and does not have one:
:math:`\text{entry}_j < t_i < t_j`, or :math:`t_i = t_j` and j censored. Pairs with equal risks count one half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


# Comparable pairs below which a concordance is one of few.
FEW_PAIRS = 1000


@dataclass(frozen=True)
class Pairs:
    """By row: the weight of its comparable pairs, and of those in the right order, as the one that has the event and as
    the one that outlives it. All are the row's own weight times that of the others."""

    earlier: Array
    earlier_right: Array
    later: Array
    later_right: Array


def concordance(y: Array, risk: Array, weights: Array) -> float:
    """Of one task, within its strata, in O(n log n); NaN where no pair is comparable.

    - `y`: `outcomes.SURVIVAL`
    - `risk`: The larger, the earlier an event is expected.
    """
    found = compare_pairs(y, risk, weights, y["stratum"])
    total = float(np.sum(found.later))
    return float(np.sum(found.later_right)) / total if total > 0.0 else float("nan")


def count_pairs(y: Array, weights: Array, cell: Array) -> Array:
    """By row: in how many comparable pairs of rows that count it is the one that outlives the other."""
    return compare_pairs(y, np.zeros(len(y)), (weights > 0.0).astype(np.float64), cell).later


def compare_pairs(y: Array, risk: Array, weights: Array, cell: Array) -> Pairs:
    """All pairs of rows of the same cell (a stratum, or a stratum of a fold: numbers)."""
    cell = np.unique(cell, return_inverse=True)[1]
    levels = np.unique(np.concatenate([y["time"], y["entry"]]))
    time, entry = (cell * len(levels) + np.searchsorted(levels, y[name]) for name in ("time", "entry"))
    rank = np.unique(risk, return_inverse=True)[1]
    event = y["event"] & (weights > 0.0)
    # each row as the one that outlives: events of its cell after its entry and before its time
    events = np.flatnonzero(event)
    events = events[np.argsort(time[events], kind="stable")]
    low = np.searchsorted(time[events], entry, side="right")
    high = np.where(
        event,
        np.searchsorted(time[events], time, side="left"),
        np.searchsorted(time[events], time, side="right"),
    )
    high = np.maximum(high, low)
    below, equal, all_of_them = _counted(rank[events], weights[events], rank, low, high)
    later_right = weights * (all_of_them - below - 0.5 * equal)
    later = weights * all_of_them
    # each event: rows that outlive it, less those that enter later
    earlier, earlier_right = np.zeros((2, len(y)))
    own = np.flatnonzero(event)
    # those of a time, and then those that are censored there
    until = np.argsort(2 * time + ~y["event"], kind="stable")
    first = np.searchsorted((2 * time + ~y["event"])[until], 2 * time[own], side="right")
    last = np.searchsorted(time[until] // len(levels), cell[own], side="right")
    below, equal, found = _counted(rank[until], weights[until], rank[own], first, last)
    earlier[own], earlier_right[own] = found, below + 0.5 * equal
    if np.any(np.isfinite(y["entry"])):
        since = np.argsort(entry, kind="stable")
        first = np.searchsorted(entry[since], time[own], side="left")
        last = np.searchsorted(entry[since] // len(levels), cell[own], side="right")
        below, equal, found = _counted(rank[since], weights[since], rank[own], first, last)
        earlier[own] -= found
        earlier_right[own] -= below + 0.5 * equal
    return Pairs(weights * earlier, weights * earlier_right, later, later_right)


def _counted(
    ranks: Array, weights: Array, asked: Array, low: Array, high: Array
) -> tuple[Array, Array, Array]:
    """For each of some ranks: the weight of those in ``ranks[low:high]`` below it, of those equal to it, and of all.

    A wavelet matrix: ranks are parted by one binary digit after the other, the largest first, order within the parts
    being kept, so that a stretch stays a stretch.
    """
    total = np.concatenate([[0.0], np.cumsum(weights)])
    whole = total[high] - total[low]
    below = np.zeros(len(asked))
    top = int(max(ranks.max(initial=0), asked.max(initial=0)))
    for digit in reversed(range(top.bit_length())):
        one = (ranks >> digit) & 1 == 1
        zeros = np.concatenate([[0], np.cumsum(~one)])
        weight = np.concatenate([[0.0], np.cumsum(np.where(one, 0.0, weights))])
        up = (asked >> digit) & 1 == 1
        below += np.where(up, weight[high] - weight[low], 0.0)
        n_zeros = int(zeros[-1])
        low, high = (np.where(up, n_zeros + ends - zeros[ends], zeros[ends]) for ends in (low, high))
        order = np.concatenate([np.flatnonzero(~one), np.flatnonzero(one)])
        ranks, weights = ranks[order], weights[order]
    total = np.concatenate([[0.0], np.cumsum(weights)])
    return below, total[high] - total[low], whole
