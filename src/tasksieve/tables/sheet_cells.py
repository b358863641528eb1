"""Cells of a sheet, whatever program wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MERGED = "are merged, so that only the first has a value: unmerge them, and fill them in"
FORMULA = (
    "holds a formula without its result (the program that wrote the file has not computed it): open the file in a "
    "spreadsheet program and save it"
)


class Refused(str):
    """In the place of a value: why there is none to be read."""


@dataclass
class Cells:
    """Rows of None, bool, int, float, str, date, `Refused`; rows may be of different lengths.

    - `merged`: Areas of merged cells: first row and column, last row and column, counted from 0, and the name.
    """

    rows: list[list[Any]]
    merged: list[tuple[int, int, int, int, str]]

    @property
    def empty(self) -> bool:
        """Whether no cell has a value."""
        return all(value is None for row in self.rows for value in row)


def column_letters(j: int) -> str:
    """What spreadsheets call a column."""
    letters = ""
    j += 1
    while j:
        j, digit = divmod(j - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return letters


def cell_name(i: int, j: int) -> str:
    """What spreadsheets call a cell."""
    return f"{column_letters(j)}{i + 1}"
