"""Files of Stata, SPSS and SAS: numbers with labels, missing values of several kinds, dates."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..optional import require
from ..row_names import label_word
from .frame_columns import from_series
from .frames import broken_file, check_header
from .table import Column, Table, TableError, few
from .text_form import known_encoding
from .wide import LARGEST_WHOLE

READERS = {"stata": "read_dta", "spss": "read_sav", "sas": "read_sas7bdat", "xport": "read_xport"}
LABELLED = tuple(READERS)
_NAMES = {"stata": "Stata", "spss": "SPSS", "sas": "SAS", "xport": "SAS transport"}


def read_labelled(path: Path, format: str, encoding: str | None, value_labels: bool) -> Table:
    """A file of a statistics program. Missing values of all kinds (.a in Stata, declared ones in SPSS) are missing;
    numbers all of which have labels are words, unless labels are not wanted."""
    reader = require("pyreadstat", f"{_NAMES[format]} files need", "'tasksieve[formats]'", TableError)
    said = {} if encoding is None else {"encoding": known_encoding(encoding)}
    with broken_file(str(path), _NAMES[format]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame, about = getattr(reader, READERS[format])(str(path), **said)
    names = check_header(list(frame.columns), str(path))
    labels: Mapping[str, Mapping[Any, str]] = about.variable_value_labels or {}
    columns: dict[str, Column] = {}
    labelled = []
    for name, (raw, series) in zip(names, frame.items(), strict=True):
        columns[name] = _plain(from_series(series))
        own = labels.get(str(raw))
        if own and value_labels:
            columns[name] = _with_labels(columns[name], own)
            if columns[name].kind == "text" and not columns[name].refusal:
                labelled.append(repr(name))
    notes = []
    if labelled:
        notes.append(
            f"{path.name}: numbers with value labels are read as words: columns {few(labelled)}; --no-value-labels "
            "reads the numbers"
        )
    known = getattr(about, "file_encoding", None)
    recognised = {"encoding": str(known)} if known else {}
    return Table(str(path), len(frame), columns, notes=notes, recognised=recognised)


def _plain(column: Column) -> Column:
    """Whole numbers as such: these files keep all numbers as doubles; and no words where there are none."""
    if column.kind == "text":
        values = column.values.copy()
        values[values == ""] = None
        if all(value is None for value in values.tolist()):
            return Column("number", np.full(len(values), np.nan))
        return Column("text", values)
    values = column.values
    if column.kind != "number" or values.dtype.kind != "f" or not len(values) or not np.all(np.isfinite(values)):
        return column
    if np.any(np.mod(values, 1)) or np.any(np.abs(values) >= LARGEST_WHOLE):
        return column
    return Column("number", values.astype(np.int64))


def _with_labels(column: Column, labels: Mapping[Any, str]) -> Column:
    """Words where every value has a label. Numbers of which some have one are refused: quantities with codes
    for what is missing, or categories."""
    if column.kind not in ("number", "text"):
        return column
    missing = column.missing
    keys = [None if gone else value for value, gone in zip(column.values.tolist(), missing.tolist(), strict=True)]
    known = {_key(value): str(label) for value, label in labels.items()}
    bare = sorted({key for key in keys if key is not None and _key(key) not in known}, key=str)
    words = [None if key is None else known.get(_key(key), label_word(key)) for key in keys]
    if not any(word is not None for word in words):
        return column
    used = sorted({label_word(key) for key in keys if key is not None and _key(key) in known})
    if not used:
        return column  # labels of values that are not there
    numbers = column.values.astype(np.float64) if column.kind == "number" else None
    found = Column("text", np.array(words, dtype=object), numbers=numbers)
    if bare and numbers is not None:
        shown = ", ".join(f"{value} {known[_key(float(value))]!r}" for value in used[:3])
        others = few(list(map(label_word, bare)), 3)
        found.refusal = (
            f"some numbers have value labels ({shown}) and others have none ({others}). "
            "Codes for missing values? Declare them as missing in the file. --categorical takes all for categories, "
            "--no-value-labels for numbers as they are"
        )
        found.numbers = None
    elif len({known[_key(key)] for key in keys if key is not None and _key(key) in known}) < len(used):
        found.refusal = "several of its numbers have the same value label: --no-value-labels reads the numbers"
    return found


def _key(value: Any) -> Any:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
