"""Complex numbers: no argument has a use for them, and NumPy would drop their imaginary parts with a warning only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def is_complex(values: Any) -> bool:
    """Whether an array, a tensor, a number, or a list or dict of such, is or holds complex numbers."""
    if isinstance(values, complex | np.complexfloating):
        return True
    if isinstance(values, Mapping):
        return any(map(is_complex, values.values()))
    if isinstance(values, list | tuple):
        return any(map(is_complex, values))
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "") == "O" and isinstance(values, np.ndarray):
        return any(isinstance(value, complex | np.complexfloating) for value in values.ravel().tolist())
    return getattr(dtype, "kind", "") == "c" or bool(getattr(dtype, "is_complex", False))


def refuse_complex(values: Any, name: str) -> None:
    """Raise a ValueError that names an argument which is, or holds, complex numbers."""
    if is_complex(values):
        raise ValueError(f"Complex data not supported: {name} is complex. Pass real numbers, {name}.real say.")
