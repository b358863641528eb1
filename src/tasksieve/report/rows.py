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


def rows_are_classes(model: Any, targets: Sequence[str]) -> bool:
    """Whether each row of coefficients belongs to a class, and to no task or target of its own."""
    n_tasks = len(targets) if len(targets) > 1 else len(getattr(model, "tasks_", ()))
    if isinstance(model.coef_, list):
        return False
    if model.coef_.ndim == 3:
        return n_tasks == 1
    return len(model.coef_) > 1 and (n_tasks != len(model.coef_) or multinomial(model))


def coefficient_rows(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """All rows of coefficients, and their intercepts: of tasks, or of classes (and tasks)."""
    if isinstance(model.coef_, list):
        return np.concatenate(model.coef_), np.concatenate(model.intercept_)
    return model.coef_.reshape(-1, model.coef_.shape[-1]), np.ravel(model.intercept_)


def row_labels(model: Any, targets: Sequence[str]) -> list[str]:
    """A name for each row of coefficients: tasks, targets, or classes (and tasks)."""
    if rows_are_classes(model, targets):
        return [str(label) for label in model.classes_.tolist()]
    names = list(targets)
    if isinstance(model.coef_, list):
        names = names if len(names) > 1 else [str(label) for label in model.tasks_.tolist()]
        both = zip(names, model.classes_, strict=True)
        return [f"{label} / {name}" for name, labels in both for label in labels.tolist()]
    if len(targets) == 1 and int(np.prod(model.coef_.shape[:-1])) > 1:
        names = [str(label) for label in model.tasks_.tolist()]
    if model.coef_.ndim == 3:
        return [f"{label} / {name}" for label in model.classes_.tolist() for name in names]
    return names
