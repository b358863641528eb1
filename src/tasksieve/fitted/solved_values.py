"""What paths over any parameters have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..optional import data_frame
from ..path.status import statuses_of

if TYPE_CHECKING:
    from pandas import DataFrame


class SolvedValues:
    """Solutions for a sequence of values, each with its certificate and its status."""

    #: columns of a data frame of the values, and the attributes that they show
    _columns: ClassVar[dict[str, str]]

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

    def _frame(self) -> DataFrame:
        return data_frame(self, {name: getattr(self, own) for name, own in self._columns.items()})

    def __repr__(self) -> str:
        stopped = ", interrupted" if self.interrupted else ""
        return (
            f"{type(self).__name__} of {len(self)} values, {len(self.tasks)} tasks, "
            f"{self.n_features} features{stopped}"
        )
