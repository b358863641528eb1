"""Columns of X that are no numbers: named, with what to do about them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from ..row_names import row_name


def refuse_no_numbers(X: Any, matrix: np.ndarray, name: str) -> None:
    """Raise a ValueError that names the first column of text or dates, if there is one. `matrix` is X as an array of
    objects, strings or dates; a data frame knows the names of its columns."""
    columns = getattr(X, "columns", None)
    names = [f"{name}[:, {j}]" for j in range(matrix.shape[1])] if columns is None else [repr(own) for own in columns]
    for j, column in enumerate(matrix.T):
        for i, value in enumerate(column):
            found = _no_number(value)
            if found is not None:
                (kind, remedy), word = found, str(value)[:60]
                shown = repr(word) if kind == "text" else word
                raise ValueError(
                    f"{name}: column {names[j]} holds {kind}: {shown} in {row_name(i)}. {remedy} or drop the column."
                ) from None


def _no_number(value: Any) -> tuple[str, str] | None:
    """What a value is that is no number, and what to do about it."""
    if isinstance(value, str | bytes):
        if is_number(value):
            return None
        return "text", "Encode it as numbers (sklearn.preprocessing.OneHotEncoder, pandas.get_dummies)"
    if isinstance(value, datetime.date | datetime.time | np.datetime64) or type(value).__name__ == "Period":
        return "dates", "Turn them into numbers (days since some day, the month, the hour)"
    if isinstance(value, datetime.timedelta | np.timedelta64):
        return "durations", "Turn them into numbers (seconds, days)"
    return None


def is_number(word: str | bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
