"""How messages name places in people's data: rows are counted from 1, as in a file; columns by name or as X[:, j]."""

from __future__ import annotations


def row_name(row: int) -> str:
    """The row at an index: ``row 14 (row 1 is the first)`` at index 13."""
    return f"row {int(row) + 1} (row 1 is the first)"


def cell_name(row: int, feature: int, name: str = "X") -> str:
    """A cell of a matrix without names of columns: ``row 14 (row 1 is the first), column X[:, 7]``."""
    return f"{row_name(row)}, column {name}[:, {int(feature)}]"
