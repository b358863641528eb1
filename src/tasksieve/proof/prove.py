"""What can be proved about any model on given data: its duality gap, and which coefficients are zero at the optimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..design import PackedColumns
from ..path.certificate import StoredSolution, certified_gap, certified_point, pass_errors
from ..path.pair import Point, point_gap
from ..path.problem import Problem

# Rows tested at a time, so that temporary arrays stay small beside the data.
BLOCK = 4096


@dataclass
class Proof:
    """In sum units: the objective at the model (and with the best intercepts for its coefficients), its gap, rows and
    entries that are zero in every solution."""

    objective: float
    best_objective: float
    dual_gap: float
    zero_rows: np.ndarray
    zero_entries: np.ndarray


def prove(problem: Problem, lam: float, coef: np.ndarray, intercept: np.ndarray) -> Proof:
    """The duality gap of any coefficients (tasks x features) and intercepts, and the safe tests at them.

    The dual point is the residual at the best intercepts, scaled into the dual set over all features; what the
    intercepts fall short of the best ones is part of the gap, and so is all rounding. Any loss and any penalty.
    """
    design, loss = problem.design, problem.loss
    penalty = problem.penalty.at(lam)
    features = penalty.whole(np.setdiff1d(np.flatnonzero(coef.any(axis=0)), design.unpenalised))
    columns = PackedColumns(design)
    positions = columns.positions(features)
    numbers = StoredSolution(
        features, np.ascontiguousarray(coef[:, features].T), intercept, coef[:, design.unpenalised].T.copy()
    )
    own = penalty.restrict(features)
    standing = certified_point(loss, own, columns, positions, numbers)
    at = loss.settled(loss.evaluate(columns.combine(positions, standing.rows)))
    products = design.correlate(at.residual)
    products[design.unpenalised] = 0.0
    errors = pass_errors(loss, at)
    gauges = np.empty(design.n_features)
    everything = np.arange(design.n_features)
    for piece in penalty.pieces(BLOCK):
        block = everything[piece]
        gauges[block] = penalty.restrict(block).upper_gauges(products[block], design.norms(block) * errors)
    certified = certified_gap(loss, penalty, columns, positions, features, standing, at, gauges, own)
    # What is known of the dual optimum follows from the best intercepts: they make the smaller gap.
    gap, scale = point_gap(loss, penalty, Point(features, standing.rows, at, products[features]), gauges)
    ball = loss.ball(at, scale, gap)
    zero = np.zeros((design.n_features, design.n_tasks), dtype=bool)
    if ball is not None:
        if ball.vector is not None:
            centre, size = design.correlate(ball.vector), float(np.linalg.norm(ball.vector))
        else:
            centre, size = ball.residual_coef * products, abs(ball.residual_coef) * float(np.linalg.norm(at.residual))
        upper = np.empty(design.n_features)
        for piece in penalty.pieces(BLOCK):
            block = everything[piece]
            norms, part = design.norms(block), penalty.restrict(block)
            off = design.rounding * size * norms
            if ball.slack is not None:
                off = off + norms * ball.slack
            stretched = norms if ball.stretch is None else norms * ball.stretch
            upper[block] = part.row_reach(centre[block], off, stretched, ball.radius)
            entries = part.zero_entries(centre[block], off.max(axis=1), stretched, ball.radius)
            if entries is not None:
                zero[block] = entries
        zero[penalty.inactive(upper)] = True
        zero[design.unpenalised] = False
    best = min(at.value + own.total(standing.rows), standing.objective) + loss.constant
    return Proof(standing.objective + loss.constant, best, certified, np.asarray(zero.all(axis=1)), zero.T)
