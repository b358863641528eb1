"""Tables: their columns by name, as in a data frame, without needing one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..docstrings import described_by
from ..optional import data_frame

if TYPE_CHECKING:
    from pandas import DataFrame

Array = np.ndarray[Any, Any]


class Columns:
    """``found["pvalue"]`` and ``found.columns``, from what ``to_dict()`` returns."""

    #: attributes that are no columns
    _beside: ClassVar[tuple[str, ...]] = ()
    #: columns whose labels stay the objects that they are in a data frame
    _labels: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """The columns of the table, which ``found["estimate"]`` has as well."""
        return {name: column for name, column in vars(self).items() if name not in self._beside}

    @described_by(returns="pandas.DataFrame")
    def to_frame(self) -> DataFrame:
        """The table as a pandas data frame."""
        return data_frame(self, self.to_dict(), labels=self._labels)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.to_dict())

    def __getitem__(self, name: str) -> Array:
        columns = self.to_dict()
        if name not in columns:
            raise KeyError(f"{name!r} is no column; there are {', '.join(columns)}")
        return np.asarray(columns[name])
