"""X as users have it: arrays, sparse matrices, data frames and memory maps become one of a few kept types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn import get_config

from ..complex_numbers import refuse_complex
from ..design import Storage, compressed
from ..messages import either, value_error
from .frames import frame_columns, frame_values, is_frame, is_lazy_frame
from .refusals import refuse_dimensions, refuse_masked_or_complex, refuse_no_numbers
from .source import Source, is_task_list, kind_of, register

Array = np.ndarray[Any, Any]

# What the kernels read as it lies in memory; everything else becomes float64.
KEPT_TYPES = (np.float64, np.float32, np.int8, np.uint8)

# Entries looked at together when X is searched for NaN: the block stays in the processor's cache.
BLOCK_ENTRIES = 1 << 18

# A memory map of another type than the kept ones is converted only while the copy is small.
LARGEST_CONVERTED_MAP = 1 << 28


def read_source(X: Any, name: str = "X", *, min_rows: int = 1, search: bool = True) -> Source:
    """One matrix in a kept type, without NaN or infinity; a copy only if it must be.

    - `name`: What to call it in error messages.
    - `search`: Look for NaN and infinity here, in one pass over X that scikit-learn's ``assume_finite`` leaves out;
      otherwise `Source.refuse_not_finite` does, when norms are not finite.
    """
    source = kind_of(X).read(X, name)
    source.names = None if isinstance(X, np.ndarray) else frame_columns(X)
    n_rows, n_features = source.shape
    for count, least, what in ((n_rows, min_rows, "sample(s)"), (n_features, 1, "feature(s)")):
        if count < least:
            raise value_error(
                "{matrix} has {count} {what}{shape} while a minimum of {least} is required.",
                matrix=name, count=count, what=what, shape=either(f" (shape={source.shape})"), least=least,
            )  # fmt: skip
    if search and source.searched and not get_config()["assume_finite"]:
        source.refuse_not_finite(name)
    return source


def read_matrix(X: Any, name: str = "X", *, min_rows: int = 1, search: bool = True) -> Any:
    """The matrix of `read_source`: an array, CSR or CSC, a `Storage` (of a tensor a `DeviceMatrix`), or, of a dask or
    Zarr array, a `ClusterMatrix`."""
    return read_source(X, name, min_rows=min_rows, search=search).matrix


def read_task_list(X: Sequence[Any], read: Callable[[Any, str], Any] = read_matrix) -> list[Any]:
    """One matrix per task, each read by ``read(item, name)``, all with the same number of features."""
    matrices = [read(item, f"X[{t}]") for t, item in enumerate(X)]
    n_features = matrices[0].shape[1]
    for t, matrix in enumerate(matrices):
        if matrix.shape[1] != n_features:
            raise ValueError(
                f"X[{t}] has {matrix.shape[1]} features, X[0] has {n_features}: "
                "all tasks need the same features in the same order."
            )
    return matrices


def read_stacked(X: Any, *, search: bool = True) -> tuple[Any, Any]:
    """X as one matrix to be read row by row, an array or CSR, and the number of its rows (a list: per task). Tensors
    are copied to the CPU, where rows are read one by one."""
    if is_task_list(X):
        matrices = read_task_list([kind_of(item).to_host(item) for item in X])
        sparse = any(map(scipy.sparse.issparse, matrices))
        matrix = scipy.sparse.vstack(matrices, format="csr") if sparse else np.concatenate(matrices)
        return matrix, [part.shape[0] for part in matrices]
    if hasattr(X, "patterns"):
        raise value_error(
            "{X} is rows of by_pattern: models that learn row by row, or on a graph of tasks, do not keep the "
            "coefficients of absent features at 0. Fill in what is missing."
        )
    matrix = read_matrix(kind_of(X).to_host(X), search=search)
    return matrix.tocsr() if scipy.sparse.issparse(matrix) else matrix, matrix.shape[0]


def refuse_not_finite(matrix: Any, name: str) -> None:
    """Raise a ValueError that names the first NaN or infinity of a matrix, if there is one."""
    kind_of(matrix)(matrix).refuse_not_finite(name)


@register
class StorageSource(Source):
    """A `Storage`: genotypes, and storages of users."""

    by_columns = True
    searched = False
    general = True  # `DeviceSource` has storages of its own

    @classmethod
    def accepts(cls, X: Any) -> bool:
        return isinstance(X, Storage)

    def first_not_finite(self) -> tuple[int, int, float] | None:
        for feature in range(self.matrix.n_features):
            column = self.matrix.take(np.array([feature]))[:, 0]
            rows = np.flatnonzero(~np.isfinite(column))
            if len(rows):
                return int(rows[0]), feature, float(column[rows[0]])
        return None


@register
class SparseSource(Source):
    """A sparse matrix of scipy's, or a data frame of sparse columns."""

    @classmethod
    def accepts(cls, X: Any) -> bool:
        return scipy.sparse.issparse(X) or _is_sparse_frame(X)

    @classmethod
    def read(cls, X: Any, name: str) -> SparseSource:
        return cls(_read_sparse(X, name))

    @classmethod
    def take_rows(cls, X: Any, rows: Array) -> Any:
        return super().take_rows(X.tocsr() if scipy.sparse.issparse(X) else X, rows)

    def first_not_finite(self) -> tuple[int, int, float] | None:
        matrix = self.matrix
        index = _first_not_finite(matrix.data) if matrix.dtype.kind == "f" else None
        if index is None:
            return None
        (entry,) = index
        major, minor = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1, int(matrix.indices[entry])
        row, feature = (major, minor) if matrix.format == "csr" else (minor, major)
        return row, feature, float(matrix.data[entry])


@register
class ArraySource(Source):
    """An array, in memory or mapped from a file, or what NumPy makes an array of: whatever is of no other kind."""

    dense = True
    general = True

    def __init__(self, matrix: Any) -> None:
        super().__init__(matrix)
        if isinstance(matrix, np.memmap):
            self.location = "file"

    @classmethod
    def accepts(cls, X: Any) -> bool:
        return True

    @classmethod
    def read(cls, X: Any, name: str) -> ArraySource:
        return cls(_read_dense(X, name))

    def first_not_finite(self) -> tuple[int, int, float] | None:
        index = _first_not_finite(self.matrix) if self.matrix.dtype.kind == "f" else None
        return None if index is None else (*index, float(self.matrix[index]))  # type: ignore[return-value]


def _read_dense(X: Any, name: str) -> np.ndarray:
    refuse_masked_or_complex(X, name, ("row", "feature"))
    if type(X) is np.ndarray or isinstance(X, np.memmap):
        matrix = X
    elif is_frame(X):
        matrix = frame_values(X, name)
    elif is_lazy_frame(X):
        raise ValueError(f"{name} is a lazy frame, a query that has not been run: pass {name}.collect().")
    elif isinstance(X, list | tuple) and X and kind_of(X[0]).location == "device":
        raise ValueError(
            f"{name} is a list of tensors of {X[0].ndim} dimension(s): a list of tasks has 2-D ones, and rows make a "
            f"matrix by torch.stack({name})."
        )
    else:
        try:
            matrix = np.asarray(X)
        except ValueError as error:
            raise ValueError(
                f"{name} is neither a matrix nor a list of matrices: {error}. "
                "A list of tasks has 2-D items, one per task."
            ) from error
    if matrix.ndim != 2:
        refuse_dimensions(matrix.ndim, name)
    if _is_kept(dtype := matrix.dtype, name):
        return matrix
    if dtype.kind == "b":
        return matrix.view(np.uint8)
    if isinstance(matrix, np.memmap) and matrix.size > LARGEST_CONVERTED_MAP:
        raise ValueError(
            f"{name} is a memory map of dtype {dtype}, which would have to be copied: "
            "write it as float64, float32, int8 or uint8."
        )
    if dtype.kind in "Mm":
        refuse_no_numbers(matrix, name, frame_columns(X))
    try:
        return matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        refuse_complex(matrix, name)
        refuse_no_numbers(matrix, name, frame_columns(X))
        raise type(error)(f"{name} must hold numbers: {error}") from error


def _is_sparse_frame(X: Any) -> bool:
    """A pandas data frame all of whose columns are sparse with zeros left out (found without importing pandas)."""
    types: Any = getattr(X, "dtypes", None) if hasattr(X, "sparse") else None
    if not hasattr(types, "__iter__"):
        return False
    return all(type(dtype).__name__ == "SparseDtype" and dtype.fill_value == 0 for dtype in types)


def _read_sparse(X: Any, name: str) -> Any:
    matrix = X if scipy.sparse.issparse(X) else X.sparse.to_coo()
    if len(matrix.shape) != 2:
        raise ValueError(f"Expected 2D array, got {len(matrix.shape)}D sparse array instead for {name}.")
    matrix = compressed(matrix, name)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the caller's matrix is never modified
        matrix.sum_duplicates()
    if _is_kept(matrix.dtype, name):
        return matrix
    return matrix.astype(np.uint8 if matrix.dtype.kind == "b" else np.float64)


def _is_kept(dtype: np.dtype[Any], name: str) -> bool:
    """Whether the kernels read such numbers as they are."""
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {dtype}.")
    return dtype.type in KEPT_TYPES and dtype.isnative


def _first_not_finite(entries: np.ndarray) -> tuple[int, ...] | None:
    """Index of the first entry (in storage order) that is NaN or infinite, or None.

    One pass in blocks along the slowest axis. A sum shows NaN and infinity without an array of flags; it may also
    overflow without either, so only a block whose sum is not finite is looked at entry by entry.
    """
    slow = int(np.argmax(np.abs(entries.strides))) if entries.ndim > 1 else 0
    length = entries.shape[slow]
    step = max(1, BLOCK_ENTRIES * length // max(1, entries.size))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, length, step):
            block = entries[(slice(None),) * slow + (slice(start, start + step),)]
            if np.isfinite(np.add.reduce(block, axis=None)):
                continue
            bad = np.argwhere(~np.isfinite(block))
            if len(bad):
                index = [int(i) for i in bad[0]]
                index[slow] += start
                return tuple(index)
    return None
