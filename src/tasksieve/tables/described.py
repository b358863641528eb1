"""What was recognised in a table, column by column, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dates import date_ways
from .encode import as_words, counted_words
from .ids import come_again, names_rows, value_codes, why_id
from .table import Column, Table, few

NAMED_WORDS = 6
_SHOWN = {",": "comma", ";": "semicolon", "tab": "tab", "|": "|", " ": "space"}


def describe_table(table: Table, most: int = 40) -> dict[str, Any]:
    """The form of the file, its size, its first columns and what becomes of them, and notes; ready for JSON."""
    form = dict(table.recognised)
    if "separator" in form:
        form["separator"] = _SHOWN.get(form["separator"], form["separator"])
    if form.get("decimal") == "." and "sheet" in form:  # cells of a workbook are numbers
        del form["decimal"]
    if "decimal" in form:
        form["decimal"] = "comma" if form["decimal"] == "," else "point"
    found: dict[str, Any] = {"form": form, "rows": table.n_rows, "columns": {}}
    names = list(table.columns)
    for name in names[:most]:
        found["columns"][name] = column_words(name, table.columns[name])
    if len(names) > most:
        found["more columns"] = len(names) - most
    if table.matrix is not None:
        found["matrix"] = f"{table.matrix.shape[0]:,} x {table.matrix.shape[1]:,}"
    found["notes"] = list(table.notes)
    return found


def column_words(name: str, column: Column) -> str:
    """What a column holds, and what would become of it as a feature."""
    gone = int(np.count_nonzero(column.missing))
    missing = f"; {gone:,} missing" if gone else ""
    if gone == len(column.values):
        return "nothing"
    if column.refusal:
        return f"cannot be used as it is: {column.refusal}"
    if column.kind == "other":
        return f"neither numbers, words nor dates{missing}"
    ways = date_ways(column)
    if ways:
        written = "" if column.kind == "date" else f", written as {_example(column)!r}"
        return f"dates{written}{missing}; no feature without --date-parts"
    why = why_id(name, column)
    if why is not None:
        again = column.kind in ("number", "text") and names_rows(name) and come_again(value_codes(column)[0])
        related = "; rows that share a value are related (--row-groups)" if again else ""
        return f"looks like an id ({why}); no feature without --keep{related}"
    if column.kind == "number":
        known = column.values[~column.missing]
        whole = "whole numbers" if known.dtype.kind in "iu" else "numbers"
        if known.min() == known.max():
            return f"one number, {known.min():g}{missing}"
        return f"{whole} from {known.min():g} to {known.max():g}{missing}"
    counts = counted_words(column)
    listed = few([repr(word) for word in sorted(counts)], NAMED_WORDS)
    labels = ", labels of numbers" if column.numbers is not None else ""
    return f"words, {len(counts):,} different{labels}: {listed}{missing}"


def _example(column: Column) -> str:
    return next(word for word in as_words(column) if word is not None)
