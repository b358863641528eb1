"""Screening along a path: balls that hold the dual optimum, tested on all features through the anchors, without a pass.

A row is zero at a strength if the gauge of its correlations stays below its threshold on the whole ball. With a
quadratic part ``1/2 <W R, W>`` too (a ridge, a graph of tasks; R positive semidefinite): where a row w of the optimum
is not zero, its correlations ``c = w R + s`` with ``<s, w> = Omega(w)`` have gauge ``>= <c, w>/Omega(w) >= 1``; so
neither the correlations nor the norms need to know of it. Single entries, though, may then be pulled away from zero by
their neighbours: with a graph they are not tested.

Rows are tested wherever they are. Single entries, where the penalty has an l1 part, are tested in the rows that carry
weight: those are the rows in which a solver spends its time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..design import Cover, Reach, Region, Rejection
from ..losses import Evaluation
from ..penalties import RowPenalty
from ..screening.rules import Rule
from ..screening.state import Ball, Cut, DualState
from ..solvers.working import Shrink
from .pair import Pair, Point
from .problem import Problem

Array = np.ndarray[Any, Any]

_SHORTER = 0.5  # than the mean under a row metric no column is taken to be
_PACKED_DIGITS = 1e-6
_TYPICAL_GAP = 10.0  # times the goal: gaps at which a value is screened while it is solved


class Sieve:
    """Which rows are certainly zero at a strength, before and during its solve.

    - `problem`: Its anchors stand at the last dual point; the first one is the residual of W = 0.
    - `rules`: Each gives a ball; a feature takes the smallest of its bounds.
    - `ledger`: Where rejections are kept. Its gauges are those of the pairs that are judged.
    """

    def __init__(self, problem: Problem, rules: Sequence[Rule], columns: Any, ledger: Any) -> None:
        self.rules = rules
        self.safe = all(rule.safe for rule in rules)
        self._problem, self._design, self._loss = problem, problem.design, problem.loss
        self._columns, self._anchors, self._ledger = columns, problem.anchors, ledger
        self._undecided = 1.0  # part of the features that the last screening before a value has left
        self._targets = np.empty(0, dtype=np.int64), np.empty((0, self._design.n_tasks))
        self._last: tuple[Pair, float, list[Ball]] | None = None
        self._cut = self._first_cut() if problem.loss.squared else None
        # What the cut ball of a loss with outliers is about; for the squared loss it is the residual of W = 0.
        self._clipped = problem.loss.clipped
        self._target = problem.loss.target if self._clipped else problem.loss.null.residual
        if self._clipped and not all(rule.of_loss for rule in rules):
            problem.anchors.pin(self._target, problem.penalty)

    def _first_cut(self) -> Cut | None:
        """At W = 0 the feature that pulls hardest stands in for the solution (mathematics 2.5)."""
        hardest = self._problem.penalty.whole(np.array([self._problem.hardest()]))
        penalty = self._problem.penalty.restrict(hardest)
        steepest = penalty.steepest(self._design.correlate(self._loss.null.residual, hardest))
        if steepest is None or not len(steepest[0]):
            return None
        hardest = hardest[steepest[0]]
        image = self._columns.combine(self._columns.positions(hardest), steepest[1])
        return Cut(hardest, steepest[1], image, np.empty((0, self._design.n_tasks)))

    # -- rows -----------------------------------------------------------------------------------------------------

    def before(
        self, pair: Pair, lam: float, penalty: RowPenalty, about: Array, promising: tuple[float, float, int]
    ) -> int:
        """Reject rows that are zero at a new strength, from the pair of the last one; returns how many. `about` and
        `promising` are the next requests to the ledger."""
        reaches = self._reaches(pair, lam, penalty) if self.safe else []
        proven, _ = self._ledger.reject(Rejection(reaches, penalty, self._kept(pair), about, promising))
        if not self.safe:
            rejected = self._rejected_by_products(pair, lam, penalty)
            self._ledger.drop(rejected)
            proven = len(rejected)
        self.rules[0].sequential_counts.append(proven)
        self._undecided = 1.0 - proven / max(self._design.n_features, 1)
        return proven

    def _rejected_by_products(self, pair: Pair, lam: float, penalty: RowPenalty) -> Array:
        """The same as papers have it: products of each ball's centre with all columns, and the maximum over the ball
        itself, where bounds from past passes would stand in for both."""
        rejected = np.zeros(self._design.n_features, dtype=bool)
        for ball in self._pair_balls(pair, lam, penalty):
            centre = ball.residual_coef * pair.dual.at.residual + ball.y_coef * self._target
            if ball.cut_coef and self._cut is not None:
                centre = centre + ball.cut_coef * self._cut.image
            products, norms = self._design.correlate(centre), self._design.norms()
            rejected |= penalty.inactive(penalty.row_reach(products, 0.0, norms, ball.radius))
        rejected[self._kept(pair)] = False
        return np.flatnonzero(rejected)

    def during(self, pair: Pair, penalty: RowPenalty, about: Array | None = None) -> int:
        """The same at the strength being solved, from a pair reached on the way; returns how many more."""
        reaches, about = self._reaches(pair, pair.lam, penalty), pair.primal.features if about is None else about
        proven, fresh = self._ledger.reject(Rejection(reaches, penalty, self._kept(pair), about), more=True)
        self.rules[0].dynamic_counts.append(proven)
        return fresh

    def lookahead(
        self, pair: Pair, lam: float, penalty: RowPenalty, promising: tuple[float, float, int]
    ) -> Rejection | None:
        """The request that `before` would make of the ledger; None if that takes a pass first."""
        if any(ball.cut_coef for ball in self._pair_balls(pair, lam, penalty)):
            return None
        reaches = list(self._reaches(pair, lam, penalty))
        return Rejection(reaches, penalty, self._kept(pair), pair.primal.features, promising)

    def _kept(self, pair: Pair) -> Array:
        """Features that are not to be rejected, whatever the balls say."""
        free = self._design.unpenalised
        if self.safe:
            return free
        return np.concatenate([free, pair.dual.features])  # the solution itself contradicts it

    def _reaches(self, pair: Pair, lam: float, penalty: RowPenalty) -> Iterator[Reach]:
        """Balls that could reject something, one after another: a cut may need one more anchor, of which balls before
        it do not know."""
        for ball in self._pair_balls(pair, lam, penalty):
            lengths = None if ball.metric is None else self._problem.metric.lengths(ball.metric)
            if not self._hopeful(ball, lengths, lam):
                continue
            cover = None if ball.metric is None or lengths is None else self._problem.metric.cover(ball.metric)
            verb, arguments = self._question(ball, penalty, cover, pair.dual.at.leak)
            sharper = None
            # What was measured at the centre may be sharper than what the anchors know of it.
            if penalty.euclid is not None and not ball.y_coef and not ball.cut_coef and ball.vector is None:
                moved = ball.radius + self._rounding(ball, pair.dual.at)
                sharper = ball.residual_coef * (pair.lam / lam), moved
            yield Reach(verb, arguments, sharper)

    def _hopeful(self, ball: Ball, lengths: Array | None, lam: float) -> bool:
        """Whether the ball could reject anything if its centre were zero; `lengths` are about those of columns of norm
        1 under its metric."""
        least = 1.0
        if lengths is not None:
            least = _SHORTER * float(np.min(lengths))
        elif ball.stretch is not None:
            least = float(np.min(ball.stretch if ball.slack is None else ball.stretch[ball.slack == 0.0]))
        return bool(ball.radius * least * self._ledger.least < lam)

    def _question(
        self, ball: Ball, penalty: RowPenalty, cover: Cover | None, leak: Array | None
    ) -> tuple[str, tuple[Any, ...]]:
        """The method of shards that bounds over a ball, and its arguments but for the penalty; `leak` is that of the
        dual point."""
        anchors = self._anchors
        if ball.vector is not None:
            centre = anchors.express(ball.vector)
            if ball.slack is not None:
                centre = centre.loosened(ball.slack)
            if ball.metric is not None and leak is not None:
                centre = centre.loosened(leak)
            if cover is not None:
                centre = centre.loosened(self._problem.metric.drift(ball.vector))
        elif ball.cut_coef and self._cut is not None:
            # W = 0: one more pass, for the image of the cut, which the next solutions are not far from
            position = anchors.position_of(self._cut.image)
            if position is None:
                anchors.remember(self._cut.image, penalty)
                position = len(anchors) - 1
            anchors.stand_at(0)
            centre = anchors.anchor(0).scaled(ball.residual_coef + ball.y_coef)
            centre = centre + anchors.anchor(position).scaled(ball.cut_coef)
        elif ball.y_coef and self._clipped:
            centre = anchors.current.scaled(ball.residual_coef) + anchors.anchor(1).scaled(ball.y_coef)
        else:
            return anchors.ball_question(ball.residual_coef, ball.y_coef, penalty, ball.radius)
        return "bound", (centre, Region(ball.radius, ball.stretch, cover))

    def before_reading(self, at: Evaluation, goal: float) -> None:
        """All columns are about to be read, for the certificate of a point: their norms under its row metric come along
        where that pays."""
        if any(rule.of_loss for rule in self.rules):
            metric = self._loss.metric(at, 1.0, self._loss.floored_gap(_TYPICAL_GAP * goal))
            if metric is not None:
                self._problem.metric.before_reading(metric, self._undecided)

    # -- balls ----------------------------------------------------------------------------------------------------

    def _pair_balls(self, pair: Pair, lam: float, penalty: RowPenalty) -> list[Ball]:
        """The rules' balls at a strength, from a pair; the last ones are kept."""
        if self._last is not None and self._last[0] is pair and self._last[1] == lam:
            return self._last[2]
        gap, scale = pair.dual_gap(self._loss, penalty, lam)
        balls = self._balls(pair.dual, pair.lam, lam, penalty, gap, scale)
        self._last = pair, lam, balls
        return balls

    def _balls(
        self, point: Point, point_lam: float, lam: float, penalty: RowPenalty, gap: float, scale: float
    ) -> list[Ball]:
        """Balls that hold the dual optimum at lam, from a point obtained at another strength: `gap` and `scale` are
        those of the point with its own residual at lam."""
        nothing = np.empty((0, self._design.n_tasks))
        smooth, coupling = self._loss.smoothness, penalty.coupling
        outliers, share = self._loss.outliers(point.at) if self._clipped else None, 1.0
        if outliers is not None:  # all of it in units in which the squares have the factor 1/2
            share, outliers = smooth, (smooth * outliers[0], smooth * outliers[1])
        state = DualState(
            y=self._target,
            residual=point.at.residual,
            correlations=nothing,
            norms=nothing,
            lam=point_lam,
            features=point.features,
            rows=point.rows,
            positive=penalty.positive,
            ridge_ratio=share * penalty.ridge / lam,
            coupled=None if coupling is None else lambda rows: share * coupling.quadratic(rows),
            squared=self._loss.squared,
            smoothness=smooth,
            gap=gap,
            dual_scale=scale,
            gap_lam=lam,
            cut=self._cut,
            norm=lambda features, rows: share * penalty.restrict(features).value(rows),
            outliers=outliers,
        )
        found = [
            rule.ball_of(self._loss, point.at, scale, gap) if rule.of_loss else rule.ball(state, lam)
            for rule in self.rules
        ]
        return [ball for ball in found if ball is not None]

    def _rounding(self, ball: Ball, at: Evaluation) -> float:
        """How far rounding can move the correlations of a ball's centre, for a column of norm 1."""
        size = abs(ball.residual_coef) * float(np.linalg.norm(at.residual))
        size += abs(ball.y_coef) * float(np.linalg.norm(self._target))
        if ball.vector is not None:
            size += float(np.linalg.norm(ball.vector))
        return self._design.rounding * size

    def _around(
        self, ball: Ball, at: Evaluation, products: Array, features: Array, norms: Array
    ) -> tuple[Array, Array, Array] | None:
        """Of a ball, for some features with these column norms, given the products of the residual: correlations of
        its centre, what they may be off, and how far they move with its radius; None if they are unknown."""
        if ball.vector is not None:
            centre = np.asarray(self._columns.correlate(ball.vector, self._columns.positions(features)))
        elif ball.cut_coef:
            return None
        else:
            centre = ball.residual_coef * products
            if ball.y_coef:
                centre = centre + ball.y_coef * self._target_products(features)
        errors = self._rounding(ball, at) * norms
        if ball.slack is not None:
            errors = errors + norms * ball.slack
        if ball.metric is not None and at.leak is not None:
            errors = errors + norms * at.leak
        if ball.stretch is None:
            return centre, errors, norms
        reach = norms * ball.stretch
        if ball.metric is not None and self._problem.metric.lengths(ball.metric) is not None:
            under = self._columns.norms_under(ball.metric, self._columns.positions(features))
            if under is not None:
                # beside nuisance columns what is packed of a column is known to so many digits of the column
                reach = np.minimum(reach, under + _PACKED_DIGITS * reach)
        return centre, errors, reach

    def _target_products(self, features: Array) -> Array:
        """Correlations of the target with some features: those of the last call are kept."""
        known, products = self._targets
        missing = np.setdiff1d(features, known)
        if len(missing):
            more = self._columns.correlate(self._target, self._columns.positions(missing))
            order = np.argsort(np.concatenate([known, missing]))
            known = np.concatenate([known, missing])[order]
            products = np.vstack([products, more])[order]
        products = products[np.searchsorted(known, features)]
        self._targets = features, products
        return products

    # -- entries, and rows inside a solver ------------------------------------------------------------------------

    def zero_entries(self, pair: Pair, lam: float, penalty: RowPenalty) -> Array:
        """Entries of the pair's rows that are zero in every solution at a strength: |m_jt| + R a_jt < l1_j."""
        point = pair.dual
        mask = np.zeros(point.rows.shape, dtype=bool)
        if not len(point.features):
            return mask
        own, norms = penalty.restrict(point.features), self._design.norms(point.features)
        for ball in self._pair_balls(pair, lam, penalty):
            around = self._around(ball, point.at, point.products, point.features, norms)
            if around is None:
                continue
            centre, errors, stretched = around
            found = own.zero_entries(centre, np.max(errors, axis=1), stretched, ball.radius)
            if found is not None:
                mask |= found
        self.rules[0].entry_counts.append(int(np.count_nonzero(mask)))
        return mask

    def shrinker(self, lam: float, working: Array, penalty: RowPenalty) -> Shrink:
        """Dynamic screening for a solver that works on all surviving rows."""
        alive = np.arange(len(working))
        norms = self._design.norms(working)
        least_upper = np.full(len(working), np.inf)  # a bound at the optimum stays true: the best one is kept

        def shrink(
            rows: Array, at: Evaluation, products: Array, gap: float, scale: float, least: float
        ) -> Array:
            nonlocal alive, least_upper
            own, here = working[alive], penalty.restrict(working[alive])
            live = here.whole(np.flatnonzero(rows.any(axis=1)))
            point = Point(own[live], rows[live], at, products[live])
            for ball in self._balls(point, lam, lam, penalty, gap, scale):
                around = self._around(ball, at, products, own, norms[alive])
                if around is not None:
                    least_upper = np.minimum(least_upper, here.row_reach(*around, ball.radius))
            gone = here.inactive(least_upper)
            if np.count_nonzero(gone) < least * len(gone):
                gone[:] = False
            self.rules[0].dynamic_counts.append(int(np.count_nonzero(gone)))
            alive, least_upper = alive[~gone], least_upper[~gone]
            return gone

        return shrink
