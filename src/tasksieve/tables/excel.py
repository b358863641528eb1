"""Sheets of Excel workbooks as rows of values, through openpyxl."""

from __future__ import annotations

import datetime
import warnings
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ..optional import require
from .npz import physical_memory
from .number_words import ERROR_CELLS
from .sheet_cells import FORMULA, MERGED, Cells, Refused, cell_name
from .table import TableError

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_SHEETS = "xl/worksheets/"


def excel_sheets(path: Path) -> list[str]:
    """Names of the sheets with cells, in their order."""
    with zipfile.ZipFile(path) as archive:
        book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
        names = [sheet.get("name", "") for sheet in book.iter() if sheet.tag.rpartition("}")[2] == "sheet"]
        charts = sum(name.startswith("xl/chartsheets/sheet") for name in archive.namelist())
    return names if not charts else [sheet.title for sheet in _load(path, data_only=True).worksheets]


def read_excel_sheets(path: Path, wanted: list[str]) -> dict[str, Cells]:
    """Some sheets, by name."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > physical_memory() // 8:
            raise TableError("its sheets are said to be larger than memory holds: save them as .csv or .parquet")
        formulas = any(
            one.filename.startswith(_SHEETS) and _holds_formula(archive, one.filename) for one in members
        )
    book = _load(path, data_only=True)
    asked = _load(path, data_only=False) if formulas else None
    return {name: _cells(book[name], None if asked is None else asked[name]) for name in wanted}


def _holds_formula(archive: zipfile.ZipFile, name: str) -> bool:
    last = b""
    with archive.open(name) as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            text = last + part
            if b"<f>" in text or b"<f " in text or b":f>" in text:
                return True
            last = part[-8:]
    return False


def _load(path: Path, **how: Any) -> Any:
    openpyxl = require("openpyxl", "Excel workbooks need", "'tasksieve[formats]'", TableError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about drawings and validations that it does not keep
        return openpyxl.load_workbook(path, **how)


def _cells(sheet: Any, formulas: Any) -> Cells:
    rows: list[list[Any]] = []
    for i, row in enumerate(sheet.iter_rows()):
        rows.append([_value(cell, formulas, i, j) for j, cell in enumerate(row)])
    merged = []
    for area in sheet.merged_cells.ranges:
        top, left = area.min_row - 1, area.min_col - 1
        merged.append((top, left, area.max_row - 1, area.max_col - 1, str(area.coord)))
        for i in range(top, area.max_row):
            for j in range(left, area.max_col):
                if (i, j) != (top, left) and i < len(rows) and j < len(rows[i]):
                    rows[i][j] = Refused(f"cells {area.coord} {MERGED}")
    return Cells(rows, merged)


def _value(cell: Any, formulas: Any, i: int, j: int) -> Any:
    value = cell.value
    if value is None:
        if formulas is not None and formulas.cell(i + 1, j + 1).data_type == "f":
            return Refused(f"cell {cell_name(i, j)} {FORMULA}")
        return None
    if cell.data_type == "e" or (isinstance(value, str) and value in ERROR_CELLS):
        return None if value == "#N/A" else Refused(f"cell {cell_name(i, j)} is {value}: correct it, or leave it empty")
    if isinstance(value, datetime.timedelta | datetime.time):
        return Refused(f"cell {cell_name(i, j)} is a time of day or a duration: turn it into a number")
    return str(value) if not isinstance(value, str | bool | int | float | datetime.date) else value
