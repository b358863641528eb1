"""How the numbers lie in memory or on disk: dense, sparse, or mapped from a file row by row."""

from .base import KERNEL_TYPES, Storage
from .choose import as_storage
from .dense import DenseStorage
from .mapped import MappedRowStorage
from .sparse import SparseStorage

__all__ = ["KERNEL_TYPES", "DenseStorage", "MappedRowStorage", "SparseStorage", "Storage", "as_storage"]
