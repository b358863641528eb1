"""NumPy twins of `algebra.cpp`: factors, whitened columns and the matrices of Newton's method."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from .passes import segments


def _triangles(factors, parts):
    """(number, rows, L) of each part: its factor is a view of the flat array."""
    start = 0
    for t, rows in enumerate(parts):
        n = rows.stop - rows.start
        yield t, rows, factors[start : start + n * n].reshape(n, n, order="F")
        start += n * n


def _parts(x, offsets, shared):
    return [slice(0, x.shape[0])] if shared else segments(offsets)


def factor(x, offsets, shared, columns, a, y, threads, factors, r):
    """Cholesky factors of ``K_t = I + sum_k a_k x_kt x_kt'`` and ``r_t = K_t^-1 y_t``; False if not positive."""
    try:
        for _, rows, lower in _triangles(factors, _parts(x, offsets, shared)):
            block = x[rows][:, columns] * np.sqrt(a)
            lower[...] = cholesky(np.eye(len(lower)) + block @ block.T, lower=True)
            if shared:
                r[...] = cho_solve((lower, True), y.reshape(-1, len(lower)).T).ravel(order="F")
            else:
                r[rows] = cho_solve((lower, True), y[rows])
    except np.linalg.LinAlgError:
        return False
    return True


def whiten(x, offsets, shared, columns, u, factors, threads, z):
    """Stacked ``L_t^-1 x_kt u_kt``; for a shared matrix ``L^-1 x_k`` (the ``u`` then enter `normal_matrix`)."""
    for t, rows, lower in _triangles(factors, _parts(x, offsets, shared)):
        z[rows] = solve_triangular(lower, x[rows][:, columns] * (1.0 if shared else u[:, t]), lower=True)


def factor_shifted(x, offsets, shared, columns, a, diagonal, y, threads, factors, r):
    """`factor` with ``K_t = diagonal_t I + sum_k a_k x_kt x_kt'``: a factor for each task, of a shared matrix too."""
    try:
        for t, rows, lower in _triangles(factors, segments(offsets)):
            block = (x if shared else x[rows])[:, columns] * np.sqrt(a)
            lower[...] = cholesky(diagonal[t] * np.eye(len(lower)) + block @ block.T, lower=True)
            r[rows] = cho_solve((lower, True), y[rows])
    except np.linalg.LinAlgError:
        return False
    return True


def whiten_each(x, offsets, shared, columns, u, factors, threads, z):
    """Stacked ``L_t^-1 x_kt u_kt`` with the factors of `factor_shifted`; a shared matrix is unrolled over the tasks."""
    for t, rows, lower in _triangles(factors, segments(offsets)):
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


def combine(x, offsets, shared, columns, w, threads, out):
    """``X W`` on the chosen columns, as one flat vector."""
    if shared:
        out[...] = (x[:, columns] @ w).ravel(order="F")
    else:
        for t, rows in enumerate(segments(offsets)):
            out[rows] = x[rows][:, columns] @ w[:, t]


def reweight(x, offsets, shared, columns, w, basis, threads, out, h):
    """``(I - B B') (w o x_k)`` task by task, and its squared norms; a shared matrix is unrolled over the tasks."""
    block = x[:, columns]
    for t, rows in enumerate(segments(offsets)):
        part = w[rows, None] * (block if shared else block[rows])
        for _ in range(2):  # the second time for columns of which little is left
            for unit in basis:
                part = part - np.outer(unit[rows], unit[rows] @ part)
        out[rows] = part
        h[:, t] = np.sum(part * part, axis=0)
