"""What is known about every feature at the moment: its level, its gauge, whether it is rejected.

These are the engine's vectors over features. They are kept where the features are, and queried in brief: how many are
rejected, which few are promising, which violate their bounds. Here they are plain arrays; a cluster keeps a ledger like
this one beside each of its shards, and only summaries are transferred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Reach(NamedTuple):
    """Upper bounds over a ball: the method that gives them, "bound" or "ball_bound", and its arguments but for the
    penalty. `sharper` are factors of the current gauges and of the largest norms: together another bound."""

    verb: str
    arguments: tuple[Any, ...]
    sharper: tuple[float, float] | None = None


class Gauges(NamedTuple):
    """Upper bounds of the gauges of a dual point's correlations, for the features `judged` (ascending; by default all).
    None of the others is larger than `rest`."""

    values: Array
    judged: Array | None = None
    rest: float = 1.0


class Judgement(NamedTuple):
    """A request to bound the gauges of all features at a vector.

    - `followed`: The vector in terms of the anchors; without it nothing is bounded but the working set.
    - `note`: For `ball_bound`.
    - `working`, `upper`: Features whose gauges are known, and these.
    - `hidden`: Rejected features do not count.
    - `vector`, `errors`: The vector itself and what its products may be off, for a later `Ledger.measure`.
    """

    followed: Any
    note: bool
    penalty: Any
    lam: float
    working: Array
    upper: Array
    hidden: bool
    vector: Array
    errors: Array


class Rejection(NamedTuple):
    """A request to reject rows that bounds over all of some balls prove to be zero, but for those to be kept.

    - `about`, `promising`: Arguments of the next calls of `Ledger.kept` and `Ledger.promising`.
    """

    reaches: Iterable[Reach]
    penalty: Any
    kept: Array
    about: Array
    promising: tuple[float, float, int] | None = None


def least_ratio(longest: Callable[[], Array], penalty: Any) -> float:
    """The least ratio of column norm to threshold; 0 if the penalty has none."""
    outer = penalty.outer
    if outer is None:
        return 0.0
    live = outer > 0.0
    return float(np.min(longest()[live] / outer[live], initial=np.inf))


def highest(values: Array, count: int) -> Array:
    """The highest numbers, so many if there are, in no order."""
    return values if len(values) <= count else np.partition(values, -count)[-count:]


class Ledger:
    """Levels, gauges and rejections of all features of a shard; the penalty is that of its features, at unit strength.

    A level is an estimate of the strength at which a feature reaches its threshold, first the gauge for W = 0. Gauges
    are upper bounds at the dual point that was judged last.
    """

    #: whether it makes use of the request that comes next
    foresees = False

    def __init__(self, shard: Any, penalty: Any, levels: Array) -> None:
        self._shard, self._unit, self._first = shard, penalty, levels
        self.levels, self.gauges = levels.copy(), levels
        self.rejected = np.zeros(len(levels), dtype=bool)
        self._n_penalised = int(np.count_nonzero(penalty.penalised))
        self._first_errors: Array | None = None
        self._least: float | None = None
        self._bounds: Array = np.empty(0)
        self._known: Array = np.empty(0, dtype=bool)
        self._open: Array = np.empty(0, dtype=np.int64)
        self._leading = self._open
        self._judging: Judgement | None = None

    @property
    def least(self) -> float:
        """The least ratio of column norm to threshold, at unit strength; 0 if nothing is known of it."""
        if self._least is None:
            self._least = least_ratio(self._shard.longest, self._unit)
        return self._least

    # -- W = 0 ----------------------------------------------------------------------------------------------------

    def at_null(self, lam: float) -> Gauges:
        """Those of W = 0 at a strength, without errors."""
        return Gauges(self._first / lam if lam > 0.0 else self._first)

    def stand_at_null(self, lam: float) -> None:
        """The gauges of W = 0 become the current ones."""
        self.gauges = self.at_null(lam).values

    def null_bounds(self, lam: float, errors: Array, most: int) -> Array:
        """The same with errors in them; returns the features that are left in doubt, none if these are too many."""
        if self._first_errors is None:
            self._first_errors = self._shard.error_gauges(errors, self._unit)
        self.gauges = (self._first + self._first_errors) / lam
        near = np.flatnonzero(self.gauges > 1.0)
        return near if len(near) <= most else near[:0]

    def correct(self, features: Array, gauges: Array) -> None:
        """Better ones of some features."""
        self.gauges[features] = gauges

    def standing(self) -> Gauges:
        """The current gauges."""
        return Gauges(self.gauges)

    # -- rejecting ------------------------------------------------------------------------------------------------

    def reject(self, asked: Rejection, more: bool = False) -> tuple[int, int]:
        """Reject rows; returns how many these bounds reject, and how many of them were not rejected before.

        `more`: Beside those that are rejected already, not in their place.
        """
        penalty = asked.penalty
        upper: Array | None = None
        for reach in asked.reaches:
            if upper is not None:
                upper = upper.copy()  # the next bounds are written to the same place
            bound = self._reach(reach, penalty)
            if reach.sharper is not None:
                factor, moved = reach.sharper
                bound = np.minimum(bound, factor * self.gauges + moved * self._shard.longest() * penalty.euclid)
            upper = bound if upper is None else np.minimum(upper, bound)
        mask = np.zeros(len(self.levels), dtype=bool) if upper is None else penalty.inactive(upper)
        mask[asked.kept] = False
        proven = int(np.count_nonzero(mask))
        if not more:
            self.rejected = mask
            return proven, proven
        fresh = mask & ~self.rejected
        self.rejected |= fresh
        return proven, int(np.count_nonzero(fresh))

    def _reach(self, reach: Reach, penalty: Any) -> Array:
        if reach.verb == "bound":
            vector, region = reach.arguments
            return np.asarray(self._shard.bound(vector, penalty, region)[1])
        first, centre, coefs, radius = reach.arguments
        return np.asarray(self._shard.ball_bound(first, centre, coefs, penalty, radius))

    def drop(self, features: Array) -> None:
        self.rejected[features] = True

    def kept(self, features: Array) -> Array:
        """Which of some features are not rejected."""
        return np.asarray(~self.rejected[features])

    def all_left(self, penalty: Any) -> Array:
        """Penalised features that are not rejected."""
        return np.flatnonzero(~self.rejected & penalty.penalised)

    def promising(self, penalty: Any, last: float, lam: float, room: int) -> Array:
        """Features for the first working set at a strength, the strongest if there are more than room for."""
        levels = self.levels if penalty.separable else np.where(self.rejected, 0.0, self.levels)
        chosen = penalty.promising(levels, last, lam)
        chosen = chosen[~self.rejected[chosen]]
        return chosen[np.argpartition(levels[chosen], -room)[-room:]] if len(chosen) > room else chosen

    # -- judging --------------------------------------------------------------------------------------------------

    def judge(self, asked: Judgement, lookahead: Rejection | None = None) -> int:
        """How many features the bounds at a vector leave open.

        `lookahead` is the next request; unused where answers cost no round trip.
        """
        penalty, lam, working = asked.penalty, asked.lam, asked.working
        if asked.followed is not None:
            # ours until the next bounds
            estimate, self._bounds = self._shard.bound(asked.followed, penalty, note=asked.note)
            np.multiply(estimate, lam, out=self.levels)
        else:
            self._bounds = np.zeros(len(self.levels))
        self._known = np.full(len(self.levels), len(working) == self._n_penalised)
        self._known[working] = True
        self._bounds[working] = asked.upper
        self.levels[working] = asked.upper * lam
        self._judging = asked
        self._open = np.empty(0, dtype=np.int64)
        if penalty.separable and not self._known.all():  # each row by itself: open ones may be violators
            self._open = penalty.open(self._bounds, self._known | self.rejected if asked.hidden else self._known)
        return len(self._open)

    def judge_again(self) -> int:
        """How many features that are not rejected are still open."""
        bounds = np.where(self.rejected, 0.0, self._bounds) if self._asked.hidden else self._bounds
        self._open = self._asked.penalty.open(bounds, self._known)
        return len(self._open)

    @property
    def _asked(self) -> Judgement:
        assert self._judging is not None
        return self._judging

    def measure(self, vector: Array, penalty: Any, errors: Array) -> None:
        """Gauges of the open features, by products with the vector judged."""
        features, lam = self._open, self._asked.lam
        products, norms = self._shard.touch(vector, features)
        self._bounds[features] = penalty.restrict(features).upper_gauges(products, norms * errors)
        self._known[features] = True
        self.levels[features] = self._bounds[features] * lam

    def measure_all(self, vector: Array, penalty: Any, errors: Array, lookahead: Rejection | None = None) -> None:
        """Gauges of all features, in a full pass that is remembered."""
        exact = np.asarray(self._shard.remember(vector, penalty, errors))
        self._bounds[~self._known] = exact[~self._known]
        self._known[:] = True
        np.multiply(exact, self._asked.lam, out=self.levels)

    def keep_bounds(self) -> None:
        """The bounds are to outlast the next ones."""
        self._bounds = self._bounds.copy()

    def unmeasured(self) -> None:
        """What `measure` has found does not count."""
        self._known[self._open] = False

    def settle(self) -> tuple[Gauges, Gauges]:
        """The gauges proved so far, from now on the current ones, and the same with 0 for what does not count."""
        penalty = self._asked.penalty
        self.gauges = counted = penalty.certified(self._bounds, self._known)
        if self._asked.hidden and (not penalty.separable or (self.rejected & (self._bounds > 1.0)).any()):
            counted = np.where(self.rejected, 0.0, self.gauges)
        return Gauges(self.gauges), Gauges(counted)

    def largest(self) -> tuple[float, float]:
        """The largest current gauge outside the working set, of features that count, and of those that do not."""
        outside = np.ones(len(self.levels), dtype=bool)
        outside[self._asked.working] = False
        away = outside & self.rejected if self._asked.hidden else np.zeros(len(self.levels), dtype=bool)
        kept = np.max(self.gauges[outside & ~away], initial=0.0)
        return float(kept), float(np.max(self.gauges[away], initial=0.0))

    def find_violators(self) -> None:
        """Look for violators outside the working set."""
        asked = self._asked
        levels = np.where(self.rejected, 0.0, self.levels) if asked.hidden else self.levels
        leading = asked.penalty.leading(levels / asked.lam)
        inside = np.zeros(len(levels), dtype=bool)
        inside[asked.working] = True
        self._leading = leading[~inside[leading]]

    def violators(self, room: int) -> Array:
        """Those that are not rejected, worst first, as far as there is room."""
        return np.asarray(self._leading[~self.rejected[self._leading]][:room])

    def bring_back(self) -> int:
        """Violators are rejected no more; returns how many were."""
        wrong = int(np.count_nonzero(self.rejected[self._leading]))
        self.rejected[self._leading] = False
        return wrong
