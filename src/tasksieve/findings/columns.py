"""A finding that is a table: its columns by name, as in a data frame, without needing one."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Columns:
    """``found["pvalue"]`` and ``found.columns``, from what ``to_dict()`` returns."""

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.to_dict())

    def __getitem__(self, name: str) -> Array:
        columns = self.to_dict()
        if name not in columns:
            raise KeyError(f"{name!r} is no column; there are {', '.join(columns)}")
        return np.asarray(columns[name])
