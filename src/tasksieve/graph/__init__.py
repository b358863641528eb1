"""Graphs of tasks: how to make one, for ``graph`` of `GraphSVC` and ``task_graph`` of the linear models."""

from typing import Any

from .graphs import complete_graph, distance_graph, nearest_neighbor_graph, task_similarity, tree_graph

__all__ = [
    "complete_graph",
    "distance_graph",
    "nearest_neighbor_graph",
    "task_similarity",
    "tree_graph",
]
__dir__ = __all__.copy  # TAB shows these alone


def __getattr__(name: str) -> Any:
    """Until version 0.2 the machines on a graph were here."""
    from ..renamed import moved

    return moved(name, __name__, "tasksieve.svm")
