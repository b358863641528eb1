"""The graph of a graph machine: none, complete, or from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..graph import complete_graph
from ..tables import TableError, read_table
from ..tables.encode import as_words
from .exit_codes import UsageError

GRAPH_WORDS = ("none", "complete", "chain")  # for which there is no file


def read_task_graph(graph: str, labels: np.ndarray) -> Any:
    """Parameter ``task_graph`` of a linear model: a word, or a matrix in the order of the tasks from a CSV file as of
    `read_graph_file`."""
    if graph == "chain":
        return graph
    found = read_graph_file(graph, labels, "--task-graph")
    if "graph_tasks" not in found:
        return found.get("graph")
    position = {task: k for k, task in enumerate(found["graph_tasks"])}
    unknown = [task for task in position if task not in set(labels.tolist())]
    if unknown:
        raise TableError(f"--task-graph: {graph} names {unknown[0]!r}, which is no task of the table")
    missing = [label for label in labels.tolist() if label not in position]
    if missing:
        raise TableError(f"--task-graph: {graph} says nothing of task {missing[0]!r}")
    order = [position[label] for label in labels.tolist()]
    return found["graph"][np.ix_(order, order)]


def read_graph_file(graph: str, labels: np.ndarray, flag: str = "--graph") -> dict[str, Any]:
    """Parameters ``graph`` and ``graph_tasks`` of a graph machine.

    - `graph`: "none", "complete", or a CSV file: edges with columns from, to and (optionally) weight, or a square
      matrix whose header names the tasks.
    - `labels` (array of shape (T,)): Labels of the tasks, in whose type the names of the file are read.
    - `flag`: What to call it in messages.
    """
    if graph == "none":
        return {}
    if graph == "complete":
        return {"graph": complete_graph(len(labels))}
    if not Path(graph).is_file():
        raise UsageError(f"{flag}: 'complete', 'none' or a file; there is no file {graph}")
    by_word = {str(label): label for label in labels.tolist()}
    table = read_table(graph)
    names = list(table.columns)
    if {"from", "to"} <= set(names) <= {"from", "to", "weight"}:
        ends = [as_words(table.columns[side]) for side in ("from", "to")]
        weights = table.columns["weight"].values if "weight" in names else np.ones(table.n_rows)
        if np.asarray(weights).dtype.kind not in "iuf":
            raise TableError(f"{flag}: column 'weight' of {graph} must hold numbers")
        words = list(dict.fromkeys([*by_word, *(word for side in ends for word in side if word is not None)]))
        position = {word: k for k, word in enumerate(words)}
        matrix = np.zeros((len(words), len(words)))
        for row, (one, other, weight) in enumerate(zip(*ends, weights.tolist(), strict=True)):
            if one is None or other is None or weight != weight:
                raise TableError(f"{flag}: row {row + 1} of {graph} is incomplete")
            if one == other:
                raise TableError(f"{flag}: row {row + 1} of {graph} joins {one!r} to itself")
            matrix[position[one], position[other]] = matrix[position[other], position[one]] = weight
    else:
        if table.n_rows != len(names):
            raise TableError(
                f"{flag}: {graph} has {table.n_rows} rows and {len(names)} columns; a square matrix headed by task "
                "names, or edges with columns from, to, weight, are expected"
            )
        columns = [table.columns[name] for name in names]
        if any(column.kind != "number" or column.missing.any() for column in columns):
            raise TableError(f"{flag}: the cells of {graph} must be numbers")
        matrix, words = np.stack([column.values.astype(np.float64) for column in columns], axis=1), names
    whole = labels.dtype.kind in "iu" and all(word.removeprefix("-").isdecimal() for word in words)
    return {
        "graph": matrix,
        "graph_tasks": [int(word) if whole else by_word.get(word, word) for word in words],
    }
