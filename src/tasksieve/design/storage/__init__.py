"""How the numbers lie in memory or on disk: dense, sparse, at 2 bits a genotype, or mapped from a file row by row."""

from .base import ColumnStorage, ProductRequest
from .beside import BesideStorage
from .choose import as_storage
from .compose import Beside, Interactions, OneHot, Scaled
from .computed import ScaledStorage
from .dense import DenseStorage
from .mapped import MappedRowStorage
from .own import OwnStorage, RowVectors, Storage
from .plink import PlinkStorage
from .present import ColumnGroup, PresentStorage
from .repeated import RepeatedStorage
from .some_rows import SomeRows
from .sparse import SparseStorage
from .steps import StepStorage
from .together import SharedReading, shared_reading

__all__ = [
    "Beside",
    "BesideStorage",
    "ColumnGroup",
    "ColumnStorage",
    "DenseStorage",
    "Interactions",
    "MappedRowStorage",
    "OneHot",
    "OwnStorage",
    "PlinkStorage",
    "PresentStorage",
    "ProductRequest",
    "RepeatedStorage",
    "RowVectors",
    "Scaled",
    "ScaledStorage",
    "SharedReading",
    "SomeRows",
    "SparseStorage",
    "StepStorage",
    "Storage",
    "as_storage",
    "shared_reading",
]
