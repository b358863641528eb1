"""Data frames of any library that narwhals knows (pandas, polars, pyarrow, ...): their columns by name.

narwhals comes with scikit-learn 1.9 and later. It is asked only about what is a data frame: arrays never load it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..optional import require
from .refusals import refuse_no_numbers

Array = np.ndarray[Any, Any]

# Whose frames are tables in memory.
_LIBRARIES = ("pandas", "polars", "pyarrow", "modin", "cudf")

_MISSING = ("NoneType", "NAType", "NaTType")  # of values that stand for none


def is_frame(X: Any) -> bool:
    """Whether X is a data frame, found without importing anything."""
    kind = type(X)
    return kind.__name__ in ("DataFrame", "Table") and kind.__module__.partition(".")[0] in _LIBRARIES


def is_lazy_frame(X: Any) -> bool:
    """Whether X is a query of polars that has not been run."""
    return type(X).__module__.partition(".")[0] == "polars" and hasattr(X, "collect")


def frame_of(X: Any) -> Any:
    """A data frame as narwhals shows it."""
    return _narwhals().from_native(X, eager_only=True)


def _narwhals() -> Any:
    return require("narwhals", "data frames need", "'tasksieve[frames]'")


def frame_columns(X: Any) -> list[Any] | None:
    """Names of the columns of a data frame; None of anything else."""
    if not is_frame(X):
        return None
    names = getattr(X, "column_names", None)  # of pyarrow, whose columns are arrays
    names = X.columns if names is None else names
    return names.tolist() if hasattr(names, "tolist") else list(names)  # numbers as Python has them


def pick_columns(X: Any, names: Sequence[Any]) -> Any:
    """A frame with these columns, in this order."""
    return X[list(names)] if hasattr(X, "iloc") else frame_of(X).select(list(names)).to_native()


def stack_frames(parts: Sequence[Any]) -> Any:
    """Frames on top of each other."""
    stacked = _narwhals().concat([frame_of(part) for part in parts], how="vertical").to_native()
    return stacked.reset_index(drop=True) if hasattr(stacked, "reset_index") else stacked


def frame_values(X: Any, name: str) -> Array:
    """The numbers of a frame: as they lie where NumPy can see them, else a copy in which a missing value is NaN."""
    if hasattr(X, "iloc") and all(isinstance(dtype, np.dtype) and dtype.kind != "O" for dtype in X.dtypes):
        return np.asarray(X)
    frame = frame_of(X)
    out = np.empty(frame.shape, dtype=np.float64, order="F")
    for j, column in enumerate(frame.iter_columns()):
        values = column.to_numpy()
        if values.dtype.kind not in "biuf":
            values = _without_missing(column)
            refuse_no_numbers(values[:, None], name, [column.name])
        try:
            out[:, j] = values
        except (TypeError, ValueError):
            raise ValueError(f"{name}: column {column.name!r} holds {column.dtype}, no numbers: drop it.") from None
    return out


def _without_missing(column: Any) -> Array:
    """Objects of a column, NaN where there is none."""
    found = np.empty(len(column), dtype=object)
    found[:] = [np.nan if type(value).__name__ in _MISSING else value for value in column.to_list()]
    return found
