"""NumPy twins of the compiled kernels: same names, same arguments, same results up to rounding.

They are the kernels' documentation and test oracle, and what runs where no compiled kernels exist. Every function
writes into the arrays it is given (``out``, ``w``, ``state``, ...), as the compiled one does.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from .reference_online import DualAveraging as DualAveraging


def _columns(x, columns):
    block = np.asarray(x if columns is None else x[:, columns], dtype=np.float64)
    return block


def _segments(offsets):
    return [slice(offsets[t], offsets[t + 1]) for t in range(len(offsets) - 1)]


def segment_products(x, columns, r, offsets, squares, threads, out):
    """``out[k, t] = sum_i x[i, columns[k]]^p r[i]`` over the rows ``i`` of task ``t``; ``p`` is 2 with `squares`."""
    block = _columns(x, columns)
    for t, rows in enumerate(_segments(offsets)):
        part = block[rows]
        out[:, t] = (part * part if squares else part).T @ r[rows]


def shared_products(x, columns, r, squares, threads, out):
    """``out = (X^p)' R`` for one matrix shared by all tasks."""
    block = _columns(x, columns)
    out[...] = (block * block if squares else block).T @ r


def sparse_products(data, indices, indptr, columns, r, task_of, tasks, squares, threads, out):
    """The same products for sparse columns; stacked rows carry their task in `task_of`, else ``r`` is n x T."""
    out[...] = 0.0
    for k, j in enumerate(range(len(indptr) - 1) if columns is None else columns):
        span = slice(indptr[j], indptr[j + 1])
        rows, values = indices[span], np.asarray(data[span], dtype=np.float64)
        if squares:
            values = values * values
        if task_of is None:
            out[k] = values @ r[rows]
        else:
            np.add.at(out[k], task_of[rows], values * r[rows, 0])


def row_products(x, r, task_of, squares, threads, out):
    """``out[task_of[i]] += r[i] x[i]^p`` for a block of row-major rows."""
    for i in range(len(r)):
        row = np.asarray(x[i], dtype=np.float64)
        out[task_of[i]] += r[i] * (row * row if squares else row)


def first_products(x, weights, r, offsets, threads, squares, out):
    """``squares[j, t] = sum_i weights_i x_ij^2`` and ``out[k][j, t] = sum_i x_ij r_ki`` over the rows of each task."""
    segment_products(x, None, weights, offsets, True, threads, squares)
    for vector, products in zip(r, out, strict=True):
        segment_products(x, None, vector, offsets, False, threads, products)


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


def largest_magnitude(values, threads):
    """Largest ``|v|``; not a number where one of the values is none."""
    return float(np.max(np.abs(values), initial=0.0))


def store_single(values, factor, least, threads, out):
    """``max(factor values, least)`` in single precision."""
    np.multiply(values, factor, out=out, casting="same_kind")
    np.maximum(out, np.float32(least), out=out)


def solve_row(c, h, group, l1, ridge, positive):
    """``argmin_w sum_t (h_t/2 w_t^2 - c_t w_t) + ridge/2 ||w||^2 + l1 ||w||_1 + group ||w||_2`` (mathematics 2.7)."""
    c = np.maximum(c - l1, 0.0) if positive else np.sign(c) * np.maximum(np.abs(c) - l1, 0.0)
    curvature = h + ridge
    c = np.where(curvature > 0.0, c, 0.0)
    norm = np.linalg.norm(c)
    w = np.zeros_like(c)
    if norm <= group:
        return w
    live = c != 0.0
    c, curvature = c[live], curvature[live]
    shift = 0.0
    if group > 0.0:
        nu = (norm - group) / curvature.max()
        for _ in range(30):
            ratio = c / (curvature * nu + group)
            total = ratio @ ratio
            slope = np.sum(ratio * ratio * curvature / (curvature * nu + group))
            step = -(1.0 / np.sqrt(total) - 1.0) * total**1.5 / slope
            nu += step
            if not abs(step) > 1e-14 * nu:
                break
        shift = group / nu
    w[live] = c / (curvature + shift)
    return w


def solve_rows(c, h, group, l1, ridge, positive, out):
    """`solve_row` for every row."""
    for j in range(len(c)):
        out[j] = solve_row(c[j], h[j], group[j], l1[j], ridge, positive)


def row_gauge(m, group, l1, positive):
    """Smallest ``v`` with ``||soft(m, v l1)|| <= v group``: the dual norm of ``group ||.||_2 + l1 ||.||_1``."""
    size = np.maximum(m, 0.0) if positive else np.abs(m)
    if not size.any():
        return 0.0
    if l1 == 0.0:
        return float(np.linalg.norm(size) / group) if group > 0.0 else float("inf")
    if group == 0.0:
        return float(size.max() / l1)
    v = max(size.max() / (l1 + group), np.linalg.norm(size) / (l1 * np.sqrt(len(m)) + group))
    for _ in range(60):
        rest = np.maximum(size - v * l1, 0.0)
        norm = np.linalg.norm(rest)
        slope = -l1 * rest.sum() / norm - group if norm > 0.0 else -group
        step = -(norm - v * group) / slope
        v += step
        if not step > 1e-15 * v:
            break
    return float(v)


def row_gauges(m, group, l1, positive, out):
    """`row_gauge` for every row."""
    for j in range(len(m)):
        out[j] = row_gauge(m[j], group[j], l1[j], positive)


def coordinate_descent(
    x,
    offsets,
    shared,
    columns,
    h,
    group,
    l1,
    ridge,
    positive,
    w,
    state,
    max_epochs,
    tol,
    gram,
    y_products,
    y_squared,
):
    """Cyclic block coordinate descent over the rows of ``W``, stopped on the duality gap of these columns.

    `state` is the residual or, with a Gram matrix, ``X'residual`` as tasks x count; it is kept in step with `w`. Where
    the squared norm `h` is 0, the column is empty in that task or taken as if it were: its coefficient stays 0.
    Returns (epochs, gap, objective). The compiled twin also extrapolates (Anderson), so it needs fewer epochs.
    """
    tasks, count = len(offsets) - 1, len(columns)
    rows = [slice(0, x.shape[0])] * tasks if shared else _segments(offsets)
    residual_rows = [slice(t * x.shape[0], (t + 1) * x.shape[0]) for t in range(tasks)] if shared else rows
    if gram is not None:
        cells = gram.reshape(-1, count, count)
        grams = [cells[0 if shared else t] for t in range(tasks)]
        products = state.reshape(tasks, count)
        y_rows = y_products.reshape(tasks, count)

    def correlations(k):
        if gram is not None:
            return np.where(h[k] == 0.0, 0.0, products[:, k])
        return np.array(
            [x[rows[t], columns[k]] @ state[residual_rows[t]] if h[k, t] else 0.0 for t in range(tasks)]
        )

    def loss():
        if gram is not None:
            return max(0.5 * (y_squared - np.sum(w.T * (y_rows + products))), 0.0)
        return 0.5 * state @ state

    def gap():
        c = np.array([correlations(k) for k in range(count)]).reshape(count, tasks) - ridge * w
        penalties = group @ np.linalg.norm(w, axis=1) + l1 @ np.abs(w).sum(axis=1)
        weight2, inner = np.sum(w * w), np.sum(c * w)
        residual2 = 2.0 * loss() + ridge * weight2
        polar = max((row_gauge(c[k], group[k], l1[k], positive) for k in range(count)), default=0.0)
        scale = (residual2 + inner) / residual2 if residual2 > 0.0 else 1.0
        if polar > 0.0:
            scale = min(scale, 1.0 / polar)
        scale = max(scale, 0.0)
        objective = loss() + penalties + 0.5 * ridge * weight2
        return 0.5 * (1.0 - scale) ** 2 * residual2 + penalties - scale * inner, objective

    value, objective = gap()
    epochs = 0
    while epochs < max_epochs and not value <= tol:
        for k in range(count):
            new = solve_row(correlations(k) + h[k] * w[k], h[k], group[k], l1[k], ridge, positive)
            for t in np.flatnonzero(new != w[k]):
                step = new[t] - w[k, t]
                if gram is not None:
                    products[t] -= step * grams[t][k]
                else:
                    state[residual_rows[t]] -= step * x[rows[t], columns[k]]
            w[k] = new
        epochs += 1
        value, objective = gap()
    return epochs, float(value), float(objective)


def factor(x, offsets, shared, columns, a, y, threads, factors, r):
    """Cholesky factors of ``K_t = I + sum_k a_k x_kt x_kt'`` and ``r_t = K_t^-1 y_t``; False if not positive."""
    start = 0
    rows_x = x.shape[0]
    targets = y.reshape(-1, rows_x).T if shared else None
    try:
        for rows in [slice(0, rows_x)] if shared else _segments(offsets):
            block = x[rows][:, columns] * np.sqrt(a)
            n = block.shape[0]
            lower = cholesky(np.eye(n) + block @ block.T, lower=True)
            factors[start : start + n * n] = lower.ravel(order="F")
            start += n * n
            if shared:
                r[...] = cho_solve((lower, True), targets).ravel(order="F")
            else:
                r[rows] = cho_solve((lower, True), y[rows])
    except np.linalg.LinAlgError:
        return False
    return True


def whiten(x, offsets, shared, columns, u, factors, threads, z):
    """Stacked ``L_t^-1 x_kt u_kt``; for a shared matrix ``L^-1 x_k`` (the ``u`` then enter `normal_matrix`)."""
    start = 0
    for t, rows in enumerate([slice(0, x.shape[0])] if shared else _segments(offsets)):
        n = rows.stop - rows.start
        lower = factors[start : start + n * n].reshape(n, n, order="F")
        start += n * n
        block = x[rows][:, columns] * (1.0 if shared else u[:, t])
        z[rows] = solve_triangular(lower, block, lower=True)


def factor_shifted(x, offsets, shared, columns, a, diagonal, y, threads, factors, r):
    """`factor` with ``K_t = diagonal_t I + sum_k a_k x_kt x_kt'``: a factor for each task, of a shared matrix too."""
    start = 0
    try:
        for t, rows in enumerate(_segments(offsets)):
            block = (x if shared else x[rows])[:, columns] * np.sqrt(a)
            n = block.shape[0]
            lower = cholesky(diagonal[t] * np.eye(n) + block @ block.T, lower=True)
            factors[start : start + n * n] = lower.ravel(order="F")
            start += n * n
            r[rows] = cho_solve((lower, True), y[rows])
    except np.linalg.LinAlgError:
        return False
    return True


def whiten_each(x, offsets, shared, columns, u, factors, threads, z):
    """Stacked ``L_t^-1 x_kt u_kt`` with the factors of `factor_shifted`; a shared matrix is unrolled over the tasks."""
    start = 0
    for t, rows in enumerate(_segments(offsets)):
        n = rows.stop - rows.start
        lower = factors[start : start + n * n].reshape(n, n, order="F")
        start += n * n
        z[rows] = solve_triangular(lower, (x if shared else x[rows])[:, columns] * u[:, t], lower=True)


def normal_matrix(z, u, threads, m):
    """``Z'Z``, with `u` times ``U U'`` entry by entry."""
    m[...] = z.T @ z
    if u is not None:
        m *= u @ u.T


def normal_product(z, u, v, threads, out):
    """`normal_matrix` times a vector, without forming the matrix."""
    if u is None:
        out[...] = z.T @ (z @ v)
    else:
        out[...] = np.sum(u * (z.T @ (z @ (u * v[:, None]))), axis=1)


def extend_grams(x, offsets, columns, known, threads, gram):
    """``X_t' X_t`` of some columns into the leading corner of each ``gram[t]``; the first `known` are there already."""
    total = len(columns)
    for t, rows in enumerate([slice(0, x.shape[0])] if len(gram) == 1 else _segments(offsets)):
        block = x[rows][:, columns]
        gram[t, known:total, :total] = block[:, known:].T @ block
        gram[t, :known, known:total] = gram[t, known:total, :known].T


def gram_factor(gram, slots, a, products, threads, factors, w):
    """Factors of ``B_t = I + D G_t D``, ``D = diag(sqrt a)``, and ridge fits ``w_t = D B_t^-1 D c_t``."""
    root = np.sqrt(a)
    try:
        for g, matrix in enumerate(gram):
            mine = slice(None) if len(gram) == 1 else slice(g, g + 1)
            lower = cholesky(
                np.eye(len(root)) + root[:, None] * matrix[np.ix_(slots, slots)] * root, lower=True
            )
            factors[g] = lower.T  # column after column
            w[:, mine] = root[:, None] * cho_solve((lower, True), root[:, None] * products[:, mine])
    except np.linalg.LinAlgError:
        return False
    return True


def gram_normal(factors, a, u, threads, m):
    """``sum_t (u_t u_t') o X_t' K_t^-1 X_t`` from ``D^-1 (I - B_t^-1) D^-1``."""
    identity = np.eye(len(a))
    scaled = u / np.sqrt(a)[:, None]
    m[...] = 0.0
    for g, upper in enumerate(factors):
        side = scaled if len(factors) == 1 else scaled[:, g : g + 1]
        m += (side @ side.T) * (identity - cho_solve((upper.T, True), identity))
    return True


def combine(x, offsets, shared, columns, w, threads, out):
    """``X W`` on the chosen columns, as one flat vector."""
    if shared:
        out[...] = (x[:, columns] @ w).ravel(order="F")
    else:
        for t, rows in enumerate(_segments(offsets)):
            out[rows] = x[rows][:, columns] @ w[:, t]


def reweight(x, offsets, shared, columns, w, basis, threads, out, h):
    """``(I - B B') (w o x_k)`` task by task, and its squared norms; a shared matrix is unrolled over the tasks."""
    block = x[:, columns]
    for t, rows in enumerate(_segments(offsets)):
        part = w[rows, None] * (block if shared else block[rows])
        for _ in range(2):  # the second time for columns of which little is left
            for unit in basis:
                part = part - np.outer(unit[rows], unit[rows] @ part)
        out[rows] = part
        h[:, t] = np.sum(part * part, axis=0)


# The graph models' kernels have a file of their own.
from .reference_graph import (  # noqa: E402, F401
    count_hashed,
    dense_rows,
    dual_descent,
    fenchel_sums,
    graph_pass,
    graph_pass_single,
    graph_problem,
    hash_rows,
    rebuild_table,
    row_squares,
    smoothed_loss,
    smoothed_slope,
    sparse_rows,
    string_rows,
)

# And so have those of the sorted norm.
from .reference_sorted import SortedFista, SortedNorm, SortedSvrg  # noqa: E402, F401
