"""Arguments that are refused, with what to do about them: masked, complex, no numbers, no matrix.

What is masked in y is not observed; anywhere else there is nothing that it could mean.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..complex_numbers import refuse_complex
from ..row_names import row_name


def mask_of(values: Any) -> np.ndarray | None:
    """The mask of a masked array, or of a list that holds some; None where nothing is masked."""
    if isinstance(values, list | tuple) and any(isinstance(item, np.ma.MaskedArray) for item in values):
        try:
            values = np.ma.array(values)
        except ValueError:  # ragged: the reader of the values raises
            return None
    if not isinstance(values, np.ma.MaskedArray):
        return None
    mask = np.ma.getmaskarray(values)
    return mask if mask.any() else None


def refuse_masked_or_complex(values: Any, name: str, positions: tuple[str, ...] = ("row",)) -> None:
    """Raise a ValueError about complex numbers, or about the first masked entry: `positions` names its axes."""
    refuse_complex(values, name)
    mask = mask_of(values)
    if mask is None:
        return
    words = {"row": row_name, "task": "task {}".format}
    where = ", ".join(
        words[position](index) if position in words else f"{'column ' * axis}{name}[{':, ' * axis}{index}]"
        for axis, (position, index) in enumerate(zip(positions, np.argwhere(mask)[0].tolist(), strict=False))
    )
    raise ValueError(
        f"{name} is masked{' in ' + where if where else ''}: only labels in y may be masked, which means not observed. "
        "Fill the masked entries, or leave them out."
    )


def refuse_dimensions(ndim: int, name: str, kind: str = "array") -> None:
    """Raise a ValueError for an X of other than two dimensions; of three, what is right depends on what they are."""
    hint = f"Reshape your data: {name}.reshape(-1, 1) for one feature, {name}.reshape(1, -1) for one row."
    if ndim == 3:
        hint = (
            f"If its first axis is tasks (tasks x rows x features), pass list({name}). If it is rows (trials x sensors "
            f"x times), {name}.reshape(len({name}), -1) has a feature for each sensor and time; times as tasks are "
            f"[{name}[:, :, k] for k in range({name}.shape[2])], with a list of as many y."
        )
    raise ValueError(f"Expected 2D array, got {ndim}D {kind} instead for {name}. {hint}")


def refuse_no_numbers(matrix: np.ndarray, name: str, columns: Sequence[Any] | None = None) -> None:
    """Raise a ValueError that names the first column of text or dates, if there is one. `matrix` holds objects, strings
    or dates, `columns` are their names in a data frame."""
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
    if isinstance(value, str | bytes) and not is_number(value):
        return "text", "Encode it as numbers (sklearn.preprocessing.OneHotEncoder, pandas.get_dummies)"
    if isinstance(value, datetime.date | datetime.time | np.datetime64) or type(value).__name__ == "Period":
        return "dates", "Turn them into numbers (days since some day, the month, the hour)"
    if isinstance(value, datetime.timedelta | np.timedelta64):
        return "durations", "Turn them into numbers (seconds, days)"
    return None


def is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
