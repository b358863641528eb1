"""Variants and people as tables: columns by name, without needing a data frame."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Table:
    """Columns of the same length; ``table["pos"]``, ``table.columns``, ``len(table)``, ``table.to_dict()``.

    Lists are columns of words.
    """

    def __init__(self, columns: dict[str, Any]) -> None:
        self._columns = {
            name: np.array(values, dtype=object) if isinstance(values, list) else np.asarray(values)
            for name, values in columns.items()
        }

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> Array:
        if name not in self._columns:
            raise KeyError(f"{name!r} is no column; there are {', '.join(self._columns)}")
        return self._columns[name]

    def take(self, rows: Array) -> Table:
        """Some rows, by index or by flags."""
        return Table({name: values[rows] for name, values in self._columns.items()})

    def pairs(self, first: str, second: str) -> list[tuple[Any, Any]]:
        """Two columns, row by row."""
        return list(zip(self[first].tolist(), self[second].tolist(), strict=True))

    def to_dict(self) -> dict[str, Array]:
        return dict(self._columns)

    def to_frame(self) -> Any:
        """A pandas data frame, or this table where pandas is not installed."""
        try:
            import pandas
        except ImportError:
            return self
        return pandas.DataFrame(self._columns)


def stacked(tables: list[Table]) -> Table:
    """Rows of several tables of the same columns, one after the other."""
    return Table({name: np.concatenate([table[name] for table in tables]) for name in tables[0].columns})
