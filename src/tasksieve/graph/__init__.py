"""Tasks on a graph: support vector machines whose tasks borrow from their neighbours, graphs, hashed strings."""

from .classifier import GraphSVC
from .graphs import complete_graph, distance_graph, nearest_neighbor_graph, task_similarity, tree_graph
from .path import GraphPath
from .hashing import WeightedDegreeHasher, read_fasta
from .regressor import GraphSVR

__all__ = [
    "GraphPath",
    "GraphSVC",
    "GraphSVR",
    "WeightedDegreeHasher",
    "complete_graph",
    "distance_graph",
    "nearest_neighbor_graph",
    "read_fasta",
    "task_similarity",
    "tree_graph",
]
