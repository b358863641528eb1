"""Columns that some rows do not have: only what is present is stored, and nothing else is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .base import ColumnStorage, ProductRequest, Reading
from .dense import DenseStorage

Array = np.ndarray[Any, Any]


class ColumnGroup(NamedTuple):
    """Columns that the same rows have.

    - `features` (array of int): Which of all columns they are.
    - `rows` (array of int, increasing): Which rows have them, in task order.
    - `columns` (array, (len(rows), len(features)), Fortran order): What they hold.
    """

    features: Array
    rows: Array
    columns: Array


class PresentStorage(ColumnStorage):
    """Columns in groups, each of which some rows have; in the other rows, whole tasks, a column is zero without being
    stored, and its products there are zero without being computed.

    - `entries`: Numbers stored.
    - `multiplied`: Numbers multiplied so far by `read`, one for each vector that it met.
    """

    def __init__(self, groups: Sequence[ColumnGroup], n_rows: int, n_features: int, dtype: Any) -> None:
        self.n_rows, self.n_features, self.dtype = n_rows, n_features, np.dtype(dtype)
        self._groups = [group for group in groups if len(group.features)]
        self._parts = [DenseStorage(group.columns) for group in self._groups]
        #: of each column: its group (-1: no row has it), and its place there
        self._group_of, self._place = np.full(n_features, -1), np.zeros(n_features, dtype=np.int64)
        for g, group in enumerate(self._groups):
            self._group_of[group.features] = g
            self._place[group.features] = np.arange(len(group.features))
        self.costly_reads = any(part.costly_reads for part in self._parts)
        self.entries = sum(part.x.size for part in self._parts)
        self.multiplied = 0

    def _cut(self, features: Array | None) -> list[tuple[ColumnGroup, DenseStorage, Any, Array | None]]:
        """(group, its numbers, positions in `features`, places in the group); None: all columns."""
        if features is None:
            return [
                (group, part, group.features, None) for group, part in zip(self._groups, self._parts, strict=True)
            ]
        owner = self._group_of[features]
        found: list[tuple[ColumnGroup, DenseStorage, Any, Array | None]] = []
        for g in np.unique(owner[owner >= 0]).tolist():
            positions = np.flatnonzero(owner == g)
            found.append((self._groups[g], self._parts[g], positions, self._place[features[positions]]))
        return found

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        products = [
            np.zeros((self.n_features if a.columns is None else len(a.columns), len(a.offsets) - 1)) for a in asked
        ]
        once, read = [k for k, a in enumerate(asked) if a.columns is None], 0
        for batch in [once, *([k] for k, a in enumerate(asked) if a.columns is not None)]:
            if not batch:
                continue
            for group, part, positions, places in self._cut(asked[batch[0]].columns):
                own = [self._request(asked[k], group, places) for k in batch]
                for k, answer in zip(batch, part.read(own, threads).products, strict=True):
                    products[k][positions] = answer
                entries = len(group.rows) * len(positions)
                read, self.multiplied = read + entries, self.multiplied + entries * len(batch)
        return Reading(products, read / max(self.entries, 1))

    def _request(self, a: ProductRequest, group: ColumnGroup, places: Array | None) -> ProductRequest:
        """The same for the rows that have the columns of a group."""
        if len(group.rows) == self.n_rows:
            return replace(a, columns=places)
        assert not a.shared  # rows that all tasks see have the same columns
        offsets = np.searchsorted(group.rows, a.offsets).astype(np.int64)
        return ProductRequest(a.vector[group.rows], offsets, False, places, a.squares)

    def take(self, features: Array) -> Array:
        out = np.zeros((self.n_rows, len(features)), order="F")
        for group, part, positions, places in self._cut(np.asarray(features)):
            found = part.x[:, places]
            if len(group.rows) == self.n_rows:
                out[:, positions] = found
            else:
                out[np.ix_(group.rows, positions)] = found
        return out
