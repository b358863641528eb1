"""The largest correlation a feature can have with any point of a ball, and the zero tests built on it.

Let a feature have the column norms a_t, and let the centre of a ball of radius D have the correlations b_t with
it, one per task. Over the ball the squared norm of the feature's row of correlations is at most

    s = max { sum_t (a_t v_t + |b_t|)² : ‖v‖ <= D }                                    (Wang & Ye 2015, Theorem 7).

With kappa = max a, every mu > kappa² gives an upper bound of s, and the best one is s itself:

    U(mu) = mu D² + sum_t mu b_t²/(mu - a_t²) = mu D² + ‖b‖² + sum_t a_t² b_t²/(mu - a_t²),   s = min U.

So an unfinished root finder is still safe. Put v_t(mu) = a_t |b_t|/(mu - a_t²), stationary where ‖v‖ = D; the
feasible point D v/‖v‖ shows that U(mu) exceeds s by at most (1 - D/‖v‖)² sum_t a_t² b_t²/(mu - a_t²).
That difference separates rows that may stay from rows that must be looked at more closely.

Inside, rows are scaled to kappa = D = 1, and delta = mu - 1 is the unknown, so that 1 - a_t² carries no cancellation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# A test "bound < threshold" is made with threshold (1 - MARGIN): rounding of the bound cannot turn it round.
MARGIN = 1e-9
# Below this ratio of kappa D to ‖b‖ the bound (‖b‖ + kappa D)² is s to rounding, and scaling by kappa D might overflow.
_NEGLIGIBLE = 1e-15
_CONVERGED = 1e-14
_MAX_ITER = 60


def row_maximum(b: ArrayLike, a: ArrayLike, radius: float) -> Array:
    """Maximise sum_t (a_t v_t + |b_t|)² over ‖v‖ <= radius, for every row at once.

    Parameters
    ----------
    b : array of shape (d, T)
        Correlations of the ball's centre with each feature in each task; the signs do not matter.
    a : array of shape (d, T)
        Column norms. A broadcast view with equal columns (one design shared by all tasks) has a closed form.
    radius : float
        Radius of the ball.

    Returns
    -------
    array of shape (d,)
        The maxima: upper bounds, exact to about 1e-12.
    """
    b, a = _pair(b, a)
    square = np.einsum("ij,ij->i", b, b)
    kappa = _largest(a)
    reach = radius * kappa
    upper = (np.sqrt(square) + reach) ** 2
    if not _equal_columns(a):
        rows = np.flatnonzero(reach > _NEGLIGIBLE * np.sqrt(square))
        exact = reach[rows] ** 2 * _secular(b[rows], a[rows], radius, kappa[rows])
        upper[rows] = np.minimum(upper[rows], exact)
    return upper


def sphere_norms(b: Array, a: Array, radius: float, threshold: Array) -> Array:
    """Upper bounds of sqrt(s) for every row, exact only where that decides a comparison with the threshold."""
    square = np.einsum("ij,ij->i", b, b)
    reach = radius * _largest(a)
    upper = np.sqrt(square) + reach
    if not _equal_columns(a):
        # (kappa D)² + ‖b‖² <= s: put the whole step on the task of the largest norm and forget the cross term
        rows = np.flatnonzero((upper >= threshold) & (square + reach**2 < threshold**2))
        if rows.size:
            upper[rows] = np.sqrt(row_maximum(b[rows], a[rows], radius))
    return upper


def rejects(
    b: ArrayLike, a: ArrayLike, radius: float, threshold: ArrayLike, errors: ArrayLike | None = None
) -> Mask:
    """Decide sqrt(s) + errors < threshold for every row, with no more work than the decision needs.

    In order: ‖b‖ + kappa D < threshold rejects; a lower bound of s that reaches the threshold keeps; only the rows in
    between need the secular equation, each for as long as it is undecided.

    Parameters
    ----------
    b, a, radius
        As in `row_maximum`.
    threshold : float or array of shape (d,)
        What the norm of a row of correlations must reach for the feature to matter.
    errors : array of shape (d,), optional
        Proven bounds on the Euclidean error of each row of `b`.

    Returns
    -------
    boolean array of shape (d,)
        True where no point of the ball has correlations as large as the threshold.
    """
    b, a = _pair(b, a)
    if not np.isfinite(radius):
        return np.zeros(b.shape[0], dtype=bool)
    limit = np.broadcast_to(np.asarray(threshold, dtype=np.float64) * (1.0 - MARGIN), b.shape[:1])
    if errors is not None:
        limit = limit - np.asarray(errors, dtype=np.float64)
    square = np.einsum("ij,ij->i", b, b)
    kappa = _largest(a)
    reach = radius * kappa
    rejected = np.sqrt(square) + reach < limit
    if _equal_columns(a):
        return rejected
    # (kappa D)² + ‖b‖² <= s: put the whole step on the task of the largest norm and forget the cross term
    rows = np.flatnonzero(~rejected & (square + reach**2 < limit**2) & (limit > 0.0))
    rows = rows[reach[rows] > _NEGLIGIBLE * np.sqrt(square[rows])]
    if rows.size:
        target = (limit[rows] / reach[rows]) ** 2
        rejected[rows] = _secular(b[rows], a[rows], radius, kappa[rows], target) < target
    return rejected


def zero_rows(
    correlations: ArrayLike,
    norms: ArrayLike,
    radius: float,
    group: ArrayLike,
    l1: ArrayLike = 0.0,
    positive: bool = False,
    errors: ArrayLike | None = None,
) -> Mask:
    """Rows that are zero in every solution, because the dual optimum lies in a ball around a known centre.

    For the penalty sum_j l1_j ‖W_j‖₁ + group_j ‖W_j‖₂ a row is zero if its correlations m at the dual optimum satisfy
    ‖soft(m, l1)‖ < group (with `positive`: ‖(m - l1)_+‖ < group). Let z_t = |m_t| - l1 at the centre (m_t - l1 with
    `positive`). A step of length v_t <= D in task t moves z_t by at most a_t v_t, so that

        (z_t + a_t v_t)_+ <= (z_t)_+ + a'_t v_t,   a'_t = a_t if z_t >= 0, else (a_t + z_t/D)_+,

    and the test becomes the one of `rejects` with b = (z)_+ and the norms a'. It is never weaker than the
    tests ‖soft(m, l1)‖ + D kappa < group and, for m inside the box, max|m| + D kappa - l1 < group.

    Parameters
    ----------
    correlations : array of shape (d, T)
        Correlations of the centre.
    norms : array of shape (d, T)
        Column norms.
    radius : float
        Radius D of the ball.
    group, l1 : float or array of shape (d,)
        Strengths of the penalty, all factors included. Rows where both are 0 are not penalised and never rejected.
    positive : bool
        Whether the coefficients are constrained to be non-negative.
    errors : array of shape (d,), optional
        Proven bounds on the Euclidean error of each row of correlations.

    Returns
    -------
    boolean array of shape (d,)
        True = certainly zero.
    """
    m, a = _pair(correlations, norms)
    n_rows = m.shape[:1]
    group = np.broadcast_to(np.asarray(group, dtype=np.float64), n_rows)
    l1 = np.broadcast_to(np.asarray(l1, dtype=np.float64), n_rows)
    if (not positive and not l1.any()) or not np.isfinite(radius):
        return rejects(m, a, radius, group, errors)
    z = (m if positive else np.abs(m)) - ((1.0 - MARGIN) * l1)[:, None]
    highest = (z + radius * a).max(axis=1) + (0.0 if errors is None else np.asarray(errors, dtype=np.float64))
    inside = z.max(axis=1) <= 0.0
    if radius > 0.0:
        a = np.maximum(a + np.minimum(z, 0.0) / radius, 0.0)
    rejected = rejects(np.maximum(z, 0.0), a, radius, group, errors)
    # From inside the box the farthest exit of the whole step, errors included, is along one coordinate. This
    # alone can reject where group = 0.
    rejected |= inside & (highest < (1.0 - MARGIN) * group)
    return rejected & (group + l1 > 0.0)


def zero_entries(
    correlations: ArrayLike,
    norms: ArrayLike,
    radius: float,
    l1: ArrayLike,
    positive: bool = False,
    errors: ArrayLike | None = None,
) -> Mask:
    """Single coefficients that are zero in every solution: |m_jt| + D a_jt < l1_j (m_jt + D a_jt with `positive`).

    Parameters are those of `zero_rows`; `errors` bounds a row's error and therefore each of its entries'.

    Returns
    -------
    boolean array of shape (d, T)
        True = certainly zero.
    """
    m, a = _pair(correlations, norms)
    l1 = np.broadcast_to(np.asarray(l1, dtype=np.float64), m.shape[:1])[:, None]
    size = np.abs(m)
    bound = (m if positive else size) + radius * a
    if errors is not None:
        bound = bound + np.asarray(errors, dtype=np.float64)[:, None]
    return bound < l1 - MARGIN * np.maximum(l1, size)


def _pair(b: ArrayLike, a: ArrayLike) -> tuple[Array, Array]:
    b = np.asarray(b, dtype=np.float64)
    a = np.asarray(a, dtype=np.float64)
    if b.ndim != 2 or a.shape != b.shape:
        raise ValueError(f"correlations and norms must be (d, T) alike; got shapes {b.shape} and {a.shape}")
    return b, a


def _equal_columns(a: Array) -> bool:
    return a.shape[1] == 1 or a.strides[1] == 0


def _largest(a: Array) -> Array:
    """The largest entry of each row."""
    return a[:, 0] if _equal_columns(a) else a.max(axis=1)


def _secular(b: Array, a: Array, radius: float, kappa: Array, target: Array | None = None) -> Array:
    """Upper bounds of s/(kappa D)², exact, or once `target` is given as exact as the comparison with it needs.

    kappa = max a > 0. Newton's method on 1/‖v(delta)‖ = 1, which is monotone from the left of the root and one
    step from the right, kept inside lo = ‖b_I‖ <= delta <= ‖a b‖ = hi, where I holds the tasks with a_t = kappa.
    """
    a = a / kappa[:, None]  # exactly 1 at the largest norm: that is how the tasks of I are known
    gap = (1.0 - a) * (1.0 + a)
    b = b / (radius * kappa)[:, None]
    square = np.einsum("ij,ij->i", b, b)
    weight = a * b
    weight *= weight
    at_largest = np.einsum("ij,ij->i", weight, gap == 0.0)
    total = weight.sum(axis=1)
    lo, hi = np.sqrt(at_largest), np.sqrt(total)
    bound = (1.0 + np.sqrt(square)) ** 2

    # Hard case: nothing pulls towards the tasks of the largest norm. If the others do not use up the radius, the
    # minimum of U lies at its end delta = 0.
    hard = np.flatnonzero(lo == 0.0)
    if hard.size:
        rest = np.where(gap[hard] > 0.0, gap[hard], np.inf)
        short = hard[(weight[hard] / rest**2).sum(axis=1) <= 1.0]
        rest = np.where(gap[short] > 0.0, gap[short], np.inf)
        bound[short] = np.minimum(bound[short], 1.0 + square[short] + (weight[short] / rest).sum(axis=1))
        rows = np.setdiff1d(np.arange(lo.size), short, assume_unique=True)
    else:
        rows = np.arange(lo.size)
    weight, gap, lo, hi = weight[rows], gap[rows], lo[rows], hi[rows]

    # One-shot start: all the weight at its mean place; within 1e-5 of s on typical data.
    start = total[rows] / np.maximum(square[rows], np.finfo(float).tiny) - 1.0 + hi
    delta = np.clip(start, np.where(lo > 0.0, lo, 1e-3 * hi), hi)
    for _ in range(_MAX_ITER):
        if rows.size == 0:
            break
        inverse = 1.0 / (delta[:, None] + gap)
        term = weight * inverse
        first = term.sum(axis=1)
        term *= inverse
        second = term.sum(axis=1)
        third = np.einsum("ij,ij->i", term, inverse)
        length = np.sqrt(second)
        value = 1.0 + delta + square[rows] + first
        bound[rows] = np.fmin(bound[rows], value)
        excess = first * (1.0 - 1.0 / length) ** 2
        open_ = excess > _CONVERGED * value
        if target is not None:
            open_ &= (value >= target[rows]) & (value - excess < target[rows])
        lo = np.where(length > 1.0, delta, lo)
        hi = np.where(length > 1.0, hi, delta)
        step = delta + second / third * (length - 1.0)
        delta = np.where((step > lo) & (step < hi), step, 0.5 * (lo + hi))
        rows, weight, gap, lo, hi, delta = (x[open_] for x in (rows, weight, gap, lo, hi, delta))
    return bound
