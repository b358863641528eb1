"""Weights of samples, tasks and features, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..messages import value_error
from ..row_names import row_name
from .masked import refuse_masked_or_complex
from .sample_space import TaskLabels
from .tensors import to_numpy


def read_sample_weights(sample_weight: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    """Weights as float64 in the shape of y, or None."""
    if sample_weight is None:
        return None
    refuse_masked_or_complex(sample_weight, "sample_weight", ("row", "task"))
    weights = np.asarray(sample_weight, dtype=np.float64)
    weights = in_form_of_labels(weights, shape, "sample_weight")
    wrong = ~(weights >= 0) | np.isinf(weights)  # NaN compares false
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        raise value_error(
            "{sample_weight} must be finite and >= 0, got {weight} in {row}. 0 leaves a row out.",
            weight=weights[row],
            row=row_name(row),
        )
    return weights


def one_column(values: np.ndarray) -> np.ndarray:
    """A column of numbers or labels as a vector; anything else as it is."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def in_form_of_labels(values: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Numbers in the shape of y, given one for all labels, one for each label, or one for each row."""
    if values.ndim == 0:
        return np.full(shape, float(values))
    if len(shape) == 1:
        values = one_column(values)
    elif values.shape == shape[:1]:
        return np.repeat(values[:, None], shape[1], axis=1)
    if values.shape != shape:
        more = f", or one per row, {shape[:1]}" if len(shape) == 2 else ""
        raise ValueError(f"{name}.shape == {values.shape}, expected {shape}: one number per label in y{more}.")
    return values


def read_task_weights(rule: Any, labels: TaskLabels) -> np.ndarray:
    """v_t: an array in the order of the tasks, a dict by label (others 1), or "balanced" = n_bar / n_t."""
    n_tasks = labels.n_tasks
    if rule is None:
        return np.ones(n_tasks)
    if isinstance(rule, str):
        if rule != "balanced":
            raise value_error("{task_weights} must be an array, a dict or 'balanced', got {rule!r}.", rule=rule)
        per_task = labels.weight_per_task
        return labels.n_bar / np.where(per_task > 0, per_task, labels.n_bar)
    if isinstance(rule, Mapping):
        names = labels.tasks.tolist()
        unknown = [name for name in rule if name not in names]
        if unknown:
            raise value_error("{task_weights} names the task {task!r}, which is not in the data.", task=unknown[0])
        weights = np.array([float(rule.get(name, 1.0)) for name in names])
    else:
        refuse_masked_or_complex(rule, "task_weights", ("task",))
        weights = np.asarray(to_numpy(rule), dtype=np.float64)
        if weights.shape != (n_tasks,):
            raise ValueError(
                f"task_weights has shape {weights.shape}, but there are {n_tasks} tasks: one weight per task, "
                "in the order of tasks_."
            )
    wrong = ~(weights > 0) | np.isinf(weights)
    if wrong.any():
        t = int(np.argmax(wrong))
        name = labels.tasks[t : t + 1].tolist()[0]
        raise value_error(
            "{task_weights} must be finite and positive, got {weight} for task {name!r}. To leave a task out, "
            "leave out its rows.",
            weight=weights[t],
            name=name,
        )
    return weights


def read_feature_weights(feature_weights: Any, n_features: int) -> np.ndarray | None:
    """u_j >= 0, one per feature, or None for all 1."""
    if feature_weights is None:
        return None
    refuse_masked_or_complex(feature_weights, "feature_weights", ("feature",))
    weights = np.asarray(to_numpy(feature_weights), dtype=np.float64)
    if weights.shape != (n_features,):
        raise ValueError(
            f"feature_weights has shape {weights.shape}, but X has {n_features} features: one weight per feature."
        )
    wrong = ~(weights >= 0) | np.isinf(weights)
    if wrong.any():
        j = int(np.argmax(wrong))
        raise ValueError(
            f"feature_weights must be finite and >= 0, got feature_weights[{j}] = {weights[j]}. "
            "0 means never penalised; to leave a feature out, drop its column."
        )
    return weights


def without_common_factor(weights: np.ndarray) -> np.ndarray:
    """Weights of rows without a power of four that is too large or too small to be squared: objectives are divided by
    the mean weight, so that a common factor of all weights changes nothing."""
    largest = float(np.maximum.reduce(weights, initial=0.0))
    exponent = math.frexp(largest)[1] if largest > 0.0 else 0
    return weights if abs(exponent) <= 100 else np.ldexp(weights, -(exponent - exponent % 2))
