"""CSV files of very many columns, row by row into one matrix.

A cell is a number where Python and pandas agree that it is one. Columns with any other cell are cut out of the file and
read by pandas, as those of narrow files are: so what a column holds does not depend on how many others there are.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .frames import broken_file, read_frames
from .number_words import MISSING_WORDS
from .table import Array, TableError, row_number
from .text_form import DigitNames, TextForm, open_text
from .wide import LARGEST_WHOLE

# Bytes of a row that are taken apart at a time.
PIECE = 1 << 16
_ZERO = ord("0")
_MISSING = frozenset(word.encode() for word in MISSING_WORDS)


class NotPlain(TableError):
    """A file that is for pandas: other line ends, or hardly any numbers. Always caught: users never see it."""


def read_wide_csv(path: Path, form: TextForm, names: list[str]) -> tuple[Array, Array, Array]:
    """The numbers of a file with a header, in Fortran order; flags of columns of whole numbers, without a missing one;
    and columns for `read_odd_columns`, about which the block has nothing to say.

    `NotPlain` is raised for files that are for pandas, a `TableError` for a row with too many cells.
    """
    n_columns = len(names)
    if form.decimal != ".":
        raise NotPlain
    with broken_file(str(path), "csv"):
        block = np.empty((_count_lines(path, form), n_columns), order="F")
        whole, odd = np.ones(n_columns, dtype=bool), np.zeros(n_columns, dtype=bool)
        odd[[names.index(name) for name in form.words]] = True
        n = 0
        for pieces in _rows(path, form):
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


def read_odd_columns(path: Path, form: TextForm, names: list[str], odd: Array) -> tuple[Any, TextForm]:
    """Some columns of a file as a data frame, read as if the file had no others; and the form that names those of
    digits with leading zeros."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    wanted = odd.tolist()
    zeros = DigitNames()
    writer.writerow([names[j] for j in wanted])
    with broken_file(str(path), "csv"):
        for pieces in _rows(path, form):
            found, at = [""] * len(wanted), 0
            for first, cells in pieces:
                while at < len(wanted) and wanted[at] < first + len(cells):
                    found[at] = cells[wanted[at] - first].decode("utf-8")
                    at += 1
            zeros.look(found)
            writer.writerow(found)
    content = io.BytesIO(text.getvalue().encode("utf-8"))
    as_words = tuple(names[wanted[k]] for k in sorted(zeros.found()))
    [frame] = read_frames(content, "csv", name=str(path), form=TextForm(words=as_words))
    return frame, replace(form, words=as_words)


# --- rows and cells ----------------------------------------------------------------------------------------------


def _count_lines(path: Path, form: TextForm) -> int:
    """At least as many as there are rows."""
    with open_text(path, form) as file:
        return sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 20), b"")) + 1


def _rows(path: Path, form: TextForm) -> Iterator[Iterator[tuple[int, list[bytes]]]]:
    """Rows after the header, each in pieces: the position of the first cell, and cells."""
    sign = form.separator.encode()
    blank = b" \t".replace(sign, b"")
    with open_text(path, form) as file:
        for k, line in enumerate(file):
            quoted = b'"' in line
            if quoted:  # the row may go on in the next line
                parts = (part.decode("utf-8") for part in itertools.chain([line], file))
                row = next(csv.reader(parts, delimiter=form.separator))
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
    """Which of these columns are still of whole numbers; those that a float64 does not hold are odd, and so are digits
    that begin with 0, which are names of things."""
    whole &= (values == np.trunc(values)) & ~odd
    names = []
    for k in np.flatnonzero(whole).tolist():
        cell = cells[k].strip()
        whole[k] = cell[1:].isdigit() if cell[:1] in (b"+", b"-") else cell.isdigit()
        if len(cell) > 1 and cell[0] == _ZERO and cell.isdigit():
            names.append(k)
    odd |= whole & (np.abs(values) >= LARGEST_WHOLE)
    odd[names] = True
