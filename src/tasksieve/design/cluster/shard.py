"""The client's side: all ranges of features together, with the interface of a `LocalShard`."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from ..ledger import highest
from ..row_metric import POINT, Cover, Region
from ..samples import Samples
from ..shard import Centred, centred_columns
from ..storage import DenseStorage
from ..storage.base import by_part
from .fleet import FitLog
from .ledger import ClusterLedger
from .messages import CHANGING, Known, PenaltyName, Question, Start
from .replay import Replay

Array = np.ndarray[Any, Any]

_MOST_PENALTIES = 8  # that shards know by name; an older one is sent again


class ClusterShard:
    """Features in the workers of a cluster: one message goes to all of them, and what they say is put together. Made as
    a `LocalShard` is, of a `ClusterStorage` or a storage around one; workers use their own threads."""

    cheap_passes = False
    joint_bounds = False

    def __init__(
        self, storage: Any, samples: Samples, *, standardize: bool, unpenalised: Array, n_threads: int
    ) -> None:
        self.storage, self.samples = storage, samples
        self.standardize, self.unpenalised = standardize, unpenalised
        self.n_features, self.n_threads = storage.n_features, n_threads
        wrappers: list[Any] = []
        inner = storage
        while hasattr(inner, "around"):
            wrappers.insert(0, inner.around)
            inner = inner.inner
        self._fleet, self._wrappers, self._shared = inner.fleet, wrappers, inner.shared
        self.starts = self._fleet.starts
        self._sizes = np.diff(self.starts)
        free = dict(enumerate(self.by_shard(unpenalised)))
        start = Start(samples, standardize, wrappers, self._fleet.threads(), free)
        #: what is sent to a shard that begins again
        self.replay = Replay()
        self._log = FitLog(start, self._all_told)
        self._fleet.watch(self, self._log)
        self._passes = np.zeros(len(self._sizes))
        #: relative rounding error of a correlation, the largest of all ranges
        self.rounding = 0.0
        self.has_fragile = False
        self._range: tuple[float, float] | None = None
        self._longest: Array | None = None
        self._tokens: dict[int, tuple[int, Any]] = {}
        self._n_named = 0
        #: sent with the next question
        self._queued: list[tuple[Question, dict[int, tuple[Any, ...]] | None]] = []
        # what is known of features whose columns have crossed
        self._norm_rows: dict[int, Array] = {}
        self._scale_rows: dict[int, Array] = {}

    # -- asking ---------------------------------------------------------------------------------------------------

    @property
    def note(self) -> str:
        return str(self._fleet.note)

    @property
    def passes(self) -> float:
        return float(self._passes @ self._sizes) / max(self.n_features, 1)

    @property
    def n_shards(self) -> int:
        return len(self._sizes)

    def ask(self, *questions: Question) -> list[dict[int, Any]]:
        """For each question the answers of the shards that it concerns."""
        every = [*self._queued, *((question, None) for question in questions)]
        request = self._log, [question for question, _ in every]
        found = self._fleet.ask([request])[0] if self._shared is None else self._shared.ask(request)
        self._queued = []
        for question, masks in every:
            if question.verb in CHANGING:
                self.replay.add(question)
            if masks is not None:
                self.replay.compact(masks)
        for k, answer in found.items():
            self._passes[k] += answer.passes
            self.rounding = max(self.rounding, answer.rounding)
            self.has_fragile |= answer.fragile
        replies = {k: iter(found[k].found) for k in sorted(found)}
        answers = [{k: next(said) for k, said in replies.items() if question.concerns(k)} for question, _ in every]
        return answers[len(every) - len(questions) :]

    def queue(self, question: Question, masks: dict[int, tuple[Any, ...]] | None = None) -> None:
        """Sent to the shards with the next question; `masks` are the rows that they have rejected then."""
        self._queued.append((question, masks))

    def everywhere(self, verb: str, *common: Any) -> list[Any]:
        """The answers of all shards to a question, in order."""
        return list(self.ask(Question(verb, common))[0].values())

    def by_shard(self, features: Array) -> list[Array]:
        """Some features, as each shard counts its own."""
        return [own for _, own in by_part(self.starts, features)]

    def some(self, verb: str, common: tuple[Any, ...], features: Array) -> list[tuple[Array, Any]]:
        """Answers about some features, each with the positions of its features."""
        cut = by_part(self.starts, features)
        own = {k: (here,) for k, (_, here) in enumerate(cut) if len(here)}
        if not own:
            return []
        return [(cut[k][0], said) for k, said in self.ask(Question(verb, common, own))[0].items()]

    def _gathered(self, verb: str, common: tuple[Any, ...], features: Array) -> Array:
        out = np.empty((len(features), self.samples.n_tasks))
        for at, part in self.some(verb, common, features):
            out[at] = part
        return out

    def named(self, penalty: Any) -> PenaltyName:
        """A penalty by name; a new one is introduced to the shards with the next question."""
        origin = getattr(penalty, "origin", None)
        base, strength = (penalty, None) if origin is None else origin
        if id(base) not in self._tokens:
            if len(self._tokens) >= _MOST_PENALTIES:
                used = self.replay.tokens()
                for key in [key for key, (token, _) in self._tokens.items() if token not in used][:1]:
                    del self._tokens[key]
            self._tokens[id(base)] = self._n_named, base
            self.queue(self._told(self._n_named, base))
            self._n_named += 1
        return PenaltyName(self._tokens[id(base)][0], strength)

    def _all_told(self) -> list[Question]:
        return [*(self._told(token, base) for token, base in self._tokens.values()), *self.replay.questions()]

    def _told(self, token: int, base: Any) -> Question:
        from distributed.protocol.pickle import dumps

        cuts = zip(self.starts[:-1], self.starts[1:], strict=True)
        parts = [base.restrict(np.arange(low, high)) for low, high in cuts]
        own = {k: (zlib.compress(dumps(part), 1),) for k, part in enumerate(parts)}
        return Question("keep_penalty", (token,), own)

    # -- columns --------------------------------------------------------------------------------------------------

    def norm_range(self) -> tuple[float, float]:
        if self._range is None:
            self._measured(self.everywhere("measure"))
        assert self._range is not None
        return self._range

    def _measured(self, found: list[Any]) -> None:
        self._range = float(np.min([part[0] for part in found])), float(np.max([part[1] for part in found]))

    def longest(self, features: Array | None = None) -> Array:
        if features is not None:
            norms = self.norms(features)
            return np.maximum.reduce(norms[:, :1] if self.samples.uniform else norms, axis=1)
        if self._longest is None:
            self._longest = np.concatenate(self.everywhere("longest"))
        return self._longest

    def norms(self, features: Array | None = None) -> Array:
        if features is None:
            return np.concatenate(self.everywhere("norms"))
        return self._known_rows(self._norm_rows, "norms", features)

    def scale(self, features: Array) -> Array:
        return self._known_rows(self._scale_rows, "scale", features)

    def _known_rows(self, known: dict[int, Array], verb: str, features: Array) -> Array:
        rows = [known.get(j) for j in features.tolist()]
        if rows and all(row is not None for row in rows):
            return np.array(rows)
        return self._gathered(verb, (), features)

    def correlate(self, r: Array, features: Array | None = None) -> Array:
        if features is not None:
            return self._gathered("correlate", (r,), features)
        return np.concatenate(self.everywhere("correlate", r))

    def touch(self, r: Array, features: Array) -> tuple[Array, Array]:
        """`correlate` and `norms` for some features, in one go."""
        products, norms = (np.empty((len(features), self.samples.n_tasks)) for _ in range(2))
        for at, (part, sizes) in self.some("touch", (r,), features):
            products[at], norms[at] = part, sizes
        return products, norms

    def learn(self, k: int, known: Known) -> None:
        """What a shard has said about some of its features."""
        features = (known.features + self.starts[k]).tolist()
        self._norm_rows.update(zip(features, known.norms, strict=True))
        if known.scale is not None:
            self._scale_rows.update(zip(features, known.scale, strict=True))

    def take(self, features: Array) -> Centred:
        """Columns cross once for all fits on these data, as they are held, and are centred here."""
        unknown = np.array([j not in self._norm_rows for j in features.tolist()], dtype=bool)
        asked = features[unknown | self._fleet.missing(features)]
        if len(asked):
            self._ask_to_take(asked)
        raw = self._fleet.columns(features, self._ask_to_take)
        storage: Any = DenseStorage(raw)
        for wrap in self._wrappers:
            storage = wrap(storage)
        found = centred_columns(storage.take(np.arange(len(features))), self.samples, self.n_threads)
        return found.divided(self.scale(features), self.samples) if self.standardize else found

    def _ask_to_take(self, features: Array) -> None:
        wanted = self._fleet.missing(features)
        own = {k: (here, wanted[at]) for k, (at, here) in enumerate(by_part(self.starts, features)) if len(here)}
        for k, known in self.ask(Question("take", (), own))[0].items():
            self.learn(k, known)

    # -- anchors --------------------------------------------------------------------------------------------------

    def remember(self, vector: Array, penalty: Any, errors: Array | None = None) -> FarGauges:
        """A full pass whose products stay in the shards as an anchor, as do the gauges."""
        asked, first = [Question("remember", (vector, self.named(penalty), errors))], not self.replay.anchors
        if self._range is None:  # norms come along
            asked.append(Question("measure"))
        gauges, *norms = self.ask(*asked)
        for found in norms:
            self._measured(list(found.values()))
        return FarGauges(self, gauges, first)

    def error_gauges(self, errors: Array, penalty: Any) -> Array:
        return np.concatenate(self.everywhere("error_gauges", errors, self.named(penalty)))

    def also_measure(self, metric: Array) -> None:
        """The shards are told with the next question, which is a reading."""
        self.queue(Question("also_measure", (metric,)))

    def metric_norms(self, cover: Cover) -> Array:
        return np.concatenate(self.everywhere("metric_norms", cover))

    def forget(self, m: int) -> None:
        """Anchor m is not needed any more: the shards are notified with the next question."""
        self.queue(Question("forget", (m,)))

    def bound(
        self, vector: Any, penalty: Any, region: Region = POINT, note: bool = False
    ) -> tuple[Array, Array]:
        verb, name = "noted_bound" if note else "bound", self.named(penalty)
        estimates, uppers = zip(*self.everywhere(verb, vector, name, region, note), strict=True)
        return np.concatenate(estimates), np.concatenate(uppers)

    def ball_bound(self, first: Any, centre: Any, coefs: Any, penalty: Any, radius: float) -> Array:
        return np.concatenate(self.everywhere("ball_bound", first, centre, coefs, self.named(penalty), radius))


class FarGauges:
    """Gauges of a vector that the shards have remembered: made an array on demand.

    - `largest`: The largest gauge, whose it is, and the least ratio of column norm to threshold.
    - `first`: The first vector of all; another one is the last while no other has been remembered.
    """

    def __init__(self, shard: ClusterShard, largest: dict[int, tuple[float, int, float]], first: bool) -> None:
        self._shard, self._largest, self._first = shard, largest, first

    def max(self, initial: float = 0.0) -> float:
        return float(np.max([value for value, _, _ in self._largest.values()], initial=initial))

    def argmax(self) -> int:
        k = list(self._largest)[int(np.argmax([value for value, _, _ in self._largest.values()]))]
        return int(self._shard.starts[k]) + self._largest[k][1]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.concatenate(self._shard.everywhere("gauges", self._first)).astype(dtype or np.float64)

    def __truediv__(self, by: float) -> Array:
        return np.asarray(self) / by

    def highest(self, count: int) -> Array:
        return highest(np.concatenate(self._shard.everywhere("highest", self._first, count)), count)

    def ledger(self, penalty: Any) -> ClusterLedger | None:
        """Summaries of what the shards know about their features; None if they do not have these levels."""
        least = min(part[2] for part in self._largest.values())
        return ClusterLedger(self._shard, penalty, self.max(), least) if self._first else None
