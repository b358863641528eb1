"""What Cox's loss adds to a duality gap: ``F(z) + F*(-u) + <u, z>`` for u a multiple of minus a gradient.

Let M be the expected events of a dual point (``M = e - u``), p the softmax weights of a risk set. For any risk sets

    F(z) + F*(-u) + <u, z>  =  min { sum_g d_g KL(q_g || p_g(z)) :  q_g on the risk set of g,  sum_g d_g q_g = M },

KL(a || b) = sum a log(a/b) - a + b. Where risk sets are nested the minimum is known. With b_g the part of M on the risk
set of g that earlier events have, for the scaled gradient c (e - M_d) of a point d, where ``M = (1 - c) e + c M_d`` and
``b = c b_d``, and with M_p, b_p at z, it is

    sum_k KL(M_k || M_pk) + sum_g [KL(b_g || b_pg) - KL(b_g + d_g || b_pg + d_g)].

A group of m tied deaths of share v = d/m each (Efron), which hold A of M, the others of the risk set B = b + d - A, has

    KL(b || b_p) - KL(A || A_p) - KL(B || B_p) + b KL2(t || t_p) + v sum_l KL2(t + log(1 - l/m) || t_p + log(1 - l/m))

in place of the bracket. KL2 compares two coins by their log-odds, t_p = log(Q/O) at z, and t solves ``b s(t) + v sum_l
s(t + log(1 - l/m)) = A``, s the logistic function.

With entry times, theta with M(theta) = M is found by Newton's method. Then ``e - M(theta)`` *is* the dual point. It
differs from the scaled gradient by rounding (`CoxOnData.settled` leaves room for that), and the minimum is
``sum_g d_g KL(p_g(theta) || p_g(z))``. Where that fails: the function is convex along the ray, so that it is at most
``(1 - c) (F(z) - inf F)`` plus c times its value at c = 1.

Rounding. The logarithms of M, b, A, B and of the odds are known up to some delta. `Excess.first` bounds the derivative
in them, `second` the second one: all of these derivatives vanish where both points are one and c = 1, so that rounding
costs next to nothing there. In KL(x || y) the derivative in log x is ``x log(x/y)``, that in log y is y - x; of the sum
over coins that in log b is at most ``b |t - t_p|``, in log A or log B (the smaller one determines t) that one times
``|t - t_p|``, and in t_p the mass that moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from .._kernels import kernels
from .base import UNIT
from .risk_sets import RiskPoint, RiskSets

Array = np.ndarray[Any, Any]

_FAR = 800.0  # log-odds beyond those of any double
_ROOTS = 200  # steps towards log-odds
_STEPS, _INNER = 24, 200  # of Newton's method, and of conjugate gradients for one of them
_LEAST = 1e-8  # of an expected event: added to its second derivative, since there is none in some directions


@dataclass
class Excess:
    """A number, and what an error of logarithms by delta adds to it at most: ``delta first + delta^2 second``."""

    value: float
    first: float
    second: float

    def __add__(self, other: Excess) -> Excess:
        return Excess(self.value + other.value, self.first + other.first, self.second + other.second)

    def __sub__(self, other: Excess) -> Excess:
        return Excess(self.value - other.value, self.first + other.first, self.second + other.second)

    def upper(self, delta: float) -> float:
        return self.value + delta * self.first + delta * delta * self.second if delta <= 0.1 else np.inf


def _divergence(x: Array, y: Array, log_y: Array | None = None) -> Excess:
    """The sum of ``KL(x || y)``. What the summation may have lost of it is less than delta times the sum: so is what is
    left where sums are subtracted."""
    value, first, second = kernels.divergence_sums(x, y, log_y)
    return Excess(value, first + value, second)


def _coins(t: Array, other: Array) -> Array:
    """``KL2(t || other)`` of two coins by their log-odds: ``log(1 + s(t) (e^h - 1)) - s(t) h`` with h = other - t, seen
    from the rarer side."""
    side = np.where(t > 0.0, -1.0, 1.0)
    a, h = side * t, side * (other - t)
    p = expit(a)
    with np.errstate(over="ignore"):
        rise = np.where(h < 500.0, np.log1p(p * np.expm1(np.minimum(h, 500.0))), np.logaddexp(0.0, a + h))
    return np.maximum(rise - p * h, 0.0)


def nested_excess(sets: RiskSets, primal: RiskPoint, dual: RiskPoint, scale: Array) -> Excess:
    """Of nested risk sets; `scale` by task: c of the module's docstring."""
    if not scale[sets.task_of_block].any():  # zero: F(z) less its smallest value
        return Excess(max(float(primal.values.sum()), 0.0), float(primal.sizes.sum()), 0.0)
    c = scale[sets.task_of_row]
    mixed = (1.0 - c) * sets.events + c * dual.mean
    total = _divergence(mixed, primal.mean, primal.log_mean)
    d, alone = sets.events_at, sets.untied
    x, y = scale[sets.task_of_group] * dual.earlier, primal.earlier
    total = total + _divergence(x, y)
    x, y = x + d, y + d
    total = total - (_divergence(x, y) if alone.all() else _divergence(x[alone], y[alone]))
    if len(sets.tied):
        total = total + _tied(sets, primal, dual, scale)
    return Excess(max(total.value, 0.0), total.first, total.second)


def _tied(sets: RiskSets, primal: RiskPoint, dual: RiskPoint, scale: Array) -> Excess:
    """What stands in place of ``-KL(b + d || b_p + d)`` in tied groups."""
    tied, member = sets.tied, sets.member
    c, d, v = scale[sets.task_of_group[tied]], sets.events_at[tied], sets.share[tied]
    b, a, o = c * dual.earlier[tied], (1.0 - c) * d + c * dual.died, c * dual.left
    total = Excess(0.0, 0.0, 0.0) - _divergence(a, primal.died) - _divergence(o, primal.left)
    value, first, second = total.value, total.first, total.second
    t_p = primal.log_odds
    split = np.isfinite(t_p)  # else all at risk die: there is nothing to divide
    t, off, slope = _root(sets, b, v, a, o, np.where(split, t_p, 0.0))
    t, base = np.where(split, t, 0.0), np.where(split, t_p, 0.0)
    pairs, other = (t[member] + sets.log_rest), (base[member] + sets.log_rest)
    value += float((b * _coins(t, base)).sum()) + float((v[member] * _coins(pairs, other)).sum())
    apart = np.abs(t - base)
    moved = np.abs(expit(base) - expit(t))
    moved_pairs = np.bincount(member, np.abs(expit(other) - expit(pairs)), len(tied))
    mass = b + d
    lost = np.where(split, off + 8.0 * UNIT * sets.tied_count * np.minimum(a, o), 0.0)
    # the root is as good as `lost` says; the sums over coins have a few roundings of what they are made of
    value += float((lost * (apart + lost / np.maximum(slope, 1e-300))).sum())
    first += float(((2.0 * mass + np.minimum(a, o)) * apart + b * moved + v * moved_pairs).sum())
    second += float((4.0 * mass * (1.0 + apart)).sum())
    return Excess(value, first, second)


def _root(sets: RiskSets, b: Array, v: Array, a: Array, o: Array, start: Array) -> tuple[Array, Array, Array]:
    """Log-odds t with ``b s(t) + v sum_l s(t + log(1 - l/m)) = a``, the complements sum to o; what is left of that
    equation, and its derivative. Newton's method between bounds."""
    member, count = sets.member, len(b)
    rarer = a <= o
    low, high = np.full(count, -_FAR), np.full(count, _FAR)
    t, last = np.clip(start, -_FAR, _FAR), np.full(count, np.inf)
    off = slope = np.zeros(count)
    for _ in range(_ROOTS):
        pairs = t[member] + sets.log_rest
        up, up_pairs = expit(t), expit(pairs)
        down, down_pairs = expit(-t), expit(-pairs)
        above = b * up + v * np.bincount(member, up_pairs, count) - a
        below = o - b * down - v * np.bincount(member, down_pairs, count)
        off = np.where(rarer, above, below)
        slope = b * up * down + v * np.bincount(member, up_pairs * down_pairs, count)
        high, low = np.where(off > 0.0, t, high), np.where(off > 0.0, low, t)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            new = t - off / slope
        inside = (new > low) & (new < high) & (np.abs(new - t) <= 0.5 * last)
        new = np.where(inside, new, 0.5 * (low + high))
        last = np.abs(new - t)
        if np.all((last <= 4.0 * UNIT * np.maximum(np.abs(t), 1.0)) | (off == 0.0)):
            break
        t = np.where(off == 0.0, t, new)
    return t, np.abs(off), slope


# -- entry times ------------------------------------------------------------------------------------------------------


def softmax_excess(sets: RiskSets, primal: RiskPoint, dual: RiskPoint) -> Excess:
    """``sum_g d_g KL(p_g(theta) || p_g(z))`` for theta the scores of the dual point: any risk sets."""
    away = dual.scores - primal.scores
    weight = np.bincount(sets.block, dual.mean, sets.n_blocks)
    away = away - (np.bincount(sets.block, dual.mean * away, sets.n_blocks) / weight)[sets.block]
    along, size = float((dual.mean * away).sum()), float((dual.mean * np.abs(away)).sum())
    if primal.weights is not None and np.max(np.abs(away)) < 1.0:
        grown = np.expm1(away)
        means, in_ties = sets.means(primal, grown)
        sizes, sizes_in_ties = sets.means(primal, np.abs(grown))
        v = sets.share[sets.tied][sets.member]
        rise = float((sets.events_at * np.log1p(means)).sum()) + float((v * np.log1p(in_ties)).sum())
        first = float((sets.events_at * sizes / (1.0 + means)).sum())
        first += float((v * sizes_in_ties / (1.0 + in_ties)).sum())
        return Excess(max(along - rise, 0.0), 4.0 * (first + size), 8.0 * float(sets.events_at.sum()))
    # the difference of values: F(z) - F(theta) - <e - M, z - theta> with M that of theta
    value = float((primal.values - dual.values).sum())
    shift = dual.scores - primal.scores
    value += float(((dual.mean - sets.events) * shift).sum())
    sizes_of_both = float((primal.sizes + dual.sizes).sum()) + float((dual.mean * np.abs(shift)).sum())
    return Excess(max(value, 0.0), 4.0 * sizes_of_both, 8.0 * float(sets.events_at.sum()))


def scaled_point(
    sets: RiskSets, dual: RiskPoint, scale: Array, enough: Array, flat: Array
) -> RiskPoint | None:
    """Scores whose expected events are ``(1 - c) e + c M`` with M those of the dual point; None if Newton's method does
    not find them.

    - `enough`: By task, how large the norm of what is missing, in units of the residual, may be.
    - `flat`: By row, the inverse of the root of its weight.
    """
    if dual.weights is None:
        return None
    c, tasks = scale[sets.task_of_row], len(enough)
    goal = (1.0 - c) * sets.events + c * dual.mean
    theta = dual.scores + np.log(goal) - dual.log_mean
    before, share, step = np.inf, 1.0, np.zeros_like(theta)
    for _ in range(_STEPS):
        at = sets.at(theta)
        if at.weights is None:
            return None
        missing = goal - at.mean
        size = np.sqrt(np.bincount(sets.task_of_row, np.square(missing * flat), tasks))
        if np.all(size <= enough):
            return at
        # under weights that do not change a share t of Newton's step takes t of it away, if t is small
        far = float(np.sqrt(np.sum(np.square(missing) / goal)))
        if far > (1.0 - 0.1 * share) * before:  # too far: half a step; or as near as rounding allows
            if before < 1e-10:
                return None
            share, step = 0.5 * share, 0.5 * step
            theta = theta - step
            continue
        before = far
        step = _solve(sets, at, missing, min(0.1, max(far, 1e-5)))
        longest = float(np.max(np.abs(step)))
        share = min(1.0, 2.0 / longest) if longest > 0.0 else 1.0
        step *= share
        theta = theta + step
    return None


def _solve(sets: RiskSets, at: RiskPoint, right: Array, accuracy: float) -> Array:
    """``H x = right``, nearly: conjugate gradients with diag(M) as preconditioner, off the constants of each block."""
    mass = np.bincount(sets.block, at.mean, sets.n_blocks)

    def turn(vector: Array) -> Array:
        return vector / at.mean - (np.bincount(sets.block, vector, sets.n_blocks) / mass)[sets.block]

    x, rest = np.zeros_like(right), right.copy()
    turned = turn(rest)
    way, power = turned.copy(), float(rest @ turned)
    goal = accuracy * accuracy * power
    for _ in range(_INNER):
        image = sets.hessian_times(at, way) + _LEAST * at.mean * way
        bent = float(way @ image)
        if not bent > 0.0:
            break
        length = power / bent
        x += length * way
        rest -= length * image
        turned = turn(rest)
        now = float(rest @ turned)
        if now <= goal:
            break
        way, power = turned + (now / power) * way, now
    return x
