"""A fitted linear model as plain arrays, and back: all that prediction and the certificate need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..tasks import Fills, Patterns, TaskData


@dataclass(frozen=True)
class DataFacts:
    """What a solution must know of its data once the rows are gone; the attributes are those of `TaskData`."""

    n_tasks: int
    n_features: int
    tasks: np.ndarray
    n_bar: float
    form: str
    classes: Any
    weight_per_task: np.ndarray
    task_weights: np.ndarray
    class_counts: np.ndarray | None = None
    has_offset: bool = False
    known_fills: Fills | None = None
    balance: Any = None
    patterns: Patterns | None = None

    @classmethod
    def of(cls, data: TaskData, features: Iterable[np.ndarray]) -> DataFacts:
        """With what stands for missing calls of features in any of these arrays."""
        same = {name: getattr(data, name) for name in _SAME}
        return cls(**same, known_fills=data.fills(*features) if data.has_fills else None)

    @property
    def has_fills(self) -> bool:
        return self.known_fills is not None

    def fills(self, *features: np.ndarray) -> Fills | None:
        return None if self.known_fills is None else self.known_fills.fills(*features)


_SAME = [field.name for field in fields(DataFacts) if field.name != "known_fills"]

# name of a part of the state -> attribute of the model
ATTRIBUTES = {
    "coef": "coef_",
    "intercept": "intercept_",
    "thresholds": "thresholds_",
    "loss_weights": "loss_weights_",
    "target_scales": "target_scales_",
    "tasks": "tasks_",
    "classes": "classes_",
    "single": "_single",
    "needs_offset": "_needs_offset",
    "n_features": "n_features_in_",
    "feature_names": "feature_names_in_",
    "fitted_to_arrays": "_fitted_to_arrays",
    "objective": "objective_",
    "dual_gap": "dual_gap_",
    "null_objective": "null_objective_",
    "n_iter": "n_iter_",
    "status": "status_",
    "choice": "choice_",
    "fills": "_fills",
    "cv_quality": "cv_quality_",
    "cv_quality_by_task": "cv_quality_by_task_",
    "baseline_hazard": "baseline_hazard_",
    "patterns": "patterns_",
}


def get_state(model: Any) -> dict[str, Any]:
    """What a fitted model has found, by the names of `ATTRIBUTES`; ``single`` is whether it was fitted to a 1-D y and
    no task, and therefore predicts (n,) and not (n, T), ``needs_offset`` whether it was fitted with an offset,
    ``fitted_to_arrays`` whether rows without names are as good as those of the fit, although ``feature_names`` are
    known: those of the columns of a table."""
    return {name: getattr(model, own) for name, own in ATTRIBUTES.items() if hasattr(model, own)}


def set_state(model: Any, **state: Any) -> Any:
    """Make a model the fitted one whose state `get_state` returned; parts that are not given stay as they are."""
    for name, value in state.items():
        if name not in ATTRIBUTES:
            raise TypeError(f"{name!r} is no part of a fitted model; these are: {', '.join(ATTRIBUTES)}.")
        setattr(model, ATTRIBUTES[name], value)
    return model
