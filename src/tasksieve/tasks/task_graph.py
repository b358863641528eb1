"""Graphs of tasks: a symmetric matrix of weights >= 0 with a row per task, in the forms that users have."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ..complex_numbers import refuse_complex
from ..design import compressed
from ..messages import Message, either, parameter_name, value_error
from .labels import some_of
from .refusals import refuse_masked_or_complex


def read_graph(graph: Any, argument: str = "graph") -> tuple[np.ndarray, list[Any] | None]:
    """Weights as a dense float64 matrix with zero diagonal, and the names of its rows where it has them (networkx)."""
    names = None
    if hasattr(graph, "nodes") and hasattr(graph, "adjacency"):
        if graph.is_directed():
            directed = "is directed: tasks borrow from each other"
            raise _refused(argument, directed, f", so use {argument}.to_undirected()")
        names = list(graph.nodes)
        position = {name: k for k, name in enumerate(names)}
        weights = np.zeros((len(names), len(names)))
        for one, other, weight in graph.edges(data="weight", default=1.0):
            weights[position[one], position[other]] += float(weight)
            if one != other:
                weights[position[other], position[one]] += float(weight)
    elif scipy.sparse.issparse(graph):
        refuse_complex(graph, argument)
        weights = compressed(graph, argument).toarray().astype(np.float64)
    else:
        refuse_masked_or_complex(graph, argument, ("row", "column"))
        try:
            weights = np.array(graph, dtype=np.float64)
        except (TypeError, ValueError) as error:
            words = f"must be a T x T array or sparse matrix of weights, or a networkx graph: {error}"
            raise _refused(argument, words) from error
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1] or not len(weights):
        raise _refused(argument, f"must be square, a row and a column per task; it has shape {weights.shape}")
    np.fill_diagonal(weights, 0.0)
    if not np.all(np.isfinite(weights)):
        raise _refused(argument, "has weights that are NaN or infinite; 0 means no edge")
    if (weights < 0).any():
        row, column = np.argwhere(weights < 0)[0]
        place_in_words = f"row {row + 1}, column {column + 1} (counted from 1)"
        raise _refused(
            argument, f"has the negative weight {weights[row, column]:g} in {place_in_words}: weights are >= 0"
        )
    skew = np.abs(weights - weights.T)
    if skew.max() > 1e-10 * max(weights.max(), 1e-300):
        row, column = np.unravel_index(int(np.argmax(skew)), skew.shape)
        raise _refused(
            argument,
            f"is not symmetric: {weights[row, column]:g} in row {row + 1}, column {column + 1}, but "
            f"{weights[column, row]:g} in row {column + 1}, column {row + 1} (counted from 1)",
            f". To symmetrise it pass ({argument} + {argument}.T) / 2",
        )
    return (weights + weights.T) / 2, names


def _refused(argument: str, words: str, python: str = "") -> ValueError:
    """What is wrong with a graph; the last words are for Python."""
    return ValueError(
        Message("{graph} {words}{python}.", graph=parameter_name(argument), words=words, python=either(python))
    )


def read_task_graph(graph: Any, tasks: np.ndarray, argument: str = "task_graph") -> np.ndarray:
    """Weights of the edges between some tasks, in their order.

    - `graph` (T x T array or sparse matrix, networkx graph or "chain"): The rows of a matrix belong to the tasks in
      their order; nodes of a networkx graph are their labels. "chain": each task beside the next.
    """
    found = tasks.tolist()
    if isinstance(graph, str):
        if graph != "chain":
            raise _refused(argument, f"must be 'chain', a T x T matrix of weights or a networkx graph; got {graph!r}")
        return np.eye(len(found), k=1) + np.eye(len(found), k=-1)
    weights, names = read_graph(graph, argument)
    if names is None:
        names = found
        if len(weights) != len(found):
            raise _refused(
                argument,
                f"has {len(weights)} rows, but the data have {len(found)} tasks ({some_of(found)}): it needs a row and "
                f"a column for each",
                ", in the order of tasks_. Tasks without rows cannot be fitted",
            )
    position = {name: k for k, name in enumerate(names)}
    unknown = [name for name in found if name not in position]
    if unknown:
        raise value_error(
            "task {task!r} is not on {graph}, whose tasks are {some}.",
            task=unknown[0],
            graph=parameter_name(argument),
            some=some_of(names),
        )
    known = set(found)
    empty = [name for name in names if name not in known]
    if empty:
        raise _refused(
            argument,
            f"has the node {empty[0]!r}, which has no rows in the data (their tasks: {some_of(found)}). Leave such "
            f"nodes out",
            f", as in {argument}.subgraph(tasks)",
        )
    order = [position[name] for name in found]
    return np.ascontiguousarray(weights[np.ix_(order, order)])
