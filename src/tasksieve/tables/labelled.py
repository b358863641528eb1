"""Rows with labels for a model that is already fitted: a test table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .encode import Encoding
from .problem import (
    Missing,
    prepare_rows,
    read_labels_column,
    read_target,
    read_weights,
    refuse_missing,
    tidy_labels,
)
from .table import NAMED_CELLS, Array, Table, TableError, row_words


@dataclass
class LabelledRows:
    """Rows to be predicted and judged.

    - `X`: matrix of shape (n, d)
    - `y`: array of shape (n,), or (n, T) for several targets
    - `task`, `sample_weight`, `offset`, `groups`: arrays of shape (n,)
    - `rows` (int array of shape (n,)): Rows of the table in use.
    """

    X: Any
    y: Array
    task: Array | None
    sample_weight: Array | None
    offset: Array | None
    groups: Array | None
    rows: Array


def prepare_labelled(
    table: Table,
    encoding: Encoding,
    *,
    targets: Sequence[str],
    classes: bool,
    task: str | None = None,
    offset: str | None = None,
    weights: str | None = None,
    groups: str | None = None,
    missing: Missing = "error",
    fill: Array | None = None,
    unknown: Literal["error", "zero"] = "error",
) -> LabelledRows:
    """The rows of a table, read as those of the fit were, with their labels.

    A row without its (only) label, its weight or its group is an error, or left out unless ``missing="error"``; of
    several targets empty cells are labels that were not observed.
    """
    columns = [table.require(name, "--target") for name in targets]
    X, labels, offsets, rows = prepare_rows(
        table, encoding, task=task, offset=offset, missing=missing, fill=fill, unknown=unknown
    )
    needed = dict.fromkeys(targets if len(targets) == 1 else (), "--target")
    needed |= {name: flag for name, flag in ((weights, "--weights"), (groups, "--row-groups")) if name is not None}
    empty = np.zeros(table.n_rows, dtype=bool)
    for name, flag in needed.items():
        empty |= table.require(name, flag).missing
    if len(targets) > 1:
        empty |= np.all([column.missing for column in columns], axis=0)
    elif missing == "error" and empty.any():
        holes = [(name, np.flatnonzero(table.columns[name].missing)) for name in needed]
        refuse_missing(table.source, [(name, bad, len(bad)) for name, bad in holes if len(bad)], mean=False)
    kept = ~empty[rows]
    if not kept.any():
        raise TableError(f"{table.source}: no row with a label is left")
    rows = rows[kept]
    whole = bool(kept.all())
    found = [
        read_target(column, name, table.source, classes)[rows] for column, name in zip(columns, targets, strict=True)
    ]
    y = found[0] if len(found) == 1 else np.stack(found, axis=1)
    return LabelledRows(
        X if whole else X[np.flatnonzero(kept)],
        tidy_labels(y) if classes and y.ndim == 1 else y,
        None if labels is None else labels[kept],
        None if weights is None else read_weights(table, weights)[rows],
        None if offsets is None else offsets[kept],
        None
        if groups is None
        else tidy_labels(read_labels_column(table.columns[groups], groups, table.source, "--row-groups")[rows]),
        rows,
    )


def refuse_unknown_labels(
    source: str, name: str, values: Array, rows: Array, known: Sequence[Any], what: str
) -> None:
    """Refuse labels that the model has not met, and name the first rows that have them.

    - `source`, `name`: Of the table and the column.
    - `values`, `rows` (arrays of shape (n,)): The labels, and their rows in the table.
    - `known`: labels of the fit
    - `what`: "task" or "class".
    """
    met = set(known)
    bad = [i for i, value in enumerate(values.tolist()) if value not in met]
    if not bad:
        return
    named = "; ".join(f"{row_words(source, rows[i])} is {values[i : i + 1].tolist()[0]!r}" for i in bad[:NAMED_CELLS])
    more = f"; and {len(bad) - NAMED_CELLS} more" if len(bad) > NAMED_CELLS else ""
    shown = ", ".join(map(repr, list(known)[:8])) + (", ..." if len(met) > 8 else "")
    raise TableError(
        f"{source}, column {name!r}: the model was fitted without this {what}: {named}{more}. It knows {shown}. "
        "Correct these rows, or leave them out of the table"
    )
