"""Tables that a command leaves in a file or on standard output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ..runs import RunError
from ..tables import write_table
from ..tables.write import WRITTEN, table_bytes
from .exit_codes import UsageError


def refuse_file(flag: str, file: str | None) -> None:
    """Find out before the work whether a table can be written there; None and - are standard output."""
    if file is None or file == "-":
        return
    if not Path(file).parent.is_dir():
        raise RunError(f"{flag}: there is no folder {Path(file).parent}")
    if Path(file).suffix.lower() not in WRITTEN:
        raise UsageError(f"{flag}: a .csv or .parquet file, or - for standard output; got {file!r}")


def write_columns(file: str | None, columns: dict[str, list[Any]]) -> None:
    if file is None or file == "-":
        sys.stdout.write(table_bytes(columns).decode())
        sys.stdout.flush()
    else:
        write_table(Path(file), columns)
