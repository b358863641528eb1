"""What a design needs from the numbers.

A storage answers two questions about its raw columns, without weights or centring: their products with a vector per
task, and a few of them as a packed array. Rows come in *task order* (all rows of task 0, then task 1, ...), whatever
their order in the user's data. Several vectors, of one design or of many, share one reading (`ColumnStorage.read`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

KERNEL_TYPES = (np.float64, np.float32, np.int8, np.uint8)
BLOCK_BYTES = 32 << 20  # working memory of one block of columns that are read or computed
LARGE = 1 << 30  # bytes in memory that take longer to read than to work with


def for_kernels(dtype: np.dtype[Any]) -> bool:
    """Whether the kernels read this type; numbers in foreign byte order they do not."""
    return dtype.type in KERNEL_TYPES and dtype.isnative


def kept_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which such numbers are kept: their own where kernels read it, else double precision."""
    return dtype if for_kernels(dtype) else np.dtype(np.float64)


@dataclass(frozen=True)
class ProductRequest:
    """A request for products, as in `ColumnStorage.products`."""

    vector: Array
    offsets: Array
    shared: bool = False
    columns: Array | None = None
    squares: bool = False


class Reading(NamedTuple):
    """Products, in the order of the requests, and what they cost in readings of all data."""

    products: list[Any]
    spent: float


class ColumnStorage:
    """What a shard needs from the numbers."""

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    costly_reads: bool  # whether reading is what a pass costs: a file, or more than memory delivers in passing
    sparse: bool = False  # whether columns are mostly zeros
    #: the type that holds columns as `take` gives them, where `dtype` does not: calls that are missing are means
    taken: np.dtype[Any] | None = None
    #: the kind of shard that holds its columns, made as `LocalShard` is: how another machine registers itself, as
    #: `device/shard.py` and `cluster/storage.py` do; None: this process
    shard_class: Any = None
    #: the same for a storage around this one; None: there its columns are read into this process
    wrapped_shard_class: Any = None
    #: what serves fits in step, made as `SharedReading` is; None: that
    shared_class: Any = None

    def products(
        self, vector: Array, offsets: Array, shared: bool, columns: Array | None, squares: bool, threads: int
    ) -> Array:
        """``sum_i x_ij^p vector_i`` for every task: (columns, tasks); ``p`` is 2 with `squares`.

        Stacked rows: `vector` is flat and `offsets` cuts it into tasks. A shared matrix: `vector` is n_rows x tasks
        in flat column order.
        """
        return self.read([ProductRequest(vector, offsets, shared, columns, squares)], threads).products[0]

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        """The `products` of several vectors; in one reading of the data wherever a storage can."""
        products: list[Any] = [None] * len(asked)
        everything = [k for k, a in enumerate(asked) if a.columns is None]
        some = [[k] for k, a in enumerate(asked) if a.columns is not None]
        for group in [everything, *some] if everything else some:
            for k, found in zip(group, self._together([asked[k] for k in group], threads), strict=True):
                products[k] = found
        return Reading(products, part_read(asked, self.n_features))

    def _together(self, asked: list[ProductRequest], threads: int) -> list[Array]:
        """Products of all columns with several vectors, or of some with one, where `read` is not overridden."""
        raise NotImplementedError

    def part(self, features: slice) -> ColumnStorage | None:
        """Neighbouring columns as a storage that reads them where they lie; None where there is no such thing."""
        return None

    def doubles(self) -> Array | None:
        """All columns as they lie, a Fortran-ordered float64 array, where they do: nothing is read for it."""
        return None

    def unread(self, features: Array) -> int:
        """How many of these columns `take` would have to read."""
        return len(features)

    def take(self, features: Array) -> Array:
        """Raw columns, (n_rows, len(features)), float64, Fortran order."""
        raise NotImplementedError

    def take_rows(self, features: Array, rows: Array) -> Array:
        """Some rows of these."""
        return self.take(features).T.take(rows, axis=1).T


def part_read(asked: Sequence[ProductRequest], n_features: int) -> float:
    """How much of the data one reading for all of them is."""
    some = [a.columns for a in asked if a.columns is not None]
    if not some:
        return 1.0 if asked else 0.0
    if len(some) < len(asked):
        return 1.0
    count = len(some[0]) if len(some) == 1 else len(np.unique(np.concatenate(some)))
    return count / max(n_features, 1)


def by_part(starts: Array, features: Array) -> list[tuple[Array, Array]]:
    """For parts that begin at `starts`: positions in `features` of those that are theirs, and these as the part
    counts them."""
    owner = np.searchsorted(starts, features, side="right") - 1
    positions = [np.flatnonzero(owner == k) for k in range(len(starts) - 1)]
    return [(own, features[own] - starts[k]) for k, own in enumerate(positions)]


def asked_by_part(asked: Sequence[ProductRequest], starts: Array) -> list[list[tuple[int, Any, ProductRequest]]]:
    """For parts that begin at `starts`, the requests that concern them: which one it is, the rows of its products
    that are theirs, and the request as the part counts its columns."""
    parts: list[list[tuple[int, Any, ProductRequest]]] = [[] for _ in starts[1:]]
    for m, a in enumerate(asked):
        if a.columns is None:
            for k, part in enumerate(parts):
                part.append((m, slice(*starts[k : k + 2]), a))
            continue
        for part, (positions, own) in zip(parts, by_part(starts, a.columns), strict=True):
            if len(own):
                part.append((m, positions, replace(a, columns=own)))
    return parts


def empty_products(asked: Sequence[ProductRequest], n_features: int) -> list[Array]:
    """Room for the products of several vectors, parts of which come one after the other."""
    return [
        np.empty((n_features if a.columns is None else len(a.columns), len(a.offsets) - 1)) for a in asked
    ]


def read_grouped(
    asked: Sequence[ProductRequest], n_features: int, together: Callable[[list[ProductRequest]], list[Any]]
) -> Reading:
    """A reading for each partition of the rows, another for squares; ``together`` serves requests that share it."""
    products: list[Any] = [None] * len(asked)
    spent = 0.0
    groups: dict[Any, list[int]] = {}
    for k, a in enumerate(asked):
        groups.setdefault((not a.squares, *alike(a)) if a.columns is None else k, []).append(k)
    for group in groups.values():
        own = [asked[k] for k in group]
        for k, found in zip(group, together(own), strict=True):
            products[k] = found
        spent += part_read(own, n_features)
    return Reading(products, spent)


def alike(asked: ProductRequest) -> tuple[bool, bytes]:
    """Requests of which this is the same cut the rows alike: one kernel call serves them."""
    return asked.shared, asked.offsets.tobytes()
