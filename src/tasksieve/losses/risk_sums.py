"""Sums over risk sets, of numbers or of their logarithms.

`at_risk` takes a number a row to its sums over the rows at risk in each group, `exposure` takes a number a group to its
sums over the groups in which a row is at risk; rows are so in an interval of groups. Where risk sets are nested both
are cumulative sums over *slots*: a block of G groups has G + 1 of them, and a row in slot h is at risk in the first h
groups. Else they are sums over the nodes of a binary tree. Nothing is subtracted in either, so that all sums of
positive numbers are accurate to a few roundings a term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Arithmetic:
    """How positive numbers are written, and what one does with them.

    - `zero`: As it is written.
    - `summed`: ``summed(where, values, count)``: sums by place.
    - `written`, `numbers`, `logarithms`: From numbers, to numbers, to their logarithms.
    """

    zero: float
    add: np.ufunc
    multiply: np.ufunc
    divide: np.ufunc
    summed: Callable[[Array, Array, int], Array]
    written: Callable[[Array], Array]
    numbers: Callable[[Array], Array]
    logarithms: Callable[[Array], Array]


def _log_summed(where: Array, logs: Array, count: int) -> Array:
    out = np.full(count, -np.inf)
    np.logaddexp.at(out, where, logs)
    return out


def _same(values: Array) -> Array:
    return values


NUMBERS = Arithmetic(0.0, np.add, np.multiply, np.divide, np.bincount, _same, _same, np.log)
#: for numbers that lie too far apart for one scale
LOGARITHMS = Arithmetic(-np.inf, np.logaddexp, np.add, np.subtract, _log_summed, np.log, np.exp, _same)


class NestedSums:
    """Rows are at risk from the first group of their block until before `stop`.

    - `ends`: Of the groups of each block, and 0 before them.
    """

    def __init__(self, stop: Array, block: Array, ends: Array) -> None:
        n_blocks = len(ends) - 1
        self._slot, self._n_slots = stop + block, int(ends[-1]) + n_blocks
        self._slot_of_group = np.arange(ends[-1]) + np.repeat(np.arange(n_blocks), np.diff(ends))
        #: of each block: its first group and the one after its last, and its first slot
        self._blocks = np.stack([ends[:-1], ends[1:], ends[:-1] + np.arange(n_blocks)], axis=1).tolist()

    def at_risk(self, values: Array, by: Arithmetic) -> Array:
        slots = by.summed(self._slot, values, self._n_slots)
        out = np.empty(len(self._slot_of_group))
        for low, high, start in self._blocks:
            by.add.accumulate(slots[start + high - low : start : -1], out=out[low:high][::-1])
        return out

    def exposure(self, values: Array, by: Arithmetic) -> Array:
        return self._before(values, by)[self._slot]

    def before(self, values: Array, by: Arithmetic) -> Array:
        """By group: the sum over the earlier ones of its block."""
        return self._before(values, by)[self._slot_of_group]

    def _before(self, values: Array, by: Arithmetic) -> Array:
        slots = np.full(self._n_slots, by.zero)
        for low, high, start in self._blocks:
            by.add.accumulate(values[low:high], out=slots[start + 1 : start + 1 + high - low])
        return slots


class TreeSums:
    """Rows are at risk from group `low` until before `high`: each of these intervals is a few whole nodes of a binary
    tree."""

    def __init__(self, low: Array, high: Array, count: int) -> None:
        self._count, self._levels = count, max(int(count - 1).bit_length(), 0)
        size = self._size = 1 << self._levels
        left, right, rows = low + size, high + size, np.arange(len(low))
        found_rows, found_nodes = [], []
        while np.any(left < right):
            for chosen, node in (((left & 1) == 1, left), ((right & 1) == 1, right - 1)):
                taken = chosen & (left < right)
                found_rows.append(rows[taken])
                found_nodes.append(node[taken])
                if node is left:
                    left = left + taken
                else:
                    right = right - taken
            left, right = left >> 1, right >> 1
        self._rows = np.concatenate(found_rows) if found_rows else np.empty(0, dtype=np.int64)
        self._nodes = np.concatenate(found_nodes) if found_nodes else np.empty(0, dtype=np.int64)
        self._n_rows = len(low)

    def at_risk(self, values: Array, by: Arithmetic) -> Array:
        nodes = by.summed(self._nodes, values[self._rows], 2 * self._size)
        for level in range(1, self._levels + 1):
            own = slice(1 << level, 2 << level)
            nodes[own] = by.add(nodes[own], np.repeat(nodes[1 << (level - 1) : 1 << level], 2))
        return nodes[self._size : self._size + self._count]

    def exposure(self, values: Array, by: Arithmetic) -> Array:
        nodes = np.full(2 * self._size, by.zero)
        nodes[self._size : self._size + self._count] = values
        for level in range(self._levels - 1, -1, -1):
            below = nodes[2 << level : 4 << level]
            nodes[1 << level : 2 << level] = by.add(below[::2], below[1::2])
        return by.summed(self._rows, nodes[self._nodes], self._n_rows)
