"""A cluster of two processes for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("dask.array", reason='the cluster needs Dask: pip install "tasksieve[cluster]"')
pytest.importorskip("distributed", reason='the cluster needs Dask: pip install "tasksieve[cluster]"')
pytest.importorskip("zarr", reason='the cluster needs Zarr: pip install "tasksieve[cluster]"')


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    import dask
    from distributed import LocalCluster

    settings = {"distributed.worker.memory.terminate": False, "tasksieve.patience": 30.0}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    from distributed import Client

    with Client(cluster) as client:
        try:
            client.wait_for_workers(2, timeout=20)
        except TimeoutError:  # one that was killed was not started again
            cluster.scale(0)
            cluster.scale(2)
            client.wait_for_workers(2, timeout=60)
        yield client
