"""Masked arrays: what is masked in y is not observed; anywhere else there is nothing that it could mean.

Whatever may not be masked may not be complex either.
"""

from __future__ import annotations

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
