"""Findings that are tables of coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..fitted.columns import Columns

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, repr=False)
class Estimates(Columns):
    """A row for each feature and task: its coefficient, and how well that is known."""

    feature: Array
    task: Array
    estimate: Array
    std_error: Array
    lower: Array
    upper: Array
    pvalue: Array

    def __len__(self) -> int:
        return len(self.feature)

    def _counted(self) -> str:
        return f"{len(set(self.feature.tolist()))} feature(s), {len(self)} coefficient(s)"
