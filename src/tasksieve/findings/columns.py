"""A finding that is a table: its columns by name, as in a data frame, without needing one."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

Array = np.ndarray[Any, Any]


class Columns:
    """``found["pvalue"]`` and ``found.columns``, from what ``to_dict()`` returns."""

    #: attributes that are no columns
    _beside: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """The columns of the table, which ``found["estimate"]`` has as well."""
        return {name: column for name, column in vars(self).items() if name not in self._beside}

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.to_dict())

    def __getitem__(self, name: str) -> Array:
        columns = self.to_dict()
        if name not in columns:
            raise KeyError(f"{name!r} is no column; there are {', '.join(columns)}")
        return np.asarray(columns[name])
