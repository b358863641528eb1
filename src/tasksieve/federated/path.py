r"""A certified path from sums over sites.

    min_W  sum_t F_t(X_t w_t) + lam sum_j weight_j ( ||w_j|| + l1_ratio ||w_j||_1 ) + ridge/2 ||W||^2

Answers do not depend on lam: a point s that was asked about serves every value. So all values are followed in the same
rounds, from a coarse grid to the whole one, and each takes a Newton step from whichever point is best for it. There is
no line search: a step that failed is not the best point, and the next try from its base is shorter. The number of
rounds hardly grows with that of values. (With entries penalised too the strength on these is part of a question, and a
point serves the value it was asked for; steps still start at the points of other values.)

A gap counts only if levels and rejections *at that value* together cover all features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..losses import Loss, as_loss
from ..messages import value_error
from .anchors import Around
from .answer import HELD_OUT, Answer, norm_bounds
from .balls import FLOOR, gap_spheres, outside_spheres
from .points import Common, Point
from .question import Question

Array = np.ndarray[Any, Any]

STRIDE = 16  # of the first grid, where it has four values or more; each further one has half of it
ROUGH = 3e-2  # of the null loss: the next grid begins once all gaps of this one are as small
BEGUN = 2  # grids that may begin in one round, as long as no more than
MANY = 45  # values are asked about: steps to the values between are shorter once these have been
STUBBORN = 4  # questions after which a value holds up the next grid no longer
WINDOW = 50  # questions of one problem in a round
NEAR = 0.85  # of its strength: a feature with such a level gets second derivatives
SMALL = 1e-2  # of the null loss: once the gap is below,
NEARER = 0.95  # it takes this level
LAST = 10.0  # times the tolerance: from a gap below, a step should be the last, and needs no second derivatives
ENTERING = 100  # features that may enter at once, unless more are in use
SURE = 0.97  # of its strength: a feature whose bound is below is not asked about
FORETOLD = 1.2  # times the distance that is expected of an anchor: bounds before a question is asked
RARELY = 3.0  # levels hardly ever change by more than this part of what they could by that distance
BETWEEN = 3  # values whose anchor is that of a neighbour in the same round
LIKELY = 2000  # levels that are asked for far from any optimum
PATIENCE = 12  # questions at one value that do not halve its gap: double precision or the words' units end there


@dataclass(eq=False)
class Value:
    """One strength of the penalty: what is known of its optimum. All in the units of the sum over tasks."""

    lam: float
    l1: float
    open: Array  # features that are not known to be zero
    gap: float = math.inf
    objective: float = math.inf
    best_dual: float = -math.inf
    rough: float = math.inf  # gap on the features that were asked about
    point: Point | None = None
    failures: dict[int, int] = field(default_factory=dict)  # by the number of a point: steps from it
    asked: int = 0
    idle: int = 0  # questions since the gap was halved
    goal: float = math.inf  # half of the gap at that time
    solved: bool = False  # nothing is asked about it any more
    # the solution, once there is one
    features: Array = field(default_factory=lambda: np.empty(0, np.int64))
    s: Array = field(default_factory=lambda: np.empty(0))
    row_norms: Array = field(default_factory=lambda: np.empty(0))
    held_out: Array = field(default_factory=lambda: np.zeros(HELD_OUT))

    def keep(self) -> None:
        """Take the solution from its point."""
        point = self.point
        if point is not None:
            used = np.flatnonzero(point.norms > 0.0)
            self.features, self.s, self.row_norms = point.features[used], point.s[used], point.norms[used]
            if point.held_out is not None:
                self.held_out = point.held_out


class FederatedPath:
    r"""Solutions for decreasing strengths of a penalty, each with a duality gap over all features.

    .. math:: \sum_t F_t(X_t w_t) + \lambda \sum_j u_j \left(\|w_j\| + \rho \|w_j\|_1\right)
              + \frac{\text{ridge}}{2} \|W\|_F^2

    It asks nobody: `first` and `questions` say what to ask, `begin` and `take` get the sums of the answers. Everything
    is in the units of that sum; ``alpha = lam/unit``.

    Parameters
    ----------
    n_features : int
    lams : array, decreasing, optional
        Strengths; by default `n_values` of them, from the smallest that selects nothing to `eps` times that.
    n_values : int
    eps : float
    tol : float
        Stop where the gap is at most ``tol`` times the null loss.
    problem : str
        The rows that it is about.
    weights : array of shape (n_features,), optional
        u: of the features in the penalty; 0 for those that sites leave unpenalised.
    ridge : float
    l1_ratio : float
        rho. Feature weights are refused beside it: a question has one strength for all entries.
    loss : str or Loss
        That of the sites. Features are rejected before all is known where its derivative is Lipschitz. Where a loss is
        nearly made of straight lines (quantile) steps may end before the tolerance; gaps are true all the same.
    norms : array of shape (n_features,), optional
        Upper bounds of the columns' norms at all sites. By default they are asked for.
    held_out : bool
        Also collect the loss of the rows that this problem leaves out.
    leader : FederatedPath, optional
        A path of all rows, from which this one of some of them takes bounds of the norms and, unless `own_values`, the
        strengths. It must begin before.
    own_values : bool
        Strengths relative to the largest of this problem.
    part : float
        Strengths are this part of the leader's: that of the rows, where ``alpha`` is to be the same. It may be set
        until the leader's strengths are known.

    Attributes
    ----------
    values : list of Value
    null_loss, lam_max : float
    """

    def __init__(
        self,
        n_features: int,
        *,
        lams: Any = None,
        n_values: int = 50,
        eps: float = 0.05,
        tol: float = 1e-6,
        problem: str = "all",
        weights: Any = None,
        ridge: float = 0.0,
        l1_ratio: float = 0.0,
        loss: str | Loss = "squared",
        norms: Any = None,
        held_out: bool = False,
        leader: FederatedPath | None = None,
        own_values: bool = False,
        part: float = 1.0,
    ) -> None:
        weights = np.ones(n_features) if weights is None else np.asarray(weights, dtype=np.float64)
        if weights.shape != (n_features,) or not np.all(np.isfinite(weights) & (weights >= 0.0)):
            raise value_error(f"weights must be {n_features} numbers >= 0.")
        if not weights.any():
            raise value_error("weights are 0 for all features: there is nothing to penalise.")
        if l1_ratio and len(np.unique(weights[weights > 0.0])) > 1:
            raise value_error("feature weights beside a strength on single entries are not possible with sites.")
        if not (ridge >= 0.0 and l1_ratio >= 0.0 and tol > 0.0 and 0.0 < eps < 1.0 and n_values >= 1):
            raise value_error("ridge and l1_ratio must be >= 0, tol > 0, eps between 0 and 1, n_values at least 1.")
        given = self._given = None if lams is None else np.atleast_1d(np.asarray(lams, dtype=np.float64))
        if given is not None and (not len(given) or not np.all(given > 0.0) or np.any(np.diff(given) >= 0.0)):
            raise value_error("lams must be decreasing positive numbers.")
        self.n_features, self.tol, self.problem, self.held_out = n_features, tol, problem, held_out
        self.n_values, self.eps, self.l1_ratio = n_values, eps, l1_ratio
        known = as_loss(loss)
        self.common = Common(weights, float(ridge), known.squared, float(known.smoothness))
        self.part = part
        self._leader, self._follows = leader, leader is not None and lams is None and not own_values
        self.values: list[Value] = []
        self._norms = None if norms is None else np.asarray(norms, dtype=np.float64)
        self._points: list[Point] = []
        self._lengths: Array | None = None  # of columns, where features can be rejected
        self._count = 0
        #: with the values that they are for, and the point that they start from
        self._asked: list[tuple[Question, list[int], Point | None]] = []

    # -- what to ask, and what the answers say ---------------------------------------------------------------------

    def first(self) -> list[Question]:
        """The empty model."""
        return [Question(self.problem, kind="null", held_out=self.held_out, dual=not self.common.squared)]

    def begin(self, answers: Sequence[Answer]) -> None:
        """Take the answers to `first`."""
        null = self._null = self._point(self.first()[0], answers[0])
        #: what objectives lack to be those of the loss (`DataLoss.constant`)
        self.constant = 0.0 if self.common.squared else null.answer.yr
        self.null_loss = null.answer.loss  # what gaps are relative to: with the constant it may be below 0
        self._penalised = self.common.weights > 0.0
        self._measure(self._norms)
        null.bound(None)
        self._null_sizes = null.levels
        self.lam_max = null.top(self._penalised) / (1.0 + self.l1_ratio)
        if self._given is not None:
            self._start(self._given)
        elif not self._follows and not self.l1_ratio:
            self._start(self.lam_max * np.geomspace(1.0, self.eps, self.n_values))

    def questions(self) -> list[Question]:
        """Of the next round; none: all values are solved."""
        if not self.values and self._follows and self._leader is not None:
            if not self._leader.values:
                return []
            self._start(self.part * self._leader.lams)
        if self.values:
            self._asked = self._steps()
        else:
            self._asked = [(question, [], None) for question in self._largest_strength()]
        found = [question for question, _, _ in self._asked]
        # no step has begun yet when the columns' norms arrive: those of the first round need units, which are not known
        missing = self._norms is None and self._leader is None and math.isfinite(self.common.smoothness)
        return [*found, Question(self.problem, kind="norms")] if found and missing else found

    def take(self, answers: Sequence[Answer]) -> None:
        """Take the sums of the answers to `questions`."""
        *more, last = answers
        if last.norms is not None:
            answers = more
            self._measure(norm_bounds(last))
        elif self._norms is None and self._leader is not None:  # fewer rows: columns are no longer
            self._measure(self._leader.norms)
        new = [self._point(question, answer) for (question, _, _), answer in zip(self._asked, answers, strict=True)]
        if not self.values:
            self._narrow(new)
            return
        for value in self.values:
            value.goal = min(value.goal, 0.5 * value.gap)
        self._points += new
        for point, (question, _, base) in zip(new, self._asked, strict=True):
            self._bound(point)
            if base is not None and not question.hessian:
                point.borrow(base)
        self._weigh(new)
        for point in new:
            point.bounds = None
        asked = [self.values[k] for k in sorted({k for _, targets, _ in self._asked for k in targets})]
        moved = any(value.gap <= value.goal for value in asked)
        for value in asked:
            value.asked += 1
            # far from its optimum a value waits for its neighbours: their points are what it will start from
            waits = moved and value.gap > SMALL * self.null_loss
            value.idle = 0 if waits or value.gap <= value.goal else value.idle + 1
            if not value.solved and value.idle >= PATIENCE:
                self._finish(value)
        self._forget()

    def final_questions(self, kind: str = "part") -> list[Question]:
        """The solutions themselves as questions, one a value."""
        heaviest = float(self.common.weights.max())
        return [
            Question(
                self.problem, v.features, v.s, l1=v.l1, hessian=False, held_out=self.held_out,
                kind=kind, reach=(v.lam * heaviest) ** 2,
            )
            for v in self.values
        ]

    # -- the solutions ---------------------------------------------------------------------------------------------

    @property
    def norms(self) -> Array | None:
        """Bounds of the columns' norms at all sites."""
        return self._norms

    @property
    def lams(self) -> Array:
        """The strengths."""
        return np.array([value.lam for value in self.values])

    @property
    def objectives(self) -> Array:
        """The objective at each solution."""
        return np.array([value.objective for value in self.values]) + self.constant

    @property
    def gaps(self) -> Array:
        """Bounds of objective minus optimum."""
        return np.array([value.gap for value in self.values])

    @property
    def converged(self) -> Array:
        """Whether the gap came under the tolerance."""
        return self.gaps <= self.tol * self.null_loss

    def features(self, k: int) -> Array:
        """Features that value k selects."""
        return self.values[k].features

    def row_norms(self, k: int) -> Array:
        """||w_j|| over all tasks of all sites, of the selected features."""
        return self.values[k].row_norms

    # -- beginning -------------------------------------------------------------------------------------------------

    def _point(self, question: Question, answer: Answer) -> Point:
        self._count += 1
        if question.kind == "point" and _is_null(question):  # its levels are those of the empty model
            levels = np.square(self._null.levels)
            question = replace(question, levels=None)
            answer = replace(answer, levels=levels)
        return Point(self._count, question, answer, self.common)

    def _measure(self, norms: Array | None) -> None:
        """Take bounds of the columns' norms, which allow to reject features."""
        smoothness = self.common.smoothness
        if norms is not None and math.isfinite(smoothness):
            self._norms, self._lengths = norms, np.sqrt(smoothness * np.square(norms) + self.common.ridge)

    def _start(self, lams: Array) -> None:
        self.values = [Value(float(lam), float(lam) * self.l1_ratio, self._penalised.copy()) for lam in lams]
        count, self._grids = len(lams), []
        stride = STRIDE
        while stride > 1 and 3 * stride > count:
            stride //= 2
        while stride >= 1:
            self._grids.append(sorted({min(count - 1, k) for k in range(stride - 1, count + stride - 1, stride)}))
            stride //= 2
        self._points = [self._null]
        self._weigh([self._null])

    def _largest_strength(self) -> list[Question]:
        """The empty model with entries penalised, by strengths from the largest that may be needed downwards: that at
        which ||soft(c_j, l1_ratio lam)|| = lam_j for the first feature is at most ||c_j||/(1 + l1_ratio)."""
        levels = np.flatnonzero(self._null_sizes >= 0.2 * self._null_sizes.max())
        dual = not self.common.squared
        return [
            Question(self.problem, levels=levels, l1=float(lam) * self.l1_ratio, hessian=False, dual=dual)
            for lam in self.lam_max * np.geomspace(1.0, 0.25, 9)
        ]

    def _narrow(self, points: Sequence[Point]) -> None:
        """The largest strength. ||soft(c, l1)|| is convex in l1, so chords lie above it: where they cross lam_j is an
        upper bound."""
        weights = self.common.weights[points[0].question.levels]
        above = [point.levels / weights for point in points]
        lams = [point.l1 / self.l1_ratio for point in points]
        found = 0.0
        for high, low, at_high, at_low in zip(lams[:-1], lams[1:], above[:-1], above[1:], strict=True):
            crosses = (at_high <= high) & (at_low >= low)
            share = (high - at_high) / np.maximum(high - at_high + at_low - low, 1e-300)
            found = max(found, float(np.max(np.where(crosses, high + share * (low - high), 0.0), initial=0.0)))
        if found == 0.0:
            self.lam_max *= 0.25
            return
        self.lam_max = found
        self._start(found * np.geomspace(1.0, self.eps, self.n_values))

    # -- gaps and rejections ---------------------------------------------------------------------------------------

    def _weigh(self, points: Sequence[Point]) -> None:
        for value in self.values:
            if value.solved:
                continue
            own = [point for point in points if point.l1 == value.l1]
            for point in sorted(own, key=lambda point: point.primal(value.lam)):
                if self._weigh_one(point, value):
                    self._finish(value)
                    break

    def _weigh_one(self, point: Point, value: Value) -> bool:
        """Gap and rejections from a point; whether it is the solution, by a dual point of its own: that is what sites
        can prove with it (`part`)."""
        lam, null = value.lam, self.null_loss
        primal = point.primal(lam)
        if primal - value.best_dual > max(4.0 * value.gap, 0.7 * null):  # of no use here
            return False
        value_there, _ = point.dual(lam, point.top(value.open, point.looked_at()))
        value.rough = min(value.rough, max(primal - value_there, 0.0))
        dual, scale = point.dual(lam, point.top(value.open))
        value.best_dual = max(value.best_dual, dual)
        if primal < value.objective or value.point is None:
            value.objective, value.point = primal, point
        solved = primal - dual <= self.tol * null
        if solved:
            value.objective, value.point = primal, point
        value.gap = max(value.objective - value.best_dual, 0.0)
        if not solved and self._lengths is not None:
            self._reject(point, value, primal, dual, scale)
        return solved

    def _reject(self, point: Point, value: Value, primal: float, dual: float, scale: float) -> None:
        """Find features that are certainly zero at a value."""
        assert self._lengths is not None and point.bounds is not None
        common, lam, null = self.common, value.lam, self.null_loss
        places = np.flatnonzero(value.open)
        lengths, strengths = self._lengths[places], lam * common.weights[places]
        # squares of coefficients are rounded up, in units far below this share of them
        lengthened = (point.answer.rr - point.answer.sum_slack) / common.smoothness + (1.0 - 1e-9) * point.ridge_square
        apart = (1.0 - scale) ** 2 * max(lengthened, 0.0)
        spheres = gap_spheres(primal, dual, value.objective, value.best_dual, scale, apart, null)
        rejected = outside_spheres(point.bounds[places], lengths, strengths, spheres)
        value.open[places[rejected]] = False

    def _bound(self, point: Point) -> None:
        """Bounds of the levels of all features at a point that is new."""
        bounds = None
        if point.question.levels is not None and self._lengths is not None:
            phi = point.answer.phi + point.answer.sum_slack
            bounds = self._bounds(Around(self._points, point.features, point.s, point.l1, phi))
        point.bound(bounds)

    def _bounds(self, around: Around, share: float = 1.0) -> Array:
        """Bounds of levels, were they to change by that share of what they can."""
        assert self._norms is not None
        lengths = share * math.sqrt(self.common.smoothness) * self._norms
        return around.bounds(lengths, FLOOR * self.null_loss)

    def _finish(self, value: Value) -> None:
        value.keep()
        value.solved, value.point = True, None

    def _forget(self) -> None:
        """Points that no unsolved value would start from."""
        kept = {point.number for point in self._points if point.question.levels is None}  # anchors of all features
        for value in self.values:
            if not value.solved:
                kept |= {point.number for point in self._nearest(value)}
                kept |= {value.point.number} if value.point is not None else set()
        self._points = [point for point in self._points if point.number in kept]

    # -- steps -----------------------------------------------------------------------------------------------------

    def _nearest(self, value: Value) -> list[Point]:
        """The best points, of the same strength on entries if there are some."""
        own = [point for point in self._points if point.l1 == value.l1]
        return sorted(own or self._points, key=lambda point: point.phi(value.lam, value.l1))[:3]

    def _due(self) -> list[int]:
        """Values to ask about: those of the grids that have begun."""
        due: list[int] = []
        begun = 0
        for grid in self._grids:
            new = [k for k in grid if not self.values[k].solved and k not in due]
            if begun and len(due) + len(new) > MANY:
                break
            due += new
            begun += any(self.values[k].asked == 0 for k in new)
            if begun >= BEGUN or any(self._holds_up(self.values[k]) for k in grid):
                break
        return due[:WINDOW]

    def _holds_up(self, value: Value) -> bool:
        """Whether values between this one and its neighbours would start too far from their optimum."""
        return not value.solved and value.gap > ROUGH * self.null_loss and value.asked < STUBBORN

    def _steps(self) -> list[tuple[Question, list[int], Point | None]]:
        asked: list[tuple[Question, list[int], Point | None]] = []
        shared: dict[float, int] = {}  # by the strength on entries: the question at s = 0, the same for all values
        self._everywhere = math.inf
        for k in sorted(self._due(), reverse=True):
            value = self.values[k]
            base = self._base(value)
            if len(base.features) == 0 and value.l1 in shared:
                value.failures[base.number] = self._tried(value, base) + 1
                asked[shared[value.l1]][1].append(k)
                continue
            if len(base.features) == 0:
                shared[value.l1] = len(asked)
            asked.append((self._step(k, base), [k], base))
        return asked

    def _base(self, value: Value) -> Point:
        """The point to start from: the best of those that were tried least."""
        lam, nearest = value.lam, self._nearest(value)
        if value.asked == 0 and lam >= self.lam_max:  # nothing is selected there
            return self._null
        if value.point is not None and value.gap < SMALL * self.null_loss:
            return min([value.point, *nearest], key=lambda point: (self._tried(value, point), point.primal(lam)))
        return min(nearest, key=lambda point: (self._tried(value, point), point.phi(lam, value.l1)))

    def _tried(self, value: Value, point: Point) -> int:
        return value.failures.get(point.number, 0)

    def _step(self, k: int, base: Point) -> Question:
        value, weights = self.values[k], self.common.weights
        lam = value.lam
        tried = self._tried(value, base)
        value.failures[base.number] = tried + 1
        s = base.moved(lam, value.open, tried, self._lengths)
        used = base.features[s > 0.0]
        around = Around(self._points, base.features, s, value.l1, base.expected(s))
        sizes = around.guesses(base)
        # features with a level near to their strength get second derivatives, so that they can enter by the next step
        places = np.flatnonzero(value.open)
        ratio = (sizes[places] + base.l1 - value.l1) / weights[places]
        strong = np.flatnonzero(ratio >= (NEARER if value.gap < SMALL * self.null_loss else NEAR) * lam)
        room = max(ENTERING, len(used))
        if len(strong) > room:
            strong = strong[np.argsort(-ratio[strong], kind="stable")[:room]]
        features = np.union1d(used, places[strong])
        last = value.gap <= LAST * self.tol * self.null_loss and base.lends(features, used)
        full = np.zeros(self.n_features)
        full[base.features] = s
        reach = float(np.square(max(float(np.max(base.levels, initial=0.0)), lam * weights.max())))
        asked = Question(
            self.problem, features, full[features], None, value.l1, hessian=not last,
            held_out=self.held_out, dual=not self.common.squared, reach=reach,
        )
        if _is_null(asked):
            return replace(asked, levels=np.empty(0, np.int64))
        return replace(asked, levels=self._levels(k, features, around))

    def _levels(self, k: int, features: Array, around: Around) -> Array | None:
        """Features to look at: those that may be in use; far from the optimum only the likeliest of them."""
        value, weights = self.values[k], self.common.weights
        places = self._unsure(value, around, FORETOLD)
        if len(places) > LIKELY and self._everywhere - k <= BETWEEN:  # a neighbour's question will be an anchor
            places = self._unsure(value, around, FORETOLD / RARELY)
        if len(places) > LIKELY and value.rough > ROUGH * self.null_loss:
            sizes = np.zeros(self.n_features)
            for point in (self._null, *self._nearest(value)):
                looked = point.looked_at()
                sizes[looked] = np.maximum(sizes[looked], point.levels)
            ratio = sizes[places] / weights[places]
            likely = np.flatnonzero(ratio >= 0.6 * value.lam)
            if len(likely) > LIKELY:
                likely = likely[np.argsort(-ratio[likely], kind="stable")[: max(LIKELY, len(features))]]
            places = places[likely]
        places = np.union1d(places, features)
        if len(places) <= 0.6 * self.n_features:
            return places
        self._everywhere = k
        return None

    def _unsure(self, value: Value, around: Around, share: float) -> Array:
        """Features that may be in use, were levels to change by that share of what they can, as it is foretold."""
        places = np.flatnonzero(value.open)
        if self._lengths is None:
            return places
        bounds = self._bounds(around, share)[places]
        return places[bounds >= SURE * value.lam * self.common.weights[places]]


def _is_null(question: Question) -> bool:
    """Whether it is about the empty model, with second derivatives of features that may enter."""
    return not question.s.any() and not question.l1
