"""Where columns come from: something on disk, or a recipe, that can be read again wherever a worker was lost.

A source is sent to the workers and reads there. Rows come in the order of the data; the holder brings them into task
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol
from uuid import uuid4

import numpy as np

Array = np.ndarray[Any, Any]


class ColumnSource(Protocol):
    """Columns of one matrix, or of several stacked on top of each other. Blocks of them begin at `edges`, the last of
    which is their number: a range that ends there reads no block in vain."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    edges: Sequence[int]

    def read(self, low: int, high: int) -> Array:
        """Columns low to high, read here and now."""
        ...

    def fetched(self, low: int, high: int) -> Any:
        """The same as something that Dask computes on the worker that is to hold it; None: let it `read`."""
        return None


class ZarrSource(ColumnSource):
    """A Zarr array, rows x features; workers open its store again, so they must be able to reach it."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape = int(array.shape[0]), int(array.shape[1])
        self.dtype = np.dtype(array.dtype)
        step = int(array.chunks[1])
        self.edges = [*range(0, self.shape[1], step), self.shape[1]]

    def read(self, low: int, high: int) -> Array:
        return np.asarray(self._array[:, low:high])


class DaskSource(ColumnSource):
    """A dask array of two dimensions, rows x features."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape = int(array.shape[0]), int(array.shape[1])
        self.dtype = np.dtype(array.dtype)
        self.edges = [0, *np.cumsum(array.chunks[1]).tolist()]

    def read(self, low: int, high: int) -> Array:
        return np.asarray(self._array[:, low:high].compute(scheduler="threads", num_workers=1))

    def fetched(self, low: int, high: int) -> Any:
        # A unique name: Dask would take equally named blocks that were computed otherwise for the same ones.
        part, meta = self._array[:, low:high], np.empty((0, 0), dtype=self.dtype)
        return part.map_blocks(np.asarray, dtype=self.dtype, meta=meta, name=f"tasksieve-{uuid4().hex}")


class StackedSource(ColumnSource):
    """Sources with the same columns on top of each other, one a task."""

    def __init__(self, parts: Sequence[ColumnSource]) -> None:
        self._parts = list(parts)
        self.shape = sum(part.shape[0] for part in parts), parts[0].shape[1]
        self.dtype = np.result_type(*[part.dtype for part in parts])
        self.edges = parts[0].edges

    def read(self, low: int, high: int) -> Array:
        return np.concatenate([part.read(low, high) for part in self._parts])

    def fetched(self, low: int, high: int) -> Any:
        found = [part.fetched(low, high) for part in self._parts]
        return None if any(part is None for part in found) else found


def stacked(sources: Sequence[ColumnSource]) -> ColumnSource:
    """One source for a list of them."""
    return sources[0] if len(sources) == 1 else StackedSource(sources)
