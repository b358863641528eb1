"""What a worker keeps: ranges of columns, and for every fit a shard over each of them."""

from __future__ import annotations

import asyncio
import pickle
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

import numpy as np

from ..._kernels import compiled
from ..shard import LocalShard
from ..storage import DenseStorage
from ..storage.base import for_kernels
from ..threads import one_blas_thread
from .messages import CHANGING, Answer, Failed, Few, Known, Message, PenaltyName, Reach, Stale
from .sources import Source
from .streamed import StreamedStorage

Array = np.ndarray[Any, Any]

_NAME = "_tasksieve_home"  # of the worker's attribute
_MOST_THREADS = 16
# Products of features whose bounds stay open come unasked: up to so many, or this part of a shard's features.
_FEW_TOUCHED = 64
_TOUCH_FRACTION = 0.08


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
        self._estimate: Array | None = None
        self._first_gauges: Array | None = None
        self._last_gauges: Array | None = None
        self._errors: Array | None = None
        self._rejected: Array | None = None
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

    def remember(
        self, vector: Array, penalty: PenaltyName, errors: Array | None, floor: float | None = None
    ) -> Array | Few:
        """All gauges, or those that reach a floor."""
        gauges = self.shard.remember(vector, self._named(penalty), errors)
        self._estimate = self._last_gauges = gauges
        if self._first_gauges is None:
            self._first_gauges = gauges
        return gauges if floor is None else few(gauges, gauges, floor, floor)

    def error_gauges(self, errors: Array, penalty: PenaltyName) -> Array:
        self._errors = self.shard.error_gauges(errors, self._named(penalty))
        return self._errors

    def forget(self, m: int) -> None:
        self.shard.forget(m)

    def bound(self, vector: Any, penalty: PenaltyName, ball: dict[str, Any]) -> tuple[Array, Array]:
        estimate, upper = self.shard.bound(vector, self._named(penalty), **ball)
        return estimate.copy(), upper.copy()

    def judge(
        self,
        vector: Any,
        penalty: PenaltyName,
        note: bool,
        floor: float | None,
        itself: Array | None,
        skipped: Array | None = None,
    ) -> Any:
        """Estimates and bounds of all gauges, or those that reach a floor; the vector is the one judged last.

        Given the vector itself: with the products of those that stay open, where they are few, but for those skipped.
        """
        estimate, upper = self.shard.bound(vector, self._named(penalty), note=note)
        self._estimate = estimate.copy()
        if floor is None:
            return (self._estimate, upper.copy()), None
        found, touched = few(estimate, upper, floor), None
        if itself is not None:
            open_ = upper >= 1.0
            open_[skipped] = False
            open_[self.shard.fragile] = False
            if self._rejected is not None:
                open_ &= ~self._rejected
            left = np.flatnonzero(open_)
            if 0 < len(left) <= max(_FEW_TOUCHED, _TOUCH_FRACTION * self.shard.n_features):
                touched = left, *self.touch(itself, left)
        return found, touched

    def levels(self, floor: float) -> tuple[Array, Array]:
        """Estimates of the vector judged last, or gauges of that remembered last, which reach a floor."""
        assert self._estimate is not None
        places = np.flatnonzero(self._estimate >= floor)
        return places, self._estimate[places]

    def ball_bound(self, first: Any, centre: Any, coefs: Any, penalty: PenaltyName, radius: float) -> Array:
        return self.shard.ball_bound(first, centre, coefs, self._named(penalty), radius)

    def rejects(self, reaches: list[Reach], penalty: PenaltyName, known: Known, low: int) -> tuple[str, Array]:
        """Rows that bounds over all balls prove to be zero: a bit each, or the few that are left."""
        here, upper = self._named(penalty), None
        for reach in reaches:
            if reach.verb == "bound":
                vector, radius, stretch = reach.arguments
                bound = self.shard.bound(vector, here, radius=radius, stretch=stretch)[1].copy()
            else:
                first, centre, coefs, radius = reach.arguments
                bound = self.shard.ball_bound(first, centre, coefs, here, radius)
            if reach.sharper is not None:
                factor, moved = reach.sharper
                moved = moved * self.shard.longest() * here.euclid
                bound = np.minimum(bound, factor * self._known(known, low) + moved)
            upper = bound if upper is None else np.minimum(upper, bound)
        self._rejected = here.inactive(upper)
        left = np.flatnonzero(~self._rejected)
        if 32 * len(left) < len(self._rejected):
            return "left", left.astype(np.int32)
        return "bits", np.packbits(self._rejected)

    def _known(self, known: Known, low: int) -> Array:
        if known.of == "ones":
            gauges = np.ones(self.shard.n_features)
        elif known.of == "last":
            assert self._last_gauges is not None
            gauges = self._last_gauges.copy()
        elif known.of == "first":
            assert self._first_gauges is not None
            gauges = self._first_gauges / known.strength
        else:
            assert self._first_gauges is not None and self._errors is not None
            gauges = (self._first_gauges + self._errors) / known.strength
        own = (known.features >= low) & (known.features < low + len(gauges))
        gauges[known.features[own] - low] = known.values[own]
        return gauges

    def take(self, features: Array) -> tuple[Any, Array]:
        """Packed columns, and their norms."""
        return self.shard.take(features), np.array(self.shard.norms(features))

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


def few(estimate: Array, upper: Array, floor: float, least: float = 1.0) -> Few:
    """Entries that matter: bounds that are not below 1, estimates not below a floor, and the largest bound."""
    kept = (upper >= least) | (estimate >= floor)
    if len(upper):
        kept[np.argmax(upper)] = True
    places = np.flatnonzero(kept)
    rest = float(np.max(upper[~kept], initial=0.0))
    return Few(places.astype(np.int32), estimate[places], upper[places], rest)


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
    return {
        "tasksieve": version("tasksieve"),
        "numpy": np.__version__,
        "kernels": "compiled" if compiled else "reference",
    }
