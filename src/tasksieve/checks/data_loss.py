"""The properties of a loss on data: a convex function F of z~ with nuisance minimised out.

Only the methods of `DataLoss` are used: conjugates are known from residuals, since ``u = -F'(z3)`` has
``F*(-u) = -F(z3) - <u, z3>``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..losses import Evaluation
from ..losses.rowwise import RowLossOnData
from .claims import close, unchanged
from .loss_cases import DataCase
from .row_loss import conjugate

Array = np.ndarray[Any, Any]

SCALES = (0.0, 0.3, 0.9, 0.999, 1.0)


def l0_shapes(case: DataCase, z: Array) -> None:
    """Shapes, the null evaluation, absent rows, arguments left alone."""
    loss, n = case.loss, case.design.n_samples
    with unchanged("L0", "evaluate", z=z):
        at = loss.evaluate(z)
    words = "L0: `evaluate` must give a finite value and a finite residual, one entry a sample."
    finite = np.isfinite(at.value) and at.residual.shape == (n,) and np.isfinite(at.residual).all()
    case.claim(finite, words, value=at.value, shape=at.residual.shape)
    thresholds = loss.thresholds(at.nuisance)
    rows = case.design.n_nuisance if thresholds is None else np.shape(at.nuisance)[0]
    shape, expected = np.shape(at.nuisance), (rows, case.design.n_tasks)
    words = "L0: `Evaluation.nuisance` must be finite, a row for each nuisance column and a column for each task."
    case.claim(shape == expected and np.isfinite(at.nuisance).all(), words, shape=shape, expected=expected)
    absent = np.abs(at.residual[case.weights == 0.0])
    words = "L0: the residual must be 0 where a row has weight 0."
    case.claim(np.all(absent <= 1e-12 * (1.0 + np.max(np.abs(at.residual)))), words)
    null = loss.settled(loss.evaluate(np.zeros(n)))
    same = close(loss.null.value, null.value) and close(loss.null.residual, null.residual, 1e-8)
    words = "L0: `null` must be the evaluation at z = 0."
    case.claim(same, words, null=loss.null.value, evaluated=null.value)
    words = "L0: `smoothness` must be positive; `size` and `floored_gap` must not be negative."
    case.claim(loss.smoothness > 0.0 and loss.size >= 0.0 and loss.floored_gap(0.0) >= 0.0, words)


def l1_gradient(case: DataCase, z: Array) -> None:
    """The residual is minus the gradient: chords on both sides of it."""
    at = case.loss.evaluate(z)
    words = (
        "L1: the residual must be minus the gradient of the value (which is convex): between the slopes of chords."
    )
    for h in (1e-4, 1e-2, 1.0):
        direction = case.point()
        slope = -float(at.residual @ direction)
        right = (case.loss.evaluate(z + h * direction).value - at.value) / h
        left = (at.value - case.loss.evaluate(z - h * direction).value) / h
        slack = 1e-7 * (1.0 + abs(slope)) + 1e-12 * (1.0 + abs(at.value)) / h
        between = left - slack <= slope <= right + slack
        case.claim(between, words, slope=slope, chords=np.array([left, right]))


def l6_nuisance(case: DataCase, z: Array) -> None:
    """Intercepts and unpenalised coefficients are optimal, and residuals are orthogonal to them."""
    loss, design = case.loss, case.design
    at = loss.evaluate(z)
    total = float(case.weights.sum())
    value = case.value(z, at.nuisance)
    words = "L6: `value_at` of the predictions (with the intercepts of `evaluate`) must be the value of `evaluate`."
    case.claim(abs(value - at.value) <= 1e-8 * (total + abs(value)), words, value=at.value, value_at=value)
    words = (
        "L6: the residual must be orthogonal to intercepts and unpenalised features in every task: only then is it a "
        "dual point."
    )
    for column in design.nuisance_basis:
        sums = design.task_sums(column * at.residual)
        orthogonal = np.all(np.abs(sums) <= 1e-8 * (1.0 + float(np.linalg.norm(at.residual))))
        case.claim(orthogonal, words, products=sums)
    words = "L6: the value must be the smallest over intercepts and unpenalised coefficients; others do better."
    for size in (1e-3, 0.1, 1.0, 20.0) if design.n_nuisance else ():
        for _ in range(3):
            moved = at.nuisance + size * case.rng.standard_normal(at.nuisance.shape)
            with np.errstate(over="ignore"):
                value = case.value(z, moved)
            case.claim(value >= at.value - 1e-8 * (total + abs(at.value)), words, value=at.value, better=value)


def l4_terms(case: DataCase, z: Array) -> None:
    """``terms = F(z) + F*(-c r) + c <r, z>``: never too small, and no larger."""
    loss = case.loss
    at = loss.evaluate(z)
    size = 1.0 + abs(at.value) + float(case.weights.sum())
    terms = loss.terms(at, 1.0)
    words = "L4: `terms` must be 0 at scale 1: there the residual is the dual point of z itself."
    case.claim(abs(terms) <= 1e-9 * size, words, terms=terms)
    settled, stored = loss.settled(at), case.stored(z, at.nuisance)
    others = [(other, loss.evaluate(other).value) for other in (case.point(0.3), case.point(3.0), case.point(30.0))]
    others += [(np.zeros_like(z), loss.null.value), (z, at.value)]
    for scale in SCALES:
        terms = loss.terms(at, scale)
        dual = scale * at.residual
        bounds = [at.value - value + float(dual @ (z - other)) for other, value in others]
        bounds += [_below(case, at, z, dual, other) for other in _candidates(case, dual)]
        words = (
            "L4: `terms(c)` is too small: it must be at least F(z) - F(z') + <c r, z - z'> for every z'. Gaps would be "
            "smaller than the truth."
        )
        enough = terms >= 0.0 and terms >= max(bounds) - 1e-9 * size
        case.claim(enough, words, scale=scale, terms=terms, at_least=max(bounds))
        certain = loss.young(stored, np.zeros(case.loss.design.n_tasks), settled, scale)
        words = "L4: `young` must be `terms` with what rounding may have taken from it: no less, and not much more."
        near = terms - 1e-9 * size <= certain <= terms + 1e-6 * size
        case.claim(near, words, scale=scale, young=certain, terms=terms)
        if isinstance(loss, RowLossOnData) and scale > 0.0:
            direct = _direct(case, loss, at, z, scale)
            words = "L4: `terms(c)` must be value(z) + conjugate(c p) + c p z, added over the rows."
            case.claim(abs(terms - direct) <= 1e-8 * size, words, scale=scale, terms=terms, direct=direct)
    if isinstance(loss, RowLossOnData):
        return
    # the supremum, searched for: terms must not lie far above it
    terms = loss.terms(at, 0.7)
    best = _supremum(case, at, z, 0.7 * at.residual)
    words = "L4: `terms(c)` is larger than F(z) + F*(-c r) + <c r, z>: gaps would never close."
    small = "L4: `terms(c)` is smaller than F(z) + F*(-c r) + <c r, z>: gaps would be smaller than the truth."
    case.claim(terms >= best - 1e-9 * size, small, scale=0.7, terms=terms, supremum_found=best)
    # with thresholds one scaled dual point stands for all that give the same residual: it is safe, not the best
    share = 0.02 if loss.thresholds(at.nuisance) is None else 0.25
    reached = terms <= best + share * terms + 1e-6 * size
    case.claim(reached, words, scale=0.7, terms=terms, supremum_found=best)


def _below(case: DataCase, at: Evaluation, z: Array, dual: Array, other: Array) -> float:
    return at.value - case.loss.evaluate(other).value + float(dual @ (z - other))


def _candidates(case: DataCase, dual: Array) -> list[Array]:
    target = getattr(case.loss, "target", None)
    return [] if target is None else [target, target - dual]


def _supremum(case: DataCase, at: Evaluation, z: Array, dual: Array) -> float:
    """The largest lower bound of terms that a search finds."""
    known = [_below(case, at, z, dual, other) for other in _candidates(case, dual)]
    if known:
        return max(known)
    project = case.design.project

    def downwards(other: Array) -> tuple[float, Array]:
        there = case.loss.evaluate(project(other))
        return there.value + float(dual @ project(other)), project(dual - there.residual)

    found = minimize(downwards, z, jac=True, method="L-BFGS-B", options={"maxiter": 60, "ftol": 1e-10})
    return at.value + float(dual @ z) - float(found.fun)


def _direct(case: DataCase, loss: RowLossOnData, at: Evaluation, z: Array, scale: float) -> float:
    live = case.weights > 0.0
    raw, y = case.raw(z, at.nuisance), case.y - case.design.per_sample(loss.shift)
    if case.offset is not None:
        raw, y = (raw, y - case.offset) if loss.of.translates else (raw + case.offset, y)
    raw, y, s = raw[live], y[live], case.weights[live]
    p = scale * at.residual[live] / case.root[live]
    low, high = loss.of.domain(y)
    p = np.clip(p, low, high) if np.all((p > low - 1e-9) & (p < high + 1e-9)) else p
    return float(s @ (loss.of.value(y, raw) + conjugate(loss.of, y, p) + p * raw))


def l5_smoothness(case: DataCase, z: Array) -> None:
    """``F(z) - F(z3) + <u3, z - z3> >= ||r - u3||^2/(2 L)``."""
    loss = case.loss
    if not np.isfinite(loss.smoothness):
        return
    at = loss.evaluate(z)
    words = (
        "L5: the loss is not as smooth as `smoothness` says: residuals move faster, and balls around dual points would "
        "be too small."
    )
    for size in (0.03, 1.0, 5.0):
        other = z + case.point(size)
        there = loss.evaluate(other)
        gain = _below(case, at, z, there.residual, other)
        moved = there.residual - at.residual
        needed = float(moved @ moved) / (2.0 * loss.smoothness)
        enough = gain >= needed * (1.0 - 1e-7) - 1e-11 * (1.0 + abs(at.value))
        case.claim(enough, words, smoothness=loss.smoothness, gain=gain, needed=needed)


def l7_scale(case: DataCase, z: Array) -> None:
    """The dual point that is used lies within the limit and within the domain."""
    loss = case.loss
    at = loss.evaluate(z)
    product = float(at.residual @ z)
    for limit in (0.0, 0.3, 1.0, 2.5, np.inf):
        scale = loss.best_scale(at, product, limit)
        words = "L7: `best_scale` must lie between 0 and its limit: beyond that the dual point is not feasible."
        case.claim(0.0 <= scale <= limit and np.isfinite(scale), words, scale=scale, limit=limit)
        dual = scale * at.residual
        if isinstance(loss, RowLossOnData):
            live = case.weights > 0.0
            p = dual[live] / case.root[live]
            low, high = loss.of.domain(case.y[live])
            over = float(np.max(np.maximum(p - high, low - p)))
            words = "L7: `best_scale` must keep the dual point in the domain of the conjugate."
            case.claim(over <= 1e-9 * (1.0 + float(np.max(np.abs(p)))), words, scale=scale, outside_by=over)
        if scale <= 1.0:  # between zero and the residual, which lie in the domain
            continue
        terms = loss.terms(at, scale)
        far = [_below(case, at, z, dual, k * way) for k in (1.0, 30.0) for way in (-dual, case.point(), z)]
        words = "L7: `best_scale` leaves the domain of the conjugate: `terms` is finite there, and should not be."
        inside = np.isfinite(terms) and terms >= max(far) - 1e-8 * (1.0 + abs(at.value) + abs(max(far)))
        case.claim(inside, words, scale=scale, terms=terms, at_least=max(far))


def l8_ball(case: DataCase, z: Array) -> None:
    """The ball holds every dual point that the gap does not exclude.

    Were u3, the residual of z3, the dual optimum, the gap of z and c r would be at least terms(c) + <u3 - c r, z - z3>:
    the two Bregman distances, and nothing else. So the ball of that gap has to hold u3.
    """
    loss, design = case.loss, case.design
    at = loss.evaluate(z)
    others = [z] + [z + case.point(size) for size in (1e-3, 0.1, 1.0)]
    for _ in range(4):  # one row moves alone
        alone = np.zeros_like(z)
        alone[case.rng.integers(len(z))] = 1e-2
        others.append(z + design.project(np.where(case.weights > 0.0, alone, 0.0)))
    words = "L8: `ball` does not hold a dual point that its gap allows: features would be rejected that matter."
    for other in others:
        there = loss.evaluate(other)
        for scale in (0.0, 0.5, 0.95, 1.0):
            gap = loss.terms(at, scale) + float((there.residual - scale * at.residual) @ (z - other))
            ball = loss.ball(at, scale, gap)
            if ball is None:
                continue
            centre = np.zeros_like(z) if ball.vector is None else ball.vector
            centre = centre + ball.residual_coef * at.residual
            if ball.y_coef:
                centre = centre + ball.y_coef * loss.target
            apart = there.residual - centre
            away = np.sqrt(design.task_sums(apart**2))
            if ball.slack is not None:
                away = np.maximum(away - ball.slack, 0.0)
            if ball.stretch is not None:
                away = away / ball.stretch
            distance = float(np.linalg.norm(away))
            rounding = 1e-7 * (1.0 + float(np.linalg.norm(there.residual)))
            if ball.metric is not None:  # row by row it says more
                apart = np.maximum(np.abs(apart) - rounding * 1e-2, 0.0)
                with np.errstate(divide="ignore", invalid="ignore"):
                    shares = np.where(apart > 0.0, apart**2 / ball.metric, 0.0)
                distance = max(distance, float(np.sqrt(shares.sum())))
            holds = distance <= ball.radius * (1.0 + 1e-6) + rounding
            case.claim(holds, words, scale=scale, gap=gap, distance=distance, radius=ball.radius)


def l9_offset(case: DataCase, z: Array) -> None:
    """With an offset the loss is what it is at predictions that have it added."""
    if case.offset is None or case.plain is None:
        return
    loss, plain, per_sample = case.loss, case.plain, case.design.per_sample
    at = loss.evaluate(z)
    value = case.value(z, at.nuisance)
    added = per_sample(loss.shift - plain.shift) + case.offset
    expected = case.value(z, at.nuisance, added, plain)
    words = "L9: with an `offset` the value must be that of predictions with the offset added."
    case.claim(abs(expected - value) <= 1e-9 * (1.0 + abs(expected)), words, value=value, expected=expected)


CHECKS: tuple[Callable[[DataCase, Array], None], ...] = (
    l0_shapes, l1_gradient, l6_nuisance, l4_terms, l5_smoothness, l7_scale, l8_ball, l9_offset,
)  # fmt: skip
