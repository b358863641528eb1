"""Which storage serves which data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..sparse_format import compressed
from .base import BLOCK_BYTES, ColumnStorage, for_kernels, kept_type
from .dense import DenseStorage
from .mapped import MappedRowStorage
from .sparse import SparseStorage

Array = np.ndarray[Any, Any]


def gives_columns(X: Any) -> bool:
    """Whether it is a storage, which brings its rows into the order of tasks itself."""
    return hasattr(X, "in_task_order")


def _stack_dense(blocks: Sequence[Array], order: Array | None) -> Array:
    """One Fortran-ordered array from row blocks, a few columns at a time so that no second copy appears."""
    if len(blocks) == 1 and order is None and blocks[0].flags.f_contiguous:
        return blocks[0]
    dtype = kept_type(np.result_type(*[block.dtype for block in blocks]))  # int8 and uint8 meet in int16
    rows = sum(len(block) for block in blocks)
    features = blocks[0].shape[1]
    out = np.empty((rows, features), dtype=dtype, order="F")
    step = max(1, BLOCK_BYTES // (dtype.itemsize * max(rows, 1)))
    for low in range(0, features, step):
        part = slice(low, min(low + step, features))
        columns = blocks[0][:, part] if len(blocks) == 1 else np.vstack([block[:, part] for block in blocks])
        out[:, part] = columns if order is None else columns[order]
    return out


def as_storage(blocks: Any, row_order: Array | None = None, offsets: Array | None = None) -> ColumnStorage:
    """ColumnStorage for one matrix, or for a list of matrices stacked on top of each other.

    Parameters
    ----------
    blocks : array, memory map, sparse matrix, matrix on a device, or list of these; or a `Storage`
        float64, float32, int8 and uint8 are kept as they are, other numbers become float64.
    row_order : array of int, optional
        Permutation that brings the stacked rows into task order.
    offsets : array of int, optional
        Where each task starts then; by default all rows are one task.
    """
    parts = list(blocks) if isinstance(blocks, list | tuple) else [blocks]
    # matrices that are not here say how to reach their columns
    elsewhere = next((part.as_columns for part in parts if hasattr(part, "as_columns")), None)
    if elsewhere is not None:
        return elsewhere(parts, row_order)
    if any(map(gives_columns, parts)):
        if len(parts) > 1:
            raise ValueError("X is a list of storages: put all rows into one storage and pass the task of each row.")
        one_task = np.array([0, parts[0].n_rows])
        return parts[0].in_task_order(row_order, one_task if offsets is None else offsets)
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
        if len(parts) == 1 and row_order is None and whole.flags.f_contiguous and for_kernels(whole.dtype):
            return DenseStorage(whole)
        return MappedRowStorage(parts, row_order)
    return DenseStorage(_stack_dense([part.astype(kept_type(part.dtype), copy=False) for part in parts], row_order))
