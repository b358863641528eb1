"""A primal point and a dual point, with what is known about the correlations of the dual one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..design import Gauges
from ..losses import DataLoss, Evaluation
from ..penalties import RowPenalty
from ..solvers.working import duality_gap

Array = np.ndarray[Any, Any]


def merged(first: Array, second: Array) -> Array:
    """The features of two lists, ascending: lists are short, and sorting them is quicker than `union1d`."""
    both = np.sort(np.concatenate([first, second]))
    return both[np.append(True, both[1:] != both[:-1])] if len(both) else both


def among(values: Array, known: Array) -> Array:
    """Which of some numbers are among known ones, that ascend."""
    if not len(known):
        return np.zeros(len(values), dtype=bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, values), len(known) - 1)] == values)


@dataclass
class Point:
    """Some rows of W, the loss there, the correlations of its residual with those features, and, where they are known,
    ``X~ W`` and what the correlations may be off."""

    features: Array
    rows: Array
    at: Evaluation
    products: Array
    image: Array | None = None
    errors: Array | None = None


@dataclass
class Pair:
    """What a solve has reached at a strength.

    - `dual`: Its residual, scaled, is the dual point. Mostly the primal point itself; a solver may know a better one.
    - `gauges`: Upper bounds of the gauges of the dual point's correlations at `lam`.
    - `known`: Those of the features that count at `lam`: 0 for those that are certainly zero; by default `gauges`.
    """

    lam: float
    primal: Point
    objective: float
    dual: Point
    gauges: Gauges
    gap: float = np.inf
    known: Gauges | None = None
    #: what `whole` was last asked for at `lam`, and its answer
    _last: tuple[tuple[Any, ...], tuple[RowPenalty, Array, Array]] | None = field(default=None, init=False, repr=False)

    def whole(
        self, penalty: RowPenalty, features: Array, lam: float | None = None
    ) -> tuple[RowPenalty, Array, Array]:
        """What `duality_gap` has to know of all features: their penalty, their gauges at `lam` or at another strength,
        and which of them some are. Where only some are judged, the largest gauge is all that the penalty may use
        (`RowPenalty.by_threshold`), and it has one row less than there are gauges if that
        of the others is above 1."""
        factor = 1.0 if lam is None or lam == self.lam else self.lam / lam
        asked = penalty, features, self.gauges
        if factor == 1.0 and self._last is not None and all(a is b for a, b in zip(asked, self._last[0], strict=True)):
            return self._last[1]
        values, judged, rest = self.gauges
        if judged is None:
            return penalty, values if factor == 1.0 else values * factor, features
        everywhere = merged(judged, features)
        shown = np.append(everywhere, 0) if rest else everywhere  # the last one represents all others
        gauges = np.full(len(shown), rest)
        gauges[np.searchsorted(everywhere, judged)] = values
        if factor != 1.0:
            gauges *= factor
        if penalty.by_row:  # beside a ridge each gauge above 1 counts by itself: one that represents many is left out
            penalty = penalty.restrict(everywhere if rest and gauges[-1] > 1.0 else shown)
        found = penalty, gauges, np.searchsorted(everywhere, features)
        if factor == 1.0:
            self._last = asked, found
        return found

    def where_it_counts(self) -> Pair:
        """The same with the gauges of the features that count."""
        if self.known is None:
            return self
        return Pair(self.lam, self.primal, self.objective, self.dual, self.known, self.gap)

    def dual_gap(self, loss: DataLoss, penalty: RowPenalty, lam: float) -> tuple[float, float]:
        """At any strength, the gap of the point that gives the dual one, and the scale of the dual point."""
        point = self.dual
        whole = self.whole(penalty, point.features, lam)
        return duality_gap(loss, penalty.restrict(point.features), point.rows, point.at, point.products, whole)


def point_gap(loss: DataLoss, penalty: RowPenalty, point: Point, gauges: Array) -> tuple[float, float]:
    """Duality gap over all features of a point with its own residual, whose `gauges` (or upper bounds of them) are
    given, and the scale of the dual point."""
    own, whole = penalty.restrict(point.features), (penalty, gauges, point.features)
    return duality_gap(loss, own, point.rows, point.at, point.products, whole)
