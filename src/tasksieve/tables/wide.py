"""Columns of very wide tables: numbers lie in one matrix, and a column is made when it is accessed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .table import Array, Column

# Tables of more columns are read into one matrix: thousands of small arrays take more memory than their numbers.
WIDE = 2000
# Columns copied at a time where a matrix is put together from columns all over another.
STEP = 4096
# Whole numbers beyond this are not all numbers of a float64.
LARGEST_WHOLE = 2.0**53


class WideColumns(Mapping[str, Column]):
    """All columns of a wide table, by name, in the order of the file.

    - `block` (array of shape (n, len(names))): The numbers, NaN where missing, in Fortran order; what it holds in the
      columns of `others` means nothing.
    - `whole` (bool array of shape (len(names),)): Columns whose numbers were written as whole ones.
    - `others` (dict of name to Column): Columns that hold something else.
    """

    def __init__(self, names: list[str], block: Array, whole: Array, others: Mapping[str, Column]) -> None:
        self.names, self.block, self.whole, self.others = names, block, whole, dict(others)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> Column:
        if name in self.others:
            return self.others[name]
        j = self._position[name]
        values = self.block[:, j]
        if self.whole[j] and values.dtype.kind == "f":
            values = values.astype(np.int64)
        return Column("number", values)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._position

    def positions(self, names: Sequence[str]) -> Array:
        """Where the numbers of columns are; -1 for columns that hold something else, or that are not there."""
        if names is self.names:
            found = np.arange(len(names))
        else:
            get = self._position.get
            found = np.fromiter((get(name, -1) for name in names), dtype=np.int64, count=len(names))
        if self.others:
            apart = np.array([self._position[name] for name in self.others])
            found[np.isin(found, apart)] = -1
        return found

    def numbers(self, positions: Array) -> Array:
        """Some columns of the block, as they lie where they lie together, else a copy."""
        if len(positions) and np.array_equal(positions, np.arange(positions[0], positions[0] + len(positions))):
            return self.block[:, positions[0] : positions[0] + len(positions)]
        out = np.empty((len(self.block), len(positions)), dtype=self.block.dtype, order="F")
        for low in range(0, len(positions), STEP):
            out[:, low : low + STEP] = self.block[:, positions[low : low + STEP]]
        return out

    def worth_a_look(self, names: Sequence[str], fewest: int, n: int, days: tuple[int, int]) -> list[str]:
        """Columns that may be ids or dates: those that are no numbers, and whole numbers that could all differ in a
        part of `n` rows (in `fewest` that is no coincidence) or lie between two days of the calendar."""
        positions = self.positions(names)
        suspects = positions < 0
        candidates = np.flatnonzero(self.whole)
        if len(candidates) and len(self.block):
            low, high = self._extremes(candidates)
            own = ((high - low >= n - 1) & (n >= fewest)) | ((low >= days[0]) & (high <= days[1]))
            odd = np.zeros(len(self.names), dtype=bool)
            odd[candidates] = own
            suspects |= odd[positions] & (positions >= 0)
        return [names[k] for k in np.flatnonzero(suspects).tolist()]

    def _extremes(self, positions: Array) -> tuple[Array, Array]:
        parts = [self.block[:, positions[low : low + STEP]] for low in range(0, len(positions), STEP)]
        return np.concatenate([part.min(axis=0) for part in parts]), np.concatenate([p.max(axis=0) for p in parts])

    def where(self, test: Any, positions: Array) -> list[tuple[int, Array]]:
        """Of some columns of the block those with values that are missing (`np.isnan`) or infinite (`np.isinf`), by
        their index in `positions`, and the rows."""
        if self.block.dtype.kind != "f":
            return []
        found = []
        for low in range(0, len(positions), STEP):
            bad = test(self.block[:, positions[low : low + STEP]])
            for k in np.flatnonzero(bad.any(axis=0)).tolist():
                found.append((low + k, np.flatnonzero(bad[:, k])))
        return found


class PlainColumns(Sequence[tuple[str, None]]):
    """(name, None) for each of many columns that are numbers as they are."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def __getitem__(self, k: Any) -> Any:
        return [(name, None) for name in self.names[k]] if isinstance(k, slice) else (self.names[k], None)

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]
