"""NumPy twins of `coordinate.cpp`: rows of W solved exactly, one at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .passes import segments

ROW_SUM, ROW_LARGEST, ROW_SPLIT, ROW_STACK = range(4)  # kinds of rows: `row_update.hpp`


def solve_row(c, h, group, l1, ridge, positive, kind=ROW_SUM):
    """``argmin_w sum_t (h_t/2 w_t^2 - c_t w_t) + ridge/2 ||w||^2 + l1 ||w||_1 + group ||w||_2`` (mathematics 2.7).

    Or another norm of the row: `kind`.
    """
    if kind == ROW_STACK:
        return _solve_stack(np.atleast_2d(c), np.atleast_2d(h) + ridge, group, l1, positive).reshape(c.shape)
    if kind != ROW_SUM:
        return _solve_largest_or_split(c, h + ridge, group, l1, positive, kind)
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


def _solve_stack(c, h, group, l1, positive):
    """``group ||W||_F + l1 sum_j ||W_j||`` where all curvatures are one number, or 0."""
    c = np.where((h > 0.0) & ~(positive & (c < 0.0)), c, 0.0)
    lengths = np.linalg.norm(c, axis=1)
    left = np.maximum(lengths - l1, 0.0)
    c = c * np.divide(left, lengths, out=np.zeros_like(left), where=lengths > 0.0)[:, None]
    norm = np.linalg.norm(left)
    return c * ((1.0 - group / norm) / h.max()) if norm > group else np.zeros_like(c)


def _solve_largest_or_split(c, h, group, l1, positive, kind):
    """By a sort, or bisection, where the compiled twin has Newton's method."""
    c = np.where((h > 0.0) & ~(positive & (c < 0.0)), c, 0.0)
    size, curvature = np.abs(c), np.where(h > 0.0, h, 1.0)
    if kind == ROW_LARGEST:
        if size.sum() <= group:
            return np.zeros_like(c)
        order = np.argsort(-size / curvature)
        heights = (np.cumsum(size[order]) - group) / np.cumsum(curvature[order])
        following = np.append((size / curvature)[order][1:], 0.0)
        return np.sign(c) * np.minimum(size / curvature, heights[np.argmax(heights >= following)])
    slope = lambda mu: np.minimum(size / (1.0 + mu * curvature), l1)  # noqa: E731
    mu = 0.0
    if np.linalg.norm(slope(0.0)) > group:
        least = np.min(curvature[size > 0.0])
        mu = _where_false(lambda mu: np.linalg.norm(slope(mu)) > group, np.linalg.norm(size) / (group * least))
    free = size <= l1 * (1.0 + mu * curvature)
    return np.sign(c) * np.where(free, size * mu / (1.0 + mu * curvature), (size - l1) / curvature)


def _where_false(above, high):
    """The number up to which a condition holds, to the last digits."""
    low = 0.0
    for _ in range(2000):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if above(middle) else (low, middle)
    return high


def solve_rows(c, h, group, l1, ridge, positive, out, kind=ROW_SUM):
    """`solve_row` for every row."""
    for j in range(len(c)):
        out[j] = solve_row(c[j], h[j], group[j], l1[j], ridge, positive, kind)


def row_norm(w, group, l1, kind=ROW_SUM):
    """The norm of a row, strengths included."""
    size = np.abs(w)
    if kind == ROW_STACK:
        return float(group * np.linalg.norm(w) + l1 * np.linalg.norm(np.atleast_2d(w), axis=1).sum())
    if kind == ROW_LARGEST:
        return float(group * size.max(initial=0.0))
    if kind == ROW_SPLIT:  # the best of all heights at which the row can be cut
        ranked = np.sort(size)[::-1]
        kept = np.sqrt(np.cumsum(np.square(ranked)[::-1])[::-1])  # of what is not above each entry
        left = group**2 - l1**2 * np.arange(len(size))
        heights = np.append(l1 * kept[left > 0.0] / np.sqrt(left[left > 0.0]), 0.0)
        return float(min(group * np.linalg.norm(np.minimum(size, a)) + l1 * np.maximum(size - a, 0.0).sum()
                         for a in heights))  # fmt: skip
    return float(group * np.linalg.norm(size) + l1 * size.sum())


def row_gauge(m, group, l1, positive, kind=ROW_SUM):
    """Smallest ``v`` with ``||soft(m, v l1)|| <= v group``: the dual norm of ``group ||.||_2 + l1 ||.||_1``.

    Or of another norm of the row: `kind`.
    """
    size = np.maximum(m, 0.0) if positive else np.abs(m)
    if not size.any():
        return 0.0
    if kind == ROW_STACK:
        return row_gauge(np.linalg.norm(np.atleast_2d(size), axis=1), group, l1, False)
    if kind == ROW_LARGEST:
        return float(size.sum() / group)
    if kind == ROW_SPLIT:
        return float(max(np.linalg.norm(size) / group, size.max() / l1))
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


def row_gauges(m, errors, group, l1, positive, out):
    """`row_gauge` of every row, at most, where products are known up to `errors`; 0 for rows that are not penalised."""
    sizes = (m if positive else np.abs(m)) + (0.0 if errors is None else errors)
    for j in range(len(m)):
        out[j] = row_gauge(sizes[j], group[j], l1[j], positive) if group[j] > 0.0 or l1[j] > 0.0 else 0.0


def row_norms(rows, out):
    """Euclidean norms."""
    out[:] = np.sqrt(np.einsum("ij,ij->i", rows, rows))


def pick_rows(known, rows, features, out):
    """Rows of some features from those of known ones, 0 where a feature is not known; both lists ascend."""
    out[:] = 0.0
    _, here, there = np.intersect1d(features, known, assume_unique=True, return_indices=True)
    out[here] = rows[there]


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
    kind=ROW_SUM,
    starts=None,
    coupling=None,
    curvatures=None,
    rotations=None,
    threads=1,
    classes=None,
    shares=None,
    levels=None,
    inverse=None,
):
    """Cyclic block coordinate descent over the rows of ``W``, stopped on the duality gap of these columns.

    `state` is the residual, kept in step with `w`; or, with a Gram matrix, filled with ``X'residual``, as tasks x
    columns of `y_products`. The Gram matrices, one a task or one for all, may have room for more. Where the squared
    norm `h` is 0, the column is empty in that task or taken as if it were: its coefficient stays 0. With `starts`,
    columns from one to the next are a block whose rows are solved together, as if `h` were all of its curvature.
    With the weights A of a graph of tasks, ``1/2 sum_j sum_{s<t} A_st (w_js - w_jt)^2`` is added: rows are solved in
    the coordinates of `rotations`, in which ``diag(h_j)`` plus the Laplacian is diagonal, or by a few majorised steps.
    Tasks from one of `classes` to the next are the classes of a task: changes of the residual are made orthogonal to
    the `shares` of each row, and an epoch ends with the best multiples of `levels` (`coordinate.hpp`).
    Returns (epochs, gap, objective). The compiled twin also extrapolates (Anderson), so it needs fewer epochs.
    """
    tasks, count = len(offsets) - 1, len(columns)
    cuts = np.arange(count + 1) if starts is None else starts
    blocks = [slice(low, high) for low, high in pairwise(cuts.tolist())]

    def flat(part):  # a row, or rows stacked
        return part if kind == ROW_STACK else part.ravel()

    rows = [slice(0, x.shape[0])] * tasks if shared else segments(offsets)
    residual_rows = [slice(t * x.shape[0], (t + 1) * x.shape[0]) for t in range(tasks)] if shared else rows
    if gram is not None:
        width = y_products.shape[1]
        grams = [gram[0 if shared else t, :width, :width] for t in range(tasks)]
        products = state.reshape(tasks, width)
        for t in range(tasks):
            products[t] = y_products[t] - w[:, t] @ grams[t][columns]

    def correlations(k):
        if gram is not None:
            return np.where(h[k] == 0.0, 0.0, products[:, columns[k]])
        return np.array(
            [x[rows[t], columns[k]] @ state[residual_rows[t]] if h[k, t] else 0.0 for t in range(tasks)]
        )

    def loss():
        if gram is not None:
            return max(0.5 * (y_squared - np.sum(w.T * (y_products + products)[:, columns])), 0.0)
        return 0.5 * state @ state

    def pulled(w):
        if coupling is None:
            return np.zeros_like(w)
        return np.stack([(w[..., t : t + 1] - w) @ coupling[t] for t in range(tasks)], axis=-1)

    def solved(k, c):
        """Row k with a graph, from ``c = products + h w``."""
        if rotations is not None:
            return rotations[k] @ solve_row(rotations[k].T @ c, curvatures[k], group[k], 0.0, ridge, False)
        steep, row = h[k] + 2.0 * coupling.sum(axis=1), w[k]
        for _ in range(10):
            b = c - pulled(row) + (steep - h[k]) * row
            row = solve_row(b, steep, group[k], l1[k], ridge, positive, kind)
            # the best multiple: where the graph is strong, tasks that hang together move only together
            along = c @ row - row_norm(row, group[k], l1[k], kind)
            curvature = (h[k] + ridge) @ row**2 + pulled(row) @ row
            row = row * (along / curvature if along > 0.0 and curvature > 0.0 else 0.0)
        return row

    def gap():
        c = np.array([correlations(k) for k in range(count)]).reshape(count, tasks) - ridge * w - pulled(w)
        penalties = sum(row_norm(flat(w[own]), group[k], l1[k], kind) for k, own in enumerate(blocks))
        weight2, inner = np.sum(w * w), np.sum(c * w)
        quadratic = ridge * weight2 + np.sum(pulled(w) * w)
        residual2 = 2.0 * loss() + quadratic
        polar = max(
            (row_gauge(flat(c[own]), group[k], l1[k], positive, kind) for k, own in enumerate(blocks)), default=0.0
        )
        scale = (residual2 + inner) / residual2 if residual2 > 0.0 else 1.0
        if polar > 0.0:
            scale = min(scale, 1.0 / polar)
        if ridge > 0.0 and (starts is not None or kind != ROW_SUM):
            scale = min(scale, 1.0)
        scale = max(scale, 0.0)
        objective = loss() + penalties + 0.5 * quadratic
        return 0.5 * (1.0 - scale) ** 2 * residual2 + penalties - scale * inner, objective

    def change(t, vector):
        """The residual of a task, and of the other classes with it."""
        if classes is None:
            state[residual_rows[t]] -= vector
            return
        g = int(np.searchsorted(classes, t, side="right")) - 1
        along = shares[rows[t]] * vector
        state[rows[t]] -= vector
        for other in range(classes[g], classes[g + 1]):
            state[rows[other]] += along * shares[rows[other]]

    def settle():
        first = 0
        for low, high in pairwise(classes.tolist()):
            own, count = rows[low:high], high - low
            matrix = inverse[first : first + count * count].reshape(count, count)
            best = matrix @ np.array([levels[part] @ state[part] for part in own])
            for t, factor in zip(range(low, high), best, strict=True):
                change(t, factor * levels[rows[t]])
            first += count * count

    value, objective = gap()
    epochs = 0
    while epochs < max_epochs and not value <= tol:
        for b, own in enumerate(blocks):
            c = np.array([correlations(k) for k in range(own.start, own.stop)]) + h[own] * w[own]
            if coupling is not None:  # blocks are rows
                new = solved(b, c[0])[None, :]
            else:
                new = solve_row(flat(c), flat(h[own]), group[b], l1[b], ridge, positive, kind).reshape(-1, tasks)
            for j, t in np.argwhere(new != w[own]).tolist():
                k = own.start + j
                step = new[j, t] - w[k, t]
                if gram is not None:
                    products[t] -= step * grams[t][columns[k]]
                else:
                    change(t, step * x[rows[t], columns[k]])
            w[own] = new
        if classes is not None:
            settle()
        epochs += 1
        value, objective = gap()
    return epochs, float(value), float(objective)
