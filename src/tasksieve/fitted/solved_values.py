"""What paths over any parameters have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..path.status import statuses_of


class SolvedValues:
    """Solutions for a sequence of values, each with its certificate and its status."""

    tasks: np.ndarray
    n_features: int
    objectives: np.ndarray
    converged: np.ndarray
    status: np.ndarray
    interrupted: bool

    def __len__(self) -> int:
        return len(self.objectives)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "status" not in state:  # version 0.2
            self.status = statuses_of(self.converged)

    def __repr__(self) -> str:
        stopped = ", interrupted" if self.interrupted else ""
        return (
            f"{type(self).__name__} of {len(self)} values, {len(self.tasks)} tasks, "
            f"{self.n_features} features{stopped}"
        )
