"""What the engine sees of the data: a `Design`, made of features in a shard and the samples they share.

A storage knows how the numbers lie in memory or on disk; a shard adds weights, intercepts and scaling, and keeps all
that is features x tasks. Nothing above this layer sees a data matrix. `Storage` is the base of a storage of your own.

``storage/`` holds raw columns, ``shard.py`` and ``anchored.py`` some features with what is known of them,
``ledger.py`` the vectors over features (levels, gauges, rejections), ``samples.py`` tasks, weights and intercepts,
``row_metric.py`` norms under other weights of the rows, ``packed.py`` the columns in use, ``moments.py`` and
``sums.py`` sums over rows that come in blocks, ``lockstep.py`` several paths that share readings. ``device/`` keeps
columns on a GPU or streams them through it; ``cluster/`` has shards in the workers of a Dask cluster (``fleet.py``:
which worker holds what, and recovery of what is lost).
"""

from .design import Design
from .ledger import Gauges, Judgement, Ledger, Reach, Rejection, highest
from .lockstep import Lockstep
from .lost import ClusterError, DataLost
from .packed import ColumnBlock, PackedColumns
from .part import Part
from .row_metric import Cover, Region
from .samples import Samples
from .shard import NOISE, LocalShard
from .sparse_columns import SparseColumns
from .sparse_format import compressed
from .storage import (
    BesideStorage,
    ColumnGroup,
    DenseStorage,
    MappedRowStorage,
    PlinkStorage,
    PresentStorage,
    RepeatedStorage,
    RowVectors,
    ScaledStorage,
    SharedReading,
    SomeRows,
    SparseStorage,
    StepStorage,
    Storage,
    as_storage,
    shared_reading,
)
from .threads import one_blas_thread, thread_count

__all__ = [
    "NOISE",
    "BesideStorage",
    "ClusterError",
    "ColumnBlock",
    "ColumnGroup",
    "Cover",
    "DataLost",
    "DenseStorage",
    "Design",
    "Gauges",
    "Judgement",
    "Ledger",
    "LocalShard",
    "Lockstep",
    "MappedRowStorage",
    "PackedColumns",
    "Part",
    "PlinkStorage",
    "PresentStorage",
    "Reach",
    "Region",
    "Rejection",
    "RepeatedStorage",
    "RowVectors",
    "Samples",
    "ScaledStorage",
    "SharedReading",
    "SomeRows",
    "SparseColumns",
    "SparseStorage",
    "StepStorage",
    "Storage",
    "as_storage",
    "compressed",
    "highest",
    "one_blas_thread",
    "shared_reading",
    "thread_count",
]
