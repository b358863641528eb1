"""Tables that a command leaves: in a file, on standard output, or as lines in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..runs import RunError
from ..tables import write_table
from ..tables.write import WRITTEN, table_bytes
from .exit_codes import UsageError

WIDEST = 44  # of a cell


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


def aligned(lines: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Lines of cells under each other: the first ``left`` columns to the left, the others to the right."""
    cut = [[cell if len(cell) <= WIDEST else cell[: WIDEST - 3] + "..." for cell in line] for line in lines]
    widths = [max(len(line[c]) for line in cut) for c in range(len(cut[0]))]
    shown = []
    for line in cut:
        sized = zip(line, widths, strict=True)
        cells = [cell.ljust(w) if c < left else cell.rjust(w) for c, (cell, w) in enumerate(sized)]
        shown.append("  ".join(cells).rstrip())
    return shown
