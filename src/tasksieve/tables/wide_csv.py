"""CSV files of very many columns, row by row into one matrix.

A cell is a number where Python and pandas agree that it is one. Columns with any other cell are cut out of the file and
read by pandas, as those of narrow files are: so what a column holds does not depend on how many others there are.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .frames import MISSING_WORDS, PACKED, broken_file, read_frames
from .table import Array, TableError, row_number
from .wide import LARGEST_WHOLE

# Bytes of a row that are taken apart at a time.
PIECE = 1 << 16
_MISSING = frozenset(word.encode() for word in MISSING_WORDS)


class NotPlain(TableError):
    """A file that is for pandas: other line ends, or hardly any numbers. Always caught: users never see it."""


def read_wide_csv(path: Path, separator: str, n_columns: int) -> tuple[Array, Array, Array]:
    """The numbers of a file with a header, in Fortran order; flags of columns of whole numbers, without a missing one;
    and columns for `read_odd_columns`, about which the block has nothing to say.

    `NotPlain` is raised for files that are for pandas, a `TableError` for a row with too many cells.
    """
    with broken_file(str(path), "csv"):
        block = np.empty((_count_lines(path), n_columns), order="F")
        whole, odd = np.ones(n_columns, dtype=bool), np.zeros(n_columns, dtype=bool)
        n = 0
        for pieces in _rows(path, separator):
            end = 0
            for first, cells in pieces:
                end = first + len(cells)
                if end > n_columns:
                    surplus = f"more fields than the header has names ({n_columns})"
                    raise TableError(f"{path}: row {row_number(n)} has {surplus}")
                values = _read_cells(cells, odd[first:end])
                block[n, first:end] = values
                _still_whole(whole[first:end], odd[first:end], values, cells)
            block[n, end:] = np.nan
            whole[end:] = False
            n += 1
            if n == 1 and 2 * np.count_nonzero(odd) > n_columns:
                raise NotPlain
    whole &= ~odd
    return block if n == len(block) else np.asfortranarray(block[:n]), whole, np.flatnonzero(odd)


def read_odd_columns(path: Path, separator: str, names: list[str], odd: Array) -> Any:
    """Some columns of a file as a data frame, read as if the file had no others."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    wanted = odd.tolist()
    writer.writerow([names[j] for j in wanted])
    with broken_file(str(path), "csv"):
        for pieces in _rows(path, separator):
            found, at = [""] * len(wanted), 0
            for first, cells in pieces:
                while at < len(wanted) and wanted[at] < first + len(cells):
                    found[at] = cells[wanted[at] - first].decode("utf-8")
                    at += 1
            writer.writerow(found)
    content = io.BytesIO(text.getvalue().encode("utf-8"))
    [frame] = read_frames(content, "csv", name=str(path), separator=",")
    return frame


# --- rows and cells ----------------------------------------------------------------------------------------------


def _count_lines(path: Path) -> int:
    """At least as many as there are rows."""
    with PACKED.get(path.suffix.lower(), open)(path, "rb") as file:
        return sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 20), b"")) + 1


def _rows(path: Path, separator: str) -> Iterator[Iterator[tuple[int, list[bytes]]]]:
    """Rows after the header, each in pieces: the position of the first cell, and cells."""
    sign = separator.encode()
    blank = b" \t".replace(sign, b"")
    with PACKED.get(path.suffix.lower(), open)(path, "rb") as file:
        for k, line in enumerate(file):
            quoted = b'"' in line
            if quoted:  # the row may go on in the next line
                parts = (part.decode("utf-8") for part in itertools.chain([line], file))
                row = next(csv.reader(parts, delimiter=separator))
            line = line.rstrip(b"\r\n")
            if not quoted and (b"\r" in line or b"\0" in line):
                raise NotPlain
            if k == 0:  # the header
                continue
            if quoted:
                yield iter([(0, [cell.encode() for cell in row])])
            elif line.strip(blank):  # pandas leaves blank lines out, too
                yield _pieces(line, sign)


def _pieces(line: bytes, sign: bytes) -> Iterator[tuple[int, list[bytes]]]:
    start = first = 0
    while start <= len(line):
        end = line.find(sign, min(start + PIECE, len(line)))
        end = len(line) if end < 0 else end
        cells = line[start:end].split(sign)
        yield first, cells
        first += len(cells)
        start = end + len(sign)


def _read_cells(cells: list[bytes], odd: Array) -> Array:
    """Numbers, NaN where there is none; columns with a cell that is neither a number nor missing become odd."""
    try:
        values = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
        if b"_" not in b"".join(cells):  # Python reads 1_000 as a number
            return values
    except ValueError:
        pass
    found = [_read_cell(cell) for cell in cells]
    odd |= np.array([value is None for value in found])
    return np.array([np.nan if value is None else value for value in found])


def _read_cell(cell: bytes) -> float | None:
    """A number, NaN where it is missing; None where it is for pandas to say."""
    if cell in _MISSING:
        return float("nan")
    try:
        return None if b"_" in cell else float(cell)
    except ValueError:
        return None


def _still_whole(whole: Array, odd: Array, values: Array, cells: list[bytes]) -> None:
    """Which of these columns are still of whole numbers; those that a float64 does not hold are odd."""
    whole &= (values == np.trunc(values)) & ~odd
    for k in np.flatnonzero(whole).tolist():
        cell = cells[k].strip()
        whole[k] = cell[1:].isdigit() if cell[:1] in (b"+", b"-") else cell.isdigit()
    odd |= whole & (np.abs(values) >= LARGEST_WHOLE)
