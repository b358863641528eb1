"""NumPy twins of `anchors.cpp`: bounds on the correlations of all features from those of a few past vectors."""

from __future__ import annotations

import numpy as np

from .passes import segments


def ball_maximum(a, b, kappa, radius):
    """Upper bound of ``max_{||u|| <= D} sum_t (a_t u_t + b_t)^2`` (mathematics 2.4).

    ``U(mu) = mu D^2 + sum_t mu b_t^2 / (mu - a_t^2)`` bounds it for every ``mu > kappa^2``; Newton's method on
    ``1/||u(mu)|| = 1/D`` starts inside the bracket of the root, so stopping early loses tightness, never safety.
    """
    b2, ab2 = b @ b, (a * b) @ (a * b)
    if b2 == 0.0:
        return (kappa * radius) ** 2
    top = np.linalg.norm(b[a >= kappa])
    lo, hi = kappa**2 + kappa * top / radius, kappa**2 + np.sqrt(ab2) / radius
    mu = min(max(ab2 / b2 + np.sqrt(ab2) / radius, lo), hi)
    best = (np.sqrt(b2) + kappa * radius) ** 2
    for _ in range(2):
        if not mu > kappa**2 * (1.0 + 1e-13):
            break
        gap = mu - a * a
        u = a * b / gap
        best = min(best, mu * radius**2 + np.sum(mu * b * b / gap))
        slope = np.sum(u * u / gap)
        if slope == 0.0:
            break
        norm = np.linalg.norm(u)
        step = mu + (u @ u) / slope * (norm - radius) / radius
        mu = step if lo < step < hi else 0.5 * (mu + (hi if norm > radius else lo))
    return best


def express(vectors, gram, vector, offsets, of_parts, of_vector, of_largest, coef, rest, errors, remainder):
    """Task by task, a vector as (about) its best combination of others, `rest` beside it.

    `errors`: what products of the others, for a column of norm 1, add to those of the vector: relative to the parts
    used, to the vector, and to the others at their largest over the tasks. `remainder` is the rest's length, with them.
    """
    sizes = np.sqrt(np.maximum(np.einsum("tmm->tm", gram), 0.0))
    inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)
    largest = sizes.max(axis=0)
    for t, rows in enumerate(segments(offsets)):
        # Scaled to unit diagonal and slightly regularised: anchors of neighbouring values are nearly parallel.
        scaled = gram[t] * inverse[t] * inverse[t][:, None]
        np.fill_diagonal(scaled, 1.0 + 1e-13)
        coef[:, t] = np.linalg.solve(scaled, (vectors[:, rows] @ vector[rows]) * inverse[t]) * inverse[t]
        rest[rows] = vector[rows] - coef[:, t] @ vectors[:, rows]
        used, beyond = np.abs(coef[:, t]) @ sizes[t], np.abs(coef[:, t]) @ largest
        errors[t] = of_parts * used + of_vector * np.linalg.norm(vector[rows]) + of_largest * beyond
        remainder[t] = np.linalg.norm(rest[rows]) * (1.0 + 1e-10) + errors[t]


def anchored_ratios(
    anchors, coef, norms, remainder, shared_remainder, radius, group, l1, positive, threads, estimate, upper,
    chosen=None, moments=None,
):  # fmt: skip
    """How close each row of ``X'v`` comes to its threshold, for every ``v`` in a ball.

    The centre is ``v_t = sum_m coef[m, t] anchor_{m,t} + e_t``; `anchors` hold the correlations of past vectors, and
    the remainder ``e_t`` is bounded by ``norms[j, t] remainder[t]`` (one matrix for all tasks: by ``norms[j]
    shared_remainder``). `estimate` ignores remainder and ball, `upper` is a bound over both; a row with ``upper < 1``
    cannot be active. `chosen`: only these features. `moments`: per feature ``||b||^2`` of the combination b, its inner
    product with the first anchor, and the bound on what the remainder adds.
    """
    shared = norms.shape[1] == 1
    for i in range(len(estimate)):
        j = i if chosen is None else chosen[i]
        estimate[i] = upper[i] = 0.0
        b = sum(
            (coef[m] * anchors[m][j].astype(np.float64) for m in range(len(anchors))), np.zeros(coef.shape[1])
        )
        a = norms[j].astype(np.float64)
        kappa = a.max()
        error = kappa * shared_remainder if shared else np.linalg.norm(a * remainder)
        if moments is not None:
            moments[i] = b @ b, b @ anchors[0][j] if len(anchors) else 0.0, error
        if positive:
            b = np.maximum(b, 0.0)
        entry = 0.0 if l1 is None else l1[j]
        largest = np.abs(b).max()
        norm = np.linalg.norm(np.maximum(np.abs(b) - entry, 0.0))
        reach = error + kappa * radius
        bound = norm + reach
        if entry > 0.0 and largest <= entry:
            bound = max(largest + reach - entry, 0.0)
        if radius > 0.0 and entry == 0.0 and not positive and not shared and bound >= group[j]:
            dominant = np.abs(b[a >= kappa]).max()
            lower = norm**2 + kappa * radius * (kappa * radius + 2.0 * dominant)
            if lower < group[j] ** 2:
                bound = np.sqrt(ball_maximum(a, b, kappa, radius)) + error
        if group[j] > 0.0:
            estimate[i], upper[i] = norm / group[j], bound / group[j]
        elif entry > 0.0:
            estimate[i], upper[i] = largest / entry, (largest + reach) / entry


def moment_bounds(moments, first, longest, group, alpha, beta, first_unit, radius, rounding, upper):
    """Bounds of `anchored_ratios` for a ball around ``alpha v + beta a``, a the first anchor, from moments of both."""
    squares, cross, error = moments.T
    first_squares, _, first_error = first.T
    whole = abs(alpha) * np.sqrt(squares) + abs(beta) * np.sqrt(first_squares)
    square = alpha**2 * squares + 2.0 * alpha * beta * first_unit * cross + beta**2 * first_squares
    # What is left after cancellation carries the rounding of what was cancelled.
    bound = np.sqrt(np.maximum(square, 0.0) + rounding * whole**2)
    bound += abs(alpha) * error + abs(beta) * first_error + radius * longest
    upper[:] = np.divide(bound, group, out=np.zeros_like(bound), where=group > 0.0)


def row_inner_products(a, b, threads, out):
    """Inner products of the rows of two arrays."""
    out[:] = np.einsum("jt,jt->j", a, b, dtype=np.float64)


def joint_bounds(inner, coef, norms, longest, remainder, radius, group, rounding, smallest, threads, estimate, upper):
    """Bounds of `anchored_ratios` for one combination of the anchors in all tasks, from the rows' inner products.

    ``||sum_m c_m a_m||^2 = sum_ml c_m c_l <a_m, a_l>``, known up to `rounding` of ``(sum_m |c_m| ||a_m||)^2``, which
    is at most ``n sum_m c_m^2 ||a_m||^2``, and up to `smallest`. What the remainder adds is first taken as if it were
    all in the task of the longest norm, and task by task for the features that this leaves open.
    """
    count = len(coef)
    square, sizes = np.zeros(len(norms)), np.zeros(len(norms))
    for m in range(count):
        for k in range(m + 1):
            own = coef[m] * coef[k] * inner[m * (m + 1) // 2 + k].astype(np.float64)
            square += own if k == m else 2.0 * own
            sizes += own if k == m else 0.0
    square = np.maximum(square, 0.0)
    inverse = np.divide(1.0, group, out=np.zeros_like(group), where=group > 0.0)
    estimate[:] = np.sqrt(square) * inverse
    norm = np.sqrt(square + rounding * count * sizes + smallest)
    upper[:] = (norm + longest * (np.linalg.norm(remainder) * (1.0 + 1e-12) + radius)) * inverse
    left = np.flatnonzero(upper >= 1.0)
    error = np.linalg.norm(norms[left].astype(np.float64) * remainder, axis=1)
    upper[left] = np.minimum(upper[left], (norm[left] + error + longest[left] * radius) * inverse[left])


def largest_magnitude(values, threads):
    """Largest ``|v|``; not a number where one of the values is none."""
    return float(np.max(np.abs(values), initial=0.0))


def store_single(values, factor, least, threads, out):
    """``max(factor values, least)`` in single precision."""
    np.multiply(values, factor, out=out, casting="same_kind")
    np.maximum(out, np.float32(least), out=out)
