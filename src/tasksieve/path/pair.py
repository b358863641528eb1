"""A primal point and a dual point, with what is known about the correlations of the dual one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..losses import DataLoss, Evaluation
from ..penalties import RowPenalty
from ..solvers.working import duality_gap

Array = np.ndarray[Any, Any]


def merged(first: Array, second: Array) -> Array:
    """The features of two lists, ascending: lists are short, and sorting them is quicker than `union1d`."""
    both = np.sort(np.concatenate([first, second]))
    return both[np.append(True, both[1:] != both[:-1])] if len(both) else both


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

    Attributes
    ----------
    lam : float
    primal : Point
    objective : float
        At the primal point.
    dual : Point
        Its residual, scaled, is the dual point. Mostly the primal point itself; a solver may know a better one.
    gauges : array
        For all features: upper bounds of the gauges of the dual point's correlations at `lam`.
    gap : float
        Of the primal and the dual point at `lam`.
    known : array, optional
        What `counted` answers, where it is not the gauges.
    judged : array of int, optional
        Which features the gauges are of, ascending, where those of all others are at most 1; by default all.
    source : (kind, features), optional
        How shards can make up the gauges (`design.cluster.messages.Known`), but for those of these features.
    """

    lam: float
    primal: Point
    objective: float
    dual: Point
    gauges: Array
    gap: float = np.inf
    known: Array | None = None
    judged: Array | None = None
    source: tuple[str, Array] | None = None

    def whole(self, penalty: RowPenalty, features: Array) -> tuple[RowPenalty, Array, Array]:
        """What `duality_gap` has to know of all features: their penalty, their gauges, and which of them some are."""
        if self.judged is None:
            return penalty, self.gauges, features
        everywhere = merged(self.judged, features)
        gauges = np.ones(len(everywhere) + 1)  # the last one stands for all others
        gauges[np.searchsorted(everywhere, self.judged)] = self.gauges
        return penalty.restrict(np.append(everywhere, 0)), gauges, np.searchsorted(everywhere, features)

    @property
    def counted(self) -> Array:
        """Gauges of the features that count at `lam`: 0 for those that are certainly zero."""
        return self.gauges if self.known is None else self.known

    def dual_gap(self, loss: DataLoss, penalty: RowPenalty, lam: float) -> tuple[float, float]:
        """At any strength, the gap of the point that gives the dual one, and the scale of the dual point."""
        gauges = self.gauges if lam == self.lam else self.gauges * (self.lam / lam)
        return point_gap(loss, penalty, self.dual, gauges)


def point_gap(
    loss: DataLoss, penalty: RowPenalty, point: Point, gauges: Array, own: RowPenalty | None = None
) -> tuple[float, float]:
    """Duality gap over all features of a point with its own residual, and the scale of the dual point.

    `gauges` are those of the residual's correlations, for all features, or upper bounds of them; `own` is the penalty
    of the point's rows, where it is known.
    """
    own = penalty.restrict(point.features) if own is None else own
    whole = (penalty, gauges, point.features)
    return duality_gap(loss, own, point.rows, point.at, point.products, whole)
