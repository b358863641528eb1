"""How the numbers lie in memory or on disk: dense, sparse, or mapped from a file row by row."""

from .base import KERNEL_TYPES, ColumnStorage
from .choose import as_storage
from .dense import DenseStorage
from .mapped import MappedRowStorage
from .own import OwnStorage, RowVectors, Storage
from .scaled import ScaledStorage
from .sparse import SparseStorage

__all__ = [
    "KERNEL_TYPES",
    "ColumnStorage",
    "DenseStorage",
    "MappedRowStorage",
    "OwnStorage",
    "RowVectors",
    "ScaledStorage",
    "SparseStorage",
    "Storage",
    "as_storage",
]
