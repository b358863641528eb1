"""Survival outcomes in every form of data: one of stacked rows, a list for a list of matrices, several of a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..outcomes import is_outcome, is_structured, read_outcome, stack
from .tensors import to_numpy


def read_endpoints(y: Any, n_rows: int) -> tuple[np.ndarray, list[Any] | None]:
    """The outcome of the rows of one matrix and None; or several (a dict, a list, columns of a structured array), one
    after the other, and their names: those of a dict sorted, else numbers."""
    if isinstance(y, Mapping):
        if not y:
            raise ValueError("y is an empty dict: it needs an outcome for each endpoint.")
        try:
            names = sorted(y)
        except TypeError:
            raise ValueError("y: the names of endpoints cannot be sorted (numbers and words, say).") from None
        return read_outcomes([y[name] for name in names], [n_rows] * len(names), names), names
    several: list[Any] | None = None
    if is_structured(y) and np.ndim(y) == 2:
        several = [y[:, t] for t in range(y.shape[1])]
    elif isinstance(y, list) and y and all(map(is_outcome, y)):
        several = y
    if several is None:
        return _as_long(read_outcome(to_numpy(y)), n_rows, "y"), None
    names = list(range(len(several)))
    return read_outcomes(several, [n_rows] * len(several), names), names


def read_outcomes(outcomes: Sequence[Any], rows: Sequence[int], names: Sequence[Any]) -> np.ndarray:
    """Outcomes of so many rows each, by the names of their tasks, one after the other."""
    words = [f"y[{name!r}]" for name in names]
    own = zip(outcomes, rows, words, strict=True)
    return stack([_as_long(read_outcome(to_numpy(y), name), n_rows, name) for y, n_rows, name in own], words)


def _as_long(outcome: np.ndarray, n_rows: int, name: str) -> np.ndarray:
    if len(outcome) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, {name} has "
            f"{len(outcome)}."
        )
    return outcome
