"""What a worker keeps: ranges of columns, and for every fit a shard over each of them."""

from __future__ import annotations

import asyncio
import pickle
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..shard import LocalShard
from ..storage import DenseStorage
from ..storage.base import for_kernels
from ..threads import one_blas_thread
from .messages import CHANGING, Answer, Failed, Message, PenaltyName, Stale
from .sources import Source
from .streamed import StreamedStorage

Array = np.ndarray[Any, Any]

_NAME = "_tasksieve_home"  # of the worker's attribute
_MOST_THREADS = 16


class Home:
    """All that one worker keeps."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, int], tuple[int, Any]] = {}  # by data and shard: epoch, storage
        self.residents: dict[tuple[str, int], Resident] = {}  # by fit and shard
        self.pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="tasksieve")

    def hold(self, data: str, shard: int, epoch: int, storage: Any) -> None:
        known = self.held.get((data, shard))
        if known is None or known[0] < epoch:
            self.held[data, shard] = epoch, storage

    def drop(self, data: str) -> None:
        """Nobody needs these columns any more."""
        for key in [key for key in self.held if key[0] == data]:
            del self.held[key]
        for place in [place for place, resident in self.residents.items() if resident.data == data]:
            del self.residents[place]

    def answer(self, message: Message, shard: int) -> Answer | Stale | Failed:
        """What a shard says to a message."""
        epoch, version = message.at[shard]
        held_epoch, storage = self.held.get((message.data, shard), (None, None))
        if held_epoch != epoch:
            return Stale(f"epoch {held_epoch}, asked as {epoch}")
        place = message.fit, shard
        if message.start is not None:
            self.residents[place] = Resident(message.data, epoch, storage, message.start, shard)
        resident = self.residents.get(place)
        if resident is None or (resident.epoch, resident.version) != (epoch, version):
            known = None if resident is None else (resident.epoch, resident.version)
            return Stale(f"epoch and version {known}, asked as {(epoch, version)}")
        before, found = resident.shard.passes, []
        try:
            with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
                for question in message.questions:
                    if question.concerns(shard):
                        found.append(getattr(resident, question.verb)(*question.arguments(shard)))
                        resident.version += question.verb in CHANGING
        except Exception as error:
            if self.residents.get(place) is resident:
                del self.residents[place]  # whatever it has done by half
            return Failed(error)
        own = resident.shard
        return Answer(found, own.passes - before, own.rounding, own.measured and own.has_fragile)


class Resident:
    """A shard of one fit: the verbs of a `LocalShard`, for penalties that are known by name.

    Attributes
    ----------
    version : int
        How often it has been changed.
    """

    def __init__(self, data: str, epoch: int, storage: Any, start: Any, shard: int) -> None:
        self.data, self.epoch, self.version = data, epoch, 0
        for wrap in start.wrappers:
            storage = wrap(storage)
        self.shard = LocalShard(
            storage,
            start.samples,
            standardize=start.standardize,
            unpenalised=start.unpenalised[shard],
            n_threads=start.n_threads[shard],
        )
        self._penalties: dict[int, Any] = {}
        self._last: tuple[PenaltyName, Any] | None = None

    def keep_penalty(self, token: int, packed: bytes) -> None:
        """A penalty of these features, by name."""
        self._penalties[token] = pickle.loads(zlib.decompress(packed))
        self._last = None

    def _named(self, name: PenaltyName) -> Any:
        if self._last is None or self._last[0] != name:
            base = self._penalties[name.token]
            self._last = name, base if name.strength is None else base.at(name.strength)
        return self._last[1]

    def measure(self) -> tuple[Array, Array | None]:
        """The largest norms, and what columns are divided by."""
        longest = self.shard.longest()
        everything = np.arange(self.shard.n_features)
        return longest, np.array(self.shard.scale(everything)) if self.shard.standardize else None

    def norms(self, features: Array | None = None) -> Array:
        return np.array(self.shard.norms(features))

    def correlate(self, vector: Array, features: Array | None = None) -> Array:
        return self.shard.correlate(vector, features)

    def touch(self, vector: Array, features: Array) -> tuple[Array, Array]:
        """Products and norms of some features."""
        return self.shard.correlate(vector, features), np.array(self.shard.norms(features))

    def remember(self, vector: Array, penalty: PenaltyName, errors: Array | None) -> Array:
        return self.shard.remember(vector, self._named(penalty), errors)

    def error_gauges(self, errors: Array, penalty: PenaltyName) -> Array:
        return self.shard.error_gauges(errors, self._named(penalty))

    def forget(self, m: int) -> None:
        self.shard.forget(m)

    def bound(self, vector: Any, penalty: PenaltyName, ball: dict[str, Any]) -> tuple[Array, Array]:
        estimate, upper = self.shard.bound(vector, self._named(penalty), **ball)
        return estimate.copy(), upper.copy()

    def bound_noted(self, vector: Any, penalty: PenaltyName, ball: dict[str, Any]) -> tuple[Array, Array]:
        """The same, after which the vector is the one that was judged last."""
        return self.bound(vector, penalty, {**ball, "note": True})

    def ball_bound(self, first: Any, centre: Any, coefs: Any, penalty: PenaltyName, radius: float) -> Array:
        return self.shard.ball_bound(first, centre, coefs, self._named(penalty), radius)

    def take(self, features: Array) -> Any:
        return self.shard.take(features)

    def basis_loadings(self, features: Array) -> Array:
        return self.shard.basis_loadings(features)

    def take_raw(self, features: Array) -> Array:
        """Columns as the storage has them."""
        return self.shard.storage.take(features)

    def read_raw(self, asked: Sequence[Any]) -> tuple[list[Array], float]:
        """Products as of `ColumnStorage.read`."""
        products, spent = self.shard.storage.read(asked, self.shard.n_threads)
        self.shard.passes += spent
        return products, spent


def home_of(worker: Any) -> Home:
    """What a worker keeps."""
    found = getattr(worker, _NAME, None)
    if found is None:
        found = Home()
        setattr(worker, _NAME, found)
    return found


def in_task_order(rows: Array, order: Array | None) -> Array:
    """Columns as kernels read them, rows in task order."""
    if order is not None:
        rows = rows[order]
    return np.asfortranarray(rows, dtype=rows.dtype if for_kernels(rows.dtype) else np.float64)


# -- what the client runs on a worker ---------------------------------------------------------------------------------


async def serve(packed: bytes, dask_worker: Any = None) -> bytes:
    """Answers of all shards that a message concerns and that live here."""
    home, loop = home_of(dask_worker), asyncio.get_running_loop()
    message: Message = await loop.run_in_executor(home.pool, pickle.loads, packed)
    for fit in message.ended:
        for place in [place for place in home.residents if place[0] == fit]:
            del home.residents[place]
    here = [shard for shard in message.at if (message.data, shard) in home.held]
    answers = await asyncio.gather(
        *(loop.run_in_executor(home.pool, home.answer, message, shard) for shard in here)
    )
    found = dict(zip(here, answers, strict=True))
    return await loop.run_in_executor(home.pool, _pack, found)


def _pack(found: dict[int, Any]) -> bytes:
    from distributed.protocol.pickle import dumps

    return dumps(found, protocol=5)


async def load(
    data: str, jobs: dict[str, tuple[bool, list[tuple[int, int, int, int]]]], packed: bytes, dask_worker: Any = None
) -> bool:
    """Read ranges of columns and hold them: by worker (shard, epoch, low, high), from a source, in an order of rows."""
    home, loop = home_of(dask_worker), asyncio.get_running_loop()
    streamed, places = jobs[dask_worker.address]

    def read() -> None:
        source: Source
        source, order = pickle.loads(packed)
        for shard, epoch, low, high in places:
            if streamed:
                home.hold(data, shard, epoch, StreamedStorage(source, low, high, order))
            else:
                home.hold(data, shard, epoch, DenseStorage(in_task_order(source.read(low, high), order)))

    await loop.run_in_executor(home.pool, read)
    return True


def hold_fetched(parts: list[Array], order: Array | None, data: str, shard: int, epoch: int) -> int:
    """The same for columns that Dask has brought here: a task."""
    from distributed import get_worker

    rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    home_of(get_worker()).hold(data, shard, epoch, DenseStorage(in_task_order(np.asarray(rows), order)))
    return epoch


def drop(data: str, dask_worker: Any = None) -> None:
    """Nobody needs these data any more."""
    home_of(dask_worker).drop(data)


def own_versions() -> dict[str, str]:
    """Of what may change bits, or the meaning of messages."""
    from ...versions import versions

    return {name: version for name, version in versions().items() if name in ("tasksieve", "numpy", "kernels")}
