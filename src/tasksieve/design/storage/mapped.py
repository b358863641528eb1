"""Arrays that are read in blocks of rows: memory maps whose rows are contiguous or out of task order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._kernels import kernels
from .base import BLOCK_BYTES, for_kernels

Array = np.ndarray[Any, Any]


class MappedRowStorage:
    """Arrays whose rows are contiguous or out of task order, usually memory maps: read in bounded blocks.

    Parameters
    ----------
    blocks : list of arrays
        Stacked on top of each other; never copied as a whole.
    order : array or None
        ``order[i]`` is the row of the stacked blocks that stands at place ``i`` in task order.
    """

    reads_once = True
    sparse = False

    def __init__(self, blocks: Sequence[Array], order: Array | None) -> None:
        self.blocks = [block.view(np.ndarray) for block in blocks]
        self.n_features = blocks[0].shape[1]
        self.dtype = np.result_type(*[block.dtype for block in blocks])
        starts = np.cumsum([0] + [len(block) for block in blocks])
        self.n_rows = int(starts[-1])
        self._starts = starts
        self._order = order
        if order is not None:
            self._place = np.empty(self.n_rows, dtype=np.int64)  # inverse of order
            self._place[order] = np.arange(self.n_rows)

    def _row_blocks(self) -> Any:
        """(places in task order, rows) of successive blocks that fit the working memory."""
        step = max(1, BLOCK_BYTES // (8 * max(self.n_features, 1)))
        for start, block in zip(self._starts, self.blocks, strict=False):
            for low in range(0, len(block), step):
                rows = block[low : low + step]
                first = int(start) + low
                places = np.arange(first, first + len(rows))
                yield (places if self._order is None else self._place[places]), rows

    def products(
        self, vector: Array, offsets: Array, shared: bool, columns: Array | None, squares: bool, threads: int
    ) -> Array:
        tasks = len(offsets) - 1
        width = self.n_features if columns is None else len(columns)
        out = np.zeros((tasks, width))
        task_of = None if shared else np.repeat(np.arange(tasks), np.diff(offsets))
        for places, rows in self._row_blocks():
            block = self._for_products(rows if columns is None else rows[:, columns])
            if task_of is not None:
                kernels.row_products(block, vector[places], task_of[places], squares, threads, out)
                continue
            for t in range(tasks):
                part = vector[t * self.n_rows + places]
                kernels.row_products(block, part, np.full(len(part), t), squares, threads, out)
        return np.ascontiguousarray(out.T)

    def first_products(
        self, weights: Array, vectors: Array, offsets: Array, threads: int
    ) -> tuple[Array, list[Array]]:
        tasks = len(offsets) - 1
        squares = np.zeros((tasks, self.n_features))
        products = [np.zeros_like(squares) for _ in vectors]
        task_of = np.repeat(np.arange(tasks), np.diff(offsets))
        for places, rows in self._row_blocks():
            block = self._for_products(rows)
            kernels.row_products(block, weights[places], task_of[places], True, threads, squares)
            for vector, out in zip(vectors, products, strict=True):
                kernels.row_products(block, vector[places], task_of[places], False, threads, out)
        return np.ascontiguousarray(squares.T), [np.ascontiguousarray(out.T) for out in products]

    @staticmethod
    def _for_products(rows: Array) -> Array:
        block = np.ascontiguousarray(rows)
        return block if for_kernels(block.dtype) else block.astype(np.float64)

    def take(self, features: Array) -> Array:
        out = np.empty((self.n_rows, len(features)), order="F")
        for places, rows in self._row_blocks():
            out[places] = rows[:, features]
        return out
