"""Values in the form of y: one for all labels, for each or for each row; a list of arrays for a list of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from .refusals import refuse_masked_or_complex
from .sample_space import TaskLabels
from .tensors import to_numpy


def one_column(values: np.ndarray) -> np.ndarray:
    """A column of numbers or labels as a vector; anything else as it is."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def as_array(y: Any) -> np.ndarray:
    """Labels of one matrix, (n,) or (n, T), of whatever type they are."""
    if scipy.sparse.issparse(y):
        raise ValueError("y is sparse: pass a dense array (NaN marks labels that are not observed).")
    try:
        array = np.asarray(y)
    except ValueError as error:
        raise ValueError(
            "y is a list of arrays of different lengths, but X is one matrix. "
            "With one matrix per task, X is a list of matrices."
        ) from error
    if array.dtype.kind in "US" and isinstance(y, list | tuple):
        array = np.asarray(y, dtype=object)  # NumPy writes numbers beside words as words, and NaN as the word 'nan'
        array = array.astype(str) if all(isinstance(item, str) for item in array.ravel()) else array
    if array.ndim not in (1, 2):
        raise ValueError(f"y should be a 1d array or an array of shape (n, T), got an array of shape {array.shape}.")
    return array


def matching_list(rows: Sequence[int], values: Any, name: str) -> list[np.ndarray]:
    """The 1-D arrays of a list of tasks, as long as its matrices; only those of y may be masked."""
    if not isinstance(values, list | tuple) or len(values) != len(rows):
        given = f"a list of {len(values)}" if isinstance(values, list | tuple) else type(values).__name__
        raise ValueError(
            f"X is a list of {len(rows)} matrices, so {name} must be a list of {len(rows)} 1-D arrays; got {given}."
        )
    parts, values = [], to_numpy(values)
    for t, (n_rows, value) in enumerate(zip(rows, values, strict=True)):
        if name != "y":
            refuse_masked_or_complex(value, f"{name}[{t}]")
        part = one_column(as_array(value))
        if part.ndim != 1:
            raise ValueError(f"{name}[{t}] must be 1-D: one number per row of X[{t}]; got shape {part.shape}.")
        if len(part) != n_rows:
            raise ValueError(f"{name}[{t}] has {len(part)} entries, but X[{t}] has {n_rows} rows.")
        parts.append(part)
    kinds = {part.dtype.kind for part in parts}
    if len(kinds) > 1 and kinds & set("OUS"):  # numbers beside strings stay what they are
        parts = [part.astype(object) for part in parts]
    return parts


def as_numbers(values: Any, name: str) -> np.ndarray:
    """Real numbers in any form, none of them masked."""
    refuse_masked_or_complex(values, name, ("row", "task"))
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, in the form of y: {error}") from error


def read_numbers(values: Any, labels: TaskLabels, name: str) -> np.ndarray:
    """Numbers in the form of y as a flat vector, one for each label."""
    values = to_numpy(values)
    if labels.form == "list" and (isinstance(values, list | tuple) or np.ndim(values)):
        values = np.concatenate(matching_list(np.diff(labels.offsets).tolist(), values, name))
    numbers = as_numbers(values, name)
    if numbers.ndim == 0:
        return np.full(int(labels.offsets[-1]), float(numbers))
    shape: tuple[int, ...] = (labels.n_rows, labels.n_tasks) if labels.shared else (labels.n_rows,)
    if labels.shared and numbers.shape == shape[:1]:
        numbers = np.repeat(numbers[:, None], shape[1], axis=1)
    numbers = numbers if labels.shared else one_column(numbers)
    if numbers.shape != shape:
        more = f", or one per row, {shape[:1]}" if labels.shared else ""
        raise ValueError(f"{name}.shape == {numbers.shape}, expected {shape}: one number per label in y{more}.")
    return numbers if labels.form == "list" else labels.flatten(numbers)
