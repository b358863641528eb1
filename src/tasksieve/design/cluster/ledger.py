"""`Ledger` for features in the workers of a cluster: each shard keeps a ledger there, summaries cross."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..anchored import Anchored
from ..ledger import Gauges, Judgement, Rejection
from .messages import Chosen, Judged, Question, Rejected

Array = np.ndarray[Any, Any]

_NONE = np.empty(0, dtype=np.int64)
_MOST_SENT = 1024  # columns that come with an answer, of all shards together


class ClusterLedger:
    """The questions of a `Ledger`, for penalties whose gaps depend on the largest gauge alone.

    The next request is sent along where it can be predicted: the rejections at the next strength with the judgement of
    this one, columns with both.

    - `penalty`: Of all features, at unit strength.
    - `largest`, `least`: The largest gauge for the residual of W = 0, and the least ratio of column norm to threshold.
    """

    foresees = True

    def __init__(self, shard: Any, penalty: Any, largest: float, least: float) -> None:
        self._shard, self._largest, self.least = shard, largest, least
        shard.queue(Question("begin", (shard.named(penalty),)))
        self._most = max(16, _MOST_SENT // shard.n_shards)
        self._standing = Gauges(np.empty(0), _NONE, largest)
        self._judged: dict[int, Judged] = {}
        self._working, self._upper = _NONE, np.empty(0)
        self._gone = self._chosen = _NONE
        self._chosen_levels = np.empty(0)
        self._chosen_for: tuple[float, float, int] | None = None
        self._foreseen: tuple[tuple[Any, ...], Question, dict[int, Rejected]] | None = None
        self._n_foreseen = 0

    # -- W = 0 ----------------------------------------------------------------------------------------------------

    def at_null(self, lam: float) -> Gauges:
        return Gauges(np.empty(0), _NONE, self._largest / lam if lam > 0.0 else self._largest)

    def stand_at_null(self, lam: float) -> None:
        self._foreseen = None
        self._shard.queue(Question("stand_at_null", (lam,)))

    def null_bounds(self, lam: float, errors: Array, most: int) -> Array:
        self._foreseen = None
        counts, near, largest, others = zip(*self._shard.everywhere("null_bounds", lam, errors, most), strict=True)
        features = self._all(near) if sum(counts) <= most else _NONE
        self._standing = Gauges(np.empty(0), _NONE, max(others if len(features) else largest))
        return features

    def correct(self, features: Array, gauges: Array) -> None:
        self._standing = Gauges(gauges, features, self._standing.rest)
        self._shard.queue(Question("correct", (), self._split(features, gauges)))

    def standing(self) -> Gauges:
        return self._standing

    # -- rejecting ------------------------------------------------------------------------------------------------

    def reject(self, asked: Rejection, more: bool = False) -> tuple[int, int]:
        reaches, penalty, kept, about, promising = asked
        whole, name = list(reaches), self._shard.named(penalty)
        foreseen, self._foreseen = self._foreseen, None
        if foreseen is not None and not more and same(foreseen[0], (whole, name, kept, about, promising)):
            _, accepted, answers = foreseen
            self._shard.queue(accepted, _masks(answers))
        else:
            with_mask = self._shard.replay.long and not more
            common = (whole, name, promising, more, with_mask, self._room(), self._most)
            answers = self._shard.ask(Question("reject", common, self._split_about(kept, about)))[0]
            self._receive(answers)
            if with_mask:
                self._shard.replay.compact(_masks(answers))
        self._gone = np.sort(about)[np.concatenate([said.gone for said in answers.values()])]
        self._choose([said.chosen for said in answers.values()])
        self._chosen_for = promising
        return sum(said.proven for said in answers.values()), sum(said.fresh for said in answers.values())

    def kept(self, features: Array) -> Array:
        return ~np.isin(features, self._gone)

    def promising(self, penalty: Any, last: float, lam: float, room: int) -> Array:
        if self._chosen_for != (last, lam, room):  # no rejection has chosen them
            found = self._shard.everywhere("promising", self._shard.named(penalty), (last, lam, room), self._most)
            self._choose(found)
            for k, chosen in enumerate(found):
                self._shard.learn(k, chosen.known)
        self._chosen_for = None
        if len(self._chosen) > room:
            return np.asarray(self._chosen[np.argpartition(self._chosen_levels, -room)[-room:]])
        return self._chosen

    def _choose(self, found: list[Chosen]) -> None:
        self._chosen = self._all([chosen.features for chosen in found])
        self._chosen_levels = np.concatenate([chosen.levels for chosen in found])

    # -- judging --------------------------------------------------------------------------------------------------

    def judge(self, asked: Judgement, lookahead: Rejection | None = None) -> int:
        followed, note, penalty, lam, working, upper, hidden, vector, errors = asked
        self._working, self._upper = working, upper
        self._gone, self._chosen_for = _NONE, None
        common = followed, note, self._shard.named(penalty), lam, hidden, vector, errors, self._room(), self._most
        self._ask(Question("judge", common, self._split(working, upper)), lookahead)
        return sum(said.n_open for said in self._judged.values())

    def _ask(self, question: Question, lookahead: Rejection | None = None) -> None:
        """Judgements, and the lookahead."""
        self._foreseen = None
        if lookahead is None:
            self._hear(self._shard.ask(question)[0])
            return
        reaches, penalty, kept, about, promising = lookahead
        name, with_mask = self._shard.named(penalty), self._shard.replay.long
        self._n_foreseen += 1
        later = self._n_foreseen, reaches, name, promising, False, with_mask, self._room(), self._most
        accepted = Question("accept", later, self._split_about(kept, about))
        judged, answers = self._shard.ask(question, Question("foresee", later, accepted.own))
        self._hear(judged)
        self._receive(answers)
        if all(said.measured for said in self._judged.values()):
            self._foreseen = (reaches, name, kept, about, promising), accepted, answers

    def _hear(self, answers: dict[int, Judged]) -> None:
        self._judged |= answers
        self._receive(answers)

    def _receive(self, answers: dict[int, Any]) -> None:
        """What has come with answers about features that may be taken."""
        for k, said in answers.items():
            self._shard.learn(k, said.chosen.known)

    def judge_again(self) -> int:
        return 0

    def measure(self, vector: Array, penalty: Any, errors: Array) -> None:
        left = {k: () for k, said in self._judged.items() if not said.measured}
        if left:
            self._ask(Question("touch_open", self._at(vector, penalty, errors), left))

    def measure_all(self, vector: Array, penalty: Any, errors: Array, lookahead: Rejection | None = None) -> None:
        self._ask(Question("measure_all", self._at(vector, penalty, errors)), lookahead)

    def _at(self, vector: Array, penalty: Any, errors: Array) -> tuple[Any, ...]:
        return vector, self._shard.named(penalty), errors, self._room(), self._most

    def settle(self) -> tuple[Gauges, Gauges]:
        kept = max(said.kept for said in self._judged.values())
        hidden = max(said.hidden for said in self._judged.values())
        everything = Gauges(self._upper, self._working, max(kept, hidden))
        return everything, Gauges(self._upper, self._working, kept) if hidden > 1.0 else everything

    def find_violators(self) -> None:
        """They have come with the judgement."""
        self._choose([said.chosen for said in self._judged.values()])

    def violators(self, room: int) -> Array:
        worst = np.argsort(-self._chosen_levels)
        return np.asarray(self._chosen[worst][:room])

    # -- features by shard ----------------------------------------------------------------------------------------

    def _room(self) -> int:
        return max(100, len(self._working))

    def _all(self, positions: Sequence[Array]) -> Array:
        both = zip(positions, self._shard.starts[:-1], strict=True)
        return np.concatenate([part + low for part, low in both])

    def _split(self, features: Array, values: Array) -> dict[int, tuple[Array, Array]]:
        cuts = np.searchsorted(features, self._shard.starts)
        parts = zip(self._shard.starts[:-1], cuts[:-1], cuts[1:], strict=True)
        return {k: (features[a:b] - low, values[a:b]) for k, (low, a, b) in enumerate(parts)}

    def _split_about(self, kept: Array, about: Array) -> dict[int, tuple[Array, Array]]:
        both = zip(self._shard.by_shard(kept), self._shard.by_shard(np.sort(about)), strict=True)
        return dict(enumerate(both))


def _masks(answers: dict[int, Rejected]) -> dict[int, tuple[Any, ...]] | None:
    """The rows that all shards have rejected, where they say so."""
    found = {k: (said.mask,) for k, said in answers.items()}
    return None if any(mask is None for (mask,) in found.values()) else found


def same(one: Any, other: Any) -> bool:
    """Whether two questions are the same, to the bit."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Anchored) and isinstance(other, Anchored):
        return same(list(vars(one).values()), list(vars(other).values()))
    return type(one) is type(other) and bool(one == other)
