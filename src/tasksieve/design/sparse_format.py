"""Sparse matrices whose indices are known to stay inside them: compiled code, SciPy's too, follows them unasked."""

from __future__ import annotations

from typing import Any

import numpy as np


def compressed(matrix: Any, name: str) -> Any:
    """A sparse matrix as CSR or CSC, itself where it is one; a ValueError where its indices lead outside it.

    One look at every index, before any other code reads through them.
    """
    if matrix.format == "lil":  # lists, which SciPy puts one after the other without looking at the numbers
        matrix = matrix.tocsr()
    if matrix.format == "coo" and len(matrix.shape) == 2:
        for positions, length, axis in zip(
            (matrix.row, matrix.col), matrix.shape, ("rows", "columns"), strict=True
        ):
            if positions.shape != matrix.data.shape:
                raise ValueError(
                    f"{name}: the sparse matrix has {len(matrix.data)} entries, but {len(positions)} {axis}."
                )
            _refuse_outside(positions, length, axis, name)
    elif matrix.format in ("csr", "csc", "bsr"):
        _refuse_malformed(matrix, name)
    return matrix if matrix.format in ("csr", "csc") else matrix.tocsc()


def _refuse_malformed(matrix: Any, name: str) -> None:
    indices, indptr, shape = matrix.indices, matrix.indptr, matrix.shape
    axes = ["rows", "columns"]
    if matrix.format == "bsr":
        shape = [length // size for length, size in zip(shape, matrix.blocksize, strict=True)]
        axes = ["rows of blocks", "columns of blocks"]
    elif matrix.format == "csc":
        shape, axes = shape[::-1], axes[::-1]
    if indices.dtype != indptr.dtype or indices.dtype not in (np.int32, np.int64):
        raise ValueError(
            f"{name}: indices and indptr of the sparse matrix must both be int32 or int64; they are "
            f"{indices.dtype} and {indptr.dtype}."
        )
    if indptr.shape != (shape[0] + 1,):
        raise ValueError(
            f"{name}: indptr of the sparse matrix has {indptr.size} entries; with {shape[0]} {axes[0]} it needs "
            f"{shape[0] + 1}."
        )
    if indices.ndim != 1 or len(indices) != len(matrix.data):
        raise ValueError(
            f"{name}: the sparse matrix has {indices.size} indices, but {len(matrix.data)} values."
        )
    if indptr[0] != 0:
        raise ValueError(f"{name}: indptr of the sparse matrix starts at {indptr[0]}, not at 0.")
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if len(falls):
        k = int(falls[0])
        raise ValueError(
            f"{name}: indptr of the sparse matrix must not decrease, but entry {k + 1} is {indptr[k + 1]} after "
            f"{indptr[k]}."
        )
    if indptr[-1] > len(indices):
        raise ValueError(
            f"{name}: indptr of the sparse matrix ends at {indptr[-1]}, but {len(indices)} entries are stored."
        )
    _refuse_outside(indices[: indptr[-1]], shape[1], axes[1], name)


def _refuse_outside(indices: np.ndarray, length: int, axis: str, name: str) -> None:
    if not len(indices):
        return
    for reached in (int(indices.min()), int(indices.max())):
        if not 0 <= reached < length:
            raise ValueError(
                f"{name}: indices of the sparse matrix reach {reached}, but it has {length} {axis}, numbered from 0."
            )
