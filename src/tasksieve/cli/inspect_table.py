"""``tasksieve inspect`` of tables: how a file is read, before anything is fitted to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..tables import Table, TableError, read_sheets, read_table, table_format
from ..tables.described import describe_table
from ..tables.sheets import WORKBOOKS, sheet_names
from .files import READING, several_sheets
from .options import Asked

MOST_COLUMNS = 40  # that are described


def inspect_file(asked: Asked) -> dict[str, Any]:
    """The table of a file, or the tables of the sheets of a workbook."""
    path = Path(asked.run)
    said = {key: getattr(asked, key) for key in READING if getattr(asked, key) is not None}
    format = asked.format or table_format(path)
    if not path.is_file():
        raise TableError(f"there is no file {path}")
    sheets = asked.sheet or (["*"] if format in WORKBOOKS and len(sheet_names(path, format)) > 1 else [])
    tables: dict[str, Table] = {}
    if several_sheets({"sheet": sheets}):
        tables = read_sheets(path, sheets, **said)
    else:
        tables = {"": read_table(path, sheet=sheets[0] if sheets else None, **said)}
    found = {name: describe_table(table, MOST_COLUMNS) for name, table in tables.items()}
    what = f"a table, read as {format}" if len(found) == 1 else f"a workbook of {len(found)} sheets, read as {format}"
    return {"path": os.fspath(path), "what": what, "tables": found}


def table_lines(found: dict[str, Any]) -> list[str]:
    """A few lines for people."""
    lines = [f"{found['path']}: {found['what']}"]
    for name, own in found["tables"].items():
        form = ", ".join(f"{key} {value}" for key, value in own["form"].items() if key not in ("format", "sheets"))
        size = f"{own['rows']:,} rows, {len(own['columns']) + own.get('more columns', 0):,} columns"
        lines += ["", f"{f'sheet {name!r}: ' if name else ''}{size}{f'; {form}' if form else ''}"]
        width = max((len(column) for column in own["columns"]), default=0)
        lines += [f"  {column.ljust(min(width, 30))}  {words}" for column, words in own["columns"].items()]
        if "more columns" in own:
            lines.append(f"  and {own['more columns']:,} more")
        if "matrix" in own:
            lines.append(f"  X: {own['matrix']}")
        lines += [f"note: {note}" for note in own["notes"]]
    return lines
