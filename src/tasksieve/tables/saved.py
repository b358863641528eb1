"""Models in untrusted files: what both loaders, of runs and of online models, need to read one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .npz import read_arrays

_TYPES: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}

# A model may hold this many bytes, or so many times the bytes of its file, unless the reader allows more.
FREE_BYTES = 1 << 28
TIMES_FILE = 100


def plain_label(label: Any) -> list[Any]:
    """A label as JSON can hold it, with its type."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, bool | int | float | str):
        return [type(label).__name__, label]
    raise ValueError(f"a file holds labels and names that are strings or numbers; got {label!r}")


def label_from(plain: Any) -> Any:
    """The label that `plain_label` has written."""
    kind, value = plain
    if kind not in _TYPES or not isinstance(value, bool | int | float | str):
        raise ValueError(f"a label is {str(plain)[:60]}, not a type and a value")
    return _TYPES[kind](value)


def require_finite(name: str, array: np.ndarray) -> np.ndarray:
    """Refuse NaN and infinities."""
    finite = np.isfinite(array)
    if not np.all(finite):
        raise ValueError(f"{name} hold NaN or infinity at position {int(np.argmin(finite))}")
    return array


def require_room(wanted: int, path: Path, max_bytes: float | None) -> None:
    """Refuse to make an array much larger than its file, unless the reader allows it."""
    stored = path.stat().st_size
    most = max(FREE_BYTES, TIMES_FILE * stored) if max_bytes is None else max_bytes
    if wanted > most:
        raise ValueError(
            f"the coefficients would take {wanted / 2**20:,.0f} MiB of memory, the file has {stored / 2**20:,.1f} MiB: "
            "that is more than is allocated for a file by default (max_bytes; on the command line --max-memory)"
        )


def rebuild(path: Any, make: Callable[[dict[str, np.ndarray]], Any]) -> Any:
    """What ``make`` builds from the arrays of a file; whatever is wrong with them is a ValueError that names the file.
    It is an .npz file without compression: no array is larger than the file. Nothing in it is executed."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(2, "No such file", str(path))
    arrays = read_arrays(path, stored=True)  # a `TableError` names the file
    try:
        return make(arrays)
    except OSError:
        raise
    except KeyError as error:
        raise ValueError(f"{path} holds no usable model: {error} is missing or unknown") from None
    except Exception as error:  # whatever a spoilt file makes of the code that reads it
        words = str(error)[:300] or type(error).__name__
        raise ValueError(f"{path} holds no usable model: {words}") from None
