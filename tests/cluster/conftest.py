"""A cluster of two processes for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dask.array", reason='the cluster needs Dask: pip install "tasksieve[cluster]"')
pytest.importorskip("distributed", reason='the cluster needs Dask: pip install "tasksieve[cluster]"')
pytest.importorskip("zarr", reason='the cluster needs Zarr: pip install "tasksieve[cluster]"')

HERE = Path(__file__).parent
RUNNING: list[tuple[Any, ExitStack]] = []


@pytest.fixture
def cluster() -> Any:
    """Started once for all tests of this folder."""
    if not RUNNING:
        import dask
        from distributed import LocalCluster

        end = ExitStack()
        settings = {"distributed.worker.memory.terminate": False, "tasksieve.patience": 30.0}
        end.enter_context(dask.config.set(settings))
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
        RUNNING.append((end.enter_context(cluster), end))
    return RUNNING[0][0]


@pytest.hookimpl(trylast=True)  # after the fixtures of the test
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """It ends with the last test of this folder: idle it takes a tenth of a core from the tests that follow."""
    if RUNNING and (nextitem is None or HERE not in nextitem.path.parents):
        RUNNING.pop()[1].close()


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
