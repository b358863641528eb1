"""Offsets: parts of the predictions that are known beforehand, such as logarithms of exposures."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..messages import value_error
from ..row_names import row_name
from .labels import matching_list
from .masked import refuse_masked_or_complex
from .sample_space import TaskLabels
from .tensors import to_numpy
from .weights import in_form_of_labels


def read_offset(offset: Any, labels: TaskLabels) -> np.ndarray:
    """One finite number per label, as a flat vector; 0 where the label is not observed or has no weight."""
    offset = to_numpy(offset)
    if not isinstance(offset, list | tuple) and np.ndim(offset) == 0:
        flat = np.full(len(labels.weights), _numbers(offset, "offset"))
    elif labels.form == "list":
        parts = matching_list(np.diff(labels.offsets).tolist(), offset, "offset")
        flat = np.concatenate([_numbers(part, f"offset[{t}]") for t, part in enumerate(parts)])
    else:
        shape = (labels.n_rows, labels.n_tasks) if labels.shared else (labels.n_rows,)
        flat = labels.flatten(in_form_of_labels(_numbers(offset, "offset"), shape, "offset"))
    flat = np.where(labels.weights > 0.0, flat, 0.0)
    if not np.all(np.isfinite(flat)):
        i = int(np.argmin(np.isfinite(flat)))
        where = labels.where(i, "offset")
        raise value_error("{offset} is {value} in {where}: offsets must be finite numbers.", value=flat[i], where=where)
    return flat


def observed_offset(offset: Any, labels: TaskLabels) -> Any:
    """An offset in the form of y with 0 where labels are not observed, whatever stands there."""
    flat = read_offset(offset, labels)
    if labels.form == "list":
        return [flat[part] for part in labels.per_task()]
    if labels.shared:
        return flat.reshape(labels.n_tasks, -1).T
    values = np.empty_like(flat)
    values[slice(None) if labels.order is None else labels.order] = flat
    return values


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
    values = _numbers(offset, name)
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


def _numbers(values: Any, name: str) -> np.ndarray:
    refuse_masked_or_complex(values, name, ("row", "task"))
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, in the form of y: {error}") from error
