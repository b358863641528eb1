"""Tables of text as a `Table`: as they are written, numbers as people write them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .frame_columns import from_frame
from .frames import NotUtf8, broken_file, check_header, read_frames, read_header, text_form
from .number_words import (
    LEADING_ZEROS,
    beyond_doubles,
    is_beyond_doubles,
    looks_like_numbers,
    numbers_in_words,
)
from .table import Column, Table, few
from .text_form import TextForm, leading_zeros, read_otherwise
from .wide import LARGEST_WHOLE, WIDE, WideColumns
from .wide_csv import NotPlain, read_odd_columns, read_wide_csv


def read_csv(path: Path, separator: str | None, encoding: str | None, decimal: str | None) -> Table:
    form = text_form(path, separator=separator, encoding=encoding, decimal=decimal)
    try:
        return _read_text(path, form)
    except NotUtf8:
        if encoding is not None or form.encoding != "utf-8":
            raise
        return _read_text(path, read_otherwise(path, form))


def _read_text(path: Path, form: TextForm) -> Table:
    table, form = _read_wide_text(path, form) or _read_narrow_text(path, form)
    shown = {"\t": "tab"}.get(form.separator, form.separator)
    table.recognised = {"encoding": form.encoding, "separator": shown, "decimal": form.decimal}
    table.notes = [*form.notes(str(path)), *table.notes]
    return table


def _read_wide_text(path: Path, form: TextForm) -> tuple[Table, TextForm] | None:
    """A file of very many columns; None where it is narrow, or hardly any of them are numbers."""
    with broken_file(str(path), "csv"):
        header = read_header(path, form)
    if len(header) <= WIDE:
        return None
    names = check_header(header, str(path))
    try:
        block, whole, odd = read_wide_csv(path, form, names)
    except NotPlain:
        return None
    others: dict[str, Column] = {}
    if len(odd):
        frame, form = read_odd_columns(path, form, names, odd)
        others = dict(from_frame(frame, str(path)).columns)
    return Table(str(path), len(block), WideColumns(names, block, whole, others)), form


def _read_narrow_text(path: Path, form: TextForm) -> tuple[Table, TextForm]:
    [frame] = read_frames(path, "csv", form=form)
    if not form.complete and any(map(_whole_numbers, (series for _, series in frame.items()))):
        known, form = form.words, leading_zeros(path, form)
        if form.words != known:
            [frame] = read_frames(path, "csv", form=form)
    exact = _rounded_wholes(frame)
    if exact:
        [frame] = read_frames(path, "csv", form=form, text=exact)
    table = from_frame(frame, str(path))
    columns = dict(table.columns)
    for name in exact:
        columns[name] = _whole_or_real(columns[name])
    columns, notes = written_numbers(columns, form.decimal, str(path))
    return Table(str(path), table.n_rows, columns, notes=notes), form


def _whole_numbers(series: Any) -> bool:
    """Whether a column may have been digits that are names."""
    if not isinstance(series.dtype, np.dtype) or series.dtype.kind not in "iuf":
        return False
    values = series.to_numpy()
    if values.dtype.kind in "iu":
        return True
    known = values[np.isfinite(values)]
    return len(known) < len(values) and not np.any(np.mod(known, 1))


def _rounded_wholes(frame: Any) -> list[str]:
    """Columns that may be whole numbers beyond those of a double, read as doubles because a value is missing, or as
    they have more digits than any type."""
    found = []
    for name, series in frame.items():
        if isinstance(series.dtype, np.dtype) and series.dtype.kind == "f":
            values = series.to_numpy()
            known = values[np.isfinite(values)]
            if np.any(np.abs(known) >= LARGEST_WHOLE) and not np.any(np.mod(known, 1)):
                found.append(name)
    return found


def _whole_or_real(column: Column) -> Column:
    """Numbers from their digits; refused where these are whole numbers that no double holds."""
    numbers = np.array([np.nan if word is None else float(word) for word in column.values.tolist()])
    for word in column.values.tolist():
        if word is not None and is_beyond_doubles(word):
            return Column("text", column.values, refusal=beyond_doubles(word))
    return Column("number", numbers)


def _beyond(words: Sequence[str]) -> str | None:
    """A whole number that no double holds, of words all of which are digits."""
    if not words or not all(word.strip().lstrip("+-").isdigit() for word in words):
        return None
    if any(LEADING_ZEROS.fullmatch(word) for word in words):
        return None
    return next(filter(is_beyond_doubles, words), None)


def written_numbers(
    columns: dict[str, Column], decimal: str, source: str
) -> tuple[dict[str, Column], list[str]]:
    """Columns of words that are numbers with more than digits, as numbers; and notes about them."""
    notes: dict[str, list[str]] = {}
    found = dict(columns)
    for name, column in columns.items():
        if column.kind != "text" or column.refusal or column.numbers is not None:
            continue
        present = [word for word in column.values.tolist() if word is not None]
        beyond = _beyond(present)
        if beyond is not None:
            found[name] = Column("text", column.values, refusal=beyond_doubles(beyond))
            continue
        read = numbers_in_words(present, decimal) if present else None
        if read is not None:
            values = np.full(len(column.values), np.nan)
            values[~column.missing] = read[0]
            found[name] = Column("number", values)
            notes.setdefault(read[1], []).append(repr(name))
        elif decimal == "," and present and looks_like_numbers(present):
            found[name] = Column("text", column.values, refusal=(
                f"holds numbers such as {present[0][:40]!r}, with decimal points in a file of decimal commas: write "
                "them alike, say --decimal, or --categorical if these are names"
            ))  # fmt: skip
    name = os.path.basename(source)
    return found, [f"{name}: numbers with {how}: columns {few(names)}" for how, names in notes.items()]
