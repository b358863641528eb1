"""Which worker holds which range of features: requests to all of them at once, and recovery of what was lost.

Columns come from a source and are pinned to a worker. When a worker is gone its ranges are read again elsewhere, under
a new epoch, and every fit replays its state to them (`FitLog`): nothing but time is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from ..lost import ClusterError, DataLost
from ..storage.base import kept_type
from . import worker
from .messages import CHANGING, Failed, Message, Question, Reply, Stale, Start
from .needs import active_client, needed
from .sources import ColumnSource

Array = np.ndarray[Any, Any]

_SHARDS_A_WORKER = 2
_MOST_DEATHS = 4  # of a shard's workers in a row, its questions unanswered: its columns are the cause
_LOOK_AFTER = 1.0  # seconds without an answer after which the workers alive are listed
_MOST_ROUNDS = 100  # of repeated requests
_ROOM = 0.6  # of a worker's memory for columns
_KEPT_BYTES = 256 << 20  # of columns that have crossed
_PATIENCE = 60.0  # seconds to wait for a worker where there is none; dask's configuration "tasksieve.patience"


@dataclass
class Traffic:
    """Messages and bytes, counted at the client.

    - `trips`: Messages to all workers at once, each with its answers.
    - `sent`, `received`: Bytes, those to each worker counted.
    - `loaded`: Ranges of columns read by a worker, those read again after a loss included.
    """

    trips: int = 0
    sent: int = 0
    received: int = 0
    loaded: int = 0


@dataclass
class FitLog:
    """One fit on a fleet: what is replayed to shards that begin again, and the state that each of them has reached.

    - `replay`: ``replay()`` gives the questions that bring a new shard to where all are.
    - `at`: By shard: epoch and version, where it has begun.
    """

    start: Start
    replay: Callable[[], list[Question]]
    fit: str = field(default_factory=lambda: uuid4().hex)
    at: dict[int, tuple[int, int]] = field(default_factory=dict)


Asked = tuple[FitLog, list[Question]]  # a fit, and its questions


class _Part(NamedTuple):
    """What one of several requests says to some shards: in order, with a `start` if they begin the fit."""

    number: int
    log: FitLog
    shards: list[int]
    questions: list[Question]
    start: Start | None = None
    replayed: int = 0


class Fleet:
    """Ranges of the columns of a source, on the workers of the active client.

    - `whole`: ``whole(features)``: these and all others that must be in the same range.
    - `starts`: Where each range begins, and the number of features.
    - `note`: What a user should know about how the columns are read; empty if there is nothing.
    """

    def __init__(
        self, source: ColumnSource, order: Array | None, whole: Callable[[Array], Array] | None = None
    ) -> None:
        self.client: Any = active_client()
        self.source, self._order = source, order
        self.data = uuid4().hex
        self.traffic, self.note = Traffic(), ""
        self._lock = threading.RLock()
        self._ended: list[str] = []
        self._kept: dict[int, Array] = {}  # columns that have crossed, oldest first
        self._kept_bytes = 0
        workers = self._await_workers()
        refuse_other_versions(self.client, list(workers))
        self.starts = cut(source.edges, _SHARDS_A_WORKER * len(workers), whole)
        self.n_shards = len(self.starts) - 1
        self._where: list[str | None] = [None] * self.n_shards
        self._epoch, self._deaths = [0] * self.n_shards, [0] * self.n_shards
        names = sorted(workers)
        first = {k: names[k * len(names) // self.n_shards] for k in range(self.n_shards)}
        self._position(range(self.n_shards), first)
        self._drop = weakref.finalize(self, _drop_later, self.client, self.data)

    # -- requests -------------------------------------------------------------------------------------------------

    def watch(self, owner: Any, log: FitLog) -> None:
        """When the owner of a fit is garbage collected, the next message lets the workers release it."""
        weakref.finalize(owner, self._ended.append, log.fit)

    def threads(self) -> dict[int, int]:
        """For each shard, its part of its worker's threads."""
        live = self._workers()
        shared = {address: self._where.count(address) for address in set(self._where)}
        return {k: max(1, live.get(str(a), 1) // shared[a]) for k, a in enumerate(self._where)}

    def ask(self, requests: Sequence[Asked]) -> list[dict[int, Reply]]:
        """For each fit the answers of all shards that its questions concern. One message has what all fits ask; it goes
        to all workers before any answer is awaited."""
        concerned = [
            [k for k in range(self.n_shards) if any(question.concerns(k) for question in questions)]
            for _, questions in requests
        ]
        answers: list[dict[int, Reply]] = [{} for _ in requests]
        for _ in range(_MOST_ROUNDS):
            waiting = [[k for k in own if k not in said] for own, said in zip(concerned, answers, strict=True)]
            if not any(waiting):
                return answers
            with self._lock:
                everyone = sorted({k for own in waiting for k in own})
                self._position([k for k in everyone if self._where[k] is None])
            parts: list[_Part] = []
            for number, (log, questions) in enumerate(requests):
                new = [k for k in waiting[number] if log.at.get(k, (0, 0))[0] != self._epoch[k]]
                ready = [k for k in waiting[number] if k not in new]
                if new:
                    replay = log.replay()
                    parts.append(_Part(number, log, new, [*replay, *questions], log.start, len(replay)))
                if ready:
                    parts.append(_Part(number, log, ready, questions))
            for part, said in zip(parts, self._send(parts), strict=True):
                answers[part.number] |= said
        raise DataLost("The workers' shards of X do not stay where they are: see the workers' logs.")

    def _send(self, parts: Sequence[_Part]) -> list[dict[int, Reply]]:
        """One message to the workers of some shards: the answers of those that gave one, part by part."""
        from distributed.protocol.pickle import dumps, loads

        shards = sorted({k for part in parts for k in part.shards})
        where = {k: self._where[k] for k in shards}
        epochs = {k: self._epoch[k] for k in shards}
        ended = [self._ended.pop() for _ in range(len(self._ended))]
        ats = [
            {k: (epochs[k], 0) if part.start is not None else part.log.at[k] for k in part.shards} for part in parts
        ]
        messages = [
            Message(self.data, part.log.fit, at, part.questions, part.start, part.replayed)
            for part, at in zip(parts, ats, strict=True)
        ]
        packed = dumps((messages, ended))
        live = self._workers()
        addresses = sorted({a for a in where.values() if a in live})
        self.traffic.trips += 1
        self.traffic.sent += len(packed) * len(addresses)
        found = self._run(addresses, worker.serve, packed)
        answers: list[dict[int, Reply]] = [{} for _ in parts]
        for address in sorted({a for a in where.values() if a is not None}):
            said = found.get(address, DataLost(f"worker {address} is gone"))
            if said is None:  # its state is unknown: it begins again
                for part in parts:
                    for k in (k for k in part.shards if where[k] == address):
                        part.log.at.pop(k, None)
                continue
            if isinstance(said, BaseException):
                self._lose(address, said)
                continue
            self.traffic.received += len(said)
            for part, at, own, heard in zip(parts, ats, answers, loads(said), strict=True):
                for k in (k for k in part.shards if where[k] == address):
                    answer = heard.get(k, Stale("not there"))
                    if isinstance(answer, Reply):
                        own[k] = answer
                        self._heard(k, answer, part, at[k])
                        continue
                    part.log.at.pop(k, None)
                    if isinstance(answer, Failed):
                        raise answer.error
                    with self._lock:
                        if k not in heard and self._epoch[k] == epochs[k]:
                            self._where[k] = None
        return answers

    def _heard(self, shard: int, answer: Reply, part: _Part, at: tuple[int, int]) -> None:
        """A shard has answered a part of a message."""
        self._keep(shard, answer)
        self._deaths[shard] = 0
        changed = sum(question.verb in CHANGING and question.concerns(shard) for question in part.questions)
        part.log.at[shard] = at[0], at[1] + changed

    def _run(self, addresses: list[str], function: Any, *arguments: Any) -> dict[str, Any]:
        """The result of a function on several workers, or the error it ended with. When a worker disappears while all
        are waited for, Dask would go on trying to reach it: then no answer is used, and None stands for the others'."""
        if not addresses:
            return {}

        async def together() -> dict[str, Any]:
            run = asyncio.ensure_future(
                self.client.run(function, *arguments, workers=addresses, on_error="return", asynchronous=True)
            )
            alarms = 0
            while not run.done():
                await asyncio.wait({run}, timeout=_LOOK_AFTER)
                if run.done():
                    break
                live = await self.client.scheduler.ncores()
                alarms += any(address not in live for address in addresses)
                if alarms > 1:
                    run.cancel()
                    return {address: None for address in addresses if address in live}
            return dict(run.result())

        return dict(self.client.sync(together))

    # -- columns that have crossed ------------------------------------------------------------------------------------

    def _keep(self, shard: int, answer: Reply) -> None:
        """Columns that have come with an answer, for whichever fit takes them; then as many as there is room for."""
        with self._lock:
            for features, columns in answer.columns:
                for position, j in enumerate((features + self.starts[shard]).tolist()):
                    self._kept_bytes += columns[:, position].nbytes if j not in self._kept else 0
                    self._kept[j] = columns[:, position]

    def missing(self, features: Array) -> Array:
        """Which of some columns are not here."""
        return np.array([j not in self._kept for j in features.tolist()], dtype=bool)

    def columns(self, features: Array, ask: Callable[[Array], Any]) -> Array:
        """Raw columns, in the type in which they are held; ``ask(features)`` makes workers send those not here."""
        out = np.empty((self.source.shape[0], len(features)), dtype=kept_type(self.source.dtype), order="F")
        left = np.arange(len(features))
        while len(left):
            with self._lock:
                absent = self.missing(features[left])
                for position in left[~absent].tolist():
                    out[:, position] = self._kept[int(features[position])]
            left = left[absent]
            if len(left):
                ask(features[left])
        with self._lock:
            while self._kept_bytes > _KEPT_BYTES:
                self._kept_bytes -= self._kept.pop(next(iter(self._kept))).nbytes
        return out

    # -- placing --------------------------------------------------------------------------------------------------

    def _workers(self) -> dict[str, int]:
        """Threads of each worker that is there."""
        return dict(self.client.nthreads())

    def _await_workers(self) -> dict[str, int]:
        patience = float(needed("dask.config", "X on a cluster").get("tasksieve.patience", _PATIENCE))
        began = time.monotonic()
        while not (found := self._workers()):
            if time.monotonic() - began > patience:
                raise DataLost(
                    f"No worker has joined the Dask cluster for {patience:g} seconds. Start workers, or wait longer: "
                    'dask.config.set({"tasksieve.patience": seconds}).'
                )
            time.sleep(0.05)
        return found

    def _lose(self, address: str, reason: BaseException) -> None:
        """A worker is gone, or did not answer: what it holds is held elsewhere from now on."""
        with self._lock:
            for k in range(self.n_shards):
                if self._where[k] == address:
                    self._where[k] = None
                    self._count_death(k, reason)

    def _count_death(self, shard: int, reason: BaseException) -> None:
        self._deaths[shard] += 1
        if self._deaths[shard] >= _MOST_DEATHS:
            low, high = self.starts[shard], self.starts[shard + 1]
            raise DataLost(
                f"Features {low} to {high - 1} of X were lost with their worker {_MOST_DEATHS} times in a row (last: "
                f"{reason}). Look into the workers' logs: mostly they have run out of memory. More workers, or more "
                "memory for each, help."
            ) from reason

    def _position(self, shards: Iterable[int], where: dict[int, str] | None = None) -> None:
        """Columns of some shards on workers, the least loaded ones, until all of them are held."""
        waiting = list(shards)
        while waiting:
            live = self._await_workers()
            limits = memory_limits(self.client)
            jobs: dict[str, list[int]] = {}
            load = dict.fromkeys(sorted(live), 0)
            for address in self._where:
                if address in load:
                    load[address] += 1
            for k in waiting:
                address = min(load, key=lambda a: (load[a], a))
                if where is not None and where[k] in load:
                    address = where[k]
                load[address] += 1
                jobs.setdefault(address, []).append(k)
                self._epoch[k] += 1
            where = None
            held = self._load(jobs, load, limits)
            waiting = [k for k in waiting if k not in held]

    def _load(self, jobs: dict[str, list[int]], load: dict[str, int], limits: dict[str, int]) -> set[int]:
        """Ranges read by their workers: those that now are held."""
        width = max(np.diff(self.starts))
        item = kept_type(self.source.dtype).itemsize
        fetched: dict[str, dict[int, Any]] = {}
        read: dict[str, tuple[bool, list[tuple[int, int, int, int]]]] = {}
        for address, shards in jobs.items():
            limit = limits.get(address, 0)
            streamed = bool(limit) and load[address] * width * self.source.shape[0] * item > _ROOM * limit
            if streamed:
                self.note = "columns do not fit into the workers' memory: they are read again in each pass"
            for k in shards:
                low, high = int(self.starts[k]), int(self.starts[k + 1])
                parts = None if streamed else self.source.fetched(low, high)
                if parts is not None:
                    fetched.setdefault(address, {})[k] = parts
                else:
                    read.setdefault(address, (streamed, []))[1].append((k, self._epoch[k], low, high))
        return self._fetch(fetched) | self._read(read)

    def _read(self, jobs: dict[str, tuple[bool, list[tuple[int, int, int, int]]]]) -> set[int]:
        """Ranges that workers read from the source themselves."""
        from distributed.protocol.pickle import dumps

        if not jobs:
            return set()
        packed = dumps((self.source, self._order))
        found = self._run(list(jobs), worker.load, self.data, jobs, packed)
        held: set[int] = set()
        for address, (_, positions) in jobs.items():
            said = found.get(address, DataLost(f"worker {address} is gone"))
            shards = {position[0] for position in positions}
            if said is not None and not isinstance(said, BaseException):
                held |= self._now_at(address, shards)
            elif said is not None:
                self._missed(address, shards, said)
        return held

    def _now_at(self, address: str, shards: Iterable[int]) -> set[int]:
        for k in shards:
            self._where[k] = address
            self.traffic.loaded += 1
        return set(shards)

    def _missed(self, address: str, shards: Iterable[int], reason: BaseException) -> None:
        """Columns that could not be read: if the worker is there, it is not its fault."""
        from distributed.comm import CommClosedError

        if address in self._workers() and not isinstance(reason, CommClosedError | OSError):
            raise reason
        for k in shards:
            self._count_death(k, reason)

    def _fetch(self, jobs: dict[str, dict[int, Any]]) -> set[int]:
        """Ranges that Dask computes where they are to be held."""
        if not jobs:
            return set()
        from distributed import KilledWorker, wait

        pending: dict[int, tuple[str, Any]] = {}
        for address, shards in jobs.items():
            for k, parts in shards.items():
                # Blocks are read where they are to be held if that can be; only their holder is fixed.
                blocks = self.client.compute(
                    parts if isinstance(parts, list) else [parts], workers=[address], allow_other_workers=True
                )
                pending[k] = address, self.client.submit(
                    worker.hold_fetched, blocks, self._order, self.data, k, self._epoch[k],
                    workers=[address], allow_other_workers=False, pure=False,
                )  # fmt: skip
        held: set[int] = set()
        while pending:
            with contextlib.suppress(TimeoutError):
                wait([future for _, future in pending.values()], timeout=0.2)
            live = self._workers()
            for k, (address, future) in list(pending.items()):
                if future.status == "finished":
                    held |= self._now_at(address, [k])
                elif future.status == "error" and not isinstance(future.exception(), KilledWorker):
                    raise future.exception()
                elif future.status != "pending" or address not in live:
                    self.client.cancel([future])
                    self._count_death(k, DataLost(f"worker {address} is gone"))
                else:
                    continue
                del pending[k]
        return held


def _drop_later(client: Any, data: str) -> None:
    """Workers forget the data when they come to it."""
    with contextlib.suppress(Exception):
        if client.status == "running":
            client.loop.add_callback(partial(client._run, worker.drop, data, on_error="ignore"))


def memory_limits(client: Any) -> dict[str, int]:
    """Bytes that each worker may use; 0: it does not say."""
    try:
        info = client.scheduler_info(n_workers=-1)
    except TypeError:  # older than 2024.10
        info = client.scheduler_info()
    return {address: int(facts.get("memory_limit") or 0) for address, facts in info["workers"].items()}


def refuse_other_versions(client: Any, addresses: list[str]) -> None:
    """Workers with another version of tasksieve or NumPy give other bits, or none."""
    own = worker.own_versions()
    for address, found in client.run(worker.own_versions, workers=addresses, on_error="return").items():
        if isinstance(found, ModuleNotFoundError):
            raise ClusterError(
                f"Worker {address} has no tasksieve ({found}): install tasksieve {own['tasksieve']} where the workers "
                "run, in the environment that they are started from."
            ) from found
        if isinstance(found, BaseException):
            continue  # gone: the next request finds that out
        for name, version in own.items():
            if found.get(name) != version:
                raise ClusterError(
                    f"{name} is {version} here and {found.get(name)} on worker {address}: install the same versions on "
                    "both sides."
                )


def cut(edges: Sequence[int], wanted: int, whole: Callable[[Array], Array] | None = None) -> Array:
    """Where ranges of about the same number of features begin, and the number of features. They end where blocks of the
    source do as far as these are small, and nowhere within what belongs together."""
    n_features = int(edges[-1])
    wanted = max(1, min(wanted, n_features))
    ideal = [round(k * n_features / wanted) for k in range(1, wanted)]
    known, slack = np.asarray(edges), n_features / wanted / 4.0
    cuts = []
    for position in ideal:
        near = int(known[np.argmin(np.abs(known - position))])
        cuts.append(near if abs(near - position) <= slack else position)
    if whole is not None:
        cuts = [_uncut(position, n_features, whole) for position in cuts]
    return np.array(sorted({0, *(cut for cut in cuts if 0 < cut < n_features), n_features}), dtype=np.int64)


def _uncut(position: int, n_features: int, whole: Callable[[Array], Array]) -> int:
    """The next position that splits no block."""
    while position < n_features:
        before = whole(np.arange(position))
        last = int(before[-1]) + 1 if len(before) else position
        if last <= position:
            return position
        position = last
    return n_features
