"""X as people have it: arrays, sparse matrices, data frames and memory maps become one of a few kept types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn import get_config

from ..complex_numbers import refuse_complex
from ..design import Storage, compressed
from ..places import cell_name
from .cluster import in_cluster
from .dimensions import refuse_dimensions
from .masked import refuse_masked_or_complex
from .strangers import refuse_strangers
from .tensors import is_tensor, read_tensor, to_host

# What the kernels read as it lies in memory; everything else becomes float64.
KEPT_TYPES = (np.float64, np.float32, np.int8, np.uint8)

# Entries looked at together when X is searched for NaN: the block stays in the processor's cache.
BLOCK_ENTRIES = 1 << 18

# A memory map of another type than the kept ones is converted only while the copy is small.
LARGEST_CONVERTED_MAP = 1 << 28


def is_task_list(X: Any) -> bool:
    """Whether X is a list of tasks: a list (or tuple) whose items are 2-D. A list of rows is one matrix."""
    if not isinstance(X, list | tuple) or not X:
        return False
    first = X[0]
    shape = getattr(first, "shape", None)
    if shape is not None:
        return len(shape) == 2
    return isinstance(first, list | tuple) and bool(first) and isinstance(first[0], list | tuple | np.ndarray)


def count_rows(X: Any) -> Any:
    """The number of rows of X, or a list of such numbers for a list of tasks; X is not read."""
    if is_task_list(X):
        return [count_rows(item) for item in X]
    return X.shape[0] if hasattr(X, "shape") else len(X)


def read_matrix(X: Any, name: str = "X", *, min_rows: int = 1, search: bool = True) -> Any:
    """X as a 2-D array or CSR/CSC matrix of a kept type, without NaN or infinity; a copy only if it must be.

    Parameters
    ----------
    X : array, data frame, scipy sparse matrix or array, memory map, tensor, or a list of rows
        float64, float32, int8 and uint8 stay what they are, bool is read as uint8; others become float64.
    name : str
        What to call it in error messages.
    min_rows : int
        Fewer rows are an error.
    search : bool
        Look for NaN and infinity here; otherwise whoever reads X next does (`refuse_not_finite`).

    A `Storage` is returned as it is: the norms of its columns will tell of NaN and infinity. A tensor becomes a
    `DeviceMatrix`, which is a storage that can be searched where it lies, a dask or Zarr array a `ClusterMatrix`.

    Notes
    -----
    The search for NaN and infinity is one pass over X; ``sklearn.config_context(assume_finite=True)`` leaves it out.
    """
    matrix: Any = in_cluster(X, name)
    if matrix is not None:
        search = False  # the norms of its columns will tell
    elif isinstance(X, Storage):
        matrix = X
    elif is_tensor(X):
        matrix = read_tensor(X, name)
    elif scipy.sparse.issparse(X) or _is_sparse_frame(X):
        matrix = _read_sparse(X, name)
    else:
        matrix = _read_dense(X, name)
    n_rows, n_features = matrix.shape
    if n_rows < min_rows:
        raise ValueError(
            f"{name} has {n_rows} sample(s) (shape={matrix.shape}) while a minimum of {min_rows} is required."
        )
    if n_features < 1:
        raise ValueError(f"{name} has 0 feature(s) (shape={matrix.shape}) while a minimum of 1 is required.")
    quick = hasattr(matrix, "first_not_finite") or not isinstance(matrix, Storage)
    if search and quick and not get_config()["assume_finite"]:
        refuse_not_finite(matrix, name)
    return matrix


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
    """X as one matrix to be read row by row, an array or CSR, and the number of its rows (a list: per task).

    Tensors are brought here: whoever reads row by row does so on the processor.
    """
    if is_task_list(X):
        matrices = read_task_list([to_host(item) for item in X])
        sparse = any(map(scipy.sparse.issparse, matrices))
        matrix = scipy.sparse.vstack(matrices, format="csr") if sparse else np.concatenate(matrices)
        return matrix, [part.shape[0] for part in matrices]
    matrix = read_matrix(to_host(X), search=search)
    return matrix.tocsr() if scipy.sparse.issparse(matrix) else matrix, matrix.shape[0]


def refuse_not_finite(matrix: Any, name: str) -> None:
    """Raise a ValueError that names the first NaN or infinity of a matrix, if there is one."""
    look = getattr(matrix, "first_not_finite", None)  # a matrix on a device is searched where it lies
    if look is not None:
        found = look()
        if found is not None:
            row, feature, value = found
            _raise_not_finite_at(row, feature, value, name)
        return
    search = getattr(matrix, "refuse_not_finite", None)  # a matrix elsewhere knows how
    if search is not None:
        search(name)
        return
    if isinstance(matrix, Storage):
        for feature in range(matrix.n_features):
            rows = np.flatnonzero(~np.isfinite(matrix.take(np.array([feature]))[:, 0]))
            if len(rows):
                where = cell_name(rows[0], feature, name)
                raise ValueError(f"Input {name} contains NaN or infinity: {where}. Impute it or drop the row.")
        return
    if matrix.dtype.kind != "f":
        return
    bad = _first_not_finite(matrix.data if scipy.sparse.issparse(matrix) else matrix)
    if bad is not None:
        _raise_not_finite(matrix, bad, name)


def _read_dense(X: Any, name: str) -> np.ndarray:
    refuse_masked_or_complex(X, name, ("row", "feature"))
    if type(X) is np.ndarray or isinstance(X, np.memmap):
        matrix = X
    elif isinstance(X, list | tuple) and X and is_tensor(X[0]):
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
    dtype = matrix.dtype
    if dtype.type in KEPT_TYPES and dtype.isnative:
        return matrix
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {dtype}.")
    if dtype.kind == "b":
        return matrix.view(np.uint8)
    if isinstance(matrix, np.memmap) and matrix.size > LARGEST_CONVERTED_MAP:
        raise ValueError(
            f"{name} is a memory map of dtype {dtype}, which would have to be copied: "
            "write it as float64, float32, int8 or uint8."
        )
    if dtype.kind in "Mm":
        refuse_strangers(X, matrix, name)
    try:
        return matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        refuse_complex(matrix, name)
        refuse_strangers(X, matrix, name)
        raise type(error)(f"{name} must hold numbers: {error}") from error


def _is_sparse_frame(X: Any) -> bool:
    """A pandas data frame all of whose columns are sparse with zeros left out (told without importing pandas)."""
    types = getattr(X, "dtypes", None)
    if types is None or not hasattr(X, "sparse") or not hasattr(types, "__iter__"):
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
    dtype = matrix.dtype
    if dtype.type in KEPT_TYPES and dtype.isnative:
        return matrix
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {dtype}.")
    return matrix.astype(np.uint8 if dtype.kind == "b" else np.float64)


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


def _raise_not_finite(matrix: Any, index: tuple[int, ...], name: str) -> None:
    if scipy.sparse.issparse(matrix):
        value, (entry,) = matrix.data[index], index
        major, minor = (
            int(np.searchsorted(matrix.indptr, entry, side="right")) - 1,
            int(matrix.indices[entry]),
        )
        row, feature = (major, minor) if matrix.format == "csr" else (minor, major)
    else:
        value, (row, feature) = matrix[index], index
    _raise_not_finite_at(row, feature, value, name)


def _raise_not_finite_at(row: int, feature: int, value: float, name: str) -> None:
    kind = "NaN" if np.isnan(value) else "infinity (inf)"
    raise ValueError(
        f"Input {name} contains {kind}: {cell_name(row, feature, name)}. "
        "Impute it (for example sklearn.impute.SimpleImputer) or drop the row."
    )
