"""Small tables written in every format that is read, by programs that are not this library."""

from __future__ import annotations

import csv
import datetime
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pyreadstat
from sas_writer import write_sas

Columns = Sequence[tuple[str, Sequence[Any]]]  # names may occur twice

ODS = """<?xml version="1.0" encoding="UTF-8"?>
<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
 xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"><office:body><office:spreadsheet>
%s</office:spreadsheet></office:body></office:document-content>"""


class Error(str):
    """The result of a formula that failed."""


class Formula(str):
    """A formula whose result was not computed."""


def rows_of(columns: Columns) -> list[list[Any]]:
    return [[name for name, _ in columns], *map(list, zip(*(values for _, values in columns), strict=True))]


def text(columns: Columns, separator: str = ",") -> str:
    found = io.StringIO()
    writer = csv.writer(found, delimiter=separator, lineterminator="\n")
    for row in rows_of(columns):
        writer.writerow(["" if cell is None else cell for cell in row])
    return found.getvalue()


def write_csv(path: Path, columns: Columns) -> None:
    path.write_text(text(columns), encoding="utf-8")


def write_german(path: Path, columns: Columns) -> None:
    path.write_bytes(text(columns, ";").encode("cp1252"))


def write_zip(path: Path, columns: Columns) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("table.csv", text(columns))


def write_zst(path: Path, columns: Columns) -> None:
    with pa.output_stream(str(path), compression="zstd") as file:
        file.write(text(columns).encode())


def arrow_table(columns: Columns) -> Any:
    return pa.Table.from_arrays([pa.array(values) for _, values in columns], names=[name for name, _ in columns])


def write_parquet(path: Path, columns: Columns) -> None:
    pyarrow.parquet.write_table(arrow_table(columns), path)


def write_arrow(path: Path, columns: Columns) -> None:
    pyarrow.feather.write_feather(arrow_table(columns), str(path), compression="uncompressed")


def write_excel(path: Path, columns: Columns, merged: Sequence[str] = ()) -> None:
    write_workbook(path, {"Sheet": rows_of(columns)}, merged)


def write_workbook(path: Path, sheets: Mapping[str, list[list[Any]]], merged: Sequence[str] = ()) -> None:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for i, row in enumerate(rows, start=1):
            for j, value in enumerate(row, start=1):
                sheet.cell(i, j, f"={value}" if isinstance(value, Formula) else value)
                if isinstance(value, Error):
                    sheet.cell(i, j).data_type = "e"
        for area in merged:
            sheet.merge_cells(area)
    book.save(path)


def ods_cell(value: Any, spanned: str = "") -> str:
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, Formula):
        return f'<table:table-cell table:formula="of:={value}"/>'
    if isinstance(value, Error):
        kind = 'table:formula="of:=1/0" office:value-type="string" calcext:value-type="error"'
        return f"<table:table-cell {kind}><text:p>{value}</text:p></table:table-cell>"
    if isinstance(value, bool):
        return f'<table:table-cell office:value-type="boolean" office:boolean-value="{str(value).lower()}"/>'
    if isinstance(value, int | float):
        return f'<table:table-cell office:value-type="float" office:value="{value!r}"/>'
    if isinstance(value, datetime.date):
        return f'<table:table-cell office:value-type="date" office:date-value="{value.isoformat()}"/>'
    return f'<table:table-cell office:value-type="string"{spanned}><text:p>{escape(value)}</text:p></table:table-cell>'


def write_ods(path: Path, columns: Columns, merged: Mapping[tuple[int, int], str] | None = None) -> None:
    rows = []
    for i, row in enumerate(rows_of(columns)):
        cells = "".join(ods_cell(value, (merged or {}).get((i, j), "")) for j, value in enumerate(row))
        rows.append(f"<table:table-row>{cells}</table:table-row>")
    rows.append('<table:table-row table:number-rows-repeated="1048000"><table:table-cell '
                'table:number-columns-repeated="16384"/></table:table-row>')  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", ODS % f'<table:table table:name="Sheet">{"".join(rows)}</table:table>')


def frame(columns: Columns) -> pd.DataFrame:
    return pd.DataFrame({name: list(values) for name, values in columns})


def write_stata(path: Path, columns: Columns) -> None:
    dates = {name: "td" for name, values in columns if isinstance(values[0], datetime.date)}
    found = frame(columns)
    for name in dates:
        found[name] = pd.to_datetime(found[name])
    found.to_stata(path, write_index=False, convert_dates=dates)


def write_spss(path: Path, columns: Columns) -> None:
    pyreadstat.write_sav(frame(columns), str(path))


def write_xport(path: Path, columns: Columns) -> None:
    pyreadstat.write_xport(frame(columns), str(path), file_format_version=8)


WRITERS: dict[str, Callable[..., None]] = {
    "csv": write_csv, "zip": write_zip, "csv.zst": write_zst, "parquet": write_parquet, "arrow": write_arrow,
    "xlsx": write_excel, "ods": write_ods, "dta": write_stata, "sav": write_spss, "xpt": write_xport,
    "sas7bdat": write_sas,
}  # fmt: skip
TEXTS = ("csv", "zip", "csv.zst")
BOOKS = ("xlsx", "ods")
ARROWS = ("parquet", "arrow")
LABELLED = ("dta", "sav", "xpt", "sas7bdat")
