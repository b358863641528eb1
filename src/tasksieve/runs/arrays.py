"""Sparse matrices and names as plain arrays, and back without trust."""

from __future__ import annotations

import numpy as np
import scipy.sparse


def pack_rows(matrix: scipy.sparse.csr_array) -> dict[str, np.ndarray]:
    """A sparse matrix as three arrays."""
    return {
        "coef_data": matrix.data.astype(np.float64),
        "coef_indices": matrix.indices.astype(np.int64),
        "coef_indptr": matrix.indptr.astype(np.int64),
    }


def unpack_rows(arrays: dict[str, np.ndarray], shape: tuple[int, int]) -> scipy.sparse.csr_array:
    """The matrix that `pack_rows` has taken apart; a ValueError where the arrays are no such matrix."""
    data, indices, indptr = (arrays[f"coef_{part}"] for part in ("data", "indices", "indptr"))
    if data.dtype != np.float64 or indices.dtype != np.int64 or indptr.dtype != np.int64:
        raise ValueError("type of the coefficients")
    if min(shape) < 0 or indptr.shape != (shape[0] + 1,) or data.ndim != 1 or data.shape != indices.shape:
        raise ValueError("shape of the coefficients")
    matrix = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
    matrix.check_format(full_check=True)
    return matrix


def pack_names(names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Names as the bytes of all of them, and where each ends."""
    words = [name.encode("utf-8", "surrogatepass") for name in names]
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    return np.frombuffer(b"".join(words), dtype=np.uint8), ends


def unpack_names(packed: np.ndarray, ends: np.ndarray) -> list[str]:
    """The names that `pack_names` has taken apart."""
    content, positions = packed.astype(np.uint8).tobytes(), ends.astype(np.int64)
    if np.any(np.diff(positions, prepend=0) < 0) or (len(positions) and positions[-1] != len(content)):
        raise ValueError("names of the features")
    starts = np.concatenate([[0], positions[:-1]]).tolist()
    return [
        content[start:end].decode("utf-8", "surrogatepass")
        for start, end in zip(starts, positions.tolist(), strict=True)
    ]
