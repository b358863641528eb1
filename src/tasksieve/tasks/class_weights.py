"""Weights of classes: factors of the sample weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..messages import ParameterError, value_error
from .data import TaskData


def with_class_weight(data: TaskData, rule: Any) -> TaskData:
    """The data with sample weights multiplied by those of the classes: by label (1 where not named), or "balanced":
    within each task every class that has rows counts alike, and the task as much as before."""
    if rule is None:
        return data
    factors = np.ones(len(data.y))
    if isinstance(rule, str) and rule == "balanced":
        for part in data.per_task():
            _, position = np.unique(data.y[part], return_inverse=True)
            totals = np.bincount(position, data.weights[part])
            whole, live = totals.sum(), np.count_nonzero(totals)
            share = np.divide(whole, live * totals, out=np.ones(len(totals)), where=totals > 0.0)
            factors[part] = share[position]
    elif isinstance(rule, Mapping):
        values = {name: _weight(name, value) for name, value in rule.items()}
        known, codes = set(), data.class_codes
        assert codes is not None
        for t, part in enumerate(data.per_task()):
            names = data.classes_of(t).tolist()
            known.update(names)
            by_code = np.array([values.get(name, 1.0) for name in names])
            factors[part] = by_code[codes[part]]
        strange = [name for name in values if name not in known]
        if strange:
            raise ValueError(f"class_weight names the class {strange[0]!r}, which is not in y.")
    else:
        raise ParameterError("class_weight", "must be None, 'balanced' or a dict", rule)
    weights = data.weights * factors
    sums = np.add.reduceat(weights, data.offsets[:-1])
    if not np.all(sums > 0.0):
        name = data.tasks[int(np.argmin(sums > 0.0)) :][:1].tolist()[0]
        raise value_error(
            "{class_weight} leaves task {name!r} without rows: each of its classes has weight 0.", name=name
        )
    return replace(data.with_weights(weights), class_factors=factors)


def _weight(name: Any, value: Any) -> float:
    number = float(value)
    if not 0.0 <= number < np.inf:
        raise ValueError(f"class_weight must be finite and >= 0, got {value!r} for class {name!r}.")
    return number
