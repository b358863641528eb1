"""Whole files as a `Table`, whatever their format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .frame_columns import from_frame
from .frames import FORMATS, read_frames, table_format
from .labelled_files import LABELLED, read_labelled
from .matrices import read_libsvm, read_npz
from .read_text import read_csv
from .sheets import WORKBOOKS, read_sheet
from .table import Table, TableError
from .wide import WideColumns
from .wide_arrow import read_wide_arrow


def read_table(
    path: str | os.PathLike[str],
    format: str | None = None,
    separator: str | None = None,
    *,
    encoding: str | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
    value_labels: bool | None = None,
) -> Table:
    """Read a whole file; a `TableError` for one that is missing, empty, broken or of another format.

    What is not said is recognised from the file, and `Table.recognised` and `Table.notes` tell it.

    - `format` ({"csv", "parquet", "arrow", "npz", "libsvm", "excel", "ods", "stata", "spss", "sas", "xport"}): By
      default from the name of the file; CSV and libsvm may be packed (.gz, .bz2, .xz, .zst, .zip).
    - `separator`, `decimal`: Of a CSV file: the signs between cells and before decimals ("." or ","); of a workbook
      `decimal` is that of numbers in cells of text.
    - `encoding`: Of a file of text, Stata, SPSS or SAS.
    - `sheet`: Of a workbook with several sheets.
    - `value_labels`: Of Stata and SPSS files: False for numbers as they are, without their labels.
    """
    path = Path(path)
    format = format or table_format(path)
    if format not in FORMATS:
        raise TableError(f"format must be one of {', '.join(FORMATS)}; got {format!r}")
    if not path.is_file():
        raise TableError(f"{path} is a folder, not a file" if path.is_dir() else f"there is no file {path}")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    said = {"--separator": separator, "--encoding": encoding, "--decimal": decimal, "--sheet": sheet}
    refuse_settings(str(path), format, {**said, "--value-labels": value_labels})
    if format == "npz":
        table = read_npz(path)
    elif format == "libsvm":
        table = read_libsvm(path)
    elif format in WORKBOOKS:
        table = read_sheet(path, format, sheet, decimal)
    elif format in LABELLED:
        table = read_labelled(path, format, encoding, value_labels is not False)
    elif format == "csv":
        table = read_csv(path, separator, encoding, decimal)
    else:
        wide = _read_wide_arrow(path, format)
        if wide is None:
            [frame] = read_frames(path, format)
            wide = from_frame(frame, str(path))
        table = wide
    if table.n_rows == 0:
        raise TableError(f"{path} has no rows")
    table.recognised = {"format": format, **table.recognised}
    return table


#: formats of which something can be said about the file
SETTINGS = {
    "--separator": ("csv",),
    "--encoding": ("csv", *LABELLED),
    "--decimal": ("csv", *WORKBOOKS),
    "--sheet": WORKBOOKS,
    "--value-labels": ("stata", "spss"),
}


def refuse_settings(name: str, format: str, said: dict[str, Any]) -> None:
    """Refuse what is said about a file and does not go with its format."""
    for flag, value in said.items():
        if value is not None and format not in SETTINGS[flag]:
            kinds = ", ".join(SETTINGS[flag])
            raise TableError(f"{flag}: is for files of format {kinds}; {name} is read as {format}")


def _read_wide_arrow(path: Path, format: str) -> Table | None:
    found = read_wide_arrow(path, format)
    if found is None:
        return None
    names, block, whole, frame = found
    others = {} if frame is None else from_frame(frame, str(path)).columns
    return Table(str(path), len(block), WideColumns(names, block, whole, others))
