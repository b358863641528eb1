r"""How many false selections stability selection makes on average, at most.

With B pairs of complementary halves, at most q of p features selected on each, and a feature called stable if it is
among them on m of the 2B halves, :math:`\tau = m / 2B`, the expected number of stable features whose selection
probability on a half is at most :math:`\theta = q / p` is bounded (Shah and Samworth 2013)

- without any assumption by :math:`q^2 / (p (2 \tau - 1))`, their equation 3;
- if the proportion of pairs that select a feature in both halves is unimodal by :math:`C(\tau, B)\, q^2 / p`, their
  equation 4 (theorem 2);
- if the proportions are r-concave (r = -1/2 of pairs, r = -1/4 of halves) by
  :math:`p \min\{D(\theta^2, m - B, B, -1/2),\; D(\theta, m, 2B, -1/4)\}`, their equation 8 (section 3.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np

from ..fitted.arguments import check_choice, check_number
from ..messages import Message, ParameterError, value_error

Assumption = Literal["none", "unimodal", "r-concave"]
ASSUMPTIONS: tuple[str, ...] = get_args(Assumption)

DEFAULT_THRESHOLD, DEFAULT_PFER = 0.75, 1.0

_ROOTS = 50  # bisections
_POINTS, _ZOOMS = 9, 9  # values of log a in an interval, which is narrowed so often
_NEAR = 0.9  # intervals whose values are below this part of the best are not looked at again


def pfer_bound(
    n_features: int, q: int, threshold: float, n_pairs: int = 50, assumption: Assumption = "unimodal"
) -> float:
    r"""Bound on the expected number of false selections of stability selection (per-family error rate).

    .. math:: \mathbb E V \le \frac{q^2}{p (2 \tau - 1)}, \quad
        \mathbb E V \le C(\tau, B) \frac{q^2}{p}, \quad
        \mathbb E V \le p \min\bigl\{D(\theta^2, m - B, B, -\tfrac12),\; D(\theta, m, 2B, -\tfrac14)\bigr\}

    for ``assumption`` "none", "unimodal" and "r-concave", where :math:`\theta = q / p`, :math:`\tau = m / 2B` is
    ``threshold`` as a share of the 2B halves, rounded up, :math:`C = 1 / (2 (2 \tau - 1 - 1/2B))` up to
    :math:`\tau = 3/4` and :math:`4 (1 - \tau + 1/2B) / (1 + 1/B)` above, and D(:math:`\eta`, t, N, r) is the largest
    probability of {t, ..., N} that an r-concave law on {0, ..., N} with a mean of at most :math:`\eta N` can have. V
    counts stable features that a half selects with a probability of at most :math:`\theta`.

    Parameters
    ----------
    n_features : int
        p: features that are penalised, or groups of such.
    q : int
        Features selected on each half, at most.
    threshold : float
        A feature is stable if it was selected on at least this share of the halves; above 1/2.
    n_pairs : int, default=50
        B: pairs of complementary halves; "unimodal" takes 2 at least, since its bound begins at
        :math:`\tau = 1/2 + 1/B`.
    assumption : {"none", "unimodal", "r-concave"}, default="unimodal"
        About how often a feature that does not matter is selected. "r-concave" is the strongest, and has the smallest
        bound.

    Returns
    -------
    float
        NaN where the bound does not exist: "unimodal" needs :math:`\theta \le 1/\sqrt 3`,
        :math:`\tau \ge 1/2 + 1/B` and
        :math:`\tau > \min(1/2 + \theta^2, 1/2 + 1/2B + 3 \theta^2 / 4)`; "r-concave" needs :math:`\tau > \theta`.

    See Also
    --------
    StabilitySelection : which features are selected again and again.

    References
    ----------
    .. [1] R. D. Shah, R. J. Samworth, "Variable selection with error control: another look at stability selection",
       Journal of the Royal Statistical Society B 75 (2013).

    Examples
    --------
    >>> import tasksieve as ts
    >>> ts.pfer_bound(5000, 70, 0.75)
    1.0
    >>> round(ts.pfer_bound(5000, 70, 0.75, assumption="none"), 6)
    1.96
    >>> round(ts.pfer_bound(5000, 70, 0.75, assumption="r-concave"), 4)
    0.2358
    """
    check_number(n_features, "n_features", low=2, closed=True, integer=True)
    check_number(n_pairs, "n_pairs", low=1, closed=True, integer=True)
    check_choice(assumption, "assumption", ASSUMPTIONS)
    _check_q(q, n_features)
    if n_pairs < 2 and assumption == "unimodal":
        raise ValueError(_no_bound(n_features, n_pairs, q, halves_of(threshold, n_pairs), assumption))
    return bound(int(n_features), int(q), halves_of(threshold, n_pairs), int(n_pairs), assumption)


@dataclass(frozen=True)
class Levels:
    """What goes together: at most q features a half, stable from so many halves on, and how many are false."""

    q: int
    halves: int  # m: a feature is stable if it was selected on at least so many
    threshold: float  # m / 2B
    bound: float  # under the assumption
    bounds: dict[str, float]  # under each of the assumptions; NaN where there is none

    @classmethod
    def at(cls, n_features: int, q: int, halves: int, n_pairs: int, assumption: str) -> Levels:
        bounds = {name: bound(n_features, q, halves, n_pairs, name) for name in ASSUMPTIONS}
        return cls(q, halves, halves / (2 * n_pairs), bounds[assumption], bounds)


def complete_levels(
    n_features: int,
    n_pairs: int,
    *,
    threshold: float | None = None,
    pfer: float | None = None,
    q: int | None = None,
    assumption: Assumption = "unimodal",
) -> Levels:
    """The levels that two of threshold, pfer and q lead to.

    None given: threshold 0.75 and pfer 1; one: threshold 0.75, or pfer 1 where the threshold is given. Where pfer and
    the threshold are known q is the largest, where pfer and q are known the threshold the smallest that keeps the
    bound. Three are checked.
    """
    check_choice(assumption, "assumption", ASSUMPTIONS)
    if pfer is not None:
        check_number(pfer, "pfer", low=0, closed=False)
    if q is not None:
        _check_q(q, n_features)
    if threshold is None and (pfer is None or q is None):
        threshold = DEFAULT_THRESHOLD
    if pfer is None and q is None:
        pfer = DEFAULT_PFER
    halves = None if threshold is None else halves_of(threshold, n_pairs)
    if q is None:
        assert halves is not None and pfer is not None
        q = _largest_q(n_features, n_pairs, halves, pfer, assumption)
    elif halves is None:
        assert pfer is not None
        halves = _smallest_halves(n_features, n_pairs, q, pfer, assumption)
    levels = Levels.at(n_features, int(q), halves, n_pairs, assumption)
    if math.isnan(levels.bound):
        raise ValueError(_no_bound(n_features, n_pairs, q, halves, assumption))
    if pfer is not None and levels.bound > pfer:
        raise value_error(
            "{q=}, {threshold=:g} and {pfer=:g} do not go together: under {assumption=!r} up to {found:.4g} false "
            "selections are to be expected. Lower {q}, raise the threshold, or raise {pfer} to at least "
            "{found:.4g}.",
            q=levels.q, threshold=levels.threshold, pfer=pfer, assumption=assumption, found=levels.bound,
        )
    return levels


def halves_of(threshold: float, n_pairs: int) -> int:
    """The number of halves that a threshold asks for, checked: above a half of them."""
    check_number(threshold, "threshold", low=0, closed=False)
    # 0.55 * 100 is 55.00000000000001: a plain ceil would ask for one half too many
    found = math.ceil(round(2 * n_pairs * float(threshold), 8))
    if found <= n_pairs or found > 2 * n_pairs:
        smallest = (n_pairs + 1) / (2 * n_pairs)
        raise ParameterError(
            "threshold",
            "must be above 1/2, where the bounds begin, and at most 1",
            threshold,
            Message("With {n_pairs=} the smallest is {smallest:g}.", n_pairs=n_pairs, smallest=smallest),
        )
    return found


def bound(n_features: int, q: int, halves: int, n_pairs: int, assumption: str) -> float:
    """A bound at m halves; NaN where it does not exist."""
    share, rate = halves / (2 * n_pairs), q / n_features
    squares = q * q  # whole numbers as long as can be: a bound of exactly 1 is exactly 1
    if assumption == "none":
        return squares * n_pairs / (n_features * (halves - n_pairs))
    if assumption == "unimodal":
        least = min(0.5 + rate**2, 0.5 + 0.5 / n_pairs + 0.75 * rate**2)
        if rate > 1 / math.sqrt(3) or halves < n_pairs + 2 or not share > least:
            return math.nan
        if 4 * halves <= 6 * n_pairs:
            return squares * n_pairs / (n_features * (2 * halves - 2 * n_pairs - 1))
        return squares * 2 * (2 * n_pairs - halves + 1) / (n_features * (n_pairs + 1))
    if not share > rate:
        return math.nan
    pairs = largest_tail(rate**2, halves - n_pairs, n_pairs, -0.5)
    return n_features * min(pairs, largest_tail(rate, halves, 2 * n_pairs, -0.25))


@lru_cache(maxsize=4096)
def largest_tail(rate: float, tail: int, size: int, r: float) -> float:
    """D(rate, tail, size, r): the largest probability of {tail, ..., size} under an r-concave law on {0, ..., size}
    with a mean of at most rate * size; r is negative."""
    # The extremal law is c (a + i)^(1/r) on 0..k and a free mass at k + 1 (Shah and Samworth 2013, appendix). Its mean
    # fixes c; a runs between the values at which that mass is none, a_k, and continues the law, a_(k + 1).
    mean = rate * size
    first = math.ceil(2 * mean) + 1
    if tail < first:
        return 1.0
    if tail > size:
        return 0.0
    last = np.arange(first, size + 1)
    log_a = _roots(last, mean, r)
    low, high = np.append(log_a[1:], log_a[-1]), log_a
    best, inside = 0.0, np.linspace(0.0, 1.0, _POINTS)
    for _ in range(_ZOOMS):
        points = low[:, None] + (high - low)[:, None] * inside
        found = _tails(points, last, mean, tail, r)
        best = max(best, float(found.max()))
        near = np.flatnonzero(found.max(axis=1) >= _NEAR * best)
        top = np.argmax(found[near], axis=1)
        low, high = points[near, np.maximum(top - 1, 0)], points[near, np.minimum(top + 1, _POINTS - 1)]
        last = last[near]
    return min(best, 1.0)


def _law(log_a: np.ndarray, count: int, r: float) -> np.ndarray:
    """(a + i)^(1/r) for i < count, in units of the first."""
    found = np.square(1.0 / (1.0 + np.arange(count) * np.exp(-log_a)[..., None]))
    return found if r == -0.5 else np.power(found, -0.5 / r)


def _tails(log_a: np.ndarray, last: np.ndarray, mean: float, tail: int, r: float) -> np.ndarray:
    """The probability of the tail, by k (rows) and log a."""
    law = _law(log_a, int(last[-1]) + 1, r)
    i, k = np.arange(law.shape[-1]), last[:, None, None]
    moment = np.sum(np.where(i <= k, (k + 1 - i) * law, 0.0), axis=-1)
    return np.where(tail <= last[:, None] + 1, 1.0 - (last[:, None] + 1 - mean) * law[..., :tail].sum(-1) / moment, 0.0)


def _roots(last: np.ndarray, mean: float, r: float) -> np.ndarray:
    """log a_k: the law on 0..k without a free mass has the mean asked for, for several k > 2 mean."""
    i = np.arange(int(last[-1]) + 1)
    inside = i <= last[:, None]
    low, high = np.full(len(last), -60.0), np.full(len(last), 60.0)
    for _ in range(_ROOTS):
        middle = 0.5 * (low + high)
        law = np.where(inside, _law(middle, len(i), r), 0.0)
        above = law @ i > mean * law.sum(axis=1)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return 0.5 * (low + high)


def _check_q(q: Any, n_features: int) -> None:
    check_number(q, "q", low=1, closed=True, integer=True)
    if q >= n_features:
        raise ParameterError(
            "q",
            f"must be smaller than the number of penalised features (or groups), {n_features}, of which it is selected "
            "on each half",
            q,
        )


def _largest_q(n_features: int, n_pairs: int, halves: int, pfer: float, assumption: str) -> int:
    """By bisection: a bound grows with q, and ceases to exist."""

    def holds(q: int) -> bool:
        return bound(n_features, q, halves, n_pairs, assumption) <= pfer  # not where it is NaN

    if not holds(1):
        least, share = bound(n_features, 1, halves, n_pairs, assumption), halves / (2 * n_pairs)
        if math.isnan(least):
            raise ValueError(_no_bound(n_features, n_pairs, 1, halves, assumption))
        raise value_error(
            "{pfer=:g} is too small for {threshold=:g} under {assumption=!r}: already {q=} feature a half allows "
            "{least:.4g} false selections. Raise {pfer} to at least {least:.4g}, or raise the threshold.",
            pfer=pfer, threshold=share, assumption=assumption, q=1, least=least,
        )
    low, high = 1, n_features
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _smallest_halves(n_features: int, n_pairs: int, q: int, pfer: float, assumption: str) -> int:
    for halves in range(n_pairs + 1, 2 * n_pairs + 1):
        if bound(n_features, q, halves, n_pairs, assumption) <= pfer:
            return halves
    least = bound(n_features, q, 2 * n_pairs, n_pairs, assumption)
    if math.isnan(least):
        raise ValueError(_no_bound(n_features, n_pairs, q, 2 * n_pairs, assumption))
    raise value_error(
        "{pfer=:g} cannot be had with {q=} under {assumption=!r}: even features selected on every half (threshold "
        "1) may include {least:.4g} false ones. Lower {q}, or raise {pfer} to at least {least:.4g}.",
        pfer=pfer, q=q, assumption=assumption, least=least,
    )


def _no_bound(n_features: int, n_pairs: int, q: int, halves: int, assumption: str) -> Message:
    """Why there is no bound, and which way to move."""
    largest, square = int(n_features / math.sqrt(3)), (q / n_features) ** 2
    least = max(0.5 + 1.0 / n_pairs, min(0.5 + square, 0.5 + 0.5 / n_pairs + 0.75 * square))
    other = Message("use {assumption=!r}", assumption="none")
    if assumption == "r-concave":
        way = Message("the threshold must be above {q} / {n}. Lower {q}, or raise the threshold.", n=n_features)
    elif n_pairs < 2:
        way = Message("it needs at least 2 pairs. Raise {n_pairs}, or {other}.", other=other)
    elif q > n_features / math.sqrt(3):
        way = Message("{q} may be at most {largest}. Lower it, or {other}.", largest=largest, other=other)
    else:
        raised = "the threshold must be at least {least:.4g}. Raise it, lower {q}, or {other}."
        way = Message(raised, least=least, other=other)
    return Message(
        "There is no bound under {assumption=!r} for {q=} of {n} features, {threshold=:g} and {n_pairs=}: {way}",
        assumption=assumption, q=q, n=n_features, threshold=halves / (2 * n_pairs), n_pairs=n_pairs, way=way,
    )  # fmt: skip
