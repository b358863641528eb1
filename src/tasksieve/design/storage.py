"""How the numbers lie in memory or on disk: dense, sparse, or mapped from a file row by row.

A storage answers two questions about its raw columns, without weights or centring: their products with a vector per
task, and a few of them as a packed array. Rows come in *task order* (all rows of task 0, then task 1, ...), whatever
their order in the user's data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from .._kernels import kernels
from .sparse_format import compressed

Array = np.ndarray[Any, Any]

KERNEL_TYPES = (np.float64, np.float32, np.int8, np.uint8)
_BLOCK_BYTES = 32 << 20  # working memory of one block read from a file


def _for_kernels(dtype: np.dtype[Any]) -> bool:
    """Whether the kernels read this type; numbers in foreign byte order they do not."""
    return dtype.type in KERNEL_TYPES and dtype.isnative


class Storage(Protocol):
    """What a design needs from the numbers."""

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    reads_once: bool  # whether `first_products` is one reading of the data

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


def _one_by_one(
    storage: Storage, weights: Array, vectors: Array, offsets: Array, threads: int
) -> tuple[Array, list[Array]]:
    """`Storage.first_products` by a pass each."""
    squares = storage.products(weights, offsets, False, None, True, threads)
    products = [storage.products(vector, offsets, False, None, False, threads) for vector in vectors]
    return squares, products


class DenseStorage:
    """Column-major array: one contiguous column holds all tasks' rows, so a pass is one stream through memory.

    Also serves a column-major memory map whose rows are in task order: kernels read the mapped pages themselves.
    """

    reads_once = True

    def __init__(self, x: Array) -> None:
        if not x.flags.f_contiguous or not _for_kernels(x.dtype):
            raise ValueError("DenseStorage needs a Fortran-ordered float64, float32, int8 or uint8 array")
        # A plain view: the kernels know arrays, not their subclasses.
        self.x = x.view(np.ndarray)
        self.n_rows, self.n_features = x.shape
        self.dtype = x.dtype

    def products(
        self, vector: Array, offsets: Array, shared: bool, columns: Array | None, squares: bool, threads: int
    ) -> Array:
        tasks = len(offsets) - 1
        out = np.empty((self.n_features if columns is None else len(columns), tasks))
        if shared and tasks > 1:
            block = vector.reshape(tasks, self.n_rows).T
            kernels.shared_products(self.x, columns, block, squares, threads, out)
        else:
            kernels.segment_products(self.x, columns, vector, offsets, squares, threads, out)
        return out

    def first_products(
        self, weights: Array, vectors: Array, offsets: Array, threads: int
    ) -> tuple[Array, list[Array]]:
        squares = np.empty((self.n_features, len(offsets) - 1))
        products = [np.empty_like(squares) for _ in vectors]
        kernels.first_products(self.x, weights, vectors, offsets, threads, squares, products)
        return squares, products

    def take(self, features: Array) -> Array:
        return np.asarray(self.x[:, features], dtype=np.float64, order="F")


class SparseStorage:
    """Compressed sparse columns; products cost the number of stored entries."""

    reads_once = False

    def __init__(self, x: sparse.csc_array) -> None:
        if not _for_kernels(x.data.dtype):
            x = x.astype(np.float64)
        self.x = x
        self.n_rows, self.n_features = x.shape
        self.dtype = x.dtype

    def products(
        self, vector: Array, offsets: Array, shared: bool, columns: Array | None, squares: bool, threads: int
    ) -> Array:
        tasks = len(offsets) - 1
        out = np.empty((self.n_features if columns is None else len(columns), tasks))
        if shared:
            rows = np.ascontiguousarray(vector.reshape(tasks, self.n_rows).T)
            task_of = None
        else:
            rows = vector.reshape(-1, 1)
            task_of = np.repeat(np.arange(tasks), np.diff(offsets))
        x = self.x
        kernels.sparse_products(
            x.data, x.indices, x.indptr, columns, rows, task_of, tasks, squares, threads, out
        )
        return out

    def first_products(
        self, weights: Array, vectors: Array, offsets: Array, threads: int
    ) -> tuple[Array, list[Array]]:
        return _one_by_one(self, weights, vectors, offsets, threads)

    def take(self, features: Array) -> Array:
        return np.asarray(self.x[:, features].toarray(order="F"), dtype=np.float64)


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
        step = max(1, _BLOCK_BYTES // (8 * max(self.n_features, 1)))
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
        return block if _for_kernels(block.dtype) else block.astype(np.float64)

    def take(self, features: Array) -> Array:
        out = np.empty((self.n_rows, len(features)), order="F")
        for places, rows in self._row_blocks():
            out[places] = rows[:, features]
        return out


def _stack_dense(blocks: Sequence[Array], order: Array | None) -> Array:
    """One Fortran-ordered array from row blocks, a few columns at a time so that no second copy appears."""
    if len(blocks) == 1 and order is None and blocks[0].flags.f_contiguous:
        return blocks[0]
    dtype = np.result_type(*[block.dtype for block in blocks])
    if not _for_kernels(dtype):  # int8 and uint8 meet in int16
        dtype = np.dtype(np.float64)
    rows = sum(len(block) for block in blocks)
    features = blocks[0].shape[1]
    out = np.empty((rows, features), dtype=dtype, order="F")
    step = max(1, _BLOCK_BYTES // (dtype.itemsize * max(rows, 1)))
    for low in range(0, features, step):
        part = slice(low, min(low + step, features))
        columns = blocks[0][:, part] if len(blocks) == 1 else np.vstack([block[:, part] for block in blocks])
        out[:, part] = columns if order is None else columns[order]
    return out


def _kernel_type(x: Array) -> Array:
    return x if _for_kernels(x.dtype) else x.astype(np.float64)


def as_storage(blocks: Any, row_order: Array | None = None) -> Storage:
    """Storage for one matrix, or for a list of matrices stacked on top of each other.

    Parameters
    ----------
    blocks : array, memory map, sparse matrix, or list of these
        float64, float32, int8 and uint8 are kept as they are, other numbers become float64.
    row_order : array of int, optional
        Permutation that brings the stacked rows into task order.
    """
    parts = list(blocks) if isinstance(blocks, list | tuple) else [blocks]
    parts = [compressed(part, "X") if sparse.issparse(part) else part for part in parts]
    if any(sparse.issparse(part) for part in parts):
        stacked = parts[0]
        if len(parts) > 1:
            stacked = sparse.vstack([sparse.csc_array(part) for part in parts], format="csr")
        if row_order is not None:
            stacked = sparse.csr_array(stacked)[row_order]
        csc = sparse.csc_array(stacked)
        if not csc.has_canonical_format:
            csc = csc.copy()
            csc.sum_duplicates()
        return SparseStorage(csc)
    if any(isinstance(part, np.memmap) for part in parts):
        whole = parts[0]
        if len(parts) == 1 and row_order is None and whole.flags.f_contiguous and _for_kernels(whole.dtype):
            return DenseStorage(whole)
        return MappedRowStorage(parts, row_order)
    return DenseStorage(_stack_dense([_kernel_type(part) for part in parts], row_order))
