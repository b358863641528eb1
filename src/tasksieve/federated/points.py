r"""A point s and the sums of its answers: what they say at every value of a path.

With strengths lam_j = lam weight_j, sums over tasks z_j = sum_t c_jt^2 and a = s/(1 + ridge s) in the place of s,

    P(W) = sum_t F_t + sum_j lam_j a_j sqrt(z_j) + ridge/2 sum_j a_j^2 z_j,               W_j = a_j c_j
    Phi(a) = phi(a) + 1/2 sum_j lam_j^2 a_j / (1 - ridge a_j)
    D(k) = -F*(-k u) - k^2/2 ridge sum_j a_j^2 z_j,    k (1 - ridge a_j) ||c_j|| <= lam_j for all features,

the last being the dual point k (u, -sqrt(ridge) W). None of the sums depends on lam.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..solvers.newton import DAMPING, bounded_direct, moved, sides
from .answer import GRID, Answer
from .errors import FederatedError
from .question import Question

Array = np.ndarray[Any, Any]

_SCALES = GRID[::-1]  # ascending
_FARTHEST = 100.0  # times s, or what s would be were columns orthogonal and the loss as curved as it can be
_JITTER = 1e-9  # of the mean diagonal: second derivatives travel with about nine digits


@dataclass(frozen=True, eq=False)
class Common:
    """What the coordinator alone knows of the problem.

    Attributes
    ----------
    weights : array of shape (n_features,)
        Of the features in the penalty; 0: not penalised, a matter of the sites.
    ridge : float
        In the units of the sum over tasks.
    squared : bool
        Whether the loss is the squared one: its dual values follow from y'u and u'u.
    smoothness : float
        L of the loss; infinite: nothing is screened.
    """

    weights: Array
    ridge: float = 0.0
    squared: bool = True
    smoothness: float = 1.0


class Point:
    """A question and the sum of its answers."""

    def __init__(self, number: int, question: Question, answer: Answer, common: Common) -> None:
        if answer.z is None or answer.levels is None or (answer.dual is None and not common.squared):
            raise FederatedError("answer", "a sum at a point lacks numbers that were asked for")
        self.number, self.question, self.common = number, question, common
        self.answer = replace(answer, levels=None, hessian=None)  # these may be large: they are kept once, below
        self._duals = None if answer.dual is None else answer.dual[::-1]
        ridge, s = common.ridge, question.s
        self.features, self.s, self.l1 = question.features, s, question.l1
        self.weights = common.weights[self.features]
        z = np.maximum(answer.z, 0.0)
        self.sizes = np.sqrt(z)
        self.norms = s * self.sizes
        self.ridge_square = ridge * float(s * s @ z)
        self.square = answer.rr + self.ridge_square
        self.held_out = answer.held_out
        self._norm = float(self.weights @ self.norms)
        self._cost = float(np.square(self.weights) @ (s / (1.0 - ridge * s)))
        #: levels that were asked for, from above: of the features themselves they are known in finer units
        self.levels = np.sqrt(np.maximum(answer.levels, 0.0))
        places, known = self._places(self.features)
        self.levels[places[known]] = self.sizes[known]
        #: rows in use count with their ridge
        self.inner = (1.0 - ridge * s) * self.sizes
        #: second derivatives, of its own or borrowed
        self.hessian, self._borrowed = answer.hessian, False
        #: bounds of what levels count with, of all features: known while the point is new
        self.bounds: Array | None = None

    def looked_at(self) -> Array | slice:
        """Features whose levels are known."""
        return slice(None) if self.question.levels is None else self.question.levels

    def _places(self, features: Array) -> tuple[Array, Array]:
        """Where features stand among the levels, and which of them do."""
        looked = self.question.levels
        if looked is None:
            return features, np.ones(len(features), dtype=bool)
        places = np.minimum(np.searchsorted(looked, features), len(looked) - 1)
        return places, looked[places] == features if len(looked) else np.zeros(len(features), dtype=bool)

    def levels_at(self, features: Array) -> Array | None:
        """Levels of some features; None where one is not known."""
        places, known = self._places(features)
        return self.levels[places] if known.all() else None

    def lends(self, features: Array, used: Array) -> bool:
        """Whether its second derivatives do for a step from where a step from here leads: its own, and of all these
        features, if the same are in use. They direct a step and prove nothing."""
        own = self.hessian is not None and not self._borrowed
        known = own and bool(np.isin(features, self.features, assume_unique=True).all())
        return known and np.array_equal(used, self.features[self.s > 0.0])

    def borrow(self, near: Point) -> None:
        """Take second derivatives from a point nearby that has the same features, or more."""
        assert near.hessian is not None
        places = np.searchsorted(near.features, self.features)
        self.hessian, self._borrowed = near.hessian[np.ix_(places, places)], True

    def bound(self, bounds: Array | None) -> None:
        """Take bounds of the levels that were not asked for; None: there are none."""
        looked = self.looked_at()
        found = np.full(len(self.common.weights), np.inf) if bounds is None else bounds
        found[looked] = np.minimum(found[looked], self.levels)
        found[self.features] = self.inner
        self.bounds = found

    def multiple(self, cost: float) -> tuple[float, float]:
        """The multiple k of the residual u that is the best dual point of the sites' problem at another s, and its
        value -F*(-k u) - k^2/2 cost, where `cost` is sum_j s_j ||c_j||^2."""
        if self.common.squared:
            scale = max(self.answer.yr, 0.0) / max(self.answer.rr + cost, 1e-300)
            scale = min(scale, 1.0) if self.l1 else scale
            return scale, scale * (self.answer.yr - 0.5 * scale * (self.answer.rr + cost))
        assert self._duals is not None
        values = self._duals - 0.5 * np.square(_SCALES) * cost
        best = int(np.argmax(values))
        return float(_SCALES[best]), float(values[best])

    def expected(self, s: Array) -> float:
        """What phi will be at another s on the same features, from second derivatives."""
        change = s - self.s
        curved = 0.0 if self.hessian is None else 0.5 * float(change @ self.hessian @ change)
        return self.answer.phi - 0.5 * float(np.square(self.sizes) @ change) + curved

    def primal(self, lam: float) -> float:
        return self.answer.loss + lam * self._norm + 0.5 * self.ridge_square

    def phi(self, lam: float, l1: float) -> float:
        """Phi; from a point with another strength on entries an estimate, sum_jt |w_jt| taken for 1.5 sum_j ||w_j||."""
        shift = 0.0 if l1 == self.l1 else 1.5 * (l1 - self.l1) * float(np.sum(self.norms))
        return self.answer.phi + shift + 0.5 * lam * lam * self._cost

    def top(self, open_: Array, looked: Array | slice = slice(None)) -> float:
        """The largest level, or bound of one, in units of its feature's weight, over features that are not known to be
        zero: all or some."""
        assert self.bounds is not None
        alive = open_[looked]
        return float(np.max(self.bounds[looked][alive] / self.common.weights[looked][alive], initial=0.0))

    def dual(self, lam: float, top: float) -> tuple[float, float]:
        """The largest dual value of a multiple of the residual, and the multiple."""
        limit = lam / top if top > 0.0 else math.inf
        if self.common.squared:
            best = self.answer.yr / self.square if self.square > 0.0 else 1.0
            scale = max(min(best, limit, 1.0 if self.l1 else math.inf), 0.0)
            return scale * self.answer.yr - 0.5 * scale * scale * self.square, scale
        scale = min(1.0, limit)
        if scale < _SCALES[0]:
            return -math.inf, scale
        # chords lie below a concave function
        assert self._duals is not None
        value = float(np.interp(scale, _SCALES, self._duals))
        return value - 0.5 * scale * scale * self.ridge_square, scale

    def moved(self, lam: float, open_: Array, failures: int, lengths: Array | None = None) -> Array:
        """s after a Newton step at lam, on the same features; those that are not `open_` become 0. In the secular form,
        or, after failures, the plain form with more and more damping (`solvers.newton`).

        `lengths` bound second derivatives, ||c_j||^2 length_j^2: where the loss is flat at a point there may be none,
        and a step has no end but that which they give it."""
        s, ridge, hessian = self.s, self.common.ridge, self.hessian
        stay = (self.sizes > 0.0) & open_[self.features]
        chosen, leaving = np.flatnonzero(stay), np.flatnonzero(~stay & (self.norms > 0.0))
        change = np.where(stay, 0.0, -s)
        if hessian is None or len(chosen) == 0:
            return s + change
        size, a, strength = self.sizes[chosen], s[chosen], lam * self.weights[chosen]
        m = hessian[np.ix_(chosen, chosen)] / np.outer(size, size)
        diagonal, right = sides(size, a, strength, ridge, plain=failures > 0)
        share = DAMPING[min(failures, len(DAMPING) - 1)] if failures else _JITTER
        diagonal = diagonal + share * float(np.mean(np.diag(m) + diagonal))
        if lengths is not None:
            diagonal = diagonal + _JITTER * np.square(lengths[self.features[chosen]])
        m[np.diag_indices(len(chosen))] += diagonal
        if len(leaving):
            right = right + hessian[np.ix_(chosen, leaving)] @ s[leaving] / size
        change[chosen] = bounded_direct(m, right, -a * size) / size
        if lengths is not None:
            far = size / (strength * np.maximum(np.square(lengths[self.features[chosen]]), 1e-300))
            change[chosen] = np.minimum(change[chosen], _FARTHEST * np.maximum(a, far))
        return moved(s, 0.5 ** max(0, failures - 1) * change, ridge)
