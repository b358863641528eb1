"""Sparse matrices whose indices are known to stay inside them: compiled code, SciPy's too, follows them unasked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def compressed(matrix: Any, name: str) -> Any:
    """A sparse matrix as CSR or CSC, itself where it is one; a ValueError where its indices lead outside it. Every
    index is looked at before any other code reads through them."""
    if matrix.format == "lil":  # lists, which SciPy puts one after the other without looking at the numbers
        matrix = matrix.tocsr()
    faults: Iterator[str] = iter(())
    if matrix.format == "coo" and len(matrix.shape) == 2:
        faults = _coordinate_faults(matrix)
    elif matrix.format in ("csr", "csc", "bsr"):
        faults = _compressed_faults(matrix)
    if (fault := next(faults, None)) is not None:
        raise ValueError(f"{name}: {fault}")
    return matrix if matrix.format in ("csr", "csc") else matrix.tocsc()


def _coordinate_faults(matrix: Any) -> Iterator[str]:
    for positions, length, axis in zip((matrix.row, matrix.col), matrix.shape, ("rows", "columns"), strict=True):
        if positions.shape != matrix.data.shape:
            yield f"the sparse matrix has {len(matrix.data)} entries, but {len(positions)} {axis}."
        yield from _outside(positions, length, axis)


def _compressed_faults(matrix: Any) -> Iterator[str]:
    """What is wrong, first things first: later looks are safe only where there was nothing before."""
    indices, indptr, shape = matrix.indices, matrix.indptr, matrix.shape
    axes = ["rows", "columns"]
    if matrix.format == "bsr":
        shape = [length // size for length, size in zip(shape, matrix.blocksize, strict=True)]
        axes = ["rows of blocks", "columns of blocks"]
    elif matrix.format == "csc":
        shape, axes = shape[::-1], axes[::-1]
    if indices.dtype != indptr.dtype or indices.dtype not in (np.int32, np.int64):
        both = f"{indices.dtype} and {indptr.dtype}"
        yield f"indices and indptr of the sparse matrix must both be int32 or int64; they are {both}."
    if indptr.shape != (shape[0] + 1,):
        needed = f"with {shape[0]} {axes[0]} it needs {shape[0] + 1}"
        yield f"indptr of the sparse matrix has {indptr.size} entries; {needed}."
    if indices.ndim != 1 or len(indices) != len(matrix.data):
        yield f"the sparse matrix has {indices.size} indices, but {len(matrix.data)} values."
    if indptr[0] != 0:
        yield f"indptr of the sparse matrix starts at {indptr[0]}, not at 0."
    for k in np.flatnonzero(indptr[1:] < indptr[:-1]):
        fall = f"entry {k + 1} is {indptr[k + 1]} after {indptr[k]}"
        yield f"indptr of the sparse matrix must not decrease, but {fall}."
    if indptr[-1] > len(indices):
        yield f"indptr of the sparse matrix ends at {indptr[-1]}, but {len(indices)} entries are stored."
    yield from _outside(indices[: indptr[-1]], shape[1], axes[1])


def _outside(indices: np.ndarray, length: int, axis: str) -> Iterator[str]:
    for reached in (int(indices.min()), int(indices.max())) if len(indices) else ():
        if not 0 <= reached < length:
            yield f"indices of the sparse matrix reach {reached}, but it has {length} {axis}, numbered from 0."
