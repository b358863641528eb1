"""Arrays that are read in blocks of rows: memory maps whose rows are contiguous or out of task order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._kernels import kernels
from .base import BLOCK_BYTES, ColumnStorage, ProductRequest, Reading, kept_type, part_read

Array = np.ndarray[Any, Any]


class MappedRowStorage(ColumnStorage):
    """Arrays stacked on top of each other, usually memory maps, whose rows are contiguous or out of task order: read in
    bounded blocks. Row ``order[i]`` of them stands at position ``i`` in task order."""

    costly_reads = True

    def __init__(self, blocks: Sequence[Array], order: Array | None) -> None:
        self.blocks = [block.view(np.ndarray) for block in blocks]
        self.n_features = blocks[0].shape[1]
        self.dtype = np.result_type(*[block.dtype for block in blocks])
        starts = np.cumsum([0] + [len(block) for block in blocks])
        self.n_rows = int(starts[-1])
        self._starts = starts
        self._order = order
        if order is not None:
            self._position = np.empty(self.n_rows, dtype=np.int64)  # inverse of order
            self._position[order] = np.arange(self.n_rows)

    def _row_blocks(self) -> Any:
        """(positions in task order, rows) of successive blocks that fit the working memory."""
        step = max(1, BLOCK_BYTES // (8 * max(self.n_features, 1)))
        for start, block in zip(self._starts, self.blocks, strict=False):
            for low in range(0, len(block), step):
                rows = block[low : low + step]
                first = int(start) + low
                positions = np.arange(first, first + len(rows))
                yield (positions if self._order is None else self._position[positions]), rows

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        positions = sorted(range(len(asked)), key=lambda k: not asked[k].squares)
        sums = [
            np.zeros((len(a.offsets) - 1, self.n_features if a.columns is None else len(a.columns))) for a in asked
        ]
        tasks_of = [None if a.shared else np.repeat(np.arange(len(a.offsets) - 1), np.diff(a.offsets)) for a in asked]
        for rows_at, rows in self._row_blocks():
            together: list[tuple[Array, Array, Array]] = []  # vectors, their tasks, sums: over all columns
            squares = 0
            for k in positions:
                a, task_of = asked[k], tasks_of[k]
                if task_of is not None:
                    lines = [(a.vector[rows_at], task_of[rows_at], sums[k])]
                else:
                    zeros = np.zeros(len(rows), dtype=np.int64)
                    lines = [
                        (a.vector[t * self.n_rows + rows_at], zeros, sums[k][t : t + 1]) for t in range(len(sums[k]))
                    ]
                if a.columns is None:
                    together += lines
                    squares += len(lines) if a.squares else 0
                else:
                    self._add(rows[:, a.columns], lines, len(lines) if a.squares else 0, threads)
            if together:
                self._add(rows, together, squares, threads)
        products = [np.ascontiguousarray(found.T) for found in sums]
        return Reading(products, part_read(asked, self.n_features))

    def _add(self, rows: Array, lines: list[tuple[Array, Array, Array]], squares: int, threads: int) -> None:
        vectors, tasks, out = ([*part] for part in zip(*lines, strict=True))
        block = np.ascontiguousarray(rows, dtype=kept_type(rows.dtype))
        kernels.row_products(block, vectors, squares, tasks, threads, out)

    def take(self, features: Array) -> Array:
        out = np.empty((self.n_rows, len(features)), order="F")
        for positions, rows in self._row_blocks():
            out[positions] = rows[:, features]
        return out
