"""Tasks on a graph: support vector machines whose tasks borrow from their neighbours, graphs, hashed strings."""

from .classifier import GraphSVC, GraphSVCCV
from .graphs import complete_graph, distance_graph, nearest_neighbor_graph, task_similarity, tree_graph
from .hashing import WeightedDegreeHasher, read_fasta
from .path import GraphPath
from .regressor import GraphSVR, GraphSVRCV

__all__ = [
    "GraphPath",
    "GraphSVC",
    "GraphSVCCV",
    "GraphSVR",
    "GraphSVRCV",
    "WeightedDegreeHasher",
    "complete_graph",
    "distance_graph",
    "nearest_neighbor_graph",
    "read_fasta",
    "task_similarity",
    "tree_graph",
]


def __dir__() -> list[str]:
    return list(__all__)
