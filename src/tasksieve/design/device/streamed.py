"""X larger than a device's memory: it stays where it is, and passes through the device in blocks of columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ..storage.base import ColumnStorage, ProductRequest, empty_products
from ..storage.dense import DenseStorage
from .machine import free_bytes, in_words
from .storage import ALIGNED, DeviceStorage

Array = np.ndarray[Any, Any]

_BLOCK_BYTES = 256 << 20  # of X that is on its way at a time
_COPIES = 24  # of a block in one byte a number: two on their way, one in double precision, its squares


class StreamedStorage(ColumnStorage):
    """Columns of arrays stacked on top of each other; products are made on the device, block by block.

    While the device works on a block, the next one is copied to pinned memory, from where it travels by itself. After
    the first pass over all columns ``progress(done, total, detail)`` is called once, with the time of a pass.
    """

    costly_reads = True

    def __init__(self, parts: Sequence[Any], row_order: Array | None = None) -> None:
        self._parts, self._order = [part.array for part in parts], row_order
        self.device, self._room = parts[0].device, min(part.room for part in parts)
        self.n_rows, self.n_features = sum(len(part) for part in self._parts), parts[0].n_features
        types = {part.dtype for part in self._parts}
        self.dtype = types.pop() if len(types) == 1 else np.dtype(np.float64)
        #: where each stacked row stands in task order
        self._position = None if row_order is None else np.argsort(row_order)
        self.progress: Callable[..., None] | None = None
        self._width = self._block_width()

    def _block_width(self) -> int:
        """Columns of a block; not even one may be too many."""
        column = self.n_rows * self.dtype.itemsize
        each = self.n_rows * max(_COPIES, 2 * self.dtype.itemsize)
        width = int(min(_BLOCK_BYTES // max(column, 1), self._room // max(each, 1)))
        if width < 1:
            raise MemoryError(
                f"X: a single column of {self.n_rows} rows needs {in_words(each)} on {self.device}, and "
                f"{in_words(self._room)} are allowed. Free memory there, or leave device out."
            )
        return min(width, self.n_features)

    def _together(self, asked: list[ProductRequest], threads: int) -> list[Array]:
        chosen = asked[0].columns
        if chosen is not None:  # a few columns do not have to travel
            return DenseStorage(self._cut(chosen)).read([replace(asked[0], columns=None)], threads).products
        began = time.monotonic()
        products = empty_products(asked, self.n_features)
        for columns, block in self._travelling():
            for whole, found in zip(products, block.read(asked, threads).products, strict=True):
                whole[columns] = found
        self._say(time.monotonic() - began)
        return products

    def _travelling(self) -> Iterator[tuple[slice, DeviceStorage]]:
        """Blocks of columns on the device, the next one under way."""
        pinned = self.device.type == "cuda"
        shape, kind = (self._width, -(-self.n_rows // ALIGNED) * ALIGNED), getattr(torch, self.dtype.name)
        staging = [torch.zeros(shape, dtype=kind, pin_memory=pinned) for _ in range(2)]
        waiting: tuple[slice, DeviceStorage] | None = None
        for k, low in enumerate(range(0, self.n_features, self._width)):
            columns = slice(low, min(low + self._width, self.n_features))
            position = staging[k % 2][: columns.stop - low]
            self._fill(position.numpy(), columns)
            # the block before the last has left its place: what was made of it has been fetched
            block = position.to(self.device, non_blocking=True) if pinned else position
            if waiting is not None:
                yield waiting
            waiting = columns, DeviceStorage(block, self.n_rows)
        if waiting is not None:
            yield waiting

    def _fill(self, out: Array, columns: slice) -> None:
        first = 0
        for part in self._parts:
            rows: Any = slice(first, first + len(part))
            out[:, rows if self._position is None else self._position[rows]] = part[:, columns].T
            first += len(part)

    def _cut(self, features: Array) -> Array:
        found = [np.asarray(part[:, features], dtype=self.dtype) for part in self._parts]
        rows = found[0] if len(found) == 1 else np.concatenate(found)
        return np.asfortranarray(rows if self._order is None else rows[self._order])

    def _say(self, seconds: float) -> None:
        if self.progress is not None:
            size = self.n_rows * self.n_features * self.dtype.itemsize
            self.progress(
                1,
                1,
                f"X ({in_words(size)}) is larger than the memory allowed on {self.device} ({in_words(self._room)} "
                f"of {in_words(free_bytes(self.device))} free) and streams through it: {seconds:.2g} s a pass",
            )
            self.progress = None

    def take(self, features: Array) -> Array:
        return np.array(self._cut(features), dtype=np.float64, order="F")
