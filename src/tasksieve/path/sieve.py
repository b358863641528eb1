"""Screening along a path: a rule's ball, tested on all features through the anchors, without a pass over the data.

Rows are tested wherever they are. Single entries, where the penalty has an l1 part, are tested in the rows that carry
weight: those are the rows in which a solver spends its time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..design import PackedColumns
from ..losses import Evaluation, Loss
from ..penalties import RowPenalty
from ..screening.ball import zero_entries
from ..screening.polar import steepest_row
from ..screening.rules import Rule
from ..screening.state import Ball, Cut, DualState
from ..solvers.working import duality_gap
from .anchors import AnchoredCorrelations
from .problem import Problem

Array = np.ndarray[Any, Any]

_REJECT = 1.0 - 1e-9  # a bound below this is below 1 whatever rounding did


@dataclass
class Iterate:
    """A primal point with its residual, and the strength it was made for."""

    lam: float
    features: Array
    rows: Array
    at: Evaluation
    products: Array  # correlations of the residual with the support's features
    others: float  # bound on lam times the gauge of every other feature

    def gap(self, loss: Loss, lam: float, penalty: RowPenalty) -> tuple[float, float]:
        """Duality gap over all features at this or another strength, and the scale of its dual point."""
        own = penalty.restrict(self.features)
        others = self.others / lam if lam > 0.0 else np.inf
        return duality_gap(loss, own, self.rows, self.at, self.products, own.gauges, others)


class Sieve:
    """Which rows are certainly zero at a strength, before and during its solve.

    The centre of a rule's ball is a combination of the target and the last residual, so its correlations are bounded
    by those of the anchors.

    Parameters
    ----------
    problem : Problem
    rule : Rule
    packed : PackedColumns
    anchors : AnchoredCorrelations
        Its first anchor is the residual of W = 0, and it stands at the last residual.
    products : array
        Correlations of the residual of W = 0 with all features.
    """

    def __init__(
        self,
        problem: Problem,
        rule: Rule,
        packed: PackedColumns,
        anchors: AnchoredCorrelations,
        products: Array,
    ) -> None:
        self.rule = rule
        self._problem, self._design, self._loss = problem, problem.design, problem.loss
        self._packed, self._anchors = packed, anchors
        unit = problem.shape.at(1.0)
        self._penalised = unit.group + unit.l1 > 0.0
        self._lam_max = float(np.max(unit.gauges(products), initial=0.0))
        self._targets = np.empty(0, dtype=np.int64), np.empty((0, self._design.n_tasks))
        self._last_ball: tuple[Iterate, float, Ball | None] | None = None
        self._cut: Cut | None = None
        if problem.squared:
            # At W = 0 the feature that pulls hardest stands in for the solution (mathematics 2.5).
            features, rows = steepest_row(products, unit.group, unit.l1, problem.shape.positive)
            if len(features):
                image = packed.combine(packed.places(features.astype(np.int64)), rows)
                self._cut = Cut(features, rows, image, np.empty((0, self._design.n_tasks)))

    def before(self, last: Iterate, lam: float, penalty: RowPenalty) -> Array:
        """Rows that are zero at a new strength, from the pair of the last one."""
        if lam >= self._lam_max:
            return self._penalised.copy()
        mask = self._rejects(last, lam, penalty)
        self.rule.sequential_counts.append(int(np.count_nonzero(mask)))
        return mask

    def during(self, iterate: Iterate, penalty: RowPenalty) -> Array:
        """Rows that are zero at the strength being solved, from a pair reached on the way."""
        mask = self._rejects(iterate, iterate.lam, penalty)
        self.rule.dynamic_counts.append(int(np.count_nonzero(mask)))
        return mask

    def zero_entries(self, iterate: Iterate, lam: float, penalty: RowPenalty) -> Array:
        """Entries of the iterate's rows that are zero in every solution at a strength: |m_jt| + R a_jt < l1_j."""
        mask = np.zeros(iterate.rows.shape, dtype=bool)
        ball = self._ball(iterate, lam, penalty) if penalty.has_l1 and len(iterate.features) else None
        if ball is None:
            return mask
        norms = self._design.norms()[iterate.features]
        reach = ball.radius * np.sqrt(self._loss.smoothness) * norms
        some = np.flatnonzero((reach < penalty.l1[iterate.features, None]).any(axis=1))
        if penalty.ridge:  # a part of the residual is made of all rows
            some = np.arange(len(iterate.features))
        if len(some):  # elsewhere the ball is too large, whatever the correlations are
            own, shape = iterate.features[some], self._problem.shape
            state = self._state(
                iterate.at.residual,
                iterate.lam,
                np.arange(len(own)),
                iterate.rows[some],
                correlations=iterate.products[some],
                y_correlations=self._target_products(own) if ball.y_coef else None,
                norms=norms[some],
                feature_weights=shape.weights[own],
                l1=shape.l1[own] if isinstance(shape.l1, np.ndarray) else shape.l1,
                rounding=self._design.rounding,
            )
            mask[some] = zero_entries(
                ball.correlations(state, lam),
                state.effective_norms(lam),
                ball.radius,
                penalty.l1[own],
                penalty.positive,
                ball.errors(state, lam),
            )
        self.rule.entry_counts.append(int(np.count_nonzero(mask)))
        return mask

    def _target_products(self, features: Array) -> Array:
        """Correlations of the target with some features: those of the last call are kept."""
        known, products = self._targets
        missing = np.setdiff1d(features, known, assume_unique=True)
        if len(missing):
            more = self._packed.correlate(self._loss.null.residual, self._packed.places(missing))
            order = np.argsort(np.concatenate([known, missing]))
            known = np.concatenate([known, missing])[order]
            products = np.vstack([products, more])[order]
        products = products[np.searchsorted(known, features)]
        self._targets = features, products
        return products

    def shrinker(
        self, lam: float, working: Array, penalty: RowPenalty
    ) -> Callable[[Array, Evaluation, Array, float], Array]:
        """Dynamic screening for a solver that works on all surviving rows."""
        alive = np.arange(len(working))
        norms, shape = self._design.norms(), self._problem.shape
        targets = None
        if self._problem.squared:
            targets = self._packed.correlate(self._loss.null.residual, self._packed.places(working))

        def shrink(rows: Array, at: Evaluation, products: Array, gap: float) -> Array:
            nonlocal alive
            own = working[alive]
            live = np.flatnonzero(rows.any(axis=1))
            state = self._state(
                at.residual,
                lam,
                live,
                rows[live],
                correlations=products,
                y_correlations=None if targets is None else targets[alive],
                norms=norms[own],
                feature_weights=shape.weights[own],
                l1=shape.l1[own] if isinstance(shape.l1, np.ndarray) else shape.l1,
                rounding=self._design.rounding,
            )
            if not self._problem.squared:
                here = penalty.restrict(own)
                _, scale = duality_gap(self._loss, here, rows, at, products, here.gauges)
                state = replace(state, gap=gap, dual_scale=scale, gap_lam=lam)
            gone = self.rule.dynamic(state)
            gone[live] = False
            alive = alive[~gone]
            return gone

        return shrink

    def _state(self, residual: Array, lam: float, features: Array, rows: Array, **more: Any) -> DualState:
        shape = self._problem.shape
        known: dict[str, Any] = {
            "norms": self._design.norms(),
            "feature_weights": shape.weights,
            "l1": shape.l1,
        }
        return DualState(
            y=self._loss.null.residual,
            residual=residual,
            lam=lam,
            features=features,
            rows=rows,
            group=shape.group,
            positive=shape.positive,
            ridge_ratio=shape.ridge_ratio,
            squared=self._problem.squared,
            smoothness=self._loss.smoothness,
            **(known | more),
        )

    def _ball(self, iterate: Iterate, lam: float, penalty: RowPenalty) -> Ball | None:
        """The rule's ball at a strength, from a pair; the last one is kept."""
        last = self._last_ball
        if last is not None and last[0] is iterate and last[1] == lam:
            return last[2]
        gap, scale = iterate.gap(self._loss, lam, penalty)
        state = self._state(
            iterate.at.residual,
            iterate.lam,
            iterate.features,
            iterate.rows,
            correlations=np.empty((0, self._design.n_tasks)),
            gap=gap,
            dual_scale=scale,
            gap_lam=lam,
            cut=self._cut,
        )
        ball = self.rule.ball(state, lam)
        self._last_ball = iterate, lam, ball
        return ball

    def _rejects(self, iterate: Iterate, lam: float, penalty: RowPenalty) -> Array:
        anchors = self._anchors
        ball = self._ball(iterate, lam, penalty)
        if ball is None:
            return np.zeros(self._design.n_features, dtype=bool)
        smoothness = self._loss.smoothness
        radius, ridge = ball.radius * np.sqrt(smoothness), penalty.ridge / smoothness
        from_cut = bool(ball.cut_coef) and self._cut is not None
        if from_cut:  # W = 0: one more pass, for the image of the cut, which the next solutions are not far from
            assert self._cut is not None
            place = anchors.place_of(self._cut.image)
            if place is None:
                anchors.add(self._cut.image, self._design.correlate(self._cut.image))
                place = len(anchors) - 1
            anchors.stand_at(0)
            centre = anchors.anchor(0).scaled(ball.residual_coef + ball.y_coef)
            centre = centre + anchors.anchor(place).scaled(ball.cut_coef)
            _, upper = anchors.ratios(centre, penalty, radius=radius, ridge=ridge)
        else:
            upper = anchors.ball_bounds(ball.residual_coef, ball.y_coef, penalty, radius=radius, ridge=ridge)
        mask = upper < _REJECT
        # A ridge adds to the correlations of rows that carry weight, which the anchors do not know of.
        mask[iterate.features] = False
        if from_cut:
            assert self._cut is not None
            mask[self._cut.features] = False
        mask[self._design.unpenalised] = False
        return mask
