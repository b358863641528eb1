"""Rows ranked by what they hold: columns of X are read only as long as some cannot be told apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..tasks import TaskData

Array = np.ndarray[Any, Any]

_BLOCK_ENTRIES = 1 << 22  # of X, read at a time to tell rows apart


def column_blocks(data: TaskData) -> Iterator[Array]:
    """Columns in their order, a few at first, then more at a time."""
    low, width, most = 0, 1, max(1, _BLOCK_ENTRIES // max(data.n_rows, 1))
    while low < data.n_features:
        high = min(low + width, data.n_features)
        yield data.take(np.arange(low, high)) + 0.0  # no zero has a sign
        low, width = high, min(2 * width, most)


def refined(ranks: Array, keys: list[Array]) -> Array:
    """Ranks (the number of those before) of members of whole ties, which further keys tell apart, the last of these
    first."""
    order = np.lexsort([*keys, ranks])
    sorted_keys = [key[order] for key in (*keys, ranks)]
    opens = np.ones(len(order), dtype=bool)  # whether one differs from the one before
    opens[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in sorted_keys])
    new_tie = np.ones(len(order), dtype=bool)
    new_tie[1:] = sorted_keys[-1][1:] != sorted_keys[-1][:-1]
    places = np.arange(len(order))
    start = np.maximum.accumulate(np.where(opens, places, 0))
    base = np.maximum.accumulate(np.where(new_tie, places, 0))
    found = np.empty_like(ranks)
    found[order] = sorted_keys[-1] + start - base
    return found
