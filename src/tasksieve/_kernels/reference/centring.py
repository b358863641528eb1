"""NumPy twins of `centring.cpp`: columns freed of their offsets, and sums in twice the precision."""

from __future__ import annotations

import math

import numpy as np

from .passes import segments

_SPLITTER = 134217729.0  # 2^27 + 1: halves of a number whose products are exact (Dekker 1971)


def centre(x, offsets, shared, w, basis, shifted, threads, out, squares, shifts, loadings):
    """``(I - B B') (w o (x_k - shift))`` task by task, its squared norms, the shifts, and ``B' (w o (x_k - shift))``.

    The shift is the mean with weights ``w^2``, within the range of the rows that have weight; 0 unless `shifted`.
    """
    loadings = loadings.reshape(len(basis), x.shape[1], len(offsets) - 1)
    for t, rows in enumerate(segments(offsets)):
        column, root = x if shared else x[rows], w[rows]
        shifts[:, t] = _means(column, root) if shifted else 0.0
        part = root[:, None] * (column - shifts[:, t])
        loadings[:, :, t] = 0.0
        for _ in range(2):  # the second time for columns of which little is left
            for b, unit in enumerate(basis):
                inner = unit[rows] @ part
                part = part - np.outer(unit[rows], inner)
                loadings[b, :, t] += inner
        out[rows] = part
        squares[:, t] = np.sum(part * part, axis=0)


def _means(x, root):
    weights, live = root * root, root > 0.0
    total = weights.sum()
    if not total > 0.0:
        return 0.0
    first = weights @ x / total
    return np.clip(first + weights @ (x - first) / total, x[live].min(axis=0), x[live].max(axis=0))


def two_products(a, b):
    """Products and what they were rounded by."""

    def halves(value):
        big = _SPLITTER * value
        high = big - (big - value)
        return high, value - high

    product = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def exact_products(a, b, offsets, out, rest):
    """``out[t] + rest[t] = sum_i a_i b_i`` over the rows of task t, as if summed in twice the precision."""
    for t, rows in enumerate(segments(offsets)):
        product, missing = two_products(np.asarray(a[rows], dtype=float), np.asarray(b[rows], dtype=float))
        parts = np.concatenate([product, missing]).tolist()
        out[t] = math.fsum(parts)
        rest[t] = math.fsum([*parts, -float(out[t])])


def exact_columns(terms, a, b, out, rest, sizes):
    """``out[t] + rest[t] = sum_m terms[m, t] + sum_k a[k, t] b[k, t]`` in the same way, and the sums of their sizes."""
    first = np.concatenate([terms, a]).T.ravel()
    second = np.concatenate([np.ones_like(terms), b]).T.ravel()
    exact_products(first, second, np.arange(len(out) + 1) * (len(terms) + len(a)), out, rest)
    sizes[:] = np.abs(terms).sum(axis=0) + np.abs(a * b).sum(axis=0)


def stored_rows(
    rows, raw, shifts, sizes, loadings, from_basis, nuisance, nuisance_shifts, intercept, label_shift, pulled, left,
    facts,
):  # fmt: skip
    """What is stored for rows of W, `raw` in the units of the data, and what is known of it.

    ``pulled = sum_k loadings_k rows_k``, ``left = nuisance - from_basis pulled``; the `facts` are, with an intercept,
    ``left_0 + label_shift - sum_k shifts_k raw_k - sum_z nuisance_shifts_z left_z`` summed in twice the precision, what
    rounding the sum left out, the sum of the sizes of these terms; and ``sum_k sizes_k |rows_k|``.
    """
    pulled[:] = np.einsum("bkt,kt->bt", loadings, rows)
    left[:] = nuisance - np.einsum("tzb,bt->zt", from_basis, pulled)
    facts[:] = 0.0
    if intercept:
        terms = np.array([left[0], label_shift])
        first, second = np.concatenate([shifts, nuisance_shifts[1:]]), -np.concatenate([raw, left[1:]])
        exact_columns(terms, first, second, *facts[:3])
    facts[3] = np.sum(sizes * np.abs(rows), axis=0)


def stored_values(
    counts, positions, rows, raw, sizes, shifts, coefficients, fit, nuisance_shifts, label_shifts, intercept, left,
    facts,
):
    """The same for many values at once, whose rows come one value after the other; coefficients of nuisance columns are
    ``left = fit - sum_k coefficients_k rows_k``, and the `facts` as those of `stored_rows`."""
    tasks = rows.shape[1]
    of_task = np.zeros(tasks, dtype=np.int64) if len(sizes) == 1 else np.arange(tasks)
    facts[:] = 0.0
    for v, (low, high) in enumerate(zip(np.cumsum(counts) - counts, np.cumsum(counts), strict=True)):
        own, at = slice(low, high), positions[low:high]
        pulled = np.einsum("tzk,kt->zt", coefficients[of_task][:, :, at], rows[own])
        left[v] = fit.T - pulled
        if intercept:
            first = np.concatenate([nuisance_shifts[1:], shifts[of_task][:, at].T])
            second = -np.concatenate([left[v, 1:], raw[own]])
            exact_columns(np.array([left[v, 0], label_shifts]), first, second, *facts[:3, v])
        facts[3, v] = np.sum(sizes[of_task][:, at].T * np.abs(rows[own]), axis=0)


def measure_against(z, r, offsets, inverse, slack, products, norms):
    """``|<z_k, r>| inverse[k, t] + slack[k, t] ||r||`` over the rows of task t, the inner product in twice the
    precision, and the norms of r."""
    for t, rows in enumerate(segments(offsets)):
        norms[t] = math.sqrt(float(r[rows] @ r[rows]))
    for row, out in zip(z, products, strict=True):
        exact_products(row, r, offsets, out, np.empty(len(norms)))
    products[:] = np.abs(products) * inverse + slack * norms
