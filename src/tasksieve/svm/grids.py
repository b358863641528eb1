"""The values of C and graph_strength that paths and cross-validation go through."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from ..fitted.arguments import check_number, sorted_numbers
from ..messages import ParameterError
from .reading import GraphData

HARDEST = 100.0  # the largest C of a default grid: times that with which one row alone can reach its target


def read_Cs(Cs: Any, data: GraphData, weights: np.ndarray) -> np.ndarray:
    r"""The values of C, increasing.

    A number n of values stands for n values, evenly spaced in their logarithms, in the units of the data: with s the
    weights and r the mean of :math:`\lVert x \rVert^2`, from 1 / (r x the mean total weight of a task), below which
    the rows of a task together hardly reach the margin and hinge rows are all held at their bound, to 100 / (r x the
    mean weight of a row), a hundred times what one row needs to reach its margin alone. Where C carries the unit of y
    (the epsilon-insensitive loss), times the mean of abs(y).
    """
    check_Cs(Cs)
    if isinstance(Cs, Integral):
        used = weights > 0
        pull = float(weights[used] @ data.row_squares()[used])
        unit = 1.0 / pull if pull > 0.0 else 1.0
        if data.shape.loss == "epsilon_insensitive":
            unit *= float(np.average(np.abs(data.labels.y[used]), weights=weights[used])) or 1.0
        n_tasks = np.count_nonzero(np.bincount(data.labels.task_of_sample, weights=weights))
        return unit * np.geomspace(n_tasks, HARDEST * np.count_nonzero(used), int(Cs))
    return _increasing(Cs, "Cs", positive=True)


def check_Cs(Cs: Any) -> None:
    """Refuse what is neither a number of values nor values."""
    if isinstance(Cs, Integral):
        check_number(Cs, "Cs", low=1, closed=True, integer=True)
    else:
        _increasing(Cs, "Cs", positive=True)


def read_strengths(strengths: Any) -> np.ndarray:
    """The values of graph_strength, increasing."""
    return _increasing(strengths, "graph_strengths", positive=False)


def _increasing(values: Any, name: str, positive: bool) -> np.ndarray:
    bound = "> 0" if positive else ">= 0"
    grid = np.unique(sorted_numbers(values, name))
    if not len(grid) or grid[0] < 0 or (positive and grid[0] == 0):
        whole = " or how many of them are wanted" if positive else ""
        raise ParameterError(name, f"must be one or more numbers {bound}{whole}", values)
    return grid
