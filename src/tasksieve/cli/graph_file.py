"""The graph of a graph machine: none, complete, or from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..graph import complete_graph
from ..tables import TableError, read_table
from ..tables.encode import as_words
from .exits import UsageError


def read_graph_file(graph: str, labels: np.ndarray) -> dict[str, Any]:
    """Parameters ``graph`` and ``graph_tasks`` of a graph machine.

    Parameters
    ----------
    graph : str
        "none", "complete", or a CSV file: edges with columns from, to and (optionally) weight, or a square matrix
        whose header names the tasks.
    labels : array of shape (T,)
        Labels of the tasks, in whose type the names of the file are read.
    """
    if graph == "none":
        return {}
    if graph == "complete":
        return {"graph": complete_graph(len(labels))}
    if not Path(graph).is_file():
        raise UsageError(f"--graph: 'complete', 'none' or a file; there is no file {graph}")
    by_word = {str(label): label for label in labels.tolist()}
    table = read_table(graph)
    names = list(table.columns)
    if {"from", "to"} <= set(names) <= {"from", "to", "weight"}:
        ends = [as_words(table.columns[side]) for side in ("from", "to")]
        weights = table.columns["weight"].values if "weight" in names else np.ones(table.n_rows)
        if np.asarray(weights).dtype.kind not in "iuf":
            raise TableError(f"--graph: column 'weight' of {graph} must hold numbers")
        words = list(dict.fromkeys([*by_word, *(word for side in ends for word in side if word is not None)]))
        place = {word: k for k, word in enumerate(words)}
        matrix = np.zeros((len(words), len(words)))
        for row, (one, other, weight) in enumerate(zip(*ends, weights.tolist(), strict=True)):
            if one is None or other is None or weight != weight:
                raise TableError(f"--graph: row {row + 1} of {graph} is incomplete")
            if one == other:
                raise TableError(f"--graph: row {row + 1} of {graph} joins {one!r} to itself")
            matrix[place[one], place[other]] = matrix[place[other], place[one]] = weight
    else:
        if table.n_rows != len(names):
            raise TableError(
                f"--graph: {graph} has {table.n_rows} rows and {len(names)} columns; a square matrix headed by task "
                "names, or edges with columns from, to, weight, are expected"
            )
        columns = [table.columns[name] for name in names]
        if any(column.kind != "number" or column.missing.any() for column in columns):
            raise TableError(f"--graph: the cells of {graph} must be numbers")
        matrix, words = np.stack([column.values.astype(np.float64) for column in columns], axis=1), names
    whole = labels.dtype.kind in "iu" and all(word.removeprefix("-").isdecimal() for word in words)
    return {
        "graph": matrix,
        "graph_tasks": [int(word) if whole else by_word.get(word, word) for word in words],
    }
