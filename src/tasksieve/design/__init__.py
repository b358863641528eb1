"""The data as three verbs: ``norms``, ``correlate``, ``take``.

A `Storage` knows how the numbers lie in memory or on disk; a `Design` adds tasks, weights, intercepts and scaling.
Nothing above this layer sees a data matrix.
"""

from .design import Design
from .packed import ColumnBlock, PackedColumns
from .sparse_columns import SparseColumns
from .sparse_format import compressed
from .storage import DenseStorage, MappedRowStorage, SparseStorage, Storage, as_storage
from .threads import one_blas_thread, thread_count

__all__ = [
    "ColumnBlock",
    "DenseStorage",
    "Design",
    "MappedRowStorage",
    "PackedColumns",
    "SparseColumns",
    "SparseStorage",
    "Storage",
    "as_storage",
    "compressed",
    "one_blas_thread",
    "thread_count",
]
