"""How the numbers lie in memory or on disk: dense, sparse, or mapped from a file row by row."""

from .base import KERNEL_TYPES, Asked, ColumnStorage, Reading
from .dense import DenseStorage
from .mapped import MappedRowStorage
from .own import OwnStorage, RowVectors, Storage
from .repeated import RepeatedStorage
from .scaled import ScaledStorage
from .sparse import SparseStorage
from .together import SharedReading, SharedStorage

__all__ = [
    "KERNEL_TYPES",
    "Asked",
    "ColumnStorage",
    "DenseStorage",
    "MappedRowStorage",
    "OwnStorage",
    "Reading",
    "RepeatedStorage",
    "RowVectors",
    "ScaledStorage",
    "SharedReading",
    "SharedStorage",
    "SparseStorage",
    "Storage",
]
