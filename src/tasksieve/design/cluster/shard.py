"""The client's side: all ranges of features together, with the interface of a `LocalShard`."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from ..samples import Samples
from ..shard import Centred
from .fleet import FitLog
from .messages import Few, Known, PenaltyName, Question, Reach, Start

Array = np.ndarray[Any, Any]

_MOST_PENALTIES = 8  # that shards are told by name; an older one is told again


class ClusterShard:
    """Features in the workers of a cluster: one message goes to all of them, and what they say is put together.

    Parameters
    ----------
    storage : ClusterStorage, or a storage around one
    samples, standardize, unpenalised, n_threads
        As of `LocalShard`; workers use their own threads.
    """

    lean = False

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
        self._fleet = inner.fleet
        self._starts = self._fleet.starts
        everything = range(self._fleet.n_shards)
        free = {
            k: unpenalised[(unpenalised >= self._starts[k]) & (unpenalised < self._starts[k + 1])] - self._starts[k]
            for k in everything
        }
        threads = self._fleet.threads()
        start = Start(samples, standardize, wrappers, threads, free)
        self._log = FitLog(start, self._replay)
        self._fleet.watch(self, self._log)
        self._sizes = np.diff(self._starts)
        self._passes = np.zeros(len(self._sizes))
        #: relative rounding error of a correlation, the largest of all ranges
        self.rounding = 0.0
        self.has_fragile = False
        self._longest: Array | None = None
        self._scale: Array | None = None
        self._tokens: dict[int, tuple[int, Any]] = {}
        self._n_named = 0
        # what a shard that begins again is told: the first pass, the anchors, and the vector that was judged last
        self._first: Question | None = None
        self._anchors: list[Question] = []
        self._errors: Question | None = None
        self._judged: Question | None = None
        self._queued: list[Question] = []  # what they hear with the next question
        # what came unasked: products with a vector, columns, and norms of features whose columns have been taken
        self._touched: tuple[Any, dict[int, Any]] = (None, {})
        self._expected = np.empty(0, dtype=np.int64)
        self._fetched: dict[int, tuple[Array, Centred]] = {}
        self._norm_rows: dict[int, Array] = {}

    #: questions should be few
    far = True

    # -- asking ---------------------------------------------------------------------------------------------------

    @property
    def note(self) -> str:
        """What a user should know about how the columns are read."""
        return str(self._fleet.note)

    @property
    def passes(self) -> float:
        """Full readings of the data, in equivalents."""
        return float(self._passes @ self._sizes) / max(self.n_features, 1)

    def _ask(self, *questions: Question) -> dict[int, list[Any]]:
        """What each shard concerned says to each question."""
        queued = self._queued
        found = self._fleet.ask(self._log, [*queued, *questions])
        for question in queued:
            del self._anchors[question.common[0]]
        self._queued = []
        for k, answer in found.items():
            del answer.found[: len(queued)]
            self._passes[k] += answer.passes
            self.rounding = max(self.rounding, answer.rounding)
            self.has_fragile |= answer.fragile
        return {k: found[k].found for k in sorted(found)}

    def _replay(self) -> list[Question]:
        told = [self._told(token, base) for token, base in self._tokens.values()]
        first = self._first
        if self._anchors and self._anchors[0] is first:
            first = None  # the first anchor is the first pass
        after = [self._errors, self._judged]
        return [question for question in (*told, first, *self._anchors, *after) if question is not None]

    def _everywhere(self, *questions: Question) -> list[Any]:
        """The answers of all shards to the last question, in order."""
        return [found[-1] for found in self._ask(*questions).values()]

    def _split(self, features: Array) -> list[Array]:
        """Some features by shard."""
        home = np.searchsorted(self._starts, features, side="right") - 1
        return [features[home == k] for k in range(len(self._sizes))]

    def _some(self, verb: str, common: tuple[Any, ...], features: Array) -> list[tuple[Array, Any]]:
        """Answers about some features, each with the places of its features."""
        home = np.searchsorted(self._starts, features, side="right") - 1
        places = {int(k): np.flatnonzero(home == k) for k in np.unique(home)}
        own = {k: (features[at] - self._starts[k],) for k, at in places.items()}
        if not own:
            return []
        found = self._ask(Question(verb, common, own))
        return [(places[k], answers[-1]) for k, answers in found.items()]

    def _gathered(self, verb: str, common: tuple[Any, ...], features: Array) -> Array:
        out = np.empty((len(features), self.samples.n_tasks))
        for at, part in self._some(verb, common, features):
            out[at] = part
        return out

    def _named(self, penalty: Any) -> tuple[PenaltyName, list[Question]]:
        """A penalty by name, and what the shards have to be told for it."""
        origin = getattr(penalty, "origin", None)
        base, strength = (penalty, None) if origin is None else origin
        known = self._tokens.get(id(base))
        if known is not None:
            return PenaltyName(known[0], strength), []
        if len(self._tokens) >= _MOST_PENALTIES:
            used = {question.common[1].token for question in self._anchors}
            used |= {question.common[1].token for question in (self._errors, self._judged) if question is not None}
            for key in [key for key, (token, _) in self._tokens.items() if token not in used][:1]:
                del self._tokens[key]
        token, self._n_named = self._n_named, self._n_named + 1
        told = self._told(token, base)
        self._tokens[id(base)] = token, base
        return PenaltyName(token, strength), [told]

    def _told(self, token: int, base: Any) -> Question:
        from distributed.protocol.pickle import dumps

        cuts = zip(self._starts[:-1], self._starts[1:], strict=True)
        parts = [base.restrict(np.arange(low, high)) for low, high in cuts]
        own = {k: (zlib.compress(dumps(part), 1),) for k, part in enumerate(parts)}
        return Question("keep_penalty", (token,), own)

    # -- columns --------------------------------------------------------------------------------------------------

    def _measure(self) -> None:
        """Norms and scales, asked for once."""
        if self._longest is not None:
            return
        question = Question("measure")
        found = self._everywhere(question)
        self._measured(question, found)

    def _measured(self, question: Question, found: list[Any]) -> None:
        if self._first is None:
            self._first = question
        self._longest = np.concatenate([longest for longest, _ in found])
        if self.standardize:
            self._scale = np.concatenate([scale for _, scale in found])

    def longest(self) -> Array:
        """Largest norm of each feature over the tasks."""
        self._measure()
        assert self._longest is not None
        return self._longest

    def norms(self, features: Array | None = None) -> Array:
        """Norms of the columns of ``X~``, all or some, by tasks."""
        self._measure()
        if features is None:
            return np.concatenate(self._everywhere(Question("norms")))
        known = [self._norm_rows.get(j) for j in features.tolist()]
        if known and all(row is not None for row in known):
            return np.array(known)
        return self._gathered("norms", (), features)

    def scale(self, features: Array) -> Array:
        """What columns were divided by (`standardize`)."""
        self._measure()
        assert self._scale is not None
        return self._scale[features]

    def correlate(self, r: Array, features: Array | None = None) -> Array:
        """``<x~_jt, r_t>`` for all features or for some: (n_features or len(features), n_tasks)."""
        if features is not None:
            self._measure()
            return self._gathered("correlate", (r,), features)
        question = Question("correlate", (r,))
        found = self._everywhere(question)
        self._first = self._first or question
        return np.concatenate(found)

    def touch(self, r: Array, features: Array) -> tuple[Array, Array]:
        """Products and norms of some features, in one go; none where they have come unasked."""
        products, norms = (np.empty((len(features), self.samples.n_tasks)) for _ in range(2))
        vector, known = self._touched
        missing = np.ones(len(features), dtype=bool)
        if vector is r:
            for place, feature in enumerate(features.tolist()):
                if feature in known:
                    products[place], norms[place] = known[feature]
                    missing[place] = False
        left = np.flatnonzero(missing)
        for at, (part, sizes) in self._some("touch", (r,), features[left]):
            products[left[at]], norms[left[at]] = part, sizes
        return products, norms

    def basis_loadings(self, features: Array) -> Array:
        """Products of raw weighted columns with the nuisance basis: (n_basis, len(features), n_tasks)."""
        out = np.empty((len(self.samples.basis), len(features), self.samples.n_tasks))
        for at, part in self._some("basis_loadings", (), features):
            out[:, at] = part
        return out

    def take(self, features: Array) -> Centred:
        """Columns of ``X~``, packed: see `Design.take`."""
        self._measure()
        samples = self.samples
        rows = self.storage.n_rows if samples.uniform else samples.n_samples
        wide = (len(features), 1 if samples.uniform else samples.n_tasks)
        out = Centred(
            np.empty((rows, len(features)), order="F"),
            np.empty(wide),
            np.empty(wide),
            np.empty(wide),
            np.empty((len(samples.basis), *wide)),
        )

        def put(at: Array, part: Centred, of: Any) -> None:
            out.columns[:, at], out.loadings[:, at] = part.columns[:, of], part.loadings[:, of]
            out.squares[at], out.shifts[at], out.sizes[at] = part.squares[of], part.shifts[of], part.sizes[of]

        missing = np.ones(len(features), dtype=bool)
        for k, (places, part) in self._fetched.items():  # what has come unasked
            _, at, of = np.intersect1d(features, places + self._starts[k], return_indices=True)
            put(at, part, of)
            missing[at] = False
        left = np.flatnonzero(missing)
        for at, (part, norms) in self._some("take", (), features[left]):
            put(left[at], part, slice(None))
            self._norm_rows.update(zip(features[left[at]].tolist(), norms, strict=True))
        return out

    # -- anchors --------------------------------------------------------------------------------------------------

    def remember(self, vector: Array, penalty: Any, errors: Array | None = None, floor: float | None = None) -> Array:
        """A full pass whose products stay in the shards as an anchor; returns the gauges of all features.

        With a floor: those that reach it; upper bounds stand for the others.
        """
        name, told = self._named(penalty)
        question = Question("remember", (vector, name, errors, floor))
        if self._longest is None:  # norms come along
            measure = Question("measure")
            answers = self._ask(*told, question, measure)
            found = [answer[-2] for answer in answers.values()]
            self._first = self._first or question
            self._measured(measure, [answer[-1] for answer in answers.values()])
        else:
            found = self._everywhere(*told, question)
        self._anchors.append(question)
        self._judged = None
        return np.concatenate(found) if floor is None else self._many(found)[1]

    def error_gauges(self, errors: Array, penalty: Any) -> Array:
        """See `Design.error_gauges`."""
        name, told = self._named(penalty)
        question = Question("error_gauges", (errors, name))
        found = self._everywhere(*told, question)
        self._errors = question
        return np.concatenate(found)

    def forget(self, m: int) -> None:
        """Anchor m is not needed any more: the shards hear of it with the next question."""
        self._queued.append(Question("forget", (m,)))
        self._judged = None

    def bound(self, vector: Any, penalty: Any, note: bool = False, **ball: Any) -> tuple[Array, Array]:
        """See `AnchorShelf.bound`."""
        name, told = self._named(penalty)
        if note:
            return self._judge(vector, name, told, note, None, None, None)
        found = self._everywhere(*told, Question("bound", (vector, name, ball)))
        return np.concatenate([part[0] for part in found]), np.concatenate([part[1] for part in found])

    def judge(
        self, vector: Any, penalty: Any, note: bool, floor: float, itself: Array, skipped: Array
    ) -> tuple[Array, Array]:
        """`bound` at a vector, as far as it matters: estimates that reach a floor, elsewhere 0, and bounds of at least
        1, elsewhere something that is none too small.

        Products with the vector itself are likely to be asked for next, where bounds are at least 1, but for the
        features skipped: they come along.
        """
        name, told = self._named(penalty)
        return self._judge(vector, name, told, note, floor, itself, skipped)

    def _judge(
        self, vector: Any, name: Any, told: Any, note: bool, floor: Any, itself: Any, skipped: Any
    ) -> tuple[Array, Array]:
        own = None
        if skipped is not None:
            own = {k: (part - self._starts[k],) for k, part in enumerate(self._split(skipped))}
        found = self._everywhere(*told, Question("judge", (vector, name, note, floor, itself), own))
        self._judged = Question("judge", (vector, name, note, floor, None))
        if floor is None:
            whole = [part for part, _ in found]
            return np.concatenate([part[0] for part in whole]), np.concatenate([part[1] for part in whole])
        self._touched = itself, {}
        for k, (_, touched) in enumerate(found):
            if touched is not None:
                features, products, norms = touched
                both = zip(products, norms, strict=True)
                self._touched[1].update(zip((features + self._starts[k]).tolist(), both, strict=True))
        return self._many([part for part, _ in found])

    def _many(self, found: list[Few]) -> tuple[Array, Array]:
        """Vectors over all features from what shards say of theirs."""
        estimate, upper = np.zeros(self.n_features), np.empty(self.n_features)
        for low, high, part in zip(self._starts[:-1], self._starts[1:], found, strict=True):
            upper[low:high] = part.rest
            upper[low + part.places], estimate[low + part.places] = part.upper, part.estimate
        return estimate, upper

    def levels(self, floor: float) -> tuple[Array, Array]:
        """Features whose estimates, as of the vector judged or remembered last, reach a floor, and these."""
        found = self._everywhere(Question("levels", (floor,)))
        places = [part[0] + low for low, part in zip(self._starts[:-1], found, strict=True)]
        return np.concatenate(places), np.concatenate([part[1] for part in found])

    def ball_bound(self, first: Any, centre: Any, coefs: Any, penalty: Any, radius: float) -> Array:
        """See `AnchorShelf.ball_bound`."""
        name, told = self._named(penalty)
        return np.concatenate(self._everywhere(*told, Question("ball_bound", (first, centre, coefs, name, radius))))

    def rejects(self, reaches: list[Reach], penalty: Any, known: Known) -> Array:
        """Rows that upper bounds over all of some balls prove to be zero; expected columns come along."""
        name, told = self._named(penalty)
        own = {k: (int(low),) for k, low in enumerate(self._starts[:-1])}
        question = Question("rejects", (reaches, name, known), own)
        expected, self._expected = self._expected, np.empty(0, dtype=np.int64)
        wanted = [features - low for features, low in zip(self._split(expected), self._starts[:-1], strict=True)]
        more = Question("take", (), {k: (part,) for k, part in enumerate(wanted) if len(part)})
        out, answers = np.ones(self.n_features, dtype=bool), self._ask(*told, question, more)
        self._fetched = {}
        for k, found in answers.items():
            low, high = self._starts[k], self._starts[k + 1]
            if len(wanted[k]):
                part, norms = found.pop()
                self._fetched[k] = wanted[k], part
                self._norm_rows.update(zip((wanted[k] + low).tolist(), norms, strict=True))
            kind, said = found[-1]
            if kind == "left":
                out[low + said] = False
            else:
                out[low:high] = np.unpackbits(said, count=high - low).astype(bool)
        return out

    def expect(self, features: Array) -> None:
        """Columns that are likely to be taken next: they come along with the next answer of `rejects`."""
        self._expected = features
