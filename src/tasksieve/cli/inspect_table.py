"""``tasksieve inspect`` of tables: how a file is read, before anything is fitted to it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ..report.words import count
from ..tables import Table, TableError, read_sheets, read_table, table_format
from ..tables.described import describe_table
from ..tables.sheets import WORKBOOKS, sheet_names
from .files import READING, several_sheets
from .options import Asked

MOST_COLUMNS = 40  # that are described
NOT_SHOWN = ("format", "sheets", "sheet")  # said elsewhere


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
    tables = list(found["tables"].items())
    for k, (name, own) in enumerate(tables):
        form = ", ".join(f"{key} {value}" for key, value in own["form"].items() if key not in NOT_SHOWN)
        n_columns = len(own["columns"]) + own.get("more columns", 0)
        size = f"{count(own['rows'], 'row')}, {count(n_columns, 'column')}"
        lines += ["", f"{f'sheet {name!r}: ' if name else ''}{size}{f'; {form}' if form else ''}"]
        like = next((other for other, sheet in tables[:k] if list(sheet["columns"]) == list(own["columns"])), None)
        shown = own["columns"]
        if like is not None:
            known = found["tables"][like]["columns"]
            shown = {column: words for column, words in shown.items() if _kind(words) != _kind(known[column])}
            lines.append(f"  the columns of sheet {like!r}{', but:' if shown else ''}")
        width = max((len(column) for column in shown), default=0)
        lines += [f"  {column.ljust(min(width, 30))}  {words}" for column, words in shown.items()]
        if "more columns" in own and like is None:
            lines.append(f"  and {own['more columns']:,} more")
        if "matrix" in own:
            lines.append(f"  X: {own['matrix']}")
        lines += [f"note: {note}" for note in own["notes"]]
    return lines


def _kind(words: str) -> str:
    """What a column holds, without the values: two sheets of a site each differ in these."""
    if words.startswith(("numbers", "whole numbers", "one number")):
        return "numbers" + words.partition(";")[2].lstrip(" 0123456789,")
    return re.split(r"[\d(:']", words)[0]
