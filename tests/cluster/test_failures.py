"""Workers that are killed, come back empty, or never: nothing changes but time, and stale workers do not answer."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster.examples import paths, same_bits, stacked

import tasksieve as ts
from tasksieve.design import DataLost
from tasksieve.design.cluster import ClusterStorage, ZarrSource, fleet, worker
from tasksieve.design.cluster.messages import Message, Question, Stale

da = pytest.importorskip("dask.array")
zarr = pytest.importorskip("zarr")


def store(folder: Path, X: np.ndarray[Any, Any]) -> Any:
    made = zarr.create_array(folder / "x.zarr", shape=X.shape, chunks=(len(X), 128), dtype=X.dtype)
    made[:] = X
    return ts.open_zarr(folder / "x.zarr")


def holder(crew: Any, position: int) -> str:
    """A worker that holds columns."""
    holding = sorted({address for address in crew._where if address in crew.client.nthreads()})
    return str(holding[position % len(holding)])


def kill(crew: Any, position: int) -> None:
    address = holder(crew, position)
    os.kill(crew.client.run(os.getpid, workers=[address])[address], signal.SIGKILL)


async def die_soon(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)
    os._exit(1)


def doom(crew: Any, position: int, seconds: float) -> None:
    """A worker that dies while it answers, or a little later."""
    crew.client.run(die_soon, seconds, workers=[holder(crew, position)], wait=False)


def all_there(client: Any, n_workers: int) -> None:
    try:
        client.wait_for_workers(n_workers, timeout=20)
    except TimeoutError:  # one that was killed was not started again
        client.cluster.scale(len(client.cluster.workers) + 1)
        client.wait_for_workers(n_workers, timeout=60)


def interfere(monkeypatch: pytest.MonkeyPatch, moments: dict[int, Any], n_workers: int = 2) -> list[int]:
    """At these messages something else happens first, when there are all workers again."""
    said, send, happened = [0], fleet.Fleet._send, list[int]()

    def disturbed(self: Any, parts: Any) -> Any:
        said[0] += 1
        due = [moment for moment in moments if moment <= said[0]]
        if due:
            all_there(self.client, n_workers)
            with self._lock:  # columns that were lost are held again first
                self._position([k for k in range(self.n_shards) if self._where[k] is None])
            happened.append(due[0])
            moments.pop(due[0])(self)
        return send(self, parts)

    monkeypatch.setattr(fleet.Fleet, "_send", disturbed)
    return happened


def killed_at(
    client: Any, monkeypatch: pytest.MonkeyPatch, folder: Path, moments: list[int], seed: int
) -> tuple[int, int]:
    X, y, task = stacked(seed)
    model = ts.MultiTaskLasso()
    grid = model.alpha_max(X, y, task=task) * np.geomspace(1, 0.1, 10)
    rng = np.random.default_rng(seed)
    events: dict[int, Any] = {}
    for moment in moments:
        position, delay = int(rng.integers(2)), float(rng.choice([0.0, 0.002, 0.01, 0.03]))
        events[moment] = (
            (lambda crew, position=position: kill(crew, position))
            if rng.random() < 0.5
            else (lambda crew, position=position, delay=delay: doom(crew, position, delay))
        )
    happened = interfere(monkeypatch, events)
    far, near, crew = paths(model, store(folder, X), X, y, task, grid)
    same_bits(far, near)
    assert not far.interrupted
    return len(happened), crew.traffic.loaded - crew.n_shards


@pytest.mark.slow
def test_workers_killed_on_the_way(client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tasksieve.design.cluster.replay._LONG", 2)  # rejected rows are written down at every value
    killed, again = killed_at(client, monkeypatch, tmp_path, [2, 8, 14], 11)
    assert killed == 3
    assert again >= 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_workers_killed_at_many_moments(
    client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int
) -> None:
    moments = np.sort(np.random.default_rng(100 + seed).choice(np.arange(1, 12), size=2, replace=False))
    killed, again = killed_at(client, monkeypatch, tmp_path, moments.tolist(), seed)
    assert killed == 2
    assert again >= 2


@pytest.mark.slow
def test_a_killed_worker_of_a_dask_array(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, task = stacked(12)
    model = ts.MultiTaskLasso()
    grid = model.alpha_max(X, y, task=task) * np.geomspace(1, 0.1, 6)
    happened = interfere(monkeypatch, {8: lambda crew: kill(crew, 0)})
    far, near, _ = paths(model, da.from_array(X, chunks=(-1, 250)), X, y, task, grid)
    assert happened == [8]
    same_bits(far, near)


def test_a_stale_shard_does_not_answer(client: Any, tmp_path: Path) -> None:
    X = stacked(13)[0]
    storage = ClusterStorage(ZarrSource(store(tmp_path, X)), None)
    data, vector = storage.fleet.data, np.ones(len(X))
    shard = storage._raw
    shard.correlate(vector)
    log = shard._log
    question = [Question("correlate", (vector,))]

    def said(at: tuple[int, int], fit: str = log.fit, of: str = data) -> Any:
        packed = fleet_pack(([Message(of, fit, {0: at}, question)], []))
        found = client.run(worker.serve, packed)
        return [answer for part in found.values() for heard in fleet_unpack(part) for answer in heard.values()]

    epoch, version = log.at[0]
    [answer] = said((epoch, version))
    np.testing.assert_allclose(answer.found[0][:, 0], X[:, : storage.fleet.starts[1]].T @ vector, atol=1e-10)
    for at in ((epoch + 1, version), (epoch - 1, version), (epoch, version + 1), (epoch, version - 1)):
        [refused] = said(at)
        assert isinstance(refused, Stale)
    [refused] = said((epoch, version), fit="another")
    assert isinstance(refused, Stale)
    assert said((epoch, version), of="another") == []


def test_an_answer_that_was_not_heard(client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The shards have gone on, the client has not: they are told everything again."""
    X, y, task = stacked(14)
    model = ts.MultiTaskLasso()
    grid = model.alpha_max(X, y, task=task) * np.geomspace(1, 0.1, 6)
    run, said = fleet.Fleet._run, [0]

    def deaf(self: Any, addresses: Any, function: Any, *arguments: Any) -> Any:
        found = run(self, addresses, function, *arguments)
        said[0] += function is worker.serve
        return dict.fromkeys(found) if said[0] in (3, 9, 14) else found

    monkeypatch.setattr(fleet.Fleet, "_run", deaf)
    far, near, _ = paths(model, store(tmp_path, X), X, y, task, grid)
    same_bits(far, near)


@pytest.mark.slow
def test_a_worker_that_never_comes_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import dask
    from distributed import Client, LocalCluster

    X, y, task = stacked(15)
    model = ts.MultiTaskLasso()
    grid = model.alpha_max(X, y, task=task) * np.geomspace(1, 0.1, 8)
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as alone,
        Client(alone) as client,
        dask.config.set({"tasksieve.patience": 0.2}),
    ):

        def gone(_: Any) -> None:
            alone.scale(0)
            while client.nthreads():
                pass

        interfere(monkeypatch, {8: gone}, n_workers=1)
        with pytest.warns(UserWarning, match="values are solved.*No worker"):
            path = model.path(store(tmp_path, X), y, task=task, alphas=grid)
    assert path.interrupted
    assert 0 < len(path.alphas) < 8
    whole = model.path(X, y, task=task, alphas=grid)
    np.testing.assert_array_equal(path.n_selected, whole.n_selected[: len(path.alphas)])


class Deadly(ZarrSource):
    """A range of its columns takes its worker down."""

    def read(self, low: int, high: int) -> Any:
        if low == 0:
            os._exit(1)
        return super().read(low, high)


@pytest.mark.slow
def test_a_block_that_kills_again_and_again(client: Any, tmp_path: Path) -> None:
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        with pytest.raises(DataLost, match=r"Features 0 to .* 4 times in a row"):
            _ = ClusterStorage(Deadly(store(tmp_path, stacked(16)[0])), None).fleet
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.mark.slow
def test_workers_with_other_versions_are_refused(tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    X, y, task = stacked(17)
    own = worker.own_versions()["kernels"]
    other = {"compiled": "reference"}.get(own)
    if other is None:
        pytest.skip("the kernels are the reference here")
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50,
            env={"TASKSIEVE_KERNELS": "reference"},
        ) as old,
        Client(old),
        pytest.raises(RuntimeError, match=f"kernels is {own} here and {other} on worker"),
    ):  # fmt: skip
        ts.MultiTaskLasso(alpha=0.1).fit(store(tmp_path, X), y, task=task)


def test_columns_that_do_not_fit_are_read_again(client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    X, y, task = stacked(18)
    model = ts.MultiTaskLasso()
    grid = model.alpha_max(X, y, task=task) * np.geomspace(1, 0.1, 6)
    monkeypatch.setattr(fleet, "memory_limits", lambda client: dict.fromkeys(client.nthreads(), 500_000))
    told: list[str] = []
    given = store(tmp_path, X)
    with ts.watch(lambda progress: told.append(progress.detail)):
        model.path(given, y, task=task, alphas=grid)
    assert "read again in each pass" in told[0]
    far, near, _ = paths(model, given, X, y, task, grid)
    same_bits(far, near)


def fleet_pack(message: Message) -> bytes:
    from distributed.protocol.pickle import dumps

    return bytes(dumps(message))


def fleet_unpack(packed: bytes) -> Any:
    from distributed.protocol.pickle import loads

    return loads(packed)


def test_a_package_that_is_missing() -> None:
    from tasksieve.design.cluster.needs import needed

    with pytest.raises(ModuleNotFoundError, match=r"open_zarr needs no_such_package: pip install"):
        needed("no_such_package", "open_zarr")
