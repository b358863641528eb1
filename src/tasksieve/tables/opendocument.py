"""Sheets of OpenDocument spreadsheets as rows of values."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from .npz import physical_memory
from .number_words import ERROR_CELLS
from .sheet_cells import FORMULA, MERGED, Cells, Refused, cell_name
from .table import TableError

_SPACE = "{urn:oasis:names:tc:opendocument:xmlns:"
_TABLE, _OFFICE, _TEXT = f"{_SPACE}table:1.0}}", f"{_SPACE}office:1.0}}", f"{_SPACE}text:1.0}}"
_EXTENSION = "{urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0}"
_NUMBERS = ("float", "percentage", "currency")
# Cells of a sheet: a row may be said to be there a million times.
MOST_CELLS = 1 << 26


def opendocument_sheets(path: Path) -> list[str]:
    """Names of the sheets, in their order."""
    return [name for name, _ in _tables(path)]


def read_opendocument_sheets(path: Path, wanted: list[str]) -> dict[str, Cells]:
    """Some sheets, by name."""
    return {name: _cells(table) for name, table in _tables(path) if name in wanted}


def _tables(path: Path) -> list[tuple[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        if archive.getinfo("content.xml").file_size > physical_memory() // 8:
            raise TableError("its content is said to be larger than memory holds: save it as .csv")
        root = ElementTree.fromstring(archive.read("content.xml"))
    return [(table.get(f"{_TABLE}name", ""), table) for table in root.iter(f"{_TABLE}table")]


def _rows(parent: Any) -> Iterator[Any]:
    """Rows, also those in groups."""
    for child in parent:
        if child.tag == f"{_TABLE}table-row":
            yield child
        elif child.tag in (f"{_TABLE}table-rows", f"{_TABLE}table-row-group", f"{_TABLE}table-header-rows"):
            yield from _rows(child)


def _cells(table: Any) -> Cells:
    rows: list[list[Any]] = []
    merged: list[tuple[int, int, int, int, str]] = []
    empty = size = 0
    for row in _rows(table):
        times = int(row.get(f"{_TABLE}number-rows-repeated", "1"))
        values = _row(row, len(rows) + empty, merged)
        if not values:
            empty += times
            continue
        size += len(values) * (times + empty)
        if size > MOST_CELLS:
            raise TableError("its cells are more than memory holds: save it as .csv")
        rows += [[] for _ in range(empty)] + [list(values) for _ in range(times)]
        empty = 0
    for top, left, bottom, right, area in merged:
        for i in range(top, min(bottom + 1, len(rows))):
            for j in range(left, right + 1):
                if (i, j) != (top, left):
                    rows[i] += [None] * (j + 1 - len(rows[i]))
                    rows[i][j] = Refused(f"cells {area} {MERGED}")
    return Cells(rows, merged)


def _row(row: Any, i: int, merged: list[tuple[int, int, int, int, str]]) -> list[Any]:
    """Values up to the last cell that has one."""
    values: list[Any] = []
    position = 0
    for cell in row:
        if cell.tag not in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            continue
        times = int(cell.get(f"{_TABLE}number-columns-repeated", "1"))
        value = _value(cell, i, position)
        wide = int(cell.get(f"{_TABLE}number-columns-spanned", "1"))
        high = int(cell.get(f"{_TABLE}number-rows-spanned", "1"))
        if wide > 1 or high > 1:
            bottom, right = i + high - 1, position + wide - 1
            merged.append((i, position, bottom, right, f"{cell_name(i, position)}:{cell_name(bottom, right)}"))
        if value is not None:
            if position + times > MOST_CELLS:
                raise TableError("its cells are more than memory holds: save it as .csv")
            values += [None] * (position - len(values)) + [value] * times
        position += times
    return values


def _value(cell: Any, i: int, j: int) -> Any:
    kind = cell.get(f"{_OFFICE}value-type")
    formula, text = cell.get(f"{_TABLE}formula"), _text(cell)
    if cell.get(f"{_EXTENSION}value-type") == "error" or text in ERROR_CELLS or (formula and text.startswith("Err:")):
        return None if text == "#N/A" else Refused(f"cell {cell_name(i, j)} is {text}: correct it, or leave it empty")
    if kind is None:
        return Refused(f"cell {cell_name(i, j)} {FORMULA}") if formula and not text else (text or None)
    if kind in _NUMBERS:
        number = cell.get(f"{_OFFICE}value", "")
        return int(number) if number.lstrip("+-").isdigit() else float(number)
    if kind == "boolean":
        return cell.get(f"{_OFFICE}boolean-value") == "true"
    if kind == "date":
        return datetime.datetime.fromisoformat(cell.get(f"{_OFFICE}date-value", ""))
    if kind == "time":
        return Refused(f"cell {cell_name(i, j)} is a time of day or a duration: turn it into a number")
    return cell.get(f"{_OFFICE}string-value") or text or None


def _text(cell: Any) -> str:
    """The paragraphs of a cell, without those of its comments."""
    return "\n".join(_spelled(one) for one in cell if one.tag == f"{_TEXT}p")


def _spelled(element: Any) -> str:
    parts = [element.text or ""]
    for child in element:
        if child.tag == f"{_TEXT}s":
            parts.append(" " * int(child.get(f"{_TEXT}c", "1")))
        elif child.tag == f"{_TEXT}tab":
            parts.append("\t")
        elif child.tag == f"{_TEXT}line-break":
            parts.append("\n")
        else:
            parts.append(_spelled(child))
        parts.append(child.tail or "")
    return "".join(parts)
