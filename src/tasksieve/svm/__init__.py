"""Support vector machines whose tasks borrow from their neighbours on a graph; hashed strings."""

from .classifier import GraphSVC, GraphSVCCV
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
    "read_fasta",
]
__dir__ = __all__.copy  # TAB shows these alone
