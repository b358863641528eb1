"""What the client and a worker say to each other.

Every message names the data, the fit, the shard, its epoch (how often it has been placed on a worker) and its version
(how often its state has changed): a shard that knows of another epoch or version does not answer, it says `Stale`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..samples import Samples

Array = np.ndarray[Any, Any]

#: verbs after which a shard is another one
CHANGING = frozenset({"remember", "forget", "judge", "measure", "keep_penalty", "error_gauges"})


class PenaltyName(NamedTuple):
    """A penalty that the shards know, at a strength; None: at the one it came with."""

    token: int
    strength: float | None


class Question(NamedTuple):
    """Something asked of shards.

    Attributes
    ----------
    verb : str
        A method of `worker.Resident`.
    common : tuple
        Arguments that are the same for all shards.
    own : dict, optional
        Further ones by shard; shards that are missing are not asked.
    """

    verb: str
    common: tuple[Any, ...] = ()
    own: dict[int, tuple[Any, ...]] | None = None

    def concerns(self, shard: int) -> bool:
        return self.own is None or shard in self.own

    def arguments(self, shard: int) -> tuple[Any, ...]:
        return self.common if self.own is None else (*self.common, *self.own[shard])


class Few(NamedTuple):
    """A vector over the features of a shard of which the large entries matter.

    Attributes
    ----------
    places : array of int
        Where those are; the largest of `upper` is among them.
    estimate, upper : arrays
        There.
    rest : float
        No entry of `upper` elsewhere is larger.
    """

    places: Array
    estimate: Array
    upper: Array
    rest: float


class Known(NamedTuple):
    """Gauges that shards can make up from what they have computed before.

    Attributes
    ----------
    of : {"ones", "last", "first", "first with errors"}
        1 everywhere; those of the last vector remembered, or of the first one, divided by `strength`.
    strength : float
    features, values : arrays
        Those that are others.
    """

    of: str
    strength: float
    features: Array
    values: Array


class Reach(NamedTuple):
    """Upper bounds over a ball.

    Attributes
    ----------
    verb : {"bound", "ball_bound"}
        What gives them.
    arguments : tuple
        Without the penalty.
    sharper : (float, float), optional
        Factors of gauges that are known and of the largest norms: together another bound.
    """

    verb: str
    arguments: tuple[Any, ...]
    sharper: tuple[float, float] | None = None


@dataclass
class Start:
    """What a shard needs to know to begin a fit, or to begin again.

    Attributes
    ----------
    samples : Samples
    standardize : bool
    wrappers : list of callables
        What the storage is wrapped in, innermost first.
    n_threads, unpenalised : dicts by shard
    """

    samples: Samples
    standardize: bool
    wrappers: list[Any]
    n_threads: dict[int, int]
    unpenalised: dict[int, Array]


@dataclass
class Message:
    """Questions for some shards, in order; with a `start` they begin a fit there."""

    data: str
    fit: str
    at: dict[int, tuple[int, int]]  # by shard: epoch and version
    questions: list[Question]
    start: Start | None = None
    ended: list[str] = field(default_factory=list)  # fits that nobody needs any more


@dataclass
class Answer:
    """What a shard says: the answers to all questions that concerned it, in order."""

    found: list[Any]
    passes: float
    rounding: float
    fragile: bool


@dataclass
class Stale:
    """Why a shard does not answer."""

    reason: str


@dataclass
class Failed:
    """What went wrong with the question itself: it would again."""

    error: BaseException
