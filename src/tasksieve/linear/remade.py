"""A model made again from the data of its fit and its numbers: what is known of its tasks and classes is theirs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .held_out import Solved
from .null_model import as_null


@dataclass(frozen=True)
class Remade:
    """A model, the data that it is of, and what its columns were divided by.

    - `scale`: Standard deviations, or None, and the power of two that they are in units of: for ``_set_scale``.
    """

    model: Any
    data: Any
    scale: tuple[np.ndarray | None, int]


def remade(model: Any, rows: dict[str, Any], solution: Callable[[Any], Solved]) -> Remade:
    """The model that a fit of these rows (X, y, ...) would leave whose solution is that of its data; `model` says its
    class and parameters and nothing else."""
    blank = type(model)(**model.get_params(deep=False))
    given = [rows.get(name) for name in ("task", "sample_weight", "offset")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit has warned already
        data = blank._read_with(rows["X"], rows["y"], *given)
        problem = blank._problem(data)
        made = as_null(blank, data, solution(data))
    made._set_features(rows["X"], data)
    scale = problem.design.scale, problem.units.x
    made._set_scale(*scale)
    return Remade(made, data, scale)
