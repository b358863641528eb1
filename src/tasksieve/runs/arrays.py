"""Sparse matrices and names as plain arrays, and back without trust."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse


def require(good: object, what: str) -> None:
    """A ValueError that says what is wrong with a file, unless it is good."""
    if not good:
        raise ValueError(what)


def plain_numbers(numbers: Any) -> list[Any]:
    """Numbers for JSON and tables: None where they are not known. Labels stay as they are."""
    return [None if value != value else value for value in np.asarray(numbers).ravel().tolist()]


def finite_numbers(numbers: Any) -> list[Any]:
    """The same of numbers of which those that are infinite are not known, either."""
    return plain_numbers(np.where(np.isfinite(numbers), numbers, np.nan))


def numbers_from(plain: Any) -> np.ndarray:
    """The numbers that `plain_numbers` has written."""
    return np.array([np.nan if number is None else float(number) for number in plain])


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
    types = [array.dtype for array in (data, indices, indptr)]
    require(types == [np.float64, np.int64, np.int64], "type of the coefficients")
    fit = min(shape) >= 0 and indptr.shape == (shape[0] + 1,) and data.ndim == 1 and data.shape == indices.shape
    require(fit, "shape of the coefficients")
    matrix = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
    matrix.check_format(full_check=True)
    return matrix


def pack_thresholds(by_task: Any) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds between ordered classes, task after task; and how many each task has, -1 where its outcome is another
    one."""
    counts = np.array([-1 if own is None else len(own) for own in by_task], dtype=np.int64)
    known = [np.asarray(own, dtype=np.float64) for own in by_task if own is not None]
    return np.concatenate([np.empty(0), *known]), counts


def unpack_thresholds(flat: np.ndarray, counts: np.ndarray, classes: Any) -> Any:
    """The thresholds that `pack_thresholds` has taken apart, in the form that goes with the classes: an array where all
    tasks have the same, else a list. A ValueError where they are none."""
    kinds = flat.dtype == np.float64 and counts.dtype == np.int64 and flat.ndim == counts.ndim == 1
    require(kinds and len(flat) == np.sum(np.maximum(counts, 0)), "number of thresholds")
    own = classes if isinstance(classes, list) else [classes] * len(counts)
    require(len(own) == len(counts), "tasks with thresholds")
    cuts = np.cumsum(np.maximum(counts, 0))
    found: list[Any] = []
    for labels, count, end in zip(own, counts.tolist(), cuts.tolist(), strict=True):
        require(count < 0 or (labels is not None and count == len(labels) - 1), "thresholds between the classes")
        # of classes without rows they are equal, or infinite at the ends
        part = flat[end - max(count, 0) : end]
        require(not np.isnan(part).any() and np.all(part[:-1] <= part[1:]), "thresholds that rise")
        found.append(part if count >= 0 else None)
    return found if isinstance(classes, list) else np.stack(found)


def pack_names(names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Names as the bytes of all of them, and where each ends."""
    words = [name.encode("utf-8", "surrogatepass") for name in names]
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    return np.frombuffer(b"".join(words), dtype=np.uint8), ends


def unpack_names(packed: np.ndarray, ends: np.ndarray) -> list[str]:
    """The names that `pack_names` has taken apart."""
    content, positions = packed.astype(np.uint8).tobytes(), ends.astype(np.int64)
    rising = np.all(np.diff(positions, prepend=0) >= 0)
    require(rising and (not len(positions) or positions[-1] == len(content)), "names of the features")
    places = pairwise([0, *positions.tolist()])
    return [content[start:end].decode("utf-8", "surrogatepass") for start, end in places]
