r"""What every row adds to objective and gap of a graph model, with bounds of the rounding.

A score is known as an interval z ± e. The Fenchel-Young term of a row,

.. math:: c\,\ell(z) + c\,\ell^*(-\beta / c) + \beta z \ge 0,

is bounded over that interval, in forms in which large numbers do not cancel: each is a product or a square of
differences that are known to a relative error of a few units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..losses import gamma

Array = np.ndarray[Any, Any]


@dataclass
class RowTerms:
    """Of each row: the loss, how far it may be off, and an upper bound of the Fenchel-Young term (weight included)."""

    loss: Array
    error: Array
    term: Array


#: by how much a row is short of its target, the error of that, its dual variable, its weight
Form = Callable[[Array, Array, Array, Array], RowTerms]


def row_terms(name: str, epsilon: float, z: Array, e: Array, y: Array, c: Array, beta: Array) -> RowTerms:
    """For weights c > 0 and a feasible beta (`feasible`), given scores z and bounds e of their errors."""
    form = _square if name.startswith("squared") else _linear
    if name == "logistic":
        found = _logistic(z, e, y, c, beta)
    elif name.endswith("hinge"):
        found = _of_margin(form, z, e, y, c, beta)
    else:
        found = _of_residual(form, epsilon, z, e, y, c, beta)
    found.error = found.error * (1.0 + gamma(16)) + gamma(16) * found.loss
    found.term *= 1.0 + gamma(32)
    return found


def feasible(name: str, y: Array, c: Array, beta: Array) -> Array:
    """The nearest point at which the conjugates are finite: exactly so, in floating point."""
    if name in ("hinge", "logistic"):
        return y * np.clip(y * beta, 0.0, c)
    if name == "squared_hinge":
        return y * np.maximum(y * beta, 0.0)
    return np.clip(beta, -c, c) if name == "epsilon_insensitive" else beta


def _linear(over: Array, e: Array, a: Array, c: Array) -> RowTerms:
    """``c max(over, 0) - a over``, 0 <= a <= c."""
    term = (c - a) * np.maximum(over + e, 0.0) + a * np.maximum(e - over, 0.0)
    return RowTerms(np.maximum(over, 0.0), np.where(over > -e, e, 0.0), term)


def _square(over: Array, e: Array, a: Array, c: Array) -> RowTerms:
    """``c max(over, 0)² - a over + a² / (4 c)``, a >= 0: the square of ``over - a / (2 c)`` where over >= 0."""
    best = 0.5 * a / c
    inside = c * np.square(np.abs(over - best) + e + gamma(4) * (np.abs(over) + best))
    outside = a * (np.abs(over) + e) + c * (np.square(best) + np.square(e))
    positive = np.maximum(over, 0.0)
    error = np.where(over > -e, (2.0 * positive + e) * e, 0.0)
    return RowTerms(np.square(positive), error, np.where(over < 0.0, outside, inside))


def _of_margin(form: Form, z: Array, e: Array, y: Array, c: Array, beta: Array) -> RowTerms:
    short = 1.0 - y * z
    return form(short, e + gamma(2) * np.abs(short), y * beta, c)


def _of_residual(form: Form, epsilon: float, z: Array, e: Array, y: Array, c: Array, beta: Array) -> RowTerms:
    """As of margins where beta and the residual z - y have opposite signs; elsewhere term by term."""
    r, b = z - y, np.abs(beta)
    t, e = np.abs(r), e + gamma(2) * np.abs(r)
    over = t - epsilon
    e = e + gamma(2) * np.abs(over)
    found = form(over, e, b, c)
    power = 2.0 if form is _square else 1.0
    against = c * np.maximum(over + e, 0.0) ** power + b * (t + e + epsilon)
    other_sign = 2.0 * b * e  # which the residual may have where it is smaller than its error
    if form is _square:
        against += 0.25 * b * (b / c)
        other_sign += c * e * e
    found.term = np.where(r * np.sign(beta) <= 0.0, found.term, against) + np.where(t < e, other_sign, 0.0)
    return found


def _logistic(z: Array, e: Array, y: Array, c: Array, beta: Array) -> RowTerms:
    """The divergence of two coins, ``c KL(a / c || 1 / (1 + exp(m)))``: ``q g(d / q)`` for both sides of the coin,
    with ``g(x) = (1 + x) log(1 + x) - x`` and d the difference of the two, from the smaller sides."""
    a, m = y * beta, y * z
    e = e + 8.0 * gamma(1)  # the exponential
    small = np.exp(-np.abs(m))
    rest = np.log1p(small)
    larger, smaller = 1.0 / (1.0 + small), small / (1.0 + small)
    p, p_rest = a / c, (c - a) / c
    q, q_rest = np.where(m > 0.0, smaller, larger), np.where(m > 0.0, larger, smaller)
    low = q <= 0.5
    d = np.where(low, p - q, q_rest - p_rest)
    size = np.where(low, p + q, p_rest + q_rest)
    first, first_error = _side(p, q, d, size, np.maximum(m, 0.0) + rest)
    other, other_error = _side(p_rest, q_rest, -d, size, np.maximum(-m, 0.0) + rest)
    divergence = np.maximum(first + other, 0.0) + first_error + other_error
    return RowTerms(
        np.maximum(-m, 0.0) + rest,
        q * e + 0.125 * e * e,
        c * (divergence + (np.abs(d) + gamma(4) * size) * e + 0.125 * e * e),
    )


def _side(p: Array, q: Array, d: Array, size: Array, minus_log_q: Array) -> tuple[Array, Array]:
    """``p log(p / q) - d``, which is ``q g(d / q)``, and a bound of its error."""
    some = p > 0.0
    far = ~(np.abs(d) <= q)
    x = np.divide(d, q, out=np.zeros_like(d), where=~far & (q > 0.0))
    ratio = np.log1p(np.maximum(x, -1.0 + 2.0**-53))
    log_p = np.log(p, out=np.zeros_like(p), where=far & some)
    ratio = np.where(far, log_p + minus_log_q, ratio) * some
    value = p * ratio - d
    parts = np.where(far, p * (np.abs(log_p) + minus_log_q), p * np.abs(ratio)) + np.abs(d)
    # the second part: p itself is known to a few units only
    return value, gamma(16) * parts + gamma(8) * size * np.abs(ratio)
