"""The client's side: all ranges of features together, with the interface of a `LocalShard`."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from ..samples import Samples
from ..shard import Centred
from .fleet import FitLog
from .messages import PenaltyName, Question, Start

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

    def __init__(
        self, storage: Any, samples: Samples, *, standardize: bool, unpenalised: Array, n_threads: int
    ) -> None:
        self.storage, self.samples = storage, samples
        self.standardize, self.unpenalised = standardize, unpenalised
        self.n_features, self.n_threads = storage.n_features, n_threads
        wrappers, inner = [], storage
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
        self._anchors: list[tuple[Array, PenaltyName]] = []
        self._noted: Question | None = None

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
        found = self._fleet.ask(self._log, list(questions))
        for k, answer in found.items():
            self._passes[k] += answer.passes
            self.rounding = max(self.rounding, answer.rounding)
            self.has_fragile |= answer.fragile
        return {k: found[k].found for k in sorted(found)}

    def _replay(self) -> list[Question]:
        told = [self._told(token, base) for token, base in self._tokens.values()]
        anchors = [Question("remember", (vector, name, None)) for vector, name in self._anchors]
        first = [] if self._first is None else [self._first]
        if first and first[0].verb == "remember" and self._anchors and self._anchors[0][0] is first[0].common[0]:
            first = []  # the first anchor is the first pass
        return [*told, *first, *anchors, *([] if self._noted is None else [self._noted])]

    def _everywhere(self, *questions: Question) -> list[Any]:
        """The answers of all shards to the last question, in order."""
        return [found[-1] for found in self._ask(*questions).values()]

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
            used = {name.token for _, name in self._anchors}
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
        """Products and norms of some features, in one go."""
        products, norms = np.empty((len(features), self.samples.n_tasks)), np.empty((len(features), self.samples.n_tasks))
        for at, (part, sizes) in self._some("touch", (r,), features):
            products[at], norms[at] = part, sizes
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
        for at, part in self._some("take", (), features):
            out.columns[:, at], out.loadings[:, at] = part.columns, part.loadings
            out.squares[at], out.shifts[at], out.sizes[at] = part.squares, part.shifts, part.sizes
        return out

    # -- anchors --------------------------------------------------------------------------------------------------

    def remember(self, vector: Array, penalty: Any, errors: Array | None = None) -> Array:
        """A full pass whose products stay in the shards as an anchor; returns the gauges of all features."""
        name, told = self._named(penalty)
        question = Question("remember", (vector, name, errors))
        if self._longest is None:  # norms come along
            measure = Question("measure")
            answers = self._ask(*told, question, measure)
            found = [answer[-2] for answer in answers.values()]
            self._first = self._first or Question("remember", (vector, name, None))
            self._measured(measure, [answer[-1] for answer in answers.values()])
        else:
            found = self._everywhere(*told, question)
        self._anchors.append((vector, name))
        self._noted = None
        return np.concatenate(found)

    def error_gauges(self, errors: Array, penalty: Any) -> Array:
        """See `Design.error_gauges`."""
        name, told = self._named(penalty)
        return np.concatenate(self._everywhere(*told, Question("error_gauges", (errors, name))))

    def forget(self, m: int) -> None:
        """Anchor m is not needed any more."""
        self._everywhere(Question("forget", (m,)))
        del self._anchors[m]
        self._noted = None

    def bound(self, vector: Any, penalty: Any, **ball: Any) -> tuple[Array, Array]:
        """See `AnchorShelf.bound`."""
        name, told = self._named(penalty)
        note = ball.pop("note", False)
        question = Question("bound_noted" if note else "bound", (vector, name, ball))
        found = self._everywhere(*told, question)
        if note:
            self._noted = question
        return np.concatenate([part[0] for part in found]), np.concatenate([part[1] for part in found])

    def ball_bound(self, first: Any, centre: Any, coefs: Any, penalty: Any, radius: float) -> Array:
        """See `AnchorShelf.ball_bound`."""
        name, told = self._named(penalty)
        return np.concatenate(self._everywhere(*told, Question("ball_bound", (first, centre, coefs, name, radius))))
