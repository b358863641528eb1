"""How a broken property is reported: its name, the property in words, and the numbers that show it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

#: of the batteries
SEED = "seed : int, default=0"
FAILURE = """
AssertionError
    Its message begins with the name of the property and ends with the numbers that show the failure.
"""


def claim(holds: Any, words: str, **numbers: Any) -> None:
    """Raise an AssertionError unless a property holds.

    - `holds`: NaN anywhere in a comparison makes it False, so that broken numbers never pass.
    - `words`: The name of the property, a colon, the property itself, and how it is broken.
    - `**numbers`: What shows it.
    """
    if not holds:
        shown = "; ".join(f"{key} = {_as_text(value)}" for key, value in numbers.items())
        raise AssertionError(words + (f"\n    {shown}" if shown else ""))


def _as_text(value: Any) -> str:
    """A number or a small array, in few digits."""
    if isinstance(value, float | np.floating):
        return f"{value:.10g}"
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.array2string(value, precision=6, threshold=40, separator=", ").replace("\n", "")
    return repr(value)


def close(a: Any, b: Any, tolerance: float = 1e-10) -> bool:
    """Equal up to a tolerance relative to the size of the second, or to 1 where that is larger."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return False
    size = 1.0 + float(np.max(np.abs(b), initial=0.0))
    return bool(np.all(np.abs(a - b) <= tolerance * size))


def at_most(a: Any, b: Any, tolerance: float = 1e-10) -> bool:
    """Nowhere above, but for rounding."""
    b = np.asarray(b)
    return bool(np.all(np.asarray(a) <= b + tolerance * (1.0 + np.abs(b))))


@contextmanager
def unchanged(name: str, method: str, **arrays: Array) -> Iterator[None]:
    """Arrays that a method is given and must leave as they are; it cannot even write to them."""
    before = {key: array.copy() for key, array in arrays.items()}
    flags = {key: array.flags.writeable for key, array in arrays.items()}
    try:
        for array in arrays.values():
            array.flags.writeable = False
        try:
            yield
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            raise AssertionError(f"{name}: `{method}` writes to the arrays it is given ({error}).") from error
    finally:
        for key, array in arrays.items():
            if flags[key]:
                array.flags.writeable = True
    for key, array in arrays.items():
        same = np.array_equal(array, before[key], equal_nan=array.dtype.names is None)
        claim(same, f"{name}: `{method}` changes its argument `{key}`.")
