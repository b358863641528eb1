"""Rows that a fit leaves out on request: of named tasks and classes, and of tasks with few rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from .encode import Encoding, as_words
from .row_columns import Missing, RowColumns
from .table import NAMED_CELLS, Array, Table, TableError, few


def rows_left_out(
    table: Table,
    columns: RowColumns,
    encoding: Encoding,
    missing: Missing,
    *,
    tasks: Sequence[str] = (),
    classes: Sequence[str] = (),
    min_rows: int | None = None,
    has_classes: bool = False,
) -> tuple[Array, list[str]]:
    """Which rows are left out, and notes about them.

    - `tasks`, `classes`: Labels, as words.
    - `min_rows`: Tasks with fewer rows in use are left out.
    - `has_classes`: Whether targets are class labels.
    """
    gone, notes = np.zeros(table.n_rows, dtype=bool), list[str]()
    if (tasks or min_rows is not None) and columns.task is None:
        flag = "--exclude-task" if tasks else "--min-rows"
        more = "; leave out a target instead" if len(columns.targets) > 1 else ""
        raise TableError(f"{flag}: is for tables with a column of tasks (--task){more}")
    if tasks and columns.task is not None:
        gone |= _named(table, columns.task, tasks, "--exclude-task", "task", notes)
    if classes:
        if not has_classes or len(columns.targets) != 1:
            raise TableError("--exclude-class: is for one target of class labels")
        gone |= _named(table, columns.targets[0], classes, "--exclude-class", "class", notes)
    if min_rows is not None and columns.task is not None:
        if min_rows < 1:
            raise TableError(f"--min-rows: at least 1, got {min_rows}")
        used, _ = columns.usable(table, encoding, "mean" if missing == "error" else missing, excluded=gone)
        words = np.array(as_words(table.columns[columns.task]), dtype=object)
        counts = Counter(words[used].tolist())
        here = {word for word in words[~gone].tolist() if word is not None}
        small = sorted(word for word in here if counts[word] < min_rows)
        if small:
            gone |= np.isin(words.astype(str), small) & np.array([word is not None for word in words.tolist()])
            shown = few([f"{word!r} ({counts[word]})" for word in small], 2 * NAMED_CELLS)
            notes.append(f"{len(small)} task(s) left out, with fewer than {min_rows} rows (--min-rows): {shown}")
    if gone.all() and table.n_rows:
        raise TableError(f"{table.source}: --exclude-task, --exclude-class and --min-rows leave no row")
    return gone, notes


def _named(table: Table, name: str, wanted: Sequence[str], flag: str, what: str, notes: list[str]) -> Array:
    """Rows whose label in a column is one of those wanted."""
    counts = Counter(word for word in as_words(table.require(name, flag)) if word is not None)
    for word in wanted:
        if word not in counts:
            known = few([repr(one) for one in sorted(counts)], 2 * NAMED_CELLS)
            raise TableError(f"{flag}: column {name!r} of {table.source} has no {what} {word!r}; it has {known}")
    shown = ", ".join(f"{word!r} ({counts[word]} rows)" for word in wanted)
    notes.append(f"left out ({flag}): {what} {shown}")
    return np.array([word in set(wanted) for word in as_words(table.columns[name])], dtype=bool)
