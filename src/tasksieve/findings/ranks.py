"""Rows, and sets of rows, distinguished by their content: columns of X are read only as long as some are alike."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..tasks import TaskData

Array = np.ndarray[Any, Any]

_BLOCK_ENTRIES = 1 << 22  # of X, read at a time to distinguish rows


def column_blocks(data: TaskData) -> Iterator[Array]:
    """Columns in their order, a few at first, then more at a time."""
    low, width, most = 0, 1, max(1, _BLOCK_ENTRIES // max(data.n_rows, 1))
    while low < data.n_features:
        high = min(low + width, data.n_features)
        yield data.take(np.arange(low, high)) + 0.0  # no zero has a sign
        low, width = high, min(2 * width, most)


def refined(ranks: Array, keys: list[Array]) -> Array:
    """Ranks (the number of those before) of members of whole ties, which further keys break, the last of
    these first."""
    order = np.lexsort([*keys, ranks])
    sorted_keys = [key[order] for key in (*keys, ranks)]
    opens = np.ones(len(order), dtype=bool)  # whether one differs from the one before
    opens[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in sorted_keys])
    new_tie = np.ones(len(order), dtype=bool)
    new_tie[1:] = sorted_keys[-1][1:] != sorted_keys[-1][:-1]
    positions = np.arange(len(order))
    start = np.maximum.accumulate(np.where(opens, positions, 0))
    base = np.maximum.accumulate(np.where(new_tie, positions, 0))
    found = np.empty_like(ranks)
    found[order] = sorted_keys[-1] + start - base
    return found


def content_ranks(data: TaskData, rows: Array, keys: list[Array]) -> Array:
    """The place of each row, sorted by keys, the last of these first, and then by columns of X, which are read only
    while some are equal."""
    ranks = refined(np.zeros(len(rows), dtype=np.int64), keys)
    blocks = column_blocks(data)
    while len(tied := np.flatnonzero(np.bincount(ranks)[ranks] > 1)) and (block := next(blocks, None)) is not None:
        ranks[tied] = refined(ranks[tied], list(block[rows[tied]].T[::-1]))
    return ranks


def content_names(data: TaskData, first: Sequence[bytes], rows: Sequence[Array]) -> list[bytes]:
    """A name for each of several sets of rows that its content gives it: a hash of what comes first, and of as many
    columns as distinguish it from all others; those that are the same in everything are numbered."""
    found = [hashlib.sha256(part) for part in first]

    def alike() -> list[int]:
        digests = [hashed.digest() for hashed in found]
        counts = Counter(digests)
        return [k for k, digest in enumerate(digests) if counts[digest] > 1]

    columns = (column for block in column_blocks(data) for column in block.T)
    while (tied := alike()) and (column := next(columns, None)) is not None:
        for k in tied:
            found[k].update(column[rows[k]].tobytes())
    seen: Counter[bytes] = Counter()
    names = []
    for digest in (hashed.digest() for hashed in found):
        names.append(digest + seen[digest].to_bytes(4, "big"))
        seen[digest] += 1
    return names
