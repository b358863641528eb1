"""Columns of X that are no numbers: named, with what to do about them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np


def refuse_strangers(X: Any, matrix: np.ndarray, name: str) -> None:
    """Raise a ValueError that names the first column of text or dates, if there is one.

    Parameters
    ----------
    X : array or data frame
        As it was given: a data frame knows the names of its columns.
    matrix : array of shape (n, d)
        X as an array of objects, strings or dates.
    name : str
        What to call X in the message.
    """
    names = list(getattr(X, "columns", range(matrix.shape[1])))
    for j, column in enumerate(matrix.T):
        for i, value in enumerate(column):
            if isinstance(value, str | bytes) and not _is_number(value):
                raise ValueError(
                    f"{name}: column {names[j]!r} holds text: {str(value)[:60]!r} in row {i}. Encode it as numbers "
                    "(sklearn.preprocessing.OneHotEncoder, pandas.get_dummies) or drop the column."
                ) from None
            if isinstance(value, datetime.date | np.datetime64) or type(value).__name__ == "Period":
                raise ValueError(
                    f"{name}: column {names[j]!r} holds dates: {str(value)[:60]} in row {i}. Turn them into numbers "
                    "(days since some day, the month, the hour) or drop the column."
                ) from None
            if isinstance(value, datetime.timedelta | np.timedelta64):
                raise ValueError(
                    f"{name}: column {names[j]!r} holds durations: {str(value)[:60]} in row {i}. Turn them into "
                    "numbers (seconds, days) or drop the column."
                ) from None


def _is_number(word: str | bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
