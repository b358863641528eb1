"""What the client and a worker say to each other.

Every message names the data, the fit, the shard, its epoch (how often it has been placed on a worker) and its version
(how often its state has changed): a shard that knows of another epoch or version does not answer, it says `Stale`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..samples import Samples

Array = np.ndarray[Any, Any]

#: verbs after which a shard is another one
CHANGING = frozenset({
    "accept", "also_measure", "begin", "correct", "forget", "judge", "keep_penalty", "measure", "measure_all",
    "noted_bound", "null_bounds", "reject", "remember", "restore", "stand_at_null", "touch_open",
})  # fmt: skip


class PenaltyName(NamedTuple):
    """A penalty that the shards know, at a strength; None: at the one it came with."""

    token: int
    strength: float | None


class Question(NamedTuple):
    """A request to shards: a method of `worker.Resident`, its arguments for all of them, and further ones by shard;
    shards that are not among these are left out."""

    verb: str
    common: tuple[Any, ...] = ()
    own: dict[int, tuple[Any, ...]] | None = None

    def concerns(self, shard: int) -> bool:
        return self.own is None or shard in self.own

    def arguments(self, shard: int) -> tuple[Any, ...]:
        return self.common if self.own is None else (*self.common, *self.own[shard])


class Known(NamedTuple):
    """What a fit has to know about features whose columns it takes.

    - `features`: As the shard counts them.
    - `scale`: What they are divided by.
    """

    features: Array
    norms: Array
    scale: Array | None


class Chosen(NamedTuple):
    """Features for a working set, as the shard counts them, and what the fit does not know yet about them; columns that
    have not crossed for any fit come along (`Reply.columns`)."""

    features: Array
    levels: Array
    known: Known


class Judged(NamedTuple):
    """A shard's summary of the gauges of its features at a vector.

    - `n_open`: Features that bounds leave open.
    - `measured`: They have been measured, and are open no more.
    - `kept`, `hidden`: The largest gauge outside the working set, of features that are not and of those that are
      rejected.
    - `chosen`: Violators, worst first.
    """

    n_open: int
    measured: bool
    kept: float
    hidden: float
    chosen: Chosen


class Rejected(NamedTuple):
    """A shard's summary of rejected features.

    - `proven`, `fresh`: As of `Ledger.reject`.
    - `gone`: For each feature of the request: whether it is rejected.
    - `chosen`: Features for the next working set, or violators of this one.
    - `mask`: All that are rejected, packed, where that was requested.
    """

    proven: int
    fresh: int
    gone: Array
    chosen: Chosen
    mask: bytes | None


@dataclass
class Start:
    """What a shard needs to know to begin a fit, or to begin again; the innermost of the `wrappers` comes first."""

    samples: Samples
    standardize: bool
    wrappers: list[Any]
    n_threads: dict[int, int]
    unpenalised: dict[int, Array]


@dataclass
class Message:
    """Questions for some shards, in order; with a `start` they begin a fit there. The answers to those that are
    `replayed`, so many, are not sent again."""

    data: str
    fit: str
    at: dict[int, tuple[int, int]]  # by shard: epoch and version
    questions: list[Question]
    start: Start | None = None
    replayed: int = 0


@dataclass
class Reply:
    """A shard's answers to all questions that concerned it, in order.

    - `columns`: Raw columns that come along, in the type in which they are held: features as the shard counts them, and
      an array of so many columns.
    """

    found: list[Any]
    passes: float
    rounding: float
    fragile: bool
    columns: list[tuple[Array, Array]]


@dataclass
class Stale:
    """Why a shard does not answer."""

    reason: str


@dataclass
class Failed:
    """What went wrong with the question itself: it would again."""

    error: BaseException
