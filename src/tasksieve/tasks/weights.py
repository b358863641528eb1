"""Weights of samples, tasks and features, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..messages import value_error
from .refusals import refuse_masked_or_complex
from .sample_space import TaskLabels, read_numbers
from .tensors import to_numpy


def read_sample_weights(sample_weight: Any, labels: TaskLabels) -> np.ndarray:
    """Weights in the form of y as a flat vector."""
    weights = read_numbers(sample_weight, labels, "sample_weight")
    wrong = ~(weights >= 0) | np.isinf(weights)  # NaN compares false
    if wrong.any():
        i = int(np.argmax(wrong))
        raise value_error(
            "{sample_weight} must be finite and >= 0, got {weight} in {row}. 0 leaves a row out.",
            weight=weights[i],
            row=labels.where(i, "sample_weight"),
        )
    return weights


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
        there = f"there are {n_tasks} tasks: one weight per task, in the order of tasks_"
        weights = _one_each(rule, "task_weights", "task", n_tasks, there)
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


def read_feature_weights(feature_weights: Any, n_features: int, positive: bool = False) -> np.ndarray | None:
    """u_j >= 0, one per feature, or None for all 1; 0 is refused where coefficients are to be `positive`."""
    if feature_weights is None:
        return None
    there = f"X has {n_features} features: one weight per feature"
    weights = _one_each(feature_weights, "feature_weights", "feature", n_features, there)
    wrong = ~(weights >= 0) | np.isinf(weights)
    if wrong.any():
        j = int(np.argmax(wrong))
        raise ValueError(
            f"feature_weights must be finite and >= 0, got feature_weights[{j}] = {weights[j]}. "
            "0 means never penalised; to leave a feature out, drop its column."
        )
    if positive and not np.all(weights):
        raise value_error(
            "{positive=} cannot be combined with {feature_weights} of 0: coefficients that are never penalised are "
            "eliminated before the solve and cannot be constrained. Give them a small weight instead.",
            positive=True,
        )
    return weights


def _one_each(values: Any, name: str, noun: str, count: int, there: str) -> np.ndarray:
    """A vector of so many numbers; a ValueError says what there is instead."""
    refuse_masked_or_complex(values, name, (noun,))
    weights = np.asarray(to_numpy(values), dtype=np.float64)
    if weights.shape != (count,):
        raise ValueError(f"{name} has shape {weights.shape}, but {there}.")
    return weights


def without_common_factor(weights: np.ndarray) -> np.ndarray:
    """Weights of rows without a power of four that is too large or too small to be squared: objectives are divided by
    the mean weight, so that a common factor of all weights changes nothing."""
    largest = float(np.maximum.reduce(weights, initial=0.0))
    exponent = math.frexp(largest)[1] if largest > 0.0 else 0
    return weights if abs(exponent) <= 100 else np.ldexp(weights, -(exponent - exponent % 2))
