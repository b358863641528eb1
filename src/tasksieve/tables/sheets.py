"""Sheets of workbooks as tables: the first row is the header, rows are named as the sheet numbers them."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..row_names import label_word
from .excel import excel_sheets, read_excel_sheets
from .frame_columns import dates_column
from .frames import broken_file, table_format
from .number_words import MISSING_WORDS, beyond_doubles, find_decimal, is_plain_number, refuse_open_decimal
from .opendocument import opendocument_sheets, read_opendocument_sheets
from .read_text import written_numbers
from .sheet_cells import Cells, Refused, cell_name, column_letters
from .table import UNNAMED, Array, Column, NamedRows, Table, TableError, few, glob
from .wide import LARGEST_WHOLE

# Of each format: its name in messages, what lists the sheets of a file, and what reads some of them.
_READERS = {
    "excel": ("an Excel workbook", excel_sheets, read_excel_sheets),
    "ods": ("an OpenDocument spreadsheet", opendocument_sheets, read_opendocument_sheets),
}
WORKBOOKS = tuple(_READERS)


def sheet_names(path: Path, format: str) -> list[str]:
    """Names of the sheets of a workbook, in their order."""
    words, names, _ = _READERS[format]
    with broken_file(str(path), words):
        return names(path)


def _cells_of(path: Path, format: str, sheets: list[str]) -> dict[str, Cells]:
    words, _, read = _READERS[format]
    with broken_file(str(path), words):
        return read(path, sheets)


def read_sheet(path: Path, format: str, sheet: str | None, decimal: str | None) -> Table:
    """One sheet of a workbook: the one named, or the only one that is not empty."""
    names = sheet_names(path, format)
    if sheet is not None and sheet not in names:
        raise TableError(f"--sheet: {path} has no sheet {sheet!r}; it has {few(list(map(repr, names)), 12)}")
    wanted = names if sheet is None else [sheet]
    found = _cells_of(path, format, wanted)
    filled = [name for name in wanted if not found[name].empty]
    if not filled:
        raise TableError(f"{path}: {'sheet ' + repr(sheet) if sheet is not None else 'its sheets'} hold no cell")
    if len(filled) > 1:
        raise TableError(
            f"{path} has {len(filled)} sheets: {few(list(map(repr, filled)), 12)}. --sheet names the one to read; "
            "several, or --sheet '*' for all of them, are a task each (with --task parts of one table)"
        )
    [name] = filled
    source = f"{path} [{name}]" if len(names) > 1 else str(path)
    table = table_of_cells(found[name], source, decimal)
    empty = [other for other in names if other not in filled] if sheet is None else []
    if empty:
        table.notes.append(f"{path.name}: sheet {name!r} is read; {few(list(map(repr, empty)))} hold no cell")
    table.recognised = {"sheet": name, "sheets": ", ".join(names), **table.recognised}
    return table


def read_sheets(
    path: str | os.PathLike[str], patterns: Sequence[str], format: str | None = None, decimal: str | None = None,
    **said: Any,
) -> dict[str, Table]:  # fmt: skip
    """Several sheets of a workbook, by their names or globs; those that a glob finds empty are left out, with a note.

    - `said`: What is said of files of other formats is refused.
    """
    path = Path(path)
    format = format or table_format(path)
    if not path.is_file():
        raise TableError(f"there is no file {path}")
    if format not in WORKBOOKS:
        raise TableError(f"--sheet: is for files of format {', '.join(WORKBOOKS)}; {path} is read as {format}")
    for key in said:
        raise TableError(f"--{key.replace('_', '-')}: is not for files of format {format}")
    names = sheet_names(path, format)
    wanted: dict[str, bool] = {}
    for pattern in patterns:
        found = [pattern] if pattern in names else glob(pattern, names)
        if not found:
            raise TableError(f"--sheet: {path} has no sheet {pattern!r}; it has {few(list(map(repr, names)), 12)}")
        for name in found:
            wanted[name] = wanted.get(name, False) or pattern in names
    cells = _cells_of(path, format, list(wanted))
    tables: dict[str, Table] = {}
    empty = []
    for name, named in wanted.items():
        if cells[name].empty:
            if named:
                raise TableError(f"{path}: sheet {name!r} holds no cell")
            empty.append(repr(name))
            continue
        tables[name] = table_of_cells(cells[name], f"{path} [{name}]", decimal)
        tables[name].recognised["sheet"] = name
        if not tables[name].n_rows:
            raise TableError(f"{path} [{name}] has no rows")
    if not tables:
        raise TableError(f"{path}: its sheets hold no cell")
    if empty:
        next(iter(tables.values())).notes.append(f"{path.name}: sheets without a cell are left out: {few(empty)}")
    return tables


def table_of_cells(cells: Cells, source: str, decimal: str | None) -> Table:
    """The cells of a sheet as a table."""
    rows = [(i, row) for i, row in enumerate(cells.rows)]
    used = [i for i, row in rows if any(value is not None for value in row)]
    top = used[0]
    width = max(len(row) for _, row in rows)
    header = [*cells.rows[top], *[None] * (width - len(cells.rows[top]))]
    body = [(i, row + [None] * (width - len(row))) for i, row in rows[top + 1 :]]
    while body and all(value is None for value in body[-1][1]):
        body.pop()
    _refuse_merged_header(cells, top, source)
    filled = [j for j in range(width) if header[j] is not None or any(row[j] is not None for _, row in body)]
    names = _names([header[j] for j in filled], filled, top, source)
    empty = [i for i, row in body if all(value is None for value in row)]
    kept = [(i, row) for i, row in body if any(value is not None for value in row)]
    numbers = [i for i, _ in kept]
    columns: dict[str, Column] = {}
    stored: list[str] = []
    for name, j in zip(names, filled, strict=True):
        columns[name] = _column([row[j] for _, row in kept], numbers, j, name, stored)
    if decimal is None:
        words = [[word for word in column.values.tolist() if word is not None] for column in columns.values()
                 if column.kind == "text"]  # fmt: skip
        decimal, left_open = find_decimal(words)
        if left_open is not None:
            refuse_open_decimal(source, left_open)
    columns, notes = written_numbers(columns, decimal, source)
    if stored:
        notes.append(f"{Path(source).name}: numbers in cells of text are read as numbers: {few(stored)}")
    if empty:
        shown = few([str(i + 1) for i in empty])
        notes.append(f"{Path(source).name}: {len(empty)} empty row(s) of the sheet left out: {shown}")
    names_of_rows = NamedRows(source, [f"row {i + 1} of the sheet" for i in numbers])
    return Table(names_of_rows, len(kept), columns, notes=notes, recognised={"decimal": decimal})


def _refuse_merged_header(cells: Cells, top: int, source: str) -> None:
    for first, _, last, _, area in cells.merged:
        if first <= top <= last:
            raise TableError(
                f"{source}: cells {area} of the header are merged. A title, or two rows of header? The first row must "
                "have the name of every column: unmerge them, and delete what is above the names"
            )


def _names(values: Sequence[Any], positions: Sequence[int], top: int, source: str) -> list[str]:
    """Names of columns, each once."""
    named = [value for value in values if value is not None]
    if len(values) > 2 and len(named) == 1:
        raise TableError(
            f"{source}: row {top + 1} of the sheet has one cell, {str(named[0])[:60]!r}. A title? The first row must "
            "have the name of every column: delete what is above it"
        )
    found: dict[str, int] = {}
    for value, j in zip(values, positions, strict=True):
        if isinstance(value, Refused):
            raise TableError(f"{source}: {value}")
        word = _word(value).strip() if value is not None else ""
        if not word and not found and len(values) > 1:
            word = UNNAMED  # of row names
        if not word:
            raise TableError(
                f"{source}: column {column_letters(j)} has no name in the header (row {top + 1} of the sheet)"
            )
        if word in found:
            raise TableError(
                f"{source}: column {word!r} occurs twice in the header ({cell_name(top, found[word])} and "
                f"{cell_name(top, j)})"
            )
        found[word] = j
    return list(found)


def _column(values: list[Any], rows: Sequence[int], j: int, name: str, stored: list[str]) -> Column:
    """One column; `stored` gets its name and cell where some of its numbers are in cells of text."""
    values = [None if isinstance(one, str) and one.strip() in MISSING_WORDS else one for one in values]
    present = [(k, value) for k, value in enumerate(values) if value is not None]
    refused = next((value for _, value in present if isinstance(value, Refused)), None)
    objects = _objects(values)
    if refused is not None:
        return Column("other", objects, refusal=str(refused))
    kinds = {_kind(value) for _, value in present}
    if not kinds:
        return Column("number", np.full(len(values), np.nan))
    if kinds == {"number"}:
        return _numbers(values)
    if kinds == {"date"}:
        return dates_column(objects, np.array([value is None for value in values]))
    if kinds == {"truth"} and len(present) == len(values):
        return Column("number", np.array(values, dtype=bool).view(np.uint8))
    if "date" in kinds:
        first = present[0]
        other = next((k, value) for k, value in present if _kind(value) != _kind(first[1]))
        return Column("other", objects, refusal=(
            f"holds dates and other things: cell {cell_name(rows[first[0]], j)} is {_word(first[1])!r}, cell "
            f"{cell_name(rows[other[0]], j)} is {_word(other[1])!r}"
        ))  # fmt: skip
    texts = [(k, value) for k, value in present if isinstance(value, str)]
    if kinds == {"number", "text"} and all(is_plain_number(value) for _, value in texts):
        stored.append(f"{name!r} ({len(texts)}, first {cell_name(rows[texts[0][0]], j)})")
        return _numbers([float(value) if isinstance(value, str) else value for value in values])
    return Column("text", _words(values))


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "date" if isinstance(value, datetime.date) else "text"


def _numbers(values: Sequence[Any]) -> Column:
    wholes = [value for value in values if isinstance(value, int)]
    beyond = next((value for value in wholes if abs(value) > LARGEST_WHOLE), None)
    if beyond is not None:
        return Column("text", _words(values), refusal=beyond_doubles(beyond))
    if len(wholes) == len(values):
        return Column("number", np.array(values, dtype=np.int64))
    return Column("number", np.array([np.nan if value is None else value for value in values], dtype=np.float64))


def _objects(values: Sequence[Any]) -> Array:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _words(values: Sequence[Any]) -> Array:
    return _objects([None if value is None else _word(value) for value in values])


def _word(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return str(value.date()) if value.time() == datetime.time() else value.isoformat(" ")
    return label_word(value)
