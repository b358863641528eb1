"""Tasks of rows that go by in chunks, as numbers in the order in which their labels came."""

from __future__ import annotations

from typing import Any

import numpy as np

from .row_columns import tidy_labels
from .table import Array, CodedColumn, Column

_MOST_APART = 1 << 20  # whole numbers that are looked up in a table, not sorted


class TaskCodes:
    """Labels that have come so far, and their codes."""

    def __init__(self) -> None:
        self.labels: list[Any] = []
        self._position: dict[Any, int] = {}

    def codes(self, column: Column, kept: Array | None = None) -> Array:
        """The codes of the rows of a chunk, or of some of them; none has a missing label."""
        if isinstance(column, CodedColumn):
            codes = column.codes if kept is None else column.codes[kept]
            present = np.flatnonzero(np.bincount(codes, minlength=len(column.words)))
            return self._known(present, [str(column.words[k]) for k in present.tolist()], len(column.words))[codes]
        values = tidy_labels(column.values if kept is None else column.values[kept])
        if values.dtype.kind in "iu" and len(values):
            low, high = int(values.min()), int(values.max())
            if high - low < _MOST_APART:
                shifted = values.astype(np.int64) - low
                present = np.flatnonzero(np.bincount(shifted))
                return self._known(present, (present + low).tolist(), high - low + 1)[shifted]
        names, inverse = np.unique(values, return_inverse=True)
        return self._known(np.arange(len(names)), names.tolist(), len(names))[inverse]

    def _known(self, positions: Array, labels: list[Any], count: int) -> Array:
        """A table of `count` codes, with those of the labels at their positions."""
        table = np.zeros(count, dtype=np.int64)
        for label in labels:
            if label not in self._position:
                self._position[label] = len(self.labels)
                self.labels.append(label)
        table[positions] = [self._position[label] for label in labels]
        return table
