"""How messages name labels and places in people's data: rows are counted from 1, as in a file; columns by name or as
X[:, j]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def row_name(row: int) -> str:
    """The row at an index: ``row 14 (row 1 is the first)`` at index 13."""
    return f"row {int(row) + 1} (row 1 is the first)"


def row_numbers(rows: Sequence[int], most: int = 5) -> str:
    """The first of several rows by their indices: ``1, 4, 5, 9, 10 and 3 more``."""
    more = f" and {len(rows) - most} more" if len(rows) > most else ""
    return ", ".join(str(int(row) + 1) for row in rows[:most]) + more


def label_word(label: Any) -> str:
    """A label as people write it: whole numbers without a point."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def cell_name(row: int, feature: int, name: str = "X") -> str:
    """A cell of a matrix without names of columns: ``row 14 (row 1 is the first), column X[:, 7]``."""
    return f"{row_name(row)}, column {name}[:, {int(feature)}]"
