"""What a worker keeps: ranges of columns, and for every fit a shard over each of them."""

from __future__ import annotations

import asyncio
import pickle
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from ..._kernels import compiled
from ..ledger import Judgement, Ledger, Reach, Rejection, highest, least_ratio
from ..lockstep import Lockstep
from ..row_metric import Region
from ..shard import LocalShard
from ..storage.base import ProductRequest, Reading
from ..storage.together import SharedReading
from ..threads import one_blas_thread
from .messages import CHANGING, Chosen, Failed, Judged, Known, Message, PenaltyName, Rejected, Reply, Stale
from .sources import ColumnSource
from .streamed import StreamedStorage, held_columns

Array = np.ndarray[Any, Any]

_NAME = "_tasksieve_store"  # of the worker's attribute
_MOST_THREADS = 16
# Features whose bounds stay open are measured at once: up to so many, or this part of a shard's features.
_FEW_TOUCHED = 64
_TOUCH_FRACTION = 0.08


class WorkerStore:
    """All that one worker keeps."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, int], tuple[int, HeldColumns]] = {}  # by data and shard, with the epoch
        self.residents: dict[tuple[str, int], Resident] = {}  # by fit and shard
        self.pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="tasksieve")

    def hold(self, data: str, shard: int, epoch: int, storage: Any) -> None:
        known = self.held.get((data, shard))
        if known is None or known[0] < epoch:
            self.held[data, shard] = epoch, HeldColumns(storage)

    def drop(self, data: str) -> None:
        """Release the columns of some data, and the fits on them."""
        for key in [key for key in self.held if key[0] == data]:
            del self.held[key]
        for position in [position for position, resident in self.residents.items() if resident.data == data]:
            del self.residents[position]

    def answers(self, messages: Sequence[Message], shard: int) -> list[Reply | Stale | Failed | None]:
        """A shard's answers to messages of several fits, None to those that do not concern it. Where all of them need
        all columns, one reading serves all."""
        own = [number for number, message in enumerate(messages) if shard in message.at]
        out: list[Reply | Stale | Failed | None] = [None] * len(messages)
        if len(own) == 1:
            out[own[0]] = self.answer(messages[own[0]], shard)
            return out
        _, columns = self.held[messages[0].data, shard]
        steps = Lockstep(1, columns.serve)
        meeting = _MEETING.set(steps)
        try:
            found = steps.run([partial(self.answer, messages[number], shard) for number in own])
            for number, said in zip(own, found, strict=True):
                out[number] = said
        finally:
            _MEETING.reset(meeting)
        return out

    def answer(self, message: Message, shard: int) -> Reply | Stale | Failed:
        """A shard's answer to a message."""
        epoch, version = message.at[shard]
        held_epoch, columns = self.held.get((message.data, shard), (None, None))
        if held_epoch != epoch or columns is None:
            return Stale(f"epoch {held_epoch}, asked as {epoch}")
        position = message.fit, shard
        if message.start is not None:
            self.residents[position] = Resident(message.data, epoch, columns, message.start, shard)
        resident = self.residents.get(position)
        if resident is None or (resident.epoch, resident.version) != (epoch, version):
            known = None if resident is None else (resident.epoch, resident.version)
            return Stale(f"epoch and version {known}, asked as {(epoch, version)}")
        before, found = resident.shard.passes, []
        try:
            with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
                for number, question in enumerate(message.questions):
                    if question.concerns(shard):
                        said = resident.answer(question.verb, question.arguments(shard))
                        if number >= message.replayed:
                            found.append(said)
        except Exception as error:
            if self.residents.get(position) is resident:
                del self.residents[position]  # whatever it has done by half
            return Failed(error)
        own, sent = resident.shard, resident.sent
        resident.sent = []
        return Reply(found, own.passes - before, own.rounding, own.measured and own.has_fragile, sent)


#: what several fits in step read all columns with, in the threads of theirs
_MEETING: ContextVar[Lockstep | None] = ContextVar("meeting", default=None)


class HeldColumns(SharedReading):
    """A range of columns, as fits read it, and which of them have crossed to the client, which keeps them for all."""

    def __init__(self, storage: Any) -> None:
        super().__init__(storage)
        self.crossed = np.zeros(storage.n_features, dtype=bool)

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        meeting = _MEETING.get()
        if meeting is None or any(a.columns is not None for a in asked):
            return self.storage.read(asked, threads)
        found: Reading = meeting.ask((asked, threads))
        return found

    def take(self, features: Array) -> Array:
        return self.storage.take(features)

    def unread(self, features: Array) -> int:
        return self.storage.unread(features)

    def raw(self, features: Array) -> Array:
        """In the type in which they are held."""
        self.crossed[features] = True
        return np.asarray(self.storage.take(features), dtype=self.storage.dtype, order="F")


class Resident:
    """A shard of one fit, and its ledger. It answers to the verbs of both, and to its own; changes are counted."""

    def __init__(self, data: str, epoch: int, columns: HeldColumns, start: Any, shard: int) -> None:
        self.data, self.epoch, self.version = data, epoch, 0
        self._columns = columns
        storage: Any = columns
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
        self._first_gauges: Array | None = None
        self._gauges: Array | None = None  # of the vector remembered last
        self._ledger: Ledger | None = None
        self._foreseen: tuple[int, Array] | None = None  # token of the lookahead, and the rows it would reject
        self._told = np.zeros(self.shard.n_features, dtype=bool)  # of these the fit knows norms and scale
        #: columns that go with the next answer
        self.sent: list[tuple[Array, Array]] = []

    def answer(self, verb: str, arguments: Sequence[Any]) -> Any:
        """Penalties come by name."""
        found = [self._named(part) if isinstance(part, PenaltyName) else part for part in arguments]
        holder = next(part for part in (self, self.shard, self._ledger) if hasattr(part, verb))
        said = getattr(holder, verb)(*found)
        self.version += verb in CHANGING
        return said

    def keep_penalty(self, token: int, packed: bytes) -> None:
        """A penalty of these features, by name."""
        self._penalties[token] = pickle.loads(zlib.decompress(packed))
        self._last = None

    def _named(self, name: PenaltyName) -> Any:
        if self._last is None or self._last[0] != name:
            base = self._penalties[name.token]
            self._last = name, base if name.strength is None else base.at(name.strength)
        return self._last[1]

    # -- columns --------------------------------------------------------------------------------------------------

    def measure(self) -> tuple[float, float]:
        """The least and the largest norm."""
        return self.shard.norm_range()

    def take(self, features: Array, wanted: Array) -> Known:
        """What a fit has to know of some features; the columns of those that are wanted come along."""
        self.send(features[wanted])
        self._told[features] = True
        scale = self.shard.scale(features) if self.shard.standardize else None
        return Known(features, self.shard.norms(features), scale)

    def send(self, features: Array) -> None:
        """Raw columns with this answer."""
        if len(features):
            self.shard.passes += self.shard.storage.unread(features) / max(self.shard.n_features, 1)
            self.sent.append((features, self._columns.raw(features)))

    def _chosen(self, features: Array, most: int) -> Chosen:
        """With the columns that have not crossed yet, the most likely ones if they are many."""
        levels, new = self.ledger.levels, features[~self._told[features]]
        if len(new) > most:
            new = new[np.argsort(-levels[new])[:most]]
        return Chosen(features, levels[features], self.take(new, ~self._columns.crossed[new]))

    def read_raw(self, asked: Sequence[Any]) -> list[Array]:
        """Products as of `ColumnStorage.read`."""
        products, spent = self.shard.storage.read(asked, self.shard.n_threads)
        self.shard.passes += spent
        return products

    # -- anchors --------------------------------------------------------------------------------------------------

    def remember(self, vector: Array, penalty: Any, errors: Array | None) -> tuple[float, int, float]:
        """The largest gauge, whose it is, and the least ratio of column norm to threshold."""
        gauges = self._gauges = self.shard.remember(vector, penalty, errors)
        if self._first_gauges is None:
            self._first_gauges = gauges
        return float(gauges.max(initial=0.0)), int(gauges.argmax()), least_ratio(self.shard.longest, penalty)

    def gauges(self, first: bool) -> Array | None:
        """All gauges of the vector remembered last, or of the first one."""
        return self._first_gauges if first else self._gauges

    def highest(self, first: bool, count: int) -> Array:
        """The highest of these, so many."""
        gauges = self.gauges(first)
        assert gauges is not None
        return highest(gauges, count)

    def bound(self, vector: Any, penalty: Any, region: Region, note: bool) -> tuple[Array, Array]:
        """Copies: the next bounds are written to the same place."""
        estimate, upper = self.shard.bound(vector, penalty, region, note)
        return estimate.copy(), upper.copy()

    noted_bound = bound

    # -- the ledger -----------------------------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        assert self._ledger is not None
        return self._ledger

    def begin(self, penalty: Any) -> None:
        """A new ledger, for a penalty at unit strength."""
        assert self._first_gauges is not None
        self._ledger, self._foreseen = Ledger(self.shard, penalty, self._first_gauges), None

    def restore(self, mask: bytes) -> None:
        """Rejected rows, as reported by a shard that is lost."""
        packed = np.frombuffer(zlib.decompress(mask), dtype=np.uint8)
        self.ledger.rejected = np.unpackbits(packed, count=self.shard.n_features).astype(bool)

    def null_bounds(self, lam: float, errors: Array, most: int) -> tuple[int, Array, float, float]:
        """How many features are in doubt, which ones if they are few, the largest bound and the largest of others."""
        few = self.ledger.null_bounds(lam, errors, most)
        bounds = self.ledger.gauges
        others = float(np.max(bounds[bounds <= 1.0], initial=0.0))
        return int(np.count_nonzero(bounds > 1.0)), few, float(bounds.max(initial=0.0)), others

    def judge(
        self,
        followed: Any,
        note: bool,
        penalty: Any,
        lam: float,
        hidden: bool,
        vector: Array,
        errors: Array,
        room: int,
        most: int,
        working: Array,
        upper: Array,
    ) -> Judged:
        """Bounds at a vector; what they leave open is measured where it is little."""
        asked = Judgement(followed, note, penalty, lam, working, upper, hidden, vector, errors)
        n_open = self.ledger.judge(asked)
        measured = n_open <= max(_FEW_TOUCHED, _TOUCH_FRACTION * self.shard.n_features)
        if n_open and measured:
            self.ledger.measure(vector, penalty, errors)
        return self._judged(n_open, measured, room, most)

    def touch_open(self, vector: Array, penalty: Any, errors: Array, room: int, most: int) -> Judged:
        """What was left open is measured."""
        self.ledger.measure(vector, penalty, errors)
        return self._judged(0, True, room, most)

    def measure_all(self, vector: Array, penalty: Any, errors: Array, room: int, most: int) -> Judged:
        """A full pass, which is remembered."""
        self.ledger.unmeasured()
        self.ledger.measure_all(vector, penalty, errors)
        return self._judged(0, True, room, most)

    def _judged(self, n_open: int, measured: bool, room: int, most: int) -> Judged:
        self._foreseen = None
        self.ledger.settle()
        kept, hidden = self.ledger.largest()
        self.ledger.find_violators()
        return Judged(n_open, measured, kept, hidden, self._chosen(self.ledger.violators(room), most))

    def reject(
        self,
        reaches: list[Reach],
        penalty: Any,
        promising: tuple[float, float, int] | None,
        more: bool,
        with_mask: bool,
        room: int,
        most: int,
        kept: Array,
        about: Array,
    ) -> Rejected:
        """Rows that bounds over all balls prove to be zero."""
        proven, fresh = self.ledger.reject(Rejection(reaches, penalty, kept, about, promising), more)
        if promising is not None:
            chosen = self.ledger.promising(penalty, *promising)
        else:
            chosen = self.ledger.violators(room)
        gone = ~self.ledger.kept(about)
        mask = zlib.compress(np.packbits(self.ledger.rejected).tobytes(), 1) if with_mask else None
        self._foreseen = None
        return Rejected(proven, fresh, gone, self._chosen(chosen, most), mask)

    def foresee(self, token: int, *arguments: Any) -> Rejected:
        """What `reject` would say, without rejecting anything yet."""
        rejected = self.ledger.rejected
        self.ledger.keep_bounds()
        said = self.reject(*arguments)
        self._foreseen, self.ledger.rejected = (token, self.ledger.rejected), rejected
        return said

    def accept(self, token: int, *arguments: Any) -> None:
        """What was foreseen comes true."""
        if self._foreseen is not None and self._foreseen[0] == token:
            self.ledger.rejected, self._foreseen = self._foreseen[1], None
        else:  # another worker has foreseen it
            self.reject(*arguments)

    def promising(self, penalty: Any, asked: tuple[float, float, int], most: int) -> Chosen:
        """Features for the next working set."""
        return self._chosen(self.ledger.promising(penalty, *asked), most)


def store_of(worker: Any) -> WorkerStore:
    """What a worker keeps."""
    found = getattr(worker, _NAME, None)
    if found is None:
        found = WorkerStore()
        setattr(worker, _NAME, found)
    return found


# -- what the client runs on a worker ---------------------------------------------------------------------------------


async def serve(packed: bytes, dask_worker: Any = None) -> bytes:
    """Answers of all shards that messages concern and that live here: for each message by shard."""
    from distributed.protocol.pickle import dumps

    store, loop = store_of(dask_worker), asyncio.get_running_loop()
    messages: list[Message]
    messages, ended = await loop.run_in_executor(store.pool, pickle.loads, packed)
    for position in [position for position in store.residents if position[0] in ended]:
        del store.residents[position]
    asked = sorted({(message.data, shard) for message in messages for shard in message.at})
    here = [shard for data, shard in asked if (data, shard) in store.held]
    answers = await asyncio.gather(
        *(loop.run_in_executor(store.pool, store.answers, messages, shard) for shard in here)
    )
    by_shard = dict(zip(here, answers, strict=True))
    found = [
        {shard: said[number] for shard, said in by_shard.items() if said[number] is not None}
        for number in range(len(messages))
    ]
    return await loop.run_in_executor(store.pool, dumps, found)


async def load(
    data: str, jobs: dict[str, tuple[bool, list[tuple[int, int, int, int]]]], packed: bytes, dask_worker: Any = None
) -> bool:
    """Read ranges of columns and hold them: by worker (shard, epoch, low, high), from a source, in an order of rows."""
    store, loop = store_of(dask_worker), asyncio.get_running_loop()
    streamed, positions = jobs[dask_worker.address]

    def read() -> None:
        source: ColumnSource
        source, order = pickle.loads(packed)
        for shard, epoch, low, high in positions:
            if streamed:
                store.hold(data, shard, epoch, StreamedStorage(source, low, high, order))
            else:
                store.hold(data, shard, epoch, held_columns(source.read(low, high), order))

    await loop.run_in_executor(store.pool, read)
    return True


def hold_fetched(parts: list[Array], order: Array | None, data: str, shard: int, epoch: int) -> int:
    """The same for columns that Dask has brought here: a task."""
    from distributed import get_worker

    rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    store_of(get_worker()).hold(data, shard, epoch, held_columns(np.asarray(rows), order))
    return epoch


def drop(data: str, dask_worker: Any = None) -> None:
    store_of(dask_worker).drop(data)


def own_versions() -> dict[str, str]:
    """Of what may change bits, or the meaning of messages."""
    return {
        "tasksieve": version("tasksieve"),
        "numpy": np.__version__,
        "kernels": "compiled" if compiled else "reference",
    }
