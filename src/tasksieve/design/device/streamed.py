"""X larger than a device's memory: it stays where it is, and passes through the device in blocks of columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from ..storage.base import Asked, ColumnStorage, Reading, part_read, split_asked
from ..storage.dense import DenseStorage
from .blocks import block_products, on_the_device
from .machine import free_bytes, in_words

Array = np.ndarray[Any, Any]

_BLOCK_BYTES = 256 << 20  # of X that is on its way at a time
_COPIES = 24  # of a block in one byte a number: two on their way, one in double precision, its squares


class StreamedStorage(ColumnStorage):
    """Columns of arrays stacked on top of each other; products are made on the device, block by block.

    While the device works on a block, the next one is copied to pinned memory, from where it travels by itself.

    - `row_order`: Permutation that brings their rows into task order.
    - `progress`: A callback, ``progress(done, total, detail)``, called once after the first pass over all columns with
      the time of a pass.
    """

    costly_reads = True
    sparse = False

    def __init__(self, parts: Sequence[Any], row_order: Array | None = None) -> None:
        self._parts, self._order = [part.array for part in parts], row_order
        self.device, self._room = parts[0].device, min(part.room for part in parts)
        self.n_rows, self.n_features = sum(len(part) for part in self._parts), parts[0].n_features
        types = {part.dtype for part in self._parts}
        self.dtype = types.pop() if len(types) == 1 else np.dtype(np.float64)
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

    def read(self, asked: Sequence[Asked], threads: int) -> Reading:
        everything, some = split_asked(asked)
        products: list[Any] = [None] * len(asked)
        if everything:
            began = time.monotonic()
            own = [asked[k] for k in everything]
            for k, found in zip(everything, self._pass(own), strict=True):
                products[k] = found
            self._say(time.monotonic() - began)
        for k in some:  # a few columns do not have to travel
            a = asked[k]
            products[k] = DenseStorage(self._cut(a.columns)).products(
                a.vector, a.offsets, a.shared, None, a.squares, threads
            )
        return Reading(products, part_read(asked, self.n_features))

    def _pass(self, asked: Sequence[Asked]) -> list[Array]:
        vectors = on_the_device(asked, self.device)
        out = [np.empty((self.n_features, len(a.offsets) - 1)) for a in asked]
        for columns, block in self._travelling():
            for whole, found in zip(out, block_products(block, asked, vectors), strict=True):
                whole[columns] = found.cpu().numpy()
        return out

    def _travelling(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """Blocks of columns on the device, (columns, rows), the next one under way."""
        pinned = self.device.type == "cuda"
        kept = {np.float64: torch.float64, np.float32: torch.float32, np.int8: torch.int8, np.uint8: torch.uint8}
        shape = (self._width, self.n_rows)
        staging = [torch.empty(shape, dtype=kept[self.dtype.type], pin_memory=pinned) for _ in range(2)]
        cuts = [slice(low, min(low + self._width, self.n_features)) for low in range(0, self.n_features, self._width)]
        waiting: tuple[slice, torch.Tensor] | None = None
        for k, columns in enumerate(cuts):
            position = staging[k % 2][: columns.stop - columns.start]
            self._fill(position.numpy(), columns)
            # the block before the last has left its place: what was made of it has been fetched
            block = position.to(self.device, non_blocking=True) if pinned else position
            if waiting is not None:
                yield waiting
            waiting = columns, block
        if waiting is not None:
            yield waiting

    def _fill(self, out: Array, columns: slice) -> None:
        first = 0
        for part in self._parts:
            block = part[:, columns].T
            if self._order is None:
                out[:, first : first + len(part)] = block
            else:
                position = self._position[first : first + len(part)]
                out[:, position] = block
            first += len(part)

    @property
    def _position(self) -> Array:
        """Where each stacked row stands in task order."""
        assert self._order is not None
        position = np.empty(self.n_rows, dtype=np.int64)
        position[self._order] = np.arange(self.n_rows)
        return position

    def _cut(self, features: Array | None) -> Array:
        assert features is not None
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
