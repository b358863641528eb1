"""Rows of coefficients and their names: of tasks, of classes, or of the classes of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np


def multinomial(model: Any) -> bool:
    """A multinomial model has a row of coefficients per class, and its rows of data belong to no task."""
    n_classes = len(getattr(model, "classes_", ()))
    return n_classes == len(model.coef_) and "task" not in signature(model.predict).parameters


def has_class_rows(model: Any) -> bool:
    """Whether tasks have a row of coefficients for each of their classes."""
    return isinstance(model.coef_, list) or np.ndim(model.coef_) == 3


def task_names(model: Any, targets: Sequence[str]) -> list[str]:
    """The names of the model's tasks, in its order: targets, where each is a task."""
    return list(targets) if len(targets) > 1 else [str(label) for label in getattr(model, "tasks_", ())]


def rows_are_classes(model: Any, targets: Sequence[str]) -> bool:
    """Whether each row of coefficients belongs to a class, and to no task or target of its own."""
    n_tasks = len(task_names(model, targets))
    if isinstance(model.coef_, list):
        return False
    if model.coef_.ndim == 3:
        return n_tasks == 1
    return len(model.coef_) > 1 and (n_tasks != len(model.coef_) or multinomial(model))


def row_noun(model: Any, targets: Sequence[str]) -> str:
    """What a row of coefficients is."""
    if rows_are_classes(model, targets):
        return "class"
    return "score" if has_class_rows(model) else "task"


def coefficient_rows(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """All rows of coefficients, and their intercepts: of tasks, or of classes (and tasks)."""
    if isinstance(model.coef_, list):
        return np.concatenate(model.coef_), np.concatenate(model.intercept_)
    return model.coef_.reshape(-1, model.coef_.shape[-1]), np.ravel(model.intercept_)


def row_labels(model: Any, targets: Sequence[str]) -> list[str]:
    """A name for each row of coefficients: tasks, targets, or classes (and tasks)."""
    if rows_are_classes(model, targets):
        return [str(label) for label in model.classes_.tolist()]
    names = task_names(model, targets)
    if isinstance(model.coef_, list):
        both = zip(names, model.classes_, strict=True)
        return [f"{label} / {name}" for name, labels in both for label in labels.tolist()]
    if model.coef_.ndim == 3:
        return [f"{label} / {name}" for label in model.classes_.tolist() for name in names]
    return names if len(model.coef_) > 1 else list(targets)
