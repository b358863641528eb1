"""How the numbers lie in memory or on disk: dense, sparse, at 2 bits a genotype, or mapped from a file row by row."""

from .base import KERNEL_TYPES, Asked, ColumnStorage, Reading
from .beside import BesideStorage
from .choose import as_storage
from .compose import Beside, Interactions, OneHot, Scaled
from .computed import ComputedStorage, ScaledStorage
from .dense import DenseStorage
from .mapped import MappedRowStorage
from .own import OwnStorage, RowVectors, Storage
from .plink import PlinkStorage
from .repeated import RepeatedStorage
from .sparse import SparseStorage
from .together import SharedReading, SharedStorage

__all__ = [
    "KERNEL_TYPES",
    "Asked",
    "Beside",
    "BesideStorage",
    "ColumnStorage",
    "ComputedStorage",
    "DenseStorage",
    "Interactions",
    "MappedRowStorage",
    "OneHot",
    "OwnStorage",
    "PlinkStorage",
    "Reading",
    "RepeatedStorage",
    "RowVectors",
    "Scaled",
    "ScaledStorage",
    "SharedReading",
    "SharedStorage",
    "SparseStorage",
    "Storage",
    "as_storage",
]
