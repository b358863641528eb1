"""How X and y were read from a table of text, in the words of the certificate's format, so that it can be repeated."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..tasks.refusals import is_number
from .dates import DateParts
from .encode import Absence, Encoding
from .number_words import LEADING_ZEROS, MISSING_WORDS
from .problem import TableProblem
from .survival_columns import SurvivalColumns
from .table import column_names
from .text_form import TextForm, find_form, open_text

_TRUE = ("True", "TRUE", "true")


def table_recipe(
    problem: TableProblem,
    table: str | os.PathLike[str],
    *,
    task: str | None,
    weights: str | None,
    offset: str | None,
    drop: bool,
    **written: str | None,
) -> dict[str, Any] | None:
    """The header's `table` of a CSV file; None for what the format has no words for: parts of dates, matrices, times to
    an event of some tasks of stacked rows, other encodings than UTF-8, decimal commas. `drop` says whether rows with
    missing values were left out; `written` are the separator, encoding and decimal sign that were said."""
    encoding, survival = problem.encoding, problem.survival
    dates = any(isinstance(coding, DateParts) for _, coding in encoding.columns)
    y = problem.y
    # times to an event of some tasks among labels of others
    records = not isinstance(y, dict) and y.dtype == object and any(isinstance(own, np.void) for own in y.ravel())
    if encoding.matrix_names is not None or dates or records:
        return None
    form = find_form(table, **written)
    if form.encoding not in ("utf-8", "ascii") or form.decimal != ".":
        return None
    plain = [name for name, coding in encoding.columns if coding is None]
    plain += [own.event for own in survival.values() if own.value is None]
    try:
        headed, truths = _written(Path(table), form, plain)
    except UnicodeDecodeError:  # in a row that was not looked at
        return None
    columns = column_recipes(encoding)
    for column in columns:
        if not {"equals", "missing"} & set(column) and column["source"] in truths:
            column["equals"] = truths[column["source"]]
    if problem.fill is not None:
        for column, value in zip(columns, problem.fill.T.tolist(), strict=True):  # a number, or one for each task
            if "missing" not in column:
                column["fill"] = value
    for column in columns:
        column["source"] = headed.get(column["source"], column["source"])
    targets = [
        outcome_recipe(survival[name], truths, headed) if name in survival else headed.get(name, name)
        for name in problem.targets
    ]
    roles = {"task": task, "weight": weights, "offset": offset}
    return {
        "columns": columns,
        "target": targets if problem.several else targets[0],
        **{role: name if name is None else headed.get(name, name) for role, name in roles.items()},
        "missing": list(MISSING_WORDS),
        "drop": drop or problem.fill is not None,
        "separator": form.separator,
    }


def outcome_recipe(columns: SurvivalColumns, truths: dict[str, str], headed: dict[str, str]) -> dict[str, Any]:
    """The columns of times to an event, as the file spells them; `equals` is what an event is called, where it is not
    1."""
    time, event = (headed.get(name, name) for name in (columns.time, columns.event))
    found: dict[str, Any] = {"time": time, "event": event}
    value = truths.get(columns.event) if columns.value is None else columns.value
    if value is not None:
        found["equals"] = float(value) if is_number(value) else value
    further = (("entry", columns.entry), ("strata", columns.strata))
    found |= {key: headed.get(name, name) for key, name in further if name is not None}
    return found


def column_recipes(encoding: Encoding) -> list[dict[str, Any]]:
    """The header's `table.columns` without fills: for each feature its column and, of a category, the word; an
    indicator of missing values says so."""
    columns: list[dict[str, Any]] = []
    for name, coding in encoding.columns:
        if coding is None:
            columns.append({"source": name})
            continue
        if isinstance(coding, Absence):
            columns.append({"source": name, "missing": True})
            continue
        assert not isinstance(coding, DateParts)
        numbers = all(map(is_number, coding.words)) and not any(map(LEADING_ZEROS.fullmatch, coding.words))
        columns += [{"source": name, "equals": float(word) if numbers else word} for word in coding.indicators]
    return columns


def _written(path: Path, form: TextForm, names: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Names of columns as the file has them, with spaces at their ends; and columns of words for true and false, which
    were read as 1 and 0: how "true" is spelt in each."""
    found: dict[str, str] = {}
    with open_text(path, form) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        rows = csv.reader(text, delimiter=form.separator)
        header = next(rows, [])
        position = {name: k for k, name in enumerate(column_names(header))}
        first = next((row for row in rows if row), [])
        suspects = {
            name: position[name]
            for name in names
            if name in position and position[name] < len(first) and first[position[name]].lower() in ("true", "false")
        }
        for row in (first, *rows) if suspects else ():
            for name, k in list(suspects.items()):
                if k < len(row) and row[k] in _TRUE:
                    found[name] = row[k]
                    del suspects[name]
            if not suspects:
                break
    return dict(zip(column_names(header), header, strict=True)), {**found, **dict.fromkeys(suspects, "True")}
