"""What a design needs from the numbers.

A storage answers two questions about its raw columns, without weights or centring: their products with a vector per
task, and a few of them as a packed array. Rows come in *task order* (all rows of task 0, then task 1, ...), whatever
their order in the user's data.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]

KERNEL_TYPES = (np.float64, np.float32, np.int8, np.uint8)
BLOCK_BYTES = 32 << 20  # working memory of one block read from a file


def for_kernels(dtype: np.dtype[Any]) -> bool:
    """Whether the kernels read this type; numbers in foreign byte order they do not."""
    return dtype.type in KERNEL_TYPES and dtype.isnative


class ColumnStorage(Protocol):
    """What a shard needs from the numbers."""

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    reads_once: bool  # whether `first_products` is one reading of the data
    sparse: bool  # whether columns are mostly zeros

    def products(
        self, vector: Array, offsets: Array, shared: bool, columns: Array | None, squares: bool, threads: int
    ) -> Array:
        """``sum_i x_ij^p vector_i`` for every task: (columns, tasks); ``p`` is 2 with `squares`.

        Stacked rows: `vector` is flat and `offsets` cuts it into tasks. A shared matrix: `vector` is n_rows x tasks
        in flat column order.
        """
        ...

    def first_products(
        self, weights: Array, vectors: Array, offsets: Array, threads: int
    ) -> tuple[Array, list[Array]]:
        """``sum_i weights_i x_ij^2`` (columns, tasks), and the `products` of several flat vectors, for stacked rows."""
        ...

    def take(self, features: Array) -> Array:
        """Raw columns, (n_rows, len(features)), float64, Fortran order."""
        ...


def one_by_one(
    storage: ColumnStorage, weights: Array, vectors: Array, offsets: Array, threads: int
) -> tuple[Array, list[Array]]:
    """`ColumnStorage.first_products` by a pass each."""
    squares = storage.products(weights, offsets, False, None, True, threads)
    products = [storage.products(vector, offsets, False, None, False, threads) for vector in vectors]
    return squares, products
