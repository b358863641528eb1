"""Offsets: parts of the predictions that are known beforehand, such as logarithms of exposures."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..messages import value_error
from ..row_names import row_name
from .sample_space import TaskLabels, as_numbers, matching_list, read_numbers
from .tensors import to_numpy


def read_offset(offset: Any, labels: TaskLabels) -> np.ndarray:
    """One finite number per label, as a flat vector; 0 where the label is not observed or has no weight."""
    flat = np.where(labels.weights > 0.0, read_numbers(offset, labels, "offset"), 0.0)
    if not np.all(np.isfinite(flat)):
        i = int(np.argmin(np.isfinite(flat)))
        where = labels.where(i, "offset")
        raise value_error("{offset} is {value} in {where}: offsets must be finite numbers.", value=flat[i], where=where)
    return flat


def add_offset(scores: Any, offset: Any) -> Any:
    """Scores as a model gives them, an array or a list of arrays, with an offset in the same form (or one per row)."""
    offset = to_numpy(offset)
    if isinstance(scores, list):
        if not isinstance(offset, list | tuple) and np.ndim(offset) == 0:
            return [add_offset(part, offset) for part in scores]
        parts = matching_list([len(part) for part in scores], offset, "offset")
        return [_added(part, own, f"offset[{t}]") for t, (part, own) in enumerate(zip(scores, parts, strict=True))]
    return _added(scores, offset, "offset")


def _added(scores: np.ndarray, offset: Any, name: str) -> np.ndarray:
    values = as_numbers(offset, name)
    if values.ndim and values.shape != scores.shape:
        rows = (len(scores),)
        if values.shape == rows or values.shape == (*rows, 1):
            values = values.reshape(rows + (1,) * (scores.ndim - 1))
        else:
            more = f", or one per row, {rows}" if scores.ndim > 1 else ""
            raise ValueError(
                f"{name}.shape == {values.shape}, expected {scores.shape}: one number per prediction{more}."
            )
    if not np.all(np.isfinite(values)):
        row = f" in {row_name(np.argwhere(~np.isfinite(values))[0][0])}" if values.ndim else ""
        raise ValueError(f"{name} is not finite{row}: offsets must be finite numbers.")
    return scores + values
