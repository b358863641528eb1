"""Shards in the workers of a Dask cluster.

The columns of X, cut into a few ranges of features, live in the workers with their norms, anchors and bounds: each
range is a `LocalShard` there. The client keeps what is of the size of the samples, sends vectors over samples, and gets
bounds and a few columns back.

* `sources`: where the columns come from, as something that can be sent to a worker: a dask array, a Zarr store;
* `worker`: what a worker keeps, and how it answers;
* `fleet`: which worker holds which range; requests to all of them at once, recovery of what was lost;
* `shard`: the client's side of all ranges, with the interface of a `LocalShard`;
* `ledger`: what is known about the features, in summaries: vectors over features do not cross;
* `replay`: what is replayed to a range that begins again;
* `storage`: the columns as a design is given them.

Nothing here is imported unless X lives in a cluster.
"""

from .shard import ClusterShard
from .sources import ColumnSource, DaskSource, ZarrSource
from .storage import ClusterStorage

__all__ = ["ClusterShard", "ClusterStorage", "ColumnSource", "DaskSource", "ZarrSource"]
