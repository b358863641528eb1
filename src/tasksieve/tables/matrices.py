"""Files that hold a matrix: npz and libsvm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .frames import read_libsvm_rows
from .npz import read_arrays
from .table import Column, Table, TableError

# A feature number beyond this is taken for a mistake: names are kept, and coefficients are dense.
LARGEST_INDEX = 1 << 24


def read_npz(path: Path) -> Table:
    """``X`` (n, d), or ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape`` (CSR); and arrays of n rows as columns.

    A 2-D array ``y`` gives columns ``y[0]``, ``y[1]``, ..., and the name ``y`` stands for all of them.
    ``feature_names`` names the columns of X, which are else ``x0``, ``x1``, ...
    """
    arrays = read_arrays(path)
    matrix = _sparse_from(arrays, str(path)) if "X_indptr" in arrays else arrays.pop("X", None)
    if matrix is None or matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise TableError(
            f"{path}: a numeric array X of shape (rows, features) is needed (or X_data, X_indices, X_indptr, X_shape "
            f"of a sparse one); the file has {', '.join(sorted(arrays)) or 'nothing'}"
        )
    n_rows, n_features = matrix.shape
    names: Any = arrays.pop("feature_names", None)
    if names is None:
        names = [f"x{j}" for j in range(n_features)]
    elif names.shape != (n_features,) or names.dtype.kind != "U" or len(set(names.tolist())) < n_features:
        raise TableError(f"{path}: feature_names must be {n_features} different strings")
    else:
        names = names.tolist()
    columns: dict[str, Column] = {}
    groups: dict[str, list[str]] = {}
    for name, array in arrays.items():
        if array.ndim == 1 and len(array) == n_rows:
            columns[name] = _from_array(array)
        elif array.ndim == 2 and array.shape[0] == n_rows:
            groups[name] = [f"{name}[{t}]" for t in range(array.shape[1])]
            columns.update({column: _from_array(array[:, t].copy()) for t, column in enumerate(groups[name])})
    return Table(str(path), n_rows, columns, matrix, names, groups)


def _from_array(array: np.ndarray) -> Column:
    if array.dtype.kind in "US":
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8", "replace")
        values = array.astype(object)
        values[values == ""] = None
        return Column("text", values)
    return Column("number", array.view(np.uint8) if array.dtype.kind == "b" else array)


def _sparse_from(arrays: dict[str, np.ndarray], source: str) -> Any:
    try:
        data, indices, indptr, shape = (arrays.pop(f"X_{part}") for part in ("data", "indices", "indptr", "shape"))
    except KeyError as error:
        raise TableError(
            f"{source}: a sparse X needs X_data, X_indices, X_indptr and X_shape; {error} is missing"
        ) from None
    try:
        size = tuple(int(n) for n in shape)
        whole = indices.dtype.kind in "iu" and indptr.dtype.kind in "iu"
        if len(size) != 2 or not whole or data.dtype.kind not in "biuf":
            raise ValueError("types or shape")
        if indptr.shape != (size[0] + 1,) or size[1] >= LARGEST_INDEX:
            raise ValueError("shape")
        matrix = scipy.sparse.csr_matrix((data, indices, indptr), shape=size)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise TableError(
            f"{source}: X_data, X_indices, X_indptr, X_shape are no sparse matrix: {error}"
        ) from None
    return matrix


def read_libsvm(path: Path) -> Table:
    """Columns ``label`` and, where rows have them, ``qid``; features are called ``f`` and their number in the file."""
    [(matrix, label, qid)] = read_libsvm_rows(path)
    if matrix.shape[1] >= LARGEST_INDEX:
        raise TableError(f"{path}: feature number {matrix.shape[1] - 1} is too large")
    columns = {"label": Column("number", label)}
    if len(qid) == len(label) and np.any(qid != 0):
        columns["qid"] = Column("number", np.asarray(qid, dtype=np.int64))
    # most files count from 1
    first = 0 if matrix.shape[1] and matrix[:, [0]].nnz else min(1, matrix.shape[1])
    names = [f"f{j}" for j in range(first, matrix.shape[1])]
    return Table(str(path), matrix.shape[0], columns, matrix[:, first:], names)
